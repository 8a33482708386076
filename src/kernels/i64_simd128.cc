#include "kernels/i64_simd128.h"

#include <algorithm>
#include <cstring>

#include "kernels/tile.h"

namespace wgemm {
namespace {

constexpr size_t kRows = 2, kPairs = 2, kWidth = 2 * kPairs;

// Calls put(lane, k, low, high) for each element of a source, and for zeros up to whole panels.
template <int Width>
void for_each_half(const PackSource& s, auto put) {
  const auto* from = reinterpret_cast<const uint64_t*>(s.data);
  for (int64_t lane0 = 0; lane0 < s.lanes; lane0 += Width) {
    const int64_t lanes = std::min<int64_t>(Width, s.lanes - lane0);
    for (int64_t k = 0; k < s.depth; ++k) {
      for (int64_t lane = 0; lane < Width; ++lane) {
        const uint64_t x = lane < lanes ? from[(lane0 + lane) * s.lane_stride + k * s.depth_stride] : 0;
        put(lane, static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32));
      }
    }
  }
}

struct I64 : Plain<int64_t, 2> {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) { return wasm_i64x2_add(acc, wasm_i64x2_mul(a, b)); }
};

}  // namespace

void i64_2x4_simd128_mul(const Strip& s) { strip_of<I64, Tile<1, 2>, Tile<2, 1>>(s); }
void i64_2x8_simd128_mul_columns(const Strip& s) { strip_of<I64, ColumnsTile<1>, ColumnsTile<2>>(s); }

void i64_pack_a(const PackSource& source, void* panels) {
  auto* to = static_cast<uint32_t*>(panels);
  for_each_half<kRows>(source, [&](int64_t, uint32_t low, uint32_t high) {
    const uint32_t words[] = {low, low, high, high, low, low};
    std::memcpy(to, words, sizeof(words));
    to += 6;
  });
}

void i64_pack_b(const PackSource& source, void* panels) {
  auto* to = static_cast<uint32_t*>(panels);
  for_each_half<kWidth>(source, [&](int64_t lane, uint32_t low, uint32_t high) {
    uint32_t* pair = to + lane / 2 * 4 + lane % 2;
    pair[0] = low;
    pair[2] = high;
    if (lane == static_cast<int64_t>(kWidth) - 1) to += 2 * kWidth;
  });
}

void i64_2x4_simd128(const Strip& s) {
  constexpr auto rows = std::make_index_sequence<kRows>{};
  constexpr auto pairs = std::make_index_sequence<kPairs>{};
  const auto tile = [&](const std::byte* b_panel, TileColumns t) {
    with_tile<int64_t, kRows, kPairs, false>(s, t, [&](auto& acc) {
      v128_t cross[kRows][kPairs];
      unroll(rows, [&](auto i) { unroll(pairs, [&](auto p) { cross[i][p] = wasm_i64x2_const(0, 0); }); });
      const auto* a = static_cast<const uint32_t*>(s.a);
      const auto* b = reinterpret_cast<const uint32_t*>(b_panel);
      size_t k = s.k;
      do {
        v128_t b_k[kPairs];
        unroll(pairs, [&](auto p) { b_k[p] = wasm_v128_load(b + p * 4); });
        unroll(rows, [&](auto i) {
          const v128_t llhh = wasm_v128_load(a + i * 6), hhll = wasm_v128_load(a + i * 6 + 2);
          unroll(pairs, [&](auto p) {
            cross[i][p] = wasm_i32x4_add(cross[i][p], wasm_i32x4_mul(hhll, b_k[p]));
            acc[i][p] = wasm_i64x2_add(acc[i][p], wasm_u64x2_extmul_low_u32x4(llhh, b_k[p]));
          });
        });
        a += kRows * 6;
        b += kPairs * 4;
      } while (--k != 0);
      unroll(rows, [&](auto i) {
        unroll(pairs, [&](auto p) {
          const v128_t folded = wasm_i32x4_add(cross[i][p], wasm_i32x4_shuffle(cross[i][p], cross[i][p], 2, 3, 0, 1));
          acc[i][p] = wasm_i64x2_add(acc[i][p], wasm_i64x2_shl(wasm_u64x2_extend_low_u32x4(folded), 32));
        });
      });
    });
  };
  single_panels<kWidth, sizeof(int64_t)>(s, static_cast<const std::byte*>(s.b), 0, tile);
}

}  // namespace wgemm
