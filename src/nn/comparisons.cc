// Operators that compare two elements, or select one of them, and the remainder of a division.
#include <wasm_simd128.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "nn/loops.h"

namespace wgemm::nn {
namespace {

// The attribute has a bit for each relation of a to b: 1 less, 2 equal, 4 greater, and 8 if one of
// them is NaN. The result is whether the bit of their relation is 1.
template <typename T, typename Y>
void compare_loop(ptrdiff_t count, const void* const* inputs, void* output,
                  const double* attributes) {
  const auto *a = static_cast<const T*>(inputs[0]), *b = static_cast<const T*>(inputs[1]);
  auto* y = static_cast<Y*>(output);
  const auto relations = static_cast<int>(*attributes);
  const int less = relations & 1, equal = relations >> 1 & 1, greater = relations >> 2 & 1,
            unordered = relations >> 3;
  for (ptrdiff_t i = 0; i < count; ++i)
    y[i] = static_cast<Y>(a[i] < b[i]    ? less
                          : a[i] == b[i] ? equal
                          : a[i] > b[i]  ? greater
                                         : unordered);
}

// float64 has each element of the types of at most 32 bits.
bool choose_compare(Step* step) {
  const DType type = step->tensors[0].type;
  if (is_integer(type) && dtype_bytes(type) == 8) {
    step->row = run_elements<int64_t>;
    step->loop =
        type == DType::kInt64 ? compare_loop<int64_t, int64_t> : compare_loop<uint64_t, int64_t>;
  } else {
    step->row = run_elements<double>;
    step->loop = compare_loop<double, double>;
  }
  return step->tensors[1].type == type && step->tensors[2].type == DType::kUInt8;
}

// NaN if an input is NaN, and a if a and b are equal.
inline v128_t or_nan(v128_t extremum, v128_t b) {
  return wasm_v128_bitselect(extremum, b, wasm_f32x4_eq(b, b));
}
inline v128_t min(v128_t a, v128_t b) { return or_nan(wasm_f32x4_pmin(a, b), b); }
inline v128_t max(v128_t a, v128_t b) { return or_nan(wasm_f32x4_pmax(a, b), b); }
template <bool kIsMax>
constexpr auto kExtremum =
    []<typename T>(T a, T b) { return (kIsMax ? a < b : b < a) || b != b ? b : a; };
template <v128_t (*kVectors)(v128_t, v128_t), auto kFunction>
constexpr Loops kExtrema = {f32_loop<Binary<kVectors>, 2>,    binary_loop<double, kFunction>,
                            binary_loop<int32_t, kFunction>,  binary_loop<int64_t, kFunction>,
                            binary_loop<uint32_t, kFunction>, binary_loop<uint64_t, kFunction>};

// a - b trunc(a / b), which is exact, for a and b that are not negative.
double remainder(double a, double b) {
  if (!(b > 0 && a < HUGE_VAL)) return std::numeric_limits<double>::quiet_NaN();
  if (!(a >= b)) return a;
  // Each multiple of b by a power of 2 is exact, and so is each difference.
  double multiple = b;
  while (multiple <= a * 0.5) multiple *= 2;
  for (; multiple >= b; multiple *= 0.5)
    if (a >= multiple) a -= multiple;
  return a;
}

// The remainder has the sign of a if the attribute is 1, else the sign of b. By 0, it is 0 for
// integers.
template <typename T>
void mod_loop(ptrdiff_t count, const void* const* inputs, void* output, const double* attributes) {
  const auto *x = static_cast<const T*>(inputs[0]), *z = static_cast<const T*>(inputs[1]);
  auto* y = static_cast<T*>(output);
  const bool has_sign_of_a = *attributes != 0;
  for (ptrdiff_t i = 0; i < count; ++i) {
    const T a = x[i], b = z[i];
    T rest;
    if constexpr (std::is_floating_point_v<T>) {
      const double magnitude =
          remainder(std::abs(static_cast<double>(a)), std::abs(static_cast<double>(b)));
      rest = static_cast<T>(std::copysign(magnitude, static_cast<double>(a)));
    } else {
      const bool is_0 = b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1));
      rest = is_0 ? T{0} : static_cast<T>(a % b);
    }
    const bool differs = rest != 0 && (rest < 0) != (b < 0);
    y[i] = differs && !has_sign_of_a ? rest + b : rest;
  }
}
constexpr Loops kMod = {mod_loop<float>,   mod_loop<double>,   mod_loop<int32_t>,
                        mod_loop<int64_t>, mod_loop<uint32_t>, mod_loop<uint64_t>};

constexpr Operator kOperators[] = {
    {"Compare", 2, 1, 1, false, 3, choose_compare},
    {"Min", 2, 1, 0, false, 1, choose<kExtrema<min, kExtremum<false>>>},
    {"Max", 2, 1, 0, false, 1, choose<kExtrema<max, kExtremum<true>>>},
    {"Mod", 2, 1, 1, false, 16, choose<kMod>},
};

}  // namespace

std::span<const Operator> comparison_operators() { return kOperators; }

}  // namespace wgemm::nn
