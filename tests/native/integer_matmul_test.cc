// MatMulInteger, QLinearMatMul, DynamicQuantizeMatMul and MatMulIntegerToFloat through the whole
// pipeline, for the four combinations of 8-bit types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "api/run.h"
#include "array.h"
#include "engine.h"
#include "integer_matmul_tester.h"
#include "kernels/kernel.h"
#include "out_of_core_tensor.h"
#include "reference.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
namespace {

constexpr QuantizationParam kParams[] = {kAScale,     kAZeroPoint, kBScale,
                                         kBZeroPoint, kYScale,     kYZeroPoint};
constexpr DType kBytes[] = {DType::kInt8, DType::kUInt8};

struct Operator {
  IntegerOp op;
  DType a, b;
};

// All combinations of types; of the thread sanitizer one per operator, since it takes fifty times
// as long.
std::vector<Operator> all_operators() {
  std::vector<Operator> all;
  for (const IntegerOp op : kIntegerOps) {
    for (const DType a : kBytes) {
      for (const DType b : kBytes) {
        const bool is_other = op != IntegerOp::kDynamicQuantizeMatMul || a == DType::kInt8,
                   is_one = a == DType::kInt8 && b == DType::kUInt8;
        if (is_other && (is_one || test_threads() == 1)) all.push_back({op, a, b});
      }
    }
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Operator>& test) {
  const auto [op, a, b] = test.param;
  const bool quantizes = op == IntegerOp::kDynamicQuantizeMatMul;
  return std::string(testing::name_of(op)) + "_" + (quantizes ? "float32" : dtype_name(a)) + "_" +
         dtype_name(b);
}

class IntegerMatMul : public ::testing::TestWithParam<Operator> {
 protected:
  const Simulated simulated_{engines()[0]};

  static IntegerMatMulTester tester() {
    return IntegerMatMulTester(GetParam().op).types(GetParam().a, GetParam().b).zero_points();
  }
  static bool is(IntegerOp op) { return GetParam().op == op; }
};

// Gives every parameter one value per row or per column, as far as the operator allows it.
IntegerMatMulTester per_row_and_column(IntegerOp op, IntegerMatMulTester t,
                                       const Layout& layout = {}) {
  for (const QuantizationParam which : kParams) {
    const ParamExtent extent = extent_of(op, which);
    if (extent == ParamExtent::kRows || extent == ParamExtent::kColumns)
      t.param(which, t.param_dims(which), layout);
  }
  return t;
}

// Problems at random
// -------------------------------------------------------------------------------------------------

const Kernel* any_kernel(Draw& draw) {
  const KernelTable table = kernel_table();
  std::vector<const Kernel*> kernels{nullptr};
  for (int i = 0; i < table.count; ++i) {
    if (table.rows[i].compute == DType::kInt8 && has_dot(table.rows[i].dot))
      kernels.push_back(&table.rows[i]);
  }
  return kernels[static_cast<size_t>(draw.below(std::ssize(kernels)))];
}

// A random parameter that the operator allows for the shapes of `t`.
void add_param(IntegerOp op, QuantizationParam which, const Sizes& b, Draw& draw,
               IntegerMatMulTester* t) {
  const ParamExtent extent = extent_of(op, which);
  const Sizes full = t->param_dims(which);
  Sizes dims(static_cast<size_t>(draw.below(4)), 1);
  const bool is_row = extent == ParamExtent::kRows, is_column = extent == ParamExtent::kColumns;
  if ((is_row || is_column) && !draw.one_in(4)) dims = full;
  if (is_row && draw.one_in(3)) dims = {full[full.size() - 2]};
  if (is_column && b.size() == 2 && draw.one_in(2)) dims = {full.back()};
  const Layout layout = draw.layout(dims.size(), true);
  t->param(which, dims, layout);
}

IntegerMatMulTester any(const Operator& of, uint32_t seed) {
  Draw draw(seed);
  const Sizes sizes{1, 1, 2, 3, 4, 7, 9, 25}, depths{1, 2, 3, 5, 7, 8, 17};
  const auto size = [&](const Sizes& from) { return draw.one_in(24) ? 0 : draw.one_of(from); };
  const int64_t m = size(sizes), n = size({1, 2, 5, 6, 8, 9, 19, 33}), k = size(depths);
  Sizes batch;
  for (int64_t rank = draw.below(4); rank > 0; --rank) batch.push_back(size({1, 2, 2, 3}));

  const bool trans_a = draw.one_in(2), trans_b = draw.one_in(2);
  Sizes a{k}, b{k};
  if (!draw.one_in(8)) {
    a = draw.part_of(batch);
    a.insert(a.end(), {trans_a ? k : m, trans_a ? m : k});
  }
  if (!draw.one_in(8)) {
    b = draw.part_of(batch);
    b.insert(b.end(), {trans_b ? n : k, trans_b ? k : n});
  }
  IntegerMatMulTester t = IntegerMatMulTester(of.op).types(of.a, of.b).seed(seed);
  t.trans(trans_a, trans_b);
  const Layout of_a = draw.layout(a.size(), true), of_b = draw.layout(b.size(), true);
  t.a(a, of_a).b(b, of_b);
  t.y(draw.layout(t.y_dims().size(), false));
  for (const QuantizationParam which : kParams) {
    const bool is_scale = which == kAScale || which == kBScale || which == kYScale;
    if (is_scale || !draw.one_in(4)) add_param(of.op, which, b, draw, &t);
  }
  const int64_t cols = t.param_dims(kBScale).back();
  if (draw.one_in(2)) {
    const Layout layout = draw.layout(1, true);
    t.bias({cols}, layout);
  }
  t.half(draw.one_in(2)).output(kBytes[draw.below(2)]).any_scales(draw.one_in(2));
  constexpr Bytes kZeroPoints[] = {Bytes::kRandom, Bytes::kRandom, Bytes::kLow, Bytes::kHigh};
  const Bytes a_zero = kZeroPoints[draw.below(4)], b_zero = kZeroPoints[draw.below(4)];
  t.zero_point_values(a_zero, b_zero);
  t.values(Bytes::kRandom, draw.one_in(2) ? Bytes::kRandom : Bytes::k128Values);
  t.values(draw.one_in(4) ? static_cast<Floats>(draw.below(7)) : Floats::kRandom);
  if (draw.one_in(3)) t.activation({.min = -20, .max = 35.5});
  t.packed(b.size() > 1 && draw.one_in(2));
  if (draw.one_in(4)) {
    t.prepared();
  } else if (draw.one_in(2)) {
    const Sizes blocks{0, 0, 1, 2, 3, 4, 8, 11};
    const Kernel* const kernel = any_kernel(draw);
    const int64_t mc = draw.one_of(blocks), nc = draw.one_of(blocks), kc = draw.one_of(blocks);
    t.options({.kernel = kernel, .mc = mc, .nc = nc, .kc = kc});
  }
  if (draw.one_in(4)) t.determinism(Determinism::kStrict);
  t.specials(draw.one_in(8)).padded(draw.one_in(3));
  return t;
}

uint32_t seeds(uint32_t count) { return test_threads() > 1 ? count / 8 : count; }

TEST_P(IntegerMatMul, AnythingAtRandom) {
  for (uint32_t seed = 1; seed <= seeds(500) && !HasFailure(); ++seed) any(GetParam(), seed).run();
}

TEST_P(IntegerMatMul, AnythingAtRandomOnEveryEngine) {
  for (const Engine& engine : engines()) {
    const Simulated simulated(engine);
    SCOPED_TRACE(engine.name);
    for (uint32_t seed = 1; seed <= seeds(64) && !HasFailure(); ++seed) any(GetParam(), seed).run();
  }
}

TEST_P(IntegerMatMul, EveryKernel) {
  const KernelTable table = kernel_table();
  for (const Kernel* kernel = table.rows; kernel < table.rows + table.count; ++kernel) {
    if (kernel->compute != DType::kInt8) continue;
    for (const Engine& engine : engines_for(*kernel)) {
      const Simulated simulated(engine);
      for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 33, 7},
                                    {3, 5, 70},
                                    {9, 17, 33},
                                    {26, 40, 9},
                                    {33, 6, 64}}) {
        const IntegerMatMulTester t = tester()
                                          .a({2, m, k})
                                          .b({2, k, n})
                                          .values(Bytes::kRandom, Bytes::k128Values)
                                          .options({.kernel = kernel})
                                          .any_scales()
                                          .bias({n});
        IntegerMatMulTester(t).run();
        per_row_and_column(GetParam().op, t).options({.kernel = kernel, .mc = 7, .kc = 16}).run();
      }
    }
  }
}

