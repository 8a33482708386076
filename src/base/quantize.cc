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

constexpr int64_t kGroup = 16;

// Calls `group` with the place of each group of elements, and `one` with the place of each other
// element. The second argument is the place in contiguous rows.
template <typename Group, typename One>
void for_each_group(const FloatRows& x, const Group& group, const One& one) {
  size_t at = 0;
  if (x.cols == 0) return;  // there may be no data
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* const row = x.data + i * x.row_stride;
    int64_t j = 0;
    for (; j + kGroup <= x.cols; j += kGroup, at += kGroup) group(row + j, at);
    for (; j < x.cols; ++j, ++at) one(row + j, at);
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
[[gnu::cold]] Status bad_element(const FloatRows& x, bool finite) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) {
      const float value = x.data[i * x.row_stride + j];
      if (!std::isnan(finite ? value - value : value)) continue;
      const int64_t place[] = {i, j};
      return error(Code::kArgument, "quantize", "x",
                   {"x has % at %; each element must be %",
                    std::isnan(value) ? "NaN"
                    : value > 0       ? "Infinity"
                                      : "-Infinity",
                    std::span<const int64_t>(place), finite ? "finite" : "a number or infinity"});
    }
  }
  return {};  // another thread has replaced it
}

// Quantizes elements to int8, or to uint8: that is int8 for a zero point less by 128, with
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
  // The results are int32.
  v128_t operator()(v128_t x) const {
    const v128_t inside = wasm_f32x4_pmin(wasm_f32x4_pmax(wasm_f32x4_div(x, scale), low), high);
    return wasm_i32x4_add(wasm_f32x4_add(inside, shifter), unshift);
  }
  // The results are bytes.
  v128_t bytes(v128_t a, v128_t b, v128_t c, v128_t d) const {
    const Quantizer& q = *this;
    const v128_t front = wasm_i16x8_narrow_i32x4(q(a), q(b)),
                 back = wasm_i16x8_narrow_i32x4(q(c), q(d));
    return wasm_v128_xor(wasm_i8x16_narrow_i16x8(front, back), flip);
  }
};

}  // namespace

void add_range(const FloatRows& x, FloatRange* range) {
  v128_t low = wasm_f32x4_splat(range->low), high = wasm_f32x4_splat(range->high),
         magnitude = wasm_f32x4_splat(0);
  const auto add = [&](v128_t least, v128_t most, v128_t farthest) {
    low = wasm_f32x4_pmin(low, least);
    high = wasm_f32x4_pmax(high, most);
    magnitude = wasm_u32x4_max(magnitude, farthest);
  };
  const auto doubled = [](v128_t value) { return wasm_i32x4_shl(value, 1); };
  for_each_group(
      x,
      // A comparison need not wait for the one before.
      [&](const float* group, size_t) {
        const v128_t a = wasm_v128_load(group), b = wasm_v128_load(group + 4),
                     c = wasm_v128_load(group + 8), d = wasm_v128_load(group + 12);
        add(wasm_f32x4_pmin(wasm_f32x4_pmin(a, b), wasm_f32x4_pmin(c, d)),
            wasm_f32x4_pmax(wasm_f32x4_pmax(a, b), wasm_f32x4_pmax(c, d)),
            wasm_u32x4_max(wasm_u32x4_max(doubled(a), doubled(b)),
                           wasm_u32x4_max(doubled(c), doubled(d))));
      },
      [&](const float* one, size_t) {
        const v128_t value = wasm_v128_load32_splat(one);
        add(value, value, doubled(value));
      });
  range->low = lane_of(low, false);
  range->high = lane_of(high, true);
  // Twice the bits of infinity; twice the bits of NaN are greater.
  const v128_t infinity = wasm_i32x4_splat(-0x1000000);
  range->has_nan = range->has_nan || wasm_v128_any_true(wasm_u32x4_gt(magnitude, infinity));
  range->is_finite = range->is_finite && !wasm_v128_any_true(wasm_u32x4_ge(magnitude, infinity));
}

[[gnu::cold]] QuantizedScale scale_of(const FloatRange& range, float least_scale, int least) {
  const double width = static_cast<double>(range.high) - static_cast<double>(range.low);
  const auto rounded = static_cast<float>(width);
  // In float32, except for a range that is infinite in it.
  const auto scale =
      static_cast<float>((std::isinf(rounded) ? width : static_cast<double>(rounded)) / 255);
  QuantizedScale q{};
  q.scale =
      std::max({width == 0 ? 1 : scale, least_scale, std::numeric_limits<float>::denorm_min()});
  const float zero_point = std::nearbyint(static_cast<float>(least) - range.low / q.scale);
  q.zero_point = static_cast<int>(std::min(zero_point, static_cast<float>(least + 255)));
  return q;
}

void quantize_elements(const FloatRows& x, DType type, const QuantizedScale& q, void* y) {
  const Quantizer quantizer(q, type == DType::kInt8 ? -128 : 0);
  auto* const to = static_cast<std::byte*>(y);
  for_each_group(
      x,
      [&](const float* group, size_t at) {
        wasm_v128_store(to + at,
                        quantizer.bytes(wasm_v128_load(group), wasm_v128_load(group + 4),
                                        wasm_v128_load(group + 8), wasm_v128_load(group + 12)));
      },
      [&](const float* one, size_t at) {
        const v128_t x1 = wasm_v128_load32_splat(one);
        wasm_v128_store8_lane(to + at, quantizer.bytes(x1, x1, x1, x1), 0);
      });
}

Status quantize(const FloatRows& x, DType type, QuantizedScale* q, void* y) {
  const bool has_scale = q->scale > 0;
  FloatRange range;
  add_range(x, &range);
  if (range.has_nan || (!has_scale && !range.is_finite)) return bad_element(x, !has_scale);
  if (!has_scale) *q = scale_of(range, -q->scale, type == DType::kInt8 ? -128 : 0);
  quantize_elements(x, type, *q, y);
  return {};
}

[[gnu::cold]] void quantize_bias(const float* bias, int64_t n, float a_scale, const float* b_scale,
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
