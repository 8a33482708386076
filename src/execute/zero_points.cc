#include "execute/zero_points.h"

#include <wasm_simd128.h>

#include <algorithm>

#include "base/types.h"
#include "pack/pack_8bit.h"

namespace wgemm {

static_assert(column_bytes(1) == sizeof(*QuantizedColumns{}.scale) +
                                     sizeof(*QuantizedColumns{}.b_zero_point) +
                                     sizeof(*QuantizedColumns{}.a_correction));

int ZeroPointCorrection::a_zero_point() const {
  return keeps_a_ ? problem_.quantization.a_zero_point - packed_a_offset() : 0;
}

int ZeroPointCorrection::packed_a_offset() const {
  if (keeps_a_) return int8_offset(problem_.a.dtype) - plan_.a_shift;
  return row_x_ != nullptr ? 0 : problem_.quantization.a_zero_point;
}

void ZeroPointCorrection::read_row_x(const ParamOffsets& at, int64_t row, int64_t rows) {
  read_zero_points(problem_.quantization.params[kAZeroPoint], at.at[kAZeroPoint], row, rows,
                   packed_a_offset(), row_x_);
}

void ZeroPointCorrection::clear_row_sums(int64_t rows) { std::fill_n(row_sums_, rows, 0); }

void ZeroPointCorrection::add_packed_a(std::byte* a_panels, int64_t rows, int64_t depth) {
  if (row_x_ != nullptr && !keeps_a_)
    subtract_from_panels(plan_.kernel->a, row_x_, rows, depth, a_panels);
  if (row_sums_ == nullptr) return;
  if (keeps_a_) {
    sum_quads(a_panels, plan_.kernel->a.width, plan_.a_shift == 0, has_row_x_ ? 0 : a_zero_point(),
              rows, depth, row_sums_);
  } else {
    sum_lanes(a_panels, plan_.kernel->a, rows, depth, row_sums_);
  }
}

void ZeroPointCorrection::add_packed_b(const std::byte* b_panels, int64_t cols, int64_t depth,
                                       bool first) {
  if (!sums_b_ || columns_.a_correction == nullptr) return;
  const PanelLayout& layout = plan_.kernel->b;
  const auto x = static_cast<uint32_t>(correction_factor());
  if (first) std::fill_n(columns_.a_correction, cols, 0);
  constexpr int64_t kChunk = 64;
  for (int64_t j = 0; j < cols; j += kChunk) {
    const int64_t count = std::min(kChunk, cols - j);
    int32_t sums[kChunk] = {};
    if (layout.element_bytes == 2) {
      sum_lanes(b_panels, layout, count, depth, sums);
    } else {
      sum_quads(b_panels, layout.width, true, 0, count, depth, sums);
    }
    b_panels += packed_bytes(layout, kChunk, depth);
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t i = 0; i < count; ++i) {
      int32_t& correction = columns_.a_correction[j + i];
      correction = static_cast<int32_t>(static_cast<uint32_t>(correction) +
                                        x * static_cast<uint32_t>(sums[i]));
    }
  }
}

void ZeroPointCorrection::subtract_terms(int64_t rows, int64_t cols, uint32_t* acc,
                                         int64_t stride) const {
  const int32_t* const corrections = sums_b_ ? columns_.a_correction : nullptr;
  for (int64_t i = 0; i < rows; ++i, acc += stride) {
    if (row_sums_ != nullptr) {
      const auto sum = static_cast<uint32_t>(row_sums_[i]);
#pragma clang loop vectorize(disable) unroll(disable)
      for (int64_t j = 0; j < cols; ++j)
        acc[j] -= sum * static_cast<uint32_t>(columns_.b_zero_point[j]);
    }
    if (corrections == nullptr) continue;
    const auto x = static_cast<uint32_t>(has_row_x_ ? row_x_[i] : 1);
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t j = 0; j < cols; ++j) acc[j] -= x * static_cast<uint32_t>(corrections[j]);
  }
}

