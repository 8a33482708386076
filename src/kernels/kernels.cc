// Every micro-kernel of the library, one row each: best first among those of a type, portable last.
// plan.cc takes the first that fits; tests, benchmarks, explain() and kernel_info() go through this
// table, so a row is all that registering a kernel takes.
#include "kernels/f32_simd128.h"
#include "kernels/f32_xnnpack.h"
#include "kernels/f64_simd128.h"
#include "kernels/i32_simd128.h"
#include "kernels/i64_simd128.h"
#include "kernels/i8_relaxed.h"
#include "kernels/i8_simd128.h"
#include "kernels/kernel.h"
#include "kernels/portable.h"

namespace wgemm {
namespace {

// A row of a kernel that reads A's rows as they are, and panels of 8 columns of B.
template <typename T>
constexpr Kernel with_rows(const char* name, DType type, int mr, Isa isa, Processor processor,
                           int rows_min, KernelFunction run) {
  const PanelLayout b = type == DType::kFloat32 ? kF32PanelOfB : panel_of<T>(8);
  return {name, type, mr, 8, 1, kRowsOf<T>, b, isa, processor, rows_min, run, isa != Isa::kRelaxed};
}
constexpr Kernel f32(const char* name, int mr, Isa isa, Processor processor, int rows_min,
                     KernelFunction run) {
  return with_rows<float>(name, DType::kFloat32, mr, isa, processor, rows_min, run);
}
constexpr Kernel f64(const char* name, int mr, Isa isa, int rows_min, KernelFunction run) {
  return with_rows<double>(name, DType::kFloat64, mr, isa, Processor::kAny, rows_min, run);
}
constexpr Kernel i32(const char* name, int mr, Isa isa, KernelFunction run) {
  return with_rows<int32_t>(name, DType::kInt32, mr, isa, Processor::kAny, 1, run);
}

// The same with B in place, for up to so many rows: to pack B takes about as long as to multiply it
// by a few. Where all of B fits in L1, reading it in place costs next to nothing, and packing pays
// for more rows, or for very many only. Where its rows are short, blocks of it come from L2 as fast
// as panels to kernels that do not wait for operands, which are those that multiply and add at
// once.
constexpr int kManyRows = 512;
constexpr Kernel in_place(BLayout form, int rows_max, Kernel kernel, int rows_max_small_b = 0,
                          int rows_max_narrow_b = 0) {
  kernel.b_layout = form;
  kernel.rows_max = rows_max;
  kernel.rows_max_small_b = rows_max_small_b;
  kernel.rows_max_narrow_b = rows_max_narrow_b;
  return kernel;
}

// With 16-bit elements of B, in panels of packed weights, widened as they are read: for more rows
// they are widened before.
constexpr Kernel widening(DType b_type, int rows_max, Kernel kernel) {
  kernel.b = kHalfPanelOfB;
  kernel.b_type = b_type;
  kernel.rows_max = rows_max;
  return kernel;
}

// Sums in an order of its own, which is exact for integers alone.
constexpr Kernel any_order(Kernel kernel) {
  kernel.strict = is_integer(kernel.compute);
  return kernel;
}

// One row by B in place as a few long streams.
constexpr Kernel streaming(Kernel kernel) {
  kernel = any_order(in_place(BLayout::kRowMajor, 1, kernel));
  kernel.streams = true;
  return kernel;
}

constexpr Kernel finite(Kernel kernel) {
  kernel.finite = true;
  return kernel;
}

constexpr auto kRows = BLayout::kRowMajor, kColumns = BLayout::kColumnMajor;
constexpr auto kF16 = DType::kFloat16, kBF16 = DType::kBFloat16;
constexpr auto kSimd128 = Isa::kSimd128, kPortable = Isa::kPortable;
[[maybe_unused]] constexpr auto kRelaxed = Isa::kRelaxed;  // not in every build
constexpr auto kAny = Processor::kAny, kX86 = Processor::kX86, kArm = Processor::kArm;
constexpr PanelLayout kI64Panel = panel_of<int64_t>(4);

// Which of `loadsplat` and `splat` is fast is the processor's matter: V8 and SpiderMonkey compile
// load-and-splat to one instruction with a memory operand on x86 (half as fast again as splat); ARM
// multiplies by a lane, which they make of splat.
constexpr Kernel kKernels[] = {
#if WGEMM_RELAXED
    streaming(f32("f32_1x8_relaxed_axpyf_rows", 1, kRelaxed, kAny, 1, f32_1x8_relaxed_axpyf)),
    in_place(kRows, 15, f32("f32_6x8_relaxed_rows", 6, kRelaxed, kAny, 1, f32_6x8_relaxed),
             kManyRows, 128),
    in_place(kColumns, 4,
             f32("f32_4x8_relaxed_dots_columns", 4, kRelaxed, kAny, 1, f32_4x8_relaxed_dots)),
    widening(kBF16, 48, f32("f32_4x8_relaxed_bf16", 4, kRelaxed, kAny, 1, f32_4x8_relaxed_bf16)),
    streaming(widening(
        kBF16, 0,
        f32("f32_1x8_relaxed_bf16_axpyf_rows", 1, kRelaxed, kAny, 1, f32_1x8_relaxed_bf16_axpyf))),
    in_place(
        kRows, 12,
        widening(kBF16, 0,
                 f32("f32_4x8_relaxed_bf16_rows", 4, kRelaxed, kAny, 1, f32_4x8_relaxed_bf16))),
    in_place(kColumns, 4,
             widening(kBF16, 0,
                      f32("f32_1x8_relaxed_bf16_dots_columns", 1, kRelaxed, kAny, 1,
                          f32_1x8_relaxed_bf16_dots))),
    finite(widening(
        kF16, 5,
        f32("f32_2x8_relaxed_f16_finite", 2, kRelaxed, kAny, 1, f32_2x8_relaxed_f16_finite))),
    widening(kF16, 5, f32("f32_2x8_relaxed_f16", 2, kRelaxed, kAny, 1, f32_2x8_relaxed_f16)),
    in_place(kRows, 2,
             widening(kF16, 0,
                      f32("f32_2x8_relaxed_f16_rows", 2, kRelaxed, kAny, 1, f32_2x8_relaxed_f16))),
    in_place(kColumns, 1,
             widening(kF16, 0,
                      f32("f32_1x8_relaxed_f16_dots_columns", 1, kRelaxed, kAny, 1,
                          f32_1x8_relaxed_f16_dots))),
    f32("f32_6x8_relaxed", 6, kRelaxed, kX86, 1, f32_6x8_relaxed),
    f32("f32_4x8_relaxed_xnnpack_loadsplat", 4, kRelaxed, kX86, 2,
        f32_4x8_xnnpack_relaxed_loadsplat),
    f32("f32_4x8_relaxed_xnnpack_splat", 4, kRelaxed, kArm, 4, f32_4x8_xnnpack_relaxed_splat),
    streaming(f64("f64_1x8_relaxed_axpyf_rows", 1, kRelaxed, 1, f64_1x8_relaxed_axpyf)),
    in_place(kRows, 0, f64("f64_6x8_relaxed_rows", 6, kRelaxed, 5, f64_6x8_relaxed), kManyRows,
             128),
    in_place(kRows, 4, f64("f64_2x8_relaxed_rows", 2, kRelaxed, 1, f64_6x8_relaxed), kManyRows,
             128),
    in_place(kColumns, 8, f64("f64_2x8_relaxed_columns", 2, kRelaxed, 1, f64_2x8_relaxed_columns)),
    f64("f64_6x8_relaxed", 6, kRelaxed, 4, f64_6x8_relaxed),
    f64("f64_2x8_relaxed", 2, kRelaxed, 1, f64_6x8_relaxed),
#else
    streaming(f32("f32_1x8_simd128_axpyf_rows", 1, kSimd128, kAny, 1, f32_1x8_simd128_axpyf)),
    streaming(widening(
        kBF16, 0,
        f32("f32_1x8_simd128_bf16_axpyf_rows", 1, kSimd128, kAny, 1, f32_1x8_simd128_bf16_axpyf))),
    streaming(f64("f64_1x8_simd128_axpyf_rows", 1, kSimd128, 1, f64_1x8_simd128_axpyf)),
#endif
    in_place(kRows, 5, f32("f32_4x8_simd128_rows", 4, kSimd128, kAny, 1, f32_4x8_simd128), 16),
#if !WGEMM_RELAXED
    any_order(
        in_place(kColumns, 4,
                 f32("f32_4x8_simd128_dots_columns", 4, kSimd128, kAny, 1, f32_4x8_simd128_dots))),
    any_order(in_place(kColumns, 4,
                       widening(kBF16, 0,
                                f32("f32_1x8_simd128_bf16_dots_columns", 1, kSimd128, kAny, 1,
                                    f32_1x8_simd128_bf16_dots)))),
    any_order(in_place(kColumns, 1,
                       widening(kF16, 0,
                                f32("f32_1x8_simd128_f16_dots_columns", 1, kSimd128, kAny, 1,
                                    f32_1x8_simd128_f16_dots)))),
#endif
    in_place(kColumns, 4,
             f32("f32_4x8_simd128_columns", 4, kSimd128, kAny, 1, f32_4x8_simd128_columns)),
    widening(kBF16, 48, f32("f32_4x8_simd128_bf16", 4, kSimd128, kAny, 1, f32_4x8_simd128_bf16)),
    in_place(
        kRows, 12,
        widening(kBF16, 0,
                 f32("f32_4x8_simd128_bf16_rows", 4, kSimd128, kAny, 1, f32_4x8_simd128_bf16))),
    in_place(kColumns, 1,
             widening(kBF16, 0,
                      f32("f32_1x8_simd128_bf16_columns", 1, kSimd128, kAny, 1,
                          f32_1x8_simd128_bf16_columns))),
    finite(widening(
        kF16, 5,
        f32("f32_2x8_simd128_f16_finite", 2, kSimd128, kAny, 1, f32_2x8_simd128_f16_finite))),
    widening(kF16, 5, f32("f32_2x8_simd128_f16", 2, kSimd128, kAny, 1, f32_2x8_simd128_f16)),
    in_place(kRows, 2,
             widening(kF16, 0,
                      f32("f32_2x8_simd128_f16_rows", 2, kSimd128, kAny, 1, f32_2x8_simd128_f16))),
    in_place(kColumns, 1,
             widening(kF16, 0,
                      f32("f32_1x8_simd128_f16_columns", 1, kSimd128, kAny, 1,
                          f32_1x8_simd128_f16_columns))),
    in_place(kRows, 0,
             {"f32_4x8_simd128_panels_rows", DType::kFloat32, 4, 8, 1, panel_of<float>(4),
              kF32PanelOfB, kSimd128, kX86, 6, f32_4x8_simd128_panels},
             kManyRows),
    {"f32_4x8_simd128_panels", DType::kFloat32, 4, 8, 1, panel_of<float>(4), kF32PanelOfB, kSimd128,
     kX86, 6, f32_4x8_simd128_panels},
    f32("f32_4x8_simd128_xnnpack_splat", 4, kSimd128, kArm, 4, f32_4x8_xnnpack_splat),
    f32("f32_4x8_simd128", 4, kSimd128, kAny, 1, f32_4x8_simd128),
#if !WGEMM_RELAXED || !defined(__wasm__)  // outranked; and in a module with relaxed SIMD strict
                                          // results alone could want it
    f32("f32_4x8_simd128_xnnpack_loadsplat", 4, kSimd128, kX86, 2, f32_4x8_xnnpack_loadsplat),
#endif
    f32("f32_4x8_portable", 4, kPortable, kAny, 1, portable_kernel<float, 4, 8, 1, true>),
    in_place(kRows, 4, f64("f64_2x8_simd128_rows", 2, kSimd128, 1, f64_2x8_simd128), kManyRows),
    in_place(kColumns, 8, f64("f64_2x8_simd128_columns", 2, kSimd128, 1, f64_2x8_simd128_columns)),
    f64("f64_2x8_simd128", 2, kSimd128, 1, f64_2x8_simd128),
    f64("f64_4x8_portable", 4, kPortable, 1, portable_kernel<double, 4, 8, 1, true>),
    streaming(i32("i32_1x8_simd128_axpyf_rows", 1, kSimd128, i32_1x8_simd128_axpyf)),
    in_place(kRows, 5, i32("i32_4x8_simd128_rows", 4, kSimd128, i32_4x8_simd128), 16),
    in_place(kColumns, 4, i32("i32_4x8_simd128_dots_columns", 4, kSimd128, i32_4x8_simd128_dots)),
    in_place(kRows, 0,
             {"i32_4x8_simd128_panels_rows", DType::kInt32, 4, 8, 1, panel_of<int32_t>(4),
              panel_of<int32_t>(8), kSimd128, kAny, 6, i32_4x8_simd128_panels},
             kManyRows),
    {"i32_4x8_simd128_panels", DType::kInt32, 4, 8, 1, panel_of<int32_t>(4), panel_of<int32_t>(8),
     kSimd128, kAny, 6, i32_4x8_simd128_panels},
    i32("i32_4x8_simd128", 4, kSimd128, i32_4x8_simd128),
    i32("i32_4x8_portable", 4, kPortable, portable_kernel<int32_t, 4, 8, 1, true>),
    {"i64_2x4_simd128", DType::kInt64, 2, 4, 1, kRowsOf<int64_t>, kI64PanelOfB, kSimd128, kAny, 5,
     i64_2x4_simd128},
    in_place(kRows, 4,
             {"i64_2x4_simd128_mul_rows", DType::kInt64, 2, 4, 1, kRowsOf<int64_t>, kI64Panel,
              kSimd128, kAny, 1, i64_2x4_simd128_mul},
             16),
    in_place(kColumns, 8,
             {"i64_2x8_simd128_mul_columns", DType::kInt64, 2, 8, 1, kRowsOf<int64_t>,
              panel_of<int64_t>(8), kSimd128, kAny, 1, i64_2x8_simd128_mul_columns}),
    {"i64_2x4_simd128_mul", DType::kInt64, 2, 4, 1, kRowsOf<int64_t>, kI64Panel, kSimd128, kAny, 1,
     i64_2x4_simd128_mul},
    {"i64_4x4_portable", DType::kInt64, 4, 4, 1, kRowsOf<int64_t>, kI64Panel, kPortable, kAny, 1,
     portable_kernel<int64_t, 4, 4, 1, true>},
#if WGEMM_RELAXED
    {"i8_4x8c4_relaxed_unsigned", DType::kInt8, 4, 8, 4, kI8QuadsOfA, kI8QuadsOfB, Isa::kRelaxed,
     Processor::kAny, 5, i8_4x8c4_relaxed_unsigned, true, Dot::kUnsigned},
    {"i8_4x8c4_relaxed_signed", DType::kInt8, 4, 8, 4, kI8QuadsOfA, kI8QuadsOfB, Isa::kRelaxed,
     Processor::kAny, 5, i8_4x8c4_relaxed_signed, true, Dot::kSigned},
    {"i8_4x8c4_relaxed_signed_masked", DType::kInt8, 4, 8, 4, kI8QuadsOfA, kI8QuadsOfB,
     Isa::kRelaxed, Processor::kAny, 5, i8_4x8c4_relaxed_signed_masked, true, Dot::kSignedMasked},
    {"i8_4x8c4_relaxed_7bit", DType::kInt8, 4, 8, 4, kI8QuadsOfA, kI8QuadsOfB, Isa::kRelaxed,
     Processor::kAny, 5, i8_4x8c4_relaxed_7bit, true, Dot::kSevenBits},
#endif
    {"i8_4x8c2_simd128", DType::kInt8, 4, 8, 2, i8_panel_of_a(4), kI8WidePanelOfB, Isa::kSimd128,
     Processor::kAny, 24, i8_4x8c2_simd128},
    {"i8_4x8c2_simd128_b8", DType::kInt8, 4, 8, 2, i8_panel_of_a(4), kI8StorageLayout,
     Isa::kSimd128, Processor::kAny, 4, i8_4x8c2_simd128_b8},
    {"i8_3x8c2_simd128_b8", DType::kInt8, 3, 8, 2, i8_panel_of_a(3), kI8StorageLayout,
     Isa::kSimd128, Processor::kAny, 3, i8_3x8c2_simd128_b8},
    {"i8_2x16c2_simd128_b8", DType::kInt8, 2, 16, 2, i8_panel_of_a(2), kI8StorageLayout,
     Isa::kSimd128, Processor::kAny, 2, i8_2x16c2_simd128_b8},
    {"i8_1x32c2_simd128_b8", DType::kInt8, 1, 32, 2, i8_panel_of_a(1), kI8StorageLayout,
     Isa::kSimd128, Processor::kAny, 1, i8_1x32c2_simd128_b8},
    {"i8_4x8c2_portable", DType::kInt8, 4, 8, 2, i8_panel_of_a(4), kI8WidePanelOfB, Isa::kPortable,
     Processor::kAny, 1, portable_kernel<int16_t, 4, 8, 2, false, int32_t>},
};

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
  // WebAssembly hides the processor but leaves the sign of the NaN that an invalid operation makes
  // to it: set on x86, clear on ARM. The operands come from volatile memory, or a compiler (of
  // either kind) would do the subtraction and choose the sign.
  volatile float infinity = __builtin_inff();
  volatile float nan = infinity - infinity;
  return __builtin_signbit(nan) ? Processor::kX86 : Processor::kArm;
#endif
}

}  // namespace wgemm
