#include "pack/blocks.h"

#include <cstring>
#include <iterator>

#include "base/error.h"

namespace wgemm {
namespace {

// Fields of a few bits: `at` is their first byte. Fields 0 to width - 1 are the lowest bits of as
// many bytes, the next fields are the next bits of the same bytes. If the bytes are full, the
// fields go on in the next bytes. Sizes are powers of two.
struct Fields {
  uint8_t at = 0, log_width = 0;
  int8_t log_bits = -1;  // -1: there are none

  bool exist() const { return log_bits >= 0; }
  int64_t byte(int64_t i) const {
    return at + (i & ((1 << log_width) - 1)) + (i >> (log_width + 3 - log_bits) << log_width);
  }
  int64_t shift(int64_t i) const { return (i >> log_width & (7 >> log_bits)) << log_bits; }
  uint32_t mask() const { return (1U << (1 << log_bits)) - 1; }

  uint32_t one(const std::byte* block, int64_t i) const {
    return static_cast<uint32_t>(block[byte(i)]) >> shift(i) & mask();
  }
  // Eight fields from i on, a multiple of 8, as bytes. With width 1, fields have one bit.
  uint64_t eight(const std::byte* block, int64_t i) const {
    constexpr uint64_t kOnes = 0x0101010101010101;
    const std::byte* const from = block + byte(i);
    if (log_width == 0) {
      // A bit stays in each byte. The sum carries it to the highest bit.
      const uint64_t bits = static_cast<uint64_t>(*from) * kOnes & 0x8040201008040201;
      return (bits + 0x7f * kOnes) >> 7 & kOnes;
    }
    uint64_t bytes;
    std::memcpy(&bytes, from, sizeof(bytes));
    return bytes >> shift(i) & mask() * kOnes;
  }
};

// Where a block of a file has its parts, in bytes. The bits of `high` lie above the bits of `low`.
// For formats with sub-blocks of 32 steps, pack_subs() has the form of scales and minima.
struct FileLayout {
  uint8_t scale_at, second_at;
  Fields low, high, subs, high_subs;
};
constexpr FileLayout kFileLayouts[] = {
    {},
    {0, 0, {2, 4, 2}, {}, {}, {}},                               // Q4_0
    {0, 2, {4, 4, 2}, {}, {}, {}},                               // Q4_1
    {0, 0, {6, 4, 2}, {2, 0, 0}, {}, {}},                        // Q5_0
    {0, 2, {8, 4, 2}, {4, 0, 0}, {}, {}},                        // Q5_1
    {0, 0, {2, 5, 3}, {}, {}, {}},                               // Q8_0
    {80, 82, {16, 5, 1}, {}, {0, 4, 2}, {}},                     // Q2_K
    {108, 108, {32, 5, 1}, {0, 5, 0}, {96, 3, 2}, {104, 2, 1}},  // Q3_K
    {0, 2, {16, 5, 2}, {}, {}, {}},                              // Q4_K
    {0, 2, {48, 5, 2}, {16, 5, 0}, {}, {}},                      // Q5_K
    {208, 208, {0, 6, 2}, {128, 5, 1}, {192, 4, 3}, {}},         // Q6_K
};
static_assert(std::size(kFileLayouts) == kBlockFormatCount);

// Files of Q3_K store the scale of a sub-block plus this number.
constexpr uint32_t kSubOffset = 32;

uint32_t load_half(const std::byte* from) {
  uint16_t half;
  std::memcpy(&half, from, sizeof(half));
  return half;
}
void store(uint32_t half, std::byte* to) {
  const auto bits = static_cast<uint16_t>(half);
  std::memcpy(to, &bits, sizeof(bits));
}

// Whether a float16 is finite.
bool is_finite(uint32_t half) { return (half & 0x7c00) != 0x7c00; }

// Packs the scales and minima of the sub-blocks.
void pack_subs(const FileLayout& l, const NBits& f, const std::byte* from, int64_t lane,
               std::byte* to) {
  std::byte *const scales = to + f.sub_scales_at() + lane, *const minima =
                                                               to + f.minima_at() + 2 * lane;
  for (int64_t j = 0; j < f.sub_blocks(); ++j) {
    uint32_t scale, minimum = 0;
    if (!l.subs.exist()) {
      // The low 6 bits of the first 8 of 12 bytes are the first 4 scales and minima. The others
      // have 4 bits in the last 4 bytes, and 2 bits on top of the first 8.
      const std::byte* const at = from + 4 + j % 4;
      const auto a = static_cast<uint32_t>(at[0]), b = static_cast<uint32_t>(at[4]),
                 c = static_cast<uint32_t>(at[8]);
      scale = j < 4 ? a & 63 : (c & 15) | a >> 6 << 4;
      minimum = j < 4 ? b & 63 : c >> 4 | b >> 6 << 4;
    } else {
      scale = l.subs.one(from, j);
      if (l.high_subs.exist()) scale = (scale | l.high_subs.one(from, j) << 4) - kSubOffset;
      if (f.has_minima()) minimum = l.subs.one(from, j + f.sub_blocks());
    }
    scales[NBits::kColumns * j] = static_cast<std::byte>(scale);
    if (f.has_minima())
      minima[2 * NBits::kColumns * (j / 2) + j % 2] = static_cast<std::byte>(minimum);
  }
}

// Packs one block of one column.
void pack_block(const FileLayout& l, const NBits& f, const std::byte* from, int64_t lane,
                std::byte* to) {
  store(load_half(from + l.scale_at), to + 2 * lane);
  if (f.has_minima()) {
    // Without sub-blocks, files have a number that is added.
    const uint32_t second = load_half(from + l.second_at) ^ (f.sub_size == 0 ? 0x8000 : 0);
    store(second, to + f.scale_bytes() + 2 * lane);
  }
  pack_subs(l, f, from, lane, to);
  std::byte* word = to + f.codes_at() + 4 * lane;
  const auto put = [&](uint32_t codes) {
    std::memcpy(word, &codes, sizeof(codes));
    word += NBits::kGroupBytes;
  };
  uint32_t first_nibbles = 0;
  for (int64_t i = 0; i < f.block_size; i += NBits::kGroupSteps) {
    uint64_t codes = l.low.eight(from, i);
    if (l.high.exist()) codes |= l.high.eight(from, i) << (1 << l.low.log_bits);
    const auto first = static_cast<uint32_t>(codes), second = static_cast<uint32_t>(codes >> 32);
    if (f.has_bytes()) {
      put(first);
      put(second);
    } else if (f.bits == 8) {
      constexpr uint32_t kLow = 0x0f0f0f0f, kHigh = 0xf0f0f0f0;
      put((first & kLow) | (second & kLow) << 4);
      // Files have signed codes.
      put(((first & kHigh) >> 4 | (second & kHigh)) ^ 0x88888888);
    } else if (const uint32_t nibbles = first | second << 4; f.bits != 2) {
      put(nibbles);
    } else if (i % (2 * NBits::kGroupSteps) == 0) {
      first_nibbles = nibbles;
    } else {
      put(first_nibbles | nibbles << 2);
    }
  }
}

}  // namespace

Status pack_blocks(const PrepackedB& weights, int64_t first, std::span<const std::byte> bytes,
                   std::byte* panels) {
  const NBits& f = weights.nbits;
  const FileLayout& l = kFileLayouts[static_cast<int>(f.format)];
  const int64_t block_bytes = row_of(f.format).file_bytes, blocks = f.blocks(weights.k);
  int64_t index = 0;
  for (const std::byte *from = bytes.data(), *const end = from + bytes.size(); from != end;
       from += block_bytes, ++index) {
    if (is_finite(load_half(from + l.scale_at)) && is_finite(load_half(from + l.second_at)))
      continue;
    return error(Code::kArgument, "pack", "bytes",
                 {"bytes has a scale that is infinite or NaN, in row % and block %",
                  first + index / blocks, index % blocks});
  }
  const std::byte* from = bytes.data();
  const int64_t count = index;  // of blocks
  for (int64_t i = 0; i < count; ++i, from += block_bytes) {
    const int64_t col = first + i / blocks, block = i % blocks;
    pack_block(l, f, from, col % NBits::kColumns,
               panels + col / NBits::kColumns * f.panel_bytes(weights.k) + block * f.block_bytes());
  }
  return {};
}

const char* fault_of_blocks(const std::byte* panels, const NBits& f, int64_t k, int64_t n) {
  const bool is_signed = f.format == BlockFormat::kQ3_K;
  const uint32_t sub_mask = f.bits == 6   ? 255
                            : f.bits == 2 ? 15
                                          : 63,
                 code_mask = f.has_bytes() ? 0x01010101U * ((1U << f.bits) - 1)
                             : f.bits == 3 ? 0x77777777
                                           : 0xffffffff;
  for (int64_t col = 0; col < n; col += NBits::kColumns) {
    for (int64_t block = 0; block < f.blocks(k); ++block, panels += f.block_bytes()) {
      uint32_t padding = 0;  // bits that must be zeros
      for (int64_t lane = 0; lane < NBits::kColumns; ++lane) {
        const uint32_t all = col + lane < n ? 0 : 0xffffffff;
        for (int64_t at = 2 * lane; at < f.sub_scales_at(); at += f.scale_bytes()) {
          const uint32_t half = load_half(panels + at);
          padding |= half & all;
          if (!is_finite(half)) return "has a scale that is infinite or NaN";
        }
        for (int64_t j = 0; j < f.sub_blocks(); ++j) {
          const auto scale =
              static_cast<uint32_t>(panels[f.sub_scales_at() + NBits::kColumns * j + lane]);
          padding |= (scale & all) | ((is_signed ? (scale + kSubOffset) & 255 : scale) & ~sub_mask);
          if (!f.has_minima()) continue;
          const auto minimum = static_cast<uint32_t>(
              panels[f.minima_at() + 2 * (NBits::kColumns * (j / 2) + lane) + j % 2]);
          padding |= minimum & (all | ~sub_mask);
        }
        for (int64_t at = f.codes_at() + 4 * lane; at < f.block_bytes(); at += NBits::kGroupBytes) {
          uint32_t word;
          std::memcpy(&word, panels + at, sizeof(word));
          padding |= word & (all | ~code_mask);
        }
      }
      if (padding != 0) return "has panels whose padding is not zeros";
    }
  }
  return nullptr;
}

}  // namespace wgemm
