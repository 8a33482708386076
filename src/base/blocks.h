// How a length is cut into blocks.
#pragma once

#include <cstdint>

namespace wgemm {

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The size of the fewest equal blocks of at most `size_max` that cut `total`. So the last block is
// not a sliver.
constexpr int64_t equal_blocks(int64_t total, int64_t size_max) {
  const int64_t count = (total + size_max - 1) / size_max;
  return (total + count - 1) / count;
}

}  // namespace wgemm
