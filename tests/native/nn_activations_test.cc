// Functions of one number of src/nn/: their errors, edges and types.
#include "base/convert.h"
#include "nn_vectors.h"

namespace wgemm::nn {
namespace {

constexpr const char* kFunctions[] = {
    "Abs", "Floor",       "Ceil",      "Round",           "Sign",     "Exp",
    "Log", "Sin",         "Cos",       "Softplus",        "Mish",     "Softsign",
    "Elu", "HardSigmoid", "HardSwish", "ThresholdedRelu", "QuickGelu"};
// As many attributes as any of them has.
const std::vector<double> kAttributes = {0.25, 0.5};

template <typename T>
T sign_of(T x) {
  return x > 0 ? T{1} : x < 0 ? T{-1} : x != x ? x : T{0};
}

// The definitions.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double mish(double x) { return x * std::tanh(softplus(x)); }
double elu(double x) { return x < 0 ? 0.25 * std::expm1(x) : x; }
double hard_sigmoid(double x) { return std::min(std::max(0.25 * x + 0.5, 0.0), 1.0); }

template <typename T>
void test_exact() {
  const auto x = values<T>(1031, 3);
  std::vector<T> magnitudes, floors, ceils, nearest, signs, above;
  for (const T v : x) {
    magnitudes.push_back(std::abs(v));
    floors.push_back(std::floor(v));
    ceils.push_back(std::ceil(v));
    nearest.push_back(std::nearbyint(v));
    signs.push_back(sign_of(v));
    above.push_back(v > T{0.25} ? v : T{0});
  }
  for (const int threads : {1, 3}) {
    expect_same(apply<T>("Abs", {x}, {}, threads), magnitudes, "Abs");
    expect_same(apply<T>("Floor", {x}, {}, threads), floors, "Floor");
    expect_same(apply<T>("Ceil", {x}, {}, threads), ceils, "Ceil");
    expect_same(apply<T>("Round", {x}, {}, threads), nearest, "Round");
    expect_same(apply<T>("Sign", {x}, {}, threads), signs, "Sign");
    expect_same(apply<T>("ThresholdedRelu", {x}, {0.25}, threads), above, "ThresholdedRelu");
  }
  expect_same(apply<T>("Round", {{0.5, 1.5, 2.5, -0.5, -1.5, -0.0}}), {0, 2, 2, -0.0, -2, -0.0},
              "Round");
}
TEST(NnActivations, ExactOfFloat32) { test_exact<float>(); }
TEST(NnActivations, ExactOfFloat64) { test_exact<double>(); }

template <typename T>
class NnSignedIntegers : public testing::Test {};
using SignedTypes = testing::Types<int8_t, int32_t, int64_t>;
TYPED_TEST_SUITE(NnSignedIntegers, SignedTypes);

TYPED_TEST(NnSignedIntegers, AbsAndPReluWrap) {
  using T = TypeParam;
  const auto x = values<T>(515, 4), slope = values<T>(515, 5);
  using Unsigned = std::make_unsigned_t<T>;
  std::vector<T> magnitudes, products;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto v = static_cast<Unsigned>(x[i]);
    magnitudes.push_back(x[i] < 0 ? static_cast<T>(Unsigned{0} - v) : x[i]);
    const auto product = static_cast<uint64_t>(x[i]) * static_cast<uint64_t>(slope[i]);
    products.push_back(x[i] < 0 ? static_cast<T>(product) : x[i]);
  }
  expect_same(apply<T>("Abs", {x}), magnitudes, "Abs");
  expect_same(apply<T>("PRelu", {x, slope}), products, "PRelu");
}

TEST(NnActivations, PReluOfRowsAndColumns) {
  const auto x = values<float>(301 * 5, 6), slopes = values<float>(301, 7);
  for (const bool is_row : {true, false}) {
    auto a = TestTensor::of(DType::kFloat32, x, {301, 1}),
         b = TestTensor::of(DType::kFloat32, slopes,
                            is_row ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1, 0}),
         y = TestTensor::of(DType::kFloat32, std::vector<float>(x.size()), {301, 1});
    ASSERT_TRUE(run_operator("PRelu", {5, 301}, {&a, &b, &y}, {}, 3));
    std::vector<float> expected;
    for (size_t i = 0; i < x.size(); ++i)
      expected.push_back(x[i] < 0 ? slopes[is_row ? i % 301 : i / 301] * x[i] : x[i]);
    expect_same(y.elements<float>(), expected, "PRelu");
  }
}

