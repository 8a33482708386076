// Bounds of results: for every type and every kind of product, and values at the bounds themselves.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/convert.h"
#include "matmul_tester.h"
#include "qgemm_tester.h"
#include "tester.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Activation kRelu{.min = 0}, kRelu6{.min = 0, .max = 6};

constexpr DType kTypes[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) DType::k##Enumerator,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

// Bounds that clip many or none of the products of numbers from -1 to 1, and of random integers.
const Activation kBounds[] = {kRelu,      kRelu6,          {-0.1, 0.3}, {.max = -0.25},
                              {0.1, 0.1}, {-1e300, 1e300}, {},          {kInfinity, kInfinity}};
const Activation kWholeBounds[] = {kRelu,
                                   kRelu6,
                                   {-1e9, 2e9},
                                   {.max = -3},
                                   {7, 7},
                                   {-0x1p53, 0x1p53},
                                   {0x1p53, 0x1p53},
                                   {-0x1p53, -0x1p53},
                                   {-0.0, 0x1p40}};

TEST(Activation, HoldsInEveryType) {
  for (const DType type : kTypes) {
    const bool whole = type == DType::kInt32 || type == DType::kUInt32 || type == DType::kInt64 ||
                       type == DType::kUInt64;
    for (const Activation& bounds :
         whole ? std::span<const Activation>(kWholeBounds) : std::span<const Activation>(kBounds)) {
      uint32_t seed = 0;
      for (const int64_t m : {1, 3, 9, 20}) {
        for (const int64_t n : {1, 2, 17, 70}) {
          for (const int64_t k : {0, 5, 33}) {
            GemmTester tester =
                GemmTester().type(type).sizes(m, n, k).activation(bounds).seed(++seed);
            tester.run();
            tester.packed().run();
            tester.packed(false).trans(true, true).c({n}).alpha(3).beta(-2).run();
            tester.alpha(1.5).beta(0.5).in_place().columns().gap(2).run();
          }
        }
      }
      for (const bool packed : {false, true}) {
        MatMulTester tester = MatMulTester()
                                  .type(type)
                                  .src({2, 3, 5, 9})
                                  .weights({3, 9, 20})
                                  .activation(bounds)
                                  .packed(packed);
        tester.run();
        tester.bias({3, 1, 20}).alpha(1.5).float32().run();
      }
      MatMulTester().type(type).src({9}).weights({9}).activation(bounds).run();
    }
  }
}

TEST(Activation, HoldsInBlocks) {
  for (const DType type : kTypes) {
    const PlanOptions options{.mc = 4, .nc = 8, .kc = 4};
    GemmTester().type(type).sizes(13, 41, 23).activation(kRelu).options(options).run();
  }
}

TEST(Activation, KeepsSpecialValues) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (const Activation& bounds : kBounds) {
      GemmTester().type(type).sizes(9, 33, 2).activation(bounds).specials().run();
      MatMulTester().type(type).src({2, 9, 2}).weights({2, 33}).activation(bounds).specials().run();
    }
  }
}

TEST(Activation, HoldsInQGemm) {
  uint32_t seed = 0;
  for (const DType y : {DType::kFloat32, DType::kInt8, DType::kUInt8}) {
    for (const Activation& bounds : kBounds) {
      for (const int64_t m : {1, 4, 40}) {
        for (const int64_t n : {1, 16, 37}) {
          QGemmTester tester =
              QGemmTester().output(y).sizes(m, n, 9).activation(bounds).seed(++seed);
          tester.run();
          tester.packed().c({n}).extents(Extent::kOne, Extent::kColumns, Extent::kColumns).run();
          tester.sizes(m, n, 0).gap(1).run();
        }
      }
    }
    // A range in which the bounds and their halves lie within the range of the type, or beyond it.
    for (const Activation& bounds : {Activation{0, 6},
                                     {-2.5, 2.5},
                                     {.min = 1e30},
                                     {.max = -1e30},
                                     {3.25, 3.25},
                                     {-1e-45, 1e-45}}) {
      for (const float unit : {0.05F, 0.5F, 1e-30F, 1e30F}) {
        QGemmTester()
            .output(y)
            .sizes(9, 33, 20)
            .scales({0.01F, 0.02F, unit})
            .activation(bounds)
            .run();
      }
    }
  }
}

