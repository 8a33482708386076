// Products with weights of MatMulNBits, read as they are stored: problem/nbits.h has the layout of
// micro-panels. Each block of K has sums of its own. They are scaled at its end, and then added to
// the accumulators.
//
// GEMV takes several micro-panels at once, as several_panels.h explains.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/convert.h"
#include "kernels/loops/several_panels.h"

namespace wgemm {

// A mask of four bits, in memory that the compiler must assume to change. If it knew that codes are
// not negative, it would convert them as unsigned, for which x86 has no instruction.
extern int32_t nbits_nibble;

// Loads the eight scales of a block, or its zero points of the same type.
[[gnu::noinline]] inline void widen_eight(const std::byte* from, DType type, v128_t* to) {
  v128_t wide[2];
  if (type == DType::kFloat16) {
    HalfSimd<Float16>{}.widen(reinterpret_cast<const Float16*>(from), wide);
  } else {
    HalfSimd<BFloat16>{}.widen(reinterpret_cast<const BFloat16*>(from), wide);
  }
  to[0] = wide[0];
  to[1] = wide[1];
}
inline void load_eight(const std::byte* from, DType type, v128_t* to) {
  if (type != DType::kFloat32) return widen_eight(from, type, to);
  to[0] = wasm_v128_load(from);
  to[1] = wasm_v128_load(from + 16);
}

// Loads eight float16 that are finite. Scales of blocks are often subnormal, and Intel's processors
// take more than 100 cycles to multiply a subnormal number. So this multiplies none.
inline void load_finite(const std::byte* from, v128_t* to) {
  const v128_t halves = wasm_v128_load(from), zero = wasm_i32x4_const(0, 0, 0, 0);
  to[0] = wasm_i16x8_shuffle(zero, halves, 0, 8, 1, 9, 2, 10, 3, 11);
  to[1] = wasm_i16x8_shuffle(zero, halves, 4, 12, 5, 13, 6, 14, 7, 15);
  // A normal number is twice itself, minus itself. A subnormal number is itself plus 2^-14, minus
  // 2^-14, whose exponent is 113. The larger of the two is subtracted.
  const v128_t exponent = wasm_i32x4_splat(113 << 23);
  for (v128_t* x = to; x != to + 2; ++x) {
    const v128_t magnitude = wasm_v128_and(wasm_u32x4_shr(*x, 3), wasm_i32x4_splat(0x0fffe000)),
                 sign = wasm_v128_and(*x, wasm_i32x4_splat(INT32_MIN)),
                 once = wasm_i32x4_add(magnitude, wasm_i32x4_splat(112 << 23));
    *x = wasm_v128_or(
        wasm_f32x4_sub(wasm_i32x4_add(magnitude, exponent), wasm_i32x4_max(once, exponent)), sign);
  }
}

// Loads the zero points of a block, of the kind kCodes, as int32.
inline void load_zero_points(const std::byte* from, int bits, v128_t* to) {
  if (bits == 8) {
    const v128_t wide = wasm_u16x8_load8x8(from);
    to[0] = wasm_u32x4_extend_low_u16x8(wide);
    to[1] = wasm_u32x4_extend_high_u16x8(wide);
  } else {
    const v128_t half = wasm_i32x4_splat(0xf), bytes = wasm_v128_load32_zero(from);
    const v128_t wide = wasm_u32x4_extend_low_u16x8(wasm_u16x8_extend_low_u8x16(bytes));
    to[0] = wasm_v128_and(wide, half);
    to[1] = wasm_u32x4_shr(wide, 4);
  }
}

// The groups of nibbles of the micro-panels of a block. Groups of 8-bit codes are passed twice: the
// upper halves first, whose sums count sixteenfold.
template <size_t NP>
struct NBitsGroups {
  NBitsGroups(const NBits& f, size_t panel_stride, int size_of_block)
      : format(f), stride(panel_stride), size(static_cast<size_t>(size_of_block)) {}