// Sizes
// -------------------------------------------------------------------------------------------------

TEST_P(IntegerMatMul, EverySmallSize) {
  uint32_t seed = 0;
  for (const int64_t m : {0, 1, 2, 3, 5}) {
    for (const int64_t n : {0, 1, 2, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33}) {
      for (const int64_t k : {0, 1, 2, 3, 5, 7, 8}) {
        tester().a({m, k}).b({k, n}).bias({n}).seed(++seed).run();
        per_row_and_column(GetParam().op, tester().a({2, m, k}).b({2, k, n}))
            .packed(seed % 2 == 0)
            .any_scales()
            .seed(seed)
            .run();
      }
    }
  }
}

TEST_P(IntegerMatMul, EveryNumberOfRows) {
  uint32_t seed = 0;
  for (int64_t m = 1; m <= 40; ++m) {
    for (const int64_t n : {1, 3, 6, 7, 16, 33}) {
      for (const bool per_row : {false, true}) {
        IntegerMatMulTester t = tester().a({m, 19}).b({19, n}).bias({n}).seed(++seed);
        if (per_row) t = per_row_and_column(GetParam().op, t);
        t.run();
      }
    }
  }
}

TEST_P(IntegerMatMul, WithoutKTheSumIsEmpty) {
  for (const bool packed : {false, true}) {
    for (const bool any_scales : {false, true}) {
      const IntegerMatMulTester t = tester().packed(packed).any_scales(any_scales);
      IntegerMatMulTester(t).a({2, 30, 0}).b({0, 9}).run();
      IntegerMatMulTester(t).a({2, 3, 0}, {.gap = 2}).b({2, 0, 9}).bias({9}).half().run();
      IntegerMatMulTester(t).a({2, 0, 3}).b({9, 0}).trans(true, true).y({.gap = 1}).run();
      per_row_and_column(GetParam().op, IntegerMatMulTester(t).a({2, 3, 0}).b({2, 0, 40})).run();
      IntegerMatMulTester(t).a({0}).b({2, 0, 9}).bias({9}).prepared().run();
    }
  }
  tester().a({2, 3, 0}).b({0}).bias({1}).run();
  tester().a({0}).b({0}).run();
}

