// What becomes of accumulators: alpha, beta * C, the output's type. The only place that writes Y, but for kernels that a plan calls
// direct.
#pragma once

#include "problem.h"

namespace wgemm {

// Writes a block of Y of `rows` by `cols`. acc: accumulators of the problem's compute type, rows acc_stride elements apart; null where
// there is no product (K = 0), which is not the same as a product of 0: alpha does not touch it. c is read only if e.has_c.
void apply_epilogue(const Epilogue& e, DType y_type, int64_t rows, int64_t cols, const void* acc, int64_t acc_stride, const ConstBlock& c,
                    const Block& y);

}  // namespace wgemm
