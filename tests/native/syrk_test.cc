// syrk(): the bits of gemm() with B = A, in both triangles; and products of one triangle, which
// cblas.h computes, by every kernel.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "api/run.h"
#include "array.h"
#include "base/types.h"
#include "kernels/kernel.h"
#include "ops/ops.h"
#include "ops/tensor_check.h"
#include "plan/select_kernel.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
namespace {

template <typename T>
constexpr DType kType = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;

struct Case {
  int64_t n, k;
  bool trans = false, columns = false, y_columns = false, specials = false;
  int64_t gap = 0;
  double alpha = 1;
};

// Different NaN are equal: a processor may return either operand's.
template <typename T>
::testing::AssertionResult equals(T found, T expected) {
  if (std::memcmp(&found, &expected, sizeof(T)) == 0 || (std::isnan(found) && std::isnan(expected)))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << found << " instead of " << expected;
}

// A and two results for a case.
template <typename T>
struct Setup {
  const Case& c;
  Array<T> a, y, expected;

  explicit Setup(const Case& from)
      : c(from),
        a(c.trans ? std::vector{c.k, c.n} : std::vector{c.n, c.k}, c.gap, c.columns),
        y({c.n, c.n}, c.gap, c.y_columns),
        expected({c.n, c.n}, c.gap, c.y_columns) {
    std::mt19937_64 random(static_cast<uint64_t>(c.n * 131 + c.k));
    pad(random, a);
    fill(a, random, c.specials);
    fill(y, random);
    for (size_t i = 0; i < y.length; ++i) expected.data[i] = y.data[i];
  }

