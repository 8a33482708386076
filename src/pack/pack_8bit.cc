#include "pack/pack_8bit.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "base/transpose.h"
#include "kernels/kernel.h"
#include "pack/weights.h"

namespace wgemm {
namespace {

// Bytes of contiguous lanes that are packed together, so that rows are read in runs.
constexpr int64_t kBytesAtOnce = 64;

// Vectors of bytes. first(): 255, `count` times, and then zeros. numbers_from(): the numbers from
// `number` on, with 255 for those above 15.
constexpr int kVectorBytes = 16;
struct Bytes {
  uint8_t ones_then_zeros[2 * kVectorBytes] = {}, numbers[2 * kVectorBytes];
  constexpr Bytes() : numbers() {
    for (int i = 0; i < kVectorBytes; ++i) {
      ones_then_zeros[i] = numbers[kVectorBytes + i] = 255;
      numbers[i] = static_cast<uint8_t>(i);
    }
  }
  v128_t first(int64_t count) const { return wasm_v128_load(ones_then_zeros + 16 - count); }
  v128_t numbers_from(int64_t number) const { return wasm_v128_load(numbers + number); }
};
constexpr Bytes kBytes;

// Reads int8 or uint8 elements as int8, and subtracts the zero point.
struct Int8Loader {
  const PackSource& source;
  const int8_t* const data = reinterpret_cast<const int8_t*>(source.data);
  const int offset = int8_offset(source.dtype);  // XOR with 128 subtracts 128 from a uint8
  const v128_t flip_each = wasm_i8x16_splat(static_cast<int8_t>(offset)),
               zero_point_each = wasm_i16x8_splat(static_cast<int16_t>(source.zero_point - offset)),
               zero_byte_each = wasm_i8x16_splat(static_cast<int8_t>(source.zero_point - offset));

  // Eight contiguous elements, as int16.
  v128_t eight(const int8_t* from) const {
    const v128_t bytes = wasm_v128_xor(wasm_v128_load64_zero(from), flip_each);
    return wasm_i16x8_sub(wasm_i16x8_extend_low_i8x16(bytes), zero_point_each);
  }
  // Sixteen contiguous elements, as bytes.
  v128_t sixteen(const int8_t* from) const {
    return wasm_i8x16_sub(wasm_v128_xor(wasm_v128_load(from), flip_each), zero_byte_each);
  }

