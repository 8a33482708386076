#include "pack/nbits.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <cstring>

#include "kernels/loops/nbits.h"

namespace wgemm {
namespace {

// Code i of a column.
uint32_t code_at(const std::byte* column, int64_t i, int bits) {
  const int64_t bit = i * bits;
  return static_cast<uint32_t>(column[bit / 8]) >> (bit % 8) & ((1U << bits) - 1);
}

uint32_t load32(const std::byte* from) {
  uint32_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Distributes the four nibbles of the lower half of a word to its bytes.
uint32_t spread(uint32_t x) {
  x = (x | x << 8) & 0x00ff00ff;
  return (x | x << 4) & 0x0f0f0f0f;
}

// Eight nibbles in sequence, as a word of a micro-panel has them.
uint32_t word_of(uint32_t nibbles) { return spread(nibbles & 0xffff) | spread(nibbles >> 16) << 4; }

// Distributes eight codes of 2 bits to nibbles.
uint32_t widen_to_nibbles(uint32_t codes) {
  codes = (codes | codes << 8) & 0x00ff00ff;
  codes = (codes | codes << 4) & 0x0f0f0f0f;
  return (codes | codes << 2) & 0x33333333;
}

// Clears the nibbles of a word from step `count` on.
uint32_t first_steps(uint32_t word, int64_t count) {
  for (int64_t step = std::max<int64_t>(count, 0); step < NBits::kGroupSteps; ++step)
    word &= ~(0xfU << (step % 4 * 8 + step / 4 * 4));
  return word;
}

// Packs one block of one column. `count`: its codes before K.
void pack_block(const NBitsSource& s, int64_t column, int64_t block, int64_t count, int64_t lane,
                std::byte* to) {
  const NBits& f = s.format;
  const int64_t index = column * f.blocks(s.k) + block, zero_points_at = f.scale_bytes();
  const auto scale = static_cast<int64_t>(dtype_bytes(f.dtype));
  std::memcpy(to + lane * scale, s.scales + index * scale, static_cast<size_t>(scale));
  if (f.zero_points == NBits::ZeroPoints::kTyped) {
    std::memcpy(to + zero_points_at + lane * scale, s.zero_points + index * scale,
                static_cast<size_t>(scale));
  } else if (f.zero_points == NBits::ZeroPoints::kCodes) {
    const uint32_t code = code_at(s.zero_points + column * s.zero_point_row_bytes(), block, f.bits);
    to[zero_points_at + (f.bits == 8 ? lane : lane % 4)] |=
        static_cast<std::byte>(f.bits == 8 ? code : code << (lane / 4 * 4));
  }
  const std::byte* from = s.codes + column * s.code_row_bytes() + block * f.block_size * f.bits / 8;
  std::byte* word = to + f.codes_at() + lane * 4;
  const auto put = [&](uint32_t nibbles) {
    std::memcpy(word, &nibbles, sizeof(nibbles));
    word += NBits::kGroupBytes;
  };
  // A step of the loop reads the codes of one group, or of two if they have 8 bits.
  const int64_t steps = f.bits == 2 ? 2 * NBits::kGroupSteps : NBits::kGroupSteps;
  for (int64_t left = count; left > 0; left -= steps, from += steps * f.bits / 8) {
    const uint32_t codes = load32(from);
    if (f.bits == 4) {
      put(first_steps(word_of(codes), left));
    } else if (f.bits == 2) {
      const uint32_t first = first_steps(word_of(widen_to_nibbles(codes & 0xffff)), left),
                     second = first_steps(word_of(widen_to_nibbles(codes >> 16)),
                                          left - NBits::kGroupSteps);
      put(first | second << 2);
    } else {
      const uint32_t next = load32(from + 4);
      put(first_steps((codes & 0x0f0f0f0f) | (next & 0x0f0f0f0f) << 4, left));
      put(first_steps((codes >> 4 & 0x0f0f0f0f) | (next & 0xf0f0f0f0), left));
    }
  }
}

// Writes the floats of `count` steps of a block, with the eight columns of a step in sequence.
void widen_block(const NBits& f, const std::byte* block, int64_t count, float* to) {
  const v128_t low_half = wasm_i8x16_splat(0xf),
               used = wasm_i32x4_splat(f.bits == 2 ? 0x33333333 : -1);
  const int64_t bytes = NBits::kGroupBytes * (f.stored_bits() == 8 ? 2 : 1);  // of eight steps
  const std::byte* codes = block + f.codes_at();
  NBitsScales scales;
  for (int64_t first = 0; first < count; first += NBits::kGroupSteps) {
    if (first % f.scaled_steps() == 0) load_scales(block, f, first / f.scaled_steps(), &scales);
    const auto half = static_cast<uint32_t>(f.bits == 2 ? first / NBits::kGroupSteps % 2 * 2 : 0);
    const float* const end = to + std::min(NBits::kGroupSteps, count - first) * NBits::kColumns;
    alignas(16) float steps[NBits::kGroupSteps * NBits::kColumns];
    float* const out = count - first < NBits::kGroupSteps ? steps : to;
    for (int64_t v = 0; v < 2; ++v) {
      // The codes of the first and of the last four steps, in bytes.
      v128_t four[2] = {wasm_v128_load(codes + 16 * v),
                        wasm_v128_load(codes + bytes - NBits::kGroupBytes + 16 * v)};
      if (!f.has_bytes()) {
        const v128_t word = wasm_v128_and(wasm_u32x4_shr(four[0], half), used), upper = four[1];
        four[0] = wasm_v128_and(word, low_half);
        four[1] = wasm_v128_and(wasm_u16x8_shr(word, 4), low_half);
        if (f.bits == 8) {
          four[0] = wasm_v128_or(four[0], wasm_i16x8_shl(wasm_v128_and(upper, low_half), 4));
          four[1] = wasm_v128_or(four[1], wasm_v128_andnot(upper, low_half));
        }
      }
      unroll_inline(std::make_index_sequence<NBits::kGroupSteps>{}, [&](auto step) __attribute__((
                                                                        always_inline)) {
        constexpr uint32_t kStep = step;
        const v128_t code = wasm_u32x4_shr(wasm_i32x4_shl(four[kStep / 4], 24 - kStep % 4 * 8), 24);
        const v128_t number = wasm_f32x4_sub(wasm_f32x4_convert_i32x4(code), scales.zero_point[v]);
        wasm_v128_store(out + kStep * NBits::kColumns + 4 * v,
                        wasm_f32x4_sub(wasm_f32x4_mul(number, scales.scale[v]), scales.offset[v]));
      });
    }
    if (out != to) std::copy_n(steps, end - to, to);
    to += NBits::kGroupSteps * NBits::kColumns;
    if (f.bits != 2 || half != 0) codes += bytes;
  }
}

// Calls `block_at(panel, block)` for the address of a block, and packs its floats. All kernels of
// float32 have micro-panels of eight columns.
template <typename BlockAt>
void widen_blocks(const NBits& f, int64_t row, int64_t depth, int64_t cols,
                  const PanelLayout& layout, void* panels, const BlockAt& block_at) {
  auto* to = static_cast<float*>(panels);
  for (int64_t col = 0; col < cols; col += NBits::kColumns) {
    to = std::fill_n(to, layout.header, 0.0F);
    for (int64_t d = 0; d < depth; d += f.block_size) {
      const int64_t count = std::min<int64_t>(f.block_size, depth - d);
      widen_block(f, block_at(col / NBits::kColumns, (row + d) / f.block_size), count, to);
      to += count * NBits::kColumns;
    }
  }
}

// Quantizes a block of a row.
[[gnu::noinline]] void quantize_block(const float* a, const NBits& f, std::byte* to) {
  const int64_t size = f.block_size;
  const v128_t zero = wasm_i32x4_const(0, 0, 0, 0);
  v128_t largest = zero;
  for (int64_t i = 0; i < size; i += 4)
    largest = wasm_f32x4_max(largest, wasm_f32x4_abs(wasm_v128_load(a + i)));
  largest = wasm_f32x4_max(largest, wasm_i32x4_shuffle(largest, largest, 2, 3, 0, 1));
  largest = wasm_f32x4_max(largest, wasm_i32x4_shuffle(largest, largest, 1, 0, 3, 2));
  const float scale = wasm_f32x4_extract_lane(largest, 0) / 127;
  std::memcpy(to, &scale, sizeof(scale));
  auto* const q = reinterpret_cast<int8_t*>(to + f.row_header());
  v128_t sums = zero;
  if (scale == 0) {
    std::memset(q, 0, static_cast<size_t>(size));
  } else {
    const v128_t scales = wasm_f32x4_splat(scale), least = wasm_i8x16_splat(-127);
    const auto rounded = [&](int64_t i) {
      return wasm_i32x4_trunc_sat_f32x4(
          wasm_f32x4_nearest(wasm_f32x4_div(wasm_v128_load(a + i), scales)));
    };
    for (int64_t i = 0; i < size; i += 16) {
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
  to += NBits::kRowHeader;
  for (int64_t i = 0; i < f.sub_blocks() * f.sub_size; to += sizeof(int16_t)) {
    int16_t sum_of_sub = 0;
    for (const int64_t end = i + f.sub_size; i < end; ++i)
      sum_of_sub = static_cast<int16_t>(sum_of_sub + q[i]);
    std::memcpy(to, &sum_of_sub, sizeof(sum_of_sub));
  }
}

}  // namespace

void pack_codes(const NBitsSource& s, int64_t row, int64_t depth, int64_t col, int64_t cols,
                std::byte* panels) {
  const NBits& f = s.format;
  std::memset(panels, 0, static_cast<size_t>(f.packed_bytes(cols, depth)));
  for (int64_t c = 0; c < cols; c += NBits::kColumns) {
    const int64_t lanes = std::min(NBits::kColumns, cols - c);
    for (int64_t d = 0; d < depth; d += f.block_size, panels += f.block_bytes()) {
      const int64_t count = std::min<int64_t>(f.block_size, depth - d);
      for (int64_t lane = 0; lane < lanes; ++lane)
        pack_block(s, s.col + col + c + lane, (s.row + row + d) / f.block_size, count, lane,
                   panels);
    }
  }
}

void widen_codes(const PrepackedB& weights, int64_t row, int64_t depth, int64_t col, int64_t cols,
                 const PanelLayout& layout, void* panels) {
  const NBits& f = weights.nbits;
  const std::byte* const first = weights.block(0, col);
  const auto panel = static_cast<int64_t>(weights.panel_stride());
  widen_blocks(f, row, depth, cols, layout, panels, [&](int64_t p, int64_t block) {
    return first + p * panel + block * f.block_bytes();
  });
}

void widen_codes(const NBitsSource& s, int64_t row, int64_t depth, int64_t col, int64_t cols,
                 const PanelLayout& layout, void* panels) {
  alignas(16) std::byte packed[(sizeof(float) * 2 + NBits::kBlockSizeMax) * NBits::kColumns];
  widen_blocks(s.format, row, depth, cols, layout, panels, [&](int64_t p, int64_t block) {
    const int64_t begin = block * s.format.block_size, first = p * NBits::kColumns;
    pack_codes(s, begin, std::min<int64_t>(s.format.block_size, row + depth - begin), col + first,
               std::min(NBits::kColumns, cols - first), packed);
    return packed;
  });
}

void quantize_row(const PackSource& a, const NBits& f, std::byte* to) {
  // Other types are widened, and the last block is padded, in a buffer of some blocks.
  constexpr int64_t kBuffer = 4 * NBits::kBlockSizeMax;
  alignas(16) float buffer[kBuffer];
  const bool is_float = a.dtype == DType::kFloat32 && a.depth_stride == 1;
  const auto* from = reinterpret_cast<const float*>(a.data);
  const int64_t whole = is_float ? a.depth - a.depth % f.block_size : 0;
  const auto quantize = [&](const float* data, int64_t count) {
    for (int64_t i = 0; i < count; i += f.block_size, to += f.row_header() + f.block_size)
      quantize_block(data + i, f, to);
  };
  quantize(from, whole);
  for (int64_t d = whole; d < a.depth; d += kBuffer) {
    const int64_t count = std::min(kBuffer, a.depth - d);
    const int64_t padded = (count + f.block_size - 1) / f.block_size * f.block_size;
    std::fill(buffer + count, buffer + padded, 0.0F);
    const int64_t place = d * a.depth_stride * static_cast<int64_t>(dtype_bytes(a.dtype));
    pack({a.data + place, a.dtype, 1, count, 0, a.depth_stride}, kRowsOf<float>, buffer);
    quantize(buffer, padded);
  }
}

bool is_padded(const std::byte* panels, const NBits& f, int64_t k, int64_t n) {
  const auto scale = static_cast<int64_t>(dtype_bytes(f.dtype));
  const auto are_zeros = [&](int64_t at, int64_t bytes) {
    return std::all_of(panels + at, panels + at + bytes,
                       [](std::byte b) { return b == std::byte{0}; });
  };
  const std::byte* const end = panels + f.packed_bytes(n, k);
  for (int64_t col = 0; col < n; col += NBits::kColumns) {
    for (int64_t row = 0; row < k; row += f.block_size, panels += f.block_bytes()) {
      for (int64_t lane = 0; lane < NBits::kColumns; ++lane) {
        const bool is_column = col + lane < n;
        if (!is_column && !are_zeros(lane * scale, scale)) return false;
        if (f.zero_points == NBits::ZeroPoints::kTyped && !is_column &&
            !are_zeros(f.scale_bytes() + lane * scale, scale))
          return false;
        if (f.zero_points == NBits::ZeroPoints::kCodes &&
            f.zero_point(panels, lane) >= (is_column ? 1U << f.bits : 1U))
          return false;
        for (int64_t i = is_column ? std::min<int64_t>(f.block_size, k - row) : 0; i < f.block_size;
             ++i) {
          if (f.code(panels, i, lane) != 0) return false;
        }
      }
    }
  }
  return are_zeros(0, end - panels);
}

}  // namespace wgemm
