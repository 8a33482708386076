#include "kernels/i8_relaxed.h"

#if WGEMM_RELAXED
#include "kernels/i8_tile.h"

namespace wgemm {

// In memory that the compiler must take for changeable: see HalfConstants in convert.h.
extern int16_t i8_relaxed_ones[8];
alignas(16) int16_t i8_relaxed_ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};

namespace {

struct Quads {
  static constexpr size_t kDepth = 4, kStepBytes = 32;
  static I8Step load(const std::byte* b) { return {wasm_v128_load(b), wasm_v128_load(b + 16)}; }
};

struct SevenBits : Quads {
  const v128_t ones = wasm_v128_load(i8_relaxed_ones);
  // In the two steps that engines take on x86 for the one instruction, where V8 would make the ones anew each time.
  v128_t multiply_add(v128_t acc, v128_t a, v128_t b) const {
    return wasm_i32x4_add(acc, wasm_i32x4_dot_i16x8(wasm_i16x8_relaxed_dot_i8x16_i7x16(a, b), ones));
  }
};

struct Unsigned : Quads {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(b, a, acc); }
};

struct Signed : Quads {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) { return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, b, acc); }
};

// Whether each lane's four products of -128 and `byte` sum to `sum`. From volatile memory, or a compiler would compute it.
bool dot_gives(uint8_t byte, int32_t sum) {
  volatile int8_t first = -128, second = static_cast<int8_t>(byte);
  const v128_t dot = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(wasm_i8x16_splat(first), wasm_i8x16_splat(second), wasm_i32x4_splat(0));
  return wasm_i32x4_all_true(wasm_i32x4_eq(dot, wasm_i32x4_splat(sum)));
}

#ifdef __wasm__
// Whether products are fused, from volatile memory too: (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which a rounded product has lost.
bool fuses() {
  volatile float one = 1 + 0x1p-12F, less = -(1 + 0x1p-11F);
  const v128_t factor = wasm_f32x4_splat(one);
  return wasm_f32x4_extract_lane(wasm_f32x4_relaxed_madd(factor, factor, wasm_f32x4_splat(less)), 0) != 0;
}
#endif

}  // namespace

void i8_4x8c4_relaxed_7bit(const Strip& s) { i8_strip_of_single_panels<SevenBits, 4>(s); }
void i8_4x8c4_relaxed_unsigned(const Strip& s) { i8_strip_of_single_panels<Unsigned, 4>(s); }
void i8_4x8c4_relaxed_signed(const Strip& s) { i8_strip_of_single_panels<Signed, 4>(s); }

// What 255 is read as tells signed (4 * -128 * -1) from unsigned (4 * -128 * 255), unless pairs of -65,280 saturate or wrap; a pair of
// 128 * 128, if 128 is read as signed, is the one that an int16 does not hold.
Dot relaxed_dot() {
#ifdef __wasm__
  // V8's baseline code for x86 without AVX multiplies the second operand by itself where the first is in the result's register, which no
  // probe is sure to meet; where products are fused, AVX is there, or it is another processor.
  if (!fuses()) return Dot::kNone;
#else
  if (!simulated_dot.is_there) return Dot::kNone;
#endif
  if (dot_gives(255, -130560) && dot_gives(128, -65536)) return Dot::kUnsigned;
  if (dot_gives(255, 512) && dot_gives(128, 65536)) return Dot::kSigned;
  return Dot::kSevenBits;
}

}  // namespace wgemm
#else
namespace wgemm {
Dot relaxed_dot() { return Dot::kNone; }
}  // namespace wgemm
#endif
