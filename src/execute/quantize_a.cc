#include "execute/quantize_a.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace wgemm {
namespace {

// Visits elements of float_a: widens a range by them, or writes their bytes.
struct Visitor {
  FloatRange* range;
  QuantizedScale scale;
  std::byte* bytes;

  // `at`: the place of the elements in float_a and in A. They are contiguous.
  void run(const Problem& p, int64_t at, int64_t count) const {
    const auto* const data = reinterpret_cast<const float*>(p.quantization.float_a.base) + at;
    const FloatRows x{data, 1, count, 0};
    if (range != nullptr) return wgemm::add_range(x, range);
    quantize_elements(x, DType::kUInt8, scale, bytes + at);
  }
};

// Does the work for all matrices of `axes`. The first one begins at `first`.
void for_each_run(const Problem& p, std::span<const BatchAxis> axes, int64_t first,
                  const Visitor& work) {
  if (!axes.empty()) {
    const BatchAxis& axis = axes[0];
    for (int64_t i = 0; i < (axis.a == 0 ? 1 : axis.size); ++i)
      for_each_run(p, axes.subspan(1), first + i * axis.a, work);
    return;
  }
  int64_t lines = p.m, length = p.k, stride = p.a.row_stride, step = p.a.col_stride;
  if (step != 1 && stride == 1) {
    std::swap(lines, length);
    std::swap(stride, step);
  }
  if (step == 1 && stride == length) {
    length *= lines;
    lines = 1;
  }
  for (int64_t i = 0; i < lines; ++i) {
    const int64_t count = step == 1 ? length : 1;
    for (int64_t j = 0; j < length; j += count) work.run(p, first + i * stride + j * step, count);
  }
}

}  // namespace

void add_range(const Problem& problem, FloatRange* range) {
  for_each_run(problem, problem.batch, 0, {.range = range, .scale = {}, .bytes = nullptr});
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

Status find_a_scale(const char* op, Problem* problem) {
  FloatRange range;
  add_range(*problem, &range);
  return set_a_scale(op, range, &problem->quantization);
}

void quantize_a(Problem* problem, std::byte* bytes) {
  const Quantization& q = problem->quantization;
  for_each_run(*problem, problem->batch, 0,
               {.range = nullptr, .scale = {q.a_scale, q.a_zero_point}, .bytes = bytes});
  problem->a.base = bytes;
}

}  // namespace wgemm
