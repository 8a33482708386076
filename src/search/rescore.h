// Products of a query and some rows, which may lie anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wgemm.h"

namespace wgemm {

struct RescoredRows {
  // A processor adds to several sums at once, if none needs another.
  static constexpr size_t kMost = 4;
  size_t count;
  uint32_t slots[kMost];
  double norms[kMost];
  const std::byte* data[kMost];
};

// Writes kMost sums over ascending k, unfused. `type`: float32 or bfloat16. Sums from number
// `rows.count` on have no meaning.
void multiply(const float* query, const RescoredRows& rows, DType type, int64_t dimensions,
              float* sums);

}  // namespace wgemm