TEST_P(IntegerMatMul, WithoutRowsColumnsOrBatchesNothingIsWritten) {
  for (const bool packed : {false, true}) {
    const Sizes shapes[][2] = {{{2, 0, 5}, {5, 9}},    {{2, 3, 5}, {5, 0}},
                               {{0, 3, 5}, {5, 9}},    {{3, 5}, {0, 5, 9}},
                               {{0, 3, 5}, {1, 5, 9}}, {{2, 1, 3, 5}, {0, 5, 9}},
                               {{2, 0, 3, 0}, {0, 9}}};
    for (const auto& [a, b] : shapes) {
      const IntegerMatMulTester t = tester().a(a).b(b).bias({b.back()}).packed(packed);
      IntegerMatMulTester(t).run();
      IntegerMatMulTester(t).prepared().run();
      per_row_and_column(GetParam().op, t).run();
      per_row_and_column(GetParam().op, t).prepared().run();
    }
  }
}

// 255 * 255 * 140,000 is more than twice 2^32. Sums of rows and columns, times zero points, wrap
// too.
TEST_P(IntegerMatMul, AccumulatorsWrap) {
  for (const Bytes a : {Bytes::kLow, Bytes::kHigh}) {
    for (const Bytes b : {Bytes::kLow, Bytes::kHigh}) {
      if (a != b && test_threads() > 1) continue;
      const Bytes a_zero = a == Bytes::kLow ? Bytes::kHigh : Bytes::kLow,
                  b_zero = b == Bytes::kLow ? Bytes::kHigh : Bytes::kLow;
      const IntegerMatMulTester t =
          tester()
              .values(a, b)
              .zero_point_values(a_zero, b_zero)
              .values(a == Bytes::kLow ? Floats::kNegative : Floats::kPositive);
      IntegerMatMulTester(t).a({1, 70000}).b({70000, 3}).run();
      per_row_and_column(GetParam().op, IntegerMatMulTester(t).a({25, 40000}).b({40000, 2})).run();
    }
  }
}

