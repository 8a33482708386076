// Regime: GEMV and skinny GEMM with unpacked column-major B, if the sums must be strict: in
// ascending k, with one accumulator per element. Also float64, which has no dot kernel, and what
// dot.h leaves over.
//
// Each column of B is contiguous along k. The loop takes four or eight columns at a time. It
// transposes squares of kLanes columns by kLanes steps of k in registers, which makes them rows of
// a micro-panel. More than eight columns at once are slower when `b_stride` is a power of two.
// Their cache lines then fall into one set of L1, which holds eight. If fewer columns are left, the
// tile reads the first of them several times, and drops those sums.
//
// B: `b_stride` bytes from column to column, `b_step` bytes from one step of k to the next.
#pragma once

#include <algorithm>

#include "base/transpose.h"
#include "kernels/loops/tile.h"

namespace wgemm {

inline constexpr size_t kColumnsMax = 8;

// Bytes from the first column of a tile that is in the strip to each of the tile's columns. Skipped
// columns repeat the first one, so that the tile reads nothing outside the strip.
[[gnu::noinline]] inline void find_columns(size_t skip, size_t stride,
                                           size_t (&offsets)[kColumnsMax]) {
  size_t offset = 0;
#pragma clang loop unroll(disable)
  for (size_t j = 0; j < kColumnsMax; ++j) {
    offsets[j] = offset;
    if (j >= skip) offset += stride;
  }
}

// For the list of strip_of() in strip.h.
template <size_t rows, size_t columns>
struct ColumnMajorTile {
  static constexpr size_t kRows = rows, kWidth = columns;

  template <typename Ops>
  static void run(const Strip& s) {
    const auto* b = static_cast<const std::byte*>(s.b);
    size_t offsets[kColumnsMax];
    find_columns(0, s.b_stride, offsets);
    for (size_t col = 0; col < s.cols; col += kWidth, b += kWidth * s.b_stride) {
      const size_t count = std::min(kWidth, s.cols - col);
      if (count < kWidth) find_columns(kWidth - count, s.b_stride, offsets);
      tile<Ops>(s, b, offsets, {col, kWidth - count, count});
    }
  }

 private:
  template <typename Ops>
  static void tile(const Strip& s, const std::byte* b, const size_t (&offsets)[kColumnsMax],
                   TileColumns t) {
    constexpr size_t kLanes = Ops::kLanes;
    constexpr auto squares = std::make_index_sequence<kWidth / kLanes>{};
    constexpr auto lanes = std::make_index_sequence<kLanes>{};
    constexpr auto all_rows = std::make_index_sequence<rows>{};
    const Ops ops;
    size_t column[kWidth];
    unroll(std::make_index_sequence<kWidth>{}, [&](auto j) { column[j] = offsets[j]; });
    with_tile<typename Ops::Acc, rows, kWidth / kLanes, true>(s, t, [&](auto& acc) {
      RowsOfA<typename Ops::A, rows> a(s);
      const auto add = [&](size_t depth, auto q, v128_t b_k) {
        unroll(all_rows, [&](auto i) {
          acc[i][q] = Ops::multiply_add(acc[i][q], Ops::load_splat(a.row[i] + depth), b_k);
        });
      };
      size_t k = s.k;
      for (; k >= kLanes; k -= kLanes, b += kLanes * s.b_step) {
        unroll(squares, [&](auto q) {
          v128_t x[kLanes];
          unroll(lanes, [&](auto j) { x[j] = ops.load_along_k(b + column[q * kLanes + j]); });
          transpose(x);
          unroll(lanes, [&](auto d) { add(d, q, x[d]); });
        });
        unroll(all_rows, [&](auto i) { a.row[i] += kLanes; });
      }
      for (; k > 0; --k, b += s.b_step) {
        typename Ops::Acc step[kWidth];
#pragma clang loop unroll(disable)
        for (size_t j = 0; j < kWidth; ++j) step[j] = ops.one(b + offsets[j]);
        unroll(squares, [&](auto q) { add(0, q, wasm_v128_load(step + q * kLanes)); });
        unroll(all_rows, [&](auto i) { ++a.row[i]; });
      }
    });
  }
};

}  // namespace wgemm
