// Cuts a problem into blocks for the caches. Call the functions in this order: each needs the
// result of the one before. The plan must have its kernel, its regime, what it packs, and its
// tasks.
#pragma once

#include "plan/plan.h"

namespace wgemm {

void choose_prefetch(const Problem& problem, Plan* plan);

// Block sizes. `size`: a size that tests give; 0: it is chosen.
int64_t choose_kc(const Problem& problem, const Plan& plan, int64_t size);
int64_t choose_nc(const Problem& problem, const Plan& plan, int64_t size);
int64_t choose_mc(const Problem& problem, const Plan& plan, int64_t size);

}  // namespace wgemm
