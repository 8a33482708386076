// Cuts the result into the tasks that threads share.
#pragma once

#include <algorithm>

#include "plan/plan.h"

namespace wgemm {

// Columns that tasks and blocks of N are a multiple of, so that they begin with a micro-panel.
int64_t column_step(const Problem& problem, const Kernel& kernel);

// Sets the plan's grid of tasks, and its threads. `tasks`: about that many; 0: as many as pay.
// Needs the plan's kernel, and what it packs.
void choose_partition(const Problem& problem, int threads, int64_t tasks, Plan* plan);

// Multiply-adds per thread, at least. A thread that waits in a loop takes some us to join, in which
// another thread computes as many.
inline constexpr double kJoinWork = 1 << 17;

// Multiply-adds that the caller computes while it wakes a thread that sleeps.
inline constexpr double kWakeWork = 1 << 18;

// Multiply-adds of tasks that the planner does not cut, such as the blocks of attention, from which
// threads are woken after a gap.
inline constexpr double kBlockWorkAfterGap = 1 << 22;

// Threads for `work` multiply-adds in tasks that the planner does not cut, such as the blocks of
// attention and of search: at most `most`.
inline JobThreads threads_of_work(double work, double most) {
  if (!kHasThreads) return {};
  const auto threads = static_cast<uint32_t>(std::clamp(work / kJoinWork, 1.0, most)),
             wakes = static_cast<uint32_t>(std::min(work / kWakeWork, threads - 1.0));
  return {threads, wakes, work < kBlockWorkAfterGap ? 0 : wakes};
}

}  // namespace wgemm
