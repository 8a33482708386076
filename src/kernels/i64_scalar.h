// int64 and uint64, which are the same modulo 2^64, by 64-bit scalars: for GEMV, and for
// products with few rows or columns. Processors do not multiply vectors of 64 bits, so engines
// compile i64x2.mul to eight instructions or more.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// B in micro-panels of 4 columns.
void i64_2x4_portable(const Strip& strip);
// B unpacked. These read any number of columns, and no other.
void i64_2x1_portable_rowmajor(const Strip& strip);
void i64_2x1_portable_colmajor(const Strip& strip);

// The columns of one micro-panel, of which `col` is the first.
void i64_panel(const Strip& strip, const void* panel, size_t col);

}  // namespace wgemm
