// A context with several threads has the results of one thread, bit for bit. Small products stay on
// one thread.
#include "threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace wgemm::testing {
namespace {

struct Product {
  int64_t m, n, k;
  bool trans_b;
  std::vector<float> a, b, y;
  int64_t a_dims[2] = {m, k}, b_dims[2] = {trans_b ? n : k, trans_b ? k : n}, y_dims[2] = {m, n};

  Product(int64_t rows, int64_t cols, int64_t depth, bool transposed = false)
      : m(rows),
        n(cols),
        k(depth),
        trans_b(transposed),
        a(size(m, k)),
        b(size(k, n)),
        y(size(m, n), -1) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 13) / 8 - 0.7F;
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 11) / 16 - 0.3F;
  }
  static size_t size(int64_t rows, int64_t cols) { return static_cast<size_t>(rows * cols); }
  GemmArgs args() {
    GemmArgs args;
    args.transB = trans_b;
    args.A = {.data = a.data(), .dtype = DType::kFloat32, .dims = a_dims};
    args.B = {.data = b.data(), .dtype = DType::kFloat32, .dims = b_dims};
    args.Y = {.data = y.data(), .dtype = DType::kFloat32, .dims = y_dims};
    return args;
  }
};

#if WGEMM_THREADS

void expect_same_bits(int64_t m, int64_t n, int64_t k, bool trans_b) {
  SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
               (trans_b ? ", transposed B" : ""));
  Product one(m, n, k, trans_b);
  Context alone;
  ASSERT_TRUE(gemm(alone, one.args()).ok());
  for (const int threads : {2, 3, 4, 7}) {
    Context context;
    ASSERT_TRUE(context.set_threads(threads).ok());
    EXPECT_EQ(context.threads(), threads);
    Product many(m, n, k, trans_b);
    for (int round = 0; round < 3; ++round) {
      std::fill(many.y.begin(), many.y.end(), -1.F);
      ASSERT_TRUE(gemm(context, many.args()).ok());
      ASSERT_EQ(std::memcmp(one.y.data(), many.y.data(), one.y.size() * sizeof(float)), 0)
          << threads;
    }
    EXPECT_EQ(context.bytes_in_use(), 0U);
  }
}

TEST(Threads, GiveTheSameBits) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{200, 300, 100},
                                {5, 3000, 130},
                                {3000, 5, 130},
                                {1, 4003, 600},
                                {64, 64, 5000},
                                {33, 1000, 70}}) {
    for (const bool trans_b : {false, true}) expect_same_bits(m, n, k, trans_b);
  }
  // All of B is read as what comes from memory, a thread's share of it is not.
  for (const bool trans_b : {false, true}) expect_same_bits(1, 1026, 4200, trans_b);
}

// The same with packed weights. The products of every k show in the bits of the result.
TEST(Threads, GiveTheSameBitsOfPackedWeights) {
  Product one(1, 1026, 4200), many(1, 1026, 4200);
  const auto run = [](Context& context, Product& product) {
    GemmArgs args = product.args();
    PackedWeights weights;
    ASSERT_TRUE(pack(context, {.B = args.B}, &weights).ok());
    args.B = {};
    args.packed_B = &weights;
    ASSERT_TRUE(gemm(context, args).ok());
  };
  Context alone, context;
  ASSERT_TRUE(context.set_threads(2).ok());
  run(alone, one);
  run(context, many);
  EXPECT_EQ(one.y, many.y);
}

TEST(Threads, AreUsedForLargeProductsOnly) {
  Context context;
  ASSERT_TRUE(context.set_threads(3).ok());
  Explanation plan;
  ASSERT_TRUE(explain(context, Product(40, 40, 40).args(), &plan).ok());
  EXPECT_EQ(plan.threads, 1);
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{512, 512, 512},
                                {1, 4096, 4096},
                                {4096, 8, 512},
                                {8, 4096, 512},
                                {64, 64, 16384}}) {
    ASSERT_TRUE(explain(context, Product(m, n, k).args(), &plan).ok());
    EXPECT_EQ(plan.threads, 3) << m << " x " << n << " x " << k;
  }
  ASSERT_TRUE(explain(Context(), Product(512, 512, 512).args(), &plan).ok());
  EXPECT_EQ(plan.threads, 1);
}

