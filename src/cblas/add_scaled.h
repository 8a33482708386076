// y = alpha * x + y, for axpy and ger.
#pragma once

#include "cblas/vector.h"

namespace wgemm::blas {

// Contiguous vectors, which compilers compute by vectors.
template <typename T>
void add_contiguous(int64_t n, T alpha, const T* x, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

template <typename T>
void add_scaled(int64_t n, T alpha, const Vector<const T>& x, const Vector<T>& y) {
  if (x.step == 1 && y.step == 1) return add_contiguous(n, alpha, x.data, y.data);
  for (int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

}  // namespace wgemm::blas
