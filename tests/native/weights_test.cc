// Packed weights of every type of Gemm. Products with them have the same bits as products without,
// by every kernel. Other tests show which operands they must not replace.
#include "pack/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "api/run.h"
#include "array.h"
#include "base/convert.h"
#include "base/types.h"
#include "ops/ops.h"
#include "pack/pack.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
namespace {

using Sizes = std::vector<int64_t>;

constexpr DType kTypes[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) DType::k##Enumerator,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

// Calls `work` with an element of `type`.
template <typename Work>
void with_type(DType type, const Work& work) {
  switch (type) {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  case DType::k##Enumerator:                                        \
    return work(Storage{});
#include "dtypes.def"
#undef WGEMM_DTYPE
    default:
      ADD_FAILURE();
  }
}

// The kernels of the table for the compute type of `type`, with packed weights or not.
std::vector<const Kernel*> kernels_of(DType type) {
  std::vector<const Kernel*> kernels;
  const KernelTable table = kernel_table();
  for (int i = 0; i < table.count; ++i) {
    const Kernel& kernel = table.rows[i];
    const bool takes_any_b = kernel.b_layout == BLayout::kPanels &&
                             kernel.b_type == kernel.compute && kernel.codes == ReadsCodes::kNo;
    if (kernel.compute == compute_type(type) && takes_any_b) kernels.push_back(&kernel);
  }
  return kernels;
}

std::string name_of(const ::testing::TestParamInfo<DType>& test) { return dtype_name(test.param); }

PackedWeights packed(Context& context, const ConstTensor& b, bool trans = false) {
  PackedWeights weights;
  const Status status = pack(context, {.B = b, .trans = trans}, &weights);
  EXPECT_TRUE(status.ok()) << status.message;
  return weights;
}

// The same bits
// -------------------------------------------------------------------------------------------------

struct Product {
  Sizes src{}, weights{}, dst{};  // shapes before a transpose
  bool trans_a = false, trans_b = false;
  int64_t gap = 0;       // unused elements after each row
  bool columns = false;  // matrices are column-major
  double alpha = 1;      // this and the following: only for gemm()
  bool has_c = false;
};

// Runs matmul() if there are batch axes, else gemm(). Returns all memory of Y.
template <typename T>
std::vector<T> run_product(const Product& p, const PlanOptions& options, DType type,
                           const Array<T>& a, const Array<T>& b, const Array<T>& c,
                           const PackedWeights* weights) {
  Array<T> y(p.dst, p.gap, p.columns);
  std::memset(y.data.get(), 0x33, y.length * sizeof(T));
  Context context;
  Status status;
  if (p.src.size() == 2 && p.weights.size() == 2) {
    GemmArgs args;
    args.A = a.tensor(type);
    if (weights == nullptr) args.B = b.tensor(type);
    const ConstTensor c_tensor = c.tensor(type);
    if (p.has_c) args.C = &c_tensor;
    args.packed_B = weights;
    args.transA = p.trans_a;
    args.transB = p.trans_b && weights == nullptr;
    args.alpha = p.alpha;
    args.Y = y.template tensor<void>(type);
    Problem problem;
    status = gemm_problem(args, true, &problem);
    if (status.ok()) status = run(context, "gemm", problem, fitting(options, problem));
  } else {
    MatMulArgs args;
    args.src = a.tensor(type);
    if (weights == nullptr) args.weights = b.tensor(type);
    args.packed_weights = weights;
    args.transpose_a = p.trans_a;
    args.transpose_b = p.trans_b && weights == nullptr;
    args.dst = y.template tensor<void>(type);
    MatMulProblem problem;
    status = matmul_problem(args, true, &problem);
    if (status.ok())
      status = run(context, "matmul", problem.problem, fitting(options, problem.problem));
  }
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(context.bytes_in_use(), 0U);
  return y.values();
}

class WeightsTest : public ::testing::TestWithParam<DType> {
 protected:
  // Compares a run without packed weights and one with them, with one kernel and the same blocks.
  static void compare(const Product& p, const PlanOptions& options) {
    with_type(GetParam(), [&]<typename T>(T) {
      std::mt19937_64 random(1);
      Array<T> a(p.src, p.gap, p.columns), b(p.weights, p.gap, p.columns),
          c(p.dst, p.gap, p.columns);
      for (auto* array : {&a, &b, &c}) fill(*array, random);
      const std::vector<T> plain = run_product(p, options, GetParam(), a, b, c, nullptr);
      Context context;
      const PackedWeights weights = packed(context, b.tensor(GetParam()), p.trans_b);
      b.data.reset();
      const std::vector<T> from_packed = run_product(p, options, GetParam(), a, b, c, &weights);
      ASSERT_EQ(plain.size(), from_packed.size());
      ASSERT_TRUE(plain.empty() ||
                  std::memcmp(plain.data(), from_packed.data(), plain.size() * sizeof(T)) == 0)
          << (options.kernel == nullptr ? "" : options.kernel->name)
          << " M=" << p.dst[p.dst.size() - 2] << " N=" << p.dst.back() << " trans " << p.trans_a
          << p.trans_b << " gap " << p.gap << " columns " << p.columns << " nc " << options.nc;
    });
  }
  // The n-th combination of settings for a product of these sizes.
  static Product way(uint32_t n, int64_t rows, int64_t cols, int64_t depth) {
    Product p{.trans_a = n % 2 != 0,
              .trans_b = n / 2 % 2 != 0,
              .gap = n / 4 % 2 != 0 ? 3 : 0,
              .columns = n / 8 % 2 != 0};
    p.src = p.trans_a ? Sizes{depth, rows} : Sizes{rows, depth};
    p.weights = p.trans_b ? Sizes{cols, depth} : Sizes{depth, cols};
    p.dst = {rows, cols};
    p.has_c = n / 16 % 2 != 0;
    p.alpha = n / 32 % 2 != 0 ? 2 : 1;
    return p;
  }
};

TEST_P(WeightsTest, HaveTheSameBitsByEveryKernel) {
  for (const Kernel* kernel : kernels_of(GetParam())) {
    uint32_t n = 0;
    for (const int64_t m : {1, 2, 5, 9}) {
      for (const int64_t cols : {1, 3, 4, 7, 8, 9, 15, 16, 17, 33}) {
        for (const int64_t k : {1, 2, 7, 16, 23}) compare(way(n++, m, cols, k), {.kernel = kernel});
      }
    }
  }
}

TEST_P(WeightsTest, HaveTheSameBitsInBlocksOfAnySize) {
  for (const Kernel* kernel : kernels_of(GetParam())) {
    uint32_t n = 0;
    for (const int64_t mc : {0, 1, 6}) {
      for (const int64_t nc : {0, 1, 4, 12, 20}) {
        for (const int64_t kc : {0, 1, 5, 16}) {
          compare(way(n++, 9, 41, 19), {.kernel = kernel, .mc = mc, .nc = nc, .kc = kc});
          compare(way(n++, 11, 48, 19), {.kernel = kernel, .mc = mc, .nc = nc, .kc = kc});
        }
      }
    }
  }
}

TEST_P(WeightsTest, HaveTheSameBitsIfKIsSplit) {
  uint32_t n = 0;
  for (const Kernel* kernel : kernels_of(GetParam())) {
    for (const int64_t k : {4096, 4097, 9001}) {
      compare(way(n++, 1, 17, k), {.kernel = kernel});
      compare(way(n++, 5, 9, k), {.kernel = kernel});
    }
  }
}

TEST_P(WeightsTest, HaveTheSameBitsInBatches) {
  const Product products[] = {
      {.src = {2, 3, 7}, .weights = {7, 19}, .dst = {2, 3, 19}},
      {.src = {2, 3, 7}, .weights = {2, 7, 19}, .dst = {2, 3, 19}},
      {.src = {2, 3, 7}, .weights = {2, 7, 19}, .dst = {2, 3, 19}, .gap = 2},
      {.src = {2, 3, 7}, .weights = {2, 19, 7}, .dst = {2, 3, 19}, .trans_b = true, .gap = 1},
      {.src = {2, 7, 3}, .weights = {1, 7, 19}, .dst = {2, 3, 19}, .trans_a = true},
      {.src = {3, 7}, .weights = {2, 3, 7, 19}, .dst = {2, 3, 3, 19}},
      {.src = {2, 1, 3, 7}, .weights = {3, 7, 19}, .dst = {2, 3, 3, 19}},
      {.src = {2, 3, 3, 7}, .weights = {2, 1, 7, 19}, .dst = {2, 3, 3, 19}, .gap = 1},
      {.src = {2, 3, 3, 7}, .weights = {1, 3, 7, 19}, .dst = {2, 3, 3, 19}},
      {.src = {2, 1, 4099}, .weights = {2, 4099, 3}, .dst = {2, 1, 3}},
      {.src = {2, 3, 3, 0}, .weights = {2, 1, 0, 19}, .dst = {2, 3, 3, 19}},
      {.src = {2, 3, 7}, .weights = {2, 7, 0}, .dst = {2, 3, 0}},
      {.src = {1, 3, 7}, .weights = {0, 7, 19}, .dst = {0, 3, 19}}};
  for (const Kernel* kernel : kernels_of(GetParam())) {
    for (const Product& product : products) {
      compare(product, {.kernel = kernel});
      compare(product, {.kernel = kernel, .mc = 2, .nc = 6, .kc = 3});
    }
  }
}

TEST_P(WeightsTest, HaveTheSameBitsIfASizeIs0) {
  for (uint32_t n = 0; n < 64; ++n) {
    compare(way(n, 3, 19, 0), {});
    compare(way(n, 3, 0, 7), {});
    compare(way(n, 0, 19, 7), {});
    compare(way(n, 3, 0, 0), {});
  }
}

// Only weights that a kernel cannot read as they are stored take scratch.
TEST_P(WeightsTest, AreReadAsStoredOrConverted) {
  for (const int64_t m : {1, 2, 100}) {
    // Only skinny kernels read 64-bit integers as stored, and widen 16-bit types while reading.
    const bool whole =
        is_compute_form(GetParam()) && (dtype_bytes(GetParam()) == 4 || !is_integer(GetParam()));
    const bool as_stored = whole || m < 3;
    for (const int64_t k : {30, 9001}) {
      const Sizes dims{k, 20}, a_dims{m, k};
      const std::vector<std::byte> data(static_cast<size_t>(k * 20) * dtype_bytes(GetParam()));
      Context context;
      const PackedWeights weights = packed(context, {data.data(), GetParam(), dims});
      GemmArgs args;
      args.A = {nullptr, GetParam(), a_dims};
      args.packed_B = &weights;
      Explanation plan;
      ASSERT_TRUE(explain(Context(), args, &plan).ok());
      EXPECT_EQ(plan.packs_b, !as_stored);
      EXPECT_EQ(plan.m * plan.n * plan.k, m * 20 * k);
      EXPECT_TRUE(!whole || plan.packs_a || k > 30 || plan.scratch_bytes == 0);
      MatMulArgs matmul_args;
      matmul_args.src = args.A;
      matmul_args.packed_weights = &weights;
      matmul_args.dst.dtype = GetParam();
      ASSERT_TRUE(explain(Context(), matmul_args, &plan).ok());
      EXPECT_EQ(plan.packs_b, !as_stored);
      for (const Kernel* kernel : kernels_of(GetParam())) {
        if (kernel->b_layout != BLayout::kPanels || kernel->b == storage_layout(GetParam()))
          continue;
        Problem problem;
        ASSERT_TRUE(gemm_problem(args, false, &problem).ok());
        EXPECT_TRUE(make_plan(problem, Context(), {.kernel = kernel}).pack_b) << kernel->name;
      }
    }
  }
}

TEST_P(WeightsTest, ReportWhatTheyAre) {
  for (const bool trans : {false, true}) {
    const Sizes dims{2, 1, 3, trans ? 19 : 700, trans ? 700 : 19};
    const std::vector<std::byte> data(6 * 700 * 19 * dtype_bytes(GetParam()));
    Context context;
    const PackedWeights weights = packed(context, {data.data(), GetParam(), dims}, trans);
    EXPECT_FALSE(weights.empty());
    EXPECT_EQ(weights.op(), PackFor::kGemm);
    EXPECT_EQ(weights.dtype(), GetParam());
    EXPECT_TRUE(std::ranges::equal(weights.batch(), Sizes{2, 1, 3}));
    EXPECT_EQ(weights.k(), 700);
    EXPECT_EQ(weights.n(), 19);
    // They keep their type, in panels of at most 16 columns.
    EXPECT_GE(weights.bytes(), data.size());
    EXPECT_LT(weights.bytes(), data.size() * 32 / 19 + 6 * 1024);
    EXPECT_GE(context.bytes_in_use(), weights.bytes());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, WeightsTest, ::testing::ValuesIn(kTypes), name_of);

// One pack serves gemm() and matmul(), any A, and any number of calls.
TEST(Weights, ServeAnyNumberOfCalls) {
  std::mt19937_64 random(1);
  Array<float> b({37, 27}, 0, false);
  fill(b, random);
  Context context;
  const PackedWeights weights = packed(context, b.tensor(DType::kFloat32));
  const size_t in_use = context.bytes_in_use();
  const auto* block = reinterpret_cast<const std::byte*>(prepacked_of(weights).panels);
  const std::vector<std::byte> panels(block, block + prepacked_of(weights).matrix_bytes);
  for (const int64_t m : {1, 30, 2, 7, 3}) {
    Array<float> a({m, 37}, 0, false);
    fill(a, random);
    Array<float> y({m, 27}, 0, false), z({m, 27}, 0, false), plain({m, 27}, 0, false);
    GemmArgs gemm_args;
    gemm_args.A = a.tensor(DType::kFloat32);
    gemm_args.B = b.tensor(DType::kFloat32);
    gemm_args.Y = plain.tensor<void>(DType::kFloat32);
    ASSERT_TRUE(gemm(context, gemm_args).ok());
    gemm_args.packed_B = &weights;
    gemm_args.Y = y.tensor<void>(DType::kFloat32);
    ASSERT_TRUE(gemm(context, gemm_args).ok());
    MatMulArgs matmul_args;
    matmul_args.src = gemm_args.A;
    matmul_args.packed_weights = &weights;
    matmul_args.dst = z.tensor<void>(DType::kFloat32);
    ASSERT_TRUE(matmul(context, matmul_args).ok());
    EXPECT_EQ(y.values(), plain.values());
    EXPECT_EQ(z.values(), plain.values());
    EXPECT_EQ(context.bytes_in_use(), in_use);
  }
  EXPECT_TRUE(std::equal(panels.begin(), panels.end(), block));
}

// The kernel for GEMV with two matrices of float16 weights, all zeros except one element.
std::string kernel_for_float16(int64_t k, int64_t n, size_t place, int bits) {
  std::vector<uint16_t> b(static_cast<size_t>(2 * k * n));
  b[place] = static_cast<uint16_t>(bits);
  Context context;
  PackedWeights weights;
  const int64_t a_dims[] = {2, 1, k}, b_dims[] = {2, k, n};
  EXPECT_TRUE(pack(context, {.B = {b.data(), DType::kFloat16, b_dims}}, &weights).ok());
  MatMulArgs args;
  args.src = {nullptr, DType::kFloat16, a_dims};
  args.packed_weights = &weights;
  args.dst.dtype = DType::kFloat16;
  Explanation plan;
  const Status status = explain(context, args, &plan);
  EXPECT_TRUE(status.ok()) << status.message;
  return plan.kernel;
}

// Tries every element, next to padding or not.
TEST(Weights, OfFloat16WithoutInfinityAndNanHaveAFasterKernel) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{1, 1}, {3, 8}, {2, 17}}) {
    for (size_t place = 0; place < static_cast<size_t>(2 * k * n); ++place) {
      for (const int sign : {0, 0x8000}) {
        for (const int finite : {0, 1, 0x3c00, 0x7bff}) {
          EXPECT_NE(kernel_for_float16(k, n, place, finite | sign).find("_finite"),
                    std::string::npos)
              << finite << " at " << place;
        }
        for (const int special : {0x7c00, 0x7c01, 0x7e00, 0x7fff}) {
          EXPECT_EQ(kernel_for_float16(k, n, place, special | sign).find("_finite"),
                    std::string::npos)
              << special << " at " << place;
        }
      }
    }
  }
}

