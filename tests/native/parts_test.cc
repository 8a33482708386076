// Weights that arrive in parts: they have the bytes of weights that pack() makes of the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "array.h"
#include "base/convert.h"
#include "base/types.h"
#include "pack/pack.h"
#include "pack/weights.h"
#include "serialized.h"

namespace wgemm::testing {
namespace {

using Sizes = std::vector<int64_t>;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};

// K x N elements of a type, and where the rows and columns of B' are.
struct Matrix {
  DType type;
  int64_t k, n;
  bool trans;
  int64_t gap;  // unused elements after each row of memory
  Bytes bytes{};

  // Random bits, but finite: infinite elements have tests of their own.
  void fill(std::mt19937_64& random) {
    bytes.resize(static_cast<size_t>((trans ? n : k) * row()) * dtype_bytes(type));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xbb);
  }

  int64_t row() const { return (trans ? k : n) + gap; }
  // The part of `rows` x `cols` elements, with its sizes and strides in memory.
  ConstTensor part(int64_t at_row, int64_t at_col, int64_t rows, int64_t cols,
                   Sizes* memory) const {
    *memory = trans ? Sizes{cols, rows, row(), 1} : Sizes{rows, cols, row(), 1};
    return {.data = bytes.data(),
            .dtype = type,
            .dims = {memory->data(), 2},
            .strides = {memory->data() + 2, 2},
            .offset = trans ? at_col * row() + at_row : at_row * row() + at_col,
            .size = static_cast<int64_t>(bytes.size() / dtype_bytes(type))};
  }
};

struct Range {
  int64_t row, col, rows, cols;
};

// Cuts K x N into parts, each with `rows` and `cols` elements or what is left.
std::vector<Range> ranges_of(int64_t k, int64_t n, int64_t rows, int64_t cols) {
  std::vector<Range> ranges;
  for (int64_t row = 0; row < k; row += rows) {
    for (int64_t col = 0; col < n; col += cols)
      ranges.push_back({row, col, std::min(rows, k - row), std::min(cols, n - col)});
  }
  return ranges;
}

// Packs a matrix whole and in parts, and compares the bytes.
void compare(const Matrix& b, DType as, int64_t rows, int64_t cols, std::mt19937_64& random) {
  Context context;
  Sizes memory;
  PackedWeights whole, weights;
  PackArgs args;
  args.B = b.part(0, 0, b.k, b.n, &memory);
  args.trans = b.trans;
  args.as = as;
  ASSERT_TRUE(pack(context, args, &whole).ok());
  ASSERT_TRUE(begin_pack(context, as, b.k, b.n, &weights).ok());
  std::vector<Range> ranges = ranges_of(b.k, b.n, rows, cols);
  std::shuffle(ranges.begin(), ranges.end(), random);
  if (!ranges.empty()) ranges.push_back(ranges.front());  // a part may come again
  for (const Range& r : ranges) {
    PackPart part;
    part.trans = b.trans, part.row = r.row, part.col = r.col;
    part.B = b.part(r.row, r.col, r.rows, r.cols, &memory);
    const Status status = pack_part(&weights, part);
    ASSERT_TRUE(status.ok()) << status.message;
  }
  EXPECT_EQ(weights.op(), PackFor::kGemm);
  EXPECT_EQ(weights.dtype(), as);
  EXPECT_TRUE(weights.batch().empty());
  EXPECT_EQ(weights.bytes(), whole.bytes());
  EXPECT_EQ(prepacked_of(weights).finite, prepacked_of(whole).finite);
  ASSERT_EQ(serialized(weights), serialized(whole))
      << dtype_name(b.type) << " as " << dtype_name(as) << ", " << b.k << " x " << b.n << " by "
      << rows << " x " << cols << ", trans " << b.trans << ", gap " << b.gap;
}

class PartsTest : public ::testing::TestWithParam<DType> {};

TEST_P(PartsTest, HaveTheBytesOfTheWhole) {
  std::mt19937_64 random(1);
  for (const auto& [k, n] :
       {std::pair<int64_t, int64_t>{1, 1}, {7, 8}, {13, 27}, {70, 41}, {3, 64}}) {
    for (const auto& [rows, cols] :
         {std::pair<int64_t, int64_t>{1, 8}, {2, 16}, {3, 24}, {5, 1000}, {66, 32}, {1000, 8}}) {
      for (const bool trans : {false, true}) {
        for (const int64_t gap : {0, 3}) {
          for (const DType type : {GetParam(), DType::kFloat32}) {  // float32 is rounded
            if (type != GetParam() && dtype_bytes(GetParam()) != 2) continue;
            Matrix b{type, k, n, trans, gap};
            b.fill(random);
            compare(b, GetParam(), rows, cols, random);
          }
        }
      }
    }
  }
}

