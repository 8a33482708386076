#include "search/rescore.h"

#include <algorithm>

#include "base/convert.h"

namespace wgemm {
namespace {

template <typename T>
void multiply_typed(const float* query, const RescoredRows& rows, int64_t dimensions, float* sums) {
  const T* from[RescoredRows::kMost];
  float sum[RescoredRows::kMost] = {};
#pragma clang loop unroll(full)
  for (size_t i = 0; i < RescoredRows::kMost; ++i)
    from[i] = reinterpret_cast<const T*>(rows.data[i < rows.count ? i : 0]);
#pragma clang loop unroll(disable) vectorize(disable)
  for (ptrdiff_t k = 0; k < dimensions; ++k) {
    const float q = query[k];
#pragma clang loop unroll(full)
    for (size_t i = 0; i < RescoredRows::kMost; ++i) sum[i] += q * convert<float>(from[i][k]);
  }
  std::copy_n(sum, RescoredRows::kMost, sums);
}

}  // namespace

void multiply(const float* query, const RescoredRows& rows, DType type, int64_t dimensions,
              float* sums) {
  if (type == DType::kFloat32)
    multiply_typed<float>(query, rows, dimensions, sums);
  else
    multiply_typed<BFloat16>(query, rows, dimensions, sums);
}

}  // namespace wgemm
