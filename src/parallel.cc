#include "parallel.h"

#include "error.h"

#if WGEMM_THREADS
#include <pthreadpool.h>
#endif

namespace wgemm {

#if WGEMM_THREADS

Context::~Context() { pthreadpool_destroy(pool_); }

Status Context::set_threads(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return error(Code::kArgument, "set_threads", "threads",
                 {"threads is ", int64_t{threads}, "; it must be a number from 1 to ", int64_t{kMaxThreads}});
  }
  if (threads == threads_) return {};
  pthreadpool* pool = nullptr;
  if (threads > 1) {
    pool = pthreadpool_create(static_cast<size_t>(threads));
    if (pool == nullptr) return error(Code::kOutOfMemory, "set_threads", "threads", {"no memory for ", int64_t{threads}, " threads"});
  }
  pthreadpool_destroy(pool_);
  pool_ = pool;
  threads_ = threads;
  return {};
}

void Threads::run(Context& context, size_t parts, Work work, void* argument) {
  // Without a pool this computes them one after the other.
  pthreadpool_parallelize_1d_with_thread(context.pool_, work, argument, parts, 0);
}

#else

Context::~Context() = default;

Status Context::set_threads(int threads) {
  if (threads == 1) return {};
  return error(Code::kArgument, "set_threads", "threads", {"threads is ", int64_t{threads}, "; this build computes on 1"});
}

void Threads::run(Context&, size_t parts, Work work, void* argument) {
  for (size_t part = 0; part < parts; ++part) work(argument, 0, part);
}

#endif

}  // namespace wgemm
