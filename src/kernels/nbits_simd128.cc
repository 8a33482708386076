#include "kernels/nbits_simd128.h"

#include "kernels/loops/nbits.h"
#include "kernels/loops/ops.h"

namespace wgemm {
namespace {

// Without relaxed dot products: codes are widened to 16 bits. A lane of each of two products has
// two of a column's four.
struct Widened {
  static v128_t load(const std::byte* a) {
    return wasm_i16x8_extend_low_i8x16(wasm_v128_load32_splat(a));
  }
  static v128_t multiply_add(v128_t sum, v128_t a, v128_t codes) {
    const v128_t low = wasm_i32x4_dot_i16x8(a, wasm_u16x8_extend_low_u8x16(codes)),
                 high = wasm_i32x4_dot_i16x8(a, wasm_u16x8_extend_high_u8x16(codes));
    return wasm_i32x4_add(sum, wasm_i32x4_add(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6),
                                              wasm_i32x4_shuffle(low, high, 1, 3, 5, 7)));
  }
};

#if WGEMM_RELAXED
struct Dots {
  static v128_t load(const std::byte* a) { return wasm_v128_load32_splat(a); }
  static v128_t multiply_add(v128_t sum, v128_t a, v128_t codes) {
    return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, codes, sum);
  }
};
#endif

template <typename Ops>
void quantized_strip(const Strip& s) {
  nbits_strip<4>(s, [&](auto bits, auto mr, auto np, const std::byte* panel, TileColumns t) {
    quantized_nbits_tile<Ops, bits, mr, np>(s, panel, t);
  });
}

template <typename Ops>
void float_strip(const Strip& s) {
  const PaddedEnd<4> end(s, static_cast<size_t>(s.nbits->block_size));
  nbits_strip<2>(s, [&](auto bits, auto mr, auto np, const std::byte* panel, TileColumns t) {
    float_nbits_tile<Ops, bits, mr, np>(s, panel, t, end);
  });
}

}  // namespace

void f32_nbits_4x8_simd128(const Strip& s) { float_strip<Unfused<float>>(s); }
void i8_nbits_4x8c4_simd128(const Strip& s) { quantized_strip<Widened>(s); }
#if WGEMM_RELAXED
void f32_nbits_4x8_relaxed(const Strip& s) { float_strip<Fused<float>>(s); }
void i8_nbits_4x8c4_relaxed_dot(const Strip& s) { quantized_strip<Dots>(s); }
#endif

}  // namespace wgemm
