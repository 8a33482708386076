// Packs a block of an operand into micro-panels in a kernel's layout, and widens its storage type
// to the compute type. In this folder, a panel is a micro-panel.
#pragma once

#include "problem/operand.h"
#include "problem/panel.h"

namespace wgemm {

// A block to pack. A lane is a row of A or a column of B; `depth` counts elements of a lane, along
// k. Strides count elements of the storage type. The caller owns the data.
struct PackSource {
  const std::byte* data;
  DType dtype;
  int64_t lanes, depth;
  int64_t lane_stride, depth_stride;
  int zero_point = 0;  // subtracted from 8-bit elements, but not from padding, which is 0
};

// Writes packed_bytes() to `panels`, padding included. `panels` must be aligned to 16 bytes.
void pack(const PackSource& source, const PanelLayout& layout, void* panels);

// The same for elements of T, float or double, and layouts without fill_header.
template <typename T>
void pack_plain(const PackSource& source, const PanelLayout& layout, void* panels);
template <>
void pack_plain<float>(const PackSource& source, const PanelLayout& layout, void* panels);
template <>
void pack_plain<double>(const PackSource& source, const PanelLayout& layout, void* panels);

}  // namespace wgemm
