// The operations, one file each. Each checks its arguments against its specification, then writes a
// Problem: plain data that points into the caller's memory and owns nothing.
#pragma once

#include <type_traits>

#include "problem/pack_problem.h"
#include "problem/problem.h"
#include "wgemm.h"

namespace wgemm {

// If `with_data`, null data is an error and the problem's operands point to the data. Otherwise
// only sizes and `place` count. Y is checked if `with_data` or if its dims are given. `problem`
// must be newly constructed.
Status gemm_problem(const GemmArgs& args, bool with_data, Problem* problem);

// As gemm_problem().
Status syrk_problem(const SyrkArgs& args, bool with_data, Problem* problem);

// Reads scales and zero points of a problem of 8-bit operands, and checks the scales. Errors call
// the operation `op`; the problem is then unchanged.
Status read_quantization(const char* op, Problem* problem);

// A problem with a batch. It owns the axes that problem.batch points to: do not copy it.
struct MatMulProblem {
  static_assert(std::is_trivially_default_constructible_v<BatchAxis>);  // to clear them takes time
  Problem problem;
  BatchAxis axes[kMaxRank];
  int64_t shape[kMaxRank];  // of dst
  size_t rank;              // of dst
};

// As gemm_problem().
Status matmul_problem(const MatMulArgs& args, bool with_data, MatMulProblem* result);

// The arguments of any product of 8-bit operands. It points into those that it is made of.
struct QuantizedArgs {
  static constexpr int kQGemm = 4;
  int op;  // an IntegerOp, kQGemm, or a larger number: an unknown IntegerOp plus 1
  ConstTensor A, B;
  const PackedWeights* packed_B = nullptr;
  const ConstTensor* params[kQuantizationParams] = {};  // by QuantizationParam; null: absent
  const ConstTensor* C = nullptr;                       // or bias
  Tensor Y;
  Activation activation;
  double alpha = 1;
  int64_t transA = 0, transB = 0;
  // False: scales and zero points need not be valid, and read_quantization() must follow.
  bool reads_values = true;

  QuantizedArgs() = default;
  QuantizedArgs(const QGemmArgs& args);          // NOLINT(google-explicit-constructor)
  QuantizedArgs(const IntegerMatMulArgs& args);  // NOLINT(google-explicit-constructor)
};

// The name of the operation in errors, such as "qlinearMatmul".
const char* name_of(const QuantizedArgs& args);

// As gemm_problem(). Without data, scales and zero points are read only if `with_values` and all of
// them have data.
Status quantized_problem(const QuantizedArgs& args, bool with_data, MatMulProblem* result,
                         bool with_values = false);

// As gemm_problem(). Only A, bias and Y have a batch or strides.
Status nbits_problem(const MatMulNBitsArgs& args, bool with_data, MatMulProblem* result);

// Checks weights of MatMulNBits for pack_nbits(). `problem` points into them.
Status nbits_pack_problem(const NBitsWeights& weights, PackProblem* problem);

// Checks the format and the sizes of weights in a block format, for begin_pack() and deserialize().
// Errors call the operation `op`.
Status blocks_pack_problem(const char* op, BlockFormat format, int64_t k, int64_t n,
                           PackProblem* problem);

// Checks the arguments of pack_part() for weights of a block format, except for the values.
Status check_blocks(const PackedWeights& weights, int64_t first, std::span<const std::byte> bytes);

// Checks the header of serialized weights of MatMulNBits, which has these sizes. Errors call the
// operation "deserialize".
Status nbits_pack_problem(const NBits& format, std::span<const int64_t> dims, PackProblem* problem);

// Errors call the operation `op` and B `name`. `problem` points into args.B.
Status pack_problem(const char* op, const char* name, const PackArgs& args, PackProblem* problem);

// Checks the arguments of begin_pack(). `problem` has no elements, and points into `dims`: K and N.
Status begin_problem(DType as, std::span<const int64_t> dims, PackProblem* problem);

// Checks a part of weights. `problem` has the sizes of the part, and points into part.B.
Status part_problem(const PackedWeights& weights, const PackPart& part, PackProblem* problem);

// Checks that packed weights, which replace the operand `name`, are not empty and are packed for
// `expected`.
Status check_packed_for(const char* op, const char* name, const PackedWeights& weights,
                        PackFor expected);

// Checks that packed weights may replace the operand `name` of a product with `a`, which errors
// call `other`. They must be packed for `expected`, have K = k and, except for 8-bit types, the
// type of `a`. If that is float32, they may also be float16 or bfloat16. `transpose`, the value of
// the argument `flag`, must be 0.
Status check_packed(const char* op, const char* name, const PackedWeights& weights,
                    PackFor expected, const char* other, const ConstTensor& a, bool a_transposed,
                    int64_t k, int64_t transpose, const char* flag);

}  // namespace wgemm
