// The cache of recent calls finds the call of a key and no other. A cached call computes with the
// elements that its tensors hold at that time.
#include "api/call_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine.h"
#include "integer_matmul_tester.h"

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
    PlannedCall* call = calls.find(0, words);
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

// A call of qgemm whose scales and zero points change between the calls, computed as the bindings
// compute it. Each call is compared with one that nothing was cached for.
class CachedQGemm {
 public:
  CachedQGemm(DType a_type, DType b_type, DType y_type, int64_t m, bool packed) : m_(m) {
    for (size_t i = 0; i < std::size(a_); ++i) a_[i] = static_cast<uint8_t>(37 * i + 11);
    for (size_t i = 0; i < std::size(b_); ++i) b_[i] = static_cast<uint8_t>(101 * i + 5);
    args_.A = {a_, a_type, a_dims_};
    args_.B = {b_, b_type, b_dims_};
    if (packed) {
      EXPECT_TRUE(pack(context_, {.op = PackFor::kQGemm, .B = args_.B}, &weights_).ok());
      args_.packed_B = &weights_;
    }
    args_.a_scale = {&a_scale, DType::kFloat32};
    a_zero_ = {&a_zero_point, a_type};
    args_.a_zero_point = &a_zero_;
    args_.b_scale = {b_scale, DType::kFloat32, columns_};
    b_zero_ = {b_zero_point, b_type, columns_};
    args_.b_zero_point = &b_zero_;
    y_scale_ = {&y_scale, DType::kFloat32};
    y_zero_ = {&y_zero_point, y_type};
    if (y_type != DType::kFloat32) args_.y_scale = &y_scale_, args_.y_zero_point = &y_zero_;
    args_.activation = {-900, 1100};
    args_.Y = {y_, y_type, y_dims_};
  }

  // Returns whether the call was cached.
  bool compute() {
    uint8_t expected[sizeof(y_)];
    std::ranges::fill(y_, uint8_t{0x5a});
    const Status direct = qgemm(context_, args_);
    std::ranges::copy(y_, expected);
    std::ranges::fill(y_, uint8_t{0x5a});
    const Words words = {1};
    PlannedCall* call = calls_.find(1, words);
    const bool found = call != nullptr;
    Status cached;
    if (found) {
      cached = read_again(context_, call);
    } else {
      call = &calls_.next().call;
      cached = plan_call(context_, args_, call);
      if (cached.ok()) calls_.keep(1, words, nullptr);
    }
    if (cached.ok()) cached = run(context_, *call);
    EXPECT_EQ(cached.code, direct.code);
    EXPECT_STREQ(cached.message, direct.message);
    EXPECT_STREQ(cached.argument, direct.argument);
    EXPECT_TRUE(std::ranges::equal(y_, expected));
    failed = !direct.ok();
    EXPECT_EQ(std::ranges::count(y_, uint8_t{0x5a}) == int64_t{sizeof(y_)}, failed);
    return found;
  }

  static constexpr int64_t kColumns = 37;  // vectors of 4, 8 and 16, and a rest
  float a_scale = 0.03F, y_scale = 2.5F, b_scale[kColumns];
  uint8_t a_zero_point = 0, y_zero_point = 3, b_zero_point[kColumns] = {};
  bool failed = false;

 private:
  static constexpr int64_t kDepth = 21, kMostRows = 30;
  const int64_t m_;
  const int64_t a_dims_[2] = {m_, kDepth}, b_dims_[2] = {kDepth, kColumns},
                y_dims_[2] = {m_, kColumns}, columns_[1] = {kColumns};
  uint8_t a_[kMostRows * kDepth], b_[kDepth * kColumns];
  alignas(8) uint8_t y_[kMostRows * kColumns * sizeof(float)];
  Context context_;
  CallCache calls_;
  PackedWeights weights_;
  ConstTensor a_zero_, b_zero_, y_scale_, y_zero_;
  QGemmArgs args_;
};

