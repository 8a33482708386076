// Context: the one place that counts memory, and the threads.
#include <algorithm>
#include <cstdlib>

#include "base/arena.h"
#include "base/error.h"

#if defined(__EMSCRIPTEN__)
#include <malloc.h>
#include <unistd.h>
#endif
#if WGEMM_THREADS
#include <pthreadpool.h>
#if !defined(__EMSCRIPTEN__) && !defined(_WIN32)
#include <pthread.h>
#endif
#endif

namespace wgemm {
namespace {

// In front of each allocation, a whole alignment unit, so that what follows stays aligned.
struct Header {
  size_t bytes;  // of the allocation, header and all
};
static_assert(sizeof(Header) <= kArenaAlignment);

constexpr size_t kPage = size_t{64} << 10;

#if WGEMM_THREADS

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

#endif

}  // namespace

Context::Context(size_t memory_limit, Determinism determinism)
    : limit_(memory_limit), determinism_(determinism) {}

Context::~Context() { end_threads(); }

bool Context::has_room(size_t bytes) const {
  if (bytes > SIZE_MAX - 2 * kArenaAlignment) return false;
  const size_t total = Arena::taken_by(bytes), limit = limit_ == 0 ? SIZE_MAX - kPage : limit_;
  return total <= limit && in_use_ <= limit - total;
}

size_t Context::room() const {
  size_t most = limit_ == 0 ? SIZE_MAX : limit_ - std::min(limit_, in_use_);
#if defined(__EMSCRIPTEN__)
  // What the allocator has at the end of memory, and what lies behind. It takes memory in steps of
  // a page, and rounds up twice.
  const size_t committed = __builtin_wasm_memory_size(0) * kPage,
               most_committed = limit_ == 0 ? SIZE_MAX : std::max(limit_, committed);
  const size_t used =
      reinterpret_cast<uintptr_t>(sbrk(0)) - static_cast<size_t>(mallinfo().keepcost) + 2 * kPage;
  most = std::min(most, most_committed - std::min(most_committed, used));
#endif
  return most - std::min(most, 2 * kArenaAlignment);
}

void* Context::allocate(size_t bytes) {
  if (!has_room(bytes)) return nullptr;
  const size_t total = Arena::taken_by(bytes);
  void* memory = std::aligned_alloc(kArenaAlignment, total);
  if (memory == nullptr) return nullptr;
  static_cast<Header*>(memory)->bytes = total;
  in_use_ += total;
  return static_cast<std::byte*>(memory) + kArenaAlignment;
}

void Context::release(void* memory) {
  if (memory == nullptr) return;
  void* start = static_cast<std::byte*>(memory) - kArenaAlignment;
  in_use_ -= static_cast<Header*>(start)->bytes;
  std::free(start);
}

#if WGEMM_THREADS

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

#else

void Context::end_threads() {}

Status Context::set_threads(int threads) {
  if (threads == 1) return {};
  return error(Code::kArgument, "set_threads", "threads",
               {"threads is ", int64_t{threads}, "; this build computes on 1"});
}

#endif

}  // namespace wgemm
