// QGemm through the whole pipeline, for the four combinations of 8-bit types; and its packed
// weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "array.h"
#include "engine.h"
#include "pack/weights.h"
#include "qgemm_tester.h"
#include "reference.h"

namespace wgemm::testing {
namespace {

constexpr DType kOutputs[] = {DType::kFloat32, DType::kInt8, DType::kUInt8};
constexpr Extent kExtents[] = {Extent::kScalar, Extent::kOne, Extent::kColumns, Extent::kStrided,
                               Extent::kRepeated};

struct Types {
  DType a, b;
};
constexpr Types kTypes[] = {{DType::kUInt8, DType::kUInt8},
                            {DType::kUInt8, DType::kInt8},
                            {DType::kInt8, DType::kUInt8},
                            {DType::kInt8, DType::kInt8}};

class QGemm : public ::testing::TestWithParam<Types> {
 protected:
  const Simulated simulated_{engines()[0]};

  static QGemmTester tester() { return QGemmTester().types(GetParam().a, GetParam().b); }

  // `number` determines all settings except sizes and types, so that each size meets other
  // settings.
  static QGemmTester any(int64_t m, int64_t n, int64_t k, uint32_t number) {
    std::mt19937 random(number);
    const auto one_of = [&](auto& list) { return list[random() % std::size(list)]; };
    const auto one_in = [&](uint32_t count) { return random() % count == 0; };
    constexpr Values kZeroPoints[] = {Values::kRandom, Values::kRandom, Values::kLow, Values::kHigh,
                                      Values::kAbsent};
    constexpr double kAlphas[] = {1, 1, -1, 0.37, -2.5};
    const std::vector<int64_t> shapes[] = {{}, {1}, {n}, {1, 1}, {1, n}, {m, 1}, {m, n}, {m, n}};
    // One statement per draw, since the order of evaluation of arguments is unspecified.
    QGemmTester t = tester().sizes(m, n, k).seed(number);
    const DType output = one_of(kOutputs);
    const Values a_zero = one_of(kZeroPoints), b_zero = one_of(kZeroPoints),
                 y_zero = kZeroPoints[random() % 4];
    const Extent one = kExtents[random() % 2], scale = one_of(kExtents),
                 zero_point = one_of(kExtents);
    const bool trans_a = one_in(4), trans_b = one_in(4);
    t.output(output, y_zero)
        .zero_points(a_zero, b_zero)
        .extents(one, scale, zero_point)
        .trans(trans_a, trans_b);
    t.alpha(one_of(kAlphas)).columns(one_in(4)).gap(one_in(2) ? 0 : 3).packed(one_in(2));
    t.values(Values::kRandom, one_in(2) ? Values::kRandom : Values::k128Values);
    return one_in(2) ? t : t.c(one_of(shapes));
  }
};

TEST_P(QGemm, OperandsLargerThanCaches) {
  tester().sizes(9, 100, 21001).packed().run();
  tester().sizes(100, 9, 21001).trans(true, true).run();
}

TEST_P(QGemm, EverySmallSize) {
  uint32_t number = 0;
  for (int64_t m = 0; m <= 10; ++m) {
    for (int64_t n = 0; n <= 18; ++n) {
      for (const int64_t k : {0, 1, 2, 3, 8, 17}) any(m, n, k, ++number).run();
    }
  }
}

// The kernel changes at 2, 3, 4 and 24 rows. Each one runs with whole and partial tiles and panels.
TEST_P(QGemm, EveryNumberOfRowsWithPackedWeightsAndWithout) {
  uint32_t number = 0;
  for (int64_t m = 1; m <= 30; ++m) {
    for (const int64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 41, 64}) {
      for (const bool packed : {false, true}) any(m, n, 19 + m % 2, ++number).packed(packed).run();
    }
  }
}

TEST_P(QGemm, TransposesAndLayouts) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const bool columns : {false, true}) {
        for (const int64_t gap : {0, 5}) {
          for (const bool packed : {false, true}) {
            const QGemmTester t =
                tester().trans(trans_a, trans_b).columns(columns).gap(gap).packed(packed);
            QGemmTester(t).sizes(37, 45, 53).run();
            QGemmTester(t).sizes(37, 45, 53).output(DType::kInt8).c({37, 45}).run();
            QGemmTester(t).sizes(1, 70, 33).output(DType::kUInt8).run();
            QGemmTester(t).sizes(70, 1, 33).c({70, 1}).run();
            QGemmTester(t).sizes(6, 9, 1).output(DType::kInt8).run();
            QGemmTester(t).sizes(9, 9, 9).output(DType::kUInt8).c({9}).run();
          }
        }
      }
    }
  }
}

