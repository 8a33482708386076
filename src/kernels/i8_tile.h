// The loop that the 8-bit micro-kernels share: a tile of MR rows by NP panels of 8 columns, kept in registers. A step takes four bytes of
// each row of A, and of each panel of B two vectors: columns 0 to 3 and 4 to 7. What differs is the parameter Ops, made once a tile:
//   kDepth          k of a step
//   kStepBytes      of a panel of B
//   load(b)         a step of a panel
//   multiply_add(acc, a, b)
#pragma once

#include <wasm_simd128.h>

#include "kernels/tile.h"

namespace wgemm {

struct I8Step {
  v128_t low, high;
};

template <typename Ops, size_t MR, size_t NP>
void i8_tile(const Strip& s, const std::byte* b_panel, size_t col) {
  constexpr size_t kWidth = 8;
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto panels = std::make_index_sequence<NP>{};
  const Ops ops;
  v128_t acc[MR][NP][2];
  unroll(rows, [&](auto i) { unroll(panels, [&](auto p) { acc[i][p][0] = acc[i][p][1] = wasm_i32x4_const(0, 0, 0, 0); }); });
  const auto* a = static_cast<const std::byte*>(s.a);
  const std::byte* b[NP];
  unroll(panels, [&](auto p) { b[p] = b_panel + p * s.b_stride; });
  size_t steps = (s.k + Ops::kDepth - 1) / Ops::kDepth;
  do {
    unroll(panels, [&](auto p) {
      const I8Step b_k = ops.load(b[p]);
      b[p] += Ops::kStepBytes;
      unroll(rows, [&](auto i) {
        const v128_t a_k = wasm_v128_load32_splat(a + 4 * i);
        acc[i][p][0] = ops.multiply_add(acc[i][p][0], a_k, b_k.low);
        acc[i][p][1] = ops.multiply_add(acc[i][p][1], a_k, b_k.high);
      });
    });
    a += 4 * MR;
  } while (--steps != 0);

  const size_t left = s.cols - col, cols = left < NP * kWidth ? left : NP * kWidth;
  auto row_of_c = [&](size_t i) { return reinterpret_cast<int32_t*>(static_cast<std::byte*>(s.c) + i * s.c_stride) + col; };
  if (cols == NP * kWidth && s.rows == MR) {
    unroll(rows, [&](auto i) {
      int32_t* c = row_of_c(i);
      unroll(panels, [&](auto p) {
        unroll(std::make_index_sequence<2>{}, [&](auto half) {
          int32_t* to = c + p * kWidth + half * 4;
          wasm_v128_store(to, s.accumulate ? wasm_i32x4_add(wasm_v128_load(to), acc[i][p][half]) : acc[i][p][half]);
        });
      });
    });
    return;
  }
  uint32_t edge[MR][NP * kWidth];
  unroll(rows, [&](auto i) {
    unroll(panels, [&](auto p) {
      wasm_v128_store(edge[i] + p * kWidth, acc[i][p][0]);
      wasm_v128_store(edge[i] + p * kWidth + 4, acc[i][p][1]);
    });
  });
  for (size_t i = 0; i < s.rows; ++i) {
    auto* c = reinterpret_cast<uint32_t*>(row_of_c(i));
    for (size_t j = 0; j < cols; ++j) c[j] = edge[i][j] + (s.accumulate ? c[j] : 0);
  }
}

// Tiles of NP panels, and the panels that are left one by one.
template <typename Ops, size_t MR, size_t NP>
void i8_strip(const Strip& s) {
  constexpr size_t kWidth = 8;
  const auto* b_panel = static_cast<const std::byte*>(s.b);
  size_t col = 0;
  for (; col + NP * kWidth <= s.cols; col += NP * kWidth, b_panel += NP * s.b_stride) i8_tile<Ops, MR, NP>(s, b_panel, col);
  for (; col < s.cols; col += kWidth, b_panel += s.b_stride) i8_tile<Ops, MR, 1>(s, b_panel, col);
}

}  // namespace wgemm
