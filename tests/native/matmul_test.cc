// MatMul through the whole pipeline, for every type.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "api/run.h"
#include "base/types.h"
#include "engine.h"
#include "kernels/portable.h"
#include "matmul_tester.h"
#include "ops/ops.h"
#include "pack/pack.h"

namespace wgemm::testing {
namespace {

class MatMul : public ::testing::TestWithParam<DType> {
 protected:
  static MatMulTester tester() { return MatMulTester().type(GetParam()); }
};

// Problems at random
// -------------------------------------------------------------------------------------------------

const Kernel* any_kernel(DType compute, Draw& draw) {
  const KernelTable table = kernel_table();
  std::vector<const Kernel*> kernels{nullptr};
  for (int i = 0; i < table.count; ++i) {
    if (table.rows[i].compute == compute) kernels.push_back(&table.rows[i]);
  }
  return kernels[static_cast<size_t>(draw.below(std::ssize(kernels)))];
}

MatMulTester any(DType type, uint32_t seed) {
  Draw draw(seed);
  const Sizes sizes{1, 1, 2, 3, 4, 7, 9}, depths{1, 2, 3, 5, 8, 17};
  const auto size = [&](const Sizes& from) { return draw.one_in(24) ? 0 : draw.one_of(from); };
  const int64_t m = size(sizes), n = size({1, 2, 5, 8, 9, 19}), k = size(depths);
  Sizes batch;
  for (int64_t rank = draw.below(4); rank > 0; --rank) batch.push_back(size({1, 2, 2, 3}));

  const bool trans_a = draw.one_in(2), trans_b = draw.one_in(2);
  Sizes src{k}, weights{k};
  if (!draw.one_in(8)) {
    src = draw.part_of(batch);
    src.insert(src.end(), {trans_a ? k : m, trans_a ? m : k});
  }
  if (!draw.one_in(8)) {
    weights = draw.part_of(batch);
    weights.insert(weights.end(), {trans_b ? n : k, trans_b ? k : n});
  }
  MatMulTester t = MatMulTester().type(type).seed(seed).trans(trans_a, trans_b);
  t.src(src, draw.layout(src.size(), true)).weights(weights, draw.layout(weights.size(), true));
  const Sizes dst = t.dst_dims();
  t.dst(draw.layout(dst.size(), false));
  const bool wide = draw.one_in(2) && compute_type(type) == DType::kFloat32;
  t.float32(wide);
  if (draw.one_in(2)) {
    const Sizes bias = draw.part_of(dst);
    t.bias(bias, draw.layout(bias.size(), true));
  } else if (draw.one_in(3) && (!wide || type == DType::kFloat32)) {
    t.in_place();
  }
  t.packed(weights.size() > 1 && draw.one_in(3));
  if (draw.one_in(2)) {
    const Sizes blocks{0, 0, 1, 2, 3, 4, 8, 11};
    t.options({.kernel = any_kernel(compute_type(type), draw),
               .mc = draw.one_of(blocks),
               .nc = draw.one_of(blocks),
               .kc = draw.one_of(blocks)});
  }
  if (draw.one_in(8)) t.specials();
  const Factor factors[] = {0, -2, 0.37, 3};
  if (draw.one_in(2)) t.alpha(factors[draw.below(4)]);
  t.padded(draw.one_in(3));
  return t;
}

TEST_P(MatMul, AnythingAtRandom) {
  for (uint32_t seed = 1; seed <= 1000 && !HasFailure(); ++seed) any(GetParam(), seed).run();
}

// The rules
// -------------------------------------------------------------------------------------------------

TEST_P(MatMul, EverySmallSize) {
  for (const int64_t m : {0, 1, 2, 3, 5}) {
    for (const int64_t n : {0, 1, 2, 7, 8, 9, 17}) {
      for (const int64_t k : {0, 1, 2, 9}) {
        tester().src({2, m, k}).weights({k, n}).run();
        tester().src({2, m, k}).weights({2, k, n}).bias({n}).packed().run();
      }
    }
  }
}

TEST_P(MatMul, BatchAxesBroadcastBothWays) {
  const Sizes pairs[][2] = {
      {{}, {3}},           {{3}, {}},           {{3}, {1}},          {{1}, {3}},
      {{3}, {3}},          {{2, 1}, {3}},       {{3}, {2, 1}},       {{2, 1}, {1, 3}},
      {{1, 3}, {2, 1}},    {{2, 3, 2}, {2}},    {{2}, {2, 3, 2}},    {{2, 1, 2}, {3, 1}},
      {{3, 1}, {2, 1, 2}}, {{1, 1, 1}, {1, 1}}, {{2, 3, 2}, {3, 1}}, {{2, 3, 2}, {2, 1, 2}}};
  for (const auto& [a, b] : pairs) {
    for (const bool trans : {false, true}) {
      Sizes src = a, weights = b;
      src.insert(src.end(), {trans ? 5 : 3, trans ? 3 : 5});
      weights.insert(weights.end(), {trans ? 9 : 5, trans ? 5 : 9});
      for (const bool packed : {false, true}) {
        tester().src(src).weights(weights).trans(trans, trans).packed(packed).run();
        tester()
            .src(src, {.gap = 2})
            .weights(weights, {.gap = 1})
            .trans(trans, trans)
            .bias({3, 9})
            .packed(packed)
            .dst({.gap = 1})
            .run();
      }
    }
  }
}

TEST_P(MatMul, VectorTimesMatrix) {
  for (const Sizes& weights : {Sizes{7, 9}, {2, 7, 9}, {2, 1, 7, 9}, {7, 1}, {7, 0}, {0, 7, 9}}) {
    for (const bool packed : {false, true}) {
      tester().src({7}).weights(weights).packed(packed).run();
      tester()
          .src({7}, {.gap = 1, .repeated = 1})
          .weights(weights, {.gap = 1})
          .bias({1})
          .packed(packed)
          .dst({.gap = 2})
          .run();
    }
  }
  tester().src({7}).weights({2, 9, 7}).trans(false, true).bias({2, 9}).run();
}

TEST_P(MatMul, MatrixTimesVector) {
  for (const Sizes& src : {Sizes{9, 7}, {2, 9, 7}, {2, 1, 9, 7}, {1, 7}, {0, 7}, {2, 0, 9, 7}}) {
    tester().src(src).weights({7}).run();
    tester().src(src, {.gap = 1}).weights({7}, {.repeated = 1}).bias({1}).dst({.gap = 2}).run();
  }
  tester().src({2, 7, 9}).weights({7}).trans(true, false).bias({2, 9}).run();
}

TEST_P(MatMul, VectorTimesVector) {
  tester().src({7}).weights({7}).run();
  tester().src({1}).weights({1}).bias({}).run();
  tester().src({0}).weights({0}).run();
  tester().src({0}).weights({0}).bias({}).run();
  tester().src({7}).weights({7}).in_place().run();
  EXPECT_TRUE(tester().src({7}).weights({7}).dst_dims().empty());
}

TEST_P(MatMul, TransposesDoNothingToVectors) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      tester().src({7}).weights({7}).trans(a, b).run();
      tester().src({7}).weights({2, b ? 9 : 7, b ? 7 : 9}).trans(a, b).run();
      tester().src({2, a ? 7 : 9, a ? 9 : 7}).weights({7}).trans(a, b).run();
      // Square matrices show a wrong transpose, since no shape check finds it.
      tester().src({5, 5}).weights({5}).trans(a, b).run();
      tester().src({5}).weights({5, 5}).trans(a, b).run();
      tester().src({2, 5, 5}).weights({5, 5}).trans(a, b).run();
    }
  }
}

