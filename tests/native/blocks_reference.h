// Blocks of ggml as code: what the bytes of a file stand for, by ggml-common.h and ggml-quants.c of
// llama.cpp, commit 01243c5, and random bytes for tests. Products with them, too. It shares no code
// with the library, so that tests can compare the two. It is slow.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <span>
#include <vector>

#include "base/convert.h"
#include "reference.h"
#include "wgemm.h"

namespace wgemm::testing {

// A format: where the parts of a block are, in bytes.
struct BlockFile {
  BlockFormat format;
  const char* name;
  int steps, bytes;         // of a block
  int scale_at, second_at;  // float16; the second is the scale of minima. -1: there is none
  int codes_at, upper_at;   // the low bits of codes; their higher bits, -1: there are none
  int subs_at, subs;        // bytes with scales and minima of sub-blocks, and their number
  int code_max, zero;       // of codes as they are stored, and their zero point
  int stored_bytes;         // of a block of a column in packed weights
};
inline constexpr BlockFile kBlockFiles[] = {
    {BlockFormat::kQ4_0, "Q4_0", 32, 18, 0, -1, 2, -1, -1, 0, 15, 8, 18},
    {BlockFormat::kQ4_1, "Q4_1", 32, 20, 0, 2, 4, -1, -1, 0, 15, 0, 20},
    {BlockFormat::kQ5_0, "Q5_0", 32, 22, 0, -1, 6, 2, -1, 0, 31, 16, 34},
    {BlockFormat::kQ5_1, "Q5_1", 32, 24, 0, 2, 8, 4, -1, 0, 31, 0, 36},
    {BlockFormat::kQ8_0, "Q8_0", 32, 34, 0, -1, 2, -1, -1, 0, 255, 128, 34},
    {BlockFormat::kQ2_K, "Q2_K", 256, 84, 80, 82, 16, -1, 0, 16, 3, 0, 100},
    {BlockFormat::kQ3_K, "Q3_K", 256, 110, 108, -1, 32, 0, 96, 12, 7, 4, 146},
    {BlockFormat::kQ4_K, "Q4_K", 256, 144, 0, 2, 16, -1, 4, 12, 15, 0, 148},
    {BlockFormat::kQ5_K, "Q5_K", 256, 176, 0, 2, 48, 16, 4, 12, 31, 0, 276},
    {BlockFormat::kQ6_K, "Q6_K", 256, 210, 208, -1, 0, 128, 192, 16, 63, 32, 274},
};
inline const BlockFile& file_of(BlockFormat format) {
  return *std::ranges::find(kBlockFiles, format, &BlockFile::format);
}

// The numbers of a block: W[i] = scale * subs[i] * codes[i] - second * minima[i], with the zero
// point subtracted from codes. The products are exact in float32.
struct BlockNumbers {
  static constexpr size_t kStepsMax = 256;
  float scale = 0, second = 0;
  std::array<int16_t, kStepsMax> codes{}, subs{}, minima{};

