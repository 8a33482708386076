#include "cblas/add_scaled.h"
#include "cblas/arguments.h"
#include "cblas/product.h"

namespace wgemm::blas {
namespace {

template <typename T>
void ger(const Caller& caller, int layout, int m, int n, T alpha, const T* x, int inc_x, const T* y,
         int inc_y, T* a, int lda) {
  const bool row_major = layout == CblasRowMajor;
  const Argument rows = {2, "M", m, 0}, cols = {3, "N", n, 0};
  if (!are_allowed(caller, {layout_of(layout), row_major ? cols : rows, row_major ? rows : cols}))
    return;
  const auto is_x = [&] { return is_increment(caller, 6, "incX", inc_x); };
  const auto is_y = [&] { return is_increment(caller, 8, "incY", inc_y); };
  if (!(row_major ? is_y() && is_x() : is_x() && is_y()) ||
      !are_allowed(caller, {leading(10, "lda", lda, row_major ? n : m)}) || m == 0 || n == 0 ||
      alpha == 0)
    return;
  // Lines of A: rows or columns.
  const int64_t lines = row_major ? m : n, size = row_major ? n : m;
  const Vector<const T> of_x = vector(x, m, inc_x), of_y = vector(y, n, inc_y);
  const Vector<const T> factors = row_major ? of_x : of_y, line = row_major ? of_y : of_x;
  for (int64_t i = 0; i < lines; ++i) {
    // As in the reference, a factor of 0 changes nothing.
    if (factors[i] != 0) add_scaled<T>(size, alpha * factors[i], line, {a + i * lda, 1});
  }
}

}  // namespace
}  // namespace wgemm::blas

void cblas_sger(CBLAS_LAYOUT layout, CBLAS_INT M, CBLAS_INT N, float alpha, const float* X,
                CBLAS_INT incX, const float* Y, CBLAS_INT incY, float* A, CBLAS_INT lda) {
  wgemm::blas::ger<float>({"cblas_sger"}, layout, M, N, alpha, X, incX, Y, incY, A, lda);
}
void cblas_dger(CBLAS_LAYOUT layout, CBLAS_INT M, CBLAS_INT N, double alpha, const double* X,
                CBLAS_INT incX, const double* Y, CBLAS_INT incY, double* A, CBLAS_INT lda) {
  wgemm::blas::ger<double>({"cblas_dger"}, layout, M, N, alpha, X, incX, Y, incY, A, lda);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                                \
  extern "C" wgemm::blas::Subroutine letter##ger_(const int* m, const int* n, const T* alpha,      \
                                                  const T* x, const int* inc_x, const T* y,        \
                                                  const int* inc_y, T* a, const int* lda) {        \
    using namespace wgemm::blas;                                                                   \
    ger<T>({"cblas_" #letter "ger", true}, CblasColMajor, *m, *n, *alpha, x, *inc_x, y, *inc_y, a, \
           *lda);                                                                                  \
    return Subroutine();                                                                           \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
