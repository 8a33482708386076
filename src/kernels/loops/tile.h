// The accumulators of a tile, MR rows by NR columns of C. They start from 0 or from the sums in C,
// live in registers during the loop over k, and go back to C. All loops in this folder except
// axpy.h and dot.h use it.
//
// A tile that sticks out of its strip is computed whole and written in part. It goes through a
// buffer on the stack as wide as the tile (`edge`).
#pragma once

#include <wasm_simd128.h>

#include <cstddef>
#include <cstring>

#include "kernels/kernel.h"
#include "kernels/loops/unroll.h"

namespace wgemm {

// The columns of C that a tile computes: `count` columns from `col` on. They are the tile's own
// columns from `skip` on.
struct TileColumns {
  size_t col, skip, count;
  size_t panel_stride_cols = 0;  // columns from one micro-panel of a tile to its next one
};

// Copies rows of `bytes` bytes, a multiple of 4, between C and the edge buffer; strides in bytes.
// It takes numbers only and is not inlined, so that a whole tile never goes through memory.
// memcpy() would be a call per row: with it, 2000x6x16 took 1.8 times as long.
[[gnu::noinline]] inline void copy_edge(const std::byte* from, size_t from_stride, std::byte* to,
                                        size_t to_stride, size_t rows, size_t bytes) {
#pragma clang loop unroll(disable)
  for (; rows != 0; --rows, from += from_stride, to += to_stride) {
    size_t at = 0;
#pragma clang loop unroll(disable)
    for (; bytes - at >= sizeof(v128_t); at += sizeof(v128_t))
      wasm_v128_store(to + at, wasm_v128_load(from + at));
    if ((bytes & 8) != 0) {
      std::memcpy(to + at, from + at, 8);
      at += 8;
    }
    if ((bytes & 4) != 0) std::memcpy(to + at, from + at, 4);
  }
}

// A Vector from or to any address. GCC would copy v128_t by memcpy() through other registers.
template <typename Vector>
Vector load_vector(const void* from) {
  if constexpr (sizeof(Vector) == sizeof(v128_t)) {
    return wasm_v128_load(from);
  } else {
    Vector vector;
    std::memcpy(&vector, from, sizeof(vector));
    return vector;
  }
}
template <typename Vector>
void store_vector(void* to, Vector vector) {
  if constexpr (sizeof(Vector) == sizeof(v128_t)) {
    wasm_v128_store(to, vector);
  } else {
    std::memcpy(to, &vector, sizeof(vector));
  }
}

// A tile of MR rows by V vectors, which cover NP micro-panels; if NP > 1, the tile must be whole.
// `sum(acc)` adds the products. `repeats`: in A, the rows after the strip's last one repeat that
// row. Then all of them may be written to the last row of C, since they hold the same sums.
// Otherwise they are computed and dropped, through the edge buffer. If `drops`, they are written to
// the last row of C before that row's own sums.
template <typename Acc, size_t MR, size_t V, bool repeats, size_t NP = 1, bool drops = false,
          typename Vector = v128_t>
void with_tile(const Strip& s, TileColumns t, auto&& sum) {
  constexpr size_t kRowBytes = V * sizeof(Vector), kPanelVectors = V / NP;
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto vectors = std::make_index_sequence<V>{};
  const size_t c_stride = s.c_stride, count = s.rows;
  auto* const c = static_cast<std::byte*>(s.c) + t.col * sizeof(Acc);
  const bool whole = NP > 1 || (t.count * sizeof(Acc) == kRowBytes && (repeats || count == MR));
  const auto at = [&](size_t v) {
    return v / kPanelVectors * t.panel_stride_cols * sizeof(Acc) +
           v % kPanelVectors * sizeof(Vector);
  };
  // Bytes from row i to the next. A mask, because compilers turn a conditional into branches.
  const auto step = [&](size_t i, size_t stride) {
    return repeats || drops ? stride & (i + 1 < count ? ~size_t{0} : 0) : stride;
  };
  alignas(16) std::byte edge[MR * kRowBytes];
  std::byte* const edge_begin = edge + t.skip * sizeof(Acc);
  Vector acc[MR][V];
  if (!s.accumulate) {
    unroll(rows, [&](auto i) { unroll(vectors, [&](auto v) { acc[i][v] = Vector{}; }); });
  } else {
    if (!whole) {
      std::memset(edge, 0, sizeof(edge));
      copy_edge(c, c_stride, edge_begin, kRowBytes, count, t.count * sizeof(Acc));
    }
    const std::byte* row = whole ? c : edge;
    const size_t stride = whole ? c_stride : kRowBytes;
    unroll_inline(rows, [&](auto i) {
      unroll(vectors, [&](auto v) { acc[i][v] = load_vector<Vector>(row + at(v)); });
      row += step(i, stride);
    });
  }
  sum(acc);
  std::byte* row = whole ? c : edge;
  const size_t stride = whole ? c_stride : kRowBytes;
  const auto store = [&](std::byte* to, auto i) {
    unroll(vectors, [&](auto v) { store_vector<Vector>(to + at(v), acc[i][v]); });
  };
  if constexpr (drops) {
    std::byte* to[MR];
    unroll(rows, [&](auto i) {
      to[i] = row;
      row += step(i, stride);
    });
    unroll(rows, [&](auto i) {
      constexpr std::integral_constant<size_t, MR - 1 - i> last_first;
      store(to[last_first], last_first);
    });
    return;
  }
  unroll_inline(rows, [&](auto i) {
    store(row, i);
    row += step(i, stride);
  });
  if (!whole) copy_edge(edge_begin, kRowBytes, c, c_stride, count, t.count * sizeof(Acc));
}

// Pointers to MR rows of A. Rows after the strip's last row repeat it.
template <typename A, size_t MR>
struct RowsOfA {
  const A* row[MR];
  explicit RowsOfA(const Strip& s) {
    unroll(std::make_index_sequence<MR>{}, [&](auto i) {
      const size_t index = i < s.rows ? i : s.rows - 1;
      row[i] = reinterpret_cast<const A*>(static_cast<const std::byte*>(s.a) + index * s.a_stride);
    });
  }
};

}  // namespace wgemm
