// Weights of block formats: every rule that begin_pack() and pack_part() check, and that a part
// with an error changes nothing. Then what serialize() writes of them, and bytes that deserialize()
// refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "problem/nbits.h"
#include "serialized.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

using Halves = std::vector<uint16_t>;

constexpr int64_t kMost = int64_t{1} << 53, kFar = std::numeric_limits<int64_t>::max();
constexpr uint16_t kHalf =
    0x3800;  // the float16 0.5. No number that differs in one bit is infinite

// Where a block of a file has its scale; its second scale is next.
constexpr size_t kScaleAt[] = {0, 0, 0, 0, 0, 0, 80, 108, 0, 0, 208};

constexpr BlockFormat kFormats[] = {BlockFormat::kQ4_0, BlockFormat::kQ4_1, BlockFormat::kQ5_0,
                                    BlockFormat::kQ5_1, BlockFormat::kQ8_0, BlockFormat::kQ2_K,
                                    BlockFormat::kQ3_K, BlockFormat::kQ4_K, BlockFormat::kQ5_K,
                                    BlockFormat::kQ6_K};
constexpr BlockFormat kQ4K = BlockFormat::kQ4_K;

bool has_minima(BlockFormat format) { return row_of(format).nbits.has_minima(); }

// Sets the scales of a block.
void set_scales(Bytes* bytes, BlockFormat format, int64_t block, uint16_t scale, uint16_t second) {
  const size_t at =
      static_cast<size_t>(block * block_bytes(format)) + kScaleAt[static_cast<int>(format)];
  put(bytes, at, scale);
  if (has_minima(format)) put(bytes, at + 2, second);
}

// Random blocks, with scales of 0.5.
Bytes random_blocks(BlockFormat format, int64_t count, unsigned seed = 1) {
  Bytes bytes(static_cast<size_t>(count * block_bytes(format)));
  std::minstd_rand random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
  for (int64_t block = 0; block < count; ++block) set_scales(&bytes, format, block, kHalf, kHalf);
  return bytes;
}

PackedWeights begun(Context& context, BlockFormat format, int64_t k, int64_t n) {
  PackedWeights weights;
  const Status status = begin_pack(context, format, k, n, &weights);
  EXPECT_TRUE(status.ok()) << status.message;
  return weights;
}

// Weights of `n` random columns of `blocks` blocks.
Bytes random_weights(BlockFormat format, int64_t blocks, int64_t n) {
  Context context;
  PackedWeights weights = begun(context, format, blocks * block_steps(format), n);
  EXPECT_TRUE(pack_part(&weights, 0, random_blocks(format, blocks * n)).ok());
  return serialized(weights);
}

TEST(BlockFormats, HaveTheSizesOfGgml) {
  constexpr int64_t kBytes[] = {18, 20, 22, 24, 34, 84, 110, 144, 176, 210};
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    EXPECT_EQ(block_bytes(kFormats[i]), kBytes[i]);
    EXPECT_EQ(block_steps(kFormats[i]), i < 5 ? 32 : 256);
  }
  for (const int format : {0, 11, 255}) {
    EXPECT_EQ(block_bytes(static_cast<BlockFormat>(format)), 0);
    EXPECT_EQ(block_steps(static_cast<BlockFormat>(format)), 0);
  }
}

// The bytes of a column of a block, without the weights' header and gaps.
TEST(BlockFormats, TakeTheBytesThatAreStated) {
  constexpr size_t kBytes[] = {18, 20, 34, 36, 34, 100, 146, 148, 276, 274};
  for (size_t i = 0; i < std::size(kFormats); ++i)
    EXPECT_EQ(random_weights(kFormats[i], 3, 16).size(), 72 + 3 * 16 * kBytes[i]) << i;
}

TEST(BlockFormats, DescribeTheWeights) {
  for (const BlockFormat format : kFormats) {
    Context context;
    const PackedWeights weights = begun(context, format, 2 * block_steps(format), 9);
    EXPECT_EQ(weights.op(), PackFor::kMatMulNBits);
    EXPECT_EQ(weights.block_format(), format);
    EXPECT_EQ(weights.dtype(), DType::kFloat16);
    EXPECT_EQ(weights.k(), 2 * block_steps(format));
    EXPECT_EQ(weights.n(), 9);
    EXPECT_TRUE(weights.batch().empty());
  }
  Context context;
  PackedWeights weights;
  const float b[4] = {};
  const int64_t dims[] = {2, 2};
  ASSERT_TRUE(pack(context, {.B = {b, DType::kFloat32, dims}}, &weights).ok());
  EXPECT_EQ(weights.block_format(), BlockFormat::kNone);
}

