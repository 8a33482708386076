#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>

#include "base/convert.h"
#include "nn_tester.h"

namespace wgemm::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

// Calls `f` with a type, and with a 0 of its elements.
template <typename F>
void for_each_type(const F& f) {
  f(DType::kFloat32, float{});
  f(DType::kFloat64, double{});
  f(DType::kFloat16, Float16{});
  f(DType::kBFloat16, BFloat16{});
  f(DType::kInt32, int32_t{});
  f(DType::kUInt32, uint32_t{});
  f(DType::kInt64, int64_t{});
  f(DType::kUInt64, uint64_t{});
  f(DType::kInt8, int8_t{});
  f(DType::kUInt8, uint8_t{});
}

// The type in which elements are computed.
template <typename T>
using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <typename T>
Wide<T> widened(T x) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    return x;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(x));
  } else {
    return convert<double>(x);
  }
}

template <typename T>
T narrowed(Wide<T> x) {
  if constexpr (kIsHalf<T>) {
    return narrow_to(static_cast<float>(x), T{});
  } else {
    return static_cast<T>(x);
  }
}

template <typename T>
std::vector<T> random_elements(int64_t count, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> x(static_cast<size_t>(count));
  for (T& each : x) {
    const uint64_t bits = random();
    if constexpr (std::is_integral_v<T>) {
      each = static_cast<T>(bits);
    } else {
      each = narrowed<T>(static_cast<double>(static_cast<int64_t>(bits)) / 0x1p62);
    }
  }
  return x;
}

// Element i joins part i % 8.
template <typename W, typename J>
W folded(const std::vector<W>& x, W start, const J& join) {
  std::array<W, 8> parts;
  parts.fill(start);
  for (size_t i = 0; i < x.size(); ++i) parts[i % 8] = join(parts[i % 8], x[i]);
  for (size_t width = 4; width > 0; width /= 2)
    for (size_t i = 0; i < width; ++i) parts[i] = join(parts[i], parts[i + width]);
  return parts[0];
}

// Whether an element of type T is less.
template <typename T>
bool is_less(Wide<T> a, Wide<T> b) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, uint64_t>) {
    return static_cast<int64_t>(a) < static_cast<int64_t>(b);
  } else {
    return a < b;
  }
}

template <typename T>
Wide<T> reduced(const std::string& name, std::vector<Wide<T>> x) {
  using W = Wide<T>;
  const auto add = [](W a, W b) { return static_cast<W>(a + b); };
  if (name == "ReduceMax") return *std::ranges::max_element(x, is_less<T>);
  if (name == "ReduceMin") return *std::ranges::min_element(x, is_less<T>);
  if (name == "ReduceProd") return folded<W>(x, W{1}, [](W a, W b) { return a * b; });
  if (name == "ReduceL1") {
    for (W& each : x)
      if (is_less<T>(each, W{0})) each = W{0} - each;
    // The absolute value of an unsigned number of 64 bits has its bits.
    if constexpr (std::is_same_v<T, uint64_t>) {
      for (W& each : x)
        if (static_cast<int64_t>(each) < 0) each = 0 - each;
    }
  }
  if (name == "ReduceSumSquare")
    for (W& each : x) each *= each;
  return folded<W>(x, W{0}, add);
}

// Rows along the last axis of x, and along the axis before it.
struct Layout {
  std::vector<int64_t> x, y;
};
std::array<Layout, 2> layouts(int64_t inner, int64_t count) {
  return {Layout{{inner * count, count, 1}, {inner, 1, 0}},
          Layout{{inner * count, 1, inner}, {inner, 1, 0}}};
}

constexpr int64_t kOuter = 5, kInner = 3;
constexpr int64_t kCounts[] = {1, 2, 7, 8, 9, 17, 511, 512, 513, 1300};

// Calls `f` for each row of a tensor with its elements and its number.
template <typename T, typename F>
void for_each_row(const std::vector<T>& x, const Layout& layout, int64_t count, const F& f) {
  for (int64_t i = 0; i < kOuter; ++i)
    for (int64_t j = 0; j < kInner; ++j) {
      std::vector<T> row;
      for (int64_t k = 0; k < count; ++k)
        row.push_back(x[static_cast<size_t>(i * layout.x[0] + j * layout.x[1] + k * layout.x[2])]);
      f(row, static_cast<size_t>(i * kInner + j));
    }
}

