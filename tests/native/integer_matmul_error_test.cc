// Every rule that a call of integer_matmul() can break: the error's code, argument and message, and
// that the call writes nothing. Then shapes and plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "integer_matmul_tester.h"
#include "out_of_core_tensor.h"
#include "reference.h"
#include "values.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

using enum IntegerOp;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kHuge = int64_t{1} << 40, kFar = std::numeric_limits<int64_t>::max();
constexpr DType kUnknown = static_cast<DType>(200);

// A tensor of a call. Its memory has room for all shapes and types of the tests.
struct Argument {
  ConstTensor tensor;
  Sizes dims, strides{};
  std::vector<float> data;
  bool is_there = true;

  template <typename T>
  Argument(DType dtype, Sizes shape, T value) : dims(std::move(shape)), data(200) {
    tensor.dtype = dtype;
    tensor.data = data.data();
    fill(value);
  }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data.data());
  }
  template <typename T>
  void fill(T value) {
    std::fill_n(as<T>(), data.size() * sizeof(float) / sizeof(T), value);
  }
  // Scales and bias as float16.
  void halve(float value) {
    tensor.dtype = DType::kFloat16;
    fill(rounded<Float16>(value));
  }
  const ConstTensor* link() {
    tensor.dims = dims;
    tensor.strides = strides;
    return is_there ? &tensor : nullptr;
  }
};

// A valid call, ((2, 2, 3) - 1) x ((3, 4) - -1), with elements 3 and 2 and all parameters that the
// operator has. Each test makes one thing invalid.
struct Call {
  IntegerMatMulArgs args;
  Argument a{DType::kUInt8, {2, 2, 3}, uint8_t{3}}, a_scale{DType::kFloat32, {}, 0.5F},
      a_zero{DType::kUInt8, {1}, uint8_t{1}};
  Argument b{DType::kInt8, {3, 4}, int8_t{2}}, b_scale{DType::kFloat32, {4}, 0.25F},
      b_zero{DType::kInt8, {4}, int8_t{-1}};
  Argument y_scale{DType::kFloat32, {2, 2, 1}, 0.125F}, y_zero{DType::kInt8, {2}, int8_t{5}},
      bias{DType::kFloat32, {4}, 1.0F};
  std::vector<float> y = std::vector<float>(200, -7.0F);
  Sizes y_dims{2, 2, 4}, y_strides;
  Context context;
  PackedWeights weights;

  explicit Call(IntegerOp op) {
    args.op = op;
    const auto has = [&](QuantizationParam which) {
      return extent_of(op, which) != ParamExtent::kNone;
    };
    a_scale.is_there = has(kAScale), a_zero.is_there = has(kAZeroPoint);
    b_scale.is_there = has(kBScale), b_zero.is_there = has(kBZeroPoint);
    y_scale.is_there = has(kYScale), y_zero.is_there = has(kYZeroPoint);
    bias.is_there = op == kDynamicQuantizeMatMul || op == kMatMulIntegerToFloat;
    if (op == kDynamicQuantizeMatMul) {
      a.tensor.dtype = DType::kFloat32;
      a.fill(3.0F);
    }
    args.Y = {y.data(), op == kMatMulInteger   ? DType::kInt32
                        : op == kQLinearMatMul ? DType::kInt8
                                               : DType::kFloat32};
  }
  void shapes(Sizes of_a, Sizes of_b, Sizes of_y) {
    a.dims = std::move(of_a), b.dims = std::move(of_b), y_dims = std::move(of_y);
  }
  // Every parameter has one value.
  void ones() {
    for (Argument* param : {&a_scale, &a_zero, &b_scale, &b_zero, &y_scale, &y_zero})
      param->dims = {1};
  }
  void halves() {
    a_scale.halve(0.5F), b_scale.halve(0.25F), y_scale.halve(0.125F), bias.halve(1);
    if (args.Y.dtype == DType::kFloat32) args.Y.dtype = DType::kFloat16;
  }
  void pack_b(Sizes dims = {3, 4}, DType type = DType::kInt8) {
    const bool is_8bit = compute_type(type) == DType::kInt8;
    const PackArgs pack_args{.op = is_8bit ? PackFor::kQGemm : PackFor::kGemm,
                             .B = {b.data.data(), type, dims}};
    const Status status = pack(context, pack_args, &weights);
    EXPECT_TRUE(status.ok()) << status.message;
    args.packed_B = &weights;
  }
  void link() {
    a.link(), b.link();
    args.A = a.tensor;
    args.B = b.tensor;
    args.a_scale = a_scale.link(), args.a_zero_point = a_zero.link();
    args.b_scale = b_scale.link(), args.b_zero_point = b_zero.link();
    args.y_scale = y_scale.link(), args.y_zero_point = y_zero.link();
    args.bias = bias.link();
    args.Y.dims = y_dims;
    args.Y.strides = y_strides;
  }
  // All memory that the call must not write.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    for (const std::vector<float>* data :
         {&a.data, &b.data, &a_scale.data, &a_zero.data, &b_scale.data, &b_zero.data, &y_scale.data,
          &y_zero.data, &bias.data, &y}) {
      const auto* from = reinterpret_cast<const std::byte*>(data->data());
      all.insert(all.end(), from, from + data->size() * sizeof(float));
    }
    return all;
  }
};

// Whether a valid call computes Y.
void expect_right(IntegerOp op, Context& context) {
  Call call(op);
  call.link();
  const Status status = integer_matmul(context, call.args);
  ASSERT_TRUE(status.ok()) << status.message;
  const ReferenceQuantizedA of_a =
      op == kDynamicQuantizeMatMul ? reference_quantized_a(call.args.A) : ReferenceQuantizedA{};
  const int64_t index[] = {1, 1, 2};
  const double wanted = reference_integer_matmul(call.args, of_a, index);
  const void* const y = call.y.data();
  EXPECT_EQ(op == kMatMulInteger   ? static_cast<double>(static_cast<const int32_t*>(y)[14])
            : op == kQLinearMatMul ? static_cast<double>(static_cast<const int8_t*>(y)[14])
                                   : static_cast<double>(call.y[14]),
            wanted);
  EXPECT_EQ(call.y[16], -7.0F);
}

struct Case {
  const char* name;
  IntegerOp op;
  void (*spoil)(Call&);
  Code code;
  const char* argument;
  const char* text;  // occurs in the message
};

