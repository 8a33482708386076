// What trsm and trmm share: a triangular matrix T from the left, X on the right. A call with T from
// the right is the transpose of one.
#pragma once

#include <algorithm>

#include "cblas/arguments.h"
#include "cblas/product.h"

namespace wgemm::blas {

// T is m x m, X is m x n.
template <typename Number>
struct TriangleProduct {
  int64_t m, n;
  Number alpha;
  Matrix<const Number> t;
  Matrix<Number> x;
  bool is_lower, is_unit;

  // The rows of X from `first` on, and their triangle.
  TriangleProduct part(int64_t first, int64_t rows, Number factor) const {
    return {rows, n, factor, t.at(first, first), x.at(first, 0), is_lower, is_unit};
  }
};

// Rows of a triangle that is computed without products, and columns of X that it takes at a time.
inline constexpr int64_t kTriangleRows = 16, kTriangleCols = 32;

// Where a larger triangle is cut.
inline int64_t triangle_half(int64_t m) {
  return (m + kTriangleRows) / 2 / kTriangleRows * kTriangleRows;
}

// Calls work(t, rows), for a few columns of X at a time. `t` is a copy of the triangle, row by row,
// whose rows are reversed if it is upper, so that it is lower. `rows` is a copy of the columns,
// whose rows are reversed, too, and which is copied back.
template <typename Number, typename Work>
void for_columns(const TriangleProduct<Number>& p, const Work& work) {
  Number t[kTriangleRows][kTriangleRows] = {}, rows[kTriangleRows][kTriangleCols] = {};
  const auto place = [&](int64_t i) { return p.is_lower ? i : p.m - 1 - i; };
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j <= i; ++j)
      t[i][j] = i == j && p.is_unit ? Number{1} : p.t(place(i), place(j));
  }
  for (int64_t col = 0; col < p.n; col += kTriangleCols) {
    const int64_t cols = std::min(kTriangleCols, p.n - col);
    // In the order of memory.
    const auto for_elements = [&](const auto& copy) {
      if (p.x.row == 1) {
        for (int64_t j = 0; j < cols; ++j) {
          for (int64_t i = 0; i < p.m; ++i) copy(p.x(place(i), col + j), rows[i][j]);
        }
      } else {
        for (int64_t i = 0; i < p.m; ++i) {
          for (int64_t j = 0; j < cols; ++j) copy(p.x(place(i), col + j), rows[i][j]);
        }
      }
    };
    for_elements([](const Number& x, Number& row) { row = x; });
    work(t, rows);
    for_elements([](Number& x, const Number& row) { x = row; });
  }
}

// The arguments of trsm and trmm, in their order. False if one is wrong, or if there is nothing to
// do.
template <typename Number>
bool read_triangle(const Caller& caller, int layout, int side, int uplo, int trans, int diag, int m,
                   int n, Number alpha, const Number* a, int lda, Number* b, int ldb,
                   TriangleProduct<Number>* product) {
  const bool row_major = layout == CblasRowMajor, is_left = side == CblasLeft,
             is_transposed = trans != CblasNoTrans;
  const Argument rows = {6, "M", m, 0}, cols = {7, "N", n, 0};
  if (!are_allowed(caller, {layout_of(layout), side_of(2, side), uplo_of(3, uplo),
                            trans_of(4, "TransA", trans), diag_of(5, diag), row_major ? cols : rows,
                            row_major ? rows : cols, leading(10, "lda", lda, is_left ? m : n),
                            leading(12, "ldb", ldb, row_major ? n : m)}))
    return false;
  // From the right, T is the transpose.
  const bool exchanges = is_transposed == is_left;
  const Matrix<Number> x = view(b, ldb, row_major);
  *product = {is_left ? m : n,
              is_left ? n : m,
              alpha,
              view(a, lda, row_major, exchanges),
              is_left ? x : x.transposed(),
              (uplo == CblasLower) != exchanges,
              diag == CblasUnit};
  if (alpha != 0) return m != 0 && n != 0;
  multiply<Number>({m, n, 0, 0, {}, {}, 0, x});
  return false;
}

}  // namespace wgemm::blas
