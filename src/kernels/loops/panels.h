// Regime: GEMM. B is packed in micro-panels, KC x NR, or is unpacked and row-major, when NR columns
// of it serve as a micro-panel. One tile at a time goes through the strip, with its accumulators in
// registers and one rank-1 update per step of k: BLIS's micro-kernel with the jr loop inside.
//
// A: MR unpacked rows, `a_stride` bytes from row to row, or one micro-panel, [k][MR].
// B: `b_step` bytes from one step of k to the next, `b_stride` bytes from panel to panel.
#pragma once

#include <algorithm>

#include "kernels/loops/tile.h"

namespace wgemm {

// A tile of MR unpacked rows of A by NP micro-panels of B. A strip computes the rows' addresses
// once, since they take as long as a few steps of k.
template <typename Ops, size_t MR, size_t NP>
void panels_tile(const Strip& s, const RowsOfA<typename Ops::A, MR>& rows_of_a,
                 const std::byte* b_panel, TileColumns t) {
  using Vector = typename Ops::Vector;
  constexpr size_t kVectors = Ops::kVectors;
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto panels = std::make_index_sequence<NP>{};
  const Ops ops;
  with_tile<typename Ops::Acc, MR, NP * kVectors, true, NP, false, Vector>(s, t, [&](auto& acc) {
    RowsOfA<typename Ops::A, MR> a = rows_of_a;
    const std::byte* b[NP];
    const size_t b_stride = t.panel_stride_cols / (kVectors * Ops::kLanes) * s.b_stride;
    unroll(panels, [&](auto p) { b[p] = b_panel + p * b_stride; });
    const size_t step = s.b_step;
    size_t k = s.k;
    do {
      Vector b_k[NP][kVectors];
      unroll(panels, [&](auto p) {
        ops.load(b[p], b_k[p]);
        b[p] += step;
      });
      unroll(rows, [&](auto i) {
        const Vector a_k = ops.load_splat(a.row[i]++);
        unroll(panels, [&](auto p) {
          unroll(std::make_index_sequence<kVectors>{}, [&](auto v) {
            Vector& sum = acc[i][p * kVectors + v];
            sum = Ops::multiply_add(sum, a_k, b_k[p][v]);
          });
        });
      });
    } while (--k != 0);
  });
}

// A tile of a micro-panel of A by NP micro-panels of B. It has as many rows as a vector has lanes,
// so one load reads a step of k for all rows. ARM splats a lane as fast as it loads and splats, and
// has registers for the tile.
template <typename Ops, size_t NP>
void lanes_of_a_tile(const Strip& s, const std::byte* b_panel, TileColumns t) {
  constexpr size_t kVectors = Ops::kVectors, MR = 4;
  static_assert(Ops::kLanes == MR);
  constexpr auto panels = std::make_index_sequence<NP>{};
  const Ops ops;
  with_tile<typename Ops::Acc, MR, NP * kVectors, false, NP, (NP > 1)>(s, t, [&](auto& acc) {
    const auto* a = static_cast<const typename Ops::A*>(s.a);
    const std::byte* b[NP];
    const size_t b_stride = t.panel_stride_cols / (kVectors * Ops::kLanes) * s.b_stride;
    unroll(panels, [&](auto p) { b[p] = b_panel + p * b_stride; });
    const size_t step = s.b_step;
    size_t k = s.k;
    do {
      v128_t b_k[NP][kVectors];
      unroll(panels, [&](auto p) {
        ops.load(b[p], b_k[p]);
        b[p] += step;
      });
      const v128_t lanes = wasm_v128_load(a);
      a += MR;
      unroll(std::make_index_sequence<MR>{}, [&](auto i) {
        [[maybe_unused]] constexpr int lane = decltype(i)::value;
        const v128_t a_k = wasm_i32x4_shuffle(lanes, lanes, lane, lane, lane, lane);
        unroll(panels, [&](auto p) {
          unroll(std::make_index_sequence<kVectors>{}, [&](auto v) {
            v128_t& sum = acc[i][p * kVectors + v];
            sum = Ops::multiply_add(sum, a_k, b_k[p][v]);
          });
        });
      });
    } while (--k != 0);
  });
}

// Calls `tile` for every kWidth columns of the strip from column `col` on. `b` is the start of the
// micro-panel of column `col`. A micro-panel has kPanel columns, a multiple of kWidth. Memory after
// the last column of unpacked B may be unreadable, so the last tile starts earlier there.
template <size_t kWidth, size_t kColumn, size_t kPanel = kWidth>
void single_panels(const Strip& s, const std::byte* b, size_t col, auto&& tile) {
  for (; col < s.cols; col += kWidth) {
    const size_t count = s.spills ? kWidth : std::min(kWidth, s.cols - col),
                 skip = s.unpacked ? kWidth - count : 0;
    tile(b - skip * kColumn, TileColumns{col, skip, count});
    if constexpr (kWidth == kPanel) {
      b += s.b_stride;
    } else {
      const bool ends_panel = (col + kWidth) % kPanel == 0;
      b += ends_panel ? s.b_stride - (kPanel - kWidth) * kColumn : kWidth * kColumn;
    }
  }
}

}  // namespace wgemm