TEST_P(MatMul, WithoutKDstIsBiasOrZeros) {
  for (const bool packed : {false, true}) {
    tester().src({2, 3, 0}).weights({0, 9}).packed(packed).run();
    tester().src({2, 3, 0}).weights({2, 0, 9}).bias({2, 3, 9}).packed(packed).run();
    tester()
        .src({2, 3, 0})
        .weights({0, 9})
        .bias({2, 1, 1})
        .specials()
        .dst({.order = {2, 0, 1}, .gap = 1})
        .packed(packed)
        .run();
    tester().src({2, 3, 0}).weights({0, 9}).in_place().packed(packed).run();
    tester().src({0}).weights({2, 0, 9}).bias({9}).packed(packed).run();
  }
  tester().src({2, 3, 0}).weights({0}).bias({3}).run();
}

TEST_P(MatMul, WithoutRowsColumnsOrBatchesNothingIsWritten) {
  for (const bool packed : {false, true}) {
    tester().src({2, 0, 5}).weights({5, 9}).bias({9}).packed(packed).run();
    tester().src({2, 3, 5}).weights({5, 0}).bias({3, 1}).packed(packed).run();
    tester().src({0, 3, 5}).weights({5, 9}).packed(packed).run();
    tester().src({3, 5}).weights({0, 5, 9}).bias({0, 1, 1}).packed(packed).run();
    tester().src({0, 3, 5}).weights({1, 5, 9}).packed(packed).run();
    tester().src({2, 1, 3, 5}).weights({0, 5, 9}).packed(packed).in_place().run();
    tester().src({2, 0, 3, 0}).weights({0, 9}).packed(packed).run();
  }
}

