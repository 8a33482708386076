// Weights of MatMulNBits: unsigned codes of 2, 4 or 8 bits. Each column has a scale, and maybe a
// zero point, for each block of `block_size` steps of K. W = (code - zero point) * scale. In files
// named nbits, "block" means such a block.
//
// Weights in the block formats of ggml have codes of 2 to 6 bits, or 8. A block may consist of
// sub-blocks, each with an int8 scale of its own, in units of the scale of the block. Formats with
// minima have a second scale per block, and a uint8 minimum per sub-block:
//   W = scale * sub-scale * (code - zero point), or
//   W = scale * sub-scale * code - second scale * minimum
// Without sub-blocks, sub-scale and minimum are 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "wgemm.h"

namespace wgemm {

// How weights are stored, and the layout of their micro-panels: eight columns each. A micro-panel
// holds for each block of K
//   scales       one per column
//   zero points  one per column: as scales; or in bytes, two to a byte if codes have 2 or 4 bits,
//                with the columns 0 to 3 in the lower halves. Or the second scales
//   sub-scales   for each sub-block, one byte per column
//   minima       for each pair of sub-blocks, two bytes per column
//   codes        in groups of 32 bytes, a 32-bit word per column. A word has 8 nibbles, of steps of
//                K in sequence: of the first four steps in the lower halves of its bytes, of the
//                others in the upper halves. So dot products find four steps in four bytes.
// A nibble is a code of 3 or 4 bits, or two of 2 bits: the code of a step, and in the upper half
// the code of 8 steps later. Codes of 8 bits have a group of their lower halves, and then one of
// their upper halves. Codes of 5 and 6 bits are bytes: a group of four steps, and then one of the
// next four. Codes beyond K, and columns beyond N, are 0.
struct NBits {
  enum class ZeroPoints : uint8_t {
    kAbsent,  // 2^(bits - 1)
    kCodes,   // unsigned, with as many bits as codes
    kTyped,   // with the type of scales
    kMinima,  // there are second scales and minima instead
  };
  static constexpr int64_t kColumns = 8;
  static constexpr int64_t kGroupBytes = 32, kGroupSteps = 8;

  // KC is at most kStepsMax.
  static constexpr int kBlockSizeMin = 16, kBlockSizeMax = 256, kStepsMax = 4096;

  int bits = 0;  // 0: other weights
  int block_size = 0;
  DType dtype = DType::kFloat32;  // of scales
  ZeroPoints zero_points = ZeroPoints::kAbsent;
  int sub_size = 0;  // steps of a sub-block, 16 or 32. 0: there are none
  BlockFormat format = BlockFormat::kNone;

  bool operator==(const NBits&) const = default;
  explicit operator bool() const { return bits != 0; }

  int absent_zero_point() const { return 1 << (bits - 1); }
  bool has_minima() const { return zero_points == ZeroPoints::kMinima; }
  bool has_bytes() const { return bits == 5 || bits == 6; }  // a byte per code
  // Whether kernels need loops for blocks with sub-blocks, minima or bytes.
  bool needs_blocks_loop() const { return sub_size != 0 || has_minima() || has_bytes(); }
  int64_t sub_blocks() const { return sub_size == 0 ? 0 : block_size / sub_size; }
  // Steps that share a scale.
  int scaled_steps() const { return sub_size == 0 ? block_size : sub_size; }
  int64_t stored_bits() const { return has_bytes() ? 8 : bits == 3 ? 4 : bits; }  // per code
  int64_t blocks(int64_t k) const { return (k + block_size - 1) / block_size; }
  int64_t scale_bytes() const { return kColumns * static_cast<int64_t>(dtype_bytes(dtype)); }
  int64_t zero_point_bytes() const {
    if (zero_points == ZeroPoints::kTyped || has_minima()) return scale_bytes();
    return zero_points == ZeroPoints::kAbsent ? 0 : kColumns / (bits == 8 ? 1 : 2);
  }
  // Where the parts of a block of a micro-panel begin, and the size of the block.
  int64_t sub_scales_at() const { return scale_bytes() + zero_point_bytes(); }
  int64_t minima_at() const { return sub_scales_at() + kColumns * sub_blocks(); }
  int64_t codes_at() const { return minima_at() + (has_minima() ? kColumns * sub_blocks() : 0); }
  int64_t block_bytes() const { return codes_at() + stored_bits() * block_size; }
  int64_t panel_bytes(int64_t k) const { return blocks(k) * block_bytes(); }
  // The bytes of all micro-panels, with padding to a multiple of 8.
  int64_t packed_bytes(int64_t n, int64_t k) const {
    return ((n + kColumns - 1) / kColumns * panel_bytes(k) + 7) / 8 * 8;
  }

