#include "kernels/i8_simd128.h"

#include <cstring>

#include "kernels/tile.h"

namespace wgemm {
namespace {

constexpr size_t kWidth = 8;          // columns of a panel
constexpr size_t kStep = 2 * kWidth;  // elements of a panel for a pair of k

// The columns 0 to 3 and 4 to 7 of a pair of k.
struct Pair {
  v128_t low, high;
};
Pair load_pair(const int16_t* b) { return {wasm_v128_load(b), wasm_v128_load(b + kWidth)}; }
Pair load_pair(const int8_t* b) { return {wasm_i16x8_load8x8(b), wasm_i16x8_load8x8(b + kWidth)}; }

// A tile of MR rows by NP panels.
template <typename B, size_t MR, size_t NP>
void tile(const Strip& s, const std::byte* b_panel, size_t col) {
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto panels = std::make_index_sequence<NP>{};
  v128_t acc[MR][NP][2];
  unroll(rows, [&](auto i) { unroll(panels, [&](auto p) { acc[i][p][0] = acc[i][p][1] = wasm_i32x4_const(0, 0, 0, 0); }); });
  const auto* a = static_cast<const int16_t*>(s.a);
  const B* b[NP];
  unroll(panels, [&](auto p) { b[p] = reinterpret_cast<const B*>(b_panel + p * s.b_stride); });
  size_t pairs = (s.k + 1) / 2;
  do {
    v128_t a_k[MR];
    unroll(rows, [&](auto i) { a_k[i] = wasm_v128_load32_splat(a + 2 * i); });
    unroll(panels, [&](auto p) {
      const Pair b_k = load_pair(b[p]);
      b[p] += kStep;
      unroll(rows, [&](auto i) {
        acc[i][p][0] = wasm_i32x4_add(acc[i][p][0], wasm_i32x4_dot_i16x8(a_k[i], b_k.low));
        acc[i][p][1] = wasm_i32x4_add(acc[i][p][1], wasm_i32x4_dot_i16x8(a_k[i], b_k.high));
      });
    });
    a += 2 * MR;
  } while (--pairs != 0);

  const size_t left = s.cols - col, cols = left < NP * kWidth ? left : NP * kWidth;
  auto row_of_c = [&](size_t i) { return reinterpret_cast<int32_t*>(static_cast<std::byte*>(s.c) + i * s.c_stride) + col; };
  if (cols == NP * kWidth && s.rows == MR) {
    unroll(rows, [&](auto i) {
      int32_t* c = row_of_c(i);
      unroll(panels, [&](auto p) {
        unroll(std::make_index_sequence<2>{}, [&](auto half) {
          int32_t* to = c + p * kWidth + half * 4;
          wasm_v128_store(to, s.accumulate ? wasm_i32x4_add(wasm_v128_load(to), acc[i][p][half]) : acc[i][p][half]);
        });
      });
    });
    return;
  }
  uint32_t edge[MR][NP * kWidth];
  unroll(rows, [&](auto i) {
    unroll(panels, [&](auto p) {
      wasm_v128_store(edge[i] + p * kWidth, acc[i][p][0]);
      wasm_v128_store(edge[i] + p * kWidth + 4, acc[i][p][1]);
    });
  });
  for (size_t i = 0; i < s.rows; ++i) {
    auto* c = reinterpret_cast<uint32_t*>(row_of_c(i));
    for (size_t j = 0; j < cols; ++j) c[j] = edge[i][j] + (s.accumulate ? c[j] : 0);
  }
}

template <typename B, size_t MR, size_t NP>
void strip(const Strip& s) {
  const auto* b_panel = static_cast<const std::byte*>(s.b);
  size_t col = 0;
  for (; col + NP * kWidth <= s.cols; col += NP * kWidth, b_panel += NP * s.b_stride) tile<B, MR, NP>(s, b_panel, col);
  for (; col < s.cols; col += kWidth, b_panel += s.b_stride) tile<B, MR, 1>(s, b_panel, col);
}

}  // namespace

void i8_4x8c2_simd128(const Strip& s) { strip<int16_t, 4, 1>(s); }
void i8_4x8c2_simd128_b8(const Strip& s) { strip<int8_t, 4, 1>(s); }
void i8_3x8c2_simd128_b8(const Strip& s) { strip<int8_t, 3, 1>(s); }
void i8_2x16c2_simd128_b8(const Strip& s) { strip<int8_t, 2, 2>(s); }
void i8_1x32c2_simd128_b8(const Strip& s) { strip<int8_t, 1, 4>(s); }

}  // namespace wgemm
