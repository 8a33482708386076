// Packed weights: one storage layout a type, for every kernel and every build. Panels are [N / 8][K / 2][8][2] of int8 (uint8 minus 128),
// padded with zeros: kernels for few rows read them in place, for the others they are widened block by block.
//
// The block of memory: a Header, the sums over k of each column, and the panels, each part at a multiple of 64 bytes.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

inline constexpr PanelLayout kStorageLayout = panel_of<int8_t>(8, 2);

// What is taken off an 8-bit element to make it an int8, and so off its zero point.
constexpr int int8_offset(DType type) { return type == DType::kUInt8 ? 128 : 0; }

// Packed weights as the stages behind see them.
struct StoredOperand {
  const std::byte* panels = nullptr;  // null: there are none
  int64_t k = 0;                      // depth of the panels

  // Bytes from panel to panel.
  size_t stride() const { return panel_bytes(kStorageLayout, k); }

  // The panels from column `col` on, from k step `row` on; both at multiples of the layout's width and kr.
  const std::byte* block(int64_t row, int64_t col) const {
    return panels + static_cast<size_t>(col / kStorageLayout.width) * stride() + row * kStorageLayout.width;
  }
};

// The parts of weights that are not empty.
struct WeightsAccess {
  static StoredOperand operand(const PackedWeights& weights);
  // The sums over k of the int8 elements, one a column. Not needed by kernels that take A's zero point off A; those that multiply 8-bit
  // elements of A as they are cannot.
  static const int32_t* column_sums(const PackedWeights& weights);
  static PackedWeights own(Context& context, const void* block);
};

}  // namespace wgemm
