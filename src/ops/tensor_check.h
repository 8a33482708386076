// What every operation demands of its tensors, and of the bounds of its result, whatever they mean
// to it. Used by ops/ only.
#pragma once

#include "problem/operand.h"
#include "wgemm.h"

namespace wgemm {

// The most elements that a tensor, or a product of sizes, may have: 2^53, so that JavaScript counts
// them exactly.
inline constexpr int64_t kMaxElements = int64_t{1} << 53;

// Elements from the first to the last that dims and strides reach, that one included; 0 when a size
// is 0. Of a checked tensor.
int64_t tensor_extent(std::span<const int64_t> dims, std::span<const int64_t> strides);

// Stride of an axis of a checked tensor, in elements.
int64_t tensor_stride(std::span<const int64_t> dims, std::span<const int64_t> strides, size_t axis);

// Type, rank, sizes, strides and `size`; with `with_data`, that data is there.
template <typename T>
Status check_tensor(const char* op, const char* name, const BasicTensor<T>& tensor, bool with_data);

Status check_rank2(const char* op, const char* name, std::span<const int64_t> dims);

// That `c` broadcasts to the shape `y` in one direction, by NumPy's rule.
Status check_broadcast(const char* op, const char* name, std::span<const int64_t> c,
                       std::span<const int64_t> y);

// That A' of `k` columns and B' of `b_k` rows make a product.
Status check_inner(const char* op, const ConstTensor& a, bool transA, int64_t k,
                   const ConstTensor& b, bool transB, int64_t b_k);

// The bounds of a result of type `type`, rounded as that demands.
Status check_activation(const char* op, const Activation& activation, DType type,
                        Activation* bounds);

// That (m, n) is no larger than a tensor may be.
Status check_result(const char* op, int64_t m, int64_t n);

// That `y` has the shape (m, n), and its elements places of their own. Of a checked tensor.
Status check_output(const char* op, const Tensor& y, int64_t m, int64_t n);

// That no two elements of `y` share a place. Of a checked tensor.
Status check_output_strides(const char* op, const char* name, const Tensor& y);

// Whether two checked tensors share a byte. Exact where both have gapless rows that repeat at the
// same distance, as heads of one array have; else two tensors whose extents meet count as
// overlapping. Where it is not known where one lies, they do not.
bool tensors_overlap(const Tensor& y, const ConstTensor& x);

// A checked matrix, or its transpose, as the stages behind see it; and C, broadcast to (M, N).
Operand matrix_operand(const ConstTensor& matrix, bool transposed);
OutputOperand output_operand(const Tensor& y);
Operand broadcast_operand(const ConstTensor& c);

// Whether they are the very same elements in the very same order, where that order matters.
bool tensors_equal(const Tensor& y, const ConstTensor& x);

}  // namespace wgemm
