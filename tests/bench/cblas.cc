// Functions of cblas.h in a wasm module, for `npm run bench -- --cblas`. Each repeats its work
// `times` times, so that the call from JavaScript takes a small part of the time. Matrices have no
// gaps.
#include "cblas.h"

#include <emscripten.h>

#include <cstdlib>

#include "loops.h"

namespace {

// The functions of a type.
template <typename T>
struct Blas;
template <>
struct Blas<float> {
  static constexpr auto gemm = &cblas_sgemm;
  static constexpr auto syrk = &cblas_ssyrk;
  static constexpr auto trsm = &cblas_strsm;
};
template <>
struct Blas<double> {
  static constexpr auto gemm = &cblas_dgemm;
  static constexpr auto syrk = &cblas_dsyrk;
  static constexpr auto trsm = &cblas_dtrsm;
};

// Calls `body` `times` times, with a number of the type.
template <typename Body>
void repeat(bool is_double, int times, const Body& body) {
  for (int time = 0; time < times; ++time) is_double ? body(double{1}) : body(float{1});
}

}  // namespace

extern "C" {

// Aligned to 64 bytes. release() frees it.
EMSCRIPTEN_KEEPALIVE void* allocate(size_t bytes) {
  return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
}
EMSCRIPTEN_KEEPALIVE void release(void* memory) { std::free(memory); }

// C = A * B, or A * B' if B is transposed.
EMSCRIPTEN_KEEPALIVE void gemm(bool is_double, CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans_b, int m,
                               int n, int k, const void* a, const void* b, void* c, int times) {
  const bool is_row_major = layout == CblasRowMajor;
  const int ldb = is_row_major == (trans_b == CblasNoTrans) ? n : k;
  repeat(is_double, times, [&]<typename T>(T one) {
    Blas<T>::gemm(layout, CblasNoTrans, trans_b, m, n, k, one, static_cast<const T*>(a),
                  is_row_major ? k : m, static_cast<const T*>(b), ldb, 0, static_cast<T*>(c),
                  is_row_major ? n : m);
  });
}

// C = A * B, row-major.
EMSCRIPTEN_KEEPALIVE void loops(bool is_double, int m, int n, int k, const void* a, const void* b,
                                void* c, int times) {
  repeat(is_double, times, [&]<typename T>(T) {
    multiply_by_loops(m, n, k, static_cast<const T*>(a), static_cast<const T*>(b),
                      static_cast<T*>(c));
  });
}

// A triangle of C = A * A', where A is N x N.
EMSCRIPTEN_KEEPALIVE void syrk(bool is_double, CBLAS_LAYOUT layout, CBLAS_UPLO uplo, int n,
                               const void* a, void* c, int times) {
  repeat(is_double, times, [&]<typename T>(T one) {
    Blas<T>::syrk(layout, uplo, CblasNoTrans, n, n, one, static_cast<const T*>(a), n, 0,
                  static_cast<T*>(c), n);
  });
}

// Solves A * X = B, or X * A = B, row-major, where all are N x N. X replaces B, each time.
EMSCRIPTEN_KEEPALIVE void trsm(bool is_double, CBLAS_SIDE side, CBLAS_UPLO uplo, int n,
                               const void* a, void* b, int times) {
  repeat(is_double, times, [&]<typename T>(T one) {
    Blas<T>::trsm(CblasRowMajor, side, uplo, CblasNoTrans, CblasNonUnit, n, n, one,
                  static_cast<const T*>(a), n, static_cast<T*>(b), n);
  });
}

}  // extern "C"
