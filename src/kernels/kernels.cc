// Every micro-kernel of the library, one row each: best first among those of a type, portable last. plan.cc takes the first that fits;
// tests, benchmarks, explain() and kernel_info() go through this table, so a row is all that registering a kernel takes.
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

// Which of `loadsplat` and `splat` is fast is the processor's matter: V8 and SpiderMonkey compile load-and-splat to one instruction with
// a memory operand on x86 (half as fast again as splat); ARM multiplies by a lane, which they make of splat. One row of float32 has no
// relaxed kernel: its few sums wait for each other, and longer for a fused step.
constexpr Kernel kKernels[] = {
#if WGEMM_RELAXED
    {"f32_4x8_relaxed_xnnpack_loadsplat", DType::kFloat32, 4, 8, 1, kRowsOf<float>, kXnnpackPanel, Isa::kRelaxed, Processor::kX86, 2,
     f32_4x8_xnnpack_relaxed_loadsplat, false},
    {"f32_4x8_relaxed_xnnpack_splat", DType::kFloat32, 4, 8, 1, kRowsOf<float>, kXnnpackPanel, Isa::kRelaxed, Processor::kArm, 2,
     f32_4x8_xnnpack_relaxed_splat, false},
    {"f64_2x8_relaxed", DType::kFloat64, 2, 8, 1, kRowsOf<double>, panel_of<double>(8), Isa::kRelaxed, Processor::kAny, 1, f64_2x8_relaxed,
     false},
#endif
    {"f32_4x8_simd128_xnnpack_loadsplat", DType::kFloat32, 4, 8, 1, kRowsOf<float>, kXnnpackPanel, Isa::kSimd128, Processor::kX86, 2,
     f32_4x8_xnnpack_loadsplat},
    {"f32_1x8_simd128_xnnpack_loadsplat", DType::kFloat32, 1, 8, 1, kRowsOf<float>, kXnnpackPanel, Isa::kSimd128, Processor::kX86, 1,
     f32_1x8_xnnpack_loadsplat},
    {"f32_4x8_simd128_xnnpack_splat", DType::kFloat32, 4, 8, 1, kRowsOf<float>, kXnnpackPanel, Isa::kSimd128, Processor::kArm, 2,
     f32_4x8_xnnpack_splat},
    {"f32_1x8_simd128_xnnpack_splat", DType::kFloat32, 1, 8, 1, kRowsOf<float>, kXnnpackPanel, Isa::kSimd128, Processor::kArm, 1,
     f32_1x8_xnnpack_splat},
    {"f32_4x8_portable", DType::kFloat32, 4, 8, 1, kRowsOf<float>, panel_of<float>(8), Isa::kPortable, Processor::kAny, 1,
     portable_kernel<float, 4, 8, 1, true>},
    {"f64_2x8_simd128", DType::kFloat64, 2, 8, 1, kRowsOf<double>, panel_of<double>(8), Isa::kSimd128, Processor::kAny, 1, f64_2x8_simd128},
    {"f64_4x4_portable", DType::kFloat64, 4, 4, 1, kRowsOf<double>, panel_of<double>(4), Isa::kPortable, Processor::kAny, 1,
     portable_kernel<double, 4, 4, 1, true>},
    {"i32_2x16_simd128", DType::kInt32, 2, 16, 1, kRowsOf<int32_t>, panel_of<int32_t>(16), Isa::kSimd128, Processor::kAny, 1,
     i32_2x16_simd128},
    {"i32_4x8_portable", DType::kInt32, 4, 8, 1, kRowsOf<int32_t>, panel_of<int32_t>(8), Isa::kPortable, Processor::kAny, 1,
     portable_kernel<int32_t, 4, 8, 1, true>},
    {"i64_2x4_simd128", DType::kInt64, 2, 4, 1, kI64PanelOfA, kI64PanelOfB, Isa::kSimd128, Processor::kAny, 2, i64_2x4_simd128},
    {"i64_4x4_portable", DType::kInt64, 4, 4, 1, kRowsOf<int64_t>, panel_of<int64_t>(4), Isa::kPortable, Processor::kAny, 1,
     portable_kernel<int64_t, 4, 4, 1, true>},
#if WGEMM_RELAXED
    {"i8_4x8c4_relaxed_unsigned", DType::kInt8, 4, 8, 4, kI8QuadsOfA, kI8QuadsOfB, Isa::kRelaxed, Processor::kAny, 5,
     i8_4x8c4_relaxed_unsigned, true, Dot::kUnsigned},
    {"i8_4x8c4_relaxed_signed", DType::kInt8, 4, 8, 4, kI8QuadsOfA, kI8QuadsOfB, Isa::kRelaxed, Processor::kAny, 5, i8_4x8c4_relaxed_signed,
     true, Dot::kSigned},
    {"i8_4x8c4_relaxed_7bit", DType::kInt8, 4, 8, 4, kI8QuadsOfA, kI8QuadsOfB, Isa::kRelaxed, Processor::kAny, 5, i8_4x8c4_relaxed_7bit,
     true, Dot::kSevenBits},
#endif
    {"i8_4x8c2_simd128", DType::kInt8, 4, 8, 2, i8_panel_of_a(4), kI8WidePanelOfB, Isa::kSimd128, Processor::kAny, 24, i8_4x8c2_simd128},
    {"i8_4x8c2_simd128_b8", DType::kInt8, 4, 8, 2, i8_panel_of_a(4), kI8StorageLayout, Isa::kSimd128, Processor::kAny, 4,
     i8_4x8c2_simd128_b8},
    {"i8_3x8c2_simd128_b8", DType::kInt8, 3, 8, 2, i8_panel_of_a(3), kI8StorageLayout, Isa::kSimd128, Processor::kAny, 3,
     i8_3x8c2_simd128_b8},
    {"i8_2x16c2_simd128_b8", DType::kInt8, 2, 16, 2, i8_panel_of_a(2), kI8StorageLayout, Isa::kSimd128, Processor::kAny, 2,
     i8_2x16c2_simd128_b8},
    {"i8_1x32c2_simd128_b8", DType::kInt8, 1, 32, 2, i8_panel_of_a(1), kI8StorageLayout, Isa::kSimd128, Processor::kAny, 1,
     i8_1x32c2_simd128_b8},
    {"i8_4x8c2_portable", DType::kInt8, 4, 8, 2, i8_panel_of_a(4), kI8WidePanelOfB, Isa::kPortable, Processor::kAny, 1,
     portable_kernel<int16_t, 4, 8, 2, false, int32_t>},
};

}  // namespace

KernelTable kernel_table() { return {kKernels, static_cast<int>(sizeof(kKernels) / sizeof(kKernels[0]))}; }

Processor processor() {
#if defined(__x86_64__) || defined(__i386__)
  return Processor::kX86;
#elif defined(__aarch64__) || defined(__arm__)
  return Processor::kArm;
#else
  // WebAssembly hides the processor but leaves the sign of the NaN that an invalid operation makes to it: set on x86, clear on ARM. The
  // operands come from volatile memory, or a compiler (of either kind) would do the subtraction and choose the sign.
  volatile float infinity = __builtin_inff();
  volatile float nan = infinity - infinity;
  return __builtin_signbit(nan) ? Processor::kX86 : Processor::kArm;
#endif
}

}  // namespace wgemm