// Its alpha is the default.
const auto kAlpha = static_cast<double>(1.702F);
double error_in_x(const char* name, double (*exact)(double)) {
  return largest_error(name, apply<float>(name, {sweep()}, {kAlpha}), exact,
                       [](double x, double) { return std::max(std::abs(x) * 0x1p-23, 0x1p-149); });
}
double error_in_ulp(const char* name, double (*exact)(double)) {
  return in_ulp(name, apply<float>(name, {sweep()}, kAttributes), exact);
}

TEST(NnActivations, ErrorsOfFloat32) {
  EXPECT_LT(error_in_ulp("Exp", std::exp), 1);
  EXPECT_LT(error_in_ulp("Log", std::log), 2);
  EXPECT_LT(error_in_ulp("Softplus", softplus), 2.7);
  EXPECT_LT(error_in_ulp("Softsign", [](double x) { return x / (1 + std::abs(x)); }), 1.5);
  EXPECT_LT(error_in_ulp("Elu", elu), 3);
  EXPECT_LT(error_in_x("Mish", mish), 1.2);
  EXPECT_LT(error_in_x("QuickGelu", [](double x) { return x / (1 + std::exp(-kAlpha * x)); }), 1.3);
  EXPECT_LT(largest_error("HardSigmoid", apply<float>("HardSigmoid", {sweep()}, kAttributes),
                          hard_sigmoid, [](double, double) { return 0x1p-24; }),
            1.01);
}

// Up to 2^28, and close to multiples of pi / 2.
TEST(NnActivations, SinAndCosOfFloat32) {
  std::vector<float> x = {0.0F, -0.0F, kInf, -kInf, kNan};
  for (uint32_t bits = 0; bits <= 0x4d800000; bits += 1021)
    x.push_back(std::bit_cast<float>(bits | (bits % 2) << 31));
  for (uint32_t i = 1; i < 171'000'000; i += 171)
    x.push_back(static_cast<float>(i * std::acos(0.0)));
  const auto test = [&](const char* name, long double (*exact)(long double)) {
    const auto y = apply<float>(name, {x}, {}, 3);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const auto expected = static_cast<double>(exact(static_cast<long double>(x[i])));
      if (is_same_element(y[i], static_cast<float>(expected))) continue;
      const double error = std::abs(static_cast<double>(y[i]) - expected) / ulp(expected);
      ASSERT_LT(error, 0.6) << name << x[i];
      worst = std::max(worst, error);
    }
    std::printf("%-8s float32: %.3f\n", name, worst);
  };
  test("Sin", [](long double v) { return std::sin(v); });
  test("Cos", [](long double v) { return std::cos(v); });
  for (const char* name : {"Sin", "Cos"})
    for (const float y : apply<float>(name, {{0x1p29F, 0x1p60F, -3e38F}}))
      EXPECT_LE(std::abs(y), 1) << name;
}

