// Work that is shared out among the threads of a context: by pthreadpool, or in builds without
// threads by none.
#pragma once

#include "wgemm.h"

namespace wgemm {

struct Threads {
  // Calls work(argument, thread, task) once for each task below `tasks`, with 0 <= thread <
  // context.threads(), on the caller's thread and the others. No two run at once with the same
  // number of a thread. Returns when all have returned.
  using Work = void (*)(void* argument, size_t thread, size_t task);
  static void run(Context& context, size_t tasks, Work work, void* argument);
};

}  // namespace wgemm
