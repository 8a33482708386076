#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "base/convert.h"
#include "nn_tester.h"

namespace wgemm::nn {
namespace {

using Exact = long double;

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};

// The distance from `value` to `exact` in units in the last place of the type.
double ulps(DType type, double value, Exact exact) {
  if (std::isnan(exact) || std::isinf(exact))
    return std::isnan(exact) ? (std::isnan(value) ? 0 : kInfinity)
                             : (value == static_cast<double>(exact) ? 0 : kInfinity);
  const int digits = type == DType::kFloat32   ? 24
                     : type == DType::kFloat64 ? 53
                     : type == DType::kFloat16 ? 11
                                               : 8;
  const int least = type == DType::kFloat64    ? -1074
                    : type == DType::kFloat16  ? -24
                    : type == DType::kBFloat16 ? -133
                                               : -149;
  const int exponent = exact == 0 ? least : std::max(std::ilogb(exact) + 1 - digits, least);
  return static_cast<double>(std::abs(static_cast<Exact>(value) - exact) /
                             std::ldexp(Exact{1}, exponent));
}

// Values as elements of a type, and back.
TestTensor tensor_of(DType type, const std::vector<double>& values, std::vector<int64_t> strides) {
  const auto make = [&]<typename T>(T) {
    std::vector<T> elements;
    for (const double value : values) {
      if constexpr (kIsHalf<T>) {
        elements.push_back(narrow_to(static_cast<float>(value), T{}));
      } else {
        elements.push_back(static_cast<T>(value));
      }
    }
    return TestTensor::of(type, elements, std::move(strides));
  };
  switch (type) {
    case DType::kFloat32:
      return make(float{});
    case DType::kFloat64:
      return make(double{});
    case DType::kFloat16:
      return make(Float16{});
    case DType::kBFloat16:
      return make(BFloat16{});
    default:
      return make(int32_t{});
  }
}

std::vector<double> values_of(const TestTensor& tensor) {
  std::vector<double> values;
  const auto add = [&]<typename T>(T) {
    for (const T& element : tensor.elements<T>()) values.push_back(convert<double>(element));
  };
  switch (tensor.type) {
    case DType::kFloat32:
      add(float{});
      break;
    case DType::kFloat64:
      add(double{});
      break;
    case DType::kFloat16:
      add(Float16{});
      break;
    case DType::kBFloat16:
      add(BFloat16{});
      break;
    default:
      add(int32_t{});
  }
  return values;
}

// Values that the type has.
std::vector<double> random_values(DType type, int64_t count, double low, double high,
                                  uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> values(low, high);
  std::vector<double> x(static_cast<size_t>(count));
  for (double& value : x) value = values(random);
  return values_of(tensor_of(type, x, {1}));
}

std::vector<Exact> softmax(const std::vector<double>& x, bool is_log) {
  const Exact most = x.empty() ? 0 : *std::ranges::max_element(x);
  Exact rest = 0;  // the sum without the greatest, so that the log is exact near 0
  bool has_most = false;
  for (const double value : x) {
    if (!has_most && static_cast<Exact>(value) == most)
      has_most = true;
    else
      rest += std::exp(static_cast<Exact>(value) - most);
  }
  std::vector<Exact> y;
  for (const double value : x) {
    const Exact from_most = static_cast<Exact>(value) - most;
    y.push_back(is_log ? from_most - std::log1p(rest) : std::exp(from_most) / (1 + rest));
  }
  return y;
}

Exact mean_of(const std::vector<double>& x) {
  Exact sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<Exact>(x.size());
}

Exact deviation_of(const std::vector<double>& x, double epsilon) {
  const Exact mean = mean_of(x);
  Exact squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<Exact>(x.size()) + epsilon);
}

std::vector<Exact> normalized(const std::vector<double>& x, const std::vector<double>& scale,
                              const std::vector<double>& bias, double epsilon) {
  const Exact mean = mean_of(x), deviation = deviation_of(x, epsilon);
  std::vector<Exact> y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back((x[i] - mean) / deviation * scale[i] + bias[i]);
  return y;
}

// The greatest error of each type, in units in the last place.
class Errors {
 public:
  explicit Errors(const char* name) : name_(name) {}
  ~Errors() {
    for (const DType type : kFloats)
      std::printf("  %s %s: at most %.2f units in the last place\n", name_, dtype_name(type),
                  most_[static_cast<size_t>(type)]);
  }
  // `room`: how many times as large as the result are the terms that it is the sum of.
  void add(DType type, double value, Exact exact, double limit, double room = 1) {
    const double found = ulps(type, value, exact) / room;
    ASSERT_LE(found, limit) << dtype_name(type) << ": " << value << " for "
                            << static_cast<double>(exact);
    double& most = most_[static_cast<size_t>(type)];
    most = std::max(most, found);
  }

