#include <cmath>

#include "cblas.h"
#include "cblas/vector.h"

namespace wgemm::blas {
namespace {

// The sum of the squares of scaled(element).
template <typename T, typename Scaled>
double sum_of_squares(int64_t n, const Vector<const T>& x, const Scaled& scaled) {
  double sums[4] = {};
  int64_t i = 0;
  const auto add = [&](int64_t at, double* sum) {
    const double element = scaled(static_cast<double>(x[at]));
    *sum += element * element;
  };
  for (; i + 4 <= n; i += 4) {
    for (int64_t j = 0; j < 4; ++j) add(i + j, &sums[j]);
  }
  for (; i < n; ++i) add(i, sums);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double unscaled(double element) { return element; }

// The squares of float32 are exact in float64, which holds any sum of them.
float norm(int64_t n, const Vector<const float>& x) {
  return static_cast<float>(std::sqrt(sum_of_squares(n, x, unscaled)));
}

// If the sum of squares may have lost small terms, or is not finite, the elements are divided by
// the largest.
double norm(int64_t n, const Vector<const double>& x) {
  constexpr double kSafe = 0x1p-900;
  const double sum = sum_of_squares(n, x, unscaled);
  if (sum > kSafe && std::isfinite(sum)) return std::sqrt(sum);
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double magnitude = std::fabs(x[i]);
    if (std::isnan(magnitude)) return magnitude;
    if (magnitude > largest) largest = magnitude;
  }
  if (largest == 0 || std::isinf(largest)) return largest;
  const auto scaled = [&](double element) { return element / largest; };
  return largest * std::sqrt(sum_of_squares(n, x, scaled));
}

}  // namespace
}  // namespace wgemm::blas

float cblas_snrm2(CBLAS_INT N, const float* X, CBLAS_INT incX) {
  return wgemm::blas::norm(N, wgemm::blas::vector(X, N, incX));
}
double cblas_dnrm2(CBLAS_INT N, const double* X, CBLAS_INT incX) {
  return wgemm::blas::norm(N, wgemm::blas::vector(X, N, incX));
}

#if WGEMM_BLAS_FORTRAN
#define WGEMM_BLAS_NAMES(T, letter)                                        \
  extern "C" T letter##nrm2_(const int* n, const T* x, const int* inc_x) { \
    return wgemm::blas::norm(*n, wgemm::blas::vector(x, *n, *inc_x));      \
  }
WGEMM_BLAS_NAMES(float, s)
WGEMM_BLAS_NAMES(double, d)
#endif