TEST_P(IntegerMatMul, OperandsAndZeroPointsAtTheEnds) {
  constexpr Bytes kEnds[] = {Bytes::kLow, Bytes::kHigh};
  for (const Bytes a : kEnds) {
    for (const Bytes b : kEnds) {
      for (const Bytes a_zero : kEnds) {
        for (const Bytes b_zero : kEnds) {
          const IntegerMatMulTester t = tester().values(a, b).zero_point_values(a_zero, b_zero);
          for (const int64_t m : {1, 2, 3, 25}) {
            IntegerMatMulTester(t).a({m, 18}).b({18, 9}).run();
            per_row_and_column(GetParam().op, IntegerMatMulTester(t).a({m, 7}).b({7, 6})).run();
          }
        }
      }
    }
  }
}

TEST_P(IntegerMatMul, BlocksOfAnySize) {
  for (const int64_t block : {1, 7, 16}) {
    const PlanOptions options{.mc = block, .nc = block, .kc = block};
    const IntegerMatMulTester t =
        tester().a({2, 19, 21}, {.gap = 1}).b({21, 35}).bias({35}).options(options);
    IntegerMatMulTester(t).run();
    per_row_and_column(GetParam().op, t).run();
    per_row_and_column(GetParam().op, IntegerMatMulTester(t).b({2, 21, 35})).run();
    per_row_and_column(GetParam().op, IntegerMatMulTester(t).b({2, 21, 4}).bias({4})).run();
  }
}

TEST_P(IntegerMatMul, DeepAndWideAndTall) {
  for (const int64_t m : {1, 2, 5, 26}) tester().a({m, 4999}).b({4999, 11}).bias({11}).run();
  per_row_and_column(GetParam().op, tester().a({26, 4999}).b({4999, 11})).run();
  per_row_and_column(GetParam().op, tester().a({3, 2}).b({2, 9001})).run();
  per_row_and_column(GetParam().op, tester().a({5001, 4}).b({4, 3})).run();
  per_row_and_column(GetParam().op, tester().a({130, 100}).b({100, 257})).run();
}

// Shapes
// -------------------------------------------------------------------------------------------------

