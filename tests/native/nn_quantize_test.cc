#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "base/convert.h"
#include "nn_tester.h"

namespace wgemm::nn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_floats(int64_t count, float bound, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-bound, bound);
  std::vector<float> x(static_cast<size_t>(count));
  for (float& value : x) value = values(random);
  return x;
}

// The definitions of JavaScript.
uint8_t quantized(double x, double scale, int zero_point, bool is_signed) {
  const double value =
      std::nearbyint(static_cast<double>(static_cast<float>(x / scale))) + zero_point;
  if (std::isnan(value)) return 0;
  const int least = is_signed ? -128 : 0;
  return static_cast<uint8_t>(static_cast<int>(std::clamp<double>(value, least, least + 255)));
}

float dequantized(double x, double scale, double zero_point) {
  return static_cast<float>(static_cast<double>(static_cast<float>(x - zero_point)) * scale);
}

struct Dynamic {
  std::vector<uint8_t> y;
  float scale;
  uint8_t zero_point;
  Status status;
};

Dynamic dynamic_quantize(const std::vector<float>& x, const std::vector<int64_t>& dims,
                         const std::vector<int64_t>& strides, int threads) {
  int64_t count = 1;
  for (const int64_t size : dims) count *= size;
  const std::vector<int64_t> none(dims.size());
  auto in = TestTensor::of(DType::kFloat32, x, strides),
       y = TestTensor::of(DType::kUInt8, std::vector<uint8_t>(static_cast<size_t>(count), 77),
                          contiguous(dims)),
       scale = TestTensor::of(DType::kFloat32, std::vector<float>(1, -1), none),
       zero_point = TestTensor::of(DType::kUInt8, std::vector<uint8_t>(1, 99), none);
  Dynamic result;
  run_operator("DynamicQuantizeLinear", dims, {&in, &y, &scale, &zero_point}, {}, threads,
               &result.status);
  result.y = y.elements<uint8_t>();
  result.scale = scale.elements<float>()[0];
  result.zero_point = zero_point.elements<uint8_t>()[0];
  return result;
}

void expect_dynamic(const std::vector<float>& x, const std::vector<int64_t>& dims,
                    const std::vector<int64_t>& strides, const std::vector<float>& in_order) {
  float low = 0, high = 0;
  for (const float value : in_order) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const float scale = high == low ? 1 : (high - low) / 255;
  const auto zero_point = static_cast<int>(std::min(std::nearbyint(-low / scale), 255.0F));
  for (const int threads : {1, 3}) {
    const Dynamic found = dynamic_quantize(x, dims, strides, threads);
    ASSERT_TRUE(found.status.ok()) << found.status.message;
    ASSERT_EQ(found.scale, scale);
    ASSERT_EQ(found.zero_point, zero_point);
    ASSERT_EQ(found.y.size(), in_order.size());
    for (size_t i = 0; i < in_order.size(); ++i)
      ASSERT_EQ(found.y[i], quantized(in_order[i], scale, zero_point, false)) << i;
  }
}

TEST(NnQuantize, QuantizesByTheRangeOfAllElements) {
  for (const int64_t cols : {1, 3, 16, 17, 511, 513, 1029}) {
    for (const int64_t rows : {1, 5, 67}) {
      const auto x = random_floats(rows * cols, 9, static_cast<uint32_t>(cols));
      expect_dynamic(x, {rows, cols}, {cols, 1}, x);
    }
  }
  // One sign only, so that 0 is a bound.
  for (const float sign : {-1.0F, 1.0F}) {
    auto x = random_floats(70, 1);
    for (float& value : x) value = sign * (2 + value);
    expect_dynamic(x, {70}, {1}, x);
  }
  expect_dynamic({0, 0, 0}, {3}, {1}, {0, 0, 0});
  expect_dynamic({}, {0}, {1}, {});
  expect_dynamic({}, {0, 3}, {3, 1}, {});
  expect_dynamic({}, {3, 0}, {0, 1}, {});
}

TEST(NnQuantize, QuantizesTransposedElementsByTheirRange) {
  const int64_t rows = 33, cols = 71, planes = 3;
  const auto x = random_floats(planes * rows * cols, 5);
  std::vector<float> in_order;
  for (int64_t p = 0; p < planes; ++p)
    for (int64_t j = 0; j < cols; ++j)
      for (int64_t i = 0; i < rows; ++i)
        in_order.push_back(x[static_cast<size_t>((p * rows + i) * cols + j)]);
  expect_dynamic(x, {planes, cols, rows}, {rows * cols, 1, cols}, in_order);
}

