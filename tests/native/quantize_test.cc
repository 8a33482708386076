// Quantization against a plain loop: every remainder, layout and type, special values, and scales
// of every size.
#include "base/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace wgemm::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNaN = std::numeric_limits<float>::quiet_NaN(),
                kLeast = std::numeric_limits<float>::denorm_min(),
                kMost = std::numeric_limits<float>::max();
constexpr DType kTypes[] = {DType::kInt8, DType::kUInt8};
constexpr int8_t kUnwritten = 0x55;

int least_of(DType type) { return type == DType::kInt8 ? -128 : 0; }

// The definition, in float64 after the quotient.
int reference(float x, float scale, int zero_point, DType type) {
  const double value = std::nearbyint(static_cast<double>(x / scale)) + zero_point;
  return static_cast<int>(std::clamp<double>(value, least_of(type), least_of(type) + 255));
}

int element(const std::vector<int8_t>& y, size_t i, DType type) {
  return type == DType::kInt8 ? y[i] : static_cast<uint8_t>(y[i]);
}

// Quantizes rows with a gap between them, and compares each element and the bytes behind the last.
void expect_reference(const std::vector<float>& x, int64_t rows, int64_t cols, int64_t row_stride,
                      DType type, QuantizedScale q) {
  std::vector<int8_t> y(static_cast<size_t>(rows * cols) + 32, kUnwritten);
  QuantizedScale same = q;
  ASSERT_TRUE(quantize({x.data(), rows, cols, row_stride}, type, &same, y.data()).ok());
  EXPECT_EQ(same.scale, q.scale);
  EXPECT_EQ(same.zero_point, q.zero_point);
  size_t at = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j, ++at) {
      const float value = x[static_cast<size_t>(i * row_stride + j)];
      ASSERT_EQ(element(y, at, type), reference(value, q.scale, q.zero_point, type))
          << value << " by " << q.scale << " at " << i << ", " << j;
    }
  }
  for (; at < y.size(); ++at) ASSERT_EQ(y[at], kUnwritten);
}

std::vector<float> random_values(size_t count, float bound, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-bound, bound);
  std::vector<float> x(count);
  for (float& value : x) value = values(random);
  return x;
}

TEST(Quantize, EveryRemainderAndLayout) {
  for (const DType type : kTypes) {
    for (int64_t cols = 0; cols <= 67; ++cols) {
      for (const int64_t rows : {0, 1, 2, 5}) {
        for (const int64_t gap : {0, 1, 7}) {
          // The vector ends with the last element, so that the sanitizer sees a read behind it.
          const int64_t stride = cols + gap,
                        extent = rows == 0 || cols == 0 ? 0 : (rows - 1) * stride + cols;
          const auto x = random_values(static_cast<size_t>(extent), 3, 7);
          expect_reference(x, rows, cols, stride, type, {0.02F, 3});
        }
      }
    }
    // All rows are the same one.
    expect_reference(random_values(37, 3, 1), 3, 37, 0, type, {0.02F, 3});
  }
}

// Halves and their neighbors, and values that a reciprocal would round to another integer.
TEST(Quantize, RoundsTheQuotientHalfToEven) {
  for (const DType type : kTypes) {
    for (const float scale : {1.F, 0.5F, 3.F, 0.1F, 1.F / 3, 0.007F, 1e-30F, 1e30F}) {
      for (const int zero_point :
           {least_of(type), least_of(type) + 1, least_of(type) + 128, least_of(type) + 255}) {
        std::vector<float> x;
        for (int half = -600; half <= 600; ++half) {
          float value = static_cast<float>(half) / 2 * scale;
          for (int step = 0; step < 5; ++step) value = std::nextafter(value, -kMost);
          for (int step = 0; step < 11; ++step, value = std::nextafter(value, kMost))
            x.push_back(value);
        }
        const auto cols = static_cast<int64_t>(x.size());
        expect_reference(x, 1, cols, cols, type, {scale, zero_point});
      }
    }
  }
}

TEST(Quantize, ScalesAndElementsOfEverySize) {
  std::mt19937 random(3);
  for (const DType type : kTypes) {
    for (int i = 0; i < 3000; ++i) {
      // Any finite scale above 0, and any element except NaN.
      const auto bits = static_cast<uint32_t>(random() % 0x7f800000U);
      const float scale = bits == 0 ? kLeast : std::bit_cast<float>(bits);
      std::vector<float> x;
      while (x.size() < 33) {
        const float value = i % 2 == 0 ? std::bit_cast<float>(static_cast<uint32_t>(random()))
                                       : static_cast<float>(random() % 1024) / 2 * scale;
        if (!std::isnan(value)) x.push_back(value);
      }
      const int zero_point = least_of(type) + static_cast<int>(random() % 256);
      expect_reference(x, 1, 33, 33, type, {scale, zero_point});
    }
  }
}

