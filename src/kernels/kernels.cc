// Every micro-kernel of the library, one row each: best first among those of a type, portable last. plan.cc takes the first that fits;
// tests, benchmarks, explain() and kernel_info() go through this table, so a row is all that registering a kernel takes.
#include "kernels/f32_xnnpack.h"
#include "kernels/kernel.h"
#include "kernels/portable.h"

namespace wgemm {
namespace {

constexpr PanelLayout kRows = {.width = 1, .kr = 1, .lead = 0};
constexpr PanelLayout kPanel8 = {.width = 8, .kr = 1, .lead = 0};

// Which of `loadsplat` and `splat` is fast is the processor's matter: V8 and SpiderMonkey compile load-and-splat to one instruction with
// a memory operand on x86 (half as fast again as splat); ARM multiplies by a lane, which they make of splat.
constexpr Kernel kKernels[] = {
    {"f32_4x8_simd128_xnnpack_loadsplat", DType::kFloat32, 4, 8, 1, kRows, kXnnpackPanel, Isa::kSimd128, Processor::kX86, 2,
     f32_4x8_xnnpack_loadsplat},
    {"f32_1x8_simd128_xnnpack_loadsplat", DType::kFloat32, 1, 8, 1, kRows, kXnnpackPanel, Isa::kSimd128, Processor::kX86, 1,
     f32_1x8_xnnpack_loadsplat},
    {"f32_4x8_simd128_xnnpack_splat", DType::kFloat32, 4, 8, 1, kRows, kXnnpackPanel, Isa::kSimd128, Processor::kArm, 2,
     f32_4x8_xnnpack_splat},
    {"f32_1x8_simd128_xnnpack_splat", DType::kFloat32, 1, 8, 1, kRows, kXnnpackPanel, Isa::kSimd128, Processor::kArm, 1,
     f32_1x8_xnnpack_splat},
    {"f32_4x8_portable", DType::kFloat32, 4, 8, 1, kRows, kPanel8, Isa::kPortable, Processor::kAny, 1,
     portable_kernel<float, 4, 8, 1, true>},
    {"i32_4x8_portable", DType::kInt32, 4, 8, 1, kRows, kPanel8, Isa::kPortable, Processor::kAny, 1,
     portable_kernel<int32_t, 4, 8, 1, true>},
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
