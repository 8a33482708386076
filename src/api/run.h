// Runs the stages of a call in order: check, plan, allocate scratch, execute. No other file knows
// this order.
#pragma once

#include "ops/ops.h"
#include "out_of_core/out_of_core.h"
#include "plan/plan.h"
#include "wgemm.h"

namespace wgemm {

// Plans a problem, allocates one arena and executes. Only tests and benchmarks set `options`.
// Error: kOutOfMemory, with nothing written.
Status run(Context& context, const char* op, const Problem& problem,
           const PlanOptions& options = {});

// A call that is checked and planned, ready to run any number of times. It lies on the caller's
// stack, in the CallCache or in a PreparedCall. It holds copies of the arguments, but only the
// addresses of operands, packed weights, scales and zero points.
struct PlannedCall {
  // Defined, not defaulted: a defaulted one would clear all 7 kB first.
  PlannedCall() {}                           // NOLINT(modernize-use-equals-default)
  PlannedCall(const PlannedCall&) = delete;  // the problem's batch points into it
  PlannedCall& operator=(const PlannedCall&) = delete;

  const char* op = "";
  MatMulProblem call;  // gemm sets only its problem, without a batch
  OutOfCoreOperands out_of_core;
  Plan plan;                // set only if all operands are in memory
  uint32_t generation = 0;  // of the context, when the plan was made
};

// Checks the arguments and plans the call. Returns every error of the call except kOutOfMemory and
// "A is not finite". `planned` must be newly constructed. After an error it must not be run.
Status plan_call(Context& context, const GemmArgs& args, PlannedCall* planned);
Status plan_call(Context& context, const SyrkArgs& args, PlannedCall* planned);
Status plan_call(Context& context, const QuantizedArgs& args, PlannedCall* planned);
Status plan_call(Context& context, const MatMulArgs& args, PlannedCall* planned);
Status plan_call(Context& context, const MatMulNBitsArgs& args, PlannedCall* planned);

// As the public explain().
Status explain(const Context& context, const QuantizedArgs& args, Explanation* explanation,
               int64_t reserved);

// Plans the call again if the threads or the vectors of its context have changed.
void plan_again(const Context& context, PlannedCall* planned);

// The same, and reads the scales and zero points of a planned call of 8-bit operands again. Returns
// the errors of their values; a later call may then succeed.
Status read_again(const Context& context, PlannedCall* planned);

// Computes with the elements that the operands hold now. It checks nothing: `context` must be the
// one that planned the call, and the plan must be of its generation. Errors: kOutOfMemory, and
// kArgument if the call quantizes an A that is not finite, with nothing written.
Status run(Context& context, const PlannedCall& planned);

}  // namespace wgemm
