// Packing of 8-bit operands: pairs of k, less a zero point, as int8 or int16. Called by pack() alone.
#pragma once

#include "pack.h"

namespace wgemm {

// Layouts with kr = 2. Elements less source.zero_point must fit those of the panels.
void pack_8bit(const PackSource& source, const PanelLayout& layout, void* panels);

// Widens panels of int8 to panels of int16: `count` of them, `depth` deep, a multiple of kr or to the end of the source. source_stride:
// bytes from panel to panel.
void widen_panels(const std::byte* source, size_t source_stride, int64_t count, int64_t depth, const PanelLayout& layout, void* panels);

// Adds to each of `lanes` sums the elements of its lane in int16 panels that are `depth` deep.
void sum_lanes(const void* panels, const PanelLayout& layout, int64_t lanes, int64_t depth, int32_t* sums);

}  // namespace wgemm
