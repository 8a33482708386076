// The elementwise operators of src/nn/, compared with scalar code.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>

#include "base/convert.h"
#include "nn/functions.h"
#include "nn_vectors.h"

namespace wgemm::nn {
namespace {

// The specification: integers wrap, and the quotient by 0 is 0.
template <typename T>
T reference(std::string_view name, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return name == "Add" ? a + b : name == "Sub" ? a - b : name == "Mul" ? a * b : a / b;
  } else {
    const auto p = static_cast<uint64_t>(a), q = static_cast<uint64_t>(b);
    if (name != "Div") return static_cast<T>(name == "Add" ? p + q : name == "Sub" ? p - q : p * q);
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - p);
    return static_cast<T>(a / b);
  }
}

template <typename T>
class NnArithmetic : public testing::Test {};
using ArithmeticTypes =
    testing::Types<float, double, int8_t, uint8_t, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(NnArithmetic, ArithmeticTypes);

constexpr const char* kArithmetic[] = {"Add", "Sub", "Mul", "Div"};

TYPED_TEST(NnArithmetic, ContiguousVectorsOfEachLength) {
  for (const size_t count : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 255U, 256U, 257U, 1031U, 40001U}) {
    const auto a = values<TypeParam>(count, 1), b = values<TypeParam>(count, 2);
    for (const char* name : kArithmetic) {
      std::vector<TypeParam> expected(count);
      for (size_t i = 0; i < count; ++i) expected[i] = reference(name, a[i], b[i]);
      for (const int threads : {1, 3})
        expect_same(apply<TypeParam>(name, {a, b}, {}, threads), expected, name);
    }
  }
}

TYPED_TEST(NnArithmetic, StridesAndBroadcasts) {
  using T = TypeParam;
  const int64_t dims[] = {3, 5, 301};
  struct {
    std::vector<int64_t> a, b, y;
  } const cases[] = {
      {{1505, 301, 1}, {0, 0, 1}, {1505, 301, 1}},    // a bias
      {{1505, 301, 1}, {0, 0, 0}, {1505, 301, 1}},    // one element
      {{0, 301, 1}, {5, 1, 0}, {1505, 301, 1}},       // columns
      {{1, 3, 15}, {1505, 301, 1}, {1505, 301, 1}},   // a transpose
      {{3010, 602, 2}, {903, 0, 3}, {1505, 301, 1}},  // slices with steps
      {{1505, 301, 1}, {1505, 301, 1}, {1, 3, 15}},   // into a transpose
      {{1505, 301, 1}, {0, 0, 1}, {3010, 602, 2}},    // into every second element
  };
  const auto x = values<T>(9030, 3), z = values<T>(9030, 4);
  for (const auto& c : cases) {
    for (const char* name : kArithmetic) {
      std::vector<T> expected(9030);
      const auto at = [](const std::vector<int64_t>& s, int64_t i, int64_t j, int64_t k) {
        return static_cast<size_t>(i * s[0] + j * s[1] + k * s[2]);
      };
      for (int64_t i = 0; i < dims[0]; ++i)
        for (int64_t j = 0; j < dims[1]; ++j)
          for (int64_t k = 0; k < dims[2]; ++k)
            expected[at(c.y, i, j, k)] = reference(name, x[at(c.a, i, j, k)], z[at(c.b, i, j, k)]);
      for (const int threads : {1, 3}) {
        auto a = TestTensor::of(type_of<T>(), x, c.a), b = TestTensor::of(type_of<T>(), z, c.b),
             y = TestTensor::of(type_of<T>(), std::vector<T>(9030), c.y);
        ASSERT_TRUE(run_operator(name, {3, 5, 301}, {&a, &b, &y}, {}, threads));
        expect_same(y.template elements<T>(), expected, name);
      }
    }
  }
}

TYPED_TEST(NnArithmetic, ClipReluAndPowers) {
  using T = TypeParam;
  const auto x = values<T>(517, 5);
  const double unbounded = HUGE_VAL;
  for (const auto& [least, most] :
       {std::pair<double, double>{-3, 5}, {0, 6}, {2, 1}, {-unbounded, 4}, {1, unbounded}}) {
    if (std::is_unsigned_v<T> && least < 0 && least != -unbounded) continue;
    std::vector<T> expected;
    for (const T v : x) {
      // Every bound of this test is exact in T, or infinite.
      const auto w = static_cast<long double>(v);
      expected.push_back(w != w         ? v
                         : least > most ? static_cast<T>(most)
                         : w < least    ? static_cast<T>(least)
                         : w > most     ? static_cast<T>(most)
                                        : v);
    }
    expect_same(apply<T>("Clip", {x}, {least, most}), expected, "Clip");
  }
  std::vector<T> positive, squares, cubes;
  for (const T v : x) {
    positive.push_back(v < T{0} ? T{0} : v);
    squares.push_back(reference("Mul", v, v));
    cubes.push_back(reference("Mul", squares.back(), v));
  }
  expect_same(apply<T>("Relu", {x}), positive, "Relu");
  expect_same(apply<T>("Square", {x}), squares, "Square");
  expect_same(apply<T>("Cube", {x}), cubes, "Cube");
}

