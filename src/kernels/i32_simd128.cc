#include "kernels/i32_simd128.h"

#include "kernels/loops/axpy.h"
#include "kernels/loops/column_major.h"
#include "kernels/loops/dot.h"
#include "kernels/loops/ops.h"
#include "kernels/loops/strip.h"

namespace wgemm {
namespace {

struct I32 : Plain<int32_t, 2> {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    return wasm_i32x4_add(acc, wasm_i32x4_mul(a, b));
  }
};

}  // namespace

void i32_4x8_simd128(const Strip& s) { strip_of<I32, Tile<1, 4>, Tile<2, 2>, Tile<4, 1>>(s); }
void i32_gemv_1x8_simd128_axpy(const Strip& s) { axpy<I32, i32_4x8_simd128>(s); }
void i32_4x8_simd128_dot(const Strip& s) { dot<I32, strip_of<I32, ColumnMajorTile<4, 4>>>(s); }

}  // namespace wgemm
