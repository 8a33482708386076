// Strips by XNNPACK's kernels, each compiled for one number of rows and whole micro-panels.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Strides in bytes. `cols`: a multiple of 8. `b`: the first micro-panel, with its header.
struct wgemm_xnnpack_strip {
  size_t cols, k;
  const float* a;
  size_t a_stride;
  const float* b;
  size_t b_stride;
  float* c;
  size_t c_stride;
};

// By `loadsplat` kernels, unless the name says `splat`.
void wgemm_xnnpack_4x8_simd128(const struct wgemm_xnnpack_strip* strip);
void wgemm_xnnpack_3x8_simd128(const struct wgemm_xnnpack_strip* strip);
void wgemm_xnnpack_4x8_simd128_splat(const struct wgemm_xnnpack_strip* strip);
void wgemm_xnnpack_3x8_simd128_splat(const struct wgemm_xnnpack_strip* strip);

// In builds with relaxed SIMD only.
void wgemm_xnnpack_6x8_relaxed(const struct wgemm_xnnpack_strip* strip);
void wgemm_xnnpack_3x8_relaxed(const struct wgemm_xnnpack_strip* strip);

#ifdef __cplusplus
}
#endif