TEST_P(MatMul, BiasBroadcastsToDst) {
  const Sizes shapes[] = {{},        {1},       {9},       {1, 1},    {1, 9},
                          {3, 1},    {3, 9},    {1, 1, 1}, {1, 1, 9}, {1, 3, 1},
                          {1, 3, 9}, {2, 1, 1}, {2, 1, 9}, {2, 3, 1}, {2, 3, 9}};
  for (const Sizes& bias : shapes) {
    for (const bool wide : {false, true}) {
      // Products that merge into one, and separate products; then dst without columns, without
      // rows.
      tester().src({2, 3, 5}).weights({5, 9}).bias(bias).float32(wide).run();
      tester()
          .src({2, 3, 5})
          .weights({2, 5, 9})
          .bias(bias, {.gap = 2})
          .float32(wide)
          .dst({.order = {0, 2, 1}})
          .run();
      tester().src({2, 3, 9, 5}).weights({5}).bias(bias).float32(wide).run();
      tester().src({5}).weights({2, 3, 5, 9}).bias(bias, {.repeated = 5}).float32(wide).run();
    }
  }
}

// The rows merge into one product, with a bias per row or without.
TEST_P(MatMul, SingleRowsOfABatch) {
  for (const Sizes& bias : {Sizes{}, {9}, {4, 1, 1}, {4, 1, 9}, {2, 1, 1, 9}, {2, 4, 1, 9}}) {
    tester().src({2, 4, 1, 5}).weights({5, 9}).bias(bias).run();
    tester()
        .src({2, 4, 1, 5}, {.gap = 1})
        .weights({2, 1, 5, 9})
        .bias(bias, {.gap = 1})
        .dst({.gap = 1})
        .run();
    tester()
        .src({5})
        .weights({2, 4, 5, 9}, {.repeated = 3})
        .bias(bias.size() > 3 ? Sizes{4, 9} : Sizes{4, 1})
        .run();
  }
}

TEST_P(MatMul, OffsetsOfEveryOperand) {
  for (const bool packed : {false, true}) {
    tester().src({2, 3, 5}).weights({5, 9}).bias({9}).packed(packed).padded().run();
    tester().src({3, 5}).weights({2, 5, 9}).bias({2, 3, 9}).packed(packed).padded().run();
    tester().src({2, 3, 5}).weights({2, 5, 9}).packed(packed).in_place().padded().run();
    tester().src({7}).weights({2, 7, 9}).bias({2, 1}).packed(packed).padded().float32().run();
    tester().src({2, 3, 0}).weights({0, 9}).bias({}).packed(packed).padded().run();
    tester().src({2, 0, 3}).weights({3, 9}).packed(packed).padded().run();
  }
  tester().src({2, 9, 7}).weights({7}).bias({9}).padded().run();
  tester().src({7}).weights({7}).bias({}).padded().run();
  const Layout layout{.order = {2, 0, 1}, .gap = 1}, repeats{.repeated = 3};
  tester().src({2, 3, 5}, layout).weights({2, 5, 9}, layout).dst(layout).padded().run();
  tester().src({2, 3, 5}, repeats).weights({2, 5, 9}, repeats).bias({3, 1}).padded().run();
}

