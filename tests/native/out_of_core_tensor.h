// Out-of-core operands, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <type_traits>

#include "wgemm.h"

namespace wgemm::testing {

// While this object lives, the library sees the tensor as out-of-core. It counts the bytes moved.
template <typename T>
class OutOfCoreTensor {
 public:
  explicit OutOfCoreTensor(BasicTensor<T>* tensor)
      : memory_(tensor->data),
        bytes_(static_cast<int64_t>(dtype_bytes(tensor->dtype))),
        size_(tensor->size),
        out_of_core_{&move, this} {
    // So that overlap is judged as before.
    tensor->place = {.space = 1,
                     .offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor->data))};
    tensor->data = nullptr;
    tensor->out_of_core = &out_of_core_;
  }
  OutOfCoreTensor(const OutOfCoreTensor&) = delete;
  OutOfCoreTensor& operator=(const OutOfCoreTensor&) = delete;

  int64_t moved_bytes() const { return moved_; }

 private:
  static void move(void* caller, const Runs& runs, void* block) {
    auto& self = *static_cast<OutOfCoreTensor*>(caller);
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
  const OutOfCore out_of_core_;
  int64_t moved_ = 0;
};

// How a tester computes a product out-of-core. Bits 0 to 3 of `operands`: A, B, C and Y are
// out-of-core.
struct OutOfCoreSetup {
  size_t limit = 0;  // bytes of memory; 0: all operands are in memory
  unsigned operands = 15;
  Determinism determinism = Determinism::kFast;
  bool grows = false;  // the limit grows by quarters until the smallest blocks fit
};

inline int64_t below(std::mt19937_64& random, int64_t bound) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
}

// Sizes near whole blocks: the last block of each axis has a few elements, or one less than all.
struct SmallShape {
  int64_t m, n, k;

  explicit SmallShape(std::mt19937_64& random)
      : m(1 + below(random, random() % 2 != 0 ? 300 : 40)),
        n(1 + below(random, random() % 4 != 0 ? 9 : 40)),
        k(std::max<int64_t>(64 * below(random, 6) + below(random, 9) - 4, 0)) {}
};

// Hardly more memory than the smallest blocks take.
inline OutOfCoreSetup small_setup(std::mt19937_64& random) {
  return {.limit = size_t{1000} << random() % 6,
          .operands = random() % 3 != 0 ? 15 : 1 | static_cast<unsigned>(random() % 16),
          .determinism = random() % 2 != 0 ? Determinism::kStrict : Determinism::kFast,
          .grows = true};
}

// The limit by which a call with these operands has room for its blocks.
template <typename Args>
size_t limit_for(const Args& args, const OutOfCoreSetup& setup, int threads) {
  size_t limit = setup.limit;
  while (setup.grows) {
    Context context(limit, setup.determinism);
    EXPECT_TRUE(context.set_threads(threads).ok());
    Explanation plan;
    if (explain(context, args, &plan).code != Code::kOutOfMemory) break;
    limit += limit / 4;
  }
  return limit;
}

// Calls `operation`, gemm() or another, with `args` out-of-core as `setup` says. `a` to `y` are the
// operands in `args`. Expects that explain() predicts the bytes moved.
template <typename Args>
Status check_out_of_core(Status (*operation)(Context&, const Args&), const Args& args,
                         const OutOfCoreSetup& setup, int threads, ConstTensor* a, ConstTensor* b,
                         const ConstTensor** c, Tensor* y) {
  std::optional<OutOfCoreTensor<const void>> out_of_core_a, out_of_core_b, out_of_core_c;
  std::optional<OutOfCoreTensor<void>> out_of_core_y;
  ConstTensor own_c;
  if ((setup.operands & 1) != 0) out_of_core_a.emplace(a);
  if ((setup.operands & 2) != 0 && b->data != nullptr) out_of_core_b.emplace(b);
  if ((setup.operands & 4) != 0 && *c != nullptr) {
    own_c = **c;
    out_of_core_c.emplace(&own_c);
    *c = &own_c;
  }
  if ((setup.operands & 8) != 0) out_of_core_y.emplace(y);
  const size_t limit = limit_for(args, setup, threads);
  Context context(limit, setup.determinism);
  EXPECT_TRUE(context.set_threads(threads).ok());
  Explanation plan;
  EXPECT_TRUE(explain(context, args, &plan).ok());
  EXPECT_TRUE(plan.out_of_core);
  EXPECT_LE(plan.scratch_bytes, static_cast<int64_t>(limit));
  const Status status = operation(context, args);
  EXPECT_EQ(context.bytes_in_use(), 0);
  int64_t moved = 0;
  for (const auto* input : {&out_of_core_a, &out_of_core_b, &out_of_core_c})
    moved += input->has_value() ? (*input)->moved_bytes() : 0;
  moved += out_of_core_y.has_value() ? out_of_core_y->moved_bytes() : 0;
  EXPECT_TRUE(!status.ok() || plan.moved_bytes == moved)
      << plan.moved_bytes << " predicted, " << moved << " moved";
  return status;
}

}  // namespace wgemm::testing
