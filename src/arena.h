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

  // The next `bytes` of it, aligned. The plan has counted them.
  void* take(size_t bytes) {
    void* piece = static_cast<std::byte*>(base_) + taken_;
    taken_ += round_up(bytes);
    return piece;
  }
  static constexpr size_t round_up(size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

 private:
  Context& context_;
  void* base_;
  bool ok_;
  size_t taken_ = 0;
};

}  // namespace wgemm
