// Scratch memory of one call: a single allocation, sized by the plan, that may fail. What small
// products need is on the stack, as to allocate takes long beside them; the limit counts it all the
// same.
#pragma once

#include "wgemm.h"

namespace wgemm {

// What pieces of an arena are rounded up to: a cache line.
inline constexpr size_t kArenaAlignment = 64;

// Bytes of an arena that lie on the stack, at the most. None under the address sanitizer, which
// sees one byte too far in an allocation.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr size_t kArenaOnStack = 0;
#else
inline constexpr size_t kArenaOnStack = size_t{16} << 10;
#endif

class Arena {
 public:
  Arena(Context& context, size_t bytes) : context_(context) {
    if (bytes <= kArenaOnStack && context.has_room(bytes)) {
      base_ = near_;
    } else if (bytes != 0) {
      base_ = allocated_ = context.allocate(bytes);
    }
    ok_ = bytes == 0 || base_ != nullptr;
  }
  ~Arena() { context_.release(allocated_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  bool ok() const { return ok_; }

  std::byte* data() { return static_cast<std::byte*>(base_); }
  // Also of an int64_t, for sizes that may be larger than memory.
  template <typename T>
  static constexpr T round_up(T bytes) {
    return (bytes + T{kArenaAlignment} - 1) / T{kArenaAlignment} * T{kArenaAlignment};
  }
  // What an allocation of so many bytes takes of the limit.
  template <typename T>
  static constexpr T taken_by(T bytes) {
    return round_up(bytes) + T{kArenaAlignment};
  }

 private:
  Context& context_;
  void* base_ = nullptr;
  void* allocated_ = nullptr;
  bool ok_;
  alignas(kArenaAlignment) std::byte near_[kArenaOnStack + 1];  // not one of length 0
};

}  // namespace wgemm
