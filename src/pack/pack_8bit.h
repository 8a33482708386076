// Packing of 8-bit operands: pairs of k, less a zero point, as int8 or int16; or quads of k, as
// bytes.
#pragma once

#include "pack/pack.h"

namespace wgemm {

// Layouts with kr = 2, and bytes with kr = 4. Elements less source.zero_point must fit those of the
// panels, signed or unsigned. Called by pack() alone.
void pack_8bit(const PackSource& source, const PanelLayout& layout, void* panels);

// Widens panels of int8 to panels of int16: `count` of them, `depth` deep, a multiple of kr or to
// the end of the source. source_stride: bytes from panel to panel.
void widen_panels(const std::byte* source, size_t source_stride, int64_t count, int64_t depth,
                  const PanelLayout& layout, void* panels);

// Makes of panels of 8 columns and pairs of k such with quads of k, each element less `less` modulo
// 2^8. As widen_panels().
void join_pairs(const std::byte* source, size_t source_stride, int64_t count, int64_t depth,
                int less, void* panels);

// The least and the largest of k by n elements in panels of 8 columns and pairs of k, without their
// padding; 0 and 0 where there are none.
struct Range {
  int low = 0, high = 0;
};
Range range_of_panels(const int8_t* panels, int64_t k, int64_t n);

// Adds to each of `lanes` sums the elements of its lane in int16 panels that are `depth` deep.
void sum_lanes(const void* panels, const PanelLayout& layout, int64_t lanes, int64_t depth,
               int32_t* sums);

// The same of panels of four rows and quads of k, int8 or uint8; each element less `zero_point`.
void sum_quads(const void* panels, bool is_signed, int zero_point, int64_t lanes, int64_t depth,
               int32_t* sums);

}  // namespace wgemm
