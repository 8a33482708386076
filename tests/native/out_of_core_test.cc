// Out-of-core operands: every operation has the results that it has with operands in memory, within
// a limit that is a small fraction of their bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "array.h"
#include "base/types.h"
#include "matmul_tester.h"
#include "out_of_core_tensor.h"
#include "qgemm_tester.h"
#include "tester.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
namespace {

constexpr DType kTypes[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) DType::k##Enumerator,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

constexpr size_t kLimits[] = {100'000, 200'000, 1'000'000};

class OutOfCoreTest : public ::testing::TestWithParam<DType> {
 protected:
  static OutOfCoreSetup any_setup(std::mt19937_64& random) {
    // A, and mostly all.
    return {.limit = kLimits[random() % 3],
            .operands = random() % 3 != 0 ? 15 : 1 | static_cast<unsigned>(random() % 16)};
  }
  // Some that memory holds, and some that are cut.
  static int64_t any_size(std::mt19937_64& random, int64_t most) {
    return random() % 4 == 0 ? 1 + below(random, 9) : 1 + below(random, most);
  }
};

TEST_P(OutOfCoreTest, Gemm) {
  for (uint32_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    const bool is_small = seed > 60;
    const SmallShape small(random);
    const int64_t m = is_small ? small.m : any_size(random, 150),
                  n = is_small ? small.n : any_size(random, 150),
                  k_of_large = random() % 9 == 0 ? 0 : any_size(random, 500),
                  k = is_small ? small.k : k_of_large;
    GemmTester t = GemmTester()
                       .type(GetParam())
                       .sizes(m, n, k)
                       .trans(random() % 2 != 0, random() % 2 != 0)
                       .seed(seed);
    t.gap(random() % 2 != 0 ? 3 : 0)
        .columns(random() % 3 == 0)
        .alpha(random() % 2 != 0 ? 1 : 3)
        .beta(random() % 4 == 0 ? 0 : 2);
    const std::vector<int64_t> shapes[] = {{}, {1}, {n}, {1, n}, {m, 1}, {m, n}, {m, n}};
    if (random() % 4 == 0) {
      t.in_place();
    } else if (random() % 3 != 0) {
      t.c(shapes[random() % 7]);
    }
    t.out_of_core(is_small ? small_setup(random) : any_setup(random));
    t.packed(random() % 3 == 0).padded(random() % 2 != 0);
    if (random() % 8 == 0) t.specials();
    t.run();
  }
}

TEST_P(OutOfCoreTest, MatMul) {
  for (uint32_t seed = 1; seed <= 140 && !HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    const bool is_small = seed > 40;
    const SmallShape small(random);
    const int64_t m = is_small ? small.m : any_size(random, 90),
                  n = is_small ? small.n : any_size(random, 90),
                  k = is_small ? small.k : any_size(random, 300);
    const bool trans_a = random() % 2 != 0, trans_b = random() % 2 != 0;
    const Sizes batches[][2] = {{{}, {}},   {{3}, {}},        {{}, {3}},
                                {{3}, {3}}, {{2, 1}, {1, 3}}, {{2, 3}, {2, 1}}};
    const auto& batch = batches[random() % 6];
    Sizes src = batch[0], weights = batch[1];
    src.insert(src.end(), {trans_a ? k : m, trans_a ? m : k});
    weights.insert(weights.end(), {trans_b ? n : k, trans_b ? k : n});
    const auto layout = [&](const Sizes& dims, bool repeats) {
      Layout l{
          .gap = random() % 3 == 0 ? 2 : 0,
          .repeated = repeats && random() % 8 == 0 ? random() % (uint64_t{1} << dims.size()) : 0};
      for (size_t axis = dims.size(); random() % 3 == 0 && l.order.size() < dims.size();)
        l.order.push_back(--axis);
      if (l.order.size() != dims.size()) l.order.clear();
      return l;
    };
    MatMulTester t = MatMulTester().type(GetParam()).trans(trans_a, trans_b).seed(seed);
    t.src(src, layout(src, true)).weights(weights, layout(weights, true));
    const Sizes dst = t.dst_dims();
    t.dst(layout(dst, false))
        .float32(compute_type(GetParam()) == DType::kFloat32 && random() % 2 != 0);
    const Sizes biases[] = {{}, {n}, {m, 1}, {m, n}, dst};
    if (random() % 2 != 0) t.bias(biases[random() % 5]);
    if (random() % 2 != 0) t.alpha(random() % 2 != 0 ? 3 : 0.37);
    t.out_of_core(is_small ? small_setup(random) : any_setup(random));
    t.packed(random() % 3 == 0).padded(random() % 2 != 0);
    t.run();
  }
}

TEST_P(OutOfCoreTest, MatMulOfVectorsAndInPlace) {
  const OutOfCoreSetup setup{.limit = 100'000};
  const auto tester = [&] { return MatMulTester().type(GetParam()).out_of_core(setup); };
  tester().src({70'000}).weights({70'000}).run();
  tester().src({900}).weights({2, 900, 80}).bias({80}).run();
  tester().src({3, 300, 80}).weights({80}).bias({}).run();
  tester().src({3, 90, 200}).weights({3, 200, 70}).in_place().run();
  tester().src({2, 90, 0}).weights({0, 70}).bias({70}).run();
  tester().src({2, 0, 9}).weights({9, 70}).run();
  // Tensors without elements, whose axes repeat.
  for (const uint64_t repeated : {1u, 2u, 4u, 7u}) {
    const Layout layout{.repeated = repeated};
    tester().src({2, 90, 0}, layout).weights({2, 0, 70}, layout).bias({70}).run();
    tester().src({0, 90, 5}, layout).weights({5, 70}).run();
    tester().src({2, 0, 9}, layout).weights({2, 9, 0}, layout).run();
  }
}

TEST_P(OutOfCoreTest, InStrictModeTheSameBits) {
  const DType type = GetParam();
  for (uint32_t seed = 1; seed <= 80 && !HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    const bool is_small = seed > 20;
    const SmallShape small(random);
    const int64_t m = is_small ? small.m : any_size(random, 200),
                  n = is_small ? small.n : any_size(random, 200),
                  k = is_small ? small.k : any_size(random, 900);
    const auto check = [&](auto element) {
      using T = decltype(element);
      Array<T> a({m, k}, 0, random() % 2 != 0), b({k, n}, 0, random() % 2 != 0), c({n}, 0, false);
      for (auto* array : {&a, &b, &c}) fill(*array, random, random() % 4 == 0);
      std::vector<T> results[2];
      for (const bool out_of_core : {false, true}) {
        Array<T> y({m, n}, 0, false);
        const ConstTensor bias = c.tensor(type);
        GemmArgs args;
        args.A = a.tensor(type);
        args.B = b.tensor(type);
        args.C = &bias;
        args.Y = y.template tensor<void>(type);
        args.alpha = 0.3;
        args.beta = is_integer(type) ? -2 : -1.7;
        if (out_of_core) {
          OutOfCoreSetup setup = is_small ? small_setup(random) : any_setup(random);
          setup.determinism = Determinism::kStrict;
          const Status status = check_out_of_core(&gemm, args, setup, test_threads(), &args.A,
                                                  &args.B, &args.C, &args.Y);
          ASSERT_TRUE(status.ok()) << status.message;
        } else {
          Context context(0, Determinism::kStrict);
          ASSERT_TRUE(gemm(context, args).ok());
        }
        results[out_of_core] = y.values();
      }
      EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(T)), 0)
          << m << " " << n << " " << k;
    };
    switch (type) {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  case DType::k##Enumerator:                                        \
    check(Storage{});                                               \
    break;
#include "dtypes.def"
#undef WGEMM_DTYPE
      default:
        break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, OutOfCoreTest, ::testing::ValuesIn(kTypes),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

TEST(OutOfCoreQGemm, AnythingAtRandom) {
  constexpr DType kBytes[] = {DType::kInt8, DType::kUInt8};
  for (uint32_t seed = 1; seed <= 600 && !::testing::Test::HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    const auto size = [&](uint64_t most) {
      return static_cast<int64_t>(1 + random() % (random() % 4 == 0 ? 9 : most));
    };
    const bool is_small = seed > 150;
    const SmallShape small(random);
    const int64_t m = is_small ? small.m : size(200), n = is_small ? small.n : size(200),
                  k_of_large = random() % 9 == 0 ? 0 : size(900),
                  k = is_small ? small.k : k_of_large;
    QGemmTester t =
        QGemmTester().types(kBytes[random() % 2], kBytes[random() % 2]).sizes(m, n, k).seed(seed);
    t.trans(random() % 2 != 0, random() % 2 != 0)
        .gap(random() % 2 != 0 ? 3 : 0)
        .columns(random() % 3 == 0);
    t.extents(Extent::kOne, random() % 2 != 0 ? Extent::kColumns : Extent::kStrided,
              random() % 2 != 0 ? Extent::kColumns : Extent::kOne);
    t.zero_points(random() % 4 == 0 ? Values::kAbsent : Values::kRandom,
                  random() % 4 == 0 ? Values::kAbsent : Values::kRandom);
    if (random() % 2 != 0) t.output(kBytes[random() % 2]);
    const std::vector<int64_t> shapes[] = {{}, {n}, {m, 1}, {m, n}};
    if (random() % 2 != 0) t.c(shapes[random() % 4]);
    OutOfCoreSetup setup = small_setup(random);
    if (!is_small) setup = {.limit = kLimits[random() % 2], .operands = setup.operands};
    t.out_of_core(setup);
    t.packed(random() % 2 == 0).padded(random() % 2 != 0);
    t.run();
  }
}

// Memory
// ------------------------------------------------------------------------------------------------------------------------

struct Square {
  static constexpr int64_t kSize = 500;
  Array<float> a{{kSize, kSize}, 0, false}, b{{kSize, kSize}, 0, false},
      y{{kSize, kSize}, 0, false};
  GemmArgs args;

  Square() {
    std::mt19937_64 random(1);
    fill(a, random);
    fill(b, random);
    std::fill_n(y.data.get(), y.length, 9.0F);
    args.A = a.tensor(DType::kFloat32);
    args.B = b.tensor(DType::kFloat32);
    args.Y = y.tensor<void>(DType::kFloat32);
  }
};

TEST(OutOfCoreMemory, WhateverTheLimitAllOrNothingIsWritten) {
  Square whole;
  Context free(0, Determinism::kStrict);
  ASSERT_TRUE(gemm(free, whole.args).ok());
  int refused = 0;
  for (const size_t limit : std::initializer_list<size_t>{64, 1000, 5000, 10'000, 20'000, 50'000,
                                                          150'000, 500'000, 2'000'000}) {
    Square square;
    const OutOfCoreTensor<const void> a(&square.args.A), b(&square.args.B);
    const OutOfCoreTensor<void> y(&square.args.Y);
    Context context(limit, Determinism::kStrict);
    const Status status = gemm(context, square.args);
    EXPECT_EQ(context.bytes_in_use(), 0);
    if (status.ok()) {
      EXPECT_EQ(square.y.values(), whole.y.values());
    } else {
      ++refused;
      EXPECT_EQ(status.code, Code::kOutOfMemory);
      EXPECT_NE(std::string(status.message).find("bytes, which the smallest blocks take"),
                std::string::npos)
          << status.message;
      EXPECT_EQ(a.moved_bytes() + b.moved_bytes() + y.moved_bytes(), 0);
    }
  }
  EXPECT_TRUE(refused > 1 && refused < 6) << refused;
}

TEST(OutOfCoreMemory, CopiesLittleComparedWithTheProduct) {
  Square square;
  const OutOfCoreTensor<const void> a(&square.args.A), b(&square.args.B);
  const OutOfCoreTensor<void> y(&square.args.Y);
  constexpr int64_t kOnce = Square::kSize * Square::kSize * 4;
  const auto copied = [&](size_t limit) {
    Explanation plan;
    EXPECT_TRUE(explain(Context(limit), square.args, &plan).ok());
    return static_cast<double>(plan.moved_bytes) / kOnce;
  };
  EXPECT_EQ(copied(0), 3);          // A, B and Y once
  EXPECT_LE(copied(1'500'000), 7);  // half of the operands
  EXPECT_LE(copied(300'000), 13);   // a tenth
}

TEST(OutOfCoreMemory, ScalesMustBeInMemory) {
  const float scale = 1;
  ConstTensor scale_tensor{.data = &scale, .dtype = DType::kFloat32, .size = 1};
  const OutOfCoreTensor<const void> hidden(&scale_tensor);
  const int64_t dims[] = {1, 1};
  const int8_t one = 1;
  float y;
  const ConstTensor matrix{.data = &one, .dtype = DType::kInt8, .dims = dims};
  QGemmArgs args;
  args.A = args.B = matrix;
  args.a_scale = scale_tensor;
  args.b_scale = {.data = &scale};
  args.Y = {.data = &y, .dims = dims};
  Context context;
  const Status status = qgemm(context, args);
  EXPECT_EQ(status.code, Code::kArgument);
  EXPECT_STREQ(status.message, "qgemm: a_scale has no data");
}

// Sizes near the largest that are allowed, and beyond: explain() returns a plan or an error, and
// none of its sums and products overflows.
TEST(Explain, AbsurdSizes) {
  constexpr int64_t kSizes[] = {0,
                                1,
                                2,
                                3,
                                17,
                                int64_t{1} << 26,
                                (int64_t{1} << 26) + 1,
                                int64_t{1} << 27,
                                (int64_t{1} << 52) - 1,
                                (int64_t{1} << 53) - 1,
                                int64_t{1} << 53,
                                int64_t{1} << 61,
                                INT64_MAX};
  constexpr int64_t kStrides[] = {
      -1, 0, 1, int64_t{1} << 27, int64_t{1} << 53, int64_t{1} << 62};  // -1: contiguous
  const OutOfCore out_of_core{.move = [](void*, const Runs&, void*) {}};
  const float scale = 1;
  std::mt19937_64 random(1);
  const auto pick = [&](const auto& from) { return from[random() % std::size(from)]; };
  int planned = 0;
  for (int i = 0; i < 60'000; ++i) {
    const bool is_out_of_core = random() % 2 != 0;
    const int64_t m = pick(kSizes), n = pick(kSizes), k = pick(kSizes),
                  batch = random() % 2 != 0 ? 1 : pick(kSizes);
    const int64_t a_dims[] = {batch, m, k}, b_dims[] = {random() % 2 != 0 ? 1 : batch, k, n};
    int64_t strides[4][3];
    const auto tensor = [&](std::span<const int64_t> dims, int64_t(&of)[3], DType dtype) {
      ConstTensor t{.dtype = dtype,
                    .dims = dims,
                    .place = {.space = 1},
                    .out_of_core = is_out_of_core ? &out_of_core : nullptr};
      for (int64_t& stride : of) stride = pick(kStrides);
      if (of[0] >= 0) t.strides = std::span(of).first(dims.size());
      if (random() % 4 == 0) t.offset = pick(kSizes);
      return t;
    };
    const Context context(random() % 2 != 0 ? 0 : 1'000'000,
                          random() % 2 != 0 ? Determinism::kFast : Determinism::kStrict);
    const int64_t reserved = pick(kSizes);
    const auto a = std::span(a_dims), b = std::span(b_dims);
    Explanation e;
    Status status;
    if (i % 3 == 0) {
      MatMulArgs args;
      const DType type = pick(kTypes);
      args.src = tensor(a, strides[0], type);
      args.weights = tensor(b, strides[1], type);
      args.dst.dtype = type;
      args.dst.out_of_core = args.src.out_of_core;
      status = explain(context, args, &e, reserved);
    } else if (i % 3 == 1) {
      GemmArgs args;
      const DType type = pick(kTypes);
      args.A = tensor(a.last(2), strides[0], type);
      args.B = tensor(b.last(2), strides[1], type);
      args.Y.out_of_core = args.A.out_of_core;
      const ConstTensor c = tensor(a.first(1), strides[2], type);
      if (random() % 4 == 0) args.C = &c;
      status = explain(context, args, &e, reserved);
    } else {
      QGemmArgs args;
      args.A = tensor(a.last(2), strides[0], DType::kUInt8);
      args.B = tensor(b.last(2), strides[1], DType::kInt8);
      args.Y.out_of_core = args.A.out_of_core;
      args.a_scale = args.b_scale = {.data = &scale};
      status = explain(context, args, &e, reserved);
    }
    planned += status.ok() ? 1 : 0;
    ASSERT_GE(e.scratch_bytes, 0);
    ASSERT_GE(e.moved_bytes, 0);
  }
  EXPECT_GT(planned, 1000);
}

}  // namespace
}  // namespace wgemm::testing
