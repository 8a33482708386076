// Updates of a triangle of a symmetric C: syrk and syr2k.
#pragma once

#include "cblas/product.h"

namespace wgemm::blas {

// C = alpha * A * B' + beta * C, where C is n x n and A and B are n x k. Only the triangle of C is
// read and written. `is_twice`: adds alpha * B * A', too.
template <typename T>
struct TriangleUpdate {
  int64_t n, k;
  T alpha;
  Matrix<const T> a, b;
  T beta;
  Matrix<T> c;  // row-major
  bool is_lower, is_twice;
};

// A or B, row by row as op() has them. They are not read, and may be null, if alpha or k is 0.
template <typename T>
Matrix<const T> operand_of_update(const T* data, int leading, bool is_row_major, T alpha, int k) {
  return alpha == 0 || k == 0 ? Matrix<const T>{} : view(data, leading, is_row_major);
}

inline constexpr int64_t kTriangleLeaf = 32;

// A triangle at the leaves: a part of a square on the stack.
template <typename T>
[[gnu::noinline]] void update_small_triangle(const TriangleUpdate<T>& u) {
  T square[kTriangleLeaf * kTriangleLeaf];
  const Matrix<T> sums = {square, kTriangleLeaf, 1};
  multiply<T>({u.n, u.n, u.k, u.alpha, u.a, u.b.transposed(), 0, sums});
  for (int64_t i = 0; i < u.n; ++i) {
    const int64_t begin = u.is_lower ? 0 : i, end = u.is_lower ? i + 1 : u.n;
    for (int64_t j = begin; j < end; ++j) {
      const T sum = u.is_twice ? sums(i, j) + sums(j, i) : sums(i, j);
      u.c(i, j) = u.beta == 0 ? sum : sum + u.beta * u.c(i, j);
    }
  }
}

// By recursion: two triangles, and a square between them, which is a product.
template <typename T>
[[gnu::noinline]] void update_triangle(const TriangleUpdate<T>& u) {
  if ((u.alpha == 0 || u.k == 0) && u.beta == 1) return;
  if (u.n <= kTriangleLeaf) return update_small_triangle(u);
  const int64_t half = (u.n + kTriangleLeaf) / 2 / kTriangleLeaf * kTriangleLeaf, rest = u.n - half;
  const auto part = [&](int64_t first, int64_t n) {
    update_triangle<T>({n, u.k, u.alpha, u.a.at(first, 0), u.b.at(first, 0), u.beta,
                        u.c.at(first, first), u.is_lower, u.is_twice});
  };
  part(0, half);
  part(half, rest);
  const int64_t row = u.is_lower ? half : 0, col = half - row, m = u.is_lower ? rest : half,
                n = u.n - m;
  const Matrix<T> square = u.c.at(row, col);
  multiply<T>({m, n, u.k, u.alpha, u.a.at(row, 0), u.b.at(col, 0).transposed(), u.beta, square});
  if (u.is_twice)
    multiply<T>({m, n, u.k, u.alpha, u.b.at(row, 0), u.a.at(col, 0).transposed(), 1, square});
}

}  // namespace wgemm::blas