TEST_P(PartsTest, AreZerosWhereNoPartCame) {
  Context context;
  const Sizes dims{11, 21};
  const Bytes zeros(11 * 21 * 8);
  PackedWeights whole, weights;
  PackArgs args;
  args.B = {zeros.data(), GetParam(), dims};
  ASSERT_TRUE(pack(context, args, &whole).ok());
  ASSERT_TRUE(begin_pack(context, GetParam(), 11, 21, &weights).ok());
  EXPECT_EQ(serialized(weights), serialized(whole));
}

TEST_P(PartsTest, MayBeEmpty) {
  Context context;
  const std::byte data[8] = {};
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{0, 0}, {0, 9}, {9, 0}, {9, 9}}) {
    PackedWeights whole, weights;
    PackArgs args;
    const Sizes dims{k, n};
    const Bytes zeros(81 * 8);
    args.B = {zeros.data(), GetParam(), dims};
    ASSERT_TRUE(pack(context, args, &whole).ok());
    ASSERT_TRUE(begin_pack(context, GetParam(), k, n, &weights).ok());
    for (const Sizes& part_dims : {Sizes{0, n}, Sizes{k, 0}, Sizes{0, 0}}) {
      PackPart part;
      part.B = {data, GetParam(), part_dims};
      const Status status = pack_part(&weights, part);
      EXPECT_TRUE(status.ok()) << status.message;
    }
    EXPECT_EQ(serialized(weights), serialized(whole));
  }
}

// Parts also replace elements of weights that pack() made.
TEST_P(PartsTest, ReplaceElementsOfPackedWeights) {
  std::mt19937_64 random(1);
  Matrix old{GetParam(), 9, 20, false, 0}, b = old;
  for (Matrix* matrix : {&old, &b}) matrix->fill(random);
  Context context;
  Sizes memory;
  PackedWeights weights, whole;
  PackArgs args;
  args.B = old.part(0, 0, 9, 20, &memory);
  ASSERT_TRUE(pack(context, args, &weights).ok());
  args.B = b.part(0, 0, 9, 20, &memory);
  ASSERT_TRUE(pack(context, args, &whole).ok());
  PackPart part;
  part.B = args.B;
  ASSERT_TRUE(pack_part(&weights, part).ok());
  EXPECT_EQ(serialized(weights), serialized(whole));
}

