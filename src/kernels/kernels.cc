// Every micro-kernel of the library, one row each. The planner takes the first row that fits, so
// among the rows of a type the best comes first, and the last fits every product. Native builds end
// each type in a portable row; wasm builds have portable rows of int64 only. Tests, benchmarks,
// explain() and kernel_info() go through this table.
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

#include "kernels/f32_simd128.h"
#include "kernels/f32_xnnpack.h"
#include "kernels/f64_simd128.h"
#include "kernels/i32_simd128.h"
#include "kernels/i64_scalar.h"
#include "kernels/i64_simd128.h"
#include "kernels/i8_relaxed.h"
#include "kernels/i8_simd128.h"
#include "kernels/kernel.h"
#include "kernels/nbits_simd128.h"
#include "kernels/portable.h"

namespace wgemm {
namespace {

constexpr auto kF32 = DType::kFloat32, kF64 = DType::kFloat64, kF16 = DType::kFloat16,
               kBF16 = DType::kBFloat16, kI32 = DType::kInt32, kI64 = DType::kInt64,
               kI8 = DType::kInt8;
constexpr auto kRowMajor = BLayout::kRowMajor, kColumnMajor = BLayout::kColumnMajor;
constexpr auto kPortable = Isa::kPortable, kSimd128 = Isa::kSimd128;
[[maybe_unused]] constexpr auto kRelaxed = Isa::kRelaxed;  // not in every build
constexpr auto kX86 = Processor::kX86, kArm = Processor::kArm;

// m_max_b_in_l1 of most kernels. More rows pay for packing even if B fits in L1.
constexpr int kRowsMaxInL1 = 512;

// The bounds on M are measured. Their figures are rows of docs/lab. `npm run bench -- --kernels`
// measures the kernels of each type again. The reasons for the bounds:
//   m_max, unpacked B  for more rows, the time to pack B is less than what packed B saves
//   m_max, 16-bit B    the kernel widens B as it loads it; for more rows it is faster to widen B
//                      once, as it is packed, even if B is packed weights
//   m_min, n_min, ARM  4x16: packing A takes longer than it saves, or half of the tile is idle
//   m_min, n_min,      our kernels are faster for one or two rows, and compute the columns that
//     XNNPACK          are not a whole micro-panel
//   m_min, winograd    for fewer rows, the sums over A and B take longer than they save
//   m_max in the LLC   24: at 24 rows of int32, unpacked B is still 4 to 9% faster in most shapes
//   m_max in L1, int64 7: below eight rows of such a small B, Winograd's sums take longer than they
//                      save
//   n_max, 4x4         from eight columns on, 4x8 and 6x8 read the same B
//   n_max, 1x1         for fewer columns, a wider tile computes more than its loads of A save
//   n_min, int64       a tile of four columns wastes more of a narrower B than vectors save
//   m_min, 8 bits      2, 4: MR. 3: two rows at a time are slower. 5: relaxed dot products are
//                      slower for fewer rows. 24: for fewer rows, it is faster to widen B in the
//                      kernel than as it is packed
//   n_min, n_max       8 bits: a tile of 8 or 16 columns wastes more of a narrower B than dot
//                      products save
//
// XNNPACK's `loadsplat` kernels are for x86, where V8 and SpiderMonkey compile load-and-splat to
// one instruction with a memory operand, 1.5 times as fast as splat. Its `splat` kernel is for ARM,
// where these engines multiply by a lane, without a splat. That reaches half of the peak, the most
// that unfused kernels can reach. They never fuse by a lane. So fused kernels for ARM have 16 or 20
// accumulators, which more registers allow, and few splats: docs/design/arm.md.
//
// Rows with `vectors` of 32 are for V8 with --experimental-wasm-revectorize. It joins two
// operations on 16 bytes if stores 16 bytes apart depend on them, and if each operand has such a
// neighbour, too. A joined tile has half as many chains, and needs eight: 16 or 20 accumulators.
// These rows read the micro-panels of the others, since packed weights have one layout.
// clang-format off: it would give every field a line of its own.
constexpr Kernel kKernels[] = {
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
    {.name = "f32_gemv_1x8__simd128_axpy",
     .compute = kF32, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kRowMajor, .isa = kSimd128, .strict = false, .axpy = true,
     .m_max = 1, .run = f32_gemv_1x8_simd128_axpy},
    {.name = "f32_bf16_gemv_1x8__simd128_axpy",
     .compute = kF32, .b_type = kBF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kRowMajor, .isa = kSimd128, .strict = false, .axpy = true,
     .m_max = 1, .run = f32_bf16_gemv_1x8_simd128_axpy},
    {.name = "f64_gemv_1x8__simd128_axpy",
     .compute = kF64, .mr = 1, .nr = 8, .a = kRowsOf<double>, .b = panel_of<double>(8),
     .b_layout = kRowMajor, .isa = kSimd128, .strict = false, .axpy = true,
     .m_max = 1, .run = f64_gemv_1x8_simd128_axpy},
    {.name = "f64_gemv_1x1__simd128_dot",
     .compute = kF64, .mr = 1, .nr = 1, .a = kRowsOf<double>, .b = panel_of<double>(1),
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 1, .n_max = 4, .run = f64_gemv_1x1_simd128_dot},
#endif
    {.name = "f32_4x8__simd128_rowmajor",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kRowMajor, .isa = kSimd128,
     .m_max = 5, .m_max_b_in_l1 = kRowsMaxInL1, .run = f32_4x8_simd128},
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
    {.name = "f32_gemv_1x1__simd128_dot",
     .compute = kF32, .mr = 1, .nr = 1, .a = kRowsOf<float>, .b = panel_of<float>(1),
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 1, .n_max = 2, .run = f32_gemv_1x1_simd128_dot},
    {.name = "f32_4x8__simd128_dot",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 4, .run = f32_4x8_simd128_dot},
    {.name = "f32_bf16_1x8__simd128_dot",
     .compute = kF32, .b_type = kBF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 4, .run = f32_bf16_1x8_simd128_dot},
    {.name = "f32_f16_gemv_1x8__simd128_dot",
     .compute = kF32, .b_type = kF16, .mr = 1, .nr = 8, .a = kRowsOf<float>, .b = kHalfPanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128, .strict = false,
     .m_max = 1, .run = f32_f16_gemv_1x8_simd128_dot},
#endif
    {.name = "f32_4x8__simd128_colmajor",
     .compute = kF32, .mr = 4, .nr = 8, .a = kRowsOf<float>, .b = kF32PanelOfB,
     .b_layout = kColumnMajor, .isa = kSimd128,
     .m_max = 4, .run = f32_4x8_simd128_colmajor},
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
#if !WGEMM_RELAXED || !defined(__wasm__)
    // The relaxed module leaves them out: they would serve strict results only.
#if WGEMM_XNNPACK
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
static_assert(std::ranges::all_of(kKernels, [](const Kernel& kernel) {
  return kernel.compute != kI8 ||
         (kernel.a.width <= k8BitLanesMax && kernel.b.width <= k8BitLanesMax);
}));
}  // namespace

KernelTable kernel_table() {
  return {kKernels, static_cast<int>(sizeof(kKernels) / sizeof(kKernels[0]))};
}

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
