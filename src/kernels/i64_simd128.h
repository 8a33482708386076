// int64 and uint64, which are the same modulo 2^64. With x = xl + 2^32 xh and 32-bit halves, a
// product is
//   x * y = xl * yl + 2^32 * (xl * yh + xh * yl)   modulo 2^64,
// and the sum in brackets is needed modulo 2^32 only. Winograd, "A New Algorithm for Inner Product"
// (1968), computes two steps of k with one product, exact modulo 2^64:
//   a0 * b0 + a1 * b1 = (a0 + b1) * (a1 + b0) - a0 * a1 - b0 * b1
// The two subtracted products depend on a row of A alone and on a column of B alone, so each is
// summed once. This is faster than one i64x2.mul per step, and faster than 64-bit scalars alone
// (docs/lab has figures, area "integers").
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// Writes a panel header: per column, minus the sum of b0 * b1 over all pairs of steps of k.
void i64_fill_header(void* header, int64_t k);
inline constexpr PanelLayout kI64PanelOfB = {
    .width = 4, .kr = 1, .header = 4, .element_bytes = 8, .fill_header = i64_fill_header};

// A tile has two rows by vectors and one by scalars, since processors have units for each.
void i64_3x4_simd128_winograd(const Strip& strip);

// By i64x2.mul. B unpacked and row-major.
void i64_gemv_1x4_simd128_axpy(const Strip& strip);

}  // namespace wgemm
