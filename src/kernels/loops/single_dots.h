// The loop of GEMV with few columns, by one dot product at a time, in four chains of vectors. B is
// unpacked and column-major. It does not sum in ascending k. Both operands are one stream each:
// more streams, of parts of K, are slower from memory.
//
// B: `b_stride` bytes from column to column; its elements are contiguous along k.
#pragma once

#include <wasm_simd128.h>

#include "kernels/kernel.h"
#include "kernels/loops/unroll.h"

namespace wgemm {

// T: float or double. Math: Unfused or Fused, of ops.h.
template <typename Math, typename T>
void single_dots(const Strip& s) {
  constexpr size_t kLanes = sizeof(v128_t) / sizeof(T), kChains = 4, kDepth = kChains * kLanes;
  constexpr auto chains = std::make_index_sequence<kChains>{};
  const auto add_vectors = [](v128_t x, v128_t y) {
    return sizeof(T) == 4 ? wasm_f32x4_add(x, y) : wasm_f64x2_add(x, y);
  };
  const auto* column = static_cast<const std::byte*>(s.b);
  for (size_t col = 0; col < s.cols; ++col, column += s.b_stride) {
    const auto *a = static_cast<const T*>(s.a), *b = reinterpret_cast<const T*>(column);
    v128_t acc[kChains] = {};
    size_t k = s.k;
#pragma clang loop unroll(disable)
    for (; k >= kDepth; k -= kDepth, a += kDepth, b += kDepth) {
      unroll(chains, [&](auto i) {
        acc[i] = Math::multiply_add(acc[i], wasm_v128_load(a + i * kLanes),
                                    wasm_v128_load(b + i * kLanes));
      });
    }
    T lanes[kLanes];
    wasm_v128_store(lanes, add_vectors(add_vectors(acc[0], acc[1]), add_vectors(acc[2], acc[3])));
    T sum = 0;
#pragma clang loop vectorize(disable) unroll(disable)
    for (const T lane : lanes) sum += lane;
#pragma clang loop vectorize(disable) unroll(disable)
    for (; k != 0; --k) sum += *a++ * *b++;
    T* const c = static_cast<T*>(s.c) + col;
    *c = s.accumulate ? *c + sum : sum;
  }
}

}  // namespace wgemm
