#include "kernels/i64_simd128.h"

#include <algorithm>
#include <cstring>

#include "kernels/i64_scalar.h"
#include "kernels/loops/axpy.h"
#include "kernels/loops/ops.h"
#include "kernels/loops/tile.h"

namespace wgemm {
namespace {

struct I64 : Plain<int64_t, 2> {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    return wasm_i64x2_add(acc, wasm_i64x2_mul(a, b));
  }
};

constexpr size_t kVectorRows = 2, kRows = 3, kPairs = 2, kWidth = 2 * kPairs;
constexpr size_t kStepBytes = kWidth * sizeof(int64_t);

// Volatile, since compilers would take the scalar from a vector of B, by a slow instruction.
uint64_t load_scalar(const std::byte* from) {
  return *reinterpret_cast<const volatile uint64_t*>(from);
}

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

void i64_gemv_1x4_simd128_axpy(const Strip& s) { axpy<I64, i64_2x1_portable_rowmajor>(s); }

void i64_fill_header(void* header, int64_t k) {
  uint64_t sums[kWidth] = {};
  const std::byte* b = static_cast<const std::byte*>(header) + kStepBytes;
#pragma clang loop unroll(disable)
  for (; k >= 2; k -= 2, b += 2 * kStepBytes) {
    unroll(std::make_index_sequence<kWidth>{}, [&](auto j) {
      const std::byte* at = b + j * sizeof(uint64_t);
      sums[j] -= load_scalar(at) * load_scalar(at + kStepBytes);
    });
  }
  std::memcpy(header, sums, sizeof(sums));
}

void i64_3x4_simd128_winograd(const Strip& s) {
  if (s.rows == 1) return i64_2x4_portable(s);  // vectors would compute the row again
  constexpr auto rows = std::make_index_sequence<kVectorRows>{};
  constexpr auto pairs = std::make_index_sequence<kPairs>{};
  constexpr auto cols = std::make_index_sequence<kWidth>{};
  const RowsOfA<uint64_t, kRows> first(s);
  Strip by_vectors = s;
  by_vectors.rows = std::min(s.rows, kVectorRows);
  v128_t of_row[kVectorRows];
  unroll(rows, [&](auto i) {
    of_row[i] = wasm_i64x2_splat(static_cast<int64_t>(products_of_row(first.row[i], s.k)));
  });
  const auto* panel = static_cast<const std::byte*>(s.b);
  size_t col = 0;
  for (; col + kWidth <= s.cols; col += kWidth, panel += s.b_stride) {
    // C of the last row, which scalars compute. If the strip has fewer rows than the tile, vectors
    // compute this row too, and write the same sums.
    auto* const c =
        reinterpret_cast<uint64_t*>(static_cast<std::byte*>(s.c) + (s.rows - 1) * s.c_stride) + col;
    with_tile<int64_t, kVectorRows, kPairs, true>(by_vectors, {col, 0, kWidth}, [&](auto& acc) {
      uint64_t sums[kWidth];
      unroll(cols, [&](auto j) { sums[j] = s.accumulate ? c[j] : 0; });
      unroll(rows, [&](auto i) {
        unroll(pairs, [&](auto p) {
          const v128_t of_columns = wasm_v128_load(panel - kStepBytes + p * sizeof(v128_t));
          acc[i][p] = wasm_i64x2_add(acc[i][p], wasm_i64x2_sub(of_columns, of_row[i]));
        });
      });
      RowsOfA<uint64_t, kRows> a = first;
      const std::byte* b = panel;
      const std::byte* const end = b + s.k / 2 * 2 * kStepBytes;
      v128_t cross[kVectorRows];
      unroll(rows, [&](auto i) { cross[i] = wasm_i32x4_const(0, 0, 0, 0); });
      for (; b != end; b += 2 * kStepBytes) {
        const v128_t b00 = wasm_v128_load(b), b01 = wasm_v128_load(b + 16),
                     b10 = wasm_v128_load(b + 32), b11 = wasm_v128_load(b + 48);
        unroll(rows, [&](auto i) {
          const Halves x(wasm_v128_load64_splat(a.row[i]), b10, b11);
          const Halves y(wasm_v128_load64_splat(a.row[i] + 1), b00, b01);
          cross[i] = wasm_i32x4_add(cross[i], wasm_i32x4_mul(x.low, y.high));
          cross[i] = wasm_i32x4_add(cross[i], wasm_i32x4_mul(x.high, y.low));
          acc[i][0] = wasm_i64x2_add(acc[i][0], wasm_u64x2_extmul_low_u32x4(x.low, y.low));
          acc[i][1] = wasm_i64x2_add(acc[i][1], wasm_u64x2_extmul_high_u32x4(x.low, y.low));
          a.row[i] += 2;
          const uint64_t a_k = a.row[kVectorRows][i];
          unroll(cols, [&](auto j) {
            sums[j] += a_k * load_scalar(b + i * kStepBytes + j * sizeof(uint64_t));
          });
        });
        a.row[kVectorRows] += 2;
      }
      unroll(rows, [&](auto i) {
        acc[i][0] =
            wasm_i64x2_add(acc[i][0], wasm_i64x2_shl(wasm_u64x2_extend_low_u32x4(cross[i]), 32));
        acc[i][1] =
            wasm_i64x2_add(acc[i][1], wasm_i64x2_shl(wasm_u64x2_extend_high_u32x4(cross[i]), 32));
      });
      if (s.k % 2 != 0) {
        unroll(pairs, [&](auto p) {
          const v128_t b_k = wasm_v128_load(b + p * sizeof(v128_t));
          unroll(rows, [&](auto i) {
            acc[i][p] =
                wasm_i64x2_add(acc[i][p], wasm_i64x2_mul(wasm_v128_load64_splat(a.row[i]), b_k));
          });
        });
        unroll(cols, [&](auto j) {
          sums[j] += *a.row[kVectorRows] * load_scalar(b + j * sizeof(uint64_t));
        });
      }
      std::memcpy(c, sums, sizeof(sums));
    });
  }
  if (col < s.cols) i64_panel(s, panel, col);
}

}  // namespace wgemm
