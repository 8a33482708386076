#include "pack_8bit.h"

#include <wasm_simd128.h>

#include <algorithm>

#include "weights.h"

namespace wgemm {
namespace {

// See kPanelsAtOnce in pack.cc.
constexpr int64_t kPanelsAtOnce = 4;

// Elements as int8, whichever they are, less a zero point of int8.
struct Reader {
  const PackSource& source;
  const int8_t* const data = reinterpret_cast<const int8_t*>(source.data);
  const int offset = int8_offset(source.dtype);  // of uint8, flips the highest bit: minus 128
  const int zero_point = source.zero_point - offset;
  const v128_t flip_each = wasm_i8x16_splat(static_cast<int8_t>(offset)),
               zero_point_each = wasm_i16x8_splat(static_cast<int16_t>(zero_point));

  int one(int64_t lane, int64_t d) const {
    return static_cast<int8_t>(data[lane * source.lane_stride + d * source.depth_stride] ^ offset) - zero_point;
  }
  // Eight that lie side by side in memory.
  v128_t eight(const int8_t* from) const {
    const v128_t bytes = wasm_v128_xor(wasm_v128_load64_zero(from), flip_each);
    return wasm_i16x8_sub(wasm_i16x8_extend_low_i8x16(bytes), zero_point_each);
  }
};

// A panel from depth `d0` (even) to its end, one by one, zeros where there are no elements.
template <typename To>
[[gnu::noinline]] void gather(const Reader& r, const PanelLayout& layout, int64_t lane0, int64_t d0, To* panel) {
  const PackSource& s = r.source;
  const int64_t width = layout.width, padded = (s.depth + 1) / 2 * 2;
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t lane = 0; lane < width; ++lane) {
    const bool inside = lane0 + lane < s.lanes;
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t d = d0; d < padded; ++d) {
      panel[d / 2 * 2 * width + 2 * lane + d % 2] = static_cast<To>(inside && d < s.depth ? r.one(lane0 + lane, d) : 0);
    }
  }
}

// Stores a pair of k of four or eight lanes, which is all of a panel's.
template <int Width>
void store_pair(v128_t low, [[maybe_unused]] v128_t high, int16_t* to) {
  wasm_v128_store(to, low);
  if constexpr (Width == 8) wasm_v128_store(to + 8, high);
}
template <int Width>
void store_pair(v128_t low, v128_t high, int8_t* to) {
  static_assert(Width == 8);
  wasm_v128_store(to, wasm_i8x16_narrow_i16x8(low, high));
}

// The four pairs of k of eight elements each of four lanes.
struct Pairs {
  v128_t pair[4];
  Pairs(const Reader& r, const int8_t* from) {
    const int64_t stride = r.source.lane_stride;
    const v128_t r0 = r.eight(from), r1 = r.eight(from + stride), r2 = r.eight(from + 2 * stride), r3 = r.eight(from + 3 * stride);
    const v128_t low01 = wasm_i32x4_shuffle(r0, r1, 0, 4, 1, 5), low23 = wasm_i32x4_shuffle(r2, r3, 0, 4, 1, 5);
    const v128_t high01 = wasm_i32x4_shuffle(r0, r1, 2, 6, 3, 7), high23 = wasm_i32x4_shuffle(r2, r3, 2, 6, 3, 7);
    pair[0] = wasm_i64x2_shuffle(low01, low23, 0, 2);
    pair[1] = wasm_i64x2_shuffle(low01, low23, 1, 3);
    pair[2] = wasm_i64x2_shuffle(high01, high23, 0, 2);
    pair[3] = wasm_i64x2_shuffle(high01, high23, 1, 3);
  }
};

// A panel whose lanes lie one behind the other, each side by side in memory.
template <int Width, typename To>
void pack_deep(const Reader& r, const PanelLayout& layout, int64_t lane0, To* panel) {
  const PackSource& s = r.source;
  const int8_t* from = r.data + lane0 * s.lane_stride;
  int64_t d = 0;
  for (; d + 8 <= s.depth; d += 8) {
    const Pairs low(r, from + d);
    const Pairs high = Width == 8 ? Pairs(r, from + d + 4 * s.lane_stride) : low;
    for (int p = 0; p < 4; ++p) store_pair<Width>(low.pair[p], high.pair[p], panel + (d + 2 * p) * Width);
  }
  gather(r, layout, lane0, d, panel);
}