TEST_P(QGemm, EveryBroadcastOfCAndAlpha) {
  const int64_t m = 13, n = 21;
  const std::vector<std::vector<int64_t>> shapes = {{}, {1}, {n}, {1, 1}, {1, n}, {m, 1}, {m, n}};
  for (const auto& shape : shapes) {
    for (const double alpha : {1.0, 0.0, -2.0, 0.37, -1e-3}) {
      for (const int64_t k : {0, 9}) {
        for (const DType output : kOutputs) {
          tester().sizes(m, n, k).c(shape).alpha(alpha).output(output).run();
          tester().sizes(m, n, k).c(shape).alpha(alpha).output(output).gap(3).columns().run();
        }
      }
    }
  }
}

TEST_P(QGemm, ScalesAndZeroPointsOfEveryShape) {
  for (const Extent one : {Extent::kScalar, Extent::kOne}) {
    for (const Extent scale : kExtents) {
      for (const Extent zero_point : kExtents) {
        for (const bool packed : {false, true}) {
          const QGemmTester t = tester().extents(one, scale, zero_point).packed(packed);
          QGemmTester(t).sizes(5, 37, 12).run();
          QGemmTester(t).sizes(30, 19, 7).output(DType::kUInt8).trans(false, true).run();
          QGemmTester(t).sizes(3, 1, 5).output(DType::kInt8).run();
          QGemmTester(t).sizes(3, 25, 0).c({3, 25}).output(DType::kInt8).run();
        }
      }
    }
  }
}

// Columns beyond the first block have their own scales and zero points.
TEST_P(QGemm, ScalesAndZeroPointsOfEveryBlockOfColumns) {
  for (const bool packed : {false, true}) {
    const QGemmTester t = tester()
                              .extents(Extent::kOne, Extent::kColumns, Extent::kStrided)
                              .packed(packed)
                              .sizes(26, 77, 20);
    for (const int64_t nc : {1, 8, 24, 40}) {
      QGemmTester(t).options({.nc = nc}).run();
      QGemmTester(t).options({.mc = 5, .nc = nc, .kc = 6}).c({77}).output(DType::kUInt8).run();
    }
  }
  tester().sizes(2, 17001, 3).extents(Extent::kOne, Extent::kColumns, Extent::kColumns).run();
  tester()
      .sizes(2, 17001, 0)
      .extents(Extent::kOne, Extent::kColumns, Extent::kColumns)
      .c({17001})
      .output(DType::kInt8)
      .run();
}

TEST_P(QGemm, NoRowsColumnsOrK) {
  for (const DType output : kOutputs) {
    for (const bool packed : {false, true}) {
      for (const bool c : {false, true}) {
        for (const Extent extent : kExtents) {
          for (const std::vector<int64_t>& size : std::vector<std::vector<int64_t>>{
                   {0, 5, 3}, {5, 0, 3}, {5, 30, 0}, {0, 0, 3}, {0, 0, 0}}) {
            QGemmTester t = tester()
                                .sizes(size[0], size[1], size[2])
                                .extents(Extent::kOne, extent, extent)
                                .packed(packed)
                                .output(output);
            if (c) t.c({size[0], size[1]});
            t.run();
            t.columns().gap(2).alpha(-0.5).run();
          }
        }
      }
    }
  }
}

