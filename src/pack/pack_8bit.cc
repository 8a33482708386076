#include "pack/pack_8bit.h"

#include <wasm_simd128.h>

#include <algorithm>

#include "base/transpose.h"
#include "kernels/kernel.h"
#include "pack/weights.h"

namespace wgemm {
namespace {

// Groups of eight lanes that are packed together, so that each row is read in runs of 32 bytes.
constexpr int64_t kGroupsAtOnce = 4;

// Reads int8 or uint8 elements as int8, and subtracts the zero point.
struct Reader {
  const PackSource& source;
  const int8_t* const data = reinterpret_cast<const int8_t*>(source.data);
  const int offset = int8_offset(source.dtype);  // XOR with 128 subtracts 128 from a uint8
  const int zero_point = source.zero_point - offset;
  const v128_t flip_each = wasm_i8x16_splat(static_cast<int8_t>(offset)),
               zero_point_each = wasm_i16x8_splat(static_cast<int16_t>(zero_point)),
               zero_byte_each = wasm_i8x16_splat(static_cast<int8_t>(zero_point));

  int one(int64_t lane, int64_t d) const {
    return static_cast<int8_t>(data[lane * source.lane_stride + d * source.depth_stride] ^ offset) -
           zero_point;
  }
  // Eight contiguous elements, as int16.
  v128_t eight(const int8_t* from) const {
    const v128_t bytes = wasm_v128_xor(wasm_v128_load64_zero(from), flip_each);
    return wasm_i16x8_sub(wasm_i16x8_extend_low_i8x16(bytes), zero_point_each);
  }
  // Sixteen contiguous elements, as bytes.
  v128_t sixteen(const int8_t* from) const {
    return wasm_i8x16_sub(wasm_v128_xor(wasm_v128_load(from), flip_each), zero_byte_each);
  }
};

// Packs a panel from depth `d0` (a multiple of kr) to its end, element by element, with padding.
template <int Kr, typename To>
[[gnu::noinline]] void gather(const Reader& r, const PanelLayout& layout, int64_t lane0, int64_t d0,
                              To* panel) {
  const PackSource& s = r.source;
  const int64_t width = layout.width, padded = (s.depth + Kr - 1) / Kr * Kr;
  if ((sizeof(To) == 2 || Kr == 4) && width == 1 && s.depth_stride == 1) {
    constexpr int64_t kRun = 16 / sizeof(To);
    const int8_t* from = r.data + lane0 * s.lane_stride;
#pragma clang loop unroll(disable)
    for (; d0 + kRun <= s.depth; d0 += kRun)
      wasm_v128_store(panel + d0, sizeof(To) == 2 ? r.eight(from + d0) : r.sixteen(from + d0));
  }
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t lane = 0; lane < width; ++lane) {
    const bool inside = lane0 + lane < s.lanes;
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t d = d0; d < padded; ++d) {
      panel[d / Kr * Kr * width + Kr * lane + d % Kr] =
          static_cast<To>(inside && d < s.depth ? r.one(lane0 + lane, d) : 0);
    }
  }
}

// Stores one pair of k for all lanes of a panel, which has four or eight.
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

// Load eight elements of each of four lanes as four pairs of k, or sixteen as four quads.
void load_pairs(const Reader& r, const int8_t* from, v128_t (&pairs)[4]) {
  for (int i = 0; i < 4; ++i) pairs[i] = r.eight(from + i * r.source.lane_stride);
  transpose(pairs);
}
void load_quads(const Reader& r, const int8_t* from, v128_t (&quads)[4]) {
  for (int i = 0; i < 4; ++i) quads[i] = r.sixteen(from + i * r.source.lane_stride);
  transpose(quads);
}

// Packs a panel whose lanes are contiguous along k (depth_stride 1).
template <int Width, typename To>
void pack_deep(const Reader& r, const PanelLayout& layout, int64_t lane0, To* panel) {
  const PackSource& s = r.source;
  const int8_t* from = r.data + lane0 * s.lane_stride;
  int64_t d = 0;
  for (; d + 8 <= s.depth; d += 8) {
    v128_t pairs[Width / 4][4];
    for (int half = 0; half < Width / 4; ++half)
      load_pairs(r, from + d + 4 * half * s.lane_stride, pairs[half]);
    for (int p = 0; p < 4; ++p)
      store_pair<Width>(pairs[0][p], pairs[Width / 4 - 1][p], panel + (d + 2 * p) * Width);
  }
  gather<2>(r, layout, lane0, d, panel);
}

