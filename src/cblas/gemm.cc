#include "cblas/arguments.h"
#include "cblas/product.h"

namespace wgemm::blas {
namespace {

template <typename T>
void gemm(const Caller& caller, int layout, int trans_a, int trans_b, int m, int n, int k, T alpha,
          const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  const bool row_major = layout == CblasRowMajor, ta = trans_a != CblasNoTrans,
             tb = trans_b != CblasNoTrans;
  const Argument rows = {4, "M", m, 0}, cols = {5, "N", n, 0},
                 of_a = leading(9, "lda", lda, row_major != ta ? k : m),
                 of_b = leading(11, "ldb", ldb, row_major != tb ? n : k);
  // The reference computes the transpose of a row-major C, so that it checks N and B first.
  if (!are_allowed(caller, {layout_of(layout),
                            trans_of(2, "TransA", trans_a),
                            trans_of(3, "TransB", trans_b),
                            row_major ? cols : rows,
                            row_major ? rows : cols,
                            {6, "K", k, 0},
                            row_major ? of_b : of_a,
                            row_major ? of_a : of_b,
                            leading(14, "ldc", ldc, row_major ? n : m)}))
    return;
  multiply<T>({m, n, k, alpha, view(a, lda, row_major, ta), view(b, ldb, row_major, tb), beta,
               view(c, ldc, row_major)});
}

}  // namespace
}  // namespace wgemm::blas

void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE TransA, CBLAS_TRANSPOSE TransB, CBLAS_INT M,
                 CBLAS_INT N, CBLAS_INT K, float alpha, const float* A, CBLAS_INT lda,
                 const float* B, CBLAS_INT ldb, float beta, float* C, CBLAS_INT ldc) {
  wgemm::blas::gemm<float>({"cblas_sgemm"}, layout, TransA, TransB, M, N, K, alpha, A, lda, B, ldb,
                           beta, C, ldc);
}
void cblas_dgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE TransA, CBLAS_TRANSPOSE TransB, CBLAS_INT M,
                 CBLAS_INT N, CBLAS_INT K, double alpha, const double* A, CBLAS_INT lda,
                 const double* B, CBLAS_INT ldb, double beta, double* C, CBLAS_INT ldc) {
  wgemm::blas::gemm<double>({"cblas_dgemm"}, layout, TransA, TransB, M, N, K, alpha, A, lda, B, ldb,
                            beta, C, ldc);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                                \
  extern "C" wgemm::blas::Subroutine letter##gemm_(                                                \
      const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,          \
      const T* alpha, const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, \
      const int* ldc) {                                                                            \
    using namespace wgemm::blas;                                                                   \
    gemm<T>({"cblas_" #letter "gemm", true}, CblasColMajor, trans_of(trans_a), trans_of(trans_b),  \
            *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                                 \
    return Subroutine();                                                                           \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
