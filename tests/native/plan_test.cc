// Plans at both sides of the thresholds that results do not show.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "engine.h"
#include "plan/select_kernel.h"
#include "problem/problem.h"

namespace wgemm::testing {
namespace {

struct Product {
  DType type = DType::kFloat32;
  int64_t m, n, k;
  bool packed = false, trans_a = false, trans_b = false;
};

Problem problem_of(const Product& product) {
  alignas(64) static std::byte somewhere[64];
  Problem p;
  p.m = product.m;
  p.n = product.n;
  p.k = product.k;
  p.compute = compute_type(product.type);
  p.a = {somewhere, product.type, product.trans_a ? 1 : product.k, product.trans_a ? product.m : 1};
  p.b.plain = {somewhere, product.type, product.trans_b ? 1 : product.n,
               product.trans_b ? product.k : 1};
  p.y = {somewhere, product.type, product.n, 1};
  if (product.packed) p.b.packed = {.panels = somewhere, .dtype = product.type, .k = product.k};
  return p;
}
Plan plan_of(const Product& product, const Context& context) {
  return make_plan(problem_of(product), context, {});
}
Plan plan_of(const Product& product, Determinism determinism = Determinism::kFast) {
  return plan_of(product, Context(0, determinism));
}

constexpr int64_t kMega = int64_t{1} << 20;

TEST(Plan, PrefetchesWhatComesFromMemoryWhereYIsSmall) {
  for (const DType type :
       {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kBFloat16}) {
    SCOPED_TRACE(dtype_name(type));
    const auto bytes = static_cast<int64_t>(dtype_bytes(type));
    const int64_t k = 2 * kMega / 64 / bytes;  // 64 rows or columns of K = k take 2 MB
    const Plan both = plan_of({.type = type, .m = 64, .n = 64, .k = k + 1});
    EXPECT_TRUE(both.prefetch_a && both.prefetch_b);
    EXPECT_LE(both.kc * 2 * 64 * static_cast<int64_t>(dtype_bytes(compute_type(type))), kMega / 2);
    const Plan none = plan_of({.type = type, .m = 64, .n = 64, .k = k});
    EXPECT_FALSE(none.prefetch_a || none.prefetch_b);
    const Plan of_b = plan_of({.type = type, .m = 63, .n = 65, .k = k});
    EXPECT_FALSE(of_b.prefetch_a);
    EXPECT_TRUE(of_b.prefetch_b);
    const Plan largest = plan_of({.type = type, .m = 128, .n = 128, .k = k});
    EXPECT_TRUE(largest.prefetch_a && largest.prefetch_b);
    const Plan wide = plan_of({.type = type, .m = 128, .n = 129, .k = k}),
               tall = plan_of({.type = type, .m = 129, .n = 128, .k = k});
    EXPECT_FALSE(wide.prefetch_a || wide.prefetch_b || tall.prefetch_a || tall.prefetch_b);
    EXPECT_FALSE(plan_of({.type = type, .m = 1, .n = 64, .k = 2 * k}).prefetch_b);
  }
}

TEST(Plan, PrefetchesWeightsThatAreWaitedFor) {
  const int64_t k = 8 * kMega / 4 / 1024;  // 1024 columns take 8 MB in float32
  const auto prefetches = [&](DType type, int64_t m, int64_t n,
                              Determinism determinism = Determinism::kFast) {
    const Plan plan = plan_of({.type = type, .m = m, .n = n, .k = k, .packed = true}, determinism);
    EXPECT_FALSE(plan.prefetch_a);
    EXPECT_TRUE(!plan.prefetch_b ||
                plan.kc * plan.nc * static_cast<int64_t>(dtype_bytes(type)) <= kMega / 2)
        << "beyond L2";
    return plan.prefetch_b;
  };
  const bool fused = WGEMM_RELAXED;
  EXPECT_EQ(prefetches(DType::kFloat32, 32, 1025), fused);
  EXPECT_FALSE(prefetches(DType::kFloat32, 32, 1024));
  EXPECT_FALSE(prefetches(DType::kFloat32, 32, 1025, Determinism::kStrict));
  EXPECT_EQ(prefetches(DType::kFloat32, 128, 1025), fused);
  EXPECT_FALSE(prefetches(DType::kFloat32, 129, 1025));
  EXPECT_EQ(prefetches(DType::kFloat32, 3, 1025), fused);
  EXPECT_FALSE(prefetches(DType::kFloat32, 2, 1025));
  EXPECT_TRUE(prefetches(DType::kFloat64, 32, 513));
  EXPECT_TRUE(prefetches(DType::kFloat64, 2, 513));
  EXPECT_FALSE(prefetches(DType::kFloat64, 1, 513));
  const Plan deep =
      plan_of({.type = DType::kFloat64, .m = 6, .n = 1024, .k = 4096, .packed = true});
  EXPECT_TRUE(deep.prefetch_b);
  EXPECT_LE(deep.kc * deep.nc * 8, kMega / 2);
  for (const int64_t m : {2, 6, 7}) {
    const Plan few_columns =
        plan_of({.type = DType::kFloat64, .m = m, .n = 128, .k = 8193, .packed = true});
    EXPECT_TRUE(few_columns.prefetch_b) << m;
    EXPECT_FALSE(few_columns.prefetch_a) << m;
  }
  EXPECT_FALSE(prefetches(DType::kInt32, 32, 1025));
  EXPECT_FALSE(plan_of({.m = 32, .n = 1025, .k = k}).prefetch_b) << "not packed";
}

TEST(Plan, HasOneKernelForInt64FromFiveRowsOn) {
  for (const int64_t n : {64, 500}) {  // B fits in L1, or does not
    for (const bool packed : {false, true}) {
      const auto kernel = [&](int64_t m) {
        return std::string(
            plan_of({.type = DType::kInt64, .m = m, .n = n, .k = 64, .packed = packed})
                .kernel->name);
      };
      for (const int64_t m : {1, 4})
        EXPECT_EQ(kernel(m), packed ? "i64_2x4__portable" : "i64_2x1__portable_rowmajor") << m;
      // From eight rows on, also if B fits in L1.
      for (const int64_t m : {n == 64 && !packed ? 8 : 5, 16, 100})
        EXPECT_EQ(kernel(m), "i64_3x4__simd128_winograd") << m;
    }
  }
}

TEST(Plan, CutsKToBlocksOfEvenDepth) {
  EXPECT_EQ(plan_of({.m = 600, .n = 1000, .k = 4106}).kc, 1370) << "not 1369";
  EXPECT_EQ(plan_of({.m = 100, .n = 1000, .k = 4095}).kc % 2, 0);
  EXPECT_EQ(plan_of({.m = 600, .n = 1000, .k = 4095}).kc, 4095);
}

TEST(Plan, HoldsBlocksOfBThatFitInTheLlc) {
  const auto columns = [](DType type, int64_t n) {
    return plan_of({.type = type, .m = 1024, .n = n, .k = 1024, .packed = true}).nc;
  };
  EXPECT_EQ(columns(DType::kFloat32, 768), 768);
  EXPECT_EQ(columns(DType::kFloat32, 800), 400);
  EXPECT_EQ(columns(DType::kFloat64, 512), 256);
}

TEST(Plan, SplitsKDeeplyForGemvBeyondL2AndForSkinnyGemmFromMemory) {
  constexpr int64_t kFew = 12;
  // B takes `bytes`, and `more_k` rows more.
  const auto kc_of = [](DType type, int64_t m, int64_t n, int64_t bytes, int64_t more_k,
                        Determinism determinism = Determinism::kFast) {
    const int64_t k = bytes / n / static_cast<int64_t>(dtype_bytes(type)) + more_k;
    const Plan plan = plan_of({.type = type, .m = m, .n = n, .k = k}, determinism);
    EXPECT_FALSE(plan.pack_b) << dtype_name(type) << " " << m;
    return plan.kc;
  };
  const auto kc = [&](DType type, int64_t m, int64_t more_k) {
    return kc_of(type, m, 1024, 8 * kMega, more_k);
  };
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    SCOPED_TRACE(dtype_name(type));
    EXPECT_LE(kc(type, 2, 1), kFew);
    EXPECT_GT(kc(type, 2, 0), kFew);
    EXPECT_LE(kc(type, 4, 1), kFew);
    EXPECT_GT(kc(type, 4, 0), kFew);
    // GEMV of integers is by axpy, and GEMV of floats is, too, if the order of the sums is free.
    constexpr Determinism determinism = Determinism::kStrict;
    const bool is_axpy = is_integer(type);
    for (const int64_t n : {256, 1024}) {
      if (!is_axpy) {
        EXPECT_LE(kc_of(type, 1, n, kMega / 2, 1, determinism), kFew);
        EXPECT_GT(kc_of(type, 1, n, kMega / 2, 0, determinism), kFew);
      }
      EXPECT_LE(kc_of(type, 2, n, 8 * kMega, 1), kFew);
    }
    // Short rows follow on each other.
    for (const int64_t m : {1, 2}) {
      if (is_axpy && m == 1) continue;
      const int64_t short_rows = kc_of(type, m, 248, 8 * kMega, 16, determinism);
      EXPECT_GT(short_rows, kFew);
      EXPECT_LE(short_rows * 248 * static_cast<int64_t>(dtype_bytes(type)), kMega / 4);
    }
  }
  EXPECT_LE(kc(DType::kBFloat16, 2, 1), kFew);
  EXPECT_GT(kc(DType::kBFloat16, 2, 0), kFew);
  EXPECT_LE(kc_of(DType::kBFloat16, 1, 4096, 8 * kMega, 1, Determinism::kStrict), kFew);
  EXPECT_LE(kc(DType::kFloat16, 1, 1), kFew);
  const Plan narrow = plan_of({.type = DType::kFloat64, .m = 64, .n = 64, .k = 65536});
  EXPECT_EQ(narrow.pack_b, !WGEMM_RELAXED);
  EXPECT_TRUE(narrow.pack_b || narrow.kc * 64 * 8 == kMega / 4);
}

TEST(Plan, ComputesGemvByAxpyBeyondAQuarterOfL2) {
  // B takes `bytes`, and `more_k` rows.
  const auto streams = [](DType type, int64_t m, int64_t n, int64_t bytes, int64_t more_k,
                          Determinism determinism = Determinism::kFast) {
    const int64_t k = bytes / n / static_cast<int64_t>(dtype_bytes(type)) + more_k;
    const Plan plan = plan_of({.type = type, .m = m, .n = n, .k = k}, determinism);
    EXPECT_EQ(std::string(plan.kernel->name).find("_axpy") != std::string::npos, plan.kernel->axpy);
    EXPECT_TRUE(!plan.kernel->axpy || (plan.nc == n && plan.kc == plan.parts.size)) << "broken";
    return plan.kernel->axpy;
  };
  constexpr int64_t kLeast = 250 << 10;
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt32,
                           DType::kInt64, DType::kUInt64, DType::kBFloat16}) {
    SCOPED_TRACE(dtype_name(type));
    EXPECT_TRUE(streams(type, 1, 64, kLeast, 1));
    EXPECT_FALSE(streams(type, 1, 64, kLeast, 0)) << "near enough";
    EXPECT_FALSE(streams(type, 1, 56, kLeast, 100)) << "short rows";
    EXPECT_FALSE(streams(type, 2, 64, kLeast, 1));
    EXPECT_TRUE(streams(type, 1, 4096, 64 * kMega, 0));
    EXPECT_TRUE(streams(type, 1, 64, 64 * kMega, 0));
    EXPECT_EQ(streams(type, 1, 64, kLeast, 1, Determinism::kStrict), is_integer(type));
  }
  EXPECT_TRUE(streams(DType::kFloat32, 1, 50257, 400 * kMega, 0));
  EXPECT_LE(plan_of({.m = 1, .n = 1000000, .k = 100}).nc, 65536) << "accumulators in L2";
  EXPECT_LE(plan_of({.m = 1, .n = 64, .k = 3 * kMega}).kc, kMega) << "A may have to be packed";
}