TEST_P(QGemm, OperandsAndZeroPointsAtTheEnds) {
  constexpr Values kEnds[] = {Values::kLow, Values::kHigh};
  for (const Values a : kEnds) {
    for (const Values b : kEnds) {
      for (const Values a_zero : {Values::kAbsent, Values::kLow, Values::kHigh}) {
        for (const Values b_zero : {Values::kAbsent, Values::kLow, Values::kHigh}) {
          for (const bool packed : {false, true}) {
            const QGemmTester t = tester().values(a, b).zero_points(a_zero, b_zero).packed(packed);
            for (const int64_t m : {1, 2, 3, 4, 25}) {
              QGemmTester(t).sizes(m, 9, 18).output(DType::kInt8, Values::kLow).run();
              QGemmTester(t)
                  .sizes(m, 9, 7)
                  .output(DType::kUInt8, Values::kHigh)
                  .c({9}, m % 2 == 0 ? Values::kLow : Values::kHigh)
                  .run();
            }
            QGemmTester(t).sizes(2, 3, 4096).run();
          }
        }
      }
    }
  }
}

// 255 * 255 * 40,000 exceeds an int32. So do 255 * -128 * 70,000 and, in between, row sums times
// zero points.
TEST_P(QGemm, AccumulatorsWrap) {
  constexpr Values kEnds[] = {Values::kLow, Values::kHigh};
  for (const Values a : kEnds) {
    for (const Values b : kEnds) {
      const Values a_other = a == Values::kLow ? Values::kHigh : Values::kLow,
                   b_other = b == Values::kLow ? Values::kHigh : Values::kLow;
      tester().sizes(1, 3, 70000).values(a, b).zero_points(a_other, b_other).run();
      tester().sizes(3, 2, 70000).values(a, b).zero_points(a_other, Values::kAbsent).packed().run();
      tester()
          .sizes(25, 2, 40000)
          .values(a, b)
          .zero_points(a_other, b_other)
          .packed()
          .c({2}, Values::kHigh)
          .run();
      tester()
          .sizes(5, 1, 40000)
          .values(a, b)
          .zero_points(Values::kAbsent, b_other)
          .c({5, 1}, Values::kLow)
          .output(DType::kInt8)
          .run();
    }
  }
  for (const Values c : {Values::kLow, Values::kHigh}) {
    for (uint32_t seed = 1; seed <= 10; ++seed) {
      tester().sizes(7, 20, 30).c({7, 20}, c).seed(seed).run();
      tester().sizes(7, 20, 30).c({20}, c).output(DType::kInt8).seed(seed).run();
    }
  }
}

TEST_P(QGemm, ProductsOfScalesThatOverflowOrVanish) {
  const QGemmTester::Scales all[] = {
      {1e30F, 1e8F, 1},         {1e-30F, 1e-30F, 1}, {1e-30F, 1e-10F, 1},  {1e-30F, 1e-30F, 1e-38F},
      {1e-3F, 1e-3F, 3e38F},    {1e20F, 1e18F, 1},   {1e-20F, 1e-19F, 10}, {3e38F, 1, 1},
      {1e-45F, 1e-45F, 1e-45F}, {1e-38F, 1, 1e-38F}, {1, 1e-45F, 1},       {1e10F, 1e20F, 1e-5F}};
  for (const auto& scales : all) {
    for (const double alpha : {1.0, -1.0, 0.0, 1e-300, -1e-40}) {
      for (const DType output : kOutputs) {
        for (const int64_t k : {0, 5})
          tester().sizes(6, 21, k).scales(scales).alpha(alpha).output(output).c({21}).run();
      }
    }
  }
}

TEST_P(QGemm, BlocksOfAnySize) {
  for (const int64_t block : {1, 7, 16, 40}) {
    for (const bool packed : {false, true}) {
      const QGemmTester t = tester()
                                .trans(true, false)
                                .packed(packed)
                                .options({.mc = block, .nc = block, .kc = block});
      QGemmTester(t).sizes(45, 50, 41).run();
      QGemmTester(t).sizes(45, 50, 41).c({45, 50}).output(DType::kInt8).run();
      for (const int64_t m : {1, 2, 3, 9})
        QGemmTester(t).sizes(m, 50, 41).output(DType::kUInt8).run();
    }
  }
  tester().sizes(45, 50, 41).options({.mc = 8, .nc = 1, .kc = 10}).run();
}

TEST_P(QGemm, DeepAndWideAndTall) {
  for (const bool packed : {false, true}) {
    for (const int64_t m : {1, 2, 3, 5, 26})
      tester().sizes(m, 11, 4999).packed(packed).trans(m == 5, m == 2).c({11}).run();
    tester().sizes(2, 9, 4097).packed(packed).output(DType::kInt8).run();
    tester().sizes(3, 17001, 2).packed(packed).output(DType::kUInt8).run();
    tester().sizes(9001, 3, 4).packed(packed).trans(true, false).c({3}).run();
    tester().sizes(130, 257, 100).packed(packed).c({130, 1}).alpha(-1).output(DType::kInt8).run();
  }
}

