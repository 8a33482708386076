#include "cblas.h"
#include "cblas/add_scaled.h"
#include "cblas/arguments.h"

namespace wgemm::blas {
namespace {

template <typename T>
void axpy(int n, T alpha, const T* x, int inc_x, T* y, int inc_y) {
  if (alpha != 0) add_scaled<T>(n, alpha, vector(x, n, inc_x), vector(y, n, inc_y));
}

}  // namespace
}  // namespace wgemm::blas

void cblas_saxpy(CBLAS_INT N, float alpha, const float* X, CBLAS_INT incX, float* Y,
                 CBLAS_INT incY) {
  wgemm::blas::axpy(N, alpha, X, incX, Y, incY);
}
void cblas_daxpy(CBLAS_INT N, double alpha, const double* X, CBLAS_INT incX, double* Y,
                 CBLAS_INT incY) {
  wgemm::blas::axpy(N, alpha, X, incX, Y, incY);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                            \
  extern "C" wgemm::blas::Subroutine letter##axpy_(const int* n, const T* alpha, const T* x,   \
                                                   const int* inc_x, T* y, const int* inc_y) { \
    wgemm::blas::axpy(*n, *alpha, x, *inc_x, y, *inc_y);                                       \
    return wgemm::blas::Subroutine();                                                          \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