TEST(Plan, GoesOnAlongColumnsOfB) {
  const auto kc = [](DType type, int64_t m, int64_t k, bool trans_a = false) {
    const Plan plan =
        plan_of({.type = type, .m = m, .n = 4096, .k = k, .trans_a = trans_a, .trans_b = true});
    EXPECT_FALSE(plan.pack_b);
    return plan.kc;
  };
  for (const DType type :
       {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kBFloat16, DType::kFloat16}) {
    SCOPED_TRACE(dtype_name(type));
    EXPECT_EQ(kc(type, 1, 11008), 11008);
    for (const int64_t k : {int64_t{40000}, 3 * kMega}) {
      EXPECT_LE(kc(type, 1, k), 32768)
          << "A may have to be packed, and further rows find columns in L2";
    }
  }
  EXPECT_EQ(kc(DType::kFloat32, 4, 11008), 11008);
  EXPECT_EQ(kc(DType::kFloat32, 4, 11008, true), 11008);
  EXPECT_LE(plan_of({.m = 4, .n = 4096, .k = 11008, .packed = true}).kc, 4096);
}

TEST(Plan, FindsColumnsOfBInL2AfterTheFirstStrip) {
  for (const DType type : {DType::kFloat64, DType::kInt64, DType::kBFloat16}) {
    SCOPED_TRACE(dtype_name(type));
    const Plan several = plan_of({.type = type, .m = 4, .n = 4096, .k = 1000, .trans_b = true});
    EXPECT_FALSE(several.pack_b);
    EXPECT_LE(several.nc * several.kc * static_cast<int64_t>(dtype_bytes(type)), kMega / 2);
    EXPECT_EQ(plan_of({.type = type, .m = 1, .n = 4096, .k = 1000, .trans_b = true}).nc, 4096);
  }
}

