#include "kernels/f64_simd128.h"

#include "kernels/tile.h"

namespace wgemm {
namespace {

struct Apart {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) { return wasm_f64x2_add(acc, wasm_f64x2_mul(a, b)); }
};

#if WGEMM_RELAXED
struct Fused {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) { return wasm_f64x2_relaxed_madd(a, b, acc); }
};
#endif

template <typename Math>
struct F64 : Math, Plain<double, 4> {};

}  // namespace

void f64_2x8_simd128(const Strip& s) { strip_of<F64<Apart>, Tile<1, 2>, Tile<2, 1>>(s); }
void f64_2x8_simd128_columns(const Strip& s) { strip_of<F64<Apart>, ColumnsTile<1>, ColumnsTile<2>>(s); }

#if WGEMM_RELAXED
void f64_2x8_relaxed(const Strip& s) { strip_of<F64<Fused>, Tile<1, 2>, Tile<2, 1>>(s); }
void f64_2x8_relaxed_columns(const Strip& s) { strip_of<F64<Fused>, ColumnsTile<1>, ColumnsTile<2>>(s); }
#endif

}  // namespace wgemm