TEST_P(QGemm, LongColumnsOfYAndC) {
  for (const DType output : kOutputs) {
    tester().sizes(3, 600, 2).columns().gap(1).output(output).run();
    tester().sizes(3, 600, 2).columns().gap(1).output(output).c({600}).run();
    tester().sizes(3, 600, 2).columns().output(output).c({600}).run();  // C is contiguous, Y is not
    tester().sizes(3, 600, 2).output(output).c({3, 1}).run();
    tester().sizes(3, 600, 2).columns().output(output).c({3, 600}).run();
  }
}

TEST_P(QGemm, AnythingAtRandom) {
  std::mt19937 random(7);
  for (uint32_t number = 10000; number < 10300; ++number) {
    const auto below = [&](uint32_t end) { return static_cast<int64_t>(random() % end); };
    const int64_t m = 1 + below(60), n = 1 + below(60), k = 1 + below(60), mc = below(20),
                  nc = below(20), kc = below(20);
    QGemmTester t = any(m, n, k, number);
    if (number % 3 == 0) t.options({.mc = mc, .nc = nc, .kc = kc});
    t.run();
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QGemm, ::testing::ValuesIn(kTypes), [](const auto& test) {
  return std::string(dtype_name(test.param.a)) + "_" + dtype_name(test.param.b);
});

// Requantization alone: accumulators are C, since K is 0 or all products are 0.
struct Requantize {
  float a_scale = 1, b_scale = 1;
  double alpha = 1;
  std::optional<float> y_scale{};

  template <typename T>
  std::vector<T> operator()(DType type, T zero_point, const std::vector<int32_t>& acc,
                            int64_t k) const {
    const auto n = static_cast<int64_t>(acc.size());
    const int64_t a_dims[] = {1, k}, b_dims[] = {k, n}, y_dims[] = {1, n};
    const std::vector<uint8_t> a(static_cast<size_t>(k), 0), b(static_cast<size_t>(k * n), 77);
    std::vector<T> y(acc.size());
    const ConstTensor c{acc.data(), DType::kInt32, y_dims}, y_zero{&zero_point, type};
    QGemmArgs args;
    args.A = {a.data(), DType::kUInt8, a_dims};
    args.B = {b.data(), DType::kInt8, b_dims};
    if (k == 0) args.A.data = args.B.data = nullptr;
    args.C = &c;
    args.a_scale = {&a_scale, DType::kFloat32};
    args.b_scale = {&b_scale, DType::kFloat32};
    args.alpha = alpha;
    args.Y = {y.data(), type, y_dims};
    ConstTensor y_scale_tensor;
    if (y_scale.has_value()) {
      y_scale_tensor = {&*y_scale, DType::kFloat32};
      args.y_scale = &y_scale_tensor;
      args.y_zero_point = &y_zero;
    }
    Context context;
    const Status status = qgemm(context, args);
    EXPECT_TRUE(status.ok()) << status.message;
    for (int64_t j = 0; j < n; ++j) {
      EXPECT_EQ(reference_qgemm<T>(args, 0, j), y[static_cast<size_t>(j)])
          << acc[static_cast<size_t>(j)];
    }
    return y;
  }
};

// Expected results for halves of integers, computed in integers only.
template <typename T>
void check_halves(DType type) {
  using Limits = std::numeric_limits<T>;
  std::vector<int32_t> acc(1607);
  std::iota(acc.begin(), acc.end(), -803);
  for (const int sign : {1, -1}) {
    for (const int zero_point :
         {int{Limits::min()}, -1, 0, 1, 100, Limits::max() - 1, int{Limits::max()}}) {
      if (zero_point < Limits::min()) continue;
      for (const int64_t k : {0, 1, 3}) {
        const Requantize requantize{
            .a_scale = 0.25F, .b_scale = 4, .alpha = sign * 2.0, .y_scale = 4};  // one half
        const std::vector<T> y = requantize(type, static_cast<T>(zero_point), acc, k);
        for (size_t i = 0; i < acc.size(); ++i) {
          const int twice = sign * acc[i], below = twice >> 1;
          const int rounded = (twice & 1) == 0 ? below : below + (below & 1);
          const int expected = std::clamp<int>(rounded + zero_point, Limits::min(), Limits::max());
          ASSERT_EQ(y[i], expected) << twice << " / 2 + " << zero_point << ", K = " << k;
        }
      }
    }
  }
}

TEST(Requantize, RoundsHalvesToEvenAndSaturates) {
  check_halves<int8_t>(DType::kInt8);
  check_halves<uint8_t>(DType::kUInt8);
}

TEST(Requantize, SaturatesFromAnyDistance) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min(),
                    kMax = std::numeric_limits<int32_t>::max();
  const std::vector<int32_t> acc = {kMin, kMin + 1, -(1 << 24), -40000,   -1,  0,
                                    1,    40000,    1 << 24,    kMax - 1, kMax};
  for (const float scale : {1.0F, 1e10F, 1e38F}) {
    for (const int64_t k : {0, 2}) {
      const Requantize requantize{
          .a_scale = scale, .b_scale = 3, .y_scale = 1};  // 3e38 * 2^31 is infinite
      const std::vector<int8_t> y = requantize(DType::kInt8, int8_t{-128}, acc, k);
      const std::vector<uint8_t> u = requantize(DType::kUInt8, uint8_t{255}, acc, k);
      for (size_t i = 0; i < acc.size(); ++i) {
        const bool near = acc[i] >= -1 && acc[i] <= 1 && scale == 1;
        EXPECT_EQ(y[i], near ? std::max(-128 + 3 * acc[i], -128) : (acc[i] > 0 ? 127 : -128));
        EXPECT_EQ(u[i], near ? std::min(255 + 3 * acc[i], 255) : (acc[i] < 0 ? 0 : 255));
      }
    }
  }
  const Requantize infinite{.a_scale = 1e38F, .b_scale = 3};
  EXPECT_EQ(infinite(DType::kFloat32, 0.0F, {kMin, 0, kMax}, 0),
            (std::vector<float>{-INFINITY, 0, INFINITY}));
}

