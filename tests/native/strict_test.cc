// Determinism::kStrict: the same bits as the plain loop for every kernel, blocking, layout and
// packing; and every NaN is the canonical one.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "api/run.h"
#include "array.h"
#include "base/convert.h"
#include "base/types.h"
#include "kernels/kernel.h"
#include "ops/ops.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
namespace {

template <typename T>
struct Product {
  int64_t m, n, k;
  bool trans_a, trans_b, has_c;
  DType type;
  Array<T> a, b, c;
  double alpha = 1, beta = 1;

  Product(int64_t rows, int64_t cols, int64_t depth, DType dtype, uint32_t seed, bool specials)
      : m(rows),
        n(cols),
        k(depth),
        trans_a(seed % 2 != 0),
        trans_b(seed / 2 % 2 != 0),
        has_c(seed / 4 % 2 != 0),
        type(dtype),
        a(trans_a ? std::vector{k, m} : std::vector{m, k}, 0, false),
        b(trans_b ? std::vector{n, k} : std::vector{k, n}, 0, false),
        c({n}, 0, false) {
    std::mt19937_64 random(seed);
    fill(a, random, specials);
    fill(b, random, specials);
    fill(c, random, specials);
    if (seed % 3 == 0) alpha = 0.3, beta = -1.7;
  }

  // The definition: ascending k, one accumulator, every step rounded.
  std::vector<T> reference() const {
    using Compute = std::conditional_t<sizeof(T) == 8, double, float>;
    const auto factor = static_cast<Compute>(alpha), share = static_cast<Compute>(beta);
    std::vector<T> y(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        volatile Compute sum = 0;  // volatile: prevents a fused multiply-add
        for (int64_t p = 0; p < k; ++p) {
          const auto x = convert<Compute>(a.data[trans_a ? a.place(p, i) : a.place(i, p)]);
          const auto w = convert<Compute>(b.data[trans_b ? b.place(j, p) : b.place(p, j)]);
          volatile Compute product = x * w;
          sum = sum + product;
        }
        volatile Compute scaled = factor * sum;
        if (has_c) {
          volatile Compute added = share * convert<Compute>(c.data[static_cast<size_t>(j)]);
          scaled = scaled + added;
        }
        Compute result = scaled;
        if (result != result) result = std::numeric_limits<Compute>::quiet_NaN();
        y[static_cast<size_t>(i * n + j)] = rounded_to(result);
      }
    }
    return y;
  }
  static T rounded_to(auto value) {
    if constexpr (kIsHalf<T>) {
      return narrow_to(value, T{});
    } else {
      return value;
    }
  }

  // Runs gemm(), or the given plan.
  std::vector<T> compute(Context& context, const PlanOptions& options = {},
                         bool packed = false) const {
    Array<T> y({m, n}, 0, false);
    const ConstTensor bias = c.tensor(type);
    GemmArgs args;
    args.A = a.tensor(type);
    args.B = b.tensor(type);
    if (has_c) args.C = &bias;
    args.Y = y.template tensor<void>(type);
    args.alpha = alpha;
    args.beta = beta;
    args.transA = trans_a;
    args.transB = trans_b;
    PackedWeights weights;
    if (packed) {
      EXPECT_TRUE(pack(context, {.B = args.B, .trans = trans_b}, &weights).ok());
      args.packed_B = &weights;
      args.transB = 0;
    }
    Problem problem;
    EXPECT_TRUE(gemm_problem(args, true, &problem).ok());
    EXPECT_TRUE(run(context, "gemm", problem, fitting(options, problem)).ok());
    return y.values();
  }
};

template <typename T>
::testing::AssertionResult same_bits(const std::vector<T>& found, const std::vector<T>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::memcmp(&found[i], &wanted[i], sizeof(T)) != 0) {
      return ::testing::AssertionFailure()
             << "element " << i << ": " << convert<double>(found[i]) << " instead of "
             << convert<double>(wanted[i]) << ", or another NaN";
    }
  }
  return ::testing::AssertionSuccess();
}

class Strict : public ::testing::TestWithParam<DType> {
 protected:
  template <typename Body>
  void for_type(const Body& body) {
    switch (GetParam()) {
      case DType::kFloat32:
        return body(float{});
      case DType::kFloat64:
        return body(double{});
      case DType::kFloat16:
        return body(Float16{});
      default:
        return body(BFloat16{});
    }
  }
};

TEST_P(Strict, ReturnsTheBitsOfThePlainLoop) {
  for_type([](auto zero) {
    using T = decltype(zero);
    Context context(0, Determinism::kStrict);
    uint32_t seed = 0;
    for (const bool specials : {false, true}) {
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                    {1, 40, 33},
                                    {2, 17, 64},
                                    {5, 9, 3},
                                    {4, 8, 100},
                                    {13, 31, 257},
                                    {40, 24, 50}}) {
        for (int variant = 0; variant < 12; ++variant) {
          const Product<T> product(m, n, k, GetParam(), ++seed, specials);
          const std::vector<T> wanted = product.reference();
          EXPECT_TRUE(same_bits(product.compute(context), wanted))
              << m << "x" << n << "x" << k << ", seed " << seed;
          EXPECT_TRUE(same_bits(product.compute(context, {}, true), wanted))
              << "packed, seed " << seed;
        }
      }
    }
  });
}

