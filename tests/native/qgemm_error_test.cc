// Every rule that a call of qgemm() or pack() can break: the error's code, argument and message,
// and that the call writes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "qgemm_tester.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

using Sizes = std::vector<int64_t>;

// A tensor of a call. Its memory has room for all shapes of the tests.
template <typename T>
struct Argument {
  ConstTensor tensor;
  Sizes dims, strides;
  std::vector<T> data;
  bool is_there = true;

  Argument(DType dtype, Sizes shape, T value) : dims(std::move(shape)), data(64, value) {
    tensor.dtype = dtype;
    tensor.data = data.data();
  }
  void link() {
    tensor.dims = dims;
    tensor.strides = strides;
  }
  const ConstTensor* pointer() const { return is_there ? &tensor : nullptr; }
};

// A valid call, ((2, 3) - 1) x ((3, 4) - -1) + (4), with elements 3, 2 and 4. Each test makes one
// thing invalid.
struct Call {
  Argument<uint8_t> a{DType::kUInt8, {2, 3}, 3}, a_zero{DType::kUInt8, {1}, 1};
  Argument<int8_t> b{DType::kInt8, {3, 4}, 2}, b_zero{DType::kInt8, {4}, -1},
      y_zero{DType::kInt8, {}, 5};
  Argument<int32_t> c{DType::kInt32, {4}, 4};
  Argument<float> a_scale{DType::kFloat32, {}, 0.5F}, b_scale{DType::kFloat32, {4}, 0.25F},
      y_scale{DType::kFloat32, {1}, 0.125F};
  std::vector<float> y = std::vector<float>(64, -7.0F);
  Sizes y_dims{2, 4}, y_strides;
  QGemmArgs args;
  Context context;
  PackedWeights weights;

  Call() {
    y_scale.is_there = y_zero.is_there = false;
    args.Y = {y.data(), DType::kFloat32};
  }
  // An 8-bit Y in the same memory.
  void quantize() {
    y_scale.is_there = y_zero.is_there = true;
    args.Y.dtype = DType::kInt8;
  }
  void pack_b(Sizes dims = {3, 4}) {
    const Status status = pack(
        context, {.op = PackFor::kQGemm, .B = {b.data.data(), b.tensor.dtype, dims}}, &weights);
    EXPECT_TRUE(status.ok()) << status.message;
    args.packed_B = &weights;
  }
  void link() {
    a.link(), a_zero.link(), b.link(), b_zero.link(), c.link(), a_scale.link(), b_scale.link(),
        y_scale.link(), y_zero.link();
    args.A = a.tensor;
    args.B = b.tensor;
    args.C = c.pointer();
    args.a_scale = a_scale.tensor;
    args.b_scale = b_scale.tensor;
    // Keep what a test has set.
    if (args.a_zero_point == nullptr) args.a_zero_point = a_zero.pointer();
    if (args.b_zero_point == nullptr) args.b_zero_point = b_zero.pointer();
    args.y_scale = y_scale.pointer();
    args.y_zero_point = y_zero.pointer();
    args.Y.dims = y_dims;
    args.Y.strides = y_strides;
  }
  // All memory that the call must not write.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    const auto add = [&](const auto& data) {
      const auto* from = reinterpret_cast<const std::byte*>(data.data());
      all.insert(all.end(), from, from + data.size() * sizeof(data[0]));
    };
    add(a.data), add(b.data), add(c.data), add(a_zero.data), add(b_zero.data), add(y_zero.data);
    add(a_scale.data), add(b_scale.data), add(y_scale.data), add(y);
    return all;
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
constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                kInfinity = std::numeric_limits<float>::infinity();

