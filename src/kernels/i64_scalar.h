// int64 and uint64, which are the same modulo 2^64, by 64-bit scalars. They serve GEMV, skinny
// GEMM, and a B of fewer than four columns. Engines compile i64x2.mul to eight instructions or
// more, since AVX2 and NEON do not multiply vectors of 64 bits.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// B in micro-panels of 4 columns.
void i64_2x4_portable(const Strip& strip);
// B unpacked. These read only the columns of the strip, of any number.
void i64_2x1_portable_rowmajor(const Strip& strip);
void i64_2x1_portable_colmajor(const Strip& strip);

// The columns of one micro-panel, of which `col` is the first.
void i64_panel(const Strip& strip, const void* panel, size_t col);

}  // namespace wgemm
