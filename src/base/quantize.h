// Quantization of float32 to int8 and uint8, bit for bit as js/convert/quantize.ts:
// y = saturate(round(x / scale) + zero_point). The quotient is rounded to float32, and then half to
// even, as ONNX QuantizeLinear demands.
#pragma once

#include <cstdint>

#include "wgemm.h"

namespace wgemm {

// A matrix of float32. The caller owns it.
struct FloatRows {
  const float* data;
  int64_t rows, cols;
  int64_t row_stride;  // elements from row to row
};

// An integer y stands for the number (y - zero_point) * scale.
struct QuantizedScale {
  float scale;
  int zero_point;
};

// The range of elements and 0. Not finite if an element is NaN or infinite.
struct FloatRange {
  float low = 0, high = 0;
  bool is_finite = true, has_nan = false;
};

// Widens `range` by the elements of x.
void add_range(const FloatRows& x, FloatRange* range);

// The scale and the zero point of a range as ONNX DynamicQuantizeLinear computes them for a type
// whose smallest value is `least`: -128 or 0. The scale is at least `least_scale`, and not 0.
QuantizedScale scale_of(const FloatRange& range, float least_scale, int least);

// Quantizes x, which has no NaN, to contiguous rows of `type` at `y`: kInt8 or kUInt8. y must not
// overlap x.
void quantize_elements(const FloatRows& x, DType type, const QuantizedScale& q, void* y);

// Quantizes x and writes it to `y`: contiguous rows of `type`, which is kInt8 or kUInt8. y must not
// overlap x. If q->scale is above 0, it applies with q->zero_point. Otherwise both come from the
// range of x and 0, as ONNX DynamicQuantizeLinear computes them, and the call writes them to `q`.
// The scale is then at least -q->scale.
// Error: kArgument if an element is NaN, or if the range is infinite. The call then writes nothing.
Status quantize(const FloatRows& x, DType type, QuantizedScale* q, void* y);

// Writes round(bias / (a_scale * b_scale)), computed in float64: C of QGemm for a finite bias of
// `n` elements. It is at most 2^30 in magnitude, so that adding the products does not wrap.
// `b_scale` has one element, or n.
void quantize_bias(const float* bias, int64_t n, float a_scale, const float* b_scale,
                   bool scale_per_column, int32_t* c);

}  // namespace wgemm