// begin_pack() and pack_part() --------------------------------------------------------------------

struct BeginCase {
  BlockFormat format;
  int64_t k, n;
  Code code;
  const char *argument, *message;
};
const BeginCase kBeginCases[] = {
    {BlockFormat::kNone, 256, 4, Code::kArgument, "format",
     "pack: format is the unknown format 0; see BlockFormat"},
    {static_cast<BlockFormat>(11), 256, 4, Code::kArgument, "format",
     "pack: format is the unknown format 11; see BlockFormat"},
    {static_cast<BlockFormat>(255), 256, 4, Code::kArgument, "format",
     "pack: format is the unknown format 255; see BlockFormat"},
    {kQ4K, -256, 4, Code::kShape, "K", "pack: K is -256; it must be from 0 to 2^53"},
    {kQ4K, 255, 4, Code::kShape, "K", "pack: K is 255; for Q4_K it must be a multiple of 256"},
    {kQ4K, 128, 4, Code::kShape, "K", "pack: K is 128; for Q4_K it must be a multiple of 256"},
    {BlockFormat::kQ8_0, 48, 4, Code::kShape, "K",
     "pack: K is 48; for Q8_0 it must be a multiple of 32"},
    {kQ4K, kFar, 4, Code::kShape, "K", "pack: K is 9223372036854775807; it must be from 0 to 2^53"},
    {kQ4K, 256, -1, Code::kShape, "N", "pack: N is -1; it must be from 0 to 2^53"},
    {kQ4K, 256, kMost + 1, Code::kShape, "N",
     "pack: N is 9007199254740993; it must be from 0 to 2^53"},
    {kQ4K, 256, (kMost >> 8) + 1, Code::kShape, "N",
     "pack: K and N are [256, 35184372088833], of more than 2^53 elements"},
    {BlockFormat::kQ4_0, kMost, 2, Code::kShape, "N",
     "pack: K and N are [9007199254740992, 2], of more than 2^53 elements"},
    {kQ4K, 1 << 20, 1 << 20, Code::kOutOfMemory, "",
     "pack: no memory for weights of 1 x 1048576 x 1048576 elements; "},
    {BlockFormat::kQ6_K, kMost, 1, Code::kOutOfMemory, "", "pack: no memory for weights of 1 x "},
};

TEST(BeginBlocks, ReportsWhatIsWrong) {
  for (const auto& [format, k, n, code, argument, message] : kBeginCases) {
    Context context(1 << 20);
    PackedWeights weights = begun(context, kQ4K, 256, 3);
    const size_t in_use = context.bytes_in_use();
    const Status status = begin_pack(context, format, k, n, &weights);
    EXPECT_EQ(status.code, code) << status.message;
    EXPECT_STREQ(status.op, "pack");
    EXPECT_STREQ(status.argument, argument);
    EXPECT_EQ(std::string(status.message).find(message), 0U) << status.message;
    EXPECT_EQ(context.bytes_in_use(), in_use);
    EXPECT_EQ(weights.n(), 3);
  }
}

TEST(BeginBlocks, MakesZerosAndReleasesWhatWasThere) {
  Context context;
  PackedWeights weights;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(begin_pack(context, kQ4K, 512, 9, &weights).ok());
    const Bytes bytes = serialized(weights);
    EXPECT_TRUE(
        std::all_of(bytes.begin() + 72, bytes.end(), [](std::byte b) { return b == std::byte{}; }));
    EXPECT_TRUE(pack_part(&weights, 0, random_blocks(kQ4K, 18)).ok());
  }
  weights = {};
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

void expect_part_refused(PackedWeights* weights, int64_t first, std::span<const std::byte> bytes,
                         Code code, const char* argument, const std::string& message) {
  const Bytes before = weights->empty() ? Bytes() : serialized(*weights);
  const Status status = pack_part(weights, first, bytes);
  EXPECT_EQ(status.code, code) << status.message;
  EXPECT_STREQ(status.op, "pack");
  EXPECT_STREQ(status.argument, argument) << status.message;
  EXPECT_EQ(std::string(status.message), "pack: " + message);
  EXPECT_TRUE(weights->empty() || serialized(*weights) == before);
}

