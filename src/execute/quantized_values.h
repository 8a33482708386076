// Values per column and per row of a block of quantized operands. Few models have values that
// differ between rows, so the code for these is small instead of fast.
#pragma once

#include "problem/panel.h"
#include "problem/problem.h"

namespace wgemm {

// Values per column of a block of quantized operands, in memory of column_bytes().
struct QuantizedColumns {
  float* scale = nullptr;           // the scales of B if there are QuantizedRows
  int32_t* b_zero_point = nullptr;  // y; null: 0 in all columns
  // x * sum (B + v), or sum (B + v) if x differs between rows; null: x is 0.
  int32_t* a_correction = nullptr;
};

// Values per row of a block, if they differ between rows.
struct QuantizedRows {
  Operand a_scale, y_scale, y_zero_point;  // rows x 1; base null: absent
  const int32_t* a_zero_point = nullptr;   // x; null: the same in all rows
};

// Writes the zero points of `rows` rows of A from `row` on, less `offset`. The zero points of the
// product begin `first` elements after the first one.
void read_zero_points(const Operand& zero_points, int64_t first, int64_t row, int64_t rows,
                      int offset, int32_t* to);

// Subtracts k times the zero point of each row from its sum.
void subtract_from_sums(const int32_t* zero_points, int64_t rows, int64_t k, int32_t* sums);

// Subtracts zero points of `rows` rows from panels of int16, and not from their padding.
void subtract_from_panels(const PanelLayout& layout, const int32_t* zero_points, int64_t rows,
                          int64_t depth, std::byte* panels);

// Replaces the scales and corrections of `cols` columns by the values for row `row`, which it
// writes to `scale` and `corrections`.
void apply_row_values(const Quantization& q, const QuantizedRows& rows, int64_t row, int64_t cols,
                      QuantizedColumns* columns, float* scale, int32_t* corrections);

// Replaces every NaN by the canonical one. Only a float32 bias brings NaN.
void make_nan_canonical(float* y, int64_t count);

}  // namespace wgemm
