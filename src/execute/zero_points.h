// Zero-point correction. Quantized operands stand for A - za and B - zb, with one zero point za and
// one zb per column. Kernels multiply A + u and B + v instead, for constants u and v that suit
// their instructions. With x = za + u and y = zb + v, the zero points of what they multiply:
//
//   sum (A - za) (B - zb) = sum (A + u) (B + v) - x * sum (B + v) - y * sum (A - za)
//
// The sums run over k, modulo 2^32. The first is the accumulator. The second belongs to a column.
// It comes from packed weights, or is computed as B is packed. x is 0 unless the kernel multiplies
// bytes of A. The third belongs to a row. It is computed as A is packed. y is 0 if B is packed
// without its zero points. Packed weights keep them, so they serve calls with any zero points.
//
// Zero points of A may differ between rows. Then x does, too, and the sums over rows are
// sums of A + u, less K * x. Kernels that do not multiply bytes of A have each row's zero point
// subtracted after A is packed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "execute/quantized_values.h"
#include "plan/plan.h"
#include "problem/problem.h"

namespace wgemm {

class ZeroPointCorrection {
 public:
  // `columns` has plan.columns_bytes, `row_sums` plan.sums_bytes. The caller owns both.
  ZeroPointCorrection(const Problem& problem, const Plan& plan, std::byte* columns,
                      std::byte* row_sums)
      : problem_(problem),
        plan_(plan),
        keeps_a_(plan.kernel != nullptr && plan.kernel->a.element_bytes == 1),
        has_row_x_(keeps_a_ && problem.quantization.has_row_zero_points),
        sums_b_(keeps_a_ && (!problem.b.is_packed() || plan.packs_columns())),
        columns_memory_(columns),
        row_sums_((problem.quantization.shifts_b || plan.b_shift != 0) && plan.sums_bytes != 0 &&
                          !plan.packs_columns()
                      ? reinterpret_cast<int32_t*>(row_sums)
                      : nullptr),
        row_x_(problem.quantization.has_row_zero_points && plan.kernel != nullptr
                   ? reinterpret_cast<int32_t*>(row_sums) + plan.mc
                   : nullptr) {}

  // Computes columns() for the columns from `col` on, of the product at `at` with this B.
  [[gnu::always_inline]] void begin_columns(const ParamOffsets& at, const BSource& b, int64_t col,
                                            int64_t cols) {
    if (plan_.columns_bytes != 0) compute_columns(at, b, col, cols);
  }
  // Clears the sums of `rows` rows from `row` on.
  [[gnu::always_inline]] void begin_rows(const ParamOffsets& at, int64_t row, int64_t rows) {
    if (row_sums_ != nullptr) clear_row_sums(rows);
    if (row_x_ != nullptr) read_row_x(at, row, rows);
  }
  // Completes the sums of rows, after the last block of K.
  [[gnu::always_inline]] void end_rows(int64_t rows) {
    if (has_row_x_ && row_sums_ != nullptr) subtract_from_sums(row_x_, rows, problem_.k, row_sums_);
  }
  // Packing subtracts this from elements of A: -u, or za.
  int packed_a_offset() const;
  // Subtracts zero points of rows from a block of A that is packed, unless the kernel multiplies
  // bytes. Adds the sums of the block to the sums of its rows.
  void add_packed_a(std::byte* a_panels, int64_t rows, int64_t depth);
  // Adds x * sum (B + v) of one packed block of B to the column corrections. `first`: they are 0
  // before.
  void add_packed_b(const std::byte* b_panels, int64_t cols, int64_t depth, bool first);
  // Clears the column corrections that add_packed_b() adds to, if K is 0.
  [[gnu::always_inline]] void clear_columns(int64_t cols) {
    if (sums_b_ && columns_.a_correction != nullptr) add_packed_b(nullptr, cols, 0, true);
  }
  // Subtracts the terms of this block of K from sums that are carried on to further K. The column
  // sums of packed weights are sums over all K, so the epilogue subtracts their term. `stride`:
  // elements from row to row of `acc`.
  void subtract_terms(int64_t rows, int64_t cols, uint32_t* acc, int64_t stride) const;

  const QuantizedColumns& columns() const { return columns_; }
  // sum (A - za) of each row; null if y is 0 in all columns.
  const int32_t* row_sums() const { return row_sums_; }
  // x of each row; null if it is the same in all rows.
  const int32_t* row_x() const { return has_row_x_ ? row_x_ : nullptr; }

 private:
  // x of the identity above, if it is the same in all rows.
  int a_zero_point() const;
  // The factor of the sums of columns in QuantizedColumns::a_correction.
  int correction_factor() const { return has_row_x_ ? 1 : a_zero_point(); }
  void clear_row_sums(int64_t rows);
  void read_row_x(const ParamOffsets& at, int64_t row, int64_t rows);
  void compute_columns(const ParamOffsets& at, const BSource& b, int64_t col, int64_t cols);
  void compute_scales(const Operand& b_scale, int64_t cols, float* scale) const;
  void compute_b_zero_points(const Operand& b_zero_point, int64_t cols, int32_t* values) const;

  const Problem& problem_;
  const Plan& plan_;
  const bool keeps_a_;    // the kernel multiplies A as bytes, with its zero point
  const bool has_row_x_;  // x differs between rows
  const bool sums_b_;     // the sums of columns are computed as B is packed
  std::byte* const columns_memory_;
  int32_t* const row_sums_;
  int32_t* const row_x_;  // za + u of each row, if zero points of A differ between rows; else null
  QuantizedColumns columns_;
};

}  // namespace wgemm