TEST(NnQuantize, RefusesElementsThatAreNotFinite) {
  const auto x = random_floats(30 * 7 * 101, 1);
  for (const int threads : {1, 3}) {
    for (const auto& [value, name] :
         {std::pair{kNaN, "NaN"}, {kInfinity, "Infinity"}, {-kInfinity, "-Infinity"}}) {
      for (const size_t at : {size_t{0}, size_t{101 * 7 * 2 + 101 * 3 + 5}, x.size() - 1}) {
        auto bad = x;
        bad[at] = value;
        bad.back() = at == 0 ? 1 : value;  // the first one counts
        const Dynamic found = dynamic_quantize(bad, {30, 7, 101}, {707, 101, 1}, threads);
        ASSERT_EQ(found.status.code, Code::kArgument);
        EXPECT_STREQ(found.status.argument, "x");
        EXPECT_STREQ(found.status.op, "quantize");
        EXPECT_EQ(std::string(found.status.message),
                  std::string("quantize: x has ") + name + " at [" + std::to_string(at / 707) +
                      ", " + std::to_string(at / 101 % 7) + ", " + std::to_string(at % 101) +
                      "]; each element must be finite");
        // Nothing is written.
        EXPECT_EQ(found.scale, -1);
        EXPECT_EQ(found.zero_point, 99);
        EXPECT_TRUE(std::ranges::all_of(found.y, [](uint8_t y) { return y == 77; }));
      }
    }
  }
}

// Both types, scales per tensor, per row and per column, steps, and every remainder.
TEST(NnQuantize, QuantizesByScales) {
  for (const DType type : {DType::kInt8, DType::kUInt8}) {
    const bool is_signed = type == DType::kInt8;
    for (const int64_t cols : {1, 7, 16, 33, 515, 1100}) {
      const int64_t rows = 3;
      auto x = random_floats(rows * cols, 100, static_cast<uint32_t>(cols));
      for (size_t i = 0; i < x.size(); i += 5) x[i] = std::nearbyint(x[i]) + 0.5F;
      x[x.size() / 2] = kInfinity;
      x[x.size() - 1] = -3e38F;
      for (const bool has_nan : {false, true}) {
        if (has_nan) x[x.size() / 3] = kNaN;
        for (const int kind : {0, 1, 2}) {  // of scales: per tensor, row, column
          const int64_t scales = kind == 0 ? 1 : kind == 1 ? rows : cols;
          const std::vector<int64_t> strides = {kind == 1, kind == 2};
          auto s = random_floats(scales, 2, 7);
          s[0] = 1;
          if (scales > 2) s[1] = 0;
          std::vector<int8_t> z(static_cast<size_t>(scales));
          for (size_t i = 0; i < z.size(); ++i) z[i] = static_cast<int8_t>(i * 77 + 5);
          for (const int64_t step : {1, 2}) {
            std::vector<float> spread(x.size() * static_cast<size_t>(step), 1000);
            for (size_t i = 0; i < x.size(); ++i) spread[i * static_cast<size_t>(step)] = x[i];
            auto in = TestTensor::of(DType::kFloat32, spread, {cols * step, step}),
                 scale = TestTensor::of(DType::kFloat32, s, strides),
                 zero = TestTensor::of(type, z, strides),
                 y = TestTensor::of(type, std::vector<uint8_t>(spread.size(), 55),
                                    {cols * step, step});
            ASSERT_TRUE(run_operator("QuantizeLinear", {rows, cols}, {&in, &scale, &zero, &y}, {},
                                     step == 1 ? 1 : 3));
            const auto found = y.elements<uint8_t>();
            for (size_t i = 0; i < found.size(); ++i) {
              const size_t at = i / static_cast<size_t>(step), c = static_cast<size_t>(cols);
              const size_t q = kind == 0 ? 0 : kind == 1 ? at / c : at % c;
              const int zero_point = is_signed ? z[q] : static_cast<uint8_t>(z[q]);
              const uint8_t expected = i % static_cast<size_t>(step) != 0
                                           ? uint8_t{55}
                                           : quantized(x[at], s[q], zero_point, is_signed);
              ASSERT_EQ(found[i], expected)
                  << x[at] << " by " << s[q] << " and " << zero_point << " at " << i;
            }
          }
        }
      }
    }
  }
}