TEST_P(MatMul, EveryFactor) {
  const double inf = std::numeric_limits<double>::infinity();
  const Sizes batches[][2] = {{{}, {}}, {{2}, {}}, {{2}, {2}}, {{}, {2}}};
  for (const double alpha : {1.0, 0.0, -2.0, 0.37, 1 + 1e-12, 2147483648.0, 0x1p53, -0x1p53}) {
    for (const auto& [a, b] : batches) {
      for (const int64_t k : {0, 1, 5}) {
        Sizes src = a, weights = b;
        src.insert(src.end(), {3, k});
        weights.insert(weights.end(), {k, 9});
        tester().src(src).weights(weights).alpha(alpha).run();
        tester().src(src).weights(weights).alpha(alpha).bias({3, 1}).float32().run();
        tester().src(src).weights(weights).alpha(alpha).in_place().dst({.gap = 2}).run();
      }
    }
    // A vector; then N = 1 and a small N, for which the transpose of dst is faster.
    tester().src({7}).weights({2, 7, 9}).alpha(alpha).bias({9}).run();
    tester().src({2, 9, 7}).weights({7}).alpha(alpha).bias({9}).run();
    tester().src({7}).weights({7}).alpha(alpha).run();
    tester().src({40, 30}).weights({30, 1}).alpha(alpha).run();
    tester().src({40, 30}).weights({30, 2}).alpha(alpha).bias({2}).run();
    tester().src({2, 19, 21}).weights({21, 35}).alpha(alpha).options({.kc = 5}).run();
  }
  if (is_integer(GetParam())) return;
  for (const double alpha : {inf, -inf, std::numeric_limits<double>::quiet_NaN(), 0.0, 0.5}) {
    tester().src({2, 3, 7}).weights({7, 9}).alpha(alpha).specials().run();
    tester().src({2, 3, 7}).weights({7, 9}).alpha(alpha).bias({9}).specials().float32().run();
    tester().src({3, 0}).weights({0, 9}).alpha(alpha).bias({9}).run();
  }
}

TEST_P(MatMul, ExactFactorsOf64Bits) {
  if (!is_integer(GetParam()) || dtype_bytes(GetParam()) != 8) return;
  for (const uint64_t alpha :
       {uint64_t{0}, uint64_t{3}, ~uint64_t{0}, uint64_t{1} << 63, (uint64_t{1} << 53) + 1}) {
    tester().src({2, 3, 5}).weights({5, 9}).alpha(Factor::exact(alpha)).run();
    tester().src({3, 5}).weights({2, 5, 9}).bias({9}).alpha(Factor::exact(alpha)).run();
    tester().src({3, 0}).weights({0, 9}).bias({9}).alpha(Factor::exact(alpha)).run();
  }
}

TEST_P(MatMul, DstThatIsBias) {
  for (const Layout& layout :
       {Layout{}, {.gap = 2}, {.order = {0, 2, 1}}, {.order = {2, 1, 0}, .gap = 1}}) {
    for (const bool packed : {false, true}) {
      tester().src({2, 3, 5}).weights({5, 9}).dst(layout).in_place().packed(packed).run();
      tester()
          .src({2, 3, 5})
          .weights({2, 5, 9})
          .dst(layout)
          .in_place()
          .packed(packed)
          .options({.mc = 2, .nc = 8, .kc = 2})
          .run();
    }
  }
}

TEST_P(MatMul, InputsThatRepeatElements) {
  for (uint64_t a = 0; a < 8; ++a) {
    for (uint64_t b = 0; b < 8; ++b)
      tester().src({2, 3, 5}, {.repeated = a}).weights({2, 5, 9}, {.repeated = b}).run();
  }
}

TEST_P(MatMul, AxesInAnyOrder) {
  std::vector<size_t> order{0, 1, 2, 3};
  do {
    const Layout layout{.order = order, .gap = 1};
    tester().src({2, 3, 4, 5}, layout).weights({2, 3, 5, 9}).run();
    tester().src({2, 3, 4, 5}).weights({2, 1, 5, 9}, layout).run();
    tester()
        .src({2, 3, 4, 5})
        .weights({5, 9})
        .bias({2, 3, 4, 9}, layout)
        .dst({.order = order})
        .run();
    tester()
        .src({2, 3, 4, 5})
        .weights({2, 1, 5, 9}, {.order = order})
        .packed()
        .in_place()
        .dst(layout)
        .run();
  } while (std::ranges::next_permutation(order).found);
}

// A row-major array holds queries, keys and values of all heads; another one holds the results.
TEST_P(MatMul, HeadsOfOneArray) {
  const int64_t heads = 3, rows = 7, size = 5;
  const Layout head{.order = {1, 0, 2},
                    .gap = 2 * size};  // elements of the other two lie in the gap
  for (const bool wide : {false, true}) {
    tester()
        .src({heads, rows, size}, head)
        .weights({heads, rows, size}, head)
        .trans(false, true)
        .float32(wide)
        .run();
    tester()
        .src({heads, rows, rows})
        .weights({heads, rows, size}, head)
        .dst({.order = {1, 0, 2}})
        .float32(wide)
        .run();
    tester()
        .src({heads, rows, rows})
        .weights({1, rows, size}, head)
        .dst({.order = {1, 0, 2}})
        .bias({rows, 1})
        .float32(wide)
        .run();
  }
}

