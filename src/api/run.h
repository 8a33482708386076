// The stages in order. The only place that knows it.
#pragma once

#include "ops/ops.h"
#include "out_of_core/out_of_core.h"
#include "plan/plan.h"
#include "wgemm.h"

namespace wgemm {

// Plan, then one arena, then execute; with options, which tests give. Error: kOutOfMemory, with
// nothing written.
Status run(Context& context, const char* op, const Problem& problem,
           const PlanOptions& options = {});

// A call that is checked and planned, ready to run any number of times: on the caller's stack, in
// the CallCache, or in a PreparedCall. It holds copies of the arguments, except for
// operands, packed weights, b_scale and b_zero_point: of these it holds addresses.
struct PlannedCall {
  // Defined, not defaulted: a defaulted one would clear all 4 kB first.
  PlannedCall() {}                           // NOLINT(modernize-use-equals-default)
  PlannedCall(const PlannedCall&) = delete;  // the problem's batch points into it
  PlannedCall& operator=(const PlannedCall&) = delete;

  const char* op = "";
  MatMulProblem call;  // of gemm and qgemm only its problem, without a batch
  OutOfCoreOperands out_of_core;
  Plan plan;  // only of a call whose operands are all in memory
};

// Checks the arguments and plans the call. Errors: those of gemm(), qgemm() and matmul(), except
// kOutOfMemory. `planned` must be newly constructed. After an error it must not be run.
Status plan_call(Context& context, const GemmArgs& args, PlannedCall* planned);
Status plan_call(Context& context, const QGemmArgs& args, PlannedCall* planned);
Status plan_call(Context& context, const MatMulArgs& args, PlannedCall* planned);

// Computes with the elements that the operands hold now. It checks nothing: `context` must be the
// one that planned the call and have the same number of threads. Error: kOutOfMemory, with nothing
// written.
Status run(Context& context, const PlannedCall& planned);

}  // namespace wgemm
