// Weights of MatMulNBits: unsigned codes of 2, 4 or 8 bits. Each column has a scale, and maybe a
// zero point, for each block of `block_size` steps of K. W = (code - zero point) * scale. In files
// named nbits, "block" means such a block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wgemm.h"

namespace wgemm {

// How weights are stored, and the layout of their micro-panels: eight columns each. A micro-panel
// holds for each block of K
//   scales       one per column
//   zero points  one per column: as scales; or in bytes, two to a byte if codes have 2 or 4 bits,
//                with the columns 0 to 3 in the lower halves
//   codes        in groups of 32 bytes, a 32-bit word per column. A word has 8 nibbles, of steps of
//                K in sequence: of the first four steps in the lower halves of its bytes, of the
//                others in the upper halves. So dot products find four steps in four bytes.
// A nibble is a code of 4 bits, or two of 2 bits: the code of a step, and in the upper half the
// code of 8 steps later. Codes of 8 bits have a group of their lower halves, and then one of their
// upper halves. Codes beyond K, and columns beyond N, are 0.
struct NBits {
  enum class ZeroPoints : uint8_t {
    kAbsent,  // 2^(bits - 1)
    kCodes,   // unsigned, with as many bits as codes
    kTyped,   // with the type of scales
  };
  static constexpr int64_t kColumns = 8;
  static constexpr int64_t kGroupBytes = 32, kGroupSteps = 8;

  // KC is at most kStepsMax.
  static constexpr int kBlockSizeMin = 16, kBlockSizeMax = 256, kStepsMax = 4096;

  int bits = 0;  // 0: other weights
  int block_size = 0;
  DType dtype = DType::kFloat32;  // of scales
  ZeroPoints zero_points = ZeroPoints::kAbsent;

  bool operator==(const NBits&) const = default;
  explicit operator bool() const { return bits != 0; }

  int absent_zero_point() const { return 1 << (bits - 1); }
  int64_t blocks(int64_t k) const { return (k + block_size - 1) / block_size; }
  int64_t scale_bytes() const { return kColumns * static_cast<int64_t>(dtype_bytes(dtype)); }
  int64_t zero_point_bytes() const {
    if (zero_points == ZeroPoints::kTyped) return scale_bytes();
    return zero_points == ZeroPoints::kAbsent ? 0 : kColumns / (bits == 8 ? 1 : 2);
  }
  // Where the codes of a block of a micro-panel begin, and the size of the block.
  int64_t codes_at() const { return scale_bytes() + zero_point_bytes(); }
  int64_t block_bytes() const { return codes_at() + int64_t{bits} * block_size; }
  int64_t panel_bytes(int64_t k) const { return blocks(k) * block_bytes(); }
  // The bytes of all micro-panels, with padding to a multiple of 8.
  int64_t packed_bytes(int64_t n, int64_t k) const {
    return ((n + kColumns - 1) / kColumns * panel_bytes(k) + 7) / 8 * 8;
  }

  // Code i of a column of a block, and the zero point of the kind kCodes.
  uint32_t code(const std::byte* block, int64_t i, int64_t column) const {
    const int64_t group = bits == 2 ? i / kGroupSteps / 2 : i / kGroupSteps * (bits / 4),
                  step = i % kGroupSteps;
    const std::byte* const byte = block + codes_at() + group * kGroupBytes + column * 4 + step % 4;
    const auto nibble = [&](const std::byte* at) {
      return static_cast<uint32_t>(*at) >> (step / 4 * 4) & 0xf;
    };
    if (bits == 8) return nibble(byte) | nibble(byte + kGroupBytes) << 4;
    return bits == 4 ? nibble(byte) : nibble(byte) >> (i / kGroupSteps % 2 * 2) & 3;
  }
  uint32_t zero_point(const std::byte* block, int64_t column) const {
    const auto byte =
        static_cast<uint32_t>(block[scale_bytes() + (bits == 8 ? column : column % 4)]);
    return bits == 8 ? byte : byte >> (column / 4 * 4) & 0xf;
  }

  // A row of A that a call quantizes: for each block its scale, the sum of its int8 elements, and
  // these elements.
  static constexpr int64_t kRowHeader = sizeof(float) + sizeof(int32_t);
  int64_t quantized_row_bytes(int64_t k) const { return blocks(k) * (kRowHeader + block_size); }
};

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
