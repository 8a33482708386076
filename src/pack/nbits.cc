#include "pack/nbits.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <cstring>

#include "base/convert.h"

namespace wgemm {
namespace {

constexpr int kBlockSizeMax = 256;

// The sizes of a micro-panel's block, which its users ask for again and again.
struct Layout {
  explicit Layout(const NBits& f)
      : format(f),
        word_codes(32 / f.bits),
        mask((1U << f.bits) - 1),
        zero_point_mask(f.bits == 8 ? 0xff : 0xf),
        zero_points_at(f.scale_bytes()),
        codes_at(zero_points_at + f.zero_point_bytes()),
        block_bytes(f.block_bytes()) {}

  // Where a block has code i of a column: its byte, and its lowest bit in there.
  int64_t byte_of(int64_t i, int64_t column) const {
    return codes_at + i / word_codes * int64_t{NBits::kGroupBytes} + column * 4 + i % 4;
  }
  int shift_of(int64_t i) const { return static_cast<int>(i % word_codes) / 4 * format.bits; }
  // A mask of the first codes of a word.
  uint32_t first_codes(int64_t count) const {
    if (count >= word_codes) return ~0U;
    uint32_t bits = 0;
    for (int64_t i = 0; i < count; ++i) bits |= mask << (8 * (i % 4) + shift_of(i));
    return bits;
  }
  // The same for a zero point of the kind kCodes.
  int64_t zero_point_byte(int64_t column) const {
    return zero_points_at + (format.bits == 8 ? column : column % 4);
  }
  int zero_point_shift(int64_t column) const { return format.bits != 8 && column >= 4 ? 4 : 0; }

