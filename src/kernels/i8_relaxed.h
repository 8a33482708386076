// 8-bit micro-kernels with the relaxed dot products of WebAssembly. They compute four products per
// 32-bit lane and instruction, twice as many as i8_simd128.h, and the same exact sums.
//
// The engine reads the second operand as signed or as unsigned. It sums the products of a lane in
// two pairs, and may compute a pair exactly, saturate it to 16 bits or wrap it. How it reads an
// operand is fixed. How pairs overflow is not fixed: V8 on ARM wraps them in baseline code and is
// exact in optimized code, so results change when the engine replaces a function's code. Therefore
// every pair fits in 16 bits in each kernel here except `unsigned`, which checks the engine in each
// call. docs/design/int8-dot-products.md has the proof.
//
// A keeps its zero point, since A minus its zero point needs 9 bits. The epilogue corrects for it
// by the sums of B's columns.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

inline constexpr PanelLayout kI8QuadsOfA = panel_of<int8_t>(4, 4),
                             kI8QuadsOfB = panel_of<int8_t>(8, 4),
                             kI8QuadsOfARow = panel_of<int8_t>(1, 4);

// A is int8; the second operand is B minus its smallest element, at most 127. Any engine.
void i8_4x8c4_relaxed_dot_7bit(const Strip& strip);
// A is int8; the second operand is B as int8 from -127 to 127. Signed engines.
void i8_4x16c4_relaxed_dot_signed(const Strip& strip);
// A is int8; the second operand is B as any int8. Two dot products, of the even and of the odd
// bytes of B, have one product per pair. Signed engines.
void i8_4x16c4_relaxed_dot_signed_masked(const Strip& strip);
// B is int8; the second operand is A as uint8. One dot product if a check at the start of the call
// finds pairs exact, else two masked ones. Unsigned engines.
void i8_4x8c4_relaxed_dot_unsigned(const Strip& strip);
// The same for joined vectors.
void i8_4x16c4_relaxed_dot_unsigned(const Strip& strip);

// GEMV. B is in pairs of k, as packed weights are stored, and the kernel joins two pairs to a quad.
// B is the first operand and A the second, also on signed engines: these read both as int8. Masked
// dot products mask A. The kernel cannot shift B, so `signed` needs a B without -128.
void i8_1x32c4_relaxed_dot_signed(const Strip& strip);
void i8_1x32c4_relaxed_dot_signed_masked(const Strip& strip);
void i8_1x32c4_relaxed_dot_unsigned(const Strip& strip);

}  // namespace wgemm