TEST_P(IntegerMatMul, BatchAxesBroadcastBothWays) {
  const Sizes pairs[][2] = {
      {{}, {3}},           {{3}, {}},           {{3}, {1}},          {{1}, {3}},
      {{3}, {3}},          {{2, 1}, {3}},       {{3}, {2, 1}},       {{2, 1}, {1, 3}},
      {{1, 3}, {2, 1}},    {{2, 3, 2}, {2}},    {{2}, {2, 3, 2}},    {{2, 1, 2}, {3, 1}},
      {{3, 1}, {2, 1, 2}}, {{1, 1, 1}, {1, 1}}, {{2, 3, 2}, {3, 1}}, {{2, 3, 2}, {2, 1, 2}}};
  for (const auto& [a_batch, b_batch] : pairs) {
    for (const bool trans : {false, true}) {
      Sizes a = a_batch, b = b_batch;
      a.insert(a.end(), {trans ? 5 : 3, trans ? 3 : 5});
      b.insert(b.end(), {trans ? 9 : 5, trans ? 5 : 9});
      const IntegerMatMulTester t = tester().a(a).b(b).trans(trans, trans).any_scales();
      IntegerMatMulTester(t).bias({9}).run();
      per_row_and_column(GetParam().op, t).run();
      per_row_and_column(GetParam().op, t, {.gap = 1})
          .a(a, {.gap = 2})
          .b(b, {.gap = 1})
          .y({.gap = 1})
          .bias({9}, {.gap = 3})
          .run();
      per_row_and_column(GetParam().op, t, {.gap = 2}).prepared().run();
    }
  }
}

TEST_P(IntegerMatMul, Vectors) {
  for (const Sizes& b : {Sizes{7, 9}, {2, 7, 9}, {2, 1, 7, 9}, {7, 1}, {7, 0}, {0, 7, 9}}) {
    const IntegerMatMulTester t = tester().a({7}).b(b).bias({b.back()});
    IntegerMatMulTester(t).run();
    per_row_and_column(GetParam().op, t, {.gap = 1}).a({7}, {.gap = 1, .repeated = 1}).run();
  }
  for (const Sizes& a : {Sizes{9, 7}, {2, 9, 7}, {2, 1, 9, 7}, {1, 7}, {0, 7}, {2, 0, 9, 7}}) {
    const IntegerMatMulTester t = tester().a(a).b({7}).bias({1});
    IntegerMatMulTester(t).run();
    per_row_and_column(GetParam().op, t, {.gap = 1}).b({7}, {.repeated = 1}).y({.gap = 2}).run();
  }
  tester().a({7}).b({7}).run();
  tester().a({1}).b({1}).bias({1, 1, 1}).run();
  tester().a({7}, {.repeated = 1}).b({7}).bias({}).run();
}

TEST_P(IntegerMatMul, TransposesDoNothingToVectors) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      tester().a({7}).b({7}).trans(a, b).run();
      tester().a({5, 5}).b({5}).trans(a, b).run();
      tester().a({5}).b({5, 5}).trans(a, b).run();
      tester().a({2, 5, 5}).b({5, 5}).trans(a, b).run();
    }
  }
}

TEST_P(IntegerMatMul, AxesInAnyOrder) {
  Sizes b{2, 1, 5, 9};
  std::vector<size_t> order{0, 1, 2, 3};
  do {
    const Layout layout{.order = order, .gap = 1};
    tester().a({2, 3, 4, 5}, layout).b({5, 9}).y({.order = order}).run();
    per_row_and_column(GetParam().op, tester().a({2, 3, 4, 5}).b(b), layout).y(layout).run();
    per_row_and_column(GetParam().op, tester().a({2, 3, 4, 5}, layout).b(b, layout)).run();
  } while (std::ranges::next_permutation(order).found);
}

TEST_P(IntegerMatMul, InputsThatRepeatElements) {
  for (uint64_t a = 0; a < 8; ++a) {
    for (uint64_t b = 0; b < 8; ++b) {
      const IntegerMatMulTester t =
          tester().a({2, 3, 5}, {.repeated = a}).b({2, 5, 9}, {.repeated = b});
      IntegerMatMulTester(t).run();
      per_row_and_column(GetParam().op, t, {.repeated = a ^ b}).run();
    }
  }
}