TEST_P(Strict, ReturnsThemWithEveryKernelAndBlocking) {
  for_type([](auto zero) {
    using T = decltype(zero);
    Context context(0, Determinism::kStrict);
    const Product<T> product(11, 37, 70, GetParam(), 7, true);
    const std::vector<T> wanted = product.reference();
    const KernelTable table = kernel_table();
    int tried = 0;
    for (int i = 0; i < table.count; ++i) {
      const Kernel& kernel = table.rows[i];
      if (kernel.compute != compute_type(GetParam()) || !kernel.strict ||
          kernel.codes != ReadsCodes::kNo)
        continue;
      for (const int64_t kc : {0, 1, 16, 33}) {
        for (const int64_t nc : {0, 8}) {
          EXPECT_TRUE(same_bits(
              product.compute(context, {.kernel = &kernel, .mc = nc, .nc = nc, .kc = kc}), wanted))
              << kernel.name;
          ++tried;
        }
      }
    }
    EXPECT_GE(tried, 16);
  });
}

TEST_P(Strict, SplitsALongKInTheSameOrder) {
  for_type([](auto zero) {
    using T = decltype(zero);
    Context context(0, Determinism::kStrict);
    const Product<T> product(3, 10, 9000, GetParam(), 4, false);
    EXPECT_TRUE(same_bits(product.compute(context), product.reference()));
  });
}

TEST_P(Strict, MatMulReturnsThemWithItsAlpha) {
  for_type([](auto zero) {
    using T = decltype(zero);
    Context context(0, Determinism::kStrict);
    for (uint32_t seed = 1; seed <= 12; ++seed) {
      Product<T> product(9, 20, 70, GetParam(), seed, seed % 2 == 0);
      product.alpha = 0.3;
      product.beta = 1;
      Array<T> y({product.m, product.n}, 0, false);
      const ConstTensor bias = product.c.tensor(GetParam());
      MatMulArgs args;
      args.src = product.a.tensor(GetParam());
      args.weights = product.b.tensor(GetParam());
      if (product.has_c) args.bias = &bias;
      args.dst = y.template tensor<void>(GetParam());
      args.alpha = product.alpha;
      args.transpose_a = product.trans_a;
      args.transpose_b = product.trans_b;
      ASSERT_TRUE(matmul(context, args).ok());
      EXPECT_TRUE(same_bits(y.values(), product.reference())) << "seed " << seed;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, Strict,
                         ::testing::Values(DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                           DType::kBFloat16),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

// A NaN that comes from C, or from a call without a product.
TEST(StrictNan, IsCanonicalWhereverItComesFrom) {
  const uint32_t odd[] = {0xffc12345U, 0x7fc00001U, 0xff800001U};
  for (const uint32_t bits : odd) {
    const float nan = std::bit_cast<float>(bits), one = 1;
    const int64_t dims[] = {1, 1}, none[] = {1, 0}, zero[] = {0, 1};
    const ConstTensor c{.data = &nan, .dims = dims};
    uint32_t y = 0;
    Context context(0, Determinism::kStrict);
    GemmArgs args;
    args.C = &c;
    args.Y = {.data = &y, .dims = dims};
    args.A = {.data = &one, .dims = dims};
    args.B = {.data = &one, .dims = dims};
    ASSERT_TRUE(gemm(context, args).ok());
    EXPECT_EQ(y, 0x7fc00000U);
    args.A.dims = none;
    args.B.dims = zero;
    ASSERT_TRUE(gemm(context, args).ok());
    EXPECT_EQ(y, 0x7fc00000U);
  }
}

TEST(StrictPlan, HasNoKernelThatMayFuse) {
  const KernelTable table = kernel_table();
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t m : {1, 2, 5, 100}) {
      const int64_t a[] = {m, 30}, b[] = {30, 20};
      GemmArgs args;
      args.A.dims = a;
      args.B.dims = b;
      args.A.dtype = args.B.dtype = type;
      Explanation plan;
      ASSERT_TRUE(explain(Context(0, Determinism::kStrict), args, &plan).ok());
      const Kernel* kernel =
          std::find_if(table.rows, table.rows + table.count,
                       [&](const Kernel& row) { return row.name == plan.kernel; });
      ASSERT_NE(kernel, table.rows + table.count);
      EXPECT_TRUE(kernel->strict && kernel->isa != Isa::kRelaxed) << kernel->name;
      EXPECT_FALSE(plan.direct);
    }
  }
}

}  // namespace
}  // namespace wgemm::testing
