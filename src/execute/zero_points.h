// Zero-point correction. Quantized operands stand for A - za and B - zb, with one zero point za and
// one zb per column. Kernels multiply A + u and B + v instead, for constants u and v that suit
// their instructions. With x = za + u and y = zb + v, the zero points of what they multiply:
//
//   sum (A - za) (B - zb) = sum (A + u) (B + v) - x * sum (B + v) - y * sum (A - za)
//
// The sums run over k, modulo 2^32. The first is the accumulator. The second belongs to a column:
// it comes from packed weights, or is computed as B is packed. x is 0 unless the kernel multiplies
// bytes of A. The third belongs to a row: it is computed as A is packed. y is 0 if B is packed
// without its zero points.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/plan.h"
#include "problem/problem.h"

namespace wgemm {

// Values per column of a block of quantized operands, in memory of column_bytes().
struct QuantizedColumns {
  float* scale = nullptr;
  int32_t* b_zero_point = nullptr;  // y; null: 0 in all columns
  int32_t* a_correction = nullptr;  // x * sum (B + v); null: 0 in all columns
};

class ZeroPointCorrection {
 public:
  // `columns` has plan.columns_bytes, `row_sums` plan.sums_bytes. The caller owns both.
  ZeroPointCorrection(const Problem& problem, const Plan& plan, std::byte* columns,
                      std::byte* row_sums)
      : problem_(problem),
        plan_(plan),
        keeps_a_(plan.kernel != nullptr && plan.kernel->a.element_bytes == 1),
        sums_b_(keeps_a_ && (!problem.b.is_packed() || plan.packs_columns())),
        columns_memory_(columns),
        row_sums_((problem.quantization.shifts_b || plan.b_shift != 0) && plan.sums_bytes != 0
                      ? reinterpret_cast<int32_t*>(row_sums)
                      : nullptr) {}

  // Computes columns() for the columns from `col` on.
  void begin_columns(int64_t col, int64_t cols) {
    if (plan_.columns_bytes != 0) compute_columns(col, cols);
  }
  // Clears the sums of `rows` rows.
  void begin_rows(int64_t rows) {
    if (row_sums_ != nullptr) clear_row_sums(rows);
  }
  // What packing subtracts from elements of A: -u, or za.
  int packed_a_offset() const;
  // Adds to the sums of rows those of a block of A that is packed.
  void add_packed_a(const std::byte* a_panels, int64_t rows, int64_t depth);
  // Adds to the corrections of columns, x * sum (B + v), those of a block of B that is packed.
  // `first`: they are 0 before.
  void add_packed_b(const std::byte* b_panels, int64_t cols, int64_t depth, bool first);
  // Subtracts the terms of this block of K from sums that are carried on to further K. The sums of
  // columns of packed weights are those of all K, so the epilogue subtracts their term. `stride`:
  // elements from row to row of `acc`.
  void subtract_terms(int64_t rows, int64_t cols, uint32_t* acc, int64_t stride) const;

  const QuantizedColumns& columns() const { return columns_; }
  // sum (A - za) of each row; null if y is 0 in all columns.
  const int32_t* row_sums() const { return row_sums_; }

 private:
  // x of the identity above.
  int a_zero_point() const;
  void clear_row_sums(int64_t rows);
  void compute_columns(int64_t col, int64_t cols);
  void compute_scales(int64_t col, int64_t cols, float* scale) const;
  void compute_b_zero_points(int64_t col, int64_t cols, int32_t* values) const;

  const Problem& problem_;
  const Plan& plan_;
  const bool keeps_a_;  // the kernel multiplies A as bytes, with its zero point
  const bool sums_b_;   // the sums of columns are computed as B is packed
  std::byte* const columns_memory_;
  int32_t* const row_sums_;
  QuantizedColumns columns_;
};

}  // namespace wgemm
