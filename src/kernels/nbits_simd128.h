// Micro-kernels of MatMulNBits. They read the micro-panels of problem/nbits.h, of any format, and
// their accumulators are float32.
#pragma once

#include "kernels/kernel.h"
#include "problem/prepacked.h"

namespace wgemm {

// A is a row of float32.
void f32_nbits_1x8_simd128(const Strip& strip);
// A is rows of int8 with scales. The sums of a block of K are exact, and the scaled sums are added
// in ascending order: every build has the same bits.
void f32_nbits_4x8c4_simd128_quantized_a(const Strip& strip);

#if WGEMM_RELAXED
void f32_nbits_1x8_relaxed(const Strip& strip);
// By relaxed dot products. The second operand is a nibble, which always has less than 7 bits. So
// the sums are exact in every engine.
void f32_nbits_4x8c4_relaxed_quantized_a(const Strip& strip);
#endif

}  // namespace wgemm