  const NBits& format;
  const int64_t word_codes;
  const uint32_t mask, zero_point_mask;
  const int64_t zero_points_at, codes_at, block_bytes;
};

// Code i of a column.
uint32_t code_at(const std::byte* column, int64_t i, int bits, uint32_t mask) {
  const int64_t bit = i * bits;
  return static_cast<uint32_t>(column[bit / 8]) >> (bit % 8) & mask;
}

// Distributes four codes in sequence to the four bytes of a word.
uint32_t spread(uint32_t codes, int bits) {
  if (bits == 8) return codes;
  if (bits == 4) {
    codes = (codes | codes << 8) & 0x00ff00ff;
    return (codes | codes << 4) & 0x0f0f0f0f;
  }
  codes = (codes | codes << 12) & 0x000f000f;
  return (codes | codes << 6) & 0x03030303;
}

// The word of a micro-panel for 32 bits of a column.
uint32_t word_of(uint32_t column, int bits) {
  uint32_t word = 0;
  for (int i = 0; i < 8; i += bits) {
    const uint32_t four = bits == 8 ? column : column >> (4 * i) & ((1U << (4 * bits)) - 1);
    word |= spread(four, bits) << i;
  }
  return word;
}

// Packs one block of one column. `count`: its codes before K.
void pack_block(const NBitsSource& s, const Layout& l, int64_t column, int64_t block, int64_t count,
                int64_t lane, std::byte* to) {
  const NBits& f = s.format;
  const int64_t index = column * f.blocks(s.k) + block;
  const auto scale = static_cast<int64_t>(dtype_bytes(f.dtype));
  std::memcpy(to + lane * scale, s.scales + index * scale, static_cast<size_t>(scale));
  if (f.zero_points == NBits::ZeroPoints::kTyped) {
    std::memcpy(to + l.zero_points_at + lane * scale, s.zero_points + index * scale,
                static_cast<size_t>(scale));
  } else if (f.zero_points == NBits::ZeroPoints::kCodes) {
    const uint32_t code =
        code_at(s.zero_points + column * s.zero_point_row_bytes(), block, f.bits, l.mask);
    to[l.zero_point_byte(lane)] |= static_cast<std::byte>(code << l.zero_point_shift(lane));
  }
  const std::byte* from =
      s.codes + column * s.code_row_bytes() + block * f.block_size * f.bits / 8;
  std::byte* word = to + l.codes_at + lane * 4;
  for (int64_t left = count; left > 0; left -= l.word_codes, from += 4) {
    uint32_t codes;
    std::memcpy(&codes, from, sizeof(codes));
    codes = word_of(codes, f.bits) & l.first_codes(left);
    std::memcpy(word, &codes, sizeof(codes));
    word += NBits::kGroupBytes;
  }
}

float read_float(const std::byte* at, DType type) {
  if (type == DType::kFloat32) return *reinterpret_cast<const float*>(at);
  return type == DType::kFloat16 ? widen(*reinterpret_cast<const Float16*>(at))
                                 : widen(*reinterpret_cast<const BFloat16*>(at));
}

// Writes the floats of `count` steps of a block, with the eight columns of a step in sequence.
void widen_block(const Layout& l, const std::byte* block, int64_t count, float* to) {
  const NBits& f = l.format;
  const auto scale_bytes = static_cast<int64_t>(dtype_bytes(f.dtype));
  alignas(16) float scale[NBits::kColumns], zero_point[NBits::kColumns];
  for (int64_t lane = 0; lane < NBits::kColumns; ++lane) {
    scale[lane] = read_float(block + lane * scale_bytes, f.dtype);
    if (f.zero_points == NBits::ZeroPoints::kTyped) {
      zero_point[lane] = read_float(block + l.zero_points_at + lane * scale_bytes, f.dtype);
    } else if (f.zero_points == NBits::ZeroPoints::kCodes) {
      zero_point[lane] = static_cast<float>(static_cast<uint32_t>(block[l.zero_point_byte(lane)]) >>
                                                l.zero_point_shift(lane) &
                                            l.zero_point_mask);
    } else {
      zero_point[lane] = static_cast<float>(f.absent_zero_point());
    }
  }
  const v128_t scales[] = {wasm_v128_load(scale), wasm_v128_load(scale + 4)},
               zero_points[] = {wasm_v128_load(zero_point), wasm_v128_load(zero_point + 4)};
  const v128_t mask = wasm_i32x4_splat(static_cast<int32_t>(l.mask));
  const std::byte* codes = block + l.codes_at;
  for (int64_t first = 0; first < count; first += l.word_codes, codes += NBits::kGroupBytes) {
    const v128_t words[] = {wasm_v128_load(codes), wasm_v128_load(codes + 16)};
    const int64_t end = std::min(l.word_codes, count - first);
    for (int64_t i = 0; i < end; ++i) {
      const auto shift = static_cast<uint32_t>(8 * (i % 4) + l.shift_of(i));
      for (int v = 0; v < 2; ++v, to += 4) {
        const v128_t code =
            wasm_f32x4_convert_i32x4(wasm_v128_and(wasm_u32x4_shr(words[v], shift), mask));
        wasm_v128_store(to, wasm_f32x4_mul(wasm_f32x4_sub(code, zero_points[v]), scales[v]));
      }
    }
  }
}

// Calls `block_at(panel, block)` for the address of a block, and packs its floats.
template <typename BlockAt>
void unpack_blocks(const NBits& f, int64_t row, int64_t depth, int64_t cols,
                   const PanelLayout& layout, void* panels, const BlockAt& block_at) {
  const Layout l(f);
  alignas(16) float steps[kBlockSizeMax * NBits::kColumns];
  auto* const to = static_cast<std::byte*>(panels);
  const int64_t width = layout.width, step_bytes = width * int64_t{sizeof(float)};
  const auto panel = static_cast<int64_t>(panel_bytes(layout, depth));
  for (int64_t col = 0; col < cols; col += NBits::kColumns) {
    for (int64_t part = 0; part < NBits::kColumns; part += width) {
      std::byte* const header = to + (col + part) / width * panel;
      if (col + part < cols)
        std::memset(header, 0, static_cast<size_t>(layout.header) * sizeof(float));
    }
    for (int64_t d = 0; d < depth; d += f.block_size) {
      const int64_t count = std::min<int64_t>(f.block_size, depth - d);
      widen_block(l, block_at(col / NBits::kColumns, (row + d) / f.block_size), count, steps);
      for (int64_t part = 0; part < NBits::kColumns && col + part < cols; part += width) {
        std::byte* out = to + (col + part) / width * panel +
                         layout.header * int64_t{sizeof(float)} + d * step_bytes;
        const float* from = steps + part;
        for (int64_t i = 0; i < count; ++i, from += NBits::kColumns, out += step_bytes)
          std::memcpy(out, from, static_cast<size_t>(step_bytes));
      }
    }
  }
}

// Quantizes `count` floats to a block of a row.
void quantize_block(const float* a, int64_t count, std::byte* to, int64_t block_size) {
  const v128_t zero = wasm_i32x4_const(0, 0, 0, 0);
  v128_t largest = zero;
  for (int64_t i = 0; i < count; i += 4)
    largest = wasm_f32x4_max(largest, wasm_f32x4_abs(wasm_v128_load(a + i)));
  largest = wasm_f32x4_max(largest, wasm_i32x4_shuffle(largest, largest, 2, 3, 0, 1));
  largest = wasm_f32x4_max(largest, wasm_i32x4_shuffle(largest, largest, 1, 0, 3, 2));
  const float scale = wasm_f32x4_extract_lane(largest, 0) / 127;
  std::memcpy(to, &scale, sizeof(scale));
  auto* const q = reinterpret_cast<int8_t*>(to + NBits::kRowHeader);
  std::memset(q, 0, static_cast<size_t>(block_size));
  v128_t sums = zero;
  if (scale != 0) {
    const v128_t scales = wasm_f32x4_splat(scale), least = wasm_i8x16_splat(-127);
    const auto rounded = [&](int64_t i) {
      return wasm_i32x4_trunc_sat_f32x4(
          wasm_f32x4_nearest(wasm_f32x4_div(wasm_v128_load(a + i), scales)));
    };
    for (int64_t i = 0; i < count; i += 16) {
      const v128_t low = wasm_i16x8_narrow_i32x4(rounded(i), rounded(i + 4)),
                   high = wasm_i16x8_narrow_i32x4(rounded(i + 8), rounded(i + 12));
      const v128_t bytes = wasm_i8x16_max(wasm_i8x16_narrow_i16x8(low, high), least);
      wasm_v128_store(q + i, bytes);
      sums = wasm_i32x4_add(
          sums, wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extadd_pairwise_i8x16(bytes)));
    }
  }
  const int32_t sum = wasm_i32x4_extract_lane(sums, 0) + wasm_i32x4_extract_lane(sums, 1) +
                      wasm_i32x4_extract_lane(sums, 2) + wasm_i32x4_extract_lane(sums, 3);
  std::memcpy(to + sizeof(float), &sum, sizeof(sum));
}

}  // namespace