TEST(Plan, ReadsANarrowColumnMajorBUnpacked) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kBFloat16}) {
    SCOPED_TRACE(dtype_name(type));
    for (const int64_t n : {1, 2, 7}) {
      for (const int64_t m : {1, 4})
        EXPECT_FALSE(plan_of({.type = type, .m = m, .n = n, .k = 4096, .trans_b = true}).pack_b);
    }
  }
  for (const DType type : {DType::kFloat32, DType::kInt32}) {
    const Plan strict =
        plan_of({.type = type, .m = 1, .n = 7, .k = 4096, .trans_b = true}, Determinism::kStrict);
    EXPECT_FALSE(strict.pack_b);
  }
}

TEST(Plan, ReadsANarrowRowMajorBUnpacked) {
  for (const Determinism determinism : {Determinism::kFast, Determinism::kStrict}) {
    const auto packs = [&](int64_t m, int64_t n, int64_t k, DType type = DType::kFloat32) {
      return plan_of({.type = type, .m = m, .n = n, .k = k}, determinism).pack_b;
    };
    EXPECT_FALSE(packs(4, 4, 4) || packs(1, 7, 100) || packs(2, 2, 2) || packs(3, 3, 3));
    EXPECT_TRUE(packs(5, 4, 4) || packs(3, 3, 4));
    EXPECT_FALSE(packs(3, 3, 3, DType::kInt32));
    EXPECT_TRUE(packs(3, 3, 4, DType::kInt32));
  }
}

