// The rows of float32 kernels that read B of float32. See kernels.cc.
#pragma once

#include "kernels/f32_simd128.h"
#include "kernels/f32_xnnpack.h"
#include "kernels/portable.h"
#include "kernels/rows.h"

namespace wgemm::rows {

// clang-format off: it would give every field a line of its own.
inline constexpr Kernel kF32Rows[] = {
    {.name = "f32_4x4__simd128_rowmajor",
     .compute = kF32, .mr = 4, .nr = 4, .a = kRowsOf<float>, .b = panel_of<float>(4),
     .b_layout = kRowMajor, .isa = kSimd128,
     .m_max = 4, .n_max = 7, .run = f32_4x4_simd128_rowmajor},
#if WGEMM_RELAXED
    {.name = "f32_gemv_1x8__relaxed_axpy",
     .compute = kF32, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kRowMajor, .isa = kRelaxed, .strict = false, .axpy = true,
     .m_max = 1, .run = f32_gemv_1x8_relaxed_axpy},
    {.name = "f32_5x16__relaxed_rowmajor",
     .compute = kF32, .mr = 5, .nr = 16, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kRowMajor, .isa = kRelaxed, .vectors = 32, .strict = false,
     .m_min = 3, .m_max = 15, .n_min = 16, .m_max_b_in_l1 = kRowsMaxInL1, .m_max_short_rows = 128,
     .run = f32_5x16_relaxed},
    {.name = "f32_4x16__relaxed_rowmajor_packed_a",
     .compute = kF32, .mr = 4, .nr = 16, .a = panel_of<float>(4), .b = kF32PanelOfB,
     .b_layout = kRowMajor, .isa = kRelaxed, .processor = kArm, .strict = false,
     .m_min = 3, .m_max = 15, .n_min = 16, .m_max_b_in_l1 = kRowsMaxInL1, .m_max_short_rows = 128,
     .run = f32_4x16_relaxed_packed_a},
    {.name = "f32_6x8__relaxed_rowmajor",
     .compute = kF32, .mr = 6, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kRowMajor, .isa = kRelaxed, .strict = false,
     .m_max = 15, .m_max_b_in_l1 = kRowsMaxInL1, .m_max_short_rows = 128, .run = f32_6x8_relaxed},
    {.name = "f32_gemv_1x1__relaxed_dot",
     .compute = kF32, .mr = 1, .nr = 1, .a = kRowsOf<float>, .b = panel_of<float>(1),
     .b_layout = kColumnMajor, .isa = kRelaxed, .strict = false,
     .m_max = 1, .n_max = 2, .run = f32_gemv_1x1_relaxed_dot},
    {.name = "f32_4x8__relaxed_dot",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kColumnMajor, .isa = kRelaxed, .strict = false,
     .m_max = 4, .run = f32_4x8_relaxed_dot},
    {.name = "f32_5x16__relaxed",
     .compute = kF32, .mr = 5, .nr = 16, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .isa = kRelaxed, .vectors = 32, .strict = false,
     .m_min = 3, .n_min = 16, .run = f32_5x16_relaxed},
    {.name = "f32_4x16__relaxed_packed_a",
     .compute = kF32, .mr = 4, .nr = 16, .a = panel_of<float>(4), .b = kF32PanelOfB,
     .isa = kRelaxed, .processor = kArm, .strict = false,
     .m_min = 3, .n_min = 16, .run = f32_4x16_relaxed_packed_a},
#if WGEMM_XNNPACK
    {.name = "f32_6x8__relaxed_xnnpack_loadsplat",
     .compute = kF32, .mr = 6, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .isa = kRelaxed, .processor = kX86, .strict = false,
     .m_min = 3, .n_min = 8, .run = f32_6x8_relaxed_xnnpack_loadsplat},
#endif
    {.name = "f32_6x8__relaxed",
     .compute = kF32, .mr = 6, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .isa = kRelaxed, .strict = false,
     .run = f32_6x8_relaxed},
#else
    {.name = "f32_gemv_1x8__simd128_axpy",
     .compute = kF32, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kRowMajor, .isa = kSimd128, .strict = false, .axpy = true,
     .m_max = 1, .run = f32_gemv_1x8_simd128_axpy},
#endif
    {.name = "f32_4x8__simd128_rowmajor",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kRowMajor, .isa = kSimd128,
     .m_max = 5, .m_max_b_in_l1 = kRowsMaxInL1, .run = f32_4x8_simd128},
#if !WGEMM_RELAXED
    {.name = "f32_gemv_1x1__simd128_dot",
     .compute = kF32, .mr = 1, .nr = 1, .a = kRowsOf<float>, .b = panel_of<float>(1),
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 1, .n_max = 2, .run = f32_gemv_1x1_simd128_dot},
    {.name = "f32_4x8__simd128_dot",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 4, .run = f32_4x8_simd128_dot},
#endif
    {.name = "f32_4x8__simd128_colmajor",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128,
     .m_max = 4, .run = f32_4x8_simd128_colmajor},
#if !WGEMM_RELAXED || !defined(__wasm__)
#if WGEMM_XNNPACK
    // The relaxed module leaves them out: they would serve strict results only.
    {.name = "f32_4x8__simd128_xnnpack_splat",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .isa = kSimd128, .processor = kArm,
     .m_min = 3, .n_min = 8, .run = f32_4x8_simd128_xnnpack_splat},
    {.name = "f32_4x8__simd128_xnnpack_loadsplat",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .isa = kSimd128, .processor = kX86,
     .m_min = 3, .n_min = 8, .run = f32_4x8_simd128_xnnpack_loadsplat},
#endif
#endif
    {.name = "f32_4x8__simd128",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .isa = kSimd128,
     .run = f32_4x8_simd128},
#if !defined(__wasm__)
    {.name = "f32_4x8__portable",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .isa = kPortable,
     .run = portable_kernel<float, 4, 8, 1, true>},
#endif
};
// clang-format on

}  // namespace wgemm::rows
