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

}  // namespace

void i8_4x8c4_relaxed_7bit(const Strip& s) { i8_strip<SevenBits, 4, 1>(s); }
void i8_4x8c4_relaxed_unsigned(const Strip& s) { i8_strip<Unsigned, 4, 1>(s); }
void i8_4x8c4_relaxed_signed(const Strip& s) { i8_strip<Signed, 4, 1>(s); }

// What 255 is read as tells signed (4 * -128 * -1) from unsigned (4 * -128 * 255), unless pairs of -65,280 saturate or wrap; a pair of
// 128 * 128, if 128 is read as signed, is the one that an int16 does not hold.
Dot relaxed_dot() {
#ifndef __wasm__
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
