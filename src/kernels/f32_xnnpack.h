// float32 micro-kernels of XNNPACK, behind the contract of kernel.h. XNNPACK's micro-panels start
// with a bias. Here it is the panel header, which is 0.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// These pass some strips to our kernels: strips that add to earlier sums, and strips of one or two
// rows, for which ours are faster. In the relaxed build ours also compute strips of four or five
// rows, for which they are as fast.
void f32_4x8_simd128_xnnpack_loadsplat(const Strip& strip);
void f32_4x8_simd128_xnnpack_splat(const Strip& strip);

// In builds with relaxed SIMD only.
void f32_6x8_relaxed_xnnpack_loadsplat(const Strip& strip);

}  // namespace wgemm
