#include "nn/functions.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace wgemm::nn {

// The polynomials are minimax fits. The relative error of e^r is below 2^-27, and of 2^f below
// 2^-25. The error of a tail, in units of a, is below 2^-26.
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
    .power_terms = {0x1.470b4ap-13F, 0x1.5f7276p-10F, 0x1.3b270ep-7F, 0x1.c6ae72p-5F,
                    0x1.ebfbe2p-3F, 0x1.62e432p-1F},
    .least_exponent = -127,
    .shift_127 = 0x1.8p23F + 127,
    .two = 2,
    .infinity = HUGE_VALF,
    .least_normal = 0x1p-126F,
    .two_23 = 0x1p23F,
    .root_half = 0x1.6a09e6p-1F,
    .atanh_terms = {0x1.1f1c32p-3F, 0x1.1eaf5cp-3F, 0x1.99d2dap-3F, 0x1.5555p-2F},
    .log_tail = {-0x1.07b84ap-19F, 0x1.c9e62ap-16F, -0x1.0e9fa6p-13F, -0x1.8e2bd4p-14F,
                 0x1.40dd56p-8F, -0x1.2a164ep-5F, -0x1.45f024p-2F, -0x1.98846cp-1F},
    .sigmoid_u = -0x1.988454p+0F,
    .sigmoid_u3 = -0x1.2444f2p-4F,
    .erf_end = 3.93,
    .one_f64 = 1,
    .minus_1_f64 = -1,
    .sign_f64 = -0.0,
    .shift_f64 = 0x1.8p52,
    .two_over_pi = 0x1.45f306dc9c883p-1,
    .half_pi = {0x1.921fb5p+0, 0x1.110b46p-26, 0x1.1a62633145c07p-54},
    .sin_terms = {1.58969099521155010221e-10, -2.50507602534068634195e-08,
                  2.75573137070700676789e-06, -1.98412698298579493134e-04,
                  8.33333333332248946124e-03, -1.66666666666666324348e-01, 1},
    .cos_terms = {-1.13596475577881948265e-11, 2.08757232129817482790e-09,
                  -2.75573143513906633035e-07, 2.48015872894767294178e-05,
                  -1.38888888888741095749e-03, 4.16666666666666019037e-02, -0.5, 1},
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

double log_f64(double x) {
  // The root is NaN or 0, and keeps infinity.
  if (!(x > 0 && x < HUGE_VAL)) return std::sqrt(x) - (x == 0 ? HUGE_VAL : 0);
  const double scale = x < 0x1p-1022 ? 0x1p54 : 1;
  // x = m * 2^n, with m in about [sqrt(1 / 2), sqrt(2)].
  const uint64_t bits = std::bit_cast<uint64_t>(x * scale),
                 offset = bits - std::bit_cast<uint64_t>(0x1.6ap-1);
  const auto n = static_cast<double>(static_cast<int64_t>(offset) >> 52) - (scale == 1 ? 0 : 54);
  const double m = std::bit_cast<double>(bits - (offset & ~uint64_t{0} << 52));
  // log(m) = 2 (q + q^3 / 3 + q^5 / 5 + ...)
  const double q = (m - 1) / (m + 1), square = q * q;
  double series = 0;
#pragma clang loop unroll(disable)
  for (double k = 21; k >= 3; k -= 2) series = (series + 1 / k) * square;
  return n * 0x1.62e42fefa39efp-1 + 2 * (q + q * series);
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

double softplus_f64(double x) {
  const double e = exp_f64(-std::abs(x)), sum = 1 + e;
  // The quotient makes up for the bits that the sum has lost.
  return (x > 0 ? x : 0) + (sum == 1 ? e : log_f64(sum) * e / (sum - 1));
}

double mish_f64(double x) {
  const double e = exp_f64(-std::abs(x)), square = e * e;
  const double above = 2 * e + (x < 0 ? square : 1);
  return x * (above / (above + (x < 0 ? 2 : 2 * square)));
}

}  // namespace wgemm::nn
