#include "cblas/triangle.h"

namespace wgemm::blas {
namespace {

template <typename T>
[[gnu::noinline]] void multiply_small(const TriangleProduct<T>& p) {
  for_columns(p, [&](const auto& t, auto& rows) {
    for (int64_t i = p.m - 1; i >= 0; --i) {
      T sum[kTriangleCols] = {};
      for (int64_t k = 0; k <= i; ++k) {
        for (int64_t j = 0; j < kTriangleCols; ++j) sum[j] += t[i][k] * rows[k][j];
      }
      for (int64_t j = 0; j < kTriangleCols; ++j) rows[i][j] = p.alpha * sum[j];
    }
  });
}

// By recursion: first the half of X that needs all of X.
template <typename T>
[[gnu::noinline]] void multiply_triangle(const TriangleProduct<T>& p) {
  if (p.m <= kTriangleRows) return multiply_small(p);
  const int64_t half = triangle_half(p.m), rest = p.m - half;
  const int64_t first = p.is_lower ? half : 0, second = half - first,
                rows = p.is_lower ? rest : half, other_rows = p.m - rows;
  multiply_triangle(p.part(first, rows, p.alpha));
  multiply<T>({rows, p.n, other_rows, p.alpha, p.t.at(first, second), p.x.at(second, 0), 1,
               p.x.at(first, 0)});
  multiply_triangle(p.part(second, other_rows, p.alpha));
}

template <typename T>
void trmm(const Caller& caller, int layout, int side, int uplo, int trans, int diag, int m, int n,
          T alpha, const T* a, int lda, T* b, int ldb) {
  TriangleProduct<T> p;
  if (read_triangle(caller, layout, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, &p))
    multiply_triangle(p);
}

}  // namespace
}  // namespace wgemm::blas

void cblas_strmm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE TransA,
                 CBLAS_DIAG Diag, CBLAS_INT M, CBLAS_INT N, float alpha, const float* A,
                 CBLAS_INT lda, float* B, CBLAS_INT ldb) {
  wgemm::blas::trmm<float>({"cblas_strmm"}, layout, Side, Uplo, TransA, Diag, M, N, alpha, A, lda,
                           B, ldb);
}
void cblas_dtrmm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE TransA,
                 CBLAS_DIAG Diag, CBLAS_INT M, CBLAS_INT N, double alpha, const double* A,
                 CBLAS_INT lda, double* B, CBLAS_INT ldb) {
  wgemm::blas::trmm<double>({"cblas_dtrmm"}, layout, Side, Uplo, TransA, Diag, M, N, alpha, A, lda,
                            B, ldb);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                          \
  extern "C" wgemm::blas::Subroutine letter##trmm_(                                          \
      const char* side, const char* uplo, const char* trans, const char* diag, const int* m, \
      const int* n, const T* alpha, const T* a, const int* lda, T* b, const int* ldb) {      \
    using namespace wgemm::blas;                                                             \
    trmm<T>({"cblas_" #letter "trmm", true}, CblasColMajor, side_of(side), uplo_of(uplo),    \
            trans_of(trans), diag_of(diag), *m, *n, *alpha, a, *lda, b, *ldb);               \
    return Subroutine();                                                                     \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
