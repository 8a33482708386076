// The stages in order. The only place that knows it.
#pragma once

#include "plan.h"
#include "problem.h"
#include "wgemm.h"

namespace wgemm {

// Plan, then one arena, then execute. Error: kOutOfMemory, with nothing written.
Status run(Context& context, const char* op, const Problem& problem, const PlanOptions& options = {});

}  // namespace wgemm
