#include "kernels/i32_simd128.h"

#include "kernels/tile.h"

namespace wgemm {
namespace {

struct I32 {
  using Element = int32_t;
  static constexpr size_t kLanes = 4;
  static v128_t load_splat(const int32_t* a) { return wasm_v128_load32_splat(a); }
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) { return wasm_i32x4_add(acc, wasm_i32x4_mul(a, b)); }
};

}  // namespace

void i32_2x16_simd128(const Strip& strip) { simd_tile_kernel<I32, 2, 4>(strip); }

}  // namespace wgemm