// 16-bit weights with a float32 A
// -------------------------------------------------------------------------------------------------

class HalfWeightsTest : public ::testing::TestWithParam<DType> {
 protected:
  // Calls `work` with an element of the type.
  template <typename Work>
  static void with_half(const Work& work) {
    GetParam() == DType::kFloat16 ? work(Float16{}) : work(BFloat16{});
  }
  static PackedWeights packed_as(Context& context, const ConstTensor& b, bool trans) {
    PackedWeights weights;
    const Status status = pack(context, {.B = b, .trans = trans, .as = GetParam()}, &weights);
    EXPECT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(weights.dtype(), GetParam());
    return weights;
  }
};

// The elements of `b`, as `To`.
template <typename To, typename From>
Array<To> converted(const Array<From>& b) {
  Array<To> result(b.dims, 0, false);
  result.strides = b.strides;
  result.length = b.length;
  result.data.reset(new To[b.length]);
  for (size_t i = 0; i < b.length; ++i) result.data[i] = convert<To>(b.data[i]);
  return result;
}

// Rounding while packing equals packing rounded elements, for every layout, with NaN too.
TEST_P(HalfWeightsTest, ArePackedAsIfRoundedBefore) {
  with_half([&]<typename Half>(Half) {
    std::mt19937_64 random(1);
    for (const Sizes& dims :
         {Sizes{1, 1}, {2, 8}, {9, 31}, {64, 33}, {65, 32}, {200, 70}, {3, 5, 9}, {0, 4}, {4, 0}}) {
      for (const bool trans : {false, true}) {
        for (const bool columns : {false, true}) {
          Array<float> b(dims, trans ? 3 : 0, columns);
          fill(b, random, true);
          const Array<Half> rounded = converted<Half>(b);
          Context context;
          const PackedWeights weights = packed_as(context, b.tensor(DType::kFloat32), trans);
          const PackedWeights wanted = packed_as(context, rounded.tensor(GetParam()), trans);
          ASSERT_EQ(weights.bytes(), wanted.bytes());
          const PrepackedB found = prepacked_of(weights), expected = prepacked_of(wanted);
          const size_t bytes = packed_bytes(found.layout(), weights.n(), weights.k());
          for (int64_t i = 0; i < (dims.size() == 3 ? dims[0] : 1); ++i) {
            EXPECT_EQ(std::memcmp(found.at(i).panels, expected.at(i).panels, bytes), 0)
                << bytes << trans << columns;
          }
        }
      }
    }
  });
}

