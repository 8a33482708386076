// Products of an A in int8 and weights in block formats that have sub-blocks, minima or codes in
// bytes: problem/nbits.h has the layout. Other weights of a few bits have a loop of their own in
// nbits.h, since with this loop they took 1.5 times as long.
#pragma once

#include "kernels/loops/nbits.h"

namespace wgemm {

// Per block, with sums that are exact in int32:
//   t    sum over sub-blocks of sub-scale * sum of q * (code - zero point)
//   u    sum over sub-blocks of minimum * sum of q
//   acc  acc + (t * (scale of A * scale) - u * (scale of A * second scale)), each step rounded
template <typename Ops, size_t MR, size_t NP>
void quantized_blocks_tile(const Strip& s, const std::byte* b, TileColumns t) {
  constexpr auto rows = std::make_index_sequence<MR>{};
  constexpr auto panels = std::make_index_sequence<NP>{};
  constexpr auto halves = std::make_index_sequence<2>{};
  constexpr auto vectors = std::make_index_sequence<2 * NP>{};
  const NBits& f = *s.nbits;
  const bool has_subs = f.sub_size != 0, has_bytes = f.has_bytes(), has_minima = f.has_minima();
  const size_t stride = t.panel_stride_cols / NBits::kColumns * s.b_stride;
  const size_t block_size = static_cast<size_t>(f.block_size),
               block_bytes = static_cast<size_t>(f.block_bytes()),
               sub_scales_at = static_cast<size_t>(f.sub_scales_at()),
               minima_at = static_cast<size_t>(f.minima_at()),
               codes_at = static_cast<size_t>(f.codes_at()),
               header = static_cast<size_t>(f.row_header()),
               subs = has_subs ? static_cast<size_t>(f.sub_blocks()) : 1,
               groups = static_cast<size_t>(f.scaled_steps()) / NBits::kGroupSteps;
  // Where the sums of sub-blocks are. A block without sub-blocks has 32 steps, so that its sum
  // fits in 16 bits, too.
  const size_t sums_at = has_subs ? NBits::kRowHeader : sizeof(float);
  const v128_t zero_point = wasm_i32x4_splat(f.has_minima() ? 0 : -f.absent_zero_point() & 0xffff);
  with_tile<float, MR, 2 * NP, true, NP>(s, t, [&](auto& acc) {
    RowsOfA<std::byte, MR> a(s);
    for (size_t k = 0; k < s.k; k += block_size, b += block_bytes) {
      v128_t total[MR][2 * NP];
      const std::byte *q[MR], *codes = b + codes_at, *sub_scales = b + sub_scales_at;
      unroll(rows, [&](auto i) {
        q[i] = a.row[i] + header;
        unroll(vectors, [&](auto v) { total[i][v] = wasm_i32x4_const(0, 0, 0, 0); });
      });
      uint32_t shift = 0;
#pragma clang loop unroll(disable)
      for (size_t sub = 0; sub < subs; ++sub) {
        v128_t sum[MR][2 * NP];
        unroll(rows, [&](auto i) {
          const v128_t sum_of_a = wasm_v128_load16_splat(a.row[i] + sums_at + sub * 2),
                       start = wasm_i32x4_dot_i16x8(sum_of_a, zero_point);
          unroll(vectors, [&](auto v) { sum[i][v] = start; });
        });
#pragma clang loop unroll(disable)
        for (size_t group = 0; group < groups; ++group) {
          v128_t low[2 * NP], high[2 * NP];
          const auto load = [&](v128_t* to) __attribute__((always_inline)) {
            unroll(panels, [&](auto p) {
              unroll(halves,
                     [&](auto v) { to[2 * p + v] = wasm_v128_load(codes + p * stride + v * 16); });
            });
          };
          load(low);
          if (has_bytes) {
            codes += NBits::kGroupBytes;
            load(high);
            codes += NBits::kGroupBytes;
          } else {
            if (f.bits == 2) {
              const v128_t mask = wasm_i32x4_splat(0x33333333);
              unroll(vectors,
                     [&](auto v) { low[v] = wasm_v128_and(wasm_u32x4_shr(low[v], shift), mask); });
              shift ^= 2;
              codes += shift == 0 ? NBits::kGroupBytes : 0;
            } else {
              codes += NBits::kGroupBytes;
            }
            const v128_t nibble = wasm_i8x16_splat(15);
            unroll(vectors, [&](auto v) {
              high[v] = wasm_v128_and(wasm_u16x8_shr(low[v], 4), nibble);
              low[v] = wasm_v128_and(low[v], nibble);
            });
          }
          unroll(vectors, [&](auto v) {
            unroll(rows, [&](auto i) {
              sum[i][v] = Ops::multiply_add(sum[i][v], Ops::load(q[i]), low[v]);
              sum[i][v] = Ops::multiply_add(sum[i][v], Ops::load(q[i] + 4), high[v]);
            });
          });
          unroll(rows, [&](auto i) { q[i] += NBits::kGroupSteps; });
        }
        unroll(panels, [&](auto p) {
          const v128_t wide = has_subs ? wasm_i16x8_load8x8(sub_scales + p * stride)
                                       : wasm_i16x8_splat(1),
                       scale[2] = {wasm_i32x4_extend_low_i16x8(wide),
                                   wasm_i32x4_extend_high_i16x8(wide)};
          unroll(rows, [&](auto i) {
            unroll(halves, [&](auto v) {
              v128_t& x = total[i][2 * p + v];
              x = wasm_i32x4_add(x, wasm_i32x4_mul(sum[i][2 * p + v], scale[v]));
            });
          });
        });
        sub_scales += NBits::kColumns;
      }
      unroll(panels, [&](auto p) {
        const std::byte* const at = b + p * stride;
        v128_t scale[2], second[2];
        load_finite(at, scale);
        load_finite(at + NBits::kColumns * sizeof(Float16), second);
        unroll(rows, [&](auto i) {
          const v128_t of_a = wasm_v128_load32_splat(a.row[i]);
          v128_t u[2];
          if (has_minima) {
            u[0] = u[1] = has_subs ? wasm_i32x4_const(0, 0, 0, 0)
                                   : wasm_v128_load32_splat(a.row[i] + sizeof(float));
            const std::byte* minima = at + minima_at;
#pragma clang loop unroll(disable)
            for (size_t pair = 0; pair < subs / 2; ++pair, minima += 2 * NBits::kColumns) {
              const v128_t sums =
                  wasm_v128_load32_splat(a.row[i] + NBits::kRowHeader + pair * sizeof(int32_t));
              unroll(halves, [&](auto v) {
                u[v] = wasm_i32x4_add(
                    u[v],
                    wasm_i32x4_dot_i16x8(sums, wasm_u16x8_load8x8(minima + v * NBits::kColumns)));
              });
            }
          }
          unroll(halves, [&](auto v) {
            v128_t part = wasm_f32x4_mul(wasm_f32x4_convert_i32x4(total[i][2 * p + v]),
                                         wasm_f32x4_mul(of_a, scale[v]));
            if (has_minima) {
              part = wasm_f32x4_sub(part, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(u[v]),
                                                         wasm_f32x4_mul(of_a, second[v])));
            }
            acc[i][2 * p + v] = wasm_f32x4_add(acc[i][2 * p + v], part);
          });
        });
      });
      unroll(rows, [&](auto i) { a.row[i] += header + block_size; });
    }
  });
}

}  // namespace wgemm
