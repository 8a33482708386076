// Every rule that a call of gemm() can break: the error's code, argument and message, and that
// the call writes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "engine.h"
#include "kernels/kernel.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

using Sizes = std::vector<int64_t>;

// A valid call, (2, 3) x (3, 4) + (4). Each test makes one thing invalid.
struct Call {
  Sizes a_dims{2, 3}, b_dims{3, 4}, c_dims{4}, y_dims{2, 4}, a_strides, b_strides, c_strides,
      y_strides;
  std::vector<float> a = std::vector<float>(64, 1.0F), b = a, c = a,
                     y = std::vector<float>(64, -7.0F);
  ConstTensor c_tensor;
  GemmArgs args;
  bool with_c = true;
  Context context;

  Call() {
    args.A = {a.data(), DType::kFloat32};
    args.B = {b.data(), DType::kFloat32};
    c_tensor = {c.data(), DType::kFloat32};
    args.Y = {y.data(), DType::kFloat32};
  }
  void link() {
    args.A.dims = a_dims, args.A.strides = a_strides;
    args.B.dims = b_dims, args.B.strides = b_strides;
    c_tensor.dims = c_dims, c_tensor.strides = c_strides;
    args.Y.dims = y_dims, args.Y.strides = y_strides;
    args.C = with_c ? &c_tensor : nullptr;
  }
  Status run() {
    link();
    return gemm(context, args);
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
const double kNan = std::numeric_limits<double>::quiet_NaN();

void to_type(Call& c, DType type) {
  c.args.A.dtype = c.args.B.dtype = c.c_tensor.dtype = c.args.Y.dtype = type;
}
void to_int32(Call& c) { to_type(c, DType::kInt32); }

// Whether Gemm has the type, by the specification. Only QGemm has the others.
constexpr bool is_of_gemm(DType type) { return type != DType::kInt8 && type != DType::kUInt8; }

const Case kCases[] = {
    {"ARank", [](Call& c) { c.a_dims = {6}; }, Code::kShape, "A",
     "A has shape [6] of rank 1; it must have rank 2"},
    {"BRank", [](Call& c) { c.b_dims = {1, 3, 4}; }, Code::kShape, "B",
     "B has shape [1, 3, 4] of rank 3; it must have rank 2"},
    {"RankTooHigh", [](Call& c) { c.a_dims = Sizes(65, 1); }, Code::kShape, "A",
     "rank 65; it must be at most 64"},
    {"K", [](Call& c) { c.b_dims = {5, 4}; }, Code::kShape, "B", "K is 3 in A and 5 in B"},
    {"KTransposed", [](Call& c) { c.args.transA = 1; }, Code::kShape, "B",
     "A (transposed) has shape [2, 3] and B has shape [3, 4]; K is 2 in A and 3 in B, and must "
     "be the same; unset transA if A is (M, K)"},
    {"KOfNK", [](Call& c) { c.b_dims = {4, 3}; }, Code::kShape, "B",
     "K is 3 in A and 4 in B, and must be the same; set transB if B is (N, K)"},
    {"Negative", [](Call& c) { c.a_dims = {-2, 3}; }, Code::kShape, "A",
     "A has shape [-2, 3]; each size must be a whole number from 0 to 2^53 - 1"},
    {"Product", [](Call& c) { c.a_dims = {kHuge, kHuge}; }, Code::kShape, "A",
     "more than 2^53 elements"},
    {"ProductWithZero", [](Call& c) { c.b_dims = {0, kHuge, kHuge}; }, Code::kShape, "B",
     "more than 2^53 elements"},
    {"ProductOfY", [](Call& c) { c.a_dims = {kHuge, 0}, c.b_dims = {0, kHuge}, c.c_dims = {1}; },
     Code::kShape, "Y", "more than 2^53 elements"},
    {"Strides", [](Call& c) { c.a_strides = {3}; }, Code::kShape, "A",
     "strides [3] and shape [2, 3]; there must be one stride per axis"},
    {"NegativeStride", [](Call& c) { c.b_strides = {-4, 1}; }, Code::kShape, "B",
     "gemm: B has strides [-4, 1]; each stride must be a whole number from 0 to 2^53 - 1"},
    {"FarStride", [](Call& c) { c.a_strides = {int64_t{1} << 60, 1}; }, Code::kShape, "A",
     "gemm: A has strides [1152921504606846976, 1] and shape [2, 3], which reach beyond 2^53 "
     "elements"},
    {"Short", [](Call& c) { c.args.A.size = 5; }, Code::kShape, "A",
     "A has 5 elements; its shape [2, 3] needs 6"},
    {"Long", [](Call& c) { c.args.B.size = 13; }, Code::kShape, "B",
     "B has 13 elements; its shape [3, 4] needs 12"},
    {"ShortForStrides", [](Call& c) { c.a_strides = {5, 1}, c.args.A.size = 7; }, Code::kShape, "A",
     "strides [5, 1] need 8"},
    {"NegativeOffset", [](Call& c) { c.args.A.offset = -1; }, Code::kShape, "A",
     "A has offset -1; it must be from 0 to 9007199254740986"},
    {"OffsetBeyond2To53", [](Call& c) { c.args.B.offset = (int64_t{1} << 53) - 11; }, Code::kShape,
     "B",
     "B has offset 9007199254740981; it must be from 0 to "
     "9007199254740980"},
    {"FarthestOffset", [](Call& c) { c.args.Y.offset = INT64_MAX; }, Code::kShape, "Y",
     "Y has offset 9223372036854775807; it must be from 0 to"},
    {"LeastOffset", [](Call& c) { c.c_tensor.offset = INT64_MIN; }, Code::kShape, "C",
     "C has offset -9223372036854775808; it must be from 0 to"},
    {"OffsetOfNone",
     [](Call& c) { c.a_dims = {2, 0}, c.b_dims = {0, 4}, c.args.A.offset = 4, c.args.A.size = 3; },
     Code::kShape, "A", "A has 3 elements; its shape [2, 0] and offset 4 need 4"},
    {"ShortForOffset", [](Call& c) { c.args.A.offset = 3, c.args.A.size = 8; }, Code::kShape, "A",
     "A has 8 elements; its shape [2, 3] and offset 3 need 9"},
    {"ShortForOffsetAndStrides",
     [](Call& c) { c.y_strides = {5, 1}, c.args.Y.offset = 2, c.args.Y.size = 10; }, Code::kShape,
     "Y", "Y has 10 elements; its shape [2, 4], strides [5, 1] and offset 2 need 11"},
    {"NoDataAtOffset", [](Call& c) { c.args.A.data = nullptr, c.args.A.offset = 1; },
     Code::kArgument, "A", "A has no data"},
    {"NoData", [](Call& c) { c.args.B.data = nullptr; }, Code::kArgument, "B", "B has no data"},
    {"UnknownType", [](Call& c) { c.args.A.dtype = static_cast<DType>(200); }, Code::kDType, "A",
     "unknown type 200"},
    {"Int8", [](Call& c) { to_type(c, DType::kInt8); }, Code::kDType, "A",
     "A has type int8, which Gemm does not have; 8-bit operands are for qgemm"},
    {"UInt8", [](Call& c) { to_type(c, DType::kUInt8), c.args.opset = 7; }, Code::kDType, "A",
     "A has type uint8, which Gemm does not have"},
    {"MixedInt8", [](Call& c) { c.args.B.dtype = DType::kInt8; }, Code::kDType, "B",
     "B has type int8 and A has type float32; they must be the same; 8-bit operands are for qgemm"},
    {"MixedB", [](Call& c) { c.args.B.dtype = DType::kInt32; }, Code::kDType, "B",
     "B has type int32 and A has type float32; they must be the same"},
    {"Float16B", [](Call& c) { c.args.B.dtype = DType::kFloat16; }, Code::kDType, "B",
     "they must be the same, or pack() must pack the weights for gemm"},
    {"Float16C", [](Call& c) { c.c_tensor.dtype = DType::kFloat16; }, Code::kDType, "C",
     "C has type float16 and A has type float32; they must be the same"},
    {"Float32BOfFloat16",
     [](Call& c) { to_type(c, DType::kFloat16), c.args.B.dtype = DType::kFloat32; }, Code::kDType,
     "B", "B has type float32 and A has type float16; they must be the same"},
    {"MixedC", [](Call& c) { c.c_tensor.dtype = DType::kInt32; }, Code::kDType, "C",
     "C has type int32"},
    {"MixedY", [](Call& c) { c.args.Y.dtype = DType::kInt32; }, Code::kDType, "Y",
     "Y has type int32"},
    {"COfM", [](Call& c) { c.c_dims = {2}; }, Code::kShape, "C",
     "gemm: C has shape [2], which does not broadcast to [2, 4]; "
     "allowed are [], [1], [N], [1, 1], [1, N], [M, 1] and [M, N]"},
    {"CTransposed", [](Call& c) { c.c_dims = {4, 1}; }, Code::kShape, "C", "does not broadcast"},
    {"CRank3", [](Call& c) { c.c_dims = {1, 2, 4}; }, Code::kShape, "C", "does not broadcast"},
    {"CBeta0", [](Call& c) { c.c_dims = {5}, c.args.beta = 0; }, Code::kShape, "C",
     "does not broadcast"},
    {"CWider", [](Call& c) { c.a_dims = {1, 3}, c.y_dims = {1, 4}, c.c_dims = {2, 4}; },
     Code::kShape, "C", "does not broadcast"},
    {"YShape", [](Call& c) { c.y_dims = {4, 2}; }, Code::kShape, "Y",
     "Y has shape [4, 2]; the result has shape [2, 4]"},
    {"YRank", [](Call& c) { c.y_dims = {8}; }, Code::kShape, "Y",
     "Y has shape [8]; the result has shape [2, 4]"},
    {"YSharesPlaces", [](Call& c) { c.y_strides = {0, 1}; }, Code::kShape, "Y",
     "no two elements share memory"},
    {"YRowsRunTogether", [](Call& c) { c.y_strides = {3, 1}; }, Code::kShape, "Y",
     "no two elements share memory"},
    {"YIsA", [](Call& c) { c.args.Y.data = c.a.data(); }, Code::kArgument, "Y", "Y overlaps A"},
    {"YTouchesB", [](Call& c) { c.args.Y.data = c.b.data() + 11; }, Code::kArgument, "Y",
     "Y overlaps B"},
    {"YIsPartOfC", [](Call& c) { c.args.Y.data = c.c.data(); }, Code::kArgument, "Y",
     "Y overlaps C in memory; it must have the memory, shape and strides of C"},
    {"YIsShiftedC", [](Call& c) { c.c_dims = {2, 4}, c.args.Y.data = c.c.data() + 1; },
     Code::kArgument, "Y", "the memory, shape and strides of C"},
    {"YIsCWithOtherStrides",
     [](Call& c) { c.c_dims = {2, 4}, c.args.Y.data = c.c.data(), c.y_strides = {8, 1}; },
     Code::kArgument, "Y", "the memory, shape and strides of C"},
    {"YIsAAtOffset", [](Call& c) { c.args.Y.data = c.a.data() + 9, c.args.A.offset = 9; },
     Code::kArgument, "Y", "Y overlaps A"},
    {"YReachesAAtOffset", [](Call& c) { c.args.A.data = c.y.data() + 1, c.args.A.offset = 6; },
     Code::kArgument, "Y", "Y overlaps A"},
    {"YAtOffsetEndsInB", [](Call& c) { c.args.Y.data = c.b.data(), c.args.Y.offset = 11; },
     Code::kArgument, "Y", "Y overlaps B"},
    {"LongYEndsInB",  // size is more than Y needs
     [](Call& c) {
       c.args.Y = {.data = c.b.data(), .dtype = DType::kFloat32, .offset = 11, .size = 64};
     },
     Code::kArgument, "Y", "Y overlaps B"},
    {"YIsCAtAnotherOffset",
     [](Call& c) { c.c_dims = {2, 4}, c.args.Y.data = c.c.data(), c.args.Y.offset = 4; },
     Code::kArgument, "Y", "the memory, shape and strides of C"},
    {"YInTheSameHeadByOffset",
     [](Call& c) {
       c.b_strides = {8, 1}, c.y_strides = {8, 1}, c.args.Y.data = c.b.data();
       c.args.Y.offset = 3;
     },
     Code::kArgument, "Y", "Y overlaps B"},
    {"YInTheNextRowsHeadByOffset",
     [](Call& c) {
       c.b_strides = {8, 1}, c.y_strides = {8, 1}, c.args.Y.data = c.b.data();
       c.args.Y.offset = 5;
     },
     Code::kArgument, "Y", "Y overlaps B"},
    {"Opset0", [](Call& c) { c.args.opset = 0; }, Code::kOpset, "opset",
     "opset is 0; it must be 1 or more"},
    {"Opset8Int32", [](Call& c) { to_int32(c), c.args.opset = 8; }, Code::kOpset, "opset",
     "opset 8 means Gemm-7, which has no int32; opset must be at least 9"},
    {"Opset10NoC", [](Call& c) { c.with_c = false, c.args.opset = 10; }, Code::kOpset, "C",
     "gemm: opset 10 means Gemm-9, which demands C; C is optional from opset 11"},
    {"Opset6Suffix", [](Call& c) { c.args.opset = 6; }, Code::kShape, "C",
     "demands exactly [2, 4]"},
    {"Opset1Scalar", [](Call& c) { c.args.opset = 1, c.c_dims = {}; }, Code::kShape, "C",
     "demands exactly [2, 4]"},
    {"Opset7Broadcast", [](Call& c) { c.args.opset = 7, c.args.broadcast = 0; }, Code::kOpset,
     "broadcast",
     "gemm: opset 7 means Gemm-7, which has no attribute broadcast; "
     "C broadcasts by itself from opset 7"},
    {"Opset6One", [](Call& c) { c.args.opset = 6, c.c_dims = {1, 1}; }, Code::kShape, "C",
     "gemm: C has shape [1, 1]; Gemm-6 without broadcast demands exactly [2, 4], "
     "the shape of the result"},
    {"Opset3Column", [](Call& c) { c.args.opset = 3, c.args.broadcast = 0, c.c_dims = {2, 1}; },
     Code::kShape, "C", "Gemm-1 without broadcast"},
    {"IntegerAlphaFarBelow", [](Call& c) { to_int32(c), c.args.alpha = -9007199254740994.0; },
     Code::kArgument, "alpha", "beyond 2^53"},
    {"YColumns", [](Call& c) { c.y_dims = {2, 5}; }, Code::kShape, "Y", "Y has shape [2, 5]"},
    {"YRows", [](Call& c) { c.y_dims = {3, 4}; }, Code::kShape, "Y", "Y has shape [3, 4]"},
    {"NoDataOfA", [](Call& c) { c.args.A.data = nullptr; }, Code::kArgument, "A", "A has no data"},
    {"NoDataOfC", [](Call& c) { c.c_tensor.data = nullptr; }, Code::kArgument, "C",
     "C has no data"},
    {"NoDataOfY", [](Call& c) { c.args.Y.data = nullptr; }, Code::kArgument, "Y", "Y has no data"},
    {"NegativeStrideOfC", [](Call& c) { c.c_strides = {-1}; }, Code::kShape, "C",
     "each stride must be a whole number from 0 to 2^53 - 1"},
    {"ShortC", [](Call& c) { c.c_tensor.size = 3; }, Code::kShape, "C",
     "C has 3 elements; its shape [4] needs 4"},
    {"EmptyWithElements", [](Call& c) { c.a_dims = {2, 0}, c.b_dims = {0, 4}, c.args.A.size = 3; },
     Code::kShape, "A", "needs 0"},
    {"JustAbove2To53", [](Call& c) { c.b_dims = {int64_t{1} << 52, 3}; }, Code::kShape, "B",
     "more than 2^53"},
    {"StrideJustAbove2To53", [](Call& c) { c.a_strides = {(int64_t{1} << 53) - 2, 1}; },
     Code::kShape, "A", "beyond 2^53"},
    {"BadShapeWithoutRows", [](Call& c) { c.a_dims = {0, 5}, c.y_dims = {0, 4}; }, Code::kShape,
     "B", "K is 5 in A and 3 in B"},
    {"YEndsInA", [](Call& c) { c.args.Y.data = c.a.data() + 5; }, Code::kArgument, "Y",
     "Y overlaps A"},
    {"YReachesA", [](Call& c) { c.args.A.data = c.y.data() + 7; }, Code::kArgument, "Y",
     "Y overlaps A"},
    {"YInTheSameHead",
     [](Call& c) { c.b_strides = {8, 1}, c.y_strides = {8, 1}, c.args.Y.data = c.b.data() + 3; },
     Code::kArgument, "Y", "Y overlaps B"},
    {"YInTheNextRowsHead",
     [](Call& c) { c.b_strides = {8, 1}, c.y_strides = {8, 1}, c.args.Y.data = c.b.data() + 13; },
     Code::kArgument, "Y", "overlaps B"},
    {"YInRowsThatRepeatOtherwise",
     [](Call& c) { c.b_strides = {8, 1}, c.y_strides = {9, 1}, c.args.Y.data = c.b.data() + 4; },
     Code::kArgument, "Y", "overlaps B"},
    {"YIsMoreThanC", [](Call& c) { c.c_dims = {1, 4}, c.args.Y.data = c.c.data(); },
     Code::kArgument, "Y", "the memory, shape and strides of C"},
    {"Opset12BFloat16", [](Call& c) { c.args.A.dtype = DType::kBFloat16, c.args.opset = 12; },
     Code::kOpset, "opset",
     "opset 12 means Gemm-11, which has no bfloat16; opset must be at least 13"},
    {"ExactAlphaFloat", [](Call& c) { c.args.alpha = Factor::exact(3); }, Code::kArgument, "alpha",
     "alpha is a 64-bit integer; with float32 it must be a number"},
    {"ExactAlphaFloat64",
     [](Call& c) { to_type(c, DType::kFloat64), c.args.alpha = Factor::exact(3); }, Code::kArgument,
     "alpha", "with float64 it must be a number"},
    {"ExactBetaInt32", [](Call& c) { to_int32(c), c.args.beta = Factor::exact(3); },
     Code::kArgument, "beta", "beta is a 64-bit integer; with int32 it must be a number"},
    {"ExactBetaWithFraction",
     [](Call& c) { to_type(c, DType::kInt64), c.args.beta = Factor::exact(3), c.args.alpha = 0.5; },
     Code::kArgument, "alpha",
     "gemm: alpha has a fraction and beta is a 64-bit integer; alpha must then be whole"},
    {"ExactAlphaWithFraction",
     [](Call& c) {
       to_type(c, DType::kUInt64), c.args.alpha = Factor::exact(3), c.args.beta = 0.5;
     },
     Code::kArgument, "beta",
     "gemm: beta has a fraction and alpha is a 64-bit integer; beta must then be whole"},
    {"IntegerAlphaNan", [](Call& c) { to_int32(c), c.args.alpha = kNan; }, Code::kArgument, "alpha",
     "alpha is NaN"},
    {"IntegerBetaInfinite", [](Call& c) { to_int32(c), c.args.beta = -INFINITY; }, Code::kArgument,
     "beta", "beta is infinite"},
    {"IntegerAlphaFar", [](Call& c) { to_int32(c), c.args.alpha = 9007199254740994.0; },
     Code::kArgument, "alpha", "beyond 2^53"},
};

class GemmError : public ::testing::TestWithParam<Case> {};

TEST_P(GemmError, IsReportedAndNothingIsWritten) {
  Call call;
  GetParam().spoil(call);
  const auto a = call.a, b = call.b, c = call.c, y = call.y;
  const Status status = call.run();
  EXPECT_EQ(status.code, GetParam().code) << status.message;
  EXPECT_STREQ(status.op, "gemm");
  EXPECT_STREQ(status.argument, GetParam().argument) << status.message;
  EXPECT_NE(std::string(status.message).find(GetParam().text), std::string::npos) << status.message;
  EXPECT_TRUE(a == call.a && b == call.b && c == call.c && y == call.y);
  EXPECT_EQ(call.context.bytes_in_use(), 0U);
  Call next;
  EXPECT_TRUE(next.run().ok());
  EXPECT_EQ(next.y[0], 4.0F);
}
INSTANTIATE_TEST_SUITE_P(Cases, GemmError, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(GemmAllowed, AtTheEdgesOfTheRules) {
  void (*const allowed[])(Call&) = {
      [](Call& c) { c.c_dims = {2, 4}, c.args.Y.data = c.c.data(); },
      [](Call& c) { c.c_dims = {2, 4}, c.args.Y.data = c.c.data(), c.c_strides = {4, 1}; },
      [](Call& c) {
        c.a_dims = {1, 3}, c.y_dims = {1, 4}, c.c_dims = {1, 4}, c.c_strides = {99, 1},
        c.args.Y.data = c.c.data();
      },
      [](Call& c) { c.args.opset = 6, c.args.broadcast = 1; },
      [](Call& c) { c.args.opset = 1, c.c_dims = {2, 4}; },
      [](Call& c) { c.args.opset = 1000; },
      [](Call& c) { c.args.alpha = kNan, c.args.beta = INFINITY; },
      [](Call& c) { c.args.transA = -5, c.a_dims = {3, 2}; },
      [](Call& c) { c.args.broadcast = 7, c.args.opset = 5; },
      [](Call& c) { c.args.transB = 2, c.b_dims = {4, 3}; },
      [](Call& c) { c.args.transB = -5, c.b_dims = {4, 3}; },
      [](Call& c) { c.y_strides = {1, 2}; },
      [](Call& c) { c.a_dims = {1, 3}, c.y_dims = {1, 4}, c.y_strides = {0, 1}; },
      [](Call& c) { c.b_dims = {3, 1}, c.y_dims = {2, 1}, c.c_dims = {1}, c.y_strides = {1, 0}; },
      [](Call& c) { c.a_dims = {0, 3}, c.y_dims = {0, 4}, c.args.Y.data = c.a.data(); },
      // Contiguous in one array, and a row in the gap between rows.
      [](Call& c) { c.args.Y.data = c.a.data() + 6; },
      [](Call& c) { c.args.A.data = c.y.data() + 8; },
      [](Call& c) {
        c.b_strides = {8, 1}, c.a_dims = {1, 3}, c.y_dims = {1, 4}, c.args.Y.data = c.b.data() + 12;
      },
      [](Call& c) {
        c.a_dims = {0, 3}, c.y_dims = {0, 4}, c.args.A.data = nullptr, c.args.Y.data = nullptr;
      },
      // Offsets, with and without strides; with either, more elements than needed.
      [](Call& c) { c.args.A.offset = 3, c.args.A.size = 9; },
      [](Call& c) { c.args.A.offset = 3, c.args.A.size = 64; },
      [](Call& c) { c.b_strides = {4, 1}, c.args.B.size = 64; },
      [](Call& c) { c.b_strides = {5, 1}, c.args.B.offset = 49, c.args.B.size = 64; },
      [](Call& c) { c.y_strides = {5, 1}, c.args.Y.offset = 1, c.args.Y.size = 64; },
      [](Call& c) { c.args.A.offset = 0, c.args.A.size = 6; },
      [](Call& c) { c.a_dims = {0, 3}, c.y_dims = {0, 4}, c.args.A.offset = 5, c.args.A.size = 5; },
      [](Call& c) {
        c.a_dims = {0, 3}, c.y_dims = {0, 4}, c.args.A.data = nullptr, c.args.A.offset = 5;
      },
      // Y is C, however data and offset name it.
      [](Call& c) {
        c.c_dims = {2, 4}, c.args.Y.data = c.c.data(), c.c_tensor.offset = c.args.Y.offset = 7;
      },
      [](Call& c) {
        c.c_dims = {2, 4}, c.args.Y.data = c.c.data() + 5, c.args.Y.offset = 2,
        c.c_tensor.offset = 7;
      },
      [](Call& c) {
        c.c_dims = {2, 4}, c.args.Y.data = c.c.data() + 5, c.c_tensor.offset = 5,
        c.c_tensor.size = 64;
      },
      // One array: Y begins just behind A, ends just before A, and lies between the rows of B.
      [](Call& c) { c.args.Y.data = c.a.data(), c.args.Y.offset = 6, c.args.A.size = 6; },
      [](Call& c) { c.args.A.data = c.y.data(), c.args.A.offset = 8, c.args.A.size = 64; },
      [](Call& c) {
        c.b_strides = {8, 1}, c.y_strides = {8, 1}, c.args.Y.data = c.b.data();
        c.args.Y.offset = 4, c.args.Y.size = c.args.B.size = 64;
      },
      [](Call& c) {
        c.b_strides = {8, 1}, c.y_strides = {8, 1}, c.args.Y.data = c.b.data();
        c.args.B.offset = 4, c.args.Y.offset = 8;
      },
      // Heads of one array: rows of 8, B in columns 0 to 3, Y in columns 4 to 7.
      [](Call& c) { c.b_strides = {8, 1}, c.y_strides = {8, 1}, c.args.Y.data = c.b.data() + 4; },
      [](Call& c) { to_int32(c), c.args.alpha = 0.5, c.args.beta = 9007199254740992.0; },
  };
  for (const auto& change : allowed) {
    Call call;
    change(call);
    const Status status = call.run();
    EXPECT_TRUE(status.ok()) << &change - allowed << ": " << status.message;
  }
}

// Every opset, type, C and broadcast: allowed, or which argument the error names.
TEST(GemmAllowed, OpsetTypeCAndBroadcastAsInTheTable) {
  struct Version {
    int64_t opset, version;
  };
  const Version versions[] = {{1, 1},  {2, 1},   {5, 1},   {6, 6},   {7, 7},   {8, 7},    {9, 9},
                              {10, 9}, {11, 11}, {12, 11}, {13, 13}, {21, 13}, {1000, 13}};
  for (const auto& [opset, version] : versions) {
    for (int type = 0; type < kDTypeCount; ++type) {
      const auto dtype = static_cast<DType>(type);
      const int64_t since = dtype == DType::kBFloat16 ? 13 : is_integer(dtype) ? 9 : 1;
      for (const bool with_c : {false, true}) {
        for (const std::optional<int64_t> broadcast :
             {std::optional<int64_t>{}, std::optional<int64_t>{0}, std::optional<int64_t>{1}}) {
          Call call;
          to_type(call, dtype);
          call.a.resize(200), call.b.resize(200), call.c.resize(200), call.y.resize(200);
          call.args.A.data = call.a.data(), call.args.B.data = call.b.data(),
          call.c_tensor.data = call.c.data(), call.args.Y.data = call.y.data();
          call.args.opset = opset;
          call.with_c = with_c;
          call.args.broadcast = broadcast;
          const char* fault = "";
          if (!is_of_gemm(dtype)) {
            fault = "A";
          } else if (version < since) {
            fault = "opset";
          } else if (!with_c && version < 11) {
            fault = "C";
          } else if (broadcast.has_value() && version >= 7) {
            fault = "broadcast";
          } else if (with_c && version < 7 && broadcast.value_or(0) == 0) {
            fault = "C";  // its shape is (N)
          }
          const Status status = call.run();
          EXPECT_STREQ(status.argument, fault)
              << opset << " " << dtype_name(dtype) << " " << with_c << ": " << status.message;
        }
      }
    }
  }
}

// A factor with a fraction that changes nothing sends values at the ends of the range through
// float64.
TEST(GemmAllowed, SaturatesExactlyAtTheEndOfTheRange) {
  const auto largest = [](auto a_value, DType dtype, auto c_value, double alpha) {
    using T = decltype(a_value);
    const int64_t one[] = {1, 1};
    const T a = a_value, b = 1, c = c_value;
    T y = 7;
    const ConstTensor c_tensor{&c, dtype, one};
    GemmArgs args;
    args.A = {&a, dtype, one};
    args.B = {&b, dtype, one};
    args.C = &c_tensor;
    args.Y = {&y, dtype, one};
    args.alpha = alpha;
    args.beta = 0.5;
    Context context;
    const Status status = gemm(context, args);
    EXPECT_TRUE(status.ok()) << status.message;
    return y;
  };
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max(),
                    kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(largest(kMax, DType::kInt64, int64_t{0}, 1), kMax);
  EXPECT_EQ(largest(kMin, DType::kInt64, int64_t{0}, 1), kMin);
  EXPECT_EQ(largest(kMin, DType::kInt64, int64_t{0}, -1), kMax);
  EXPECT_EQ(largest(~uint64_t{0}, DType::kUInt64, uint64_t{0}, 1), ~uint64_t{0});
  EXPECT_EQ(largest(uint32_t{1} << 31, DType::kUInt32, uint32_t{0}, 2), ~uint32_t{0});
  EXPECT_EQ(largest(uint32_t{1} << 31, DType::kUInt32, uint32_t{0}, -1), 0U);
  EXPECT_EQ(largest(int32_t{1} << 30, DType::kInt32, int32_t{0}, 2),
            std::numeric_limits<int32_t>::max());
}

TEST(Store, RoundsOrRefuses) {
  double element;
  const auto bits = [&] {
    uint16_t value;
    std::memcpy(&value, &element, sizeof(value));
    return value;
  };
  EXPECT_TRUE(store("gemm", "C", 1.5, DType::kFloat64, &element).ok());
  EXPECT_EQ(element, 1.5);
  // Just above the middle of two neighbours: rounding to float32 first would produce a tie.
  EXPECT_TRUE(store("gemm", "C", 1 + 0x1p-11 + 0x1p-40, DType::kFloat16, &element).ok());
  EXPECT_EQ(bits(), 0x3c01);
  EXPECT_TRUE(store("gemm", "C", 1 + 0x1p-11, DType::kFloat16, &element).ok());
  EXPECT_EQ(bits(), 0x3c00);
  EXPECT_TRUE(store("gemm", "C", -(1 + 0x1p-8 - 0x1p-40), DType::kBFloat16, &element).ok());
  EXPECT_EQ(bits(), 0xbf80);
  EXPECT_TRUE(store("gemm", "C", 1e300, DType::kFloat16, &element).ok());
  EXPECT_EQ(bits(), 0x7c00);
  EXPECT_TRUE(store("gemm", "C", 0, DType::kUInt64, &element).ok());
  EXPECT_TRUE(store("gemm", "C", -0x1p63, DType::kInt64, &element).ok());
  EXPECT_EQ(store("gemm", "C", 0, static_cast<DType>(99), &element).code, Code::kDType);
  EXPECT_TRUE(store("gemm", "C", 18446744073709549568.0, DType::kUInt64, &element).ok());
  for (const double good : {-128.0, 0.0, 127.0})
    EXPECT_TRUE(store("qgemm", "a_zero_point", good, DType::kInt8, &element).ok());
  for (const double good : {0.0, 128.0, 255.0})
    EXPECT_TRUE(store("qgemm", "a_zero_point", good, DType::kUInt8, &element).ok());
  EXPECT_EQ(bits() & 0xff, 255);
  for (const double bad : {-129.0, 128.0, 0.5, kNan, HUGE_VAL}) {
    EXPECT_EQ(store("qgemm", "a_zero_point", bad, DType::kInt8, &element).code, Code::kArgument)
        << bad;
  }
  for (const double bad : {-1.0, 256.0, 254.5, kNan, -HUGE_VAL}) {
    EXPECT_EQ(store("qgemm", "a_zero_point", bad, DType::kUInt8, &element).code, Code::kArgument)
        << bad;
  }
  for (const double bad : {0.5, -1.0, 18446744073709551616.0, kNan}) {
    const Status status = store("gemm", "C", bad, DType::kUInt64, &element);
    EXPECT_EQ(status.code, Code::kArgument);
    EXPECT_STREQ(status.message,
                 "gemm: C is a number that uint64 cannot hold; it must be whole and in the range "
                 "of the type");
  }
}

TEST(GemmShape, ChecksWithoutData) {
  Call call;
  call.link();
  call.args.A.data = call.args.B.data = nullptr;
  call.c_tensor.data = nullptr;
  call.args.Y = {};
  int64_t dims[2] = {};
  ASSERT_TRUE(gemm_shape(call.args, dims).ok());
  EXPECT_EQ(dims[0], 2);
  EXPECT_EQ(dims[1], 4);
  // The caller's arrays are not in memory yet: space 1 holds both B and Y.
  call.args.Y.dims = call.y_dims;
  call.args.B.place = {1, 0};
  call.args.Y.place = {1, 47};
  EXPECT_EQ(gemm_shape(call.args, dims).code, Code::kArgument);
  call.args.Y.place = {1, 48};
  EXPECT_TRUE(gemm_shape(call.args, dims).ok());
  call.args.Y.place = {2, 0};
  EXPECT_TRUE(gemm_shape(call.args, dims).ok());
  // Offsets count from the places.
  call.args.B.offset = 2;
  call.args.Y.place = {1, 4};
  for (const auto& [offset, ok] : {std::pair{12, false}, {13, true}}) {
    call.args.Y.offset = offset;
    EXPECT_EQ(gemm_shape(call.args, dims).code, ok ? Code::kOk : Code::kArgument) << offset;
  }
  call.args.B.offset = 9;
  for (const auto& [offset, ok] : {std::pair{0, true}, {1, false}}) {
    call.args.Y.offset = offset;
    EXPECT_EQ(gemm_shape(call.args, dims).code, ok ? Code::kOk : Code::kArgument) << offset;
  }
  call.args.B.offset = call.args.Y.offset = 0;
  call.args.Y.place = {2, 0};
  // Y is C, by place; then Y is not C.
  call.c_dims = {2, 4};
  call.c_tensor.dims = call.c_dims;
  call.c_tensor.place = {2, 0};
  EXPECT_TRUE(gemm_shape(call.args, dims).ok());
  call.c_tensor.place = {2, 4};
  EXPECT_EQ(gemm_shape(call.args, dims).code, Code::kArgument);
  call.args.Y.offset = 1;
  EXPECT_TRUE(gemm_shape(call.args, dims).ok());
}

TEST(GemmShape, IgnoresOverlapOfTensorsWithoutAPlace) {
  Call call;
  call.link();
  call.args.A.data = call.args.B.data = nullptr;
  call.args.Y.data = nullptr;
  int64_t dims[2] = {};
  EXPECT_TRUE(gemm_shape(call.args, dims).ok());
}

TEST(GemmShape, AllowsExactly2To53Elements) {
  const int64_t large = int64_t{1} << 53, a[] = {large, 1}, b[] = {1, 1}, far[] = {large - 1, 1};
  GemmArgs args;
  args.A.dims = a;
  args.B.dims = b;
  int64_t dims[2] = {};
  EXPECT_TRUE(gemm_shape(args, dims).ok());
  EXPECT_EQ(dims[0], large);
  const int64_t two[] = {2, 1};
  args.A.dims = two;
  args.A.strides = far;
  EXPECT_TRUE(gemm_shape(args, dims).ok());
}

TEST(Memory, ALimitThatIsTooSmallIsAnErrorAndNothingIsWritten) {
  Call call;
  call.link();
  Explanation plan;
  ASSERT_TRUE(explain(call.context, call.args, &plan).ok());
  EXPECT_GT(plan.scratch_bytes, 0);
  Context small(static_cast<size_t>(
      plan.scratch_bytes));  // too small, since an allocation also counts its alignment
  const Status status = gemm(small, call.args);
  EXPECT_EQ(status.code, Code::kOutOfMemory) << status.message;
  EXPECT_EQ(call.y[0], -7.0F);
  EXPECT_EQ(small.bytes_in_use(), 0U);
  Context enough(static_cast<size_t>(plan.scratch_bytes) + 64);
  EXPECT_TRUE(gemm(enough, call.args).ok());
  EXPECT_EQ(enough.bytes_in_use(), 0U);
}

TEST(Memory, IsCountedAndAligned) {
  Context context(1000);
  void* first = context.allocate(1);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0U);
  EXPECT_EQ(context.bytes_in_use(), 128U);
  EXPECT_EQ(context.allocate(1000), nullptr);
  EXPECT_EQ(context.allocate(900), nullptr);  // not together with the first
  EXPECT_EQ(context.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(context.allocate(SIZE_MAX - 100), nullptr);
  context.release(nullptr);
  context.release(first);
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

const Kernel* find_kernel(const std::string& name) {
  const KernelTable table = kernel_table();
  return std::find_if(table.rows, table.rows + table.count,
                      [&](const Kernel& row) { return row.name == name; });
}

TEST(Explain, ReportsThePlan) {
  Call call;
  call.link();
  call.with_c = false;
  const bool x86 = processor() == Processor::kX86;
  const bool relaxed_arm = WGEMM_RELAXED && !x86;
  const std::string isa = WGEMM_RELAXED ? "relaxed" : "simd128",
                    few = relaxed_arm     ? "f32_4x16__relaxed_rowmajor_packed_a"
                          : WGEMM_RELAXED ? "f32_6x8__relaxed_rowmajor"
                                          : "f32_4x8__simd128_rowmajor",
                    many = of_build(relaxed_arm     ? "f32_4x16__relaxed_packed_a"
                                    : !x86          ? "f32_4x8__simd128_xnnpack_splat"
                                    : WGEMM_RELAXED ? "f32_6x8__relaxed_xnnpack_loadsplat"
                                                    : "f32_4x8__simd128_xnnpack_loadsplat"),
                    many_64 = relaxed_arm     ? "f64_5x8__relaxed"
                              : WGEMM_RELAXED ? "f64_6x8__relaxed"
                                              : "f64_2x8__simd128";
  struct Expected {
    int64_t m, n;
    bool trans_b;
    DType type;
    std::string kernel;
    bool packs_a, packs_b, transposed;
  };
  const Expected all[] = {
      {3, 200, false, DType::kFloat32, few, few.ends_with("packed_a"), false, false},
      {3, 200, true, DType::kFloat32, "f32_4x8__" + isa + "_dot", false, false, false},
      {200, 1, false, DType::kFloat32, "f32_4x8__" + isa + "_dot", false, false, true},
      {3, 200, true, DType::kInt32, "i32_4x8__simd128_dot", false, false, false},
      {3, 200, true, DType::kFloat64, "f64_2x8__" + isa + "_colmajor", false, false, false},
      {100, 200, false, DType::kFloat32, many, many.ends_with("packed_a"), true, false},
      {100, 200, true, DType::kFloat32, many, many.ends_with("packed_a"), true, false},
      {100, 200, true, DType::kFloat64, many_64, false, true, false},
      {100, 200, false, DType::kInt32, "i32_4x8__simd128", false, true, false}};
  for (const Expected& expected : all) {
    const int64_t k = 240, a[] = {expected.m, k},
                  b[] = {expected.trans_b ? expected.n : k, expected.trans_b ? k : expected.n};
    GemmArgs args;
    args.A.dims = a;
    args.B.dims = b;
    args.A.dtype = args.B.dtype = expected.type;
    args.transB = expected.trans_b;
    Explanation plan;
    ASSERT_TRUE(explain(Context(), args, &plan).ok());
    EXPECT_EQ(plan.kernel, expected.kernel);
    EXPECT_EQ(std::vector({plan.m, plan.n, plan.k}),
              std::vector<int64_t>({expected.m, expected.n, k}));
    const Kernel* kernel = find_kernel(expected.kernel);
    EXPECT_EQ(std::vector<int64_t>({plan.mr, plan.nr, plan.kr}),
              std::vector<int64_t>({kernel->mr, kernel->nr, 1}));
    EXPECT_EQ(std::vector({plan.mc, plan.nc, plan.kc}),
              std::vector<int64_t>({expected.transposed ? 1 : expected.m,
                                    expected.transposed ? 200 : expected.n, k}));
    EXPECT_EQ(plan.threads, 1);
    EXPECT_EQ(plan.packs_a, expected.packs_a);
    EXPECT_EQ(plan.packs_b, expected.packs_b);
    EXPECT_EQ(plan.transposed, expected.transposed);
    EXPECT_TRUE(plan.direct);
    EXPECT_EQ(plan.scratch_bytes >= k * 200 * 4, expected.packs_b);
  }
  Explanation plan;
  ASSERT_TRUE(explain(call.context, call.args, &plan).ok());
  EXPECT_FALSE(plan.direct);  // there is a C
  call.args.C = nullptr;
  call.args.alpha = 1 + 1e-12;  // 1 in float32
  ASSERT_TRUE(explain(call.context, call.args, &plan).ok());
  EXPECT_TRUE(plan.direct);
  call.args.transA = 1;
  EXPECT_EQ(explain(call.context, call.args, &plan).code, Code::kShape);
}

TEST(KernelInfo, ReportsTheTable) {
  const KernelTable table = kernel_table();
  ASSERT_EQ(kernel_count(), table.count);
  for (int i = 0; i < table.count; ++i) {
    const KernelInfo info = kernel_info(i);
    const Kernel& kernel = table.rows[i];
    EXPECT_EQ(info.name, kernel.name);
    EXPECT_EQ(info.compute, kernel.compute);
    EXPECT_EQ(std::vector({info.mr, info.nr, info.kr}),
              std::vector({kernel.mr, kernel.nr, kernel.kr}));
    EXPECT_EQ(info.preferred, is_made_for(kernel, processor(), 16) && has_dot(kernel.dot));
    const KernelInfo joined = kernel_info(i, 32);
    EXPECT_EQ(joined.preferred, is_made_for(kernel, processor(), 32) && has_dot(kernel.dot));
  }
}

TEST(Explain, ReportsWhichTypesAreReadUnpacked) {
  const int64_t a[] = {2, 640}, b[] = {640, 64};
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (!is_of_gemm(dtype)) continue;
    GemmArgs args;
    args.A.dims = a;
    args.B.dims = b;
    args.A.dtype = args.B.dtype = dtype;
    Explanation plan;
    ASSERT_TRUE(explain(Context(), args, &plan).ok());
    const bool widened = !is_compute_form(dtype);
    EXPECT_FALSE(plan.packs_b) << dtype_name(dtype);
    EXPECT_EQ(plan.packs_a, widened) << dtype_name(dtype);
    EXPECT_EQ(plan.direct, !widened) << dtype_name(dtype);
  }
}

TEST(Explain, HasAKernelForAnyNumberOfRows) {
  const int64_t a[] = {int64_t{1} << 36, 64}, b[] = {64, 64};
  for (int type = 0; type < kDTypeCount; ++type) {
    if (!is_of_gemm(static_cast<DType>(type))) continue;
    GemmArgs args;
    args.A.dims = a;
    args.B.dims = b;
    args.A.dtype = args.B.dtype = static_cast<DType>(type);
    Explanation plan;
    ASSERT_TRUE(explain(Context(), args, &plan).ok());
    EXPECT_EQ(plan.m, a[0]);
    EXPECT_STRNE(plan.kernel, "");
  }
}

TEST(Explain, KeepsScratchBoundedHoweverLargeTheProduct) {
  const int64_t large[] = {1, 4, 8, 100, 512, 5000, 6144, 1 << 20, 4 << 20, 10000000};
  for (int type = 0; type < kDTypeCount; ++type) {
    if (!is_of_gemm(static_cast<DType>(type))) continue;
    for (const int64_t m : large) {
      for (const int64_t n : large) {
        for (const int64_t k : large) {
          for (const int trans : {0, 1, 2, 3}) {
            GemmArgs args;
            args.transA = (trans & 1) != 0;
            args.transB = (trans & 2) != 0;
            const std::array<int64_t, 2> a = {args.transA ? k : m, args.transA ? m : k},
                                         b = {args.transB ? n : k, args.transB ? k : n};
            args.A.dtype = args.B.dtype = static_cast<DType>(type);
            args.A.dims = a;
            args.B.dims = b;
            args.alpha = 2;
            Explanation plan;
            ASSERT_TRUE(explain(Context(), args, &plan).ok());
            ASSERT_LT(plan.scratch_bytes, 32 << 20)
                << dtype_name(args.A.dtype) << " " << m << " " << n << " " << k << " " << trans;
            const int64_t rows = plan.transposed ? n : m;
            ASSERT_TRUE(k <= 4096 || m < 512 || !plan.packs_b ||
                        plan.mc >= std::min<int64_t>(rows, 200))
                << "B is packed again for each block of rows";
          }
        }
      }
    }
  }
}

// A value of an enum type may differ from all its enumerators.
TEST(UnknownValues, AreRefusedAndNothingIsWritten) {
  Call call;
  call.link();
  PackedWeights weights;
  for (const int value : {3, 4, 255}) {
    const Status status =
        pack(call.context, {.op = static_cast<PackFor>(value), .B = call.args.B}, &weights);
    EXPECT_EQ(status.code, Code::kArgument);
    EXPECT_STREQ(status.argument, "op");
    EXPECT_EQ(std::string(status.message),
              "pack: op is the unknown operation " + std::to_string(value) + "; see PackFor");
    EXPECT_TRUE(weights.empty());
  }
  const Status as =
      pack(call.context, {.B = call.args.B, .as = static_cast<DType>(kDTypeCount)}, &weights);
  EXPECT_EQ(as.code, Code::kDType);
  const int8_t bytes[4] = {1, 2, 3, 4};
  const int64_t dims[] = {2, 2};
  int32_t sums[4] = {-7, -7, -7, -7};
  for (const int value : {4, 5, 255}) {
    const ConstTensor matrix{.data = bytes, .dtype = DType::kInt8, .dims = dims};
    IntegerMatMulArgs args;
    args.op = static_cast<IntegerOp>(value);
    args.A = args.B = matrix;
    args.Y = {.data = sums, .dtype = DType::kInt32, .dims = dims};
    int64_t shape[kMaxRank];
    size_t rank;
    DType dtype;
    Explanation plan;
    PreparedCall prepared;
    for (const Status& status :
         {integer_matmul(call.context, args), integer_matmul_shape(args, shape, &rank, &dtype),
          explain(call.context, args, &plan), prepare(call.context, args, &prepared)}) {
      EXPECT_EQ(status.code, Code::kArgument);
      EXPECT_STREQ(status.argument, "op");
      EXPECT_EQ(std::string(status.message), "integer_matmul: op is the unknown operation " +
                                                 std::to_string(value) + "; see IntegerOp");
    }
    EXPECT_TRUE(prepared.empty());
  }
  EXPECT_EQ(std::ranges::count(sums, -7), 4);
  EXPECT_EQ(Context(0, static_cast<Determinism>(7)).determinism(), Determinism::kStrict);
}

TEST(Message, IsCutNotOverrun) {
  Call call;
  call.a_dims = Sizes(64, 1000000);
  const Status status = call.run();
  EXPECT_EQ(status.code, Code::kShape);
  EXPECT_EQ(std::strlen(status.message), sizeof(status.message) - 1);
  EXPECT_EQ(std::string(status.message + sizeof(status.message) - 4), "...");
}

}  // namespace
}  // namespace wgemm::testing
