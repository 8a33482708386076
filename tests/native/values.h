// Element values for tests: drawing, rounding and comparing them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <type_traits>

#include "array.h"
#include "base/convert.h"
#include "wgemm.h"

namespace wgemm::testing {

// A number from low to high. std::uniform_real_distribution takes a logarithm for each.
template <typename T>
T uniform(std::mt19937_64& random, T low, T high) {
  return low + (high - low) * static_cast<T>(static_cast<double>(random() >> 11) * 0x1p-53);
}

// Pads arrays by a few unused elements each. Tensors without strides need an offset to be padded.
void pad(std::mt19937_64& random, auto&... arrays) {
  (arrays.pad(static_cast<int64_t>(1 + random() % 9), static_cast<int64_t>(random() % 4)), ...);
}

// The type in which references compute results of type T.
template <typename T>
using Exact = std::conditional_t<std::is_integral_v<T>, T,
                                 std::conditional_t<sizeof(T) == 8, long double, double>>;

// Rounds once, to nearest even.
template <typename T>
T rounded(auto value) {
  if constexpr (kIsHalf<T>) {
    T result;
    EXPECT_TRUE(store("", "", static_cast<double>(value),
                      std::is_same_v<T, Float16> ? DType::kFloat16 : DType::kBFloat16, &result)
                    .ok());
    return result;
  } else {
    return static_cast<T>(value);
  }
}

// Any integer, or floating point from -1 to 1. `specials` adds NaN, infinities, zeros and the
// smallest number.
template <typename T>
void fill(Array<T>& array, std::mt19937_64& random, bool specials = false) {
  for (size_t i = 0; i < array.length; ++i) {
    if constexpr (std::is_integral_v<T>) {
      array.data[i] = static_cast<T>(random());
    } else {
      double value = uniform<double>(random, -1, 1);
      if (specials && random() % 16 == 0) {
        const double smallest = sizeof(T) == 8               ? 0x1p-1074
                                : std::is_same_v<T, Float16> ? 0x1p-24
                                                             : 0x1p-133;
        const double values[] = {INFINITY, -INFINITY, NAN, smallest, -0.0, 0};
        value = values[random() % 6];
      }
      array.data[i] = rounded<T>(value);
    }
  }
}

// Whether `found` is an acceptable result for `exact`. Integers must be equal, and NaN must be NaN.
// Other floating point may differ by (depth + 8) * eps * sum before it is rounded to T. `sum` adds
// the absolute products over `depth` steps of k.
template <typename T, typename Expected>
::testing::AssertionResult is_near(T found, Expected exact, int64_t depth, double sum) {
  if constexpr (std::is_integral_v<T>) {
    if (found == exact) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << found << " instead of " << exact;
  } else {
    const auto value = convert<double>(found);
    const double eps = sizeof(T) == 8 ? 0x1p-53 : 0x1p-24,
                 smallest = sizeof(T) == 8 ? 0x1p-1074 : 0x1p-149;
    const Expected bound =
        std::isinf(exact)
            ? 0
            : static_cast<Expected>(static_cast<double>(depth + 8) * eps * sum + smallest);
    // Rounding is monotonic, so the rounded ends of the interval bound the acceptable results.
    const auto low = convert<double>(rounded<T>(exact - bound)),
               high = convert<double>(rounded<T>(exact + bound));
    if (std::isnan(exact) ? std::isnan(value) : low <= value && value <= high)
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << value << " is not from " << low << " to " << high;
  }
}

}  // namespace wgemm::testing