void pack_codes(const NBitsSource& s, int64_t row, int64_t depth, int64_t col, int64_t cols,
                std::byte* panels) {
  const NBits& f = s.format;
  const Layout l(f);
  std::memset(panels, 0, static_cast<size_t>(f.packed_bytes(cols, depth)));
  for (int64_t c = 0; c < cols; c += NBits::kColumns) {
    const int64_t lanes = std::min(NBits::kColumns, cols - c);
    for (int64_t d = 0; d < depth; d += f.block_size, panels += l.block_bytes) {
      const int64_t count = std::min<int64_t>(f.block_size, depth - d);
      for (int64_t lane = 0; lane < lanes; ++lane)
        pack_block(s, l, s.col + col + c + lane, (s.row + row + d) / f.block_size, count, lane,
                   panels);
    }
  }
}

void unpack_codes(const PrepackedB& weights, int64_t row, int64_t depth, int64_t col, int64_t cols,
                  const PanelLayout& layout, void* panels) {
  const NBits& f = weights.nbits;
  const std::byte* const first = weights.block(0, col);
  const auto panel = static_cast<int64_t>(weights.panel_stride());
  unpack_blocks(f, row, depth, cols, layout, panels, [&](int64_t p, int64_t block) {
    return first + p * panel + block * f.block_bytes();
  });
}

