// The threads of a context. The caller posts one job at a time, and computes, too. A thread of the
// pool joins the job if it comes before the caller has run out of tasks. The caller waits only for
// threads that have joined, so a thread that wakes too late delays nothing.
//
// A job has phases, for which threads wake once. A thread comes to a phase when the phases before
// have no task left, and may wait until these are done. Each thread has a range of each phase's
// tasks, the same range in each job of the same size: so the weights that it reads may still be in
// its L2. After its range it takes tasks from the ends of other ranges. It takes long runs of
// adjacent tasks first, and the last tasks one by one. So all threads end together, slow ones too.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wgemm.h"

namespace wgemm {

inline constexpr bool kHasThreads = WGEMM_THREADS != 0;

struct Phase {
  // Computes `count` adjacent tasks from `first` on. No two calls with the same `thread` run at the
  // same time.
  void (*run)(void* argument, size_t thread, size_t first, size_t count);
  size_t tasks;       // fewer than 2^32
  size_t line = 1;    // a run does not cross a multiple of this
  bool waits = true;  // until the tasks of the phases before are done
};

// Tasks from `begin` up to `end`.
struct TaskRange {
  uint32_t begin, end;
};

// Tasks that one of `threads` threads takes at once, of `tasks` of which `done` are done: at most a
// third of its share, so that a thread that is three times as slow is not the last; and at most a
// third of its share of what is left, so that runs become shorter towards the end.
constexpr uint32_t tasks_to_take(uint32_t tasks, uint32_t done, uint32_t threads) {
  const uint32_t most = (tasks / threads + 1) / 3, of_left = (tasks - done) / (3 * threads);
  return std::max(std::min(most, of_left), 1U);
}

// Takes up to `wanted` tasks from a range: from its front for the thread that has it, from its back
// for another one. Empty if the range is.
constexpr TaskRange take_run(TaskRange* range, uint32_t wanted, uint32_t line, bool from_back) {
  const auto [begin, end] = *range;
  const uint32_t most = std::min(wanted, end - begin);
  if (from_back) {
    range->end -= most == 0 ? 0 : std::min(most, (end - 1) % line + 1);
    return {range->end, end};
  }
  range->begin += std::min(most, line - begin % line);
  return {begin, range->begin};
}

// How many threads share a job, with the caller, and how many of them are woken at most: if the job
// before ended a moment ago, so that they will not sleep before the next one; else `after_gap`.
struct JobThreads {
  uint32_t most = 1, wakes = 0, after_gap = 0;
};

class ThreadPool {
 public:
  static constexpr size_t kMaxPhases = 3;

  // A pool for `threads` threads, with the caller's. Returns when they run; null if the system does
  // not start that many. `spins`: a thread that waits does so in a loop, before it sleeps. end()
  // frees the pool.
  static ThreadPool* start(uint32_t threads, bool spins);
  void end();

  // Runs the phases. The caller is thread 0.
  void run(const JobThreads& threads, std::span<const Phase> phases, void* argument);

 private:
  // A number that grows, and threads that wait for it.
  struct Gate {
    std::atomic<uint32_t> count = 0, sleepers = 0;
    void add(uint32_t steps);
    void wait_for(uint32_t target, bool spins);
  };
  struct alignas(64) Thread {
    std::atomic<uint64_t> ranges[kMaxPhases];  // TaskRange
    std::atomic<uint32_t> asleep = 0;
    ThreadPool* pool;
    uintptr_t handle;
  };

  explicit ThreadPool(bool spins) : spins_(spins) {}
  uint32_t id_of(const Thread& thread) const { return static_cast<uint32_t>(&thread - threads_); }
  void work(Thread* self);  // what a thread of the pool does
  uint32_t wait_for_job(Thread* self, uint32_t state);
  void help(uint32_t thread);  // until all tasks are taken
  void wake(Thread* thread);

  // The number of the job, the threads that have joined it, and its places for threads: 0 once it
  // is closed. Write all other members only while the job is closed and all threads have left it.
  alignas(64) std::atomic<uint32_t> state_ = 0;
  alignas(64) Gate done_;  // tasks, of all phases
  alignas(64) Gate left_;  // threads that have left the job
  std::span<const Phase> phases_;
  void* argument_ = nullptr;
  uint32_t places_ = 0, size_ = 1;
  double end_ = 0;  // of the job before, in microseconds
  const bool spins_;
  Thread threads_[kMaxThreads];  // the first is the caller
};

}  // namespace wgemm
