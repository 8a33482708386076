#include <algorithm>

#include "cblas/arguments.h"
#include "cblas/product.h"
#include "cblas/vector.h"

namespace wgemm::blas {
namespace {

// Elements of a vector that are copied to the stack, since the strides of a product are not
// negative.
constexpr int64_t kChunk = 512;

// y = alpha * A * x + beta * y for vectors that do not lie backwards.
template <typename T>
void multiply_vector(int64_t m, int64_t n, T alpha, const Matrix<const T>& a,
                     const Vector<const T>& x, T beta, const Vector<T>& y) {
  multiply<T>({m, 1, n, alpha, a, {x.data, x.step, 1}, beta, {y.data, y.step, 1}});
}

// The same for an x that may lie backwards.
template <typename T>
void multiply_any(int64_t m, int64_t n, T alpha, const Matrix<const T>& a, const Vector<const T>& x,
                  T beta, const Vector<T>& y) {
  if (x.step > 0) return multiply_vector(m, n, alpha, a, x, beta, y);
  T chunk[kChunk];
  for (int64_t first = 0; first < n; first += kChunk) {
    const int64_t count = std::min(kChunk, n - first);
    for (int64_t i = 0; i < count; ++i) chunk[i] = x[first + i];
    multiply_vector<T>(m, count, alpha, a.at(0, first), {chunk, 1}, first == 0 ? beta : T{1}, y);
  }
}

template <typename T>
void gemv(const Caller& caller, int layout, int trans, int m, int n, T alpha, const T* a, int lda,
          const T* x, int inc_x, T beta, T* y, int inc_y) {
  const bool row_major = layout == CblasRowMajor, is_transposed = trans != CblasNoTrans;
  const Argument rows = {3, "M", m, 0}, cols = {4, "N", n, 0};
  if (!are_allowed(caller,
                   {layout_of(layout), trans_of(2, "TransA", trans), row_major ? cols : rows,
                    row_major ? rows : cols, leading(7, "lda", lda, row_major ? n : m)}) ||
      !is_increment(caller, 9, "incX", inc_x) || !is_increment(caller, 12, "incY", inc_y))
    return;
  if (m == 0 || n == 0) return;
  const int64_t size_y = is_transposed ? n : m, size_x = is_transposed ? m : n;
  const Matrix<const T> matrix = view(a, lda, row_major, is_transposed);
  const Vector<const T> from = vector(x, size_x, inc_x);
  const Vector<T> to = vector(y, size_y, inc_y);
  if (inc_y > 0) return multiply_any(size_y, size_x, alpha, matrix, from, beta, to);
  T chunk[kChunk];
  for (int64_t first = 0; first < size_y; first += kChunk) {
    const int64_t count = std::min(kChunk, size_y - first);
    for (int64_t i = 0; i < count; ++i) chunk[i] = to[first + i];
    multiply_any<T>(count, size_x, alpha, matrix.at(first, 0), from, beta, {chunk, 1});
    for (int64_t i = 0; i < count; ++i) to[first + i] = chunk[i];
  }
}

}  // namespace
}  // namespace wgemm::blas

void cblas_sgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE TransA, CBLAS_INT M, CBLAS_INT N, float alpha,
                 const float* A, CBLAS_INT lda, const float* X, CBLAS_INT incX, float beta,
                 float* Y, CBLAS_INT incY) {
  wgemm::blas::gemv<float>({"cblas_sgemv"}, layout, TransA, M, N, alpha, A, lda, X, incX, beta, Y,
                           incY);
}
void cblas_dgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE TransA, CBLAS_INT M, CBLAS_INT N,
                 double alpha, const double* A, CBLAS_INT lda, const double* X, CBLAS_INT incX,
                 double beta, double* Y, CBLAS_INT incY) {
  wgemm::blas::gemv<double>({"cblas_dgemv"}, layout, TransA, M, N, alpha, A, lda, X, incX, beta, Y,
                            incY);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                              \
  extern "C" wgemm::blas::Subroutine letter##gemv_(                                              \
      const char* trans, const int* m, const int* n, const T* alpha, const T* a, const int* lda, \
      const T* x, const int* inc_x, const T* beta, T* y, const int* inc_y) {                     \
    using namespace wgemm::blas;                                                                 \
    gemv<T>({"cblas_" #letter "gemv", true}, CblasColMajor, trans_of(trans), *m, *n, *alpha, a,  \
            *lda, x, *inc_x, *beta, y, *inc_y);                                                  \
    return Subroutine();                                                                         \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