// Kernels for finite float16 weights multiply A by 2^112, which only numbers below 2^16 survive.
TEST_P(HalfWeightsTest, MultiplyAnyElementOfA) {
  with_half([&]<typename Half>(Half) {
    const int64_t n = 24, k = 41;
    std::mt19937_64 random(1);
    Array<float> b({k, n}, 0, false);
    fill(b, random, false);
    const Array<float> wide = converted<float>(converted<Half>(b));
    for (const float element : {65535.0F, 65536.0F, -65536.0F, 1e30F, INFINITY}) {
      for (const int64_t m : {1, 2, 5}) {
        for (const Determinism determinism : {Determinism::kStrict, Determinism::kFast}) {
          Array<float> a({m, k}, 0, false), y({m, n}, 0, false), wanted({m, n}, 0, false);
          std::fill_n(a.data.get(), m * k, 0.0F);
          a.data[static_cast<size_t>(m * k - 2)] = element;
          Context context(0, determinism);
          const PackedWeights rounded = packed_as(context, b.tensor(DType::kFloat32), false);
          const PackedWeights widened = packed(context, wide.tensor(DType::kFloat32), false);
          GemmArgs args;
          args.A = a.tensor(DType::kFloat32);
          for (auto [weights, result] : {std::pair{&rounded, &y}, {&widened, &wanted}}) {
            args.packed_B = weights;
            args.Y = result->template tensor<void>(DType::kFloat32);
            const Status status = gemm(context, args);
            ASSERT_TRUE(status.ok()) << status.message;
          }
          EXPECT_EQ(y.values(), wanted.values()) << element << " M=" << m;
        }
      }
    }
  });
}