  // Calls `step(words)` for each eight steps of K, and `raise()` between two passes.
  [[gnu::always_inline]] void for_each(const std::byte* codes, auto&& step, auto&& raise) const {
    const size_t groups = size / NBits::kGroupSteps;
    const size_t bytes = format.bits == 8 ? 2 * NBits::kGroupBytes : NBits::kGroupBytes;
    const std::byte* from = format.bits == 8 ? codes + NBits::kGroupBytes : codes;
    for (;;) {
      uint32_t shift = 0;
#pragma clang loop unroll(disable)
      for (size_t group = 0; group < groups; ++group) {
        v128_t words[2 * NP];
        unroll(std::make_index_sequence<NP>{}, [&](auto p) {
          words[2 * p] = wasm_v128_load(from + p * stride);
          words[2 * p + 1] = wasm_v128_load(from + p * stride + 16);
        });
        if (format.bits == 2) {
          const v128_t mask = wasm_i32x4_splat(0x33333333);
          unroll(std::make_index_sequence<2 * NP>{},
                 [&](auto v) { words[v] = wasm_v128_and(wasm_u32x4_shr(words[v], shift), mask); });
          shift ^= 2;
          from += shift == 0 ? bytes : 0;
        } else {
          from += bytes;
        }
        step(words);
      }
      if (format.bits != 8 || from < codes + groups * bytes + NBits::kGroupBytes) break;
      raise();
      from = codes;
    }
  }

  const NBits& format;
  const size_t stride;  // bytes from micro-panel to micro-panel
  const size_t size;    // steps of a block, or of a sub-block
};

// A by int8 with scales, as quantize_row() makes it. The sums of a block are int32. Ops:
//   load(const std::byte*)  four elements of A, in each lane
//   multiply_add(sum, a, codes)
template <typename Ops, size_t MR, size_t NP>
void quantized_nbits_tile(const Strip& s, const std::byte* panel, TileColumns t) {
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto panels = std::make_index_sequence<NP>{};
  constexpr auto halves = std::make_index_sequence<2>{};
  constexpr auto vectors = std::make_index_sequence<2 * NP>{};
  const NBits& f = *s.nbits;
  const NBitsGroups<NP> groups(f, t.panel_stride_cols / NBits::kColumns * s.b_stride, f.block_size);
  const auto codes_at = static_cast<size_t>(f.codes_at()),
             block_bytes = static_cast<size_t>(f.block_bytes()),
             row_bytes = static_cast<size_t>(NBits::kRowHeader + f.block_size);
  // An absent zero point is subtracted once for all columns. In two passes: in the last one.
  const v128_t absent = wasm_i32x4_splat(
                   f.zero_points == NBits::ZeroPoints::kAbsent ? -f.absent_zero_point() : 0),
               is_one_pass = wasm_i32x4_splat(f.bits == 8 ? 0 : -1);
  with_tile<float, MR, 2 * NP, true, NP>(s, t, [&](auto& acc) {
    RowsOfA<std::byte, MR> a(s);
    const std::byte* b = panel;
    for (size_t k = 0; k < s.k; k += static_cast<size_t>(f.block_size), b += block_bytes) {
      v128_t sum[MR][2 * NP], start[MR];
      const std::byte* q[MR];
      unroll(rows, [&](auto i) {
        q[i] = a.row[i] + NBits::kRowHeader;
        start[i] = wasm_i32x4_mul(wasm_v128_load32_splat(a.row[i] + sizeof(float)), absent);
        const v128_t first = wasm_v128_and(start[i], is_one_pass);
        unroll(vectors, [&](auto v) { sum[i][v] = first; });
      });
      groups.for_each(
          b + codes_at,
          [&](const v128_t(&words)[2 * NP]) __attribute__((always_inline)) {
            const v128_t nibble = wasm_i8x16_splat(15);
            unroll(vectors, [&](auto v) {
              const v128_t low = wasm_v128_and(words[v], nibble),
                           high = wasm_v128_and(wasm_u16x8_shr(words[v], 4), nibble);
              unroll(rows, [&](auto i) {
                sum[i][v] = Ops::multiply_add(sum[i][v], Ops::load(q[i]), low);
                sum[i][v] = Ops::multiply_add(sum[i][v], Ops::load(q[i] + 4), high);
              });
            });
            unroll(rows, [&](auto i) { q[i] += 8; });
          },
          [&]() __attribute__((always_inline)) {
            unroll(rows, [&](auto i) {
              q[i] = a.row[i] + NBits::kRowHeader;
              unroll(vectors, [&](auto v) {
                sum[i][v] = wasm_i32x4_add(wasm_i32x4_shl(sum[i][v], 4), start[i]);
              });
            });
          });
      unroll(panels, [&](auto p) {
        const std::byte* const header = b + p * groups.stride;
        v128_t scale[2];
        if (f.format != BlockFormat::kNone) {
          load_finite(header, scale);
        } else {
          load_eight(header, f.dtype, scale);
        }
        if (f.zero_points == NBits::ZeroPoints::kCodes) {
          v128_t zero_point[2];
          load_zero_points(header + f.scale_bytes(), f.bits, zero_point);
          unroll(rows, [&](auto i) {
            const v128_t sum_of_a = wasm_v128_load32_splat(a.row[i] + sizeof(float));
            unroll(halves, [&](auto v) {
              v128_t& dot = sum[i][2 * p + v];
              dot = wasm_i32x4_sub(dot, wasm_i32x4_mul(sum_of_a, zero_point[v]));
            });
          });
        }
        unroll(rows, [&](auto i) {
          const v128_t of_a = wasm_v128_load32_splat(a.row[i]);
          unroll(halves, [&](auto v) {
            v128_t& x = acc[i][2 * p + v];
            x = wasm_f32x4_add(x, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(sum[i][2 * p + v]),
                                                 wasm_f32x4_mul(of_a, scale[v])));
          });
        });
      });
      unroll(rows, [&](auto i) { a.row[i] += row_bytes; });
    }
  });
}