const Case kCases[] = {
    // A and B.
    {"ARank", [](Call& c) { c.a.dims = {6}; }, Code::kShape, "A", "A has shape [6] of rank 1; it must have rank 2"},
    {"BRank", [](Call& c) { c.b.dims = {1, 3, 4}; }, Code::kShape, "B", "B has shape [1, 3, 4] of rank 3; it must have rank 2"},
    {"RankTooHigh", [](Call& c) { c.a.dims = Sizes(65, 1); }, Code::kShape, "A", "rank 65; it must be at most 64"},
    {"K", [](Call& c) { c.b.dims = {5, 4}; }, Code::kShape, "B",
     "A has shape [2, 3] and B has shape [5, 4]; K is 3 in A and 5 in B, and must be the same"},
    {"KTransposedA", [](Call& c) { c.args.transA = 1; }, Code::kShape, "B", "A (transposed) has shape [2, 3] and B has shape [3, 4]"},
    {"KTransposedB", [](Call& c) { c.args.transB = -1; }, Code::kShape, "B", "B (transposed) has shape [3, 4]; K is 3 in A and 4 in B, and must be the same; unset transB if B is (K, N)"},
    {"KWithoutRows", [](Call& c) { c.a.dims = {0, 5}, c.y_dims = {0, 4}; }, Code::kShape, "B", "K is 5 in A and 3 in B"},
    {"Negative", [](Call& c) { c.a.dims = {-2, 3}; }, Code::kShape, "A", "A has shape [-2, 3]; each size must be a whole number from 0 to 2^53 - 1"},
    {"Product", [](Call& c) { c.b.dims = {kHuge, kHuge}; }, Code::kShape, "B", "more than 2^53 elements"},
    {"ProductOfY", [](Call& c) { c.a.dims = {kHuge, 0}, c.b.dims = {0, kHuge}, c.c.dims = {1}, c.b_scale.dims = c.b_zero.dims = {1}; },
     Code::kShape, "Y", "more than 2^53 elements"},
    {"StridesOfA", [](Call& c) { c.a.strides = {3}; }, Code::kShape, "A", "strides [3] and shape [2, 3]; there must be one stride per axis"},
    {"NegativeStrideOfB", [](Call& c) { c.b.strides = {-4, 1}; }, Code::kShape, "B", "each stride must be a whole number from 0 to 2^53 - 1"},
    {"ShortA", [](Call& c) { c.a.tensor.size = 5; }, Code::kShape, "A", "A has 5 elements; its shape [2, 3] needs 6"},
    {"LongB", [](Call& c) { c.b.tensor.size = 13; }, Code::kShape, "B", "B has 13 elements; its shape [3, 4] needs 12"},
    {"NegativeOffset", [](Call& c) { c.b.tensor.offset = -1; }, Code::kShape, "B",
     "B has offset -1; it must be from 0 to 9007199254740980"},
    {"ShortAForOffset", [](Call& c) { c.a.tensor.offset = 2, c.a.tensor.size = 7; }, Code::kShape, "A",
     "A has 7 elements; its shape [2, 3] and offset 2 need 8"},
    {"AUnknownType", [](Call& c) { c.a.tensor.dtype = static_cast<DType>(200); }, Code::kDType, "A", "unknown type 200"},
    {"BUnknownType", [](Call& c) { c.b.tensor.dtype = static_cast<DType>(kDTypeCount); }, Code::kDType, "B", "unknown type"},
    {"AType", [](Call& c) { c.a.tensor.dtype = DType::kFloat32; }, Code::kDType, "A", "A has type float32; it must be int8 or uint8"},
    {"BType", [](Call& c) { c.b.tensor.dtype = DType::kInt32; }, Code::kDType, "B", "B has type int32; it must be int8 or uint8"},
    {"NoDataOfA", [](Call& c) { c.a.tensor.data = nullptr; }, Code::kArgument, "A", "A has no data"},
    {"NoDataOfB", [](Call& c) { c.b.tensor.data = nullptr; }, Code::kArgument, "B", "B has no data"},

    // Packed weights.
    {"PackedEmpty", [](Call& c) { c.args.packed_B = &c.weights; }, Code::kArgument, "B", "B is an empty PackedWeights"},
    {"PackedTransB", [](Call& c) { c.pack_b(), c.args.transB = 1; }, Code::kArgument, "transB",
     "transB is set and B is packed; transpose when packing, by trans"},
    {"PackedK", [](Call& c) { c.pack_b({5, 4}); }, Code::kShape, "B",
     "A has shape [2, 3] and B is packed from shape [5, 4]; K is 3 in A and 5 in B, and must be the same"},
    {"PackedKTransposed", [](Call& c) { c.pack_b(), c.args.transA = 1; }, Code::kShape, "B",
     "A (transposed) has shape [2, 3] and B is packed from shape [3, 4]; K is 2 in A and 3 in B"},
    {"PackedBatch", [](Call& c) { c.pack_b({1, 3, 4}); }, Code::kShape, "B",
     "B is packed with batch axes [1]; for qgemm it must have rank 2"},
    {"PackedKOfNK", [](Call& c) { c.pack_b({4, 3}); }, Code::kShape, "B", "; pack it with another trans if K and N are exchanged"},
    {"PackedKZero", [](Call& c) { c.pack_b({0, 4}); }, Code::kShape, "B", "K is 3 in A and 0 in B"},
    {"PackedNOfScales", [](Call& c) { c.pack_b({3, 5}); }, Code::kShape, "b_scale", "b_scale has shape [4] and B' has 5 columns"},
    {"PackedNOfC", [](Call& c) { c.pack_b({3, 5}), c.b_scale.dims = c.b_zero.dims = {5}; }, Code::kShape, "C", "broadcast to [2, 5]"},
    {"PackedNOfY", [](Call& c) { c.pack_b({3, 5}), c.b_scale.dims = c.b_zero.dims = c.c.dims = {5}; }, Code::kShape, "Y",
     "Y has shape [2, 4]; the result has shape [2, 5]"},
    {"PackedZeroPointType", [](Call& c) { c.pack_b(), c.b_zero.tensor.dtype = DType::kUInt8; }, Code::kDType, "b_zero_point",
     "b_zero_point has type uint8; it must be int8"},
    {"PackedAType", [](Call& c) { c.pack_b(), c.a.tensor.dtype = DType::kInt64; }, Code::kDType, "A", "must be int8 or uint8"},

    // Types of scales and zero points.
    {"AScaleType", [](Call& c) { c.a_scale.tensor.dtype = DType::kFloat64; }, Code::kDType, "a_scale",
     "a_scale has type float64; it must be float32"},
    {"BScaleType", [](Call& c) { c.b_scale.tensor.dtype = DType::kInt32; }, Code::kDType, "b_scale",
     "b_scale has type int32; it must be float32"},
    {"YScaleType", [](Call& c) { c.quantize(), c.y_scale.tensor.dtype = DType::kFloat16; }, Code::kDType, "y_scale",
     "y_scale has type float16; it must be float32"},
    {"AZeroPointType", [](Call& c) { c.a_zero.tensor.dtype = DType::kInt8; }, Code::kDType, "a_zero_point",
     "a_zero_point has type int8; it must be uint8"},
    {"BZeroPointType", [](Call& c) { c.b_zero.tensor.dtype = DType::kUInt8; }, Code::kDType, "b_zero_point",
     "b_zero_point has type uint8; it must be int8"},
    {"AZeroPointWideType", [](Call& c) { c.a_zero.tensor.dtype = DType::kInt32; }, Code::kDType, "a_zero_point", "it must be uint8"},
    {"YZeroPointType", [](Call& c) { c.quantize(), c.y_zero.tensor.dtype = DType::kInt32; }, Code::kDType, "y_zero_point",
     "y_zero_point has type int32; it must be int8 or uint8"},
    {"UnknownTypeOfScale", [](Call& c) { c.b_scale.tensor.dtype = static_cast<DType>(77); }, Code::kDType, "b_scale", "unknown type 77"},
    // One tensor given twice: as y_zero_point it may have either type, as another zero point it may not.
    {"AZeroPointIsYs", [](Call& c) { c.quantize(), c.args.a_zero_point = &c.y_zero.tensor; }, Code::kDType, "a_zero_point",
     "a_zero_point has type int8; it must be uint8"},
    {"BZeroPointIsYs",
     [](Call& c) { c.quantize(), c.y_zero.tensor.dtype = c.args.Y.dtype = DType::kUInt8, c.args.b_zero_point = &c.y_zero.tensor; },
     Code::kDType, "b_zero_point", "b_zero_point has type uint8; it must be int8"},

    // Shapes of scales and zero points.
    {"AScaleOf2", [](Call& c) { c.a_scale.dims = {2}; }, Code::kShape, "a_scale",
     "a_scale has shape [2]; it must be one value, of shape [] or [1]"},
    {"AScaleOfN", [](Call& c) { c.a_scale.dims = {4}; }, Code::kShape, "a_scale", "a_scale has shape [4]; it must be one value"},
    {"AScaleOfNone", [](Call& c) { c.a_scale.dims = {0}; }, Code::kShape, "a_scale", "a_scale has shape [0]; it must be one value"},
    {"AScaleRank2", [](Call& c) { c.a_scale.dims = {1, 1}; }, Code::kShape, "a_scale", "a_scale has shape [1, 1]; it must be one value"},
    {"AZeroPointOf2", [](Call& c) { c.a_zero.dims = {2}; }, Code::kShape, "a_zero_point",
     "a_zero_point has shape [2]; it must be one value, of shape [] or [1]"},
    {"AZeroPointOfN", [](Call& c) { c.a_zero.dims = {4}; }, Code::kShape, "a_zero_point", "it must be one value"},
    {"AZeroPointRank2", [](Call& c) { c.a_zero.dims = {1, 1}; }, Code::kShape, "a_zero_point", "it must be one value"},
    {"BScaleOf2", [](Call& c) { c.b_scale.dims = {2}; }, Code::kShape, "b_scale",
     "b_scale has shape [2] and B' has 4 columns; it must be one value or one per column, of shape [], [1] or [N]"},
    {"BScaleOfK", [](Call& c) { c.b_scale.dims = {3}; }, Code::kShape, "b_scale", "b_scale has shape [3] and B' has 4 columns"},
    {"BScaleOfNone", [](Call& c) { c.b_scale.dims = {0}; }, Code::kShape, "b_scale", "b_scale has shape [0] and B' has 4 columns"},
    {"BScaleRow", [](Call& c) { c.b_scale.dims = {1, 4}; }, Code::kShape, "b_scale", "b_scale has shape [1, 4] and B' has 4 columns"},
    {"BScaleColumn", [](Call& c) { c.b_scale.dims = {4, 1}; }, Code::kShape, "b_scale", "b_scale has shape [4, 1]"},
    {"BScaleRank2One", [](Call& c) { c.b_scale.dims = {1, 1}; }, Code::kShape, "b_scale", "b_scale has shape [1, 1]"},
    {"BScaleOfRowsOfB", [](Call& c) { c.args.transB = 1, c.b.dims = {5, 3}; }, Code::kShape, "b_scale", "[4] and B' has 5 columns"},
    {"BZeroPointOf5", [](Call& c) { c.b_zero.dims = {5}; }, Code::kShape, "b_zero_point",
     "b_zero_point has shape [5] and B' has 4 columns"},
    {"BZeroPointRow", [](Call& c) { c.b_zero.dims = {1, 4}; }, Code::kShape, "b_zero_point", "b_zero_point has shape [1, 4]"},
    {"YScaleOfN", [](Call& c) { c.quantize(), c.y_scale.dims = {4}; }, Code::kShape, "y_scale",
     "y_scale has shape [4]; it must be one value"},
    {"YZeroPointOfN", [](Call& c) { c.quantize(), c.y_zero.dims = {4}; }, Code::kShape, "y_zero_point",
     "y_zero_point has shape [4]; it must be one value, of shape [] or [1]"},
    {"ShortBScale", [](Call& c) { c.b_scale.tensor.size = 3; }, Code::kShape, "b_scale", "b_scale has 3 elements; its shape [4] needs 4"},
    {"ShortBScaleForOffset", [](Call& c) { c.b_scale.tensor.offset = 1, c.b_scale.tensor.size = 4; }, Code::kShape, "b_scale",
     "b_scale has 4 elements; its shape [4] and offset 1 need 5"},
    {"NegativeOffsetOfYZeroPoint", [](Call& c) { c.quantize(), c.y_zero.tensor.offset = -2; }, Code::kShape, "y_zero_point",
     "y_zero_point has offset -2; it must be from 0 to"},
    {"StridesOfBScale", [](Call& c) { c.b_scale.strides = {-1}; }, Code::kShape, "b_scale", "each stride must be a whole number from 0 to 2^53 - 1"},
    {"NoDataOfAScale", [](Call& c) { c.a_scale.tensor.data = nullptr; }, Code::kArgument, "a_scale", "a_scale has no data"},
    {"NoDataOfAZeroPoint", [](Call& c) { c.a_zero.tensor.data = nullptr; }, Code::kArgument, "a_zero_point", "a_zero_point has no data"},
    {"NoDataOfBScale", [](Call& c) { c.b_scale.tensor.data = nullptr; }, Code::kArgument, "b_scale", "b_scale has no data"},
    {"NoDataOfBZeroPoint", [](Call& c) { c.b_zero.tensor.data = nullptr; }, Code::kArgument, "b_zero_point", "b_zero_point has no data"},
    {"NoDataOfYScale", [](Call& c) { c.quantize(), c.y_scale.tensor.data = nullptr; }, Code::kArgument, "y_scale", "y_scale has no data"},
    {"NoDataOfYZeroPoint", [](Call& c) { c.quantize(), c.y_zero.tensor.data = nullptr; }, Code::kArgument, "y_zero_point",
     "y_zero_point has no data"},

    // C.
    {"CType", [](Call& c) { c.c.tensor.dtype = DType::kFloat32; }, Code::kDType, "C", "C has type float32; it must be int32"},
    {"CUnsigned", [](Call& c) { c.c.tensor.dtype = DType::kUInt32; }, Code::kDType, "C", "C has type uint32; it must be int32"},
    {"COfM", [](Call& c) { c.c.dims = {2}; }, Code::kShape, "C", "C has shape [2], which does not broadcast to [2, 4]"},
    {"CTransposed", [](Call& c) { c.c.dims = {4, 1}; }, Code::kShape, "C", "does not broadcast"},
    {"CRank3", [](Call& c) { c.c.dims = {1, 2, 4}; }, Code::kShape, "C", "does not broadcast"},
    {"CWider", [](Call& c) { c.a.dims = {1, 3}, c.y_dims = {1, 4}, c.c.dims = {2, 4}; }, Code::kShape, "C", "does not broadcast"},
    {"ShortC", [](Call& c) { c.c.tensor.size = 3; }, Code::kShape, "C", "C has 3 elements; its shape [4] needs 4"},
    {"NoDataOfC", [](Call& c) { c.c.tensor.data = nullptr; }, Code::kArgument, "C", "C has no data"},

    // Y.
    {"OnlyYScale", [](Call& c) { c.y_scale.is_there = true; }, Code::kArgument, "y_zero_point",
     "y_zero_point is absent and y_scale is given; give both for a quantized result, or neither for float32"},
    {"OnlyYZeroPoint", [](Call& c) { c.y_zero.is_there = true; }, Code::kArgument, "y_scale",
     "y_scale is absent and y_zero_point is given; give both for a quantized result, or neither for float32"},
    {"OnlyYScaleOf8Bits", [](Call& c) { c.quantize(), c.y_zero.is_there = false; }, Code::kArgument, "y_zero_point", "y_scale is given"},
    {"YType8Bit", [](Call& c) { c.args.Y.dtype = DType::kInt8; }, Code::kDType, "Y",
     "Y has type int8; the result has type float32, since y_scale is absent"},
    {"YTypeFloat", [](Call& c) { c.quantize(), c.args.Y.dtype = DType::kFloat32; }, Code::kDType, "Y",
     "Y has type float32; the result has type int8, the type of y_zero_point"},
    {"YTypeOther8Bit", [](Call& c) { c.quantize(), c.args.Y.dtype = DType::kUInt8; }, Code::kDType, "Y",
     "Y has type uint8; the result has type int8"},
    {"YTypeInt32", [](Call& c) { c.args.Y.dtype = DType::kInt32; }, Code::kDType, "Y", "Y has type int32; the result has type float32"},
    {"YUnknownType", [](Call& c) { c.args.Y.dtype = static_cast<DType>(99); }, Code::kDType, "Y", "unknown type 99"},
    {"YShape", [](Call& c) { c.y_dims = {4, 2}; }, Code::kShape, "Y", "Y has shape [4, 2]; the result has shape [2, 4]"},
    {"YRows", [](Call& c) { c.y_dims = {3, 4}; }, Code::kShape, "Y", "Y has shape [3, 4]"},
    {"YColumns", [](Call& c) { c.y_dims = {2, 5}; }, Code::kShape, "Y", "Y has shape [2, 5]"},
    {"YRank", [](Call& c) { c.y_dims = {8}; }, Code::kShape, "Y", "Y has shape [8]; the result has shape [2, 4]"},
    {"YSharesPlaces", [](Call& c) { c.y_strides = {0, 1}; }, Code::kShape, "Y", "no two elements share memory"},
    {"YRowsRunTogether", [](Call& c) { c.quantize(), c.y_strides = {3, 1}; }, Code::kShape, "Y", "no two elements share memory"},
    {"ShortY", [](Call& c) { c.args.Y.size = 7; }, Code::kShape, "Y", "Y has 7 elements; its shape [2, 4] needs 8"},
    {"NoDataOfY", [](Call& c) { c.args.Y.data = nullptr; }, Code::kArgument, "Y", "Y has no data"},
    {"YIsA", [](Call& c) { c.quantize(), c.args.Y.data = c.a.data.data(); }, Code::kArgument, "Y",
     "Y overlaps A in memory; it must overlap no input"},
    {"YTouchesB", [](Call& c) { c.quantize(), c.args.Y.data = c.b.data.data() + 11; }, Code::kArgument, "Y", "Y overlaps B in memory"},
    {"YIsC", [](Call& c) { c.c.dims = {2, 4}, c.args.Y.data = c.c.data.data(); }, Code::kArgument, "Y", "Y overlaps C in memory"},
    {"YReachesC", [](Call& c) { c.c.tensor.data = c.y.data() + 7; }, Code::kArgument, "Y", "Y overlaps C in memory"},
    {"YOverlapsAScale", [](Call& c) { c.args.Y.data = c.a_scale.data.data(); }, Code::kArgument, "Y", "Y overlaps a_scale in memory"},
    {"YOverlapsAZeroPoint", [](Call& c) { c.quantize(), c.args.Y.data = c.a_zero.data.data(); }, Code::kArgument, "Y",
     "Y overlaps a_zero_point in memory"},
    {"YOverlapsBScale", [](Call& c) { c.args.Y.data = c.b_scale.data.data() + 3; }, Code::kArgument, "Y", "Y overlaps b_scale in memory"},
    {"YOverlapsBZeroPoint", [](Call& c) { c.quantize(), c.args.Y.data = c.b_zero.data.data() + 3; }, Code::kArgument, "Y",
     "Y overlaps b_zero_point in memory"},
    {"YOverlapsBScaleAtOffset", [](Call& c) { c.b_scale.tensor.data = c.y.data(), c.b_scale.tensor.offset = 7; }, Code::kArgument, "Y",
     "Y overlaps b_scale in memory"},
    {"YAtOffsetOverlapsAZeroPoint",
     [](Call& c) { c.quantize(), c.args.Y.data = c.a_zero.data.data(), c.args.Y.offset = c.a_zero.tensor.offset = 20; }, Code::kArgument, "Y",
     "Y overlaps a_zero_point in memory"},
    {"YOverlapsYScale", [](Call& c) { c.quantize(), c.args.Y.data = c.y_scale.data.data(); }, Code::kArgument, "Y",
     "Y overlaps y_scale in memory"},
    {"YOverlapsYZeroPoint", [](Call& c) { c.quantize(), c.args.Y.data = c.y_zero.data.data(); }, Code::kArgument, "Y",
     "Y overlaps y_zero_point in memory"},
    {"YOverlapsAOfPacked", [](Call& c) { c.pack_b(), c.quantize(), c.args.Y.data = c.a.data.data() + 5; }, Code::kArgument, "Y",
     "Y overlaps A in memory"},

    // Values.
    {"AScaleNan", [](Call& c) { c.a_scale.data[0] = kNan; }, Code::kArgument, "a_scale",
     "a_scale is NaN; a scale must be finite and above 0"},
    {"AScaleInfinite", [](Call& c) { c.a_scale.data[0] = kInfinity; }, Code::kArgument, "a_scale", "a_scale is infinite; a scale must be"},
    {"AScale0", [](Call& c) { c.a_scale.data[0] = 0; }, Code::kArgument, "a_scale", "a_scale is 0; a scale must be"},
    {"AScaleMinus0", [](Call& c) { c.a_scale.data[0] = -0.0F; }, Code::kArgument, "a_scale", "a_scale is 0; a scale must be"},
    {"AScaleNegative", [](Call& c) { c.a_scale.data[0] = -1; }, Code::kArgument, "a_scale", "a_scale is negative; a scale must be"},
    {"AScaleMinusInfinity", [](Call& c) { c.a_scale.data[0] = -kInfinity; }, Code::kArgument, "a_scale", "a scale must be finite"},
    {"AScaleAtOffset0", [](Call& c) { c.a_scale.tensor.offset = 1, c.a_scale.data[1] = 0; }, Code::kArgument, "a_scale",
     "a_scale is 0; a scale must be"},
    {"BScaleAtOffset0", [](Call& c) { c.b_scale.tensor.offset = 2, c.b_scale.data[5] = 0; }, Code::kArgument, "b_scale",
     "b_scale is 0; a scale must be"},
    {"BScaleNan", [](Call& c) { c.b_scale.data[3] = kNan; }, Code::kArgument, "b_scale", "b_scale is NaN; a scale must be"},
    {"BScaleInfinite", [](Call& c) { c.b_scale.data[0] = kInfinity; }, Code::kArgument, "b_scale", "b_scale is infinite; a scale must be"},
    {"BScale0", [](Call& c) { c.b_scale.data[1] = 0; }, Code::kArgument, "b_scale", "b_scale is 0; a scale must be"},
    {"BScaleNegative", [](Call& c) { c.b_scale.data[3] = -1e-45F; }, Code::kArgument, "b_scale", "b_scale is negative; a scale must be"},
    {"BScaleOfOneNan", [](Call& c) { c.b_scale.dims = {}, c.b_scale.data[0] = kNan; }, Code::kArgument, "b_scale", "b_scale is NaN"},
    {"BScaleStrided0", [](Call& c) { c.b_scale.strides = {5}, c.b_scale.data[15] = 0; }, Code::kArgument, "b_scale", "b_scale is 0"},
    {"BScaleRepeated0", [](Call& c) { c.b_scale.strides = {0}, c.b_scale.data[0] = 0; }, Code::kArgument, "b_scale", "b_scale is 0"},
    {"YScaleNan", [](Call& c) { c.quantize(), c.y_scale.data[0] = kNan; }, Code::kArgument, "y_scale", "y_scale is NaN; a scale must be"},
    {"YScaleInfinite", [](Call& c) { c.quantize(), c.y_scale.data[0] = kInfinity; }, Code::kArgument, "y_scale", "y_scale is infinite"},
    {"YScale0", [](Call& c) { c.quantize(), c.y_scale.data[0] = 0; }, Code::kArgument, "y_scale", "y_scale is 0; a scale must be"},
    {"YScaleNegative", [](Call& c) { c.quantize(), c.y_scale.data[0] = -2; }, Code::kArgument, "y_scale", "y_scale is negative"},
    {"AlphaNan", [](Call& c) { c.args.alpha = static_cast<double>(kNan); }, Code::kArgument, "alpha",
     "alpha is not finite in float32; it must be"},
    {"AlphaInfinite", [](Call& c) { c.args.alpha = -INFINITY; }, Code::kArgument, "alpha", "alpha is not finite in float32"},
    {"AlphaFar", [](Call& c) { c.args.alpha = 1e39; }, Code::kArgument, "alpha", "alpha is not finite in float32"},
    {"AlphaTimesAScale", [](Call& c) { c.args.alpha = -1e30, c.a_scale.data[0] = 1e30F, c.b_scale.dims = {}, c.b_scale.data[0] = 1e-30F; },
     Code::kArgument, "a_scale", "alpha * a_scale is not finite in float32; it must be"},
    {"TimesBScale", [](Call& c) { c.a_scale.data[0] = 1e30F, c.b_scale.data[3] = 1e30F; }, Code::kArgument, "b_scale",
     "alpha * a_scale * b_scale, divided by y_scale if there is one, is not finite in float32; it must be"},
    {"TimesBScaleBeforeYScale",
     [](Call& c) { c.quantize(), c.a_scale.data[0] = 1e30F, c.b_scale.data[0] = 1e30F, c.y_scale.data[0] = 1e30F; }, Code::kArgument,
     "b_scale", "is not finite in float32"},
    {"DividedByYScale", [](Call& c) { c.quantize(), c.a_scale.data[0] = 1e20F, c.y_scale.data[0] = 1e-30F; }, Code::kArgument, "b_scale",
     "alpha * a_scale * b_scale, divided by y_scale if there is one, is not finite in float32; it must be"},
    {"ScaleWithoutRows", [](Call& c) { c.a.dims = {0, 3}, c.y_dims = {0, 4}, c.b_scale.data[2] = kNan; }, Code::kArgument, "b_scale",
     "b_scale is NaN"},
    {"ScaleWithoutColumns",
     [](Call& c) {
       c.b.dims = {3, 0}, c.y_dims = {2, 0}, c.c.dims = c.b_zero.dims = {0};
       c.b_scale.dims = {1}, c.b_scale.data[0] = kNan;
     },
     Code::kArgument, "b_scale", "b_scale is NaN"},
    {"ScaleWithoutDepth", [](Call& c) { c.a.dims = {2, 0}, c.b.dims = {0, 4}, c.a_scale.data[0] = 0; }, Code::kArgument, "a_scale",
     "a_scale is 0"},
    {"ScaleOfPacked", [](Call& c) { c.pack_b(), c.b_scale.data[3] = 0; }, Code::kArgument, "b_scale", "b_scale is 0"},
};