// Panels whose lanes are next to one another in memory, from the first on; gives how many of them are done. Eight lanes at a time: two
// panels of four.
template <int Width, typename To>
int64_t pack_wide(const Reader& r, const PanelLayout& layout, int64_t panel_size, To* panels) {
  constexpr int64_t kTogether = 8 / Width;
  const PackSource& s = r.source;
  const int64_t full = s.lanes / 8;
  for (int64_t g0 = 0; g0 < full; g0 += kPanelsAtOnce) {
    const int64_t g_end = std::min(g0 + kPanelsAtOnce, full);
    for (int64_t d = 0; d + 2 <= s.depth; d += 2) {
      const int8_t* row = r.data + d * s.depth_stride;
      for (int64_t g = g0; g < g_end; ++g) {
        const v128_t even = r.eight(row + 8 * g), odd = r.eight(row + s.depth_stride + 8 * g);
        const v128_t low = wasm_i16x8_shuffle(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
        const v128_t high = wasm_i16x8_shuffle(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
        To* to = panels + g * kTogether * panel_size + d * Width;
        if constexpr (Width == 8) {
          store_pair<8>(low, high, to);
        } else {
          store_pair<4>(low, low, to);
          store_pair<4>(high, high, to + panel_size);
        }
      }
    }
  }
  for (int64_t p = 0; p < full * kTogether; ++p) gather(r, layout, p * Width, s.depth / 2 * 2, panels + p * panel_size);
  return full * kTogether;
}

template <int Width, typename To>
int64_t pack_fast(const Reader& r, const PanelLayout& layout, int64_t panel_size, To* panels) {
  if (r.source.lane_stride == 1) return pack_wide<Width>(r, layout, panel_size, panels);
  if (r.source.depth_stride != 1) return 0;
  const int64_t full = r.source.lanes / Width;
  for (int64_t p = 0; p < full; ++p) pack_deep<Width>(r, layout, p * Width, panels + p * panel_size);
  return full;
}

template <typename To>
void pack_typed(const PackSource& s, const PanelLayout& layout, void* to) {
  const Reader r{s};
  auto* panels = static_cast<To*>(to);
  const auto panel_size = static_cast<int64_t>(panel_bytes(layout, s.depth) / sizeof(To));
  int64_t done = 0;
  if (layout.width == 8) done = pack_fast<8>(r, layout, panel_size, panels);
  if constexpr (sizeof(To) == 2) {
    if (layout.width == 4) done = pack_fast<4>(r, layout, panel_size, panels);
  }
  for (int64_t lane = done * layout.width; lane < s.lanes; lane += layout.width) {
    gather(r, layout, lane, 0, panels + lane / layout.width * panel_size);
  }
}

}  // namespace

void pack_8bit(const PackSource& source, const PanelLayout& layout, void* panels) {
  if (layout.element_bytes == 2) return pack_typed<int16_t>(source, layout, panels);
  pack_typed<int8_t>(source, layout, panels);
}

void widen_panels(const std::byte* source, size_t source_stride, int64_t count, int64_t depth, const PanelLayout& layout, void* panels) {
  const size_t size = panel_bytes(layout, depth) / sizeof(int16_t);
  auto* to = static_cast<int16_t*>(panels);
  for (int64_t p = 0; p < count; ++p, source += source_stride, to += size) {
    const auto* from = reinterpret_cast<const int8_t*>(source);
    for (size_t i = 0; i < size; i += 8) wasm_v128_store(to + i, wasm_i16x8_load8x8(from + i));
  }
}

void sum_lanes(const void* panels, const PanelLayout& layout, int64_t lanes, int64_t depth, int32_t* sums) {
  const int64_t width = layout.width, pairs = (depth + 1) / 2;
  const auto* panel = static_cast<const int16_t*>(panels);
  for (int64_t lane0 = 0; lane0 < lanes; lane0 += width, panel += 2 * pairs * width) {
    if (width == 4 && lane0 + 4 <= lanes) {
      v128_t sum = wasm_v128_load(sums + lane0);
      const v128_t ones = wasm_i16x8_splat(1);
      for (int64_t p = 0; p < pairs; ++p) sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(wasm_v128_load(panel + 8 * p), ones));
      wasm_v128_store(sums + lane0, sum);
      continue;
    }
    for (int64_t lane = 0; lane < std::min(width, lanes - lane0); ++lane) {
      auto sum = static_cast<uint32_t>(sums[lane0 + lane]);
      const int16_t* pair = panel + 2 * lane;
      for (int64_t p = 0; p < pairs; ++p, pair += 2 * width) sum += static_cast<uint32_t>(pair[0]) + static_cast<uint32_t>(pair[1]);
      sums[lane0 + lane] = static_cast<int32_t>(sum);
    }
  }
}

}  // namespace wgemm