TEST(Plan, TransposesFewerThanEightRowsToo) {
  const auto transposes = [](int64_t m, int64_t n, bool trans_b, DType type = DType::kFloat32) {
    return transpose_is_faster(
        problem_of({.type = type, .m = m, .n = n, .k = 100, .trans_b = trans_b}));
  };
  EXPECT_TRUE(transposes(2, 1, false) && transposes(7, 1, true));
  EXPECT_FALSE(transposes(1, 1, false));
  EXPECT_TRUE(transposes(5, 4, true) && !transposes(4, 4, true));
  EXPECT_TRUE(transposes(8, 3, false) && !transposes(7, 3, false));
  EXPECT_TRUE(transposes(8, 1, false, DType::kInt64) && !transposes(7, 1, false, DType::kInt64));
}

TEST(Plan, ReadsColumnMajorBOf16BitsUnpackedForGemv) {
  const auto packs = [](DType type, int64_t m, int64_t k,
                        Determinism determinism = Determinism::kFast) {
    return plan_of({.type = type, .m = m, .n = 1000, .k = k, .trans_b = true}, determinism).pack_b;
  };
  EXPECT_FALSE(packs(DType::kBFloat16, 1, 32) || packs(DType::kBFloat16, 2, 33) ||
               packs(DType::kBFloat16, 4, 33));
  EXPECT_TRUE(packs(DType::kBFloat16, 5, 33) && packs(DType::kBFloat16, 2, 32));
  EXPECT_TRUE(packs(DType::kBFloat16, 2, 33, Determinism::kStrict));
  EXPECT_FALSE(packs(DType::kFloat16, 1, 33));
  EXPECT_TRUE(packs(DType::kFloat16, 2, 33));
}