class QGemmError : public ::testing::TestWithParam<Case> {};

TEST_P(QGemmError, IsReportedAndNothingIsWritten) {
  Call call;
  GetParam().spoil(call);
  call.link();
  const std::vector<std::byte> before = call.bytes();
  const size_t in_use = call.context.bytes_in_use();
  const Status status = qgemm(call.context, call.args);
  EXPECT_EQ(status.code, GetParam().code) << status.message;
  EXPECT_STREQ(status.op, "qgemm");
  EXPECT_EQ(std::string(status.message).substr(0, 7), "qgemm: ");
  EXPECT_STREQ(status.argument, GetParam().argument) << status.message;
  EXPECT_NE(std::string(status.message).find(GetParam().text), std::string::npos) << status.message;
  EXPECT_TRUE(before == call.bytes());
  EXPECT_EQ(call.context.bytes_in_use(), in_use);
  Call next;
  next.link();
  EXPECT_TRUE(qgemm(call.context, next.args).ok());
  EXPECT_EQ(next.y[0], 22 * 0.5F * 0.25F);
  // qgemm_shape() reports the same, except for values and for missing data.
  if (GetParam().code == Code::kArgument) return;
  int64_t dims[2];
  DType dtype;
  EXPECT_STREQ(qgemm_shape(call.args, dims, &dtype).message, status.message);
  Explanation plan;
  EXPECT_STREQ(explain(call.context, call.args, &plan).message, status.message);
}
INSTANTIATE_TEST_SUITE_P(Cases, QGemmError, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(QGemmAllowed, AtTheEdgesOfTheRules) {
  void (*const allowed[])(Call&) = {
      [](Call&) {},
      [](Call& c) { c.quantize(); },
      [](Call& c) { c.quantize(), c.y_zero.tensor.dtype = c.args.Y.dtype = DType::kUInt8; },
      [](Call& c) { c.pack_b(); },
      [](Call& c) { c.pack_b(), c.b.tensor = {}, c.b.dims = {7}; },  // B is not read
      [](Call& c) { c.pack_b(), c.quantize(), c.args.Y.data = c.b.data.data(); },
      [](Call& c) { c.a_zero.is_there = c.b_zero.is_there = c.c.is_there = false; },
      [](Call& c) { c.args.transA = -5, c.a.dims = {3, 2}; },
      [](Call& c) { c.args.transB = 2, c.b.dims = {4, 3}; },
      [](Call& c) { c.args.alpha = 0; },
      [](Call& c) { c.args.alpha = 1e-300; },
      [](Call& c) { c.args.alpha = -3.4e38, c.a_scale.data[0] = 1, c.b_scale.dims = {1}; },
      [](Call& c) { c.args.alpha = 1e30, c.a_scale.data[0] = 1e-30F; },
      [](Call& c) { c.a_scale.data[0] = 1e-45F, c.b_scale.data[1] = 1e-45F; },
      [](Call& c) { c.quantize(), c.y_scale.data[0] = 3e38F; },
      [](Call& c) { c.a_scale.dims = {1}, c.a_scale.strides = {9}, c.a_zero.dims = {}; },
      [](Call& c) { c.b_scale.dims = {1}, c.b_zero.dims = {}; },
      [](Call& c) { c.b_scale.strides = {0}, c.b_zero.strides = {3}; },
      [](Call& c) { c.b_scale.data[4] = kNan, c.b_scale.data[5] = 0; },  // after the last
      [](Call& c) { c.b_scale.strides = {2}, c.b_scale.data[1] = kNan; },
      [](Call& c) { c.y_strides = {1, 2}; },
      [](Call& c) { c.a.dims = {1, 3}, c.y_dims = {1, 4}, c.y_strides = {0, 1}; },
      [](Call& c) { c.c.dims = {2, 1}; },
      [](Call& c) { c.c.dims = {}; },
      // Inputs may overlap one another, and be the same.
      [](Call& c) {
        c.b.tensor.dtype = c.b_zero.tensor.dtype = DType::kUInt8, c.b.tensor.data = c.a.data.data();
      },
      [](Call& c) {
        c.quantize(), c.a_scale.tensor.data = c.y_scale.tensor.data = c.b_scale.data.data();
      },
      [](Call& c) { c.quantize(), c.args.b_zero_point = &c.y_zero.tensor; },
      // Nothing to read or write.
      [](Call& c) {
        c.a.dims = {0, 3}, c.y_dims = {0, 4}, c.quantize(), c.args.Y.data = c.a.data.data();
      },
      [](Call& c) {
        c.a.dims = {0, 3}, c.y_dims = {0, 4}, c.a.tensor.data = nullptr, c.args.Y.data = nullptr;
      },
      [](Call& c) {
        c.a.dims = {2, 0}, c.b.dims = {0, 4}, c.a.tensor.data = c.b.tensor.data = nullptr;
      },
      [](Call& c) {
        c.b.dims = {3, 0}, c.y_dims = {2, 0}, c.c.dims = c.b_scale.dims = c.b_zero.dims = {0};
        c.b.tensor.data = c.c.tensor.data = c.b_scale.tensor.data = c.b_zero.tensor.data = nullptr;
      },
      [](Call& c) {
        c.b.dims = {3, 0}, c.y_dims = {2, 0}, c.c.dims = c.b_scale.dims = c.b_zero.dims = {0};
        c.b_scale.strides = c.b_zero.strides = {0};  // no element, with stride 0
        c.b_scale.tensor.data = nullptr;
        c.b_zero.tensor.data = reinterpret_cast<const void*>(uintptr_t{64});  // must not be read
      },
      [](Call& c) {
        c.b.dims = {3, 0}, c.y_dims = {2, 0}, c.c.dims = c.b_scale.dims = c.b_zero.dims = {1};
      },
      // Contiguous in one array.
      [](Call& c) { c.quantize(), c.args.Y.data = c.a.data.data() + 6; },
      [](Call& c) { c.quantize(), c.args.Y.data = c.b.data.data() + 12; },
      [](Call& c) {
        c.quantize(), c.b.strides = {8, 1}, c.y_strides = {8, 1},
                      c.args.Y.data = c.b.data.data() + 4;
      },
      [](Call& c) { c.args.Y.data = c.a_scale.data.data() + 1; },
  };
  for (const auto& change : allowed) {
    Call call;
    change(call);
    call.link();
    const Status status = qgemm(call.context, call.args);
    EXPECT_TRUE(status.ok()) << &change - allowed << ": " << status.message;
  }
}

TEST(QGemmAllowed, RepeatedCallsReturnTheSame) {
  Call call;
  call.quantize();
  call.link();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(qgemm(call.context, call.args).ok());
    const auto* y = reinterpret_cast<const int8_t*>(call.y.data());
    EXPECT_TRUE(std::all_of(
        y, y + 8, [](int8_t value) { return value == 27; }));  // 22 * 0.5 * 0.25 / 0.125 + 5
    EXPECT_EQ(call.y[2], -7.0F);
  }
}

