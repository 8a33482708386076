// Scratch memory of one call: a single allocation, sized by the plan, that may fail. The Arena
// allocates it from a context and releases it in its destructor. Small scratch lies on the stack,
// since an allocation would take longer than a small product. It counts towards the memory limit
// too.
#pragma once

#include "wgemm.h"

namespace wgemm {

// Bytes of a cache line. Sizes of the buffers in an arena are rounded up to it.
inline constexpr size_t kArenaAlignment = 64;

// Largest arena on the stack, in bytes. An allocation would take longer than a small product. The
// stack of the module has 128 KiB. The bound is 0 under the address sanitizer, which detects an
// overrun by one byte only if scratch is an allocation of exactly its size.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr size_t kArenaOnStack = 0;
#else
inline constexpr size_t kArenaOnStack = size_t{16} << 10;
#endif

class Arena {
 public:
  Arena(Context& context, size_t bytes) : context_(context) {
    if (bytes <= kArenaOnStack && context.has_room(bytes)) {
      base_ = on_stack_;
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
  // Rounds bytes up to kArenaAlignment. T is int64_t for sizes that may be larger than memory.
  template <typename T>
  static constexpr T round_up(T bytes) {
    return (bytes + T{kArenaAlignment} - 1) / T{kArenaAlignment} * T{kArenaAlignment};
  }
  // Bytes by which an allocation of `bytes` counts towards the memory limit.
  template <typename T>
  static constexpr T taken_by(T bytes) {
    return round_up(bytes) + T{kArenaAlignment};
  }

 private:
  Context& context_;
  void* base_ = nullptr;
  void* allocated_ = nullptr;
  bool ok_;
  alignas(kArenaAlignment) std::byte on_stack_[kArenaOnStack + 1];  // + 1: never of length 0
};

}  // namespace wgemm
