#include "qgemm_tester.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "api/run.h"
#include "array.h"
#include "ops/ops.h"
#include "reference.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
namespace {

using Random = std::mt19937_64;

// Fills an 8-bit operand, by the bits of its type.
void fill(Array<uint8_t>& array, DType type, Values values, Random& random) {
  const bool is_signed = type == DType::kInt8;
  const int low = is_signed ? 0x80 : 0, high = is_signed ? 0x7f : 0xff;
  const uint64_t count = values == Values::k128Values   ? 128
                         : values == Values::k129Values ? 129
                         : values == Values::k255Values ? 255
                         : values == Values::kSymmetric ? 255
                         : values == Values::k256Values ? 256
                                                        : 0;
  if (count != 0) {
    const uint64_t first = values == Values::kSymmetric ? 1 : random() % (257 - count);
    const size_t place_of_least = random() % std::max<size_t>(array.length, 1);
    for (size_t i = 0; i < array.length; ++i) {
      const bool least = i == place_of_least, largest = i == (place_of_least + 1) % array.length;
      array.data[i] = static_cast<uint8_t>(static_cast<uint64_t>(low) + first +
                                           (least     ? 0
                                            : largest ? count - 1
                                                      : random() % count));
    }
    return;
  }
  for (size_t i = 0; i < array.length; ++i) {
    const bool at_low = values == Values::kLow || (values == Values::kEnds && i % 2 == 0);
    const bool at_high = values == Values::kHigh || values == Values::kEnds;
    array.data[i] = static_cast<uint8_t>(at_low    ? low
                                         : at_high ? high
                                                   : static_cast<int>(random() & 0xff));
  }
}

// Most values are so small that the product is not lost in the rounding to float32.
void fill(Array<int32_t>& c, Values values, Random& random) {
  using Limits = std::numeric_limits<int32_t>;
  for (size_t i = 0; i < c.length; ++i) {
    const auto small = static_cast<int32_t>(random() % 200001) - 100000;
    const auto any = static_cast<int32_t>(static_cast<uint32_t>(random()));
    const int32_t near = std::abs(small % 1000);
    c.data[i] = values == Values::kLow    ? Limits::min() + near
                : values == Values::kHigh ? Limits::max() - near
                                          : (random() % 4 == 0 ? any : small);
  }
}

float random_scale(Random& random) { return std::exp2(uniform<float>(random, -12, 0)); }

template <typename T>
Array<T> vector_of(Extent extent, int64_t n) {
  switch (extent) {
    case Extent::kScalar:
      return {{}, 0, false};
    case Extent::kOne:
      return {{1}, 0, false};
    case Extent::kColumns:
      return {{n}, 0, false};
    case Extent::kStrided:
      return {{n}, 2, true};
    case Extent::kRepeated:
      return {{n}, -1, true};
  }
  return {{}, 0, false};
}

const char* name_of(Values values) {
  constexpr const char* kNames[] = {"absent",    "random",     "low",        "high",
                                    "ends",      "128 values", "129 values", "255 values",
                                    "symmetric", "256 values"};
  return kNames[static_cast<int>(values)];
}

const char* name_of(Extent extent) {
  constexpr const char* kNames[] = {"[]", "[1]", "[N]", "[N] strided", "[N] repeated"};
  return kNames[static_cast<int>(extent)];
}

}  // namespace

