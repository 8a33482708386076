// Strips by XNNPACK's `loadsplat` kernels, each compiled for one number of rows.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Strides in bytes. `b`: the first micro-panel, with its header.
struct wgemm_xnnpack_strip {
  size_t cols, k;
  const float* a;
  size_t a_stride;
  const float* b;
  size_t b_stride;
  float* c;
  size_t c_stride;
};

void wgemm_xnnpack_4x8_simd128(const struct wgemm_xnnpack_strip* strip);
void wgemm_xnnpack_3x8_simd128(const struct wgemm_xnnpack_strip* strip);

// In builds with relaxed SIMD only.
void wgemm_xnnpack_6x8_relaxed(const struct wgemm_xnnpack_strip* strip);
void wgemm_xnnpack_3x8_relaxed(const struct wgemm_xnnpack_strip* strip);

#ifdef __cplusplus
}
#endif
