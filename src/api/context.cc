// Context: counts the memory that the library allocates, and owns the threads.
#include <algorithm>
#include <cstdlib>

#include "base/arena.h"
#include "base/error.h"
#include "base/thread_pool.h"

#if defined(__EMSCRIPTEN__)
#include <malloc.h>
#include <unistd.h>
#endif
#if WGEMM_THREADS
#if defined(__EMSCRIPTEN__)
#include <emscripten/threading.h>
#else
#include <thread>
#endif
#endif

namespace wgemm {
namespace {

// Precedes each allocation. It takes kArenaAlignment bytes, so that the allocation is aligned.
struct AllocationHeader {
  size_t bytes;  // of the whole allocation, including the header
};
static_assert(sizeof(AllocationHeader) <= kArenaAlignment);

constexpr size_t kWasmPage = size_t{64} << 10;  // bytes

#if WGEMM_THREADS

// Whether there is memory for `threads` threads. In wasm their workers run already, and
// pthread_create() does not check its allocation: a stack as large as the main thread's (128 KiB),
// and the thread's data.
bool can_start([[maybe_unused]] int threads) {
#if defined(__EMSCRIPTEN__)
  constexpr size_t kBytesPerThread = size_t{144} << 10;
  // volatile: compilers remove an allocation that nothing uses.
  void* volatile memory = std::malloc(static_cast<size_t>(threads) * kBytesPerThread);
  const bool has_memory = memory != nullptr;
  std::free(memory);
  return has_memory;
#else
  return true;
#endif
}

// Logical processors; 0 if not known.
int count_processors() {
#if defined(__EMSCRIPTEN__)
  return emscripten_num_logical_cores();
#else
  return static_cast<int>(std::thread::hardware_concurrency());
#endif
}

#endif

}  // namespace

Context::Context(size_t memory_limit, Determinism determinism)
    : limit_(memory_limit),
      determinism_(determinism == Determinism::kFast ? determinism : Determinism::kStrict) {}

Context::~Context() { end_threads(); }

void Context::set_vectors(int bytes) {
  vectors_ = bytes == 32 ? 32 : 16;
  ++generation_;
}

bool Context::has_room(size_t bytes) const {
  if (bytes > SIZE_MAX - 2 * kArenaAlignment) return false;
  const size_t total = Arena::taken_by(bytes), limit = limit_ == 0 ? SIZE_MAX - kWasmPage : limit_;
  return total <= limit && in_use_ <= limit - total;
}

size_t Context::room() const {
  size_t bytes = limit_ == 0 ? SIZE_MAX : limit_ - std::min(limit_, in_use_);
#if defined(__EMSCRIPTEN__)
  // The limit applies to committed pages, which wasm cannot return. An allocation can use the free
  // memory at the end of the heap (keepcost) and the pages that may still be committed. The
  // allocator rounds up to a page, twice.
  const size_t committed = __builtin_wasm_memory_size(0) * kWasmPage,
               may_commit = limit_ == 0 ? SIZE_MAX : std::max(limit_, committed);
  const size_t used = reinterpret_cast<uintptr_t>(sbrk(0)) -
                      static_cast<size_t>(mallinfo().keepcost) + 2 * kWasmPage;
  bytes = std::min(bytes, may_commit - std::min(may_commit, used));
#endif
  return bytes - std::min(bytes, 2 * kArenaAlignment);
}

void* Context::allocate(size_t bytes) {
  if (!has_room(bytes)) return nullptr;
  const size_t total = Arena::taken_by(bytes);
  void* memory = std::aligned_alloc(kArenaAlignment, total);
  if (memory == nullptr) return nullptr;
  static_cast<AllocationHeader*>(memory)->bytes = total;
  in_use_ += total;
  return static_cast<std::byte*>(memory) + kArenaAlignment;
}

void Context::release(void* memory) {
  if (memory == nullptr) return;
  void* start = static_cast<std::byte*>(memory) - kArenaAlignment;
  in_use_ -= static_cast<AllocationHeader*>(start)->bytes;
  std::free(start);
}

#if WGEMM_THREADS

void Context::end_threads() {
  if (pool_ != nullptr) pool_->end();
}

Status Context::set_threads(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return error(
        Code::kArgument, "set_threads", "threads",
        {"threads is %; it must be a number from 1 to %", int64_t{threads}, int64_t{kMaxThreads}});
  }
  if (threads == threads_) return {};
  ThreadPool* pool = nullptr;
  if (threads > 1) {
    const int processors = count_processors();
    // Threads that outnumber the processors and wait in a loop would delay the threads that
    // compute.
    const bool spins = processors == 0 || threads <= processors;
    if (can_start(threads - 1)) pool = ThreadPool::start(static_cast<uint32_t>(threads), spins);
    if (pool == nullptr)
      return error(Code::kOutOfMemory, "set_threads", "threads",
                   {"the system does not start % threads", int64_t{threads}});
  }
  end_threads();
  pool_ = pool;
  threads_ = threads;
  ++generation_;
  return {};
}

#else

void Context::end_threads() {}

Status Context::set_threads(int threads) {
  if (threads == 1) return {};
  return error(Code::kArgument, "set_threads", "threads",
               {"threads is %; this build computes on 1", int64_t{threads}});
}

#endif

}  // namespace wgemm