TEST(NnReduce, ReductionsHaveTheBitsOfEightParts) {
  for (const char* const name :
       {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare"}) {
    for_each_type([&]<typename T>(DType type, T) {
      for (const int64_t count : kCounts) {
        for (const Layout& layout : layouts(kInner, count)) {
          const auto elements =
              random_elements<T>(kOuter * kInner * count, static_cast<uint32_t>(count));
          std::vector<std::byte> bytes;
          for (const int threads : {1, 3}) {
            auto x = TestTensor::of(type, elements, layout.x),
                 y = TestTensor::of(type, std::vector<T>(kOuter * kInner), layout.y);
            ASSERT_TRUE(run_operator(name, {kOuter, kInner, count}, {&x, &y}, {}, threads));
            if (threads > 1) {
              ASSERT_EQ(bytes, y.bytes);
            }
            bytes = y.bytes;
          }
          std::vector<T> expected(kOuter * kInner);
          for_each_row(elements, layout, count, [&](const std::vector<T>& row, size_t number) {
            std::vector<Wide<T>> wide;
            for (const T each : row) wide.push_back(widened(each));
            expected[number] = narrowed<T>(reduced<T>(name, wide));
          });
          ASSERT_EQ(bytes, TestTensor::of(type, expected, {}).bytes)
              << name << " of " << count << " " << dtype_name(type);
        }
      }
    });
  }
}

double reduce(const char* name, std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  auto x = TestTensor::of(DType::kFloat64, values, {1}),
       y = TestTensor::of(DType::kFloat64, std::vector<double>(1), {0});
  EXPECT_TRUE(run_operator(name, {count}, {&x, &y}));
  return y.elements<double>()[0];
}

TEST(NnReduce, MaxAndMinOrderZerosAndKeepNaN) {
  for (const int64_t at : {0, 3, 600}) {
    std::vector<double> x(700, -1);
    x[static_cast<size_t>(at)] = kNaN;
    EXPECT_TRUE(std::isnan(reduce("ReduceMax", x)));
    EXPECT_TRUE(std::isnan(reduce("ReduceMin", x)));
  }
  for (const std::vector<double>& zeros : {std::vector{0.0, -0.0}, {-0.0, 0.0}}) {
    EXPECT_FALSE(std::signbit(reduce("ReduceMax", zeros)));
    EXPECT_TRUE(std::signbit(reduce("ReduceMin", zeros)));
  }
  EXPECT_EQ(reduce("ReduceMax", {-kInfinity}), -kInfinity);
  EXPECT_EQ(reduce("ReduceMin", {kInfinity}), kInfinity);
}

TEST(NnReduce, LogarithmsAreCloseToExact) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    // All exponents, and numbers close to 1.
    const uint64_t bits = random() >> 1;
    const double x = i % 2 == 0 ? std::bit_cast<double>(bits)
                                : 1 + (static_cast<double>(bits) / 0x1p63 - 0.5) / (1 + i % 50);
    if (!(x < kInfinity)) continue;
    const long double exact = std::log(static_cast<long double>(x));
    ASSERT_NEAR(reduce("ReduceLogSum", {x}), static_cast<double>(exact),
                static_cast<double>(std::abs(exact)) * 0x1p-51)
        << x;
  }
  EXPECT_EQ(reduce("ReduceLogSum", {1}), 0);
  EXPECT_EQ(reduce("ReduceLogSum", {0}), -kInfinity);
  EXPECT_EQ(reduce("ReduceLogSum", {kInfinity}), kInfinity);
  EXPECT_TRUE(std::isnan(reduce("ReduceLogSum", {-1})));
  EXPECT_TRUE(std::isnan(reduce("ReduceLogSum", {kNaN})));
}

TEST(NnReduce, RootsAndPowersAreCloseToExact) {
  for (const int64_t count : kCounts) {
    for (const double shift : {0.0, 1000.0, -1000.0}) {
      auto x = random_elements<double>(count, static_cast<uint32_t>(count));
      long double powers = 0, squares = 0;
      for (double& each : x) {
        each = 10 * each + shift;
        powers += std::exp(static_cast<long double>(each) - shift);
        squares += static_cast<long double>(each) * each;
      }
      const auto log = static_cast<double>(shift + std::log(powers)),
                 root = static_cast<double>(std::sqrt(squares));
      EXPECT_NEAR(reduce("ReduceLogSumExp", x), log, (std::abs(log) + 1) * 0x1p-48);
      EXPECT_NEAR(reduce("ReduceL2", x), root, root * 0x1p-48);
    }
  }
  EXPECT_EQ(reduce("ReduceLogSumExp", {-kInfinity, -kInfinity}), -kInfinity);
  EXPECT_EQ(reduce("ReduceLogSumExp", {-kInfinity, 5}), 5);
  EXPECT_EQ(reduce("ReduceLogSumExp", {kInfinity, 5}), kInfinity);
  EXPECT_TRUE(std::isnan(reduce("ReduceLogSumExp", {kNaN, kInfinity})));
}