// Every type for every argument: which are refused, and what the error names.
TEST(QGemmAllowed, TypesOfEveryArgument) {
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    const bool is_8bit = dtype == DType::kInt8 || dtype == DType::kUInt8;
    struct Change {
      const char* argument;
      bool allowed;
      void (*apply)(Call&, DType);
    };
    const Change changes[] = {
        {"A", is_8bit, [](Call& c, DType t) { c.a.tensor.dtype = t, c.a_zero.is_there = false; }},
        {"B", is_8bit, [](Call& c, DType t) { c.b.tensor.dtype = t, c.b_zero.is_there = false; }},
        {"C", dtype == DType::kInt32, [](Call& c, DType t) { c.c.tensor.dtype = t; }},
        {"a_scale", dtype == DType::kFloat32, [](Call& c, DType t) { c.a_scale.tensor.dtype = t; }},
        {"b_scale", dtype == DType::kFloat32, [](Call& c, DType t) { c.b_scale.tensor.dtype = t; }},
        {"y_scale", dtype == DType::kFloat32,
         [](Call& c, DType t) { c.quantize(), c.y_scale.tensor.dtype = t; }},
        {"a_zero_point", dtype == DType::kUInt8,
         [](Call& c, DType t) { c.a_zero.tensor.dtype = t; }},
        {"b_zero_point", dtype == DType::kInt8,
         [](Call& c, DType t) { c.b_zero.tensor.dtype = t; }},
        {"y_zero_point", is_8bit,
         [](Call& c, DType t) { c.quantize(), c.y_zero.tensor.dtype = t, c.args.Y.dtype = t; }},
        {"Y", dtype == DType::kFloat32, [](Call& c, DType t) { c.args.Y.dtype = t; }},
        {"Y", dtype == DType::kInt8, [](Call& c, DType t) { c.quantize(), c.args.Y.dtype = t; }},
    };
    for (const Change& change : changes) {
      Call call;
      change.apply(call, dtype);
      call.link();
      const Status status = qgemm(call.context, call.args);
      EXPECT_EQ(status.code, change.allowed ? Code::kOk : Code::kDType)
          << change.argument << " " << dtype_name(dtype);
      EXPECT_STREQ(status.argument, change.allowed ? "" : change.argument) << dtype_name(dtype);
    }
  }
}

