// Serialized weights: reading returns what was written, the bytes never change, and all other bytes
// are refused.
#include "pack/serialize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "array.h"
#include "base/types.h"
#include "pack/weights.h"
#include "problem/nbits.h"
#include "serialized.h"
#include "threads.h"

namespace wgemm::testing {
namespace {

using Sizes = std::vector<int64_t>;

struct Case {
  DType type;
  Sizes dims;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << dtype_name(c.type) << ' ' << ::testing::PrintToString(c.dims);
}

// Every type, with sizes below and above a panel's, with and without batch axes.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    for (const int64_t k : {0, 1, 2, 5}) {
      for (const int64_t n : {0, 1, 3, 4, 7, 8, 9, 17}) cases.push_back({type, {k, n}});
    }
    cases.push_back({type, {129, 40}});
    for (const Sizes& dims :
         {Sizes{1, 3, 9}, {2, 3, 5, 4}, {0, 5, 9}, {3, 0, 9}, {3, 5, 0}, {2, 1, 2, 1, 1}})
      cases.push_back({type, dims});
  }
  return cases;
}

// Random bits.
Bytes elements_of(const Case& c) {
  size_t count = dtype_bytes(c.type);
  for (const int64_t size : c.dims) count *= static_cast<size_t>(size);
  Bytes bytes(count);
  std::mt19937_64 random(1);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

int64_t matrices_of(const PackedWeights& weights) {
  int64_t matrices = 1;
  for (const int64_t size : weights.batch()) matrices *= size;
  return matrices;
}

PackedWeights packed(Context& context, const Case& c, const Bytes& elements) {
  PackedWeights weights;
  const PackFor op = compute_type(c.type) == DType::kInt8 ? PackFor::kQGemm : PackFor::kGemm;
  const Status status = pack(context, {.op = op, .B = {elements.data(), c.type, c.dims}}, &weights);
  EXPECT_TRUE(status.ok()) << status.message;
  return weights;
}

Bytes bytes_of_case(const Case& c) {
  Context context;
  return serialized(packed(context, c, elements_of(c)));
}

std::string hex(const Bytes& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (i > 0 && i % 8 == 0) text += ' ';
    text += kDigits[static_cast<size_t>(bytes[i]) / 16];
    text += kDigits[static_cast<size_t>(bytes[i]) % 16];
  }
  return text;
}

// Multiplies an A with three rows by the weights. Returns the bytes of Y.
Bytes product(Context& context, const PackedWeights& weights) {
  const Sizes a_dims{3, weights.k()}, y_dims{3, weights.n()};
  const Bytes a = elements_of({weights.dtype(), a_dims});
  Bytes y(static_cast<size_t>(3 * weights.n()) * 8);
  Status status;
  if (weights.op() == PackFor::kQGemm) {
    const float scale = 1;
    QGemmArgs args;
    args.A = {a.data(), weights.dtype(), a_dims};
    args.packed_B = &weights;
    args.a_scale = args.b_scale = {&scale, DType::kFloat32};
    args.Y = {y.data(), DType::kFloat32, y_dims};
    status = qgemm(context, args);
  } else {
    GemmArgs args;
    args.A = {a.data(), weights.dtype(), a_dims};
    args.packed_B = &weights;
    args.Y = {y.data(), weights.dtype(), y_dims};
    status = gemm(context, args);
  }
  EXPECT_TRUE(status.ok()) << status.message;
  return y;
}

class SerializeTest : public ::testing::TestWithParam<Case> {};

