// Gemm through the whole pipeline, for every type.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "array.h"
#include "base/types.h"
#include "tester.h"
#include "values.h"

namespace wgemm::testing {
namespace {

class Gemm : public ::testing::TestWithParam<DType> {
 protected:
  GemmTester tester() const { return GemmTester().type(GetParam()); }
};

TEST_P(Gemm, EverySmallSize) {
  for (int64_t m = 0; m <= 10; ++m) {
    for (int64_t n = 0; n <= 18; ++n) {
      for (const int64_t k : {0, 1, 2, 3, 8, 17})
        tester().sizes(m, n, k).seed(static_cast<uint32_t>(m * 100 + n)).run();
    }
  }
}

TEST_P(Gemm, TransposesAndLayouts) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const bool columns : {false, true}) {
        for (const int64_t gap : {0, 5}) {
          tester().sizes(37, 45, 53).trans(trans_a, trans_b).columns(columns).gap(gap).run();
          tester().sizes(1, 70, 33).trans(trans_a, trans_b).columns(columns).gap(gap).run();
          tester().sizes(70, 1, 33).trans(trans_a, trans_b).columns(columns).gap(gap).run();
          tester().sizes(6, 9, 1).trans(trans_a, trans_b).columns(columns).gap(gap).run();
        }
      }
    }
  }
}

TEST_P(Gemm, EveryBroadcastOfCAndFactor) {
  const int64_t m = 13, n = 21;
  const std::vector<std::vector<int64_t>> shapes = {{}, {1}, {n}, {1, 1}, {1, n}, {m, 1}, {m, n}};
  for (const auto& shape : shapes) {
    for (const double alpha : {1.0, 0.0, -2.0, 0.37}) {
      for (const double beta : {1.0, 0.0, 3.0, -0.61}) {
        for (const int64_t k : {0, 9}) {
          tester().sizes(m, n, k).c(shape).alpha(alpha).beta(beta).run();
          tester().sizes(m, n, k).c(shape).alpha(alpha).beta(beta).gap(3).columns().run();
        }
      }
    }
  }
}

TEST_P(Gemm, OffsetsOfEveryOperand) {
  uint32_t seed = 0;
  for (const bool trans : {false, true}) {
    for (const bool columns : {false, true}) {
      for (const int64_t gap : {0, 3}) {
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                      {1, 40, 33},
                                      {33, 1, 40},
                                      {5, 9, 0},
                                      {0, 9, 5},
                                      {37, 45, 53}}) {
          GemmTester t = tester().sizes(m, n, k).trans(trans, !trans).columns(columns).gap(gap);
          t.padded().seed(++seed).run();
          t.c({n}).beta(2).run();
          t.c({m, n}).alpha(3).run();
          t.in_place().run();
        }
      }
    }
  }
}

TEST_P(Gemm, OutputThatIsC) {
  for (const double beta : {1.0, 0.0, 0.5}) {
    for (const bool columns : {false, true}) {
      tester().sizes(19, 23, 31).in_place().beta(beta).columns(columns).run();
      tester().sizes(19, 23, 31).in_place().beta(beta).columns(columns).gap(2).alpha(2).run();
    }
  }
}

TEST_P(Gemm, NanAndInfinitiesPropagate) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    tester().sizes(11, 19, 7).specials().seed(seed).run();
    tester().sizes(11, 19, 7).specials().seed(seed).c({11, 19}).alpha(0).beta(0.5).run();
    tester().sizes(11, 19, 7).specials().seed(seed).c({19}).beta(0).run();
    tester()
        .sizes(11, 19, 0)
        .specials()
        .seed(seed)
        .c({11, 1})
        .alpha(is_integer(GetParam()) ? 0.5 : INFINITY)
        .run();
    tester().sizes(11, 19, 12).specials().seed(seed).options({.kc = 5}).run();
  }
}

TEST_P(Gemm, BlocksOfAnySize) {
  for (const int64_t block : {1, 7, 16, 40}) {
    for (const bool c : {false, true}) {
      GemmTester t = tester()
                         .sizes(45, 50, 41)
                         .trans(true, false)
                         .options({.mc = block, .nc = block, .kc = block});
      if (c) t.c({45, 50}).beta(2);
      t.run();
    }
  }
  tester().sizes(45, 50, 41).options({.mc = 8, .nc = 1, .kc = 10}).run();
}

