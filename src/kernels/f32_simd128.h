// wgemm's own float32 micro-kernels. B is in float32, or in 16 bits, which they widen as they load
// it. Names follow the grammar in kernels.cc. The loops are in loops/.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// Layouts in which packed weights are stored: see storage_layout().
inline constexpr PanelLayout kF32PanelOfB = panel_of<float>(8, 1, 8),
                             kHalfPanelOfB = panel_of<uint16_t>(8);

// A unpacked. B in micro-panels, or unpacked and row-major.
void f32_4x8_simd128(const Strip& strip);
void f32_4x4_simd128_rowmajor(const Strip& strip);  // unpacked only
void f32_f16_2x8_simd128(const Strip& strip);
void f32_f16_2x8_simd128_finite(const Strip& strip);
void f32_bf16_4x8_simd128(const Strip& strip);
// B unpacked and column-major.
void f32_4x8_simd128_colmajor(const Strip& strip);
void f32_f16_gemv_1x8_simd128_colmajor(const Strip& strip);
void f32_bf16_gemv_1x8_simd128_colmajor(const Strip& strip);

#if WGEMM_RELAXED
// A unpacked. B in micro-panels, or unpacked and row-major.
void f32_6x8_relaxed(const Strip& strip);
void f32_f16_2x8_relaxed(const Strip& strip);
void f32_f16_2x8_relaxed_finite(const Strip& strip);
void f32_bf16_4x8_relaxed(const Strip& strip);
// The same, for joined vectors.
void f32_5x16_relaxed(const Strip& strip);
void f32_bf16_4x16_relaxed(const Strip& strip);
// A in micro-panels, for ARM. B as above.
void f32_4x16_relaxed_packed_a(const Strip& strip);
// Dot kernels for column-major B and axpy kernels for row-major B. They do not sum in ascending k,
// so strict results never take them.
void f32_gemv_1x1_relaxed_dot(const Strip& strip);
void f32_4x8_relaxed_dot(const Strip& strip);
void f32_f16_gemv_1x8_relaxed_dot(const Strip& strip);
void f32_bf16_1x8_relaxed_dot(const Strip& strip);
void f32_gemv_1x8_relaxed_axpy(const Strip& strip);
void f32_bf16_gemv_1x8_relaxed_axpy(const Strip& strip);
#else
void f32_gemv_1x1_simd128_dot(const Strip& strip);
void f32_4x8_simd128_dot(const Strip& strip);
void f32_f16_gemv_1x8_simd128_dot(const Strip& strip);
void f32_bf16_1x8_simd128_dot(const Strip& strip);
void f32_gemv_1x8_simd128_axpy(const Strip& strip);
void f32_bf16_gemv_1x8_simd128_axpy(const Strip& strip);
#endif

}  // namespace wgemm
