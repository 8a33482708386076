// The loop that all of our SIMD micro-kernels share: a tile of mr rows by whole vectors of columns, kept in registers, from a panel of A
// and a panel of B. What differs, the vectors and how two of them are multiplied and added, is the parameter Ops:
//   Element       type of the panels' elements and of the accumulators
//   kLanes        elements of a vector
//   load_splat(const Element*), multiply_add(acc, a, b)
#pragma once

#include <wasm_simd128.h>

#include <cstring>
#include <utility>

#include "kernels/kernel.h"

namespace wgemm {

// Everything about accumulators is unrolled by the compiler's own expansion, never by a loop: an array of vectors that is indexed at run
// time would live in memory, at a tenth of the speed.
template <size_t... I>
constexpr void unroll(std::index_sequence<I...>, auto&& body) {
  (body(std::integral_constant<size_t, I>{}), ...);
}

template <typename Ops, size_t MR, size_t NV>
void simd_tile_kernel(const Strip& s) {
  using Element = typename Ops::Element;
  constexpr size_t kLanes = Ops::kLanes, kWidth = NV * kLanes;
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto vectors = std::make_index_sequence<NV>{};
  const auto* b_panel = static_cast<const std::byte*>(s.b);
  for (size_t col = 0; col < s.cols; col += kWidth, b_panel += s.b_stride) {
    const size_t cols = s.cols - col < kWidth ? s.cols - col : kWidth;
    auto row_of_c = [&](size_t i) { return reinterpret_cast<Element*>(static_cast<std::byte*>(s.c) + i * s.c_stride) + col; };
    const bool whole = cols == kWidth && s.rows == MR;
    Element edge[MR * kWidth];

    v128_t acc[MR][NV];
    if (s.accumulate) {
      const Element* from[MR];
      unroll(rows, [&](auto i) { from[i] = whole ? row_of_c(i) : edge + i * kWidth; });
      if (!whole) {
        std::memset(edge, 0, sizeof(edge));
        for (size_t i = 0; i < s.rows; ++i) std::memcpy(edge + i * kWidth, row_of_c(i), cols * sizeof(Element));
      }
      unroll(rows, [&](auto i) { unroll(vectors, [&](auto v) { acc[i][v] = wasm_v128_load(from[i] + v * kLanes); }); });
    } else {
      unroll(rows, [&](auto i) { unroll(vectors, [&](auto v) { acc[i][v] = wasm_i32x4_const(0, 0, 0, 0); }); });
    }

    const Element* a[MR];  // rows beyond the last are the last again
    unroll(rows, [&](auto i) {
      const size_t row = i < s.rows ? i : s.rows - 1;
      a[i] = reinterpret_cast<const Element*>(static_cast<const std::byte*>(s.a) + row * s.a_stride);
    });
    const auto* b = reinterpret_cast<const Element*>(b_panel);
    size_t k = s.k;
    do {
      v128_t b_k[NV];
      unroll(vectors, [&](auto v) { b_k[v] = wasm_v128_load(b + v * kLanes); });
      unroll(rows, [&](auto i) {
        const v128_t a_k = Ops::load_splat(a[i]++);
        unroll(vectors, [&](auto v) { acc[i][v] = Ops::multiply_add(acc[i][v], a_k, b_k[v]); });
      });
      b += kWidth;
    } while (--k != 0);

    if (whole) {
      unroll(rows, [&](auto i) { unroll(vectors, [&](auto v) { wasm_v128_store(row_of_c(i) + v * kLanes, acc[i][v]); }); });
    } else {
      unroll(rows, [&](auto i) { unroll(vectors, [&](auto v) { wasm_v128_store(edge + i * kWidth + v * kLanes, acc[i][v]); }); });
      for (size_t i = 0; i < s.rows; ++i) std::memcpy(row_of_c(i), edge + i * kWidth, cols * sizeof(Element));
    }
  }
}

}  // namespace wgemm
