#include "kernels/i64_simd128.h"

#include <cstring>

#include "kernels/loops/column_major.h"
#include "kernels/loops/ops.h"
#include "kernels/loops/strip.h"

namespace wgemm {
namespace {

struct I64 : Plain<int64_t, 2> {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    return wasm_i64x2_add(acc, wasm_i64x2_mul(a, b));
  }
};

constexpr size_t kRows = 2, kPairs = 2, kWidth = 2 * kPairs;
constexpr size_t kStepBytes = kWidth * sizeof(int64_t);

// The sum of a0 * a1 over all pairs of steps of k.
uint64_t products_of_row(const uint64_t* a, size_t k) {
  uint64_t sum = 0;
#pragma clang loop unroll(disable)
  for (; k >= 2; k -= 2, a += 2) sum += a[0] * a[1];
  return sum;
}

// The lower and the upper halves of four 64-bit sums a + b.
struct Halves {
  v128_t low, high;
  Halves(v128_t a, v128_t b01, v128_t b23) {
    const v128_t s01 = wasm_i64x2_add(a, b01), s23 = wasm_i64x2_add(a, b23);
    low = wasm_i32x4_shuffle(s01, s23, 0, 2, 4, 6);
    high = wasm_i32x4_shuffle(s01, s23, 1, 3, 5, 7);
  }
};

}  // namespace

void i64_2x4_simd128(const Strip& s) { strip_of<I64, Tile<1, 2>, Tile<2, 1>>(s); }
void i64_2x8_simd128_colmajor(const Strip& s) {
  strip_of<I64, ColumnMajorTile<1>, ColumnMajorTile<2>>(s);
}

void i64_fill_header(void* header, int64_t k) {
  v128_t sum[kPairs] = {};
  const std::byte* b = static_cast<const std::byte*>(header) + kStepBytes;
#pragma clang loop unroll(disable)
  for (; k >= 2; k -= 2, b += 2 * kStepBytes) {
    unroll(std::make_index_sequence<kPairs>{}, [&](auto p) {
      const std::byte* at = b + p * sizeof(v128_t);
      sum[p] = wasm_i64x2_sub(sum[p],
                              wasm_i64x2_mul(wasm_v128_load(at), wasm_v128_load(at + kStepBytes)));
    });
  }
  std::memcpy(header, sum, sizeof(sum));
}

void i64_2x4_simd128_winograd(const Strip& s) {
  constexpr auto rows = std::make_index_sequence<kRows>{};
  constexpr auto pairs = std::make_index_sequence<kPairs>{};
  const RowsOfA<uint64_t, kRows> first(s);
  v128_t of_row[kRows];
  unroll(rows, [&](auto i) {
    of_row[i] = wasm_i64x2_splat(static_cast<int64_t>(products_of_row(first.row[i], s.k)));
  });
  const auto tile = [&](const std::byte* panel, TileColumns t) {
    with_tile<int64_t, kRows, kPairs, true>(s, t, [&](auto& acc) {
      unroll(rows, [&](auto i) {
        unroll(pairs, [&](auto p) {
          const v128_t of_columns = wasm_v128_load(panel - kStepBytes + p * sizeof(v128_t));
          acc[i][p] = wasm_i64x2_add(acc[i][p], wasm_i64x2_sub(of_columns, of_row[i]));
        });
      });
      RowsOfA<uint64_t, kRows> a = first;
      const std::byte* b = panel;
      const auto load = [&](size_t step, size_t p) {
        return wasm_v128_load(b + step * kStepBytes + p * sizeof(v128_t));
      };
      v128_t cross[kRows];
      unroll(rows, [&](auto i) { cross[i] = wasm_i32x4_const(0, 0, 0, 0); });
      size_t k = s.k;
      for (; k >= 2; k -= 2) {
        const v128_t b0[] = {load(0, 0), load(0, 1)}, b1[] = {load(1, 0), load(1, 1)};
        unroll(rows, [&](auto i) {
          const Halves x(wasm_v128_load64_splat(a.row[i]), b1[0], b1[1]);
          const Halves y(wasm_v128_load64_splat(a.row[i] + 1), b0[0], b0[1]);
          cross[i] = wasm_i32x4_add(cross[i], wasm_i32x4_mul(x.low, y.high));
          cross[i] = wasm_i32x4_add(cross[i], wasm_i32x4_mul(x.high, y.low));
          acc[i][0] = wasm_i64x2_add(acc[i][0], wasm_u64x2_extmul_low_u32x4(x.low, y.low));
          acc[i][1] = wasm_i64x2_add(acc[i][1], wasm_u64x2_extmul_high_u32x4(x.low, y.low));
          a.row[i] += 2;
        });
        b += 2 * kStepBytes;
      }
      unroll(rows, [&](auto i) {
        acc[i][0] =
            wasm_i64x2_add(acc[i][0], wasm_i64x2_shl(wasm_u64x2_extend_low_u32x4(cross[i]), 32));
        acc[i][1] =
            wasm_i64x2_add(acc[i][1], wasm_i64x2_shl(wasm_u64x2_extend_high_u32x4(cross[i]), 32));
        if (k != 0) {
          unroll(pairs, [&](auto p) {
            acc[i][p] = I64::multiply_add(acc[i][p], wasm_v128_load64_splat(a.row[i]), load(0, p));
          });
        }
      });
    });
  };
  single_panels<kWidth, sizeof(int64_t)>(s, static_cast<const std::byte*>(s.b), 0, tile);
}

}  // namespace wgemm
