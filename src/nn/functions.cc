#include "nn/functions.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace wgemm::nn {

// The polynomials are minimax fits. The relative error of e^r is below 2^-27. The error of a tail,
// in units of a, is below 2^-26.
constexpr Constants kConstants = {
    .one = 1,
    .half = 0.5,
    .sign = -0.0F,
    .minus_2 = -2,
    .minus_20 = -20,
    .share_end = 5.5578594F,
    .exp_low = -104,
    .exp_high = 89,
    .log2_e = 0x1.715476p+0F,
    .shift = 0x1.8p23F,
    .ln2_high = 0x1.63p-1F,
    .ln2_low = -0x1.bd0106p-13F,
    .exp_terms = {0x1.6a2436p-10F, 0x1.1239e6p-7F, 0x1.5558f2p-5F, 0x1.555492p-3F, 0x1.fffffcp-2F},
    .log_tail = {-0x1.07b84ap-19F, 0x1.c9e62ap-16F, -0x1.0e9fa6p-13F, -0x1.8e2bd4p-14F,
                 0x1.40dd56p-8F, -0x1.2a164ep-5F, -0x1.45f024p-2F, -0x1.98846cp-1F},
    .sigmoid_u = -0x1.988454p+0F,
    .sigmoid_u3 = -0x1.2444f2p-4F,
    .erf_end = 3.93,
    .one_f64 = 1,
    .erf_terms = {2.041883583e-6, 0.0002847838602, 0.003779083429, 0.05278863523, 0.1907733375,
                  1.128379146},
    .divisor = {3.800187557e-5, 0.001165060837, 0.01499640025, 0.1142529442, 0.5024011922, 1},
};

double exp_f64(double x) {
  if (!(x < 710)) return x * HUGE_VAL;  // infinity, or NaN
  if (x < -746) return 0;
  const double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p52, n = shifted - 0x1.8p52;
  // After Cody and Waite, the product by the upper 33 bits of ln(2) is exact.
  const double r = x - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33;
  // e^r = 1 + 2 r / (r coth(r / 2) - r), and r coth(r / 2) = 2 + s / 6 - ... is a series in s.
  const double s = r * r;
  constexpr double kTerms[] = {1.0 / 23950080, -1.0 / 604800, 1.0 / 15120, -1.0 / 360, 1.0 / 6};
  double c = -691.0 / 653837184000;
  for (const double term : kTerms) c = c * s + term;
  c = r - c * s;
  const double y = 1 + (r + r * c / (2 - c));
  // Two factors, since 2^n may be no float64.
  const auto power_of_2 = [](int64_t m) {
    return std::bit_cast<double>(static_cast<uint64_t>(m + 1023) << 52);
  };
  const auto whole = static_cast<int64_t>(n);
  return y * power_of_2(whole >> 1) * power_of_2(whole - (whole >> 1));
}

double sigmoid_f64(double x) { return 1 / (1 + exp_f64(-x)); }

double tanh_f64(double x) {
  const double s = x * x;
  if (s < 4e-4)
    return x * (1 - s * (1.0 / 3 - s * (2.0 / 15 - s * (17.0 / 315 - s * (62.0 / 2835)))));
  return 1 - 2 / (exp_f64(2 * x) + 1);
}

// The series of Maclaurin has no cancellation.
double erf_f64(double x) {
  const double s = x * x;
  if (s > 36) return std::copysign(1.0, x);
  double sum = x, term = x;
  for (double n = 3; std::abs(term) > std::abs(sum) * 0x1p-54; n += 2) sum += term *= 2 * s / n;
  return 0x1.20dd750429b6dp+0 * exp_f64(-s) * sum;
}

double gelu_f64(double x) { return 0.5 * x * (1 + erf_f64(x * 0x1.6a09e667f3bcdp-1)); }

double fast_gelu_f64(double x) {
  return x / (1 + exp_f64(-0x1.9884533d43651p+0 * (x + 0.044715 * x * x * x)));
}

}  // namespace wgemm::nn
