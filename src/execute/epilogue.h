// What becomes of accumulators: alpha, beta * C, zero points, scales, rounding, the output's type.
// The only place that writes Y, but for kernels that a plan calls direct.
#pragma once

#include "problem/problem.h"

namespace wgemm {

// What quantized operands need of each column of a block: its factor, its zero point of B as that
// was multiplied, and what its sums have too much where A was multiplied with its zero point on.
struct Columns {
  float* scale = nullptr;
  int32_t* zero_point = nullptr;
  int32_t* excess = nullptr;
};

// How kernels that multiply bytes (Kernel::dot) were given the operands; else as it is here: A less
// its zero point, B as int8.
struct ByteForm {
  int a_zero_point = 0;                  // of A in that form
  int b_shift = 0;                       // taken off B as int8
  const int32_t* column_sums = nullptr;  // of B as int8, over k
  int64_t k = 0;
};

// Fills `memory`, of column_bytes(cols), for the columns from `col` on.
Columns make_columns(const Quantization& q, const ByteForm& form, int64_t col, int64_t cols,
                     void* memory);

// A block of sums of products.
struct Accumulators {
  const void* data =
      nullptr;  // of the problem's accumulator type; null where there is no product (K = 0), which
                // is not the same as a product of 0: alpha does not touch it
  int64_t stride = 0;                 // elements from row to row
  Columns columns;                    // quantized operands only, as the next
  const int32_t* row_sums = nullptr;  // sums over k of A less its zero point, one a row; null: no
                                      // zero point of B is to be taken off
};

// Writes a block of Y of `rows` by `cols`; with canonical_nan no other NaN than the canonical one
// of its type. c is read only if the problem's epilogue has it.
void apply_epilogue(const Problem& problem, bool canonical_nan, int64_t rows, int64_t cols,
                    const Accumulators& acc, const ConstBlock& c, const Block& y);

}  // namespace wgemm