TEST(PackBlocks, RefusesOtherWeights) {
  Context context;
  PackedWeights weights;
  const Bytes blocks = random_blocks(kQ4K, 1);
  expect_part_refused(
      &weights, 0, blocks, Code::kArgument, "weights",
      "weights is an empty PackedWeights; begin_pack() with a BlockFormat makes weights of "
      "blocks");
  const char* const no_format =
      "weights is of no block format; begin_pack() with a BlockFormat makes weights of blocks";
  const std::vector<float> b(256);
  const int64_t dims[] = {256, 1}, code_dims[] = {1, 8, 16}, scale_dims[] = {8};
  ASSERT_TRUE(pack(context, {.B = {b.data(), DType::kFloat32, dims}}, &weights).ok());
  expect_part_refused(&weights, 0, blocks, Code::kPackMismatch, "weights", no_format);
  NBitsWeights codes;
  codes.B = {b.data(), DType::kUInt8, code_dims};
  codes.scales = {b.data(), DType::kFloat32, scale_dims};
  codes.K = 256, codes.N = 1, codes.block_size = 32;
  ASSERT_TRUE(pack_nbits(context, codes, &weights).ok());
  expect_part_refused(&weights, 0, blocks, Code::kPackMismatch, "weights", no_format);
}

TEST(PackBlocks, RefusesBytesThatAreNotColumnsOfTheWeights) {
  Context context;
  PackedWeights weights = begun(context, kQ4K, 512, 10);
  const Bytes blocks = random_blocks(kQ4K, 2 * 11);
  const std::span<const std::byte> all(blocks);
  ASSERT_TRUE(pack_part(&weights, 3, all.first(288 * 2)).ok());
  for (const size_t length :
       {size_t{1}, size_t{144}, size_t{287}, size_t{289}, blocks.size() - 1}) {
    expect_part_refused(&weights, 0, all.first(length), Code::kShape, "bytes",
                        "bytes has " + std::to_string(length) +
                            " bytes; it must be a multiple of 288, the bytes of a column of Q4_K");
  }
  for (const int64_t first :
       {int64_t{-1}, int64_t{10}, int64_t{11}, kFar, std::numeric_limits<int64_t>::min()}) {
    expect_part_refused(
        &weights, first, all.first(288), Code::kShape, "first",
        "first is " + std::to_string(first) + " and bytes has 1 columns; there are 10 columns");
  }
  expect_part_refused(&weights, 0, all, Code::kShape, "first",
                      "first is 0 and bytes has 11 columns; there are 10 columns");
  expect_part_refused(&weights, 8, all.first(288 * 3), Code::kShape, "first",
                      "first is 8 and bytes has 3 columns; there are 10 columns");
  expect_part_refused(&weights, 11, {}, Code::kShape, "first",
                      "first is 11 and bytes has 0 columns; there are 10 columns");
  // Nothing at all is allowed, and packs nothing.
  const Bytes before = serialized(weights);
  for (const int64_t first : {0, 10}) EXPECT_TRUE(pack_part(&weights, first, {}).ok());
  EXPECT_TRUE(serialized(weights) == before);
}

TEST(PackBlocks, OfEmptyMatrices) {
  for (const BlockFormat format : kFormats) {
    Context context;
    PackedWeights weights = begun(context, format, 0, 5);
    EXPECT_TRUE(pack_part(&weights, 0, {}).ok());
    const Bytes block = random_blocks(format, 1);
    EXPECT_EQ(pack_part(&weights, 0, block).code, Code::kShape);
    weights = begun(context, format, block_steps(format), 0);
    EXPECT_TRUE(pack_part(&weights, 0, {}).ok());
    EXPECT_EQ(pack_part(&weights, 0, block).code, Code::kShape);
  }
}

// The columns that precede the invalid scale must not be packed either.
TEST(PackBlocks, RefusesScalesThatAreNotFinite) {
  for (const BlockFormat format : kFormats) {
    Context context;
    PackedWeights weights = begun(context, format, 3 * block_steps(format), 20);
    ASSERT_TRUE(pack_part(&weights, 0, random_blocks(format, 60)).ok());
    for (const uint16_t number : Halves{0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xffff}) {
      for (const bool is_second : {false, true}) {
        if (is_second && !has_minima(format)) continue;
        Bytes blocks = random_blocks(format, 12, 2);
        set_scales(&blocks, format, 10, is_second ? kHalf : number, is_second ? number : kHalf);
        expect_part_refused(&weights, 7, blocks, Code::kArgument, "bytes",
                            "bytes has a scale that is infinite or NaN, in row 10 and block 1");
      }
    }
    // The largest numbers, and the smallest.
    for (const uint16_t number : Halves{0x7bff, 0xfbff, 0x0001, 0x8000}) {
      Bytes blocks = random_blocks(format, 3);
      set_scales(&blocks, format, 1, number, number);
      EXPECT_TRUE(pack_part(&weights, 19, blocks).ok());
    }
  }
}

