#include "cblas/arguments.h"
#include "cblas/product.h"

namespace wgemm::blas {
namespace {

template <typename T>
void syrk(const Caller& caller, int layout, int uplo, int trans, int n, int k, T alpha, const T* a,
          int lda, T beta, T* c, int ldc) {
  const bool row_major = layout == CblasRowMajor, is_transposed = trans != CblasNoTrans;
  if (!are_allowed(caller, {layout_of(layout),
                            uplo_of(2, uplo),
                            trans_of(3, "Trans", trans),
                            {4, "N", n, 0},
                            {5, "K", k, 0},
                            leading(8, "lda", lda, row_major != is_transposed ? k : n),
                            leading(11, "ldc", ldc, n)}))
    return;
  const Matrix<const T> matrix = view(a, lda, row_major != is_transposed);
  multiply<T>({n, n, k, alpha, matrix, matrix.transposed(), beta, view(c, ldc, row_major),
               uplo == CblasLower ? Triangle::kLower : Triangle::kUpper});
}

}  // namespace
}  // namespace wgemm::blas

void cblas_ssyrk(CBLAS_LAYOUT layout, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE Trans, CBLAS_INT N,
                 CBLAS_INT K, float alpha, const float* A, CBLAS_INT lda, float beta, float* C,
                 CBLAS_INT ldc) {
  wgemm::blas::syrk<float>({"cblas_ssyrk"}, layout, Uplo, Trans, N, K, alpha, A, lda, beta, C, ldc);
}
void cblas_dsyrk(CBLAS_LAYOUT layout, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE Trans, CBLAS_INT N,
                 CBLAS_INT K, double alpha, const double* A, CBLAS_INT lda, double beta, double* C,
                 CBLAS_INT ldc) {
  wgemm::blas::syrk<double>({"cblas_dsyrk"}, layout, Uplo, Trans, N, K, alpha, A, lda, beta, C,
                            ldc);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                                \
  extern "C" wgemm::blas::Subroutine letter##syrk_(                                                \
      const char* uplo, const char* trans, const int* n, const int* k, const T* alpha, const T* a, \
      const int* lda, const T* beta, T* c, const int* ldc) {                                       \
    using namespace wgemm::blas;                                                                   \
    syrk<T>({"cblas_" #letter "syrk", true}, CblasColMajor, uplo_of(uplo), trans_of(trans), *n,    \
            *k, *alpha, a, *lda, *beta, c, *ldc);                                                  \
    return Subroutine();                                                                           \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