// The order of multiplications and division changes the last bit of a scale, and so results close
// to the middle of two integers. The test also checks that other orders change them.
TEST(Requantize, MultipliesScalesInTheOrderOfTheSpecification) {
  using Scale = float (*)(double alpha, float a, float b, float y);
  struct Other {
    const char* name;
    Scale scale;
  };
  const Other others[] = {
      {"alpha * (a * b) / y", [](double alpha, float a, float b,
                                 float y) { return (static_cast<float>(alpha) * (a * b)) / y; }},
      {"((alpha * b) * a) / y", [](double alpha, float a, float b,
                                   float y) { return ((static_cast<float>(alpha) * b) * a) / y; }},
      {"((alpha * a) / y) * b", [](double alpha, float a, float b,
                                   float y) { return ((static_cast<float>(alpha) * a) / y) * b; }},
      {"(alpha * a) * (b / y)", [](double alpha, float a, float b,
                                   float y) { return (static_cast<float>(alpha) * a) * (b / y); }},
      {"alpha * ((a * b) / y)", [](double alpha, float a, float b,
                                   float y) { return static_cast<float>(alpha) * ((a * b) / y); }},
      {"((alpha * a) * b) * (1 / y)",
       [](double alpha, float a, float b, float y) {
         return ((static_cast<float>(alpha) * a) * b) * (1 / y);
       }},
      {"alpha in float64",
       [](double alpha, float a, float b, float y) {
         return (static_cast<float>(alpha * static_cast<double>(a)) * b) / y;
       }},
      {"all in float64", [](double alpha, float a, float b, float y) {
         return static_cast<float>(alpha * static_cast<double>(a) * static_cast<double>(b) /
                                   static_cast<double>(y));
       }}};
  std::mt19937 random(3);
  const auto draw = [&](float low) {
    return std::uniform_real_distribution<float>(low, 4 * low)(random);
  };
  for (const Other& other : others) {
    size_t told = 0;
    for (int round = 0; round < 60; ++round) {
      Requantize requantize{.a_scale = draw(0x1p-8F),
                            .b_scale = draw(0x1p-8F),
                            .alpha = std::uniform_real_distribution<double>(0.5, 2)(random)};
      requantize.y_scale = draw(0.5F);
      const float scale =
          ((static_cast<float>(requantize.alpha) * requantize.a_scale) * requantize.b_scale) /
          *requantize.y_scale;
      const float wrong = other.scale(requantize.alpha, requantize.a_scale, requantize.b_scale,
                                      *requantize.y_scale);
      if (scale == wrong) continue;
      std::vector<int32_t> acc;
      std::vector<int> expected;
      for (int middle = -127; middle < 127; ++middle) {
        const auto near = static_cast<int32_t>((static_cast<float>(middle) + 0.5F) / scale);
        for (int32_t x = near - 3; x <= near + 3; ++x) {
          const float right = std::nearbyint(static_cast<float>(x) * scale);
          if (right == std::nearbyint(static_cast<float>(x) * wrong)) continue;
          acc.push_back(x);
          expected.push_back(static_cast<int>(right));
        }
      }
      if (acc.empty()) continue;
      told += acc.size();
      const std::vector<int8_t> y = requantize(DType::kInt8, int8_t{0}, acc, round % 2);
      for (size_t i = 0; i < acc.size(); ++i) ASSERT_EQ(y[i], expected[i]) << other.name;
    }
    EXPECT_GE(told, 20U) << other.name;
  }
  // Without y_scale the results show the order in their bits.
  int differ = 0;
  for (int round = 0; round < 50; ++round) {
    const Requantize requantize{
        .a_scale = draw(0.1F), .b_scale = draw(0.1F), .alpha = static_cast<double>(draw(-0.1F))};
    const float alpha = static_cast<float>(requantize.alpha),
                scale = (alpha * requantize.a_scale) * requantize.b_scale;
    if (scale != alpha * (requantize.a_scale * requantize.b_scale)) ++differ;
    ASSERT_EQ(requantize(DType::kFloat32, 0.0F, {1, -3}, round % 2),
              (std::vector<float>{scale, -3 * scale}));
  }
  EXPECT_GE(differ, 5);
}

