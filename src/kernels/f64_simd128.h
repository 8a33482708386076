// float64 on vectors of two.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// A unpacked. B in micro-panels of 8 columns, or unpacked and row-major.
void f64_2x8_simd128(const Strip& strip);

// In builds with relaxed SIMD only. Tiles of more than two rows use loops/half_panels.h.
void f64_6x8_relaxed(const Strip& strip);
// The same by whole micro-panels, for processors with 32 registers.
void f64_5x8_relaxed(const Strip& strip);
// B unpacked and column-major. The first is in builds with relaxed SIMD, the second in the others.
void f64_2x8_relaxed_colmajor(const Strip& strip);
void f64_2x8_simd128_colmajor(const Strip& strip);
// GEMV with few columns, unpacked and column-major, by dot products. In the same builds.
void f64_gemv_1x1_relaxed_dot(const Strip& strip);
void f64_gemv_1x1_simd128_dot(const Strip& strip);
// Axpy kernels for row-major B, which do not sum in ascending k. In the same builds.
void f64_gemv_1x8_relaxed_axpy(const Strip& strip);
void f64_gemv_1x8_simd128_axpy(const Strip& strip);

}  // namespace wgemm