// Shape and explain
// -------------------------------------------------------------------------------------------------

TEST(QGemmShape, ChecksWithoutData) {
  Call call;
  call.quantize();
  call.link();
  for (ConstTensor* tensor :
       {&call.args.A, &call.args.B, &call.args.a_scale, &call.args.b_scale, &call.a_zero.tensor,
        &call.b_zero.tensor, &call.c.tensor, &call.y_scale.tensor, &call.y_zero.tensor}) {
    tensor->data = nullptr;
  }
  call.args.Y = {};
  call.args.alpha = static_cast<double>(kNan);
  int64_t dims[2] = {};
  DType dtype = DType::kInt64;
  Status status = qgemm_shape(call.args, dims, &dtype);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_TRUE(dims[0] == 2 && dims[1] == 4 && dtype == DType::kInt8);
  Explanation plan;
  EXPECT_TRUE(explain(call.context, call.args, &plan).ok());
  call.y_zero.tensor.dtype = DType::kUInt8;
  EXPECT_TRUE(qgemm_shape(call.args, dims, &dtype).ok());
  EXPECT_EQ(dtype, DType::kUInt8);
  call.args.y_scale = nullptr;
  EXPECT_EQ(qgemm_shape(call.args, dims, &dtype).code, Code::kArgument);
  call.args.y_zero_point = nullptr;
  EXPECT_TRUE(qgemm_shape(call.args, dims, &dtype).ok());
  EXPECT_EQ(dtype, DType::kFloat32);

  // The caller's arrays are not in memory yet: space 1 holds both B (12 bytes) and Y, space 2
  // b_scale (16 bytes).
  call.args.Y = {.dims = call.y_dims};
  call.args.B.place = {1, 0};
  call.args.b_scale.place = {2, 4};
  for (const auto& [place, ok] : {std::pair{Place{1, 11}, false},
                                  {Place{1, 12}, true},
                                  {Place{2, 19}, false},
                                  {Place{2, 20}, true},
                                  {Place{3, 0}, true}}) {
    call.args.Y.place = place;
    status = qgemm_shape(call.args, dims, &dtype);
    EXPECT_EQ(status.code, ok ? Code::kOk : Code::kArgument)
        << place.space << " " << place.offset << " " << status.message;
  }
  call.args.Y.dtype = DType::kInt8;
  EXPECT_EQ(qgemm_shape(call.args, dims, &dtype).code, Code::kDType);
}