  // Copies the first `lines` of `all` lines of up to 16 elements. Fills the rest of these lines,
  // and the other lines, with the zero point. Strides are from line to line and from element to
  // element. Reads nothing beyond the source.
  [[gnu::noinline]] void copy(const int8_t* from, int64_t line_stride, int64_t stride,
                              int64_t lines, int64_t all, int64_t count,
                              int8_t (&to)[k8BitLanesMax][kVectorBytes]) const {
    const PackSource& s = source;
    const int8_t* const last =
        data + (s.lanes - 1) * s.lane_stride + (s.depth - 1) * s.depth_stride + 1 - kVectorBytes;
    const bool in_vectors =
        stride == 1 && s.lane_stride >= 0 && s.depth_stride >= 0 && last >= data;
    const v128_t rest = wasm_v128_xor(zero_byte_each, flip_each), mask = kBytes.first(count);
#pragma clang loop unroll(disable)
    for (int64_t line = 0; line < all; ++line, from += line_stride) {
      v128_t elements = rest;
      if (line < lines && in_vectors) {
        const int8_t* const at = std::min(from, last);
        elements = wasm_v128_bitselect(
            wasm_i8x16_swizzle(wasm_v128_load(at), kBytes.numbers_from(from - at)), rest, mask);
      }
      wasm_v128_store(to[line], elements);
      if (line >= lines || in_vectors) continue;
#pragma clang loop vectorize(disable) unroll(disable)
      for (int64_t i = 0; i < count; ++i) to[line][i] = from[i * stride];
    }
  }
};

// How elements become units of four lanes: a unit has the kr elements of a step of k and a lane.
// Loads kRun elements of a lane at once, or of a row if lanes are contiguous.
struct Pairs {  // two int16, or two int8 if `narrow`
  static constexpr int64_t kRun = 8, kKr = 2;
  bool narrow;
  static v128_t load(const Int8Loader& r, const int8_t* from) { return r.eight(from); }
  // Turns kKr rows into units.
  static void interleave(v128_t (&x)[4]) {
    const v128_t even = x[0], odd = x[1];
    x[0] = wasm_i16x8_shuffle(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
    x[1] = wasm_i16x8_shuffle(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
  }
  // Store a step of eight lanes, or of four.
  void store(v128_t low, v128_t high, std::byte* to) const {
    if (narrow) return wasm_v128_store(to, wasm_i8x16_narrow_i16x8(low, high));
    wasm_v128_store(to, low);
    wasm_v128_store(to + 16, high);
  }
  void store(v128_t x, std::byte* to) const {
    if (narrow) return wasm_v128_store(to, wasm_i8x16_narrow_i16x8(x, x));
    wasm_v128_store(to, x);
  }
};
// Pairs of int8 from contiguous lanes: a vector has a step of eight lanes.
struct BytePairs {
  static constexpr int64_t kRun = 16, kKr = 2;
  static v128_t load(const Int8Loader& r, const int8_t* from) { return r.sixteen(from); }
  static void interleave(v128_t (&x)[4]) {
    const v128_t even = x[0], odd = x[1];
    x[0] = wasm_i8x16_shuffle(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    x[1] =
        wasm_i8x16_shuffle(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
};
struct Quads {  // four bytes
  static constexpr int64_t kRun = 16, kKr = 4;
  static v128_t load(const Int8Loader& r, const int8_t* from) { return r.sixteen(from); }
  static void interleave(v128_t (&x)[4]) {
    const v128_t low01 = wasm_i8x16_shuffle(x[0], x[1], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                            22, 7, 23),
                 low23 = wasm_i8x16_shuffle(x[2], x[3], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                            22, 7, 23);
    const v128_t high01 = wasm_i8x16_shuffle(x[0], x[1], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                             29, 14, 30, 15, 31),
                 high23 = wasm_i8x16_shuffle(x[2], x[3], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                             29, 14, 30, 15, 31);
    x[0] = wasm_i16x8_shuffle(low01, low23, 0, 8, 1, 9, 2, 10, 3, 11);
    x[1] = wasm_i16x8_shuffle(low01, low23, 4, 12, 5, 13, 6, 14, 7, 15);
    x[2] = wasm_i16x8_shuffle(high01, high23, 0, 8, 1, 9, 2, 10, 3, 11);
    x[3] = wasm_i16x8_shuffle(high01, high23, 4, 12, 5, 13, 6, 14, 7, 15);
  }
  static void store(v128_t low, v128_t high, std::byte* to) {
    wasm_v128_store(to, low);
    wasm_v128_store(to + 16, high);
  }
  static void store(v128_t x, std::byte* to) { wasm_v128_store(to, x); }
};

// Packs lanes along k: kRun elements of up to eight lanes at a time. Lanes that are not contiguous
// along k, and incomplete tiles, go through a copy.
template <typename Form>
void pack_deep(const Int8Loader& r, Form form, const PanelLayout& layout, std::byte* panels) {
  constexpr int64_t kRun = Form::kRun;
  const PackSource& s = r.source;
  const int64_t width = layout.width, step_bytes = width * Form::kKr * layout.element_bytes,
                panel = static_cast<int64_t>(panel_bytes(layout, s.depth));
  const bool contiguous = s.depth_stride == 1 && (width <= 4 || width == 8);
  alignas(16) int8_t copy[k8BitLanesMax][kVectorBytes];
  alignas(16) std::byte steps[4][2 * kVectorBytes];
  for (int64_t lane = 0; lane < s.lanes; lane += width, panels += panel) {
    const int64_t lines = std::min(width, s.lanes - lane);
    const int8_t* const from = r.data + lane * s.lane_stride;
    std::byte* to = panels;
    for (int64_t d = 0; d < s.depth;) {
      const int8_t* line = from + d * s.depth_stride;
      int64_t stride = s.lane_stride, count = s.depth - d;
      if (contiguous && lines == width && count >= kRun) {
        count -= count % kRun;
      } else {
        count = std::min(kRun, count);
        r.copy(line, s.lane_stride, s.depth_stride, lines, width > 4 ? 8 : 4, count, copy);
        line = copy[0];
        stride = kVectorBytes;
      }
      d += count;
#pragma clang loop unroll(disable)
      for (; count > 0; count -= kRun, line += kRun) {
        // Panels of fewer than four lanes load one of them again.
        const auto load_four = [&](const int8_t* at, v128_t(&x)[4]) {
          x[0] = Form::load(r, at);
          x[1] = Form::load(r, width < 2 ? at : at + stride);
          x[2] = Form::load(r, width < 3 ? at : at + 2 * stride);
          x[3] = Form::load(r, width < 4 ? at : at + 3 * stride);
          transpose(x);
        };
        v128_t low[4], high[4] = {};
        load_four(line, low);
        if (width > 4) load_four(line + 4 * stride, high);
        const bool in_steps = count < kRun || (width != 4 && width != 8);
        const int64_t store_bytes = in_steps ? 2 * kVectorBytes : step_bytes;
        std::byte* const stored = in_steps ? steps[0] : to;
#pragma clang loop unroll(full)
        for (int i = 0; i < 4; ++i) {
          if (width > 4) {
            form.store(low[i], high[i], stored + i * store_bytes);
          } else {
            form.store(low[i], stored + i * store_bytes);
          }
        }
        if (!in_steps) {
          to += 4 * step_bytes;
          continue;
        }
#pragma clang loop vectorize(disable) unroll(disable)
        for (int64_t i = 0; i < 4 && i * Form::kKr < count; ++i, to += step_bytes) {
#pragma clang loop vectorize(disable) unroll(disable)
          for (int64_t at = 0; at < step_bytes; at += 4) std::memcpy(to + at, steps[i] + at, 4);
        }
      }
    }
  }
}

// Packs contiguous lanes (lane_stride 1) into panels of four or eight: kRun lanes by a step of k at
// a time.
template <typename Form>
void pack_wide(const Int8Loader& r, const PanelLayout& layout, std::byte* panels) {
  constexpr int64_t kRun = Form::kRun, kKr = Form::kKr;
  const PackSource& s = r.source;
  const int64_t width = layout.width, step_bytes = width * kKr * layout.element_bytes,
                panel = static_cast<int64_t>(panel_bytes(layout, s.depth)),
                run_bytes = kRun / width * panel;
  alignas(16) int8_t copy[k8BitLanesMax][kVectorBytes];
  for (int64_t lane0 = 0; lane0 < s.lanes; lane0 += kBytesAtOnce) {
    const int64_t end = std::min(lane0 + kBytesAtOnce, s.lanes);
    std::byte* step = panels + lane0 / width * panel;
#pragma clang loop unroll(disable)
    for (int64_t d = 0; d < s.depth; d += kKr, step += step_bytes) {
      const int64_t lines = std::min(kKr, s.depth - d);
      const int8_t* row = r.data + d * s.depth_stride + lane0;
      std::byte* to = step;
      for (int64_t lane = lane0; lane < end;) {
        const int8_t* line = row + (lane - lane0);
        int64_t stride = s.depth_stride, count = end - lane;
        if (lines == kKr && count >= kRun) {
          count -= count % kRun;
        } else {
          count = std::min(kRun, count);
          r.copy(line, s.depth_stride, 1, lines, kKr, count, copy);
          line = copy[0];
          stride = kVectorBytes;
        }
        lane += count;
#pragma clang loop unroll(disable)
        for (; count > 0; count -= kRun, line += kRun, to += run_bytes) {
          v128_t x[4];
#pragma clang loop unroll(full)
          for (int64_t i = 0; i < kKr; ++i) x[i] = Form::load(r, line + i * stride);
          Form::interleave(x);
          if (std::is_same_v<Form, BytePairs>) {
            wasm_v128_store(to, x[0]);
            if (count > 8) wasm_v128_store(to + panel, x[1]);
            continue;
          }
          if (width == 8) {
            wasm_v128_store(to, x[0]);
            wasm_v128_store(to + 16, x[1]);
            if (kRun == 8 || count <= 8) continue;
            wasm_v128_store(to + panel, x[2]);
            wasm_v128_store(to + panel + 16, x[3]);
            continue;
          }
          wasm_v128_store(to, x[0]);
          if (count > 4) wasm_v128_store(to + panel, x[1]);
          if (kRun == 8 || count <= 8) continue;
          wasm_v128_store(to + 2 * panel, x[2]);
          if (count > 12) wasm_v128_store(to + 3 * panel, x[3]);
        }
      }
    }
  }
}

// Packs panels of one lane, which are the lane itself.
template <typename Form>
void pack_rows(const Int8Loader& r, const PanelLayout& layout, std::byte* panels) {
  constexpr int64_t kRun = Form::kRun;
  const PackSource& s = r.source;
  const auto row = static_cast<int64_t>(panel_bytes(layout, s.depth));
  alignas(16) int8_t copy[k8BitLanesMax][kVectorBytes];
  for (int64_t lane = 0; lane < s.lanes; ++lane, panels += row) {
    const int8_t* from = r.data + lane * s.lane_stride;
    int64_t at = 0;
    if (s.depth_stride == 1) {
#pragma clang loop unroll(disable)
      for (int64_t d = 0; d + kRun <= s.depth; d += kRun, at += kVectorBytes, from += kRun)
        wasm_v128_store(panels + at, Form::load(r, from));
    }
    for (int64_t d = at / kVectorBytes * kRun; d < s.depth;
         d += kRun, at += kVectorBytes, from += kRun * s.depth_stride) {
      r.copy(from, 0, s.depth_stride, 1, 1, std::min(kRun, s.depth - d), copy);
      wasm_v128_store(copy[1], Form::load(r, copy[0]));
      std::memcpy(panels + at, copy[1], static_cast<size_t>(std::min<int64_t>(row - at, 16)));
    }
  }
}

template <typename Form>
void pack_form(const Int8Loader& r, Form form, bool wide, const PanelLayout& layout,
               std::byte* panels) {
  if (layout.width == 1) {
    pack_rows<Form>(r, layout, panels);
  } else if (wide) {
    pack_wide<Form>(r, layout, panels);
  } else {
    pack_deep(r, form, layout, panels);
  }
}

// Adds the sums of each lane, less `correction`. Units of a lane are four bytes, which are int16,
// or int8 if `bytes`. Bytes are XORed with `flip`, so a byte that equals it counts as 0.
[[gnu::noinline]] void sum_panels(const void* panels, int64_t width, int64_t panel_bytes,
                                  int64_t lanes, bool bytes, v128_t flip, uint32_t correction,
                                  int32_t* sums) {
  const v128_t ones = wasm_i16x8_splat(1);
  const auto sum_units = [&](v128_t units) {
    if (!bytes) return wasm_i32x4_dot_i16x8(units, ones);
    return wasm_i32x4_extadd_pairwise_i16x8(
        wasm_i16x8_extadd_pairwise_i8x16(wasm_v128_xor(units, flip)));
  };
  // Vectors with the same lanes are this far from each other: narrow panels have several steps in
  // a vector.
  const int64_t stride = width < 3 ? kVectorBytes : 4 * width;
  const auto* panel = static_cast<const std::byte*>(panels);
  for (int64_t lane0 = 0; lane0 < lanes; lane0 += width, panel += panel_bytes) {
    for (int64_t i = 0; i < std::min(width, lanes - lane0); i += 4) {
      v128_t sum = wasm_i32x4_const(0, 0, 0, 0);
#pragma clang loop unroll(disable)
      for (int64_t at = 4 * i; at < panel_bytes; at += stride) {
        alignas(16) std::byte last[kVectorBytes];
        const std::byte* from = panel + at;
        if (at + kVectorBytes > panel_bytes) {
          wasm_v128_store(last, flip);
          std::memcpy(last, from, static_cast<size_t>(panel_bytes - at));
          from = last;
        }
        sum = wasm_i32x4_add(sum, sum_units(wasm_v128_load(from)));
      }
      uint32_t four[4];
      if (width == 1) sum = wasm_i32x4_add(sum, wasm_i32x4_shuffle(sum, sum, 1, 0, 3, 2));
      if (width <= 2) sum = wasm_i32x4_add(sum, wasm_i32x4_shuffle(sum, sum, 2, 3, 0, 1));
      wasm_v128_store(four, sum);
#pragma clang loop vectorize(disable) unroll(disable)
      for (int64_t lane = i; lane < std::min({width, i + 4, lanes - lane0}); ++lane) {
        sums[lane0 + lane] = static_cast<int32_t>(static_cast<uint32_t>(sums[lane0 + lane]) +
                                                  four[lane - i] - correction);
      }
    }
  }
}

}  // namespace

void pack_8bit(const PackSource& source, const PanelLayout& layout, void* panels) {
  assert(layout.width <= k8BitLanesMax);
  const Int8Loader r{source};
  auto* const to = static_cast<std::byte*>(panels);
  const bool narrow = layout.element_bytes == 1, wide = source.lane_stride == 1 &&
                                                        source.depth_stride != 1 &&
                                                        (layout.width == 8 || layout.width == 4);
  // Rows of bytes are quads that are not padded.
  if (narrow && (layout.has_quads() || layout.is_rows()))
    return pack_form(r, Quads{}, wide, layout, to);
  if (narrow && wide) return pack_wide<BytePairs>(r, layout, to);
  pack_form(r, Pairs{narrow}, wide, layout, to);
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

void widen_column(const std::byte* panel, int64_t column, int64_t depth, int shift, int16_t* to) {
  const auto* from = reinterpret_cast<const int8_t*>(panel) + 2 * column;
  const v128_t shift_each = wasm_i16x8_splat(static_cast<int16_t>(shift));
  int64_t d = 0;
#pragma clang loop unroll(disable)
  for (; d + 8 <= depth; d += 8) {
    const int8_t* const pairs = from + 8 * d;
    v128_t eight = wasm_v128_load16_splat(pairs);
    eight = wasm_v128_load16_lane(pairs + 16, eight, 1);
    eight = wasm_v128_load16_lane(pairs + 32, eight, 2);
    eight = wasm_v128_load16_lane(pairs + 48, eight, 3);
    wasm_v128_store(to + d, wasm_i16x8_sub(wasm_i16x8_extend_low_i8x16(eight), shift_each));
  }
  if (d < depth) wasm_v128_store(to + d, wasm_i32x4_const(0, 0, 0, 0));
#pragma clang loop vectorize(disable) unroll(disable)
  for (; d < depth; ++d) to[d] = static_cast<int16_t>(from[d / 2 * 16 + d % 2] - shift);
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

Int8Range range_of_panels(const int8_t* panels, int64_t k, int64_t n) {
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
  Int8Range range{lows[0], highs[0]};
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
  // Sums elements as int8. XOR subtracts 128 from every uint8, and from the padding, which is 0.
  const v128_t flip = wasm_i8x16_splat(static_cast<int8_t>(is_signed ? 0 : 128));
  const int64_t padded = (depth + 3) / 4 * 4;
  const int64_t correction = depth * zero_point - (is_signed ? 0 : 128 * padded);
  sum_panels(panels, width, padded * width, lanes, true, flip, static_cast<uint32_t>(correction),
             sums);
}

void sum_lanes(const void* panels, const PanelLayout& layout, int64_t lanes, int64_t depth,
               int32_t* sums) {
  sum_panels(panels, layout.width, static_cast<int64_t>(panel_bytes(layout, depth)), lanes, false,
             wasm_i32x4_const(0, 0, 0, 0), 0, sums);
}

}  // namespace wgemm