// By every kernel, for small and large M, with one matrix of weights or a stack.
TEST_P(HalfWeightsTest, HaveTheBitsOfFloat32) {
  with_half([&]<typename Half>(Half) {
    std::mt19937_64 random(1);
    for (int64_t m = 1; m <= 64; m += m < 8 ? 1 : 7) {
      for (const auto& [n, k] :
           {std::pair<int64_t, int64_t>{1, 5}, {9, 33}, {40, 300}, {17, 4099}}) {
        for (const Determinism determinism : {Determinism::kStrict, Determinism::kFast}) {
          const bool trans = m % 2 != 0;
          Array<float> a({m, k}, m % 3, m % 5 == 0), b(trans ? Sizes{n, k} : Sizes{k, n}, 0, false),
              c({1, n}, 0, false);
          for (auto* array : {&a, &b, &c}) fill(*array, random, k < 10);
          Context context(0, determinism);
          const PackedWeights rounded = packed_as(context, b.tensor(DType::kFloat32), trans);
          const Array<float> wide = converted<float>(converted<Half>(b));
          const PackedWeights widened = packed(context, wide.tensor(DType::kFloat32), trans);
          const ConstTensor bias = c.tensor(DType::kFloat32);
          Array<float> y({m, n}, 0, false), wanted({m, n}, 0, false);
          GemmArgs args;
          args.A = a.tensor(DType::kFloat32);
          args.C = &bias;
          args.alpha = 0.75;
          for (auto [weights, result] : {std::pair{&rounded, &y}, {&widened, &wanted}}) {
            args.packed_B = weights;
            args.Y = result->template tensor<void>(DType::kFloat32);
            const Status status = gemm(context, args);
            ASSERT_TRUE(status.ok()) << status.message;
          }
          for (size_t i = 0; i < y.length; ++i) {
            const bool is_same = std::memcmp(&y.data[i], &wanted.data[i], sizeof(float)) == 0;
            const bool is_near = (std::isnan(y.data[i]) && std::isnan(wanted.data[i])) ||
                                 y.data[i] == wanted.data[i] ||
                                 std::fabs(y.data[i] - wanted.data[i]) < 1e-4F;
            ASSERT_TRUE(determinism == Determinism::kStrict ? is_same : is_near)
                << y.data[i] << " " << wanted.data[i] << " M=" << m;
          }
          // With one kernel and the same blocks, both modes have the same bits.
          args.C = nullptr;
          args.alpha = 1;
          for (const Kernel* kernel : kernels_of(DType::kFloat32)) {
            for (auto [weights, result] : {std::pair{&rounded, &y}, {&widened, &wanted}}) {
              args.packed_B = weights;
              args.Y = result->template tensor<void>(DType::kFloat32);
              Problem problem;
              ASSERT_TRUE(gemm_problem(args, true, &problem).ok());
              ASSERT_TRUE(
                  run(context, "gemm", problem, {.kernel = kernel, .mc = 20, .nc = 24, .kc = 128})
                      .ok());
            }
            ASSERT_TRUE(k < 10 || y.values() == wanted.values()) << kernel->name;
          }
        }
      }
    }
  });
}