TEST(Quantize, SaturatesLargeElementsAndInfinities) {
  for (const DType type : kTypes) {
    for (const float scale : {kLeast, 1e-38F, 1.F, kMost}) {
      expect_reference({0, -0.F, kMost, -kMost, kInfinity, -kInfinity, 0x1p23F, -0x1p23F, 0x1p24F,
                        -0x1p24F, 0x1p31F, -0x1p31F, 0x1p52F, -0x1p52F, kLeast, -kLeast, 0x1p63F},
                       1, 17, 17, type, {scale, least_of(type) + 7});
    }
  }
}

// The definition of DynamicQuantizeLinear, with float64 for a range that float32 cannot hold.
QuantizedScale reference_scale(const std::vector<float>& x, DType type) {
  float low = 0, high = 0;
  for (const float value : x) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const double range = static_cast<double>(high) - static_cast<double>(low);
  const auto rounded = static_cast<float>(range);
  const double held = std::isfinite(rounded) ? static_cast<double>(rounded) : range;
  const float scale = range == 0 ? 1 : std::max(static_cast<float>(held / 255), kLeast);
  const float zero_point = std::nearbyint(static_cast<float>(least_of(type)) - low / scale);
  return {scale, static_cast<int>(std::min(zero_point, static_cast<float>(least_of(type) + 255)))};
}

void expect_range(const std::vector<float>& x, int64_t rows, DType type) {
  QuantizedScale q{0, 99};
  std::vector<int8_t> y(x.size());
  const auto cols = static_cast<int64_t>(x.size()) / rows;
  ASSERT_TRUE(quantize({x.data(), rows, cols, cols}, type, &q, y.data()).ok());
  const QuantizedScale expected = reference_scale(x, type);
  ASSERT_EQ(q.scale, expected.scale);
  ASSERT_EQ(q.zero_point, expected.zero_point);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(element(y, i, type), reference(x[i], q.scale, q.zero_point, type)) << x[i];
}

TEST(Quantize, TakesTheScaleFromTheRange) {
  for (const DType type : kTypes) {
    for (size_t count = 1; count <= 70; ++count) {
      // The least and the greatest element at each place.
      for (size_t at = 0; at < count; ++at) {
        auto x = random_values(count, 1, 5);
        x[at] = -2.5F;
        x[(at + 1) % count] = 3.25F;
        expect_range(x, 1, type);
      }
      expect_range(random_values(count * 3, 1, static_cast<uint32_t>(count)), 3, type);
    }
    for (const float bound : {kLeast, 1e-44F, 1e-40F, 1e-38F, 1e-20F, 1e20F, 1e38F}) {
      auto x = random_values(40, 1, 9);
      for (float& value : x) value *= bound;
      expect_range(x, 1, type);
      for (float& value : x) value = std::fabs(value);
      expect_range(x, 1, type);
      for (float& value : x) value = -value;
      expect_range(x, 1, type);
    }
    expect_range({kMost, -kMost, 1, 0}, 1, type);
    expect_range({0, 0, 0, -0.F}, 1, type);
    expect_range({-kLeast}, 1, type);
    expect_range({kLeast}, 1, type);
    QuantizedScale q{0, 99};
    ASSERT_TRUE(quantize({nullptr, 0, 5, 5}, type, &q, nullptr).ok());
    EXPECT_EQ(q.scale, 1);
    EXPECT_EQ(q.zero_point, least_of(type));
  }
}

TEST(Quantize, TakesNoScaleBelowTheLeast) {
  for (const float least : {0.F, 1e-3F, 5.F}) {
    const std::vector<float> x = {-1, 3, 0.5F};
    QuantizedScale q{-least, 0};
    int8_t y[3];
    ASSERT_TRUE(quantize({x.data(), 1, 3, 3}, DType::kUInt8, &q, y).ok());
    EXPECT_EQ(q.scale, std::max(least, 4.F / 255));
    EXPECT_EQ(q.zero_point, least == 5 ? 0 : 64);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(static_cast<uint8_t>(y[i]), reference(x[i], q.scale, q.zero_point, DType::kUInt8));
  }
}

