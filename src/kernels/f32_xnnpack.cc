// XNNPACK's kernels that add to earlier sums end in a clamp. It turns NaN into -infinity, or its
// result for NaN depends on the engine. So our kernels add to earlier sums.
#include "kernels/f32_xnnpack.h"

#include "kernels/f32_simd128.h"
#include "kernels/f32_xnnpack_tiles.h"

namespace wgemm {
namespace {

constexpr size_t kWidth = 8;

// Computes a strip that starts from 0 and has as many rows as `tile`. `rest` computes the last
// columns if they are not a whole micro-panel, since it writes part of a tile faster.
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
void f32_4x8_simd128_xnnpack_splat(const Strip& s) {
  if (s.accumulate || s.rows < 3) return f32_4x8_simd128(s);
  run_tile(s, s.rows == 3 ? wgemm_xnnpack_3x8_simd128_splat : wgemm_xnnpack_4x8_simd128_splat,
           f32_4x8_simd128);
}

#if WGEMM_RELAXED
void f32_6x8_relaxed_xnnpack_loadsplat(const Strip& s) {
  if (s.accumulate || (s.rows != 3 && s.rows != 6)) return f32_6x8_relaxed(s);
  run_tile(s, s.rows == 3 ? wgemm_xnnpack_3x8_relaxed : wgemm_xnnpack_6x8_relaxed, f32_6x8_relaxed);
}
#endif

}  // namespace wgemm
