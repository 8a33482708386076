// Runs tasks on the threads of a context: pthreadpool in builds with threads, a loop in the others.
#pragma once

#include "wgemm.h"

namespace wgemm {

struct Threads {
  // Calls work(argument, thread, task) once for each task below `tasks`, on the caller's thread and
  // the others, with 0 <= thread < context.threads(). No two calls with the same `thread` run at
  // the same time. Returns when all calls have returned.
  using Work = void (*)(void* argument, size_t thread, size_t task);
  static void run(Context& context, size_t tasks, Work work, void* argument);
};

}  // namespace wgemm