// Parts of any sizes, in any order, repeated, at addresses without alignment.
TEST(PackBlocks, OrderDoesNotMatter) {
  constexpr int64_t kColumns = 21;
  for (const BlockFormat format : kFormats) {
    Context context;
    const int64_t k = 2 * block_steps(format);
    const auto column = static_cast<size_t>(2 * block_bytes(format));
    const Bytes blocks = random_blocks(format, 2 * kColumns);
    PackedWeights whole = begun(context, format, k, kColumns),
                  parts = begun(context, format, k, kColumns);
    ASSERT_TRUE(pack_part(&whole, 0, blocks).ok());
    for (const auto& [first, count] : {std::pair{13, 8}, {0, 1}, {5, 3}, {1, 9}, {9, 4}, {0, 2}}) {
      Bytes other(1 + static_cast<size_t>(count) * column);
      const auto from = blocks.begin() + static_cast<std::ptrdiff_t>(column) * first;
      std::copy_n(from, other.size() - 1, other.begin() + 1);
      // Other blocks first, which the part must replace.
      ASSERT_TRUE(pack_part(&parts, first, random_blocks(format, 2 * count, 3)).ok());
      ASSERT_TRUE(pack_part(&parts, first, std::span(other).subspan(1)).ok());
    }
    EXPECT_TRUE(serialized(whole) == serialized(parts));
  }
}

// serialize() and deserialize() -------------------------------------------------------------------

TEST(BlockBytes, ReturnTheWeights) {
  for (const BlockFormat format : kFormats) {
    for (const int64_t blocks : {0, 1, 3}) {
      for (const int64_t n : {0, 1, 7, 8, 9, 24}) {
        const Bytes bytes = random_weights(format, blocks, n);
        Context context;
        PackedWeights weights;
        const Status status = deserialize(context, bytes, &weights);
        ASSERT_TRUE(status.ok()) << status.message;
        EXPECT_EQ(weights.op(), PackFor::kMatMulNBits);
        EXPECT_EQ(weights.block_format(), format);
        EXPECT_EQ(weights.k(), blocks * block_steps(format));
        EXPECT_EQ(weights.n(), n);
        EXPECT_TRUE(serialized(weights) == bytes);
        // They can be packed again.
        EXPECT_TRUE(pack_part(&weights, 0, random_blocks(format, blocks * n)).ok());
        EXPECT_TRUE(serialized(weights) == bytes);
      }
    }
  }
}

TEST(BlockBytes, OfAnotherFormat) {
  for (const BlockFormat format : kFormats) {
    const Bytes good = random_weights(format, 2, 5);
    const auto changed = [&](size_t at, auto value) {
      Bytes bytes(good);
      put(&bytes, at, value);
      return bytes;
    };
    const auto named = [&](size_t at, const char* name) {
      Bytes bytes = changed(at, uint64_t{0});
      std::memcpy(bytes.data() + at, name, std::strlen(name));
      return bytes;
    };
    expect_refused_if_sealed(changed(kVersionAt, 1), "has elements of an unknown type; see DType");
    expect_refused_if_sealed(changed(kVersionAt, 3),
                             "is of version 3; this library reads versions 1 and 2");
    for (const char* op : {"gemm", "qgemm"})
      expect_refused_if_sealed(named(kOpAt, op), "is of version 2, which is for nbits only");
    for (const char* type : {"", "none", "Q4_", "Q9_K", "float16", "q4_k"})
      expect_refused_if_sealed(named(kTypeAt, type),
                               "has blocks of an unknown format; see BlockFormat");
    for (const BlockFormat other : kFormats) {
      if (other != format)
        expect_refused_if_sealed(named(kTypeAt, row_of(other).name), "bytes has ");
    }
    for (const size_t at : {kWidthAt, kBitsAt, kKindAt, kSizeAt}) {
      for (const int value : {0, 1, 2, 3, 7, 9, 16, 255, 65535}) {
        uint16_t own;
        std::memcpy(&own, good.data() + at, sizeof(own));
        if (own != value)
          expect_refused_if_sealed(changed(at, static_cast<uint16_t>(value)),
                                   "or of another layout");
      }
    }
    for (const int64_t rank : {0, 1, 3, 64})
      expect_refused_if_sealed(changed(kRankAt, rank), rank == 64 ? "bytes" : "bytes has rank ");
    const int64_t k = 2 * block_steps(format);
    for (const int64_t size : {int64_t{-1}, kMost + 1, kFar}) {
      expect_refused_if_sealed(changed(kKAt, size), "K is ");
      expect_refused_if_sealed(changed(kNAt, size), "N is ");
    }
    for (const int64_t size : {k - 1, k / 2 + 16, kMost - 1})
      expect_refused_if_sealed(changed(kKAt, size), "it must be a multiple of ");
    expect_refused_if_sealed(changed(kKAt, kMost), "of more than 2^53 elements");
    expect_refused_if_sealed(changed(kNAt, kMost), "of more than 2^53 elements");
    for (const int64_t size : {int64_t{0}, k / 2, 4 * k, int64_t{1} << 40})
      expect_refused_if_sealed(changed(kKAt, size), " bytes; expected ");
    for (const int64_t size : {int64_t{0}, int64_t{9}, int64_t{1} << 40})
      expect_refused_if_sealed(changed(kNAt, size), " bytes; expected ");
    for (size_t size = 0; size < good.size(); size += size < 80 ? 1 : 37) {
      expect_refused_if_sealed(
          Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), "bytes has ");
    }
    Bytes longer(good);
    longer.resize(good.size() + 8);
    expect_refused_if_sealed(longer, " bytes; expected ");
    Bytes corrupt(good);
    corrupt.back() ^= std::byte{1};
    Context context;
    PackedWeights weights;
    EXPECT_STREQ(deserialize(context, corrupt, &weights).message,
                 "deserialize: bytes is corrupt: the checksum does not match the contents");
  }
}

