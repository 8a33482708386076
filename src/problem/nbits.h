// Weights of MatMulNBits: unsigned codes of 2, 4 or 8 bits, with a scale, and maybe a zero point,
// for each column and each block of `block_size` steps of K. W = (code - zero point) * scale. In
// files named nbits, "block" means such a block.
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
//   codes        groups of 32 bytes, a 32-bit word per column. Of the 32 / bits codes of a word,
//                code i is in byte i % 4, from bit i / 4 * bits of that byte on. So four codes in
//                sequence are in the same bits of the four bytes, as dot products take them.
// Codes beyond K, and columns beyond N, are 0.
struct NBits {
  enum class ZeroPoints : uint8_t {
    kAbsent,  // 2^(bits - 1)
    kCodes,   // unsigned, with as many bits as codes
    kTyped,   // with the type of scales
  };
  static constexpr int64_t kColumns = 8;
  static constexpr size_t kGroupBytes = 32;

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
  // Of a block of a micro-panel.
  int64_t block_bytes() const {
    return scale_bytes() + zero_point_bytes() + int64_t{bits} * block_size;
  }
  int64_t panel_bytes(int64_t k) const { return blocks(k) * block_bytes(); }
  // Of all micro-panels, with padding to a multiple of 8 bytes.
  int64_t packed_bytes(int64_t n, int64_t k) const {
    return ((n + kColumns - 1) / kColumns * panel_bytes(k) + 7) / 8 * 8;
  }

  // A row of A that a call quantizes: for each block its scale, the sum of its int8 elements, and
  // these elements.
  static constexpr int64_t kRowHeader = sizeof(float) + sizeof(int32_t);
  int64_t quantized_row_bytes(int64_t k) const { return blocks(k) * (kRowHeader + block_size); }
};

// Weights as ONNX stores them: for each column its codes without gaps, the first in the lowest bits.
// They point into the caller's tensors. Null codes: no weights.
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