// Packs contiguous lanes (lane_stride 1), eight at a time: one panel of eight or two of four.
// Returns the number of panels that it has filled.
template <int Width, typename To>
int64_t pack_wide(const Reader& r, const PanelLayout& layout, int64_t panel_size, To* panels) {
  constexpr int64_t kTogether = 8 / Width;
  const PackSource& s = r.source;
  const int64_t full = s.lanes / 8;
  for (int64_t g0 = 0; g0 < full; g0 += kGroupsAtOnce) {
    const int64_t g_end = std::min(g0 + kGroupsAtOnce, full);
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
  for (int64_t p = 0; p < full * kTogether; ++p)
    gather<2>(r, layout, p * Width, s.depth / 2 * 2, panels + p * panel_size);
  return full * kTogether;
}

template <int Width, typename To>
int64_t pack_fast(const Reader& r, const PanelLayout& layout, int64_t panel_size, To* panels) {
  if (r.source.lane_stride == 1) return pack_wide<Width>(r, layout, panel_size, panels);
  if (r.source.depth_stride != 1) return 0;
  const int64_t full = r.source.lanes / Width;
  for (int64_t p = 0; p < full; ++p)
    pack_deep<Width>(r, layout, p * Width, panels + p * panel_size);
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
    gather<2>(r, layout, lane, 0, panels + lane / layout.width * panel_size);
  }
}

