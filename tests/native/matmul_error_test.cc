// Every rule that a call of matmul() can break: the error's code, argument and message, and that
// the call writes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

using Sizes = std::vector<int64_t>;

// A tensor of a call. Its memory has room for all shapes and types of the tests.
struct Argument {
  ConstTensor tensor;
  Sizes dims, strides{};
  std::vector<float> data;
  bool is_there = true;

  Argument(Sizes shape, float value) : dims(std::move(shape)), data(200, value) {
    tensor.data = data.data();
  }
  void link() {
    tensor.dims = dims;
    tensor.strides = strides;
  }
};

// A valid call, (2, 2, 3) x (3, 4) + (4), all ones. Each test makes one thing invalid.
struct Call {
  Argument src{{2, 2, 3}, 1}, weights{{3, 4}, 1}, bias{{4}, 1};
  std::vector<float> dst = std::vector<float>(200, -7.0F);
  Sizes dst_dims{2, 2, 4}, dst_strides;
  MatMulArgs args;
  Context context;
  PackedWeights packed;

  Call() { args.dst = {dst.data(), DType::kFloat32}; }
  void types(DType type) {
    src.tensor.dtype = weights.tensor.dtype = bias.tensor.dtype = args.dst.dtype = type;
  }
  void flags() { args.transpose_a = args.transpose_b = 1; }
  void shapes(Sizes a, Sizes b, Sizes y) {
    src.dims = std::move(a), weights.dims = std::move(b), dst_dims = std::move(y);
  }
  void pack_weights(Sizes dims = {3, 4}, DType type = DType::kFloat32) {
    const bool for_qgemm = compute_type(type) == DType::kInt8;
    const PackArgs pack_args{.op = for_qgemm ? PackFor::kQGemm : PackFor::kGemm,
                             .B = {weights.data.data(), type, dims}};
    const Status status = pack(context, pack_args, &packed);
    EXPECT_TRUE(status.ok()) << status.message;
    args.packed_weights = &packed;
  }
  void link() {
    src.link(), weights.link(), bias.link();
    args.src = src.tensor;
    args.weights = weights.tensor;
    args.bias = bias.is_there ? &bias.tensor : nullptr;
    args.dst.dims = dst_dims;
    args.dst.strides = dst_strides;
  }
  bool holds_what_it_held() const {
    const auto all = [](const std::vector<float>& data, float value) {
      return std::ranges::count(data, value) == std::ssize(data);
    };
    return all(src.data, 1) && all(weights.data, 1) && all(bias.data, 1) && all(dst, -7);
  }
};

struct Case {
  const char* name;
  void (*spoil)(Call&);
  Code code;
  const char* argument;
  const char* text;  // occurs in the message
};

constexpr int64_t kHuge = int64_t{1} << 40;
constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kUnknown = static_cast<DType>(200);