TEST(Plan, ChoosesKernelsForJoinedVectors) {
  const auto kernel_of = [](const Product& product, int vectors) {
    Context context;
    context.set_vectors(vectors);
    const PlanOptions options = {.processor = Processor::kX86};
    return std::string(make_plan(problem_of(product), context, options).kernel->name);
  };
  struct Expected {
    Product product;
    std::string joined;
  };
  const Expected all[] = {
      {{.m = 128, .n = 768, .k = 768}, "f32_5x16__relaxed"},
      {{.m = 128, .n = 768, .k = 768, .packed = true}, "f32_5x16__relaxed"},
      {{.m = 12, .n = 768, .k = 768}, "f32_5x16__relaxed_rowmajor"},
      {{.type = DType::kFloat64, .m = 128, .n = 256, .k = 256}, "f64_5x8__relaxed"},
      {{.type = DType::kBFloat16, .m = 32, .n = 256, .k = 256, .packed = true},
       "f32_bf16_4x16__relaxed"},
      {{.type = DType::kBFloat16, .m = 128, .n = 256, .k = 256, .packed = true},
       "f32_5x16__relaxed"}};
  for (const auto& [product, joined] : all) {
    const std::string usual = kernel_of(product, 16);
    EXPECT_EQ(kernel_of(product, 32), WGEMM_RELAXED ? joined : usual);
    EXPECT_NE(usual, joined);
  }
  // GEMV and strict products stay as they are.
  const Product gemv = {.m = 1, .n = 768, .k = 768};
  EXPECT_EQ(kernel_of(gemv, 32), kernel_of(gemv, 16));
  Context strict(0, Determinism::kStrict);
  const Plan before = plan_of({.m = 128, .n = 768, .k = 768}, strict);
  strict.set_vectors(32);
  EXPECT_EQ(plan_of({.m = 128, .n = 768, .k = 768}, strict).kernel, before.kernel);
}

TEST(Plan, CutsStreamsAlongKFirst) {
  Context context(0, Determinism::kFast);
  if (!context.set_threads(4).ok()) GTEST_SKIP() << "a build without threads";
  const Plan streams = plan_of({.m = 1, .n = 4096, .k = 4096}, context);
  EXPECT_EQ(streams.parts.count, 16);
  EXPECT_EQ(streams.cols.count, 1);
  EXPECT_GE(plan_of({.m = 1, .n = 65536, .k = 256}, context).cols.count, 4 * 4) << "four runs";
  EXPECT_GT(plan_of({.m = 2, .n = 4096, .k = 4096}, context).cols.count, 4);
}

