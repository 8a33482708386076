#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/convert.h"
#include "nn_tester.h"

namespace wgemm::nn {
namespace {

TestTensor ints(std::vector<int64_t> values, std::vector<int64_t> strides) {
  return TestTensor::of(DType::kInt64, values, std::move(strides));
}

TEST(NnIndices, FlatIndicesCountTheElementsOfAllAxes) {
  const std::vector<int64_t> sizes = {3, 1, 4};
  std::mt19937 random(1);
  for (const int64_t rows : {1, 2, 77}) {
    std::vector<int64_t> indices, expected;
    for (int64_t i = 0; i < rows; ++i) {
      int64_t flat = 0;
      for (const int64_t size : sizes) {
        const int64_t index = static_cast<int64_t>(random() % static_cast<unsigned>(size));
        flat = flat * size + index;
        indices.push_back(random() % 2 == 0 ? index : index - size);
      }
      expected.push_back(flat);
    }
    auto x = ints(indices, {3, 1}), axes = ints(sizes, {0, 1}),
         y = ints(std::vector<int64_t>(static_cast<size_t>(rows)), {1, 0});
    ASSERT_TRUE(run_operator("FlatIndices", {rows, 3}, {&x, &axes, &y}));
    EXPECT_EQ(y.elements<int64_t>(), expected);
  }
}

TEST(NnIndices, FlatIndicesRefuseIndicesOutOfRange) {
  for (const int64_t wrong : {int64_t{4}, int64_t{-5}, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()}) {
    auto x = ints({0, 0, 1, wrong}, {2, 1}), axes = ints({3, 4}, {0, 1}), y = ints({0, 0}, {1, 0});
    Status status;
    EXPECT_FALSE(run_operator("FlatIndices", {2, 2}, {&x, &axes, &y}, {}, 1, &status));
    EXPECT_EQ(std::string(status.message),
              "run: indices is " + std::to_string(wrong) + "; it must be from -4 to 3");
  }
}

// What Scatter does with an element and its update.
double joined(int kind, double a, double b) {
  switch (kind) {
    case 1:
      return a + b;
    case 2:
      return a * b;
    case 3:
      return std::max(a, b);
    case 4:
      return std::min(a, b);
    default:
      return b;
  }
}

// Indices along the first axis of y, and along the last one, with rows that are updated twice.
TEST(NnIndices, ScatterWritesInOrder) {
  const int64_t size = 6, count = 10;
  for (const int64_t width : {1, 3, 8, 19}) {
    for (int kind = 0; kind <= 4; ++kind) {
      for (const bool along_rows : {true, false}) {
        const auto check = [&]<typename T>(DType type, T) {
          std::mt19937 random(static_cast<unsigned>(width));
          std::vector<int64_t> indices;
          for (int64_t i = 0; i < count; ++i)
            indices.push_back(static_cast<int64_t>(random() % (2 * size)) - size);
          std::vector<T> updates, before;
          const auto value = [&] { return static_cast<T>(1 + random() % 3); };
          for (int64_t i = 0; i < count * width; ++i) updates.push_back(value());
          for (int64_t i = 0; i < size * width; ++i) before.push_back(value());
          auto expected = before;
          for (int64_t i = 0; i < count; ++i) {
            for (int64_t j = 0; j < width; ++j) {
              const int64_t index = (indices[static_cast<size_t>(i)] + size) % size;
              T& y =
                  expected[static_cast<size_t>(along_rows ? index * width + j : j * size + index)];
              const T update =
                  updates[static_cast<size_t>(along_rows ? i * width + j : j * count + i)];
              const double all = joined(kind, static_cast<double>(y), static_cast<double>(update));
              // Integers wrap.
              y = std::is_integral_v<T> ? static_cast<T>(static_cast<int64_t>(all))
                                        : static_cast<T>(all);
            }
          }
          const std::vector<int64_t> dims =
              along_rows ? std::vector{count, width} : std::vector{width, count};
          auto x = ints(indices,
                        along_rows ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{0, 1}),
               u = TestTensor::of(type, updates, contiguous(dims)),
               y = TestTensor::of(
                   type, before,
                   along_rows ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{size, 0});
          ASSERT_TRUE(run_operator(
              "Scatter", dims, {&x, &u, &y},
              {size, static_cast<double>(along_rows ? width : 1), static_cast<double>(kind), 0},
              3));
          EXPECT_EQ(y.template elements<T>(), expected)
              << dtype_name(type) << " " << width << " " << kind;
        };
        check(DType::kFloat32, float{});
        check(DType::kFloat64, double{});
        check(DType::kInt32, int32_t{});
        check(DType::kInt64, int64_t{});
        check(DType::kUInt64, uint64_t{});
        check(DType::kInt8, int8_t{});
      }
    }
  }
}

TEST(NnIndices, ScatterComparesUnsignedIntegers) {
  for (const bool is_greatest : {true, false}) {
    auto x = ints({0}, {0});
    auto u = TestTensor::of(DType::kUInt64, std::vector<uint64_t>{~uint64_t{0}}, {1}),
         y = TestTensor::of(DType::kUInt64, std::vector<uint64_t>{5}, {0});
    ASSERT_TRUE(run_operator("Scatter", {1}, {&x, &u, &y}, {1, 1, is_greatest ? 3.0 : 4.0, 0}));
    EXPECT_EQ(y.elements<uint64_t>()[0], is_greatest ? ~uint64_t{0} : 5);
  }
}

// After each update, the element is rounded to its type.
TEST(NnIndices, ScatterRoundsEachSum) {
  auto x = ints({0, 0}, {1});
  const auto half = [](float value) { return narrow_to(value, Float16{}); };
  auto u = TestTensor::of(DType::kFloat16, std::vector<Float16>{half(1), half(1)}, {1}),
       y = TestTensor::of(DType::kFloat16, std::vector<Float16>{half(2048)}, {0});
  ASSERT_TRUE(run_operator("Scatter", {2}, {&x, &u, &y}, {1, 1, 1, 0}));
  EXPECT_EQ(convert<float>(y.elements<Float16>()[0]), 2048);
}

TEST(NnIndices, ScatterWritesNothingIfAnIndexIsOutOfRange) {
  for (const int64_t wrong : {3, -4}) {
    for (const bool skips : {true, false}) {
      auto x = ints({0, wrong, 1}, {1}), u = ints({7, 8, 9}, {1}), y = ints({1, 2, 3}, {0});
      Status status;
      const bool ok =
          run_operator("Scatter", {3}, {&x, &u, &y}, {3, 1, 0, skips ? 1.0 : 0.0}, 1, &status);
      EXPECT_EQ(ok, skips);
      EXPECT_EQ(y.elements<int64_t>(),
                skips ? (std::vector<int64_t>{7, 9, 3}) : (std::vector<int64_t>{1, 2, 3}));
      if (!skips) {
        EXPECT_EQ(std::string(status.message),
                  "run: indices is " + std::to_string(wrong) + "; it must be from -3 to 2");
      }
    }
  }
}

TEST(NnIndices, ScatterTakesIndicesOfInt32) {
  auto x = TestTensor::of(DType::kInt32, std::vector<int32_t>{-1, 0}, {1}), u = ints({7, 8}, {1}),
       y = ints({1, 2, 3}, {0});
  ASSERT_TRUE(run_operator("Scatter", {2}, {&x, &u, &y}, {3, 1, 0, 0}));
  EXPECT_EQ(y.elements<int64_t>(), (std::vector<int64_t>{8, 2, 7}));
}

}  // namespace
}  // namespace wgemm::nn
