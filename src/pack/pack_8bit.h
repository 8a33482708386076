// Packs 8-bit operands into panels. Panels with pairs of k (kr = 2) hold int8 or int16. Panels
// with quads of k (kr = 4) hold bytes.
#pragma once

#include "pack/pack.h"

namespace wgemm {

// Subtracts source.zero_point from all elements. The differences must fit the elements of the
// panels, signed or unsigned. A panel has at most k8BitLanesMax lanes. Only pack() calls this.
void pack_8bit(const PackSource& source, const PanelLayout& layout, void* panels);

// Widens `count` panels of int8 to int16. `depth` is a multiple of kr, or reaches the end of the
// source. source_stride: bytes from panel to panel.
void widen_panels(const std::byte* source, size_t source_stride, int64_t count, int64_t depth,
                  const PanelLayout& layout, void* panels);

// Widens one column of a panel of 8 columns and subtracts `shift`. Pads it with zeros to a multiple
// of eight elements.
void widen_column(const std::byte* panel, int64_t column, int64_t depth, int shift, int16_t* to);

// Converts panels of 8 columns from pairs to quads of k, and subtracts `shift` from each element,
// modulo 2^8. The other arguments are as for widen_panels().
void join_pairs(const std::byte* source, size_t source_stride, int64_t count, int64_t depth,
                int shift, void* panels);

// The smallest and largest of k by n elements, 0 and 0 if there are none. The panels have 8 columns
// and pairs of k; padding does not count.
struct Int8Range {
  int low = 0, high = 0;
};
Int8Range range_of_panels(const int8_t* panels, int64_t k, int64_t n);

// Adds the elements of each lane to its sum. The panels hold int16 with pairs of k. `depth` counts
// elements of a lane.
void sum_lanes(const void* panels, const PanelLayout& layout, int64_t lanes, int64_t depth,
               int32_t* sums);

// As sum_lanes(), for panels of `width` lanes with quads of k, int8 or uint8. Subtracts
// `zero_point` from each element first.
void sum_quads(const void* panels, int64_t width, bool is_signed, int zero_point, int64_t lanes,
               int64_t depth, int32_t* sums);

}  // namespace wgemm
