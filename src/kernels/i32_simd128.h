// int32 and uint32, which are the same modulo 2^32, on vectors of four.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// B in micro-panels of 8 columns, or unpacked and row-major.
void i32_4x8_simd128(const Strip& strip);
// B unpacked: row-major for the axpy kernel, column-major for the dot kernel.
void i32_gemv_1x8_simd128_axpy(const Strip& strip);
void i32_4x8_simd128_dot(const Strip& strip);

}  // namespace wgemm
