// Operators that compute with all elements of a row. Sums are in float64, in a fixed order.
#include <wasm_simd128.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "nn/chunks.h"
#include "nn/functions.h"
#include "nn/operator.h"

namespace wgemm::nn {
namespace {

// Two elements as float64.
v128_t load_two(const float* x) { return wasm_f64x2_promote_low_f32x4(wasm_v128_load64_zero(x)); }
v128_t load_two(const double* x) { return wasm_v128_load(x); }
void store_two(float* y, v128_t two) {
  wasm_v128_store64_lane(y, wasm_f32x4_demote_f64x2_zero(two), 0);
}
void store_two(double* y, v128_t two) { wasm_v128_store(y, two); }

// The sum of f(x[i]). `f` takes two float64.
template <typename T, typename F>
double sum_of(const T* x, int64_t count, const F& f) {
  v128_t sums[4] = {};  // so that an addition need not wait for the one before
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; ++k) sums[k] = wasm_f64x2_add(sums[k], f(load_two(x + i + 2 * k)));
  }
  const v128_t all =
      wasm_f64x2_add(wasm_f64x2_add(sums[0], sums[1]), wasm_f64x2_add(sums[2], sums[3]));
  double sum = wasm_f64x2_extract_lane(all, 0) + wasm_f64x2_extract_lane(all, 1);
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < count; ++i)
    sum += wasm_f64x2_extract_lane(f(wasm_f64x2_splat(static_cast<double>(x[i]))), 0);
  return sum;
}

template <typename T>
double mean_of(const Step& step, const Row& row) {
  double sum = 0;
  for_each_chunk<T>(step, row, [&](const T* x, int64_t count, int64_t) {
    sum += sum_of(x, count, [](v128_t two) { return two; });
  });
  return sum / static_cast<double>(row.count);
}

// ReduceMean --------------------------------------------------------------------------------------

// y has one element per row. float64 is summed in ascending order, so that results have the bits of
// JavaScript's; float32 is rounded, so that the order of its sums in float64 hardly matters.
template <typename T>
void mean_row(const Step& step, const Row& row) {
  double mean;
  if constexpr (std::is_same_v<T, double>) {
    double sum = 0;
    for_each_chunk<T>(step, row, [&](const T* x, int64_t count, int64_t) {
      for (int64_t i = 0; i < count; ++i) sum += x[i];
    });
    mean = sum / static_cast<double>(row.count);
  } else {
    mean = mean_of<T>(step, row);
  }
  store(step.tensors[1].type, &mean, 1, row.at[1], 0);
}

bool choose_mean(Step* step) {
  const DType type = step->tensors[0].type;
  step->row = fits_float(type) ? mean_row<float> : mean_row<double>;
  return type == step->tensors[1].type && (!is_integer(type) || type == DType::kInt32);
}

// LayerNormalization ------------------------------------------------------------------------------

// x, scale and bias. Attributes: the mean, and the inverse of the deviation.
template <typename T>
void normalize_loop(ptrdiff_t count, const void* const* inputs, void* output,
                    const double* attributes) {
  const auto *x = static_cast<const T*>(inputs[0]), *scale = static_cast<const T*>(inputs[1]),
             *bias = static_cast<const T*>(inputs[2]);
  auto* const y = static_cast<T*>(output);
  const double mean = attributes[0], inverse = attributes[1];
  const v128_t means = wasm_f64x2_splat(mean), inverses = wasm_f64x2_splat(inverse);
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) {
    const v128_t normal = wasm_f64x2_mul(wasm_f64x2_sub(load_two(x + i), means), inverses);
    store_two(y + i,
              wasm_f64x2_add(wasm_f64x2_mul(normal, load_two(scale + i)), load_two(bias + i)));
  }
  if (i < count)
    y[i] = static_cast<T>((static_cast<double>(x[i]) - mean) * inverse *
                              static_cast<double>(scale[i]) +
                          static_cast<double>(bias[i]));
}

template <typename T>
void normalize(const Step& step, const Row& row, double mean) {
  const v128_t means = wasm_f64x2_splat(mean);
  double squares = 0;
  for_each_chunk<T>(step, row, [&](const T* x, int64_t count, int64_t) {
    squares += sum_of(x, count, [&](v128_t two) {
      const v128_t from_mean = wasm_f64x2_sub(two, means);
      return wasm_f64x2_mul(from_mean, from_mean);
    });
  });
  const double variance = squares / static_cast<double>(row.count);
  const double attributes[] = {mean, 1 / std::sqrt(variance + step.attributes[0])};
  for (size_t i = 4; i < step.tensors.size(); ++i)
    store(step.tensors[i].type, &attributes[i - 4], 1, row.at[i], 0);
  Step elements = step;
  elements.tensors = step.tensors.first(4);
  elements.attributes = attributes;
  run_elements<T>(elements, row);
}

