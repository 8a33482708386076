// The loops over tasks, on all threads, and over blocks: pack, kernel, epilogue.
#pragma once

#include "plan/plan.h"
#include "problem/problem.h"

namespace wgemm {

// Computes `problem` as `plan` says, on the threads of `context`, with `scratch` of
// plan.scratch_bytes.
void execute(Context& context, const Problem& problem, const Plan& plan, std::byte* scratch);

}  // namespace wgemm
