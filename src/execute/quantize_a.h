// Quantization of A by the call itself. Threads share it by pieces of rows.
//
// DynamicQuantizeMatMul: as ONNX DynamicQuantizeLinear does it, with one scale and one zero point
// for all of A. Accuracy level 4 of MatMulNBits: with a scale per row and block of K, for kernels
// that read codes by bytes.
#pragma once

#include "base/quantize.h"
#include "base/thread_pool.h"
#include "problem/problem.h"

namespace wgemm {

// Widens `range` by the elements of all matrices float_a, which are in memory.
void add_range(const Problem& problem, FloatRange* range);

// Writes the scale and the zero point of A that follow from the range of all its elements. Errors
// call the operation `op`: kArgument if an element is not finite, or if the scale times the largest
// b_scale is not.
Status set_a_scale(const char* op, const FloatRange& range, Quantization* quantization);

// set_a_scale() with the range of all matrices float_a.
Status find_a_scale(Context& context, const JobThreads& threads, const char* op, Problem* problem);

// A problem whose A is quantized before the product, to `bytes` of Plan::quantized_a_bytes. A task
// is a piece of a line of A. Lines are rows; or columns, if these are contiguous.
class QuantizedA {
 public:
  QuantizedA(const Problem& problem, std::byte* bytes);
  QuantizedA(const QuantizedA&) = delete;  // its problem points into it
  QuantizedA& operator=(const QuantizedA&) = delete;

  // The problem with the quantized A. A row of accuracy level 4 has quantized_row_bytes() for all
  // K.
  const Problem& problem() const { return quantized_; }
  size_t tasks() const { return static_cast<size_t>(tasks_); }
  // Quantizes the elements of some tasks, or widens `range` by them if it is not null.
  void run(size_t first, size_t count, FloatRange* range) const;

 private:
  int64_t place_of(int64_t line) const;
  void run_piece(int64_t line, int64_t element, int64_t count, FloatRange* range) const;

  const Problem& problem_;
  std::byte* const bytes_;
  // Lines of a matrix: their number and length, and the distances in A from line to line and from
  // element to element, in elements. Each line is cut into `cuts_` pieces. Quantized lines are
  // contiguous.
  int64_t lines_, length_, stride_, step_, line_bytes_;
  int64_t cuts_ = 1, pieces_per_task_ = 1, tasks_ = 0;
  Problem quantized_;
  BatchAxis axes_[kMaxRank];
};

}  // namespace wgemm
