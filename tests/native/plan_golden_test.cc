// The plans of a large grid of problems, as they were reviewed last. A change of the planner that
// is not meant to change plans leaves this test alone. A change of plans shows here as a diff.
// plan_golden.inc has one hash per build, type and number of threads. plans.txt is a table of some
// 380 plans to be read. WGEMM_WRITE_PLANS=1 in the environment writes the table, and prints
// hashes. The rows of wasm-relaxed for 8 bits are of an engine with exact unsigned dot products.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/types.h"
#include "engine.h"
#include "out_of_core/out_of_core.h"
#include "plan/plan.h"

namespace wgemm::testing {
namespace {

#if !defined(__EMSCRIPTEN__)
constexpr bool kIsNative = true;
constexpr const char* kBuild = "native";
#else
constexpr bool kIsNative = false;
constexpr const char* kBuild = WGEMM_RELAXED ? "wasm-relaxed" : "wasm-simd128";
#endif

// The last two: of MatMulNBits with blocks of 32 codes of 4 bits, at levels 0 and 4.
enum class Form { kRowMajor, kColumnMajor, kPacked, kNBits, kNBitsLevel4 };

struct Product {
  DType type;
  int64_t m, n, k;
  Form form = Form::kRowMajor;
  unsigned variant = 0;  // bits: A is column-major, an epilogue, a batch, sums that are carried
};

alignas(64) std::byte somewhere[64];

// A problem and the axes of its batch.
struct Planned {
  Problem problem;
  BatchAxis axes[2] = {};

