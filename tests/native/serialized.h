// Serialized weights, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "pack/serialize.h"
#include "wgemm.h"

namespace wgemm::testing {

using Bytes = std::vector<std::byte>;

inline Bytes serialized(const PackedWeights& weights) {
  Bytes bytes(serialized_bytes(weights));
  const Status status = serialize(weights, bytes);
  EXPECT_TRUE(status.ok()) << status.message;
  return bytes;
}

template <typename T>
void put(Bytes* bytes, size_t at, T value) {
  std::memcpy(bytes->data() + at, &value, sizeof(value));
}

// Where the bytes of weights of MatMulNBits have their numbers, and their first panel.
inline constexpr size_t kVersionAt = 12, kOpAt = 24, kTypeAt = 32, kWidthAt = 40, kBitsAt = 42,
                        kKindAt = 44, kSizeAt = 46, kRankAt = 48, kKAt = 56, kNAt = 64,
                        kPanelsAt = 72;

// Expects an error with this text, and no memory left allocated. The error must name `argument`; if
// that is null, it may name any.
inline void expect_refused(const Bytes& bytes, const std::string& sentence,
                           const char* argument = "bytes") {
  const Bytes own(bytes);  // an allocation of exactly their size, for the address sanitizer
  Context context;
  PackedWeights weights;
  const Status status = deserialize(context, own, &weights);
  EXPECT_EQ(status.code, Code::kPackMismatch) << status.message;
  EXPECT_STREQ(status.op, "deserialize");
  if (argument != nullptr) {
    EXPECT_STREQ(status.argument, argument);
  }
  EXPECT_NE(std::string(status.message).find(sentence), std::string::npos) << status.message;
  EXPECT_TRUE(weights.empty());
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

// The same for bytes that get the right checksum first, if they are long enough to have one.
inline void expect_refused_if_sealed(Bytes bytes, const std::string& sentence) {
  if (bytes.size() >= kPanelsAt && bytes.size() % 8 == 0) seal(bytes);
  expect_refused(bytes, sentence, nullptr);
}

// Changes each bit of panels. A change must be refused if it lies in padding, or else be what the
// weights then have. Returns how many bits may change.
inline int64_t count_bits(const Bytes& good) {
  Context context;
  int64_t accepted = 0;
  for (size_t at = kPanelsAt; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bytes(good);
      bytes[at] ^= static_cast<std::byte>(1 << bit);
      seal(bytes);
      PackedWeights weights;
      const Status status = deserialize(context, bytes, &weights);
      accepted += status.ok();
      if (status.ok()) {
        EXPECT_TRUE(serialized(weights) == bytes);
      } else {
        EXPECT_STREQ(status.message, "deserialize: bytes has panels whose padding is not zeros");
      }
    }
  }
  return accepted;
}

}  // namespace wgemm::testing
