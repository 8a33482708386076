// Conversion between the 16-bit floating-point types and float32. Widening is exact. Narrowing
// rounds once, to nearest even: overflow becomes infinity, NaN stays NaN, subnormals are kept. The
// type float16 is binary16 of IEEE 754-2019; bfloat16 is the upper half of binary32.
//
// There is a scalar and a SIMD version. Both return the same bits, except that a signaling NaN may
// become quiet.
#pragma once

#include <wasm_simd128.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "wgemm.h"

namespace wgemm {

inline float widen(Float16 x) {
  const uint32_t magnitude = x.bits & 0x7fffU, sign = static_cast<uint32_t>(x.bits & 0x8000U) << 16;
  if (magnitude >= 0x7c00U)
    return std::bit_cast<float>(sign | 0x7f800000U | magnitude << 13);  // infinity and NaN
  // The shift aligns fraction and exponent. Multiplication by 2^112 corrects the exponent's bias
  // (127 - 15 = 112) and normalizes subnormals.
  return std::bit_cast<float>(
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112F) | sign);
}

inline float widen(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

inline Float16 narrow_to(float x, Float16) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffffU,
                 sign = (bits & 0x80000000U) >> 16;
  uint32_t result;
  if (magnitude > 0x7f800000U) {
    result = 0x7e00;
  } else if (magnitude < 0x38800000U) {
    // Below 2^-14 the result counts units of 2^-24. A float32 in [0.5, 1) has that unit too, so the
    // addition rounds.
    result = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  } else {
    result = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
    if (result > 0x7c00U) result = 0x7c00;
  }
  return {static_cast<uint16_t>(result | sign)};
}

