#include "kernels/f32_simd128.h"

#include "base/convert.h"
#include "kernels/loops/axpy.h"
#include "kernels/loops/column_major.h"
#include "kernels/loops/dot.h"
#include "kernels/loops/ops.h"
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

}  // namespace

void f32_4x8_simd128_panels(const Strip& s) { strip_of_packed_a<F32<Unfused<float>>, 4>(s); }
void f32_4x8_simd128(const Strip& s) {
  strip_of<F32<Unfused<float>>, Tile<1, 4, !WGEMM_RELAXED>, Tile<2, 2>, Tile<4, 1>>(s);
}
void f32_2x8_simd128_f16(const Strip& s) {
  strip_of<F32<Unfused<float>, Float16>, Tile<1, 2>, Tile<2, 1>>(s);
}
void f32_2x8_simd128_f16_finite(const Strip& s) {
  strip_of<F32<Unfused<float>, FiniteFloat16>, Tile<1, 2>, Tile<2, 1>>(s);
}
void f32_4x8_simd128_bf16(const Strip& s) {
  strip_of<F32<Unfused<float>, BFloat16>, Tile<1, 4>, Tile<2, 2>, Tile<4, 1>>(s);
}
void f32_4x8_simd128_columns(const Strip& s) {
  strip_of<F32<Unfused<float>>, ColumnMajorTile<1>, ColumnMajorTile<4>>(s);
}
void f32_1x8_simd128_f16_columns(const Strip& s) {
  strip_of<F32<Unfused<float>, Float16>, ColumnMajorTile<1>>(s);
}
void f32_1x8_simd128_bf16_columns(const Strip& s) {
  strip_of<F32<Unfused<float>, BFloat16>, ColumnMajorTile<1>>(s);
}

#if WGEMM_RELAXED
void f32_6x8_relaxed(const Strip& s) {
  strip_of<F32<Fused<float>>, Tile<1, 4, true>, Tile<2, 2>, Tile<4, 1>, Tile<5, 1>, Tile<6, 1>>(s);
}
void f32_2x8_relaxed_f16(const Strip& s) {
  strip_of<F32<Fused<float>, Float16>, Tile<1, 2>, Tile<2, 1>>(s);
}
void f32_2x8_relaxed_f16_finite(const Strip& s) {
  strip_of<F32<Fused<float>, FiniteFloat16>, Tile<1, 2>, Tile<2, 1>>(s);
}
void f32_4x8_relaxed_bf16(const Strip& s) {
  strip_of<F32<Fused<float>, BFloat16>, Tile<1, 4>, Tile<2, 2>, Tile<4, 1>>(s);
}
void f32_4x8_relaxed_dots(const Strip& s) { dot<F32<Fused<float>>, f32_4x8_simd128_columns>(s); }
void f32_1x8_relaxed_f16_dots(const Strip& s) {
  dot<F32<Fused<float>, Float16>, f32_1x8_simd128_f16_columns>(s);
}
void f32_1x8_relaxed_bf16_dots(const Strip& s) {
  dot<F32<Fused<float>, BFloat16>, f32_1x8_simd128_bf16_columns>(s);
}
void f32_1x8_relaxed_axpyf(const Strip& s) { axpy<F32<Fused<float>>, f32_6x8_relaxed>(s); }
void f32_1x8_relaxed_bf16_axpyf(const Strip& s) {
  axpy<F32<Fused<float>, BFloat16>, f32_4x8_relaxed_bf16>(s);
}
#else
void f32_4x8_simd128_dots(const Strip& s) { dot<F32<Unfused<float>>, f32_4x8_simd128_columns>(s); }
void f32_1x8_simd128_f16_dots(const Strip& s) {
  dot<F32<Unfused<float>, Float16>, f32_1x8_simd128_f16_columns>(s);
}
void f32_1x8_simd128_bf16_dots(const Strip& s) {
  dot<F32<Unfused<float>, BFloat16>, f32_1x8_simd128_bf16_columns>(s);
}
void f32_1x8_simd128_axpyf(const Strip& s) { axpy<F32<Unfused<float>>, f32_4x8_simd128>(s); }
void f32_1x8_simd128_bf16_axpyf(const Strip& s) {
  axpy<F32<Unfused<float>, BFloat16>, f32_4x8_simd128_bf16>(s);
}
#endif

}  // namespace wgemm
