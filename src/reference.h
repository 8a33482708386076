// What the operations mean, as code: one element of the result by its definition, in ascending k, one accumulator, every step rounded
// on its own. Tests hold everything else to it. Not fast, and not used by the library.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "problem.h"

namespace wgemm {

template <typename T>
T reference_read(const Operand& operand, int64_t row, int64_t col) {
  return *reinterpret_cast<const T*>(operand.block(row, col).data);
}

// Element (i, j) of Y = alpha * A * B + beta * C for operands of type T. Floating point: computed in Acc, not yet rounded to T. Integers:
// Acc is T; exact modulo 2^bits, but where alpha or beta has a fraction, through float64.
template <typename T, typename Acc>
Acc reference_gemm(const Problem& p, int64_t i, int64_t j) {
  const Epilogue& e = p.epilogue;
  const T c = e.has_c ? reference_read<T>(e.c, i, j) : T{0};
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    U acc = 0;
    for (int64_t k = 0; k < p.k; ++k) acc += static_cast<U>(reference_read<T>(p.a, i, k)) * static_cast<U>(reference_read<T>(p.b, k, j));
    const bool fraction = (p.k > 0 && !e.alpha.whole) || (e.has_c && !e.beta.whole);
    if (!fraction) return static_cast<T>(static_cast<U>(e.alpha.integer) * acc + static_cast<U>(e.beta.integer) * static_cast<U>(c));
    const double value = e.alpha.value * static_cast<double>(static_cast<T>(acc)) + e.beta.value * static_cast<double>(c);
    using Limits = std::numeric_limits<T>;
    if (value >= std::ldexp(1.0, Limits::digits)) return Limits::max();
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<T>(value);  // toward zero
  } else {
    Acc acc = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      const Acc product = static_cast<Acc>(reference_read<T>(p.a, i, k)) * static_cast<Acc>(reference_read<T>(p.b, k, j));
      acc += product;
    }
    const Acc scaled = static_cast<Acc>(e.alpha.value) * acc;
    const Acc bias = static_cast<Acc>(e.beta.value) * static_cast<Acc>(c);
    if (p.k == 0) return e.has_c ? bias : Acc{0};
    return e.has_c ? scaled + bias : scaled;
  }
}

}  // namespace wgemm