TEST(Plan, ReadsShortRowsOfBInPlace) {
  const auto packs = [](DType type, int64_t m, int64_t n,
                        Determinism determinism = Determinism::kFast) {
    return plan_of({.type = type, .m = m, .n = n, .k = 1000}, determinism).pack_b;
  };
  const bool unfused = !WGEMM_RELAXED;
  EXPECT_EQ(packs(DType::kFloat32, 128, 128), unfused);
  EXPECT_TRUE(packs(DType::kFloat32, 128, 129));
  EXPECT_TRUE(packs(DType::kFloat32, 129, 128));
  EXPECT_TRUE(packs(DType::kFloat32, 128, 128, Determinism::kStrict));
  EXPECT_EQ(packs(DType::kFloat64, 128, 64), unfused);
  EXPECT_TRUE(packs(DType::kFloat64, 128, 65));
  EXPECT_TRUE(packs(DType::kInt32, 64, 64));
}

TEST(Plan, TellsTheRegime) {
  const auto regime = [](const Product& product, Determinism determinism = Determinism::kFast) {
    return plan_of(product, determinism).regime;
  };
  EXPECT_EQ(regime({.m = 512, .n = 1000, .k = 1000}), Regime::kGemm);
  EXPECT_EQ(regime({.m = 512, .n = 1000, .k = 1000, .packed = true}), Regime::kGemm);
  EXPECT_EQ(regime({.m = 511, .n = 1000, .k = 1000}), Regime::kSkinny);
  EXPECT_EQ(regime({.m = 2, .n = 1000, .k = 1000, .packed = true}), Regime::kSkinny);
  EXPECT_EQ(regime({.m = 511, .n = 1000, .k = 1000, .trans_b = true}), Regime::kSkinny);
  EXPECT_EQ(regime({.m = 2, .n = 1000, .k = 1000}), Regime::kSkinnyRowMajor);
  EXPECT_EQ(regime({.m = 2, .n = 1000, .k = 1000, .trans_b = true}), Regime::kSkinnyColumnMajor);
  EXPECT_EQ(regime({.m = 1, .n = 1000, .k = 1000, .packed = true}), Regime::kGemv);
  EXPECT_EQ(regime({.m = 1, .n = 1000, .k = 1000, .trans_b = true}), Regime::kGemvColumnMajor);
  EXPECT_EQ(regime({.m = 1, .n = 1000, .k = 1000}), Regime::kGemvAxpy);
  EXPECT_EQ(regime({.m = 1, .n = 1000, .k = 1000}, Determinism::kStrict), Regime::kGemvRowMajor);
  EXPECT_EQ(regime({.m = 1, .n = 100, .k = 100}), Regime::kGemvRowMajor);
}

TEST(Plan, NamesEachRegime) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Regime::kGemvAxpy); ++i)
    names.insert(name_of(static_cast<Regime>(i)));
  EXPECT_EQ(names.size(), 8u);
  EXPECT_STREQ(name_of(Regime::kSkinny), "skinny GEMM");
}

TEST(Plan, TransposesNarrowProducts) {
  const auto transposes = [](int64_t m, int64_t n, const PlanOptions& options = {}) {
    Problem p;
    p.m = m;
    p.n = n;
    p.k = 10;
    p.a = {nullptr, DType::kFloat32, 10, 1};
    p.b.plain = {nullptr, DType::kFloat32, n, 1};
    const bool is_transposed = transpose_if_faster(&p, options);
    EXPECT_EQ(p.m, is_transposed ? n : m);
    EXPECT_EQ(p.b.plain.col_stride, is_transposed ? 10 : 1);
    return is_transposed;
  };
  EXPECT_TRUE(transposes(8, 4));
  EXPECT_FALSE(transposes(7, 4));
  EXPECT_FALSE(transposes(8, 5));
  EXPECT_FALSE(transposes(8, 4, {.kernel = kernel_table().rows})) << "the kernel is given";
}

