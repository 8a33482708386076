#include "kernels/i64_scalar.h"

#include <algorithm>
#include <cstring>

#include "kernels/loops/unroll.h"

namespace wgemm {
namespace {

constexpr size_t kElement = sizeof(uint64_t), kPanelWidth = 4;

// Volatile, since a tile has registers for its sums and pointers, but not for elements of B that
// several rows share. Reading them again costs nothing.
uint64_t load(const std::byte* from) { return *reinterpret_cast<const volatile uint64_t*>(from); }

// R rows by C columns from (row, col) on. Strides of B are in bytes: `step` along k, `stride` from
// column to column. If they are constants, one pointer serves all columns.
template <size_t R, size_t C>
[[gnu::always_inline]] inline void tile(const Strip& s, const std::byte* b, size_t step,
                                        size_t stride, size_t row, size_t col) {
  constexpr auto rows = std::make_index_sequence<R>{};
  constexpr auto cols = std::make_index_sequence<C>{};
  const size_t c_stride = s.c_stride;
  std::byte* const c = static_cast<std::byte*>(s.c) + row * c_stride + col * kElement;
  const std::byte *a[R], *b_at[C];
  uint64_t sums[R][C];
  unroll(cols, [&](auto j) { b_at[j] = b + j * stride; });
  unroll(rows, [&](auto i) {
    a[i] = static_cast<const std::byte*>(s.a) + (row + i) * s.a_stride;
    unroll(cols,
           [&](auto j) { sums[i][j] = s.accumulate ? load(c + i * c_stride + j * kElement) : 0; });
  });
  size_t k = s.k;
  do {
    unroll(rows, [&](auto i) {
      const uint64_t a_k = load(a[i]);
      a[i] += kElement;
      unroll(cols, [&](auto j) { sums[i][j] += a_k * load(b_at[j]); });
    });
    unroll(cols, [&](auto j) { b_at[j] += step; });
  } while (--k != 0);
  unroll(rows, [&](auto i) {
    unroll(cols,
           [&](auto j) { std::memcpy(c + i * c_stride + j * kElement, &sums[i][j], kElement); });
  });
}

// GEMV reads four columns at a time, as streams.
template <size_t R>
[[gnu::always_inline]] inline void rows_of_unpacked(const Strip& s, size_t step, size_t stride) {
  constexpr size_t kColumns = R == 1 ? 4 : 2;
  const auto* b = static_cast<const std::byte*>(s.b);
  size_t col = 0;
  for (; col + kColumns <= s.cols; col += kColumns, b += kColumns * stride)
    tile<R, kColumns>(s, b, step, stride, 0, col);
#pragma clang loop unroll(disable)
  for (; col < s.cols; ++col, b += stride) tile<R, 1>(s, b, step, stride, 0, col);
}

}  // namespace

static void unpacked(const Strip& s, size_t step, size_t stride) {
  s.rows == 1 ? rows_of_unpacked<1>(s, step, stride) : rows_of_unpacked<2>(s, step, stride);
}

void i64_2x1_portable_rowmajor(const Strip& s) { unpacked(s, s.b_step, kElement); }

void i64_2x1_portable_colmajor(const Strip& s) { unpacked(s, s.b_step, s.b_stride); }

void i64_last_columns(const Strip& s, const void* b, size_t col) {
  const auto* const panel = static_cast<const std::byte*>(b);
  const size_t cols = std::min(kPanelWidth, s.cols - col), step = kPanelWidth * kElement;
  for (size_t row = 0; row < s.rows; ++row) {
    if (cols == kPanelWidth) {
      tile<1, kPanelWidth>(s, panel, step, kElement, row, col);
    } else {
      for (size_t j = 0; j < cols; ++j)
        tile<1, 1>(s, panel + j * kElement, step, kElement, row, col + j);
    }
  }
}

void i64_4x4_portable(const Strip& s) {
  const auto* b = static_cast<const std::byte*>(s.b);
  for (size_t col = 0; col < s.cols; col += kPanelWidth, b += s.b_stride)
    i64_last_columns(s, b, col);
}

}  // namespace wgemm
