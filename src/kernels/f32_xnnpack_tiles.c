// XNNPACK compiles a kernel once, for any number of rows and columns. V8 then extends each pointer
// to A to 64 bits again in each step of k: 38 instructions for 12 multiply-adds of the 6x8 kernel.
// Here the compiler knows both numbers, and there are 31 instructions. On AMD Zen 4, which starts
// six per cycle, 120x256x512 ran at 58.0 GFLOP/s, and at 50.0 as XNNPACK compiles it.
#include "kernels/f32_xnnpack_tiles.h"

#include "f32-gemm/gen/f32-gemm-3x8-wasmsimd-loadsplat.c"
#include "f32-gemm/gen/f32-gemm-3x8-wasmsimd-splat.c"
#include "f32-gemm/gen/f32-gemm-4x8-wasmsimd-loadsplat.c"
#include "f32-gemm/gen/f32-gemm-4x8-wasmsimd-splat.c"
#if WGEMM_RELAXED
#include "f32-gemm/gen/f32-gemm-3x8-wasmrelaxedsimd-fma-loadsplat.c"
#include "f32-gemm/gen/f32-gemm-6x8-wasmrelaxedsimd-fma-loadsplat.c"
#endif

enum { kColumns = 8 };

// `flatten` inlines the kernel, so that the numbers are constants in it.
#define STRIP(name, rows, ukernel)                                                            \
  __attribute__((flatten)) void wgemm_xnnpack_##name(const struct wgemm_xnnpack_strip* s) {   \
    const char* b = (const char*)s->b;                                                        \
    for (size_t col = 0; col < s->cols; col += kColumns, b += s->b_stride) {                  \
      xnn_f32_gemm_ukernel_##ukernel(rows, kColumns, s->k * sizeof(float), s->a, s->a_stride, \
                                     (const float*)b, s->c + col, s->c_stride, 0, NULL);      \
    }                                                                                         \
  }

STRIP(3x8_simd128, 3, 3x8__wasmsimd_loadsplat)
STRIP(4x8_simd128, 4, 4x8__wasmsimd_loadsplat)
STRIP(3x8_simd128_splat, 3, 3x8__wasmsimd_splat)
STRIP(4x8_simd128_splat, 4, 4x8__wasmsimd_splat)
#if WGEMM_RELAXED
STRIP(3x8_relaxed, 3, 3x8__wasmrelaxedsimd_fma_loadsplat)
STRIP(6x8_relaxed, 6, 6x8__wasmrelaxedsimd_fma_loadsplat)
#endif
