#include "out_of_core/blocked_problem.h"

#include <algorithm>

namespace wgemm {

BlockedProblem::BlockedProblem(const Context& context, const Problem& problem,
                               const OutOfCoreOperands& out_of_core)
    : a(problem.quantization.quantizes_a ? problem.quantization.float_a : problem.a, out_of_core.a),
      b(problem.b.plain, problem.b.is_packed() ? OutOfCoreOperand() : out_of_core.b),
      c(problem.epilogue.c, problem.epilogue.has_c ? out_of_core.c : OutOfCoreOperand()),
      y(problem.y, out_of_core.y),
      context_(context),
      p_(problem),
      acc_bytes_(static_cast<int64_t>(dtype_bytes(accumulator_type(problem.compute)))) {
  // The whole product decides for all blocks, since the rules depend on its sizes.
  Problem whole = block({}, {}, {problem.m, problem.n, problem.k});
  transposes_ = transpose_is_faster(whole);
  if (transposes_) transpose(&whole);
  whole.batch = problem.batch;
  part_steps_ = steps_of_part(whole, context.determinism());
  shares_sums_ = !transposes_ && out_of_core.y.tensor != nullptr && y.runs_along_rows() &&
                 dtype_bytes(problem.y.dtype) == static_cast<size_t>(acc_bytes_);
}

int64_t BlockedProblem::bytes() {
  const BlockSizes& s = sizes_;
  size_t scratch = 0;
  // The last blocks may be smaller, and need more scratch all the same.
  for (const int64_t m : {s.m, p_.m % s.m}) {
    for (const int64_t n : {s.n, p_.n % s.n}) {
      for (const int64_t k : {s.k, s.k == 0 ? 0 : p_.k % s.k}) {
        if (m == 0 || n == 0 || (k == 0 && s.k != 0)) continue;
        const BlockSizes size{m, n, k};
        scratch = std::max(scratch, plan_of(block({}, {}, size), size).scratch_bytes);
      }
    }
  }
  return a.room(s.m, s.k) + b.room(s.k, s.n) + c.room(s.m, s.n) + y.room(s.m, s.n) + sums_room() +
         static_cast<int64_t>(scratch);
}

double BlockedProblem::cost(const BlockSizes& s) const {
  const auto blocks =
      static_cast<double>(count_of(p_.m, s.m)) * static_cast<double>(count_of(p_.n, s.n));
  const auto of_k = static_cast<double>(count_of(p_.k, s.k));
  const double sums =
      static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(acc_bytes_);
  return blocks * (of_k * (a.cost(s.m, s.k) + b.cost(s.k, s.n)) + c.cost(s.m, s.n) +
                   y.cost(s.m, s.n) + (of_k - 1) * sums);
}

std::byte* BlockedProblem::set_memory(std::byte* memory) {
  const auto take = [&](int64_t bytes) { return std::exchange(memory, memory + bytes); };
  a.set_memory(take(a.room(sizes_.m, sizes_.k)));
  b.set_memory(take(b.room(sizes_.k, sizes_.n)));
  c.set_memory(take(c.room(sizes_.m, sizes_.n)));
  y.set_memory(take(y.room(sizes_.m, sizes_.n)));
  sums_ = shares_sums_ ? y.memory() : take(sums_room());
  return memory;
}

Problem BlockedProblem::block(const ProductOffsets& at, const BlockSizes& from,
                              const BlockSizes& size) {
  Problem other = p_;
  other.batch = {};
  other.m = size.m;
  other.n = size.n;
  other.k = size.k;
  other.a = a.block(at.a, from.m, from.k, size.m, size.k);
  Quantization& q = other.quantization;
  if (q.quantizes_a) {
    q.float_a = other.a;
    other.a = {nullptr, DType::kUInt8, q.float_a.row_stride, q.float_a.col_stride};
  }
  if (p_.b.is_packed()) {
    other.b.packed = p_.b.packed.at(at.b).from(from.k, from.n);
  } else if (p_.b.nbits_format()) {
    other.b.nbits = p_.b.nbits.from(from.k, from.n);
  } else {
    other.b.plain = b.block(at.b, from.k, from.n, size.k, size.n);
  }
  if (p_.epilogue.has_c) other.epilogue.c = c.block(at.c, from.m, from.n, size.m, size.n);
  other.y = y.block(at.y, from.m, from.n, size.m, size.n);
  for (int i = 0; i < kQuantizationParams; ++i) {
    Operand& v = q.params[i];
    v = v.at(at.params.at[i] + from.m * v.row_stride + from.n * v.col_stride);
  }
  other.part_steps = cuts_k() ? part_steps_ : -1;
  if (sizes_.k < p_.k) {
    // A problem that is only planned needs an address that is not null.
    other.carry = {sums_ == nullptr ? &placeholder_ : sums_, from.k == 0, from.k + size.k == p_.k};
  }
  if (transposes_) transpose(&other);
  return other;
}

Plan BlockedProblem::plan_of(const Problem& problem, const BlockSizes& size) const {
  if (size.k == sizes_.k) return make_plan(problem, context_);
  Problem first = problem;
  first.k = sizes_.k;
  return make_plan(problem, context_, {.kernel = make_plan(first, context_).kernel});
}

int64_t BlockedProblem::sums_room() const {
  const bool has_sums = sizes_.k < p_.k && !shares_sums_;
  return has_sums ? Arena::round_up(sizes_.m * sizes_.n * acc_bytes_) : 0;
}

}  // namespace wgemm