  GemmArgs gemm_args() const {
    GemmArgs args;
    args.A = args.B = a.tensor(kType<T>);
    args.transA = c.trans ? 1 : 0;
    args.transB = c.trans ? 0 : 1;
    args.alpha = c.alpha;
    args.Y = expected.template tensor<void>(kType<T>);
    return args;
  }
  SyrkArgs args() const {
    return {.A = a.tensor(kType<T>),
            .Y = y.template tensor<void>(kType<T>),
            .alpha = c.alpha,
            .transA = c.trans ? 1 : 0};
  }
  // Compares Y with the lower triangle that gemm() wrote and with its mirror image, and all
  // elements around Y with what they were.
  void expect_equal() {
    for (int64_t i = 0; i < c.n; ++i) {
      for (int64_t j = 0; j < i; ++j)
        expected.data[expected.place(j, i)] = expected.data[expected.place(i, j)];
    }
    for (size_t i = 0; i < y.length; ++i)
      ASSERT_TRUE(equals(y.data[i], expected.data[i])) << "at place " << i;
  }
};

std::string describe(const Case& c) {
  return "n " + std::to_string(c.n) + ", k " + std::to_string(c.k) + (c.trans ? ", trans" : "") +
         (c.columns ? ", columns" : "") + (c.y_columns ? ", columns of Y" : "") + ", gap " +
         std::to_string(c.gap) + ", alpha " + std::to_string(c.alpha);
}

template <typename T>
void check(Context& context, const Case& c, const PlanOptions& options = {}) {
  SCOPED_TRACE(describe(c));
  Setup<T> setup(c);
  Problem whole, problem;
  ASSERT_TRUE(gemm_problem(setup.gemm_args(), true, &whole).ok());
  const Status status = syrk_problem(setup.args(), true, &problem);
  ASSERT_TRUE(status.ok()) << status.message;
  ASSERT_TRUE(run(context, "gemm", whole, fitting(test_options(options), whole)).ok());
  ASSERT_TRUE(run(context, "syrk", problem, fitting(test_options(options), problem)).ok());
  setup.expect_equal();
}

template <typename T>
class Syrk : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
struct Names {
  template <typename T>
  static std::string GetName(int) {
    return dtype_name(kType<T>);
  }
};
TYPED_TEST_SUITE(Syrk, Types, Names);

TYPED_TEST(Syrk, HasTheBitsOfGemm) {
  for (int64_t n = 0; n <= 40; ++n) {
    for (const int64_t k : {0, 1, 2, 3, 8, 19}) {
      for (int form = 0; form < 8; ++form) {
        check<TypeParam>(test_context(), {.n = n,
                                          .k = k,
                                          .trans = form % 2 != 0,
                                          .columns = form / 2 % 2 != 0,
                                          .y_columns = form / 4 != 0,
                                          .specials = n % 3 == 0,
                                          .gap = n % 4 == 1 ? 3 : 0,
                                          .alpha = k % 2 == 0 ? 1 : -0.3});
      }
    }
  }
}

TYPED_TEST(Syrk, LargeMatrices) {
  for (const Case& c : {Case{300, 70}, Case{129, 1000, true}, Case{513, 33, true, true},
                        Case{260, 300, false, true, true}, Case{200, 17, false, false, true}}) {
    check<TypeParam>(test_context(), c);
    check<TypeParam>(test_context(), c, {.tasks = 7});
  }
}

TYPED_TEST(Syrk, PartsOfK) {
  check<TypeParam>(test_context(), {.n = 5, .k = 300000});
  check<TypeParam>(test_context(), {.n = 40, .k = 20000, .trans = true, .alpha = 2});
}

TYPED_TEST(Syrk, EveryKernelAndBlock) {
  const KernelTable table = kernel_table();
  for (int index = 0; index < table.count; ++index) {
    const Kernel& kernel = table.rows[index];
    if (kernel.compute != kType<TypeParam>) continue;
    SCOPED_TRACE(kernel.name);
    for (const PlanOptions& options :
         {PlanOptions{.kernel = &kernel},
          PlanOptions{.kernel = &kernel, .mc = 8, .nc = 16, .kc = 5},
          PlanOptions{.kernel = &kernel, .mc = 24, .nc = 32, .kc = 40, .tasks = 6}}) {
      for (const int64_t n : {3, 16, 37, 90}) {
        for (int form = 0; form < 4; ++form) {
          check<TypeParam>(test_context(),
                           {.n = n,
                            .k = 21,
                            .trans = form % 2 != 0,
                            .columns = form / 2 != 0,
                            .specials = !kernel.finite && n == 37},
                           options);
        }
      }
    }
  }
}

// As in cblas.h: with C, and with either triangle. No element outside the triangle is written.
TYPED_TEST(Syrk, WritesOneTriangle) {
  using T = TypeParam;
  const KernelTable table = kernel_table();
  for (int index = -1; index < table.count; ++index) {
    const Kernel* const kernel = index < 0 ? nullptr : &table.rows[index];
    if (kernel != nullptr && kernel->compute != kType<T>) continue;
    SCOPED_TRACE(kernel == nullptr ? "chosen" : kernel->name);
    for (const int64_t n : {1, 2, 5, 17, 64, 101}) {
      for (int form = 0; form < 16; ++form) {
        const Case c = {.n = n,
                        .k = n % 2 == 0 ? 0 : 30,
                        .trans = form % 2 != 0,
                        .y_columns = form / 2 % 2 != 0,
                        .gap = 2,
                        .alpha = form / 8 != 0 ? 1 : 0.7};
        SCOPED_TRACE(describe(c));
        Setup<T> setup(c);
        Problem whole, problem;
        GemmArgs args = setup.gemm_args();
        const ConstTensor old = setup.y.tensor(kType<T>);
        args.C = form / 8 != 0 ? nullptr : &old;
        args.beta = 0.5;
        ASSERT_TRUE(gemm_problem(args, true, &whole).ok());
        problem = whole;
        problem.y = output_operand(setup.y.template tensor<void>(kType<T>));
        problem.triangle = form / 4 % 2 != 0 ? Triangle::kLower : Triangle::kUpper;
        const bool is_lower = problem.triangle == Triangle::kLower;
        PlanOptions options{.kernel = kernel};
        if (form % 3 == 0) options.mc = 12, options.nc = 16, options.kc = 7, options.tasks = 4;
        ASSERT_TRUE(run(test_context(), "gemm", whole, fitting(test_options(options), whole)).ok());
        const std::vector<T> before = setup.y.values();
        ASSERT_TRUE(
            run(test_context(), "syrk", problem, fitting(test_options(options), problem)).ok());
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const size_t place = setup.y.place(i, j);
            const bool is_written = is_lower ? j <= i : j >= i;
            ASSERT_TRUE(equals(setup.y.data[place],
                               is_written ? setup.expected.data[place] : before[place]))
                << "at " << i << ", " << j;
          }
        }
      }
    }
  }
}

TYPED_TEST(Syrk, IsStrict) {
  Context context(0, Determinism::kStrict);
  for (const Case& c : {Case{70, 300}, Case{33, 20, true, false, true}, Case{6, 100000}})
    check<TypeParam>(context, c);
}