  explicit Planned(const Product& product) {
    const auto& [type, m, n, k, form, variant] = product;
    Problem& p = problem;
    p.m = m;
    p.n = n;
    p.k = k;
    p.compute = compute_type(type);
    const bool quantized = p.compute == DType::kInt8, column_a = (variant & 1) != 0;
    p.a = {somewhere, type, column_a ? 1 : k, column_a ? m : 1};
    p.b.plain = {somewhere, type, form == Form::kColumnMajor ? 1 : n,
                 form == Form::kColumnMajor ? k : 1};
    p.y = {somewhere, quantized ? DType::kFloat32 : type, n, 1};
    if (form == Form::kPacked) {
      p.b.packed = {.panels = somewhere,
                    .dtype = type,
                    .k = k,
                    .low = (variant & 2) != 0 ? -128 : -60,
                    .high = (variant & 4) != 0 ? 127 : 66,
                    .finite = (variant & 2) != 0};
    }
    if (form == Form::kNBits || form == Form::kNBitsLevel4) {
      p.b.packed = {.panels = somewhere, .dtype = type, .k = k, .nbits = {4, 32, type}};
      p.quantizes_rows = form == Form::kNBitsLevel4;
    }
    if ((variant & 2) != 0) p.epilogue.bounds.min = 0;
    const bool plain = form != Form::kPacked && !quantized;
    if ((variant & 12) == 12 && plain) {
      axes[0] = {3, m * k, k * n, 0, 3 * m * n, {}};
      axes[1] = {5, m * k, 0, 0, m * n, {}};
      p.batch = axes;
    }
    if ((variant & 48) == 48 && plain) p.carry.sums = somewhere;
  }
};

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

// The decisions of a plan. For the kernel, everything that a planner knows of it except its name.
uint64_t hash_of(uint64_t hash, const Plan& plan) {
  const auto add = [&](auto... values) {
    ((hash = mix(hash, static_cast<uint64_t>(values))), ...);
  };
  if (plan.kernel != nullptr) {
    const Kernel& kernel = *plan.kernel;
    add(kernel.compute, kernel.mr, kernel.nr, kernel.kr, kernel.isa, kernel.processor, kernel.dot);
    add(kernel.b_layout, kernel.b_type, kernel.finite, kernel.axpy, kernel.strict, kernel.a.width);
  }
  add(plan.mc, plan.nc, plan.kc, plan.pack_a, plan.pack_b, plan.prefetch_a, plan.prefetch_b);
  add(plan.direct, plan.canonical_nan, plan.a_shift, plan.b_shift, plan.threads);
  for (const Cut& cut : {plan.parts, plan.outer, plan.inner, plan.rows, plan.cols})
    add(cut.size, cut.count);
  add(plan.adds_parts, plan.cols_first, plan.line, plan.wakes, plan.wakes_after_gap, plan.units);
  add(plan.a_bytes, plan.b_bytes, plan.acc_bytes, plan.columns_bytes, plan.sums_bytes);
  add(plan.thread_bytes, plan.scratch_bytes);
  return hash;
}

constexpr int64_t kM[] = {1,  2,  3,  4,  5,  6,   7,   8,   12,  13,  15,  16,  17,
                          24, 47, 48, 49, 64, 128, 129, 256, 511, 512, 513, 2000};
constexpr int64_t kN[] = {1,  3,  4,   5,   7,   8,   9,   15,   16,   31,    32,    33,   63,
                          64, 65, 127, 128, 129, 255, 512, 1000, 4096, 16384, 20000, 70000};
constexpr int64_t kK[] = {1,   2,   3,    16,   31,   32,   33,   64,   65,    100,   256,
                          784, 800, 1000, 2048, 4095, 4096, 4097, 9000, 33000, 70000, 1100000};

// The hash of the plans for all problems of a type, on a context of `threads` threads.
uint64_t hash_of_grid(DType type, int threads) {
  uint64_t hash = 0;
  unsigned variant = 1;
  for (const Determinism determinism : {Determinism::kFast, Determinism::kStrict}) {
    Context context(0, determinism);
    if (!context.set_threads(threads).ok()) return 0;
    for (const Processor processor : {Processor::kX86, Processor::kArm}) {
      // Only float32 and float64 have kernels for one kind of processor.
      const DType compute = compute_type(type);
      if (processor == Processor::kArm && compute != DType::kFloat32 && compute != DType::kFloat64)
        continue;
      for (const Form form : {Form::kRowMajor, Form::kColumnMajor, Form::kPacked}) {
        // A wasm build has the dot products of the engine that runs it.
        if (form == Form::kPacked && compute_type(type) == DType::kInt8 && !kIsNative) continue;
        for (const int64_t m : kM) {
          for (const int64_t n : kN) {
            for (const int64_t k : kK) {
              variant = variant * 1664525u + 1013904223u;
              const Planned planned({type, m, n, k, form, variant >> 20});
              Problem maybe_transposed = planned.problem;
              hash = mix(hash, transpose_if_faster(&maybe_transposed));
              hash = hash_of(hash, make_plan(planned.problem, context, {.processor = processor}));
            }
          }
        }
      }
    }
  }
  return hash;
}

struct Golden {
  const char *build, *name;
  int threads;
  uint64_t hash;
};
constexpr Golden kGolden[] = {
#include "plan_golden.inc"
};

void expect_golden(const std::string& name, int threads, uint64_t hash,
                   const std::string& build = kBuild) {
  if (std::getenv("WGEMM_WRITE_PLANS") != nullptr) {
    std::printf("{\"%s\", \"%s\", %d, 0x%016llxu},\n", build.c_str(), name.c_str(), threads,
                static_cast<unsigned long long>(hash));
    return;
  }
  for (const Golden& golden : kGolden) {
    if (golden.build != build || golden.name != name) continue;
    if (golden.threads != threads) continue;
    EXPECT_EQ(golden.hash, hash) << name << " on " << threads << " threads";
    return;
  }
  ADD_FAILURE() << "plan_golden.inc has no row of " << build << ", " << name << ", " << threads;
}

// The build whose rows hold. A 7-bit dot product takes no plain B of 8 bits, so relaxed plans are
// then the plans of simd128.
std::string build_of_plans(DType type) {
  const bool takes_no_b = relaxed_dot() == Dot::kSevenBits || relaxed_dot() == Dot::kNone;
  return !kIsNative && compute_type(type) == DType::kInt8 && takes_no_b ? "wasm-simd128" : kBuild;
}

class GoldenGrid : public ::testing::TestWithParam<int> {};

TEST_P(GoldenGrid, HasTheSamePlans) {
  const auto type = static_cast<DType>(GetParam());
  const bool asks_for_dots = compute_type(type) == DType::kInt8 && kIsNative;
  if (compute_type(type) == DType::kInt8 && !kIsNative && relaxed_dot() == Dot::kSigned)
    GTEST_SKIP() << "plan_golden.inc has no rows of engines with signed dot products";
  std::set<Dot> seen;
  for (const Engine& engine : engines()) {
    if (!seen.insert(engine.dot).second) continue;  // plans know of an engine no more than that
    const Simulated simulated(engine);
    std::string name = dtype_name(type);
    if (asks_for_dots) name += std::string(" ") + engine.name;
    for (const int threads : {1, 2, 4}) {
      if (threads > 1 && !WGEMM_THREADS) continue;
      expect_golden(name, threads, hash_of_grid(type, threads), build_of_plans(type));
    }
    if (!asks_for_dots) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GoldenGrid, ::testing::Range(0, kDTypeCount), [](const auto& type) {
  return std::string(dtype_name(static_cast<DType>(type.param)));
});

#if !defined(__EMSCRIPTEN__)  // where the system's memory bounds blocks as well

TEST(GoldenPlans, OfProductsOutOfCore) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32}) {
    uint64_t hash = 0;
    for (const size_t limit : {40'000u, 700'000u, 20'000'000u, 500'000'000u}) {
      Context context(limit);
      for (const int64_t m : {1, 17, 300, 5000}) {
        for (const int64_t n : {1, 9, 700, 4000}) {
          for (const int64_t k : {1, 65, 1000, 30000}) {
            for (const unsigned variant : {0u, 1u, 2u, 12u}) {
              for (const Form form : {Form::kRowMajor, Form::kColumnMajor}) {
                const Planned planned({type, m, n, k, form, variant});
                const OutOfCore out_of_core;
                OutOfCorePlan plan;
                const Status status =
                    plan_out_of_core(context, "gemm", planned.problem,
                                     {&out_of_core, &out_of_core, nullptr, &out_of_core}, 0, &plan);
                hash = mix(hash, status.ok());
                if (!status.ok()) continue;
                hash = hash_of(hash, plan.plan);
                hash = mix(hash, plan.transposed);
                hash = mix(hash, static_cast<uint64_t>(plan.bytes));
                hash = mix(hash, static_cast<uint64_t>(plan.moved_bytes));
              }
            }
          }
        }
      }
    }
    expect_golden(std::string(dtype_name(type)) + " out-of-core", 1, hash);
  }
}

