// Comparisons, extrema and remainders of src/nn/, compared with scalar code.
#include "nn_vectors.h"

namespace wgemm::nn {
namespace {

template <typename T>
class NnComparisons : public testing::Test {};
using Types = testing::Types<float, double, int8_t, uint8_t, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(NnComparisons, Types);

TYPED_TEST(NnComparisons, EachSetOfRelations) {
  using T = TypeParam;
  for (const size_t count : {1U, 5U, 256U, 1031U, 9001U}) {
    const auto a = values<T>(count, 1), b = values<T>(count, 2);
    for (int relations = 0; relations < 16; ++relations) {
      std::vector<uint8_t> expected;
      for (size_t i = 0; i < count; ++i) {
        const bool less = a[i] < b[i], equal = a[i] == b[i], greater = a[i] > b[i];
        const bool unordered = !less && !equal && !greater;
        expected.push_back((less && (relations & 1) != 0) || (equal && (relations & 2) != 0) ||
                           (greater && (relations & 4) != 0) ||
                           (unordered && (relations & 8) != 0));
      }
      for (const int threads : {1, 3}) {
        auto x = TestTensor::of(type_of<T>(), a, {1}), z = TestTensor::of(type_of<T>(), b, {1}),
             y = TestTensor::of(DType::kUInt8, std::vector<uint8_t>(count, 7), {1});
        ASSERT_TRUE(run_operator("Compare", {static_cast<int64_t>(count)}, {&x, &z, &y},
                                 {static_cast<double>(relations)}, threads));
        expect_same(y.template elements<uint8_t>(), expected, "Compare");
      }
    }
  }
}

TYPED_TEST(NnComparisons, StridesAndBroadcasts) {
  using T = TypeParam;
  const auto a = values<T>(903, 3), b = values<T>(301, 4);
  std::vector<uint8_t> expected(903);
  std::vector<T> most(903);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 301; ++j) {
      const T x = a[j * 3 + i], z = b[j];  // a is transposed
      expected[i * 301 + j] = x < z || x == z;
      most[i * 301 + j] = x != x ? x : z != z ? z : x < z ? z : x;
    }
  }
  auto x = TestTensor::of(type_of<T>(), a, {1, 3}), z = TestTensor::of(type_of<T>(), b, {0, 1}),
       y = TestTensor::of(DType::kUInt8, std::vector<uint8_t>(903), {301, 1}),
       w = TestTensor::of(type_of<T>(), std::vector<T>(903), {301, 1});
  ASSERT_TRUE(run_operator("Compare", {3, 301}, {&x, &z, &y}, {3}));
  expect_same(y.template elements<uint8_t>(), expected, "Compare");
  ASSERT_TRUE(run_operator("Max", {3, 301}, {&x, &z, &w}));
  for (size_t i = 0; i < most.size(); ++i)
    ASSERT_TRUE(w.template elements<T>()[i] == most[i] || most[i] != most[i]) << i;
}

TYPED_TEST(NnComparisons, Extrema) {
  using T = TypeParam;
  for (const size_t count : {1U, 7U, 16U, 515U}) {
    const auto a = values<T>(count, 5), b = values<T>(count, 6);
    std::vector<T> least, most;
    for (size_t i = 0; i < count; ++i) {
      const T x = a[i], z = b[i];
      // Of equal zeros, the first one.
      const bool has_nan = x != x || z != z;
      const T nan = x != x ? x : z;
      least.push_back(has_nan ? nan : z < x ? z : x);
      most.push_back(has_nan ? nan : x < z ? z : x);
    }
    expect_same(apply<T>("Min", {a, b}), least, "Min");
    expect_same(apply<T>("Max", {a, b}), most, "Max");
  }
}

TYPED_TEST(NnComparisons, Remainders) {
  using T = TypeParam;
  const auto a = values<T>(1031, 7), b = values<T>(1031, 8);
  for (const bool has_sign_of_a : {false, true}) {
    std::vector<T> expected;
    for (size_t i = 0; i < a.size(); ++i) {
      const T x = a[i], z = b[i];
      if constexpr (std::is_floating_point_v<T>) {
        const T rest = std::fmod(x, z);
        const bool differs = rest != 0 && (rest < 0) != (z < 0);
        expected.push_back(differs && !has_sign_of_a ? rest + z : rest);
      } else {
        // The least integer has no quotient by -1, of the same type.
        const bool is_0 = z == 0 || (std::is_signed_v<T> && z == static_cast<T>(-1));
        auto rest = is_0 ? T{0} : static_cast<T>(x % z);
        if (!has_sign_of_a && rest != 0 &&
            std::signbit(static_cast<double>(x)) != std::signbit(static_cast<double>(z)))
          rest = static_cast<T>(rest + z);
        expected.push_back(rest);
      }
    }
    expect_same(apply<T>("Mod", {a, b}, {has_sign_of_a ? 1.0 : 0.0}), expected, "Mod");
  }
}

TEST(NnComparison, RemaindersOfFloatsAreExact) {
  std::vector<double> a, b, expected;
  for (int i = -1074; i < 1024; i += 7)
    for (int j = -1074; j < 1024; j += 61)
      for (const double factor : {1.0, 1.5, -1.7}) {
        a.push_back(std::ldexp(factor, i));
        b.push_back(std::ldexp(1.3, j));
        expected.push_back(std::fmod(a.back(), b.back()));
      }
  expect_same(apply<double>("Mod", {a, b}, {1}), expected, "Mod");
}

TEST(NnComparison, RefusesOtherTypes) {
  auto f = TestTensor::of(DType::kFloat32, std::vector<float>(4), {1}),
       d = TestTensor::of(DType::kFloat64, std::vector<double>(4), {1}),
       b = TestTensor::of(DType::kUInt8, std::vector<uint8_t>(4), {1});
  EXPECT_TRUE(run_operator("Compare", {4}, {&f, &f, &b}, {1}));
  EXPECT_FALSE(run_operator("Compare", {4}, {&f, &d, &b}, {1}));
  EXPECT_FALSE(run_operator("Compare", {4}, {&f, &f, &f}, {1}));
  EXPECT_FALSE(run_operator("Min", {4}, {&f, &d, &f}));
  EXPECT_FALSE(run_operator("Mod", {4}, {&f, &f, &d}, {1}));
}

}  // namespace
}  // namespace wgemm::nn