TEST_P(HalfWeightsTest, HaveTheBitsOfFloat32InBatches) {
  with_half([&]<typename Half>(Half) {
    std::mt19937_64 random(1);
    for (const Sizes& dims : {Sizes{7, 19}, {3, 7, 19}, {2, 1, 7, 19}}) {
      for (const int64_t m : {1, 5, 70}) {
        Array<float> src({2, 3, m, 7}, 0, false), b(dims, 0, false), bias({3, 1, 19}, 0, false);
        for (auto* array : {&src, &b, &bias}) fill(*array, random);
        Context context(0, Determinism::kStrict);
        const Array<Half> half = converted<Half>(b);
        const Array<float> wide = converted<float>(half);
        const PackedWeights rounded = packed(context, half.tensor(GetParam())),
                            widened = packed(context, wide.tensor(DType::kFloat32));
        const ConstTensor bias_tensor = bias.tensor(DType::kFloat32);
        Array<float> y({2, 3, m, 19}, 0, false), wanted({2, 3, m, 19}, 0, false);
        MatMulArgs args;
        args.src = src.tensor(DType::kFloat32);
        args.bias = &bias_tensor;
        for (auto [weights, result] : {std::pair{&rounded, &y}, {&widened, &wanted}}) {
          args.packed_weights = weights;
          args.dst = result->template tensor<void>(DType::kFloat32);
          const Status status = matmul(context, args);
          ASSERT_TRUE(status.ok()) << status.message;
        }
        EXPECT_EQ(y.values(), wanted.values());
      }
    }
  });
}

// Skinny GEMM multiplies weights as they are stored by an unpacked A. Large M widens them block by
// block.
TEST_P(HalfWeightsTest, AreReadAsStoredOrWidened) {
  const Sizes dims{300, 40};
  const std::vector<float> data(300 * 40);
  Context context;
  const PackedWeights weights = packed_as(context, {data.data(), DType::kFloat32, dims}, false);
  EXPECT_LT(weights.bytes(), 300 * 40 * sizeof(float));
  for (const int64_t m : {1, 2, 100}) {
    const Sizes a_dims{m, 300};
    GemmArgs args;
    args.A = {nullptr, DType::kFloat32, a_dims};
    args.packed_B = &weights;
    Explanation plan;
    ASSERT_TRUE(explain(Context(), args, &plan).ok());
    EXPECT_EQ(plan.packs_b, m == 100);
    EXPECT_TRUE(m == 100 || (!plan.packs_a && plan.scratch_bytes == 0));
  }
}