TEST(Quantize, RefusesNaNAtEveryPlace) {
  for (const DType type : kTypes) {
    for (const float scale : {0.F, 0.5F}) {
      for (const int64_t cols : {1, 5, 16, 37}) {
        for (int64_t bad = 0; bad < 3 * cols; ++bad) {
          auto x = random_values(static_cast<size_t>(3 * (cols + 2)), 1, 1);
          for (int64_t i = 0; i < 3; ++i) {  // Gaps do not count.
            x[static_cast<size_t>(i * (cols + 2) + cols)] = kNaN;
            x[static_cast<size_t>(i * (cols + 2) + cols + 1)] = kInfinity;
          }
          const int64_t row = bad / cols, col = bad % cols;
          x[static_cast<size_t>(row * (cols + 2) + col)] = kNaN;
          x[static_cast<size_t>(2 * (cols + 2) + cols - 1)] = kNaN;  // The first one is named.
          std::vector<int8_t> y(static_cast<size_t>(3 * cols), kUnwritten);
          QuantizedScale q{scale, 7};
          const Status status = quantize({x.data(), 3, cols, cols + 2}, type, &q, y.data());
          ASSERT_EQ(status.code, Code::kArgument);
          EXPECT_STREQ(status.argument, "x");
          EXPECT_EQ(std::string(status.message),
                    "quantize: x has NaN at [" + std::to_string(row) + ", " + std::to_string(col) +
                        "]; each element must be " +
                        (scale > 0 ? "a number or infinity" : "finite"));
          EXPECT_EQ(q.scale, scale);
          EXPECT_EQ(q.zero_point, 7);
          EXPECT_EQ(std::ranges::count(y, kUnwritten), 3 * cols);
        }
      }
    }
  }
}

TEST(Quantize, RefusesAnInfiniteRange) {
  for (const float value : {kInfinity, -kInfinity}) {
    const float x[] = {1, 2, 3, 4, 5, value};
    int8_t y[] = {9, 9, 9, 9, 9, 9};
    QuantizedScale q{0, 7};
    const Status status = quantize({x, 2, 3, 3}, DType::kInt8, &q, y);
    ASSERT_EQ(status.code, Code::kArgument);
    EXPECT_EQ(std::string(status.message), std::string("quantize: x has ") +
                                               (value > 0 ? "" : "-") +
                                               "Infinity at [1, 2]; each element must be finite");
    EXPECT_EQ(std::ranges::count(y, 9), 6);
  }
}

TEST(Quantize, Bias) {
  std::mt19937 random(11);
  for (const bool per_column : {false, true}) {
    for (int64_t n = 0; n <= 40; ++n) {
      const float a_scale = std::ldexp(1.F + static_cast<float>(random() % 100) / 99,
                                       static_cast<int>(random() % 40) - 30);
      std::vector<float> bias = random_values(static_cast<size_t>(n), 100, 2), b_scale;
      for (int64_t j = 0; j < (per_column ? n : 1); ++j)
        b_scale.push_back(std::ldexp(1.F, -(static_cast<int>(random() % 20))) * 1.1F);
      std::vector<int32_t> c(static_cast<size_t>(n) + 4, 77);
      quantize_bias(bias.data(), n, a_scale, b_scale.data(), per_column, c.data());
      for (size_t j = 0; j < bias.size(); ++j) {
        const double scale =
            static_cast<double>(a_scale) * static_cast<double>(b_scale[per_column ? j : 0]);
        const double value = std::nearbyint(static_cast<double>(bias[j]) / scale);
        EXPECT_EQ(c[j], static_cast<int32_t>(std::clamp(value, -0x1p30, 0x1p30)));
      }
      for (size_t j = bias.size(); j < c.size(); ++j) EXPECT_EQ(c[j], 77);
    }
  }
  // Halves, the bounds, and scales whose product float32 cannot hold.
  const float bias[] = {0.5F,    1.5F,     -0.5F,   -1.5F,         -2.5F,
                        0x1p30F, -0x1p31F, 0x1p40F, 0x1.fffffep29F};
  int32_t c[9];
  const float one = 1;
  quantize_bias(bias, 9, 1, &one, false, c);
  constexpr int32_t kMostSum = 1 << 30;
  const int32_t expected[] = {0, 2, 0, -2, -2, kMostSum, -kMostSum, kMostSum, 0x3fffffc0};
  EXPECT_TRUE(std::ranges::equal(c, expected));
  const float tiny = kLeast, zero[] = {0, 1};
  quantize_bias(zero, 2, kLeast, &tiny, false, c);
  EXPECT_EQ(c[0], 0);
  EXPECT_EQ(c[1], kMostSum);
}

}  // namespace
}  // namespace wgemm::testing
