// Regime: GEMV and skinny GEMM with unpacked column-major B, if the sums may be in any order. The
// loop multiplies one or two rows of A by four columns of B at once. It is the fused dot (dotxf) of
// BLIS: Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality",
// 2015.
//
// The columns of the strip are cut into four runs, and the loop takes one column of each run at a
// time. A run is one stream: its columns are contiguous in memory, so the hardware prefetcher
// follows it from column to column. If fewer than four columns are left, the tile takes the last of
// them several times.
//
// B: `b_stride` bytes from column to column; its elements are contiguous along k.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/machine.h"
#include "base/transpose.h"
#include "kernels/loops/tile.h"

namespace wgemm {

inline constexpr size_t kDotColumns = 4;

// The first `count` steps of k, and masks that select them from vectors of a row or column. Masks,
// because multiplying the other elements by 0 would turn an infinity into NaN.
template <typename Ops>
struct FirstSteps {
  size_t count;
  alignas(16) std::byte masks[Ops::kVectors * sizeof(v128_t)] = {};
};

// From the first column of a tile to each: elements of C, and bytes of B.
struct DotColumns {
  size_t c[kDotColumns], b[kDotColumns];
};

// The dot products of `rows` rows of A, from `row` on, and of four columns, from `col` on. Two rows
// share the loads of B. Then each product has one accumulator; else it has two. `first` leaves a
// multiple of kDepth steps of k, so that the loop has whole vectors.
template <size_t rows, typename Ops>
[[gnu::always_inline]] inline void dot_tile(const Ops& ops, const Strip& s, size_t row, size_t col,
                                            const DotColumns& at, const FirstSteps<Ops>& first,
                                            v128_t ones) {
  using Acc = typename Ops::Acc;
  constexpr size_t kVectors = Ops::kVectors, kDepth = kVectors * Ops::kLanes,
                   kSums = kVectors / rows;
  constexpr auto all_rows = std::make_index_sequence<rows>{};
  constexpr auto columns = std::make_index_sequence<kDotColumns>{};
  constexpr auto vectors = std::make_index_sequence<kVectors>{};
  const std::byte *a[rows], *b[kDotColumns];
  v128_t acc[rows][kDotColumns][kSums], a_k[rows][kVectors], b_k[kVectors];
  unroll(all_rows, [&](auto i) {
    a[i] = static_cast<const std::byte*>(s.a) + (row + i) * s.a_stride;
    unroll(vectors, [&](auto v) {
      a_k[i][v] = wasm_v128_and(wasm_v128_load(a[i] + v * sizeof(v128_t)),
                                wasm_v128_load(first.masks + v * sizeof(v128_t)));
    });
    a[i] += first.count * sizeof(Acc);
  });
  const auto* const b_col = static_cast<const std::byte*>(s.b) + col * s.b_stride;
  unroll(columns, [&](auto j) {
    const std::byte* const b_first = b_col + at.b[j];
    ops.load(b_first, b_k);
    unroll(vectors, [&](auto v) {
      const v128_t b_v = wasm_v128_and(b_k[v], wasm_v128_load(first.masks + v * sizeof(v128_t)));
      unroll(all_rows, [&](auto i) {
        v128_t& sum = acc[i][j][v % kSums];
        sum = Ops::multiply_add(v < kSums ? wasm_i32x4_const(0, 0, 0, 0) : sum, a_k[i][v], b_v);
      });
    });
    b[j] = b_first + first.count * Ops::kColumn;
  });
  for (size_t k = s.k - first.count; k != 0; k -= kDepth) {
    unroll(all_rows, [&](auto i) {
      unroll(vectors, [&](auto v) { a_k[i][v] = wasm_v128_load(a[i] + v * sizeof(v128_t)); });
      a[i] += sizeof(a_k[i]);
    });
    unroll(columns, [&](auto j) {
      ops.load(b[j], b_k);
      b[j] += kDepth * Ops::kColumn;
      unroll(vectors, [&](auto v) {
        unroll(all_rows, [&](auto i) {
          v128_t& sum = acc[i][j][v % kSums];
          sum = Ops::multiply_add(sum, a_k[i][v], b_k[v]);
        });
      });
    });
  }
  auto* c = reinterpret_cast<Acc*>(static_cast<std::byte*>(s.c) + row * s.c_stride) + col;
  unroll(all_rows, [&](auto i) {
    v128_t x[kDotColumns], sum = wasm_i32x4_const(0, 0, 0, 0);
    alignas(16) Acc sums[kDotColumns];
    unroll(columns, [&](auto j) {
      x[j] = acc[i][j][0];
      if constexpr (kSums == 2) x[j] = Ops::multiply_add(x[j], ones, acc[i][j][1]);
    });
    transpose(x);
    if (s.accumulate) {
      unroll(columns, [&](auto j) { sums[j] = c[at.c[j]]; });
      sum = wasm_v128_load(sums);
    }
    unroll(columns, [&](auto j) { sum = Ops::multiply_add(sum, ones, x[j]); });
    wasm_v128_store(sums, sum);
    unroll(columns, [&](auto j) { c[at.c[j]] = sums[j]; });
    c = reinterpret_cast<Acc*>(reinterpret_cast<std::byte*>(c) + s.c_stride);
  });
}

// The whole strip, `rows` rows at a time. `rest` computes products with a small K, since adding up
// lanes would take longer than their dot products. If B is read from memory, streams have an odd
// number of columns, for the reason that axpy.h gives for rows.
template <typename Ops, KernelFunction rest, size_t rows = 1>
void dot(const Strip& s) {
  using Acc = typename Ops::Acc;
  constexpr size_t kDepth = Ops::kVectors * Ops::kLanes;
  static_assert(Ops::kLanes == kDotColumns && Ops::kVectors == 2);
  if (s.k <= 2 * kDepth) return rest(s);
  const Ops ops;
  const Acc one = 1;
  const v128_t ones = Ops::load_splat(&one);
  const size_t count = std::min(kDotColumns, s.cols);
  size_t stream_cols = s.cols / count;
  if (stream_cols > 1 && s.cols * s.b_stride > kFromMemory) {
    stream_cols = (stream_cols - 1) | 1;
  }
  DotColumns at;
#pragma clang loop unroll(disable)
  for (size_t j = 0; j < kDotColumns; ++j) {
    at.c[j] = std::min(j, count - 1) * stream_cols;
    at.b[j] = at.c[j] * s.b_stride;
  }
  FirstSteps<Ops> first{.count = (s.k - 1) % kDepth + 1};
  std::memset(first.masks, 0xff, first.count * sizeof(Acc));
  for (size_t col = 0; col < stream_cols; ++col) {
    size_t row = 0;
    if constexpr (rows > 1) {
      for (; s.rows - row >= rows; row += rows) dot_tile<rows>(ops, s, row, col, at, first, ones);
    }
    for (; row < s.rows; ++row) dot_tile<1>(ops, s, row, col, at, first, ones);
  }
  const size_t cols = stream_cols * count;
  if (cols == s.cols) return;
  Strip left = s;
  left.cols -= cols;
  left.b = static_cast<const std::byte*>(s.b) + cols * s.b_stride;
  left.c = static_cast<Acc*>(s.c) + cols;
  dot<Ops, rest, rows>(left);
}

}  // namespace wgemm
