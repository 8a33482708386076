// The loops over blocks: pack, kernel, epilogue.
#pragma once

#include "arena.h"
#include "plan.h"
#include "problem.h"

namespace wgemm {

// Computes `problem` as `plan` says, with scratch from an arena of plan.scratch_bytes.
void execute(const Problem& problem, const Plan& plan, Arena& arena);

}  // namespace wgemm
