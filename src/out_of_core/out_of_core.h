// Problems with out-of-core operands. An outer loop copies blocks of the operands to memory,
// computes each block as a problem of its own, and copies blocks of Y back.
#pragma once

#include "plan/plan.h"
#include "problem/problem.h"

namespace wgemm {

// An operand of a problem that may be out-of-core.
struct OutOfCoreOperand {
  const OutOfCore* tensor;  // null: the operand is in memory
  int64_t offset;           // of element (0, 0) in the tensor, in elements

  // Implicit, for an operand without an offset.
  OutOfCoreOperand(const OutOfCore* whole = nullptr, int64_t elements = 0)  // NOLINT
      : tensor(whole), offset(elements) {}
};

struct OutOfCoreOperands {
  OutOfCoreOperand a, b, c, y;
  bool any() const {
    return a.tensor != nullptr || b.tensor != nullptr || c.tensor != nullptr || y.tensor != nullptr;
  }
};

// Errors: kOutOfMemory, and kArgument if the call quantizes an A that is not finite, with nothing
// written.
Status run_out_of_core(Context& context, const char* op, const Problem& problem,
                       const OutOfCoreOperands& out_of_core);

// How run_out_of_core() would compute.
struct OutOfCorePlan {
  Plan plan;                // of the largest block
  bool transposed = false;  // whether the transpose of each block is computed
  int64_t bytes = 0;        // of blocks and scratch
  int64_t moved_bytes = 0;  // to and from out-of-core operands
};

// `reserved`: bytes that the caller will allocate before the run. Does not know if the system has
// less memory than the limit. Error: as of run_out_of_core().
Status plan_out_of_core(const Context& context, const char* op, const Problem& problem,
                        const OutOfCoreOperands& out_of_core, int64_t reserved,
                        OutOfCorePlan* result);

}  // namespace wgemm
