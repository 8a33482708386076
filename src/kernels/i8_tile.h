// The loop that the 8-bit micro-kernels share: a tile of MR rows by NP panels of 8 columns, kept in
// registers. A step takes four bytes of each row of A, and of each panel of B two vectors: columns
// 0 to 3 and 4 to 7. What differs is the parameter Ops, made once a tile:
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
inline constexpr size_t kI8PanelWidth = 8;

template <typename Ops, size_t MR, size_t NP>
void i8_tile(const Strip& s, const std::byte* b_panel, TileColumns t) {
  constexpr auto panels = std::make_index_sequence<NP>{};
  const Ops ops;
  with_tile<int32_t, MR, 2 * NP, false, NP>(s, t, [&](auto& acc) {
    const auto* a = static_cast<const std::byte*>(s.a);
    const std::byte* b[NP];
    const size_t b_stride = t.apart / kI8PanelWidth * s.b_stride;
    unroll(panels, [&](auto p) { b[p] = b_panel + p * b_stride; });
    size_t steps = (s.k + Ops::kDepth - 1) / Ops::kDepth;
    do {
      unroll(panels, [&](auto p) {
        const I8Step b_k = ops.load(b[p]);
        b[p] += Ops::kStepBytes;
        unroll(std::make_index_sequence<MR>{}, [&](auto i) {
          const v128_t a_k = wasm_v128_load32_splat(a + 4 * i);
          acc[i][2 * p] = ops.multiply_add(acc[i][2 * p], a_k, b_k.low);
          acc[i][2 * p + 1] = ops.multiply_add(acc[i][2 * p + 1], a_k, b_k.high);
        });
      });
      a += 4 * MR;
    } while (--steps != 0);
  });
}

// A strip by tiles of NP panels, and the panels that are left one by one. A tile that is called in
// two places stays a function of its own: with B widened before, engines encode its loop shorter,
// which is 2% faster.
template <typename Ops, size_t MR, size_t NP>
void i8_strip(const Strip& s) {
  several_panels<MR, NP, kI8PanelWidth, Ops::kStepBytes / kI8PanelWidth>(
      s, [&](const std::byte* panel, TileColumns t) { i8_tile<Ops, MR, NP>(s, panel, t); },
      [&](const std::byte* panel, TileColumns t) { i8_tile<Ops, MR, 1>(s, panel, t); });
}

// The same by single panels alone, with the tile inlined, which is smaller.
template <typename Ops, size_t MR>
void i8_strip_of_single_panels(const Strip& s) {
  single_panels<kI8PanelWidth, Ops::kStepBytes / kI8PanelWidth>(
      s, static_cast<const std::byte*>(s.b), 0,
      [&](const std::byte* panel, TileColumns t) { i8_tile<Ops, MR, 1>(s, panel, t); });
}

}  // namespace wgemm