TEST(NnElementwise, DivisionOfIntegersByZeroAndMinusOne) {
  const int32_t least = std::numeric_limits<int32_t>::min();
  expect_same(apply<int32_t>("Div", {{7, -7, least, least, 5}, {0, 2, -1, 0, -1}}),
              {0, -3, least, 0, -5}, "int32");
  expect_same(apply<uint32_t>("Div", {{~0U, ~0U, 7}, {~0U, 2, 0}}), {1, ~0U / 2, 0}, "uint32");
  expect_same(apply<int8_t>("Div", {{-128, 127, 5}, {-1, -1, 0}}), {-128, -127, 0}, "int8");
}

TEST(NnElementwise, NegChangesTheSignAndWraps) {
  expect_same(apply<float>("Neg", {{0.0F, -0.0F, 1, -kInf, 2.5F}}), {-0.0F, 0.0F, -1, kInf, -2.5F},
              "float32");
  expect_same(apply<double>("Neg", {{0.0, 3}}), {-0.0, -3}, "float64");
  expect_same(apply<int8_t>("Neg", {{-128, 127, 0}}), {-128, -127, 0}, "int8");
  const int64_t least = std::numeric_limits<int64_t>::min();
  expect_same(apply<int64_t>("Neg", {{least, least + 1, 7}}), {least, -(least + 1), -7}, "int64");
}

TEST(NnElementwise, ZerosKeepTheirSigns) {
  expect_same(apply<float>("Clip", {{-0.0F, 0.0F, -1, 1, kNan}}, {-0.0, 0.0}),
              {-0.0F, 0.0F, -0.0F, 0.0F, kNan}, "Clip");
  expect_same(apply<float>("Clip", {{-0.0F, 0.0F, -1, 1, kNan}}, {0.0, -0.0}),
              {-0.0F, 0.0F, 0.0F, -0.0F, kNan}, "Clip");
  expect_same(apply<float>("Clip", {{-0.0F, 0.0F, -1, 1}}, {0.0, 1.0}), {-0.0F, 0, 0, 1}, "Clip");
  expect_same(apply<float>("Relu", {{-0.0F, 0.0F, -1, 1, kNan, -kInf, kInf}}),
              {-0.0F, 0.0F, 0.0F, 1, kNan, 0.0F, kInf}, "Relu");
  expect_same(apply<double>("Relu", {{-0.0, 0.0, -1, 1, kNan}}), {-0.0, 0.0, 0.0, 1, kNan}, "Relu");
}

TEST(NnElementwise, LeakyReluAndSqrt) {
  const auto x = values<float>(515, 6);
  const auto alpha = static_cast<double>(0.01F);
  std::vector<float> leaky, roots;
  for (const float v : x) {
    leaky.push_back(v < 0 ? static_cast<float>(alpha * static_cast<double>(v)) : v);
    roots.push_back(std::sqrt(v));
  }
  expect_same(apply<float>("LeakyRelu", {x}, {alpha}), leaky, "LeakyRelu");
  expect_same(apply<float>("Sqrt", {x}), roots, "Sqrt");
  expect_same(apply<double>("LeakyRelu", {{-2, 3, -0.0, kNan}}, {0.25}), {-0.5, 3, -0.0, kNan},
              "LeakyRelu");
  expect_same(apply<double>("Sqrt", {{2, 0.0, -0.0, -1}}), {std::sqrt(2.0), 0.0, -0.0, kNan},
              "Sqrt");
}

// 16-bit types have the results of float32, rounded once.
template <typename Half>
void test_half() {
  std::vector<Half> a(65536), b(65536);
  std::vector<float> x, z;
  for (size_t i = 0; i < a.size(); ++i) {
    a[i].bits = static_cast<uint16_t>(i);
    b[i].bits = static_cast<uint16_t>(i * 40503 + 77);
    x.push_back(widen(a[i]));
    z.push_back(widen(b[i]));
  }
  const auto expect = [](const std::vector<Half>& got, const std::vector<float>& of,
                         const char* name) {
    for (size_t i = 0; i < of.size(); ++i)
      ASSERT_TRUE(is_same_element(widen(got[i]), widen(narrow_to(of[i], Half{})))) << name << i;
  };
  for (const char* name : kArithmetic)
    expect(apply<Half>(name, {a, b}), apply<float>(name, {x, z}), name);
  for (const char* name :
       {"Neg", "Relu", "Sqrt", "Square", "Cube", "Tanh", "Sigmoid", "Erf", "Gelu", "FastGelu"})
    expect(apply<Half>(name, {a}), apply<float>(name, {x}), name);
  expect(apply<Half>("Clip", {a}, {-1, 2}), apply<float>("Clip", {x}, {-1, 2}), "Clip");
}
TEST(NnElementwise, Float16) { test_half<Float16>(); }
TEST(NnElementwise, BFloat16) { test_half<BFloat16>(); }

