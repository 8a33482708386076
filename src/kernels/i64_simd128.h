// int64 and uint64, which are the same modulo 2^64. With x = xl + 2^32 xh, of 32 bits each, a
// product is
//   x * y = xl * yl + 2^32 * (xl * yh + xh * yl)   modulo 2^64,
// of which the sum in brackets is needed modulo 2^32 only. And of two steps of k one product takes
// both, by Winograd, "A New Algorithm for Inner Product" (1968), which is exact modulo 2^64:
//   a0 * b0 + a1 * b1 = (a0 + b1) * (a1 + b0) - a0 * a1 - b0 * b1,
// where what is taken off belongs to a row of A or a column of B alone. It is faster than i64x2.mul
// for each and than 64-bit scalars (CONTRIBUTING.md has figures).
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// Minus the sum of b0 * b1 over each two steps of k, of each column.
void i64_fill_header(void* header, int64_t k);
inline constexpr PanelLayout kI64PanelOfB = {
    .width = 4, .kr = 1, .header = 4, .element_bytes = 8, .fill_header = i64_fill_header};

void i64_2x4_simd128_winograd(const Strip& strip);

// Few rows, for which that does not pay: by i64x2.mul. B as it is stored, or in place by rows; and
// in place by columns.
void i64_2x4_simd128(const Strip& strip);
void i64_2x8_simd128_colmajor(const Strip& strip);

}  // namespace wgemm