std::string row_of(const Product& product, int threads, Determinism determinism) {
  Context context(0, determinism);
  EXPECT_TRUE(context.set_threads(threads).ok());
  Planned planned(product);
  const bool transposes = transpose_if_faster(&planned.problem);
  const Plan plan = make_plan(planned.problem, context, {.processor = Processor::kX86});
  const char* forms[] = {"row-major", "column-major", "packed", "nbits", "nbits 4"};
  char row[400];
  std::snprintf(row, sizeof(row),
                "%-8s %5lld %5lld %6lld  %-12s %-6s %d  %-32s %5lld %5lld %6lld  %c%c%c%c%c%c%c  "
                "%2lld*%3lldx%-3lld %9zu\n",
                dtype_name(product.type), static_cast<long long>(product.m),
                static_cast<long long>(product.n), static_cast<long long>(product.k),
                forms[static_cast<int>(product.form)],
                determinism == Determinism::kStrict ? "strict" : "fast", threads, plan.kernel->name,
                static_cast<long long>(plan.mc), static_cast<long long>(plan.nc),
                static_cast<long long>(plan.kc), transposes ? 'T' : '-', plan.pack_a ? 'a' : '-',
                plan.pack_b ? 'b' : '-', plan.prefetch_a ? 'A' : '-', plan.prefetch_b ? 'B' : '-',
                plan.direct ? 'd' : '-', plan.units != 0 ? 'S' : '-',
                static_cast<long long>(plan.parts.count), static_cast<long long>(plan.rows.count),
                static_cast<long long>(plan.cols.count), plan.scratch_bytes);
  return row;
}

