#include "kernels/nbits_simd128.h"

#include "kernels/loops/nbits.h"
#include "kernels/loops/ops.h"

namespace wgemm {

int32_t nbits_nibble = 15;

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

// By tiles of four rows, the last of which is repeated if there are fewer, and by GEMV.
template <typename Ops>
void quantized_strip(const Strip& s) {
  const auto* const b = static_cast<const std::byte*>(s.b);
  const auto rows = [&](const std::byte* panel, TileColumns t) {
    quantized_nbits_tile<Ops, 4, 1>(s, panel, t);
  };
  if (s.rows > 1) return single_panels<NBits::kColumns, 1>(s, b, 0, rows);
  several_panels<1, 2, NBits::kColumns, 1>(
      s,
      [&](const std::byte* panel, TileColumns t) { quantized_nbits_tile<Ops, 1, 2>(s, panel, t); },
      rows);
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
void f32_nbits_4x8c4_simd128_quantized_a(const Strip& s) { quantized_strip<Widened>(s); }
#if WGEMM_RELAXED
void f32_nbits_1x8_relaxed(const Strip& s) { float_strip<Fused<float>>(s); }
void f32_nbits_4x8c4_relaxed_quantized_a(const Strip& s) { quantized_strip<Dots>(s); }
#endif

void f32_nbits_1x8_portable_quantized_a(const Strip& s) {
  const NBits& f = *s.nbits;
  const auto* panel = static_cast<const std::byte*>(s.b);
  for (size_t col = 0; col < s.cols; ++col) {
    const auto column = static_cast<int64_t>(col % NBits::kColumns);
    auto* const c = static_cast<float*>(s.c) + col;
    const std::byte *block = panel, *a = static_cast<const std::byte*>(s.a);
    float sum = s.accumulate ? *c : 0;
    for (size_t k = 0; k < s.k; k += static_cast<size_t>(f.block_size)) {
      const auto* const q = reinterpret_cast<const int8_t*>(a + NBits::kRowHeader);
      const int zero_point = f.zero_points == NBits::ZeroPoints::kCodes
                                 ? static_cast<int>(f.zero_point(block, column))
                                 : f.absent_zero_point();
      int32_t dot = 0;
      for (int64_t i = 0; i < f.block_size; ++i)
        dot += q[i] * (static_cast<int>(f.code(block, i, column)) - zero_point);
      v128_t scale[2];
      load_eight(block, f.dtype, scale);
      float scales[NBits::kColumns], of_a;
      std::memcpy(scales, scale, sizeof(scales));
      std::memcpy(&of_a, a, sizeof(of_a));
      const float factor = of_a * scales[column], part = static_cast<float>(dot) * factor;
      sum += part;
      block += f.block_bytes();
      a += NBits::kRowHeader + f.block_size;
    }
    *c = sum;
    if (column == NBits::kColumns - 1) panel += s.b_stride;
  }
}

}  // namespace wgemm