const Case kCases[] = {
    // Ranks, sizes and strides.
    {"SrcRank0", [](Call& c) { c.src.dims = {}; }, Code::kShape, "src", "src has rank 0; it must have rank 1 or more"},
    {"WeightsRank0", [](Call& c) { c.weights.dims = {}; }, Code::kShape, "weights", "weights has rank 0; it must have rank 1 or more"},
    {"SrcRank65", [](Call& c) { c.src.dims = Sizes(65, 1); }, Code::kShape, "src", "src has rank 65; it must be at most 64"},
    {"WeightsRank65", [](Call& c) { c.weights.dims = Sizes(65, 1); }, Code::kShape, "weights", "weights has rank 65; it must be at most 64"},
    {"BiasRank65", [](Call& c) { c.bias.dims = Sizes(65, 1); }, Code::kShape, "bias", "bias has rank 65; it must be at most 64"},
    {"DstRank65", [](Call& c) { c.dst_dims = Sizes(65, 1); }, Code::kShape, "dst", "dst has rank 65; it must be at most 64"},
    {"NegativeSrc", [](Call& c) { c.src.dims = {2, -2, 3}; }, Code::kShape, "src", "src has shape [2, -2, 3]; each size must be a whole number from 0 to 2^53 - 1"},
    {"NegativeWeights", [](Call& c) { c.weights.dims = {3, -4}; }, Code::kShape, "weights", "each size must be a whole number from 0 to 2^53 - 1"},
    {"NegativeBias", [](Call& c) { c.bias.dims = {-1}; }, Code::kShape, "bias", "each size must be a whole number from 0 to 2^53 - 1"},
    {"NegativeDst", [](Call& c) { c.dst_dims = {2, -2, 4}; }, Code::kShape, "dst", "each size must be a whole number from 0 to 2^53 - 1"},
    {"LargeSrc", [](Call& c) { c.src.dims = {kHuge, kHuge, 3}; }, Code::kShape, "src", "src has more than 2^53 elements"},
    {"LargeWeightsOfNone", [](Call& c) { c.weights.dims = {0, kHuge, kHuge}; }, Code::kShape, "weights", "more than 2^53 elements"},
    {"LargeBias", [](Call& c) { c.bias.dims = {kHuge, kHuge}; }, Code::kShape, "bias", "bias has more than 2^53 elements"},
    {"LargeDst", [](Call& c) { c.dst_dims = {kHuge, kHuge, 4}; }, Code::kShape, "dst", "dst has more than 2^53 elements"},
    {"LargeProduct", [](Call& c) { c.shapes({kHuge, 0}, {0, kHuge}, {2, 4}); }, Code::kShape, "dst",
     "dst would have shape [1099511627776, 1099511627776], of more than 2^53 elements"},
    {"LargeBatch", [](Call& c) { c.shapes({kHuge, 1, 1, 3}, {kHuge, 3, 4}, {2, 2, 4}); }, Code::kShape, "dst",
     "dst would have shape [1099511627776, 1099511627776, 1, 4], of more than 2^53 elements"},
    {"LargeProductOfNone", [](Call& c) { c.shapes({kHuge, 0, 3}, {3, kHuge}, {2, 2, 4}); }, Code::kShape, "dst", "more than 2^53"},
    {"JustAbove2To53", [](Call& c) { c.shapes({(int64_t{1} << 51) + 1, 1, 3}, {3, 4}, {1}); }, Code::kShape, "dst", "more than 2^53"},
    {"StridesOfSrc", [](Call& c) { c.src.strides = {3, 1}; }, Code::kShape, "src",
     "src has strides [3, 1] and shape [2, 2, 3]; there must be one stride per axis"},
    {"StridesOfWeights", [](Call& c) { c.weights.strides = {3, 1, 1}; }, Code::kShape, "weights", "there must be one stride per axis"},
    {"StridesOfBias", [](Call& c) { c.bias.strides = {3, 1}; }, Code::kShape, "bias", "there must be one stride per axis"},
    {"StridesOfDst", [](Call& c) { c.dst_strides = {1}; }, Code::kShape, "dst", "there must be one stride per axis"},
    {"NegativeStrideOfSrc", [](Call& c) { c.src.strides = {6, -3, 1}; }, Code::kShape, "src", "each stride must be a whole number from 0 to 2^53 - 1"},
    {"NegativeStrideOfWeights", [](Call& c) { c.weights.strides = {-4, 1}; }, Code::kShape, "weights", "each stride must be a whole number from 0 to 2^53 - 1"},
    {"NegativeStrideOfBias", [](Call& c) { c.bias.strides = {-1}; }, Code::kShape, "bias", "each stride must be a whole number from 0 to 2^53 - 1"},
    {"NegativeStrideOfDst", [](Call& c) { c.dst_strides = {8, 4, -1}; }, Code::kShape, "dst", "each stride must be a whole number from 0 to 2^53 - 1"},
    {"FarStride", [](Call& c) { c.src.strides = {int64_t{1} << 60, 3, 1}; }, Code::kShape, "src", "which reach beyond 2^53 elements"},
    {"ShortSrc", [](Call& c) { c.src.tensor.size = 11; }, Code::kShape, "src", "src has 11 elements; its shape [2, 2, 3] needs 12"},
    {"LongWeights", [](Call& c) { c.weights.tensor.size = 13; }, Code::kShape, "weights",
     "weights has 13 elements; its shape [3, 4] needs 12"},
    {"ShortBias", [](Call& c) { c.bias.tensor.size = 3; }, Code::kShape, "bias", "bias has 3 elements; its shape [4] needs 4"},
    {"ShortDst", [](Call& c) { c.dst_strides = {9, 4, 1}, c.args.dst.size = 16; }, Code::kShape, "dst",
     "dst has 16 elements; its shape [2, 2, 4] and strides [9, 4, 1] need 17"},
    {"NegativeOffset", [](Call& c) { c.src.tensor.offset = -3; }, Code::kShape, "src",
     "src has offset -3; it must be from 0 to 9007199254740980"},
    {"OffsetBeyond2To53", [](Call& c) { c.args.dst.offset = int64_t{1} << 53; }, Code::kShape, "dst",
     "dst has offset 9007199254740992; it must be from 0 to"},
    {"ShortForOffset", [](Call& c) { c.weights.tensor.offset = 1, c.weights.tensor.size = 12; }, Code::kShape, "weights",
     "weights has 12 elements; its shape [3, 4] and offset 1 need 13"},
    {"ShortBiasForOffset", [](Call& c) { c.bias.strides = {2}, c.bias.tensor.offset = 3, c.bias.tensor.size = 9; }, Code::kShape, "bias",
     "bias has 9 elements; its shape [4], strides [2] and offset 3 need 10"},
    {"NoDataOfSrc", [](Call& c) { c.src.tensor.data = nullptr; }, Code::kArgument, "src", "src has no data"},
    {"NoDataOfWeights", [](Call& c) { c.weights.tensor.data = nullptr; }, Code::kArgument, "weights", "weights has no data"},
    {"NoDataOfBias", [](Call& c) { c.bias.tensor.data = nullptr; }, Code::kArgument, "bias", "bias has no data"},
    {"NoDataOfDst", [](Call& c) { c.args.dst.data = nullptr; }, Code::kArgument, "dst", "dst has no data"},

    // Types.
    {"SrcUnknownType", [](Call& c) { c.src.tensor.dtype = kUnknown; }, Code::kDType, "src", "src has the unknown type 200; see DType"},
    {"WeightsUnknownType", [](Call& c) { c.weights.tensor.dtype = kUnknown; }, Code::kDType, "weights", "unknown type 200"},
    {"BiasUnknownType", [](Call& c) { c.bias.tensor.dtype = kUnknown; }, Code::kDType, "bias", "unknown type 200"},
    {"DstUnknownType", [](Call& c) { c.args.dst.dtype = kUnknown; }, Code::kDType, "dst", "dst has the unknown type 200"},
    {"Int8", [](Call& c) { c.types(DType::kInt8); }, Code::kDType, "src",
     "src has type int8, which MatMul does not have; 8-bit operands are for qgemm"},
    {"UInt8Weights", [](Call& c) { c.weights.tensor.dtype = DType::kUInt8; }, Code::kDType, "weights",
     "weights has type uint8, which MatMul does not have; 8-bit operands are for qgemm"},
    {"MixedWeights", [](Call& c) { c.weights.tensor.dtype = DType::kInt32; }, Code::kDType, "weights",
     "weights has type int32 and src has type float32; they must be the same"},
    {"BFloat16Weights", [](Call& c) { c.weights.tensor.dtype = DType::kBFloat16; }, Code::kDType, "weights",
     "weights has type bfloat16 and src has type float32; they must be the same, or pack() must pack the weights for gemm"},
    {"MixedBias", [](Call& c) { c.bias.tensor.dtype = DType::kFloat16; }, Code::kDType, "bias",
     "bias has type float16 and src has type float32; they must be the same"},
    {"BiasOfDst", [](Call& c) { c.types(DType::kBFloat16), c.bias.tensor.dtype = c.args.dst.dtype = DType::kFloat32; }, Code::kDType,
     "bias", "bias has type float32 and src has type bfloat16"},
    {"MixedDst", [](Call& c) { c.args.dst.dtype = DType::kFloat16; }, Code::kDType, "dst",
     "dst has type float16 and src has type float32; they must be the same, or float32 from float16 and bfloat16"},
    {"Float64FromFloat16", [](Call& c) { c.types(DType::kFloat16), c.args.dst.dtype = DType::kFloat64; }, Code::kDType, "dst",
     "dst has type float64 and src has type float16"},
    {"Float32FromInt32", [](Call& c) { c.types(DType::kInt32), c.args.dst.dtype = DType::kFloat32; }, Code::kDType, "dst",
     "dst has type float32 and src has type int32"},

    // alpha.
    {"NanAlphaOfIntegers", [](Call& c) { c.types(DType::kInt32), c.args.alpha = kNan; }, Code::kArgument, "alpha",
     "alpha is NaN; with int32 it must be finite"},
    {"InfiniteAlphaOfIntegers", [](Call& c) { c.types(DType::kUInt32), c.args.alpha = -kInf; }, Code::kArgument, "alpha",
     "alpha is infinite; with uint32 it must be finite"},
    {"FarAlphaOfIntegers", [](Call& c) { c.types(DType::kInt32), c.args.alpha = 0x1p54; }, Code::kArgument, "alpha",
     "alpha is beyond 2^53; with int32 it must be from -2^53 to 2^53"},
    {"ExactAlphaOfFloat32", [](Call& c) { c.args.alpha = Factor::exact(2); }, Code::kArgument, "alpha",
     "alpha is a 64-bit integer; with float32 it must be a number"},
    {"ExactAlphaOfInt32", [](Call& c) { c.types(DType::kInt32), c.args.alpha = Factor::exact(2); }, Code::kArgument, "alpha",
     "alpha is a 64-bit integer; with int32 it must be a number"},

    // K and batch axes.
    {"K", [](Call& c) { c.weights.dims = {5, 4}; }, Code::kShape, "weights",
     "src has shape [2, 2, 3] and weights has shape [5, 4]; K is 3 in src and 5 in weights, and must be the same"},
    {"KOfOne", [](Call& c) { c.weights.dims = {1, 4}; }, Code::kShape, "weights", "K is 3 in src and 1 in weights"},
    {"KTransposedA", [](Call& c) { c.args.transpose_a = 1; }, Code::kShape, "weights",
     "src (transposed) has shape [2, 2, 3] and weights has shape [3, 4]; K is 2 in src and 3 in weights, and must be the same; unset transpose_a if src is (M, K)"},
    {"KTransposedB", [](Call& c) { c.args.transpose_b = -1; }, Code::kShape, "weights",
     "src has shape [2, 2, 3] and weights (transposed) has shape [3, 4]; K is 3 in src and 4 in weights, and must be the same; unset transpose_b if weights is (K, N)"},
    {"KOfWeightsNK", [](Call& c) { c.weights.dims = {4, 3}; }, Code::kShape, "weights", "; set transpose_b if weights is (N, K)"},
    {"KOfSrcKM", [](Call& c) { c.src.dims = {2, 3, 2}; }, Code::kShape, "weights", "; set transpose_a if src is (K, M)"},
    {"KOfVectors", [](Call& c) { c.shapes({3}, {4}, {}), c.flags(); }, Code::kShape, "weights",
     "src has shape [3] and weights has shape [4]; K is 3 in src and 4 in weights"},
    {"KOfSrcVector", [](Call& c) { c.shapes({4}, {3, 4}, {4}); }, Code::kShape, "weights", "K is 4 in src and 3 in weights"},
    {"KOfWeightsVector", [](Call& c) { c.shapes({2, 2, 3}, {2}, {2, 2}); }, Code::kShape, "weights", "K is 3 in src and 2 in weights"},
    {"KWithoutRows", [](Call& c) { c.shapes({2, 0, 5}, {3, 4}, {2, 0, 4}); }, Code::kShape, "weights", "K is 5 in src and 3 in weights"},
    {"KOfNone", [](Call& c) { c.shapes({2, 2, 0}, {1, 4}, {2, 2, 4}); }, Code::kShape, "weights", "K is 0 in src and 1 in weights"},
    {"Batch", [](Call& c) { c.weights.dims = {3, 3, 4}; }, Code::kShape, "weights",
     "src has batch axes [2] and weights has [3]; sizes of batch axes, aligned at the right, must be the same, or 1 in one of them"},
    {"BatchAlignedAtTheRight", [](Call& c) { c.shapes({2, 3, 2, 3}, {2, 3, 4}, {2, 3, 2, 4}); }, Code::kShape, "weights",
     "src has batch axes [2, 3] and weights has [2]"},
    {"BatchOfMoreWeights", [](Call& c) { c.shapes({2, 2, 3}, {2, 3, 3, 4}, {2, 2, 2, 4}); }, Code::kShape, "weights",
     "src has batch axes [2] and weights has [2, 3]"},
    {"BatchInFront", [](Call& c) { c.shapes({2, 1, 2, 3}, {3, 5, 3, 4}, {3, 5, 2, 4}); }, Code::kShape, "weights",
     "src has batch axes [2, 1] and weights has [3, 5]"},
    {"BatchOfNone", [](Call& c) { c.weights.dims = {0, 3, 4}; }, Code::kShape, "weights", "src has batch axes [2] and weights has [0]"},

    // Packed weights.
    {"PackedEmpty", [](Call& c) { c.args.packed_weights = &c.packed; }, Code::kArgument, "weights",
     "weights is an empty PackedWeights; pack() fills it"},
    {"PackedTransposeB", [](Call& c) { c.pack_weights(), c.args.transpose_b = 1; }, Code::kArgument, "transpose_b",
     "transpose_b is set and weights is packed; transpose when packing, by trans"},
    {"PackedForQGemm", [](Call& c) { c.pack_weights({3, 4}, DType::kInt8); }, Code::kPackMismatch, "weights",
     "weights is packed for qgemm; pack it for matmul"},
    {"PackedType", [](Call& c) { c.pack_weights({3, 4}, DType::kFloat64); }, Code::kDType, "weights",
     "weights is packed as float64 and src has type float32; they must be the same, or float16 or bfloat16 for a float32 src"},
    {"PackedK", [](Call& c) { c.pack_weights({5, 4}); }, Code::kShape, "weights", "K"},
    {"PackedKTransposed", [](Call& c) { c.pack_weights(), c.args.transpose_a = 1; }, Code::kShape, "weights", "K"},
    {"PackedKOfVector", [](Call& c) { c.pack_weights(), c.shapes({4}, {}, {4}); }, Code::kShape, "weights", "K"},
    {"PackedBatch", [](Call& c) { c.pack_weights({3, 3, 4}); }, Code::kShape, "weights",
     "src has batch axes [2] and weights has [3]; sizes of batch axes"},
    {"PackedBatchAlignedAtTheRight", [](Call& c) { c.pack_weights({2, 1, 3, 3, 4}); }, Code::kShape, "weights",
     "src has batch axes [2] and weights has [2, 1, 3]"},
    {"PackedSrcRank0", [](Call& c) { c.pack_weights(), c.src.dims = {}; }, Code::kShape, "src", "src has rank 0"},
    {"PackedSrcType", [](Call& c) { c.pack_weights({3, 4}, DType::kInt8), c.src.tensor.dtype = DType::kInt8; }, Code::kDType, "src",
     "which MatMul does not have"},
    {"PackedNOfBias", [](Call& c) { c.pack_weights({3, 5}); }, Code::kShape, "bias", "does not broadcast to [2, 2, 5]"},
    {"PackedNOfDst", [](Call& c) { c.pack_weights({3, 5}), c.bias.is_there = false; }, Code::kShape, "dst",
     "dst has shape [2, 2, 4]; the result has shape [2, 2, 5]"},
    {"PackedBatchOfDst", [](Call& c) { c.pack_weights({5, 1, 3, 4}); }, Code::kShape, "dst", "the result has shape [5, 2, 2, 4]"},

    // bias broadcasts to dst.
    {"BiasOfRows", [](Call& c) { c.bias.dims = {2}; }, Code::kShape, "bias",
     "bias has shape [2], which does not broadcast to [2, 2, 4]; aligned at the right, each size must be the same or 1, and there may be "
     "no more axes"},
    {"BiasOfNone", [](Call& c) { c.bias.dims = {0}; }, Code::kShape, "bias", "bias has shape [0], which does not broadcast"},
    {"BiasOfBatch", [](Call& c) { c.bias.dims = {3, 1, 1}; }, Code::kShape, "bias", "bias has shape [3, 1, 1], which does not broadcast"},
    {"BiasOfMoreAxes", [](Call& c) { c.bias.dims = {1, 2, 2, 4}; }, Code::kShape, "bias", "bias has shape [1, 2, 2, 4], which does not"},
    {"BiasOfOtherRows", [](Call& c) { c.bias.dims = {3, 4}; }, Code::kShape, "bias", "does not broadcast"},
    {"BiasWider", [](Call& c) { c.shapes({1, 2, 3}, {3, 4}, {1, 2, 4}), c.bias.dims = {2, 2, 4}; }, Code::kShape, "bias",
     "does not broadcast to [1, 2, 4]"},
    {"BiasOfMatrix", [](Call& c) { c.shapes({2, 3}, {3, 4}, {2, 4}), c.bias.dims = {2}; }, Code::kShape, "bias",
     "bias has shape [2], which does not broadcast to [2, 4]; aligned at the right"},
    {"BiasOfRemovedRow", [](Call& c) { c.shapes({3}, {3, 4}, {4}), c.bias.dims = {1, 4}; }, Code::kShape, "bias",
     "bias has shape [1, 4], which does not broadcast to [4]"},
    {"BiasOfRemovedColumn", [](Call& c) { c.shapes({2, 3}, {3}, {2}), c.bias.dims = {2, 1}; }, Code::kShape, "bias",
     "bias has shape [2, 1], which does not broadcast to [2]"},
    {"BiasOfRemovedAxes", [](Call& c) { c.shapes({3}, {3}, {}), c.bias.dims = {1}; }, Code::kShape, "bias",
     "bias has shape [1], which does not broadcast to []"},

    // Shape and strides of dst.
    {"DstShape", [](Call& c) { c.dst_dims = {2, 4, 2}; }, Code::kShape, "dst", "dst has shape [2, 4, 2]; the result has shape [2, 2, 4]"},
    {"DstRank", [](Call& c) { c.dst_dims = {4, 4}; }, Code::kShape, "dst", "dst has shape [4, 4]; the result has shape [2, 2, 4]"},
    {"DstOfMoreAxes", [](Call& c) { c.dst_dims = {1, 2, 2, 4}; }, Code::kShape, "dst", "the result has shape [2, 2, 4]"},
    {"DstWithRemovedRow", [](Call& c) { c.shapes({3}, {3, 4}, {1, 4}); }, Code::kShape, "dst",
     "dst has shape [1, 4]; the result has shape [4]"},
    {"DstWithRemovedColumn", [](Call& c) { c.shapes({4, 3}, {3}, {4, 1}); }, Code::kShape, "dst",
     "dst has shape [4, 1]; the result has shape [4]"},
    {"DstWithRemovedAxes", [](Call& c) { c.shapes({3}, {3}, {1}), c.bias.dims = {}; }, Code::kShape, "dst",
     "dst has shape [1]; the result has shape []"},
    {"DstRepeats", [](Call& c) { c.dst_strides = {0, 4, 1}; }, Code::kShape, "dst",
     "dst has strides [0, 4, 1] and shape [2, 2, 4]; each stride must exceed the extent of the axes with smaller strides, so that no two "
     "elements share memory"},
    {"DstRowsRunTogether", [](Call& c) { c.dst_strides = {8, 3, 1}; }, Code::kShape, "dst", "no two elements share memory"},
    {"DstMatricesRunTogether", [](Call& c) { c.dst_strides = {7, 4, 1}; }, Code::kShape, "dst", "no two elements share memory"},
    {"DstAxesOfOneStride", [](Call& c) { c.dst_strides = {4, 4, 1}; }, Code::kShape, "dst", "no two elements share memory"},
    {"DstAllOfOneStride", [](Call& c) { c.dst_strides = {1, 1, 1}; }, Code::kShape, "dst", "no two elements share memory"},
    {"DstColumnsRunTogether", [](Call& c) { c.dst_strides = {2, 1, 3}; }, Code::kShape, "dst", "no two elements share memory"},
    {"DstVectorRepeats", [](Call& c) { c.shapes({3}, {3, 4}, {4}), c.dst_strides = {0}; }, Code::kShape, "dst",
     "no two elements share memory"},

    // Overlap.
    {"DstIsSrc", [](Call& c) { c.args.dst.data = c.src.data.data(); }, Code::kArgument, "dst",
     "dst overlaps src in memory; only bias may be written over"},
    {"DstEndsInSrc", [](Call& c) { c.src.tensor.data = c.dst.data() + 15; }, Code::kArgument, "dst", "dst overlaps src"},
    {"DstBeginsInSrc", [](Call& c) { c.args.dst.data = c.src.data.data() + 11; }, Code::kArgument, "dst", "dst overlaps src"},
    {"DstIsWeights", [](Call& c) { c.args.dst.data = c.weights.data.data(); }, Code::kArgument, "dst",
     "dst overlaps weights in memory; only bias may be written over"},
    {"DstBeginsInWeights", [](Call& c) { c.args.dst.data = c.weights.data.data() + 11; }, Code::kArgument, "dst", "dst overlaps weights"},
    {"DstEndsInWeights", [](Call& c) { c.weights.tensor.data = c.dst.data() + 15; }, Code::kArgument, "dst", "dst overlaps weights"},
    {"DstIsSrcAtOffset", [](Call& c) { c.args.dst.data = c.src.data.data() + 5, c.src.tensor.offset = 5; }, Code::kArgument, "dst",
     "dst overlaps src"},
    {"DstEndsInWeightsAtOffset", [](Call& c) { c.weights.tensor.data = c.dst.data(), c.weights.tensor.offset = 15; }, Code::kArgument,
     "dst", "dst overlaps weights"},
    {"DstIsBiasAtAnotherOffset",
     [](Call& c) { c.bias.dims = {2, 2, 4}, c.args.dst.data = c.bias.data.data(), c.args.dst.offset = 4; }, Code::kArgument, "dst",
     "the memory, shape and strides of bias"},
    {"DstInTheHeadOfSrcByOffset",
     [](Call& c) {
       c.src.strides = {16, 8, 1}, c.dst_strides = {16, 8, 1}, c.args.dst.data = c.src.data.data();
       c.args.dst.offset = 21, c.src.tensor.offset = 16;
     },
     Code::kArgument, "dst", "dst overlaps src"},
    {"DstInRowsOfSrc",
     [](Call& c) { c.src.strides = {16, 8, 1}, c.dst_strides = {16, 8, 1}, c.args.dst.data = c.src.data.data() + 2; }, Code::kArgument,
     "dst", "dst overlaps src"},
    {"DstRunsIntoTheNextRowOfSrc",
     [](Call& c) { c.src.strides = {16, 8, 1}, c.dst_strides = {16, 8, 1}, c.args.dst.data = c.src.data.data() + 5; }, Code::kArgument,
     "dst", "dst overlaps src"},
    {"DstInRowsOfTheLastMatrixOfSrc",
     [](Call& c) { c.src.strides = {16, 8, 1}, c.dst_strides = {16, 8, 1}, c.args.dst.data = c.src.data.data() + 18; }, Code::kArgument,
     "dst", "dst overlaps src"},
    {"DstInRowsThatRepeatOtherwise",
     [](Call& c) { c.src.strides = {16, 8, 1}, c.dst_strides = {18, 9, 1}, c.args.dst.data = c.src.data.data() + 3; }, Code::kArgument,
     "dst", "dst overlaps src"},
    {"DstIsAllOfOneBias", [](Call& c) { c.args.dst.data = c.bias.data.data(); }, Code::kArgument, "dst",
     "dst overlaps bias in memory; it must have the memory, shape and strides of bias, or not overlap it"},
    {"DstBeginsInBias", [](Call& c) { c.args.dst.data = c.bias.data.data() + 3; }, Code::kArgument, "dst", "the memory, shape and strides of bias"},
    {"DstIsShiftedBias", [](Call& c) { c.bias.dims = {2, 2, 4}, c.args.dst.data = c.bias.data.data() + 8; }, Code::kArgument, "dst",
     "the memory, shape and strides of bias"},
    {"DstIsBiasOfOtherStrides",
     [](Call& c) { c.bias.dims = {2, 2, 4}, c.dst_strides = {9, 4, 1}, c.args.dst.data = c.bias.data.data(); }, Code::kArgument, "dst",
     "the memory, shape and strides of bias"},
    {"DstIsBiasOfAxesInAnotherOrder",
     [](Call& c) { c.bias.dims = {2, 2, 4}, c.bias.strides = {4, 8, 1}, c.args.dst.data = c.bias.data.data(); }, Code::kArgument, "dst",
     "the memory, shape and strides of bias"},
    {"DstIsBiasThatBroadcasts", [](Call& c) { c.bias.dims = {1, 2, 4}, c.args.dst.data = c.bias.data.data(); }, Code::kArgument, "dst",
     "the memory, shape and strides of bias"},
    {"DstIsBiasOfFewerAxes",
     [](Call& c) { c.shapes({1, 2, 3}, {3, 4}, {1, 2, 4}), c.bias.dims = {2, 4}, c.args.dst.data = c.bias.data.data(); }, Code::kArgument,
     "dst", "the memory, shape and strides of bias"},
    {"DstIsBiasOfAnotherType",
     [](Call& c) {
       c.types(DType::kFloat16), c.args.dst.dtype = DType::kFloat32;
       c.bias.dims = {2, 2, 4}, c.args.dst.data = c.bias.data.data();
     },
     Code::kArgument, "dst", "the memory, shape and strides of bias"},
    {"DstIsSrcThatIsBias",
     [](Call& c) {
       c.shapes({2, 2, 2}, {2, 2}, {2, 2, 2}), c.bias.dims = {2, 2, 2};
       c.bias.tensor.data = c.args.dst.data = c.src.data.data();
     },
     Code::kArgument, "dst", "dst overlaps src"},
};

