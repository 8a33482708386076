// XNNPACK is included here and in f32_xnnpack_tiles.c only.
//
// The first block of K takes linear kernels, since kernels with `minmax` in their name end in a
// clamp that turns NaN into -infinity. Later blocks take `gemminc` kernels, which add to earlier
// sums and exist with a clamp only. Those named `wasmsimd_arm` clamp by f32x4.min and f32x4.max,
// which keep NaN, so infinite bounds change nothing.
#include "kernels/f32_xnnpack.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/f32_simd128.h"
#include "kernels/f32_xnnpack_tiles.h"
#include "xnnpack/gemm.h"

namespace wgemm {
namespace {

constexpr size_t kWidth = 8;

using Start = decltype(&xnn_f32_gemm_ukernel_4x8__wasmsimd_splat);
using Resume = decltype(&xnn_f32_gemminc_minmax_ukernel_4x8__wasmsimd_arm_splat);

void begin(const Strip& s, Start start) {
  const auto* a = static_cast<const float*>(s.a);
  const auto* b = static_cast<const float*>(s.b);
  auto* c = static_cast<float*>(s.c);
  // XNNPACK's kernel goes through contiguous micro-panels itself.
  const bool contiguous = s.b_stride == (s.k + 1) * kWidth * sizeof(float);
  const size_t step = contiguous ? s.cols : kWidth;
  for (size_t col = 0; col < s.cols; col += step, b += s.b_stride / sizeof(float)) {
    start(s.rows, std::min(step, s.cols - col), s.k * sizeof(float), a, s.a_stride, b - kWidth,
          c + col, s.c_stride, kWidth * sizeof(float), nullptr);
  }
}

template <size_t MR>
void run(const Strip& s, Start start, Resume resume) {
  if (!s.accumulate) return begin(s, start);
  const auto* a = static_cast<const float*>(s.a);
  const auto* b = static_cast<const float*>(s.b);
  auto* c = static_cast<float*>(s.c);
  const size_t k_bytes = s.k * sizeof(float);
  xnn_f32_minmax_params unbounded;
  unbounded.scalar.min = -std::numeric_limits<float>::infinity();
  unbounded.scalar.max = std::numeric_limits<float>::infinity();
  for (size_t col = 0; col < s.cols; col += kWidth, b += s.b_stride / sizeof(float)) {
    const size_t cols = std::min(kWidth, s.cols - col);
    float sums[MR * kWidth] = {};
    for (size_t i = 0; i < s.rows; ++i) {
      const auto* row = reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(c + col) +
                                                       i * s.c_stride);
      std::memcpy(sums + i * kWidth, row, cols * sizeof(float));
    }
    resume(s.rows, cols, k_bytes, a, s.a_stride, b, c + col, s.c_stride, kWidth * sizeof(float),
           sums, &unbounded);
  }
}

// One strip, which starts from 0 and has as many rows as `tile`. `rest` computes the columns that
// are no whole micro-panel: it writes part of a tile faster.
void run_tile(const Strip& s, void (*tile)(const wgemm_xnnpack_strip*), KernelFunction rest) {
  const size_t panels = s.cols / kWidth, cols = panels * kWidth;
  const wgemm_xnnpack_strip strip{.cols = cols,
                                  .k = s.k,
                                  .a = static_cast<const float*>(s.a),
                                  .a_stride = s.a_stride,
                                  .b = static_cast<const float*>(s.b) - kWidth,
                                  .b_stride = s.b_stride,
                                  .c = static_cast<float*>(s.c),
                                  .c_stride = s.c_stride};
  tile(&strip);
  if (cols == s.cols) return;
  Strip last = s;
  last.cols -= cols;
  last.b = static_cast<const std::byte*>(s.b) + panels * s.b_stride;
  last.c = static_cast<float*>(s.c) + cols;
  rest(last);
}

}  // namespace

void f32_4x8_simd128_xnnpack_loadsplat(const Strip& s) {
  if (s.accumulate || s.rows < 3) return f32_4x8_simd128(s);
  run_tile(s, s.rows == 3 ? wgemm_xnnpack_3x8_simd128 : wgemm_xnnpack_4x8_simd128, f32_4x8_simd128);
}
void f32_4x8_simd128_xnnpack_splat(const Strip& strip) {
  run<4>(strip, xnn_f32_gemm_ukernel_4x8__wasmsimd_splat,
         xnn_f32_gemminc_minmax_ukernel_4x8__wasmsimd_arm_splat);
}

#if WGEMM_RELAXED
// XNNPACK's relaxed gemminc kernels clamp by relaxed min and max, whose results for NaN depend on
// the engine. So f32_6x8_relaxed() adds to earlier sums.
void f32_6x8_relaxed_xnnpack_loadsplat(const Strip& s) {
  if (s.accumulate || (s.rows != 3 && s.rows != 6)) return f32_6x8_relaxed(s);
  run_tile(s, s.rows == 3 ? wgemm_xnnpack_3x8_relaxed : wgemm_xnnpack_6x8_relaxed, f32_6x8_relaxed);
}
#endif

}  // namespace wgemm