// All products share B, and do not share its scales and zero points.
TEST_P(IntegerMatMul, VectorsOfBDifferThoughBIsShared) {
  for (const int64_t m : {1, 3, 30}) {
    for (const int64_t n : {1, 5, 40}) {
      const IntegerMatMulTester t =
          tester().a({4, m, 17}).b({4, 17, n}, {.repeated = 1}).packed(false);
      per_row_and_column(GetParam().op, t).run();
      per_row_and_column(GetParam().op, t).prepared().run();
      // Along one of two axes.
      per_row_and_column(GetParam().op,
                         IntegerMatMulTester(t).a({2, 4, m, 17}).b({2, 4, 17, n}, {.repeated = 2}))
          .run();
      IntegerMatMulTester(t).param(kBScale, {4, 1, n}).param(kBZeroPoint, {}).run();
      IntegerMatMulTester(t).param(kBZeroPoint, {4, 1, n}, {.gap = 1}).run();
    }
  }
}

// One row per product: all of them become one product with a value per row.
TEST_P(IntegerMatMul, SingleRowsOfABatch) {
  for (const Sizes& b : {Sizes{5, 9}, {1, 5, 9}, {2, 1, 5, 9}, {4, 5, 9}}) {
    const IntegerMatMulTester t = tester().a({2, 4, 1, 5}).b(b).bias({9});
    per_row_and_column(GetParam().op, t).run();
    per_row_and_column(GetParam().op, t, {.order = {1, 0, 2, 3}, .gap = 1})
        .param(kBScale, {1})
        .param(kBZeroPoint, {})
        .a({2, 4, 1, 5}, {.gap = 1})
        .y({.gap = 1})
        .run();
  }
}

// Each parameter of rows may have one value, one value per row of every matrix, or one per row of
// each.
TEST_P(IntegerMatMul, EveryExtentOfVectors) {
  const Sizes rows[] = {{}, {1, 1, 1, 1, 1}, {3}, {2, 3, 1}}, columns[] = {{}, {1, 1}, {9}, {1, 9}};
  for (const Sizes& scale : rows) {
    for (const Sizes& zero_point : rows) {
      for (const Sizes& of_b : columns) {
        const bool may_differ = extent_of(GetParam().op, kAScale) == ParamExtent::kRows ||
                                is(IntegerOp::kMatMulInteger);
        const Sizes a_scale = may_differ ? scale : Sizes{},
                    a_zero = may_differ ? zero_point : Sizes{};
        tester()
            .a({2, 3, 5})
            .b({5, 9})
            .param(kAScale, a_scale)
            .param(kAZeroPoint, a_zero)
            .param(kYScale, zero_point)
            .param(kYZeroPoint, scale)
            .param(kBScale, of_b)
            .param(kBZeroPoint, columns[zero_point.size() % 4])
            .run();
      }
    }
  }
}

TEST_P(IntegerMatMul, OffsetsOfEveryOperand) {
  for (const bool packed : {false, true}) {
    const IntegerMatMulTester t = tester().padded().packed(packed);
    IntegerMatMulTester(t).a({2, 3, 5}).b({5, 9}).bias({9}).run();
    per_row_and_column(GetParam().op, IntegerMatMulTester(t).a({3, 5}).b({2, 5, 9})).run();
    IntegerMatMulTester(t).a({2, 3, 0}).b({0, 9}).bias({9}).run();
    IntegerMatMulTester(t).a({2, 0, 3}).b({3, 9}).run();
    IntegerMatMulTester(t).a({7}).b({2, 7, 9}).bias({9}).run();
  }
  tester().a({2, 9, 7}).b({7}).padded().run();
}

TEST_P(IntegerMatMul, RankOf64) {
  Sizes a(64, 1), b(64, 1);
  a[0] = 2, a[30] = 3, a[62] = 4, a[63] = 5;
  b[1] = 2, b[30] = 3, b[62] = 5, b[63] = 9;
  per_row_and_column(GetParam().op, tester().a(a).b(b)).run();
  per_row_and_column(GetParam().op, tester().a(a, {.gap = 1}).b(b, {.gap = 1}), {.gap = 1}).run();
  tester().a(a).b({5}).run();
}