const Case kCases[] = {
    // Ranks, sizes and strides.
    {"ARank0", kMatMulInteger, [](Call& c) { c.a.dims = {}; }, Code::kShape, "A", "A has rank 0; it must have rank 1 or more"},
    {"BRank0", kQLinearMatMul, [](Call& c) { c.b.dims = {}; }, Code::kShape, "B", "B has rank 0; it must have rank 1 or more"},
    {"ARank65", kMatMulIntegerToFloat, [](Call& c) { c.a.dims = Sizes(65, 1); }, Code::kShape, "A", "A has rank 65; it must be at most 64"},
    {"BRank65", kDynamicQuantizeMatMul, [](Call& c) { c.b.dims = Sizes(65, 1); }, Code::kShape, "B", "B has rank 65; it must be at most 64"},
    {"BiasRank65", kMatMulIntegerToFloat, [](Call& c) { c.bias.dims = Sizes(65, 1); }, Code::kShape, "bias", "bias has rank 65; it must be at most 64"},
    {"YRank65", kMatMulInteger, [](Call& c) { c.y_dims = Sizes(65, 1); }, Code::kShape, "Y", "Y has rank 65; it must be at most 64"},
    {"AZeroPointRank65", kMatMulInteger, [](Call& c) { c.a_zero.dims = Sizes(65, 1); }, Code::kShape, "a_zero_point", "a_zero_point has rank 65; it must be at most 64"},
    {"NegativeA", kMatMulInteger, [](Call& c) { c.a.dims = {2, -2, 3}; }, Code::kShape, "A", "A has shape [2, -2, 3]; each size must be a whole number from 0 to 2^53 - 1"},
    {"NegativeB", kQLinearMatMul, [](Call& c) { c.b.dims = {3, -4}; }, Code::kShape, "B", "each size must be a whole number from 0 to 2^53 - 1"},
    {"NegativeBias", kDynamicQuantizeMatMul, [](Call& c) { c.bias.dims = {-4}; }, Code::kShape, "bias", "each size must be a whole number from 0 to 2^53 - 1"},
    {"NegativeBScale", kQLinearMatMul, [](Call& c) { c.b_scale.dims = {-4}; }, Code::kShape, "b_scale", "each size must be a whole number from 0 to 2^53 - 1"},
    {"LargeA", kMatMulInteger, [](Call& c) { c.a.dims = {kHuge, kHuge, 3}; }, Code::kShape, "A", "A has more than 2^53 elements"},
    {"LargeProduct", kMatMulInteger, [](Call& c) { c.ones(), c.shapes({kHuge, 0}, {0, kHuge}, {2, 4}); }, Code::kShape, "Y", "Y would have shape [1099511627776, 1099511627776], of more than 2^53 elements"},
    {"LargeBatch", kMatMulInteger, [](Call& c) { c.ones(), c.shapes({kHuge, 1, 1, 3}, {kHuge, 3, 4}, {2, 4}); }, Code::kShape, "Y", "of more than 2^53 elements"},
    {"StridesOfA", kDynamicQuantizeMatMul, [](Call& c) { c.a.strides = {3, 1}; }, Code::kShape, "A", "A has strides [3, 1] and shape [2, 2, 3]; there must be one stride per axis"},
    {"StridesOfYScale", kQLinearMatMul, [](Call& c) { c.y_scale.strides = {1}; }, Code::kShape, "y_scale", "there must be one stride per axis"},
    {"NegativeStrideOfB", kMatMulIntegerToFloat, [](Call& c) { c.b.strides = {-4, 1}; }, Code::kShape, "B", "each stride must be a whole number from 0 to 2^53 - 1"},
    {"NegativeStrideOfBias", kMatMulIntegerToFloat, [](Call& c) { c.bias.strides = {-1}; }, Code::kShape, "bias", "each stride must be a whole number from 0 to 2^53 - 1"},
    {"NegativeStrideOfBZeroPoint", kMatMulInteger, [](Call& c) { c.b_zero.strides = {-1}; }, Code::kShape, "b_zero_point", "each stride must be a whole number from 0 to 2^53 - 1"},
    {"FarStride", kMatMulInteger, [](Call& c) { c.a.strides = {int64_t{1} << 60, 3, 1}; }, Code::kShape, "A", "which reach beyond 2^53 elements"},
    {"ShortA", kMatMulInteger, [](Call& c) { c.a.tensor.size = 11; }, Code::kShape, "A", "A has 11 elements; its shape [2, 2, 3] needs 12"},
    {"LongB", kQLinearMatMul, [](Call& c) { c.b.tensor.size = 13; }, Code::kShape, "B", "B has 13 elements; its shape [3, 4] needs 12"},
    {"ShortBias", kMatMulIntegerToFloat, [](Call& c) { c.bias.tensor.size = 3; }, Code::kShape, "bias", "bias has 3 elements; its shape [4] needs 4"},
    {"ShortYScale", kQLinearMatMul, [](Call& c) { c.y_scale.tensor.size = 3; }, Code::kShape, "y_scale", "y_scale has 3 elements; its shape [2, 2, 1] needs 4"},
    {"ShortAScaleForOffset", kMatMulIntegerToFloat, [](Call& c) { c.a_scale.tensor.offset = 2, c.a_scale.tensor.size = 2; }, Code::kShape, "a_scale", " and offset 2 need 3"},
    {"ShortY", kDynamicQuantizeMatMul, [](Call& c) { c.args.Y.size = 15; }, Code::kShape, "Y", "Y has 15 elements; its shape [2, 2, 4] needs 16"},
    {"NegativeOffset", kMatMulInteger, [](Call& c) { c.b_zero.tensor.offset = -2; }, Code::kShape, "b_zero_point", "b_zero_point has offset -2; it must be from 0 to"},
    {"NoDataOfA", kDynamicQuantizeMatMul, [](Call& c) { c.a.tensor.data = nullptr; }, Code::kArgument, "A", "A has no data"},
    {"NoDataOfB", kMatMulInteger, [](Call& c) { c.b.tensor.data = nullptr; }, Code::kArgument, "B", "B has no data"},
    {"NoDataOfAScale", kQLinearMatMul, [](Call& c) { c.a_scale.tensor.data = nullptr; }, Code::kArgument, "a_scale", "a_scale has no data"},
    {"NoDataOfAZeroPoint", kMatMulInteger, [](Call& c) { c.a_zero.tensor.data = nullptr; }, Code::kArgument, "a_zero_point", "a_zero_point has no data"},
    {"NoDataOfBScale", kDynamicQuantizeMatMul, [](Call& c) { c.b_scale.tensor.data = nullptr; }, Code::kArgument, "b_scale", "b_scale has no data"},
    {"NoDataOfBZeroPoint", kDynamicQuantizeMatMul, [](Call& c) { c.b_zero.tensor.data = nullptr; }, Code::kArgument, "b_zero_point", "b_zero_point has no data"},
    {"NoDataOfYScale", kQLinearMatMul, [](Call& c) { c.y_scale.tensor.data = nullptr; }, Code::kArgument, "y_scale", "y_scale has no data"},
    {"NoDataOfYZeroPoint", kQLinearMatMul, [](Call& c) { c.y_zero.tensor.data = nullptr; }, Code::kArgument, "y_zero_point", "y_zero_point has no data"},
    {"NoDataOfBias", kMatMulIntegerToFloat, [](Call& c) { c.bias.tensor.data = nullptr; }, Code::kArgument, "bias", "bias has no data"},
    {"NoDataOfY", kQLinearMatMul, [](Call& c) { c.args.Y.data = nullptr; }, Code::kArgument, "Y", "Y has no data"},

    // Types.
    {"AUnknownType", kQLinearMatMul, [](Call& c) { c.a.tensor.dtype = kUnknown; }, Code::kDType, "A", "A has the unknown type 200; see DType"},
    {"BUnknownType", kDynamicQuantizeMatMul, [](Call& c) { c.b.tensor.dtype = kUnknown; }, Code::kDType, "B", "unknown type 200"},
    {"BScaleUnknownType", kDynamicQuantizeMatMul, [](Call& c) { c.b_scale.tensor.dtype = kUnknown; }, Code::kDType, "b_scale", "unknown type 200"},
    {"YUnknownType", kMatMulInteger, [](Call& c) { c.args.Y.dtype = kUnknown; }, Code::kDType, "Y", "unknown type 200"},
    {"FloatA", kMatMulInteger, [](Call& c) { c.a.tensor.dtype = DType::kFloat32; }, Code::kDType, "A", "A has type float32; it must be int8 or uint8"},
    {"FloatB", kDynamicQuantizeMatMul, [](Call& c) { c.b.tensor.dtype = DType::kFloat32; }, Code::kDType, "B", "B has type float32; it must be int8 or uint8"},
    {"BytesOfA", kDynamicQuantizeMatMul, [](Call& c) { c.a.tensor.dtype = DType::kUInt8; }, Code::kDType, "A", "A has type uint8; it must be float32"},
    {"HalfA", kDynamicQuantizeMatMul, [](Call& c) { c.a.tensor.dtype = DType::kFloat16; }, Code::kDType, "A", "A has type float16; it must be float32"},
    {"AZeroPointType", kMatMulInteger, [](Call& c) { c.a_zero.tensor.dtype = DType::kInt8; }, Code::kDType, "a_zero_point", "a_zero_point has type int8; it must be uint8"},
    {"BZeroPointType", kDynamicQuantizeMatMul, [](Call& c) { c.b_zero.tensor.dtype = DType::kUInt8; }, Code::kDType, "b_zero_point", "b_zero_point has type uint8; it must be int8"},
    {"YZeroPointType", kQLinearMatMul, [](Call& c) { c.y_zero.tensor.dtype = DType::kInt32; }, Code::kDType, "y_zero_point", "y_zero_point has type int32; it must be int8 or uint8"},
    {"BScaleType", kDynamicQuantizeMatMul, [](Call& c) { c.b_scale.tensor.dtype = DType::kFloat16; }, Code::kDType, "b_scale", "b_scale has type float16; it must be float32"},
    {"AScaleType", kMatMulIntegerToFloat, [](Call& c) { c.a_scale.tensor.dtype = DType::kFloat64; }, Code::kDType, "a_scale", "a_scale has type float64; it must be float32 or float16"},
    {"YScaleType", kQLinearMatMul, [](Call& c) { c.y_scale.tensor.dtype = DType::kBFloat16; }, Code::kDType, "y_scale", "y_scale has type bfloat16; it must be float32 or float16"},
    {"MixedScales", kQLinearMatMul, [](Call& c) { c.halves(), c.y_scale.tensor.dtype = DType::kFloat32; }, Code::kDType, "y_scale", "y_scale has type float32 and another scale has type float16; they must be the same"},
    {"MixedScalesToFloat", kMatMulIntegerToFloat, [](Call& c) { c.halves(), c.b_scale.tensor.dtype = DType::kFloat32; }, Code::kDType, "b_scale", "b_scale has type float32 and another scale has type float16; they must be the same"},
    {"BiasType", kDynamicQuantizeMatMul, [](Call& c) { c.bias.tensor.dtype = DType::kInt32; }, Code::kDType, "bias", "bias has type int32; it must be float32"},
    {"BiasOfHalfScales", kMatMulIntegerToFloat, [](Call& c) { c.halves(), c.bias.tensor.dtype = DType::kFloat32; }, Code::kDType, "bias", "bias has type float32; it must be float16"},
    {"HalfBias", kMatMulIntegerToFloat, [](Call& c) { c.bias.halve(1); }, Code::kDType, "bias", "bias has type float16; it must be float32"},
    {"YTypeInteger", kMatMulInteger, [](Call& c) { c.args.Y.dtype = DType::kFloat32; }, Code::kDType, "Y", "Y has type float32; the result has type int32"},
    {"YTypeOtherSign", kQLinearMatMul, [](Call& c) { c.args.Y.dtype = DType::kUInt8; }, Code::kDType, "Y", "Y has type uint8; the result has type int8"},
    {"YTypeOfA", kQLinearMatMul, [](Call& c) { c.y_zero.is_there = false; }, Code::kDType, "Y", "Y has type int8; the result has type uint8"},
    {"YTypeHalf", kMatMulIntegerToFloat, [](Call& c) { c.args.Y.dtype = DType::kFloat16; }, Code::kDType, "Y", "Y has type float16; the result has type float32"},
    {"YTypeFloat", kMatMulIntegerToFloat, [](Call& c) { c.halves(), c.args.Y.dtype = DType::kFloat32; }, Code::kDType, "Y", "Y has type float32; the result has type float16"},

    // Which arguments an operator has.
    {"AScaleOfMatMulInteger", kMatMulInteger, [](Call& c) { c.a_scale.is_there = true; }, Code::kArgument, "a_scale", "a_scale is given; this operation has none"},
    {"BScaleOfMatMulInteger", kMatMulInteger, [](Call& c) { c.b_scale.is_there = true; }, Code::kArgument, "b_scale", "b_scale is given; this operation has none"},
    {"YScaleOfMatMulInteger", kMatMulInteger, [](Call& c) { c.y_scale.is_there = true; }, Code::kArgument, "y_scale", "y_scale is given; this operation has none"},
    {"YZeroPointOfMatMulInteger", kMatMulInteger, [](Call& c) { c.y_zero.is_there = true; }, Code::kArgument, "y_zero_point", "y_zero_point is given; this operation has none"},
    {"AScaleOfDynamicQuantize", kDynamicQuantizeMatMul, [](Call& c) { c.a_scale.is_there = true; }, Code::kArgument, "a_scale", "a_scale is given; this operation has none"},
    {"AZeroPointOfDynamicQuantize", kDynamicQuantizeMatMul, [](Call& c) { c.a_zero.is_there = true; }, Code::kArgument, "a_zero_point", "a_zero_point is given; this operation has none"},
    {"YScaleOfDynamicQuantize", kDynamicQuantizeMatMul, [](Call& c) { c.y_scale.is_there = true; }, Code::kArgument, "y_scale", "y_scale is given; this operation has none"},
    {"YScaleOfToFloat", kMatMulIntegerToFloat, [](Call& c) { c.y_scale.is_there = true; }, Code::kArgument, "y_scale", "y_scale is given; this operation has none"},
    {"YZeroPointOfToFloat", kMatMulIntegerToFloat, [](Call& c) { c.y_zero.is_there = true; }, Code::kArgument, "y_zero_point", "y_zero_point is given; this operation has none"},
    {"BiasOfMatMulInteger", kMatMulInteger, [](Call& c) { c.bias.is_there = true; }, Code::kArgument, "bias", "bias is given; this operation has none"},
    {"BiasOfQLinear", kQLinearMatMul, [](Call& c) { c.bias.is_there = true; }, Code::kArgument, "bias", "bias is given; this operation has none"},
    {"ActivationOfMatMulInteger", kMatMulInteger, [](Call& c) { c.args.activation.min = 0; }, Code::kArgument, "activation", "activation is given; this operation has none"},
    {"NoAScale", kQLinearMatMul, [](Call& c) { c.a_scale.is_there = false; }, Code::kArgument, "a_scale", "a_scale is absent; it must be given"},
    {"NoBScale", kQLinearMatMul, [](Call& c) { c.b_scale.is_there = false; }, Code::kArgument, "b_scale", "b_scale is absent; it must be given"},
    {"NoYScale", kQLinearMatMul, [](Call& c) { c.y_scale.is_there = false; }, Code::kArgument, "y_scale", "y_scale is absent; it must be given"},
    {"NoBScaleOfDynamicQuantize", kDynamicQuantizeMatMul, [](Call& c) { c.b_scale.is_there = false; }, Code::kArgument, "b_scale", "b_scale is absent; it must be given"},
    {"NoAScaleToFloat", kMatMulIntegerToFloat, [](Call& c) { c.a_scale.is_there = false; }, Code::kArgument, "a_scale", "a_scale is absent; it must be given"},
    {"NoBScaleToFloat", kMatMulIntegerToFloat, [](Call& c) { c.b_scale.is_there = false; }, Code::kArgument, "b_scale", "b_scale is absent; it must be given"},

    // K and batch axes.
    {"K", kMatMulInteger, [](Call& c) { c.b.dims = {5, 4}; }, Code::kShape, "B", "A has shape [2, 2, 3] and B has shape [5, 4]; K is 3 in A and 5 in B, and must be the same"},
    {"KTransposedA", kDynamicQuantizeMatMul, [](Call& c) { c.args.transA = 1; }, Code::kShape, "B", "A (transposed) has shape [2, 2, 3] and B has shape [3, 4]; K is 2 in A and 3 in B"},
    {"KTransposedB", kQLinearMatMul, [](Call& c) { c.args.transB = -1; }, Code::kShape, "B", "B (transposed) has shape [3, 4]; K is 3 in A and 4 in B"},
    {"KOfVectors", kMatMulInteger, [](Call& c) { c.ones(), c.shapes({3}, {4}, {}); }, Code::kShape, "B", "K is 3 in A and 4 in B"},
    {"KWithoutRows", kMatMulInteger, [](Call& c) { c.shapes({2, 0, 5}, {3, 4}, {2, 0, 4}); }, Code::kShape, "B", "K is 5 in A and 3 in B"},
    {"KOfNone", kMatMulInteger, [](Call& c) { c.shapes({2, 2, 0}, {1, 4}, {2, 2, 4}); }, Code::kShape, "B", "K is 0 in A and 1 in B"},
    {"Batch", kMatMulIntegerToFloat, [](Call& c) { c.b.dims = {3, 3, 4}; }, Code::kShape, "B", "A has batch axes [2] and B has [3]; sizes of batch axes, aligned at the right, must be the same, or 1 in one of them"},
    {"BatchAlignedAtTheRight", kMatMulInteger, [](Call& c) { c.shapes({2, 3, 2, 3}, {2, 3, 4}, {2, 3, 2, 4}); }, Code::kShape, "B", "A has batch axes [2, 3] and B has [2]"},

    // Packed weights.
    {"PackedEmptyMatMulInteger", kMatMulInteger, [](Call& c) { c.args.packed_B = &c.weights; }, Code::kArgument, "B", "B is an empty PackedWeights; pack() fills it"},
    {"PackedEmptyQLinearMatMul", kQLinearMatMul, [](Call& c) { c.args.packed_B = &c.weights; }, Code::kArgument, "B", "B is an empty PackedWeights; pack() fills it"},
    {"PackedEmptyDynamicQuantizeMatMul", kDynamicQuantizeMatMul, [](Call& c) { c.args.packed_B = &c.weights; }, Code::kArgument, "B", "B is an empty PackedWeights; pack() fills it"},
    {"PackedEmptyMatMulIntegerToFloat", kMatMulIntegerToFloat, [](Call& c) { c.args.packed_B = &c.weights; }, Code::kArgument, "B", "B is an empty PackedWeights; pack() fills it"},
    {"PackedTransB", kMatMulIntegerToFloat, [](Call& c) { c.pack_b(), c.args.transB = 1; }, Code::kArgument, "transB", "transB is set and B is packed; transpose when packing, by trans"},
    {"PackedForGemm", kMatMulInteger, [](Call& c) { c.pack_b({3, 4}, DType::kFloat32); }, Code::kPackMismatch, "B", "B is packed for gemm and matmul; pack it for qgemm"},
    {"PackedForGemmOfFloatA", kDynamicQuantizeMatMul, [](Call& c) { c.pack_b({3, 4}, DType::kFloat32); }, Code::kPackMismatch, "B", "B is packed for gemm and matmul; pack it for qgemm"},
    {"PackedK", kQLinearMatMul, [](Call& c) { c.pack_b({5, 4}); }, Code::kShape, "B", "A has shape [2, 2, 3] and B is packed from shape [5, 4]; K is 3 in A and 5 in B"},
    {"PackedKTransposed", kDynamicQuantizeMatMul, [](Call& c) { c.pack_b(), c.args.transA = 1; }, Code::kShape, "B", "K is 2 in A and 3 in B"},
    {"PackedKOfVector", kMatMulInteger, [](Call& c) { c.pack_b(), c.ones(), c.shapes({4}, {}, {4}); }, Code::kShape, "B", "K is 4 in A and 3 in B"},
    {"PackedBatch", kMatMulInteger, [](Call& c) { c.pack_b({3, 3, 4}); }, Code::kShape, "B", "A has batch axes [2] and B has [3]"},
    {"PackedARank0", kMatMulInteger, [](Call& c) { c.pack_b(), c.a.dims = {}; }, Code::kShape, "A", "A has rank 0"},
    {"PackedNOfScales", kQLinearMatMul, [](Call& c) { c.pack_b({3, 5}); }, Code::kShape, "b_scale", "b_scale has shape [4] and B' has 5 columns"},
    {"PackedBatchOfScales", kQLinearMatMul, [](Call& c) { c.pack_b({2, 3, 4}); }, Code::kShape, "b_scale", "b_scale has shape [4] and B' has 4 columns"},
    {"PackedNOfBias", kMatMulIntegerToFloat, [](Call& c) { c.pack_b({3, 5}), c.b_scale.dims = c.b_zero.dims = {5}; }, Code::kShape, "bias", "bias has shape [4] and B' has 5 columns"},
    {"PackedNOfY", kMatMulInteger, [](Call& c) { c.pack_b({3, 5}), c.ones(); }, Code::kShape, "Y", "Y has shape [2, 2, 4]; the result has shape [2, 2, 5]"},
    {"PackedBatchOfY", kMatMulInteger, [](Call& c) { c.pack_b({5, 1, 3, 4}), c.ones(); }, Code::kShape, "Y", "the result has shape [5, 2, 2, 4]"},
    {"PackedZeroPointType", kMatMulInteger, [](Call& c) { c.pack_b({3, 4}, DType::kUInt8); }, Code::kDType, "b_zero_point", "b_zero_point has type int8; it must be uint8"},

    // Shapes of scales and zero points.
    {"AZeroPointOf3", kMatMulInteger, [](Call& c) { c.a_zero.dims = {3}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [3]"},
    {"AZeroPointOfNone", kMatMulInteger, [](Call& c) { c.a_zero.dims = {0}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [0]"},
    {"AZeroPointOfAllRows", kMatMulInteger, [](Call& c) { c.a_zero.dims = {4}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [4]"},
    {"AZeroPointRow", kMatMulInteger, [](Call& c) { c.a_zero.dims = {1, 2}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [1, 2]"},
    {"AZeroPointOfOneMatrix", kMatMulInteger, [](Call& c) { c.a_zero.dims = {2, 1}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [2, 1]"},
    {"AZeroPointOfOtherBatch", kMatMulInteger, [](Call& c) { c.a_zero.dims = {1, 2, 1}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [1, 2, 1]"},
    {"AZeroPointOfMoreAxes", kMatMulInteger, [](Call& c) { c.a_zero.dims = {1, 2, 2, 1}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [1, 2, 2, 1]"},
    {"AZeroPointOfElements", kMatMulInteger, [](Call& c) { c.a_zero.dims = {2, 2, 3}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [2, 2, 3]"},
    {"AZeroPointOfVector", kMatMulInteger, [](Call& c) { c.ones(), c.shapes({3}, {3, 4}, {4}), c.a_zero.dims = {3}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [3]"},
    {"AZeroPointOfRowsOfTransposed", kMatMulInteger, [](Call& c) { c.args.transA = 1, c.a.dims = {2, 3, 2}, c.a_zero.dims = {3}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [3]"},
    {"AScalePerRow", kMatMulIntegerToFloat, [](Call& c) { c.a_scale.dims = {2}; }, Code::kShape, "a_scale", "a_scale has shape [2]; it must be one value"},
    {"AZeroPointPerRow", kMatMulIntegerToFloat, [](Call& c) { c.a_zero.dims = {2, 2, 1}; }, Code::kShape, "a_zero_point", "a_zero_point has shape [2, 2, 1]; it must be one value"},
    {"AScaleOfN", kQLinearMatMul, [](Call& c) { c.a_scale.dims = {4}; }, Code::kShape, "a_scale", "a_scale has shape [4]"},
    {"YScaleOfN", kQLinearMatMul, [](Call& c) { c.y_scale.dims = {4}; }, Code::kShape, "y_scale", "y_scale has shape [4]"},
    {"YScaleOfY", kQLinearMatMul, [](Call& c) { c.y_scale.dims = {2, 2, 4}; }, Code::kShape, "y_scale", "y_scale has shape [2, 2, 4]"},
    {"YScaleOfBatchOfA", kQLinearMatMul, [](Call& c) { c.ones(), c.shapes({2, 3}, {5, 3, 4}, {5, 2, 4}), c.y_scale.dims = {2, 1}; }, Code::kShape, "y_scale", "y_scale has shape [2, 1]"},
    {"YZeroPointOf5", kQLinearMatMul, [](Call& c) { c.y_zero.dims = {5}; }, Code::kShape, "y_zero_point", "y_zero_point has shape [5]"},
    {"AScaleOfBatchOfY", kQLinearMatMul, [](Call& c) { c.ones(), c.shapes({2, 3}, {5, 3, 4}, {5, 2, 4}), c.a_scale.dims = {5, 2, 1}; }, Code::kShape, "a_scale", "a_scale has shape [5, 2, 1]"},
    {"BScaleOf2", kDynamicQuantizeMatMul, [](Call& c) { c.b_scale.dims = {2}; }, Code::kShape, "b_scale", "b_scale has shape [2] and B' has 4 columns; it must"},
    {"BScaleOfK", kQLinearMatMul, [](Call& c) { c.b_scale.dims = {3}; }, Code::kShape, "b_scale", "b_scale has shape [3] and B' has 4 columns"},
    {"BScaleOfNone", kMatMulIntegerToFloat, [](Call& c) { c.b_scale.dims = {0}; }, Code::kShape, "b_scale", "b_scale has shape [0]"},
    {"BScaleColumn", kMatMulIntegerToFloat, [](Call& c) { c.b_scale.dims = {4, 1}; }, Code::kShape, "b_scale", "b_scale has shape [4, 1]"},
    {"BScaleOfMoreAxes", kMatMulIntegerToFloat, [](Call& c) { c.b_scale.dims = {1, 1, 4}; }, Code::kShape, "b_scale", "b_scale has shape [1, 1, 4]"},
    {"BScaleOfB", kMatMulIntegerToFloat, [](Call& c) { c.b_scale.dims = {3, 4}; }, Code::kShape, "b_scale", "b_scale has shape [3, 4]"},
    {"BScaleOfRowsOfB", kDynamicQuantizeMatMul, [](Call& c) { c.args.transB = 1, c.b.dims = {5, 3}; }, Code::kShape, "b_scale", "[4] and B' has 5 columns"},
    {"BZeroPointOf5", kMatMulInteger, [](Call& c) { c.b_zero.dims = {5}; }, Code::kShape, "b_zero_point", "b_zero_point has shape [5] and B' has 4 columns"},
    {"BZeroPointOfNAndBatch", kMatMulInteger, [](Call& c) { c.b.dims = {2, 3, 4}; }, Code::kShape, "b_zero_point", "b_zero_point has shape [4]"},
    {"BZeroPointOfOtherBatch", kMatMulInteger, [](Call& c) { c.b.dims = {2, 3, 4}, c.b_zero.dims = {1, 1, 4}; }, Code::kShape, "b_zero_point", "b_zero_point has shape [1, 1, 4]"},
    {"BZeroPointOfVector", kMatMulInteger, [](Call& c) { c.ones(), c.shapes({2, 2, 3}, {3}, {2, 2}), c.b_zero.dims = {3}; }, Code::kShape, "b_zero_point", "b_zero_point has shape [3]"},

    // bias and Y.
    {"BiasOfRows", kMatMulIntegerToFloat, [](Call& c) { c.bias.dims = {2}; }, Code::kShape, "bias", "bias has shape [2] and B' has 4 columns; it must have one element per column, of shape [N]"},
    {"BiasOfOne", kMatMulIntegerToFloat, [](Call& c) { c.bias.dims = {1}; }, Code::kShape, "bias", "bias has shape [1]"},
    {"BiasRow", kDynamicQuantizeMatMul, [](Call& c) { c.bias.dims = {1, 4}; }, Code::kShape, "bias", "bias has shape [1, 4]"},
    {"BiasScalar", kDynamicQuantizeMatMul, [](Call& c) { c.bias.dims = {}; }, Code::kShape, "bias", "bias has shape []"},
    {"YShape", kMatMulInteger, [](Call& c) { c.y_dims = {2, 4, 2}; }, Code::kShape, "Y", "Y has shape [2, 4, 2]; the result has shape [2, 2, 4]"},
    {"YRank", kQLinearMatMul, [](Call& c) { c.y_dims = {4, 4}; }, Code::kShape, "Y", "Y has shape [4, 4]; the result has shape [2, 2, 4]"},
    {"YWithRemovedRow", kMatMulInteger, [](Call& c) { c.ones(), c.shapes({3}, {3, 4}, {1, 4}); }, Code::kShape, "Y", "Y has shape [1, 4]; the result has shape [4]"},
    {"YRepeats", kMatMulIntegerToFloat, [](Call& c) { c.y_strides = {0, 4, 1}; }, Code::kShape, "Y", "no two elements share memory"},
    {"YRowsRunTogether", kDynamicQuantizeMatMul, [](Call& c) { c.y_strides = {8, 3, 1}; }, Code::kShape, "Y", "no two elements share memory"},
    {"YIsA", kMatMulInteger, [](Call& c) { c.args.Y.data = c.a.data.data(); }, Code::kArgument, "Y", "Y overlaps A in memory; it must overlap no input"},
    {"YIsFloatA", kDynamicQuantizeMatMul, [](Call& c) { c.args.Y.data = c.a.data.data(); }, Code::kArgument, "Y", "Y overlaps A in memory; it must overlap no input"},
    {"YIsB", kQLinearMatMul, [](Call& c) { c.args.Y.data = c.b.data.data(); }, Code::kArgument, "Y", "Y overlaps B in memory; it must overlap no input"},
    {"YIsAScale", kQLinearMatMul, [](Call& c) { c.args.Y.data = c.a_scale.data.data(); }, Code::kArgument, "Y", "Y overlaps a_scale in memory; it must overlap no input"},
    {"YIsAZeroPoint", kMatMulInteger, [](Call& c) { c.args.Y.data = c.a_zero.data.data(); }, Code::kArgument, "Y", "Y overlaps a_zero_point in memory; it must overlap no input"},
    {"YIsBScale", kMatMulIntegerToFloat, [](Call& c) { c.args.Y.data = c.b_scale.data.data(); }, Code::kArgument, "Y", "Y overlaps b_scale in memory; it must overlap no input"},
    {"YIsBZeroPoint", kDynamicQuantizeMatMul, [](Call& c) { c.args.Y.data = c.b_zero.data.data(); }, Code::kArgument, "Y", "Y overlaps b_zero_point in memory; it must overlap no input"},
    {"YIsYScale", kQLinearMatMul, [](Call& c) { c.args.Y.data = c.y_scale.data.data(); }, Code::kArgument, "Y", "Y overlaps y_scale in memory; it must overlap no input"},
    {"YIsYZeroPoint", kQLinearMatMul, [](Call& c) { c.args.Y.data = c.y_zero.data.data(); }, Code::kArgument, "Y", "Y overlaps y_zero_point in memory; it must overlap no input"},
    {"YIsBias", kMatMulIntegerToFloat, [](Call& c) { c.args.Y.data = c.bias.data.data(); }, Code::kArgument, "Y", "Y overlaps bias in memory; it must overlap no input"},
    {"YBeginsInBScale", kMatMulIntegerToFloat, [](Call& c) { c.args.Y.data = c.b_scale.data.data() + 3; }, Code::kArgument, "Y", "Y overlaps b_scale"},
    {"YEndsInA", kDynamicQuantizeMatMul, [](Call& c) { c.a.tensor.data = c.y.data() + 15; }, Code::kArgument, "Y", "Y overlaps A"},
    {"YEndsInBiasAtOffset", kDynamicQuantizeMatMul, [](Call& c) { c.bias.tensor.data = c.y.data(), c.bias.tensor.offset = 15; }, Code::kArgument, "Y", "Y overlaps bias"},

    // Values.
    {"AScaleNan", kQLinearMatMul, [](Call& c) { c.a_scale.fill(kNan); }, Code::kArgument, "a_scale", "a_scale is NaN"},
    {"AScaleToFloatNan", kMatMulIntegerToFloat, [](Call& c) { c.a_scale.fill(kNan); }, Code::kArgument, "a_scale", "a_scale is NaN"},
    {"BScaleNan", kDynamicQuantizeMatMul, [](Call& c) { c.b_scale.data[3] = kNan; }, Code::kArgument, "b_scale", "b_scale is NaN"},
    {"YScaleNan", kQLinearMatMul, [](Call& c) { c.y_scale.data[3] = kNan; }, Code::kArgument, "y_scale", "y_scale is NaN"},
    {"AScaleInfinite", kQLinearMatMul, [](Call& c) { c.a_scale.fill(kInfinity); }, Code::kArgument, "a_scale", "a_scale is infinite"},
    {"AScaleToFloatInfinite", kMatMulIntegerToFloat, [](Call& c) { c.a_scale.fill(kInfinity); }, Code::kArgument, "a_scale", "a_scale is infinite"},
    {"BScaleInfinite", kDynamicQuantizeMatMul, [](Call& c) { c.b_scale.data[3] = kInfinity; }, Code::kArgument, "b_scale", "b_scale is infinite"},
    {"YScaleInfinite", kQLinearMatMul, [](Call& c) { c.y_scale.data[3] = kInfinity; }, Code::kArgument, "y_scale", "y_scale is infinite"},
    {"AScaleMinusInfinite", kQLinearMatMul, [](Call& c) { c.a_scale.fill(-kInfinity); }, Code::kArgument, "a_scale", "a_scale is infinite"},
    {"AScaleToFloatMinusInfinite", kMatMulIntegerToFloat, [](Call& c) { c.a_scale.fill(-kInfinity); }, Code::kArgument, "a_scale", "a_scale is infinite"},
    {"BScaleMinusInfinite", kDynamicQuantizeMatMul, [](Call& c) { c.b_scale.data[3] = -kInfinity; }, Code::kArgument, "b_scale", "b_scale is infinite"},
    {"YScaleMinusInfinite", kQLinearMatMul, [](Call& c) { c.y_scale.data[3] = -kInfinity; }, Code::kArgument, "y_scale", "y_scale is infinite"},
    {"YScale0", kQLinearMatMul, [](Call& c) { c.y_scale.data[0] = 0; }, Code::kArgument, "y_scale", "y_scale is 0"},
    {"YScaleMinus0", kQLinearMatMul, [](Call& c) { c.y_scale.data[2] = -0.0F; }, Code::kArgument, "y_scale", "y_scale is 0"},
    {"YScaleOfOne0", kQLinearMatMul, [](Call& c) { c.ones(), c.y_scale.data[0] = 0; }, Code::kArgument, "y_scale", "y_scale is 0"},
    {"HalfAScaleNan", kMatMulIntegerToFloat, [](Call& c) { c.halves(), c.a_scale.halve(kNan); }, Code::kArgument, "a_scale", "a_scale is NaN"},
    {"HalfBScaleInfinite", kQLinearMatMul, [](Call& c) { c.halves(), c.b_scale.as<Float16>()[3] = {0xfc00}; }, Code::kArgument, "b_scale", "b_scale is infinite"},
    {"HalfYScale0", kQLinearMatMul, [](Call& c) { c.halves(), c.y_scale.as<Float16>()[3] = {0x8000}; }, Code::kArgument, "y_scale", "y_scale is 0"},
    {"AScaleOfARowNan", kQLinearMatMul, [](Call& c) { c.a_scale.dims = {2, 2, 1}, c.a_scale.data[3] = kNan; }, Code::kArgument, "a_scale", "a_scale is NaN"},
    {"AScaleOfStridedRowNan", kQLinearMatMul, [](Call& c) { c.a_scale.dims = {2}, c.a_scale.strides = {7}, c.a_scale.data[7] = kNan; }, Code::kArgument, "a_scale", "a_scale is NaN"},
    {"BScaleOfLastMatrixNan", kQLinearMatMul, [](Call& c) { c.b.dims = {2, 3, 4}, c.b_zero.dims = {}, c.b_scale.dims = {2, 1, 4}, c.b_scale.data[7] = kNan; }, Code::kArgument, "b_scale", "b_scale is NaN"},
    {"BScaleOfStridedMatrixNan", kMatMulIntegerToFloat, [](Call& c) { c.b.dims = {2, 3, 4}, c.b_zero.dims = {}, c.b_scale.dims = {2, 1, 4}, c.b_scale.strides = {50, 9, 3}, c.b_scale.data[59] = kNan; }, Code::kArgument, "b_scale", "b_scale is NaN"},
    {"ScaleOfPacked", kQLinearMatMul, [](Call& c) { c.pack_b(), c.b_scale.data[3] = kNan; }, Code::kArgument, "b_scale", "b_scale is NaN"},
    {"ScaleWithoutRows", kMatMulIntegerToFloat, [](Call& c) { c.shapes({2, 0, 3}, {3, 4}, {2, 0, 4}), c.b_scale.data[2] = kNan; }, Code::kArgument, "b_scale", "b_scale is NaN"},
    {"ScaleWithoutDepth", kMatMulIntegerToFloat, [](Call& c) { c.shapes({2, 2, 0}, {0, 4}, {2, 2, 4}), c.b_scale.data[2] = kNan; }, Code::kArgument, "b_scale", "b_scale is NaN"},
    {"TimesBScale", kMatMulIntegerToFloat, [](Call& c) { c.a_scale.fill(-1e30F), c.b_scale.data[3] = 1e30F; }, Code::kArgument, "b_scale", "a_scale * b_scale"},
    {"TimesBScaleBeforeYScale", kQLinearMatMul, [](Call& c) { c.a_scale.fill(1e30F), c.b_scale.fill(-1e30F), c.y_scale.fill(1e30F); }, Code::kArgument, "b_scale", "is not finite in float32"},
    {"DividedByYScale", kQLinearMatMul, [](Call& c) { c.a_scale.fill(1e20F), c.y_scale.data[3] = -1e-30F; }, Code::kArgument, "b_scale", "divided by y_scale"},
    {"NanActivation", kMatMulIntegerToFloat, [](Call& c) { c.args.activation.min = static_cast<double>(kNan); }, Code::kArgument, "activation", "activation has a min that is NaN"},
    {"NanMaxOfActivation", kQLinearMatMul, [](Call& c) { c.args.activation.max = static_cast<double>(kNan); }, Code::kArgument, "activation", "activation has a max that is NaN"},
    {"ReversedActivation", kDynamicQuantizeMatMul, [](Call& c) { c.args.activation = {1, 0}; }, Code::kArgument, "activation", "activation has a min above its max"},

    // Elements of A.
    {"NanInA", kDynamicQuantizeMatMul, [](Call& c) { c.a.data[11] = kNan; }, Code::kArgument, "A", "A has NaN; each element, and their range in float32, must be finite"},
    {"InfinityInA", kDynamicQuantizeMatMul, [](Call& c) { c.a.data[0] = -kInfinity; }, Code::kArgument, "A", "A has an infinite element; each element"},
    {"NanAndInfinityInA", kDynamicQuantizeMatMul, [](Call& c) { c.a.data[0] = kInfinity, c.a.data[5] = kNan; }, Code::kArgument, "A", "A has NaN"},
    {"RangeOfA", kDynamicQuantizeMatMul, [](Call& c) { c.a.data[3] = 3e38F, c.a.data[7] = -1e38F; }, Code::kArgument, "A", "A has an infinite range"},
    {"ScaleOfATimesBScale", kDynamicQuantizeMatMul, [](Call& c) { c.a.data[3] = 3e38F, c.b_scale.data[3] = 1e3F; }, Code::kArgument, "b_scale", "the scale of A times b_scale is not finite in float32; it must be"},
};

class IntegerMatMulError : public ::testing::TestWithParam<Case> {};

TEST_P(IntegerMatMulError, IsReportedAndNothingIsWritten) {
  const IntegerOp op = GetParam().op;
  Call call(op);
  GetParam().spoil(call);
  call.link();
  const std::vector<std::byte> before = call.bytes();
  const size_t in_use = call.context.bytes_in_use();
  const Status status = integer_matmul(call.context, call.args);
  const std::string message = status.message;
  EXPECT_EQ(status.code, GetParam().code) << message;
  EXPECT_STREQ(status.op, name_of(op));
  EXPECT_EQ(message.find(std::string(name_of(op)) + ": "), 0U) << message;
  EXPECT_STREQ(status.argument, GetParam().argument) << message;
  EXPECT_NE(message.find(GetParam().text), std::string::npos) << message;
  EXPECT_TRUE(before == call.bytes());
  EXPECT_EQ(call.context.bytes_in_use(), in_use);
  expect_right(op, call.context);

  // prepare() reports the same, or run() does if the elements of A are to blame.
  const bool blames_elements = message.find("A has NaN") != std::string::npos ||
                               message.find("A has an infinite") != std::string::npos ||
                               message.find("scale of A") != std::string::npos;
  PreparedCall prepared;
  const Status refused = prepare(call.context, call.args, &prepared);
  EXPECT_EQ(refused.ok(), blames_elements) << refused.message;
  EXPECT_STREQ(blames_elements ? wgemm::run(prepared).message : refused.message, status.message);
  EXPECT_TRUE(before == call.bytes());

  // integer_matmul_shape() reports the same, except for values and for missing data. explain()
  // also reports values of scales.
  const bool is_value =
      status.code == Code::kArgument && message.find("must be given") == message.npos &&
      message.find("has none") == message.npos && message.find("packed") == message.npos;
  int64_t dims[kMaxRank];
  size_t rank = 0;
  DType dtype;
  Explanation plan;
  if (message.find("scale") != std::string::npos && !blames_elements &&
      message.find("no data") == std::string::npos) {
    EXPECT_STREQ(explain(call.context, call.args, &plan).message, status.message);
  }
  if (is_value) return;
  EXPECT_STREQ(integer_matmul_shape(call.args, dims, &rank, &dtype).message, status.message);
  EXPECT_STREQ(explain(call.context, call.args, &plan).message, status.message);
  if (std::string(status.argument) == "Y") return;
  call.args.Y = {};
  EXPECT_STREQ(integer_matmul_shape(call.args, dims, &rank, &dtype).message, status.message);
}
INSTANTIATE_TEST_SUITE_P(Cases, IntegerMatMulError, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// Allowed calls
// -------------------------------------------------------------------------------------------------

TEST(IntegerMatMulAllowed, AtTheEdgesOfTheRules) {
  struct Allowed {
    IntegerOp op;
    void (*change)(Call&);
  };
  const Allowed all[] = {
      {kMatMulInteger, [](Call&) {}},
      {kQLinearMatMul, [](Call&) {}},
      {kDynamicQuantizeMatMul, [](Call&) {}},
      {kMatMulIntegerToFloat, [](Call&) {}},
      {kMatMulInteger, [](Call& c) { c.a_zero.is_there = c.b_zero.is_there = false; }},
      {kQLinearMatMul, [](Call& c) { c.a_zero.is_there = c.b_zero.is_there = false; }},
      {kDynamicQuantizeMatMul, [](Call& c) { c.a_zero.is_there = c.b_zero.is_there = false; }},
      {kMatMulIntegerToFloat, [](Call& c) { c.a_zero.is_there = c.b_zero.is_there = false; }},
      {kQLinearMatMul, [](Call& c) { c.y_zero.is_there = false, c.args.Y.dtype = DType::kUInt8; }},
      {kQLinearMatMul,
       [](Call& c) {
         c.y_zero.is_there = false,
         c.args.Y.dtype = c.a.tensor.dtype = c.a_zero.tensor.dtype = DType::kInt8;
       }},
      {kQLinearMatMul, [](Call& c) { c.y_zero.tensor.dtype = c.args.Y.dtype = DType::kUInt8; }},
      {kQLinearMatMul, [](Call& c) { c.halves(); }},
      {kMatMulIntegerToFloat, [](Call& c) { c.halves(); }},
      {kMatMulIntegerToFloat, [](Call& c) { c.halves(), c.bias.is_there = false; }},
      {kMatMulInteger, [](Call& c) { c.args.transA = -5, c.a.dims = {2, 3, 2}; }},
      {kDynamicQuantizeMatMul, [](Call& c) { c.args.transB = 2, c.b.dims = {4, 3}; }},
      {kMatMulInteger, [](Call& c) { c.a_zero.dims = {2}; }},
      {kMatMulInteger, [](Call& c) { c.a_zero.dims = {2, 2, 1}, c.a_zero.strides = {0, 3, kFar}; }},
      {kMatMulInteger, [](Call& c) { c.b_zero.dims = {1, 4}; }},
      {kMatMulInteger, [](Call& c) { c.b.dims = {2, 3, 4}, c.b_zero.dims = {2, 1, 4}; }},
      {kMatMulInteger, [](Call& c) { c.b.dims = {1, 3, 4}, c.b_zero.dims = {1, 1, 4}; }},
      {kQLinearMatMul,
       [](Call& c) {
         c.a_scale.dims = {2, 2, 1}, c.a_zero.dims = {2}, c.y_scale.dims = {1, 1, 1, 1};
       }},
      {kQLinearMatMul,
       [](Call& c) {
         c.shapes({2, 3}, {5, 3, 4}, {5, 2, 4}), c.b_scale.dims = c.b_zero.dims = {},
                                                 c.a_scale.dims = {2, 1},
                                                 c.y_scale.dims = {5, 2, 1};
       }},
      {kMatMulIntegerToFloat, [](Call& c) { c.ones(), c.shapes({3}, {3}, {}), c.bias.dims = {}; }},
      {kMatMulIntegerToFloat,
       [](Call& c) { c.ones(), c.shapes({2, 2, 3}, {3, 1}, {2, 2, 1}), c.bias.dims = {1, 1}; }},
      {kMatMulInteger, [](Call& c) { c.ones(), c.shapes(Sizes(64, 1), {1}, Sizes(63, 1)); }},
      {kQLinearMatMul,
       [](Call& c) {
         c.a_scale.fill(-0.5F), c.b_scale.data[1] = 0, c.b_scale.data[2] = -1e-45F,
                                c.y_scale.data[1] = -3;
       }},
      {kMatMulIntegerToFloat, [](Call& c) { c.a_scale.fill(-0.0F), c.b_scale.data[0] = -3e38F; }},
      {kMatMulIntegerToFloat, [](Call& c) { c.a_scale.fill(0.5F), c.b_scale.data[4] = kNan; }},
      {kQLinearMatMul, [](Call& c) { c.y_scale.data[4] = 0, c.y_scale.strides = {2, 1, 1}; }},
      {kQLinearMatMul, [](Call& c) { c.args.activation = {-1, 6}; }},
      {kMatMulInteger, [](Call& c) { c.args.activation = {-INFINITY, INFINITY}; }},
      {kMatMulIntegerToFloat, [](Call& c) { c.bias.data[0] = kNan, c.bias.data[1] = -kInfinity; }},
      {kDynamicQuantizeMatMul, [](Call& c) { c.a.data[3] = 3e38F, c.b_scale.fill(1e-3F); }},
      {kDynamicQuantizeMatMul, [](Call& c) { c.a.fill(1e-45F); }},
      {kMatMulInteger, [](Call& c) { c.y_strides = {1, 2, 4}; }},
      {kMatMulInteger, [](Call& c) { c.pack_b(); }},
      {kDynamicQuantizeMatMul, [](Call& c) { c.pack_b(); }},
      {kMatMulInteger,
       [](Call& c) {
         c.pack_b({1, 1, 1, 3, 4}), c.b_zero.dims = {1, 1, 1, 1, 4}, c.y_dims = {1, 1, 2, 2, 4};
       }},
      {kQLinearMatMul,
       [](Call& c) { c.pack_b(), c.b.dims = {7, -1}, c.b.tensor = {.dtype = kUnknown}; }},
      {kMatMulInteger, [](Call& c) { c.pack_b(), c.args.Y.data = c.b.data.data(); }},
      {kMatMulInteger,
       [](Call& c) {
         c.b.tensor.dtype = c.b_zero.tensor.dtype = DType::kUInt8,
         c.b.tensor.data = c.a.data.data();
       }},
      {kMatMulInteger,
       [](Call& c) { c.shapes({2, 0, 3}, {3, 4}, {2, 0, 4}), c.args.Y.data = c.a.data.data(); }},
      {kQLinearMatMul,
       [](Call& c) {
         c.ones(), c.shapes({0, 2, 3}, {3, 4}, {0, 2, 4}),
             c.a.tensor.data = c.args.Y.data = nullptr;
       }},
      {kQLinearMatMul,
       [](Call& c) {
         c.shapes({2, 0, 3}, {3, 4}, {2, 0, 4}),
             c.a_scale.dims = {2, 0, 1}, c.y_scale.dims = c.y_zero.dims = {0},
             c.a_scale.tensor.data = c.y_scale.tensor.data = nullptr;
       }},
      {kMatMulIntegerToFloat,
       [](Call& c) {
         c.shapes({2, 2, 3}, {3, 0}, {2, 2, 0}),
             c.b_scale.dims = c.b_zero.dims = c.bias.dims = {0},
             c.b.tensor.data = c.b_scale.tensor.data = c.b_zero.tensor.data = nullptr;
       }},
      {kDynamicQuantizeMatMul,
       [](Call& c) {
         c.shapes({2, 2, 0}, {0, 4}, {2, 2, 4}), c.a.tensor.data = c.b.tensor.data = nullptr;
       }},
  };
  for (const auto& [op, change] : all) {
    Call call(op);
    change(call);
    call.link();
    int64_t dims[kMaxRank];
    size_t rank = 0;
    DType dtype;
    Explanation plan;
    for (const Status& status :
         {integer_matmul_shape(call.args, dims, &rank, &dtype),
          explain(call.context, call.args, &plan), integer_matmul(call.context, call.args)}) {
      EXPECT_TRUE(status.ok()) << &change - &all[0].change << ": " << status.message;
    }
    EXPECT_EQ(Sizes(dims, dims + rank), call.y_dims);
    EXPECT_EQ(dtype, call.args.Y.dtype);
  }
}

// Null data must not be offset by strides.
TEST(IntegerMatMulAllowed, NoDataAndStridesIfKIs0) {
  for (const IntegerOp op : kIntegerOps) {
    Call call(op);
    call.shapes({2, 2, 0}, {2, 0, 4}, {2, 2, 4});
    call.ones();
    call.a.strides = {30, 3, 1}, call.b.strides = {20, 4, 1};
    call.a.tensor.data = call.b.tensor.data = nullptr;
    call.link();
    const Status status = integer_matmul(call.context, call.args);
    EXPECT_TRUE(status.ok()) << status.message;
    PreparedCall prepared;
    EXPECT_TRUE(prepare(call.context, call.args, &prepared).ok());
    EXPECT_TRUE(wgemm::run(prepared).ok());
  }
}

// Every type for every argument: which are refused, and what the error names.
TEST(IntegerMatMulAllowed, TypesOfEveryArgument) {
  for (const IntegerOp op : kIntegerOps) {
    for (int type = 0; type < kDTypeCount; ++type) {
      const auto dtype = static_cast<DType>(type);
      const bool is_8bit = dtype == DType::kInt8 || dtype == DType::kUInt8,
                 is_float = dtype == DType::kFloat32, quantizes_a = op == kDynamicQuantizeMatMul,
                 may_be_half = op == kQLinearMatMul || op == kMatMulIntegerToFloat;
      struct Change {
        const char* argument;
        bool applies, allowed;
        void (*apply)(Call&, DType);
      };
      const Call valid(op);
      const Change changes[] = {
          {"A", true, quantizes_a ? is_float : is_8bit,
           [](Call& c, DType t) { c.a.tensor.dtype = t, c.a_zero.is_there = false; }},
          {"B", true, is_8bit,
           [](Call& c, DType t) { c.b.tensor.dtype = t, c.b_zero.is_there = false; }},
          {"b_scale", valid.b_scale.is_there, is_float,
           [](Call& c, DType t) { c.b_scale.tensor.dtype = t; }},
          {"b_scale", may_be_half, is_float || dtype == DType::kFloat16,
           [](Call& c, DType t) {
             if (t == DType::kFloat32) return;
             c.halves();
             if (t != DType::kFloat16) c.b_scale.fill(1.0F), c.b_scale.tensor.dtype = t;
           }},
          {"bias", valid.bias.is_there, is_float,
           [](Call& c, DType t) { c.bias.tensor.dtype = t; }},
          {"a_zero_point", valid.a_zero.is_there, dtype == DType::kUInt8,
           [](Call& c, DType t) { c.a_zero.tensor.dtype = t; }},
          {"b_zero_point", valid.b_zero.is_there, dtype == DType::kInt8,
           [](Call& c, DType t) { c.b_zero.tensor.dtype = t; }},
          {"y_zero_point", valid.y_zero.is_there, is_8bit,
           [](Call& c, DType t) { c.y_zero.tensor.dtype = c.args.Y.dtype = t; }},
          {"Y", true, dtype == valid.args.Y.dtype, [](Call& c, DType t) { c.args.Y.dtype = t; }},
      };
      for (const Change& change : changes) {
        if (!change.applies) continue;
        Call call(op);
        change.apply(call, dtype);
        call.link();
        const Status status = integer_matmul(call.context, call.args);
        EXPECT_EQ(status.code, change.allowed ? Code::kOk : Code::kDType)
            << name_of(op) << " " << change.argument << " " << dtype_name(dtype) << " "
            << status.message;
        // If two scales have different types, the error may name either.
        if (std::string(status.argument).find("scale") != std::string::npos) continue;
        EXPECT_STREQ(status.argument, change.allowed ? "" : change.argument)
            << name_of(op) << " " << dtype_name(dtype);
      }
    }
  }
}

// A that the call quantizes
// -------------------------------------------------------------------------------------------------

// In any place, layout and batch, in memory or not.
TEST(IntegerMatMulRange, NoElementOfAMayBeNanOrInfinite) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const Sizes& strides : {Sizes{}, {6, 1, 2}, {1, 2, 4}, {30, 7, 2}, {0, 3, 1}}) {
      for (size_t place = 0; place < 45; ++place) {
        for (const bool out_of_core : {false, true}) {
          Call call(kDynamicQuantizeMatMul), good(kDynamicQuantizeMatMul);
          call.a.strides = good.a.strides = strides;
          call.link(), good.link();
          call.args.A.size = good.args.A.size = 200;
          if (strides.empty()) call.args.A.size = good.args.A.size = 12;
          call.a.data[place] = bad;
          bool is_element = false;
          for_each_index(call.a.dims, [&](std::span<const int64_t> index) {
            is_element =
                is_element ||
                std::memcmp(&bad,
                            &(static_cast<const float*>(call.args.A.data)[static_cast<size_t>(
                                strides.empty() ? index[0] * 6 + index[1] * 3 + index[2]
                                                : index[0] * strides[0] + index[1] * strides[1] +
                                                      index[2] * strides[2])]),
                            4) == 0;
          });
          std::optional<OutOfCoreTensor<const void>> hidden;
          if (out_of_core) hidden.emplace(&call.args.A);
          const std::vector<std::byte> before = call.bytes();
          const Status status = integer_matmul(call.context, call.args);
          if (!is_element) {
            EXPECT_TRUE(status.ok()) << status.message;
            ASSERT_TRUE(integer_matmul(good.context, good.args).ok());
            EXPECT_EQ(call.y, good.y);  // what lies between elements is not read
            continue;
          }
          EXPECT_EQ(status.code, Code::kArgument);
          EXPECT_STREQ(status.argument, "A");
          EXPECT_NE(std::string(status.message)
                        .find(std::isnan(bad) ? "A has NaN" : "A has an infinite element"),
                    std::string::npos)
              << status.message;
          EXPECT_TRUE(before == call.bytes());
          EXPECT_EQ(call.context.bytes_in_use(), 0U);
        }
      }
    }
  }
}

// run() checks the elements that A then has. After an error the prepared call is still valid.
TEST(IntegerMatMulRange, APreparedCallChecksEachA) {
  Call call(kDynamicQuantizeMatMul), other(kDynamicQuantizeMatMul);
  call.a.fill(kNan);
  call.link(), other.link();
  PreparedCall prepared;
  ASSERT_TRUE(prepare(call.context, call.args, &prepared).ok());
  for (const float value : {2.5F, kNan, -1.0F, kInfinity, 0.0F, 3e38F}) {
    call.a.fill(value), other.a.fill(value);
    std::ranges::fill(call.y, -7.0F), std::ranges::fill(other.y, -7.0F);
    const Status status = wgemm::run(prepared), direct = integer_matmul(other.context, other.args);
    EXPECT_EQ(status.ok(), std::isfinite(value)) << status.message;
    EXPECT_STREQ(status.message, direct.message);
    EXPECT_EQ(call.y, other.y);
    EXPECT_EQ(call.y[0] == -7.0F, !status.ok());
  }
}

// Shape and explain
// -------------------------------------------------------------------------------------------------

TEST(IntegerMatMulShape, ChecksWithoutData) {
  for (const IntegerOp op : kIntegerOps) {
    Call call(op);
    call.link();
    for (Argument* argument : {&call.a_scale, &call.a_zero, &call.b_scale, &call.b_zero,
                               &call.y_scale, &call.y_zero, &call.bias}) {
      argument->tensor.data = nullptr;
    }
    call.args.A.data = call.args.B.data = nullptr;
    const DType y_type = call.args.Y.dtype;
    call.args.Y = {};
    int64_t dims[kMaxRank];
    size_t rank = 0;
    DType dtype = DType::kInt64;
    Status status = integer_matmul_shape(call.args, dims, &rank, &dtype);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(Sizes(dims, dims + rank), Sizes({2, 2, 4}));
    EXPECT_EQ(dtype, y_type);
    Explanation plan;
    EXPECT_TRUE(explain(call.context, call.args, &plan).ok());

    // The caller's arrays are not in memory yet: space 1 holds B (12 bytes), space 2 the zero
    // points of B (4 bytes).
    call.args.Y = {.dtype = y_type, .dims = call.y_dims};
    call.args.B.place = {1, 0};
    call.b_zero.tensor.place = {2, 4};
    for (const auto& [place, ok] : {std::pair{Place{1, 11}, false},
                                    {Place{1, 12}, true},
                                    {Place{2, 7}, false},
                                    {Place{2, 8}, true},
                                    {Place{3, 0}, true}}) {
      call.args.Y.place = place;
      status = integer_matmul_shape(call.args, dims, &rank, &dtype);
      EXPECT_EQ(status.code, ok ? Code::kOk : Code::kArgument)
          << place.space << " " << place.offset << " " << status.message;
    }
  }
}

TEST(IntegerMatMulShape, DoesNotReadValues) {
  Call call(kQLinearMatMul);
  call.a_scale.fill(kNan), call.b_scale.fill(kInfinity), call.y_scale.fill(0.0F);
  call.link();
  int64_t dims[kMaxRank];
  size_t rank = 0;
  DType dtype;
  EXPECT_TRUE(integer_matmul_shape(call.args, dims, &rank, &dtype).ok());
}

TEST(IntegerMatMulShape, TheTypeOfY) {
  int64_t dims[kMaxRank];
  size_t rank = 0;
  DType dtype;
  const auto type_of = [&](Call& call) {
    call.link();
    call.args.Y = {};
    const Status status = integer_matmul_shape(call.args, dims, &rank, &dtype);
    EXPECT_TRUE(status.ok()) << status.message;
    return dtype;
  };
  Call quantized(kQLinearMatMul), to_float(kMatMulIntegerToFloat);
  EXPECT_EQ(type_of(quantized), DType::kInt8);
  quantized.y_zero.tensor.dtype = DType::kUInt8;
  EXPECT_EQ(type_of(quantized), DType::kUInt8);
  quantized.y_zero.is_there = quantized.a_zero.is_there = false;
  for (const DType a : {DType::kInt8, DType::kUInt8}) {
    quantized.a.tensor.dtype = a;
    EXPECT_EQ(type_of(quantized), a);
  }
  quantized.halves();
  EXPECT_EQ(type_of(quantized), DType::kUInt8);
  EXPECT_EQ(type_of(to_float), DType::kFloat32);
  to_float.halves();
  EXPECT_EQ(type_of(to_float), DType::kFloat16);
}

TEST(IntegerMatMulExplain, OneProductIfVectorsAllow) {
  struct Expected {
    Sizes a, b, a_zero, b_zero;
    int64_t batch, m;
  };
  const Expected all[] = {
      {{4, 3, 5}, {5, 9}, {}, {}, 1, 12},
      {{4, 3, 5}, {5, 9}, {}, {9}, 1, 12},
      {{4, 3, 5}, {5, 9}, {4, 3, 1}, {}, 1, 12},
      {{2, 4, 3, 5}, {5, 9}, {2, 4, 3, 1}, {}, 1, 24},
      {{4, 1, 5}, {5, 9}, {4, 1, 1}, {9}, 1, 4},
      // One value per row of each matrix.
      {{4, 3, 5}, {5, 9}, {3}, {}, 4, 3},
      {{2, 4, 3, 5}, {5, 9}, {3}, {}, 8, 3},
      // Columns of B differ.
      {{4, 3, 5}, {4, 5, 9}, {}, {}, 4, 3},
      {{4, 3, 5}, {4, 5, 9}, {4, 3, 1}, {4, 1, 9}, 4, 3},
      {{2, 4, 3, 5}, {2, 1, 5, 9}, {2, 4, 3, 1}, {2, 1, 1, 9}, 2, 12},
  };
  for (const Expected& expected : all) {
    SCOPED_TRACE(&expected - all);
    IntegerMatMulArgs args;
    args.A = {.dtype = DType::kUInt8, .dims = expected.a};
    args.B = {.dtype = DType::kInt8, .dims = expected.b};
    const ConstTensor a_zero{.dtype = DType::kUInt8, .dims = expected.a_zero},
        b_zero{.dtype = DType::kInt8, .dims = expected.b_zero};
    args.a_zero_point = &a_zero;
    args.b_zero_point = &b_zero;
    Explanation plan;
    const Status status = explain(Context(), args, &plan);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(std::vector({plan.batch, plan.m, plan.n, plan.k}),
              std::vector<int64_t>({expected.batch, expected.m, 9, 5}));
    EXPECT_NE(std::string(plan.kernel).find("i8_"), std::string::npos) << plan.kernel;
    EXPECT_FALSE(plan.direct || plan.transposed || plan.out_of_core);
  }
}

TEST(IntegerMatMulExplain, ScratchHoldsTheQuantizedA) {
  const int64_t b[] = {100, 200};
  Explanation plan, of_bytes;
  for (const int64_t batch : {1, 5, 400}) {
    const int64_t a[] = {batch, 90, 100};
    IntegerMatMulArgs args;
    args.op = kDynamicQuantizeMatMul;
    args.A = {.dims = a};
    args.B = {.dtype = DType::kInt8, .dims = b};
    const float scale = 1;
    const ConstTensor one{.data = &scale};
    args.b_scale = args.a_scale = &one;
    args.a_scale = nullptr;
    ASSERT_TRUE(explain(Context(), args, &plan).ok());
    args.op = kMatMulIntegerToFloat;
    args.A.dtype = DType::kUInt8;
    args.a_scale = &one;
    ASSERT_TRUE(explain(Context(), args, &of_bytes).ok());
    EXPECT_STREQ(plan.kernel, of_bytes.kernel);
    EXPECT_EQ(plan.scratch_bytes - of_bytes.scratch_bytes, (batch * 9000 + 63) / 64 * 64);
  }
}

TEST(IntegerMatMulExplain, KeepsScratchBoundedHoweverLargeTheProduct) {
  const int64_t large[] = {1, 2, 3, 24, 512, 6144, 200000, 10000000};
  for (const int64_t m : large) {
    for (const int64_t n : large) {
      for (const int64_t k : large) {
        const int64_t a[] = {m, k}, b[] = {k, n}, rows[] = {m}, columns[] = {n};
        for (const DType type : {DType::kInt8, DType::kUInt8}) {
          IntegerMatMulArgs args;
          args.A = {nullptr, type, a};
          args.B = {nullptr, type, b};
          const ConstTensor a_zero{nullptr, type, rows}, b_zero{nullptr, type, columns};
          args.a_zero_point = &a_zero;
          args.b_zero_point = &b_zero;
          Explanation plan;
          const Status status = explain(Context(), args, &plan);
          ASSERT_TRUE(status.ok()) << status.message;
          ASSERT_LT(plan.scratch_bytes, 32 << 20) << m << " " << n << " " << k;
        }
      }
    }
  }
}

}  // namespace
}  // namespace wgemm::testing