std::string QGemmTester::describe() const {
  const auto with = [](const char* name, const auto& value) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      return std::string(" ") + name + "=" + std::to_string(value);
    } else {
      return std::string(" ") + name + "=" + value;
    }
  };
  std::string text =
      std::string(dtype_name(a_type_)) + " x " + dtype_name(b_type_) + " to " + dtype_name(y_type_);
  text += with("M", m_) + with("N", n_) + with("K", k_) + with("transA", trans_a_) +
          with("transB", trans_b_) + with("alpha", alpha_) + with("from", activation_.min) +
          with("to", activation_.max);
  text += with("A", name_of(a_values_)) + with("B", name_of(b_values_)) +
          with("a_zero_point", name_of(a_zero_)) + with("b_zero_point", name_of(b_zero_)) +
          with("y_zero_point", name_of(y_zero_));
  text += with("one", name_of(one_)) + with("b_scale", name_of(b_scale_extent_)) +
          with("b_zero_point", name_of(b_zero_extent_));
  if (scales_.has_value())
    text += with("scales", scales_->a) + with("b", scales_->b) + with("y", scales_->y);
  if (c_values_ != Values::kAbsent) {
    text += with("C", name_of(c_values_)) + " [";
    for (const int64_t size : c_dims_) text += std::to_string(size) + " ";
    text += "]";
  }
  text += with("gap", gap_) + with("columns", columns_);
  if (options_.has_value()) {
    if (options_->kernel != nullptr) text += with("kernel", options_->kernel->name);
    text += with("mc", options_->mc) + with("nc", options_->nc) + with("kc", options_->kc);
  }
  if (out_of_core_.limit != 0)
    text += with("out_of_core", out_of_core_.limit) + with("operands", out_of_core_.operands);
  return text + with("padded", padded_) + with("seed", seed_);
}