inline BFloat16 narrow_to(float x, BFloat16) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<uint16_t>(bits >> 16 | 0x40U)};
  return {static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

// The SIMD version. widen() takes eight elements and returns two vectors, or takes four elements
// that are sign-extended to 32 bits. The constants are variables, so that the compiler loads them.
// V8 would build a literal vector again in every iteration of a loop.
struct HalfConstants {
  alignas(16) uint32_t high_half[4], high_infinity[4], exponent[4], finite_exponent[4];
  alignas(16) uint32_t low15[4], sign_and_shifted[4], largest_exponent[4], two_to_112[4],
      two_to_minus_110[4], infinity[4], magnitude[4];
  alignas(16) uint32_t quiet_bit[4], rounding_exponent[4], two[4], one[4],
      f16_infinity[4], f16_nan[4], f16_mantissa[4], f16_sign[4], zero[4];
};
extern HalfConstants half_constants;

template <typename Half>
struct HalfSimd;

// The lower or the upper 16 bits of each of eight 32-bit lanes.
inline v128_t lower_halves(v128_t x0, v128_t x1) {
  return wasm_i16x8_shuffle(x0, x1, 0, 2, 4, 6, 8, 10, 12, 14);
}
inline v128_t upper_halves(v128_t x0, v128_t x1) {
  return wasm_i16x8_shuffle(x0, x1, 1, 3, 5, 7, 9, 11, 13, 15);
}

// A float16 that is neither infinite nor NaN. It widens to 2^-112 of its value, which takes half of
// the instructions: the kernel multiplies A by 2^112 instead.
struct FiniteFloat16 {
  uint16_t bits;
};

template <>
struct HalfSimd<FiniteFloat16> {
  v128_t high_half = wasm_v128_load(half_constants.high_half),
         two_to_112 = wasm_v128_load(half_constants.two_to_112);

  // The upper half of each float32.
  v128_t upper(v128_t x) const { return wasm_v128_and(wasm_i16x8_shr(x, 3), high_half); }
  static void join(v128_t x, v128_t high, v128_t (&to)[2]) {
    const v128_t low = wasm_i16x8_shl(x, 13);
    to[0] = wasm_i16x8_shuffle(low, high, 0, 8, 1, 9, 2, 10, 3, 11);
    to[1] = wasm_i16x8_shuffle(low, high, 4, 12, 5, 13, 6, 14, 7, 15);
  }
  void widen(const FiniteFloat16* from, v128_t (&to)[2]) const {
    const v128_t x = wasm_v128_load(from);
    join(x, upper(x), to);
  }
};

template <>
struct HalfSimd<Float16> {
  HalfSimd<FiniteFloat16> finite;
  v128_t sign_and_shifted = wasm_v128_load(half_constants.sign_and_shifted);
  v128_t largest_exponent = wasm_v128_load(half_constants.largest_exponent);
  v128_t infinity = wasm_v128_load(half_constants.infinity),
         magnitude_bits = wasm_v128_load(half_constants.magnitude);
  v128_t two_to_minus_110 = wasm_v128_load(half_constants.two_to_minus_110),
         two = wasm_v128_load(half_constants.two);
  v128_t rounding_exponent = wasm_v128_load(half_constants.rounding_exponent),
         f16_infinity = wasm_v128_load(half_constants.f16_infinity);
  v128_t f16_nan = wasm_v128_load(half_constants.f16_nan),
         f16_mantissa = wasm_v128_load(half_constants.f16_mantissa);
  v128_t f16_sign = wasm_v128_load(half_constants.f16_sign);

  v128_t high_infinity = wasm_v128_load(half_constants.high_infinity);
  v128_t exponent = wasm_v128_load(half_constants.exponent),
         finite_exponent = wasm_v128_load(half_constants.finite_exponent);

  // Computes the upper and the lower halves of the eight results separately, since each fits one
  // vector, and then joins them.
  void widen(const Float16* from, v128_t (&to)[2]) const {
    const v128_t x = wasm_v128_load(from);
    const v128_t is_special = wasm_i16x8_sub(
        finite_exponent, wasm_i16x8_max(wasm_v128_and(x, exponent), finite_exponent));
    finite.join(x, wasm_v128_or(finite.upper(x), wasm_v128_and(is_special, high_infinity)), to);
    for (v128_t& scaled : to) scaled = wasm_f32x4_mul(scaled, finite.two_to_112);
  }
  v128_t widen(v128_t x) const {
    const v128_t scaled =
        wasm_f32x4_mul(wasm_v128_and(wasm_i32x4_shl(x, 13), sign_and_shifted), finite.two_to_112);
    // All ones for infinity and NaN. The compiler would turn a comparison into a bitselect, which
    // is three times as slow.
    const v128_t is_special = wasm_i32x4_sub(
        largest_exponent, wasm_i32x4_max(wasm_v128_and(x, f16_infinity), largest_exponent));
    return wasm_v128_or(scaled, wasm_v128_and(is_special, infinity));
  }
  // Adds a power of two to the scaled magnitude. Its unit in the last place is the unit of the
  // float16, so the addition rounds. Magnitudes from 2^16 on become infinite. The exponent of
  // the result is the sum's modulo 32, with a carry from the mantissa. (The method of XNNPACK.)
  v128_t round(v128_t x) const {
    const v128_t number = wasm_v128_and(x, magnitude_bits);
    const v128_t scaled =
        wasm_f32x4_mul(wasm_f32x4_mul(number, finite.two_to_112), two_to_minus_110);
    return wasm_f32x4_add(
        scaled,
        wasm_i32x4_max(wasm_v128_and(wasm_i32x4_add(number, rounding_exponent), infinity), two));
  }
  v128_t narrow(v128_t x0, v128_t x1) const {
    const v128_t low = round(x0), high = round(x1);
    const v128_t mantissa = wasm_v128_and(lower_halves(low, high), f16_mantissa);
    // The mask keeps a NaN's quiet bit, which is 0 in numbers. The minimum with f16_nan makes every
    // NaN the same one.
    const v128_t exponent_bits = wasm_v128_and(wasm_i16x8_shl(upper_halves(low, high), 3), f16_nan);
    const v128_t magnitude = wasm_u16x8_min(wasm_i16x8_add(exponent_bits, mantissa), f16_nan);
    return wasm_v128_or(magnitude, wasm_v128_and(upper_halves(x0, x1), f16_sign));
  }
};

template <>
struct HalfSimd<BFloat16> {
  v128_t magnitude_bits = wasm_v128_load(half_constants.magnitude),
         infinity = wasm_v128_load(half_constants.infinity);
  v128_t low15 = wasm_v128_load(half_constants.low15), one = wasm_v128_load(half_constants.one);
  v128_t quiet_bit = wasm_v128_load(half_constants.quiet_bit);
  v128_t zero = wasm_v128_load(half_constants.zero);

  void widen(const BFloat16* from, v128_t (&to)[2]) const {
    const v128_t x = wasm_v128_load(from);
    to[0] = wasm_i16x8_shuffle(zero, x, 0, 8, 1, 9, 2, 10, 3, 11);
    to[1] = wasm_i16x8_shuffle(zero, x, 4, 12, 5, 13, 6, 14, 7, 15);
  }
  static v128_t widen(v128_t x) { return wasm_i32x4_shl(x, 16); }
  // The upper half of each lane is the result.
  v128_t round(v128_t x) const {
    const v128_t nan = wasm_i32x4_gt(wasm_v128_and(x, magnitude_bits), infinity);
    const v128_t odd = wasm_v128_and(wasm_u32x4_shr(x, 16), one);
    const v128_t rounded = wasm_i32x4_add(wasm_i32x4_add(x, low15), odd);
    return wasm_v128_bitselect(wasm_v128_or(x, quiet_bit), rounded, nan);
  }
  v128_t narrow(v128_t x0, v128_t x1) const { return upper_halves(round(x0), round(x1)); }
};

// Narrows eight contiguous elements.
template <typename Half>
v128_t narrow_eight(const HalfSimd<Half>& simd, const float* from) {
  return simd.narrow(wasm_v128_load(from), wasm_v128_load(from + 4));
}

// For templates over all types: converts an element from its storage type to its compute type, and
// back.
template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <typename To, typename From>
To convert(From x) {
  if constexpr (std::is_same_v<From, To>) {
    return x;
  } else if constexpr (kIsHalf<From>) {
    return static_cast<To>(widen(x));
  } else if constexpr (kIsHalf<To>) {
    return narrow_to(x, To{});
  } else {
    return static_cast<To>(x);
  }
}

// Truncates, and saturates to T, an integer. `value` is not NaN. The bound is the largest T plus 1,
// which is exact in float64 for every T.
template <typename T>
T truncate(double value) {
  constexpr double kBound = 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
  if (value >= kBound) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

// Converts `count` contiguous elements. Construct it outside of loops, since it loads constants.
template <typename From, typename To>
struct Converter {
  void operator()(const From* from, To* to, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
  }
};

template <typename Half>
  requires kIsHalf<Half>
struct Converter<Half, float> {
  HalfSimd<Half> simd;
  void operator()(const Half* from, float* to, int64_t count) const {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
      v128_t wide[2];
      simd.widen(from + i, wide);
      wasm_v128_store(to + i, wide[0]);
      wasm_v128_store(to + i + 4, wide[1]);
    }
#pragma clang loop vectorize(disable) unroll(disable)
    for (; i < count; ++i) to[i] = widen(from[i]);
  }
};

template <typename Half>
  requires kIsHalf<Half>
struct Converter<float, Half> {
  HalfSimd<Half> simd;
  void operator()(const float* from, Half* to, int64_t count) const {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) wasm_v128_store(to + i, narrow_eight(simd, from + i));
#pragma clang loop vectorize(disable) unroll(disable)
    for (; i < count; ++i) to[i] = narrow_to(from[i], Half{});
  }
};

}  // namespace wgemm
