// float64 on vectors of two.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// B in panels of 8 columns, or in place by rows; and in place by columns.
void f64_2x8_simd128(const Strip& strip);
void f64_2x8_simd128_colmajor(const Strip& strip);

// In builds with relaxed SIMD only. Beyond two rows by halves of panels.
void f64_6x8_relaxed(const Strip& strip);
void f64_2x8_relaxed_colmajor(const Strip& strip);
// One row by B in place by rows, as long streams, summed in an order of its own; and in the other
// builds.
void f64_gemv_1x8_relaxed_axpy(const Strip& strip);
void f64_gemv_1x8_simd128_axpy(const Strip& strip);

}  // namespace wgemm
