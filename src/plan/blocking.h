// How a problem is cut into blocks for the caches: MC, KC, NC and what is prefetched. Each needs
// what a plan has from the stages before: the kernel, the regime, what is packed, the tasks; and in
// this order, prefetch, KC, NC, MC.
#pragma once

#include "plan/plan.h"

namespace wgemm {

void choose_prefetch(const Problem& problem, Plan* plan);

// Block sizes. `wanted`: a size that tests give; 0: it is chosen.
int64_t choose_kc(const Problem& problem, const Plan& plan, int64_t wanted);
int64_t choose_nc(const Problem& problem, const Plan& plan, int64_t wanted);
int64_t choose_mc(const Problem& problem, const Plan& plan, int64_t wanted);

}  // namespace wgemm
