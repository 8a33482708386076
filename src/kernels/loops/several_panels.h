// Regime: GEMV and skinny GEMM. A tile of one or two rows leaves registers free, so it takes NP
// micro-panels of B at once. There are then more independent chains of multiply-adds, and more
// streams for the hardware prefetcher.
//
// The NP packed micro-panels of a tile are 1/NP of the strip from each other. So each of the NP
// streams goes on from one micro-panel into the next, and the prefetcher never restarts.
// Neighbouring micro-panels would be streams that end after KC x NR elements. Unpacked row-major B
// has no such streams, so there the tile takes neighbours.
//
// Tried: bursts, as in axpy.h. From memory they gained 14 to 27% on Zen 4, and took 2 to 3.5 times
// as long in most shapes on Zen 5.
#pragma once

#include "kernels/loops/panels.h"

namespace wgemm {

// Calls `several` for every NP micro-panels of kWidth columns, if the strip has at least `rows`
// rows, and `single` for each micro-panel that remains.
template <size_t rows, size_t NP, size_t kWidth, size_t kColumn>
void several_panels(const Strip& s, auto&& several, auto&& single) {
  // In micro-panels: `stride` within a tile, `step` from tile to tile.
  const size_t count = s.rows < rows ? 0 : s.cols / (NP * kWidth), stride = s.unpacked ? 1 : count,
               step = s.unpacked ? NP : 1;
  const auto* const b = static_cast<const std::byte*>(s.b);
  for (size_t i = 0; i < count; ++i) {
    several(b + i * step * s.b_stride,
            TileColumns{i * step * kWidth, 0, NP * kWidth, stride * kWidth});
  }
  single_panels<kWidth, kColumn>(s, b + count * NP * s.b_stride, count * NP * kWidth, single);
}

// The same, but `rest` computes the columns that remain, and all columns of a strip with fewer
// rows. So a kernel with a wide tile has no code of its own for them.
template <size_t rows, size_t NP, size_t kWidth, typename Acc>
void only_several_panels(const Strip& s, KernelFunction rest, auto&& several) {
  if (s.rows < rows) return rest(s);
  Strip most = s, left = s;
  left.cols %= NP * kWidth;
  most.cols -= left.cols;
  several_panels<1, NP, kWidth, 0>(most, several, [](const std::byte*, TileColumns) {});
  if (left.cols == 0) return;
  left.b = static_cast<const std::byte*>(s.b) + most.cols / kWidth * s.b_stride;
  left.c = static_cast<Acc*>(s.c) + most.cols;
  rest(left);
}

}  // namespace wgemm
