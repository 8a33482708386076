// Regime: GEMV with unpacked row-major B of more than kAxpyBytes (plan/select_kernel.cc). The loop
// adds multiples of several rows of B to y at once. It is the fused axpy (axpyf) of BLIS: Van Zee
// and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality", 2015.
//
// K is cut into four or six streams of rows, and the loop takes a row of each stream at a time. The
// rows of a stream are contiguous in memory, so the hardware prefetcher follows it from row to row.
// Adjacent rows would be streams that end after N elements.
//
// B: `b_step` bytes from row to row. The loop does not sum in ascending k.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/loops/tile.h"

namespace wgemm {

// Bytes of a row that are read before the next tile takes its turn, if B comes from memory. While
// three streams are read, the hardware prefetcher runs ahead in the others. B in a cache is faster
// without bursts, since each burst loads and stores y again.
inline constexpr size_t kBurst = 1024;

// Adds the multiples of all rows of `tiles * rows` streams to y. A stream has `stream_rows` rows. A
// tile takes a row of each of its `rows` streams, `burst` columns wide, and the tiles take turns.
// Stream i of tile t is stream number i * tiles + t.
template <typename Ops, size_t rows>
void add_rows(const Strip& s, size_t stream_rows, size_t tiles, size_t burst) {
  using Vector = typename Ops::Vector;
  constexpr size_t kVectors = Ops::kVectors, kWidth = kVectors * Ops::kLanes;
  constexpr auto all_rows = std::make_index_sequence<rows>{};
  constexpr auto vectors = std::make_index_sequence<kVectors>{};
  const Ops ops;
  for (size_t k = 0; k < stream_rows; ++k) {
    for (size_t begin = 0; begin < s.cols; begin += burst) {
      for (size_t first = k; first < tiles * stream_rows; first += stream_rows) {
        const std::byte* b[rows];
        Vector a[rows];
        unroll(all_rows, [&](auto i) {
          const size_t row = first + i * tiles * stream_rows;
          a[i] = Ops::load_splat(static_cast<const typename Ops::A*>(s.a) + row);
          b[i] = static_cast<const std::byte*>(s.b) + row * s.b_step + begin * Ops::kColumn;
        });
        auto* c = static_cast<typename Ops::Acc*>(s.c) + begin;
        for (size_t left = std::min(burst, s.cols - begin); left != 0;
             left -= kWidth, c += kWidth) {
          Vector acc[kVectors];
          unroll(vectors, [&](auto v) { acc[v] = load_vector<Vector>(c + v * Ops::kLanes); });
          unroll(all_rows, [&](auto i) {
            Vector b_k[kVectors];
            ops.load(b[i], b_k);
            unroll(vectors, [&](auto v) { acc[v] = Ops::multiply_add(acc[v], a[i], b_k[v]); });
            b[i] += kWidth * Ops::kColumn;
          });
          unroll(vectors, [&](auto v) { store_vector<Vector>(c + v * Ops::kLanes, acc[v]); });
        }
      }
    }
  }
}

// The whole strip. `rest` computes the steps of k and the columns that the streams leave over.
// These steps of k come first, so that they initialize y. Streams have an odd number of rows.
// Otherwise, if B had a power of two of columns, the lines of all streams would be in the same sets
// of a cache.
//
// The choice of bursts depends on the whole B, never on the strip: threads share B, and must sum in
// the same order.
template <typename Ops, KernelFunction rest>
void axpy(const Strip& s) {
  constexpr size_t kWidth = Ops::kVectors * Ops::kLanes;
  const auto streams = static_cast<size_t>(axpy_streams(s.from_memory));
  if (s.k < 2 * streams) return rest(s);
  const size_t stream_rows = (s.k / streams - 1) | 1, cols = s.cols / kWidth * kWidth;
  Strip left = s;
  left.k -= streams * stream_rows;
  if (left.k != 0) {
    rest(left);
  } else if (!s.accumulate) {
    std::memset(s.c, 0, s.cols * sizeof(typename Ops::Acc));
  }
  Strip most = s;
  most.cols = cols;
  most.a = static_cast<const typename Ops::A*>(s.a) + left.k;
  most.b = static_cast<const std::byte*>(s.b) + left.k * s.b_step;
  if (s.from_memory) {
    add_rows<Ops, 3>(most, stream_rows, 2, kBurst / Ops::kColumn);
  } else {
    add_rows<Ops, 4>(most, stream_rows, 1, cols);
  }
  if (cols == s.cols) return;
  left.cols -= cols;
  left.k = streams * stream_rows;
  left.a = most.a;
  left.b = static_cast<const std::byte*>(most.b) + cols * Ops::kColumn;
  left.c = static_cast<typename Ops::Acc*>(s.c) + cols;
  left.accumulate = true;
  rest(left);
}

}  // namespace wgemm