TEST(NnReduce, RootsOfIntegersTruncate) {
  auto x = TestTensor::of(DType::kInt32, std::vector<int32_t>{5, -5}, {1}),
       y = TestTensor::of(DType::kInt32, std::vector<int32_t>(1), {0});
  ASSERT_TRUE(run_operator("ReduceL2", {2}, {&x, &y}));
  EXPECT_EQ(y.elements<int32_t>()[0], 7);
}

// Elements of which many are equal.
template <typename T>
std::vector<T> few_values(int64_t count, uint32_t seed) {
  auto x = random_elements<T>(count, seed);
  for (T& each : x) {
    if constexpr (std::is_integral_v<T>) {
      each = static_cast<T>(each % 11);
    } else {
      each = narrowed<T>(std::floor(4 * widened(each)));
    }
  }
  return x;
}

TEST(NnReduce, PlacesAreTheFirstOrTheLast) {
  for_each_type([&]<typename T>(DType type, T) {
    for (const int64_t count : kCounts) {
      for (const Layout& layout : layouts(kInner, count)) {
        const auto elements = few_values<T>(kOuter * kInner * count, 3);
        for (const bool is_greatest : {true, false}) {
          for (const bool is_last : {true, false}) {
            auto x = TestTensor::of(type, elements, layout.x),
                 y = TestTensor::of(DType::kInt64, std::vector<int64_t>(kOuter * kInner), layout.y);
            ASSERT_TRUE(run_operator(is_greatest ? "ArgMax" : "ArgMin", {kOuter, kInner, count},
                                     {&x, &y}, {is_last ? 1.0 : 0.0}, 3));
            const auto found = y.elements<int64_t>();
            for_each_row(elements, layout, count, [&](const std::vector<T>& row, size_t number) {
              size_t expected = 0;
              for (size_t i = 1; i < row.size(); ++i) {
                const auto best = widened(row[expected]), each = widened(row[i]);
                const bool is_better =
                    is_greatest ? is_less<T>(best, each) : is_less<T>(each, best);
                if (is_better || (is_last && best == each)) expected = i;
              }
              ASSERT_EQ(found[number], static_cast<int64_t>(expected))
                  << dtype_name(type) << " of " << count;
            });
          }
        }
      }
    }
  });
}

TEST(NnReduce, PlacesOfNaN) {
  std::vector<float> values(600);
  values[5] = values[550] = std::numeric_limits<float>::quiet_NaN();
  for (const char* const name : {"ArgMax", "ArgMin"}) {
    for (const bool is_last : {true, false}) {
      auto x = TestTensor::of(DType::kFloat32, values, {1}),
           y = TestTensor::of(DType::kInt64, std::vector<int64_t>(1), {0});
      ASSERT_TRUE(run_operator(name, {600}, {&x, &y}, {is_last ? 1.0 : 0.0}));
      EXPECT_EQ(y.elements<int64_t>()[0], is_last ? 550 : 5);
    }
  }
}

TEST(NnReduce, SumsGrowInBothDirections) {
  for_each_type([&]<typename T>(DType type, T) {
    for (const int64_t count : kCounts) {
      for (const Layout& layout : layouts(kInner, count)) {
        const auto elements = random_elements<T>(kOuter * kInner * count, 4);
        for (const bool is_exclusive : {true, false}) {
          for (const bool is_reverse : {true, false}) {
            std::vector<std::byte> bytes;
            for (const int threads : {1, 3}) {
              auto x = TestTensor::of(type, elements, layout.x),
                   y = TestTensor::of(type, std::vector<T>(elements.size()), layout.x);
              ASSERT_TRUE(run_operator("CumSum", {kOuter, kInner, count}, {&x, &y},
                                       {is_exclusive ? 1.0 : 0.0, is_reverse ? 1.0 : 0.0},
                                       threads));
              if (threads > 1) {
                ASSERT_EQ(bytes, y.bytes);
              }
              bytes = y.bytes;
            }
            auto y = TestTensor::of(type, std::vector<T>{}, {});
            y.bytes = bytes;
            const auto found = y.template elements<T>();
            std::vector<std::vector<T>> rows;
            for_each_row(found, layout, count,
                         [&](const std::vector<T>& row, size_t) { rows.push_back(row); });
            for_each_row(elements, layout, count, [&](std::vector<T> row, size_t number) {
              if (is_reverse) std::ranges::reverse(row);
              std::vector<T> expected;
              Wide<T> sum = 0;
              for (const T each : row) {
                if (is_exclusive) expected.push_back(narrowed<T>(sum));
                sum += widened(each);
                if (!is_exclusive) expected.push_back(narrowed<T>(sum));
              }
              if (is_reverse) std::ranges::reverse(expected);
              ASSERT_EQ(TestTensor::of(type, rows[number], {}).bytes,
                        TestTensor::of(type, expected, {}).bytes)
                  << dtype_name(type) << " of " << count;
            });
          }
        }
      }
    }
  });
}