TEST_P(SerializeTest, ReturnsTheWeights) {
  Context context(0, Determinism::kStrict);
  Bytes elements = elements_of(GetParam());
  const PackedWeights weights = packed(context, GetParam(), elements);
  const Bytes bytes = serialized(weights);
  const Bytes aligned_to_nothing = [&] {
    Bytes moved(bytes.size() + 1);
    std::ranges::copy(bytes, moved.begin() + 1);
    return moved;
  }();
  PackedWeights read;
  const Status status = deserialize(context, std::span(aligned_to_nothing).subspan(1), &read);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(read.op(), weights.op());
  EXPECT_EQ(read.dtype(), weights.dtype());
  EXPECT_EQ(read.k(), weights.k());
  EXPECT_EQ(read.n(), weights.n());
  EXPECT_TRUE(std::ranges::equal(read.batch(), weights.batch()));
  EXPECT_EQ(read.bytes(), weights.bytes());
  EXPECT_TRUE(serialized(read) == bytes);
  const PrepackedB one = prepacked_of(weights), other = prepacked_of(read);
  EXPECT_EQ(one.low, other.low);
  EXPECT_EQ(one.high, other.high);
  EXPECT_EQ(one.finite, other.finite);
  if (weights.op() == PackFor::kQGemm && weights.k() != 0) {
    const int64_t sums = matrices_of(weights) * weights.n();
    EXPECT_TRUE(std::equal(one.column_sums, one.column_sums + sums, other.column_sums));
  }
  if (weights.batch().empty()) {
    EXPECT_TRUE(product(context, weights) == product(context, read));
  }
}

TEST_P(SerializeTest, RefusesTruncatedBytes) {
  const Bytes bytes = bytes_of_case(GetParam());
  for (size_t length = 0; length < bytes.size(); length += length < 256 ? 1 : 61) {
    expect_refused(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)),
                   "bytes has " + std::to_string(length) + " bytes; expected ");
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SerializeTest, ::testing::ValuesIn(all_cases()));

// The format
// -------------------------------------------------------------------------------------------------

struct Golden {
  DType type;
  Sizes dims;
  Bytes elements;
  const char* hex;
};

template <typename T>
Bytes bytes_of(std::vector<T> elements) {
  const auto* bytes = reinterpret_cast<const std::byte*>(elements.data());
  return {bytes, bytes + elements.size() * sizeof(T)};
}

// The same as in tests/js/ops/serialize.test.ts.
const std::vector<Golden>& goldens() {
  static const std::vector<Golden> all{
      {DType::kFloat32,
       {2, 2},
       bytes_of<float>({1, 2, 3, 4}),
       "7767656d6d2d7077 0100000001000000 ec9877b4d9dc3ce4 67656d6d00000000 666c6f6174333200 "
       "0800010008000400 0200000000000000 "
       "0200000000000000 0200000000000000 0000000000000000 0000000000000000 0000000000000000 "
       "0000000000000000 0000803f00000040 "
       "0000000000000000 0000000000000000 0000000000000000 0000404000008040 0000000000000000 "
       "0000000000000000 0000000000000000"},
      {DType::kBFloat16,
       {2, 1, 3},
       bytes_of<uint16_t>({1, 2, 3, 4, 5, 6}),
       "7767656d6d2d7077 0100000001000000 4a1488274e0782a9 67656d6d00000000 62666c6f61743136 "
       "0800010000000200 0300000000000000 "
       "0200000000000000 0100000000000000 0300000000000000 0100020003000000 0000000000000000 "
       "0400050006000000 0000000000000000"},
      {DType::kUInt8,
       {3, 2},
       bytes_of<uint8_t>({0, 1, 2, 127, 128, 255}),
       "7767656d6d2d7077 0100000001000000 b711ff5114133ad3 7167656d6d000000 75696e7438000000 "
       "0800020000000100 0200000000000000 "
       "0300000000000000 0200000000000000 808281ff00000000 0000000000000000 00007f0000000000 "
       "0000000000000000"},
  };
  return all;
}

TEST(Serialize, HasOneFormatForever) {
  for (const Golden& golden : goldens()) {
    Context context;
    EXPECT_EQ(hex(serialized(packed(context, {golden.type, golden.dims}, golden.elements))),
              golden.hex)
        << dtype_name(golden.type);
  }
}

// A block of a file. Only the scales are chosen: the float16 0.5, and -2 in formats with a second
// one.
Bytes block_of(BlockFormat format) {
  Bytes block(static_cast<size_t>(block_bytes(format)));
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i * 29 + 7);
  constexpr size_t kScaleAt[] = {0, 0, 0, 0, 0, 0, 80, 108, 0, 0, 208};
  const size_t at = kScaleAt[static_cast<int>(format)];
  block[at + 1] = std::byte{0x38};
  if (row_of(format).nbits.has_minima()) block[at + 3] = std::byte{0xc0};
  return block;
}

