#include "execute/zero_points.h"

#include <algorithm>

#include "base/types.h"
#include "pack/pack_8bit.h"

namespace wgemm {

static_assert(column_bytes(1) == sizeof(*QuantizedColumns{}.scale) +
                                     sizeof(*QuantizedColumns{}.b_zero_point) +
                                     sizeof(*QuantizedColumns{}.a_correction));

int ZeroPointCorrection::a_zero_point() const {
  return is_dot_ ? problem_.quantization.a_zero_point - packed_a_offset() : 0;
}

int ZeroPointCorrection::packed_a_offset() const {
  return is_dot_ ? int8_offset(problem_.a.dtype) - plan_.a_shift
                 : problem_.quantization.a_zero_point;
}

void ZeroPointCorrection::clear_row_sums(int64_t rows) { std::fill_n(row_sums_, rows, 0); }

void ZeroPointCorrection::add_packed_a(const std::byte* a_panels, int64_t rows, int64_t depth) {
  if (row_sums_ == nullptr) return;
  if (is_dot_) {
    sum_quads(a_panels, plan_.a_shift == 0, a_zero_point(), rows, depth, row_sums_);
  } else {
    sum_lanes(a_panels, plan_.kernel->a, rows, depth, row_sums_);
  }
}

void ZeroPointCorrection::subtract_row_terms(int64_t rows, int64_t cols, uint32_t* acc,
                                             int64_t stride) const {
  if (row_sums_ == nullptr) return;
  for (int64_t i = 0; i < rows; ++i, acc += stride) {
    const auto sum = static_cast<uint32_t>(row_sums_[i]);
    for (int64_t j = 0; j < cols; ++j)
      acc[j] -= sum * static_cast<uint32_t>(columns_.b_zero_point[j]);
  }
}

void ZeroPointCorrection::compute_columns(int64_t col, int64_t cols) {
  const Quantization& q = problem_.quantization;
  const PrepackedB& packed = problem_.b.packed;
  const int b_shift = is_dot_ ? plan_.b_shift : 0;
  auto* const scale = reinterpret_cast<float*>(columns_memory_);
  auto* const b_zero_point = reinterpret_cast<int32_t*>(scale + cols);
  columns_ = {scale, b_zero_point, b_zero_point + cols};
  const ConstBlock b_scale = q.b_scale.block(0, col, 1, cols);
  for (int64_t j = 0; j < cols; ++j)
    scale[j] = q.scale(reinterpret_cast<const float*>(b_scale.data)[j * b_scale.col_stride]);
  for (int64_t j = 0; j < cols; ++j) b_zero_point[j] = q.b_zero_point_at(col + j) - b_shift;
  std::fill_n(columns_.a_correction, cols, 0);
  if (a_zero_point() == 0) return;
  const auto x = static_cast<uint32_t>(a_zero_point());
  const auto shifts = static_cast<uint32_t>(packed.k) * static_cast<uint32_t>(b_shift);
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t j = 0; j < cols; ++j) {
    const uint32_t sum = static_cast<uint32_t>(packed.column_sums[col + j]) - shifts;
    columns_.a_correction[j] = static_cast<int32_t>(sum * x);
  }
}

}  // namespace wgemm
