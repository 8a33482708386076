// Finds the vectors of a block of sums that may be among the best.
//
// A score is a division or a square root in float64, so it is computed only if a bound in float32
// allows it. For a query, x = acc * f * g - h grows with the score of a vector:
//               f of the vector   g of the query  h of the vector
//   kDot        scale             scale           0
//   kCosine     1 / sqrt(norm)    1               0
//   kEuclidean  scale             scale           scale^2 * norm / 2
// Each vector whose score is at least as good as the score of a key has x >= bound_of(key).
#pragma once

#include <cstdint>

#include "search/vectors.h"

namespace wgemm {

// Sums of a query and some vectors. All arrays may be read for three more elements.
struct ScanBlock {
  const std::byte* sums;  // float32, or int32
  const float *f, *h;
  // Only for int32: acc = sum - correction - offset. For float32, g is 1.
  const int32_t* corrections;
  int32_t offset;
  float g;
  int64_t count;
  bool is_8bit;
  bool has_h;  // else g is 1 and h is 0
};

// The first place from `at` on whose x is at least `bound`; `count` if there is none.
int64_t find(const ScanBlock& block, int64_t at, float bound);

// The acc of a place.
double acc_at(const ScanBlock& block, int64_t at);

// A score and a slot: better scores have greater keys, and of equal scores the lower slot. The
// order is total, so heaps may be joined in any order. Each key is greater than 0.
uint64_t key_of(Metric metric, float score, uint32_t slot);
float score_of_key(Metric metric, uint64_t key);
inline uint32_t slot_of_key(uint64_t key) { return ~static_cast<uint32_t>(key); }

// `greatest`: the largest scale^2 * norm of the vectors.
float bound_of(Metric metric, uint64_t key, const Factors& query, double greatest);

}  // namespace wgemm
