// Quantization of A by the call itself, as ONNX DynamicQuantizeLinear does it: one scale and one
// zero point for all of A.
#pragma once

#include "base/quantize.h"
#include "problem/problem.h"

namespace wgemm {

// Widens `range` by the elements of all matrices float_a, which are in memory.
void add_range(const Problem& problem, FloatRange* range);

// Writes the scale and the zero point of A that follow from the range of all its elements. Errors
// call the operation `op`: kArgument if an element is not finite, or if the scale times the largest
// b_scale is not.
Status set_a_scale(const char* op, const FloatRange& range, Quantization* quantization);

// set_a_scale() with the range of all matrices float_a.
Status find_a_scale(const char* op, Problem* problem);

// Quantizes all matrices float_a to `bytes`, where `problem` then has A.
void quantize_a(Problem* problem, std::byte* bytes);

}  // namespace wgemm
