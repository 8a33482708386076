// int64 and uint64, which are the same modulo 2^64, from 32-bit halves: with x = xl + 2^32 xh,
//   sum of a * b = sum of al * bl + 2^32 * (sum of ah * bl + al * bh)   modulo 2^64,
// where the second sum is needed modulo 2^32 only. So a pair of columns takes one widening multiplication and one of 32 bits, which is
// faster than i64x2.mul and than 64-bit scalars (CONTRIBUTING.md has figures).
#pragma once

#include "kernels/kernel.h"
#include "pack.h"

namespace wgemm {

// A: for each k and row (l, l, h, h, l, l) in 32-bit words, so that one load gives (l, l, h, h), another (h, h, l, l).
// B: for each k and pair of columns (l0, l1, h0, h1).
void i64_pack_a(const PackSource& source, void* panels);
void i64_pack_b(const PackSource& source, void* panels);

inline constexpr PanelLayout kI64PanelOfA = {.width = 2, .kr = 1, .lead = 0, .element_bytes = 24, .arrange = i64_pack_a};
inline constexpr PanelLayout kI64PanelOfB = {.width = 4, .kr = 1, .lead = 0, .element_bytes = 8, .arrange = i64_pack_b};

void i64_2x4_simd128(const Strip& strip);

// Few rows, for which halves do not pay: by i64x2.mul. B as it is stored, or in place by rows; and in place by columns.
void i64_2x4_simd128_mul(const Strip& strip);
void i64_2x8_simd128_mul_columns(const Strip& strip);

}  // namespace wgemm
