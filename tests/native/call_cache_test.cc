// The cache of recent calls finds the call of a key and no other. A cached call computes with the
// elements that its tensors hold at that time.
#include "api/call_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

namespace wgemm::testing {
namespace {

using Words = std::vector<double>;

// Keeps a call, and returns its address.
const PlannedCall* keep(CallCache& calls, const Words& words, int operation = 0,
                        const void* packed = nullptr) {
  const PlannedCall* call = &calls.next().call;
  calls.keep(operation, words, packed);
  return call;
}

TEST(CallCache, FindsByEveryBit) {
  CallCache calls;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Words words = {1, 0, nan, 4, 5};
  EXPECT_EQ(calls.find(0, words), nullptr);
  EXPECT_EQ(calls.find(0, Words{}), nullptr);
  const PlannedCall* call = keep(calls, words);
  EXPECT_EQ(calls.find(0, words), call);
  EXPECT_EQ(calls.find(1, words), nullptr);
  EXPECT_EQ(calls.find(0, Words{1, 0, nan, 4}), nullptr);
  EXPECT_EQ(calls.find(0, Words{1, 0, nan, 4, 5, 0}), nullptr);
  EXPECT_EQ(calls.find(0, Words{1, -0.0, nan, 4, 5}), nullptr);
  EXPECT_EQ(calls.find(0, Words{4, 0, nan, 1, 5}), nullptr);  // words with the same sum
  const PlannedCall* other = keep(calls, words, 1);
  EXPECT_NE(other, call);
  EXPECT_EQ(calls.find(1, words), other);
}

TEST(CallCache, KeepsTheLastEight) {
  CallCache calls;
  for (int i = 0; i < 20; ++i) {
    keep(calls, Words{static_cast<double>(i), 2});
    for (int j = 0; j <= i; ++j)
      EXPECT_EQ(calls.find(0, Words{static_cast<double>(j), 2}) != nullptr, i - j < 8)
          << j << " of " << i;
  }
}

TEST(CallCache, KeepsTheOthersWhenACallIsNotKept) {
  CallCache calls;
  for (int i = 0; i < 7; ++i) keep(calls, Words{static_cast<double>(i)});
  for (int i = 0; i < 20; ++i) calls.next();               // as after an error in the arguments
  for (int i = 0; i < 20; ++i) keep(calls, Words(81, i));  // too many words
  EXPECT_EQ(calls.find(0, Words(81, 19)), nullptr);
  for (int i = 0; i < 7; ++i) EXPECT_NE(calls.find(0, Words{static_cast<double>(i)}), nullptr);
}

TEST(CallCache, ForgetsCallsOfReleasedWeights) {
  CallCache calls;
  const int weights[2] = {};
  keep(calls, Words{1}, 0, &weights[0]);
  keep(calls, Words{2}, 0, &weights[1]);
  keep(calls, Words{3}, 0, &weights[0]);
  calls.forget(&weights[0]);
  EXPECT_EQ(calls.find(0, Words{1}), nullptr);
  EXPECT_NE(calls.find(0, Words{2}), nullptr);
  EXPECT_EQ(calls.find(0, Words{3}), nullptr);
}

// Computes 3 x 3 products with different layouts and factors in one context. Every call has another
// result, and each comes from the cache or is planned.
TEST(CallCache, IsNotSeenInResults) {
  Context context;
  CallCache calls;
  float a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, b[] = {1, 0, 2, 0, 1, 0, 3, 0, 1, 5, 6, 7};
  const float c[] = {100, 200, 300};
  const int64_t square[] = {3, 3}, row[] = {3}, steps[] = {4, 1}, turned[] = {1, 3};
  const ConstTensor bias = {.data = c, .dtype = DType::kFloat32, .dims = row};
  const std::span<const int64_t> layouts[] = {{}, steps, turned};
  const auto at = [](std::span<const int64_t> strides, int64_t i, int64_t j) {
    return static_cast<size_t>(strides.empty() ? 3 * i + j : strides[0] * i + strides[1] * j);
  };
  float y[12];
  int found = 0;
  const auto compute = [&](size_t a_layout, size_t b_layout, size_t y_layout, double alpha,
                           bool has_c) {
    const Words words = {static_cast<double>(a_layout), static_cast<double>(b_layout),
                         static_cast<double>(y_layout), alpha, static_cast<double>(has_c)};
    const PlannedCall* call = calls.find(0, words);
    found += call != nullptr;
    if (call == nullptr) {
      GemmArgs args;
      args.A = {a, DType::kFloat32, square, layouts[a_layout]};
      args.B = {b, DType::kFloat32, square, layouts[b_layout]};
      if (has_c) args.C = &bias;
      args.Y = {y, DType::kFloat32, square, layouts[y_layout]};
      args.alpha = alpha;
      PlannedCall& next = calls.next().call;
      EXPECT_TRUE(plan_call(context, args, &next).ok());
      calls.keep(0, words, nullptr);
      call = &next;
    }
    std::ranges::fill(y, -7.F);
    EXPECT_TRUE(run(context, *call).ok());
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < 3; ++k)
          sum += a[at(layouts[a_layout], i, k)] * b[at(layouts[b_layout], k, j)];
        EXPECT_EQ(y[at(layouts[y_layout], i, j)],
                  static_cast<float>(alpha) * sum + (has_c ? c[j] : 0));
      }
    }
  };
  for (size_t a_layout = 0; a_layout < std::size(layouts); ++a_layout) {
    for (size_t b_layout = 0; b_layout < std::size(layouts); ++b_layout) {
      for (int round = 0; round < 3; ++round) {
        ++a[round];
        --b[round + 2];
        for (size_t y_layout = 0; y_layout < 2; ++y_layout) {
          for (const double alpha : {1, 2}) {
            for (const bool has_c : {false, true})
              compute(a_layout, b_layout, y_layout, alpha, has_c);
          }
        }
      }
    }
  }
  EXPECT_EQ(found, 9 * 2 * 8);
}

}  // namespace
}  // namespace wgemm::testing
