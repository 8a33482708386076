#include "cblas/arguments.h"
#include "cblas/product.h"

namespace wgemm::blas {
namespace {

// C = alpha * A * B + beta * C, where A is m x m and has one triangle.
template <typename T>
struct SymmetricProduct {
  int64_t m, n;
  T alpha;
  Matrix<const T> a, b;
  T beta;
  Matrix<T> c;
  bool is_lower;
};

constexpr int64_t kLeaf = 32;

// At the leaves, by a copy of A that has both triangles.
template <typename T>
[[gnu::noinline]] void multiply_small(const SymmetricProduct<T>& p) {
  T square[kLeaf * kLeaf];
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j <= i; ++j)
      square[i * kLeaf + j] = square[j * kLeaf + i] = p.is_lower ? p.a(i, j) : p.a(j, i);
  }
  multiply<T>({p.m, p.n, p.m, p.alpha, {square, kLeaf, 1}, p.b, p.beta, p.c});
}

// By recursion: two symmetric products, and the square between the triangles, which is used twice.
template <typename T>
[[gnu::noinline]] void multiply_symmetric(const SymmetricProduct<T>& p) {
  if (p.m <= kLeaf) return multiply_small(p);
  const int64_t half = (p.m + kLeaf) / 2 / kLeaf * kLeaf, rest = p.m - half;
  const auto part = [&](int64_t first, int64_t rows) {
    multiply_symmetric<T>({rows, p.n, p.alpha, p.a.at(first, first), p.b.at(first, 0), p.beta,
                           p.c.at(first, 0), p.is_lower});
  };
  part(0, half);
  part(half, rest);
  // The square of `rest` rows by `half` columns.
  const Matrix<const T> square = p.is_lower ? p.a.at(half, 0) : p.a.at(0, half).transposed();
  multiply<T>({rest, p.n, half, p.alpha, square, p.b, 1, p.c.at(half, 0)});
  multiply<T>({half, p.n, rest, p.alpha, square.transposed(), p.b.at(half, 0), 1, p.c});
}

template <typename T>
void symm(const Caller& caller, int layout, int side, int uplo, int m, int n, T alpha, const T* a,
          int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  const bool row_major = layout == CblasRowMajor, is_left = side == CblasLeft;
  const Argument rows = {4, "M", m, 0}, cols = {5, "N", n, 0};
  const int line = row_major ? n : m;
  if (!are_allowed(caller,
                   {layout_of(layout), side_of(2, side), uplo_of(3, uplo), row_major ? cols : rows,
                    row_major ? rows : cols, leading(8, "lda", lda, is_left ? m : n),
                    leading(10, "ldb", ldb, line), leading(13, "ldc", ldc, line)}))
    return;
  if (m == 0 || n == 0) return;
  const Matrix<const T> of_b = view(b, ldb, row_major);
  const Matrix<T> of_c = view(c, ldc, row_major);
  if (alpha == 0) return multiply<T>({m, n, 0, 0, {}, {}, beta, of_c});
  // With A from the right, the transposes of B and C.
  multiply_symmetric<T>({is_left ? m : n, is_left ? n : m, alpha, view(a, lda, row_major),
                         is_left ? of_b : of_b.transposed(), beta,
                         is_left ? of_c : of_c.transposed(), uplo == CblasLower});
}

}  // namespace
}  // namespace wgemm::blas

void cblas_ssymm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_INT M, CBLAS_INT N,
                 float alpha, const float* A, CBLAS_INT lda, const float* B, CBLAS_INT ldb,
                 float beta, float* C, CBLAS_INT ldc) {
  wgemm::blas::symm<float>({"cblas_ssymm"}, layout, Side, Uplo, M, N, alpha, A, lda, B, ldb, beta,
                           C, ldc);
}
void cblas_dsymm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_INT M, CBLAS_INT N,
                 double alpha, const double* A, CBLAS_INT lda, const double* B, CBLAS_INT ldb,
                 double beta, double* C, CBLAS_INT ldc) {
  wgemm::blas::symm<double>({"cblas_dsymm"}, layout, Side, Uplo, M, N, alpha, A, lda, B, ldb, beta,
                            C, ldc);
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                                               \
  extern "C" wgemm::blas::Subroutine letter##symm_(                                               \
      const char* side, const char* uplo, const int* m, const int* n, const T* alpha, const T* a, \
      const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc) {          \
    using namespace wgemm::blas;                                                                  \
    symm<T>({"cblas_" #letter "symm", true}, CblasColMajor, side_of(side), uplo_of(uplo), *m, *n, \
            *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                                            \
    return Subroutine();                                                                          \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
