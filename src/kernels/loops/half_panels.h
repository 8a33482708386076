// Regime: GEMM in float64, whose vectors hold two elements. A tile covers half the columns of a
// micro-panel, which leaves registers for more rows: 6 x 4 instead of 2 x 8.
#pragma once

#include "kernels/loops/panels.h"

namespace wgemm {

// For the list of strip_of() in strip.h.
template <size_t rows>
struct HalfTile {
  static constexpr size_t kRows = rows;
  template <typename Ops>
  static void run(const Strip& s) {
    using Half = typename Ops::Half;
    const RowsOfA<typename Ops::A, rows> a(s);
    single_panels<Half::kVectors * Half::kLanes, Half::kColumn, Ops::kVectors * Ops::kLanes>(
        s, static_cast<const std::byte*>(s.b), 0,
        [&](const std::byte* half, TileColumns t) { panels_tile<Half, rows, 1>(s, a, half, t); });
  }
};

}  // namespace wgemm
