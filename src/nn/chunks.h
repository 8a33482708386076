// A row of one tensor, in chunks of contiguous elements that fit L1.
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

// The tensor's elements in `row`, from element `at` on.
inline std::byte* place(const Step& step, const Row& row, size_t tensor, int64_t at) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(step.tensors[tensor].type));
  return row.at[tensor] + at * row.steps[tensor] * bytes;
}

// Whether the tensor's elements in `row` are contiguous elements of type T, float or double.
template <typename T>
bool is_direct(const Step& step, const Row& row, size_t tensor) {
  constexpr DType kOwn = std::is_same_v<T, float> ? DType::kFloat32 : DType::kFloat64;
  return row.steps[tensor] == 1 && step.tensors[tensor].type == kOwn;
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