class MatMulError : public ::testing::TestWithParam<Case> {};

TEST_P(MatMulError, IsReportedAndNothingIsWritten) {
  Call call;
  GetParam().spoil(call);
  call.link();
  const size_t in_use = call.context.bytes_in_use();
  const Status status = matmul(call.context, call.args);
  EXPECT_EQ(status.code, GetParam().code) << status.message;
  EXPECT_STREQ(status.op, "matmul");
  EXPECT_STREQ(status.argument, GetParam().argument) << status.message;
  const std::string message = status.message;
  EXPECT_EQ(message.substr(0, 8), "matmul: ");
  EXPECT_NE(message.find(GetParam().text), std::string::npos) << message;
  EXPECT_TRUE(call.holds_what_it_held());
  EXPECT_EQ(call.context.bytes_in_use(), in_use);
  Call next;
  next.link();
  EXPECT_TRUE(matmul(call.context, next.args).ok());
  EXPECT_EQ(std::ranges::count(next.dst, 4.0F), 16);
  EXPECT_EQ(std::ranges::count(next.dst, -7.0F), 184);
  // matmul_shape() reports the same, except for missing data.
  if (message.find("has no data") != std::string::npos) return;
  int64_t dims[kMaxRank];
  size_t rank = 0;
  Explanation plan;
  EXPECT_STREQ(matmul_shape(call.args, dims, &rank).message, status.message);
  EXPECT_STREQ(explain(call.context, call.args, &plan).message, status.message);
  if (message.find("dst") != std::string::npos) return;
  call.args.dst = {.dtype = call.args.dst.dtype};
  EXPECT_STREQ(matmul_shape(call.args, dims, &rank).message, status.message);
  EXPECT_STREQ(explain(call.context, call.args, &plan).message, status.message);
}
INSTANTIATE_TEST_SUITE_P(Cases, MatMulError, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// Allowed calls
// -------------------------------------------------------------------------------------------------

TEST(MatMulAllowed, AtTheEdgesOfTheRules) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  void (*const allowed[])(Call&) = {
      [](Call&) {},
      [](Call& c) { c.bias.is_there = false; },
      [](Call& c) { c.args.transpose_a = -5, c.src.dims = {2, 3, 2}; },
      [](Call& c) { c.args.transpose_b = 2, c.weights.dims = {4, 3}; },
      [](Call& c) { c.shapes({3}, {3}, {}), c.bias.dims = {}, c.flags(); },
      [](Call& c) { c.shapes({3}, {3}, {}), c.bias.is_there = false; },
      [](Call& c) { c.shapes(Sizes(64, 1), {1}, Sizes(63, 1)), c.bias.dims = Sizes(63, 1); },
      [](Call& c) { c.types(DType::kFloat16), c.args.dst.dtype = DType::kFloat32; },
      [](Call& c) { c.types(DType::kBFloat16), c.args.dst.dtype = DType::kFloat32; },
      // Axes of one element have any stride.
      [](Call& c) {
        c.shapes({1, 1, 3}, {1, 3, 4}, {1, 1, 4}), c.src.strides = {kFar, kFar, 1},
                                                   c.dst_strides = {0, kFar, 1};
      },
      [](Call& c) {
        c.shapes({2, 2, 3}, {3, 1}, {2, 2, 1}), c.bias.dims = {1}, c.weights.strides = {1, kFar},
                                                c.dst_strides = {2, 1, 0};
      },
      [](Call& c) { c.dst_strides = {1, 2, 4}; },
      [](Call& c) { c.dst_strides = {4, 8, 1}; },
      [](Call& c) { c.dst_strides = {20, 4, 1}; },
      // bias may be overwritten.
      [](Call& c) { c.bias.dims = {2, 2, 4}, c.args.dst.data = c.bias.data.data(); },
      [](Call& c) {
        c.bias.dims = {2, 2, 4}, c.dst_strides = {8, 4, 1}, c.args.dst.data = c.bias.data.data();
      },
      [](Call& c) {
        c.bias.dims = {2, 2, 4}, c.dst_strides = c.bias.strides = {4, 8, 1},
        c.args.dst.data = c.bias.data.data();
      },
      [](Call& c) {
        c.shapes({1, 2, 3}, {3, 4}, {1, 2, 4}), c.bias.dims = {1, 2, 4},
                                                c.bias.strides = {kFar, 4, 1};
        c.args.dst.data = c.bias.data.data();
      },
      [](Call& c) {
        c.shapes({3}, {3}, {}), c.bias.dims = {}, c.args.dst.data = c.bias.data.data();
      },
      // Inputs may overlap one another, and be the same.
      [](Call& c) { c.src.tensor.data = c.weights.tensor.data = c.bias.data.data(); },
      // Contiguous, and between the rows of another tensor.
      [](Call& c) { c.args.dst.data = c.src.data.data() + 12; },
      [](Call& c) { c.src.tensor.data = c.dst.data() + 16; },
      [](Call& c) { c.args.dst.data = c.weights.data.data() + 12; },
      [](Call& c) { c.args.dst.data = c.bias.data.data() + 4; },
      [](Call& c) {
        c.src.strides = {16, 8, 1}, c.dst_strides = {16, 8, 1},
        c.args.dst.data = c.src.data.data() + 3;
      },
      [](Call& c) {
        c.src.strides = {16, 8, 1}, c.dst_strides = {16, 8, 1},
        c.args.dst.data = c.src.data.data() + 4;
      },
      [](Call& c) {
        c.src.strides = {3, 8, 1}, c.dst_strides = {48, 8, 1},
        c.args.dst.data = c.src.data.data() + 19;
      },
      // The same by offsets, in a longer array.
      [](Call& c) {
        c.args.dst.data = c.src.data.data(), c.args.dst.offset = 12, c.args.dst.size = 200;
      },
      [](Call& c) {
        c.src.tensor.data = c.dst.data(), c.src.tensor.offset = 16, c.src.tensor.size = 200;
      },
      [](Call& c) {
        c.src.strides = {16, 8, 1}, c.dst_strides = {16, 8, 1}, c.args.dst.data = c.src.data.data();
        c.src.tensor.offset = 1, c.args.dst.offset = 20, c.src.tensor.size = 200;
      },
      [](Call& c) {
        c.bias.dims = {2, 2, 4}, c.args.dst.data = c.bias.data.data() + 2;
        c.args.dst.offset = 9, c.bias.tensor.offset = 11;
      },
      // Nothing to read or write.
      [](Call& c) { c.shapes({2, 0, 3}, {3, 4}, {2, 0, 4}), c.args.dst.data = c.src.data.data(); },
      [](Call& c) {
        c.shapes({0, 2, 3}, {3, 4}, {0, 2, 4}), c.src.tensor.data = c.args.dst.data = nullptr;
      },
      [](Call& c) {
        c.shapes({0, 2, 3}, {3, 4}, {0, 2, 4}), c.src.strides = c.dst_strides = {kFar, 8, 1};
      },
      [](Call& c) {
        c.shapes({2, 2, 0}, {0, 4}, {2, 2, 4}), c.src.tensor.data = c.weights.tensor.data = nullptr;
      },
      [](Call& c) {
        c.shapes({1, 2, 3}, {0, 3, 4}, {0, 2, 4}), c.bias.dims = {0, 1, 4},
                                                   c.bias.tensor.data = nullptr;
      },
      // The call does not read weights if packed weights replace them.
      [](Call& c) { c.pack_weights(); },
      [](Call& c) { c.pack_weights({1, 1, 1, 3, 4}), c.dst_dims = {1, 1, 2, 2, 4}; },
      [](Call& c) {
        c.pack_weights(), c.weights.dims = {7, -1}, c.weights.tensor = {.dtype = kUnknown};
      },
      [](Call& c) { c.pack_weights(), c.args.dst.data = c.weights.data.data(); },
      [](Call& c) { c.pack_weights({0, 3, 4}), c.shapes({1, 2, 3}, {}, {0, 2, 4}); },
      [](Call& c) { c.pack_weights(), c.args.transpose_a = 1, c.src.dims = {2, 3, 2}; },
  };
  for (const auto& change : allowed) {
    Call call;
    change(call);
    call.link();
    int64_t dims[kMaxRank];
    size_t rank = 0;
    Explanation plan;
    for (const Status& status :
         {matmul_shape(call.args, dims, &rank), explain(call.context, call.args, &plan),
          matmul(call.context, call.args)}) {
      EXPECT_TRUE(status.ok()) << &change - allowed << ": " << status.message;
    }
    EXPECT_EQ(Sizes(dims, dims + rank), call.dst_dims) << &change - allowed;
  }
}

