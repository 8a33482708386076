// Every rule that a call of matmul_nbits() or pack_nbits() can break: the error's code, argument
// and message, and that the call writes nothing. Then bytes that deserialize() refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "layout.h"
#include "out_of_core_tensor.h"
#include "serialized.h"
#include "values.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40, kMost = int64_t{1} << 53;
constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kUnknown = static_cast<DType>(200);

// A tensor of a call. Its memory has room for all shapes and types of the tests.
struct Argument {
  ConstTensor tensor;
  Sizes dims, strides{};
  std::vector<float> data = std::vector<float>(300);
  bool is_there = true;

  template <typename T>
  Argument(DType dtype, Sizes shape, T value) : dims(std::move(shape)) {
    tensor.dtype = dtype;
    tensor.data = data.data();
    std::fill_n(reinterpret_cast<T*>(data.data()), data.size() * sizeof(float) / sizeof(T), value);
  }
  const ConstTensor* link() {
    tensor.dims = dims;
    tensor.strides = strides;
    return is_there ? &tensor : nullptr;
  }
};

// A valid call: 3 (9 - 2) 0.5 summed over K = 40, plus 1, for each of N = 4 columns. Each test
// makes one thing invalid.
struct Call {
  static constexpr float kResult = 421;

  MatMulNBitsArgs args;
  Argument a{DType::kFloat32, {2, 3, 40}, 3.0F}, b{DType::kUInt8, {4, 3, 8}, uint8_t{0x99}},
      scales{DType::kFloat32, {4, 3}, 0.5F}, zeros{DType::kUInt8, {4, 2}, uint8_t{0x22}},
      bias{DType::kFloat32, {4}, 1.0F};
  std::vector<float> y = std::vector<float>(300, -7.0F);
  Sizes y_dims{2, 3, 4}, y_strides;
  Context context;
  PackedWeights weights;

  Call() {
    args.weights.K = 40;
    args.weights.N = 4;
    args.weights.block_size = 16;
    args.Y = {y.data(), DType::kFloat32};
  }
  void typed() { zeros = Argument(DType::kFloat32, {4, 3}, 2.0F); }
  void pack() {
    link();
    const Status status = pack_nbits(context, args.weights, &weights);
    EXPECT_TRUE(status.ok()) << status.message;
    args.weights = {};  // not read
    b.is_there = scales.is_there = zeros.is_there = false;
    args.packed_weights = &weights;
  }
  void pack_for(PackFor op, DType type, const Sizes& dims) {
    const Status status =
        wgemm::pack(context, {.op = op, .B = {b.data.data(), type, dims}}, &weights);
    EXPECT_TRUE(status.ok()) << status.message;
    args.packed_weights = &weights;
  }
  void link() {
    a.link();
    args.A = a.tensor;
    if (b.link() != nullptr) args.weights.B = b.tensor;
    if (scales.link() != nullptr) args.weights.scales = scales.tensor;
    args.weights.zero_points = zeros.link();
    args.bias = bias.link();
    args.Y.dims = y_dims;
    args.Y.strides = y_strides;
  }
  // All memory that the call must not write.
  Bytes bytes() const {
    Bytes all;
    for (const std::vector<float>* data :
         {&a.data, &b.data, &scales.data, &zeros.data, &bias.data, &y}) {
      const auto* from = reinterpret_cast<const std::byte*>(data->data());
      all.insert(all.end(), from, from + data->size() * sizeof(float));
    }
    return all;
  }
};

void expect_right(Call& call, Context& context) {
  call.link();
  const Status status = matmul_nbits(context, call.args);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(std::ranges::count(call.y, Call::kResult), 24);
  EXPECT_EQ(call.y[24], -7.0F);
}

struct Case {
  const char* name;
  void (*spoil)(Call&);
  Code code;
  const char* argument;
  const char* text;  // occurs in the message
};

