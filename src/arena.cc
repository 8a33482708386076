// The one place that allocates memory that counts.
#include "arena.h"

#include <algorithm>
#include <cstdlib>

#if defined(__EMSCRIPTEN__)
#include <malloc.h>
#include <unistd.h>
#endif

namespace wgemm {
namespace {

// In front of each allocation, a whole alignment unit, so that what follows stays aligned.
struct Header {
  size_t bytes;  // of the allocation, header and all
};
static_assert(sizeof(Header) <= kArenaAlignment);

constexpr size_t kPage = size_t{64} << 10;

}  // namespace

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

}  // namespace wgemm
