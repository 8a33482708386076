#include "kernels/i8_simd128.h"

#include "kernels/loops/i8.h"

namespace wgemm {
namespace {

struct Pairs {
  static constexpr size_t kDepth = 2;
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    return wasm_i32x4_add(acc, wasm_i32x4_dot_i16x8(a, b));
  }
};

struct Wide : Pairs {
  static constexpr size_t kStepBytes = 32;
  static I8Step load(const std::byte* b) { return {wasm_v128_load(b), wasm_v128_load(b + 16)}; }
};

struct Stored : Pairs {
  static constexpr size_t kStepBytes = 16;
  static I8Step load(const std::byte* b) {
    return {wasm_i16x8_load8x8(b), wasm_i16x8_load8x8(b + 8)};
  }
};

}  // namespace

void i8_i16_4x8c2_simd128(const Strip& s) { i8_strip<Wide, 4, 1>(s); }
void i8_4x8c2_simd128(const Strip& s) { i8_strip_of_single_panels<Stored, 4>(s); }
void i8_3x8c2_simd128(const Strip& s) { i8_strip_of_single_panels<Stored, 3>(s); }
void i8_2x16c2_simd128(const Strip& s) { i8_strip<Stored, 2, 2>(s); }
void i8_1x32c2_simd128(const Strip& s) { i8_strip<Stored, 1, 4>(s); }

}  // namespace wgemm