TEST_P(MatMul, SplitK) {
  for (const int64_t k : {4097, 9001}) {
    for (const bool packed : {false, true}) {
      tester().src({2, 3, k}).weights({k, 9}).packed(packed).run();
      tester().src({2, 3, k}, {.gap = 1}).weights({2, k, 2}).bias({3, 1}).packed(packed).run();
      tester().src({2, 1, k}, {.order = {2, 1, 0}}).weights({k, 9}).packed(packed).run();
    }
    tester().src({k}).weights({k}).bias({}).run();
  }
}

TEST_P(MatMul, BlocksOfAnySize) {
  for (const int64_t block : {1, 7, 16}) {
    for (const bool packed : {false, true}) {
      const PlanOptions options{.mc = block, .nc = block, .kc = block};
      tester().src({2, 19, 21}).weights({21, 35}).packed(packed).options(options).run();
      tester()
          .src({2, 2, 19, 21}, {.gap = 1})
          .weights({2, 1, 21, 35})
          .bias({35})
          .packed(packed)
          .options(options)
          .run();
    }
  }
}

TEST_P(MatMul, NanAndInfinitiesPropagate) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    for (const bool packed : {false, true}) {
      tester().src({2, 3, 7}).weights({7, 9}).specials().packed(packed).seed(seed).run();
      tester()
          .src({2, 3, 7})
          .weights({2, 7, 9})
          .bias({3, 9})
          .specials()
          .packed(packed)
          .seed(seed)
          .run();
      tester()
          .src({7})
          .weights({2, 7, 9})
          .bias({1})
          .specials()
          .float32()
          .packed(packed)
          .seed(seed)
          .run();
      tester()
          .src({3, 12})
          .weights({12, 9})
          .specials()
          .packed(packed)
          .options({.kc = 5})
          .seed(seed)
          .run();
    }
  }
}

TEST_P(MatMul, RankOf64) {
  Sizes src(64, 1), weights(64, 1);
  src[0] = 2, src[30] = 3, src[62] = 4, src[63] = 5;
  weights[1] = 2, weights[30] = 3, weights[62] = 5, weights[63] = 9;
  tester().src(src).weights(weights).run();
  tester().src(src, {.gap = 1}).weights(weights, {.gap = 1}).packed().bias({4, 1}).run();
  tester().src({5}).weights(weights).in_place().run();
  tester().src(src).weights({5}).run();
}