TEST(NnElementwise, RefusesOtherTypes) {
  auto f = TestTensor::of(DType::kFloat32, std::vector<float>(4), {1}),
       d = TestTensor::of(DType::kFloat64, std::vector<double>(4), {1}),
       i = TestTensor::of(DType::kInt32, std::vector<int32_t>(4), {1}),
       j = TestTensor::of(DType::kInt64, std::vector<int64_t>(4), {1});
  EXPECT_FALSE(run_operator("Add", {4}, {&f, &d, &d}));
  EXPECT_FALSE(run_operator("Add", {4}, {&f, &f, &i}));
  EXPECT_FALSE(run_operator("Clip", {4}, {&f, &d}, {0, 1}));
  for (const char* name : {"Sqrt", "LeakyRelu", "Sigmoid", "Tanh", "Erf", "Gelu", "FastGelu"}) {
    EXPECT_FALSE(run_operator(name, {4}, {&i, &i}, {1})) << name;
    EXPECT_FALSE(run_operator(name, {4}, {&j, &j}, {1})) << name;
  }
}

TEST(NnElementwise, AddsInPlace) {
  for (const int threads : {1, 3}) {
    auto x = TestTensor::of(DType::kFloat32, values<float>(50003, 7), {1});
    const auto before = x.elements<float>();
    ASSERT_TRUE(run_operator("Add", {50003}, {&x, &x, &x}, {}, threads));
    std::vector<float> expected;
    for (const float v : before) expected.push_back(v + v);
    expect_same(x.elements<float>(), expected, "Add");
  }
}

// The functions.

// 2^-23 times x, the bound of the guide.
double of_x(double x) { return std::max(std::abs(x) * 0x1p-23, 0x1p-149); }

