#include "plan_cache.h"

#include <algorithm>
#include <bit>
#include <new>

namespace wgemm {

// Each struct is taken apart by all its members, so that one that comes to have another does not
// compile before it is thought of here.
PlanCache::Key::Key(const Problem& problem, const Context& context) {
  const auto& [m, n, k, compute, a, b, stored_b, y, epilogue, batch, quantization, carry] = problem;
  // First what differs most often.
  add(m, n, k, compute, carry.sums != nullptr, context.threads(), context.determinism());
  add_operand(a);
  add_operand(b);
  add_operand(y);
  const auto& [panels, dtype, depth, matrix_bytes, column_sums, low, high, finite] = stored_b;
  add(panels != nullptr, dtype, depth, matrix_bytes, column_sums != nullptr, low, high, finite);
  [[maybe_unused]] const auto& [alpha, beta, has_c, c, bounds] = epilogue;
  add_factor(alpha);
  add_factor(beta);
  add(has_c, epilogue.has_bounds());
  add_operand(c);
  add(batch.size());
  fits_ = batch.size() <= kMostAxes;
  if (!fits_) return;
  for (const auto& [size, of_a, of_b, of_c, of_y] : batch) add(size, of_a, of_b, of_c, of_y);
  if (compute != DType::kInt8) return;
  [[maybe_unused]] const auto& [a_zero_point, b_zero_point, shifts_b, a_scale, b_scale, quantizes_y,
                                y_scale, y_zero_point] = quantization;
  add(shifts_b, quantizes_y);
  add_operand(b_zero_point);
  add_operand(b_scale);
}

void PlanCache::Key::add_factor(const Scalar& factor) {
  const auto& [value, integer, whole] = factor;
  add(std::bit_cast<int64_t>(value), integer, whole);
}

template <typename Byte>
void PlanCache::Key::add_operand(const BasicOperand<Byte>& operand) {
  const auto& [base, dtype, row_stride, col_stride] = operand;
  add(static_cast<int64_t>(base != nullptr) << 8 | static_cast<int64_t>(dtype), row_stride,
      col_stride);
}

bool PlanCache::Key::operator==(const Key& other) const {
  if (count_ != other.count_) return false;
  int same = 0;  // by std::equal() it is memcmp(), which Emscripten's library does byte by byte
  while (same < count_ && words_[same] == other.words_[same]) ++same;
  return same == count_;
}

const Plan* PlanCache::plan(const Problem& problem, Context& context) {
  const Key key(problem, context);
  return key.fits() && context.plans_ != nullptr ? context.plans_->find(problem, context, key)
                                                 : nullptr;
}

const Plan* PlanCache::find(const Problem& problem, const Context& context, const Key& key) {
  for (int i = 0; i < count_; ++i) {
    if (entries_[i].key == key) return &entries_[i].plan;
  }
  Entry& entry = entries_[oldest_];
  oldest_ = (oldest_ + 1) % kEntries;
  count_ = std::min(count_ + 1, kEntries);
  entry.key = key;
  entry.plan = make_plan(problem, context);
  return &entry.plan;
}

// The plans' memory is not counted in bytes_in_use(), as the context's own is not. Taken before all
// else: a small block that stays, behind a large one that goes, would keep memory apart.
Context::Context(size_t memory_limit, Determinism determinism)
    : limit_(memory_limit), determinism_(determinism), plans_(new(std::nothrow) PlanCache) {}

Context::~Context() {
  end_threads();
  delete plans_;
}

}  // namespace wgemm
