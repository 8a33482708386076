#include "kernels/i8_relaxed.h"

#if WGEMM_RELAXED
#include "kernels/loops/i8.h"

namespace wgemm {

// In memory that the compiler must assume to change: see HalfConstants in convert.h.
extern int16_t i8_relaxed_ones[8];
alignas(16) int16_t i8_relaxed_ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
extern uint16_t i8_relaxed_odd_bytes[8];
alignas(16) uint16_t i8_relaxed_odd_bytes[8] = {0xff00, 0xff00, 0xff00, 0xff00,
                                                0xff00, 0xff00, 0xff00, 0xff00};

namespace {

struct Quads {
  static constexpr size_t kDepth = 4, kStepBytes = 32;
  static I8Step load(const std::byte* b) { return {wasm_v128_load(b), wasm_v128_load(b + 16)}; }
};

struct SevenBits : Quads {
  const v128_t ones = wasm_v128_load(i8_relaxed_ones);
  // Engines on x86 compile relaxed_dot_add to these two instructions too, but V8 then loads the
  // constant ones from memory in every step.
  v128_t multiply_add(v128_t acc, v128_t a, v128_t b) const {
    return wasm_i32x4_add(acc,
                          wasm_i32x4_dot_i16x8(wasm_i16x8_relaxed_dot_i8x16_i7x16(a, b), ones));
  }
};

struct Unsigned : Quads {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(b, a, acc);
  }
};

struct Signed : Quads {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, b, acc);
  }
};

template <typename Ops>
struct Masked : Quads {
  const v128_t odd_bytes = wasm_v128_load(i8_relaxed_odd_bytes);
  v128_t multiply_add(v128_t acc, v128_t a, v128_t b) const {
    const v128_t odd = wasm_v128_and(b, odd_bytes);
    return Ops::multiply_add(Ops::multiply_add(acc, a, wasm_v128_xor(b, odd)), a, odd);
  }
};

// Whether each lane's four products of `first` and `second` sum to `sum`. The operands come from
// volatile memory. Otherwise the compiler would compute the sum. The function is inlined, so that
// it runs in the same tier as its caller.
[[gnu::always_inline]] inline bool dot_gives(int8_t first, uint8_t second, int32_t sum) {
  volatile int8_t a = first, b = static_cast<int8_t>(second);
  const v128_t dot = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(
      wasm_i8x16_splat(a), wasm_i8x16_splat(b), wasm_i32x4_splat(0));
  return wasm_i32x4_all_true(wasm_i32x4_eq(dot, wasm_i32x4_splat(sum)));
}

// The extreme pair of an unsigned engine is 2 * -128 * 255. It does not fit in 16 bits, so this sum
// is right only if pairs are exact.
[[gnu::always_inline]] inline bool has_exact_pairs() { return dot_gives(-128, 255, -130560); }

// A & kAll is A. The other two each leave one product per pair.
constexpr uint32_t kAll = 0xffffffff, kEven = 0x00ff00ff, kOdd = 0xff00ff00;

// A tile of GEMV. Two pairs of k of packed weights make a quad. The last quad may have one pair; A
// is padded with zeros there. It sums products of A & first, and of A & last if it differs.
template <size_t NP>
[[gnu::always_inline]] inline void gemv_tile(const Strip& s, const std::byte* b_panel,
                                             TileColumns t, uint32_t first, uint32_t last) {
  constexpr auto panels = std::make_index_sequence<NP>{};
  with_tile<int32_t, 1, 2 * NP, false, NP>(s, t, [&](auto& acc) {
    const size_t b_stride = t.panel_stride_cols / kI8PanelWidth * s.b_stride;
#pragma clang loop unroll(disable)
    for (uint32_t part = first;; part = last) {
      const v128_t mask = wasm_i32x4_splat(static_cast<int32_t>(part));
      const auto* a = static_cast<const std::byte*>(s.a);
      const std::byte* b[NP];
      unroll(panels, [&](auto p) { b[p] = b_panel + p * b_stride; });
      size_t pairs = (s.k + 1) / 2;
      for (;;) {
        const size_t second = pairs > 1 ? 16 : 0;
        const v128_t a_k = wasm_v128_and(wasm_v128_load32_splat(a), mask);
        unroll(panels, [&](auto p) {
          const v128_t x = wasm_v128_load(b[p]), y = wasm_v128_load(b[p] + second);
          b[p] += 32;
          acc[0][2 * p] = Unsigned::multiply_add(
              acc[0][2 * p], a_k, wasm_i16x8_shuffle(x, y, 0, 8, 1, 9, 2, 10, 3, 11));
          acc[0][2 * p + 1] = Unsigned::multiply_add(
              acc[0][2 * p + 1], a_k, wasm_i16x8_shuffle(x, y, 4, 12, 5, 13, 6, 14, 7, 15));
        });
        if (pairs <= 2) break;
        a += 4;
        pairs -= 2;
      }
      if (part == last) break;
    }
  });
}