// A row of float32: the sum of each block, or of each sub-block if there are any. If K ends inside
// the last block, also that block, padded with zeros.
struct RowOfBlocks {
  explicit RowOfBlocks(const Strip& s) {
    const auto size = static_cast<size_t>(s.nbits->scaled_steps());
    const auto* a = static_cast<const float*>(s.a);
    end = s.k / size * size;
    if (s.k != end) {
      std::memset(last, 0, sizeof(last));
      std::memcpy(last, a + end, (s.k - end) * sizeof(float));
    }
    for (size_t k = 0; k < s.k; k += size, a += size) {
      const float* const block = k == end ? last : a;
      v128_t x = wasm_i32x4_const(0, 0, 0, 0);
      for (size_t i = 0; i < size; i += 4) x = wasm_f32x4_add(x, wasm_v128_load(block + i));
      x = wasm_f32x4_add(x, wasm_i32x4_shuffle(x, x, 2, 3, 0, 1));
      x = wasm_f32x4_add(x, wasm_i32x4_shuffle(x, x, 1, 0, 3, 2));
      sum[k / size] = wasm_f32x4_extract_lane(x, 0);
    }
  }
  size_t end;  // of whole blocks, in elements
  float sum[NBits::kStepsMax / NBits::kBlockSizeMin];
  float last[NBits::kBlockSizeMax];
};

// The numbers that turn codes into weights: W = (code - zero point) * scale - offset. Each has
// eight columns.
struct NBitsScales {
  v128_t scale[2], zero_point[2], offset[2];
};

