// Operators that compute each element of the result from one element of each input.
#include <wasm_simd128.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "nn/functions.h"
#include "nn/loops.h"

namespace wgemm::nn {
namespace {

inline v128_t add(v128_t a, v128_t b) { return wasm_f32x4_add(a, b); }
inline v128_t sub(v128_t a, v128_t b) { return wasm_f32x4_sub(a, b); }
inline v128_t mul(v128_t a, v128_t b) { return wasm_f32x4_mul(a, b); }
inline v128_t div(v128_t a, v128_t b) { return wasm_f32x4_div(a, b); }
inline v128_t neg(v128_t x) { return wasm_f32x4_neg(x); }
inline v128_t sqrt(v128_t x) { return wasm_f32x4_sqrt(x); }
inline double sqrt_f64(double x) { return std::sqrt(x); }
inline v128_t relu(v128_t x) { return wasm_f32x4_pmax(x, wasm_f32x4_splat(0)); }
inline v128_t square(v128_t x) { return wasm_f32x4_mul(x, x); }
inline v128_t cube(v128_t x) { return wasm_f32x4_mul(wasm_f32x4_mul(x, x), x); }

struct LeakyRelu {
  v128_t alpha;
  explicit LeakyRelu(const double* attributes)
      : alpha(wasm_f32x4_splat(static_cast<float>(*attributes))) {}
  v128_t operator()(v128_t x, v128_t) const {
    return wasm_v128_bitselect(wasm_f32x4_mul(alpha, x), x, wasm_f32x4_lt(x, wasm_f32x4_splat(0)));
  }
};

struct Clip {
  v128_t low, high;
  explicit Clip(const double* attributes)
      : low(wasm_f32x4_splat(static_cast<float>(attributes[0]))),
        high(wasm_f32x4_splat(static_cast<float>(attributes[1]))) {}
  // The pseudo-maximum and -minimum return x if it equals a bound, or is NaN.
  v128_t operator()(v128_t x, v128_t) const {
    return wasm_f32x4_pmin(wasm_f32x4_pmax(x, low), high);
  }
};

// ONNX does not define division of an integer by 0: it is 0 here. By -1, it wraps.
constexpr auto kDiv = []<typename T>(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return T{0};
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return kSub(T{0}, a);
  }
  return static_cast<T>(a / b);
};
constexpr auto kSquare = []<typename T>(T x, const double*) { return kMul(x, x); };
constexpr auto kCube = []<typename T>(T x, const double*) { return kMul(kMul(x, x), x); };

template <typename T>
T bound(double value) {
  using Limits = std::numeric_limits<T>;
  if (value <= static_cast<double>(Limits::lowest())) return Limits::lowest();
  return value >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<T>(value);
}
template <>
double bound<double>(double value) {
  return value;
}

template <typename T>
void clip_loop(ptrdiff_t count, const void* const* inputs, void* output, const double* attributes) {
  const auto* x = static_cast<const T*>(inputs[0]);
  auto* y = static_cast<T*>(output);
  const T low = bound<T>(attributes[0]), high = bound<T>(attributes[1]);
  for (int64_t i = 0; i < count; ++i) {
    const T v = x[i] < low ? low : x[i];  // x if it equals a bound, or is NaN
    y[i] = v > high ? high : v;
  }
}
template <typename T>
void relu_loop(ptrdiff_t count, const void* const* inputs, void* output, const double*) {
  const double bounds[] = {0, HUGE_VAL};
  clip_loop<T>(count, inputs, output, bounds);
}

template <v128_t (*kVectors)(v128_t, v128_t), auto kFunction>
constexpr Loops kArithmetic = {f32_loop<Binary<kVectors>, 2>, binary_loop<double, kFunction>,
                               binary_loop<int32_t, kFunction>, binary_loop<int64_t, kFunction>};
constexpr Loops kDivision = {f32_loop<Binary<div>, 2>,    binary_loop<double, kDiv>,
                             binary_loop<int32_t, kDiv>,  binary_loop<int64_t, kDiv>,
                             binary_loop<uint32_t, kDiv>, binary_loop<uint64_t, kDiv>};
constexpr Loops kLeakyRelu = {
    f32_loop<LeakyRelu, 1>,
    unary_loop<double, [](double x, const double* alpha) { return x < 0 ? *alpha * x : x; }>};
constexpr Loops kClip = {f32_loop<Clip, 1>,  clip_loop<double>,   clip_loop<int32_t>,
                         clip_loop<int64_t>, clip_loop<uint32_t>, clip_loop<uint64_t>};
constexpr Loops kRelu = {f32_loop<Unary<relu>, 1>, relu_loop<double>,   relu_loop<int32_t>,
                         relu_loop<int64_t>,       relu_loop<uint32_t>, relu_loop<uint64_t>};

constexpr Operator kOperators[] = {
    {"Add", 2, 1, 0, false, 1, choose<kArithmetic<add, kAdd>>},
    {"Sub", 2, 1, 0, false, 1, choose<kArithmetic<sub, kSub>>},
    {"Mul", 2, 1, 0, false, 1, choose<kArithmetic<mul, kMul>>},
    {"Div", 2, 1, 0, false, 2, choose<kDivision>},
    {"Neg", 1, 1, 0, false, 1, choose<kAllTypes<neg, kNeg>>},
    {"Square", 1, 1, 0, false, 1, choose<kAllTypes<square, kSquare>>},
    {"Cube", 1, 1, 0, false, 1, choose<kAllTypes<cube, kCube>>},
    {"Sqrt", 1, 1, 0, false, 2, choose<kFunctionLoops<sqrt, sqrt_f64>>},
    {"Relu", 1, 1, 0, false, 1, choose<kRelu>},
    {"LeakyRelu", 1, 1, 1, false, 1, choose<kLeakyRelu>},  // alpha
    // Clip has the attributes min and max, which may be infinite, but not NaN. For 64-bit integers
    // they are exact up to 2^53.
    {"Clip", 1, 1, 2, false, 1, choose<kClip>},
    {"Sigmoid", 1, 1, 0, false, 16, choose<kFunctionLoops<sigmoid_f32x4, sigmoid_f64>>},
    {"Tanh", 1, 1, 0, false, 16, choose<kFunctionLoops<tanh_f32x4, tanh_f64>>},
    {"Erf", 1, 1, 0, false, 24, choose<kFunctionLoops<erf_f32x4, erf_f64>>},
    {"Gelu", 1, 1, 0, false, 20, choose<kFunctionLoops<gelu_f32x4, gelu_f64>>},
    {"FastGelu", 1, 1, 0, false, 20, choose<kFunctionLoops<fast_gelu_f32x4, fast_gelu_f64>>},
};

}  // namespace

std::span<const Operator> elementwise_operators() { return kOperators; }

}  // namespace wgemm::nn
