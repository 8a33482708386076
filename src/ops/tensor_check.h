// Checks of tensors, factors and activations that several operations share, and the operands that
// checked tensors become. Only ops/ includes this. All sizes, strides and extents here count
// elements.
#pragma once

#include <type_traits>

#include "problem/problem.h"
#include "wgemm.h"

namespace wgemm {

// Largest number of elements of a tensor, and largest stride. JavaScript counts exactly up to 2^53.
inline constexpr int64_t kMaxElements = int64_t{1} << 53;

// Number of elements from the first to the last of a checked tensor; 0 if a size is 0. It includes
// both, and the gaps between them.
int64_t tensor_extent(std::span<const int64_t> dims, std::span<const int64_t> strides);

// Stride of an axis of a checked tensor. Empty `strides` mean contiguous.
int64_t tensor_stride(std::span<const int64_t> dims, std::span<const int64_t> strides, size_t axis);

// Checks type, rank, sizes, strides, offset and `size`; if `with_data`, also that data is not null.
template <typename T>
Status check_tensor(const char* op, const char* name, const BasicTensor<T>& tensor, bool with_data);

// As check_tensor() for A, B, C or Y, which have no data if they are out-of-core.
template <typename T>
Status check_operand(const char* op, const char* name, const BasicTensor<T>& tensor,
                     bool with_data) {
  return check_tensor(op, name, tensor, with_data && tensor.out_of_core == nullptr);
}

// Checks that the types of two operands, `name` and `other`, are the same. The error says so if
// qgemm takes `name`. With `may_pack`, `name` being B or weights, it says so if pack() helps.
Status check_same_dtype(const char* op, const char* name, DType found, const char* other,
                        DType expected, bool may_pack = false);

// Whether it is float16 or bfloat16: weights of these types may be packed for float32.
inline bool is_half(DType type) { return type == DType::kFloat16 || type == DType::kBFloat16; }

Status check_rank2(const char* op, const char* name, std::span<const int64_t> dims);

// Checks that `c` broadcasts to the shape `y`, unidirectionally, by NumPy's rule.
Status check_broadcast(const char* op, const char* name, std::span<const int64_t> c,
                       std::span<const int64_t> y);

// A factor of a product in errors: its name, its sizes, whether the product transposes it, the
// argument that says so, and its K. Packed weights have the sizes (K, N).
struct FactorShape {
  const char* name;
  std::span<const int64_t> dims;
  bool is_transposed;
  const char* trans;
  int64_t k;
  bool is_packed = false;
};

// Checks that both factors have the same K. Else the error says which of them to transpose, if that
// helps.
Status check_same_k(const char* op, const FactorShape& a, const FactorShape& b);

// Checks alpha or beta of a product of operands of `type`, and writes it to `scalar`, rounded as
// the type demands.
Status check_factor(const char* op, const char* name, const Factor& factor, DType type,
                    Scalar* scalar);

// Checks an activation and writes it to `bounds`, rounded as results of `type` demand.
Status check_activation(const char* op, const Activation& activation, DType type,
                        Activation* bounds);

// Checks that m times n is at most kMaxElements.
Status check_result(const char* op, int64_t m, int64_t n);

// Checks that a checked tensor `y` has this shape and that no two elements share memory.
Status check_output(const char* op, const char* name, const Tensor& y,
                    std::span<const int64_t> shape);

// Checks that `y`, which errors call `name`, does not overlap an input `x`, which may be null.
// `rule`: what errors say is allowed.
Status check_overlap(const char* op, const char* name, const Tensor& y, const char* other,
                     const ConstTensor* x, const char* rule);

// Checks that `y` is exactly `c`, or does not overlap it. `c` may be null.
Status check_overwritten(const char* op, const char* name, const Tensor& y, const char* other,
                         const ConstTensor* c);

// Whether two checked tensors share a byte. Exact if both have rows without gaps and the same
// distance between rows, such as attention heads in one array. Otherwise tensors overlap if their
// extents do. False if it is unknown where one of them lies.
bool tensors_overlap(const Tensor& y, const ConstTensor& x);

// The operand of a checked tensor, at its offset, with these strides.
template <typename T>
auto operand_of(const BasicTensor<T>& t, int64_t row_stride, int64_t col_stride) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return BasicOperand<Byte>{static_cast<Byte*>(t.data), t.dtype, row_stride, col_stride}.at(
      t.offset);
}

// Return operands of checked tensors, which point into the caller's memory: a matrix or its
// transpose, Y, and C broadcast to (M, N).
Operand matrix_operand(const ConstTensor& matrix, bool transposed);
OutputOperand output_operand(const Tensor& y);
Operand broadcast_operand(const ConstTensor& c);

// Sets `source` to B' of a checked B, or to the packed weights that replace it.
void write_b(const ConstTensor& b, bool transposed, const PackedWeights* packed, BSource* source);

// Whether two checked tensors have the same memory, type, shape and strides. Strides of axes of
// size 1 do not count.
bool tensors_equal(const Tensor& y, const ConstTensor& x);

}  // namespace wgemm
