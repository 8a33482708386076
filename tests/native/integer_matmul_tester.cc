#include "integer_matmul_tester.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <sstream>
#include <type_traits>

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
void fill(Array<uint8_t>& array, DType type, Bytes values, Random& random) {
  const int low = type == DType::kInt8 ? 0x80 : 0, high = type == DType::kInt8 ? 0x7f : 0xff;
  const int first = low + static_cast<int>(random() % 129);
  for (size_t i = 0; i < array.length; ++i) {
    const auto any = static_cast<int>(random() & 0xff);
    array.data[i] = static_cast<uint8_t>(values == Bytes::kLow         ? low
                                         : values == Bytes::kHigh      ? high
                                         : values == Bytes::k128Values ? first + any % 128
                                                                       : any);
  }
}

void fill(Array<float>& array, Floats values, Random& random) {
  const float size = values == Floats::kTiny ? 0x1p-149F : values == Floats::kHuge ? 1.6e38F : 3.7F;
  for (size_t i = 0; i < array.length; ++i) {
    float value = uniform<float>(random, -1, 1) * size;
    if (values == Floats::kTiny) value = random() % 2 == 0 ? 10 * size : -9 * size;
    if (values == Floats::kPositive) value = 0.5F + std::fabs(value);
    if (values == Floats::kNegative) value = -0.5F - std::fabs(value);
    if (values == Floats::kConstant) value = -2.75F;
    if (values == Floats::kZero) value = random() % 2 == 0 ? 0.0F : -0.0F;
    array.data[i] = value;
  }
}

// An array of scales in float32 and in float16, with the same values.
struct Scales {
  Array<float> wide;
  Array<Float16> half;

  Scales(const Sizes& dims, const Layout& layout)
      : wide(make_array<float>(dims, layout)), half(make_array<Float16>(dims, layout)) {}
  void set(size_t i, float value) {
    half.data[i] = rounded<Float16>(value);
    wide.data[i] = value;
  }
  ConstTensor tensor(bool is_half, const Layout& layout) const {
    return is_half ? make_tensor<const void>(half, DType::kFloat16, layout)
                   : make_tensor<const void>(wide, DType::kFloat32, layout);
  }
};

// On this many threads, one context for all tests.
Context& shared_context(int threads, Determinism determinism) {
  struct Shared {
    Context context;
    Shared(int count, Determinism d) : context(0, d) {
      if (!context.set_threads(count).ok()) std::abort();
    }
  };
  if (determinism == Determinism::kFast && threads == test_threads()) return test_context();
  static Shared strict(test_threads(), Determinism::kStrict);
  if (threads == test_threads()) return strict.context;
  static Shared fast_on_more(threads, Determinism::kFast);
  static Shared strict_on_more(threads, Determinism::kStrict);
  return determinism == Determinism::kFast ? fast_on_more.context : strict_on_more.context;
}

const char* name_of_param(int which) {
  constexpr const char* kNames[] = {"a_scale",      "a_zero_point", "b_scale",
                                    "b_zero_point", "y_scale",      "y_zero_point"};
  return kNames[which];
}

bool is_scale(int which) { return which == kAScale || which == kBScale || which == kYScale; }

Sizes batch_of(const Sizes& dims) {
  return {dims.begin(), dims.end() - std::min<std::ptrdiff_t>(std::ssize(dims), 2)};
}

template <typename T>
bool is_nan(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(convert<float>(value));
  }
}

}  // namespace

const char* name_of(IntegerOp op) {
  constexpr const char* kNames[] = {"matmulInteger", "qlinearMatmul", "dynamicQuantizeMatmul",
                                    "matmulIntegerToFloat"};
  return kNames[static_cast<int>(op)];
}

ParamExtent extent_of(IntegerOp op, QuantizationParam which) {
  using enum ParamExtent;
  switch (op) {
    case IntegerOp::kMatMulInteger:
      return which == kAZeroPoint ? kRows : which == kBZeroPoint ? kColumns : kNone;
    case IntegerOp::kQLinearMatMul:
      return which == kBScale || which == kBZeroPoint ? kColumns : kRows;
    case IntegerOp::kDynamicQuantizeMatMul:
      return which == kBScale || which == kBZeroPoint ? kColumns : kNone;
    case IntegerOp::kMatMulIntegerToFloat:
      break;
  }
  return which == kBScale || which == kBZeroPoint   ? kColumns
         : which == kAScale || which == kAZeroPoint ? kOne
                                                    : kNone;
}

