// Stands in for the compiler's <wasm_simd128.h> in native builds, so that the very kernels of the
// wasm build run natively, under sanitizers. SIMDe has the intrinsics. This file adds those that
// its version 0.7.4 lacks. Only native builds have this folder on their include path.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/wasm/simd128.h>

// If the processor has no instruction for it, SIMDe multiplies signed integers, and their overflow
// is undefined.
static inline v128_t wgemm_i32x4_mul(v128_t a, v128_t b) {
  uint32_t x[4], y[4];
  wasm_v128_store(x, a);
  wasm_v128_store(y, b);
  for (int i = 0; i < 4; ++i) x[i] *= y[i];
  return wasm_v128_load(x);
}
#undef wasm_i32x4_mul
#define wasm_i32x4_mul(a, b) wgemm_i32x4_mul((a), (b))

static inline v128_t wgemm_i64x2_mul(v128_t a, v128_t b) {
  uint64_t x[2], y[2];
  wasm_v128_store(x, a);
  wasm_v128_store(y, b);
  for (int i = 0; i < 2; ++i) x[i] *= y[i];
  return wasm_v128_load(x);
}
#undef wasm_i64x2_mul
#define wasm_i64x2_mul(a, b) wgemm_i64x2_mul((a), (b))

// SIMDe may return either of 0 and -0. WebAssembly orders them.
static inline v128_t wgemm_f64x2_select(v128_t a, v128_t b, int is_max) {
  double x[2], y[2];
  wasm_v128_store(x, a);
  wasm_v128_store(y, b);
  for (int i = 0; i < 2; ++i) {
    const int is_zero = x[i] == y[i] && (__builtin_signbit(x[i]) != 0) == is_max;
    const int is_better = is_max ? y[i] > x[i] : y[i] < x[i];
    if (y[i] != y[i] || (x[i] == x[i] && (is_better || is_zero))) x[i] = y[i];
  }
  return wasm_v128_load(x);
}
#undef wasm_f64x2_max
#undef wasm_f64x2_min
#define wasm_f64x2_max(a, b) wgemm_f64x2_select((a), (b), 1)
#define wasm_f64x2_min(a, b) wgemm_f64x2_select((a), (b), 0)

// Without a builtin, SIMDe rounds -0.5 to 0. WebAssembly rounds it to -0.
static inline v128_t wgemm_f32x4_nearest(v128_t a) {
  float x[4];
  wasm_v128_store(x, a);
  for (int i = 0; i < 4; ++i) x[i] = __builtin_nearbyintf(x[i]);
  return wasm_v128_load(x);
}
#undef wasm_f32x4_nearest
#define wasm_f32x4_nearest(a) wgemm_f32x4_nearest((a))

// Relaxed multiply-adds may be fused or not. Here they are unfused, except with WGEMM_AVX2.
#if WGEMM_AVX2
#include <immintrin.h>
#define wasm_f32x4_relaxed_madd(a, b, c) \
  _mm_castps_si128(_mm_fmadd_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), _mm_castsi128_ps(c)))
#define wasm_f64x2_relaxed_madd(a, b, c) \
  _mm_castpd_si128(_mm_fmadd_pd(_mm_castsi128_pd(a), _mm_castsi128_pd(b), _mm_castsi128_pd(c)))
#elif !defined(wasm_f32x4_relaxed_madd)
#define wasm_f32x4_relaxed_madd(a, b, c) simde_wasm_f32x4_add(simde_wasm_f32x4_mul((a), (b)), (c))
#define wasm_f64x2_relaxed_madd(a, b, c) simde_wasm_f64x2_add(simde_wasm_f64x2_mul((a), (b)), (c))
#endif

#ifdef __cplusplus
#include <atomic>

