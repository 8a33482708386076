// The epilogue: turns accumulators into Y. Applies alpha, beta * C, zero points, scales and bounds,
// rounds, and converts to the type of Y. Only the epilogue writes Y, except for plans that are
// direct.
#pragma once

#include "execute/zero_points.h"
#include "problem/problem.h"

namespace wgemm {

// A block of accumulators.
struct Accumulators {
  // They have the problem's accumulator type. Null: there is no product (K = 0), and alpha does not
  // apply.
  const void* data = nullptr;
  int64_t stride = 0;  // elements from row to row
  // For quantized operands only.
  QuantizedColumns columns;
  const int32_t* row_sums = nullptr;  // ZeroPointCorrection::row_sums()
  QuantizedRows rows;
};

// Writes a block of Y of `rows` by `cols`. With canonical_nan, every NaN that it writes is the
// canonical one of its type. Reads c only if the problem's epilogue has it.
void apply_epilogue(const Problem& problem, bool canonical_nan, int64_t rows, int64_t cols,
                    const Accumulators& acc, const ConstBlock& c, const Block& y);

// The same for float or double as T, which C and Y have, too, without bounds.
template <typename T>
void finish_plain(const Problem& problem, int64_t rows, int64_t cols, const Accumulators& acc,
                  const ConstBlock& c, const Block& y);

}  // namespace wgemm
