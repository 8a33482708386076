#include "cblas/arguments.h"
#include "cblas/product.h"

namespace wgemm::blas {
namespace {

template <typename T>
void syr2k(const Caller& caller, int layout, int uplo, int trans, int n, int k, T alpha, const T* a,
           int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  const bool row_major = layout == CblasRowMajor, is_transposed = trans != CblasNoTrans;
  const int line = row_major != is_transposed ? k : n;
  if (!are_allowed(caller, {layout_of(layout),
                            uplo_of(2, uplo),
                            trans_of(3, "Trans", trans),
                            {4, "N", n, 0},
                            {5, "K", k, 0},
                            leading(8, "lda", lda, line),
                            leading(10, "ldb", ldb, line),
                            leading(13, "ldc", ldc, n)}))
    return;
  const Matrix<const T> of_a = view(a, lda, row_major != is_transposed),
                        of_b = view(b, ldb, row_major != is_transposed);
  const Matrix<T> of_c = view(c, ldc, row_major);
  const Triangle triangle = uplo == CblasLower ? Triangle::kLower : Triangle::kUpper;
  multiply<T>({n, n, k, alpha, of_a, of_b.transposed(), beta, of_c, triangle});
  multiply<T>({n, n, k, alpha, of_b, of_a.transposed(), T{1}, of_c, triangle});
}

}  // namespace
}  // namespace wgemm::blas

void cblas_ssyr2k(CBLAS_LAYOUT layout, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE Trans, CBLAS_INT N,
                  CBLAS_INT K, float alpha, const float* A, CBLAS_INT lda, const float* B,
                  CBLAS_INT ldb, float beta, float* C, CBLAS_INT ldc) {
  wgemm::blas::syr2k<float>({"cblas_ssyr2k"}, layout, Uplo, Trans, N, K, alpha, A, lda, B, ldb,
                            beta, C, ldc);
}
void cblas_dsyr2k(CBLAS_LAYOUT layout, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE Trans, CBLAS_INT N,
                  CBLAS_INT K, double alpha, const double* A, CBLAS_INT lda, const double* B,
                  CBLAS_INT ldb, double beta, double* C, CBLAS_INT ldc) {
  wgemm::blas::syr2k<double>({"cblas_dsyr2k"}, layout, Uplo, Trans, N, K, alpha, A, lda, B, ldb,
                             beta, C, ldc);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                                \
  extern "C" wgemm::blas::Subroutine letter##syr2k_(                                               \
      const char* uplo, const char* trans, const int* n, const int* k, const T* alpha, const T* a, \
      const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc) {           \
    using namespace wgemm::blas;                                                                   \
    syr2k<T>({"cblas_" #letter "syr2k", true}, CblasColMajor, uplo_of(uplo), trans_of(trans), *n,  \
             *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                                        \
    return Subroutine();                                                                           \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