void ZeroPointCorrection::compute_columns(const ParamOffsets& at, const BSource& b, int64_t col,
                                          int64_t cols) {
  const auto from = [&](QuantizationParam which) {
    const Operand param = problem_.quantization.params[which].at(at.at[which]);
    return param.at(col * param.col_stride);
  };
  auto* const scale = reinterpret_cast<float*>(columns_memory_);
  auto* const values = reinterpret_cast<int32_t*>(scale + cols);
  columns_.scale = scale;
  if (problem_.y.dtype != DType::kInt32) compute_scales(from(kBScale), cols, scale);
  if (row_sums_ != nullptr) {
    columns_.b_zero_point = values;
    compute_b_zero_points(from(kBZeroPoint), cols, values);
  }
  if (correction_factor() == 0) return;
  columns_.a_correction = values + cols;
  if (sums_b_) return;
  const int32_t* const sums = b.packed.column_sums + col;
  const auto x = static_cast<uint32_t>(correction_factor());
  const auto shifts = static_cast<uint32_t>(b.packed.k) * static_cast<uint32_t>(plan_.b_shift);
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t j = 0; j < cols; ++j) {
    const uint32_t sum = static_cast<uint32_t>(sums[j]) - shifts;
    columns_.a_correction[j] = static_cast<int32_t>(sum * x);
  }
}

void ZeroPointCorrection::compute_scales(const Operand& b_scale, int64_t cols, float* scale) const {
  const Quantization& q = problem_.quantization;
  const auto scale_of = [&](float of_b) {
    return q.has_row_scales ? of_b : q.scale(q.a_scale, of_b, q.y_scale);
  };
  if (b_scale.col_stride == 0) {
    std::fill_n(scale, cols, scale_of(read_scale(b_scale, 0, 0)));
    return;
  }
  int64_t j = 0;
  if (b_scale.col_stride == 1 && b_scale.dtype == DType::kFloat32 && !q.has_row_scales) {
    // The same order of operations as Quantization::scale(): change both or neither.
    const v128_t a_scale = wasm_f32x4_splat(q.a_scale), y_scale = wasm_f32x4_splat(q.y_scale);
    for (; j + 4 <= cols; j += 4) {
      const v128_t product =
          wasm_f32x4_mul(a_scale, wasm_v128_load(b_scale.base + j * int64_t{sizeof(float)}));
      wasm_v128_store(scale + j, q.quantizes_y ? wasm_f32x4_div(product, y_scale) : product);
    }
  }
  for (; j < cols; ++j) scale[j] = scale_of(read_scale(b_scale, 0, j));
}

void ZeroPointCorrection::compute_b_zero_points(const Operand& b_zero_point, int64_t cols,
                                                int32_t* values) const {
  const int offset = int8_offset(b_zero_point.dtype), b_shift = keeps_a_ ? plan_.b_shift : 0;
  const auto value_of = [&](int64_t col) {
    return read_zero_point(b_zero_point, 0, col) - offset - b_shift;
  };
  if (b_zero_point.col_stride == 0) {
    std::fill_n(values, cols, value_of(0));
    return;
  }
  int64_t j = 0;
  if (b_zero_point.col_stride == 1) {
    const v128_t zero = wasm_i8x16_splat(static_cast<int8_t>(offset)),
                 shift = wasm_i16x8_splat(static_cast<int16_t>(b_shift));
    for (; j + 8 <= cols; j += 8) {
      // As int8: flipping the highest bit of a uint8 subtracts 128.
      const v128_t bytes = wasm_v128_xor(wasm_v128_load64_zero(b_zero_point.base + j), zero);
      const v128_t shifted = wasm_i16x8_sub(wasm_i16x8_extend_low_i8x16(bytes), shift);
      wasm_v128_store(values + j, wasm_i32x4_extend_low_i16x8(shifted));
      wasm_v128_store(values + j + 4, wasm_i32x4_extend_high_i16x8(shifted));
    }
  }
  for (; j < cols; ++j) values[j] = value_of(j);
}

}  // namespace wgemm