// Weights
// -------------------------------------------------------------------------------------------------

Array<uint8_t> random_matrix(int64_t rows, int64_t cols, int64_t gap = 0, bool columns = false) {
  Array<uint8_t> matrix({rows, cols}, gap, columns);
  std::mt19937 random(static_cast<uint32_t>(rows * 100 + cols));
  for (size_t i = 0; i < matrix.length; ++i) matrix.data[i] = static_cast<uint8_t>(random());
  return matrix;
}

PackedWeights packed(Context& context, const ConstTensor& b, bool trans = false) {
  PackedWeights weights;
  const Status status = pack(context, {.op = PackFor::kQGemm, .B = b, .trans = trans}, &weights);
  EXPECT_TRUE(status.ok()) << status.message;
  return weights;
}

TEST(PackedWeights, HoldTheirColumnSums) {
  for (const DType type : {DType::kInt8, DType::kUInt8}) {
    for (const int64_t k : {1, 2, 7, 8, 9, 16, 33, 1000}) {
      for (const int64_t n : {0, 1, 3, 7, 8, 9, 16, 21, 70}) {
        for (const bool trans : {false, true}) {
          for (const bool columns : {false, true}) {
            const Array<uint8_t> b =
                trans ? random_matrix(n, k, 2, columns) : random_matrix(k, n, 2, columns);
            Context context;
            const PackedWeights weights = packed(context, b.tensor(type), trans);
            EXPECT_TRUE(weights.dtype() == type && weights.k() == k && weights.n() == n);
            for (int64_t j = 0; j < n; ++j) {
              int32_t sum = 0;
              for (int64_t i = 0; i < k; ++i) {
                const uint8_t x = trans ? b.data[b.place(j, i)] : b.data[b.place(i, j)];
                sum += type == DType::kInt8 ? int{static_cast<int8_t>(x)} : x - 128;
              }
              ASSERT_EQ(prepacked_of(weights).column_sums[j], sum)
                  << k << " x " << n << ", column " << j;
            }
          }
        }
      }
    }
  }
}