 private:
  const char* name_;
  double most_[kDTypeCount] = {};
};

// float64 is within 2^-46 of the exact value.
double limit_of(DType type, double single) {
  return type == DType::kFloat32 ? single : type == DType::kFloat64 ? 128 : 0.51;
}

// Rows along the last axis, contiguous; along the first one, so that elements have a step; and with
// only one of x and y so. Results are the same on any number of threads.
void expect_softmax(bool is_log, DType type, int64_t rows, int64_t size,
                    const std::vector<double>& x, Errors* errors, double limit) {
  const char* const name = is_log ? "LogSoftmax" : "Softmax";
  const auto n = static_cast<size_t>(size), m = static_cast<size_t>(rows);
  std::vector<double> transposed(x.size());
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) transposed[j * m + i] = x[i * n + j];
  for (const bool x_steps : {false, true}) {
    for (const bool y_steps : {false, true}) {
      std::vector<std::byte> bytes;
      for (const int threads : {1, 3}) {
        const std::vector<int64_t> along = {size, 1}, across = {1, rows};
        auto in = tensor_of(type, x_steps ? transposed : x, x_steps ? across : along);
        auto y = tensor_of(type, std::vector<double>(x.size(), 7), y_steps ? across : along);
        ASSERT_TRUE(run_operator(name, {rows, size}, {&in, &y}, {}, threads));
        if (threads > 1) {
          ASSERT_EQ(bytes, y.bytes);
        }
        bytes = y.bytes;
        const auto found = values_of(y);
        for (size_t i = 0; i < m; ++i) {
          const auto exact = softmax({x.begin() + static_cast<ptrdiff_t>(i * n),
                                      x.begin() + static_cast<ptrdiff_t>((i + 1) * n)},
                                     is_log);
          for (size_t j = 0; j < n; ++j) {
            const double value = found[y_steps ? j * m + i : i * n + j];
            // The logarithm of a sum close to 1 has the error of the sum.
            if (is_log && std::abs(value - exact[j]) <= 0x1p-50L) continue;
            ASSERT_NO_FATAL_FAILURE(errors->add(type, value, exact[j], limit))
                << name << " of " << size << " at " << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(NnRows, SoftmaxIsCloseToExact) {
  for (const bool is_log : {false, true}) {
    Errors errors(is_log ? "LogSoftmax" : "Softmax");
    for (const DType type : kFloats) {
      for (const int64_t size : {1, 2, 3, 4, 5, 7, 16, 19, 130, 511, 512, 513, 1501}) {
        for (const auto& [low, high] : {std::pair{-1.0, 1.0}, {-90.0, 20.0}, {-300.0, -200.0}}) {
          const int64_t rows = size < 20 ? 33 : 5;
          const auto x = random_values(type, rows * size, low, high, static_cast<uint32_t>(size));
          ASSERT_NO_FATAL_FAILURE(
              expect_softmax(is_log, type, rows, size, x, &errors, limit_of(type, 3)));
        }
      }
    }
  }
}

TEST(NnRows, LogSoftmaxIsCloseToExactNear0) {
  Errors errors("LogSoftmax near 0");
  for (const double gap : {2.0, 5.0, 10.0, 15.0})
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16})
      ASSERT_NO_FATAL_FAILURE(
          expect_softmax(true, type, 1, 3, {30, 30 - gap, 28.5 - gap}, &errors, limit_of(type, 1)));
}

TEST(NnRows, SoftmaxKeepsSpecialValues) {
  const double most = std::numeric_limits<float>::max();
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    for (const size_t size : {1U, 3U, 4U, 37U, 600U}) {
      const auto run = [&](const char* name, std::vector<double> x) {
        auto in = tensor_of(type, x, {1}), y = tensor_of(type, x, {1});
        EXPECT_TRUE(run_operator(name, {static_cast<int64_t>(size)}, {&in, &y}));
        return values_of(y);
      };
      const std::vector<double> zeros(size);
      const auto is_nan = [](double value) { return std::isnan(value); };
      for (const char* const name : {"Softmax", "LogSoftmax"}) {
        EXPECT_TRUE(std::ranges::all_of(run(name, std::vector<double>(size, -kInfinity)), is_nan));
        for (const double special : {kNaN, kInfinity}) {
          auto x = zeros;
          x[size / 2] = special;
          EXPECT_TRUE(std::ranges::all_of(run(name, x), is_nan)) << name << " of " << special;
        }
      }
      // One element is far above all others.
      for (const double low : {-kInfinity, -most, -1000.0}) {
        std::vector<double> x(size, low);
        x[size - 1] = low == -most ? most : 5;
        const auto y = run("Softmax", x);
        for (size_t i = 0; i < size; ++i) EXPECT_EQ(y[i], i + 1 == size ? 1 : 0);
        const auto logs = run("LogSoftmax", x);
        for (size_t i = 0; i < size; ++i)
          EXPECT_EQ(static_cast<float>(logs[i]),
                    i + 1 == size ? 0 : static_cast<float>(low - x[size - 1]));
      }
    }
  }
}

TEST(NnRows, SoftmaxWritesToItsInput) {
  const auto x = random_values(DType::kBFloat16, 1030, -5, 5);
  for (const char* const name : {"Softmax", "LogSoftmax"}) {
    for (const DType type : kFloats) {
      auto in = tensor_of(type, x, {1}), y = tensor_of(type, x, {1});
      ASSERT_TRUE(run_operator(name, {1030}, {&in, &y}));
      const int64_t step = 1;
      Tensor same[] = {{in.bytes.data(), type, &step}, {in.bytes.data(), type, &step}};
      int64_t dims = 1030;
      Step in_place;
      in_place.op = find_operator(name);
      in_place.tensors = same;
      in_place.rank = 1;
      in_place.dims = &dims;
      ASSERT_TRUE(in_place.op->choose(&in_place));
      Context context;
      ASSERT_TRUE(wgemm::nn::run(context, in_place).ok());
      EXPECT_EQ(in.bytes, y.bytes) << name << " of " << dtype_name(type);
    }
  }
}

TEST(NnRows, LayerNormalizationIsCloseToExact) {
  Errors errors("LayerNormalization");
  for (const DType type : kFloats) {
    for (const int64_t size : {1, 2, 3, 7, 8, 9, 64, 511, 513, 1031}) {
      for (const double middle : {0.0, 10.0}) {
        const int64_t rows = 41;
        const auto n = static_cast<size_t>(size);
        const auto x = random_values(type, rows * size, middle - 2, middle + 3, 5);
        const double epsilon = 1e-5;
        for (const bool per_row : {false, true}) {
          const int64_t count = per_row ? rows * size : size;
          const auto scale = random_values(type, count, -2, 2, 6),
                     bias = random_values(type, count, -1, 1, 7);
          const std::vector<int64_t> parts = {per_row ? size : 0, 1};
          for (const int64_t step : {1, 2}) {
            std::vector<double> spread(x.size() * static_cast<size_t>(step), 1000);
            for (size_t i = 0; i < x.size(); ++i) spread[i * static_cast<size_t>(step)] = x[i];
            std::vector<std::byte> bytes;
            for (const int threads : {1, 3}) {
              auto in = tensor_of(type, spread, {size * step, step}),
                   factors = tensor_of(type, scale, parts), terms = tensor_of(type, bias, parts),
                   y = tensor_of(type, std::vector<double>(x.size()), {size, 1});
              ASSERT_TRUE(run_operator("LayerNormalization", {rows, size},
                                       {&in, &factors, &terms, &y}, {epsilon}, threads));
              if (threads > 1) {
                ASSERT_EQ(bytes, y.bytes);
              }
              bytes = y.bytes;
            }
            auto y = tensor_of(type, {}, {});
            y.bytes = bytes;
            const auto values = values_of(y);
            for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
              const auto row_of = [&](const std::vector<double>& all, bool first) {
                const auto from = all.begin() + static_cast<ptrdiff_t>(first ? 0 : i * n);
                return std::vector<double>(from, from + static_cast<ptrdiff_t>(n));
              };
              const auto part = row_of(scale, !per_row), rest = row_of(bias, !per_row);
              const auto own = row_of(x, false);
              const auto exact = normalized(own, part, rest, epsilon);
              const Exact most =
                  *std::ranges::max_element(own) - std::min(0.0, *std::ranges::min_element(own));
              const Exact deviation = deviation_of(own, epsilon);
              for (size_t j = 0; j < n; ++j) {
                // The error is one of the mean and of the two terms, which may cancel.
                const Exact reach = std::abs(exact[j] - rest[j]) + std::abs(rest[j]) +
                                    std::abs(part[j]) * most / deviation;
                const double room = static_cast<double>(reach / std::abs(exact[j]));
                ASSERT_NO_FATAL_FAILURE(errors.add(type, values[i * n + j], exact[j],
                                                   type == DType::kFloat64 ? 3 : 0.51,
                                                   type == DType::kFloat64 ? room : 1))
                    << size << " at " << i << ", " << j;
              }
            }
          }
        }
      }
    }
  }
}

TEST(NnRows, LayerNormalizationOfAConstantIsTheBias) {
  auto x = tensor_of(DType::kFloat32, std::vector<double>(10, 3), {1}),
       scale = tensor_of(DType::kFloat32, {5}, {0}), bias = tensor_of(DType::kFloat32, {0.5}, {0}),
       y = tensor_of(DType::kFloat32, std::vector<double>(10), {1});
  ASSERT_TRUE(run_operator("LayerNormalization", {10}, {&x, &scale, &bias, &y}, {1e-5}));
  for (const double value : values_of(y)) EXPECT_EQ(value, 0.5);
}

TEST(NnRows, LayerNormalizationStatisticsAreTheMeanAndTheInverseOfTheDeviation) {
  for (const DType type : kFloats) {
    for (const int threads : {1, 3}) {
      const int64_t rows = 300, size = 515;
      auto x = tensor_of(type, random_values(type, rows * size, -1, 3, 8), {size, 1}),
           scale = tensor_of(type, {2}, {0, 0}), bias = tensor_of(type, {0.5}, {0, 0}),
           y = tensor_of(type, std::vector<double>(rows * size), {size, 1}), expected = y;
      auto mean = tensor_of(DType::kFloat32, std::vector<double>(rows), {1, 0}), inverse = mean;
      const std::vector<double> epsilon = {0.25};
      ASSERT_TRUE(run_operator("LayerNormalization", {rows, size}, {&x, &scale, &bias, &expected},
                               epsilon));
      ASSERT_TRUE(run_operator("LayerNormalizationStatistics", {rows, size},
                               {&x, &scale, &bias, &y, &mean, &inverse}, epsilon, threads));
      EXPECT_EQ(y.bytes, expected.bytes);
      const auto values = values_of(x), means = values_of(mean), inverses = values_of(inverse);
      for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
        const auto from = values.begin() + static_cast<ptrdiff_t>(i) * size;
        const std::vector<double> row(from, from + size);
        ASSERT_NEAR(means[i], static_cast<double>(mean_of(row)), 2e-7);
        ASSERT_NEAR(inverses[i], static_cast<double>(1 / deviation_of(row, epsilon[0])), 2e-7);
      }
    }
  }
}

