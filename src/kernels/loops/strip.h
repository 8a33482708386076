// The choice of a loop by the number of rows in a strip. The last strip of a product has fewer than
// MR rows, and GEMV has one. So a kernel lists tiles for fewer rows before its full tile:
//   strip_of<Ops, Tile<1, 4>, Tile<2, 2>, Tile<4, 1>>(strip)
#pragma once

#include "kernels/loops/several_panels.h"

namespace wgemm {

// A whole strip by tiles of `rows` rows and `panels` micro-panels, or twice as many of wide
// vectors: then a tile has as many accumulators.
template <size_t rows, size_t narrow_panels>
struct Tile {
  static constexpr size_t kRows = rows;
  template <typename Ops>
  static void run(const Strip& s) {
    constexpr size_t kWidth = Ops::kVectors * Ops::kLanes,
                     panels = narrow_panels * (sizeof(typename Ops::Vector) / sizeof(v128_t));
    const RowsOfA<typename Ops::A, rows> a(s);
    const auto single = [&](const std::byte* panel, TileColumns t) {
      panels_tile<Ops, rows, 1>(s, a, panel, t);
    };
    if constexpr (panels == 1) {
      single_panels<kWidth, Ops::kColumn>(s, static_cast<const std::byte*>(s.b), 0, single);
    } else {
      several_panels<1, panels, kWidth, Ops::kColumn>(
          s, [&](const std::byte* b, TileColumns t) { panels_tile<Ops, rows, panels>(s, a, b, t); },
          single);
    }
  }
};

// Computes the strip by the first loop of the list that has enough rows.
template <typename Ops, typename First, typename... Rest>
void strip_of(const Strip& s) {
  if constexpr (sizeof...(Rest) > 0) {
    if (s.rows > First::kRows) return strip_of<Ops, Rest...>(s);
  }
  First::template run<Ops>(s);
}

}  // namespace wgemm
