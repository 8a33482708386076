#include "base/convert.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/types.h"

namespace wgemm {
#define WGEMM_SPLAT(x) {x, x, x, x}
HalfConstants half_constants = {
    .high_half = WGEMM_SPLAT(0x8fff8fffU),      // upper halves of two float16 shifted left by 13
    .high_infinity = WGEMM_SPLAT(0x7f807f80U),  // the upper half of a float32 infinity, twice
    .exponent = WGEMM_SPLAT(0x7c007c00U),
    .finite_exponent = WGEMM_SPLAT(0x7bff7bffU),
    .low15 = WGEMM_SPLAT(0x7fffU),
    .sign_and_shifted = WGEMM_SPLAT(0x8fffe000U),  // a float16 shifted left by 13
    .largest_exponent = WGEMM_SPLAT(0x7bffU),      // the largest finite float16
    .two_to_112 = WGEMM_SPLAT(0x77800000U),
    .two_to_minus_110 = WGEMM_SPLAT(0x08800000U),
    .infinity = WGEMM_SPLAT(0x7f800000U),
    .magnitude = WGEMM_SPLAT(0x7fffffffU),
    .quiet_bit = WGEMM_SPLAT(0x400000U),
    .rounding_exponent = WGEMM_SPLAT(0x07800000U),  // 15 in a float32's exponent
    .two = WGEMM_SPLAT(0x40000000U),
    .one = WGEMM_SPLAT(1U),
    .f16_infinity = WGEMM_SPLAT(0x7c00U),
    .f16_nan = WGEMM_SPLAT(0x7e007e00U),
    .f16_mantissa = WGEMM_SPLAT(0x0fff0fffU),  // with the leading bit and the carry
    .f16_sign = WGEMM_SPLAT(0x80008000U),
    .zero = WGEMM_SPLAT(0U),
};
#undef WGEMM_SPLAT

namespace {

// float64 becomes 16 bits through a float32 that is rounded to odd. Both roundings together then
// have the result of a single one. (Boldo and Melquiond, "When double rounding is odd", 2005.)
float round_to_odd(double value) {
  float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value))
    nearest = std::nextafter(nearest, 0.0F);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) | 1U);
}

template <typename T>
bool store_typed(double value, void* element) {
  T result;
  if constexpr (std::is_integral_v<T>) {
    constexpr double kEnd = 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) && value < kEnd &&
          value == std::trunc(value)))
      return false;
    result = static_cast<T>(value);
  } else if constexpr (kIsHalf<T>) {
    result = narrow_to(round_to_odd(value), T{});
  } else {
    result = static_cast<T>(value);
  }
  std::memcpy(element, &result, sizeof(result));
  return true;
}

constexpr bool (*kStore[])(double, void*) = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) store_typed<Storage>,
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) store_typed<Storage>,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

}  // namespace

Status store(const char* op, const char* argument, double value, DType dtype, void* element) {
  if (static_cast<int>(dtype) >= kDTypeCount) {
    return error(Code::kDType, op, argument,
                 {"% has the unknown type %; see DType", argument, static_cast<int64_t>(dtype)});
  }
  if (kStore[static_cast<int>(dtype)](value, element)) return {};
  return error(Code::kArgument, op, argument,
               {"% is a number that % cannot hold; it must be whole and in the range of the type",
                argument, dtype_name(dtype)});
}

}  // namespace wgemm
