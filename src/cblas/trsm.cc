#include "cblas/triangle.h"

namespace wgemm::blas {
namespace {

// Solves the equations at the leaves.
template <typename T>
[[gnu::noinline]] void solve_small(const TriangleProduct<T>& p) {
  for_columns(p, [&](const auto& t, auto& rows) {
    for (int64_t i = 0; i < p.m; ++i) {
      T sum[kTriangleCols];
      for (int64_t j = 0; j < kTriangleCols; ++j) sum[j] = p.alpha * rows[i][j];
      for (int64_t k = 0; k < i; ++k) {
        for (int64_t j = 0; j < kTriangleCols; ++j) sum[j] -= t[i][k] * rows[k][j];
      }
      for (int64_t j = 0; j < kTriangleCols; ++j) rows[i][j] = sum[j] / t[i][i];
    }
  });
}

// By recursion: half of X, its product with the other half of T, then the other half of X.
template <typename T>
[[gnu::noinline]] void solve(const TriangleProduct<T>& p) {
  if (p.m <= kTriangleRows) return solve_small(p);
  const int64_t half = triangle_half(p.m), rest = p.m - half;
  const int64_t first = p.is_lower ? 0 : half, second = half - first,
                rows = p.is_lower ? half : rest, other_rows = p.m - rows;
  solve(p.part(first, rows, p.alpha));
  multiply<T>({other_rows, p.n, rows, -1, p.t.at(second, first), p.x.at(first, 0), p.alpha,
               p.x.at(second, 0)});
  solve(p.part(second, other_rows, T{1}));
}

template <typename T>
void trsm(const Caller& caller, int layout, int side, int uplo, int trans, int diag, int m, int n,
          T alpha, const T* a, int lda, T* b, int ldb) {
  TriangleProduct<T> p;
  if (read_triangle(caller, layout, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, &p))
    solve(p);
}

}  // namespace
}  // namespace wgemm::blas

void cblas_strsm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE TransA,
                 CBLAS_DIAG Diag, CBLAS_INT M, CBLAS_INT N, float alpha, const float* A,
                 CBLAS_INT lda, float* B, CBLAS_INT ldb) {
  wgemm::blas::trsm<float>({"cblas_strsm"}, layout, Side, Uplo, TransA, Diag, M, N, alpha, A, lda,
                           B, ldb);
}
void cblas_dtrsm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE TransA,
                 CBLAS_DIAG Diag, CBLAS_INT M, CBLAS_INT N, double alpha, const double* A,
                 CBLAS_INT lda, double* B, CBLAS_INT ldb) {
  wgemm::blas::trsm<double>({"cblas_dtrsm"}, layout, Side, Uplo, TransA, Diag, M, N, alpha, A, lda,
                            B, ldb);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                          \
  extern "C" wgemm::blas::Subroutine letter##trsm_(                                          \
      const char* side, const char* uplo, const char* trans, const char* diag, const int* m, \
      const int* n, const T* alpha, const T* a, const int* lda, T* b, const int* ldb) {      \
    using namespace wgemm::blas;                                                             \
    trsm<T>({"cblas_" #letter "trsm", true}, CblasColMajor, side_of(side), uplo_of(uplo),    \
            trans_of(trans), diag_of(diag), *m, *n, *alpha, a, *lda, b, *ldb);               \
    return Subroutine();                                                                     \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
