// float64 on vectors of two.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// A unpacked. B in micro-panels of 8 columns, or unpacked: row-major, and column-major.
void f64_2x8_simd128(const Strip& strip);
void f64_2x8_simd128_colmajor(const Strip& strip);

// In builds with relaxed SIMD only. Tiles of more than two rows go by half micro-panels.
void f64_6x8_relaxed(const Strip& strip);
void f64_2x8_relaxed_colmajor(const Strip& strip);
// GEMV by row-major B, summed in its own order: in builds with relaxed SIMD, and in the others.
void f64_gemv_1x8_relaxed_axpy(const Strip& strip);
void f64_gemv_1x8_simd128_axpy(const Strip& strip);

}  // namespace wgemm
