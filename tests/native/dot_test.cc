// Tests the kernels with relaxed 8-bit dot products. On every possible engine, the planner must
// take the right one, and its result must have the bits of the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/run.h"
#include "engine.h"
#include "ops/ops.h"
#include "plan/plan.h"
#include "plan/select_kernel.h"
#include "problem/prepacked.h"
#include "qgemm_tester.h"
#include "reference.h"

namespace wgemm::testing {
namespace {

// The rows of the table with this dot product, first that for GEMM.
std::vector<const Kernel*> kernels_by(Dot dot) {
  const KernelTable table = kernel_table();
  std::vector<const Kernel*> found;
  for (const Kernel* row = table.rows; row < table.rows + table.count; ++row)
    if (row->compute == DType::kInt8 && row->dot == dot) found.push_back(row);
  return found;
}

// The kernel that must be chosen for many rows on an engine with this dot product. B is packed, and
// its largest element minus its smallest is `range`.
const char* expected_kernel(Dot of_engine, int range) {
  Dot dot = of_engine;
  if (of_engine == Dot::kSigned && range > 254) dot = Dot::kSignedMasked;
  if (of_engine == Dot::kSevenBits && range > 127) dot = Dot::kNone;
  std::vector<const Kernel*> rows = kernels_by(dot);
  std::erase_if(rows, [](const Kernel* row) { return row->vectors == 32; });
  // Without dot products, narrow B has a kernel of its own, which comes first.
  return rows[dot == Dot::kNone ? 1 : 0]->name;
}

// The same for a plain B, whose range is not known.
const char* expected_kernel_of_plain_b(Dot of_engine) {
  const bool any_b = of_engine == Dot::kUnsigned || of_engine == Dot::kSigned;
  return expected_kernel(any_b ? of_engine : Dot::kNone, 255);
}

// The same for GEMV, for B whose elements as int8 are `low` or more. GEMV has no kernel for seven
// bits, and none that shifts B.
const char* expected_gemv_kernel(Dot of_engine, int range, int low) {
  if (of_engine == Dot::kUnsigned) return "i8_1x32c4__relaxed_dot_unsigned";
  if (of_engine != Dot::kSigned) return "i8_1x32c2__simd128";
  return range > 254 || low == -128 ? "i8_1x32c4__relaxed_dot_signed_masked"
                                    : "i8_1x32c4__relaxed_dot_signed";
}

class RelaxedDot : public ::testing::TestWithParam<Engine> {
 protected:
  const Simulated simulated_{GetParam()};
  const Dot dot_ = GetParam().dot;
};

TEST_P(RelaxedDot, IsFoundByTheProbe) {
  EXPECT_EQ(relaxed_dot(), dot_);
  EXPECT_EQ(relaxed_dot(), dot_) << "asked again";
#ifdef __EMSCRIPTEN__
  EXPECT_EQ(dot_ != Dot::kNone, WGEMM_RELAXED != 0);
#endif
}

constexpr DType kTypes[] = {DType::kInt8, DType::kUInt8};
constexpr Values kOperands[] = {Values::kLow,       Values::kHigh,      Values::kEnds,
                                Values::k128Values, Values::k129Values, Values::k255Values,
                                Values::k256Values};

// The largest 8-bit element minus the smallest.
int range_of(Values values) {
  switch (values) {
    case Values::k128Values:
      return 127;
    case Values::k129Values:
      return 128;
    case Values::k255Values:
      return 254;
    case Values::kEnds:
    case Values::k256Values:
      return 255;
    default:
      return 0;
  }
}

TEST_P(RelaxedDot, HasTheSameBitsForAllOperands) {
  uint32_t seed = 0, turn = 0;
  for (const DType a_type : kTypes) {
    for (const DType b_type : kTypes) {
      for (const Values a : kOperands) {
        for (const Values b : kOperands) {
          // Four of the 16 pairs of zero points, others for each pair of operands.
          constexpr Values kZeroPoints[] = {Values::kAbsent, Values::kLow, Values::kHigh,
                                            Values::kRandom};
          ++turn;
          for (uint32_t i = 0; i < 4; ++i) {
            QGemmTester t = QGemmTester()
                                .types(a_type, b_type)
                                .values(a, b)
                                .zero_points(kZeroPoints[i], kZeroPoints[(i + turn) % 4])
                                .seed(++seed)
                                .packed();
            t.extents(Extent::kOne, Extent::kColumns, Extent::kColumns)
                .by(expected_kernel(dot_, range_of(b)));
            t.sizes(25 + seed % 4, 29 + seed % 9, 37 + seed % 5);
            if (seed % 3 == 1) t.output(DType::kInt8).c({29 + seed % 9});
            if (seed % 3 == 2) t.output(DType::kUInt8);
            t.run();
            t.packed(false).by(expected_kernel_of_plain_b(dot_)).run();
          }
        }
      }
    }
  }
}

TEST_P(RelaxedDot, HasTheSameBitsForAllSizesAndBlocks) {
  uint32_t seed = 0, turn = 0;
  for (const Values b : {Values::k256Values, Values::k255Values, Values::k128Values}) {
    for (const DType a_type : kTypes) {
      for (const DType b_type : kTypes) {
        const auto tester = [&](int64_t m, int64_t n, int64_t k) {
          ++seed;
          QGemmTester t = QGemmTester()
                              .types(a_type, b_type)
                              .values(Values::kRandom, b)
                              .seed(seed)
                              .packed(seed % 5 != 0)
                              .sizes(m, n, k);
          return t.extents(Extent::kOne, Extent::kColumns, Extent::kColumns)
              .alpha(seed % 2 == 0 ? 1 : -0.37);
        };
        // Each size for one of the four pairs of types.
        ++turn;
        for (const int64_t m : {24, 25, 26, 27, 33}) {
          for (const int64_t n : {8, 9, 15, 16, 17}) {
            for (const int64_t k : {16, 17, 18, 19, 20, 64}) {
              if ((m + n + k + turn) % 4 != 0) continue;
              tester(m, n, k).trans(seed % 2 == 0, seed % 4 < 2).columns(seed % 3 == 0).run();
            }
          }
        }
        for (const int64_t k : {4097, 8195}) tester(26, 9, k).c({9}).output(DType::kInt8).run();
        tester(30, 17, 0).c({17}).run();
        for (const int64_t block : {1, 7, 16}) {
          tester(45, 50, 41).options({.mc = block, .nc = block, .kc = block}).run();
          tester(45, 50, 43)
              .options({.mc = 0, .nc = block, .kc = block})
              .c({45, 50})
              .output(DType::kUInt8)
              .run();
        }
        tester(600, 33, 300).columns().gap(3).run();
        tester(40, 33, 300).out_of_core({.limit = 40'000, .operands = 15}).run();
      }
    }
  }
}

TEST_P(RelaxedDot, HasTheSameBitsInGemv) {
  struct OfB {
    Values values;
    int range, low;
  };
  constexpr OfB kOfB[] = {{Values::kLow, 0, -128},
                          {Values::kHigh, 0, 127},
                          {Values::kEnds, 255, -128},
                          {Values::kSymmetric, 254, -127},
                          {Values::k256Values, 255, -128}};
  uint32_t seed = 0;
  for (const DType a_type : kTypes) {
    for (const DType b_type : kTypes) {
      for (const Values a : kOperands) {
        for (const OfB& b : kOfB) {
          for (const auto& [n, k] :
               {std::pair<int64_t, int64_t>{24, 256}, {41, 259}, {77, 65}, {133, 78}}) {
            QGemmTester t = QGemmTester()
                                .types(a_type, b_type)
                                .values(a, b.values)
                                .seed(++seed)
                                .packed()
                                .sizes(1, n, k)
                                .extents(Extent::kOne, Extent::kColumns, Extent::kColumns)
                                .by(expected_gemv_kernel(dot_, b.range, b.low));
            t.zero_points(seed % 3 == 0 ? Values::kAbsent : Values::kRandom,
                          seed % 2 == 0 ? Values::kAbsent : Values::kRandom);
            QGemmTester(t).run();
            t.options({.kc = 24}).c({n}).output(DType::kInt8).run();
          }
        }
      }
    }
  }
}

// 255 * 255 * 35,001 is more than an int32 holds.
TEST_P(RelaxedDot, Wraps) {
  for (const DType a_type : kTypes) {
    for (const DType b_type : kTypes) {
      for (const Values a : {Values::kLow, Values::kHigh}) {
        for (const Values b : {Values::kLow, Values::kHigh, Values::kEnds}) {
          QGemmTester t =
              QGemmTester().types(a_type, b_type).values(a, b).sizes(25, 2, 35001).packed();
          t.zero_points(a == Values::kLow ? Values::kHigh : Values::kLow,
                        b == Values::kLow ? Values::kHigh : Values::kLow)
              .run();
        }
      }
    }
  }
}

// A product of `m` rows by a packed B of two values: as int8, `high` in one place and `low`
// everywhere else.
struct TwoValues {
  int64_t m;
  int low, high;
  int64_t n, k, row, col;
  DType type;

  std::string kernel() const {
    const int offset = int8_offset(type);
    std::vector<uint8_t> b(static_cast<size_t>(n * k), static_cast<uint8_t>(low + offset));
    b[static_cast<size_t>(row * n + col)] = static_cast<uint8_t>(high + offset);
    const int64_t a_dims[] = {m, k}, b_dims[] = {k, n};
    Context context;
    PackedWeights weights;
    EXPECT_TRUE(
        pack(context, {.op = PackFor::kQGemm, .B = {b.data(), type, b_dims}}, &weights).ok());
    const float one = 1;
    QGemmArgs args;
    args.A.dims = a_dims;
    args.A.dtype = DType::kUInt8;
    args.packed_B = &weights;
    args.a_scale = args.b_scale = {&one, DType::kFloat32};
    Explanation plan;
    EXPECT_TRUE(explain(context, args, &plan).ok());
    return plan.kernel;
  }
};

TEST_P(RelaxedDot, SeesTheRangeOfBInAnyPlace) {
  for (const DType type : kTypes) {
    for (const auto& [n, k] :
         {std::pair<int64_t, int64_t>{8, 4}, {9, 5}, {16, 3}, {7, 6}, {1, 1}, {17, 2}}) {
      for (const int64_t row : {int64_t{0}, k - 1}) {
        for (const int64_t col : {int64_t{0}, n - 1}) {
          if (n * k == 1) continue;
          for (const int range : {127, 128, 254, 255}) {
            for (const int low : {-128, -127, -64, -1, 0}) {
              if (low + range > 127) continue;
              const int high = low + range;
              const char* const expected = expected_kernel(dot_, range);
              EXPECT_EQ((TwoValues{25, low, high, n, k, row, col, type}).kernel(), expected)
                  << low << " to " << high << " in " << k << " x " << n;
              EXPECT_EQ((TwoValues{25, high, low, n, k, row, col, type}).kernel(), expected)
                  << low << " to " << high << " in " << k << " x " << n;
              EXPECT_EQ((TwoValues{1, high, low, n, k, row, col, type}).kernel(),
                        expected_gemv_kernel(dot_, range, low))
                  << low << " to " << high << " in " << k << " x " << n;
            }
          }
          // Panels are padded with 0, which does not count.
          EXPECT_EQ((TwoValues{25, -128, -128, n, k, row, col, type}).kernel(),
                    expected_kernel(dot_, 0));
        }
      }
    }
  }
}

TEST_P(RelaxedDot, TakesPlainBOfAnyRange) {
  uint32_t seed = 0;
  for (const Values b : kOperands) {
    for (const bool trans : {false, true}) {
      for (const int64_t m : {5, 30}) {
        for (const int64_t n : {7, 20, 33, 70}) {
          ++seed;
          const QGemmTester t = QGemmTester()
                                    .values(Values::kRandom, b)
                                    .types(kTypes[seed % 2], kTypes[seed / 2 % 2])
                                    .zero_points(Values::kRandom, Values::kRandom)
                                    .trans(seed % 3 == 0, trans)
                                    .seed(seed)
                                    .sizes(m, n, 40 + seed % 7);
          QGemmTester(t)
              .by(m < 24 && (dot_ == Dot::kNone || dot_ == Dot::kSevenBits)
                      ? "i8_4x8c2__simd128"
                      : expected_kernel_of_plain_b(dot_))
              .run();
          QGemmTester(t).options({.mc = 8, .nc = 16, .kc = 12}).c({n}).run();
          QGemmTester(t).out_of_core({.limit = 20'000, .operands = 15}).run();
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, RelaxedDot, ::testing::ValuesIn(engines()),
                         [](const auto& test) { return std::string(test.param.name); });

// Whether a kernel computes the right sums if all of A is `a_value`, and a column of B `b_value`.
bool is_right(const Kernel& kernel, int a_value, int b_value) {
  constexpr int64_t kM = 4, kN = 8, kK = 8;
  const std::vector<int8_t> a(kM * kK, static_cast<int8_t>(a_value));
  std::vector<int8_t> b(kK * kN, static_cast<int8_t>(b_value));
  b[0] = -128, b[2] = 127;  // in columns that are not checked, so that B has 8 bits
  const int64_t a_dims[] = {kM, kK}, b_dims[] = {kK, kN}, y_dims[] = {kM, kN};
  std::vector<float> y(kM * kN);
  const float one = 1;
  Context context;
  PackedWeights weights;
  EXPECT_TRUE(
      pack(context, {.op = PackFor::kQGemm, .B = {b.data(), DType::kInt8, b_dims}}, &weights).ok());
  QGemmArgs args;
  args.A = {a.data(), DType::kInt8, a_dims};
  args.B = {b.data(), DType::kInt8, b_dims};
  args.a_scale = args.b_scale = {&one, DType::kFloat32};
  args.Y = {y.data(), DType::kFloat32, y_dims};
  const auto expected = reference_qgemm<float>(args, 1, 1);
  args.B = {};
  args.packed_B = &weights;
  MatMulProblem made;
  EXPECT_TRUE(quantized_problem(args, true, &made).ok());
  const Problem& problem = made.problem;
  const bool any_b = kernel.dot == Dot::kUnsigned || kernel.dot == Dot::kSignedMasked;
  EXPECT_EQ(can_run(kernel, problem), any_b && has_dot(kernel.dot));
  EXPECT_TRUE(run(context, "qgemm", problem, {.kernel = &kernel}).ok());
  return y[kN + 1] == expected;
}

// Shows that the tests above can fail. For B of 256 values, only two kernels are right: the masked
// kernel of the engine's reading, and the unsigned kernel, which falls back to it.
TEST(RelaxedDotElsewhere, IsWrong) {
  for (const Engine& engine : engines()) {
    if (engine.dot == Dot::kNone) continue;
    const Simulated simulated(engine);
    for (const Dot dot : {Dot::kSevenBits, Dot::kUnsigned, Dot::kSigned, Dot::kSignedMasked}) {
      for (const Kernel* kernel : kernels_by(dot)) {
        bool right = true;
        for (const int a : {-128, -1, 127}) {
          for (const int b : {-128, -1, 127}) right = is_right(*kernel, a, b) && right;
        }
        const Dot of_reading = engine.dot == Dot::kSigned ? Dot::kSignedMasked : Dot::kUnsigned;
        EXPECT_EQ(right, dot == of_reading) << kernel->name << " on " << engine.name;
      }
    }
  }
}

#ifndef __EMSCRIPTEN__

// An engine replaces the code of a kernel between two calls, and pairs then overflow differently.
KernelFunction tiering_up;
void in_the_next_tier(const Strip& strip) {
  simulated_dot.pairs = static_cast<SimulatedDot::Pairs>((simulated_dot.pairs + 1) % 3);
  tiering_up(strip);
}

void check_tiers(Kernel kernel) {
  tiering_up = std::exchange(kernel.run, in_the_next_tier);
  const Dot dot = kernel.dot;
  const bool shifts = kernel.b != kI8StorageLayout;
  const Values any = dot == Dot::kSevenBits ? Values::k128Values
                     : dot != Dot::kSigned  ? Values::k256Values
                     : shifts               ? Values::k255Values
                                            : Values::kSymmetric;
  const Values end = dot != Dot::kSevenBits && dot != Dot::kSigned ? Values::kEnds
                     : shifts                                      ? Values::kLow
                                                                   : Values::kHigh;
  for (const bool is_signed : {false, true}) {
    if (dot != Dot::kSevenBits && is_signed == (dot == Dot::kUnsigned)) continue;
    const Simulated simulated({"Tiers", dot, {true, is_signed, SimulatedDot::kExact}});
    for (const DType a : kTypes) {
      for (const DType b : kTypes) {
        for (const Values a_values : {Values::kLow, Values::kHigh, Values::k256Values}) {
          const QGemmTester t = QGemmTester().types(a, b).sizes(25, 29, 66).packed();
          QGemmTester(t).options({.kernel = &kernel}).values(a_values, any).run();
          if (any == Values::k256Values && shifts)
            QGemmTester(t).options({.kernel = &kernel}).values(a_values, any).packed(false).run();
          QGemmTester(t).options({.kernel = &kernel}).values(a_values, end).run();
        }
      }
    }
  }
}

TEST(RelaxedDotTiers, ChangeNoResultFromCallToCall) {
  for (const Dot dot : {Dot::kSevenBits, Dot::kUnsigned, Dot::kSigned, Dot::kSignedMasked})
    for (const Kernel* kernel : kernels_by(dot)) check_tiers(*kernel);
}

#endif

}  // namespace
}  // namespace wgemm::testing
