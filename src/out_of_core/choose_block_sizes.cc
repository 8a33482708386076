// Copying costs little compared with computing if blocks of Y are large and nearly square. Each
// element of A is moved once per block of columns, each element of B once per block of rows. Blocks
// of K may be small, since sums are carried from one to the next.
#include "out_of_core/choose_block_sizes.h"

#include <algorithm>

#include "base/blocks.h"

namespace wgemm {
namespace {

// Blocks of at most `size_max`, a multiple of `step`, or all of `total`.
constexpr int64_t block_size(int64_t total, int64_t size_max, int64_t step) {
  return total <= size_max ? total : round_up(equal_blocks(total, size_max), step);
}

BlockSizes sizes_for(const BlockedProblem& blocked, int64_t side, int64_t k) {
  const Problem& p = blocked.problem();
  return {block_size(p.m, side, kBlockStep), block_size(p.n, side, kBlockStep),
          block_size(p.k, k, blocked.step_of_k())};
}

// The longest side of blocks of Y that fit, by bisection; 0 if none fit.
int64_t longest_side(BlockedProblem* blocked, int64_t k, int64_t room) {
  const Problem& p = blocked->problem();
  int64_t side = 0,
          too_long = (std::max(p.m, p.n) + kBlockStep - 1) / kBlockStep * kBlockStep + kBlockStep;
  while (too_long - side > kBlockStep) {
    const int64_t middle = side + (too_long - side) / 2 / kBlockStep * kBlockStep;
    blocked->set_sizes(sizes_for(*blocked, middle, k));
    (blocked->bytes() <= room ? side : too_long) = middle;
  }
  return side;
}

}  // namespace

// Tries K, K / 2, K / 4 and so on, each with the largest blocks of Y that fit. If none fit since
// parts of K are too long, K is not cut into parts.
bool choose_block_sizes(BlockedProblem* blocked, int64_t room) {
  const Problem& p = blocked->problem();
  BlockSizes best;
  const int64_t step = blocked->step_of_k();
  for (int64_t k = p.k;; k = std::max(step, round_up(k / 2, step))) {
    const int64_t side = longest_side(blocked, k, room);
    if (side != 0) {
      const BlockSizes sizes = sizes_for(*blocked, side, k);
      if (best.m == 0 || blocked->cost(sizes) < blocked->cost(best)) best = sizes;
    }
    if (k > step) continue;
    const bool fits = best.m != 0;
    if (!fits && blocked->cuts_k()) {
      blocked->do_not_cut_k();
      return choose_block_sizes(blocked, room);
    }
    blocked->set_sizes(fits ? best : sizes_for(*blocked, kBlockStep, k));
    return fits;
  }
}

}  // namespace wgemm