// Packs contiguous lanes (lane_stride 1) into panels of four, four panels at a time. Returns the
// number of panels that it has filled.
int64_t pack_wide_quads(const Reader& r, const PanelLayout& layout, int64_t panel_size,
                        int8_t* panels) {
  const PackSource& s = r.source;
  const int64_t full = s.lanes / 16;
  for (int64_t g = 0; g < full; ++g) {
    int8_t* to = panels + 4 * g * panel_size;
    int64_t d = 0;
#pragma clang loop unroll(disable)
    for (; d + 4 <= s.depth; d += 4) {
      const int8_t* row = r.data + d * s.depth_stride + 16 * g;
      const v128_t r0 = r.sixteen(row), r1 = r.sixteen(row + s.depth_stride),
                   r2 = r.sixteen(row + 2 * s.depth_stride),
                   r3 = r.sixteen(row + 3 * s.depth_stride);
      const v128_t low01 =
          wasm_i8x16_shuffle(r0, r1, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      const v128_t low23 =
          wasm_i8x16_shuffle(r2, r3, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      const v128_t high01 =
          wasm_i8x16_shuffle(r0, r1, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      const v128_t high23 =
          wasm_i8x16_shuffle(r2, r3, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      wasm_v128_store(to + 4 * d, wasm_i16x8_shuffle(low01, low23, 0, 8, 1, 9, 2, 10, 3, 11));
      wasm_v128_store(to + 4 * d + panel_size,
                      wasm_i16x8_shuffle(low01, low23, 4, 12, 5, 13, 6, 14, 7, 15));
      wasm_v128_store(to + 4 * d + 2 * panel_size,
                      wasm_i16x8_shuffle(high01, high23, 0, 8, 1, 9, 2, 10, 3, 11));
      wasm_v128_store(to + 4 * d + 3 * panel_size,
                      wasm_i16x8_shuffle(high01, high23, 4, 12, 5, 13, 6, 14, 7, 15));
    }
    for (int64_t p = 0; p < 4; ++p) gather<4>(r, layout, 16 * g + 4 * p, d, to + p * panel_size);
  }
  return 4 * full;
}

// Packs a panel of four lanes that are contiguous along k (depth_stride 1).
void pack_deep_quads(const Reader& r, const PanelLayout& layout, int64_t lane0, int8_t* panel) {
  const int8_t* from = r.data + lane0 * r.source.lane_stride;
  int64_t d = 0;
#pragma clang loop unroll(disable)
  for (; d + 16 <= r.source.depth; d += 16) {
    v128_t quads[4];
    load_quads(r, from + d, quads);
    for (int q = 0; q < 4; ++q) wasm_v128_store(panel + 4 * d + 16 * q, quads[q]);
  }
  gather<4>(r, layout, lane0, d, panel);
}

void pack_quads(const PackSource& s, const PanelLayout& layout, int8_t* panels) {
  const Reader r{s};
  const auto panel_size = static_cast<int64_t>(panel_bytes(layout, s.depth));
  int64_t done = 0;
  if (layout.width == 4 && s.lane_stride == 1) {
    done = pack_wide_quads(r, layout, panel_size, panels);
  } else if (layout.width == 4 && s.depth_stride == 1) {
    for (; 4 * done + 4 <= s.lanes; ++done)
      pack_deep_quads(r, layout, 4 * done, panels + done * panel_size);
  }
  for (; done * layout.width < s.lanes; ++done)
    gather<4>(r, layout, done * layout.width, 0, panels + done * panel_size);
}

}  // namespace

void pack_8bit(const PackSource& source, const PanelLayout& layout, void* panels) {
  if (kHasDots && layout.kr == 4) return pack_quads(source, layout, static_cast<int8_t*>(panels));
  if (layout.element_bytes == 2) return pack_typed<int16_t>(source, layout, panels);
  pack_typed<int8_t>(source, layout, panels);
}

void widen_panels(const std::byte* source, size_t source_stride, int64_t count, int64_t depth,
                  const PanelLayout& layout, void* panels) {
  const size_t size = panel_bytes(layout, depth) / sizeof(int16_t);
  auto* to = static_cast<int16_t*>(panels);
  for (int64_t p = 0; p < count; ++p, source += source_stride, to += size) {
    const auto* from = reinterpret_cast<const int8_t*>(source);
    for (size_t i = 0; i < size; i += 8) wasm_v128_store(to + i, wasm_i16x8_load8x8(from + i));
  }
}

void join_pairs(const std::byte* source, size_t source_stride, int64_t count, int64_t depth,
                int shift, void* panels) {
  const v128_t shift_each = wasm_i8x16_splat(static_cast<int8_t>(shift));
  const int64_t quads = depth / 4, rest = depth % 4;
  // Mask of the bytes of the last quad that hold elements.
  const v128_t rest_mask = wasm_i32x4_splat((1 << 8 * rest) - 1);
  auto* to = static_cast<int8_t*>(panels);
  for (int64_t p = 0; p < count; ++p, source += source_stride) {
    const auto* from = reinterpret_cast<const int8_t*>(source);
    const auto low = [&](v128_t even, v128_t odd) {
      return wasm_i8x16_sub(wasm_i16x8_shuffle(even, odd, 0, 8, 1, 9, 2, 10, 3, 11), shift_each);
    };
    const auto high = [&](v128_t even, v128_t odd) {
      return wasm_i8x16_sub(wasm_i16x8_shuffle(even, odd, 4, 12, 5, 13, 6, 14, 7, 15), shift_each);
    };
#pragma clang loop unroll(disable)
    for (int64_t q = 0; q < quads; ++q, from += 32, to += 32) {
      const v128_t even = wasm_v128_load(from), odd = wasm_v128_load(from + 16);
      wasm_v128_store(to, low(even, odd));
      wasm_v128_store(to + 16, high(even, odd));
    }
    if (rest == 0) continue;
    const v128_t even = wasm_v128_load(from), odd = rest == 3 ? wasm_v128_load(from + 16) : even;
    wasm_v128_store(to, wasm_v128_and(low(even, odd), rest_mask));
    wasm_v128_store(to + 16, wasm_v128_and(high(even, odd), rest_mask));
    to += 32;
  }
}

Range range_of_panels(const int8_t* panels, int64_t k, int64_t n) {
  if (k == 0 || n == 0) return {};
  constexpr int64_t kWidth = 8;
  const int64_t pairs = (k + 1) / 2, full = n / kWidth;
  v128_t low = wasm_i8x16_splat(panels[0]), high = low;
  for (int64_t panel = 0; panel < full; ++panel) {
#pragma clang loop unroll(disable)
    for (int64_t pair = 0; pair < pairs; ++pair, panels += 2 * kWidth) {
      v128_t v = wasm_v128_load(panels);
      // The last pair of an odd k has padding. The pair's first element replaces it.
      if (2 * pair + 1 == k)
        v = wasm_i8x16_shuffle(v, v, 0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14);
      low = wasm_i8x16_min(low, v);
      high = wasm_i8x16_max(high, v);
    }
  }
  int8_t lows[16], highs[16];
  wasm_v128_store(lows, low);
  wasm_v128_store(highs, high);
  Range range{lows[0], highs[0]};
#pragma clang loop vectorize(disable) unroll(disable)
  for (int i = 1; i < 16; ++i)
    range = {std::min<int>(range.low, lows[i]), std::max<int>(range.high, highs[i])};
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t d = 0; d < k; ++d) {
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t lane = 0; lane < n % kWidth; ++lane) {
      const int element = panels[d / 2 * 2 * kWidth + 2 * lane + d % 2];
      range = {std::min(range.low, element), std::max(range.high, element)};
    }
  }
  return range;
}

void sum_quads(const void* panels, int64_t width, bool is_signed, int zero_point, int64_t lanes,
               int64_t depth, int32_t* sums) {
  const auto* from = static_cast<const int8_t*>(panels);
  // Sums elements as int8. XOR subtracts 128 from every uint8, and from the padding, which is 0.
  const v128_t flip = wasm_i8x16_splat(static_cast<int8_t>(is_signed ? 0 : 128));
  const int64_t padded = (depth + 3) / 4 * 4;
  const int64_t correction = depth * zero_point - (is_signed ? 0 : 128 * padded);
  for (int64_t lane0 = 0; lane0 < lanes; lane0 += width) {
    v128_t sum = wasm_i32x4_const(0, 0, 0, 0);
#pragma clang loop unroll(disable)
    for (int64_t d = 0; d < padded; d += 4, from += 4 * width) {
      const v128_t quads = width == 1 ? wasm_v128_load32_zero(from) : wasm_v128_load(from);
      const v128_t pairs = wasm_i16x8_extadd_pairwise_i8x16(wasm_v128_xor(quads, flip));
      sum = wasm_i32x4_add(sum, wasm_i32x4_extadd_pairwise_i16x8(pairs));
    }
    uint32_t four[4];
    wasm_v128_store(four, sum);
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t lane = lane0; lane < std::min(lane0 + width, lanes); ++lane) {
      sums[lane] = static_cast<int32_t>(static_cast<uint32_t>(sums[lane]) + four[lane - lane0] -
                                        static_cast<uint32_t>(correction));
    }
  }
}