TEST(QGemmShape, DoesNotReadValues) {
  Call call;
  call.quantize();
  call.a_scale.data[0] = kNan, call.b_scale.data[2] = 0, call.y_scale.data[0] = -1;
  call.link();
  int64_t dims[2] = {};
  DType dtype = DType::kInt64;
  EXPECT_TRUE(qgemm_shape(call.args, dims, &dtype).ok());
}

TEST(QGemmExplain, ReportsThePlan) {
  if (relaxed_dot() == Dot::kUnsigned || relaxed_dot() == Dot::kSigned)
    GTEST_SKIP() << "this engine has a dot product of 8 bits";
  struct Expected {
    int64_t m;
    const char* kernel;
    int64_t mr, nr;
    bool reads_packed;
  };
  const Expected all[] = {
      {1, "i8_1x32c2__simd128", 1, 32, true},      {2, "i8_2x16c2__simd128", 2, 16, true},
      {3, "i8_4x8c2__simd128", 4, 8, true},        {4, "i8_4x8c2__simd128", 4, 8, true},
      {23, "i8_4x8c2__simd128", 4, 8, true},       {24, "i8_i16_4x8c2__simd128", 4, 8, false},
      {1000, "i8_i16_4x8c2__simd128", 4, 8, false}};
  std::vector<uint8_t> b(30 * 20);
  b[0] = 255;  // needs 8 bits; dot_test.cc covers 7 bits and relaxed dots of 8
  const int64_t b_dims[] = {30, 20};
  Context context;
  PackedWeights weights;
  ASSERT_TRUE(
      pack(context, {.op = PackFor::kQGemm, .B = {b.data(), DType::kUInt8, b_dims}}, &weights)
          .ok());
  for (const Expected& expected : all) {
    for (const bool packed : {false, true}) {
      const int64_t a_dims[] = {expected.m, 30};
      QGemmArgs args;
      args.A = {nullptr, DType::kInt8, a_dims};
      args.B = {nullptr, DType::kUInt8, b_dims};
      if (packed) args.packed_B = &weights;
      Explanation plan;
      const Status status = explain(Context(), args, &plan);
      ASSERT_TRUE(status.ok()) << status.message;
      EXPECT_STREQ(plan.kernel, expected.kernel);
      EXPECT_EQ(std::vector({plan.m, plan.n, plan.k}), std::vector<int64_t>({expected.m, 20, 30}));
      EXPECT_EQ(std::vector({plan.mr, plan.nr, plan.kr}),
                std::vector<int64_t>({expected.mr, expected.nr, 2}));
      EXPECT_EQ(std::vector({plan.mc, plan.nc, plan.kc}),
                std::vector<int64_t>({expected.m, 20, 30}));
      EXPECT_EQ(plan.packs_b, !(packed && expected.reads_packed)) << expected.m;
      EXPECT_TRUE(plan.packs_a && !plan.direct && plan.threads == 1);
      EXPECT_GE(plan.scratch_bytes, expected.m * 20 * 4);
    }
  }
}

