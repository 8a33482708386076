#include "kernels/i64_scalar.h"

#include <algorithm>
#include <cstring>

#include "kernels/loops/unroll.h"

namespace wgemm {
namespace {

constexpr size_t kElement = sizeof(uint64_t), kPanelWidth = 4;

// Volatile, so that compilers read B again for each row. A tile has registers for its sums and
// pointers, but not for elements of B that rows share. Reading them again costs nothing.
uint64_t load(const std::byte* from) { return *reinterpret_cast<const volatile uint64_t*>(from); }

// R rows by C columns from (row, col) on. Strides of B are in bytes: `step` along k, `stride` from
// column to column. If both are constants, one pointer serves all columns.
template <size_t R, size_t C>
[[gnu::always_inline]] inline void tile(const Strip& s, const std::byte* b, size_t step,
                                        size_t stride, size_t row, size_t col) {
  constexpr auto rows = std::make_index_sequence<R>{};
  constexpr auto cols = std::make_index_sequence<C>{};
  const size_t c_stride = s.c_stride, c_step = s.c_step;
  std::byte* const c = static_cast<std::byte*>(s.c) + row * c_stride + col * c_step;
  const std::byte *a[R], *b_at[C];
  uint64_t sums[R][C];
  unroll(cols, [&](auto j) { b_at[j] = b + j * stride; });
  unroll(rows, [&](auto i) {
    a[i] = static_cast<const std::byte*>(s.a) + (row + i) * s.a_stride;
    unroll(cols,
           [&](auto j) { sums[i][j] = s.accumulate ? load(c + i * c_stride + j * c_step) : 0; });
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
           [&](auto j) { std::memcpy(c + i * c_stride + j * c_step, &sums[i][j], kElement); });
  });
}

// R rows by `count` columns from (row, col) on. GEMV reads four columns at a time, as streams.
template <size_t R>
[[gnu::always_inline]] inline void rows_of_tiles(const Strip& s, const std::byte* b, size_t step,
                                                 size_t stride, size_t row, size_t col,
                                                 size_t count) {
  constexpr size_t kColumns = R == 1 ? 4 : 2;
  for (; count >= kColumns; count -= kColumns, col += kColumns, b += kColumns * stride)
    tile<R, kColumns>(s, b, step, stride, row, col);
#pragma clang loop unroll(disable)
  for (; count != 0; --count, ++col, b += stride) tile<R, 1>(s, b, step, stride, row, col);
}

// All rows of the strip by `count` columns from `col` on. Not inlined, so that the module has it
// once.
[[gnu::noinline]] void columns(const Strip& s, const void* b, size_t step, size_t stride,
                               size_t col, size_t count) {
  const auto* const from = static_cast<const std::byte*>(b);
  size_t row = 0;
  for (; row + 2 <= s.rows; row += 2) rows_of_tiles<2>(s, from, step, stride, row, col, count);
  if (row < s.rows) rows_of_tiles<1>(s, from, step, stride, row, col, count);
}

}  // namespace

void i64_2x1_portable_rowmajor(const Strip& s) { columns(s, s.b, s.b_step, kElement, 0, s.cols); }

void i64_2x1_portable_colmajor(const Strip& s) { columns(s, s.b, s.b_step, s.b_stride, 0, s.cols); }

void i64_panel(const Strip& s, const void* panel, size_t col) {
  columns(s, panel, kPanelWidth * kElement, kElement, col, std::min(kPanelWidth, s.cols - col));
}

void i64_2x4_portable(const Strip& s) {
  const auto* b = static_cast<const std::byte*>(s.b);
  for (size_t col = 0; col < s.cols; col += kPanelWidth, b += s.b_stride) i64_panel(s, b, col);
}

}  // namespace wgemm
