// Every micro-kernel of the library, one row each. The rows of float32 and float64 are in
// f32_rows.h and f64_rows.h, since cblas.h links them by themselves. The planner takes the first
// row that fits, so among the rows of a type the best comes first, and the last fits every product.
// Native builds end each type in a portable row; wasm builds have portable rows of int64 only.
// Tests, benchmarks, explain() and kernel_info() go through this table.
//
// The loops in loops/ that serve each regime of plan/regime.h:
//   kGemm                     panels.h; for fused float64 half_panels.h, but panels.h on ARM
//   kSkinny, kSkinnyRowMajor  the same; for strips of one or two rows several_panels.h
//   kGemv, kGemvRowMajor      several_panels.h
//   kSkinnyColumnMajor,       dot.h for float32, int32 and B in 16 bits; column_major.h for float64
//     kGemvColumnMajor        and for strict sums of floats; single_dots.h for GEMV of floats with
//                             few columns
//   kGemvAxpy                 axpy.h
// 8-bit kernels have i8.h for every regime. GEMV by relaxed dot products has its loop in
// i8_relaxed.cc, and the kernel for a narrow B has its own in i8_simd128.cc. Except for axpy, int64
// kernels have their own loops in i64_scalar.cc and i64_simd128.cc, and so have XNNPACK's kernels.
//
// docs/design/adding-a-kernel.md has the steps to add a kernel: a function, a row, a benchmark.
//
// The grammar of names, which a test compares with the rows:
//   <types>[_gemv]_<mr>x<nr>[c<kr>]__<isa>[_<B>][_<variant>]
//   types    f32, f64, i32, i64, i8: the type it computes in. B's elements add a second type if it
//            differs: f32_bf16, f32_f16, and i8_i16 for bytes that were widened as B was packed.
//            nbits: weights of MatMulNBits, of any bits
//   gemv     for M = 1 only
//   c<kr>    if a micro-panel holds kr > 1 elements of k together. 1x32c4 reads B in pairs, as
//            packed weights are stored, and joins them
//   isa      portable, simd128, relaxed
//   B        rowmajor, colmajor: unpacked B in that layout; nothing: packed in micro-panels
//            axpy: row-major B by fused axpys; dot: column-major B by dot products
//   variant  packed_a: A in micro-panels as well, for kr = 1
//            quantized_a: A is int8 with scales, and the sums of a block of K are exact
//            finite: for weights without infinities and NaN
//            winograd: by Winograd's inner product, see i64_simd128.h
//            dot_unsigned, dot_signed, dot_signed_masked, dot_7bit: see i8_relaxed.h
//            xnnpack_splat, xnnpack_loadsplat: a kernel of XNNPACK
//
// With WGEMM_AVX2 the loops of panels.h and axpy.h take vectors of 32 bytes for float32 and
// float64. Their tiles are twice as wide over the same micro-panels, under the same names.
//
// A function has the name of its row, with one underscore instead of two, since C++ reserves
// identifiers with two. If it serves several rows, its name states its full tile and packed B.
#include <algorithm>

#include "kernels/f32_rows.h"
#include "kernels/f32_simd128.h"
#include "kernels/f64_rows.h"
#include "kernels/i32_simd128.h"
#include "kernels/i64_scalar.h"
#include "kernels/i64_simd128.h"
#include "kernels/i8_relaxed.h"
#include "kernels/i8_simd128.h"
#include "kernels/kernel.h"
#include "kernels/nbits_simd128.h"
#include "kernels/portable.h"
#include "kernels/rows.h"