TEST(CallCache, ReadsScalesAndZeroPointsAgain) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  constexpr DType kBytes[] = {DType::kInt8, DType::kUInt8},
                  kOutputs[] = {DType::kFloat32, DType::kInt8, DType::kUInt8};
  size_t number = 0;  // The types of Y take turns.
  for (const Engine& engine : engines()) {
    const Simulated simulated(engine);
    for (const DType a : kBytes) {
      for (const DType b : kBytes) {
        ++number;
        for (const int64_t m : {1, 3, 30}) {
          for (const bool packed : {false, true}) {
            const DType y = kOutputs[number++ % std::size(kOutputs)];
            SCOPED_TRACE(std::string(engine.name) + " m=" + std::to_string(m) +
                         (packed ? " packed" : ""));
            CachedQGemm call(a, b, y, m, packed);
            std::ranges::fill(call.b_scale, 0.02F);
            EXPECT_FALSE(call.compute());
            EXPECT_TRUE(call.compute());
            // To other values and back, one after the other.
            const auto with = [&](auto* value, auto other) {
              const auto before = std::exchange(*value, other);
              EXPECT_TRUE(call.compute());
              const bool failed = call.failed;
              *value = before;
              EXPECT_TRUE(call.compute());
              EXPECT_FALSE(call.failed);
              return failed;
            };
            for (const int col : {0, 15, 31, 36}) {
              EXPECT_FALSE(with(&call.b_scale[col], 0.5F));
              for (const float bad : {0.F, -1.F, kNaN, kInfinity, -kInfinity})
                EXPECT_TRUE(with(&call.b_scale[col], bad));
              for (const int zero_point : {1, 127, 128, 255})
                EXPECT_FALSE(with(&call.b_zero_point[col], static_cast<uint8_t>(zero_point)));
            }
            for (const float bad : {0.F, kNaN, kInfinity}) EXPECT_TRUE(with(&call.a_scale, bad));
            EXPECT_FALSE(with(&call.a_scale, 1e-4F));
            with(&call.a_scale, 3e38F);  // times a_scale it may be finite
            for (const int zero_point : {1, 128, 255})
              EXPECT_FALSE(with(&call.a_zero_point, static_cast<uint8_t>(zero_point)));
            if (y != DType::kFloat32) {
              EXPECT_FALSE(with(&call.y_scale, 0.1F));
              EXPECT_TRUE(with(&call.y_scale, 0.F));
              EXPECT_FALSE(with(&call.y_zero_point, static_cast<uint8_t>(100)));
            }
            // All zero points of B are 0 as int8, or of uint8.
            std::ranges::fill(call.b_zero_point, uint8_t{128});
            EXPECT_TRUE(call.compute());
            std::ranges::fill(call.b_zero_point, uint8_t{0});
            EXPECT_TRUE(call.compute());
          }
        }
      }
    }
  }
}

// A call of integer_matmul() with batch axes, whose A, scales and zero points change between the
// calls. Each call is compared with one that nothing was cached for.
class CachedIntegerMatMul {
 public:
  CachedIntegerMatMul(IntegerOp op, bool packed) : has_float_a_(op == kDynamicQuantizeMatMul) {
    args_.op = op;
    for (size_t i = 0; i < std::size(b_); ++i) b_[i] = static_cast<uint8_t>(101 * i + 5);
    for (size_t i = 0; i < std::size(a_); ++i) {
      a_[i] = static_cast<uint8_t>(37 * i + 11);
      float_a[i] = 0.5F * static_cast<float>(a_[i]) - 20;
    }
    args_.A = {has_float_a_ ? static_cast<const void*>(float_a) : a_,
               has_float_a_ ? DType::kFloat32 : DType::kUInt8, a_dims_};
    args_.B = {b_, DType::kInt8, b_dims_};
    if (packed) {
      EXPECT_TRUE(pack(context_, {.op = PackFor::kQGemm, .B = args_.B}, &weights_).ok());
      args_.packed_B = &weights_;
    }
    const ConstTensor** const slots[] = {&args_.a_scale, &args_.a_zero_point,
                                         &args_.b_scale, &args_.b_zero_point,
                                         &args_.y_scale, &args_.y_zero_point};
    for (int i = 0; i < kQuantizationParams; ++i) {
      const auto which = static_cast<QuantizationParam>(i);
      const ParamExtent extent = extent_of(op, which);
      if (extent == ParamExtent::kNone) continue;
      const bool is_scale = which == kAScale || which == kBScale || which == kYScale;
      tensors_[i] = {is_scale ? static_cast<const void*>(scales[i]) : zero_points[i],
                     is_scale               ? DType::kFloat32
                     : which == kBZeroPoint ? DType::kInt8
                                            : DType::kUInt8,
                     extent == ParamExtent::kOne       ? std::span<const int64_t>()
                     : extent == ParamExtent::kColumns ? std::span<const int64_t>(columns_)
                                                       : std::span<const int64_t>(rows_)};
      *slots[i] = &tensors_[i];
      std::ranges::fill(scales[i], which == kYScale ? 16.0F : 0.25F);
      std::ranges::fill(zero_points[i], uint8_t{7});
    }
    args_.Y = {y_,
               op == kMatMulInteger   ? DType::kInt32
               : op == kQLinearMatMul ? DType::kUInt8
                                      : DType::kFloat32,
               y_dims_};
  }

