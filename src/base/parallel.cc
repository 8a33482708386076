#include "base/parallel.h"

#if WGEMM_THREADS
#include <pthreadpool.h>
#endif

namespace wgemm {

void Threads::run([[maybe_unused]] Context& context, size_t tasks, Work work, void* argument) {
#if WGEMM_THREADS
  // If the pool is null, this runs the tasks one after the other.
  pthreadpool_parallelize_1d_with_thread(context.pool_, work, argument, tasks, 0);
#else
  for (size_t task = 0; task < tasks; ++task) work(argument, 0, task);
#endif
}

}  // namespace wgemm