TEST(QGemmExplain, KeepsScratchBoundedHoweverLargeTheProduct) {
  const int64_t large[] = {1, 2, 3, 23, 24, 100, 512, 5000, 6144, 200000, 10000000};
  for (const int64_t m : large) {
    for (const int64_t n : large) {
      for (const int64_t k : large) {
        const int64_t a[] = {m, k}, b[] = {k, n};
        for (const DType type : {DType::kInt8, DType::kUInt8}) {
          QGemmArgs args;
          args.A = {nullptr, type, a};
          args.B = {nullptr, type, b};
          Explanation plan;
          ASSERT_TRUE(explain(Context(), args, &plan).ok());
          ASSERT_LT(plan.scratch_bytes, 32 << 20) << m << " " << n << " " << k;
          ASSERT_TRUE(k <= 4096 || m < 512 || plan.mc >= 200)
              << "B is packed again for each block of rows";
        }
      }
    }
  }
}

TEST(QGemmOffsets, OfEveryTensor) {
  uint32_t seed = 0;
  for (const DType a : {DType::kInt8, DType::kUInt8}) {
    for (const DType b : {DType::kInt8, DType::kUInt8}) {
      for (const DType y : {DType::kFloat32, DType::kInt8, DType::kUInt8}) {
        for (const auto& [m, n, k] :
             {std::array<int64_t, 3>{1, 1, 1}, {1, 33, 40}, {5, 9, 0}, {0, 9, 5}, {31, 45, 53}}) {
          QGemmTester t = QGemmTester().types(a, b).output(y).sizes(m, n, k).padded();
          t.seed(++seed).run();
          t.c({n}).extents(Extent::kOne, Extent::kColumns, Extent::kStrided).gap(2).run();
          t.c({m, n}).extents(Extent::kScalar, Extent::kRepeated, Extent::kColumns);
          t.trans(true, true).columns().run();
        }
      }
    }
  }
}

