// The macro-kernel: loops over tasks, on all threads, and over blocks.
#pragma once

#include "plan/plan.h"
#include "problem/problem.h"

namespace wgemm {

// Computes `problem` by `plan`, on the threads of `context`. `scratch` has plan.scratch_bytes. If
// the call quantizes A, the problem must have its scale.
void execute(Context& context, const Problem& problem, const Plan& plan, std::byte* scratch);

// The same for a PlainProblem (execute/scope.h) of T, float or double. Links no code for others.
template <typename T>
void execute_plain(Context& context, const Problem& problem, const Plan& plan, std::byte* scratch);

}  // namespace wgemm
