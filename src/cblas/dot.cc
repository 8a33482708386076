#include "cblas.h"
#include "cblas/vector.h"

namespace wgemm::blas {
namespace {

// Sums that are independent, so that compilers add vectors: four vectors of 16 bytes.
template <typename T>
constexpr int64_t kSums = 64 / sizeof(T);

template <typename T>
T dot(int64_t n, const Vector<const T>& x, const Vector<const T>& y) {
  T sum = 0;
  int64_t i = 0;
  if (x.step == 1 && y.step == 1 && n >= kSums<T>) {
    T sums[kSums<T>] = {};
    for (; i + kSums<T> <= n; i += kSums<T>) {
      for (int64_t j = 0; j < kSums<T>; ++j) sums[j] += x.data[i + j] * y.data[i + j];
    }
    for (const T part : sums) sum += part;
  }
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace
}  // namespace wgemm::blas

float cblas_sdot(CBLAS_INT N, const float* X, CBLAS_INT incX, const float* Y, CBLAS_INT incY) {
  using namespace wgemm::blas;
  return dot<float>(N, vector(X, N, incX), vector(Y, N, incY));
}
double cblas_ddot(CBLAS_INT N, const double* X, CBLAS_INT incX, const double* Y, CBLAS_INT incY) {
  using namespace wgemm::blas;
  return dot<double>(N, vector(X, N, incX), vector(Y, N, incY));
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                 \
  extern "C" T letter##dot_(const int* n, const T* x, const int* inc_x, const T* y, \
                            const int* inc_y) {                                     \
    using namespace wgemm::blas;                                                    \
    return dot<T>(*n, vector(x, *n, *inc_x), vector(y, *n, *inc_y));                \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
