// Functions of one number. They use no instruction whose result an engine may choose, so that their
// results have the same bits everywhere.
#pragma once

#include <wasm_simd128.h>

#include <initializer_list>

namespace wgemm::nn {

// A number in all lanes of a vector in memory. V8 would build a literal vector again in every
// iteration of a loop.
template <typename T>
struct alignas(16) Splat {
  T lanes[16 / sizeof(T)];
  constexpr Splat(T value) {  // NOLINT
    for (T& lane : lanes) lane = value;
  }
  operator v128_t() const { return wasm_v128_load(lanes); }  // NOLINT
};

struct Constants {
  Splat<float> one, half, sign, minus_2, minus_20, share_end;
  Splat<float> exp_low, exp_high;  // e^x rounds to 0 below, and to infinity above
  Splat<float> log2_e, shift, ln2_high, ln2_low;
  Splat<float> exp_terms[5];               // e^r = 1 + r + r^2 p(r)
  Splat<float> power_terms[6];             // 2^f = 1 + f p(f)
  Splat<float> least_exponent, shift_127;  // the powers of 2 below are 0
  Splat<float> two, infinity, least_normal, two_23, root_half;
  Splat<float> atanh_terms[4];         // atanh(q) = q + q^3 p(q^2)
  Splat<float> log_tail[8];            // erfc(a / sqrt(2)) = e^(a p(a))
  Splat<float> sigmoid_u, sigmoid_u3;  // FastGelu(x) = x sigmoid(u x + u3 x^3)
  Splat<double> erf_end, one_f64;      // erf(x) rounds to 1 above
  Splat<double> minus_1_f64, sign_f64, shift_f64;
  Splat<double> two_over_pi, half_pi[3];     // pi / 2 is the sum of three parts
  Splat<double> sin_terms[7], cos_terms[8];  // sin(r) = r p(r^2), cos(r) = p(r^2)
  Splat<double> erf_terms[6], divisor[6];    // erf(x) = x p(x^2) / q(x^2)
};
extern const Constants kConstants;

// A polynomial of x, of four float32 or two float64. Its terms begin with the highest power.
template <typename T, int kTerms>
[[gnu::always_inline]] inline v128_t polynomial(const Splat<T> (&terms)[kTerms], v128_t x) {
  v128_t sum = terms[0];
#pragma clang loop unroll(full)
  for (int i = 1; i < kTerms; ++i) {
    if constexpr (sizeof(T) == 4) {
      sum = wasm_f32x4_add(wasm_f32x4_mul(sum, x), terms[i]);
    } else {
      sum = wasm_f64x2_add(wasm_f64x2_mul(sum, x), terms[i]);
    }
  }
  return sum;
}

// Four powers of e, before they are scaled: e^x = (1 + rest) * 2^n.
struct ExpParts {
  v128_t rest;  // e^r - 1, for |r| <= ln(2) / 2
  v128_t n;     // integers in the low 9 bits; the bits above are undefined

  // x must be in [exp_low, exp_high], or NaN: then the rest is NaN.
  [[gnu::always_inline]] explicit ExpParts(v128_t x) {
    const Constants& c = kConstants;
    // The shift is so large that the sum has no bits below 1. It leaves n in the low bits.
    n = wasm_f32x4_add(wasm_f32x4_mul(x, c.log2_e), c.shift);
    const v128_t whole = wasm_f32x4_sub(n, c.shift);
    // After Cody and Waite, the first product is exact, and so is the first difference.
    v128_t r = wasm_f32x4_sub(x, wasm_f32x4_mul(whole, c.ln2_high));
    r = wasm_f32x4_sub(r, wasm_f32x4_mul(whole, c.ln2_low));
    const v128_t p = polynomial(c.exp_terms, r);
    rest = wasm_f32x4_add(wasm_f32x4_mul(wasm_f32x4_mul(p, r), r), r);
  }

