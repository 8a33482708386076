// Operators that convert between floating point and quantized integers.
#include "base/quantize.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/types.h"
#include "nn/chunks.h"
#include "nn/operator.h"

namespace wgemm::nn {
namespace {

// Quantizes a chunk, without NaN. `y_step`: from one element of y to the next.
void quantize_chunk(const float* x, int64_t count, DType type, const QuantizedScale& q,
                    std::byte* y, int64_t y_step) {
  const FloatRows rows{x, 1, count, count};
  if (y_step == 1) return quantize_elements(rows, type, q, y);
  std::byte bytes[kChunk];
  quantize_elements(rows, type, q, bytes);
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t i = 0; i < count; ++i) y[i * y_step] = bytes[i];
}

// QuantizeLinear ----------------------------------------------------------------------------------

// x, scale and zero point. store() saturates.
void quantize_loop(ptrdiff_t count, const void* const* inputs, void* output, const double*) {
  // A float64 of this size has no fraction.
  constexpr double kLarge = 0x1.8p52;
  const auto *x = static_cast<const double*>(inputs[0]),
             *scale = static_cast<const double*>(inputs[1]),
             *zero = static_cast<const double*>(inputs[2]);
  auto* const y = static_cast<double*>(output);
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<double>(static_cast<float>(x[i] / scale[i])) + kLarge - kLarge + zero[i];
}

void quantize_row(const Step& step, const Row& row) {
  const DType type = step.tensors[3].type;
  QuantizedScale q{};
  if (row.steps[1] == 0 && row.steps[2] == 0 && fits_float(step.tensors[0].type) &&
      fits_float(step.tensors[1].type)) {
    load(step.tensors[1].type, row.at[1], 0, 1, &q.scale);
    int32_t zero_point;
    load(type, row.at[2], 0, 1, &zero_point);
    q.zero_point = zero_point;
  }
  // Otherwise a quotient may be NaN.
  if (q.scale == 0 || !std::isfinite(q.scale)) return run_elements<double>(step, row);
  for_each_chunk<float>(step, row, [&](const float* x, int64_t count, int64_t at) {
    FloatRange range;
    add_range({x, 1, count, count}, &range);
    std::byte* const y = place(step, row, 3, at);
    if (!range.has_nan) return quantize_chunk(x, count, type, q, y, row.steps[3]);
    Row part = row;
    part.count = count;
    part.at[0] = place(step, row, 0, at);
    part.at[3] = y;
    run_elements<double>(step, part);
  });
}

bool is_byte(DType type) { return type == DType::kInt8 || type == DType::kUInt8; }

bool choose_quantize(Step* step) {
  const auto& t = step->tensors;
  step->row = quantize_row;
  step->loop = quantize_loop;
  return (!is_integer(t[0].type) || t[0].type == DType::kInt32) && !is_integer(t[1].type) &&
         t[2].type == t[3].type && is_byte(t[3].type);
}

// DequantizeLinear --------------------------------------------------------------------------------

void dequantize_loop(ptrdiff_t count, const void* const* inputs, void* output, const double*) {
  const auto *x = static_cast<const double*>(inputs[0]),
             *scale = static_cast<const double*>(inputs[1]),
             *zero = static_cast<const double*>(inputs[2]);
  auto* const y = static_cast<double*>(output);
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<double>(static_cast<float>(x[i] - zero[i])) * scale[i];
}

// For bytes with the same scale and zero point, writes the vectors. Returns how many elements these
// have. `flip` makes int8 of the bytes; the zero point is the one of these int8.
int64_t dequantize_vectors(const std::byte* x, int64_t count, int flip, int32_t zero_point,
                           float scale, float* y) {
  const v128_t flips = wasm_i8x16_splat(static_cast<int8_t>(flip)),
               zeros = wasm_i16x8_splat(static_cast<int16_t>(zero_point)),
               scales = wasm_f32x4_splat(scale);
  const auto write = [&](v128_t halves, float* to) {
    const v128_t from_zero = wasm_i16x8_sub(halves, zeros);
    const v128_t low = wasm_i32x4_extend_low_i16x8(from_zero),
                 high = wasm_i32x4_extend_high_i16x8(from_zero);
    wasm_v128_store(to, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(low), scales));
    wasm_v128_store(to + 4, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(high), scales));
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const v128_t bytes = wasm_v128_xor(wasm_v128_load(x + i), flips);
    write(wasm_i16x8_extend_low_i8x16(bytes), y + i);
    write(wasm_i16x8_extend_high_i8x16(bytes), y + i + 8);
  }
  return i;
}

