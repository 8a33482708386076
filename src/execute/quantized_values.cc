#include "execute/quantized_values.h"

#include <cmath>
#include <limits>

namespace wgemm {

void read_zero_points(const Operand& zero_points, int64_t first, int64_t row, int64_t rows,
                      int offset, int32_t* to) {
  const Operand from = zero_points.at(first);
  for (int64_t i = 0; i < rows; ++i) to[i] = read_zero_point(from, row + i, 0) - offset;
}

void subtract_from_sums(const int32_t* zero_points, int64_t rows, int64_t k, int32_t* sums) {
  for (int64_t i = 0; i < rows; ++i) {
    sums[i] =
        static_cast<int32_t>(static_cast<uint32_t>(sums[i]) -
                             static_cast<uint32_t>(k) * static_cast<uint32_t>(zero_points[i]));
  }
}

void subtract_from_panels(const PanelLayout& layout, const int32_t* zero_points, int64_t rows,
                          int64_t depth, std::byte* panels) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t lane = row % layout.width;
    auto* const panel = reinterpret_cast<int16_t*>(
        panels + static_cast<size_t>(row / layout.width) * panel_bytes(layout, depth));
    for (int64_t k = 0; k < depth; ++k) {
      int16_t& element = panel[(k / layout.kr * layout.width + lane) * layout.kr + k % layout.kr];
      element = static_cast<int16_t>(element - zero_points[row]);
    }
  }
}

void apply_row_values(const Quantization& q, const QuantizedRows& rows, int64_t row, int64_t cols,
                      QuantizedColumns* columns, float* scale, int32_t* corrections) {
  if (q.has_row_scales) {
    const float a_scale = read_scale(rows.a_scale, row, 0),
                y_scale = read_scale(rows.y_scale, row, 0);
    for (int64_t j = 0; j < cols; ++j) scale[j] = q.scale(a_scale, columns->scale[j], y_scale);
    columns->scale = scale;
  }
  if (rows.a_zero_point != nullptr) {
    const auto x = static_cast<uint32_t>(rows.a_zero_point[row]);
    for (int64_t j = 0; j < cols; ++j)
      corrections[j] = static_cast<int32_t>(x * static_cast<uint32_t>(columns->a_correction[j]));
    columns->a_correction = corrections;
  }
}

void make_nan_canonical(float* y, int64_t count) {
  for (int64_t j = 0; j < count; ++j)
    if (std::isnan(y[j])) y[j] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace wgemm
