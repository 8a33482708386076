// float32 micro-kernels of our own, with B in float32 or in 16 bits, which are widened as they are
// loaded.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// As packed weights are stored: see storage_layout().
inline constexpr PanelLayout kF32PanelOfB = panel_of<float>(8, 1, 8),
                             kHalfPanelOfB = panel_of<uint16_t>(8);

// A in panels.
void f32_4x8_simd128_packed_a(const Strip& strip);
// Few rows. B in panels, or in place by rows.
void f32_4x8_simd128(const Strip& strip);
void f32_f16_2x8_simd128(const Strip& strip);
void f32_f16_2x8_simd128_finite(const Strip& strip);
void f32_bf16_4x8_simd128(const Strip& strip);
// B in place by columns.
void f32_4x8_simd128_colmajor(const Strip& strip);
void f32_f16_gemv_1x8_simd128_colmajor(const Strip& strip);
void f32_bf16_gemv_1x8_simd128_colmajor(const Strip& strip);

#if WGEMM_RELAXED
void f32_6x8_relaxed(const Strip& strip);
void f32_f16_2x8_relaxed(const Strip& strip);
void f32_f16_2x8_relaxed_finite(const Strip& strip);
void f32_bf16_4x8_relaxed(const Strip& strip);
// Sums in an order of their own. B in place by columns; and one row, by rows, as long streams.
void f32_4x8_relaxed_dot(const Strip& strip);
void f32_f16_gemv_1x8_relaxed_dot(const Strip& strip);
void f32_bf16_1x8_relaxed_dot(const Strip& strip);
void f32_gemv_1x8_relaxed_axpy(const Strip& strip);
void f32_bf16_gemv_1x8_relaxed_axpy(const Strip& strip);
#else
void f32_4x8_simd128_dot(const Strip& strip);
void f32_f16_gemv_1x8_simd128_dot(const Strip& strip);
void f32_bf16_1x8_simd128_dot(const Strip& strip);
void f32_gemv_1x8_simd128_axpy(const Strip& strip);
void f32_bf16_gemv_1x8_simd128_axpy(const Strip& strip);
#endif

}  // namespace wgemm
