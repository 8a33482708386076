// Transposes 2 x 2 elements of 64 bits or 4 x 4 elements of 32 bits in registers. Each vector is a
// row.
#pragma once

#include <wasm_simd128.h>

namespace wgemm {

inline void transpose(v128_t (&x)[2]) {
  const v128_t first = wasm_i64x2_shuffle(x[0], x[1], 0, 2);
  x[1] = wasm_i64x2_shuffle(x[0], x[1], 1, 3);
  x[0] = first;
}

inline void transpose(v128_t (&x)[4]) {
  const v128_t low01 = wasm_i32x4_shuffle(x[0], x[1], 0, 4, 1, 5),
               low23 = wasm_i32x4_shuffle(x[2], x[3], 0, 4, 1, 5);
  const v128_t high01 = wasm_i32x4_shuffle(x[0], x[1], 2, 6, 3, 7),
               high23 = wasm_i32x4_shuffle(x[2], x[3], 2, 6, 3, 7);
  x[0] = wasm_i64x2_shuffle(low01, low23, 0, 2);
  x[1] = wasm_i64x2_shuffle(low01, low23, 1, 3);
  x[2] = wasm_i64x2_shuffle(high01, high23, 0, 2);
  x[3] = wasm_i64x2_shuffle(high01, high23, 1, 3);
}

}  // namespace wgemm