// The check and the tiles are in this one function, so that they run in the same tier.
[[gnu::noinline]] void gemv(const Strip& s, Dot dot) {
  const bool one_dot = dot == Dot::kSigned || (dot == Dot::kUnsigned && has_exact_pairs());
  const uint32_t first = one_dot ? kAll : kEven, last = one_dot ? kAll : kOdd;
  several_panels<1, 4, kI8PanelWidth, 2>(
      s, [&](const std::byte* panel, TileColumns t) { gemv_tile<4>(s, panel, t, first, last); },
      [&](const std::byte* panel, TileColumns t) { gemv_tile<1>(s, panel, t, first, last); });
}

#ifdef __wasm__
// Whether multiply-adds are fused: (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which is lost if the
// product is rounded. The operands come from volatile memory too.
bool fuses() {
  volatile float one = 1 + 0x1p-12F, less = -(1 + 0x1p-11F);
  const v128_t factor = wasm_f32x4_splat(one);
  return wasm_f32x4_extract_lane(wasm_f32x4_relaxed_madd(factor, factor, wasm_f32x4_splat(less)),
                                 0) != 0;
}
#endif

}  // namespace

void i8_4x8c4_relaxed_dot_7bit(const Strip& s) { i8_strip_of_single_panels<SevenBits, 4>(s); }
void i8_4x16c4_relaxed_dot_signed(const Strip& s) { i8_strip<Signed, 4, 2>(s); }
void i8_4x16c4_relaxed_dot_signed_masked(const Strip& s) { i8_strip<Masked<Signed>, 4, 2>(s); }
void i8_4x8c4_relaxed_dot_unsigned(const Strip& s) {
  if (has_exact_pairs()) {
    i8_strip_of_single_panels<Unsigned, 4>(s);
  } else {
    i8_strip_of_single_panels<Masked<Unsigned>, 4>(s);
  }
}
void i8_4x16c4_relaxed_dot_unsigned(const Strip& s) {
  if (!has_exact_pairs()) return i8_4x8c4_relaxed_dot_unsigned(s);
  i8_whole_tiles<Unsigned, 4, 2>(s, i8_4x8c4_relaxed_dot_unsigned);
}
void i8_1x32c4_relaxed_dot_signed(const Strip& s) { gemv(s, Dot::kSigned); }
void i8_1x32c4_relaxed_dot_signed_masked(const Strip& s) { gemv(s, Dot::kSignedMasked); }
void i8_1x32c4_relaxed_dot_unsigned(const Strip& s) { gemv(s, Dot::kUnsigned); }

namespace {

Dot probe() {
#ifdef __wasm__
  // V8's baseline code for x86 without AVX is wrong if the first operand is in the result's
  // register. A probe may not meet that register. If multiply-adds are fused, the processor has AVX
  // or is not x86.
  if (!fuses()) return Dot::kNone;
#else
  if (!simulated_dot.is_there) return Dot::kNone;
#endif
  // These sums fit in 16 bits, so they show how the second operand is read and nothing else.
  if (dot_gives(1, 255, -4)) return Dot::kSigned;
  return dot_gives(1, 255, 1020) && has_exact_pairs() ? Dot::kUnsigned : Dot::kSevenBits;
}

}  // namespace

Dot relaxed_dot() {
#ifdef __wasm__
  static bool is_known = false;
  static Dot kept = Dot::kNone;
  if (!is_known) kept = probe();
  is_known = true;
  return kept;
#else
  return probe();  // tests change the simulated engine
#endif
}

}  // namespace wgemm
#else
namespace wgemm {
Dot relaxed_dot() { return Dot::kNone; }
}  // namespace wgemm
#endif