  // Code i of a column of a block, and the zero point of the kind kCodes.
  uint32_t code(const std::byte* block, int64_t i, int64_t column) const {
    const int64_t group = i / kGroupSteps, step = i % kGroupSteps;
    const std::byte* const byte = block + codes_at() + column * 4 + step % 4;
    const auto nibble = [&](int64_t of_group) {
      return static_cast<uint32_t>(byte[of_group * kGroupBytes]) >> (step / 4 * 4) & 0xf;
    };
    if (has_bytes()) return static_cast<uint32_t>(byte[(2 * group + step / 4) * kGroupBytes]);
    if (bits == 8) return nibble(2 * group) | nibble(2 * group + 1) << 4;
    return bits == 2 ? nibble(group / 2) >> (group % 2 * 2) & 3 : nibble(group);
  }
  uint32_t zero_point(const std::byte* block, int64_t column) const {
    const auto byte =
        static_cast<uint32_t>(block[scale_bytes() + (bits == 8 ? column : column % 4)]);
    return bits == 8 ? byte : byte >> (column / 4 * 4) & 0xf;
  }

  // A row of A that a call quantizes: for each block a header, and then its int8 elements. The
  // header has the scale of the block and the sum of its elements, in kRowHeader bytes, and the
  // int16 sums of its sub-blocks.
  static constexpr int64_t kRowHeader = sizeof(float) + sizeof(int32_t);
  int64_t row_header() const {
    return kRowHeader + sub_blocks() * static_cast<int64_t>(sizeof(int16_t));
  }
  int64_t quantized_row_bytes(int64_t k) const { return blocks(k) * (row_header() + block_size); }
};

// The block formats, as ggml-common.h and ggml-quants.c of llama.cpp define them in commit 01243c5.
struct BlockFormatRow {
  const char* name;
  NBits nbits;
  int64_t file_bytes;  // per block, in a file
};
inline constexpr BlockFormatRow kBlockFormats[] = {
    {"none", {}, 0},
#define WGEMM_BLOCKS(format, bits, size, zero_points, sub_size, bytes)                           \
  {&#format[1],                                                                                  \
   {bits, size, DType::kFloat16, NBits::ZeroPoints::zero_points, sub_size, BlockFormat::format}, \
   bytes}
    WGEMM_BLOCKS(kQ4_0, 4, 32, kAbsent, 0, 18),
    WGEMM_BLOCKS(kQ4_1, 4, 32, kMinima, 0, 20),
    WGEMM_BLOCKS(kQ5_0, 5, 32, kAbsent, 0, 22),
    WGEMM_BLOCKS(kQ5_1, 5, 32, kMinima, 0, 24),
    WGEMM_BLOCKS(kQ8_0, 8, 32, kAbsent, 0, 34),
    WGEMM_BLOCKS(kQ2_K, 2, 256, kMinima, 16, 84),
    WGEMM_BLOCKS(kQ3_K, 3, 256, kAbsent, 16, 110),
    WGEMM_BLOCKS(kQ4_K, 4, 256, kMinima, 32, 144),
    WGEMM_BLOCKS(kQ5_K, 5, 256, kMinima, 32, 176),
    WGEMM_BLOCKS(kQ6_K, 6, 256, kAbsent, 16, 210),
#undef WGEMM_BLOCKS
};
inline constexpr int kBlockFormatCount = std::size(kBlockFormats);
// An unknown number has the row of kNone.
constexpr const BlockFormatRow& row_of(BlockFormat format) {
  const auto number = static_cast<int>(format);
  return kBlockFormats[number < kBlockFormatCount ? number : 0];
}

// Weights as ONNX stores them: for each column its codes without gaps, the first in the lowest
// bits. They point into the caller's tensors. Null codes: no weights.
struct NBitsSource {
  NBits format;
  const std::byte *codes = nullptr, *scales = nullptr, *zero_points = nullptr;
  int64_t k = 0;             // of the tensors
  int64_t row = 0, col = 0;  // where B begins, in K and N

  // The weights from (at_row, at_col) on. at_row must be the first of a block.
  NBitsSource from(int64_t at_row, int64_t at_col) const {
    NBitsSource other = *this;
    other.row += at_row;
    other.col += at_col;
    return other;
  }
  int64_t code_row_bytes() const { return format.blocks(k) * format.block_size * format.bits / 8; }
  int64_t zero_point_row_bytes() const { return (format.blocks(k) * format.bits + 7) / 8; }
};

}  // namespace wgemm
