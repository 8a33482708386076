// What every operation demands of its tensors, whatever they mean to it. Used by ops/ only.
#pragma once

#include "wgemm.h"

namespace wgemm {

// The most elements that a tensor, or a product of sizes, may have: 2^53, so that JavaScript counts them exactly.
inline constexpr int64_t kMaxElements = int64_t{1} << 53;

// Elements from the first to the last that dims and strides reach, that one included; 0 when a size is 0. Of a checked tensor.
int64_t tensor_extent(std::span<const int64_t> dims, std::span<const int64_t> strides);

// Stride of an axis of a checked tensor, in elements.
int64_t tensor_stride(std::span<const int64_t> dims, std::span<const int64_t> strides, size_t axis);

// Type, rank, sizes, strides and `size`; with `with_data`, that data is there.
template <typename T>
Status check_tensor(const char* op, const char* name, const BasicTensor<T>& tensor, bool with_data);

// That no two elements of the matrix `y` share a place. Of a checked tensor of rank 2.
Status check_output_strides(const char* op, const char* name, const Tensor& y);

// Whether two checked tensors of rank 2 at the most share a byte. Exact where both have gapless rows that repeat at the same distance, as
// heads of one array have; else two tensors whose extents meet count as overlapping. Where it is not known where one lies, they do not.
bool tensors_overlap(const Tensor& y, const ConstTensor& x);

// Whether they are the very same elements in the very same order, where that order matters.
bool tensors_equal(const Tensor& y, const ConstTensor& x);

}  // namespace wgemm
