// Conversion of the 16-bit types: each of their 65,536 values, scalar and SIMD, and every boundary
// between two rounding results.
#include "base/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace wgemm::testing {
namespace {

constexpr int kValues = 65536;

// The value by definition, from sign, exponent and fraction.
double value_of(uint32_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

template <typename T>
class Half : public ::testing::Test {
 public:
  static constexpr int kExponentBits = std::is_same_v<T, Float16> ? 5 : 8;
  static double value(uint32_t bits) { return value_of(bits, kExponentBits); }
  static constexpr uint32_t kInfinity = std::is_same_v<T, Float16> ? 0x7c00 : 0x7f80;
};
using Types = ::testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(Half, Types);

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
constexpr uint32_t kQuiet = 0x400000;  // the bit of a quiet NaN; arithmetic sets it

TYPED_TEST(Half, WidensEveryValueExactly) {
  std::vector<TypeParam> from(kValues);
  for (int i = 0; i < kValues; ++i) from[static_cast<size_t>(i)].bits = static_cast<uint16_t>(i);
  std::vector<float> to(kValues);
  for (const int start : {0, 1, 3, 7}) {  // runs of any alignment and length
    std::fill(to.begin(), to.end(), -1.0F);
    Converter<TypeParam, float>{}(from.data() + start, to.data() + start, kValues - start);
    for (int i = start; i < kValues; ++i) {
      const double expected = TestFixture::value(static_cast<uint32_t>(i));
      const auto at = static_cast<size_t>(i);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(to[at]) && std::isnan(widen(from[at]))) << i;
        ASSERT_EQ(bits_of(to[at]) | kQuiet, bits_of(widen(from[at])) | kQuiet) << i;
      } else {
        ASSERT_EQ(static_cast<double>(to[at]), expected) << i;
        ASSERT_EQ(std::signbit(to[at]), std::signbit(expected)) << i;
        ASSERT_EQ(bits_of(to[at]), bits_of(widen(from[at]))) << i;
      }
    }
  }
}

// Compares the scalar and the SIMD result for `from` with the definition: the nearest of the two
// neighbours, or the even one in a tie.
template <typename T, typename Fixture>
void check_narrowing(const std::vector<float>& from) {
  std::vector<T> to(from.size());
  Converter<float, T>{}(from.data(), to.data(), static_cast<int64_t>(from.size()));
  for (size_t i = 0; i < from.size(); ++i) {
    const float x = from[i];
    const T one = narrow_to(x, T{});
    ASSERT_EQ(to[i].bits, one.bits) << x;
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(Fixture::value(one.bits)));
      continue;
    }
    ASSERT_EQ(one.bits >> 15 != 0, std::signbit(x)) << x;
    const uint32_t magnitude = one.bits & 0x7fffU;
    ASSERT_LE(magnitude, Fixture::kInfinity) << x;
    // The largest number rounds to infinity from half a step above it.
    const auto place = [](uint32_t m) {
      return m == Fixture::kInfinity ? 2 * Fixture::value(m - 1) - Fixture::value(m - 2)
                                     : Fixture::value(m);
    };
    if (std::isinf(x)) {
      ASSERT_EQ(magnitude, Fixture::kInfinity);
      continue;
    }
    const double distance = std::fabs(place(magnitude) - std::fabs(static_cast<double>(x)));
    for (const int step : {-1, 1}) {
      const uint32_t other = magnitude + static_cast<uint32_t>(step);
      if (other > Fixture::kInfinity) continue;
      const double further = std::fabs(place(other) - std::fabs(static_cast<double>(x)));
      const bool beyond =
          magnitude == Fixture::kInfinity && std::fabs(static_cast<double>(x)) > place(magnitude);
      if (beyond) continue;
      ASSERT_LE(distance, further) << x;
      ASSERT_TRUE(distance < further || magnitude % 2 == 0) << x;
    }
  }
}

TYPED_TEST(Half, NarrowsBackEveryValue) {
  for (uint32_t i = 0; i < kValues; ++i) {
    const TypeParam x = {static_cast<uint16_t>(i)};
    const TypeParam back = narrow_to(widen(x), TypeParam{});
    if (std::isnan(TestFixture::value(i))) {
      ASSERT_TRUE(std::isnan(TestFixture::value(back.bits)));
    } else {
      ASSERT_EQ(back.bits, i);
    }
  }
}

TYPED_TEST(Half, NarrowsToNearestEvenAroundEveryValueAndEveryTie) {
  std::vector<float> from;
  for (uint32_t i = 0; i < TestFixture::kInfinity; ++i) {
    const double value = TestFixture::value(i), next = i + 1 < TestFixture::kInfinity
                                                           ? TestFixture::value(i + 1)
                                                           : 2 * value - TestFixture::value(i - 1);
    for (const double point : {value, (value + next) / 2}) {
      const auto x = static_cast<float>(point);
      for (const float near : {std::nextafter(x, -INFINITY), x, std::nextafter(x, INFINITY)}) {
        from.push_back(near);
        from.push_back(-near);
      }
    }
  }
  check_narrowing<TypeParam, TestFixture>(from);
}

TYPED_TEST(Half, NarrowsAnyNumber) {
  std::mt19937 random(1);
  std::vector<float> from = {0.0F,     -0.0F,   INFINITY, -INFINITY,
                             NAN,      -NAN,    65504.0F, 65519.996F,
                             65520.0F, 3.4e38F, 1e-45F,   std::bit_cast<float>(0x7f800001U)};
  for (int i = 0; i < 200000; ++i)
    from.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  check_narrowing<TypeParam, TestFixture>(from);
}

}  // namespace
}  // namespace wgemm::testing
