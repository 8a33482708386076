// 8-bit micro-kernels with i32x4.dot_i16x8_s: pairs of elements along k, widened to int16 and
// accumulated in int32. Nothing in them can saturate. A minus its zero point is from -255 to 255,
// and B is from -128 to 127. So a pair sums to 65,280 at most, and sums wrap.
#pragma once

#include "kernels/kernel.h"
#include "problem/prepacked.h"

namespace wgemm {

// A minus its zero point needs 9 bits, so A is packed as int16. B is in bytes, as packed weights
// are stored, or was widened to int16 as it was packed.
constexpr PanelLayout i8_panel_of_a(int rows) { return panel_of<int16_t>(rows, 2); }
inline constexpr PanelLayout kI8WidePanelOfB = panel_of<int16_t>(8, 2);

// Narrow B: one column per micro-panel, in int16 and without its zero point. A is unpacked rows of
// bytes. Both are contiguous along k, so A needs no packing, and no column of a tile is wasted.
inline constexpr PanelLayout kI8ColumnsOfB = panel_of<int16_t>(1, 8);
void i8_i16_4x2c8_simd128(const Strip& strip);
// B in int16, for GEMM.
void i8_i16_4x8c2_simd128(const Strip& strip);
// The same for joined vectors, in builds with relaxed SIMD only.
void i8_i16_4x16c2_simd128(const Strip& strip);
// B in bytes, which the kernel widens, for skinny GEMM and GEMV. Memory bandwidth limits these. The
// last two read several micro-panels at once, since several streams are faster than one.
void i8_4x8c2_simd128(const Strip& strip);
void i8_2x16c2_simd128(const Strip& strip);
void i8_1x32c2_simd128(const Strip& strip);

}  // namespace wgemm
