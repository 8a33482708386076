// Plans that are kept: never one of another problem, and the same as one that is made.
#include "plan_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace wgemm::testing {
namespace {

std::byte* somewhere() {
  alignas(64) static std::byte memory[64];
  return memory;
}

Problem product() {
  Problem p;
  p.m = p.n = p.k = 16;
  p.a = {somewhere(), DType::kFloat32, 16, 1};
  p.b = {somewhere(), DType::kFloat32, 16, 1};
  p.y = {somewhere(), DType::kFloat32, 16, 1};
  return p;
}

Problem packed_8bit() {
  Problem p = product();
  p.compute = DType::kInt8;
  p.a.dtype = DType::kUInt8;
  p.b = {nullptr, DType::kInt8, 0, 0};
  p.stored_b = {.panels = somewhere(),
                .dtype = DType::kInt8,
                .k = 16,
                .matrix_bytes = 256,
                .column_sums = reinterpret_cast<const int32_t*>(somewhere()),
                .low = -64,
                .high = 63};
  p.quantization.b_scale = {somewhere(), DType::kFloat32, 0, 0};
  p.quantization.b_zero_point = {nullptr, DType::kInt8, 0, 0};
  return p;
}

bool is_same(const Plan& one, const Plan& other) {
  const auto cut = [](const Cut& a, const Cut& b) {
    return a.size == b.size && a.count == b.count;
  };
  return one.kernel == other.kernel && one.mc == other.mc && one.nc == other.nc &&
         one.kc == other.kc && one.pack_a == other.pack_a && one.pack_b == other.pack_b &&
         one.fetch_a == other.fetch_a && one.fetch_b == other.fetch_b &&
         one.direct == other.direct && one.canonical_nan == other.canonical_nan &&
         one.a_shift == other.a_shift && one.b_shift == other.b_shift &&
         cut(one.outer, other.outer) && cut(one.inner, other.inner) && cut(one.rows, other.rows) &&
         cut(one.cols, other.cols) && one.threads == other.threads &&
         one.b_bytes == other.b_bytes && one.a_bytes == other.a_bytes &&
         one.acc_bytes == other.acc_bytes && one.columns_bytes == other.columns_bytes &&
         one.sums_bytes == other.sums_bytes && one.thread_bytes == other.thread_bytes &&
         one.scratch_bytes == other.scratch_bytes;
}

const BatchAxis kAxes[][3] = {
    {{2, 256, 256, 0, 256}}, {{3, 256, 256, 0, 256}}, {{2, 0, 256, 0, 256}},  {{2, 256, 0, 0, 256}},
    {{2, 256, 256, 1, 256}}, {{2, 256, 256, 0, 512}}, {{2, 512, 256, 0, 256}}};

struct Change {
  const char* what;
  void (*make)(Problem&);
};

// All that a plan may follow from, one at a time.
const Change kChanges[] = {
    {"m", [](Problem& p) { p.m = 17; }},
    {"n", [](Problem& p) { p.n = 17; }},
    {"k", [](Problem& p) { p.k = 17; }},
    {"type of the product", [](Problem& p) { p.compute = DType::kFloat64; }},
    {"type of a", [](Problem& p) { p.a.dtype = DType::kFloat16; }},
    {"rows of a", [](Problem& p) { p.a.row_stride = 20; }},
    {"columns of a", [](Problem& p) { p.a.col_stride = 2; }},
    {"transposed a", [](Problem& p) { std::swap(p.a.row_stride, p.a.col_stride); }},
    {"type of b", [](Problem& p) { p.b.dtype = DType::kBFloat16; }},
    {"rows of b", [](Problem& p) { p.b.row_stride = 20; }},
    {"columns of b", [](Problem& p) { p.b.col_stride = 2; }},
    {"b", [](Problem& p) { p.b.base = p.b.base == nullptr ? somewhere() : nullptr; }},
    {"type of y", [](Problem& p) { p.y.dtype = DType::kUInt8; }},
    {"rows of y", [](Problem& p) { p.y.row_stride = 20; }},
    {"columns of y", [](Problem& p) { p.y.col_stride = 2; }},
    {"packed weights",
     [](Problem& p) { p.stored_b.panels = p.stored_b.panels == nullptr ? somewhere() : nullptr; }},
    {"their type", [](Problem& p) { p.stored_b.dtype = DType::kUInt8; }},
    {"their depth", [](Problem& p) { p.stored_b.k = 20; }},
    {"from matrix to matrix", [](Problem& p) { p.stored_b.matrix_bytes = 512; }},
    {"least of them", [](Problem& p) { p.stored_b.low = -65; }},
    {"largest of them", [](Problem& p) { p.stored_b.high = 64; }},
    {"whether they are finite", [](Problem& p) { p.stored_b.finite = true; }},
    {"alpha", [](Problem& p) { p.epilogue.alpha.value = 2; }},
    {"alpha's bits", [](Problem& p) { p.epilogue.alpha.integer = 2; }},
    {"alpha's fraction", [](Problem& p) { p.epilogue.alpha.whole = false; }},
    {"beta", [](Problem& p) { p.epilogue.beta.value = 2; }},
    {"c", [](Problem& p) { p.epilogue.has_c = true; }},
    {"bounds", [](Problem& p) { p.epilogue.bounds.min = 0; }},
    {"type of c", [](Problem& p) { p.epilogue.c.dtype = DType::kFloat64; }},
    {"rows of c", [](Problem& p) { p.epilogue.c.row_stride = 1; }},
    {"columns of c", [](Problem& p) { p.epilogue.c.col_stride = 1; }},
    {"a batch", [](Problem& p) { p.batch = std::span(kAxes[0]).first(1); }},
    {"a batch of more", [](Problem& p) { p.batch = std::span(kAxes[1]).first(1); }},
    {"a batch of one a", [](Problem& p) { p.batch = std::span(kAxes[2]).first(1); }},
    {"a batch of one b", [](Problem& p) { p.batch = std::span(kAxes[3]).first(1); }},
    {"a batch of c", [](Problem& p) { p.batch = std::span(kAxes[4]).first(1); }},
    {"a batch of y apart", [](Problem& p) { p.batch = std::span(kAxes[5]).first(1); }},
    {"a batch of a apart", [](Problem& p) { p.batch = std::span(kAxes[6]).first(1); }},
};

const Change kChangesOf8Bits[] = {
    {"zero points of b", [](Problem& p) { p.quantization.shifts_b = true; }},
    {"result of 8 bits", [](Problem& p) { p.quantization.quantizes_y = true; }},
    {"type of the zero points",
     [](Problem& p) { p.quantization.b_zero_point.dtype = DType::kUInt8; }},
    {"zero points of columns", [](Problem& p) { p.quantization.b_zero_point.col_stride = 1; }},
    {"scales of columns", [](Problem& p) { p.quantization.b_scale.col_stride = 1; }},
};

void expect_apart(const Problem& base, std::span<const Change> changes) {
  const Context context;
  std::vector<Problem> all = {base};
  std::vector<const char*> names = {"as it was"};
  for (const Change& change : changes) {
    Problem changed = base;
    change.make(changed);
    names.push_back(change.what);
    all.push_back(changed);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(PlanCache::Key(all[i], context) == PlanCache::Key(all[j], context), i == j)
          << names[i] << ", and " << names[j];
    }
  }
}