TEST(Plan, FallsBackToOneThreadOnce) {
  Context context(0, Determinism::kFast);
  if (!context.set_threads(2).ok()) GTEST_SKIP() << "a build without threads";
  alignas(64) static std::byte somewhere[64];
  Problem p;
  p.m = p.k = 1000;
  p.n = 16000;
  p.a = {somewhere, DType::kFloat32, p.k, 1};
  p.b.plain = {somewhere, DType::kFloat32, p.n, 1};
  p.y = {somewhere, DType::kFloat32, p.n, 1};
  Plan plan = make_plan(p, context);
  const size_t before = plan.scratch_bytes;
  EXPECT_GT(plan.tasks(), 1);
  EXPECT_FALSE(fall_back_to_one_thread(p, context, {.tasks = 4}, &plan)) << "tasks are given";
  EXPECT_TRUE(fall_back_to_one_thread(p, context, {}, &plan));
  EXPECT_EQ(plan.tasks(), 1);
  EXPECT_EQ(plan.threads, 1);
  EXPECT_LT(plan.scratch_bytes, before);
  EXPECT_FALSE(fall_back_to_one_thread(p, context, {}, &plan));
}

// A problem of each layout of B, and a B of MatMulNBits at levels 0 and 4.
std::vector<Problem> every_form(DType type, int64_t m, int64_t n, int64_t k) {
  alignas(64) static std::byte somewhere[64];
  Problem plain;
  plain.m = m;
  plain.n = n;
  plain.k = k;
  plain.compute = compute_type(type);
  plain.a = {somewhere, type, k, 1};
  plain.b.plain = {somewhere, type, n, 1};
  plain.y = {somewhere, plain.compute == DType::kInt8 ? DType::kInt32 : type, n, 1};
  std::vector<Problem> forms = {plain};
  const auto add = [&](auto change) { change(forms.emplace_back(plain)); };
  add([&](Problem& p) { p.b.plain = {somewhere, type, 1, k}; });
  add([&](Problem& p) { p.a = {somewhere, type, 1, m}; });
  for (const auto& range : {std::pair{-60, 66}, {-127, 127}, {-128, 127}}) {
    for (const bool finite : {false, true}) {
      add([&](Problem& p) {
        p.b.packed = {
            .panels = somewhere, .dtype = type, .k = k, .low = range.first, .high = range.second};
        p.b.packed.finite = finite;
      });
    }
  }
  if (plain.compute != DType::kFloat32) return forms;
  for (const int bits : {2, 4, 8}) {
    for (const bool quantizes_rows : {false, true}) {
      add([&](Problem& p) {
        p.b.packed = {.panels = somewhere, .dtype = type, .k = k, .nbits = {bits, 32, type}};
        p.quantizes_rows = quantizes_rows;
      });
    }
  }
  return forms;
}

// No engine may lack a vector kernel for a product, whatever instructions it has. Only int64 has
// scalar kernels that are faster. Native builds have more rows than each wasm build.
TEST(Plan, TakesNoScalarKernelExceptForInt64) {
#ifdef __EMSCRIPTEN__
  const KernelTable table = kernel_table();
  for (const Kernel* row = table.rows; row < table.rows + table.count; ++row)
    EXPECT_TRUE(row->isa != Isa::kPortable || row->compute == DType::kInt64) << row->name;
#endif
  for (const Engine& engine : engines()) {
    const Simulated simulated(engine);
    for (int type = 0; type < kDTypeCount; ++type) {
      for (const int64_t m : {1, 2, 3, 5, 16, 24, 100, 1000}) {
        for (const auto& [n, k] :
             {std::pair<int64_t, int64_t>{1, 1}, {3, 100}, {8, 33}, {17, 5}, {1000, 700}}) {
          for (const Problem& problem : every_form(static_cast<DType>(type), m, n, k)) {
            for (const auto order : {Determinism::kFast, Determinism::kStrict}) {
              for (const auto processor : {Processor::kX86, Processor::kArm}) {
                Problem maybe_transposed = problem;
                const PlanOptions options = {.processor = processor};
                transpose_if_faster(&maybe_transposed, options);
                const Plan plan = make_plan(maybe_transposed, Context(0, order), options);
                const Kernel& kernel = *plan.kernel;
                EXPECT_TRUE(kernel.isa != Isa::kPortable || kernel.compute == DType::kInt64)
                    << kernel.name << " on " << engine.name << " for " << m << "x" << n << "x" << k;
                EXPECT_EQ(kernel.compute, problem.compute) << kernel.name;
                EXPECT_TRUE(can_run(kernel, maybe_transposed)) << kernel.name;
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
