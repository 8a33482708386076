// Calls that are prepared: run again, they compute with what their tensors hold then. And which of
// them are known again.
#include "api/call_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace wgemm::testing {
namespace {

// Stacks of matrices of small whole numbers, whose sums are exact.
struct Stacks {
  int64_t batch, m, n, k;
  std::vector<float> src, weights, bias, dst;
  const int64_t src_dims[3], weights_dims[3], dst_dims[3];

  Stacks(int64_t stack, int64_t rows, int64_t cols, int64_t depth)
      : batch(stack),
        m(rows),
        n(cols),
        k(depth),
        src(static_cast<size_t>(stack * rows * depth)),
        weights(static_cast<size_t>(stack * depth * cols)),
        bias(static_cast<size_t>(cols)),
        dst(static_cast<size_t>(stack * rows * cols)),
        src_dims{stack, rows, depth},
        weights_dims{stack, depth, cols},
        dst_dims{stack, rows, cols} {}

  void fill(int from) {
    for (std::vector<float>* each : {&src, &weights, &bias}) {
      for (float& value : *each) value = static_cast<float>(from++ * 7 % 13 - 6);
    }
    std::ranges::fill(dst, -1.0F);
  }

  std::vector<float> wanted() const {
    std::vector<float> result;
    for (int64_t row = 0; row < batch * m; ++row) {
      for (int64_t j = 0; j < n; ++j) {
        float sum = bias[static_cast<size_t>(j)];
        for (int64_t l = 0; l < k; ++l) {
          sum += src[static_cast<size_t>(row * k + l)] *
                 weights[static_cast<size_t>((row / m * k + l) * n + j)];
        }
        result.push_back(sum);
      }
    }
    return result;
  }
};

template <typename Args>
void expect_again(Context& context, const Args& args, Stacks& stacks) {
  PreparedCall prepared;
  ASSERT_TRUE(prepare(context, args, &prepared).ok());
  for (int from = 0; from < 3; ++from) {
    stacks.fill(from);
    const Status status = run(context, prepared);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(stacks.dst, stacks.wanted()) << "from " << from;
  }
}

TEST(PreparedCall, ComputesWithWhatItsTensorsHold) {
  Context context;
  struct Size {
    int64_t m, n, k;
  };
  // The last but one becomes its transpose, and the last packs.
  for (const auto& [m, n, k] :
       {Size{1, 1, 1}, Size{5, 8, 3}, Size{16, 16, 16}, Size{9, 1, 7}, Size{70, 300, 130}}) {
    SCOPED_TRACE(::testing::Message() << m << "x" << n << "x" << k);
    Stacks one(1, m, n, k), some(3, m, n, k);
    const ConstTensor addend{one.bias.data(), DType::kFloat32, std::span(one.dst_dims + 2, 1)};
    GemmArgs gemm;
    gemm.A = {one.src.data(), DType::kFloat32, std::span(one.src_dims + 1, 2)};
    gemm.B = {one.weights.data(), DType::kFloat32, std::span(one.weights_dims + 1, 2)};
    gemm.C = &addend;
    gemm.Y = {one.dst.data(), DType::kFloat32, std::span(one.dst_dims + 1, 2)};
    expect_again(context, gemm, one);

    const ConstTensor bias{some.bias.data(), DType::kFloat32, std::span(some.dst_dims + 2, 1)};
    MatMulArgs matmul;
    matmul.src = {some.src.data(), DType::kFloat32, some.src_dims};
    matmul.weights = {some.weights.data(), DType::kFloat32, some.weights_dims};
    matmul.bias = &bias;
    matmul.dst = {some.dst.data(), DType::kFloat32, some.dst_dims};
    expect_again(context, matmul, some);
  }
}

TEST(PreparedCall, TellsWhatIsWrongAsTheCallDoes) {
  Context context;
  Stacks stacks(1, 4, 4, 4);
  GemmArgs args;
  args.A = {stacks.src.data(), DType::kFloat32, std::span(stacks.src_dims + 1, 2)};
  args.B = {stacks.weights.data(), DType::kFloat32, std::span(stacks.weights_dims + 1, 2)};
  args.Y = {stacks.src.data(), DType::kFloat32, std::span(stacks.dst_dims + 1, 2)};
  PreparedCall prepared;
  const Status status = prepare(context, args, &prepared);
  EXPECT_EQ(status.code, Code::kArgument);
  EXPECT_STREQ(status.message, gemm(context, args).message);
}

TEST(PreparedCall, IsRefusedMemoryWhenItRuns) {
  Context context(256);
  Stacks stacks(1, 70, 300, 130);
  stacks.fill(0);
  GemmArgs args;
  args.A = {stacks.src.data(), DType::kFloat32, std::span(stacks.src_dims + 1, 2)};
  args.B = {stacks.weights.data(), DType::kFloat32, std::span(stacks.weights_dims + 1, 2)};
  args.Y = {stacks.dst.data(), DType::kFloat32, std::span(stacks.dst_dims + 1, 2)};
  PreparedCall prepared;
  ASSERT_TRUE(prepare(context, args, &prepared).ok());
  const std::vector<float> before = stacks.dst;
  EXPECT_EQ(run(context, prepared).code, Code::kOutOfMemory);
  EXPECT_EQ(stacks.dst, before);
}

using Words = std::vector<double>;

// Keeps a call, and gives where it is.
const PreparedCall* keep(KnownCalls& calls, const Words& words, int operation = 0,
                         const void* packed = nullptr) {
  const PreparedCall* call = &calls.next().prepared;
  calls.keep(operation, words, packed);
  return call;
}

TEST(KnownCalls, AreFoundByEveryBit) {
  KnownCalls calls;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Words words = {1, 0, nan, 4, 5};
  EXPECT_EQ(calls.find(0, words), nullptr);
  EXPECT_EQ(calls.find(0, Words{}), nullptr);
  const PreparedCall* call = keep(calls, words);
  EXPECT_EQ(calls.find(0, words), call);
  EXPECT_EQ(calls.find(1, words), nullptr);
  EXPECT_EQ(calls.find(0, Words{1, 0, nan, 4}), nullptr);
  EXPECT_EQ(calls.find(0, Words{1, 0, nan, 4, 5, 0}), nullptr);
  EXPECT_EQ(calls.find(0, Words{1, -0.0, nan, 4, 5}), nullptr);
  EXPECT_EQ(calls.find(0, Words{4, 0, nan, 1, 5}), nullptr);  // of the same sum
  const PreparedCall* other = keep(calls, words, 1);
  EXPECT_NE(other, call);
  EXPECT_EQ(calls.find(1, words), other);
}

TEST(KnownCalls, AreTheLastEight) {
  KnownCalls calls;
  for (int i = 0; i < 20; ++i) {
    keep(calls, Words{static_cast<double>(i), 2});
    for (int j = 0; j <= i; ++j)
      EXPECT_EQ(calls.find(0, Words{static_cast<double>(j), 2}) != nullptr, i - j < 8)
          << j << " of " << i;
  }
}

TEST(KnownCalls, ThatAreNotKeptLeaveTheOthers) {
  KnownCalls calls;
  for (int i = 0; i < 7; ++i) keep(calls, Words{static_cast<double>(i)});
  for (int i = 0; i < 20; ++i) calls.next();               // as one that is refused
  for (int i = 0; i < 20; ++i) keep(calls, Words(81, i));  // of too many words
  EXPECT_EQ(calls.find(0, Words(81, 19)), nullptr);
  for (int i = 0; i < 7; ++i) EXPECT_NE(calls.find(0, Words{static_cast<double>(i)}), nullptr);
}

TEST(KnownCalls, AreForgottenWithTheirWeights) {
  KnownCalls calls;
  const int weights[2] = {};
  keep(calls, Words{1}, 0, &weights[0]);
  keep(calls, Words{2}, 0, &weights[1]);
  keep(calls, Words{3}, 0, &weights[0]);
  calls.forget(&weights[0]);
  EXPECT_EQ(calls.find(0, Words{1}), nullptr);
  EXPECT_NE(calls.find(0, Words{2}), nullptr);
  EXPECT_EQ(calls.find(0, Words{3}), nullptr);
}

}  // namespace
}  // namespace wgemm::testing