void sum_lanes(const void* panels, const PanelLayout& layout, int64_t lanes, int64_t depth,
               int32_t* sums) {
  const int64_t width = layout.width, pairs = (depth + 1) / 2;
  const auto* panel = static_cast<const int16_t*>(panels);
  for (int64_t lane0 = 0; lane0 < lanes; lane0 += width, panel += 2 * pairs * width) {
    if (width == 4 && lane0 + 4 <= lanes) {
      v128_t sum = wasm_v128_load(sums + lane0);
      const v128_t ones = wasm_i16x8_splat(1);
      for (int64_t p = 0; p < pairs; ++p)
        sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(wasm_v128_load(panel + 8 * p), ones));
      wasm_v128_store(sums + lane0, sum);
      continue;
    }
    for (int64_t lane = 0; lane < std::min(width, lanes - lane0); ++lane) {
      auto sum = static_cast<uint32_t>(sums[lane0 + lane]);
      const int16_t* pair = panel + 2 * lane;
      for (int64_t p = 0; p < pairs; ++p, pair += 2 * width)
        sum += static_cast<uint32_t>(pair[0]) + static_cast<uint32_t>(pair[1]);
      sums[lane0 + lane] = static_cast<int32_t>(sum);
    }
  }
}

}  // namespace wgemm