TEST(PackedWeights, ServeAnyNumberOfCalls) {
  const int64_t k = 37, n = 27;
  const Array<uint8_t> b = random_matrix(k, n);
  for (const DType b_type : {DType::kInt8, DType::kUInt8}) {
    Context context;
    const PackedWeights weights = packed(context, b.tensor(b_type));
    const size_t in_use = context.bytes_in_use();
    const std::vector<std::byte> bytes(
        static_cast<const std::byte*>(static_cast<const void*>(prepacked_of(weights).column_sums)),
        prepacked_of(weights).panels);
    std::mt19937 random(1);
    for (const int64_t m : {1, 30, 2, 7, 24, 3}) {
      for (const DType a_type : {DType::kInt8, DType::kUInt8}) {
        const Array<uint8_t> a = random_matrix(m, k);
        const auto a_zero = static_cast<uint8_t>(random()), b_zero = static_cast<uint8_t>(random());
        const float a_scale = 0.5F, b_scale = static_cast<float>(random() % 100 + 1);
        const ConstTensor a_zero_tensor{&a_zero, a_type}, b_zero_tensor{&b_zero, b_type};
        Array<float> y({m, n}, 0, false);
        QGemmArgs args;
        args.A = a.tensor(a_type);
        args.B = b.tensor(b_type);
        args.a_scale = {&a_scale, DType::kFloat32};
        args.b_scale = {&b_scale, DType::kFloat32};
        args.a_zero_point = &a_zero_tensor;
        if (m != 7) args.b_zero_point = &b_zero_tensor;
        args.packed_B = &weights;
        args.Y = y.tensor<void>(DType::kFloat32);
        const Status status = qgemm(context, args);
        ASSERT_TRUE(status.ok()) << status.message;
        ASSERT_EQ(context.bytes_in_use(), in_use);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j)
            ASSERT_EQ(y.data[y.place(i, j)], reference_qgemm<float>(args, i, j));
        }
      }
    }
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(),
                           reinterpret_cast<const std::byte*>(prepacked_of(weights).column_sums)));
  }
}

TEST(PackedWeights, AreMovedAndReleaseMemory) {
  const Array<uint8_t> b = random_matrix(9, 10), c = random_matrix(3, 4);
  Context context;
  {
    PackedWeights empty;
    EXPECT_TRUE(empty.empty());
    PackedWeights first = packed(context, b.tensor(DType::kInt8));
    EXPECT_FALSE(first.empty());
    const size_t of_first = context.bytes_in_use();
    EXPECT_GE(of_first, first.bytes());
    EXPECT_GE(first.bytes(), 90U);

    PackedWeights moved(std::move(first));
    EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): tested here
    EXPECT_TRUE(moved.k() == 9 && moved.n() == 10 && context.bytes_in_use() == of_first);

    PackedWeights second = packed(context, c.tensor(DType::kUInt8));
    EXPECT_GT(context.bytes_in_use(), of_first);
    second = std::move(moved);
    EXPECT_TRUE(second.k() == 9 && second.n() == 10 && second.dtype() == DType::kInt8);
    PackedWeights& itself = second;
    second = std::move(itself);
    EXPECT_EQ(second.k(), 9);
    {
      const PackedWeights rest(std::move(moved));
    }
    EXPECT_EQ(context.bytes_in_use(), of_first);

    // Filled again: the previous block is released.
    const Status status =
        pack(context, {.op = PackFor::kQGemm, .B = c.tensor(DType::kUInt8)}, &second);
    EXPECT_TRUE(status.ok()) << status.message;
    EXPECT_TRUE(second.k() == 3 && second.n() == 4 && second.dtype() == DType::kUInt8);
    EXPECT_LT(context.bytes_in_use(), of_first);
  }
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

