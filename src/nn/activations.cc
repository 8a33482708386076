// Functions of one number, and PRelu, whose slope is a tensor.
#include <wasm_simd128.h>

#include <cmath>

#include "nn/functions.h"
#include "nn/loops.h"

namespace wgemm::nn {
namespace {

v128_t zero() { return wasm_i32x4_splat(0); }
v128_t splat(double attribute) { return wasm_f32x4_splat(static_cast<float>(attribute)); }

inline v128_t abs(v128_t x) { return wasm_f32x4_abs(x); }
constexpr auto kAbs = []<typename T>(T x, const double* attributes) {
  if constexpr (std::is_integral_v<T>) {
    return x < 0 ? kNeg(x, attributes) : x;
  } else {
    return std::abs(x);
  }
};
// Integers without a sign have no loop: they stay.
constexpr Loops kAbsLoops = {f32_loop<Unary<abs>, 1>,
                             unary_loop<double, kAbs>,
                             unary_loop<int32_t, kAbs>,
                             unary_loop<int64_t, kAbs>,
                             nullptr,
                             nullptr};

inline v128_t floor(v128_t x) { return wasm_f32x4_floor(x); }
inline v128_t ceil(v128_t x) { return wasm_f32x4_ceil(x); }
inline v128_t nearest(v128_t x) { return wasm_f32x4_nearest(x); }  // half to even
inline double floor_f64(double x) { return std::floor(x); }
inline double ceil_f64(double x) { return std::ceil(x); }
inline double nearest_f64(double x) { return std::nearbyint(x); }

// The sum makes 0 of -0.
inline v128_t sign(v128_t x) {
  const v128_t one = wasm_v128_or(wasm_v128_and(x, kConstants.sign), kConstants.one),
               has_sign = wasm_f32x4_gt(wasm_f32x4_abs(x), zero());
  return wasm_f32x4_add(wasm_v128_bitselect(one, x, has_sign), zero());
}
inline double sign_f64(double x) { return x > 0 ? 1 : x < 0 ? -1 : x + 0; }

template <int kTurns>
double sin_f64(double x) {
  return wasm_f64x2_extract_lane(sin_f64x2<kTurns>(wasm_f64x2_splat(x)), 0);
}
template <int kTurns>
constexpr Loops kSin = kFunctionLoops<by_f64x2<sin_f64x2<kTurns>>, sin_f64<kTurns>>;

inline v128_t softsign(v128_t x) {
  return wasm_f32x4_div(x, wasm_f32x4_add(kConstants.one, wasm_f32x4_abs(x)));
}
inline double softsign_f64(double x) { return x / (1 + std::abs(x)); }

struct Elu {
  v128_t alpha;
  explicit Elu(const double* attributes) : alpha(splat(*attributes)) {}
  v128_t operator()(v128_t x, v128_t) const {
    return wasm_v128_bitselect(wasm_f32x4_mul(alpha, expm1_f32x4(x)), x, wasm_f32x4_lt(x, zero()));
  }
};
// e^x - 1 = 2 t / (1 - t), for t = tanh(x / 2).
double elu_f64(double x, const double* alpha) {
  if (!(x < 0)) return x;
  const double t = tanh_f64(x / 2);
  return *alpha * (2 * t / (1 - t));
}

template <bool kTimesX>
struct HardSigmoid {
  v128_t alpha, beta;
  explicit HardSigmoid(const double* attributes)
      : alpha(splat(attributes[0])), beta(splat(attributes[1])) {}
  v128_t operator()(v128_t x, v128_t) const {
    const v128_t line = wasm_f32x4_add(wasm_f32x4_mul(alpha, x), beta),
                 y = wasm_f32x4_pmin(wasm_f32x4_pmax(line, zero()), kConstants.one);
    return kTimesX ? wasm_f32x4_mul(x, y) : y;
  }
};
template <bool kTimesX>
double hard_sigmoid_f64(double x, const double* attributes) {
  double y = attributes[0] * x + attributes[1];
  y = y < 0 ? 0 : y;  // or NaN
  y = y > 1 ? 1 : y;
  return kTimesX ? x * y : y;
}

struct ThresholdedRelu {
  v128_t alpha;
  explicit ThresholdedRelu(const double* attributes) : alpha(splat(*attributes)) {}
  v128_t operator()(v128_t x, v128_t) const { return wasm_v128_and(x, wasm_f32x4_gt(x, alpha)); }
};
double thresholded_relu_f64(double x, const double* alpha) { return x > *alpha ? x : 0; }

struct QuickGelu {
  v128_t alpha;
  explicit QuickGelu(const double* attributes) : alpha(splat(*attributes)) {}
  v128_t operator()(v128_t x, v128_t) const {
    return wasm_f32x4_mul(x, sigmoid_f32x4(wasm_f32x4_mul(alpha, x)));
  }
};
double quick_gelu_f64(double x, const double* alpha) { return x * sigmoid_f64(*alpha * x); }

inline v128_t prelu(v128_t x, v128_t slope) {
  return wasm_v128_bitselect(wasm_f32x4_mul(slope, x), x, wasm_f32x4_lt(x, zero()));
}
constexpr auto kPRelu = []<typename T>(T x, T slope) { return x < 0 ? kMul(x, slope) : x; };

template <typename F, auto kFunction>
constexpr Loops kOf = {f32_loop<F, 1>, unary_loop<double, kFunction>};
constexpr Loops kPReluLoops = {f32_loop<Binary<prelu>, 2>,
                               binary_loop<double, kPRelu>,
                               binary_loop<int32_t, kPRelu>,
                               binary_loop<int64_t, kPRelu>,
                               nullptr,
                               nullptr};

constexpr Operator kOperators[] = {
    {"Abs", 1, 1, 0, false, 1, choose<kAbsLoops>},
    {"Floor", 1, 1, 0, false, 1, choose<kFunctionLoops<floor, floor_f64>>},
    {"Ceil", 1, 1, 0, false, 1, choose<kFunctionLoops<ceil, ceil_f64>>},
    {"Round", 1, 1, 0, false, 1, choose<kFunctionLoops<nearest, nearest_f64>>},
    {"Sign", 1, 1, 0, false, 1, choose<kFunctionLoops<sign, sign_f64>>},
    {"Exp", 1, 1, 0, false, 12, choose<kFunctionLoops<exp_f32x4, exp_f64>>},
    {"Log", 1, 1, 0, false, 16, choose<kFunctionLoops<log_f32x4, log_f64>>},
    {"Sin", 1, 1, 0, false, 32, choose<kSin<0>>},
    {"Cos", 1, 1, 0, false, 32, choose<kSin<1>>},
    {"Softplus", 1, 1, 0, false, 24, choose<kFunctionLoops<softplus_f32x4, softplus_f64>>},
    {"Softsign", 1, 1, 0, false, 2, choose<kFunctionLoops<softsign, softsign_f64>>},
    {"Mish", 1, 1, 0, false, 20, choose<kFunctionLoops<mish_f32x4, mish_f64>>},
    // Their attributes are alpha, and then beta.
    {"Elu", 1, 1, 1, false, 12, choose<kOf<Elu, elu_f64>>},
    {"HardSigmoid", 1, 1, 2, false, 2, choose<kOf<HardSigmoid<false>, hard_sigmoid_f64<false>>>},
    {"HardSwish", 1, 1, 2, false, 2, choose<kOf<HardSigmoid<true>, hard_sigmoid_f64<true>>>},
    {"ThresholdedRelu", 1, 1, 1, false, 1, choose<kOf<ThresholdedRelu, thresholded_relu_f64>>},
    {"QuickGelu", 1, 1, 1, false, 16, choose<kOf<QuickGelu, quick_gelu_f64>>},
    {"PRelu", 2, 1, 0, false, 1, choose<kPReluLoops>},
};

}  // namespace

std::span<const Operator> activation_operators() { return kOperators; }

}  // namespace wgemm::nn