TEST(NnReduce, TopKSortsAndKeepsTheOrderOfEqualElements) {
  for_each_type([&]<typename T>(DType type, T) {
    for (const int64_t count : kCounts) {
      const Layout layout = layouts(kInner, count)[count % 2 == 0 ? 0 : 1];
      for (const bool has_few : {true, false}) {
        const int64_t total = kOuter * kInner * count;
        auto elements = has_few ? few_values<T>(total, 5) : random_elements<T>(total, 6);
        for (const int64_t k : {int64_t{0}, int64_t{1}, std::min<int64_t>(count, 10), count}) {
          for (const bool is_least : {true, false}) {
            // Results lie along the axis before the last one.
            const auto size = static_cast<size_t>(kOuter * kInner * k);
            const std::vector<int64_t> along = {kInner * k, 1, 0};
            auto x = TestTensor::of(type, elements, layout.x),
                 values = TestTensor::of(type, std::vector<T>(size), along),
                 indices = TestTensor::of(DType::kInt64, std::vector<int64_t>(size), along);
            ASSERT_TRUE(run_operator(
                "TopK", {kOuter, kInner, count}, {&x, &values, &indices},
                {static_cast<double>(k), static_cast<double>(kInner), is_least ? 1.0 : 0.0}, 3));
            const auto places = indices.elements<int64_t>();
            const auto best = values.template elements<T>();
            for_each_row(elements, layout, count, [&](const std::vector<T>& row, size_t number) {
              std::vector<int64_t> order(row.size());
              std::iota(order.begin(), order.end(), 0);
              std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
                const auto first = widened(row[static_cast<size_t>(a)]),
                           second = widened(row[static_cast<size_t>(b)]);
                return is_least ? is_less<T>(first, second) : is_less<T>(second, first);
              });
              for (int64_t i = 0; i < k; ++i) {
                const auto at =
                    static_cast<size_t>(static_cast<int64_t>(number) / kInner * kInner * k +
                                        i * kInner + static_cast<int64_t>(number) % kInner);
                const int64_t index = order[static_cast<size_t>(i)];
                ASSERT_EQ(places[at], index) << dtype_name(type) << " of " << count;
                ASSERT_EQ(widened(best[at]), widened(row[static_cast<size_t>(index)]));
              }
            });
          }
        }
      }
    }
  });
}

TEST(NnReduce, TopKOrdersNaNAndZeros) {
  const auto nan = static_cast<float>(kNaN);
  const std::vector<float> row = {-0.0F, 1, nan, 0, -nan, -INFINITY, INFINITY};
  const auto run = [&](bool is_least) {
    auto x = TestTensor::of(DType::kFloat32, row, {1}), values = x,
         indices = TestTensor::of(DType::kInt64, std::vector<int64_t>(7), {0});
    values.strides = {0};
    EXPECT_TRUE(run_operator("TopK", {7}, {&x, &values, &indices}, {7, 1, is_least ? 1.0 : 0.0}));
    return indices.elements<int64_t>();
  };
  EXPECT_EQ(run(false), (std::vector<int64_t>{2, 4, 6, 1, 0, 3, 5}));
  EXPECT_EQ(run(true), (std::vector<int64_t>{5, 0, 3, 1, 6, 2, 4}));
}

TEST(NnReduce, OperatorsRefuseOtherTypes) {
  auto x = TestTensor::of(DType::kFloat32, std::vector<float>(4), {1}),
       y = TestTensor::of(DType::kFloat64, std::vector<double>(4), {0}), z = y;
  EXPECT_FALSE(run_operator("ReduceSum", {4}, {&x, &y}));
  EXPECT_FALSE(run_operator("ArgMax", {4}, {&x, &x}, {0}));
  EXPECT_FALSE(run_operator("CumSum", {4}, {&x, &y}, {0, 0}));
  EXPECT_FALSE(run_operator("TopK", {4}, {&x, &x, &z}, {1, 1, 0}));
}

}  // namespace
}  // namespace wgemm::nn