// The relaxed 8-bit dot products of a simulated engine, which tests choose. Natively they are slow,
// so relaxed_dot() finds none except in tests.
struct SimulatedDot {
  enum Pairs { kExact, kSaturated, kWrapped, kChanging };
  bool is_there = false;
  bool is_signed = false;    // whether the second operand is read as int8; else as uint8
  Pairs pairs = kSaturated;  // kChanging: each dot product takes any of the three others
  unsigned executions = 0;   // dot products so far, on all threads

  Pairs next_pairs() {
    if (pairs != kChanging) return pairs;
    const unsigned execution = std::atomic_ref(executions)++;
    return static_cast<Pairs>((execution * 2654435761u >> 16) % 3);
  }
};
inline SimulatedDot simulated_dot;

// The sums of pairs of products. wgemm_dot_low() takes the lower eight bytes of both operands,
// wgemm_dot_high() the upper eight.
static inline v128_t wgemm_dot_pairs(v128_t a, v128_t b, SimulatedDot::Pairs pairs) {
  const v128_t sums = simde_wasm_i32x4_dot_i16x8(a, b);
  if (pairs == SimulatedDot::kExact) return sums;
  if (pairs == SimulatedDot::kWrapped)
    return simde_wasm_i32x4_shr(simde_wasm_i32x4_shl(sums, 16), 16);
  return simde_wasm_i32x4_extend_low_i16x8(simde_wasm_i16x8_narrow_i32x4(sums, sums));
}
static inline v128_t wgemm_dot_low(v128_t a, v128_t b, SimulatedDot::Pairs pairs) {
  return wgemm_dot_pairs(simde_wasm_i16x8_extend_low_i8x16(a),
                         simulated_dot.is_signed ? simde_wasm_i16x8_extend_low_i8x16(b)
                                                 : simde_wasm_u16x8_extend_low_u8x16(b),
                         pairs);
}
static inline v128_t wgemm_dot_high(v128_t a, v128_t b, SimulatedDot::Pairs pairs) {
  return wgemm_dot_pairs(simde_wasm_i16x8_extend_high_i8x16(a),
                         simulated_dot.is_signed ? simde_wasm_i16x8_extend_high_i8x16(b)
                                                 : simde_wasm_u16x8_extend_high_u8x16(b),
                         pairs);
}
static inline v128_t wgemm_i16x8_relaxed_dot(v128_t a, v128_t b) {
  const SimulatedDot::Pairs pairs = simulated_dot.next_pairs();
  return simde_wasm_i16x8_narrow_i32x4(wgemm_dot_low(a, b, pairs), wgemm_dot_high(a, b, pairs));
}
static inline v128_t wgemm_i32x4_relaxed_dot_add(v128_t a, v128_t b, v128_t c) {
  const SimulatedDot::Pairs pairs = simulated_dot.next_pairs();
  const v128_t low = wgemm_dot_low(a, b, pairs), high = wgemm_dot_high(a, b, pairs);
  const v128_t even = simde_wasm_i32x4_shuffle(low, high, 0, 2, 4, 6),
               odd = simde_wasm_i32x4_shuffle(low, high, 1, 3, 5, 7);
  return simde_wasm_i32x4_add(simde_wasm_i32x4_add(even, odd), c);
}
#undef wasm_i16x8_relaxed_dot_i8x16_i7x16
#undef wasm_i32x4_relaxed_dot_i8x16_i7x16_add
#define wasm_i16x8_relaxed_dot_i8x16_i7x16(a, b) wgemm_i16x8_relaxed_dot((a), (b))
#define wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, b, c) wgemm_i32x4_relaxed_dot_add((a), (b), (c))
#endif

// The names of LLVM 12 and earlier, which XNNPACK still uses.
#ifndef wasm_v32x4_shuffle
#define wasm_v32x4_shuffle(a, b, c0, c1, c2, c3) simde_wasm_i32x4_shuffle((a), (b), c0, c1, c2, c3)
#endif
#ifndef wasm_v64x2_shuffle
#define wasm_v64x2_shuffle(a, b, c0, c1) simde_wasm_i64x2_shuffle((a), (b), c0, c1)
#endif