// Affine: y = x scale + bias. The scale and the bias may be more precise than x. Its attributes are
// a mean of 0 and an inverse of 1.
bool choose_affine(Step* step) {
  const DType type = step->tensors[0].type;
  const bool is_single = fits_float(type);
  step->row = is_single ? run_elements<float> : run_elements<double>;
  step->loop = is_single ? normalize_loop<float> : normalize_loop<double>;
  return !is_integer(type) && type == step->tensors[3].type &&
         std::ranges::all_of(step->tensors.subspan(1, 2), [&](const Tensor& tensor) {
           return tensor.type == (is_single ? DType::kFloat32 : DType::kFloat64);
         });
}

// RMSNormalization does not subtract the mean.
template <typename T, bool kCenters>
void normalize_row(const Step& step, const Row& row) {
  normalize<T>(step, row, kCenters ? mean_of<T>(step, row) : 0);
}

template <bool kCenters>
bool choose_normalize(Step* step) {
  const DType type = step->tensors[0].type;
  const bool is_single = fits_float(type);
  step->row = is_single ? normalize_row<float, kCenters> : normalize_row<double, kCenters>;
  step->loop = is_single ? normalize_loop<float> : normalize_loop<double>;
  return !is_integer(type) &&
         std::ranges::all_of(step->tensors.first(4),
                             [&](const Tensor& tensor) { return tensor.type == type; });
}

// Softmax and LogSoftmax --------------------------------------------------------------------------

double greatest(const double* x, int64_t count, double most) {
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t i = 0; i < count; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// Skips NaN.
float greatest(const float* x, int64_t count, float most) {
  v128_t high[4];
  for (v128_t& each : high) each = wasm_f32x4_splat(most);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; ++k) high[k] = wasm_f32x4_pmax(high[k], wasm_v128_load(x + i + 4 * k));
  }
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < count; ++i) high[0] = wasm_f32x4_pmax(high[0], wasm_v128_load32_splat(x + i));
  float lanes[4];
  wasm_v128_store(
      lanes, wasm_f32x4_pmax(wasm_f32x4_pmax(high[0], high[1]), wasm_f32x4_pmax(high[2], high[3])));
  return std::max({lanes[0], lanes[1], lanes[2], lanes[3]});
}

// Powers of float32 are 2^64 times as large, so that none is subnormal before it is divided by
// their sum.
template <typename T>
constexpr T kUnit = std::is_same_v<T, float> ? T{0x1p64} : T{1};

// Writes e^(x - most) * kUnit, and returns the sum.
double write_powers(const double* x, int64_t count, double most, double* y) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += y[i] = exp_f64(x[i] - most);
  return sum;
}

double write_powers(const float* x, int64_t count, float most, float* y) {
  const v128_t mosts = wasm_f32x4_splat(most), low = static_cast<v128_t>(kConstants.exp_low);
  v128_t sums[2] = {};
  for (int64_t i = 0; i < count; i += 4) {
    const float* from = x + i;
    float* to = y + i;
    float last[4];
    const int64_t left = count - i;
    if (left < 4) {
      std::fill_n(last, 4, -std::numeric_limits<float>::infinity());
      std::copy_n(from, left, last);
      from = to = last;
    }
    // After Knuth, the difference plus its error is exact. The power of a sum is a product, and
    // e^error is 1 + error.
    const v128_t v = wasm_v128_load(from), difference = wasm_f32x4_sub(v, mosts),
                 rounded = wasm_f32x4_sub(v, difference);
    v128_t error = wasm_f32x4_add(wasm_f32x4_sub(rounded, mosts),
                                  wasm_f32x4_sub(v, wasm_f32x4_add(difference, rounded)));
    error = wasm_v128_and(error, wasm_f32x4_gt(difference, low));  // the difference may be infinite
    const ExpParts e(wasm_f32x4_pmax(difference, low));
    const v128_t unit = wasm_i32x4_add(wasm_i32x4_shl(e.n, 23), wasm_f32x4_splat(kUnit<float>)),
                 power = wasm_f32x4_add(wasm_f32x4_mul(e.rest, unit), unit),
                 powers = wasm_f32x4_add(power, wasm_f32x4_mul(power, error));
    wasm_v128_store(to, powers);
    if (left < 4) std::copy_n(last, left, y + i);
    sums[0] = wasm_f64x2_add(sums[0], wasm_f64x2_promote_low_f32x4(powers));
    sums[1] = wasm_f64x2_add(
        sums[1], wasm_f64x2_promote_low_f32x4(wasm_i64x2_shuffle(powers, powers, 1, 1)));
  }
  const v128_t all = wasm_f64x2_add(sums[0], sums[1]);
  return wasm_f64x2_extract_lane(all, 0) + wasm_f64x2_extract_lane(all, 1);
}