// Scales, bias and activation
// -------------------------------------------------------------------------------------------------

TEST_P(IntegerMatMul, HalfScalesBiasAndResult) {
  for (const Layout& layout : {Layout{}, Layout{.gap = 2}, Layout{.order = {1, 0}}}) {
    for (const int64_t n : {1, 6, 9, 40, 600}) {
      const IntegerMatMulTester t = tester().a({7, 13}).b({13, n}).half().any_scales();
      IntegerMatMulTester(t).y(layout).run();
      IntegerMatMulTester(t).bias({n}).y(layout).run();
      per_row_and_column(GetParam().op, t, layout).bias({n}, {.gap = 1}).y(layout).run();
    }
  }
}

TEST_P(IntegerMatMul, ActivationsBound) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const Activation& activation :
       {Activation{.min = 0}, Activation{0, 6}, Activation{-1.5, 1.5}, Activation{.max = -0.0},
        Activation{7, 7}, Activation{1e300, kInf}, Activation{-kInf, -kInf}}) {
    for (const bool half : {false, true}) {
      const IntegerMatMulTester t =
          tester().a({2, 7, 13}).b({13, 21}).activation(activation).half(half);
      IntegerMatMulTester(t).bias({21}).specials().run();
      per_row_and_column(GetParam().op, t).any_scales().output(DType::kInt8).run();
    }
  }
}

TEST_P(IntegerMatMul, BiasMayBeNanOrInfinite) {
  for (const Determinism determinism : {Determinism::kFast, Determinism::kStrict}) {
    for (const bool half : {false, true}) {
      for (const int64_t n : {1, 5, 16, 37}) {
        const IntegerMatMulTester t =
            tester().bias({n}).specials().half(half).determinism(determinism);
        IntegerMatMulTester(t).a({5, 9}).b({9, n}).run();
        IntegerMatMulTester(t).a({2, 5, 0}).b({2, 0, n}).y({.gap = 1}).run();
      }
    }
  }
}

TEST_P(IntegerMatMul, OneElementOfAnyRank) {
  const Sizes ones[] = {{}, {1}, {1, 1}, {1, 1, 1, 1, 1, 1}};
  for (const Sizes& one : ones) {
    IntegerMatMulTester t = tester().bias(one);
    for (const QuantizationParam which : kParams) t.param(which, one, {.gap = 1});
    IntegerMatMulTester(t).a({4, 3}).b({3, 1}).run();
    IntegerMatMulTester(t).a({2, 4, 3}).b({3}).run();
    IntegerMatMulTester(t).a({3}).b({3}).run();
  }
}

// Values of A that the call quantizes
// -------------------------------------------------------------------------------------------------

TEST_P(IntegerMatMul, FloatsOfEveryRange) {
  if (!is(IntegerOp::kDynamicQuantizeMatMul)) return;
  for (int values = 0; values < 7; ++values) {
    const IntegerMatMulTester t = tester().values(static_cast<Floats>(values));
    for (uint32_t seed = 1; seed <= 5; ++seed) {
      const Layout turned{.order = {2, 1, 0}, .gap = seed % 2};
      IntegerMatMulTester(t).a({3, 17}).b({17, 9}).bias({9}).seed(seed).run();
      IntegerMatMulTester(t).a({2, 3, 5}, turned).b({2, 5, 9}).seed(seed).run();
      IntegerMatMulTester(t).a({2, 5, 3}, {.gap = 1}).b({5, 9}).trans(true, false).run();
      for (uint64_t repeated = 1; repeated < 8; ++repeated)
        IntegerMatMulTester(t).a({2, 3, 5}, {.repeated = repeated}).b({2, 1, 5, 9}).run();
      IntegerMatMulTester(t).a({40, 6}).b({6, 3}).seed(seed).run();
    }
  }
}

// Threads and memory
// -------------------------------------------------------------------------------------------------

