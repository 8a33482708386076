// Runs phases of tasks on the threads of a context: a ThreadPool in builds with threads, a loop in
// the others.
#pragma once

#include "base/thread_pool.h"

namespace wgemm {

struct Threads {
  // As ThreadPool::run(). With one thread, a run is as long as its phase allows.
  static void run(Context& context, const JobThreads& threads, std::span<const Phase> phases,
                  void* argument);
};

}  // namespace wgemm
