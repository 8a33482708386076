// Brings a block of an operand into panels in a kernel's layout, widening its storage type to the
// compute type.
#pragma once

#include "kernels/kernel.h"
#include "problem/operand.h"

namespace wgemm {

// What is to be packed: `lanes` are rows of A or columns of B, `depth` is along k. Strides in
// elements of the storage type.
struct PackSource {
  const std::byte* data;
  DType dtype;
  int64_t lanes, depth;
  int64_t lane_stride, depth_stride;
  int zero_point =
      0;  // taken off 8-bit elements, as they are widened; panels are padded with 0 all the same
};

// Bytes that packing writes: whole panels.
constexpr size_t packed_bytes(const PanelLayout& layout, int64_t lanes, int64_t depth) {
  return static_cast<size_t>((lanes + layout.width - 1) / layout.width) *
         panel_bytes(layout, depth);
}

// Fills `panels`, aligned to 16 bytes, with packed_bytes(); all of it is written.
void pack(const PackSource& source, const PanelLayout& layout, void* panels);

}  // namespace wgemm
