// Packed weights: one storage layout a type, for every kernel and every build. Elements stay in
// their own type (8-bit ones as int8, uint8 minus 128), in panels padded with zeros. A kernel whose
// panels are the same reads them in place; for the others they are brought into the kernel's panels
// block by block.
//
// The block of memory: a header with the sizes of the batch, of 8 bits the least and the largest
// element, and of float16 whether all are finite; for 8 bits the sums over k of each column, unless
// K is 0; and the panels, matrix after matrix; each part at a multiple of 64 bytes.
#pragma once

#include "problem/panel.h"
#include "wgemm.h"

namespace wgemm {

inline constexpr PanelLayout kI8StorageLayout = panel_of<int8_t>(8, 2);

constexpr PanelLayout storage_layout(DType type) {
  switch (type) {
    case DType::kFloat32:
      return panel_of<float>(8, 1, 8);  // as XNNPACK's kernels want it
    case DType::kFloat64:
      return panel_of<double>(8);
    case DType::kFloat16:
    case DType::kBFloat16:
      return panel_of<uint16_t>(8);
    case DType::kInt32:
    case DType::kUInt32:
      return panel_of<int32_t>(8);
    case DType::kInt64:
    case DType::kUInt64:
      return panel_of<int64_t>(4);
    case DType::kInt8:
    case DType::kUInt8:
      break;
  }
  return kI8StorageLayout;
}

// What is taken off an 8-bit element to make it an int8, and so off its zero point.
constexpr int int8_offset(DType type) { return type == DType::kUInt8 ? 128 : 0; }

// Packed weights as the stages behind see them: a matrix of them, and those that follow.
struct PrepackedB {
  const std::byte* panels = nullptr;  // null: there are none
  DType dtype = DType::kFloat32;
  int64_t k = 0;            // depth of the panels
  size_t matrix_bytes = 0;  // from matrix to matrix
  // Of 8 bits: the sums over k of the int8 elements, one a column, none where k is 0; and the least
  // and the largest of them. What kernels that keep A's zero point need.
  const int32_t* column_sums = nullptr;
  int low = 0, high = 0;
  bool finite = false;  // of float16: no element is infinite or NaN

  PanelLayout layout() const { return storage_layout(dtype); }
  size_t panel_stride() const { return panel_bytes(layout(), k); }  // bytes

  // The same, `matrices` further.
  PrepackedB at(int64_t matrices) const {
    PrepackedB other = *this;
    other.panels += static_cast<size_t>(matrices) * matrix_bytes;
    return other;
  }

  // The same from k step `row` and column `col` on, as block() has them.
  PrepackedB from(int64_t row, int64_t col) const {
    PrepackedB other = *this;
    other.panels = block(row, col) - layout().header * layout().element_bytes;
    other.column_sums += col;
    return other;
  }

  // The panels from column `col` on, behind their header, from k step `row` on; both at multiples
  // of the layout's width and kr.
  const std::byte* block(int64_t row, int64_t col) const {
    const PanelLayout l = layout();
    return panels + static_cast<size_t>(col / l.width) * panel_stride() +
           static_cast<size_t>((l.header + row * l.width) * l.element_bytes);
  }
};

// The view of packed weights that are not empty. pack/weights.cc knows their block.
PrepackedB prepacked_of(const PackedWeights& weights);

}  // namespace wgemm