// Loads the scales of a block, or of a sub-block.
[[gnu::noinline]] inline void load_scales(const std::byte* block, const NBits& f, int64_t sub,
                                          NBitsScales* to) {
  const std::byte* const zero_points = block + f.scale_bytes();
  load_eight(block, f.dtype, to->scale);
  to->offset[0] = to->offset[1] = wasm_i32x4_const(0, 0, 0, 0);
  if (f.zero_points == NBits::ZeroPoints::kTyped) {
    load_eight(zero_points, f.dtype, to->zero_point);
  } else if (f.zero_points == NBits::ZeroPoints::kCodes) {
    load_zero_points(zero_points, f.bits, to->zero_point);
    for (v128_t& x : to->zero_point) x = wasm_f32x4_convert_i32x4(x);
  } else {
    to->zero_point[0] = to->zero_point[1] =
        wasm_f32x4_splat(f.has_minima() ? 0 : static_cast<float>(f.absent_zero_point()));
  }
  if (f.has_minima()) load_eight(zero_points, f.dtype, to->offset);
  if (f.sub_size == 0) return;
  const std::byte *const scales = block + f.sub_scales_at() + sub * NBits::kColumns,
                         *const minima =
                             block + f.minima_at() + sub / 2 * 2 * NBits::kColumns + sub % 2;
  float scale[NBits::kColumns], minimum[NBits::kColumns];
  for (int64_t i = 0; i < NBits::kColumns; ++i) {
    scale[i] = static_cast<float>(static_cast<int8_t>(scales[i]));
    minimum[i] = f.has_minima() ? static_cast<float>(static_cast<uint8_t>(minima[2 * i])) : 0;
  }
  for (int v = 0; v < 2; ++v) {
    to->scale[v] = wasm_f32x4_mul(to->scale[v], wasm_v128_load(scale + 4 * v));
    to->offset[v] = wasm_f32x4_mul(to->offset[v], wasm_v128_load(minimum + 4 * v));
  }
}

// Adds the product of a row of A and a block or sub-block of a micro-panel to the accumulators of
// eight columns, step by step. For sums that overflow, and for infinities and NaN. `count`: its
// steps before K, since a zero of padding times an infinity is NaN.
[[gnu::noinline]] inline void add_block(const NBits& f, const std::byte* block, int64_t sub,
                                        const float* a, size_t count, v128_t* acc) {
  NBitsScales scales;
  load_scales(block, f, sub, &scales);
  const int64_t first = sub * f.sub_size;
  for (size_t i = 0; i < count; ++i) {
    float code[NBits::kColumns];
    for (int64_t column = 0; column < NBits::kColumns; ++column)
      code[column] = static_cast<float>(
          static_cast<int32_t>(f.code(block, first + static_cast<int64_t>(i), column)));
    for (int v = 0; v < 2; ++v) {
      const v128_t number = wasm_f32x4_sub(
          wasm_f32x4_mul(wasm_f32x4_sub(wasm_v128_load(code + 4 * v), scales.zero_point[v]),
                         scales.scale[v]),
          scales.offset[v]);
      acc[v] = wasm_f32x4_add(acc[v], wasm_f32x4_mul(wasm_v128_load32_splat(a + i), number));
    }
  }
}

