// Stands in for the compiler's <wasm_simd128.h> in native builds, so that the very kernels of the wasm build run natively, under
// sanitizers. SIMDe gives the intrinsics; below is what version 0.7.4 lacks. Only native builds have this folder on their include path.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/wasm/simd128.h>

// SIMDe multiplies as signed where the processor has no instruction for it, and then overflow is undefined.
static inline v128_t wgemm_i32x4_mul(v128_t a, v128_t b) {
  uint32_t x[4], y[4];
  wasm_v128_store(x, a);
  wasm_v128_store(y, b);
  for (int i = 0; i < 4; ++i) x[i] *= y[i];
  return wasm_v128_load(x);
}
#undef wasm_i32x4_mul
#define wasm_i32x4_mul(a, b) wgemm_i32x4_mul((a), (b))

// Of relaxed SIMD's outcomes, the one that any processor has: multiply, then add.
#ifndef wasm_f32x4_relaxed_madd
#define wasm_f32x4_relaxed_madd(a, b, c) simde_wasm_f32x4_add(simde_wasm_f32x4_mul((a), (b)), (c))
#define wasm_f64x2_relaxed_madd(a, b, c) simde_wasm_f64x2_add(simde_wasm_f64x2_mul((a), (b)), (c))
#endif

// The names of LLVM 12 and earlier, which XNNPACK still uses.
#ifndef wasm_v32x4_shuffle
#define wasm_v32x4_shuffle(a, b, c0, c1, c2, c3) simde_wasm_i32x4_shuffle((a), (b), c0, c1, c2, c3)
#endif
#ifndef wasm_v64x2_shuffle
#define wasm_v64x2_shuffle(a, b, c0, c1) simde_wasm_i64x2_shuffle((a), (b), c0, c1)
#endif