// Null data must not be offset by strides.
TEST(MatMulAllowed, NoDataAndStridesIfKIs0) {
  Call call;
  call.shapes({2, 2, 0}, {2, 0, 4}, {2, 2, 4});
  call.src.strides = {30, 3, 1}, call.weights.strides = {20, 4, 1};
  call.src.tensor.data = call.weights.tensor.data = nullptr;
  call.link();
  const Status status = matmul(call.context, call.args);
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(std::ranges::count(call.dst, 1.0F), 16);
}

// Every type for every argument, with each type of src: which are refused, and what the error
// names.
TEST(MatMulAllowed, TypesOfEveryArgument) {
  for (int src = 0; src < kDTypeCount; ++src) {
    for (int other = 0; other < kDTypeCount; ++other) {
      const auto type = static_cast<DType>(src), changed = static_cast<DType>(other);
      const bool has_type = type != DType::kInt8 && type != DType::kUInt8,
                 is_half = type == DType::kFloat16 || type == DType::kBFloat16;
      struct Change {
        const char* argument;
        bool allowed;
        void (*apply)(Call&, DType);
      };
      const Change changes[] = {
          {"weights", type == changed, [](Call& c, DType t) { c.weights.tensor.dtype = t; }},
          {"bias", type == changed, [](Call& c, DType t) { c.bias.tensor.dtype = t; }},
          {"dst", type == changed || (is_half && changed == DType::kFloat32),
           [](Call& c, DType t) { c.args.dst.dtype = t; }},
      };
      for (const Change& change : changes) {
        Call call;
        call.types(type);
        change.apply(call, changed);
        call.link();
        const Status status = matmul(call.context, call.args);
        const bool allowed = has_type && change.allowed;
        EXPECT_EQ(status.code, allowed ? Code::kOk : Code::kDType)
            << dtype_name(type) << " " << dtype_name(changed);
        EXPECT_STREQ(status.argument, allowed    ? ""
                                      : has_type ? change.argument
                                                 : "src")
            << dtype_name(type) << " " << dtype_name(changed);
      }
    }
  }
}

