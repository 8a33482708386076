// The loops that our SIMD micro-kernels share: tiles of rows by panels of columns, kept in
// registers. What differs is the parameter Ops, made once a tile:
//   A, Acc                   types of the elements of A, and of the accumulators
//   kLanes, kVectors         accumulators of a vector, vectors of a panel of B
//   Half                     the same of half a panel, for HalfTile
//   kColumn                  bytes that a column of a panel takes in a step of k
//   load_splat(const A*)     an element of A in all lanes
//   load(b, v128_t[])        a step of a panel, widened to the accumulators' type
//   multiply_add(acc, a, b)
#pragma once

#include <wasm_simd128.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/machine.h"
#include "base/transpose.h"
#include "kernels/kernel.h"

namespace wgemm {

// Everything about accumulators is unrolled by the compiler's own expansion, never by a loop: an
// array of vectors that is indexed at run time would live in memory, at a tenth of the speed.
template <size_t... I>
constexpr void unroll(std::index_sequence<I...>, auto&& body) {
  (body(std::integral_constant<size_t, I>{}), ...);
}

// What Ops have of B where its elements are the accumulators' type: nothing to widen.
template <typename T, size_t vectors>
struct Plain {
  using A = T;
  using Acc = T;
  static constexpr size_t kLanes = sizeof(v128_t) / sizeof(T), kVectors = vectors,
                          kColumn = sizeof(T);
  static v128_t load_splat(const T* a) {
    if constexpr (sizeof(T) == 4) {
      return wasm_v128_load32_splat(a);
    } else {
      return wasm_v128_load64_splat(a);
    }
  }
  static void load(const std::byte* b, v128_t (&to)[vectors]) {
    unroll(std::make_index_sequence<vectors>{},
           [&](auto v) { to[v] = wasm_v128_load(b + v * sizeof(v128_t)); });
  }
  static v128_t load_along_k(const std::byte* b) { return wasm_v128_load(b); }
  static T one(const std::byte* b) { return *reinterpret_cast<const T*>(b); }
};

// multiply_add of floats: rounded twice, or, where the engine has it, once.
template <typename T>
struct Apart {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    if constexpr (sizeof(T) == 4) {
      return wasm_f32x4_add(acc, wasm_f32x4_mul(a, b));
    } else {
      return wasm_f64x2_add(acc, wasm_f64x2_mul(a, b));
    }
  }
};
#if WGEMM_RELAXED
template <typename T>
struct Fused {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    if constexpr (sizeof(T) == 4) {
      return wasm_f32x4_relaxed_madd(a, b, acc);
    } else {
      return wasm_f64x2_relaxed_madd(a, b, acc);
    }
  }
};
#endif

// Where a tile's accumulators go: `count` columns from `col` on, which are the tile's own from
// `skip` on. Tiles that stick out of the strip are computed whole and written in part, through
// memory as wide as the tile.
struct TileColumns {
  size_t col, skip, count;
  size_t apart = 0;  // of several panels, columns from one to the next
};

// Copies what there is of a tile, `bytes` of each row, from c or back. Apart, and with numbers
// alone, so that nothing of a tile that is whole goes through memory.
[[gnu::noinline]] inline void copy_edge(const std::byte* from, size_t from_stride, std::byte* to,
                                        size_t to_stride, size_t rows, size_t bytes) {
#pragma clang loop unroll(disable)
  for (size_t i = 0; i < rows; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, bytes);
}