TEST(NnRows, MeansAreClosestToExact) {
  for (const DType type :
       {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32}) {
    for (const int64_t size : {1, 2, 7, 8, 15, 512, 515, 1030}) {
      for (const bool is_last : {true, false}) {
        const int64_t rows = 37;
        const auto n = static_cast<size_t>(size);
        const double bound = type == DType::kInt32 ? 2e9 : 1000;
        const auto x = random_values(type, rows * size, -bound, bound / 2, 3);
        std::vector<std::byte> bytes;
        for (const int threads : {1, 3}) {
          auto in = tensor_of(
                   type, x,
                   is_last ? std::vector{size, int64_t{1}} : std::vector{int64_t{1}, rows}),
               y = tensor_of(type, std::vector<double>(static_cast<size_t>(rows), 9), {1, 0});
          ASSERT_TRUE(run_operator("ReduceMean", {rows, size}, {&in, &y}, {}, threads));
          if (threads > 1) {
            ASSERT_EQ(bytes, y.bytes);
          }
          bytes = y.bytes;
          const auto found = values_of(y);
          for (size_t i = 0; i < found.size(); ++i) {
            Exact sum = 0;
            for (size_t j = 0; j < n; ++j)
              sum += x[is_last ? i * n + j : j * static_cast<size_t>(rows) + i];
            const Exact mean = sum / static_cast<Exact>(size);
            if (type == DType::kInt32) {
              ASSERT_EQ(found[i], std::trunc(static_cast<double>(mean)));
            } else {
              ASSERT_LE(ulps(type, found[i], mean), limit_of(type, 0.51));
            }
          }
        }
      }
    }
  }
}

