#include "base/parallel.h"

#if WGEMM_THREADS
#include <pthreadpool.h>
#endif

namespace wgemm {

void Threads::run([[maybe_unused]] Context& context, size_t tasks, Work work, void* argument) {
#if WGEMM_THREADS
  // After a call, threads wait in a loop for some ms, so that the next call starts sooner. If they
  // outnumber the processors, that would delay the threads that compute.
  const uint32_t flags = context.more_threads_than_processors_ ? PTHREADPOOL_FLAG_YIELD_WORKERS : 0;
  // If the pool is null, this runs the tasks one after the other.
  pthreadpool_parallelize_1d_with_thread(context.pool_, work, argument, tasks, flags);
#else
  for (size_t task = 0; task < tasks; ++task) work(argument, 0, task);
#endif
}

}  // namespace wgemm