constexpr DType kTypes[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) DType::k##Enumerator,
#include "dtypes.def"
#undef WGEMM_DTYPE
};
INSTANTIATE_TEST_SUITE_P(Types, MatMul, ::testing::ValuesIn(kTypes),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

// Merging of batch axes
// -------------------------------------------------------------------------------------------------

// A call without data.
struct Call {
  Sizes src, weights, src_strides{}, weights_strides{}, dst_strides{};
  std::optional<Sizes> bias{};
  bool trans_a = false;
};

struct Expected {
  Call call;
  int64_t batch, m;
  size_t axes;  // number of axes after merging
};

const Expected kBatches[] = {
    // Rows of src are contiguous across matrices that share weights: one product.
    {{{4, 3, 5}, {5, 9}}, 1, 12, 0},
    {{{2, 4, 3, 5}, {5, 9}}, 1, 24, 0},
    {{{2, 4, 3, 5}, {1, 1, 5, 9}}, 1, 24, 0},
    {{{4, 3, 5}, {5}}, 1, 12, 0},
    {{{4, 1, 5}, {5}}, 1, 4, 0},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .src_strides = {24, 8, 1}}, 1, 12, 0},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .dst_strides = {36, 12, 1}}, 1, 12, 0},
    {{.src = {4, 3, 5}, .weights = {4, 5, 9}, .weights_strides = {0, 9, 1}}, 1, 12, 0},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .bias = Sizes{}}, 1, 12, 0},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .bias = Sizes{9}}, 1, 12, 0},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .bias = Sizes{4, 3, 9}}, 1, 12, 0},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .bias = Sizes{4, 3, 1}}, 1, 12, 0},
    // 1 x K matrices always merge.
    {{.src = {4, 1, 5}, .weights = {5, 9}, .src_strides = {99, 3, 1}, .dst_strides = {77, 3, 1}},
     1,
     4,
     0},
    {{.src = {4, 1, 5}, .weights = {5, 9}, .src_strides = {0, 0, 1}}, 1, 4, 0},
    {{.src = {4, 5, 1}, .weights = {5, 9}, .trans_a = true}, 1, 4, 0},
    {{.src = {4, 1, 5}, .weights = {5, 9}, .bias = Sizes{4, 1, 9}}, 1, 4, 0},
    {{.src = {4, 1, 5}, .weights = {5, 9}, .bias = Sizes{4, 1, 1}}, 1, 4, 0},
    // Only one axis merges.
    {{{2, 4, 3, 5}, {2, 1, 5, 9}}, 2, 12, 1},
    {{{2, 4, 1, 5}, {4, 5, 9}}, 4, 2, 1},
    {{.src = {2, 4, 3, 5}, .weights = {5, 9}, .src_strides = {61, 15, 5, 1}}, 2, 12, 1},
    {{.src = {2, 4, 3, 5},
      .weights = {5, 9},
      .src_strides = {15, 30, 5, 1},
      .dst_strides = {27, 54, 9, 1}},
     4,
     6,
     1},
    {{.src = {2, 4, 3, 5}, .weights = {5, 9}, .bias = Sizes{2, 1, 1, 9}}, 2, 12, 1},
    // No axis merges.
    {{.src = {4, 3, 5}, .weights = {5, 9}, .src_strides = {16, 5, 1}}, 4, 3, 1},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .src_strides = {0, 5, 1}}, 4, 3, 1},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .dst_strides = {28, 9, 1}}, 4, 3, 1},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .dst_strides = {27, 1, 3}}, 4, 3, 1},
    {{.src = {4, 5, 3}, .weights = {5, 9}, .trans_a = true}, 4, 3, 1},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .bias = Sizes{3, 9}}, 4, 3, 1},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .bias = Sizes{3, 1}}, 4, 3, 1},
    {{.src = {4, 3, 5}, .weights = {5, 9}, .bias = Sizes{4, 1, 9}}, 4, 3, 1},
    {{{3, 5}, {4, 5, 9}}, 4, 3, 1},
    {{{5}, {4, 5, 9}}, 4, 1, 1},
    {{{12, 128, 64}, {12, 64, 128}}, 12, 128, 1},
    // Contiguous axes merge.
    {{{2, 3, 4, 5}, {2, 3, 5, 9}}, 6, 4, 1},
    {{{2, 3, 7, 4, 5}, {2, 3, 7, 5, 9}}, 42, 4, 1},
    {{{2, 1, 7, 4, 5}, {2, 1, 7, 5, 9}}, 14, 4, 1},
    {{.src = {2, 3, 4, 5}, .weights = {2, 3, 5, 9}, .bias = Sizes{2, 3, 1, 1}}, 6, 4, 1},
    {{.src = {2, 3, 4, 5}, .weights = {2, 3, 5, 9}, .bias = Sizes{3, 1, 1}}, 6, 4, 2},
    {{.src = {2, 3, 4, 5}, .weights = {2, 3, 5, 9}, .src_strides = {61, 20, 5, 1}}, 6, 4, 2},
    {{.src = {2, 3, 4, 5}, .weights = {2, 3, 5, 9}, .weights_strides = {136, 45, 9, 1}}, 6, 4, 2},
    {{.src = {2, 3, 4, 5}, .weights = {2, 3, 5, 9}, .dst_strides = {109, 36, 9, 1}}, 6, 4, 2},
    {{{2, 3, 4, 5}, {3, 5, 9}}, 6, 4, 2},
};