  // 2^m for the low 9 bits of m, in [-126, 127].
  [[gnu::always_inline]] static v128_t power_of_2(v128_t m) {
    return wasm_i32x4_add(wasm_i32x4_shl(m, 23), kConstants.one);
  }
};

// e^x, within a unit in the last place. Subnormal results are kept, and NaN stays NaN.
[[gnu::always_inline]] inline v128_t exp_f32x4(v128_t x) {
  const ExpParts e(wasm_f32x4_pmax(wasm_f32x4_pmin(x, kConstants.exp_high), kConstants.exp_low));
  // Two factors, since 2^n may be no float32.
  const v128_t half = wasm_u32x4_shr(e.n, 1);
  const v128_t first = ExpParts::power_of_2(half);
  return wasm_f32x4_mul(wasm_f32x4_add(wasm_f32x4_mul(e.rest, first), first),
                        ExpParts::power_of_2(wasm_i32x4_sub(e.n, half)));
}

[[gnu::always_inline]] inline v128_t sigmoid_f32x4(v128_t x) {
  const v128_t e = exp_f32x4(wasm_v128_or(x, kConstants.sign));  // e^-|x|
  const v128_t upper = wasm_v128_bitselect(e, kConstants.one, wasm_i32x4_shr(x, 31));
  return wasm_f32x4_div(upper, wasm_f32x4_add(kConstants.one, e));
}

[[gnu::always_inline]] inline v128_t tanh_f32x4(v128_t x) {
  const Constants& c = kConstants;
  // d = 1 - e^(-2 |x|). It keeps its accuracy close to 0.
  const ExpParts e(wasm_f32x4_pmax(wasm_f32x4_mul(wasm_f32x4_abs(x), c.minus_2), c.minus_20));
  const v128_t power = ExpParts::power_of_2(e.n);
  const v128_t d = wasm_f32x4_sub(wasm_f32x4_sub(c.one, power), wasm_f32x4_mul(e.rest, power));
  const v128_t y = wasm_f32x4_div(d, wasm_f32x4_add(d, c.minus_2));  // with any sign
  return wasm_v128_bitselect(x, y, c.sign);
}

// e^x - 1 for x <= 0, or NaN. It keeps its accuracy close to 0.
[[gnu::always_inline]] inline v128_t expm1_f32x4(v128_t x) {
  const ExpParts e(wasm_f32x4_pmax(x, kConstants.minus_20));
  const v128_t power = ExpParts::power_of_2(e.n);
  return wasm_f32x4_add(wasm_f32x4_mul(e.rest, power), wasm_f32x4_sub(power, kConstants.one));
}

// x (1 - share) for a positive x, and x share for a negative one. The share is at most a half.
[[gnu::always_inline]] inline v128_t gelu_of_share(v128_t x, v128_t share) {
  // For infinity, the product would be NaN. Above share_end, it is too small for the difference.
  const v128_t product = wasm_f32x4_mul(wasm_f32x4_pmin(x, kConstants.share_end), share);
  return wasm_v128_bitselect(product, wasm_f32x4_sub(x, product), wasm_i32x4_shr(x, 31));
}

// x (1 + erf(x / sqrt(2))) / 2. The share is erfc(a / sqrt(2)) / 2, and 0 above share_end.
[[gnu::always_inline]] inline v128_t gelu_f32x4(v128_t x) {
  const Constants& c = kConstants;
  const v128_t a = wasm_f32x4_abs(x);
  const v128_t log = wasm_f32x4_mul(polynomial(c.log_tail, a), a);
  const v128_t share = wasm_f32x4_mul(exp_f32x4(log), c.half);
  return gelu_of_share(x, wasm_v128_andnot(share, wasm_f32x4_gt(a, c.share_end)));
}

// x sigmoid(2 u) for u = sqrt(2 / pi) (x + 0.044715 x^3). The share is sigmoid(-2 u).
[[gnu::always_inline]] inline v128_t fast_gelu_f32x4(v128_t x) {
  const Constants& c = kConstants;
  const v128_t factor =
      wasm_f32x4_add(wasm_f32x4_mul(wasm_f32x4_mul(x, x), c.sigmoid_u3), c.sigmoid_u);
  const v128_t e = exp_f32x4(wasm_f32x4_mul(wasm_f32x4_abs(x), factor));
  return gelu_of_share(x, wasm_f32x4_div(e, wasm_f32x4_add(c.one, e)));
}

// The error function for results of float32.
[[gnu::always_inline]] inline v128_t erf_f64x2(v128_t x) {
  const Constants& c = kConstants;
  const v128_t s = wasm_f64x2_mul(x, x);
  const v128_t quotient =
      wasm_f64x2_div(wasm_f64x2_mul(x, polynomial(c.erf_terms, s)), polynomial(c.divisor, s));
  const v128_t one = wasm_v128_or(c.one_f64, wasm_v128_xor(x, wasm_f64x2_abs(x)));  // with x's sign
  return wasm_v128_bitselect(one, quotient, wasm_f64x2_gt(wasm_f64x2_abs(x), c.erf_end));
}
// A function of float64 for four float32.
template <v128_t (*kFunction)(v128_t)>
[[gnu::always_inline]] inline v128_t by_f64x2(v128_t x) {
  const v128_t low = wasm_f64x2_promote_low_f32x4(x),
               high = wasm_f64x2_promote_low_f32x4(wasm_i64x2_shuffle(x, x, 1, 1));
  return wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(kFunction(low)),
                            wasm_f32x4_demote_f64x2_zero(kFunction(high)), 0, 2);
}
[[gnu::always_inline]] inline v128_t erf_f32x4(v128_t x) { return by_f64x2<erf_f64x2>(x); }

// 2 atanh(a / b), for |a / b| <= 1/3.
[[gnu::always_inline]] inline v128_t twice_atanh(v128_t a, v128_t b) {
  const v128_t q = wasm_f32x4_div(a, b), square = wasm_f32x4_mul(q, q),
               p = polynomial(kConstants.atanh_terms, square), twice = wasm_f32x4_add(q, q);
  return wasm_f32x4_add(twice, wasm_f32x4_mul(wasm_f32x4_mul(twice, square), p));
}

