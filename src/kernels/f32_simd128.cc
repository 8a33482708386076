#include "kernels/f32_simd128.h"

#include "base/convert.h"
#include "kernels/loops/axpy.h"
#include "kernels/loops/column_major.h"
#include "kernels/loops/dot.h"
#include "kernels/loops/ops.h"
#include "kernels/loops/single_dots.h"
#include "kernels/loops/strip.h"

namespace wgemm {
namespace {

template <typename Math, typename Stored = float>
struct F32 : Math, Plain<float, 2> {
  static constexpr size_t kColumn = sizeof(Stored);
  HalfSimd<Stored> simd;
  void load(const std::byte* b, v128_t (&to)[2]) const {
    simd.widen(reinterpret_cast<const Stored*>(b), to);
  }
  v128_t load_along_k(const std::byte* b) const { return simd.widen(wasm_i32x4_load16x4(b)); }
  static float one(const std::byte* b) { return widen(*reinterpret_cast<const Stored*>(b)); }
};
template <typename Math>
struct F32<Math, float> : Math, Plain<float, 2> {};
template <typename Math>
struct F32<Math, FiniteFloat16> : Math, Plain<float, 2> {
  static constexpr size_t kColumn = sizeof(FiniteFloat16);
  HalfSimd<FiniteFloat16> simd;
  v128_t load_splat(const float* a) const {
    return wasm_f32x4_mul(Plain::load_splat(a), simd.two_to_112);
  }
  void load(const std::byte* b, v128_t (&to)[2]) const {
    simd.widen(reinterpret_cast<const FiniteFloat16*>(b), to);
  }
};

#if WGEMM_RELAXED
// Widens by instructions that V8 joins. It joins no shuffles of the lower and the upper half.
struct NeighbouringBFloat16 : Fused<float>, Plain<float, 2> {
  static void load(const std::byte* b, v128_t (&to)[2]) {
    unroll(std::make_index_sequence<2>{},
           [&](auto v) { to[v] = wasm_i32x4_shl(wasm_u32x4_load16x4(b + v * 8), 16); });
  }
};

// Tiles of 16 columns for strips of three rows or more. `rest` computes all others.
template <typename Ops, size_t rows>
void tiles_of_16(const Strip& s, KernelFunction rest) {
  const RowsOfA<float, rows> a(s);
  only_several_panels<3, 2, 8, float>(s, rest, [&](const std::byte* panel, TileColumns t) {
    panels_tile<Ops, rows, 2>(s, a, panel, t);
  });
}
#endif

// For a B of fewer columns than a micro-panel has. For so few, unfused sums are as fast as fused
// ones, so all builds have them.
struct Narrow : Unfused<float>, Plain<float, 1> {};

// The Ops of panels.h and axpy.h in this build.
#if WGEMM_AVX2
template <typename Math>
using BuildOps = Wide<Math, float>;
#else
template <typename Math>
using BuildOps = F32<Math>;
#endif

// Whether all of A times 2^112 is finite. Then that product is exact.
[[gnu::noinline]] bool can_be_scaled(const Strip& s) {
  v128_t most = wasm_f32x4_splat(0);
  for (size_t i = 0; i < s.rows; ++i) {
    const auto* row =
        reinterpret_cast<const float*>(static_cast<const std::byte*>(s.a) + i * s.a_stride);
    size_t k = 0;
#pragma clang loop unroll(disable)
    for (; k + 4 <= s.k; k += 4)
      most = wasm_f32x4_max(most, wasm_f32x4_abs(wasm_v128_load(row + k)));
#pragma clang loop unroll(disable)
    for (; k < s.k; ++k)
      most = wasm_f32x4_max(most, wasm_f32x4_abs(wasm_v128_load32_splat(row + k)));
  }
  return wasm_i32x4_all_true(wasm_f32x4_lt(most, wasm_f32x4_splat(65536)));
}

}  // namespace

void f32_4x8_simd128(const Strip& s) {
  strip_of<BuildOps<Unfused<float>>, Tile<1, 4>, Tile<2, 2>, Tile<4, 1>>(s);
}
void f32_4x4_simd128_rowmajor(const Strip& s) { strip_of<Narrow, Tile<4, 1>>(s); }
void f32_f16_2x8_simd128(const Strip& s) {
  strip_of<F32<Unfused<float>, Float16>, Tile<1, 2>, Tile<2, 1>>(s);
}
void f32_f16_2x8_simd128_finite(const Strip& s) {
  if (!can_be_scaled(s)) return f32_f16_2x8_simd128(s);
  strip_of<F32<Unfused<float>, FiniteFloat16>, Tile<1, 2>, Tile<2, 1>>(s);
}
void f32_bf16_4x8_simd128(const Strip& s) {
  strip_of<F32<Unfused<float>, BFloat16>, Tile<1, 4>, Tile<2, 2>, Tile<4, 1>>(s);
}
void f32_4x8_simd128_colmajor(const Strip& s) {
  strip_of<F32<Unfused<float>>, ColumnMajorTile<1, 8>, ColumnMajorTile<4, 4>>(s);
}
void f32_f16_gemv_1x8_simd128_colmajor(const Strip& s) {
  strip_of<F32<Unfused<float>, Float16>, ColumnMajorTile<1, 4>>(s);
}
void f32_bf16_gemv_1x8_simd128_colmajor(const Strip& s) {
  strip_of<F32<Unfused<float>, BFloat16>, ColumnMajorTile<1, 4>>(s);
}

#if WGEMM_RELAXED
void f32_6x8_relaxed(const Strip& s) {
  strip_of<BuildOps<Fused<float>>, Tile<1, 4>, Tile<2, 2>, Tile<4, 1>, Tile<5, 1>, Tile<6, 1>>(s);
}
void f32_4x16_relaxed_packed_a(const Strip& s) {
  using Ops = F32<Fused<float>>;
  several_panels<1, 2, Ops::kVectors * Ops::kLanes, Ops::kColumn>(
      s, [&](const std::byte* panel, TileColumns t) { lanes_of_a_tile<Ops, 2>(s, panel, t); },
      [&](const std::byte* panel, TileColumns t) { lanes_of_a_tile<Ops, 1>(s, panel, t); });
}
void f32_f16_2x8_relaxed(const Strip& s) {
  strip_of<F32<Fused<float>, Float16>, Tile<1, 2>, Tile<2, 1>>(s);
}
void f32_f16_2x8_relaxed_finite(const Strip& s) {
  if (!can_be_scaled(s)) return f32_f16_2x8_relaxed(s);
  strip_of<F32<Fused<float>, FiniteFloat16>, Tile<1, 2>, Tile<2, 1>>(s);
}
void f32_bf16_4x8_relaxed(const Strip& s) {
  strip_of<F32<Fused<float>, BFloat16>, Tile<1, 4>, Tile<2, 2>, Tile<4, 1>>(s);
}
void f32_5x16_relaxed(const Strip& s) { tiles_of_16<F32<Fused<float>>, 5>(s, f32_6x8_relaxed); }
void f32_bf16_4x16_relaxed(const Strip& s) {
  tiles_of_16<NeighbouringBFloat16, 4>(s, f32_bf16_4x8_relaxed);
}
void f32_gemv_1x1_relaxed_dot(const Strip& s) { single_dots<Fused<float>, float>(s); }
void f32_4x8_relaxed_dot(const Strip& s) { dot<F32<Fused<float>>, f32_4x8_simd128_colmajor, 2>(s); }
void f32_f16_gemv_1x8_relaxed_dot(const Strip& s) {
  dot<F32<Fused<float>, Float16>, f32_f16_gemv_1x8_simd128_colmajor>(s);
}
void f32_bf16_1x8_relaxed_dot(const Strip& s) {
  dot<F32<Fused<float>, BFloat16>, f32_bf16_gemv_1x8_simd128_colmajor>(s);
}
void f32_gemv_1x8_relaxed_axpy(const Strip& s) { axpy<BuildOps<Fused<float>>, f32_6x8_relaxed>(s); }
void f32_bf16_gemv_1x8_relaxed_axpy(const Strip& s) {
  axpy<F32<Fused<float>, BFloat16>, f32_bf16_4x8_relaxed>(s);
}
#else
void f32_gemv_1x1_simd128_dot(const Strip& s) { single_dots<Unfused<float>, float>(s); }
void f32_4x8_simd128_dot(const Strip& s) {
  dot<F32<Unfused<float>>, f32_4x8_simd128_colmajor, 2>(s);
}
void f32_f16_gemv_1x8_simd128_dot(const Strip& s) {
  dot<F32<Unfused<float>, Float16>, f32_f16_gemv_1x8_simd128_colmajor>(s);
}
void f32_bf16_1x8_simd128_dot(const Strip& s) {
  dot<F32<Unfused<float>, BFloat16>, f32_bf16_gemv_1x8_simd128_colmajor>(s);
}
void f32_gemv_1x8_simd128_axpy(const Strip& s) {
  axpy<BuildOps<Unfused<float>>, f32_4x8_simd128>(s);
}
void f32_bf16_gemv_1x8_simd128_axpy(const Strip& s) {
  axpy<F32<Unfused<float>, BFloat16>, f32_bf16_4x8_simd128>(s);
}
#endif

}  // namespace wgemm