double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double exact_gelu(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double exact_fast_gelu(double x) {
  return x * exact_sigmoid(std::sqrt(8 / std::acos(-1.0)) * (x + 0.044715 * x * x * x));
}

double in_x(const char* name, const std::vector<float>& y, double (*exact)(double)) {
  return largest_error(name, y, exact, [](double x, double) { return of_x(x); });
}

TEST(NnFunctions, Exp) {
  std::vector<float> y(sweep().size() + 3);
  auto x = sweep();
  x.resize(y.size());
  for (size_t i = 0; i + 4 <= x.size(); i += 4)
    wasm_v128_store(&y[i], exp_f32x4(wasm_v128_load(&x[i])));
  EXPECT_LT(in_ulp("Exp", y, std::exp), 1);
  const float edges[] = {88.7228317F, 88.7228394F, -103.97F, -103.98F};
  float at_edges[4];
  wasm_v128_store(at_edges, exp_f32x4(wasm_v128_load(edges)));
  EXPECT_LT(at_edges[0], kInf);
  EXPECT_EQ(at_edges[1], kInf);
  EXPECT_EQ(at_edges[2], 0x1p-149F);
  EXPECT_EQ(at_edges[3], 0);
}

TEST(NnFunctions, ErrorsOfFloat32) {
  EXPECT_LT(in_ulp("Sigmoid", apply<float>("Sigmoid", {sweep()}), exact_sigmoid), 2.5);
  EXPECT_LT(in_ulp("Tanh", apply<float>("Tanh", {sweep()}), std::tanh), 2.6);
  EXPECT_LT(in_ulp("Erf", apply<float>("Erf", {sweep()}), std::erf), 0.9);
  EXPECT_LT(in_x("Gelu", apply<float>("Gelu", {sweep()}), exact_gelu), 0.8);
  EXPECT_LT(in_x("FastGelu", apply<float>("FastGelu", {sweep()}), exact_fast_gelu), 0.9);
  for (const char* name : {"Gelu", "FastGelu"}) {
    expect_same(apply<float>(name, {{-0.0F, 0.0F, 100, -100, -1e20F, kInf, -kInf, kNan}}),
                {-0.0F, 0.0F, 100, -0.0F, -0.0F, kInf, kNan, kNan}, name);
  }
  expect_same(apply<float>("Gelu", {{-6}}), {-0.0F}, "Gelu");
}

TEST(NnFunctions, ThreadsAndBufferedElementsHaveTheSameBits) {
  const auto& x = sweep();
  const auto count = static_cast<int64_t>(x.size());
  std::vector<float> spread(x.size() * 2);
  for (size_t i = 0; i < x.size(); ++i) spread[2 * i] = x[i];
  for (const char* name : {"Sigmoid", "Tanh", "Erf", "Gelu", "FastGelu"}) {
    const auto expected = apply<float>(name, {x});
    expect_same(apply<float>(name, {x}, {}, 3), expected, name);
    auto a = TestTensor::of(DType::kFloat32, spread, {2}),
         y = TestTensor::of(DType::kFloat32, std::vector<float>(x.size()), {1});
    ASSERT_TRUE(run_operator(name, {count}, {&a, &y}));
    expect_same(y.elements<float>(), expected, name);
  }
}

// Erf of float32 is the formula that JavaScript computes in float64.
TEST(NnFunctions, ErfIsTheQuotientInFloat64) {
  const auto formula = [](float v) {
    const auto x = static_cast<double>(v), s = x * x;
    const double p =
        1.128379146 +
        s * (0.1907733375 + s * (0.05278863523 + s * (0.003779083429 +
                                                      s * (0.0002847838602 + s * 2.041883583e-6))));
    const double q =
        1 +
        s * (0.5024011922 +
             s * (0.1142529442 + s * (0.01499640025 + s * (0.001165060837 + s * 3.800187557e-5))));
    return static_cast<float>(x > 3.93 ? 1 : x < -3.93 ? -1 : (x * p) / q);
  };
  std::vector<float> expected;
  for (const float x : sweep()) expected.push_back(formula(x));
  expect_same(apply<float>("Erf", {sweep()}), expected, "Erf");
}

TEST(NnFunctions, ErrorsOfFloat64) {
  std::vector<double> x;
  for (int exponent = -1074; exponent < 11; ++exponent)
    for (int i = 0; i < (exponent < -40 ? 2 : 200); ++i)
      for (const double sign : {-1.0, 1.0})
        x.push_back(sign * std::ldexp(1 + static_cast<double>(i * 7919 % 1000) / 1000.3, exponent));
  using Exact = long double (*)(long double);
  const auto test = [&](const char* name, const std::vector<double>& y, Exact exact, bool is_of_x) {
    long double worst = 0;
    double at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const long double expected = exact(x[i]);
      if (std::isinf(static_cast<double>(expected))) {
        ASSERT_EQ(y[i], static_cast<double>(expected)) << name << x[i];
        continue;
      }
      const long double size = std::abs(is_of_x ? static_cast<long double>(x[i]) : expected);
      // Results below the smallest normal number may be 0.
      const long double error = std::abs(y[i] - expected) / std::max(size, 0x1p-1022L / 0x1p-46L);
      if (!(error <= worst)) worst = error, at = x[i];
    }
    std::printf("%-8s float64: 2^%.2f at %.17g\n", name, static_cast<double>(std::log2(worst)), at);
    testing::Test::RecordProperty(name, std::to_string(static_cast<double>(std::log2(worst))));
    EXPECT_LE(worst, is_of_x ? 0x1p-50L : 0x1p-46L) << name << at;
  };
  std::vector<double> powers;
  for (const double v : x) powers.push_back(exp_f64(v));
  test("Exp", powers, [](long double v) { return std::exp(v); }, false);
  const Exact sigmoid = [](long double v) { return 1 / (1 + std::exp(-v)); };
  test("Sigmoid", apply<double>("Sigmoid", {x}), sigmoid, false);
  test("Tanh", apply<double>("Tanh", {x}), [](long double v) { return std::tanh(v); }, false);
  test("Erf", apply<double>("Erf", {x}), [](long double v) { return std::erf(v); }, false);
  test(
      "Gelu", apply<double>("Gelu", {x}),
      [](long double v) { return 0.5L * v * std::erfc(-v * std::sqrt(0.5L)); }, true);
  test(
      "FastGelu", apply<double>("FastGelu", {x}),
      [](long double v) {
        const long double u = std::sqrt(8 / std::acos(-1.0L)) * (v + 0.044715L * v * v * v);
        return v / (1 + std::exp(-u));
      },
      true);
  const std::vector<double> edges = {-0.0, kInf, -kInf, kNan};
  expect_same(apply<double>("Tanh", {edges}), {-0.0, 1, -1, kNan}, "Tanh");
  expect_same(apply<double>("Erf", {edges}), {-0.0, 1, -1, kNan}, "Erf");
  expect_same(apply<double>("Sigmoid", {edges}), {0.5, 1, 0, kNan}, "Sigmoid");
}

}  // namespace
}  // namespace wgemm::nn