TEST(PlanCache, TellsProblemsApart) {
  expect_apart(product(), kChanges);
  expect_apart(packed_8bit(), kChanges);
  expect_apart(packed_8bit(), kChangesOf8Bits);
}

TEST(PlanCache, DoesNotTellWhereOperandsLieNorWhatScalesAre) {
  const Context context;
  for (const Problem& base : {product(), packed_8bit()}) {
    Problem moved = base;
    ++moved.a.base;
    ++moved.y.base;
    if (moved.b.base != nullptr) ++moved.b.base;
    if (moved.stored_b.panels != nullptr) ++moved.stored_b.panels;
    moved.quantization.a_scale = moved.quantization.y_scale = 2;
    moved.quantization.a_zero_point = moved.quantization.y_zero_point = 3;
    EXPECT_EQ(PlanCache::Key(base, context), PlanCache::Key(moved, context));
  }
}

TEST(PlanCache, KeepsAPlanAndGivesNoOther) {
  for (const Determinism determinism : {Determinism::kFast, Determinism::kStrict}) {
    Context context(0, determinism);
    std::vector<Problem> problems;
    for (const int64_t m : {1, 3, 16, 64, 300}) {
      for (const int64_t n : {8, 100}) {
        Problem p = product();
        p.m = m;
        p.n = n;
        problems.push_back(p);
        p.epilogue.has_c = true;
        problems.push_back(p);
        p = packed_8bit();
        p.m = m;
        p.n = n;
        problems.push_back(p);
        p.stored_b.high = 127;
        problems.push_back(p);
      }
    }
    for (int round = 0; round < 3; ++round) {
      for (const Problem& p : problems) {
        const Plan* plan = PlanCache::plan(p, context);
        ASSERT_NE(plan, nullptr);
        EXPECT_TRUE(is_same(*plan, make_plan(p, context))) << p.m << " x " << p.n;
        EXPECT_EQ(PlanCache::plan(p, context), plan) << "made again";
      }
    }
    // A few of them in turn stay.
    std::vector<const Plan*> kept;
    for (int i = 0; i < 8; ++i)
      kept.push_back(PlanCache::plan(problems[static_cast<size_t>(i)], context));
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(PlanCache::plan(problems[static_cast<size_t>(i)], context),
                kept[static_cast<size_t>(i)]);
    EXPECT_EQ(context.bytes_in_use(), 0U);
  }
}