namespace wgemm {
namespace {

using namespace rows;

// clang-format off: it would give every field a line of its own.
// Rows for weights of MatMulNBits, and for B of 16 bits.
constexpr Kernel kOtherF32Rows[] = {
#if WGEMM_RELAXED
    {.name = "f32_nbits_4x8c4__relaxed_quantized_a",
     .compute = kF32, .mr = 4, .nr = 8, .kr = 4, .a = kRowsOf<int8_t>, .b = kNBitsLayout,
     .isa = kRelaxed, .dot = Dot::kSevenBits, .codes = ReadsCodes::kByBytes,
     .run = f32_nbits_4x8c4_relaxed_quantized_a},
    {.name = "f32_nbits_1x8__relaxed",
     .compute = kF32, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kNBitsLayout,
     .isa = kRelaxed, .strict = false, .codes = ReadsCodes::kByFloats,
     .m_max = 3, .run = f32_nbits_1x8_relaxed},
    {.name = "f32_bf16_4x16__relaxed",
     .compute = kF32, .b_type = kBF16, .mr = 4, .nr = 16, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .isa = kRelaxed, .vectors = 32, .strict = false,
     .m_min = 3, .m_max = 48, .n_min = 16, .run = f32_bf16_4x16_relaxed},
    {.name = "f32_bf16_4x8__relaxed",
     .compute = kF32, .b_type = kBF16, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .isa = kRelaxed, .strict = false,
     .m_max = 48, .run = f32_bf16_4x8_relaxed},
    {.name = "f32_bf16_gemv_1x8__relaxed_axpy",
     .compute = kF32, .b_type = kBF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kRowMajor, .isa = kRelaxed, .strict = false, .axpy = true,
     .m_max = 1, .run = f32_bf16_gemv_1x8_relaxed_axpy},
    {.name = "f32_bf16_4x8__relaxed_rowmajor",
     .compute = kF32, .b_type = kBF16, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kRowMajor, .isa = kRelaxed, .strict = false,
     .m_max = 12, .run = f32_bf16_4x8_relaxed},
    {.name = "f32_bf16_1x8__relaxed_dot",
     .compute = kF32, .b_type = kBF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kColumnMajor, .isa = kRelaxed, .strict = false,
     .m_max = 4, .run = f32_bf16_1x8_relaxed_dot},
    {.name = "f32_f16_2x8__relaxed_finite",
     .compute = kF32, .b_type = kF16, .mr = 2, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .isa = kRelaxed, .strict = false, .finite = true,
     .m_max = 5, .run = f32_f16_2x8_relaxed_finite},
    {.name = "f32_f16_2x8__relaxed",
     .compute = kF32, .b_type = kF16, .mr = 2, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .isa = kRelaxed, .strict = false,
     .m_max = 2, .run = f32_f16_2x8_relaxed},
    {.name = "f32_f16_2x8__relaxed_rowmajor",
     .compute = kF32, .b_type = kF16, .mr = 2, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kRowMajor, .isa = kRelaxed, .strict = false,
     .m_max = 2, .run = f32_f16_2x8_relaxed},
    {.name = "f32_f16_gemv_1x8__relaxed_dot",
     .compute = kF32, .b_type = kF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kColumnMajor, .isa = kRelaxed, .strict = false,
     .m_max = 1, .run = f32_f16_gemv_1x8_relaxed_dot},
#else
    {.name = "f32_bf16_gemv_1x8__simd128_axpy",
     .compute = kF32, .b_type = kBF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kRowMajor, .isa = kSimd128, .strict = false, .axpy = true,
     .m_max = 1, .run = f32_bf16_gemv_1x8_simd128_axpy},
#endif
    {.name = "f32_nbits_4x8c4__simd128_quantized_a",
     .compute = kF32, .mr = 4, .nr = 8, .kr = 4, .a = kRowsOf<int8_t>, .b = kNBitsLayout,
     .isa = kSimd128, .codes = ReadsCodes::kByBytes,
     .run = f32_nbits_4x8c4_simd128_quantized_a},
#if !WGEMM_RELAXED || !defined(__wasm__)
    {.name = "f32_nbits_1x8__simd128",
     .compute = kF32, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kNBitsLayout,
     .isa = kSimd128, .strict = false, .codes = ReadsCodes::kByFloats,
     .m_max = 3, .run = f32_nbits_1x8_simd128},
#endif
#if !WGEMM_RELAXED
    {.name = "f32_bf16_1x8__simd128_dot",
     .compute = kF32, .b_type = kBF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 4, .run = f32_bf16_1x8_simd128_dot},
    {.name = "f32_f16_gemv_1x8__simd128_dot",
     .compute = kF32, .b_type = kF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 1, .run = f32_f16_gemv_1x8_simd128_dot},
#endif
    {.name = "f32_bf16_4x8__simd128",
     .compute = kF32, .b_type = kBF16, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .isa = kSimd128,
     .m_max = 48, .run = f32_bf16_4x8_simd128},
    {.name = "f32_bf16_4x8__simd128_rowmajor",
     .compute = kF32, .b_type = kBF16, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kRowMajor, .isa = kSimd128,
     .m_max = 12, .run = f32_bf16_4x8_simd128},
    {.name = "f32_bf16_gemv_1x8__simd128_colmajor",
     .compute = kF32, .b_type = kBF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128,
     .m_max = 1, .run = f32_bf16_gemv_1x8_simd128_colmajor},
    {.name = "f32_f16_2x8__simd128_finite",
     .compute = kF32, .b_type = kF16, .mr = 2, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .isa = kSimd128, .finite = true,
     .m_max = 5, .run = f32_f16_2x8_simd128_finite},
    {.name = "f32_f16_2x8__simd128",
     .compute = kF32, .b_type = kF16, .mr = 2, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .isa = kSimd128,
     .m_max = 2, .run = f32_f16_2x8_simd128},
    {.name = "f32_f16_2x8__simd128_rowmajor",
     .compute = kF32, .b_type = kF16, .mr = 2, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kRowMajor, .isa = kSimd128,
     .m_max = 2, .run = f32_f16_2x8_simd128},
    {.name = "f32_f16_gemv_1x8__simd128_colmajor",
     .compute = kF32, .b_type = kF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128,
     .m_max = 1, .run = f32_f16_gemv_1x8_simd128_colmajor},
};
constexpr Kernel kIntegerRows[] = {
    {.name = "i32_gemv_1x8__simd128_axpy",
     .compute = kI32, .mr = 1, .nr = 8, .a = kRowsOf<int32_t>, .b = panel_of<int32_t>(8),
     .b_layout = kRowMajor, .isa = kSimd128, .axpy = true,
     .m_max = 1, .run = i32_gemv_1x8_simd128_axpy},
    {.name = "i32_4x8__simd128_rowmajor",
     .compute = kI32, .mr = 4, .nr = 8, .a = kRowsOf<int32_t>, .b = panel_of<int32_t>(8),
     .b_layout = kRowMajor, .isa = kSimd128,
     .m_max = 5, .m_max_b_in_l1 = kRowsMaxInL1, .m_max_b_in_llc = 24, .run = i32_4x8_simd128},
    {.name = "i32_4x8__simd128_dot",
     .compute = kI32, .mr = 4, .nr = 8, .a = kRowsOf<int32_t>, .b = panel_of<int32_t>(8),
     .b_layout = kColumnMajor, .isa = kSimd128,
     .m_max = 16, .run = i32_4x8_simd128_dot},
    {.name = "i32_4x8__simd128",
     .compute = kI32, .mr = 4, .nr = 8, .a = kRowsOf<int32_t>, .b = panel_of<int32_t>(8),
     .isa = kSimd128,
     .run = i32_4x8_simd128},
#if !defined(__wasm__)
    {.name = "i32_4x8__portable",
     .compute = kI32, .mr = 4, .nr = 8, .a = kRowsOf<int32_t>, .b = panel_of<int32_t>(8),
     .isa = kPortable,
     .run = portable_kernel<int32_t, 4, 8, 1, true>},
#endif
    {.name = "i64_gemv_1x4__simd128_axpy",
     .compute = kI64, .mr = 1, .nr = 4, .a = kRowsOf<int64_t>, .b = panel_of<int64_t>(4),
     .b_layout = kRowMajor, .isa = kSimd128, .axpy = true,
     .m_max = 1, .run = i64_gemv_1x4_simd128_axpy},
    {.name = "i64_2x1__portable_rowmajor",
     .compute = kI64, .mr = 2, .nr = 1, .a = kRowsOf<int64_t>, .b = panel_of<int64_t>(1),
     .b_layout = kRowMajor, .isa = kPortable, .scatters = true,
     .m_max = 4, .m_max_b_in_l1 = 7, .run = i64_2x1_portable_rowmajor},
    {.name = "i64_3x4__simd128_winograd",
     .compute = kI64, .mr = 3, .nr = 4, .a = kRowsOf<int64_t>, .b = kI64PanelOfB,
     .isa = kSimd128,
     .m_min = 5, .n_min = 4, .run = i64_3x4_simd128_winograd},
    {.name = "i64_2x1__portable_colmajor",
     .compute = kI64, .mr = 2, .nr = 1, .a = kRowsOf<int64_t>, .b = panel_of<int64_t>(1),
     .b_layout = kColumnMajor, .isa = kPortable, .scatters = true,
     .m_max = 8, .run = i64_2x1_portable_colmajor},
    {.name = "i64_2x4__portable",
     .compute = kI64, .mr = 2, .nr = 4, .a = kRowsOf<int64_t>, .b = panel_of<int64_t>(4),
     .isa = kPortable, .scatters = true,
     .run = i64_2x4_portable},
#if WGEMM_RELAXED
    {.name = "i8_4x16c4__relaxed_dot_unsigned",
     .compute = kI8, .mr = 4, .nr = 16, .kr = 4, .a = kI8QuadsOfA, .b = kI8QuadsOfB,
     .isa = kRelaxed, .vectors = 32, .dot = Dot::kUnsigned,
     .m_min = 5, .n_min = 16, .run = i8_4x16c4_relaxed_dot_unsigned},
    {.name = "i8_4x8c4__relaxed_dot_unsigned",
     .compute = kI8, .mr = 4, .nr = 8, .kr = 4, .a = kI8QuadsOfA, .b = kI8QuadsOfB,
     .isa = kRelaxed, .dot = Dot::kUnsigned,
     .m_min = 5, .n_min = 4, .run = i8_4x8c4_relaxed_dot_unsigned},
    {.name = "i8_4x16c4__relaxed_dot_signed",
     .compute = kI8, .mr = 4, .nr = 16, .kr = 4, .a = kI8QuadsOfA, .b = kI8QuadsOfB,
     .isa = kRelaxed, .dot = Dot::kSigned,
     .m_min = 5, .n_min = 4, .run = i8_4x16c4_relaxed_dot_signed},
    {.name = "i8_4x16c4__relaxed_dot_signed_masked",
     .compute = kI8, .mr = 4, .nr = 16, .kr = 4, .a = kI8QuadsOfA, .b = kI8QuadsOfB,
     .isa = kRelaxed, .dot = Dot::kSignedMasked,
     .m_min = 5, .n_min = 4, .run = i8_4x16c4_relaxed_dot_signed_masked},
    {.name = "i8_4x8c4__relaxed_dot_7bit",
     .compute = kI8, .mr = 4, .nr = 8, .kr = 4, .a = kI8QuadsOfA, .b = kI8QuadsOfB,
     .isa = kRelaxed, .dot = Dot::kSevenBits,
     .m_min = 5, .n_min = 4, .run = i8_4x8c4_relaxed_dot_7bit},
#endif
    {.name = "i8_i16_4x2c8__simd128",
     .compute = kI8, .mr = 4, .nr = 2, .kr = 8, .a = kRowsOf<int8_t>, .b = kI8ColumnsOfB,
     .isa = kSimd128,
     .m_min = 4, .n_max = 6, .run = i8_i16_4x2c8_simd128},
#if WGEMM_RELAXED
    {.name = "i8_i16_4x16c2__simd128",
     .compute = kI8, .mr = 4, .nr = 16, .kr = 2, .a = i8_panel_of_a(4), .b = kI8WidePanelOfB,
     .isa = kSimd128, .vectors = 32,
     .m_min = 24, .n_min = 16, .run = i8_i16_4x16c2_simd128},
#endif
    {.name = "i8_i16_4x8c2__simd128",
     .compute = kI8, .mr = 4, .nr = 8, .kr = 2, .a = i8_panel_of_a(4), .b = kI8WidePanelOfB,
     .isa = kSimd128,
     .m_min = 24, .run = i8_i16_4x8c2_simd128},
    {.name = "i8_4x8c2__simd128",
     .compute = kI8, .mr = 4, .nr = 8, .kr = 2, .a = i8_panel_of_a(4), .b = kI8StorageLayout,
     .isa = kSimd128,
     .m_min = 3, .run = i8_4x8c2_simd128},
    {.name = "i8_2x16c2__simd128",
     .compute = kI8, .mr = 2, .nr = 16, .kr = 2, .a = i8_panel_of_a(2), .b = kI8StorageLayout,
     .isa = kSimd128,
     .m_min = 2, .run = i8_2x16c2_simd128},
#if WGEMM_RELAXED
    // Only for M = 1, since the rows above take more. A call with packed weights of 784x128 takes
    // 1.9 us, and 4.3 by the simd128 row. None is for 7 bits, which would have to shift B.
    {.name = "i8_1x32c4__relaxed_dot_unsigned",
     .compute = kI8, .mr = 1, .nr = 32, .kr = 4, .a = kI8QuadsOfARow, .b = kI8StorageLayout,
     .isa = kRelaxed, .dot = Dot::kUnsigned,
     .run = i8_1x32c4_relaxed_dot_unsigned},
    {.name = "i8_1x32c4__relaxed_dot_signed",
     .compute = kI8, .mr = 1, .nr = 32, .kr = 4, .a = kI8QuadsOfARow, .b = kI8StorageLayout,
     .isa = kRelaxed, .dot = Dot::kSigned,
     .run = i8_1x32c4_relaxed_dot_signed},
    {.name = "i8_1x32c4__relaxed_dot_signed_masked",
     .compute = kI8, .mr = 1, .nr = 32, .kr = 4, .a = kI8QuadsOfARow, .b = kI8StorageLayout,
     .isa = kRelaxed, .dot = Dot::kSignedMasked,
     .run = i8_1x32c4_relaxed_dot_signed_masked},
#endif
    {.name = "i8_1x32c2__simd128",
     .compute = kI8, .mr = 1, .nr = 32, .kr = 2, .a = i8_panel_of_a(1), .b = kI8StorageLayout,
     .isa = kSimd128,
     .run = i8_1x32c2_simd128},
#if !defined(__wasm__)
    {.name = "i8_i16_4x8c2__portable",
     .compute = kI8, .mr = 4, .nr = 8, .kr = 2, .a = i8_panel_of_a(4), .b = kI8WidePanelOfB,
     .isa = kPortable,
     .run = portable_kernel<int16_t, 4, 8, 2, false, int32_t>},
#endif
};
// clang-format on
constexpr auto kKernels = join(kOtherF32Rows, kF32Rows, kF64Rows, kIntegerRows);
static_assert(std::ranges::all_of(kKernels, [](const Kernel& kernel) {
  return kernel.compute != kI8 ||
         (kernel.a.width <= k8BitLanesMax && kernel.b.width <= k8BitLanesMax);
}));
}  // namespace

KernelTable kernel_table() { return {kKernels.data(), static_cast<int>(kKernels.size())}; }

Processor processor() {
#if defined(__x86_64__) || defined(__i386__)
  return Processor::kX86;
#elif defined(__aarch64__) || defined(__arm__)
  return Processor::kArm;
#else
  // WebAssembly hides the processor, but not the sign of the NaN that an invalid operation makes:
  // set on x86, clear on ARM. The operands come from volatile memory. Otherwise clang or the engine
  // would compute the NaN and choose its sign.
  volatile float infinity = __builtin_inff();
  volatile float nan = infinity - infinity;
  return __builtin_signbit(nan) ? Processor::kX86 : Processor::kArm;
#endif
}

}  // namespace wgemm
