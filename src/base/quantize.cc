#include "base/quantize.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace wgemm {

// The last bit of a float32 of this size is worth 1, so that an addition rounds half to even. A
// variable, so that the compiler loads it: V8 would build a literal vector again for each vector.
extern float quantize_shifter;
float quantize_shifter = 0x1.8p23F;

namespace {

// Calls `four` with the place of each vector of four elements, and `one` with that of each other
// element. The second place is that in contiguous rows.
template <typename Four, typename One>
void for_each_vector(const FloatRows& x, const Four& four, const One& one) {
  size_t at = 0;
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* const row = x.data + i * x.row_stride;
    const auto cols = static_cast<size_t>(x.cols);
    size_t j = 0;
    for (; j + 4 <= cols; j += 4, at += 4) four(row + j, at);
    for (; j < cols; ++j, ++at) one(row + j, at);
  }
}

float lane_of(v128_t x, bool greatest) {
  float lanes[4];
  wasm_v128_store(lanes, x);
  float result = 0;
  for (const float lane : lanes)
    result = greatest ? std::max(result, lane) : std::min(result, lane);
  return result;
}

// Names the first element that is NaN, or infinite if all must be finite.
Status bad_element(const FloatRows& x, bool finite) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) {
      const float value = x.data[i * x.row_stride + j];
      if (!std::isnan(finite ? value - value : value)) continue;
      const int64_t place[] = {i, j};
      return error(Code::kArgument, "quantize", "x",
                   {"x has ",
                    std::isnan(value) ? "NaN"
                    : value > 0       ? "Infinity"
                                      : "-Infinity",
                    " at ", std::span<const int64_t>(place), "; each element must be ",
                    finite ? "finite" : "a number or infinity"});
    }
  }
  return {};  // another thread has replaced it
}

// In float32, except for a range that is infinite in it.
QuantizedScale scale_of(float low, double range, float least_scale, int least) {
  const auto rounded = static_cast<float>(range);
  const auto scale =
      static_cast<float>((std::isinf(rounded) ? range : static_cast<double>(rounded)) / 255);
  QuantizedScale q{};
  q.scale =
      std::max({range == 0 ? 1 : scale, least_scale, std::numeric_limits<float>::denorm_min()});
  const float zero_point = std::nearbyint(static_cast<float>(least) - low / q.scale);
  q.zero_point = static_cast<int>(std::min(zero_point, static_cast<float>(least + 255)));
  return q;
}

// Quantizes four elements to int8, or to uint8: that is int8 for a zero point less by 128, with
// another highest bit.
struct Quantizer {
  v128_t scale, low, high, shifter, unshift, flip;

  Quantizer(const QuantizedScale& q, int least) {
    const int zero_point = q.zero_point - least - 128;
    const auto bound = static_cast<float>(-128 - zero_point);
    scale = wasm_f32x4_splat(q.scale);
    low = wasm_f32x4_splat(bound);
    high = wasm_f32x4_splat(bound + 255);
    shifter = wasm_f32x4_splat(quantize_shifter);
    unshift = wasm_i32x4_splat(zero_point - std::bit_cast<int32_t>(quantize_shifter));
    flip = wasm_i8x16_splat(static_cast<int8_t>(least + 128));
  }
  // The results are the first four bytes.
  v128_t operator()(v128_t x) const {
    const v128_t inside = wasm_f32x4_pmin(wasm_f32x4_pmax(wasm_f32x4_div(x, scale), low), high);
    const v128_t sum = wasm_i32x4_add(wasm_f32x4_add(inside, shifter), unshift);
    const v128_t halves = wasm_i16x8_narrow_i32x4(sum, sum);
    return wasm_v128_xor(wasm_i8x16_narrow_i16x8(halves, halves), flip);
  }
};

}  // namespace

Status quantize(const FloatRows& x, DType type, QuantizedScale* q, void* y) {
  const int least = type == DType::kInt8 ? -128 : 0;
  const bool has_scale = q->scale > 0;
  v128_t low = wasm_f32x4_splat(0), high = low, magnitude = low;
  const auto add = [&](v128_t value) {
    low = wasm_f32x4_pmin(low, value);
    high = wasm_f32x4_pmax(high, value);
    magnitude = wasm_u32x4_max(magnitude, wasm_i32x4_shl(value, 1));
  };
  for_each_vector(
      x, [&](const float* four, size_t) { add(wasm_v128_load(four)); },
      [&](const float* one, size_t) { add(wasm_v128_load32_splat(one)); });
  const float lowest = lane_of(low, false);
  const double range = static_cast<double>(lane_of(high, true)) - static_cast<double>(lowest);
  // Twice the bits of infinity; those of NaN are greater.
  constexpr int32_t kInfinity = -0x1000000;
  if (wasm_v128_any_true(wasm_u32x4_gt(magnitude, wasm_i32x4_splat(kInfinity))) ||
      (!has_scale && std::isinf(range)))
    return bad_element(x, !has_scale);
  if (!has_scale) *q = scale_of(lowest, range, -q->scale, least);
  const Quantizer quantizer(*q, least);
  auto* const to = static_cast<std::byte*>(y);
  for_each_vector(
      x,
      [&](const float* four, size_t at) {
        wasm_v128_store32_lane(to + at, quantizer(wasm_v128_load(four)), 0);
      },
      [&](const float* one, size_t at) {
        wasm_v128_store8_lane(to + at, quantizer(wasm_v128_load32_splat(one)), 0);
      });
  return {};
}

void quantize_bias(const float* bias, int64_t n, float a_scale, const float* b_scale,
                   bool scale_per_column, int32_t* c) {
  // The last bit of a float64 of this size is worth 1.
  constexpr double kShifter = 0x1.8p52;
  for (int64_t j = 0; j < n; ++j) {
    const double scale = static_cast<double>(a_scale) *
                         static_cast<double>(b_scale[scale_per_column ? j : 0]),
                 value = static_cast<double>(bias[j]) / scale;
    const double inside = std::clamp(value, -0x1p30, 0x1p30);
    c[j] = static_cast<int32_t>(std::bit_cast<int64_t>(inside + kShifter));
  }
}

}  // namespace wgemm
