// 8-bit micro-kernels by i32x4.dot_i16x8_s: pairs of k, widened to int16, accumulated in int32.
// Nothing in them can saturate: A less its zero point lies from -255 to 255 and B from -128 to 127,
// so a pair sums to 65,280 at the most, and sums wrap.
#pragma once

#include "kernels/kernel.h"
#include "problem/prepacked.h"

namespace wgemm {

// A with its zero point taken off needs 9 bits. B is as it is stored, or widened.
constexpr PanelLayout i8_panel_of_a(int rows) { return panel_of<int16_t>(rows, 2); }
inline constexpr PanelLayout kI8WidePanelOfB = panel_of<int16_t>(8, 2);

// B widened before: for many rows.
void i8_i16_4x8c2_simd128(const Strip& strip);
// B as packed weights are stored, widened in the kernel. With few rows memory is the limit, and
// several panels are read at once: that many streams are faster than one.
void i8_4x8c2_simd128(const Strip& strip);
void i8_3x8c2_simd128(const Strip& strip);
void i8_2x16c2_simd128(const Strip& strip);
void i8_1x32c2_simd128(const Strip& strip);

}  // namespace wgemm