#if WGEMM_THREADS
TEST_P(IntegerMatMul, OnSeveralThreads) {
  uint32_t seed = 0;
  for (const int64_t n : {4, 100}) {
    for (const int64_t m : {1, 70}) {
      const IntegerMatMulTester t = tester().a({3, m, 41}).b({41, n}).threads().seed(++seed);
      IntegerMatMulTester(t).run();
      per_row_and_column(GetParam().op, t).run();
      per_row_and_column(GetParam().op, IntegerMatMulTester(t).b({3, 41, n}).bias({n})).run();
    }
  }
  for (seed = 1; seed <= 8 && !HasFailure(); ++seed) {
    IntegerMatMulTester t = any(GetParam(), seed);
    t.prepared(false).threads().run();
  }
}
#endif

TEST_P(IntegerMatMul, OutOfCore) {
  for (uint32_t seed = 1; seed <= seeds(64) && !HasFailure(); ++seed) {
    Draw draw(seed);
    const auto size = [&](int64_t most) { return 1 + draw.below(draw.one_in(4) ? 9 : most); };
    std::mt19937_64 random(seed);
    const bool is_small = seed % 4 != 0;
    const SmallShape small(random);
    const int64_t m = is_small ? small.m : size(90), n = is_small ? small.n : size(90),
                  k_of_large = draw.one_in(9) ? 0 : size(400), k = is_small ? small.k : k_of_large;
    const Sizes batches[][2] = {{{}, {}},   {{3}, {}},        {{}, {3}},
                                {{3}, {3}}, {{2, 1}, {1, 3}}, {{2, 3}, {2, 1}}};
    const auto& batch = batches[draw.below(6)];
    const bool trans_a = draw.one_in(2), trans_b = draw.one_in(2);
    Sizes a = batch[0], b = batch[1];
    a.insert(a.end(), {trans_a ? k : m, trans_a ? m : k});
    b.insert(b.end(), {trans_b ? n : k, trans_b ? k : n});
    IntegerMatMulTester t = tester().trans(trans_a, trans_b).seed(seed);
    const Layout of_a = draw.layout(a.size(), draw.one_in(4)),
                 of_b = draw.layout(b.size(), draw.one_in(4));
    t.a(a, of_a).b(b, of_b);
    const Layout of_y = draw.layout(t.y_dims().size(), false);
    t.y(of_y).half(draw.one_in(2)).any_scales(draw.one_in(2));
    if (draw.one_in(2)) t.bias({n});
    if (!draw.one_in(3)) t = per_row_and_column(GetParam().op, t);
    const auto operands = draw.one_in(3) ? 1 | static_cast<unsigned>(draw.below(16)) : 15;
    OutOfCoreSetup setup = small_setup(random);
    if (!is_small) setup = {.limit = draw.one_in(2) ? 50'000U : 120'000U, .operands = operands};
    t.out_of_core(setup);
    t.packed(draw.one_in(3)).padded(draw.one_in(2));
    if (draw.one_in(3)) t.determinism(Determinism::kStrict);
    t.run();
  }
}

TEST_P(IntegerMatMul, OutOfCoreVectorsAndEmptyProducts) {
  const IntegerMatMulTester t = tester().out_of_core({.limit = 100'000});
  IntegerMatMulTester(t).a({70'000}).b({70'000}).run();
  IntegerMatMulTester(t).a({900}).b({2, 900, 80}).bias({80}).run();
  per_row_and_column(GetParam().op, IntegerMatMulTester(t).a({3, 300, 80}).b({80})).run();
  IntegerMatMulTester(t).a({2, 90, 0}).b({0, 70}).bias({70}).run();
  IntegerMatMulTester(t).a({2, 0, 9}).b({9, 70}).run();
}

INSTANTIATE_TEST_SUITE_P(Operators, IntegerMatMul, ::testing::ValuesIn(all_operators()), name_of);

}  // namespace
}  // namespace wgemm::testing
