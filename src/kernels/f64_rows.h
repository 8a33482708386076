// The rows of float64 kernels. See kernels.cc.
#pragma once

#include "kernels/f64_simd128.h"
#include "kernels/portable.h"
#include "kernels/rows.h"

namespace wgemm::rows {

// clang-format off: it would give every field a line of its own.
inline constexpr Kernel kF64Rows[] = {
#if WGEMM_RELAXED
    {.name = "f64_gemv_1x8__relaxed_axpy",
     .compute = kF64, .mr = 1, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .b_layout = kRowMajor, .isa = kRelaxed, .strict = false, .axpy = true,
     .m_max = 1, .run = f64_gemv_1x8_relaxed_axpy},
    {.name = "f64_5x8__relaxed_rowmajor",
     .compute = kF64, .mr = 5, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .b_layout = kRowMajor, .isa = kRelaxed, .processor = kArm, .vectors = 32, .strict = false,
     .m_min = 5, .m_max = 0, .m_max_b_in_l1 = kRowsMaxInL1, .m_max_short_rows = 128,
     .run = f64_5x8_relaxed},
    {.name = "f64_6x8__relaxed_rowmajor",
     .compute = kF64, .mr = 6, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .b_layout = kRowMajor, .isa = kRelaxed, .strict = false,
     .m_min = 5, .m_max = 0, .m_max_b_in_l1 = kRowsMaxInL1, .m_max_short_rows = 128,
     .run = f64_6x8_relaxed},
    {.name = "f64_2x8__relaxed_rowmajor",
     .compute = kF64, .mr = 2, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .b_layout = kRowMajor, .isa = kRelaxed, .strict = false,
     .m_max = 4, .m_max_b_in_l1 = kRowsMaxInL1, .m_max_short_rows = 128,
     .run = f64_6x8_relaxed},
    {.name = "f64_gemv_1x1__relaxed_dot",
     .compute = kF64, .mr = 1, .nr = 1, .a = kRowsOf<double>, .b = panel_of<double>(1),
     .b_layout = kColumnMajor, .isa = kRelaxed, .strict = false,
     .m_max = 1, .n_max = 4, .run = f64_gemv_1x1_relaxed_dot},
    {.name = "f64_2x8__relaxed_colmajor",
     .compute = kF64, .mr = 2, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .b_layout = kColumnMajor, .isa = kRelaxed, .strict = false,
     .m_max = 8, .run = f64_2x8_relaxed_colmajor},
    {.name = "f64_5x8__relaxed",
     .compute = kF64, .mr = 5, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .isa = kRelaxed, .processor = kArm, .vectors = 32, .strict = false,
     .m_min = 3, .run = f64_5x8_relaxed},
    {.name = "f64_6x8__relaxed",
     .compute = kF64, .mr = 6, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .isa = kRelaxed, .strict = false,
     .m_min = 4, .run = f64_6x8_relaxed},
    {.name = "f64_2x8__relaxed",
     .compute = kF64, .mr = 2, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .isa = kRelaxed, .strict = false,
     .run = f64_6x8_relaxed},
#else
    {.name = "f64_gemv_1x8__simd128_axpy",
     .compute = kF64, .mr = 1, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .b_layout = kRowMajor, .isa = kSimd128, .strict = false, .axpy = true,
     .m_max = 1, .run = f64_gemv_1x8_simd128_axpy},
    {.name = "f64_gemv_1x1__simd128_dot",
     .compute = kF64, .mr = 1, .nr = 1, .a = kRowsOf<double>, .b = panel_of<double>(1),
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 1, .n_max = 4, .run = f64_gemv_1x1_simd128_dot},
#endif
    {.name = "f64_2x8__simd128_rowmajor",
     .compute = kF64, .mr = 2, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .b_layout = kRowMajor, .isa = kSimd128,
     .m_max = 4, .m_max_b_in_l1 = kRowsMaxInL1, .run = f64_2x8_simd128},
#if !WGEMM_RELAXED
    {.name = "f64_2x8__simd128_colmajor",
     .compute = kF64, .mr = 2, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .b_layout = kColumnMajor, .isa = kSimd128,
     .m_max = 8, .run = f64_2x8_simd128_colmajor},
#endif
    {.name = "f64_2x8__simd128",
     .compute = kF64, .mr = 2, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .isa = kSimd128,
     .run = f64_2x8_simd128},
#if !defined(__wasm__)
    {.name = "f64_4x8__portable",
     .compute = kF64, .mr = 4, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .isa = kPortable,
     .run = portable_kernel<double, 4, 8, 1, true>},
#endif
};
// clang-format on

}  // namespace wgemm::rows
