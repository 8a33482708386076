// Work that is shared out among the threads of a context: by pthreadpool, or in builds without
// threads by none.
#pragma once

#include "wgemm.h"

namespace wgemm {

struct Threads {
  // Calls work(argument, thread, part) once for each part below `parts`, with 0 <= thread <
  // context.threads(), on the caller's thread and the others. No two run at once with the same
  // number of a thread. Returns when all have returned.
  using Work = void (*)(void* argument, size_t thread, size_t part);
  static void run(Context& context, size_t parts, Work work, void* argument);
};

}  // namespace wgemm