TEST_P(Gemm, DeepAndWideAndTall) {
  tester().sizes(5, 11, 9001).run();
  tester().sizes(5, 11, 9001).trans(true, true).c({11}).run();
  tester().sizes(3, 17001, 2).alpha(2).run();
  tester().sizes(9001, 3, 4).trans(true, false).c({3}).run();
  tester().sizes(130, 257, 300).c({130, 1}).alpha(-1).run();
}

// Up to 128 rows, times B with rows of up to 512 bytes, contiguous or with a small gap.
TEST_P(Gemm, ShortRowsOfB) {
  for (const int64_t rows : {16, 127, 128, 129}) {
    for (const int64_t cols : {8, 63, 64, 65, 128, 129}) tester().sizes(rows, cols, 70).run();
  }
  tester().sizes(40, 60, 3000).trans(true, false).c({60}).beta(2).run();
  tester().sizes(40, 60, 3000).gap(5).run();
}

// Prefetches operands that are larger than the caches.
TEST_P(Gemm, OperandsLargerThanCaches) {
  tester().sizes(9, 17, 70001).run();
  tester().sizes(17, 9, 70001).gap(3).trans(true, true).c({17, 1}).run();
  tester().sizes(9, 33, 40001).packed().run();
  tester().sizes(6, 700, 3100).packed().run();
  // GEMV: axpy kernels, and dot kernels for column-major B.
  tester().sizes(1, 526, 9000).packed().run();
  tester().sizes(1, 526, 900).gap(3).run();
  tester().sizes(1, 526, 9000).trans(false, true).run();
}

// GEMV and skinny GEMM with an even larger B, which kernels take to come from memory.
TEST_P(Gemm, SkinnyWithBOf18MiB) {
  const int64_t k = (int64_t{18} << 20) / 526 / static_cast<int64_t>(dtype_bytes(GetParam()));
  tester().sizes(1, 526, k).c({526}).beta(2).run();
  tester().sizes(1, 526, k).gap(3).run();
  tester().sizes(1, 526, k).packed().run();
  tester().sizes(1, 531, k).trans(false, true).c({531}).beta(2).run();
  tester().sizes(3, 531, k).trans(false, true).run();
}

TEST_P(Gemm, EveryOpsetAppliesAlphaBetaAndC) {
  for (const int64_t opset : {1, 2, 6, 7, 8, 9, 10, 11, 12, 13, 21}) {
    const int64_t version = opset == 8 ? 7 : opset == 10 ? 9 : opset == 12 ? 11 : opset;
    if (gemm_since(GetParam()) > version) continue;
    tester().sizes(6, 7, 5).opset(opset).c({6, 7}).alpha(2).beta(3).run();
    tester().sizes(6, 7, 5).opset(opset).in_place().beta(2).run();
    if (opset < 7) {
      for (const auto& shape : std::vector<std::vector<int64_t>>{{}, {7}, {6, 1}, {1, 7}, {6, 7}}) {
        tester().sizes(6, 7, 5).opset(opset, 1).c(shape).beta(2).run();
      }
      tester().sizes(6, 7, 5).opset(opset, 0).c({6, 7}).beta(2).run();
    } else {
      tester().sizes(6, 7, 5).opset(opset).c({6, 1}).beta(2).run();
    }
  }
}

TEST_P(Gemm, FactorsThatRoundToOthers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (is_integer(GetParam())) {
    // A fraction has no effect if its factor multiplies nothing.
    tester().sizes(3, 4, 5).alpha(1e9).beta(0.5).run();
    tester().sizes(3, 4, 0).c({4}).alpha(0.5).beta(1e9).run();
    return;
  }
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    tester()
        .sizes(3, 4, 5)
        .c({3, 4})
        .specials()
        .beta(1e-50)
        .seed(seed)
        .run();  // beta is 0 in float32: C is not read
  }
  tester().sizes(3, 4, 5).c({3, 4}).alpha(1 + 1e-12).run();
  tester().sizes(3, 4, 0).alpha(nan).run();
  tester().sizes(3, 4, 0).alpha(INFINITY).run();
  tester().sizes(3, 4, 0).c({4}).alpha(nan).beta(2).run();
}