// A row of A by float32. The sum of A in a block, times the zero point, is subtracted from the sum
// with codes. Steps in the lower and in the upper halves of bytes have sums of their own, so that
// more of them overlap.
template <typename Ops>
void float_nbits_tile(const Strip& s, const std::byte* b, TileColumns t, const RowOfBlocks& row) {
  constexpr auto halves = std::make_index_sequence<2>{};
  const NBits& f = *s.nbits;
  const NBitsGroups<1> groups(f, 0, f.scaled_steps());
  const auto codes_at = static_cast<size_t>(f.codes_at()),
             block_bytes = static_cast<size_t>(f.block_bytes());
  const size_t size = groups.size;
  const bool is_blocks = f.needs_blocks_loop();
  const v128_t nibble = wasm_v128_load32_splat(&nbits_nibble), none = wasm_i32x4_const(0, 0, 0, 0),
               absent = wasm_f32x4_splat(static_cast<float>(f.absent_zero_point()));
  with_tile<float, 1, 2, true>(s, t, [&](auto& acc) __attribute__((always_inline)) {
    const auto* a = static_cast<const float*>(s.a);
    const float* sum_of_a = row.sum;
    int64_t sub = 0;
    const std::byte* codes = b + codes_at;
    for (size_t k = 0; k < s.k; k += size, a += size) {
      if (k == row.end) a = row.last;
      v128_t sum[2][2] = {{none, none}, {none, none}};
      const float* x = a;
      groups.for_each(
          codes,
          [&](v128_t(&words)[2]) __attribute__((always_inline)) {
            unroll_inline(std::make_index_sequence<NBits::kGroupSteps>{},
                          [&](auto step) __attribute__((always_inline)) {
                            // The lowest bit of its nibble.
                            constexpr uint32_t kStep = step, kBit = kStep % 4 * 8 + kStep / 4 * 4;
                            const v128_t a_k = wasm_v128_load32_splat(x + kStep);
                            unroll(halves, [&](auto v) {
                              v128_t& half = sum[kStep / 4][v];
                              half =
                                  Ops::multiply_add(half, a_k,
                                                    wasm_f32x4_convert_i32x4(wasm_v128_and(
                                                        wasm_i32x4_shr(words[v], kBit), nibble)));
                            });
                          });
            x += NBits::kGroupSteps;
          },
          [&]() __attribute__((always_inline)) {
            x = a;
            unroll(halves, [&](auto v) {
              sum[0][v] =
                  wasm_f32x4_mul(wasm_f32x4_add(sum[0][v], sum[1][v]), wasm_f32x4_splat(16));
              sum[1][v] = none;
            });
          });
      const v128_t of_a = wasm_v128_load32_splat(sum_of_a++);
      v128_t part[2], scale[2], zero_point[2] = {absent, absent}, offset[2] = {none, none};
      if (f.zero_points == NBits::ZeroPoints::kAbsent && !is_blocks) {
        load_eight(b, f.dtype, scale);
      } else {
        NBitsScales loaded;
        load_scales(b, f, sub, &loaded);
        unroll(halves, [&](auto v) {
          scale[v] = loaded.scale[v];
          zero_point[v] = loaded.zero_point[v];
          offset[v] = wasm_f32x4_mul(of_a, loaded.offset[v]);
        });
      }
      unroll(halves, [&](auto v) {
        part[v] = wasm_f32x4_sub(wasm_f32x4_add(sum[0][v], sum[1][v]),
                                 wasm_f32x4_mul(of_a, zero_point[v]));
      });
      // 0 times a number that is not finite is NaN. With an infinite scale no product is finite.
      v128_t zero =
          wasm_f32x4_add(wasm_f32x4_mul(part[0], scale[0]), wasm_f32x4_mul(part[1], scale[1]));
      if (is_blocks) zero = wasm_f32x4_add(zero, wasm_f32x4_add(offset[0], offset[1]));
      zero = wasm_f32x4_mul(zero, none);
      if (wasm_i32x4_all_true(wasm_f32x4_eq(zero, zero))) {
        unroll(halves,
               [&](auto v) { acc[0][v] = Ops::multiply_add(acc[0][v], part[v], scale[v]); });
        if (is_blocks)
          unroll(halves, [&](auto v) { acc[0][v] = wasm_f32x4_sub(acc[0][v], offset[v]); });
      } else {
        add_block(f, b, sub, a, std::min(size, s.k - k), acc[0]);
      }
      codes += size * static_cast<size_t>(f.stored_bits());
      if (++sub >= f.sub_blocks()) {
        sub = 0;
        b += block_bytes;
        codes = b + codes_at;
      }
    }
  });
}

}  // namespace wgemm