INSTANTIATE_TEST_SUITE_P(Types, PartsTest, ::testing::ValuesIn(kTypes),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

// A faster kernel reads float16 weights without infinity and NaN.
TEST(Parts, OfFloat16AreFiniteUntilOnePartIsNot) {
  Context context;
  PackedWeights weights;
  ASSERT_TRUE(begin_pack(context, DType::kFloat16, 3, 17, &weights).ok());
  EXPECT_TRUE(prepacked_of(weights).finite);
  const Sizes dims{3, 9};
  std::vector<uint16_t> b(27, 0x7bff);
  PackPart part{.B = {b.data(), DType::kFloat16, dims}, .col = 8};
  ASSERT_TRUE(pack_part(&weights, part).ok());
  EXPECT_TRUE(prepacked_of(weights).finite);
  b[26] = 0xfc00;
  ASSERT_TRUE(pack_part(&weights, part).ok());
  EXPECT_FALSE(prepacked_of(weights).finite);
  b[26] = 0;
  ASSERT_TRUE(pack_part(&weights, part).ok());
  EXPECT_FALSE(prepacked_of(weights).finite);

  // float32 that rounds to infinity.
  ASSERT_TRUE(begin_pack(context, DType::kFloat16, 3, 17, &weights).ok());
  std::vector<float> wide(27, 65519.0F);
  part.B = {wide.data(), DType::kFloat32, dims};
  ASSERT_TRUE(pack_part(&weights, part).ok());
  EXPECT_TRUE(prepacked_of(weights).finite);
  wide[13] = 65520.0F;
  ASSERT_TRUE(pack_part(&weights, part).ok());
  EXPECT_FALSE(prepacked_of(weights).finite);
}

// Errors
// -------------------------------------------------------------------------------------------------

struct PartCase {
  const char* name;
  void (*spoil)(PackPart& part, Sizes& dims);
  Code code;
  const char* argument;
  const char* sentence;
};

// Of a part with 4 x 8 elements, for weights of 10 x 20.
const PartCase kPartCases[] = {
    {"Type", [](PackPart& p, Sizes&) { p.B.dtype = DType::kFloat64; }, Code::kDType, "B",
     "pack: B has type float64 and weights has type float32; it must be float32"},
    {"Half", [](PackPart& p, Sizes&) { p.B.dtype = DType::kFloat16; }, Code::kDType, "B",
     "B has type float16 and weights has type float32; it must be float32"},
    {"UnknownType", [](PackPart& p, Sizes&) { p.B.dtype = static_cast<DType>(200); }, Code::kDType,
     "B", "unknown type 200"},
    {"Rank", [](PackPart&, Sizes& dims) { dims = {1, 4, 8}; }, Code::kShape, "B",
     "B has shape [1, 4, 8] of rank 3; it must have rank 2"},
    {"Vector", [](PackPart&, Sizes& dims) { dims = {8}; }, Code::kShape, "B",
     "B has shape [8] of rank 1; it must have rank 2"},
    {"NoData", [](PackPart& p, Sizes&) { p.B.data = nullptr; }, Code::kArgument, "B",
     "pack: B has no data"},
    {"Short", [](PackPart& p, Sizes&) { p.B.size = 31; }, Code::kShape, "B",
     "B has 31 elements; its shape"},
    {"NegativeRow", [](PackPart& p, Sizes&) { p.row = -1; }, Code::kShape, "row",
     "row is -1 and the part has 4 rows; weights has 10"},
    {"Row", [](PackPart& p, Sizes&) { p.row = 7; }, Code::kShape, "row",
     "row is 7 and the part has 4 rows; weights has 10"},
    {"HugeRow", [](PackPart& p, Sizes&) { p.row = INT64_MAX; }, Code::kShape, "row", "row is 9223"},
    {"NegativeColumn", [](PackPart& p, Sizes&) { p.col = -8; }, Code::kShape, "col",
     "col is -8 and the part has 8 columns; weights has 20"},
    {"Column", [](PackPart& p, Sizes&) { p.col = 16; }, Code::kShape, "col",
     "col is 16 and the part has 8 columns; weights has 20"},
    {"WithinAPanel", [](PackPart& p, Sizes&) { p.col = 4; }, Code::kArgument, "col",
     "col is 4; it must be a multiple of 8"},
    {"PartOfAPanel", [](PackPart&, Sizes& dims) { *std::ranges::find(dims, 8) = 7; }, Code::kShape,
     "B", "the part has 7 columns from 0 on, of 20; it must have a multiple of 8"},
    {"TooManyRows", [](PackPart&, Sizes& dims) { *std::ranges::find(dims, 4) = 11; }, Code::kShape,
     "row", "row is 0 and the part has 11 rows; weights has 10"},
};

class PartsError : public ::testing::TestWithParam<PartCase> {};

TEST_P(PartsError, IsReportedAndWeightsStayUnchanged) {
  const std::vector<float> ones(512, 1.0F);
  for (const int64_t trans : {0, 1}) {
    Context context;
    PackedWeights weights;
    ASSERT_TRUE(begin_pack(context, DType::kFloat32, 10, 20, &weights).ok());
    const Bytes before = serialized(weights);
    Sizes dims = trans != 0 ? Sizes{8, 4} : Sizes{4, 8};
    PackPart part{.B = {ones.data(), DType::kFloat32}, .trans = trans};
    GetParam().spoil(part, dims);
    part.B.dims = dims;
    const Status status = pack_part(&weights, part);
    EXPECT_EQ(status.code, GetParam().code) << status.message;
    EXPECT_STREQ(status.op, "pack");
    EXPECT_STREQ(status.argument, GetParam().argument);
    EXPECT_NE(std::string(status.message).find(GetParam().sentence), std::string::npos)
        << status.message;
    EXPECT_EQ(serialized(weights), before);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, PartsError, ::testing::ValuesIn(kPartCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(PartsErrors, OfOtherWeights) {
  Context context;
  const Bytes zeros(4096);
  const Sizes dims{4, 8}, stack{2, 4, 8};
  PackPart part{.B = {zeros.data(), DType::kFloat32, dims}};
  PackedWeights weights;
  Status status = pack_part(&weights, part);
  EXPECT_EQ(status.code, Code::kArgument);
  EXPECT_STREQ(status.message,
               "pack: weights is an empty PackedWeights; begin_pack() makes weights for parts");
  const auto refuse = [&](const PackArgs& args) {
    ASSERT_TRUE(pack(context, args, &weights).ok());
    status = pack_part(&weights, part);
    EXPECT_EQ(status.code, Code::kPackMismatch);
    EXPECT_STREQ(status.argument, "weights");
    EXPECT_STREQ(status.message,
                 "pack: weights is not one matrix of float32, float64, float16 or bfloat16 for "
                 "gemm; begin_pack() makes such weights");
  };
  refuse({.op = PackFor::kQGemm, .B = {zeros.data(), DType::kInt8, dims}});
  refuse({.B = {zeros.data(), DType::kInt32, dims}});
  refuse({.B = {zeros.data(), DType::kFloat32, stack}});
  const Sizes codes{8, 1, 8}, scales{8, 1};
  NBitsWeights nbits{.B = {zeros.data(), DType::kUInt8, codes},
                     .scales = {zeros.data(), DType::kFloat32, scales},
                     .K = 16,
                     .N = 8,
                     .block_size = 16};
  ASSERT_TRUE(pack_nbits(context, nbits, &weights).ok());
  EXPECT_EQ(pack_part(&weights, part).code, Code::kPackMismatch);
}

struct BeginCase {
  DType as;
  int64_t k, n;
  Code code;
  const char* argument;
  const char* sentence;
};

TEST(PartsErrors, OfBeginPackLeaveTheWeightsUnchanged) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const BeginCase cases[] = {
      {DType::kInt32, 3, 4, Code::kDType, "as",
       "pack: as is int32; it must be float32, float64, float16 or bfloat16"},
      {DType::kInt8, 3, 4, Code::kDType, "as", "as is int8"},
      {static_cast<DType>(200), 3, 4, Code::kDType, "as", "as is an unknown type"},
      {DType::kFloat32, -1, 4, Code::kShape, "weights",
       "pack: weights has shape [-1, 4]; each size must be a whole number from 0 to 2^53 - 1"},
      {DType::kFloat32, kHuge, kHuge, Code::kShape, "weights", "more than 2^53 elements"},
      {DType::kFloat64, 1 << 20, 1 << 20, Code::kOutOfMemory, "", "no memory for weights of 1 x"},
      {DType::kFloat16, 1000, 1000, Code::kOutOfMemory, "",
       "no memory for weights of 1 x 1000 x 1000 elements"},
  };
  for (const BeginCase& c : cases) {
    Context context(1 << 20);
    PackedWeights weights;
    ASSERT_TRUE(begin_pack(context, DType::kFloat32, 10, 20, &weights).ok());
    const size_t in_use = context.bytes_in_use();
    const Status status = begin_pack(context, c.as, c.k, c.n, &weights);
    EXPECT_EQ(status.code, c.code) << status.message;
    EXPECT_STREQ(status.op, "pack");
    EXPECT_STREQ(status.argument, c.argument);
    EXPECT_NE(std::string(status.message).find(c.sentence), std::string::npos) << status.message;
    EXPECT_TRUE(weights.k() == 10 && weights.n() == 20);
    EXPECT_EQ(context.bytes_in_use(), in_use);
  }
}

// A part takes no memory of the context.
TEST(PartsMemory, IsTheMemoryOfTheWeights) {
  Context context(200 * 96 * sizeof(float) + 4096);
  PackedWeights weights;
  ASSERT_TRUE(begin_pack(context, DType::kFloat32, 200, 96, &weights).ok());
  const std::vector<float> b(200 * 96, 1.0F);
  const Sizes dims{200, 96};
  EXPECT_EQ(pack(context, {.B = {b.data(), DType::kFloat32, dims}}, &weights).code,
            Code::kOutOfMemory);
  const size_t in_use = context.bytes_in_use();
  EXPECT_TRUE(pack_part(&weights, {.B = {b.data(), DType::kFloat32, dims}}).ok());
  EXPECT_EQ(context.bytes_in_use(), in_use);
}

}  // namespace
}  // namespace wgemm::testing