void unpack_codes(const NBitsSource& s, int64_t row, int64_t depth, int64_t col, int64_t cols,
                  const PanelLayout& layout, void* panels) {
  alignas(16) std::byte packed[(sizeof(float) * 2 + kBlockSizeMax) * NBits::kColumns];
  unpack_blocks(s.format, row, depth, cols, layout, panels, [&](int64_t p, int64_t block) {
    const int64_t begin = block * s.format.block_size, first = p * NBits::kColumns;
    pack_codes(s, begin, std::min<int64_t>(s.format.block_size, row + depth - begin), col + first,
               std::min(NBits::kColumns, cols - first), packed);
    return packed;
  });
}

void quantize_rows(const PackSource& a, const NBits& f, std::byte* rows) {
  alignas(16) float block[kBlockSizeMax];
  for (int64_t lane = 0; lane < a.lanes; ++lane) {
    for (int64_t d = 0; d < a.depth; d += f.block_size) {
      const int64_t count = std::min<int64_t>(f.block_size, a.depth - d),
                    from = (lane * a.lane_stride + d * a.depth_stride) *
                           static_cast<int64_t>(dtype_bytes(a.dtype));
      std::fill(block + count, block + f.block_size, 0.0F);
      pack({a.data + from, a.dtype, 1, count, a.lane_stride, a.depth_stride}, kRowsOf<float>,
           block);
      quantize_block(block, count, rows, f.block_size);
      rows += NBits::kRowHeader + f.block_size;
    }
  }
}

bool is_padded(const std::byte* panels, const NBits& f, int64_t k, int64_t n) {
  const Layout l(f);
  const auto scale = static_cast<int64_t>(dtype_bytes(f.dtype));
  const auto are_zeros = [&](int64_t at, int64_t bytes) {
    return std::all_of(panels + at, panels + at + bytes,
                       [](std::byte b) { return b == std::byte{0}; });
  };
  const auto has_zero_bits = [&](int64_t at, uint32_t bits) {
    return (static_cast<uint32_t>(panels[at]) & bits) == 0;
  };
  // Zero points of two bits have four.
  const uint32_t half = f.bits == 2 ? 0xcc : 0;
  const std::byte* const end = panels + f.packed_bytes(n, k);
  for (int64_t col = 0; col < n; col += NBits::kColumns) {
    for (int64_t row = 0; row < k; row += f.block_size, panels += l.block_bytes) {
      for (int64_t lane = 0; lane < NBits::kColumns; ++lane) {
        const bool is_column = col + lane < n;
        if (!is_column && !are_zeros(lane * scale, scale)) return false;
        if (f.zero_points == NBits::ZeroPoints::kTyped && !is_column &&
            !are_zeros(l.zero_points_at + lane * scale, scale))
          return false;
        if (f.zero_points == NBits::ZeroPoints::kCodes) {
          const uint32_t unused = is_column ? 0 : l.zero_point_mask << l.zero_point_shift(lane);
          if (!has_zero_bits(l.zero_point_byte(lane), unused | half)) return false;
        }
        for (int64_t i = is_column ? std::min<int64_t>(f.block_size, k - row) : 0; i < f.block_size;
             ++i) {
          if (!has_zero_bits(l.byte_of(i, lane), l.mask << l.shift_of(i))) return false;
        }
      }
    }
  }
  return are_zeros(0, end - panels);
}

}  // namespace wgemm