TEST(PlanCache, LeavesProblemsOfManyAxes) {
  Context context;
  const BatchAxis axes[] = {{2, 1, 2, 3, 4}, {3, 4, 5, 6, 7}, {4, 5, 6, 7, 8}, {5, 6, 7, 8, 9}};
  Problem p = product();
  p.batch = std::span(axes).first(3);
  EXPECT_NE(PlanCache::plan(p, context), nullptr);
  p.batch = axes;
  EXPECT_EQ(PlanCache::plan(p, context), nullptr);
}

#if WGEMM_THREADS
TEST(PlanCache, MakesAnotherForOtherThreads) {
  Context context;
  Problem p = product();
  p.m = p.n = p.k = 512;
  for (const int threads : {1, 3, 2, 1}) {
    ASSERT_TRUE(context.set_threads(threads).ok());
    const Plan* plan = PlanCache::plan(p, context);
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(plan->threads, threads);
  }
}
#endif

// Through the public interface, all in one context: A and B of 3 x 3 numbers that make each answer
// another.
TEST(PlanCache, IsNotSeenInResults) {
  Context context;
  const float a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
              b[] = {1, 0, 2, 0, 1, 0, 3, 0, 1, 5, 6, 7}, c[] = {100, 200, 300};
  const int64_t square[] = {3, 3}, row[] = {3}, steps[] = {4, 1}, turned[] = {1, 3};
  const ConstTensor bias = {.data = c, .dtype = DType::kFloat32, .dims = row};
  const auto matrix = [&](const float* data, std::span<const int64_t> strides) {
    return ConstTensor{.data = data, .dtype = DType::kFloat32, .dims = square, .strides = strides};
  };
  const std::span<const int64_t> layouts[] = {{}, steps, turned};
  for (int round = 0; round < 2; ++round) {
    for (const std::span<const int64_t> a_strides : layouts) {
      for (const std::span<const int64_t> b_strides : layouts) {
        for (const std::span<const int64_t> y_strides : layouts) {
          for (const float alpha : {1.F, 2.F}) {
            for (const bool has_c : {false, true}) {
              float y[12];
              std::fill(std::begin(y), std::end(y), -7.F);
              GemmArgs args;
              args.A = matrix(a, a_strides);
              args.B = matrix(b, b_strides);
              if (has_c) args.C = &bias;
              args.Y = {.data = y, .dtype = DType::kFloat32, .dims = square, .strides = y_strides};
              args.alpha = alpha;
              ASSERT_TRUE(gemm(context, args).ok());
              const auto at = [](std::span<const int64_t> strides, int64_t i, int64_t j) {
                return static_cast<size_t>(strides.empty() ? 3 * i + j
                                                           : strides[0] * i + strides[1] * j);
              };
              for (int64_t i = 0; i < 3; ++i) {
                for (int64_t j = 0; j < 3; ++j) {
                  float sum = 0;
                  for (int64_t k = 0; k < 3; ++k)
                    sum += a[at(a_strides, i, k)] * b[at(b_strides, k, j)];
                  EXPECT_EQ(y[at(y_strides, i, j)], alpha * sum + (has_c ? c[j] : 0));
                }
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace wgemm::testing
