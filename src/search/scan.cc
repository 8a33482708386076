#include "search/scan.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace wgemm {
namespace {

// Vectors of x.
template <bool is_8bit, bool has_h>
class Lanes {
 public:
  Lanes(const ScanBlock& block, float bound)
      : b_(block),
        bound_(wasm_f32x4_splat(bound)),
        offset_(wasm_i32x4_splat(block.offset)),
        g_(wasm_f32x4_splat(block.g)) {}

  // Whether x >= bound, for four places from `at` on.
  v128_t operator()(int64_t at) const {
    v128_t acc = wasm_v128_load(b_.sums + at * int64_t{sizeof(float)});
    if constexpr (is_8bit) {
      const v128_t sum = wasm_i32x4_sub(acc, wasm_v128_load(b_.corrections + at));
      acc = wasm_f32x4_convert_i32x4(wasm_i32x4_sub(sum, offset_));
    }
    v128_t x = wasm_f32x4_mul(acc, wasm_v128_load(b_.f + at));
    if constexpr (is_8bit && has_h) x = wasm_f32x4_mul(x, g_);
    if constexpr (has_h) x = wasm_f32x4_sub(x, wasm_v128_load(b_.h + at));
    return wasm_f32x4_ge(x, bound_);
  }

 private:
  const ScanBlock b_;
  const v128_t bound_, offset_, g_;
};

template <bool is_8bit, bool has_h>
int64_t find_typed(const ScanBlock& block, int64_t at, float bound) {
  const Lanes<is_8bit, has_h> reaches(block, bound);
  const int64_t count = block.count;
#pragma clang loop unroll(disable)
  for (; at + 16 <= count; at += 16) {
    const v128_t any = wasm_v128_or(wasm_v128_or(reaches(at), reaches(at + 4)),
                                    wasm_v128_or(reaches(at + 8), reaches(at + 12)));
    if (wasm_v128_any_true(any)) break;
  }
#pragma clang loop unroll(disable)
  for (; at < count; at += 4) {
    const uint32_t mask = wasm_i32x4_bitmask(reaches(at));
    if (mask != 0) return std::min<int64_t>(at + __builtin_ctz(mask), count);
  }
  return count;
}

}  // namespace

int64_t find(const ScanBlock& block, int64_t at, float bound) {
  // Sums of float32 wait for memory, so they have one loop.
  if (!block.is_8bit) return find_typed<false, true>(block, at, bound);
  // Calls by pointer with 64-bit integers would need code in the glue.
  if (block.has_h) return find_typed<true, true>(block, at, bound);
  return find_typed<true, false>(block, at, bound);
}

double acc_at(const ScanBlock& block, int64_t at) {
  if (!block.is_8bit) return reinterpret_cast<const float*>(block.sums)[at];
  const int32_t sum = reinterpret_cast<const int32_t*>(block.sums)[at];
  return static_cast<int32_t>(static_cast<uint32_t>(sum) -
                              static_cast<uint32_t>(block.corrections[at]) -
                              static_cast<uint32_t>(block.offset));
}

uint64_t key_of(Metric metric, float score, uint32_t slot) {
  const float better = (metric == Metric::kEuclidean ? -score : score) + 0.0F;  // -0 becomes 0
  const auto bits = std::bit_cast<uint32_t>(better);
  const uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000U;
  return static_cast<uint64_t>(ordered) << 32 | ~slot;
}

float score_of_key(Metric metric, uint64_t key) {
  const auto ordered = static_cast<uint32_t>(key >> 32);
  const auto better = std::bit_cast<float>(ordered >> 31 != 0 ? ordered & 0x7fffffffU : ~ordered);
  return metric == Metric::kEuclidean ? 0.0F - better : better;
}

// Let s be the score of the key. A score is rounded to float32, so before that it is at least
// s - |s| 2^-24 - 2^-150, or for a distance at most s + s 2^-24 + 2^-150. From this follows the
// least value of acc * f * g - h in real numbers. A magnitude is scale^2 * norm. For kEuclidean,
// twice that value is the magnitude of the query less the square of the distance. The slack covers
// the roundings:
//  - x has roundings to float32 of acc, f, two products, h and the difference, each by at most
//    2^-24 of the result. By Cauchy and Schwarz, the dot product is at most 1.01 times the root of
//    the product of both magnitudes, even if sums are rounded. So 2^-21 of the dot product, of h
//    and of the bound is enough, also for the rounding of the bound. (Squares below the normal
//    range make magnitudes too small, by at most 2^-134. The error of the dot product is then less
//    than the other slack.)
//  - The square of a distance in float64 has an error of at most 2^-50 of both magnitudes.
//  - 2^-147 covers products below the normal range, of which g multiplies one.
// A magnitude fits float32, so only x can overflow. Then x is infinite, so a bound is at most the
// largest float32.
float bound_of(Metric metric, uint64_t key, const Factors& query, double greatest) {
  // No score is worse than the score of this key. Such a key comes from args.min_score.
  if (key >> 32 <= ~std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity()))
    return -std::numeric_limits<float>::infinity();
  const double s = score_of_key(metric, key), tiny = 0x1p-147, half = 0x1p-23, relative = 0x1p-21,
               most = 0x1.fffffep127;
  double bound, slack = tiny;
  if (metric == Metric::kEuclidean) {
    const double magnitude = query.scale * query.scale * query.norm,
                 distance = std::max(s, 0.0) * (1 + half) + tiny,
                 square = distance * distance + (magnitude + greatest) * 0x1p-50;
    bound = (magnitude - square) / 2;
    slack += (std::sqrt(magnitude * greatest) + greatest) * relative + tiny * query.scale;
  } else {
    bound = s - std::fabs(s) * half - tiny;
    bound = metric == Metric::kDot ? bound / query.scale : bound * std::sqrt(query.norm);
  }
  bound -= std::fabs(bound) * relative + slack;
  // A NaN, from infinite scores, becomes the largest number, which an infinite x exceeds.
  return static_cast<float>(bound < most ? bound : most);
}

}  // namespace wgemm