TEST(NnQuantize, QuantizesOtherTypes) {
  const auto values = random_floats(700, 300);
  std::vector<double> doubles(values.begin(), values.end());
  for (double& value : doubles) value += 0x1p-40;
  std::vector<int32_t> integers(values.begin(), values.end());
  integers[0] = INT32_MAX;
  std::vector<Float16> halves;
  for (const float value : values) halves.push_back(narrow_to(value, Float16{}));
  const std::vector<float> s = {2.5F};
  auto scale = TestTensor::of(DType::kFloat32, s, {0});
  auto zero = TestTensor::of(DType::kUInt8, std::vector<uint8_t>{100}, {0});
  const auto expect = [&](TestTensor x, const auto& value_at) {
    auto y = TestTensor::of(DType::kUInt8, std::vector<uint8_t>(values.size()), {1});
    ASSERT_TRUE(run_operator("QuantizeLinear", {700}, {&x, &scale, &zero, &y}));
    const auto found = y.elements<uint8_t>();
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i], quantized(value_at(i), 2.5, 100, false)) << i;
  };
  expect(TestTensor::of(DType::kFloat64, doubles, {1}), [&](size_t i) { return doubles[i]; });
  expect(TestTensor::of(DType::kInt32, integers, {1}), [&](size_t i) { return integers[i]; });
  expect(TestTensor::of(DType::kFloat16, halves, {1}), [&](size_t i) { return widen(halves[i]); });
  auto wrong = TestTensor::of(DType::kInt64, std::vector<int64_t>(700), {1});
  auto y = TestTensor::of(DType::kUInt8, std::vector<uint8_t>(700), {1});
  EXPECT_FALSE(run_operator("QuantizeLinear", {700}, {&wrong, &scale, &zero, &y}));
}

template <typename T>
void expect_dequantized(DType type, const std::vector<T>& x, int64_t rows) {
  const auto count = static_cast<int64_t>(x.size()), cols = count / rows;
  for (const int kind : {0, 1, 2}) {
    const int64_t scales = kind == 0 ? 1 : kind == 1 ? rows : cols;
    const std::vector<int64_t> strides = {kind == 1, kind == 2};
    const auto s = random_floats(scales, 2, 7);
    std::vector<T> z(static_cast<size_t>(scales));
    for (size_t i = 0; i < z.size(); ++i) z[i] = static_cast<T>(i * 77 + 200);
    for (const int64_t step : {1, 3}) {
      const auto gap = static_cast<size_t>(step);
      std::vector<T> spread(x.size() * gap);
      for (size_t i = 0; i < x.size(); ++i) spread[i * gap] = x[i];
      auto in = TestTensor::of(type, spread, {cols * step, step}),
           scale = TestTensor::of(DType::kFloat32, s, strides),
           zero = TestTensor::of(type, z, strides),
           y = TestTensor::of(DType::kFloat32, std::vector<float>(x.size(), kNaN), {cols, 1}),
           half = TestTensor::of(DType::kFloat16, std::vector<Float16>(x.size()), {cols, 1});
      for (TestTensor* const to : {&y, &half})
        ASSERT_TRUE(run_operator("DequantizeLinear", {rows, cols}, {&in, &scale, &zero, to}, {},
                                 step == 1 ? 1 : 3));
      const auto found = y.elements<float>();
      const auto halves = half.elements<Float16>();
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t c = static_cast<size_t>(cols), q = kind == 0 ? 0 : kind == 1 ? i / c : i % c;
        const float expected = dequantized(x[i], s[q], z[q]);
        ASSERT_EQ(found[i], expected) << i;
        ASSERT_EQ(halves[i].bits, narrow_to(expected, Float16{}).bits) << i;
      }
    }
  }
}

TEST(NnQuantize, Dequantizes) {
  for (const int64_t cols : {1, 15, 16, 37, 600}) {
    std::vector<uint8_t> bytes(static_cast<size_t>(3 * cols));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 250);
    expect_dequantized(DType::kUInt8, bytes, 3);
    expect_dequantized(DType::kInt8, std::vector<int8_t>(bytes.begin(), bytes.end()), 3);
    std::vector<int32_t> integers(bytes.begin(), bytes.end());
    for (int32_t& value : integers) value *= 0x700001;
    expect_dequantized(DType::kInt32, integers, 3);
  }
  // float64 keeps the product.
  auto x = TestTensor::of(DType::kUInt8, std::vector<uint8_t>{7}, {1}),
       scale = TestTensor::of(DType::kFloat64, std::vector<double>{0.1}, {0}),
       zero = TestTensor::of(DType::kUInt8, std::vector<uint8_t>{4}, {0}),
       y = TestTensor::of(DType::kFloat64, std::vector<double>{0}, {1});
  ASSERT_TRUE(run_operator("DequantizeLinear", {1}, {&x, &scale, &zero, &y}));
  EXPECT_EQ(y.elements<double>()[0], 3 * 0.1);
}

}  // namespace
}  // namespace wgemm::nn