void multiply(double* y, int64_t count, double factor) {
  for (int64_t i = 0; i < count; ++i) y[i] *= factor;
}

void multiply(float* y, int64_t count, double factor) {
  const auto single = static_cast<float>(factor);
  const v128_t factors = wasm_f32x4_splat(single);
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    wasm_v128_store(y + i, wasm_f32x4_mul(wasm_v128_load(y + i), factors));
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < count; ++i) y[i] *= single;
}

// y = x - most - log, in float64.
template <typename T>
void subtract(const T* x, int64_t count, double most, double log, T* y) {
  const v128_t mosts = wasm_f64x2_splat(most), logs = wasm_f64x2_splat(log);
  int64_t i = 0;
  for (; i + 2 <= count; i += 2)
    store_two(y + i, wasm_f64x2_sub(wasm_f64x2_sub(load_two(x + i), mosts), logs));
  if (i < count) y[i] = static_cast<T>(static_cast<double>(x[i]) - most - log);
}

// If y is contiguous, it holds the powers until they have their sum. Otherwise they are computed
// again.
template <typename T, bool kIsLog>
void softmax_row(const Step& step, const Row& row) {
  const bool direct = is_direct<T>(step, row, 1), keeps = direct && !kIsLog;
  alignas(16) T buffer[kChunk];
  T most = -std::numeric_limits<T>::infinity();
  for_each_chunk<T>(step, row,
                    [&](const T* x, int64_t count, int64_t) { most = greatest(x, count, most); });
  const auto y_at = [&](int64_t at) { return reinterpret_cast<T*>(place(step, row, 1, at)); };
  double sum = 0;
  for_each_chunk<T>(step, row, [&](const T* x, int64_t count, int64_t at) {
    sum += write_powers(x, count, most, keeps ? y_at(at) : buffer);
  });
  const double log = kIsLog ? log_f64(sum / static_cast<double>(kUnit<T>)) : 0, factor = 1 / sum;
  for_each_chunk<T>(step, row, [&](const T* x, int64_t count, int64_t at) {
    T* const y = direct ? y_at(at) : buffer;
    if constexpr (kIsLog) {
      subtract(x, count, static_cast<double>(most), log, y);
    } else {
      if (!keeps) write_powers(x, count, most, y);
      multiply(y, count, factor);
    }
    if (!direct) store(step.tensors[1].type, buffer, count, place(step, row, 1, at), row.steps[1]);
  });
}

template <bool kIsLog>
bool choose_softmax(Step* step) {
  const DType type = step->tensors[0].type;
  step->row = fits_float(type) ? softmax_row<float, kIsLog> : softmax_row<double, kIsLog>;
  return type == step->tensors[1].type && !is_integer(type);
}

constexpr Operator kOperators[] = {
    {"Softmax", 1, 1, 0, true, 16, choose_softmax<false>},
    {"LogSoftmax", 1, 1, 0, true, 16, choose_softmax<true>},
    {"LayerNormalization", 3, 1, 1, true, 8, choose_normalize<true>},
    // Its outputs after y have one element per row: the mean, and the inverse of the deviation.
    {"LayerNormalizationStatistics", 3, 3, 1, true, 8, choose_normalize<true>},
    {"RMSNormalization", 3, 1, 1, true, 8, choose_normalize<false>},
    {"ReduceMean", 1, 1, 0, true, 2, choose_mean},
    {"Affine", 3, 1, 2, false, 4, choose_affine},
};

}  // namespace

std::span<const Operator> row_operators() { return kOperators; }

}  // namespace wgemm::nn
