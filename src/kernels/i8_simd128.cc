#include "kernels/i8_simd128.h"

#include <algorithm>
#include <cstring>

#include "base/transpose.h"
#include "kernels/loops/i8.h"

namespace wgemm {
namespace {

struct Pairs {
  static constexpr size_t kDepth = 2;
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    return wasm_i32x4_add(acc, wasm_i32x4_dot_i16x8(a, b));
  }
};

struct Wide : Pairs {
  static constexpr size_t kStepBytes = 32;
  static I8Step load(const std::byte* b) { return {wasm_v128_load(b), wasm_v128_load(b + 16)}; }
};

struct Stored : Pairs {
  static constexpr size_t kStepBytes = 16;
  static I8Step load(const std::byte* b) {
    return {wasm_i16x8_load8x8(b), wasm_i16x8_load8x8(b + 8)};
  }
};

// Four rows of A, read by eight elements. If the strip has fewer rows, its last row repeats. `rest`
// has copies of the last k % 8 elements of each row, and then zeros.
struct RowsOfBytes {
  const std::byte* row[4];
  uint64_t rest[4] = {};
  v128_t flip;  // subtracts 128 from a uint8 that was widened as int8

  explicit RowsOfBytes(const Strip& s)
      : flip(wasm_i16x8_splat(static_cast<int16_t>(s.unsigned_a ? 0xff80 : 0))) {
    const size_t tail = s.k % 8;
#pragma clang loop vectorize(disable) unroll(disable)
    for (size_t i = 0; i < 4; ++i) {
      row[i] = static_cast<const std::byte*>(s.a) + std::min(i, s.rows - 1) * s.a_stride;
      if (tail == 0) continue;
      if (s.k > 8) {
        std::memcpy(&rest[i], row[i] + s.k - 8, 8);
        rest[i] >>= 8 * (8 - tail);
      } else {
#pragma clang loop vectorize(disable) unroll(disable)
        for (size_t k = tail; k != 0; --k)
          rest[i] = rest[i] << 8 | static_cast<uint8_t>(row[i][k - 1]);
      }
    }
  }
};

// The sums of four rows and two columns from `col` on. The strip's last column may be computed
// twice.
void narrow_tile(const Strip& s, const RowsOfBytes& a, size_t col) {
  constexpr auto rows = std::make_index_sequence<4>{};
  constexpr auto cols = std::make_index_sequence<2>{};
  const size_t count = s.cols - col;
  const std::byte *from[4], *b[2];
  unroll(rows, [&](auto i) { from[i] = a.row[i]; });
  b[0] = static_cast<const std::byte*>(s.b) + col * s.b_stride;
  b[1] = b[0] + (count > 1 ? s.b_stride : 0);
  v128_t acc[2][4];
  unroll(cols,
         [&](auto j) { unroll(rows, [&](auto i) { acc[j][i] = wasm_i32x4_const(0, 0, 0, 0); }); });
  const v128_t flip = a.flip;
  for (size_t steps = (s.k + 7) / 8; steps != 0; --steps) {
    if (steps == 1 && s.k % 8 != 0)
      unroll(rows, [&](auto i) { from[i] = reinterpret_cast<const std::byte*>(&a.rest[i]); });
    v128_t b_k[2];
    unroll(cols, [&](auto j) {
      b_k[j] = wasm_v128_load(b[j]);
      b[j] += 16;
    });
    unroll(rows, [&](auto i) {
      const v128_t a_k = wasm_v128_xor(wasm_i16x8_load8x8(from[i]), flip);
      from[i] += 8;
      unroll(cols, [&](auto j) { acc[j][i] = Pairs::multiply_add(acc[j][i], a_k, b_k[j]); });
    });
  }
  uint32_t sums[2][4];
  unroll(cols, [&](auto j) {
    transpose(acc[j]);
    wasm_v128_store(sums[j], wasm_i32x4_add(wasm_i32x4_add(acc[j][0], acc[j][1]),
                                            wasm_i32x4_add(acc[j][2], acc[j][3])));
  });
  auto* c = static_cast<std::byte*>(s.c) + col * sizeof(uint32_t);
#pragma clang loop vectorize(disable) unroll(disable)
  for (size_t i = 0; i < s.rows; ++i, c += s.c_stride) {
    auto* const to = reinterpret_cast<uint32_t*>(c);
    to[0] = (s.accumulate ? to[0] : 0) + sums[0][i];
    if (count > 1) to[1] = (s.accumulate ? to[1] : 0) + sums[1][i];
  }
}

}  // namespace

void i8_i16_4x2c8_simd128(const Strip& s) {
  const RowsOfBytes a(s);
  for (size_t col = 0; col < s.cols; col += 2) narrow_tile(s, a, col);
}
void i8_i16_4x8c2_simd128(const Strip& s) { i8_strip<Wide, 4, 1>(s); }
#if WGEMM_RELAXED
void i8_i16_4x16c2_simd128(const Strip& s) { i8_whole_tiles<Wide, 4, 2>(s, i8_i16_4x8c2_simd128); }
#endif
void i8_4x8c2_simd128(const Strip& s) {
  if (s.rows <= 2) return i8_strip_of_single_panels<Stored, 2, 4>(s);
  if (s.rows == 3) return i8_strip_of_single_panels<Stored, 3, 4>(s);
  i8_strip_of_single_panels<Stored, 4>(s);
}
void i8_2x16c2_simd128(const Strip& s) { i8_strip<Stored, 2, 2>(s); }
void i8_1x32c2_simd128(const Strip& s) { i8_strip<Stored, 1, 4>(s); }

}  // namespace wgemm
