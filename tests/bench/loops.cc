// The loops that a program without a BLAS has. They are compiled by -O3 -msimd128 alone. The inner
// loop runs along rows of B and C, so that the compiler makes vectors of it.
#include "loops.h"

#include <algorithm>

namespace {

template <typename T>
void multiply(int m, int n, int k, const T* __restrict a, const T* __restrict b, T* __restrict c) {
  for (int i = 0; i < m; ++i, a += k, c += n) {
    std::fill_n(c, n, T(0));
    for (int p = 0; p < k; ++p) {
      const T factor = a[p];
      const T* const row = b + p * n;
      for (int j = 0; j < n; ++j) c[j] += factor * row[j];
    }
  }
}

}  // namespace

void multiply_by_loops(int m, int n, int k, const float* a, const float* b, float* c) {
  multiply(m, n, k, a, b, c);
}
void multiply_by_loops(int m, int n, int k, const double* a, const double* b, double* c) {
  multiply(m, n, k, a, b, c);
}