void dequantize_row(const Step& step, const Row& row) {
  const auto& t = step.tensors;
  const DType type = t[0].type;
  Row rest = row;
  if (is_byte(type) && fits_float(t[1].type) && t[3].type == DType::kFloat32 && row.steps[0] == 1 &&
      row.steps[1] == 0 && row.steps[2] == 0 && row.steps[3] == 1) {
    float scale;
    int32_t zero_point;
    load(t[1].type, row.at[1], 0, 1, &scale);
    load(type, row.at[2], 0, 1, &zero_point);
    const int unsigned_by = type == DType::kUInt8 ? 128 : 0;
    const int64_t done =
        dequantize_vectors(row.at[0], row.count, unsigned_by, zero_point - unsigned_by, scale,
                           reinterpret_cast<float*>(row.at[3]));
    rest.count -= done;
    rest.at[0] = place(step, row, 0, done);
    rest.at[3] = place(step, row, 3, done);
  }
  run_elements<double>(step, rest);
}

bool choose_dequantize(Step* step) {
  const auto& t = step->tensors;
  step->row = dequantize_row;
  step->loop = dequantize_loop;
  return (is_byte(t[0].type) || t[0].type == DType::kInt32) && !is_integer(t[1].type) &&
         t[2].type == t[0].type && !is_integer(t[3].type);
}

// DynamicQuantizeLinear ---------------------------------------------------------------------------

// x and y of DynamicQuantizeLinear, whose threads find the range of x together.
struct DynamicStep : Step {
  // The greatest of 0 and -x, and of 0 and x. Infinite if an element is not finite.
  std::atomic<float> low{0}, high{0};

  FloatRange range() const { return {-low.load(), high.load()}; }
  bool is_finite() const { return std::isfinite(low.load()) && std::isfinite(high.load()); }
};

void raise(std::atomic<float>* bound, float value) {
  for (float old = bound->load(); value > old && !bound->compare_exchange_weak(old, value);) {
  }
}

void range_row(const Step& step, const Row& row) {
  // run_rows() passes the step that it got.
  auto& dynamic = const_cast<DynamicStep&>(static_cast<const DynamicStep&>(step));
  FloatRange range;
  for_each_chunk<float>(step, row, [&](const float* x, int64_t count, int64_t) {
    add_range({x, 1, count, count}, &range);
  });
  raise(&dynamic.low, -range.low);
  raise(&dynamic.high, range.is_finite ? range.high : std::numeric_limits<float>::infinity());
}

void dynamic_quantize_row(const Step& step, const Row& row) {
  const auto& dynamic = static_cast<const DynamicStep&>(step);
  if (!dynamic.is_finite()) return;
  const QuantizedScale q = scale_of(dynamic.range(), 0, 0);
  for_each_chunk<float>(step, row, [&](const float* x, int64_t count, int64_t at) {
    quantize_chunk(x, count, DType::kUInt8, q, place(step, row, 1, at), row.steps[1]);
  });
}

// Names the first element that is not finite.
[[gnu::cold]] Status not_finite(const Step& step) {
  int64_t place[kMaxRank];
  for (int64_t i = 0; i < element_count(step, 0); ++i) {
    const float value = *reinterpret_cast<const float*>(element_at(step, 0, i, place));
    if (!std::isfinite(value))
      return error(Code::kArgument, "quantize", "x",
                   {"x has % at %; each element must be finite",
                    std::isnan(value) ? "NaN"
                    : value > 0       ? "Infinity"
                                      : "-Infinity",
                    std::span<const int64_t>(place, step.rank)});
  }
  return {};  // another thread has replaced it
}

constexpr Operator kDynamicRows = {"", 1, 1, 0, false, 4, nullptr};

Status run_dynamic_quantize(Context& context, const Step& step) {
  int64_t dims[kMaxRank], strides[2][kMaxRank];
  Tensor tensors[2];
  for (size_t i = 0; i < 2; ++i) {
    tensors[i] = step.tensors[i];
    std::copy(tensors[i].strides, tensors[i].strides + step.rank, strides[i]);
    tensors[i].strides = strides[i];
  }
  std::copy(step.dims, step.dims + step.rank, dims);
  DynamicStep joined;
  joined.op = &kDynamicRows;
  joined.row = range_row;
  joined.tensors = tensors;
  joined.rank = step.rank;
  joined.dims = dims;
  join_axes(&joined);
  run_rows(context, joined, dynamic_quantize_row);
  if (!joined.is_finite()) return not_finite(step);
  const QuantizedScale q = scale_of(joined.range(), 0, 0);
  *reinterpret_cast<float*>(step.tensors[2].data) = q.scale;
  *reinterpret_cast<uint8_t*>(step.tensors[3].data) = static_cast<uint8_t>(q.zero_point);
  return {};
}

bool choose_dynamic_quantize(Step* step) {
  const auto& t = step->tensors;
  return t[0].type == DType::kFloat32 && t[1].type == DType::kUInt8 &&
         t[2].type == DType::kFloat32 && t[3].type == DType::kUInt8;
}

constexpr Operator kOperators[] = {
    {"QuantizeLinear", 3, 1, 0, false, 4, choose_quantize},
    {"DequantizeLinear", 3, 1, 0, false, 2, choose_dequantize},
    {"DynamicQuantizeLinear", 1, 3, 0, false, 4, choose_dynamic_quantize, run_dynamic_quantize,
     true},
};

}  // namespace

std::span<const Operator> quantize_operators() { return kOperators; }

}  // namespace wgemm::nn
