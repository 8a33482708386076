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
  return keeps_a_ ? int8_offset(problem_.a.dtype) - plan_.a_shift
                  : problem_.quantization.a_zero_point;
}

void ZeroPointCorrection::clear_row_sums(int64_t rows) { std::fill_n(row_sums_, rows, 0); }

void ZeroPointCorrection::add_packed_a(const std::byte* a_panels, int64_t rows, int64_t depth) {
  if (row_sums_ == nullptr) return;
  if (keeps_a_) {
    sum_quads(a_panels, plan_.kernel->a.width, plan_.a_shift == 0, a_zero_point(), rows, depth,
              row_sums_);
  } else {
    sum_lanes(a_panels, plan_.kernel->a, rows, depth, row_sums_);
  }
}

void ZeroPointCorrection::add_packed_b(const std::byte* b_panels, int64_t cols, int64_t depth,
                                       bool first) {
  if (!sums_b_ || columns_.a_correction == nullptr) return;
  const PanelLayout& layout = plan_.kernel->b;
  const auto x = static_cast<uint32_t>(a_zero_point());
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
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t j = 0; j < cols; ++j) acc[j] -= static_cast<uint32_t>(corrections[j]);
  }
}

void ZeroPointCorrection::compute_columns(int64_t col, int64_t cols) {
  auto* const scale = reinterpret_cast<float*>(columns_memory_);
  auto* const values = reinterpret_cast<int32_t*>(scale + cols);
  columns_.scale = scale;
  compute_scales(col, cols, scale);
  if (row_sums_ != nullptr) {
    columns_.b_zero_point = values;
    compute_b_zero_points(col, cols, values);
  }
  if (a_zero_point() == 0) return;
  columns_.a_correction = values + cols;
  if (sums_b_) return;
  const PrepackedB& packed = problem_.b.packed;
  const auto x = static_cast<uint32_t>(a_zero_point());
  const auto shifts = static_cast<uint32_t>(packed.k) * static_cast<uint32_t>(plan_.b_shift);
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t j = 0; j < cols; ++j) {
    const uint32_t sum = static_cast<uint32_t>(packed.column_sums[col + j]) - shifts;
    columns_.a_correction[j] = static_cast<int32_t>(sum * x);
  }
}

void ZeroPointCorrection::compute_scales(int64_t col, int64_t cols, float* scale) const {
  const Quantization& q = problem_.quantization;
  const ConstBlock from = q.b_scale.block(0, col, 1, cols);
  const auto* const b_scale = reinterpret_cast<const float*>(from.data);
  if (from.col_stride == 0) {
    std::fill_n(scale, cols, q.scale(*b_scale));
    return;
  }
  int64_t j = 0;
  if (from.col_stride == 1) {
    const v128_t a_scale = wasm_f32x4_splat(q.a_scale), y_scale = wasm_f32x4_splat(q.y_scale);
    for (; j + 4 <= cols; j += 4) {
      const v128_t product = wasm_f32x4_mul(a_scale, wasm_v128_load(b_scale + j));
      wasm_v128_store(scale + j, q.quantizes_y ? wasm_f32x4_div(product, y_scale) : product);
    }
  }
  for (; j < cols; ++j) scale[j] = q.scale(b_scale[j * from.col_stride]);
}

void ZeroPointCorrection::compute_b_zero_points(int64_t col, int64_t cols, int32_t* values) const {
  const Quantization& q = problem_.quantization;
  const Operand& from = q.b_zero_point;
  const int b_shift = keeps_a_ ? plan_.b_shift : 0;
  if (from.col_stride == 0) {
    std::fill_n(values, cols, q.b_zero_point_at(0) - b_shift);
    return;
  }
  int64_t j = 0;
  if (from.col_stride == 1) {
    const std::byte* const row = from.base + col;
    const v128_t zero = wasm_i8x16_splat(static_cast<int8_t>(int8_offset(from.dtype))),
                 shift = wasm_i16x8_splat(static_cast<int16_t>(b_shift));
    for (; j + 8 <= cols; j += 8) {
      // As int8: flipping the highest bit of a uint8 subtracts 128.
      const v128_t bytes = wasm_v128_xor(wasm_v128_load64_zero(row + j), zero);
      const v128_t shifted = wasm_i16x8_sub(wasm_i16x8_extend_low_i8x16(bytes), shift);
      wasm_v128_store(values + j, wasm_i32x4_extend_low_i16x8(shifted));
      wasm_v128_store(values + j + 4, wasm_i32x4_extend_high_i16x8(shifted));
    }
  }
  for (; j < cols; ++j) values[j] = q.b_zero_point_at(col + j) - b_shift;
}

}  // namespace wgemm