TEST(MatMulExplain, OneProductIfStridesAllow) {
  for (const Expected& expected : kBatches) {
    SCOPED_TRACE(&expected - kBatches);
    const Call& call = expected.call;
    const Sizes dst =
        MatMulTester().src(call.src).weights(call.weights).trans(call.trans_a, false).dst_dims();
    MatMulArgs args;
    args.src = {.dims = call.src, .strides = call.src_strides};
    args.weights = {.dims = call.weights, .strides = call.weights_strides};
    ConstTensor bias;
    if (call.bias.has_value()) {
      bias.dims = *call.bias;
      args.bias = &bias;
    }
    if (!call.dst_strides.empty()) args.dst = {.dims = dst, .strides = call.dst_strides};
    args.transpose_a = call.trans_a;
    MatMulProblem p;
    Status status = matmul_problem(args, false, &p);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(p.problem.batch.size(), expected.axes);
    Explanation plan;
    status = explain(Context(), args, &plan);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(plan.batch, expected.batch);
    EXPECT_EQ(plan.m, expected.m);
    EXPECT_EQ(plan.n, call.weights.size() == 1 ? 1 : call.weights.back());
    EXPECT_EQ(plan.k,
              call.weights.size() == 1 ? call.weights[0] : call.weights[call.weights.size() - 2]);
  }
}

TEST(MatMulExplain, ReportsThePlan) {
  const int64_t src[] = {12, 128, 164}, weights[] = {12, 164, 136}, nothing[] = {12, 0, 164};
  MatMulArgs args;
  args.src = {.dims = src};
  args.weights = {.dims = weights};
  Explanation plan;
  ASSERT_TRUE(explain(Context(), args, &plan).ok());
  const bool x86 = processor() == Processor::kX86;
  const char* on_arm =
      WGEMM_RELAXED ? "f32_4x16__relaxed_packed_a" : "f32_4x8__simd128_xnnpack_splat";
  EXPECT_EQ(plan.kernel, of_build(!x86            ? on_arm
                                  : WGEMM_RELAXED ? "f32_6x8__relaxed_xnnpack_loadsplat"
                                                  : "f32_4x8__simd128_xnnpack_loadsplat"));
  EXPECT_EQ(std::vector({plan.batch, plan.m, plan.n, plan.k}),
            std::vector<int64_t>({12, 128, 136, 164}));
  EXPECT_STREQ(plan.regime, "skinny GEMM");
  EXPECT_TRUE(plan.direct && plan.packs_b);
  // There is scratch for one product.
  EXPECT_GE(plan.scratch_bytes, 164 * 136 * 4);
  EXPECT_LT(plan.scratch_bytes, 3 * 164 * 136 * 4);
  args.src.dims = nothing;
  ASSERT_TRUE(explain(Context(), args, &plan).ok());
  EXPECT_STREQ(plan.kernel, "");
  EXPECT_STREQ(plan.regime, "");
  EXPECT_EQ(plan.m, 0);
}

int packed_panels;

void count_panel(void*, int64_t) { ++packed_panels; }

TEST(MatMulPacking, WeightsArePackedOnceForAllThatShareThem) {
  PanelLayout layout = panel_of<double>(4);
  layout.fill_header = count_panel;
  const Kernel kernel{.name = "f64_4x4__portable",
                      .compute = DType::kFloat64,
                      .mr = 4,
                      .nr = 4,
                      .a = kRowsOf<double>,
                      .b = layout,
                      .isa = Isa::kPortable,
                      .run = portable_kernel<double, 4, 4, 1, true>};
  struct Sharing {
    Sizes src, weights;
    int matrices;
  };
  const Sharing all[] = {{{4, 3, 5}, {5, 8}, 1},          {{2, 4, 3, 5}, {5, 8}, 1},
                         {{2, 4, 3, 5}, {2, 1, 5, 8}, 2}, {{2, 4, 3, 5}, {1, 4, 5, 8}, 4},
                         {{2, 4, 3, 5}, {4, 5, 8}, 4},    {{2, 4, 3, 5}, {2, 4, 5, 8}, 8},
                         {{3, 5}, {2, 4, 5, 8}, 8},       {{2, 4, 3, 3, 5}, {4, 1, 5, 8}, 4}};
  for (const auto& [src, weights, matrices] : all) {
    for (const PlanOptions& options : {PlanOptions{}, PlanOptions{.mc = 1}, PlanOptions{.nc = 4}}) {
      PlanOptions with_kernel = options;
      with_kernel.kernel = &kernel;
      with_kernel.tasks = 1;
      packed_panels = 0;
      // Gaps keep rows from being contiguous across matrices.
      MatMulTester()
          .type(DType::kFloat64)
          .src(src, {.gap = 1})
          .weights(weights)
          .packed(false)
          .options(with_kernel)
          .run();
      EXPECT_EQ(packed_panels, 2 * matrices);
    }
  }
}

}  // namespace
}  // namespace wgemm::testing
