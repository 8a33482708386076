/* BLAS for C and C++, with the names, arguments and enumerations of the standard:
 * https://www.netlib.org/blas/blast-forum/cinterface.pdf. Link wgemm::cblas.
 *
 * Matrices are row-major (CblasRowMajor) or column-major (CblasColMajor). A leading dimension
 * counts the elements from row to row, or from column to column. An increment counts the elements
 * from one element of a vector to the next. If it is negative, the vector lies backwards in memory,
 * and its pointer is the lowest address. CblasConjTrans means CblasTrans, since all numbers are
 * real.
 *
 * - If alpha is 0, A and B are not read. If beta is 0, C and y are written without being read.
 * - If M, N or K makes an operand empty, a call does what the reference BLAS does.
 * - An argument that is not allowed is reported to cblas_xerbla(), and nothing is computed.
 * - A call returns no status. If there is no memory for scratch, the call computes in smaller
 *   blocks, which is slower.
 * - Calls may run on several threads at the same time. wgemm_cblas_set_threads() lets one call at a
 *   time compute on several threads.
 */
#ifndef WGEMM_CBLAS_H
#define WGEMM_CBLAS_H

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CBLAS_INT
#define CBLAS_INT int
#endif

#ifdef __cplusplus
#define WGEMM_CBLAS_ANY : CBLAS_INT /* any int is then a valid value, also a wrong argument */
#else
#define WGEMM_CBLAS_ANY
#endif
typedef enum CBLAS_LAYOUT WGEMM_CBLAS_ANY { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_LAYOUT;
typedef enum CBLAS_TRANSPOSE WGEMM_CBLAS_ANY {
  CblasNoTrans = 111,
  CblasTrans = 112,
  CblasConjTrans = 113
} CBLAS_TRANSPOSE;
typedef enum CBLAS_UPLO WGEMM_CBLAS_ANY { CblasUpper = 121, CblasLower = 122 } CBLAS_UPLO;
typedef enum CBLAS_DIAG WGEMM_CBLAS_ANY { CblasNonUnit = 131, CblasUnit = 132 } CBLAS_DIAG;
typedef enum CBLAS_SIDE WGEMM_CBLAS_ANY { CblasLeft = 141, CblasRight = 142 } CBLAS_SIDE;
#undef WGEMM_CBLAS_ANY
typedef CBLAS_LAYOUT CBLAS_ORDER; /* the older name */

/* Sets the number of threads that a call may compute on, including its own: 1 at first. Returns the
 * number that calls now use: the number before, if the system does not start that many or the build
 * has no threads. */
int wgemm_cblas_set_threads(int threads);

/* Called for argument number `position`, from 1 on, of the function `name`. `form` and what follows
 * are as of printf(). A program may define this function itself; when it returns, the call has done
 * nothing. Otherwise it writes one line to the standard error output, and aborts. */
void cblas_xerbla(CBLAS_INT position, const char* name, const char* form, ...);

/* Level 1 ------------------------------------------------------------------------------------- */

/* The sum of x[i] * y[i]; 0 if N is not above 0. */
float cblas_sdot(CBLAS_INT N, const float* X, CBLAS_INT incX, const float* Y, CBLAS_INT incY);
double cblas_ddot(CBLAS_INT N, const double* X, CBLAS_INT incX, const double* Y, CBLAS_INT incY);

/* The Euclidean norm of x, which neither overflows nor underflows on the way. */
float cblas_snrm2(CBLAS_INT N, const float* X, CBLAS_INT incX);
double cblas_dnrm2(CBLAS_INT N, const double* X, CBLAS_INT incX);

/* y = alpha * x + y */
void cblas_saxpy(CBLAS_INT N, float alpha, const float* X, CBLAS_INT incX, float* Y,
                 CBLAS_INT incY);
void cblas_daxpy(CBLAS_INT N, double alpha, const double* X, CBLAS_INT incX, double* Y,
                 CBLAS_INT incY);

/* x = alpha * x; nothing if incX is not above 0. */
void cblas_sscal(CBLAS_INT N, float alpha, float* X, CBLAS_INT incX);
void cblas_dscal(CBLAS_INT N, double alpha, double* X, CBLAS_INT incX);

/* Level 2 ------------------------------------------------------------------------------------- */

/* y = alpha * op(A) * x + beta * y, where A is M x N */
void cblas_sgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE TransA, CBLAS_INT M, CBLAS_INT N, float alpha,
                 const float* A, CBLAS_INT lda, const float* X, CBLAS_INT incX, float beta,
                 float* Y, CBLAS_INT incY);
void cblas_dgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE TransA, CBLAS_INT M, CBLAS_INT N,
                 double alpha, const double* A, CBLAS_INT lda, const double* X, CBLAS_INT incX,
                 double beta, double* Y, CBLAS_INT incY);