// Shape and memory
// -------------------------------------------------------------------------------------------------

TEST(MatMulShape, ChecksWithoutData) {
  Call call;
  call.bias.dims = {2, 2, 4};
  call.link();
  call.args.src.data = call.args.weights.data = call.bias.tensor.data = nullptr;
  call.args.dst = {};
  int64_t dims[kMaxRank];
  size_t rank = 0;
  Status status = matmul_shape(call.args, dims, &rank);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(Sizes(dims, dims + rank), Sizes({2, 2, 4}));
  // The caller's arrays are not in memory yet: space 1 holds src (48 bytes), space 2 weights (48),
  // space 3 bias (64).
  call.args.dst = {.dims = call.dst_dims};
  call.args.src.place = {1, 0};
  call.args.weights.place = {2, 8};
  call.bias.tensor.place = {3, 4};
  for (const auto& [place, argument] : {std::pair{Place{1, 47}, "src"},
                                        {Place{1, 48}, ""},
                                        {Place{2, 55}, "weights"},
                                        {Place{2, 56}, ""},
                                        {Place{3, 4}, ""},
                                        {Place{3, 0}, "bias"},
                                        {Place{3, 67}, "bias"},
                                        {Place{3, 68}, ""},
                                        {Place{4, 0}, ""}}) {
    call.args.dst.place = place;
    status = matmul_shape(call.args, dims, &rank);
    EXPECT_EQ(status.code, *argument == 0 ? Code::kOk : Code::kArgument)
        << place.space << " " << place.offset << " " << status.message;
    const std::string wanted = *argument == 0 ? "" : std::string("dst overlaps ").append(argument);
    EXPECT_NE(std::string(status.message).find(wanted), std::string::npos) << status.message;
  }
}

