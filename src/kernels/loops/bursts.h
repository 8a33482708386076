// Regime: GEMV with packed B of more than kLeastInBursts, so that memory bandwidth limits it.
//
// Six streams run through B at once, and the loop takes a burst of each in turn: 1 KiB of a stream,
// then 1 KiB of the next. While one is read, the hardware prefetcher runs ahead in the others. Six
// streams in bursts were the fastest order that tests/bench/limit.cc found. B in a cache is faster
// without bursts, since each burst loads and stores the accumulators again.
#pragma once

#include <algorithm>

#include "base/machine.h"
#include "kernels/loops/tile.h"

namespace wgemm {

// In bytes: kLeastInBursts of B or less are not read in bursts; kBurst is one burst of one stream.
inline constexpr size_t kLeastInBursts = 2 * kMachine.llc, kBurst = 1024;

// Each tile takes two micro-panels, from two of the six streams.
inline constexpr size_t kPanelsOfTile = 2, kStreamsInBursts = 6;

// Computes a row of C from micro-panels of `width` columns. A stream is `count` consecutive
// micro-panels. `a_bytes`, `acc_bytes`: bytes per element of A and of C. Returns the strip of the
// columns that remain, fewer than six micro-panels.
[[gnu::noinline]] inline Strip read_in_bursts(const Strip& s, size_t width, size_t a_bytes,
                                              size_t acc_bytes,
                                              void (*tile)(const Strip&, const std::byte*,
                                                           TileColumns)) {
  const size_t count = s.cols / (kStreamsInBursts * width),
               stride = kStreamsInBursts / kPanelsOfTile * count, steps = kBurst / s.b_step;
  const auto* const b = static_cast<const std::byte*>(s.b);
  for (size_t i = 0; i < count; ++i) {
    Strip burst = s;
    for (size_t k = 0; k < s.k; k += steps) {
      burst.k = std::min(steps, s.k - k);
      for (size_t panel = i; panel < stride; panel += count) {
        tile(burst, b + panel * s.b_stride + k * s.b_step,
             {panel * width, 0, kPanelsOfTile * width, stride * width});
      }
      burst.a = static_cast<const std::byte*>(burst.a) + steps * a_bytes;
      burst.accumulate = true;
    }
  }
  Strip rest = s;
  const size_t done = kPanelsOfTile * stride;
  rest.cols -= done * width;
  rest.b = b + done * s.b_stride;
  rest.c = static_cast<std::byte*>(s.c) + done * width * acc_bytes;
  return rest;
}

}  // namespace wgemm