  float weight(size_t i) const {
    const float sub = scale * subs[i], product = sub * codes[i], minimum = second * minima[i];
    return product - minimum;  // rounds; -0 and 0 as in ggml, whatever the sign of `second`
  }
};

inline BlockNumbers numbers_of(const BlockFile& file, const std::byte* block) {
  const auto byte = [&](int at) { return static_cast<int>(block[at]); };
  const auto half = [&](int at) {
    return convert<float>(Float16{static_cast<uint16_t>(byte(at) | byte(at + 1) << 8)});
  };
  BlockNumbers n;
  n.scale = half(file.scale_at);
  if (file.second_at >= 0) n.second = half(file.second_at);
  const int c = file.codes_at, u = file.upper_at, s = file.subs_at;
  for (int i = 0; i < file.steps; ++i) {
    int code = 0, sub = 1, minimum = 0;
    // Two bits of 256, and one bit.
    const auto two = [&](int at) {
      return byte(at + i / 128 * 32 + i % 32) >> i % 128 / 32 * 2 & 3;
    };
    const auto one = [&](int at) { return byte(at + i % 32) >> i / 32 & 1; };
    const int j = i / 16;
    switch (file.format) {
      case BlockFormat::kQ4_0:
      case BlockFormat::kQ4_1:
        code = byte(c + i % 16) >> j * 4 & 15;
        break;
      case BlockFormat::kQ5_0:
      case BlockFormat::kQ5_1:
        code = (byte(c + i % 16) >> j * 4 & 15) + (byte(u + i / 8) >> i % 8 & 1) * 16;
        break;
      case BlockFormat::kQ8_0:
        code = (byte(c + i) + 128) % 256;
        break;
      case BlockFormat::kQ2_K:
        code = two(c);
        sub = byte(s + j) % 16;
        minimum = byte(s + j) / 16;
        break;
      case BlockFormat::kQ3_K:
        code = two(c) + one(u) * 4;
        sub =
            (byte(s + j % 8) >> j / 8 * 4 & 15) + (byte(s + 8 + j % 4) >> j / 4 * 2 & 3) * 16 - 32;
        break;
      case BlockFormat::kQ4_K:
      case BlockFormat::kQ5_K: {
        const int sub_block = i / 32, low = sub_block % 4, last = byte(s + 8 + low);
        const bool is_first = sub_block < 4;
        sub = is_first ? byte(s + low) % 64 : last % 16 + byte(s + low) / 64 * 16;
        minimum = is_first ? byte(s + 4 + low) % 64 : last / 16 + byte(s + 4 + low) / 64 * 16;
        code = byte(c + i / 64 * 32 + i % 32) >> sub_block % 2 * 4 & 15;
        if (file.format == BlockFormat::kQ5_K) code += one(u) * 16;
        break;
      }
      case BlockFormat::kQ6_K:
        code = (byte(c + i / 128 * 64 + i % 64) >> i % 128 / 64 * 4 & 15) + two(u) * 16;
        sub = static_cast<int8_t>(byte(s + j));
        break;
      case BlockFormat::kNone:
        break;
    }
    // W = scale * code + m, if there are no sub-blocks.
    if (file.second_at >= 0 && file.subs == 0) minimum = 1;
    const auto at = static_cast<size_t>(i);
    n.codes[at] = static_cast<int16_t>(code - file.zero);
    n.subs[at] = static_cast<int16_t>(sub);
    n.minima[at] = static_cast<int16_t>(minimum);
  }
  if (file.second_at >= 0 && file.subs == 0) n.second = -n.second;
  return n;
}

// Random bytes ------------------------------------------------------------------------------------

// A finite float16: often one at the end of the range, subnormal, 0, or of any size; else about
// `size`.
inline uint16_t random_half(std::mt19937& random, float size, bool corners) {
  constexpr uint16_t kCorners[] = {0, 0x8000, 1, 0x8001, 0x3ff, 0x83ff, 0x400, 0x7bff, 0xfbff};
  if (corners && random() % 8 == 0) return kCorners[random() % std::size(kCorners)];
  if (corners && random() % 8 == 0) {
    const auto bits = static_cast<uint16_t>(random());
    return (bits & 0x7c00) == 0x7c00 ? bits & 0xbfff : bits;
  }
  const float value = (static_cast<float>(random() % 2001) / 1000 - 1) * size;
  return convert<Float16>(value).bits;
}

// Fills a block by random bytes. `corners`: often, scales and codes are at the ends of their range.
inline void fill_block(std::mt19937& random, const BlockFile& file, float size, bool corners,
                       std::byte* block) {
  for (int i = 0; i < file.bytes; i += 4) {
    const auto word = static_cast<uint32_t>(random());
    std::memcpy(block + i, &word, static_cast<size_t>(std::min(4, file.bytes - i)));
  }
  if (corners) {
    constexpr uint8_t kBytes[] = {0, 0xff, 0x80, 0x7f, 0xf0, 0x0f};
    if (random() % 4 == 0) {
      const uint8_t value = kBytes[random() % std::size(kBytes)];
      std::memset(block, value, static_cast<size_t>(file.bytes));
    }
    for (int i = file.subs_at; i < file.subs_at + file.subs; ++i)
      if (random() % 8 == 0) block[i] = std::byte{kBytes[random() % std::size(kBytes)]};
  }
  for (const int at : {file.scale_at, file.second_at}) {
    const uint16_t half = random_half(random, size, corners);
    if (at >= 0) std::memcpy(block + at, &half, sizeof(half));
  }
}

// Products ----------------------------------------------------------------------------------------

// A row of A at accuracy level 4.
struct QuantizedRow {
  std::vector<float> scales;  // of each block
  std::vector<int8_t> q;

