// int32 and uint32, which are the same modulo 2^32, on vectors of four.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// A in panels of 4 rows, B in panels of 8 columns.
void i32_4x8_simd128_packed_a(const Strip& strip);
// Few rows. B in panels of 8 columns, or in place by rows; one row by rows as long streams; and in
// place by columns.
void i32_4x8_simd128(const Strip& strip);
void i32_gemv_1x8_simd128_axpy(const Strip& strip);
void i32_4x8_simd128_dot(const Strip& strip);

}  // namespace wgemm
