// The operations, one file each. Each checks its arguments against its specification, then writes a
// Problem: plain data that points into the caller's memory and owns nothing.
#pragma once

#include "problem/pack_problem.h"
#include "problem/problem.h"
#include "wgemm.h"

namespace wgemm {

// If `with_data`, null data is an error and the problem's operands point to the data. Otherwise
// only sizes and `place` count. Y is checked if `with_data` or if its dims are given. `problem`
// must be newly constructed.
Status gemm_problem(const GemmArgs& args, bool with_data, Problem* problem);

// As gemm_problem(). Without data, the values of scales, zero points and alpha are read only if
// `with_values` and all scales and zero points have data.
Status qgemm_problem(const QGemmArgs& args, bool with_data, Problem* problem,
                     bool with_values = false);

// Reads the values of scales and zero points of a problem that qgemm_problem() wrote again, as if
// it wrote them now. After an error the problem is unchanged.
Status read_quantization(Problem* problem);

// What matmul_problem() writes. It owns the axes that problem.batch points to: do not copy it.
struct MatMulProblem {
  Problem problem;
  BatchAxis axes[kMaxRank];
  int64_t shape[kMaxRank];  // of dst
  size_t rank;              // of dst
};

// As gemm_problem().
Status matmul_problem(const MatMulArgs& args, bool with_data, MatMulProblem* result);

// Errors call the operation `op` and B `name`. `problem` points into args.B.
Status pack_problem(const char* op, const char* name, const PackArgs& args, PackProblem* problem);

// Checks that packed weights may replace the operand `name` of a product with `a`, which errors
// call `other`. They must be packed for `wanted`, have K = k and, except for 8-bit types, the type
// of `a`. If that is float32, they may also be float16 or bfloat16. `transpose`, the value of the
// argument `flag`, must be 0.
Status check_packed(const char* op, const char* name, const PackedWeights& weights, PackFor wanted,
                    const char* other, const ConstTensor& a, bool a_transposed, int64_t k,
                    int64_t transpose, const char* flag);

}  // namespace wgemm
