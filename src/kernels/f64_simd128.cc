#include "kernels/f64_simd128.h"

#include "kernels/tile.h"

namespace wgemm {
namespace {

struct F64 {
  using Element = double;
  static constexpr size_t kLanes = 2;
  static v128_t load_splat(const double* a) { return wasm_v128_load64_splat(a); }
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) { return wasm_f64x2_add(acc, wasm_f64x2_mul(a, b)); }
};

}  // namespace

void f64_2x8_simd128(const Strip& strip) { simd_tile_kernel<F64, 2, 4>(strip); }

#if WGEMM_RELAXED
namespace {

struct F64Relaxed : F64 {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) { return wasm_f64x2_relaxed_madd(a, b, acc); }
};

}  // namespace

void f64_2x8_relaxed(const Strip& strip) { simd_tile_kernel<F64Relaxed, 2, 4>(strip); }
#endif

}  // namespace wgemm