TEST(MatMulShape, ChecksTheTypeOfAnAbsentDst) {
  Call call;
  call.types(DType::kInt64);
  call.link();
  int64_t dims[kMaxRank];
  size_t rank = 0;
  for (const auto& [type, ok] : {std::pair{DType::kInt64, true},
                                 {DType::kFloat32, false},
                                 {DType::kInt8, false},
                                 {kUnknown, false}}) {
    call.args.dst = {.dtype = type};
    const Status status = matmul_shape(call.args, dims, &rank);
    EXPECT_EQ(status.code, ok ? Code::kOk : Code::kDType) << status.message;
    EXPECT_STREQ(status.argument, ok ? "" : "dst");
  }
}

TEST(MatMulShape, AllowsTheLargest) {
  const int64_t src[] = {int64_t{1} << 30, 1, 0}, weights[] = {int64_t{1} << 23, 1, 0, 1},
                more[] = {(int64_t{1} << 23) + 1, 1, 0, 1};
  MatMulArgs args;
  args.src.dims = src;
  args.weights.dims = weights;
  int64_t dims[kMaxRank];
  size_t rank = 0;
  ASSERT_TRUE(matmul_shape(args, dims, &rank).ok());
  EXPECT_EQ(Sizes(dims, dims + rank), Sizes({int64_t{1} << 23, int64_t{1} << 30, 1, 1}));
  args.weights.dims = more;
  EXPECT_EQ(matmul_shape(args, dims, &rank).code, Code::kShape);
}

TEST(MatMulMemory, ScratchDoesNotGrowWithTheBatch) {
  for (const int64_t size : {5, 100, 3000}) {
    const int64_t one[] = {size, size}, many[] = {100000, size, size, size};
    MatMulArgs args;
    args.src.dims = args.weights.dims = one;
    const ConstTensor bias{.dims = std::span(one).last(1)};
    args.bias = &bias;
    Explanation of_one, of_many;
    ASSERT_TRUE(explain(Context(), args, &of_one).ok());
    args.src.dims = args.weights.dims = many;
    ASSERT_TRUE(explain(Context(), args, &of_many).ok());
    EXPECT_EQ(of_many.batch, 100000 * size);
    EXPECT_EQ(of_many.scratch_bytes, of_one.scratch_bytes);
    EXPECT_LT(of_one.scratch_bytes, 32 << 20);
  }
}

}  // namespace
}  // namespace wgemm::testing