TEST_P(Gemm, SquareOperandsThatAreTransposed) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true})
      tester().sizes(9, 9, 9).trans(trans_a, trans_b).gap(1).run();
  }
}

TEST_P(Gemm, IntegerFactorsAtTheEnds) {
  for (const double factor :
       {2147483648.0, -2147483649.0, 9007199254740992.0, -9007199254740992.0, 1e9 + 0.5, -0.999}) {
    tester().sizes(5, 6, 7).c({5, 6}).alpha(factor).run();
    tester().sizes(5, 6, 7).c({5, 6}).beta(factor).run();
    tester().sizes(5, 6, 0).c({5, 6}).alpha(0.5).beta(factor).run();
    tester().sizes(1, 1, 1).c({1}).alpha(0.5).beta(factor).run();
  }
}

TEST_P(Gemm, ExactFactorsOf64Bits) {
  if (!is_integer(GetParam()) || dtype_bytes(GetParam()) != 8) return;
  for (const uint64_t factor :
       {uint64_t{0}, uint64_t{1}, uint64_t{3}, ~uint64_t{0}, uint64_t{1} << 63,
        (uint64_t{1} << 53) + 1, uint64_t{0x123456789abcdef1}}) {
    tester().sizes(5, 6, 7).c({5, 6}).alpha(Factor::exact(factor)).run();
    tester().sizes(5, 6, 7).c({5, 6}).beta(Factor::exact(factor)).alpha(-3).run();
    tester().sizes(5, 6, 0).c({5, 6}).beta(Factor::exact(factor)).run();
  }
}

TEST_P(Gemm, LongColumnsOfYAndC) {
  tester().sizes(3, 600, 2).columns().gap(1).run();
  tester().sizes(3, 600, 2).columns().gap(1).c({600}).beta(2).run();
  tester().sizes(3, 600, 2).columns().c({600}).beta(2).run();  // C is contiguous, Y is not
  tester().sizes(3, 600, 2).columns().gap(1).in_place().run();
}

constexpr DType kTypes[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) DType::k##Enumerator,
#include "dtypes.def"
#undef WGEMM_DTYPE
};
// The bound of docs/operators/index.md: each product that underflows is off by up to half of the
// smallest number, and alpha magnifies that.
TEST(GemmOfSmallNumbers, ErrorsStayWithinTheBound) {
  constexpr int64_t kDepth = 500, kRows = 9;
  for (const int64_t n : {1, 3, 17}) {
    for (const double alpha : {1.0, 1e9}) {
      for (const Determinism determinism : {Determinism::kFast, Determinism::kStrict}) {
        std::mt19937_64 random(static_cast<uint64_t>(n));
        Array<float> a({kRows, kDepth}, 0, false), b({kDepth, n}, 0, false),
            y({kRows, n}, 0, false);
        for (auto* array : {&a, &b})
          for (size_t i = 0; i < array->length; ++i)
            array->data[i] = uniform<float>(random, 0, 1) * 0x1p-74F;
        GemmArgs args;
        args.A = a.tensor(DType::kFloat32);
        args.B = b.tensor(DType::kFloat32);
        args.Y = y.tensor<void>(DType::kFloat32);
        args.alpha = alpha;
        Context context(0, determinism);
        ASSERT_TRUE(gemm(context, args).ok());
        for (int64_t i = 0; i < kRows; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < kDepth; ++k)
              sum += static_cast<double>(a.data[a.place(i, k)]) *
                     static_cast<double>(b.data[b.place(k, j)]);
            const double exact = alpha * sum,
                         bound = (kDepth + 8) * (0x1p-24 * exact + 0x1p-149 * alpha);
            EXPECT_NEAR(static_cast<double>(y.data[y.place(i, j)]), exact, bound);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Gemm, ::testing::ValuesIn(kTypes),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

}  // namespace
}  // namespace wgemm::testing
