// float32 micro-kernels of our own, with B in float32 or in 16 bits, which are widened as they are
// loaded.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// As packed weights are stored: see storage_layout().
inline constexpr PanelLayout kF32PanelOfB = panel_of<float>(8, 1, 8),
                             kHalfPanelOfB = panel_of<uint16_t>(8);

// A in panels.
void f32_4x8_simd128_panels(const Strip& strip);
// Few rows. B in panels, or in place by rows.
void f32_4x8_simd128(const Strip& strip);
void f32_2x8_simd128_f16(const Strip& strip);
void f32_2x8_simd128_f16_finite(const Strip& strip);
void f32_4x8_simd128_bf16(const Strip& strip);
// B in place by columns.
void f32_4x8_simd128_columns(const Strip& strip);
void f32_1x8_simd128_f16_columns(const Strip& strip);
void f32_1x8_simd128_bf16_columns(const Strip& strip);

#if WGEMM_RELAXED
void f32_6x8_relaxed(const Strip& strip);
void f32_2x8_relaxed_f16(const Strip& strip);
void f32_2x8_relaxed_f16_finite(const Strip& strip);
void f32_4x8_relaxed_bf16(const Strip& strip);
// Sums in an order of their own. B in place by columns; and one row, by rows, as long streams.
void f32_4x8_relaxed_dots(const Strip& strip);
void f32_1x8_relaxed_f16_dots(const Strip& strip);
void f32_1x8_relaxed_bf16_dots(const Strip& strip);
void f32_1x8_relaxed_axpyf(const Strip& strip);
void f32_1x8_relaxed_bf16_axpyf(const Strip& strip);
#else
void f32_4x8_simd128_dots(const Strip& strip);
void f32_1x8_simd128_f16_dots(const Strip& strip);
void f32_1x8_simd128_bf16_dots(const Strip& strip);
void f32_1x8_simd128_axpyf(const Strip& strip);
void f32_1x8_simd128_bf16_axpyf(const Strip& strip);
#endif

}  // namespace wgemm
