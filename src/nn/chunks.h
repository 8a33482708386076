// The elements of a tensor along a row: where they are, and in chunks of contiguous elements that
// fit L1.
#pragma once

#include <algorithm>
#include <type_traits>

#include "base/types.h"
#include "nn/operator.h"

namespace wgemm::nn {

// Elements of a chunk.
inline constexpr int64_t kChunk = 512;

// Whether float32 has all values of the type, which is a floating point type.
inline bool fits_float(DType type) { return !is_integer(type) && type != DType::kFloat64; }

// The tensor's elements in `row`, from element `at` on. Not inlined, so that the module has it
// once.
[[gnu::noinline]] inline std::byte* place(const Step& step, const Row& row, size_t tensor,
                                          int64_t at) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(step.tensors[tensor].type));
  return row.at[tensor] + at * row.steps[tensor] * bytes;
}

// Whether elements of `type` are of type T, or have the bits of the integer T.
template <typename T>
bool is_stored_as(DType type) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  constexpr bool kIs32 = sizeof(T) == 4;
  if constexpr (std::is_floating_point_v<T>) {
    return type == (kIs32 ? DType::kFloat32 : DType::kFloat64);
  } else {
    return type == (kIs32 ? DType::kInt32 : DType::kInt64) ||
           type == (kIs32 ? DType::kUInt32 : DType::kUInt64);
  }
}

// Whether the tensor's elements in `row` are contiguous elements of type T.
template <typename T>
bool is_direct(const Step& step, const Row& row, size_t tensor) {
  return row.steps[tensor] == 1 && is_stored_as<T>(step.tensors[tensor].type);
}

// An index of int64 or int32.
inline int64_t index_at(const Tensor& indices, const std::byte* at) {
  return indices.type == DType::kInt64 ? *reinterpret_cast<const int64_t*>(at)
                                       : *reinterpret_cast<const int32_t*>(at);
}

// Calls back for each chunk of the first tensor: with a pointer to its elements as contiguous T,
// their number, and the place of the first one in the row.
template <typename T, typename F>
void for_each_chunk(const Step& step, const Row& row, const F& f) {
  const bool direct = is_direct<T>(step, row, 0);
  alignas(16) T buffer[kChunk];
  for (int64_t at = 0; at < row.count; at += kChunk) {
    const int64_t count = std::min(kChunk, row.count - at);
    const std::byte* const x = place(step, row, 0, at);
    if (!direct) load(step.tensors[0].type, x, row.steps[0], count, buffer);
    f(direct ? reinterpret_cast<const T*>(x) : buffer, count, at);
  }
}

}  // namespace wgemm::nn