TEST(NnActivations, ErrorsOfFloat64) {
  std::vector<double> x;
  for (int exponent = -1074; exponent < 28; ++exponent)
    for (int i = 0; i < (exponent < -40 ? 2 : 100); ++i)
      for (const double sign : {-1.0, 1.0})
        x.push_back(sign * std::ldexp(1 + static_cast<double>(i * 7919 % 1000) / 1000.3, exponent));
  using Exact = long double (*)(long double);
  const auto test = [&](const char* name, Exact exact, long double absolute) {
    const auto y = apply<double>(name, {x}, kAttributes);
    long double worst = 0, most = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const long double expected = exact(x[i]);
      if (std::isnan(expected) || std::isinf(static_cast<double>(expected))) {
        EXPECT_TRUE(is_same_element(y[i], static_cast<double>(expected))) << name << x[i];
        continue;
      }
      const long double error = std::abs(y[i] - expected);
      worst = std::max(worst, error / std::max(std::abs(expected), 0x1p-1022L / 0x1p-46L));
      most = std::max(most, error);
    }
    std::printf("%-8s float64: 2^%.2f, absolute 2^%.2f\n", name,
                static_cast<double>(std::log2(worst)), static_cast<double>(std::log2(most)));
    if (absolute > 0) {
      EXPECT_LE(most, absolute) << name;
    } else {
      EXPECT_LE(worst, 0x1p-46L) << name;
    }
  };
  const auto plus = [](long double v) {
    return std::max(v, 0.0L) + std::log1p(std::exp(-std::abs(v)));
  };
  test("Exp", [](long double v) { return std::exp(v); }, 0);
  test("Log", [](long double v) { return std::log(v); }, 0);
  test("Softplus", plus, 0);
  test("Sin", [](long double v) { return std::sin(v); }, 0x1p-50L);
  test("Cos", [](long double v) { return std::cos(v); }, 0x1p-50L);
  test("Elu", [](long double v) { return v < 0 ? 0.25L * std::expm1(v) : v; }, 0);
  test(
      "Mish",
      [](long double v) {
        return v * std::tanh(std::max(v, 0.0L) + std::log1p(std::exp(-std::abs(v))));
      },
      0);
  test("QuickGelu", [](long double v) { return v / (1 + std::exp(-0.25L * v)); }, 0);
}

template <typename T>
void test_edges() {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> edges = {T(-0.0), T(0.0), inf, -inf, nan};
  const auto expect = [&](const char* name, const std::vector<T>& expected) {
    expect_same(apply<T>(name, {edges}, kAttributes), expected, name);
  };
  expect("Exp", {1, 1, inf, 0, nan});
  expect("Log", {-inf, -inf, inf, nan, nan});
  expect("Sin", {T(-0.0), 0, nan, nan, nan});
  expect("Cos", {1, 1, nan, nan, nan});
  expect("Sign", {0, 0, 1, -1, nan});
  expect("Elu", {T(-0.0), 0, inf, T(-0.25), nan});
  expect("HardSigmoid", {0.5, 0.5, 1, 0, nan});
  expect("HardSwish", {T(-0.0), 0, inf, nan, nan});
  expect("ThresholdedRelu", {0, 0, inf, 0, 0});
  expect("Softsign", {T(-0.0), 0, nan, nan, nan});
  expect("Mish", {T(-0.0), 0, inf, nan, nan});
  expect("QuickGelu", {T(-0.0), 0, inf, nan, nan});
  const auto plus = apply<T>("Softplus", {edges});
  EXPECT_EQ(plus[2], inf);
  EXPECT_EQ(plus[3], 0);
  EXPECT_NE(plus[4], plus[4]);
  expect_same(apply<T>("PRelu", {edges, {2, 2, 2, 2, 2}}), {T(-0.0), 0, inf, -inf, nan}, "PRelu");
}
TEST(NnActivations, EdgesOfFloat32) { test_edges<float>(); }
TEST(NnActivations, EdgesOfFloat64) { test_edges<double>(); }