const Case kCases[] = {
    // Ranks, sizes and strides.
    {"ARank0", [](Call& c) { c.a.dims = {}; }, Code::kShape, "A",
     "A has rank 0; it must have rank 1 or more"},
    {"ARank65", [](Call& c) { c.a.dims = Sizes(65, 1); }, Code::kShape, "A",
     "A has rank 65; it must be at most 64"},
    {"NegativeA", [](Call& c) { c.a.dims = {-3, 40}; }, Code::kShape, "A",
     "A has shape [-3, 40]; each size must be a whole number from 0 to 2^53 - 1"},
    {"LargeA", [](Call& c) { c.a.dims = {kHuge, kHuge, 40}; }, Code::kShape, "A",
     "A has more than 2^53 elements"},
    {"StridesOfA", [](Call& c) { c.a.strides = {40, 1}; }, Code::kShape, "A",
     "there must be one stride per axis"},
    {"NegativeStrideOfA", [](Call& c) { c.a.strides = {120, -40, 1}; }, Code::kShape, "A",
     "each stride must be a whole number from 0 to 2^53 - 1"},
    {"FarStrideOfA", [](Call& c) { c.a.strides = {kFar, 40, 1}; }, Code::kShape, "A",
     "which reach beyond 2^53 elements"},
    {"ShortA", [](Call& c) { c.a.tensor.size = 239; }, Code::kShape, "A",
     "A has 239 elements; its shape [2, 3, 40] needs 240"},
    {"OtherK", [](Call& c) { c.a.dims = {2, 3, 39}; }, Code::kShape, "A",
     "A has shape [2, 3, 39]; its last size must be K, which is 40 in the weights"},
    {"KOfPadding", [](Call& c) { c.a.dims = {1, 48}; }, Code::kShape, "A",
     "A has shape [1, 48]; its last size must be K, which is 40 in the weights"},
    {"VectorOfOtherK", [](Call& c) { c.a.dims = {1}; }, Code::kShape, "A",
     "A has shape [1]; its last size must be K, which is 40 in the weights"},

    // The format.
    {"Bits0", [](Call& c) { c.args.weights.bits = 0; }, Code::kArgument, "bits",
     "bits is 0; it must be 2, 4 or 8"},
    {"Bits3", [](Call& c) { c.args.weights.bits = 3; }, Code::kArgument, "bits",
     "bits is 3; it must be 2, 4 or 8"},
    {"Bits1", [](Call& c) { c.args.weights.bits = 1; }, Code::kArgument, "bits",
     "bits is 1; it must be 2, 4 or 8"},
    {"Bits16", [](Call& c) { c.args.weights.bits = 16; }, Code::kArgument, "bits",
     "bits is 16; it must be 2, 4 or 8"},
    {"BitsOf2To32Plus4", [](Call& c) { c.args.weights.bits = (int64_t{1} << 32) + 4; },
     Code::kArgument, "bits", "bits is 4294967300; it must be 2, 4 or 8"},
    {"NegativeBits", [](Call& c) { c.args.weights.bits = -4; }, Code::kArgument, "bits",
     "bits is -4; it must be 2, 4 or 8"},
    {"BlockSize0", [](Call& c) { c.args.weights.block_size = 0; }, Code::kArgument, "block_size",
     "block_size is 0; it must be 16, 32, 64, 128 or 256"},
    {"BlockSize8", [](Call& c) { c.args.weights.block_size = 8; }, Code::kArgument, "block_size",
     "block_size is 8; it must be 16, 32, 64, 128 or 256"},
    {"BlockSize24", [](Call& c) { c.args.weights.block_size = 24; }, Code::kArgument, "block_size",
     "block_size is 24; it must be 16, 32, 64, 128 or 256"},
    {"BlockSize512", [](Call& c) { c.args.weights.block_size = 512; }, Code::kArgument,
     "block_size", "block_size is 512; it must be 16, 32, 64, 128 or 256"},
    {"BlockSizeFar", [](Call& c) { c.args.weights.block_size = kFar; }, Code::kArgument,
     "block_size", "it must be 16, 32, 64, 128 or 256"},
    {"NegativeBlockSize", [](Call& c) { c.args.weights.block_size = -16; }, Code::kArgument,
     "block_size", "block_size is -16; it must be 16, 32, 64, 128 or 256"},
    {"NegativeK", [](Call& c) { c.args.weights.K = -40; }, Code::kShape, "K",
     "K is -40; it must be from 0 to 2^53"},
    {"LargeK", [](Call& c) { c.args.weights.K = kMost + 1; }, Code::kShape, "K",
     "K is 9007199254740993; it must be from 0 to 2^53"},
    {"FarK", [](Call& c) { c.args.weights.K = kFar; }, Code::kShape, "K",
     "K is 9223372036854775807; it must be from 0 to 2^53"},
    {"NegativeN", [](Call& c) { c.args.weights.N = -1; }, Code::kShape, "N",
     "N is -1; it must be from 0 to 2^53"},
    {"FarN", [](Call& c) { c.args.weights.N = kFar; }, Code::kShape, "N",
     "it must be from 0 to 2^53"},
    {"LargeWeights", [](Call& c) { c.args.weights.K = kMost, c.args.weights.N = 2; }, Code::kShape,
     "B", "B would have [2, 9007199254740992] codes, which is more than 2^53"},
    {"LargePadding", [](Call& c) { c.args.weights.K = 1, c.args.weights.N = (kMost >> 4) + 1; },
     Code::kShape, "B", "codes, which is more than 2^53"},
    {"LargeBoth", [](Call& c) { c.args.weights.K = c.args.weights.N = kMost; }, Code::kShape, "B",
     "B would have [9007199254740992, 9007199254740992] codes, which is more than 2^53"},

    // B, scales and zero points.
    {"BOfOtherN", [](Call& c) { c.b.dims = {3, 3, 8}; }, Code::kShape, "B",
     "B has shape [3, 3, 8]; for these K, N, bits and block_size it must be [4, 3, 8]"},
    {"BOfOtherBits", [](Call& c) { c.args.weights.bits = 8; }, Code::kShape, "B",
     "B has shape [4, 3, 8]; for these K, N, bits and block_size it must be [4, 3, 16]"},
    {"BOfOtherBlockSize", [](Call& c) { c.args.weights.block_size = 32; }, Code::kShape, "B",
     "it must be [4, 2, 16]"},
    {"BOfOtherK", [](Call& c) { c.args.weights.K = 49; }, Code::kShape, "B",
     "it must be [4, 4, 8]"},
    {"FlatB", [](Call& c) { c.b.dims = {96}; }, Code::kShape, "B",
     "B has shape [96]; for these K, N, bits and block_size it must be [4, 3, 8]"},
    {"BOfTwoAxes", [](Call& c) { c.b.dims = {4, 24}; }, Code::kShape, "B", "B has shape [4, 24]"},
    {"BRank65", [](Call& c) { c.b.dims = Sizes(65, 1); }, Code::kShape, "B",
     "B has rank 65; it must be at most 64"},
    {"ShortB", [](Call& c) { c.b.tensor.size = 95; }, Code::kShape, "B",
     "B has 95 elements; its shape [4, 3, 8] needs 96"},
    {"BWithGaps", [](Call& c) { c.b.strides = {32, 8, 1}; }, Code::kShape, "B",
     "B has strides [32, 8, 1]; it must be contiguous"},
    {"BTransposed", [](Call& c) { c.b.strides = {8, 32, 1}; }, Code::kShape, "B",
     "B has strides [8, 32, 1]; it must be contiguous"},
    {"BRepeats", [](Call& c) { c.b.strides = {0, 8, 1}; }, Code::kShape, "B",
     "B has strides [0, 8, 1]; it must be contiguous"},
    {"BByEverySecond", [](Call& c) { c.b.strides = {48, 16, 2}; }, Code::kShape, "B",
     "it must be contiguous"},
    {"NegativeStrideOfB", [](Call& c) { c.b.strides = {24, -8, 1}; }, Code::kShape, "B",
     "each stride must be a whole number from 0 to 2^53 - 1"},
    {"ScalesTransposed", [](Call& c) { c.scales.dims = {3, 4}; }, Code::kShape, "scales",
     "scales has shape [3, 4]; for these K, N, bits and block_size it must be [4, 3], or flat"},
    {"ScalesOf11", [](Call& c) { c.scales.dims = {11}; }, Code::kShape, "scales",
     "scales has shape [11]"},
    {"ScalesOfThreeAxes", [](Call& c) { c.scales.dims = {4, 3, 1}; }, Code::kShape, "scales",
     "scales has shape [4, 3, 1]"},
    {"ScalesOfColumns", [](Call& c) { c.scales.strides = {1, 4}; }, Code::kShape, "scales",
     "scales has strides [1, 4]; it must be contiguous"},
    {"FlatScalesWithGaps", [](Call& c) { c.scales.dims = {12}, c.scales.strides = {2}; },
     Code::kShape, "scales", "scales has strides [2]; it must be contiguous"},
    {"NegativeOffsetOfScales", [](Call& c) { c.scales.tensor.offset = -1; }, Code::kShape, "scales",
     "scales has offset -1"},
    {"ZeroPointsUnpacked", [](Call& c) { c.zeros.dims = {4, 3}; }, Code::kShape, "zero_points",
     "zero_points has shape [4, 3]; for these K, N, bits and block_size it must be [4, 2], or "
     "flat"},
    {"ZeroPointsWithoutPadding", [](Call& c) { c.zeros.dims = {6}; }, Code::kShape, "zero_points",
     "zero_points has shape [6]"},
    {"TypedZeroPointsPacked", [](Call& c) { c.typed(), c.zeros.dims = {4, 2}; }, Code::kShape,
     "zero_points", "it must be [4, 3], or flat"},
    {"ZeroPointsOfColumns", [](Call& c) { c.zeros.strides = {1, 4}; }, Code::kShape, "zero_points",
     "zero_points has strides [1, 4]; it must be contiguous"},
    {"TypedZeroPointsRepeat", [](Call& c) { c.typed(), c.zeros.strides = {3, 0}; }, Code::kShape,
     "zero_points", "it must be contiguous"},
    {"ShortZeroPoints", [](Call& c) { c.zeros.tensor.size = 7; }, Code::kShape, "zero_points",
     "zero_points has 7 elements; its shape [4, 2] needs 8"},

    // Types.
    {"AUnknownType", [](Call& c) { c.a.tensor.dtype = kUnknown; }, Code::kDType, "A",
     "A has the unknown type 200; see DType"},
    {"ScalesUnknownType", [](Call& c) { c.scales.tensor.dtype = kUnknown; }, Code::kDType, "scales",
     "scales has the unknown type 200; see DType"},
    {"ZeroPointsUnknownType", [](Call& c) { c.zeros.tensor.dtype = kUnknown; }, Code::kDType,
     "zero_points", "zero_points has the unknown type 200; see DType"},
    {"BUnknownType", [](Call& c) { c.b.tensor.dtype = kUnknown; }, Code::kDType, "B",
     "unknown type 200"},
    {"YUnknownType", [](Call& c) { c.args.Y.dtype = kUnknown; }, Code::kDType, "Y",
     "unknown type 200"},
    {"DoubleA", [](Call& c) { c.a.tensor.dtype = DType::kFloat64; }, Code::kDType, "A",
     "A has type float64; it must be float32, float16 or bfloat16"},
    {"BytesOfA", [](Call& c) { c.a.tensor.dtype = DType::kInt8; }, Code::kDType, "A",
     "A has type int8; it must be float32, float16 or bfloat16"},
    {"SignedB", [](Call& c) { c.b.tensor.dtype = DType::kInt8; }, Code::kDType, "B",
     "B has type int8; it must be uint8"},
    {"WordsOfB", [](Call& c) { c.b.tensor.dtype = DType::kInt32; }, Code::kDType, "B",
     "B has type int32; it must be uint8"},
    {"DoubleScales", [](Call& c) { c.scales.tensor.dtype = DType::kFloat64; }, Code::kDType,
     "scales", "scales has type float64; it must be float32, float16 or bfloat16"},
    {"HalfScales", [](Call& c) { c.scales.tensor.dtype = DType::kFloat16; }, Code::kDType, "scales",
     "scales has type float16 and A has type float32; they must be the same"},
    {"HalfA", [](Call& c) { c.a.tensor.dtype = DType::kBFloat16; }, Code::kDType, "scales",
     "scales has type float32 and A has type bfloat16; they must be the same"},
    {"SignedZeroPoints", [](Call& c) { c.zeros.tensor.dtype = DType::kInt8; }, Code::kDType,
     "zero_points", "zero_points has type int8; it must be uint8, or float32 as scales"},
    {"HalfZeroPoints", [](Call& c) { c.typed(), c.zeros.tensor.dtype = DType::kFloat16; },
     Code::kDType, "zero_points",
     "zero_points has type float16; it must be uint8, or float32 as scales"},
    {"HalfBias", [](Call& c) { c.bias.tensor.dtype = DType::kFloat16; }, Code::kDType, "bias",
     "bias has type float16 and A has type float32; they must be the same"},
    {"HalfY", [](Call& c) { c.args.Y.dtype = DType::kFloat16; }, Code::kDType, "Y",
     "Y has type float16 and A has type float32; they must be the same"},

    // Attributes.
    {"NegativeLevel", [](Call& c) { c.args.accuracy_level = -1; }, Code::kArgument,
     "accuracy_level", "accuracy_level is -1; it must be from 0 to 4"},
    {"Level5", [](Call& c) { c.args.accuracy_level = 5; }, Code::kArgument, "accuracy_level",
     "accuracy_level is 5; it must be from 0 to 4"},
    {"NanActivation", [](Call& c) { c.args.activation.min = kNan; }, Code::kArgument, "activation",
     "activation has a min that is NaN"},
    {"ReversedActivation", [](Call& c) { c.args.activation = {1, 0}; }, Code::kArgument,
     "activation", "activation has a min above its max"},

    // Packed weights.
    {"Empty", [](Call& c) { c.args.packed_weights = &c.weights; }, Code::kArgument, "B",
     "B is an empty PackedWeights; pack() fills it"},
    {"PackedForGemm", [](Call& c) { c.pack_for(PackFor::kGemm, DType::kFloat32, {40, 4}); },
     Code::kPackMismatch, "B", "B is packed for gemm and matmul; pack it for matmulNBits"},
    {"PackedForQGemm", [](Call& c) { c.pack_for(PackFor::kQGemm, DType::kUInt8, {40, 4}); },
     Code::kPackMismatch, "B", "B is packed for qgemm; pack it for matmulNBits"},
    {"PackedOfOtherK", [](Call& c) { c.pack(), c.a.dims = {5, 48}; }, Code::kShape, "A",
     "A has shape [5, 48]; its last size must be K, which is 40 in the weights"},
    {"PackedOfFloats", [](Call& c) { c.pack(), c.a.tensor.dtype = DType::kFloat16; }, Code::kDType,
     "scales", "scales has type float32 and A has type float16; they must be the same"},
    {"PackedAndLevel5", [](Call& c) { c.pack(), c.args.accuracy_level = 5; }, Code::kArgument,
     "accuracy_level", "accuracy_level is 5"},
    {"PackedAndBiasOf3", [](Call& c) { c.pack(), c.bias.dims = {3}; }, Code::kShape, "bias",
     "bias has shape [3]; it must have N elements, of shape [4]"},
    {"PackedAndYIsA", [](Call& c) { c.pack(), c.args.Y.data = c.a.data.data(); }, Code::kArgument,
     "Y", "Y overlaps A in memory; it must overlap no input"},

    // bias and Y.
    {"BiasOf1", [](Call& c) { c.bias.dims = {1}; }, Code::kShape, "bias",
     "bias has shape [1]; it must have N elements, of shape [4]"},
    {"BiasRow", [](Call& c) { c.bias.dims = {1, 4}; }, Code::kShape, "bias",
     "bias has shape [1, 4]; it must have N elements, of shape [4]"},
    {"BiasScalar", [](Call& c) { c.bias.dims = {}; }, Code::kShape, "bias", "bias has shape []"},
    {"NegativeStrideOfBias", [](Call& c) { c.bias.strides = {-1}; }, Code::kShape, "bias",
     "each stride must be a whole number from 0 to 2^53 - 1"},
    {"LargeY",
     [](Call& c) {
       c.a.dims = {kHuge, 0}, c.args.weights.K = 0, c.args.weights.N = kHuge,
       c.b.dims = {kHuge, 0, 8}, c.scales.dims = {0}, c.zeros.dims = {0};
     },
     Code::kShape, "Y",
     "Y would have shape [1099511627776, 1099511627776], of more than 2^53 elements"},
    {"YShape", [](Call& c) { c.y_dims = {2, 4, 3}; }, Code::kShape, "Y",
     "Y has shape [2, 4, 3]; the result has shape [2, 3, 4]"},
    {"YRank", [](Call& c) { c.y_dims = {6, 4}; }, Code::kShape, "Y",
     "Y has shape [6, 4]; the result has shape [2, 3, 4]"},
    {"YOfAVector", [](Call& c) { c.a.dims = {40}, c.y_dims = {1, 4}; }, Code::kShape, "Y",
     "Y has shape [1, 4]; the result has shape [4]"},
    {"YRepeats", [](Call& c) { c.y_strides = {0, 4, 1}; }, Code::kShape, "Y",
     "no two elements share memory"},
    {"ShortY", [](Call& c) { c.args.Y.size = 23; }, Code::kShape, "Y",
     "Y has 23 elements; its shape [2, 3, 4] needs 24"},
    {"YIsA", [](Call& c) { c.args.Y.data = c.a.data.data(); }, Code::kArgument, "Y",
     "Y overlaps A in memory; it must overlap no input"},
    {"YIsB", [](Call& c) { c.args.Y.data = c.b.data.data(); }, Code::kArgument, "Y",
     "Y overlaps B in memory; it must overlap no input"},
    {"YIsScales", [](Call& c) { c.args.Y.data = c.scales.data.data(); }, Code::kArgument, "Y",
     "Y overlaps scales in memory; it must overlap no input"},
    {"YIsZeroPoints", [](Call& c) { c.args.Y.data = c.zeros.data.data(); }, Code::kArgument, "Y",
     "Y overlaps zero_points in memory; it must overlap no input"},
    {"YIsBias", [](Call& c) { c.args.Y.data = c.bias.data.data(); }, Code::kArgument, "Y",
     "Y overlaps bias in memory; it must overlap no input"},
    {"YBeginsInB", [](Call& c) { c.args.Y.data = c.b.data.data() + 23; }, Code::kArgument, "Y",
     "Y overlaps B"},
    {"YBeginsInScales", [](Call& c) { c.args.Y.data = c.scales.data.data() + 11; }, Code::kArgument,
     "Y", "Y overlaps scales"},
    {"YEndsInZeroPoints",
     [](Call& c) { c.zeros.tensor.data = c.y.data(), c.zeros.tensor.offset = 95; }, Code::kArgument,
     "Y", "Y overlaps zero_points"},

    // Data.
    {"NoDataOfA", [](Call& c) { c.a.tensor.data = nullptr; }, Code::kArgument, "A",
     "A has no data"},
    {"NoDataOfB", [](Call& c) { c.b.tensor.data = nullptr; }, Code::kArgument, "B",
     "B has no data"},
    {"NoDataOfScales", [](Call& c) { c.scales.tensor.data = nullptr; }, Code::kArgument, "scales",
     "scales has no data"},
    {"NoDataOfZeroPoints", [](Call& c) { c.zeros.tensor.data = nullptr; }, Code::kArgument,
     "zero_points", "zero_points has no data"},
    {"NoDataOfBias", [](Call& c) { c.bias.tensor.data = nullptr; }, Code::kArgument, "bias",
     "bias has no data"},
    {"NoDataOfY", [](Call& c) { c.args.Y.data = nullptr; }, Code::kArgument, "Y", "Y has no data"},
};