// A tile of MR rows by V vectors, of NP panels; where they are several, it is whole. `sum(acc)`
// adds the products. `repeats`: in A, rows beyond the strip's last are the last again, and so they
// can be in C, where they come to the same; else they are computed and dropped.
template <typename Acc, size_t MR, size_t V, bool repeats, size_t NP = 1>
void with_tile(const Strip& s, TileColumns t, auto&& sum) {
  constexpr size_t kRowBytes = V * sizeof(v128_t), kPanelVectors = V / NP;
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto vectors = std::make_index_sequence<V>{};
  const size_t c_stride = s.c_stride, count = s.rows;
  auto* const c = static_cast<std::byte*>(s.c) + t.col * sizeof(Acc);
  const bool whole = NP > 1 || (t.count * sizeof(Acc) == kRowBytes && (repeats || count == MR));
  const auto at = [&](size_t v) {
    return v / kPanelVectors * t.apart * sizeof(Acc) + v % kPanelVectors * sizeof(v128_t);
  };
  // From row i to the next; by a mask, since of a choice the compiler makes branches.
  const auto step = [&](size_t i, size_t stride) {
    return repeats ? stride & (i + 1 < count ? ~size_t{0} : 0) : stride;
  };
  alignas(16) std::byte edge[MR * kRowBytes];
  std::byte* const edge_begin = edge + t.skip * sizeof(Acc);
  v128_t acc[MR][V];
  if (!s.accumulate) {
    unroll(rows, [&](auto i) {
      unroll(vectors, [&](auto v) { acc[i][v] = wasm_i32x4_const(0, 0, 0, 0); });
    });
  } else {
    if (!whole) {
      std::memset(edge, 0, sizeof(edge));
      copy_edge(c, c_stride, edge_begin, kRowBytes, count, t.count * sizeof(Acc));
    }
    const std::byte* row = whole ? c : edge;
    const size_t stride = whole ? c_stride : kRowBytes;
    unroll(rows, [&](auto i) {
      unroll(vectors, [&](auto v) { acc[i][v] = wasm_v128_load(row + at(v)); });
      row += step(i, stride);
    });
  }
  sum(acc);
  std::byte* row = whole ? c : edge;
  const size_t stride = whole ? c_stride : kRowBytes;
  unroll(rows, [&](auto i) {
    unroll(vectors, [&](auto v) { wasm_v128_store(row + at(v), acc[i][v]); });
    row += step(i, stride);
  });
  if (!whole) copy_edge(edge_begin, kRowBytes, c, c_stride, count, t.count * sizeof(Acc));
}

// Pointers to MR rows of A; those beyond the strip's last are the last again.
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

