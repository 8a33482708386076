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

// A call that is checked and planned, to be run again on the same places: for a small product that
// takes longer than to compute it.
struct PreparedCall {
  PreparedCall() {
  }  // NOLINT(modernize-use-equals-default): else it would all be cleared first, 4 kB
  PreparedCall(const PreparedCall&) = delete;  // the problem's batch lies in it
  PreparedCall& operator=(const PreparedCall&) = delete;

  const char* op = "";
  MatMulProblem call;  // or what another operation asks for, without a batch
  Remotes remotes;
  Plan plan;  // of what is in memory
};

// Errors: those of gemm(), qgemm() and matmul(), but for memory. `prepared` is to be as it is made,
// and not to be run after an error.
Status prepare(Context& context, const GemmArgs& args, PreparedCall* prepared);
Status prepare(Context& context, const QGemmArgs& args,
               PreparedCall* prepared);  // with what scales and zero points hold now
Status prepare(Context& context, const MatMulArgs& args, PreparedCall* prepared);

// Computes, with what operands hold now. They, and packed weights, must be where they were, and the
// context have as many threads: nothing is checked any more. Error: kOutOfMemory, with nothing
// written.
Status run(Context& context, const PreparedCall& prepared);

}  // namespace wgemm
