// Cuts the result into the tasks that threads share.
#pragma once

#include "plan/plan.h"

namespace wgemm {

// Columns that tasks and blocks of N are a multiple of, so that they begin with a micro-panel.
int64_t column_step(const Problem& problem, const Kernel& kernel);

// Sets the plan's grid of tasks, and its threads. `tasks`: about that many; 0: as many as pay.
// Needs the plan's kernel, and what it packs.
void choose_partition(const Problem& problem, int threads, int64_t tasks, Plan* plan);

}  // namespace wgemm
