// Problem -> Plan: which kernel, which blocks, how much scratch. Every heuristic of the library lives in plan.cc, each with its reason.
#pragma once

#include "kernels/kernel.h"
#include "problem.h"

namespace wgemm {

struct Plan {
  const Kernel* kernel = nullptr;  // null: there is no product to compute (M, N or K is 0)
  int64_t mc = 0, nc = 0, kc = 0;  // block sizes: at least 1 and at most M, N, K; nc a multiple of nr, but for the last block
  bool pack_a = false;             // else A is read in place
  bool pack_b = false;             // else B is read in place, as it is stored
  bool direct = false;             // the kernel's accumulators are Y
  bool canonical_nan = false;      // the epilogue is to write no other NaN
  size_t a_bytes = 0, b_bytes = 0, acc_bytes = 0;  // pieces of the arena, one block each
  size_t columns_bytes = 0, sums_bytes = 0;        // and for quantized operands what belongs to a block's columns and rows; see epilogue.h
  size_t scratch_bytes = 0;                        // the arena
};

// For tests and benchmarks; users get the defaults.
struct PlanOptions {
  const Kernel* kernel = nullptr;  // null: chosen from the table; must compute in the problem's type
  int64_t mc = 0, nc = 0, kc = 0;  // 0: chosen; rounded up to the kernel's tile and cut to the problem
};

Plan make_plan(const Problem& problem, Determinism determinism, const PlanOptions& options = {});

}  // namespace wgemm