TEST(BlockBytes, PaddingMustBeZeros) {
  // Bits of a column that may be any: of scales, of the scales of sub-blocks, of minima, of codes.
  // A scale of a sub-block of Q3_K is at least -32 and at most 31: its sign has 3 bits.
  constexpr int64_t kBits[] = {16 + 32 * 4,
                               32 + 32 * 4,
                               16 + 32 * 5,
                               32 + 32 * 5,
                               16 + 32 * 8,
                               32 + 16 * (4 + 4) + 256 * 2,
                               16 + 16 * 5 + 256 * 3,
                               32 + 8 * (6 + 6) + 256 * 4,
                               32 + 8 * (6 + 6) + 256 * 5,
                               16 + 16 * 8 + 256 * 6};
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    const Bytes good = random_weights(kFormats[i], 1, 3);
    EXPECT_EQ(count_bits(good), 3 * kBits[i]) << row_of(kFormats[i]).name;
  }
}

TEST(BlockBytes, ScalesMustBeFinite) {
  for (const BlockFormat format : kFormats) {
    const Bytes good = random_weights(format, 3, 10);
    const auto block = static_cast<size_t>(row_of(format).nbits.block_bytes());
    for (const uint16_t number : Halves{0x7c00, 0xfc00, 0x7c01, 0xffff}) {
      for (const size_t at :
           {size_t{0}, size_t{14}, 2 * block + 6, 5 * block + 2, 5 * block + 18}) {
        if (at % block >= 16 && !has_minima(format)) continue;
        Bytes bytes(good);
        put(&bytes, kPanelsAt + at, number);
        expect_refused_if_sealed(bytes, "bytes has a scale that is infinite or NaN");
      }
    }
  }
}

// A
// ------------------------------------------------------------------------------------------------

// Weights of a block format have no type of their own.
TEST(BlockRules, TypesOfA) {
  Context context;
  PackedWeights weights = begun(context, kQ4K, 256, 4);
  std::vector<double> a(256), y(4);
  const int64_t a_dims[] = {1, 256}, y_dims[] = {1, 4};
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    const bool is_float =
        type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16;
    MatMulNBitsArgs args;
    args.A = {a.data(), type, a_dims};
    args.packed_weights = &weights;
    args.Y = {y.data(), type, y_dims};
    const Status status = matmul_nbits(context, args);
    EXPECT_EQ(status.code, is_float ? Code::kOk : Code::kDType) << status.message;
    if (!is_float) {
      EXPECT_STREQ(status.argument, "A");
    }
  }
  MatMulNBitsArgs args;
  args.A = {a.data(), DType::kFloat32, a_dims};
  args.packed_weights = &weights;
  args.Y = {y.data(), DType::kFloat16, y_dims};
  EXPECT_STREQ(matmul_nbits(context, args).argument, "Y");
}

}  // namespace
}  // namespace wgemm::testing