  QuantizedRow(std::span<const float> a, size_t steps) : q(a.size()) {
    for (size_t begin = 0; begin < a.size(); begin += steps) {
      const float scale = scale_of_row(a.subspan(begin, steps));
      scales.push_back(scale);
      for (size_t k = begin; k < begin + steps; ++k) {
        const float x = a[k] / scale;
        if (scale != 0 && !std::isnan(x))
          q[k] = static_cast<int8_t>(std::clamp(std::nearbyint(x), -127.0F, 127.0F));
      }
    }
  }
};

// The integer sums of a block.
struct BlockSums {
  int32_t codes, minima;
};
WGEMM_REFERENCE_LOOP inline BlockSums sums_of(const BlockNumbers& w, const int8_t* q,
                                              size_t steps) {
  const int16_t *codes = w.codes.data(), *subs = w.subs.data(), *minima = w.minima.data();
  int32_t t = 0, u = 0;  // at most 256 * 127 * 128 * 32
  for (size_t i = 0; i < steps; ++i) {
    t += subs[i] * codes[i] * q[i];
    u += minima[i] * q[i];
  }
  return {t, u};
}

// Element of a row of A and a column of weights at accuracy level 4, before bias.
inline float reference_level_4(const BlockFile& file, std::span<const BlockNumbers> column,
                               const QuantizedRow& a) {
  float acc = 0;
  const auto steps = static_cast<size_t>(file.steps);
  for (size_t b = 0; b < column.size(); ++b) {
    const BlockNumbers& w = column[b];
    const BlockSums sums = sums_of(w, a.q.data() + b * steps, steps);
    const float factor = a.scales[b] * w.scale, second = a.scales[b] * w.second;
    float part = static_cast<float>(sums.codes) * factor;
    if (file.second_at >= 0) {
      const float minimum = static_cast<float>(sums.minima) * second;
      part = part - minimum;
    }
    acc = acc + part;
  }
  return acc;
}

// The same at level 0, with ascending k.
WGEMM_REFERENCE_LOOP inline void add_block(const BlockNumbers& w, int zero, const float* a,
                                           size_t steps, ReferenceElement* sums) {
  const int16_t *codes = w.codes.data(), *subs = w.subs.data(), *minima = w.minima.data();
  const auto scale = static_cast<double>(w.scale), second = static_cast<double>(w.second);
  for (size_t i = 0; i < steps; ++i) {
    const double x = static_cast<double>(a[i]), product = scale * (subs[i] * codes[i]),
                 minimum = second * minima[i], weight = product - minimum,
                 factor = std::fabs(scale * subs[i]), offset = std::fabs(minimum);
    const float step = a[i] * static_cast<float>(weight);
    sums->value = sums->value + step;
    sums->exact += x * weight;
    // The code as it is stored, and the zero point.
    sums->magnitude += std::fabs(x) * (factor * (codes[i] + 2 * zero) + offset);
    sums->underflow += 1 + std::fabs(x) + factor + offset;
  }
}
inline ReferenceElement reference_level_0(const BlockFile& file,
                                          std::span<const BlockNumbers> column, const float* a) {
  ReferenceElement sums;
  const auto steps = static_cast<size_t>(file.steps);
  for (size_t b = 0; b < column.size(); ++b)
    add_block(column[b], file.zero, a + b * steps, steps, &sums);
  return sums;
}

}  // namespace wgemm::testing
