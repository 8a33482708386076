// Problem -> Plan: the kernel, the blocks, the tasks, the scratch. make_plan() makes the decisions
// in order. Each is in its own file, with its reasons.
#pragma once

#include <optional>

#include "kernels/kernel.h"
#include "plan/regime.h"
#include "problem/problem.h"

namespace wgemm {

// `count` pieces of `size`, the last of which may be smaller.
struct Cut {
  int64_t size = 0, count = 1;
};

struct Plan {
  const Kernel* kernel = nullptr;  // null: there is no product to compute (M, N or K is 0)
  Regime regime{};                 // of a plan with a kernel
  // Block sizes: at least 1, at most a task's M and N, and K. NC is a multiple of nr, except for
  // the last block.
  int64_t mc = 0, nc = 0, kc = 0;
  bool pack_a = false, pack_b = false;  // else unpacked, or prepacked in the kernel's layout
  bool prefetch_a = false, prefetch_b = false;  // load blocks before they are used
  bool direct = false;                          // the kernel's accumulators are Y
  bool canonical_nan = false;                   // the epilogue writes no other NaN
  int a_shift = 0, b_shift = 0;  // of dot kernels: added to A, subtracted from B, as int8
  // The grid of tasks: products that share no B, products that share it, rows, columns. Blocks lie
  // within a task.
  Cut outer, inner, rows, cols;
  int threads = 1;  // that share the tasks; some may get none
  // Bytes of each thread's pieces of the arena, and of what quantized operands need for a block's
  // columns and rows (zero_points.h).
  size_t a_bytes = 0, b_bytes = 0, acc_bytes = 0;
  size_t columns_bytes = 0, sums_bytes = 0;
  size_t thread_bytes = 0, scratch_bytes = 0;  // a thread's share of the arena, and the arena
  size_t quantized_a_bytes = 0;  // at the front of the arena: A, if the call quantizes it

  int64_t tasks() const { return outer.count * inner.count * rows.count * cols.count; }
  // Whether each column of a quantized B is packed by itself, without its zero point.
  bool packs_columns() const {
    return kernel != nullptr && kernel->compute == DType::kInt8 && kernel->b.width == 1;
  }
  // Whether the accumulators are scratch: neither Y nor sums that are carried.
  bool has_accumulators(const Problem& problem) const {
    return kernel != nullptr && !direct && problem.carry.sums == nullptr;
  }
};

// For tests and benchmarks; users get the defaults.
struct PlanOptions {
  const Kernel* kernel = nullptr;  // must compute in the problem's type; null: chosen
  // 0: chosen; rounded up to the kernel's tile and cut to the problem.
  int64_t mc = 0, nc = 0, kc = 0;
  int64_t tasks = 0;  // about that many, however small, also on one thread; 0: chosen
  std::optional<Processor> processor{};  // for which the kernel is chosen; none: this one

  bool operator==(const PlanOptions&) const = default;
};

// Bytes of QuantizedColumns (execute/zero_points.h) for `cols` columns.
constexpr size_t column_bytes(int64_t cols) {
  return static_cast<size_t>(cols) * (sizeof(float) + 2 * sizeof(int32_t));
}

Plan make_plan(const Problem& problem, const Context& context, const PlanOptions& options = {});

// Whether the transpose of the problem is computed faster.
bool transpose_is_faster(const Problem& problem, const PlanOptions& options = {});
// Replaces the problem by its transpose. transpose_is_faster() must be true for the problem, or for
// the whole problem of which it is a block.
void transpose(Problem* problem);
// Transposes the problem if that is faster. Returns whether it did.
bool transpose_if_faster(Problem* problem, const PlanOptions& options = {});

// Replaces a plan whose scratch does not fit with the plan for one thread, since each thread has
// scratch of its own. Returns false if there is no other plan.
bool fall_back_to_one_thread(const Problem& problem, const Context& context,
                             const PlanOptions& options, Plan* plan);

}  // namespace wgemm