TYPED_TEST(Syrk, IsPreparedAndExplained) {
  Context context;
  const Case c = {.n = 50, .k = 20};
  Setup<TypeParam> setup(c);
  PreparedCall call;
  ASSERT_TRUE(prepare(context, setup.args(), &call).ok());
  for (int round = 0; round < 2; ++round) {
    setup.a.data[static_cast<size_t>(setup.a.offset)] += 1;
    ASSERT_TRUE(run(call).ok());
    ASSERT_TRUE(gemm(context, setup.gemm_args()).ok());
    setup.expect_equal();
  }
  SyrkArgs args = setup.args();
  args.Y = {};
  Explanation explanation;
  ASSERT_TRUE(explain(context, args, &explanation).ok());
  EXPECT_EQ(explanation.m, 50);
  EXPECT_EQ(explanation.n, 50);
  EXPECT_EQ(explanation.k, 20);
  int64_t dims[2];
  ASSERT_TRUE(syrk_shape(args, dims).ok());
  EXPECT_EQ(dims[0], 50);
  EXPECT_EQ(dims[1], 50);
}

// A valid call, A (4, 3). Each test makes one thing invalid.
struct Call {
  std::vector<int64_t> a_dims{4, 3}, y_dims{4, 4}, y_strides;
  std::vector<float> memory = std::vector<float>(64, 1.0F);
  SyrkArgs args;
  OutOfCore out_of_core{};

  Call() {
    args.A = {memory.data(), DType::kFloat32};
    args.Y = {memory.data() + 32, DType::kFloat32};
  }
  Status run() {
    args.A.dims = a_dims;
    args.Y.dims = y_dims;
    args.Y.strides = y_strides;
    Context context;
    return syrk(context, args);
  }
};

struct ErrorCase {
  const char* name;
  void (*spoil)(Call&);
  Code code;
  const char *argument, *text;
};

constexpr ErrorCase kErrors[] = {
    {"Rank", [](Call& c) { c.a_dims = {12}; }, Code::kShape, "A",
     "syrk: A has shape [12] of rank 1; it must have rank 2"},
    {"Type", [](Call& c) { c.args.A.dtype = DType::kInt32; }, Code::kDType, "A",
     "syrk: A has type int32; it must be float32 or float64"},
    {"TypeOfY", [](Call& c) { c.args.Y.dtype = DType::kFloat64; }, Code::kDType, "Y",
     "syrk: Y has type float64 and A has type float32; they must be the same"},
    {"NoA", [](Call& c) { c.args.A.data = nullptr; }, Code::kArgument, "A", "syrk: A has"},
    {"NoY", [](Call& c) { c.args.Y.data = nullptr; }, Code::kArgument, "Y", "syrk: Y has"},
    {"ShapeOfY", [](Call& c) { c.args.transA = 1; }, Code::kShape, "Y", "syrk: Y has shape [4, 4]"},
    {"Overlap", [](Call& c) { c.args.Y.data = c.memory.data() + 8; }, Code::kArgument, "Y",
     "syrk: Y overlaps A"},
    {"RowsOfYOverlap", [](Call& c) { c.y_strides = {2, 1}; }, Code::kShape, "Y",
     "syrk: Y has strides [2, 1]"},
    {"OutOfCoreA", [](Call& c) { c.args.A.out_of_core = &c.out_of_core; }, Code::kArgument, "A",
     "syrk: A is out-of-core; it must be in memory"},
    {"OutOfCoreY", [](Call& c) { c.args.Y.out_of_core = &c.out_of_core; }, Code::kArgument, "Y",
     "syrk: Y is out-of-core; it must be in memory"},
};

TEST(SyrkErrors, EachIsReported) {
  for (const ErrorCase& c : kErrors) {
    SCOPED_TRACE(c.name);
    Call call;
    EXPECT_TRUE(call.run().ok());
    call.memory.assign(64, 1.0F);
    c.spoil(call);
    const std::vector<float> before = call.memory;
    const Status status = call.run();
    EXPECT_EQ(static_cast<int>(status.code), static_cast<int>(c.code)) << status.message;
    EXPECT_EQ(std::string(status.argument), c.argument) << status.message;
    EXPECT_NE(std::string(status.message).find(c.text), std::string::npos) << status.message;
    EXPECT_EQ(call.memory, before);
  }
}

TEST(SyrkErrors, ResultTooLarge) {
  const int64_t dims[2] = {int64_t{1} << 27, 0};
  int64_t found[2];
  const Status status = syrk_shape({.A = {nullptr, DType::kFloat32, dims}, .Y = {}}, found);
  EXPECT_EQ(static_cast<int>(status.code), static_cast<int>(Code::kShape)) << status.message;
}

}  // namespace
}  // namespace wgemm::testing