[[gnu::always_inline]] inline v128_t log_f32x4(v128_t x) {
  const Constants& c = kConstants;
  const v128_t is_small = wasm_f32x4_lt(x, c.least_normal),
               normal = wasm_v128_bitselect(wasm_f32x4_mul(x, c.two_23), x, is_small);
  // x = m * 2^n, with m in [sqrt(1 / 2), sqrt(2)].
  const v128_t offset = wasm_i32x4_sub(normal, c.root_half), whole = wasm_i32x4_shr(offset, 23),
               m = wasm_i32x4_sub(normal, wasm_i32x4_shl(whole, 23)),
               n = wasm_f32x4_convert_i32x4(
                   wasm_i32x4_add(whole, wasm_v128_and(is_small, wasm_i32x4_splat(-23))));
  const v128_t log = twice_atanh(wasm_f32x4_sub(m, c.one), wasm_f32x4_add(m, c.one)),
               y = wasm_f32x4_add(wasm_f32x4_mul(n, c.ln2_high),
                                  wasm_f32x4_add(wasm_f32x4_mul(n, c.ln2_low), log));
  // The root is NaN or 0, and keeps infinity.
  const v128_t is_0 = wasm_f32x4_eq(x, wasm_i32x4_splat(0)),
               other = wasm_f32x4_sub(wasm_f32x4_sqrt(x), wasm_v128_and(is_0, c.infinity)),
               is_usual = wasm_v128_and(wasm_f32x4_gt(x, wasm_i32x4_splat(0)),
                                        wasm_f32x4_lt(x, c.infinity));
  return wasm_v128_bitselect(y, other, is_usual);
}

// log(1 + e^x) = max(x, 0) + log(1 + e), with e = e^-|x|.
[[gnu::always_inline]] inline v128_t softplus_f32x4(v128_t x) {
  const Constants& c = kConstants;
  const v128_t e = exp_f32x4(wasm_v128_or(x, c.sign));
  return wasm_f32x4_add(wasm_f32x4_pmax(x, wasm_i32x4_splat(0)),
                        twice_atanh(e, wasm_f32x4_add(e, c.two)));
}

// x tanh(log(1 + e^x)), a quotient of polynomials of e = e^-|x|.
[[gnu::always_inline]] inline v128_t mish_f32x4(v128_t x) {
  const Constants& c = kConstants;
  const v128_t e = exp_f32x4(wasm_v128_or(x, c.sign)), square = wasm_f32x4_mul(e, e),
               is_negative = wasm_i32x4_shr(x, 31);
  const v128_t above =
      wasm_f32x4_add(wasm_f32x4_add(e, e), wasm_v128_bitselect(square, c.one, is_negative));
  const v128_t below = wasm_f32x4_add(
      above, wasm_v128_bitselect(c.two, wasm_f32x4_add(square, square), is_negative));
  return wasm_f32x4_mul(x, wasm_f32x4_div(above, below));
}

// The sine of x + turns * pi / 2. From |x| = 2^28 on, it is only between -1 and 1.
template <int kTurns>
[[gnu::always_inline]] inline v128_t sin_f64x2(v128_t x) {
  const Constants& c = kConstants;
  // The low bits of the sum are the integer n. The first two products are exact for |n| < 2^28.
  const v128_t sum = wasm_f64x2_add(wasm_f64x2_mul(x, c.two_over_pi), c.shift_f64),
               n = wasm_f64x2_sub(sum, c.shift_f64);
  v128_t r = x;
#pragma clang loop unroll(full)
  for (const Splat<double>& part : c.half_pi) r = wasm_f64x2_sub(r, wasm_f64x2_mul(n, part));
  r = wasm_f64x2_pmax(wasm_f64x2_pmin(r, c.one_f64), c.minus_1_f64);
  const v128_t square = wasm_f64x2_mul(r, r),
               sin = wasm_f64x2_mul(r, polynomial(c.sin_terms, square)),
               cos = polynomial(c.cos_terms, square);
  const v128_t turns = wasm_i64x2_add(sum, wasm_i64x2_splat(kTurns)),
               is_odd = wasm_i64x2_shr(wasm_i64x2_shl(turns, 63), 63),
               sign = wasm_v128_and(wasm_i64x2_shl(turns, 62), c.sign_f64);
  return wasm_v128_xor(wasm_v128_bitselect(cos, sin, is_odd), sign);
}

// e^x in float64, within a unit in the last place.
double exp_f64(double x);
// The natural logarithm, within 2^-51 of its result.
double log_f64(double x);

// Functions of float64, within 2^-46 of their results. Gelu is within 2^-50 times x.
double sigmoid_f64(double x);
double tanh_f64(double x);
double erf_f64(double x);
double gelu_f64(double x);
double fast_gelu_f64(double x);
double softplus_f64(double x);
double mish_f64(double x);

}  // namespace wgemm::nn
