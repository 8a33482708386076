// Packed weights as kernels see them. Each type has one storage layout, for every kernel and every
// build. A change of a layout changes the format of serialized weights: see pack/serialize.h.
// Elements keep their type, except that uint8 becomes int8 (minus 128). Panels are padded with
// zeros. A kernel with the same layout reads the panels in place; for other kernels repack()
// converts them block by block.
//
// PackedWeights owns one block of memory. It has these sections, each aligned to 64 bytes:
//   header       op, type, sizes, batch axes; range of 8-bit elements; whether all elements are
//                finite, for float16; bits and blocks, for MatMulNBits
//
//   column sums  sums over k, one int32 per column, matrix after matrix; only for 8-bit types, and
//                if K > 0
//
//   panels       matrix after matrix
#pragma once

#include "problem/nbits.h"
#include "problem/panel.h"
#include "wgemm.h"

namespace wgemm {

inline constexpr PanelLayout kI8StorageLayout = panel_of<int8_t>(8, 2);

constexpr PanelLayout storage_layout(DType type) {
  switch (type) {
    case DType::kFloat32:
      return panel_of<float>(8, 1, 8);  // the layout of XNNPACK's kernels
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

// Subtracted from 8-bit elements and their zero point to make them int8.
constexpr int int8_offset(DType type) { return type == DType::kUInt8 ? 128 : 0; }

// The nominal layout of weights of MatMulNBits. problem/nbits.h has the layout of their
// micro-panels.
inline constexpr PanelLayout kNBitsLayout = panel_of<uint8_t>(NBits::kColumns);

// A view of packed weights from one matrix on. The caller's PackedWeights owns the memory.
struct PrepackedB {
  const std::byte* panels = nullptr;  // null: no packed weights
  DType dtype = DType::kFloat32;      // for MatMulNBits: of the scales
  int64_t k = 0;                      // depth of the panels, in elements
  size_t matrix_bytes = 0;            // from matrix to matrix
  // 8-bit types only: the sums over k of the int8 elements, one per column, and the smallest and
  // largest element. Kernels that do not subtract A's zero point need them.
  const int32_t* column_sums = nullptr;  // null or unused if k is 0
  int64_t n = 0;                         // columns, and sums, of a matrix
  int low = 0, high = 0;
  bool finite = false;  // float16 only: no element is infinite or NaN
  NBits nbits{};

  [[gnu::noinline]] PanelLayout layout() const {
    return nbits ? kNBitsLayout : storage_layout(dtype);
  }
  [[gnu::noinline]] size_t panel_stride() const {  // bytes
    return nbits ? static_cast<size_t>(nbits.panel_bytes(k)) : panel_bytes(layout(), k);
  }

  // The weights from `matrices` matrices later on.
  PrepackedB at(int64_t matrices) const {
    PrepackedB other = *this;
    other.panels += static_cast<size_t>(matrices) * matrix_bytes;
    other.column_sums += matrices * n;
    return other;
  }

  // The weights from (row, col) on, which must be as block() demands.
  PrepackedB from(int64_t row, int64_t col) const {
    PrepackedB other = *this;
    other.panels = block(row, col) - layout().header * layout().element_bytes;
    other.column_sums += col;
    return other;
  }

  // Where the panels have the element at (row, col). `row` must be a multiple of the layout's kr,
  // or of the block size of MatMulNBits. `col` must be a multiple of the layout's width.
  [[gnu::noinline]] const std::byte* block(int64_t row, int64_t col) const {
    const PanelLayout l = layout();
    const int64_t at = nbits ? row / nbits.block_size * nbits.block_bytes()
                             : (l.header + row * l.width) * l.element_bytes;
    return panels + static_cast<size_t>(col / l.width) * panel_stride() + static_cast<size_t>(at);
  }
};

// A view of packed weights, which must not be empty. Defined in pack/weights.cc.
PrepackedB prepacked_of(const PackedWeights& weights);

}  // namespace wgemm