TEST(NnActivations, ThreadsAndBufferedElementsHaveTheSameBits) {
  std::vector<float> x(sweep().begin(), sweep().begin() + 100'003), spread(x.size() * 2);
  for (size_t i = 0; i < x.size(); ++i) spread[2 * i] = x[i];
  for (const char* name : kFunctions) {
    const auto expected = apply<float>(name, {x}, kAttributes);
    expect_same(apply<float>(name, {x}, kAttributes, 3), expected, name);
    auto a = TestTensor::of(DType::kFloat32, spread, {2}),
         y = TestTensor::of(DType::kFloat32, std::vector<float>(x.size()), {1});
    ASSERT_TRUE(run_operator(name, {static_cast<int64_t>(x.size())}, {&a, &y}, kAttributes));
    expect_same(y.elements<float>(), expected, name);
  }
}

// 16-bit types have the results of float32, rounded once.
template <typename Half>
void test_half() {
  std::vector<Half> a(65536);
  std::vector<float> x;
  for (size_t i = 0; i < a.size(); ++i) {
    a[i].bits = static_cast<uint16_t>(i);
    x.push_back(widen(a[i]));
  }
  for (const char* name : kFunctions) {
    const auto got = apply<Half>(name, {a}, kAttributes);
    const auto of = apply<float>(name, {x}, kAttributes);
    for (size_t i = 0; i < of.size(); ++i)
      ASSERT_TRUE(is_same_element(widen(got[i]), widen(narrow_to(of[i], Half{})))) << name << i;
  }
}
TEST(NnActivations, Float16) { test_half<Float16>(); }
TEST(NnActivations, BFloat16) { test_half<BFloat16>(); }

// y = x scale + bias, in float64. The scale and the bias of a 16-bit x are float32.
TEST(NnActivations, Affine) {
  const int64_t rows = 5, cols = 301;
  const auto x = values<float>(static_cast<size_t>(rows * cols), 8);
  const auto scale = values<float>(static_cast<size_t>(cols), 9),
             bias = values<float>(static_cast<size_t>(cols), 10);
  std::vector<Float16> halves;
  for (const float v : x) halves.push_back(narrow_to(v, Float16{}));
  for (const int threads : {1, 3}) {
    auto a = TestTensor::of(DType::kFloat32, x, {cols, 1}),
         h = TestTensor::of(DType::kFloat16, halves, {cols, 1}),
         s = TestTensor::of(DType::kFloat32, scale, {0, 1}),
         b = TestTensor::of(DType::kFloat32, bias, {0, 1}),
         y = TestTensor::of(DType::kFloat32, std::vector<float>(x.size()), {cols, 1}),
         z = TestTensor::of(DType::kFloat16, std::vector<Float16>(x.size()), {cols, 1});
    ASSERT_TRUE(run_operator("Affine", {rows, cols}, {&a, &s, &b, &y}, {0, 1}, threads));
    ASSERT_TRUE(run_operator("Affine", {rows, cols}, {&h, &s, &b, &z}, {0, 1}, threads));
    EXPECT_FALSE(run_operator("Affine", {rows, cols}, {&a, &s, &h, &y}, {0, 1}));
    const auto wide = y.elements<float>();
    const auto narrow = z.elements<Float16>();
    for (size_t i = 0; i < x.size(); ++i) {
      const auto of = [&](float v) {
        return static_cast<float>(static_cast<double>(v) * static_cast<double>(scale[i % 301]) +
                                  static_cast<double>(bias[i % 301]));
      };
      ASSERT_TRUE(is_same_element(wide[i], of(x[i]))) << i;
      ASSERT_TRUE(
          is_same_element(widen(narrow[i]), widen(narrow_to(of(widen(halves[i])), Float16{}))))
          << i;
    }
  }
}

TEST(NnActivations, RefusesOtherTypes) {
  auto i = TestTensor::of(DType::kInt32, std::vector<int32_t>(4), {1}),
       u = TestTensor::of(DType::kUInt32, std::vector<uint32_t>(4), {1});
  for (const char* name : kFunctions) {
    EXPECT_EQ(run_operator(name, {4}, {&i, &i}, kAttributes), std::string_view(name) == "Abs");
    EXPECT_FALSE(run_operator(name, {4}, {&u, &u}, kAttributes)) << name;
  }
  EXPECT_FALSE(run_operator("PRelu", {4}, {&u, &u, &u}));
}

}  // namespace
}  // namespace wgemm::nn
