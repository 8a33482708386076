// Vectors of elements, what an operator makes of them, and how they are compared.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>

#include "nn_tester.h"

namespace wgemm::nn {

inline constexpr float kInf = std::numeric_limits<float>::infinity(),
                       kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
DType type_of();
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  template <>                                                       \
  inline DType type_of<Storage>() {                                 \
    return DType::k##Enumerator;                                    \
  }
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) WGEMM_DTYPE(Enumerator, name, Storage, , )
#include "dtypes.def"
#undef WGEMM_DTYPE

// Runs an operator of contiguous vectors.
template <typename T>
std::vector<T> apply(std::string_view name, const std::vector<std::vector<T>>& inputs,
                     const std::vector<double>& attributes = {}, int threads = 1) {
  const DType type = type_of<T>();
  std::vector<TestTensor> tensors;
  for (const auto& input : inputs) tensors.push_back(TestTensor::of(type, input, {1}));
  tensors.push_back(TestTensor::of(type, std::vector<T>(inputs[0].size()), {1}));
  std::vector<TestTensor*> pointers;
  for (TestTensor& t : tensors) pointers.push_back(&t);
  EXPECT_TRUE(
      run_operator(name, {static_cast<int64_t>(inputs[0].size())}, pointers, attributes, threads))
      << name;
  return tensors.back().template elements<T>();
}

// All NaNs are equal, and 0 is not -0.
template <typename T>
bool is_same_element(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return a != a && b != b;
    return a == b && std::signbit(a) == std::signbit(b);
  } else {
    return a == b;
  }
}

template <typename T>
void expect_same(const std::vector<T>& got, const std::vector<T>& expected,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(is_same_element(got[i], expected[i]))
        << what << " at " << i << ": " << +got[i] << ", expected " << +expected[i];
}

// Elements with all values that matter, then with pseudorandom bits.
template <typename T>
std::vector<T> values(size_t count, uint64_t seed) {
  std::vector<T> result;
  using Limits = std::numeric_limits<T>;
  for (const T x : {T{0}, T{1}, static_cast<T>(-1), Limits::lowest(), Limits::max(), T{3}, T{7}})
    for (const T y : {x, static_cast<T>(x / T{2})}) result.push_back(y);
  if constexpr (std::is_floating_point_v<T>) {
    for (const T x : {static_cast<T>(-0.0), Limits::infinity(), -Limits::infinity(),
                      Limits::quiet_NaN(), Limits::denorm_min(), Limits::min()})
      result.push_back(x);
  }
  uint64_t state = seed * 2654435761U + 1;
  while (result.size() < count) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    if constexpr (std::is_floating_point_v<T>) {
      result.push_back(static_cast<T>(static_cast<int64_t>(state) >> 40) / T{1024});
    } else {
      result.push_back(static_cast<T>(state >> 33 >> (state % 30)));
    }
  }
  result.resize(count);
  // Turned, so that every value meets every other.
  std::vector<T> turned(count);
  for (size_t i = 0; i < count; ++i) turned[i] = result[(i * (seed % 5 + 1) + seed) % count];
  return turned;
}

// Errors of functions are in units: of the last place, or a bound that the reference gives.

inline double ulp(double exact) {
  if (!std::isfinite(exact)) return 1;
  int exponent;
  std::frexp(exact, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Some 10^6 elements of all exponents, and as many from 2^-10 to 2^7.
inline const std::vector<float>& sweep() {
  static const std::vector<float> x = [] {
    std::vector<float> result = {kInf, -kInf, kNan, 0.0F, -0.0F, 3.93F, 5.5578F, 9.01F, 88.72284F};
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099)
      result.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    for (uint32_t bits = 0x3a800000; bits < 0x43000000; bits += 293)
      result.push_back(std::bit_cast<float>(bits | (bits % 2) << 31));
    return result;
  }();
  return x;
}

// Returns the largest error, in units.
inline double largest_error(const char* name, const std::vector<float>& y, double (*exact)(double),
                            double (*unit)(double x, double exact)) {
  const std::vector<float>& x = sweep();
  double worst = 0;
  float at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = exact(static_cast<double>(x[i]));
    const auto nearest = static_cast<float>(expected);
    if (is_same_element(y[i], nearest)) continue;
    double error = HUGE_VAL;  // also if one of them is infinite or NaN
    if (std::isfinite(y[i]) && std::isfinite(nearest))
      error = std::abs(static_cast<double>(y[i]) - expected) /
              unit(static_cast<double>(x[i]), expected);
    if (error > worst) worst = error, at = x[i];
  }
  std::printf("%-8s float32: %.3f at %.9g\n", name, worst, static_cast<double>(at));
  testing::Test::RecordProperty(name, std::to_string(worst));
  return worst;
}
inline double in_ulp(const char* name, const std::vector<float>& y, double (*exact)(double)) {
  return largest_error(name, y, exact, [](double, double expected) { return ulp(expected); });
}

}  // namespace wgemm::nn