// Each thread has scratch of its own, in one allocation; where that is refused, one thread does it.
TEST(Threads, TakeLessMemoryWhereThereIsLess) {
  Explanation one, many;
  Product product(3000, 32, 400), wanted(3000, 32, 400);
  ASSERT_TRUE(explain(Context(), product.args(), &one).ok());
  Context context;
  ASSERT_TRUE(context.set_threads(4).ok());
  ASSERT_TRUE(explain(context, product.args(), &many).ok());
  ASSERT_GT(many.scratch_bytes,
            2 * one.scratch_bytes);  // a block of B each, and where A is packed fewer rows of it
  Context alone;
  ASSERT_TRUE(gemm(alone, wanted.args()).ok());
  for (const int64_t limit : {one.scratch_bytes + 64, many.scratch_bytes + 64}) {
    Context small(static_cast<size_t>(limit));
    ASSERT_TRUE(small.set_threads(4).ok());
    std::fill(product.y.begin(), product.y.end(), -1.F);
    const Status status = gemm(small, product.args());
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(product.y, wanted.y);
    Explanation plan;
    ASSERT_TRUE(explain(small, product.args(), &plan).ok());
    EXPECT_EQ(plan.threads, limit < many.scratch_bytes ? 1 : 4);
    EXPECT_EQ(plan.scratch_bytes, limit - 64);
    // If the caller reserves 1000 bytes, there is too little for as many.
    const Status reserved = explain(small, product.args(), &plan, 1000);
    EXPECT_EQ(reserved.code, limit < many.scratch_bytes ? Code::kOutOfMemory : Code::kOk);
    EXPECT_TRUE(!reserved.ok() || plan.threads == 1);
  }
  Context none(static_cast<size_t>(one.scratch_bytes));
  ASSERT_TRUE(none.set_threads(4).ok());
  EXPECT_EQ(gemm(none, product.args()).code, Code::kOutOfMemory);
  Explanation plan;
  EXPECT_STREQ(explain(none, product.args(), &plan).message, gemm(none, product.args()).message);
}

// Parts of K need scratch on one thread, too: if there is none, that is an error on any number.
TEST(Threads, PartsOfKDoNotFit) {
  Product product(96, 128, 16384);
  for (const int threads : {1, 4}) {
    Context context(64 << 10);
    ASSERT_TRUE(context.set_threads(threads).ok());
    EXPECT_EQ(gemm(context, product.args()).code, Code::kOutOfMemory);
    EXPECT_EQ(context.bytes_in_use(), 0U);
  }
}

#if defined(__linux__)  // where clock() is the processor time of all threads
TEST(Threads, SleepBetweenCallsIfTheyOutnumberTheProcessors) {
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  if (processors == 0 || processors >= kMaxThreads) GTEST_SKIP() << processors << " processors";
  Context context;
  ASSERT_TRUE(context.set_threads(processors + 1).ok());
  Product product(256, 256, 256);
  ASSERT_TRUE(gemm(context, product.args()).ok());
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto ms = static_cast<double>(std::clock() - before) * 1000 / CLOCKS_PER_SEC;
  EXPECT_LT(ms, 5);  // threads that wait in a loop take more than 10
}
#endif

TEST(Threads, NumbersThatAreNotAllowed) {
  Context context;
  for (const int threads : {0, -1, kMaxThreads + 1}) {
    const Status status = context.set_threads(threads);
    EXPECT_EQ(status.code, Code::kArgument);
    EXPECT_STREQ(status.argument, "threads");
    EXPECT_NE(
        std::string(status.message)
            .find("threads is " + std::to_string(threads) + "; it must be a number from 1 to 64"),
        std::string::npos);
    EXPECT_EQ(context.threads(), 1);
  }
}

TEST(Threads, ComeAndGo) {
  Product wanted(100, 128, 100);
  Context alone;
  ASSERT_TRUE(gemm(alone, wanted.args()).ok());
  Context context;
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(context.set_threads(1 + round % 4).ok());
    Product product(100, 128, 100);
    ASSERT_TRUE(gemm(context, product.args()).ok());
    ASSERT_EQ(product.y, wanted.y);
  }
}

#if !defined(__EMSCRIPTEN__)
// Contexts are of a thread each, and know nothing of each other.
TEST(Threads, OfSeveralContextsAtOnce) {
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user) {
    users.emplace_back([] {
      Product wanted(90, 200, 80);
      Context alone, context;
      EXPECT_TRUE(gemm(alone, wanted.args()).ok());
      EXPECT_TRUE(context.set_threads(2).ok());
      for (int round = 0; round < 20; ++round) {
        Product product(90, 200, 80);
        EXPECT_TRUE(gemm(context, product.args()).ok());
        EXPECT_EQ(product.y, wanted.y);
      }
    });
  }
  for (std::thread& user : users) user.join();
}
#endif

#else

TEST(Threads, AreRefusedByABuildWithout) {
  Context context;
  EXPECT_TRUE(context.set_threads(1).ok());
  const Status status = context.set_threads(2);
  EXPECT_EQ(status.code, Code::kArgument);
  EXPECT_STREQ(status.message, "set_threads: threads is 2; this build computes on 1");
  EXPECT_EQ(context.threads(), 1);
}

#endif

}  // namespace
}  // namespace wgemm::testing