template <typename T>
void QGemmTester::run_typed() const {
  SCOPED_TRACE(describe());
  constexpr bool kQuantizes = !std::is_same_v<T, float>;
  Random random(seed_);
  Array<uint8_t> a(trans_a_ ? std::vector{k_, m_} : std::vector{m_, k_}, gap_, columns_);
  Array<uint8_t> b(trans_b_ ? std::vector{n_, k_} : std::vector{k_, n_}, gap_, columns_);
  Array<int32_t> c(c_dims_, gap_, columns_);
  Array<T> y({m_, n_}, gap_, columns_);
  Array<uint8_t> a_zero = vector_of<uint8_t>(one_, n_),
                 b_zero = vector_of<uint8_t>(b_zero_extent_, n_),
                 y_zero = vector_of<uint8_t>(one_, n_);
  Array<float> a_scale = vector_of<float>(one_, n_),
               b_scale = vector_of<float>(b_scale_extent_, n_),
               y_scale = vector_of<float>(one_, n_);
  if (padded_) pad(random, a, b, c, y, a_zero, b_zero, y_zero, a_scale, b_scale, y_scale);
  fill(a, a_type_, a_values_, random);
  fill(b, b_type_, b_values_, random);
  fill(c, c_values_, random);
  fill(a_zero, a_type_, a_zero_, random);
  fill(b_zero, b_type_, b_zero_, random);
  fill(y_zero, y_type_, y_zero_, random);
  std::memset(y.data.get(), 0x5a, y.length * sizeof(T));
  for (auto* scale : {&a_scale, &b_scale, &y_scale}) {
    for (size_t i = 0; i < scale->length; ++i) scale->data[i] = random_scale(random);
  }
  if (scales_.has_value()) {
    std::fill_n(a_scale.data.get(), a_scale.length, scales_->a);
    std::fill_n(b_scale.data.get(), b_scale.length, scales_->b);
    std::fill_n(y_scale.data.get(), y_scale.length, scales_->y);
  }

  QGemmArgs args;
  args.A = a.tensor(a_type_);
  args.B = b.tensor(b_type_);
  args.a_scale = a_scale.tensor(DType::kFloat32);
  args.b_scale = b_scale.tensor(DType::kFloat32);
  const ConstTensor a_zero_tensor = a_zero.tensor(a_type_), b_zero_tensor = b_zero.tensor(b_type_),
                    c_tensor = c.tensor(DType::kInt32), y_zero_tensor = y_zero.tensor(y_type_),
                    y_scale_tensor = y_scale.tensor(DType::kFloat32);
  if (a_zero_ != Values::kAbsent) args.a_zero_point = &a_zero_tensor;
  if (b_zero_ != Values::kAbsent) args.b_zero_point = &b_zero_tensor;
  if (c_values_ != Values::kAbsent) args.C = &c_tensor;
  args.alpha = alpha_;
  args.transA = trans_a_;
  args.transB = trans_b_;
  if (kQuantizes) {
    if (!scales_.has_value() && m_ * n_ > 0) {
      // The largest results then exceed the range slightly.
      float largest = 0;
      for (int i = 0; i < 6; ++i) {
        const auto row = static_cast<int64_t>(random() % static_cast<uint64_t>(m_)),
                   col = static_cast<int64_t>(random() % static_cast<uint64_t>(n_));
        largest = std::max(largest, std::fabs(reference_qgemm<float>(args, row, col)));
      }
      std::fill_n(y_scale.data.get(), y_scale.length, largest == 0 ? 1 : largest / 150);
    }
    args.y_scale = &y_scale_tensor;
    args.y_zero_point = &y_zero_tensor;
  }
  args.activation = activation_;

  std::vector<T> expected;
  for (int64_t i = 0; i < m_; ++i) {
    for (int64_t j = 0; j < n_; ++j) expected.push_back(reference_qgemm<T>(args, i, j));
  }

  Context& context = test_context();
  const QGemmArgs plain = args;
  for (const bool is_packed : {false, true}) {
    const bool is_pinned = !by_.empty() || (options_.has_value() && options_->kernel != nullptr);
    if (packed_.has_value() ? is_packed != *packed_ : is_packed && is_pinned) continue;
    SCOPED_TRACE(is_packed ? "B is packed" : "B is not packed");
    args = plain;
    PackedWeights weights;
    if (is_packed) {
      const Status status = pack_and_overwrite(
          context, {.op = PackFor::kQGemm, .B = args.B, .trans = trans_b_}, b, &weights);
      ASSERT_TRUE(status.ok()) << status.message;
      args.B = {};
      args.packed_B = &weights;
      args.transB = 0;
    }
    Snapshot before;
    before.add("A", a);
    before.add("B", b);
    before.add("C", c);
    before.add("Y", y);
    before.add("a_scale", a_scale);
    before.add("b_scale", b_scale);
    before.add("y_scale", y_scale);
    before.add("a_zero_point", a_zero);
    before.add("b_zero_point", b_zero);
    before.add("y_zero_point", y_zero);
    const std::vector<T> y_before = y.values();
    const size_t in_use = context.bytes_in_use();

    int64_t dims[2] = {-1, -1};
    DType dtype = DType::kInt64;
    const Status shape = qgemm_shape(args, dims, &dtype);
    ASSERT_TRUE(shape.ok()) << shape.message;
    EXPECT_TRUE(dims[0] == m_ && dims[1] == n_ && dtype == y_type_);

    if (!by_.empty()) {
      Explanation plan;
      ASSERT_TRUE(explain(context, args, &plan).ok());
      EXPECT_EQ(plan.kernel, by_);
    }

    args.Y = y.template tensor<void>(y_type_);
    Status status;
    if (out_of_core_.limit != 0) {
      status = check_out_of_core(&qgemm, args, out_of_core_, test_threads(), &args.A, &args.B,
                                 &args.C, &args.Y);
    } else if (options_.has_value() || test_threads() > 1) {
      MatMulProblem made;
      status = quantized_problem(args, true, &made);
      if (status.ok())
        status = wgemm::run(context, "qgemm", made.problem,
                            test_options(options_.value_or(PlanOptions{})));
    } else {
      status = qgemm(context, args);
    }
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(context.bytes_in_use(), in_use);

    for (int64_t i = 0; i < m_; ++i) {
      for (int64_t j = 0; j < n_; ++j) {
        T& value = y.data[y.place(i, j)];
        const T wanted = expected[static_cast<size_t>(i * n_ + j)];
        ASSERT_EQ(std::memcmp(&value, &wanted, sizeof(T)), 0)
            << +value << " instead of " << +wanted << " at " << i << ", " << j;
        // Restore the element: then all memory must be as it was.
        value = y_before[y.place(i, j)];
      }
    }
    before.expect_unchanged();
  }
}

void QGemmTester::run() const {
  if (y_type_ == DType::kFloat32) return run_typed<float>();
  if (y_type_ == DType::kInt8) return run_typed<int8_t>();
  run_typed<uint8_t>();
}

}  // namespace wgemm::testing