// With an A of their own type the product is the same as the product of widened operands.
TEST_P(HalfWeightsTest, ServeTheirOwnTypeAndNoOther) {
  const std::vector<float> data(12);
  const Sizes dims{3, 4}, a{2, 3};
  Context context;
  const PackedWeights weights = packed_as(context, {data.data(), DType::kFloat32, dims}, false);
  for (const DType type : kTypes) {
    GemmArgs args;
    args.A = {nullptr, type, a};
    args.packed_B = &weights;
    int64_t y[2];
    const Status status = gemm_shape(args, y);
    EXPECT_EQ(status.ok(), type == DType::kFloat32 || type == GetParam()) << dtype_name(type);
    EXPECT_TRUE(status.ok() || status.code == Code::kDType);
    MatMulArgs matmul_args;
    matmul_args.src = args.A;
    matmul_args.packed_weights = &weights;
    matmul_args.dst.dtype = GetParam();  // not float32
    size_t rank;
    EXPECT_EQ(matmul_shape(matmul_args, y, &rank).ok(), type == GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, HalfWeightsTest,
                         ::testing::Values(DType::kFloat16, DType::kBFloat16), name_of);

// Ownership
// -------------------------------------------------------------------------------------------------

const std::vector<std::byte> kData(1 << 12);

// Weights of zeros, for tests that do not compute.
PackedWeights zeros(Context& context, Sizes dims, DType type = DType::kFloat32) {
  PackedWeights weights;
  const PackFor op = compute_type(type) == DType::kInt8 ? PackFor::kQGemm : PackFor::kGemm;
  const Status status = pack(context, {.op = op, .B = {kData.data(), type, dims}}, &weights);
  EXPECT_TRUE(status.ok()) << status.message;
  return weights;
}

TEST(Weights, AreMovedWithTheirBatchAndReleaseMemory) {
  Context context;
  {
    PackedWeights first = zeros(context, {2, 3, 4, 5}, DType::kInt64);
    const size_t of_first = context.bytes_in_use();
    PackedWeights moved(std::move(first));
    EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): tested here
    EXPECT_TRUE(std::ranges::equal(moved.batch(), Sizes{2, 3}));
    PackedWeights second = zeros(context, {4, 5});
    second = std::move(moved);
    EXPECT_TRUE(moved.empty());  // NOLINT(bugprone-use-after-move): tested here
    EXPECT_EQ(context.bytes_in_use(), of_first);
    EXPECT_TRUE(second.dtype() == DType::kInt64 && second.batch().size() == 2 && second.k() == 4 &&
                second.n() == 5);
    PackedWeights& itself = second;
    second = std::move(itself);
    EXPECT_EQ(second.k(), 4);
    {
      const PackedWeights rest(std::move(moved));
    }
    EXPECT_EQ(context.bytes_in_use(), of_first);
    // Filled again: the previous block is released.
    const Sizes dims{7, 9};
    EXPECT_TRUE(pack(context, {.B = {kData.data(), DType::kFloat16, dims}}, &second).ok());
    EXPECT_TRUE(second.dtype() == DType::kFloat16 && second.batch().empty() && second.k() == 7 &&
                second.n() == 9);
  }
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

TEST(Weights, AreDetachedAndViewed) {
  const float a[] = {1, 2}, b[] = {1, 2, 3, 4, 5, 6};
  float y[3] = {};
  const Sizes a_dims{1, 2}, b_dims{2, 3}, y_dims{1, 3};
  Context context;
  void* block = nullptr;
  {
    PackedWeights weights = packed(context, {b, DType::kFloat32, b_dims});
    block = weights.detach();
    EXPECT_TRUE(weights.empty());
    EXPECT_EQ(weights.detach(), nullptr);
  }
  const size_t in_use = context.bytes_in_use();
  EXPECT_GT(in_use, 0U);
  {
    const PackedWeights view = PackedWeights::view(block);
    GemmArgs args;
    args.A = {a, DType::kFloat32, a_dims};
    args.packed_B = &view;
    args.Y = {y, DType::kFloat32, y_dims};
    ASSERT_TRUE(gemm(context, args).ok());
    EXPECT_EQ(std::vector<float>(y, y + 3), std::vector<float>({9, 12, 15}));
  }
  EXPECT_EQ(context.bytes_in_use(), in_use);  // a view owns nothing
  EXPECT_TRUE(PackedWeights::view(nullptr).empty());
  context.release(block);
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

// Operands that they must not replace
// -------------------------------------------------------------------------------------------------

// Valid calls with packed weights of shape (3, 4). Each test replaces the weights.
struct Calls {
  Context context;
  PackedWeights weights;
  Sizes a{2, 3}, y{2, 4};
  std::vector<double> a_data = std::vector<double>(64, 1.0), y_data = std::vector<double>(64, -7.0);
  float scale = 1;
  DType type = DType::kFloat32;
  int64_t trans = 0;

  GemmArgs gemm_args() {
    GemmArgs args;
    args.A = {a_data.data(), type, a};
    args.packed_B = &weights;
    args.Y = {y_data.data(), type, y};
    args.transB = trans;
    return args;
  }
  QGemmArgs qgemm_args() {
    QGemmArgs args;
    args.A = {a_data.data(), DType::kUInt8, a};
    args.packed_B = &weights;
    args.a_scale = args.b_scale = {&scale, DType::kFloat32};
    args.Y = {y_data.data(), DType::kFloat32, y};
    args.transB = trans;
    return args;
  }
  MatMulArgs matmul_args() {
    MatMulArgs args;
    args.src = {a_data.data(), type, a};
    args.packed_weights = &weights;
    args.dst = {y_data.data(), type, y};
    args.transpose_b = trans;
    return args;
  }
  // Nothing may be written, and the function for the shape must report the same.
  void check(const Status& status, const Status& shape, const Status& explained, Code code,
             const std::string& argument, const std::string& sentence) const {
    EXPECT_EQ(status.code, code) << status.message;
    EXPECT_EQ(status.argument, argument) << status.message;
    EXPECT_NE(std::string(status.message).find(sentence), std::string::npos) << status.message;
    EXPECT_STREQ(shape.message, status.message);
    EXPECT_STREQ(explained.message, status.message);
    EXPECT_EQ(std::ranges::count(y_data, -7.0), std::ssize(y_data));
  }
  void refuse_gemm(Code code, const std::string& argument, const std::string& sentence) {
    const GemmArgs args = gemm_args();
    int64_t dims[2];
    Explanation plan;
    check(gemm(context, args), gemm_shape(args, dims), explain(Context(), args, &plan), code,
          argument, sentence);
  }
  void refuse_qgemm(Code code, const std::string& argument, const std::string& sentence) {
    const QGemmArgs args = qgemm_args();
    int64_t dims[2];
    DType dtype;
    Explanation plan;
    check(qgemm(context, args), qgemm_shape(args, dims, &dtype), explain(Context(), args, &plan),
          code, argument, sentence);
  }
  void refuse_matmul(Code code, const std::string& argument, const std::string& sentence) {
    const MatMulArgs args = matmul_args();
    int64_t dims[kMaxRank];
    size_t rank;
    Explanation plan;
    check(matmul(context, args), matmul_shape(args, dims, &rank), explain(Context(), args, &plan),
          code, argument, sentence);
  }
};

TEST(WeightsError, Empty) {
  Calls calls;
  calls.refuse_gemm(Code::kArgument, "B", "gemm: B is an empty PackedWeights; pack() fills it");
  calls.refuse_qgemm(Code::kArgument, "B", "qgemm: B is an empty PackedWeights");
  calls.refuse_matmul(Code::kArgument, "weights", "matmul: weights is an empty PackedWeights");
}

TEST(WeightsError, AnotherOperation) {
  Calls calls;
  for (const DType type : kTypes) {
    calls.weights = zeros(calls.context, {3, 4}, type);
    calls.refuse_qgemm(Code::kPackMismatch, "B",
                       "qgemm: B is packed for gemm and matmul; pack it for qgemm");
  }
  for (const DType type : {DType::kInt8, DType::kUInt8}) {
    calls.weights = zeros(calls.context, {3, 4}, type);
    EXPECT_EQ(calls.weights.op(), PackFor::kQGemm);
    calls.refuse_gemm(Code::kPackMismatch, "B", "gemm: B is packed for qgemm; pack it for gemm");
    calls.refuse_matmul(Code::kPackMismatch, "weights",
                        "matmul: weights is packed for qgemm; pack it for matmul");
    EXPECT_TRUE(qgemm(calls.context, calls.qgemm_args()).ok());
    std::ranges::fill(calls.y_data, -7.0);
  }
}

TEST(WeightsError, AnotherType) {
  for (const DType from : kTypes) {
    for (const DType type : kTypes) {
      Calls calls;
      calls.type = type;
      calls.weights = zeros(calls.context, {3, 4}, from);
      if (from == type || (type == DType::kFloat32 && dtype_bytes(from) == 2)) {
        EXPECT_TRUE(gemm(calls.context, calls.gemm_args()).ok());
        EXPECT_TRUE(matmul(calls.context, calls.matmul_args()).ok());
        continue;
      }
      const std::string sentence =
          std::string("is packed as ").append(dtype_name(from)).append(" and ");
      calls.refuse_gemm(Code::kDType, "B", sentence);
      calls.refuse_matmul(Code::kDType, "weights", sentence);
    }
  }
}

TEST(WeightsError, AnotherShape) {
  Calls calls;
  for (const int64_t k : {0, 2, 4}) {
    calls.weights = zeros(calls.context, {k, 4});
    calls.refuse_gemm(Code::kShape, "B", "K");
    calls.refuse_matmul(Code::kShape, "weights", "K");
  }
  calls.weights = zeros(calls.context, {3, 5});
  calls.refuse_gemm(Code::kShape, "Y", "Y has shape [2, 4]; the result has shape [2, 5]");
  calls.refuse_matmul(Code::kShape, "dst", "dst has shape [2, 4]; the result has shape [2, 5]");
}

TEST(WeightsError, Batches) {
  Calls calls;
  calls.weights = zeros(calls.context, {1, 3, 4});
  calls.refuse_gemm(Code::kShape, "B",
                    "gemm: B is packed with batch axes [1]; for gemm it must have rank 2");
  calls.refuse_matmul(Code::kShape, "dst", "the result has shape [1, 2, 4]");
  calls.weights = zeros(calls.context, {2, 5, 3, 4});
  calls.refuse_gemm(Code::kShape, "B", "batch axes [2, 5]");
  calls.a = {2, 2, 3};
  calls.refuse_matmul(Code::kShape, "weights", "src has batch axes [2] and weights has [2, 5]");
}

TEST(WeightsError, TransposedAgain) {
  Calls calls;
  calls.weights = zeros(calls.context, {3, 4});
  for (const int64_t trans : {1, -1}) {
    calls.trans = trans;
    calls.refuse_gemm(Code::kArgument, "transB",
                      "gemm: transB is set and B is packed; transpose when packing, by trans");
    calls.refuse_matmul(Code::kArgument, "transpose_b",
                        "matmul: transpose_b is set and weights is packed");
  }
}

// Packing
// -------------------------------------------------------------------------------------------------

struct PackCase {
  const char* name;
  void (*spoil)(PackArgs&, Sizes& dims, Sizes& strides);
  Code code;
  const char* sentence;
  const char* argument = "B";
};

constexpr int64_t kHuge = int64_t{1} << 40;

const PackCase kPackCases[] = {
    {"Int8", [](PackArgs& p, Sizes&, Sizes&) { p.B.dtype = DType::kInt8; }, Code::kDType,
     "pack: B has type int8; 8-bit weights are for qgemm"},
    {"UInt8", [](PackArgs& p, Sizes&, Sizes&) { p.B.dtype = DType::kUInt8; }, Code::kDType,
     "B has type uint8; 8-bit weights are for qgemm"},
    {"ForQGemm", [](PackArgs& p, Sizes&, Sizes&) { p.op = PackFor::kQGemm; }, Code::kDType,
     "B has type float32; for qgemm it must be int8 or uint8"},
    {"UnknownType", [](PackArgs& p, Sizes&, Sizes&) { p.B.dtype = static_cast<DType>(200); },
     Code::kDType, "unknown type 200"},
    {"Rank0", [](PackArgs&, Sizes& dims, Sizes&) { dims = {}; }, Code::kShape,
     "B has shape [] of rank 0; it must have rank 2 or more"},
    {"Rank1", [](PackArgs&, Sizes& dims, Sizes&) { dims = {12}; }, Code::kShape,
     "B has shape [12] of rank 1; it must have rank 2 or more"},
    {"Rank65", [](PackArgs&, Sizes& dims, Sizes&) { dims = Sizes(65, 1); }, Code::kShape,
     "B has rank 65; it must be at most 64"},
    {"Negative", [](PackArgs&, Sizes& dims, Sizes&) { dims = {-1, 3, 4}; }, Code::kShape,
     "each size must be a whole number from 0 to 2^53 - 1"},
    {"Product", [](PackArgs&, Sizes& dims, Sizes&) { dims = {kHuge, kHuge, 0}; }, Code::kShape,
     "more than 2^53 elements"},
    {"Strides", [](PackArgs&, Sizes&, Sizes& strides) { strides = {12, 4, 1}; }, Code::kShape,
     "there must be one stride per axis"},
    {"NegativeStride", [](PackArgs&, Sizes&, Sizes& strides) { strides = {4, -1}; }, Code::kShape,
     "each stride must be a whole number from 0 to 2^53 - 1"},
    {"Short", [](PackArgs& p, Sizes&, Sizes&) { p.B.size = 11; }, Code::kShape,
     "B has 11 elements; its shape [3, 4] needs 12"},
    {"NegativeOffset", [](PackArgs& p, Sizes&, Sizes&) { p.B.offset = -1; }, Code::kShape,
     "B has offset -1; it must be from 0 to"},
    {"ShortForOffset", [](PackArgs& p, Sizes&, Sizes&) { p.B.offset = 2, p.B.size = 13; },
     Code::kShape, "B has 13 elements; its shape [3, 4] and offset 2 need 14"},
    {"NoData", [](PackArgs& p, Sizes&, Sizes&) { p.B.data = nullptr; }, Code::kArgument,
     "pack: B has no data"},
    {"As", [](PackArgs& p, Sizes&, Sizes&) { p.as = DType::kFloat64; }, Code::kDType,
     "pack: as is float64 and B has type float32; it must be float32, float16 or bfloat16", "as"},
    {"AsInt8", [](PackArgs& p, Sizes&, Sizes&) { p.as = DType::kInt8; }, Code::kDType,
     "as is int8 and B has type float32", "as"},
    {"AsUnknown", [](PackArgs& p, Sizes&, Sizes&) { p.as = static_cast<DType>(200); }, Code::kDType,
     "as is an unknown type and B has", "as"},
    {"AsOfIntegers",
     [](PackArgs& p, Sizes&, Sizes&) { p.B.dtype = DType::kInt32, p.as = DType::kBFloat16; },
     Code::kDType, "as is bfloat16 and B has type int32; it must be int32", "as"},
    {"AsOfFloat64",
     [](PackArgs& p, Sizes&, Sizes&) { p.B.dtype = DType::kFloat64, p.as = DType::kFloat16; },
     Code::kDType, "as is float16 and B has type float64; it must be float64", "as"},
    {"AsWider",
     [](PackArgs& p, Sizes&, Sizes&) { p.B.dtype = DType::kBFloat16, p.as = DType::kFloat32; },
     Code::kDType, "as is float32 and B has type bfloat16; it must be bfloat16", "as"},
    {"AsOfQGemm",
     [](PackArgs& p, Sizes&, Sizes&) {
       p.op = PackFor::kQGemm, p.B.dtype = DType::kInt8, p.as = DType::kFloat16;
     },
     Code::kDType, "as is float16 and B has type int8; it must be int8", "as"},
};

class WeightsPackError : public ::testing::TestWithParam<PackCase> {};

TEST_P(WeightsPackError, IsReportedAndWeightsStayUnchanged) {
  for (const int64_t trans : {0, 1}) {
    Context context;
    PackedWeights weights = zeros(context, {2, 3, 4}, DType::kInt32);
    const size_t in_use = context.bytes_in_use();
    Sizes dims{3, 4}, strides;
    PackArgs args{.B = {kData.data(), DType::kFloat32}, .trans = trans};
    GetParam().spoil(args, dims, strides);
    args.B.dims = dims, args.B.strides = strides;
    const Status status = pack(context, args, &weights);
    EXPECT_EQ(status.code, GetParam().code) << status.message;
    EXPECT_STREQ(status.op, "pack");
    EXPECT_STREQ(status.argument, GetParam().argument);
    EXPECT_NE(std::string(status.message).find(GetParam().sentence), std::string::npos)
        << status.message;
    EXPECT_TRUE(weights.dtype() == DType::kInt32 && weights.batch().size() == 1 &&
                weights.k() == 3 && weights.n() == 4);
    EXPECT_EQ(context.bytes_in_use(), in_use);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, WeightsPackError, ::testing::ValuesIn(kPackCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(WeightsMemory, PackingThatFailsLeavesTheWeightsUnchanged) {
  for (const DType type : kTypes) {
    Context context(5000);
    PackedWeights weights = zeros(context, {2, 3, 4}, type);
    const size_t in_use = context.bytes_in_use();
    const std::vector<std::byte> data(8 * 5000);
    const Sizes dims{5, 50, 20};
    const Status status = pack(context, {.B = {data.data(), type, dims}}, &weights);
    EXPECT_EQ(status.code, Code::kOutOfMemory) << status.message;
    EXPECT_STREQ(status.op, "pack");
    EXPECT_NE(std::string(status.message).find("no memory for weights of 5 x 50 x 20 elements"),
              std::string::npos)
        << status.message;
    EXPECT_TRUE(weights.batch().size() == 1 && weights.k() == 3 && weights.n() == 4);
    EXPECT_EQ(context.bytes_in_use(), in_use);
  }
}

TEST(WeightsMemory, EmptyBatchesArePackedAtOnce) {
  const Sizes dims{int64_t{1} << 40, 0, 2, 3};
  Context context;
  PackedWeights weights;
  ASSERT_TRUE(pack(context, {.B = {nullptr, DType::kFloat32, dims}}, &weights).ok());
  EXPECT_EQ(weights.batch().size(), 2U);
}

// One repeated element, or none at all. The panels would exceed memory and sizes of 32 or 64 bits.
TEST(WeightsMemory, NothingTooLargeIsPacked) {
  const Sizes shapes[] = {
      {1, 1 << 20, 1 << 16},          {1, 1 << 16, 1 << 20},         {1, 1, int64_t{1} << 53},
      {1, int64_t{1} << 53, 1},       {int64_t{1} << 53, 1, 1},      {1 << 20, 1 << 16, 1},
      {1 << 26, 1, 1 << 26},          {int64_t{1} << 29, 1, 3},      {int64_t{1} << 32, 1, 1},
      {1, (int64_t{1} << 29) + 1, 9}, {(int64_t{1} << 50) + 1, 2, 3}};
  const std::vector<std::byte> element(8);
  const Sizes strides{0, 0, 0};
  for (const DType type : kTypes) {
    for (const Sizes& dims : shapes) {
      for (const int64_t trans : {0, 1}) {
        Context context(1 << 20);
        PackedWeights weights;
        const Status status =
            pack(context, {.B = {element.data(), type, dims, strides}, .trans = trans}, &weights);
        EXPECT_EQ(status.code, Code::kOutOfMemory) << status.message;
        EXPECT_EQ(std::string(status.message).find('-'), std::string::npos) << status.message;
        EXPECT_TRUE(weights.empty());
        EXPECT_EQ(context.bytes_in_use(), 0U);
      }
    }
  }
}

}  // namespace
}  // namespace wgemm::testing
