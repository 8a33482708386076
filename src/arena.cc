// The one place that allocates memory that counts.
#include "arena.h"

#include <cstdlib>

namespace wgemm {
namespace {

// In front of each allocation, a whole alignment unit, so that what follows stays aligned.
struct Header {
  size_t bytes;  // of the allocation, header and all
};
static_assert(sizeof(Header) <= kArenaAlignment);

constexpr size_t total_of(size_t bytes) { return Arena::round_up(bytes) + kArenaAlignment; }

}  // namespace

bool Context::has_room(size_t bytes) const {
  if (bytes > SIZE_MAX - 2 * kArenaAlignment) return false;
  const size_t total = total_of(bytes);
  return limit_ == 0 || (total <= limit_ && in_use_ <= limit_ - total);
}

void* Context::allocate(size_t bytes) {
  if (!has_room(bytes)) return nullptr;
  const size_t total = total_of(bytes);
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