// Q4_1 in full, and the checksums of others.
TEST(Serialize, HasOneFormatOfBlocksForever) {
  constexpr const char* kHex =
      "7767656d6d2d7077 0100000002000000 3ca7ac9a6c7e4d0d 6e62697473000000 51345f3100000000 "
      "0800040003002000 0200000000000000 2000000000000000 0300000000000000 "
      "0738000007380000 0000000000000000 4140000041400000 0000000000000000 "
      "fbc8956200000000 fbc8956200000000 0000000000000000 0000000000000000 "
      "73401dea00000000 73401dea00000000 0000000000000000 0000000000000000 "
      "e7092b4d00000000 e7092b4d00000000 0000000000000000 0000000000000000 "
      "d6f8192b00000000 d6f8192b00000000 0000000000000000 0000000000000000";
  constexpr const char* kChecksums[] = {
      "4ec00eeab061f2c6", "3ca7ac9a6c7e4d0d", "f85fe5739045b717", "564f5243ac1a1476",
      "3b2374e3ac497e8f", "225238bec298d636", "034b9eb70adf06cc", "1700803f5e4c37a5",
      "8115f989d339c0dc", "e71eb4e3253fcc0e",
  };
  for (int i = 1; i < kBlockFormatCount; ++i) {
    const auto format = static_cast<BlockFormat>(i);
    Context context;
    PackedWeights weights;
    ASSERT_TRUE(begin_pack(context, format, block_steps(format), 3, &weights).ok());
    for (const int64_t column : {0, 2})
      ASSERT_TRUE(pack_part(&weights, column, block_of(format)).ok());
    const std::string text = hex(serialized(weights));
    if (format == BlockFormat::kQ4_1) {
      EXPECT_EQ(text, kHex);
    }
    EXPECT_EQ(text.substr(34, 16), kChecksums[i - 1]) << row_of(format).name;
  }
}

// Bytes that are not serialized weights
// -------------------------------------------------------------------------------------------------

// Files with every kind of padding: panel headers, columns, and k of 8-bit types.
const Case kSmall[] = {{DType::kFloat32, {1, 3, 9}},
                       {DType::kInt8, {3, 9}},
                       {DType::kFloat16, {2, 3}},
                       {DType::kUInt64, {1, 3}}};

TEST(Serialize, RefusesEveryByteThatWasChanged) {
  for (const Case& c : kSmall) {
    const Bytes bytes = bytes_of_case(c);
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const int change : {1, 0x80, 0xff}) {
        Bytes changed = bytes;
        changed[at] ^= static_cast<std::byte>(change);
        expect_refused(changed, at < 8    ? "not packed weights"
                                : at < 12 ? "byte order"
                                : at < 16 ? "version"
                                          : "bytes ");
      }
    }
  }
}

// With a valid checksum, changed bytes may only mean other weights.
TEST(Serialize, RefusesWhatSerializeWouldNotWrite) {
  for (const Case& c : kSmall) {
    const Bytes bytes = bytes_of_case(c);
    size_t taken = 0;
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const int change : {1, 2, 0x10, 0x80, 0xff}) {
        Bytes changed = bytes;
        changed[at] ^= static_cast<std::byte>(change);
        seal(changed);
        Context context;
        PackedWeights weights;
        const Status status = deserialize(context, changed, &weights);
        if (!status.ok()) {
          EXPECT_EQ(status.code, Code::kPackMismatch) << status.message;
          EXPECT_EQ(context.bytes_in_use(), 0U);
          continue;
        }
        ++taken;
        EXPECT_TRUE(serialized(weights) == changed) << at;
        // Everything else must follow from the new elements.
        const PrepackedB stored = prepacked_of(weights);
        if (stored.column_sums == nullptr || weights.op() != PackFor::kQGemm) continue;
        int low = 127, high = -128;
        for (int64_t i = 0; i < matrices_of(weights); ++i) {
          const PrepackedB matrix = stored.at(i);
          for (int64_t col = 0; col < weights.n(); ++col) {
            int sum = 0;
            for (int64_t k = 0; k < weights.k(); ++k) {
              const auto element =
                  static_cast<int8_t>(matrix.block(k / 2 * 2, col / 8 * 8)[col % 8 * 2 + k % 2]);
              sum += element;
              low = std::min<int>(low, element);
              high = std::max<int>(high, element);
            }
            EXPECT_EQ(matrix.column_sums[col], sum);
          }
        }
        EXPECT_EQ(stored.low, low);
        EXPECT_EQ(stored.high, high);
      }
    }
    // Accepted: changes of elements, of the checksum (which is computed again), and of the type to
    // one with the same layout.
    const size_t elements = elements_of(c).size() * 5;
    EXPECT_GE(taken, elements + 40);
    EXPECT_LE(taken, elements + 40 + 40);
  }
}

