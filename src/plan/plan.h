// Problem -> Plan: the kernel, the blocks, the tasks, the scratch. make_plan() makes the decisions
// in order. Each is in its own file, with its reasons.
#pragma once

#include <optional>

#include "base/arena.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "base/types.h"
#include "kernels/kernel.h"
#include "plan/regime.h"
#include "problem/problem.h"

namespace wgemm {

// `total`, cut into `count` pieces of `size`, the last of which may be smaller.
struct Cut {
  int64_t size = 0, count = 1, total = 0;
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
  bool from_memory = false;                     // B has more than kFromMemory bytes
  bool canonical_nan = false;                   // the epilogue writes no other NaN
  int a_shift = 0, b_shift = 0;  // of dot kernels: added to A, subtracted from B, as int8
  // The grid of tasks: parts of K, rows, products that share B, columns, products that share none.
  // Tasks are numbered along the first axis first. With cols_first, columns come before rows. A
  // line is all tasks along the first axis that has several. A thread takes a run: adjacent tasks
  // of a line. It computes a run as one task, and blocks lie within it. But each part of K has sums
  // of its own, which are added in ascending order.
  Cut parts, rows, inner, cols, outer;
  bool cols_first = false;
  int64_t line = 1;         // tasks
  bool adds_parts = false;  // there are several, or the sums of one are added to carried sums
  int threads = 1;          // that share the tasks; some may get none
  // Threads that sleep and are woken, at most: in a series of calls, and after a gap.
  int wakes = 0, wakes_after_gap = 0;
  int64_t run_rows = 0, run_cols = 0;  // the most of a run
  // Bytes of each thread's pieces of the arena, and of what quantized operands need for a block's
  // columns and rows (zero_points.h).
  size_t a_bytes = 0, b_bytes = 0, acc_bytes = 0;
  size_t columns_bytes = 0, sums_bytes = 0;
  size_t thread_bytes = 0, scratch_bytes = 0;  // a thread's share of the arena, and the arena
  // Units of B: up to kUnitColumns columns of a block of KC steps. If several runs would pack the
  // same columns, threads pack all units before the product. 0: each thread packs the blocks that
  // it needs.
  size_t units = 0;
  // Bytes at the front of the arena: of quantized A, of the sums of parts of K, and of packed units
  // of B.
  size_t quantized_a_bytes = 0, parts_bytes = 0, shared_b_bytes = 0;

  // Columns of a unit: a multiple of the columns of every tile and micro-panel.
  static constexpr int64_t kUnitColumns = 64;

  int64_t tasks() const {
    return parts.count * outer.count * inner.count * rows.count * cols.count;
  }
  JobThreads job_threads() const {
    return {static_cast<uint32_t>(threads), static_cast<uint32_t>(wakes),
            static_cast<uint32_t>(wakes_after_gap)};
  }
  // Whether each column of a quantized B is packed by itself, without its zero point.
  [[gnu::always_inline]] bool packs_columns() const {
    return kernel != nullptr && kernel->compute == DType::kInt8 && kernel->b.width == 1;
  }
  // Whether the accumulators are scratch: neither Y nor sums that are carried.
  bool has_accumulators(const Problem& problem) const {
    return kernel != nullptr && !direct && problem.carry.sums == nullptr && !adds_parts;
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

// Bytes from the sums of a part of K to the sums of the next one.
inline size_t part_bytes(const Problem& problem) {
  const size_t bytes = dtype_bytes(accumulator_type(problem.compute));
  return Arena::round_up(static_cast<size_t>(problem.m * problem.n) * bytes);
}

// Whether an unpacked row-major B has more bytes than caches keep.
inline bool is_from_memory(const Problem& problem) {
  return static_cast<double>(problem.k) * static_cast<double>(problem.b.plain.row_stride) *
             static_cast<double>(dtype_bytes(problem.b.dtype())) >
         static_cast<double>(kFromMemory);
}

// Bytes of QuantizedColumns (execute/zero_points.h) for `cols` columns.
constexpr size_t column_bytes(int64_t cols) {
  return static_cast<size_t>(cols) * (sizeof(float) + 2 * sizeof(int32_t));
}

// Chooses among all kernels.
Plan make_plan(const Problem& problem, const Context& context, const PlanOptions& options = {});
// Chooses among the rows of `table`, so that a caller links no others.
Plan make_plan(const Problem& problem, const Context& context, KernelTable table,
               const PlanOptions& options);

// Steps of a part of K; K if it is not cut. If M and N are small, threads share K: each part has
// sums of its own, which are added when all parts are computed. The last part may have fewer steps.
// The number depends on the problem and the mode alone, so results do not depend on threads.
int64_t steps_of_part(const Problem& problem, Determinism determinism);

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