TEST(PackedWeights, AreDetachedAndViewed) {
  const Array<uint8_t> b = random_matrix(9, 10);
  Context context;
  void* block = nullptr;
  {
    PackedWeights weights = packed(context, b.tensor(DType::kUInt8));
    block = weights.detach();
    EXPECT_TRUE(weights.empty());
    EXPECT_EQ(weights.detach(), nullptr);
  }
  EXPECT_GT(context.bytes_in_use(), 0U);
  {
    PackedWeights view = PackedWeights::view(block);
    EXPECT_TRUE(!view.empty() && view.k() == 9 && view.n() == 10 && view.dtype() == DType::kUInt8);
    const PackedWeights moved(std::move(view));
    EXPECT_EQ(moved.k(), 9);
  }
  EXPECT_GT(context.bytes_in_use(), 0U);  // a view owns nothing
  EXPECT_TRUE(PackedWeights::view(nullptr).empty());
  context.release(block);
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

// A move also transfers ownership, and the context that the memory belongs to.
TEST(PackedWeights, AreMovedBetweenContextsAndFromViews) {
  const Array<uint8_t> b = random_matrix(9, 10);
  Context one, two;
  {
    PackedWeights first = packed(one, b.tensor(DType::kInt8)),
                  second = packed(two, b.tensor(DType::kUInt8));
    first = std::move(second);
    EXPECT_EQ(first.dtype(), DType::kUInt8);
    second = PackedWeights();
    EXPECT_TRUE(second.empty());
    EXPECT_EQ(one.bytes_in_use(), 0U);
    EXPECT_GT(two.bytes_in_use(), 0U);

    PackedWeights owner = packed(one, b.tensor(DType::kInt8));
    first = std::move(owner);
    EXPECT_TRUE(owner.empty());  // NOLINT(bugprone-use-after-move)
    EXPECT_GT(one.bytes_in_use(), 0U);
    EXPECT_EQ(two.bytes_in_use(), 0U);
    const void* const block = prepacked_of(first).column_sums;
    first = PackedWeights::view(first.detach());
    EXPECT_EQ(prepacked_of(first).column_sums, block);
    EXPECT_GT(one.bytes_in_use(), 0U);
    second = std::move(first);
    one.release(second.detach());
    EXPECT_EQ(one.bytes_in_use(), 0U);
  }
  EXPECT_EQ(one.bytes_in_use() + two.bytes_in_use(), 0U);
}

TEST(QGemmMemory, PackingThatFailsLeavesTheWeightsUnchanged) {
  const Array<uint8_t> small = random_matrix(9, 10), large = random_matrix(100, 100);
  Context context(2000);
  PackedWeights weights = packed(context, small.tensor(DType::kInt8));
  const size_t in_use = context.bytes_in_use();
  EXPECT_EQ(pack(context, {.op = PackFor::kQGemm, .B = large.tensor(DType::kInt8)}, &weights).code,
            Code::kOutOfMemory);
  ConstTensor bad = small.tensor(DType::kInt32);
  EXPECT_EQ(pack(context, {.op = PackFor::kQGemm, .B = bad}, &weights).code, Code::kDType);
  EXPECT_TRUE(weights.k() == 9 && weights.n() == 10);
  EXPECT_EQ(context.bytes_in_use(), in_use);
}

// One repeated element, or none at all. The panels and sums would exceed memory and 32-bit sizes.
TEST(QGemmMemory, RefusesToPackWhatIsTooLarge) {
  const uint8_t element = 1;
  const int64_t strides[] = {0, 0};
  constexpr int64_t kSizes[][2] = {{int64_t{1} << 20, int64_t{1} << 16},
                                   {int64_t{1} << 16, int64_t{1} << 20},
                                   {1, int64_t{1} << 30},
                                   {int64_t{1} << 32, 1},
                                   {(int64_t{1} << 29) + 1, 9},
                                   {int64_t{1} << 26, int64_t{1} << 26},
                                   {int64_t{1} << 53, 1},
                                   {0, int64_t{1} << 62}};
  for (const auto& size : kSizes) {
    for (const int64_t trans : {0, 1}) {
      const int64_t dims[] = {size[trans], size[1 - trans]};
      Context context(1 << 20);
      PackedWeights weights;
      const Status status = pack(
          context,
          {.op = PackFor::kQGemm, .B = {&element, DType::kInt8, dims, strides}, .trans = trans},
          &weights);
      EXPECT_EQ(status.code, size[1] > int64_t{1} << 53 ? Code::kShape : Code::kOutOfMemory)
          << status.message;
      EXPECT_EQ(std::string(status.message).find("-1"), std::string::npos) << status.message;
      EXPECT_TRUE(weights.empty());
      EXPECT_EQ(context.bytes_in_use(), 0U);
    }
  }
}

}  // namespace
}  // namespace wgemm::testing
