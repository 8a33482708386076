// 8-bit micro-kernels by relaxed SIMD's dots of quads of k, bytes by bytes: twice the products an instruction of i8_simd128.h, and the very
// same sums. They are exact while the second operand is from 0 to 127: the four products of a quad are two pairs of 2 * 128 * 127 = 32,512
// at the most, and nothing saturates. With its highest bit set an engine may read the second operand as either signed or unsigned, and sums
// of pairs may saturate or wrap; relaxed_dot() tells of the engines that do neither what they read it as.
//
// A's zero point stays on, since A less it would need 9 bits: the epilogue takes it off, by the sums of B's columns.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

inline constexpr PanelLayout kI8QuadsOfA = panel_of<int8_t>(4, 4), kI8QuadsOfB = panel_of<int8_t>(8, 4);

// B less its least element is the second operand: where that has 7 bits, on any engine. A is int8.
void i8_4x8c4_relaxed_7bit(const Strip& strip);
// A as uint8 is the second operand, B the first, both of 8 bits.
void i8_4x8c4_relaxed_unsigned(const Strip& strip);
// Both are int8.
void i8_4x8c4_relaxed_signed(const Strip& strip);

}  // namespace wgemm