TEST(NnRows, MeanOfNothingIsNaN) {
  auto x = tensor_of(DType::kFloat32, {}, {0, 1}),
       y = tensor_of(DType::kFloat32, {1, 2, 3}, {1, 0});
  ASSERT_TRUE(run_operator("ReduceMean", {3, 0}, {&x, &y}));
  for (const double value : values_of(y)) EXPECT_TRUE(std::isnan(value));
  auto integers = tensor_of(DType::kInt32, {}, {0, 1}),
       z = tensor_of(DType::kInt32, {1, 2, 3}, {1, 0});
  ASSERT_TRUE(run_operator("ReduceMean", {3, 0}, {&integers, &z}));
  EXPECT_EQ(values_of(z), (std::vector<double>{0, 0, 0}));
}

TEST(NnRows, RefusesOtherTypes) {
  auto x = tensor_of(DType::kFloat32, {1}, {1}), i = tensor_of(DType::kInt32, {1}, {1});
  for (const char* const name : {"Softmax", "LogSoftmax", "ReduceMean"})
    EXPECT_FALSE(run_operator(name, {1}, {&x, &i}));
  EXPECT_FALSE(run_operator("Softmax", {1}, {&i, &i}));
  EXPECT_FALSE(run_operator("LayerNormalization", {1}, {&x, &x, &i, &x}, {0}));
}

}  // namespace
}  // namespace wgemm::nn
