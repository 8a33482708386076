// The operations: each checks its arguments by its specification and writes a Problem. One file an
// operation.
#pragma once

#include "problem/pack_problem.h"
#include "problem/problem.h"
#include "wgemm.h"

namespace wgemm {

// with_data: the addresses count, so null data is an error and problem's operands are set; else
// only sizes and `place` are looked at. Y is checked if with_data or if its dims are given.
// `problem` is to be as it is made.
Status gemm_problem(const GemmArgs& args, bool with_data, Problem* problem);

// As gemm_problem. Without data the values of scales, zero points and alpha are not looked at,
// unless with_values, and all scales and zero points have data.
Status qgemm_problem(const QGemmArgs& args, bool with_data, Problem* problem,
                     bool with_values = false);

// What matmul_problem() writes: the problem, whose batch lies in `axes`, and the shape of dst.
struct MatMulProblem {
  Problem problem;
  BatchAxis axes[kMaxRank];
  int64_t shape[kMaxRank];
  size_t rank;
};

// As gemm_problem.
Status matmul_problem(const MatMulArgs& args, bool with_data, MatMulProblem* result);

// `op` and `name` are what errors call the call, and B.
Status pack_problem(const char* op, const char* name, const PackArgs& args, PackProblem* problem);

// That packed weights may stand for the operand `name` beside `a`, called `other`, with K = k: of
// the type of `a`, of 16 bits beside float32, and of 8 bits any. `flag` names the transpose of what
// they stand for, which must be 0.
Status check_packed(const char* op, const char* name, const PackedWeights& weights, PackFor wanted,
                    const char* other, const ConstTensor& a, bool a_transposed, int64_t k,
                    int64_t transpose, const char* flag);

}  // namespace wgemm