class MatMulNBitsError : public ::testing::TestWithParam<Case> {};

TEST_P(MatMulNBitsError, IsReportedAndNothingIsWritten) {
  const auto& [name, spoil, code, argument, text] = GetParam();
  Call call;
  spoil(call);
  call.link();
  const Bytes before = call.bytes();
  const size_t in_use = call.context.bytes_in_use();
  const Status status = matmul_nbits(call.context, call.args);
  const std::string message = status.message;
  EXPECT_EQ(status.code, code) << message;
  EXPECT_STREQ(status.op, "matmulNBits");
  EXPECT_EQ(message.find("matmulNBits: "), 0U) << message;
  EXPECT_STREQ(status.argument, argument) << message;
  EXPECT_NE(message.find(text), std::string::npos) << message;
  PreparedCall prepared;
  EXPECT_STREQ(prepare(call.context, call.args, &prepared).message, status.message);
  EXPECT_TRUE(prepared.empty());
  EXPECT_TRUE(before == call.bytes());
  EXPECT_EQ(call.context.bytes_in_use(), in_use);
  Call valid;
  expect_right(valid, call.context);

  // matmul_nbits_shape() and explain() report the same, except for missing data.
  int64_t dims[kMaxRank];
  size_t rank = 0;
  Explanation plan;
  const bool is_data = message.find("no data") != std::string::npos;
  EXPECT_STREQ(matmul_nbits_shape(call.args, dims, &rank).message, is_data ? "" : status.message);
  EXPECT_STREQ(explain(call.context, call.args, &plan).message, is_data ? "" : status.message);

  // pack_nbits() reports the same of weights.
  if (call.args.packed_weights != nullptr || message.find(" and ") == std::string::npos) {
    const std::string argument_name = argument;
    for (const char* of_weights : {"bits", "block_size", "K", "N", "B", "scales", "zero_points"}) {
      if (argument_name != of_weights || call.args.packed_weights != nullptr) continue;
      PackedWeights weights;
      const Status refused = pack_nbits(call.context, call.args.weights, &weights);
      EXPECT_EQ(refused.code, code) << refused.message;
      EXPECT_STREQ(refused.argument, argument);
      EXPECT_STREQ(refused.op, "pack");
      EXPECT_EQ(std::string(refused.message), "pack" + message.substr(std::strlen("matmulNBits")));
      EXPECT_TRUE(weights.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, MatMulNBitsError, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(MatMulNBitsRules, WhatIsAllowed) {
  using Change = void (*)(Call&);
  const Change changes[] = {
      [](Call&) {},
      [](Call& c) { c.pack(); },
      [](Call& c) { c.typed(); },
      [](Call& c) { c.typed(), c.zeros.dims = {12}, c.pack(); },
      [](Call& c) { c.scales.dims = {12}, c.zeros.dims = {8}; },
      [](Call& c) {
        c.b.strides = {24, 8, 1}, c.scales.strides = {3, 1}, c.zeros.strides = {2, 1};
      },
      [](Call& c) { c.b.tensor.offset = 5, c.scales.tensor.offset = 3, c.zeros.tensor.offset = 7; },
      [](Call& c) { c.bias.strides = {0}; },
      [](Call& c) { c.bias.strides = {9}, c.bias.tensor.offset = 1; },
      [](Call& c) { c.a.strides = {0, 0, 0}; },
      [](Call& c) { c.args.accuracy_level = 3; },
      // Weights are not read if there are packed ones.
      [](Call& c) { c.pack(), c.args.weights.K = -1, c.args.weights.bits = 5; },
      // The values of padding do not count: 8 codes, and a zero point per column.
      [](Call& c) {
        for (int64_t column = 0; column < 4; ++column) {
          auto* const b = reinterpret_cast<uint8_t*>(c.b.data.data());
          std::fill_n(b + column * 24 + 20, 4, uint8_t{0x5f});
          reinterpret_cast<uint8_t*>(c.zeros.data.data())[column * 2 + 1] = 0xf2;
        }
      },
  };
  for (const Change& change : changes) {
    SCOPED_TRACE(&change - changes);
    Call call;
    change(call);
    expect_right(call, call.context);
  }
}

// Without rows, columns or steps of K. Empty tensors need no data, nor particular strides.
TEST(MatMulNBitsRules, EmptyProducts) {
  struct Shape {
    int64_t m, n, k;
  };
  for (const int64_t level : {0, 4}) {
    for (const bool packed : {false, true}) {
      for (const bool has_bias : {false, true}) {
        for (const auto& [m, n, k] :
             {Shape{0, 4, 40}, Shape{3, 0, 40}, Shape{3, 4, 0}, Shape{0, 0, 0}, Shape{3, 0, 0}}) {
          Call c;
          const int64_t blocks = (k + 15) / 16;
          c.a.dims = {m, k};
          c.b.dims = {n, blocks, 8}, c.b.strides = {77, 0, 3};
          if (n * blocks != 0) c.b.strides = {};
          c.scales.dims = {n, blocks}, c.zeros.dims = {n, (blocks * 4 + 7) / 8};
          c.bias.dims = {n}, c.bias.is_there = has_bias;
          c.y_dims = {m, n};
          c.args.weights.K = k, c.args.weights.N = n;
          c.args.accuracy_level = level;
          if (n * blocks == 0)
            c.b.tensor.data = c.scales.tensor.data = c.zeros.tensor.data = nullptr;
          if (m * k == 0) c.a.tensor.data = nullptr;
          if (m * n == 0) c.args.Y.data = nullptr;
          if (packed) c.pack();
          c.link();
          for (const bool by_prepared : {false, true}) {
            PreparedCall prepared;
            Status status = by_prepared ? prepare(c.context, c.args, &prepared)
                                        : matmul_nbits(c.context, c.args);
            if (by_prepared && status.ok()) status = wgemm::run(prepared);
            ASSERT_TRUE(status.ok()) << status.message;
            EXPECT_EQ(std::ranges::count(c.y, has_bias ? 1.0F : 0.0F), m * n);
            EXPECT_EQ(std::ranges::count(c.y, -7.0F), 300 - m * n);
            std::ranges::fill(c.y, -7.0F);
          }
        }
      }
    }
  }
}

TEST(MatMulNBitsRules, OtherOperationsRefuseTheWeights) {
  Call c;
  c.pack();
  const int64_t a_dims[] = {3, 40}, y_dims[] = {3, 4};
  const float scale = 1;
  const auto expect_refused = [&](const Status& status, const char* op, const char* wanted) {
    EXPECT_EQ(status.code, Code::kPackMismatch) << status.message;
    EXPECT_STREQ(status.op, op);
    EXPECT_NE(std::string(status.message)
                  .find(" is packed for matmulNBits; pack it for " + std::string(wanted)),
              std::string::npos)
        << status.message;
    EXPECT_EQ(std::ranges::count(c.y, -7.0F), 300);
  };
  GemmArgs of_gemm;
  of_gemm.A = {c.a.data.data(), DType::kFloat32, a_dims};
  of_gemm.packed_B = &c.weights;
  of_gemm.Y = {c.y.data(), DType::kFloat32, y_dims};
  expect_refused(gemm(c.context, of_gemm), "gemm", "gemm");
  MatMulArgs of_matmul;
  of_matmul.src = of_gemm.A;
  of_matmul.packed_weights = &c.weights;
  of_matmul.dst = of_gemm.Y;
  expect_refused(matmul(c.context, of_matmul), "matmul", "matmul");
  QGemmArgs of_qgemm;
  of_qgemm.A = {c.a.data.data(), DType::kUInt8, a_dims};
  of_qgemm.packed_B = &c.weights;
  of_qgemm.a_scale = of_qgemm.b_scale = {.data = &scale};
  of_qgemm.Y = of_gemm.Y;
  expect_refused(qgemm(c.context, of_qgemm), "qgemm", "qgemm");
  IntegerMatMulArgs of_integers;
  of_integers.A = of_qgemm.A;
  of_integers.packed_B = &c.weights;
  of_integers.Y = {c.y.data(), DType::kInt32, y_dims};
  expect_refused(integer_matmul(c.context, of_integers), "matmulInteger", "qgemm");
  PackedWeights weights;
  const Status status = wgemm::pack(
      c.context, {.op = PackFor::kMatMulNBits, .B = {c.b.data.data(), DType::kUInt8, a_dims}},
      &weights);
  EXPECT_EQ(status.code, Code::kArgument);
  EXPECT_STREQ(status.message,
               "pack: op is matmulNBits and B is a tensor; it must be NBitsWeights");
}

// Sizes up to 2^53 are planned without an overflow, which UBSan would find. Scratch stays bounded.
TEST(MatMulNBitsRules, HugeProductsArePlanned) {
  const int64_t large[] = {1, 3, 24, 6144, 10000000, int64_t{1} << 33, kMost};
  int planned = 0;
  for (const int64_t m : large) {
    for (const int64_t n : large) {
      for (const int64_t k : large) {
        for (const int64_t bits : {2, 4, 8}) {
          for (const int64_t level : {0, 4}) {
            const int64_t block_size = bits == 4 ? 16 : 256,
                          blocks = (k + block_size - 1) / block_size;
            const Sizes a{m, k}, b{n, blocks, block_size * bits / 8}, s{n, blocks};
            MatMulNBitsArgs args;
            args.A.dims = a;
            args.weights.B = {.dtype = DType::kUInt8, .dims = b};
            args.weights.scales.dims = s;
            args.weights.K = k;
            args.weights.N = n;
            args.weights.bits = bits;
            args.weights.block_size = block_size;
            args.accuracy_level = level;
            Explanation plan;
            const Status status = explain(Context(), args, &plan);
            const auto product = [](int64_t x, int64_t y) {
              return static_cast<double>(x) * static_cast<double>(y);
            };
            const bool fits = product(m, k) <= 0x1p53 && product(m, n) <= 0x1p53 &&
                              product(n, blocks * block_size) <= 0x1p53;
            EXPECT_EQ(status.ok(), fits) << status.message;
            if (!status.ok()) continue;
            ++planned;
            EXPECT_LT(plan.scratch_bytes, 32 << 20) << m << " " << n << " " << k << plan.kernel;
          }
        }
      }
    }
  }
  EXPECT_GT(planned, 500);
}

// Weights are in memory. Only A, bias and Y may be out-of-core.
TEST(MatMulNBitsRules, WeightsAreNotOutOfCore) {
  Call c;
  c.link();
  const OutOfCoreTensor outside(&c.args.weights.B);
  const Status status = matmul_nbits(c.context, c.args);
  EXPECT_STREQ(status.message, "matmulNBits: B has no data");
}

// deserialize() ----------------------------------------------------------------------------------

Bytes bytes_of_call(Call& c) {
  c.pack();
  return serialized(c.weights);
}

TEST(MatMulNBitsBytes, OfAnotherFormat) {
  Call call;
  const Bytes good = bytes_of_call(call);
  const auto changed = [&](size_t at, auto value) {
    Bytes bytes(good);
    put(&bytes, at, value);
    return bytes;
  };
  for (const int bits : {0, 1, 3, 5, 16, 65535}) {
    expect_refused_if_sealed(
        changed(kBitsAt, static_cast<uint16_t>(bits)),
        bits == 0 ? "has" : "bits is " + std::to_string(bits) + "; it must be 2, 4 or 8");
  }
  for (const int bits : {2, 8})
    expect_refused_if_sealed(changed(kBitsAt, static_cast<uint16_t>(bits)), "bytes");
  for (const int size : {0, 1, 8, 15, 17, 48, 512, 65535}) {
    expect_refused_if_sealed(changed(kSizeAt, static_cast<uint16_t>(size)),
                             "block_size is " + std::to_string(size));
  }
  for (const int kind : {3, 4, 254, 255})
    expect_refused_if_sealed(
        changed(kKindAt, static_cast<uint16_t>(kind)),
        "bytes has zero points of kind " + std::to_string(kind) + "; it must be from 0 to 2");
  for (const int kind : {256, 257, 258, 65535})
    expect_refused_if_sealed(changed(kKindAt, static_cast<uint16_t>(kind)), "another layout");
  for (const int kind : {0, 2})
    expect_refused_if_sealed(changed(kKindAt, static_cast<uint16_t>(kind)), "bytes");
  expect_refused_if_sealed(changed(40, uint16_t{16}), "has panels of 16 columns");
  for (const int64_t rank : {0, 1, 3, 4, 64})
    expect_refused_if_sealed(
        changed(kRankAt, rank),
        rank < 3 ? "bytes has rank " + std::to_string(rank) + "; it must be 2" : "");
  expect_refused_if_sealed(changed(kRankAt, int64_t{65}), "has a rank above 64");
  for (const size_t at : {kKAt, kNAt}) {
    const std::string name = at == kKAt ? "K is " : "N is ";
    for (const int64_t size : {int64_t{-1}, kMost + 1, kFar, std::numeric_limits<int64_t>::min()})
      expect_refused_if_sealed(changed(at, size), name);
    expect_refused_if_sealed(changed(at, kMost), "of more than 2^53 codes");
    for (const int64_t size : {0, 64, 1 << 20, 100})
      expect_refused_if_sealed(changed(at, size), "bytes");
  }
  for (const char* type : {"float64", "int8", "int32"}) {
    Bytes bytes(good);
    std::memset(bytes.data() + 32, 0, 8);
    std::memcpy(bytes.data() + 32, type, std::strlen(type));
    expect_refused_if_sealed(bytes, std::string("bytes has type ") + type);
  }
  for (size_t size = 0; size < good.size(); ++size)
    expect_refused_if_sealed(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)),
                             "");
  Bytes longer(good);
  longer.resize(good.size() + 8);
  expect_refused_if_sealed(longer, "bytes");
}

TEST(MatMulNBitsBytes, PaddingMustBeZeros) {
  for (const int64_t bits : {2, 4, 8}) {
    for (const int kind : {0, 1, 2}) {
      Call call;
      call.args.weights.bits = bits;
      call.b.dims = {4, 3, 2 * bits};
      call.zeros.dims = {4, (3 * bits + 7) / 8};
      if (kind == 2) call.typed();
      call.zeros.is_there = kind != 0;
      const Bytes good = bytes_of_call(call);
      // The bits that are not padding: codes, scales and zero points of 4 columns.
      const int64_t zero_point_bits = kind == 0 ? 0 : kind == 1 ? bits : 32;
      EXPECT_EQ(count_bits(good), 4 * (40 * bits + 3 * 32 + 3 * zero_point_bits));
    }
  }
}

}  // namespace
}  // namespace wgemm::testing
