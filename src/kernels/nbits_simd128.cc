#include "kernels/nbits_simd128.h"

#include "kernels/loops/nbits_blocks.h"
#include "kernels/loops/ops.h"

namespace wgemm {

int32_t nbits_nibble = 15;

namespace {

// Without relaxed dot products: codes are widened to 16 bits. A lane of each of two products has
// two of a column's four. The sum of two is at most 2 * 128 * 63, so it fits in 16 bits.
struct Widened {
  // The relaxed module takes these only in engines whose dot products are not exact. There a GEMV
  // takes the tile of four rows, not a loop of its own.
  static constexpr bool kIsFallback = WGEMM_RELAXED;
  static v128_t load(const std::byte* a) {
    return wasm_i16x8_extend_low_i8x16(wasm_v128_load32_splat(a));
  }
  static v128_t multiply_add(v128_t sum, v128_t a, v128_t codes) {
    const v128_t low = wasm_i32x4_dot_i16x8(a, wasm_u16x8_extend_low_u8x16(codes)),
                 high = wasm_i32x4_dot_i16x8(a, wasm_u16x8_extend_high_u8x16(codes));
    return wasm_i32x4_add(sum,
                          wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_narrow_i32x4(low, high)));
  }
};

#if WGEMM_RELAXED
struct Dots {
  static constexpr bool kIsFallback = false;
  static v128_t load(const std::byte* a) { return wasm_v128_load32_splat(a); }
  static v128_t multiply_add(v128_t sum, v128_t a, v128_t codes) {
    return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, codes, sum);
  }
};
#endif

// By tiles of four rows, the last of which is repeated if there are fewer, and by GEMV.
// `tile(mr, np, panel, t)` computes mr rows by np micro-panels, both of which are constants.
template <typename Ops>
void quantized_strip(const Strip& s, auto&& tile) {
  const auto* const b = static_cast<const std::byte*>(s.b);
  const auto rows = [&](const std::byte* panel, TileColumns t) {
    tile(std::integral_constant<size_t, 4>{}, std::integral_constant<size_t, 1>{}, panel, t);
  };
  if (s.rows > 1 || Ops::kIsFallback) return single_panels<NBits::kColumns, 1>(s, b, 0, rows);
  several_panels<1, 2, NBits::kColumns, 1>(
      s,
      [&](const std::byte* panel, TileColumns t) {
        tile(std::integral_constant<size_t, 1>{}, std::integral_constant<size_t, 2>{}, panel, t);
      },
      rows);
}

template <typename Ops>
void quantized_strip_of(const Strip& s) {
  const NBits& f = *s.nbits;
  if (f.needs_blocks_loop()) {
    quantized_strip<Ops>(s, [&](auto mr, auto np, const std::byte* panel, TileColumns t) {
      quantized_blocks_tile<Ops, mr, np>(s, panel, t);
    });
  } else {
    quantized_strip<Ops>(s, [&](auto mr, auto np, const std::byte* panel, TileColumns t) {
      quantized_nbits_tile<Ops, mr, np>(s, panel, t);
    });
  }
}

template <typename Ops>
void float_strip(const Strip& s) {
  const RowOfBlocks row(s);
  single_panels<NBits::kColumns, 1>(
      s, static_cast<const std::byte*>(s.b), 0,
      [&](const std::byte* panel, TileColumns t) { float_nbits_tile<Ops>(s, panel, t, row); });
}

}  // namespace

void f32_nbits_1x8_simd128(const Strip& s) { float_strip<Unfused<float>>(s); }
void f32_nbits_4x8c4_simd128_quantized_a(const Strip& s) { quantized_strip_of<Widened>(s); }
#if WGEMM_RELAXED
void f32_nbits_1x8_relaxed(const Strip& s) { float_strip<Fused<float>>(s); }
void f32_nbits_4x8c4_relaxed_quantized_a(const Strip& s) { quantized_strip_of<Dots>(s); }
#endif

}  // namespace wgemm
