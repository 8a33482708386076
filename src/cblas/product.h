// The product that every function of level 3 is made of.
#pragma once

#include <cstdint>

#include "problem/problem.h"

namespace wgemm::blas {

// A view of a matrix of T, or of const T: element (i, j) is data[i * row + j * col].
template <typename T>
struct Matrix {
  T* data;
  int64_t row, col;  // elements from row to row, and from column to column

  Matrix at(int64_t i, int64_t j) const { return {data + i * row + j * col, row, col}; }
  Matrix transposed() const { return {data, col, row}; }
  T& operator()(int64_t i, int64_t j) const { return data[i * row + j * col]; }
  operator Matrix<const T>() const { return {data, row, col}; }
};

// The view of a matrix with a leading dimension, or of its transpose.
template <typename T>
Matrix<T> view(T* data, int leading, bool is_row_major, bool is_transposed = false) {
  return is_row_major != is_transposed ? Matrix<T>{data, leading, 1} : Matrix<T>{data, 1, leading};
}

// C = alpha * A * B + beta * C, where C is m x n and A is m x k. C must not overlap A or B. Strides
// must not be negative. A and B are not read if alpha is 0, and C is not read if beta is 0. With a
// triangle, C is square, and elements outside the triangle are neither read nor written.
// T: float or double.
template <typename T>
struct Product {
  int64_t m, n, k;
  T alpha;
  Matrix<const T> a, b;
  T beta;
  Matrix<T> c;
  Triangle triangle = Triangle::kNone;
};
template <typename T>
void multiply(const Product<T>& product);

}  // namespace wgemm::blas