// The 1 x 1 x 1 product of `a` and 1.
float of_one(float a, const Activation& activation, Determinism determinism) {
  Context context(0, determinism);
  const float one = 1;
  float y = 77;
  const int64_t dims[] = {1, 1};
  GemmArgs args;
  args.A = {&a, DType::kFloat32, dims};
  args.B = {&one, DType::kFloat32, dims};
  args.Y = {&y, DType::kFloat32, dims};
  args.activation = activation;
  const Status status = gemm(context, args);
  EXPECT_TRUE(status.ok()) << status.message;
  return y;
}

TEST(Activation, KeepsValuesAtABound) {
  for (const Determinism determinism : {Determinism::kStrict, Determinism::kFast}) {
    const auto same = [&](float a, const Activation& activation, float wanted) {
      const float y = of_one(a, activation, determinism);
      EXPECT_EQ(std::bit_cast<uint32_t>(y), std::bit_cast<uint32_t>(wanted)) << a << " gives " << y;
    };
    same(2, kRelu, 2);
    same(-2, kRelu, 0);
    same(7, kRelu6, 6);
    same(0x1p-149F, kRelu, 0x1p-149F);
    same(-0x1p-149F, kRelu, 0);
    same(INFINITY, kRelu, INFINITY);
    same(-INFINITY, kRelu, 0);
    same(INFINITY, kRelu6, 6);
    same(-1, {.min = -0.0}, -0.0F);
    same(5, {-3, -0.0}, -0.0F);
    same(5, {0.1, 0.1}, 0.1F);          // rounded
    same(5, {-1e300, 1e300}, 5);        // rounded to infinity
    same(5, {1e300, 1e300}, INFINITY);  // the same
    EXPECT_TRUE(std::isnan(of_one(NAN, kRelu6, determinism)));
    EXPECT_TRUE(std::isnan(of_one(-NAN, {3, 3}, determinism)));
  }
  // The accumulator begins with 0, and 0 + -0 is 0. Only alpha produces -0.
  for (const Determinism determinism : {Determinism::kStrict, Determinism::kFast}) {
    Context context(0, determinism);
    float a[20] = {}, b = 1, y[20];
    const int64_t tall[] = {20, 1}, one[] = {1, 1};
    GemmArgs args;
    args.A = {a, DType::kFloat32, tall};
    args.B = {&b, DType::kFloat32, one};
    args.Y = {y, DType::kFloat32, tall};
    args.alpha = -1;
    for (const Activation& activation : {kRelu, Activation{-1, -0.0}, Activation{0, 0}}) {
      args.activation = activation;
      ASSERT_TRUE(gemm(context, args).ok());
      for (const float value : y) EXPECT_TRUE(value == 0 && std::signbit(value));
    }
  }
}

// In strict mode, for every blocking and M: the bits of the unbounded result, clipped afterwards.
TEST(Activation, HasTheBitsOfTheClippedResult) {
  Context context(0, Determinism::kStrict);
  for (const int64_t m : {1, 2, 5, 48, 65}) {
    const int64_t n = 40, k = 200;
    std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)),
        plain(static_cast<size_t>(m * n)), y(plain.size());
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<float>(std::sin(static_cast<double>(i * i)));
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = static_cast<float>(std::cos(static_cast<double>(i * i)));
    b[3] = NAN;
    const int64_t a_dims[] = {m, k}, b_dims[] = {k, n}, y_dims[] = {m, n};
    GemmArgs args;
    args.A = {a.data(), DType::kFloat32, a_dims};
    args.B = {b.data(), DType::kFloat32, b_dims};
    args.Y = {plain.data(), DType::kFloat32, y_dims};
    ASSERT_TRUE(gemm(context, args).ok());
    args.Y.data = y.data();
    args.activation = {-1, 2.5};
    ASSERT_TRUE(gemm(context, args).ok());
    for (float& value : plain) value = value < -1 ? -1 : value > 2.5F ? 2.5F : value;
    EXPECT_EQ(std::memcmp(y.data(), plain.data(), y.size() * sizeof(float)), 0);
  }
}

// Rounding to 16 bits follows the bounds, so that a result may exceed a bound by rounding.
TEST(Activation, ActsOnFloat32BeforeRounding) {
  Context context;
  const int64_t dims[] = {1, 1};
  const BFloat16 a = narrow_to(3.0F, BFloat16{}), b = narrow_to(1.0F, BFloat16{});
  BFloat16 y{};
  MatMulArgs args;
  args.src = {&a, DType::kBFloat16, dims};
  args.weights = {&b, DType::kBFloat16, dims};
  args.dst = {&y, DType::kBFloat16, dims};
  args.activation.max = 1.00390625 + 0x1p-10;  // slightly above the middle of two neighbours
  ASSERT_TRUE(matmul(context, args).ok());
  EXPECT_EQ(widen(y), 1.0078125F);
}