// NP panels at once.
template <typename Ops, size_t MR, size_t NP>
void panels_tile(const Strip& s, const std::byte* b_panel, TileColumns t) {
  using A = typename Ops::A;
  constexpr size_t kVectors = Ops::kVectors;
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto panels = std::make_index_sequence<NP>{};
  const Ops ops;
  with_tile<typename Ops::Acc, MR, NP * kVectors, true, NP>(s, t, [&](auto& acc) {
    RowsOfA<A, MR> a(s);
    const std::byte* b[NP];
    const size_t b_stride = t.apart / (kVectors * Ops::kLanes) * s.b_stride;
    unroll(panels, [&](auto p) { b[p] = b_panel + p * b_stride; });
    const size_t step = s.b_step;
    size_t k = s.k;
    do {
      v128_t b_k[NP][kVectors];
      unroll(panels, [&](auto p) {
        ops.load(b[p], b_k[p]);
        b[p] += step;
      });
      unroll(rows, [&](auto i) {
        const v128_t a_k = Ops::load_splat(a.row[i]++);
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

// The same of one panel, with A in a panel of MR rows: one pointer instead of several, which is
// what bounds kernels that multiply and add apart.
template <typename Ops, size_t MR>
void panel_of_a_tile(const Strip& s, const std::byte* b, TileColumns t) {
  constexpr size_t kVectors = Ops::kVectors;
  const Ops ops;
  with_tile<typename Ops::Acc, MR, kVectors, false>(s, t, [&](auto& acc) {
    const auto* a = static_cast<const typename Ops::A*>(s.a);
    const size_t step = s.b_step;
    size_t k = s.k;
    do {
      v128_t b_k[kVectors];
      ops.load(b, b_k);
      b += step;
      unroll(std::make_index_sequence<MR>{}, [&](auto i) {
        const v128_t a_k = Ops::load_splat(a + i);
        unroll(std::make_index_sequence<kVectors>{},
               [&](auto v) { acc[i][v] = Ops::multiply_add(acc[i][v], a_k, b_k[v]); });
      });
      a += MR;
    } while (--k != 0);
  });
}

// Calls `tile` for each kWidth columns of a strip from column `col` on, of panels of kPanel
// columns, a multiple; `b` is where `col` lies, which begins a panel. What lies beyond the last
// column of B in place is not B's: the last tile begins before.
template <size_t kWidth, size_t kColumn, size_t kPanel = kWidth>
void single_panels(const Strip& s, const std::byte* b, size_t col, auto&& tile) {
  for (; col < s.cols; col += kWidth) {
    const size_t count = std::min(kWidth, s.cols - col), skip = s.unpacked ? kWidth - count : 0;
    tile(b - skip * kColumn, TileColumns{col, skip, count});
    if constexpr (kWidth == kPanel) {
      b += s.b_stride;
    } else {
      const bool is_last = (col + kWidth) % kPanel == 0;  // of its panel
      b += is_last ? s.b_stride - (kPanel - kWidth) * kColumn : kWidth * kColumn;
    }
  }
}

// Calls `several` for NP panels of kWidth columns at once, where a strip has so many rows, and
// `single` for each that is left. Packed ones that are taken at once are far apart, so that each is
// read on into the next: memory gives few long streams faster than others.
template <size_t rows, size_t NP, size_t kWidth, size_t kColumn>
void several_panels(const Strip& s, auto&& several, auto&& single) {
  const size_t count = s.rows < rows ? 0 : s.cols / (NP * kWidth), apart = s.unpacked ? 1 : count,
               step = s.unpacked ? NP : 1;
  const auto* const b = static_cast<const std::byte*>(s.b);
  for (size_t i = 0; i < count; ++i) {
    several(b + i * step * s.b_stride,
            TileColumns{i * step * kWidth, 0, NP * kWidth, apart * kWidth});
  }
  single_panels<kWidth, kColumn>(s, b + count * NP * s.b_stride, count * NP * kWidth, single);
}

// B of more bytes comes from memory. There its streams are read in bursts, one after the other:
// while one is read, the processor fetches what is next of the others.
inline constexpr size_t kLeastInBursts = 2 * kMachine.llc, kBurst = 1024;

// One row by packed panels in bursts: three tiles of two panels of `width` columns in turn, which
// are all far apart. Returns the columns that are left, fewer than these have. `a_bytes`,
// `acc_bytes`: of an element.
inline constexpr size_t kPanelsOfTile = 2, kStreamsInBursts = 6;
[[gnu::noinline]] inline Strip read_in_bursts(const Strip& s, size_t width, size_t a_bytes,
                                              size_t acc_bytes,
                                              void (*tile)(const Strip&, const std::byte*,
                                                           TileColumns)) {
  const size_t count = s.cols / (kStreamsInBursts * width),
               apart = kStreamsInBursts / kPanelsOfTile * count, steps = kBurst / s.b_step;
  const auto* const b = static_cast<const std::byte*>(s.b);
  for (size_t i = 0; i < count; ++i) {
    Strip part = s;
    for (size_t k = 0; k < s.k; k += steps) {
      part.k = std::min(steps, s.k - k);
      for (size_t panel = i; panel < apart; panel += count) {
        tile(part, b + panel * s.b_stride + k * s.b_step,
             {panel * width, 0, kPanelsOfTile * width, apart * width});
      }
      part.a = static_cast<const std::byte*>(part.a) + steps * a_bytes;
      part.accumulate = true;
    }
  }
  Strip left = s;
  const size_t done = kPanelsOfTile * apart;
  left.cols -= done * width;
  left.b = b + done * s.b_stride;
  left.c = static_cast<std::byte*>(s.c) + done * width * acc_bytes;
  return left;
}

// All of a strip by tiles of `rows` rows and `panels` panels; packed ones of one row `in_bursts`,
// where there is little to do for each byte.
template <size_t rows, size_t panels, bool in_bursts = false>
struct Tile {
  static_assert(rows == 1 || !in_bursts);
  static constexpr size_t kRows = rows;
  template <typename Ops>
  static void run(const Strip& s) {
    constexpr size_t kWidth = Ops::kVectors * Ops::kLanes;
    const auto single = [&](const std::byte* panel, TileColumns t) {
      panels_tile<Ops, rows, 1>(s, panel, t);
    };
    if constexpr (in_bursts) {
      if (!s.unpacked && s.cols >= kStreamsInBursts * kWidth &&
          s.cols / kWidth * s.b_stride > kLeastInBursts) {
        return run<Ops>(read_in_bursts(s, kWidth, sizeof(typename Ops::A),
                                       sizeof(typename Ops::Acc), two_panels<Ops>));
      }
    }
    if constexpr (panels == 1) {
      single_panels<kWidth, Ops::kColumn>(s, static_cast<const std::byte*>(s.b), 0, single);
    } else {
      several_panels<1, panels, kWidth, Ops::kColumn>(
          s,
          [&](const std::byte* b, TileColumns t) {
            if constexpr (in_bursts && panels == kPanelsOfTile) {
              two_panels<Ops>(s, b, t);
            } else {
              panels_tile<Ops, rows, panels>(s, b, t);
            }
          },
          single);
    }
  }

 private:
  // Apart, so that it is there once.
  template <typename Ops>
  [[gnu::noinline]] static void two_panels(const Strip& s, const std::byte* b, TileColumns t) {
    panels_tile<Ops, rows, kPanelsOfTile>(s, b, t);
  }
};

// The same by halves of panels: there are registers for more rows.
template <size_t rows>
struct HalfTile {
  static constexpr size_t kRows = rows;
  template <typename Ops>
  static void run(const Strip& s) {
    using Half = typename Ops::Half;
    single_panels<Half::kVectors * Half::kLanes, Half::kColumn, Ops::kVectors * Ops::kLanes>(
        s, static_cast<const std::byte*>(s.b), 0,
        [&](const std::byte* half, TileColumns t) { panels_tile<Half, rows, 1>(s, half, t); });
  }
};

// Of one row by B in place by rows: adds to Y the multiples of `rows` rows of B at once, and of so
// many `tiles` of them in turn, for `burst` columns each. Row i of tile t lies (i * tiles + t) *
// apart rows on.
template <typename Ops, size_t rows>
void add_rows(const Strip& s, size_t apart, size_t tiles, size_t burst) {
  constexpr size_t kVectors = Ops::kVectors, kWidth = kVectors * Ops::kLanes;
  constexpr auto all_rows = std::make_index_sequence<rows>{};
  constexpr auto vectors = std::make_index_sequence<kVectors>{};
  const Ops ops;
  for (size_t k = 0; k < apart; ++k) {
    for (size_t begin = 0; begin < s.cols; begin += burst) {
      for (size_t first = k; first < tiles * apart; first += apart) {
        const std::byte* b[rows];
        v128_t a[rows];
        unroll(all_rows, [&](auto i) {
          const size_t row = first + i * tiles * apart;
          a[i] = Ops::load_splat(static_cast<const typename Ops::A*>(s.a) + row);
          b[i] = static_cast<const std::byte*>(s.b) + row * s.b_step + begin * Ops::kColumn;
        });
        auto* c = static_cast<typename Ops::Acc*>(s.c) + begin;
        for (size_t left = std::min(burst, s.cols - begin); left != 0;
             left -= kWidth, c += kWidth) {
          v128_t acc[kVectors];
          unroll(vectors, [&](auto v) { acc[v] = wasm_v128_load(c + v * Ops::kLanes); });
          unroll(all_rows, [&](auto i) {
            v128_t b_k[kVectors];
            ops.load(b[i], b_k);
            unroll(vectors, [&](auto v) { acc[v] = Ops::multiply_add(acc[v], a[i], b_k[v]); });
            b[i] += kWidth * Ops::kColumn;
          });
          unroll(vectors, [&](auto v) { wasm_v128_store(c + v * Ops::kLanes, acc[v]); });
        }
      }
    }
  }
}

// One row by B in place by rows, several at a time: the fused axpy of BLIS (Van Zee and van de
// Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality", 2015). They are a fourth
// or sixth of K apart, so that memory gives long streams; an odd number of rows, or their lines
// would fall into the same sets of a cache. `rest` computes what is left.
template <typename Ops, KernelFunction rest>
void axpyf(const Strip& s) {
  constexpr size_t kWidth = Ops::kVectors * Ops::kLanes;
  const bool bursts =
      s.k * s.b_step >
      kLeastInBursts;  // not by columns, of which each thread has others: they are to sum alike
  const size_t streams = bursts ? 6 : 4;
  if (s.k < 2 * streams) return rest(s);
  const size_t apart = s.k / (2 * streams) * 2 - 1, cols = s.cols / kWidth * kWidth;
  Strip left = s;
  left.k -= streams * apart;
  rest(left);
  Strip most = s;
  most.cols = cols;
  most.a = static_cast<const typename Ops::A*>(s.a) + left.k;
  most.b = static_cast<const std::byte*>(s.b) + left.k * s.b_step;
  if (bursts) {
    add_rows<Ops, 3>(most, apart, 2, kBurst / Ops::kColumn);
  } else {
    add_rows<Ops, 4>(most, apart, 1, cols);
  }
  if (cols == s.cols) return;
  left.cols -= cols;
  left.k = streams * apart;
  left.a = most.a;
  left.b = static_cast<const std::byte*>(most.b) + cols * Ops::kColumn;
  left.c = static_cast<typename Ops::Acc*>(s.c) + cols;
  left.accumulate = true;
  rest(left);
}

// A strip, by the first of the tiles that has enough rows.
template <typename Ops, typename First, typename... Rest>
void strip_of(const Strip& s) {
  if constexpr (sizeof...(Rest) > 0) {
    if (s.rows > First::kRows) return strip_of<Ops, Rest...>(s);
  }
  First::template run<Ops>(s);
}

// A strip whose A is a panel of MR rows.
template <typename Ops, size_t MR>
void strip_of_panels(const Strip& s) {
  single_panels<Ops::kVectors * Ops::kLanes, Ops::kColumn>(
      s, static_cast<const std::byte*>(s.b), 0,
      [&](const std::byte* panel, TileColumns t) { panel_of_a_tile<Ops, MR>(s, panel, t); });
}

// B in place by columns, in which k lies side by side, eight columns at a time: squares of as many
// columns and steps of k as a vector has lanes are transposed in registers, so that the sums are
// those of every other kernel. More columns at once are slower where they are a power of two apart:
// they fall into one set of L1, which holds eight lines. Ops has besides
//   load_along_k(b)          kLanes steps of k of a column, widened
//   one(b)                   one element, widened
template <size_t rows>
struct ColumnsTile {
  static constexpr size_t kRows = rows, kWidth = 8;

  template <typename Ops>
  static void run(const Strip& s) {
    const auto* b = static_cast<const std::byte*>(s.b);
    for (size_t col = 0; col < s.cols; col += kWidth, b += kWidth * s.b_stride) {
      const size_t count = std::min(kWidth, s.cols - col), skip = kWidth - count;
      tile<Ops>(s, b - skip * s.b_stride, {col, skip, count});
    }
  }

 private:
  template <typename Ops>
  static void tile(const Strip& s, const std::byte* b, TileColumns t) {
    constexpr size_t kLanes = Ops::kLanes;
    constexpr auto squares = std::make_index_sequence<kWidth / kLanes>{};
    constexpr auto lanes = std::make_index_sequence<kLanes>{};
    constexpr auto all_rows = std::make_index_sequence<rows>{};
    const Ops ops;
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
          unroll(lanes,
                 [&](auto j) { x[j] = ops.load_along_k(b + (q * kLanes + j) * s.b_stride); });
          transpose(x);
          unroll(lanes, [&](auto d) { add(d, q, x[d]); });
        });
        unroll(all_rows, [&](auto i) { a.row[i] += kLanes; });
      }
      for (; k > 0; --k, b += s.b_step) {
        typename Ops::Acc step[kWidth];
#pragma clang loop unroll(disable)
        for (size_t j = 0; j < kWidth; ++j) step[j] = ops.one(b + j * s.b_stride);
        unroll(squares, [&](auto q) { add(0, q, wasm_v128_load(step + q * kLanes)); });
        unroll(all_rows, [&](auto i) { ++a.row[i]; });
      }
    });
  }
};

// The same where the order of the sums is free: dot products along k, of one row and four columns
// at once. These are a quarter of all apart, from memory an odd number, as rows are in axpyf().
// `rest` computes what no four are left of, which are the same columns in every part.
template <typename Ops, KernelFunction rest>
void dots(const Strip& s) {
  using Acc = typename Ops::Acc;
  constexpr size_t kColumns = 4, kVectors = Ops::kVectors, kDepth = kVectors * Ops::kLanes;
  constexpr auto columns = std::make_index_sequence<kColumns>{};
  constexpr auto vectors = std::make_index_sequence<kVectors>{};
  static_assert(Ops::kLanes == kColumns && kVectors == 2);
  if (s.k <= 2 * kDepth) return rest(s);  // for few, adding up would take longer
  const Ops ops;
  const Acc one = 1;
  const v128_t ones = Ops::load_splat(&one);
  size_t apart = s.cols / kColumns;
  if (apart > 1 && s.cols * s.b_stride > kLeastInBursts) apart = (apart - 1) | 1;
  // The first steps of k, so that whole ones are left. By masks, since 0 times infinity is not 0.
  const size_t first = (s.k - 1) % kDepth + 1;
  alignas(16) std::byte masks[kVectors * sizeof(v128_t)] = {};
  std::memset(masks, 0xff, first * sizeof(Acc));
  for (size_t i = 0; i < apart * s.rows; ++i) {
    const size_t col = i / s.rows, row = i % s.rows;
    const auto* a = static_cast<const std::byte*>(s.a) + row * s.a_stride;
    const auto* b_first = static_cast<const std::byte*>(s.b) + col * s.b_stride;
    const std::byte* b[kColumns];
    v128_t acc[kColumns][kVectors], a_k[kVectors], b_k[kVectors];
    unroll(vectors, [&](auto v) {
      a_k[v] = wasm_v128_and(wasm_v128_load(a + v * sizeof(v128_t)),
                             wasm_v128_load(masks + v * sizeof(v128_t)));
    });
    a += first * sizeof(Acc);
    unroll(columns, [&](auto j) {
      ops.load(b_first, b_k);
      unroll(vectors, [&](auto v) {
        acc[j][v] =
            Ops::multiply_add(wasm_i32x4_const(0, 0, 0, 0), a_k[v],
                              wasm_v128_and(b_k[v], wasm_v128_load(masks + v * sizeof(v128_t))));
      });
      b[j] = b_first + first * Ops::kColumn;
      b_first += apart * s.b_stride;
    });
    for (size_t k = s.k - first; k != 0; k -= kDepth) {
      unroll(vectors, [&](auto v) { a_k[v] = wasm_v128_load(a + v * sizeof(v128_t)); });
      a += sizeof(a_k);
      unroll(columns, [&](auto j) {
        ops.load(b[j], b_k);
        b[j] += kDepth * Ops::kColumn;
        unroll(vectors, [&](auto v) { acc[j][v] = Ops::multiply_add(acc[j][v], a_k[v], b_k[v]); });
      });
    }
    auto* const c = reinterpret_cast<Acc*>(static_cast<std::byte*>(s.c) + row * s.c_stride) + col;
    v128_t x[kColumns], sum = wasm_i32x4_const(0, 0, 0, 0);
    alignas(16) Acc sums[kColumns];
    unroll(columns, [&](auto j) { x[j] = Ops::multiply_add(acc[j][0], ones, acc[j][1]); });
    transpose(x);
    if (s.accumulate) {
      unroll(columns, [&](auto j) { sums[j] = c[j * apart]; });
      sum = wasm_v128_load(sums);
    }
    unroll(columns, [&](auto j) { sum = Ops::multiply_add(sum, ones, x[j]); });
    wasm_v128_store(sums, sum);
    unroll(columns, [&](auto j) { c[j * apart] = sums[j]; });
  }
  const size_t cols = apart * kColumns;
  if (cols == s.cols) return;
  Strip left = s;
  left.cols -= cols;
  left.b = static_cast<const std::byte*>(s.b) + cols * s.b_stride;
  left.c = static_cast<Acc*>(s.c) + cols;
  (left.cols >= kColumns ? dots<Ops, rest> : rest)(left);
}

}  // namespace wgemm
