// float64 on vectors of two.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

void f64_2x8_simd128(const Strip& strip);
void f64_2x8_relaxed(const Strip& strip);  // in builds with relaxed SIMD only

}  // namespace wgemm