  // Whether the operator has the parameter, and the number of its values.
  bool has(QuantizationParam which) const { return tensors_[which].data != nullptr; }
  size_t count(QuantizationParam which) const {
    size_t values = 1;
    for (const int64_t size : tensors_[which].dims) values *= static_cast<size_t>(size);
    return values;
  }

  // Returns whether the call succeeded.
  bool compute() {
    uint8_t expected[sizeof(y_)];
    std::ranges::fill(y_, uint8_t{0x5a});
    const Status direct = integer_matmul(context_, args_);
    std::ranges::copy(y_, expected);
    std::ranges::fill(y_, uint8_t{0x5a});
    Status cached;
    if (is_planned_) {
      cached = read_again(context_, &planned_);
    } else {
      cached = plan_call(context_, args_, &planned_);
      is_planned_ = true;
    }
    if (cached.ok()) cached = run(context_, planned_);
    EXPECT_STREQ(cached.message, direct.message);
    EXPECT_STREQ(cached.argument, direct.argument);
    EXPECT_TRUE(std::ranges::equal(y_, expected));
    EXPECT_EQ(std::ranges::count(y_, uint8_t{0x5a}) == int64_t{sizeof(y_)}, !direct.ok());
    return direct.ok();
  }

  float scales[kQuantizationParams][2 * 37], float_a[2 * 5 * 21];
  uint8_t zero_points[kQuantizationParams][2 * 37];

 private:
  using enum IntegerOp;
  const bool has_float_a_;
  const int64_t a_dims_[3] = {2, 5, 21}, b_dims_[3] = {2, 21, 37}, y_dims_[3] = {2, 5, 37},
                rows_[3] = {2, 5, 1}, columns_[3] = {2, 1, 37};
  uint8_t a_[2 * 5 * 21], b_[2 * 21 * 37];
  alignas(8) uint8_t y_[2 * 5 * 37 * sizeof(float)];
  Context context_;
  PackedWeights weights_;
  ConstTensor tensors_[kQuantizationParams];
  IntegerMatMulArgs args_;
  bool is_planned_ = false;
  PlannedCall planned_;
};

TEST(CallCache, ReadsVectorsOfIntegerMatMulAgain) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  for (const Engine& engine : engines()) {
    const Simulated simulated(engine);
    for (const IntegerOp op : kIntegerOps) {
      for (const bool packed : {false, true}) {
        SCOPED_TRACE(std::string(engine.name) + " " + name_of(op) + (packed ? " packed" : ""));
        CachedIntegerMatMul call(op, packed);
        EXPECT_TRUE(call.compute());
        // To another value and back. Returns whether the call succeeded in between.
        const auto with = [&](auto* value, auto other) {
          const auto before = std::exchange(*value, other);
          const bool succeeded = call.compute();
          *value = before;
          EXPECT_TRUE(call.compute());
          return succeeded;
        };
        for (const auto which : {kAScale, kBScale, kYScale}) {
          if (!call.has(which)) continue;
          for (const size_t at : {size_t{0}, call.count(which) / 2, call.count(which) - 1}) {
            for (const float good : {0.5F, -3.0F}) EXPECT_TRUE(with(&call.scales[which][at], good));
            EXPECT_EQ(with(&call.scales[which][at], 0.0F), which != kYScale);
            for (const float bad : {kNaN, kInfinity, -kInfinity})
              EXPECT_FALSE(with(&call.scales[which][at], bad));
          }
        }
        for (const auto which : {kAZeroPoint, kBZeroPoint, kYZeroPoint}) {
          if (!call.has(which)) continue;
          for (const size_t at : {size_t{0}, call.count(which) / 2, call.count(which) - 1}) {
            for (const int value : {0, 1, 127, 128, 255})
              EXPECT_TRUE(with(&call.zero_points[which][at], static_cast<uint8_t>(value)));
          }
          // All zero points are 0 as uint8, or as int8.
          for (const uint8_t value : {uint8_t{0}, uint8_t{128}}) {
            std::ranges::fill(call.zero_points[which], value);
            EXPECT_TRUE(call.compute());
          }
        }
        if (op != IntegerOp::kDynamicQuantizeMatMul) continue;
        for (const float value : {1000.0F, -5e-3F}) EXPECT_TRUE(with(&call.float_a[7], value));
        for (const float bad : {kNaN, kInfinity, 3e38F}) {
          const float other = std::exchange(call.float_a[0], -2e38F);
          EXPECT_FALSE(with(&call.scales[kBScale][0], bad) && bad != 3e38F);
          call.float_a[0] = other;
          EXPECT_EQ(with(&call.float_a[209], bad), bad == 3e38F);
        }
      }
    }
  }
}

}  // namespace
}  // namespace wgemm::testing