struct ErrorCase {
  Activation activation;
  DType type;
  const char* sentence;
};

TEST(Activation, ThatIsInvalidIsReportedAndNothingIsWritten) {
  const char* nan_min =
      "activation has a min that is NaN; it must be a number, which may be infinite";
  const ErrorCase cases[] = {
      {{.min = NAN}, DType::kFloat32, nan_min},
      {{.min = NAN, .max = NAN}, DType::kInt32, nan_min},
      {{.max = NAN}, DType::kFloat64, "activation has a max that is NaN"},
      {{1, 0}, DType::kFloat16, "activation has a min above its max; min must be at most max"},
      {{kInfinity, -kInfinity}, DType::kFloat32, "a min above its max"},
      {{7, 6}, DType::kInt64, "a min above its max"},
      {{.min = 0.5},
       DType::kInt32,
       "activation has a min that is not a whole number from -2^53 to 2^53; "
       "with int32 it must be one, or infinite"},
      {{.max = 6.5},
       DType::kUInt64,
       "activation has a max that is not a whole number from -2^53 to 2^53; "
       "with uint64 it must be one, or infinite"},
      {{.max = 0x1p54}, DType::kInt64, "a max that is not a whole number from -2^53 to 2^53"},
      {{.min = -0x1p54}, DType::kUInt32, "a min that is not a whole number from -2^53 to 2^53"}};
  const std::vector<std::byte> zeros(64);
  const int64_t dims[] = {2, 2};
  for (const auto& [activation, type, sentence] : cases) {
    std::vector<std::byte> y(64, std::byte{7});
    const std::vector<std::byte> before = y;
    Context context;
    GemmArgs gemm_args;
    gemm_args.A = {zeros.data(), type, dims};
    gemm_args.B = gemm_args.A;
    gemm_args.Y = {y.data(), type, dims};
    gemm_args.activation = activation;
    MatMulArgs matmul_args;
    matmul_args.src = matmul_args.weights = gemm_args.A;
    matmul_args.dst = gemm_args.Y;
    matmul_args.activation = activation;
    const auto check = [&, part = std::string(sentence)](const Status& status, const char* op) {
      EXPECT_EQ(status.code, Code::kArgument);
      EXPECT_STREQ(status.op, op);
      EXPECT_STREQ(status.argument, "activation");
      EXPECT_NE(std::string(status.message).find(part), std::string::npos) << status.message;
      EXPECT_EQ(y, before);
    };
    int64_t shape[kMaxRank];
    size_t rank;
    check(gemm(context, gemm_args), "gemm");
    check(gemm_shape(gemm_args, shape), "gemm");
    check(matmul(context, matmul_args), "matmul");
    check(matmul_shape(matmul_args, shape, &rank), "matmul");
    if (type != DType::kFloat32) continue;
    const float scale = 1;
    QGemmArgs qgemm_args;
    qgemm_args.A = qgemm_args.B = {zeros.data(), DType::kInt8, dims};
    qgemm_args.a_scale = qgemm_args.b_scale = {&scale, DType::kFloat32};
    qgemm_args.Y = gemm_args.Y;
    qgemm_args.activation = activation;
    DType dtype;
    check(qgemm(context, qgemm_args), "qgemm");
    check(qgemm_shape(qgemm_args, shape, &dtype), "qgemm");
  }
}

TEST(Activation, ThatBoundsNothingCostsNothing) {
  const int64_t dims[] = {40, 40};
  GemmArgs args;
  args.A = args.B = {nullptr, DType::kFloat32, dims};
  Explanation plan;
  ASSERT_TRUE(explain(Context(), args, &plan).ok());
  EXPECT_TRUE(plan.direct);
  args.activation = {-kInfinity, 1e300};
  ASSERT_TRUE(explain(Context(), args, &plan).ok());
  EXPECT_TRUE(plan.direct);
  args.activation = kRelu;
  ASSERT_TRUE(explain(Context(), args, &plan).ok());
  EXPECT_FALSE(plan.direct);
}

}  // namespace
}  // namespace wgemm::testing
