#include <cstdint>

#include "cblas.h"
#include "cblas/arguments.h"

namespace wgemm::blas {
namespace {

template <typename T>
void scal(int64_t n, T alpha, T* x, int64_t step) {
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) x[i] *= alpha;
  } else if (step > 0) {
    for (int64_t i = 0; i < n; ++i) x[i * step] *= alpha;
  }
}

}  // namespace
}  // namespace wgemm::blas

void cblas_sscal(CBLAS_INT N, float alpha, float* X, CBLAS_INT incX) {
  wgemm::blas::scal(N, alpha, X, incX);
}
void cblas_dscal(CBLAS_INT N, double alpha, double* X, CBLAS_INT incX) {
  wgemm::blas::scal(N, alpha, X, incX);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                    \
  extern "C" wgemm::blas::Subroutine letter##scal_(const int* n, const T* alpha, T* x, \
                                                   const int* inc_x) {                 \
    wgemm::blas::scal(*n, *alpha, x, *inc_x);                                          \
    return wgemm::blas::Subroutine();                                                  \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