// Packing
// -------------------------------------------------------------------------------------------------

struct PackCase {
  const char* name;
  void (*spoil)(ConstTensor&, Sizes& dims, Sizes& strides);
  Code code;
  const char* text;
};

const PackCase kPackCases[] = {
    {"Float32", [](ConstTensor& b, Sizes&, Sizes&) { b.dtype = DType::kFloat32; }, Code::kDType,
     "pack: B has type float32; for qgemm it must be int8 or uint8"},
    {"Int32", [](ConstTensor& b, Sizes&, Sizes&) { b.dtype = DType::kInt32; }, Code::kDType,
     "B has type int32; for qgemm it must be int8 or uint8"},
    {"UnknownType", [](ConstTensor& b, Sizes&, Sizes&) { b.dtype = static_cast<DType>(200); },
     Code::kDType, "unknown type 200"},
    {"Rank1", [](ConstTensor&, Sizes& dims, Sizes&) { dims = {12}; }, Code::kShape,
     "pack: B has shape [12] of rank 1; it must have rank 2"},
    {"Negative", [](ConstTensor&, Sizes& dims, Sizes&) { dims = {3, -4}; }, Code::kShape,
     "each size must be a whole number from 0 to 2^53 - 1"},
    {"Product", [](ConstTensor&, Sizes& dims, Sizes&) { dims = {kHuge, kHuge}; }, Code::kShape,
     "more than 2^53 elements"},
    {"Strides", [](ConstTensor&, Sizes&, Sizes& strides) { strides = {4}; }, Code::kShape,
     "there must be one stride per axis"},
    {"NegativeStride", [](ConstTensor&, Sizes&, Sizes& strides) { strides = {4, -1}; },
     Code::kShape, "each stride must be a whole number from 0 to 2^53 - 1"},
    {"Short", [](ConstTensor& b, Sizes&, Sizes&) { b.size = 11; }, Code::kShape,
     "B has 11 elements; its shape [3, 4] needs 12"},
    {"NoData", [](ConstTensor& b, Sizes&, Sizes&) { b.data = nullptr; }, Code::kArgument,
     "pack: B has no data"},
};

class PackError : public ::testing::TestWithParam<PackCase> {};

TEST_P(PackError, IsReportedAndWeightsStayUnchanged) {
  const std::vector<int8_t> data(64, 1);
  for (const int64_t trans : {0, 1}) {
    Context context;
    Sizes dims = {3, 4}, strides;
    ConstTensor b{data.data(), DType::kInt8, dims};
    PackedWeights weights;
    ASSERT_TRUE(pack(context, {.op = PackFor::kQGemm, .B = b, .trans = trans}, &weights).ok());
    const size_t in_use = context.bytes_in_use();
    GetParam().spoil(b, dims, strides);
    b.dims = dims, b.strides = strides;
    const Status status = pack(context, {.op = PackFor::kQGemm, .B = b, .trans = trans}, &weights);
    EXPECT_EQ(status.code, GetParam().code) << status.message;
    EXPECT_STREQ(status.op, "pack");
    EXPECT_STREQ(status.argument, "B");
    EXPECT_NE(std::string(status.message).find(GetParam().text), std::string::npos)
        << status.message;
    EXPECT_TRUE(weights.k() == (trans != 0 ? 4 : 3) && weights.n() == (trans != 0 ? 3 : 4));
    EXPECT_EQ(context.bytes_in_use(), in_use);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, PackError, ::testing::ValuesIn(kPackCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace wgemm::testing