// Bytes with other numbers in the header, and the right checksum.
Bytes with(const Bytes& bytes, size_t at, std::vector<uint64_t> words) {
  Bytes changed = bytes;
  std::memcpy(changed.data() + at, words.data(), words.size() * 8);
  seal(changed);
  return changed;
}

TEST(Serialize, RefusesImpossibleSizes) {
  const Bytes bytes = bytes_of_case(Case{DType::kFloat32, {3, 4, 5, 9}});
  constexpr uint64_t kHuge = uint64_t{1} << 32;
  expect_refused(with(bytes, 48, {65}), "rank above 64");
  expect_refused(with(bytes, 48, {~uint64_t{0}}), "rank above 64");
  const std::string has = "bytes has " + std::to_string(bytes.size()) + " bytes; expected ";
  expect_refused(with(bytes, 48, {1}),
                 "deserialize: bytes has shape [3] of rank 1; it must have rank 2 or more");
  expect_refused(with(bytes, 48, {0}), "deserialize: bytes has shape [] of rank 0");
  expect_refused(with(bytes, 56, {~uint64_t{0}}),
                 "deserialize: bytes has shape [-1, 4, 5, 9]; each size must be a whole number "
                 "from 0 to 2^53 - 1");
  expect_refused(
      with(bytes, 56, {kHuge, kHuge}),
      "deserialize: bytes has more than 2^53 elements, by its shape [4294967296, 4294967296");
  // Errors state sizes beyond 32 bits in full on every machine. A panel of one step has 64 bytes.
  expect_refused(with(bytes, 56, {uint64_t{1} << 53, 1, 1, 1}), has + "576460752303423576");
  expect_refused(with(bytes, 56, {1, 1, kHuge / 2, kHuge / 2048}), has);
  expect_refused(with(bytes, 56, {uint64_t{1} << 32, 1, 1, 1}), has);
  expect_refused(with(bytes, 56, {3, 4, 6, 9}), has);
  expect_refused(with(bytes, 56, {3, 4, 4, 9}), has);
  expect_refused(with(bytes, 56, {uint64_t{1} << 53, 1, 1, 0}), has);
  expect_refused(with(bytes, 56, {0, 1, uint64_t{1} << 26, 1 << 20}), has);
  expect_refused(with(bytes, 40, {0}),
                 "bytes has panels of 0 columns, or of another layout; expected 8 columns");
  expect_refused(
      with(bytes, 24, {0x6d6d656771}),
      "deserialize: bytes has type float32; for qgemm it must be int8 or uint8");  // "qgemm"
  expect_refused(with(bytes, 24, {0x6d6d6567, 0x38746e69}), "layout");  // "gemm" of "int8"
  const Bytes eight = bytes_of_case(Case{DType::kInt8, {4, 5}});
  expect_refused(with(eight, 24, {0x6d6d6567}),
                 "deserialize: bytes has type int8; 8-bit weights are for qgemm");
  // Empty matrices take no time, whatever their number.
  Bytes nothing = bytes_of_case(Case{DType::kInt32, {2, 3, 0}});
  nothing = with(nothing, 56, {uint64_t{1} << 50, 3, 0});
  Context context;
  PackedWeights weights;
  EXPECT_TRUE(deserialize(context, nothing, &weights).ok());
}

