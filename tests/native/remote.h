// Operands that are handed over block by block, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <type_traits>

#include "wgemm.h"

namespace wgemm::testing {

// Makes of a tensor in memory one that is not, as far as the library can see, for as long as this
// lives. Counts what is moved.
template <typename T>
class RemoteTensor {
 public:
  explicit RemoteTensor(BasicTensor<T>* tensor)
      : memory_(tensor->data),
        bytes_(static_cast<int64_t>(dtype_bytes(tensor->dtype))),
        size_(tensor->size),
        remote_{&move, this} {
    // So that overlap is judged as before.
    tensor->place = {.space = 1,
                     .offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor->data))};
    tensor->data = nullptr;
    tensor->remote = &remote_;
  }
  RemoteTensor(const RemoteTensor&) = delete;
  RemoteTensor& operator=(const RemoteTensor&) = delete;

  int64_t moved_bytes() const { return moved_; }

 private:
  static void move(void* caller, const Runs& runs, void* block) {
    auto& self = *static_cast<RemoteTensor*>(caller);
    ASSERT_GT(runs.count, 0);
    ASSERT_GT(runs.length, 0);
    const int64_t last =
        runs.offset + (runs.count - 1) * runs.run_stride + (runs.length - 1) * runs.stride;
    ASSERT_TRUE(runs.offset >= 0 && last < self.size_)
        << runs.offset << " to " << last << " of " << self.size_;
    auto* at = static_cast<std::byte*>(block);
    for (int64_t i = 0; i < runs.count; ++i) {
      for (int64_t j = 0; j < runs.length; ++j, at += self.bytes_) {
        auto* element =
            static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(self.memory_))) +
            (runs.offset + i * runs.run_stride + j * runs.stride) * self.bytes_;
        const bool is_output = !std::is_const_v<T>;
        std::memcpy(is_output ? element : at, is_output ? at : element,
                    static_cast<size_t>(self.bytes_));
      }
    }
    self.moved_ += runs.count * runs.length * self.bytes_;
  }

  T* const memory_;
  const int64_t bytes_, size_;
  const Remote remote_;
  int64_t moved_ = 0;
};

// How a tester has a product streamed: with so much memory, and which of A, B, C and Y are remote,
// by bits.
struct Streaming {
  size_t limit = 0;  // 0: it does not
  unsigned remote = 15;
  Determinism determinism = Determinism::kFast;
};

// Calls `operation`, gemm() or another, with `args`, whose operands it is told as well, streamed as
// `how` says. Expects that explain() foretold what is moved.
template <typename Args>
Status run_streamed(Status (*operation)(Context&, const Args&), const Args& args,
                    const Streaming& how, int threads, ConstTensor* a, ConstTensor* b,
                    const ConstTensor** c, Tensor* y) {
  Context context(how.limit, how.determinism);
  EXPECT_TRUE(context.set_threads(threads).ok());
  std::optional<RemoteTensor<const void>> remote_a, remote_b, remote_c;
  std::optional<RemoteTensor<void>> remote_y;
  ConstTensor remote_of_c;
  if ((how.remote & 1) != 0) remote_a.emplace(a);
  if ((how.remote & 2) != 0 && b->data != nullptr) remote_b.emplace(b);
  if ((how.remote & 4) != 0 && *c != nullptr) {
    remote_of_c = **c;
    remote_c.emplace(&remote_of_c);
    *c = &remote_of_c;
  }
  if ((how.remote & 8) != 0) remote_y.emplace(y);
  Explanation plan;
  EXPECT_TRUE(explain(context, args, &plan).ok());
  EXPECT_TRUE(plan.streams);
  EXPECT_LE(plan.scratch_bytes, static_cast<int64_t>(how.limit));
  const Status status = operation(context, args);
  EXPECT_EQ(context.bytes_in_use(), 0);
  int64_t moved = 0;
  for (const auto* remote : {&remote_a, &remote_b, &remote_c})
    moved += remote->has_value() ? (*remote)->moved_bytes() : 0;
  moved += remote_y.has_value() ? remote_y->moved_bytes() : 0;
  EXPECT_TRUE(!status.ok() || plan.streamed_bytes == moved)
      << plan.streamed_bytes << " foretold, " << moved << " moved";
  return status;
}

}  // namespace wgemm::testing
