// Regime: 8-bit GEMM, skinny GEMM and GEMV. A tile of MR rows by NP micro-panels of 8 columns keeps
// its int32 accumulators in registers. Each step takes kDepth steps of k. It splats four bytes of
// every row of A. It loads two vectors of every micro-panel of B, columns 0 to 3 and columns 4
// to 7.
//
// A: one micro-panel, [step][kPanelRows][4 bytes], of which the tile uses MR rows. B: kStepBytes
// per step, `b_stride` bytes from panel to panel. The template parameter Ops, made once per tile,
// has
//   kDepth          steps of k that multiply_add takes at once: 2 of int16, or 4 of int8
//   kStepBytes      bytes of a micro-panel of B per step
//   load(b)         a step of a micro-panel, in the kernel's element type
//   multiply_add(acc, a, b)
#pragma once

#include <wasm_simd128.h>

#include "kernels/loops/several_panels.h"

namespace wgemm {

struct I8Step {
  v128_t low, high;
};
inline constexpr size_t kI8PanelWidth = 8;

template <typename Ops, size_t MR, size_t NP, size_t kPanelRows = MR>
void i8_tile(const Strip& s, const std::byte* b_panel, TileColumns t) {
  constexpr auto panels = std::make_index_sequence<NP>{};
  const Ops ops;
  with_tile<int32_t, MR, 2 * NP, false, NP>(s, t, [&](auto& acc) {
    const auto* a = static_cast<const std::byte*>(s.a);
    const std::byte* b[NP];
    const size_t b_stride = t.panel_stride_cols / kI8PanelWidth * s.b_stride;
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
      a += 4 * kPanelRows;
    } while (--steps != 0);
  });
}

// A whole strip by tiles of NP micro-panels, and the rest one by one. The compiler does not inline
// a tile that is called in two places. For B that was widened before, engines encode the loop of
// that function in fewer bytes, which is 2% faster.
template <typename Ops, size_t MR, size_t NP>
void i8_strip(const Strip& s) {
  several_panels<MR, NP, kI8PanelWidth, Ops::kStepBytes / kI8PanelWidth>(
      s, [&](const std::byte* panel, TileColumns t) { i8_tile<Ops, MR, NP>(s, panel, t); },
      [&](const std::byte* panel, TileColumns t) { i8_tile<Ops, MR, 1>(s, panel, t); });
}

// The same, but `rest` computes what is less than a tile.
template <typename Ops, size_t MR, size_t NP>
void i8_whole_tiles(const Strip& s, KernelFunction rest) {
  only_several_panels<MR, NP, kI8PanelWidth, int32_t>(
      s, rest, [&](const std::byte* panel, TileColumns t) { i8_tile<Ops, MR, NP>(s, panel, t); });
}

// A whole strip by single micro-panels, with the tile inlined, which makes less code.
template <typename Ops, size_t MR, size_t kPanelRows = MR>
void i8_strip_of_single_panels(const Strip& s) {
  single_panels<kI8PanelWidth, Ops::kStepBytes / kI8PanelWidth>(
      s, static_cast<const std::byte*>(s.b), 0,
      [&](const std::byte* panel, TileColumns t) { i8_tile<Ops, MR, 1, kPanelRows>(s, panel, t); });
}

}  // namespace wgemm
