// Products with weights of MatMulNBits, read as they are stored: problem/nbits.h has the layout of
// micro-panels. Each block of K has sums of its own. They are scaled at its end, and then added to
// the accumulators.
//
// GEMV takes several micro-panels at once, as several_panels.h explains. A tile of four rows serves
// all other strips, with its last row repeated if there are fewer.
#pragma once

#include <cstring>

#include "base/convert.h"
#include "kernels/loops/several_panels.h"

namespace wgemm {

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

// Loads the zero points of a block, of the kind kCodes, as int32.
template <int bits>
void load_zero_points(const std::byte* from, v128_t* to) {
  if constexpr (bits == 8) {
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

// A block of a micro-panel.
struct NBitsBlock {
  NBitsBlock(const Strip& s)
      : format(*s.nbits),
        zero_points_at(static_cast<size_t>(format.scale_bytes())),
        codes_at(zero_points_at + static_cast<size_t>(format.zero_point_bytes())),
        bytes(static_cast<size_t>(format.block_bytes())),
        size(static_cast<size_t>(format.block_size)),
        groups(size * static_cast<size_t>(format.bits) / NBits::kGroupBytes) {}
  const NBits& format;
  const size_t zero_points_at, codes_at, bytes, size, groups;
};

// Loads the zero points of any kind as float32.
template <int bits>
void load_float_zero_points(const std::byte* b, const NBitsBlock& block, v128_t* to) {
  if (block.format.zero_points == NBits::ZeroPoints::kTyped)
    return load_eight(b + block.zero_points_at, block.format.dtype, to);
  if (block.format.zero_points == NBits::ZeroPoints::kCodes) {
    load_zero_points<bits>(b + block.zero_points_at, to);
    to[0] = wasm_f32x4_convert_i32x4(to[0]);
    to[1] = wasm_f32x4_convert_i32x4(to[1]);
  } else {
    to[0] = to[1] = wasm_f32x4_splat(1 << (bits - 1));
  }
}

// A by int8 with scales, as quantize_rows() makes it. The sums of a block are int32. Ops:
//   Quad                    four elements of A in each lane, as load(const std::byte*) returns them
//   multiply_add(sum, quad, codes)
template <typename Ops, int bits, size_t MR, size_t NP>
void quantized_nbits_tile(const Strip& s, const std::byte* panel, TileColumns t) {
  constexpr size_t kQuads = bits == 8 ? 1 : 8 / bits, kPlanes = bits == 8 ? 2 : 1;
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto panels = std::make_index_sequence<NP>{};
  constexpr auto halves = std::make_index_sequence<2>{};
  const NBitsBlock block(s);
  with_tile<float, MR, 2 * NP, true, NP>(s, t, [&](auto& acc) {
    const size_t b_stride = t.panel_stride_cols / NBits::kColumns * s.b_stride;
    RowsOfA<std::byte, MR> a(s);
    const std::byte* b = panel;
    const v128_t mask = wasm_i8x16_splat(bits == 2 ? 3 : 15);
    for (size_t k = 0; k < s.k; k += block.size, b += block.bytes) {
      v128_t sum[kPlanes][MR][2 * NP];
      unroll(panels, [&](auto p) {
        v128_t zero_point[2];
        if (block.format.zero_points == NBits::ZeroPoints::kCodes) {
          load_zero_points<bits>(b + p * b_stride + block.zero_points_at, zero_point);
        } else {
          zero_point[0] = zero_point[1] = wasm_i32x4_splat(1 << (bits - 1));
        }
        unroll(rows, [&](auto i) {
          const v128_t of_a = wasm_i32x4_neg(wasm_v128_load32_splat(a.row[i] + sizeof(float)));
          unroll(halves, [&](auto v) {
            sum[0][i][2 * p + v] = wasm_i32x4_mul(of_a, zero_point[v]);
            if constexpr (kPlanes == 2) sum[1][i][2 * p + v] = wasm_i32x4_const(0, 0, 0, 0);
          });
        });
      });
      const std::byte* codes = b + block.codes_at;
      const std::byte* q[MR];
      unroll(rows, [&](auto i) { q[i] = a.row[i] + NBits::kRowHeader; });
      for (size_t group = 0; group < block.groups; ++group, codes += NBits::kGroupBytes) {
        v128_t word[2 * NP];
        unroll(panels, [&](auto p) {
          unroll(halves,
                 [&](auto v) { word[2 * p + v] = wasm_v128_load(codes + p * b_stride + 16 * v); });
        });
        unroll(std::make_index_sequence<kQuads>{}, [&](auto quad) {
          unroll(std::make_index_sequence<2 * NP>{}, [&](auto v) {
            unroll(std::make_index_sequence<kPlanes>{}, [&](auto plane) {
              constexpr int kShift =
                  kPlanes == 2 ? 4 * static_cast<int>(plane) : bits * static_cast<int>(quad);
              const v128_t shifted =
                  kShift == 0 ? word[v] : wasm_u16x8_shr(word[v], static_cast<uint32_t>(kShift));
              const v128_t code = wasm_v128_and(shifted, mask);
              unroll(rows, [&](auto i) {
                sum[plane][i][v] =
                    Ops::multiply_add(sum[plane][i][v], Ops::load(q[i] + 4 * quad), code);
              });
            });
          });
        });
        unroll(rows, [&](auto i) { q[i] += 4 * kQuads; });
      }
      unroll(panels, [&](auto p) {
        v128_t scale[2];
        load_eight(b + p * b_stride, block.format.dtype, scale);
        unroll(rows, [&](auto i) {
          const v128_t of_a = wasm_v128_load32_splat(a.row[i]);
          unroll(halves, [&](auto v) {
            v128_t whole = sum[0][i][2 * p + v];
            if constexpr (kPlanes == 2)
              whole = wasm_i32x4_add(whole, wasm_i32x4_shl(sum[1][i][2 * p + v], 4));
            acc[i][2 * p + v] = wasm_f32x4_add(
                acc[i][2 * p + v],
                wasm_f32x4_mul(wasm_f32x4_convert_i32x4(whole), wasm_f32x4_mul(of_a, scale[v])));
          });
        });
      });
      unroll(rows,
             [&](auto i) { a.row[i] += static_cast<size_t>(NBits::kRowHeader) + block.size; });
    }
  });
}

// The last block of each row of float32, padded with zeros, if K ends inside of it. The rows after
// the strip's last one repeat it.
template <size_t MR>
struct PaddedEnd {
  static constexpr size_t kBlockSizeMax = 256;
  PaddedEnd(const Strip& s, size_t block_size) : begin(s.k / block_size * block_size) {
    for (size_t i = 0; i < MR; ++i) row[i] = i == 0 || i < s.rows ? elements[i] : row[i - 1];
    const size_t count = s.k - begin;
    if (count == 0) return;
    for (size_t i = 0; i < s.rows; ++i) {
      std::memset(elements[i], 0, block_size * sizeof(float));
      std::memcpy(elements[i],
                  static_cast<const std::byte*>(s.a) + i * s.a_stride + begin * sizeof(float),
                  count * sizeof(float));
    }
  }
  const size_t begin;  // in elements
  const float* row[MR];
  float elements[MR][kBlockSizeMax];
};

// A by float32. The sums of a block are those of A times codes without their zero points.
template <typename Ops, int bits, size_t MR, size_t NP>
void float_nbits_tile(const Strip& s, const std::byte* panel, TileColumns t,
                      const PaddedEnd<4>& end) {
  constexpr size_t kCodes = 32 / bits;
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto panels = std::make_index_sequence<NP>{};
  constexpr auto halves = std::make_index_sequence<2>{};
  const NBitsBlock block(s);
  with_tile<float, MR, 2 * NP, true, NP>(s, t, [&](auto& acc) {
    const size_t b_stride = t.panel_stride_cols / NBits::kColumns * s.b_stride;
    RowsOfA<float, MR> a(s);
    const std::byte* b = panel;
    const v128_t mask = wasm_i32x4_splat((1 << bits) - 1);
    for (size_t k = 0; k < s.k; k += block.size, b += block.bytes) {
      v128_t sum[MR][2 * NP], zero_point[2 * NP];
      unroll(rows, [&](auto i) {
        if (k == end.begin) a.row[i] = end.row[i];
        unroll(std::make_index_sequence<2 * NP>{},
               [&](auto v) { sum[i][v] = wasm_i32x4_const(0, 0, 0, 0); });
      });
      unroll(panels, [&](auto p) {
        load_float_zero_points<bits>(b + p * b_stride, block, zero_point + 2 * p);
      });
      const std::byte* codes = b + block.codes_at;
      for (size_t group = 0; group < block.groups; ++group, codes += NBits::kGroupBytes) {
        v128_t word[2 * NP];
        unroll(panels, [&](auto p) {
          unroll(halves,
                 [&](auto v) { word[2 * p + v] = wasm_v128_load(codes + p * b_stride + 16 * v); });
        });
        unroll(std::make_index_sequence<kCodes>{}, [&](auto code) {
          constexpr int kIndex = static_cast<int>(code),
                        kShift = 8 * (kIndex % 4) + kIndex / 4 * bits;
          v128_t a_k[MR];
          unroll(rows, [&](auto i) { a_k[i] = wasm_v128_load32_splat(a.row[i] + code); });
          unroll(std::make_index_sequence<2 * NP>{}, [&](auto v) {
            const v128_t shifted =
                kShift == 0 ? word[v] : wasm_u32x4_shr(word[v], static_cast<uint32_t>(kShift));
            const v128_t b_k =
                wasm_f32x4_sub(wasm_f32x4_convert_i32x4(
                                   kShift + bits == 32 ? shifted : wasm_v128_and(shifted, mask)),
                               zero_point[v]);
            unroll(rows, [&](auto i) { sum[i][v] = Ops::multiply_add(sum[i][v], a_k[i], b_k); });
          });
        });
        unroll(rows, [&](auto i) { a.row[i] += kCodes; });
      }
      unroll(panels, [&](auto p) {
        v128_t scale[2];
        load_eight(b + p * b_stride, block.format.dtype, scale);
        unroll(rows, [&](auto i) {
          unroll(halves, [&](auto v) {
            v128_t& x = acc[i][2 * p + v];
            x = Ops::multiply_add(x, sum[i][2 * p + v], scale[v]);
          });
        });
      });
    }
  });
}

// A strip of MatMulNBits. `tile` takes bits, MR and NP as constants. NP: micro-panels of a tile of
// GEMV.
template <int bits, size_t NP>
void nbits_strip_of(const Strip& s, const auto& tile) {
  constexpr std::integral_constant<int, bits> kBits;
  const auto single = [&](const std::byte* panel, TileColumns t) {
    tile(kBits, std::integral_constant<size_t, 4>{}, std::integral_constant<size_t, 1>{}, panel, t);
  };
  const auto* const b = static_cast<const std::byte*>(s.b);
  if (s.rows > 1) return single_panels<NBits::kColumns, 1>(s, b, 0, single);
  several_panels<1, NP, NBits::kColumns, 1>(
      s,
      [&](const std::byte* panel, TileColumns t) {
        tile(kBits, std::integral_constant<size_t, 1>{}, std::integral_constant<size_t, NP>{},
             panel, t);
      },
      single);
}
template <size_t NP>
void nbits_strip(const Strip& s, const auto& tile) {
  if (s.nbits->bits == 4) return nbits_strip_of<4, NP>(s, tile);
  if (s.nbits->bits == 8) return nbits_strip_of<8, NP>(s, tile);
  nbits_strip_of<2, NP>(s, tile);
}

}  // namespace wgemm
