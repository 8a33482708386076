// Scratch memory of one call: a single allocation, sized by the plan, that may fail.
#pragma once

#include "wgemm.h"

namespace wgemm {

// What pieces of an arena are rounded up to: a cache line.
inline constexpr size_t kArenaAlignment = 64;

class Arena {
 public:
  Arena(Context& context, size_t bytes)
      : context_(context), base_(bytes == 0 ? nullptr : context.allocate(bytes)), ok_(bytes == 0 || base_ != nullptr) {}
  ~Arena() { context_.release(base_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  bool ok() const { return ok_; }

  std::byte* data() { return static_cast<std::byte*>(base_); }
  static constexpr size_t round_up(size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

 private:
  Context& context_;
  void* base_;
  bool ok_;
};

}  // namespace wgemm