// A few bytes must not cause a large allocation.
TEST(Serialize, OfEmptyMatricesTakesNoMemory) {
  Context context(2000);
  PackedWeights weights;
  for (const int64_t n : {int64_t{1} << 31, int64_t{1} << 53}) {
    const int64_t dims[] = {0, n};
    ASSERT_TRUE(
        pack(context, {.op = PackFor::kQGemm, .B = {nullptr, DType::kUInt8, dims}}, &weights).ok());
    const Bytes bytes = serialized(weights);
    EXPECT_EQ(bytes.size(), 72U);
    const Status status = deserialize(context, bytes, &weights);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(weights.n(), n);
    EXPECT_TRUE(serialized(weights) == bytes);
  }
}

TEST(Serialize, ReportsWhatIsWrong) {
  const Bytes bytes = bytes_of_case(Case{DType::kFloat32, {4, 9}});
  const auto changed = [&](size_t at, int value) {
    Bytes other = bytes;
    other[at] = static_cast<std::byte>(value);
    return other;
  };
  expect_refused({}, "deserialize: bytes has 0 bytes; expected at least 56");
  expect_refused(changed(0, 'W'),
                 "deserialize: bytes is not packed weights: it does not begin with \"wgemm-pw\"");
  expect_refused(changed(8, 2),
                 "deserialize: bytes has byte order 2; this machine has 1, and 1 is little-endian");
  for (const int version : {0, 3, 255}) {
    expect_refused(changed(12, version), "deserialize: bytes is of version " +
                                             std::to_string(version) +
                                             "; this library reads versions 1 and 2");
  }
  expect_refused(changed(12, 2), "deserialize: bytes is of version 2, which is for nbits only");
  expect_refused(changed(24, 'h'),
                 "deserialize: bytes is for an unknown operation; it must be gemm, qgemm or nbits");
  expect_refused(changed(32, 'g'), "deserialize: bytes has elements of an unknown type");
  expect_refused(changed(bytes.size() - 1, 1),
                 "deserialize: bytes is corrupt: the checksum does not match the contents");
  Bytes longer = bytes;
  longer.push_back({});
  expect_refused(longer, "deserialize: bytes has 393 bytes; expected 392");
  Bytes padding = changed(bytes.size() - 1, 1);
  seal(padding);
  expect_refused(padding, "deserialize: bytes has panels whose padding is not zeros");
}

// Arguments and failures
// -------------------------------------------------------------------------------------------------

TEST(Serialize, RefusesWeightsThatAreEmptyAndBytesOfAnotherLength) {
  EXPECT_EQ(serialized_bytes({}), 0U);
  const Status empty = serialize({}, {});
  EXPECT_EQ(empty.code, Code::kArgument);
  EXPECT_STREQ(empty.message, "serialize: weights is an empty PackedWeights; pack() fills it");
  Context context;
  const Case c{DType::kFloat64, {3, 4}};
  const PackedWeights weights = packed(context, c, elements_of(c));
  for (const size_t length : {size_t{0}, size_t{1000}}) {
    Bytes bytes(length, std::byte{7});
    const Status status = serialize(weights, bytes);
    EXPECT_EQ(status.code, Code::kShape);
    EXPECT_STREQ(status.argument, "bytes");
    EXPECT_NE(std::string(status.message).find(" bytes; expected 264"), std::string::npos)
        << status.message;
    EXPECT_TRUE(bytes == Bytes(length, std::byte{7}));
  }
}

TEST(Serialize, LeavesTheWeightsUnchangedIfItFails) {
  const Bytes bytes = bytes_of_case(Case{DType::kFloat32, {100, 100}});
  Context context(5000);
  const Case c{DType::kInt32, {3, 4}};
  PackedWeights weights = packed(context, c, elements_of(c));
  const size_t in_use = context.bytes_in_use();
  const Status status = deserialize(context, bytes, &weights);
  EXPECT_EQ(status.code, Code::kOutOfMemory);
  EXPECT_NE(std::string(status.message)
                .find("deserialize: no memory for weights of 1 x 100 x 100 elements; "),
            std::string::npos);
  EXPECT_EQ(deserialize(context, {}, &weights).code, Code::kPackMismatch);
  EXPECT_EQ(context.bytes_in_use(), in_use);
  EXPECT_TRUE(weights.k() == 3 && weights.dtype() == DType::kInt32);
}

}  // namespace
}  // namespace wgemm::testing