Sizes IntegerMatMulTester::y_dims() const {
  const Sizes a = batch_of(a_), b = batch_of(b_);
  Sizes dims(std::max(a.size(), b.size()));
  for (size_t i = 1; i <= dims.size(); ++i) {
    const int64_t a_size = i <= a.size() ? a[a.size() - i] : 1,
                  b_size = i <= b.size() ? b[b.size() - i] : 1;
    EXPECT_TRUE(a_size == b_size || a_size == 1 || b_size == 1);
    dims[dims.size() - i] = a_size == 1 ? b_size : a_size;
  }
  if (a_.size() > 1) dims.push_back(a_[a_.size() - (trans_a_ ? 1 : 2)]);
  if (b_.size() > 1) dims.push_back(b_[b_.size() - (trans_b_ ? 2 : 1)]);
  return dims;
}

Sizes IntegerMatMulTester::param_dims(QuantizationParam which) const {
  Sizes dims = batch_of(which == kBScale || which == kBZeroPoint ? b_ : a_);
  if (which == kBScale || which == kBZeroPoint) {
    dims.insert(dims.end(), {1, b_.size() == 1 ? 1 : b_[b_.size() - (trans_b_ ? 2 : 1)]});
    return dims;
  }
  const bool has_rows = a_.size() > 1;
  if (which == kYScale || which == kYZeroPoint) {
    dims = y_dims();
    dims.resize(has_rows ? std::max(a_.size(), b_.size()) - 2 : 0);
  }
  dims.insert(dims.end(), {!has_rows ? 1 : a_[a_.size() - (trans_a_ ? 1 : 2)], 1});
  return dims;
}

DType IntegerMatMulTester::y_type() const {
  if (op_ == IntegerOp::kMatMulInteger) return DType::kInt32;
  if (has_float_result()) return half_ ? DType::kFloat16 : DType::kFloat32;
  return params_[kYZeroPoint].has_value() ? y_zero_type_ : a_type_;
}

std::string IntegerMatMulTester::describe() const {
  std::ostringstream text;
  text << name_of(op_) << " " << (quantizes_a() ? "float32" : dtype_name(a_type_)) << " x "
       << dtype_name(b_type_) << " to " << dtype_name(y_type());
  text << " A=" << text_of(a_, a_layout_) << (trans_a_ ? " transposed" : "")
       << " B=" << text_of(b_, b_layout_) << (trans_b_ ? " transposed" : "")
       << " Y=" << text_of(y_dims(), y_layout_);
  for (int which = 0; which < kQuantizationParams; ++which) {
    const auto& param = params_[which];
    if (!param.has_value()) continue;
    text << " " << name_of_param(which) << "=" << text_of(param->dims, param->layout);
  }
  if (bias_.has_value()) text << " bias=" << text_of(bias_->dims, bias_->layout);
  text << (half_ ? " half" : "") << " values " << static_cast<int>(a_values_) << " "
       << static_cast<int>(b_values_) << " " << static_cast<int>(float_values_) << " zero points "
       << static_cast<int>(a_zero_values_) << " " << static_cast<int>(b_zero_values_);
  text << (any_scales_ ? " any scales" : "") << (specials_ ? " specials" : "") << " from "
       << activation_.min << " to " << activation_.max
       << (determinism_ == Determinism::kStrict ? " strict" : "") << (prepared_ ? " prepared" : "")
       << (threads_ ? " threads" : "");
  if (options_.has_value()) text << text_of(*options_);
  if (out_of_core_.limit != 0)
    text << " out_of_core=" << out_of_core_.limit << " operands=" << out_of_core_.operands;
  text << (padded_ ? " padded" : "") << " seed=" << seed_;
  return text.str();
}