std::string table() {
  std::string text =
      "# Plans by plan_golden_test.cc, of the native build for x86. T: the transpose of the result "
      "is\n"
      "# computed; a, b: the operand is packed; A, B: it is prefetched; d: the kernel writes Y; S: "
      "B\n"
      "# is packed once for all threads. Tasks: parts of K, rows and columns.\n"
      "# type      M     N      K  B            order  threads  kernel                          "
      "MC    NC     KC  flags    tasks       scratch\n";
  constexpr int64_t kShapes[][3] = {
      {1, 1, 1},        {1, 1000, 1000},  {1, 4096, 4096},  {1, 784, 128},      {1, 32000, 2048},
      {2, 1000, 1000},  {2, 4096, 4096},  {3, 3, 3},        {4, 4096, 1024},    {5, 1000, 1000},
      {8, 8, 8},        {8, 4096, 4096},  {16, 16, 16},     {16, 1000, 30},     {32, 1024, 4096},
      {64, 64, 64},     {64, 64, 100000}, {64, 1000, 1000}, {100, 3, 1000},     {128, 1024, 1024},
      {256, 256, 256},  {384, 768, 768},  {512, 512, 512},  {600, 1000, 5000},  {1000, 1, 1000},
      {1000, 7, 1000},  {1000, 1000, 1},  {1024, 1024, 64}, {1024, 1024, 1024}, {2048, 2048, 2048},
      {4000, 50, 9000}, {5000, 20000, 33}};
  for (const auto& [m, n, k] : kShapes) {
    for (const Form form : {Form::kRowMajor, Form::kColumnMajor, Form::kPacked}) {
      text += row_of({DType::kFloat32, m, n, k, form}, 1, Determinism::kFast);
    }
    text += row_of({DType::kFloat32, m, n, k}, 4, Determinism::kFast);
    text += row_of({DType::kFloat32, m, n, k}, 1, Determinism::kStrict);
    for (const DType type : {DType::kFloat64, DType::kInt32, DType::kInt64}) {
      text += row_of({type, m, n, k}, 1, Determinism::kFast);
    }
    text += row_of({DType::kBFloat16, m, n, k, Form::kPacked}, 1, Determinism::kFast);
    text += row_of({DType::kUInt8, m, n, k, Form::kPacked}, 1, Determinism::kFast);
    for (const Form form : {Form::kNBits, Form::kNBitsLevel4})
      text += row_of({DType::kFloat32, m, n, k, form}, 1, Determinism::kFast);
  }
  return text;
}

TEST(GoldenPlans, OfTheTable) {
  const Simulated simulated(engines()[2]);
  const std::string found = table();
  if (std::getenv("WGEMM_WRITE_PLANS") != nullptr) {
    std::ofstream(WGEMM_TEST_PLANS) << found;
    return;
  }
  std::stringstream golden;
  golden << std::ifstream(WGEMM_TEST_PLANS).rdbuf();
  std::istringstream lines(found);
  for (std::string line, wanted; std::getline(lines, line);) {
    std::getline(golden, wanted);
    EXPECT_EQ(wanted, line);
  }
  EXPECT_EQ(golden.peek(), EOF) << "plans.txt has more rows";
}

#endif

}  // namespace
}  // namespace wgemm::testing
