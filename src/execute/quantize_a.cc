#include "execute/quantize_a.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "pack/nbits.h"

namespace wgemm {
namespace {

// The most elements of a task, if A has several tasks.
constexpr int64_t kTaskElements = 4096;

// Fewer elements than this are one task: other threads would come too late.
constexpr int64_t kSharedElements = 4 * kTaskElements;

}  // namespace

void add_range(const Problem& problem, FloatRange* range) {
  const QuantizedA a(problem, nullptr);
  a.run(0, a.tasks(), range);
}

Status set_a_scale(const char* op, const FloatRange& range, Quantization* quantization) {
  const float width = range.high - range.low;
  if (!range.is_finite || !std::isfinite(width)) {
    return error(Code::kArgument, op, "A",
                 {"A has %; each element, and their range in float32, must be finite",
                  range.has_nan     ? "NaN"
                  : range.is_finite ? "an infinite range"
                                    : "an infinite element"});
  }
  QuantizedScale q = scale_of(range, 0, 0);
  // If the scale underflows, ONNX Runtime takes 1: all of A is then 0.
  if (width / 255 == 0) q = {1, 0};
  if (!std::isfinite(q.scale * quantization->b_scale_max)) {
    return error(Code::kArgument, op, "b_scale",
                 {"% is not finite in float32; it must be", "the scale of A times b_scale"});
  }
  quantization->a_scale = q.scale;
  quantization->a_zero_point = q.zero_point;
  return {};
}

Status find_a_scale(Context& context, const JobThreads& threads, const char* op, Problem* problem) {
  const QuantizedA a(*problem, nullptr);
  struct Job {
    const QuantizedA& a;
    FloatRange ranges[kMaxThreads];
  } job{a, {}};
  const auto run = [](void* argument, size_t thread, size_t first, size_t count) {
    auto& [all, ranges] = *static_cast<Job*>(argument);
    all.run(first, count, &ranges[thread]);
  };
  const Phase phase{run, a.tasks(), SIZE_MAX};
  Threads::run(context, a.tasks() == 1 ? JobThreads{} : threads, {&phase, 1}, &job);
  FloatRange all;
  for (const FloatRange& range : job.ranges) {
    all.low = std::min(all.low, range.low);
    all.high = std::max(all.high, range.high);
    all.is_finite = all.is_finite && range.is_finite;
    all.has_nan = all.has_nan || range.has_nan;
  }
  return set_a_scale(op, all, &problem->quantization);
}

QuantizedA::QuantizedA(const Problem& problem, std::byte* bytes)
    : problem_(problem),
      bytes_(bytes),
      lines_(problem.m),
      length_(problem.k),
      stride_(problem.a.row_stride),
      step_(problem.a.col_stride),
      quantized_(problem) {
  const bool are_columns = !problem.quantizes_rows && step_ != 1 && stride_ == 1;
  if (are_columns) {
    std::swap(lines_, length_);
    std::swap(stride_, step_);
  }
  line_bytes_ =
      problem.quantizes_rows ? problem.b.nbits_format().quantized_row_bytes(length_) : length_;
  quantized_.a = {bytes, problem.quantizes_rows ? DType::kInt8 : DType::kUInt8,
                  are_columns ? 1 : line_bytes_,
                  are_columns ? line_bytes_ : !problem.quantizes_rows};
  if (!problem.quantizes_rows && step_ == 1 && stride_ == length_) {
    length_ *= std::exchange(lines_, 1);
    line_bytes_ = length_;
  }
  if (!problem.quantizes_rows && problem.a.row_stride == 0) {
    lines_ = 1;
    quantized_.a.row_stride = 0;
  }
  int64_t lines = lines_;  // of all matrices
  for (size_t i = problem.batch.size(); i-- > 0;) {
    axes_[i] = problem.batch[i];
    if (axes_[i].a == 0) continue;
    axes_[i].a = lines * line_bytes_;
    lines *= axes_[i].size;
  }
  quantized_.batch = {axes_, problem.batch.size()};
  if (lines * length_ >= kSharedElements) {
    cuts_ = (length_ + kTaskElements - 1) / kTaskElements;
  } else {
    pieces_per_task_ = lines;
  }
  if (lines * length_ != 0) tasks_ = lines * cuts_ / pieces_per_task_;
}

// The place in A of the first element of a line.
int64_t QuantizedA::place_of(int64_t line) const {
  int64_t place = line % lines_ * stride_, matrix = line / lines_;
  for (size_t i = problem_.batch.size(); i-- > 0;) {
    const BatchAxis& axis = problem_.batch[i];
    if (axis.a == 0) continue;
    place += matrix % axis.size * axis.a;
    matrix /= axis.size;
  }
  return place;
}

void QuantizedA::run_piece(int64_t line, int64_t element, int64_t count, FloatRange* range) const {
  const Operand& a = problem_.quantizes_rows ? problem_.a : problem_.quantization.float_a;
  const std::byte* const from = a.at(place_of(line) + element * step_).base;
  // Where the line goes. Not computed for a range, which has no bytes to write.
  std::byte* const to = range != nullptr ? nullptr : bytes_ + line * line_bytes_;
  if (problem_.quantizes_rows) {
    const NBits& format = problem_.b.nbits_format();
    return quantize_row({from, a.dtype, 1, count, 0, step_}, format,
                        to + format.quantized_row_bytes(element));
  }
  const Quantization& q = problem_.quantization;
  const bool is_run = step_ == 1;
  const FloatRows x{reinterpret_cast<const float*>(from), is_run ? 1 : count, is_run ? count : 1,
                    step_};
  if (range != nullptr) return wgemm::add_range(x, range);
  quantize_elements(x, DType::kUInt8, {q.a_scale, q.a_zero_point}, to + element);
}

void QuantizedA::run(size_t first, size_t count, FloatRange* range) const {
  const auto begin = static_cast<int64_t>(first) * pieces_per_task_,
             end = begin + static_cast<int64_t>(count) * pieces_per_task_;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t element = i % cuts_ * kTaskElements;
    run_piece(i / cuts_, element, cuts_ == 1 ? length_ : std::min(kTaskElements, length_ - element),
              range);
  }
}

}  // namespace wgemm