template <typename T, typename A>
void IntegerMatMulTester::run_typed() const {
  SCOPED_TRACE(describe());
  constexpr bool kIsFloatA = std::is_same_v<A, float>;
  const DType type = y_type();
  const Sizes dims = y_dims();
  Random random(seed_);
  Array<A> a = make_array<A>(a_, a_layout_);
  Array<uint8_t> b = make_array<uint8_t>(b_, b_layout_);
  Array<T> y = make_array<T>(dims, y_layout_);
  std::vector<Scales> scales;
  std::vector<Array<uint8_t>> zero_points;
  for (int which = 0; which < kQuantizationParams; ++which) {
    const Param param = params_[which].value_or(Param{});
    scales.emplace_back(param.dims, param.layout);
    zero_points.push_back(make_array<uint8_t>(param.dims, param.layout));
  }
  const Param of_bias = bias_.value_or(Param{});
  Scales bias(of_bias.dims, of_bias.layout);
  if (padded_) {
    pad(random, a, b, y);
    for (Array<uint8_t>& array : zero_points) pad(random, array);
    for (Scales& scale : scales) {
      const Random same = random;
      pad(random, scale.wide);
      Random again = same;
      pad(again, scale.half);
    }
  }
  if constexpr (kIsFloatA) {
    fill(a, float_values_, random);
  } else {
    fill(a, a_type_, a_values_, random);
  }
  fill(b, b_type_, b_values_, random);
  if (y.length != 0) std::memset(y.data.get(), 0x5a, y.length * sizeof(T));
  const DType zero_point_types[] = {a_type_, a_type_, b_type_, b_type_, y_zero_type_, y_zero_type_};
  for (int which = 0; which < kQuantizationParams; ++which) {
    fill(zero_points[static_cast<size_t>(which)], zero_point_types[which],
         which == kAZeroPoint   ? a_zero_values_
         : which == kBZeroPoint ? b_zero_values_
                                : Bytes::kRandom,
         random);
  }
  const auto random_scale = [&](bool may_be_zero) {
    float value = std::exp2(uniform<float>(random, -12, half_ ? -4 : 0));
    if (any_scales_ && random() % 3 == 0) value = -value;
    return any_scales_ && may_be_zero && random() % 8 == 0 ? std::copysign(0.0F, value) : value;
  };
  for (const int which : {kAScale, kBScale, kYScale}) {
    Scales& scale = scales[static_cast<size_t>(which)];
    for (size_t i = 0; i < scale.wide.length; ++i) scale.set(i, random_scale(which != kYScale));
  }
  for (size_t i = 0; i < bias.wide.length; ++i) {
    float value = uniform<float>(random, -100, 100);
    if (specials_ && random() % 3 == 0) {
      const float values[] = {INFINITY, -INFINITY, NAN, -NAN, -0.0F};
      value = values[random() % 5];
    }
    bias.set(i, value);
  }

  IntegerMatMulArgs args;
  args.op = op_;
  args.A = make_tensor<const void>(a, kIsFloatA ? DType::kFloat32 : a_type_, a_layout_);
  args.B = make_tensor<const void>(b, b_type_, b_layout_);
  args.transA = trans_a_;
  args.transB = trans_b_;
  args.activation = activation_;
  ConstTensor tensors[kQuantizationParams];
  const ConstTensor bias_tensor = bias.tensor(half_, of_bias.layout);
  const ConstTensor** const slots[] = {&args.a_scale,      &args.a_zero_point, &args.b_scale,
                                       &args.b_zero_point, &args.y_scale,      &args.y_zero_point};
  for (int i = 0; i < kQuantizationParams; ++i) {
    const auto which = static_cast<QuantizationParam>(i);
    const auto at = static_cast<size_t>(i);
    const bool is_required = is_scale(i) && extent_of(op_, which) != ParamExtent::kNone;
    if (!params_[i].has_value() && !is_required) continue;
    const Layout layout = params_[i].value_or(Param{}).layout;
    tensors[i] = is_scale(i)
                     ? scales[at].tensor(half_, layout)
                     : make_tensor<const void>(zero_points[at], zero_point_types[i], layout);
    *slots[i] = &tensors[i];
  }
  if (bias_.has_value()) args.bias = &bias_tensor;
  args.Y.dtype = type;  // the reference reads it

  std::vector<Sizes> indices;
  for_each_index(dims, [&](std::span<const int64_t> index) {
    indices.emplace_back(index.begin(), index.end());
  });
  const ReferenceQuantizedA of_a =
      kIsFloatA ? reference_quantized_a(args.A) : ReferenceQuantizedA{};
  if (op_ == IntegerOp::kQLinearMatMul && !indices.empty()) {
    // The largest results then exceed the range slightly.
    IntegerMatMulArgs real = args;
    real.op = IntegerOp::kMatMulIntegerToFloat;
    real.y_scale = nullptr;
    real.activation = {};
    double largest = 0;
    for (int i = 0; i < 6; ++i) {
      const Sizes& index = indices[random() % indices.size()];
      largest = std::max(largest, std::fabs(reference_integer_matmul(real, of_a, index)));
    }
    const auto unit = static_cast<float>(largest == 0 ? 1 : largest / 150);
    Scales& y_scale = scales[kYScale];
    for (size_t i = 0; i < y_scale.wide.length; ++i) {
      const float factor = uniform<float>(random, 0.5F, 2);
      const float value = half_ ? std::clamp(unit * factor, 0x1p-20F, 60000.0F) : unit * factor;
      y_scale.set(i, std::copysign(value, y_scale.wide.data[i]));
    }
  }
  std::vector<T> expected;
  for (const Sizes& index : indices)
    expected.push_back(rounded<T>(reference_integer_matmul(args, of_a, index)));

  Context& context = shared_context(threads_ ? 2 : test_threads(), determinism_);
  const IntegerMatMulArgs plain = args;
  for (const bool is_packed : {false, true}) {
    if (packed_.has_value() ? is_packed != *packed_ : is_packed && b_.size() < 2) continue;
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
    before.add("Y", y);
    before.add("bias", bias.wide);
    before.add("bias", bias.half);
    for (int i = 0; i < kQuantizationParams; ++i) {
      before.add(name_of_param(i), scales[static_cast<size_t>(i)].wide);
      before.add(name_of_param(i), scales[static_cast<size_t>(i)].half);
      before.add(name_of_param(i), zero_points[static_cast<size_t>(i)]);
    }
    const std::vector<T> y_before = y.values();
    const size_t in_use = context.bytes_in_use();

    int64_t shape[kMaxRank];
    size_t rank = 99;
    DType dtype = DType::kInt64;
    args.Y = {};
    Status status = integer_matmul_shape(args, shape, &rank, &dtype);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(text_of({shape, rank}), text_of(dims));
    EXPECT_EQ(dtype, type);

    args.Y = make_tensor<void>(y, type, y_layout_);
    Explanation plan;
    status = explain(Context(), args, &plan);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(indices.empty() ? 0 : plan.batch * plan.m * plan.n, std::ssize(indices));

    if (out_of_core_.limit != 0) {
      OutOfCoreSetup setup = out_of_core_;
      setup.determinism = determinism_;
      status = check_out_of_core(&integer_matmul, args, setup, test_threads(), &args.A, &args.B,
                                 &args.bias, &args.Y);
    } else if (prepared_) {
      // While the call is prepared, all memory that it must not read, or must read again, has other
      // values.
      const std::vector<A> own_a = a.values();
      std::fill_n(a.data.get(), a.length, A{1});
      PreparedCall call;
      status = prepare(context, args, &call);
      ASSERT_TRUE(status.ok()) << status.message;
      args = {};
      std::vector<std::vector<uint8_t>> kept;
      const auto overwrite = [&](auto& array) {
        auto* const bytes = reinterpret_cast<uint8_t*>(array.data.get());
        const size_t count = array.length * sizeof(array.data[0]);
        kept.emplace_back(bytes, bytes + count);
        std::fill_n(bytes, count, uint8_t{0xff});
      };
      const auto restore = [&](auto& array) {
        auto* const bytes = reinterpret_cast<uint8_t*>(array.data.get());
        std::ranges::copy(kept.front(), bytes);
        kept.erase(kept.begin());
      };
      const auto with_params = [&](const auto& work) {
        for (Scales& scale : scales) work(scale.wide), work(scale.half);
        for (Array<uint8_t>& array : zero_points) work(array);
      };
      with_params(overwrite);
      EXPECT_TRUE(wgemm::run(call).ok());
      std::ranges::copy(own_a, a.data.get());
      status = wgemm::run(call);
      with_params(restore);
    } else if (options_.has_value() || test_threads() > 1 || threads_) {
      MatMulProblem p;
      status = quantized_problem(args, true, &p);
      PlanOptions options = fitting(test_options(options_.value_or(PlanOptions{})), p.problem);
      if (threads_ && options.tasks == 0) options.tasks = 5;
      if (status.ok()) status = wgemm::run(context, name_of(op_), p.problem, options);
    } else {
      status = integer_matmul(context, args);
    }
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(context.bytes_in_use(), in_use);

    size_t next = 0;
    for (const Sizes& index : indices) {
      int64_t place = y.offset;
      for (size_t axis = 0; axis < dims.size(); ++axis) place += index[axis] * y.strides[axis];
      T& value = y.data[static_cast<size_t>(place)];
      T wanted = expected[next++];
      if (is_nan(wanted)) {
        EXPECT_TRUE(is_nan(value)) << "no NaN at " << text_of(index);
        wanted = determinism_ == Determinism::kStrict
                     ? rounded<T>(std::numeric_limits<double>::quiet_NaN())
                     : value;
      }
      ASSERT_EQ(std::memcmp(&value, &wanted, sizeof(T)), 0)
          << convert<double>(value) << " instead of " << convert<double>(wanted) << " at "
          << text_of(index);
      // Restore the element: then all memory must be as it was.
      value = y_before[static_cast<size_t>(place)];
    }
    before.expect_unchanged();
  }
}

template <typename T>
void IntegerMatMulTester::run_into() const {
  if constexpr (std::is_same_v<T, float>) {
    if (quantizes_a()) return run_typed<T, float>();
  }
  run_typed<T, uint8_t>();
}

void IntegerMatMulTester::run() const {
  switch (y_type()) {
    case DType::kInt32:
      return run_into<int32_t>();
    case DType::kInt8:
      return run_into<int8_t>();
    case DType::kUInt8:
      return run_into<uint8_t>();
    case DType::kFloat16:
      return run_into<Float16>();
    default:
      return run_into<float>();
  }
}

}  // namespace wgemm::testing
