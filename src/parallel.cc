#include "parallel.h"

#include "error.h"

#if WGEMM_THREADS
#include <pthreadpool.h>

#include <cstdlib>
#if !defined(__EMSCRIPTEN__) && !defined(_WIN32)
#include <pthread.h>
#endif
#endif

namespace wgemm {

#if WGEMM_THREADS

namespace {

// pthreadpool waits for ever for a thread that does not start, so that it is tried before whether
// as many do.
#if defined(__EMSCRIPTEN__)
// There the workers are ready, and what may be lacking is memory: of a thread's stack, as much as
// the main thread's, and its data. volatile, since compilers leave out allocations that nothing is
// done with.
bool can_start(int threads) {
  void* volatile room = std::malloc(static_cast<size_t>(threads) * (size_t{144} << 10));
  const bool is_there = room != nullptr;
  std::free(room);
  return is_there;
}
#elif defined(_WIN32)
bool can_start(int) { return true; }
#else
bool can_start(int threads) {
  pthread_mutex_t wait = PTHREAD_MUTEX_INITIALIZER;
  const auto stay = [](void* mutex) -> void* {
    pthread_mutex_lock(static_cast<pthread_mutex_t*>(mutex));
    pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex));
    return nullptr;
  };
  pthread_t all[kMaxThreads];
  int started = 0;
  pthread_mutex_lock(&wait);
  while (started < threads && pthread_create(&all[started], nullptr, stay, &wait) == 0) ++started;
  pthread_mutex_unlock(&wait);
  for (int i = 0; i < started; ++i) pthread_join(all[i], nullptr);
  return started == threads;
}
#endif

}  // namespace

void Context::end_threads() { pthreadpool_destroy(pool_); }

Status Context::set_threads(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return error(Code::kArgument, "set_threads", "threads",
                 {"threads is ", int64_t{threads}, "; it must be a number from 1 to ",
                  int64_t{kMaxThreads}});
  }
  if (threads == threads_) return {};
  pthreadpool* pool = nullptr;
  if (threads > 1) {
    if (can_start(threads - 1)) pool = pthreadpool_create(static_cast<size_t>(threads));
    if (pool == nullptr)
      return error(Code::kOutOfMemory, "set_threads", "threads",
                   {"the system does not start ", int64_t{threads}, " threads"});
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

void Context::end_threads() {}

Status Context::set_threads(int threads) {
  if (threads == 1) return {};
  return error(Code::kArgument, "set_threads", "threads",
               {"threads is ", int64_t{threads}, "; this build computes on 1"});
}

void Threads::run(Context&, size_t parts, Work work, void* argument) {
  for (size_t part = 0; part < parts; ++part) work(argument, 0, part);
}

#endif

}  // namespace wgemm
