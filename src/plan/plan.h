// Problem -> Plan: which kernel, which blocks, how much scratch. Every heuristic of the library
// lives in plan.cc, each with its reason.
#pragma once

#include <optional>

#include "kernels/kernel.h"
#include "problem/problem.h"

namespace wgemm {

// What is cut into `count` pieces of `size`, the last of which may be smaller.
struct Cut {
  int64_t size = 0, count = 1;
};

struct Plan {
  const Kernel* kernel = nullptr;  // null: there is no product to compute (M, N or K is 0)
  int64_t mc = 0, nc = 0,
          kc = 0;  // block sizes: at least 1 and at most a task's M and N, and K; nc a multiple of
                   // nr, but for the last block
  bool pack_a = false;         // else A is read in place
  bool pack_b = false;         // else B is read in place, as it is stored
  bool prefetch_a = false;     // blocks of A are read through before they are computed with, since
                               // they come from memory
  bool prefetch_b = false;     // the same of B
  bool direct = false;         // the kernel's accumulators are Y
  bool canonical_nan = false;  // the epilogue is to write no other NaN
  int a_shift = 0,
      b_shift =
          0;  // for kernels by dot products (Kernel::dot): added to A, subtracted from B, as int8
  // The result is cut into a grid of tasks, which are computed apart from each other: products that
  // share no weights, products that share them, rows, columns. Blocks lie within a task.
  Cut outer, inner, rows, cols;
  int threads = 1;  // among which they are shared out; some may get none
  size_t a_bytes = 0, b_bytes = 0,
         acc_bytes = 0;                      // pieces of the arena, one block each, for each thread
  size_t columns_bytes = 0, sums_bytes = 0;  // and for quantized operands what belongs to a block's
                                             // columns and rows; see epilogue.h
  size_t thread_bytes = 0, scratch_bytes = 0;  // a thread's share of the arena, and the arena

  int64_t tasks() const { return outer.count * inner.count * rows.count * cols.count; }
};

// For tests and benchmarks; users get the defaults.
struct PlanOptions {
  const Kernel* kernel =
      nullptr;  // null: chosen from the table; must compute in the problem's type
  int64_t mc = 0, nc = 0,
          kc = 0;     // 0: chosen; rounded up to the kernel's tile and cut to the problem
  int64_t tasks = 0;  // about so many, however small, also on one thread; 0: chosen
  std::optional<Processor> processor{};  // to choose a kernel for; none: the one this runs on

  bool operator==(const PlanOptions&) const = default;
};

// Bytes that the epilogue needs for `cols` columns of quantized operands: Columns in
// execute/epilogue.h.
constexpr size_t column_bytes(int64_t cols) {
  return static_cast<size_t>(cols) * (sizeof(float) + 2 * sizeof(int32_t));
}

// Whether the kernel is right for these operands on this engine. Relaxed dot products have
// conditions.
bool can_run(const Kernel& kernel, const Problem& problem);

// Whether the product is better computed as its transpose.
bool pays_transposed(const Problem& problem);

Plan make_plan(const Problem& problem, const Context& context, const PlanOptions& options = {});

}  // namespace wgemm