/* A = alpha * x * y' + A, where A is M x N */
void cblas_sger(CBLAS_LAYOUT layout, CBLAS_INT M, CBLAS_INT N, float alpha, const float* X,
                CBLAS_INT incX, const float* Y, CBLAS_INT incY, float* A, CBLAS_INT lda);
void cblas_dger(CBLAS_LAYOUT layout, CBLAS_INT M, CBLAS_INT N, double alpha, const double* X,
                CBLAS_INT incX, const double* Y, CBLAS_INT incY, double* A, CBLAS_INT lda);

/* Level 3 ------------------------------------------------------------------------------------- */

/* C = alpha * op(A) * op(B) + beta * C, where C is M x N and op(A) is M x K */
void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE TransA, CBLAS_TRANSPOSE TransB, CBLAS_INT M,
                 CBLAS_INT N, CBLAS_INT K, float alpha, const float* A, CBLAS_INT lda,
                 const float* B, CBLAS_INT ldb, float beta, float* C, CBLAS_INT ldc);
void cblas_dgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE TransA, CBLAS_TRANSPOSE TransB, CBLAS_INT M,
                 CBLAS_INT N, CBLAS_INT K, double alpha, const double* A, CBLAS_INT lda,
                 const double* B, CBLAS_INT ldb, double beta, double* C, CBLAS_INT ldc);

/* C = alpha * A * B + beta * C, or alpha * B * A + beta * C, where A is symmetric and C is M x N.
 * Only the triangle Uplo of A is read. */
void cblas_ssymm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_INT M, CBLAS_INT N,
                 float alpha, const float* A, CBLAS_INT lda, const float* B, CBLAS_INT ldb,
                 float beta, float* C, CBLAS_INT ldc);
void cblas_dsymm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_INT M, CBLAS_INT N,
                 double alpha, const double* A, CBLAS_INT lda, const double* B, CBLAS_INT ldb,
                 double beta, double* C, CBLAS_INT ldc);

/* C = alpha * op(A) * op(A)' + beta * C, where C is N x N and op(A) is N x K. Only the triangle
 * Uplo of C is read and written. */
void cblas_ssyrk(CBLAS_LAYOUT layout, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE Trans, CBLAS_INT N,
                 CBLAS_INT K, float alpha, const float* A, CBLAS_INT lda, float beta, float* C,
                 CBLAS_INT ldc);
void cblas_dsyrk(CBLAS_LAYOUT layout, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE Trans, CBLAS_INT N,
                 CBLAS_INT K, double alpha, const double* A, CBLAS_INT lda, double beta, double* C,
                 CBLAS_INT ldc);

/* C = alpha * op(A) * op(B)' + alpha * op(B) * op(A)' + beta * C, the same way. */
void cblas_ssyr2k(CBLAS_LAYOUT layout, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE Trans, CBLAS_INT N,
                  CBLAS_INT K, float alpha, const float* A, CBLAS_INT lda, const float* B,
                  CBLAS_INT ldb, float beta, float* C, CBLAS_INT ldc);
void cblas_dsyr2k(CBLAS_LAYOUT layout, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE Trans, CBLAS_INT N,
                  CBLAS_INT K, double alpha, const double* A, CBLAS_INT lda, const double* B,
                  CBLAS_INT ldb, double beta, double* C, CBLAS_INT ldc);

/* B = alpha * op(A) * B, or alpha * B * op(A), where A is triangular and B is M x N. Only the
 * triangle Uplo of A is read; with CblasUnit, its diagonal counts as 1 and is not read. */
void cblas_strmm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE TransA,
                 CBLAS_DIAG Diag, CBLAS_INT M, CBLAS_INT N, float alpha, const float* A,
                 CBLAS_INT lda, float* B, CBLAS_INT ldb);
void cblas_dtrmm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE TransA,
                 CBLAS_DIAG Diag, CBLAS_INT M, CBLAS_INT N, double alpha, const double* A,
                 CBLAS_INT lda, double* B, CBLAS_INT ldb);

/* Writes the X of op(A) * X = alpha * B, or of X * op(A) = alpha * B, over B, the same way. */
void cblas_strsm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE TransA,
                 CBLAS_DIAG Diag, CBLAS_INT M, CBLAS_INT N, float alpha, const float* A,
                 CBLAS_INT lda, float* B, CBLAS_INT ldb);
void cblas_dtrsm(CBLAS_LAYOUT layout, CBLAS_SIDE Side, CBLAS_UPLO Uplo, CBLAS_TRANSPOSE TransA,
                 CBLAS_DIAG Diag, CBLAS_INT M, CBLAS_INT N, double alpha, const double* A,
                 CBLAS_INT lda, double* B, CBLAS_INT ldb);

#ifdef __cplusplus
}
#endif

#endif
