// XNNPACK compiles a kernel once for every number of rows and columns. V8 then extends each pointer
// to A to 64 bits again in each step of k: 38 instructions for 12 multiply-adds of the 6x8 kernel.
// Here the compiler knows both numbers, and there are 31. 120x256x512 ran at 58.0 GFLOP/s, and at
// 50.0 as XNNPACK compiles it (AMD Zen 4, which starts six instructions per cycle).
#include "kernels/f32_xnnpack_tiles.h"

#include "f32-gemm/gen/f32-gemm-3x8-wasmsimd-loadsplat.c"
#include "f32-gemm/gen/f32-gemm-4x8-wasmsimd-loadsplat.c"
#if WGEMM_RELAXED
#include "f32-gemm/gen/f32-gemm-3x8-wasmrelaxedsimd-fma-loadsplat.c"
#include "f32-gemm/gen/f32-gemm-6x8-wasmrelaxedsimd-fma-loadsplat.c"
#endif

enum { kColumns = 8 };

// `flatten` makes the kernel a part of the function.
#define STRIP(rows, isa, ukernel)                                                                 \
  __attribute__((flatten)) void wgemm_xnnpack_##rows##x8_##isa(                                   \
      const struct wgemm_xnnpack_strip* s) {                                                      \
    const char* b = (const char*)s->b;                                                            \
    for (size_t col = 0; col < s->cols; col += kColumns, b += s->b_stride) {                      \
      xnn_f32_gemm_ukernel_##rows##x8__##ukernel##_loadsplat(                                     \
          rows, kColumns, s->k * sizeof(float), s->a, s->a_stride, (const float*)b, s->c + col,   \
          s->c_stride, 0, NULL);                                                                  \
    }                                                                                             \
  }

STRIP(3, simd128, wasmsimd)
STRIP(4, simd128, wasmsimd)
#if WGEMM_RELAXED
STRIP(3, relaxed, wasmrelaxedsimd_fma)
STRIP(6, relaxed, wasmrelaxedsimd_fma)
#endif
