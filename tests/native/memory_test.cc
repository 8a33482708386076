// Memory under pressure: every allocation that a call makes fails in turn. Then there is an error
// or the right result. After an error nothing is written. Nothing is kept in either case, and the
// next call is right. On Linux the linker puts the functions below in the place of those that
// allocate (--wrap in CMakeLists.txt); a context's limit refuses everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/types.h"
#include "integer_matmul_tester.h"
#include "pack/weights.h"

#ifdef WGEMM_TEST_WRAPPED
#include <pthread.h>
#endif

namespace {

// Which of the next allocations of this thread fail, or which starts of threads. `left` more
// succeed, and then one fails, or all do. Below 0: all succeed.
struct Failing {
  int64_t left = -1;
  bool for_good = false;
  bool has_failed = false;

  bool next() {
    if (left < 0) return false;
    if (left > 0) return --left, false;
    if (!for_good) left = -1;
    return has_failed = true;
  }
};
[[maybe_unused]] thread_local Failing allocations, starts;

}  // namespace

#ifdef WGEMM_TEST_WRAPPED
// The linker wants these names.
extern "C" {
void* __real_malloc(size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
void* __real__ZnwmRKSt9nothrow_t(size_t bytes, const std::nothrow_t&);
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                          void* argument);

void* __wrap_malloc(size_t bytes) { return allocations.next() ? nullptr : __real_malloc(bytes); }
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return allocations.next() ? nullptr : __real_aligned_alloc(alignment, bytes);
}
int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  return allocations.next() ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
}
void* __wrap__ZnwmRKSt9nothrow_t(size_t bytes, const std::nothrow_t& tag) {
  return allocations.next() ? nullptr : __real__ZnwmRKSt9nothrow_t(bytes, tag);
}
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                          void* argument) {
  return starts.next() ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}
}
#endif

namespace wgemm::testing {
namespace {

using Memory = std::vector<std::byte>;

// A product of any operation, from a B that is packed or not.
struct Product {
  DType type;
  Sizes batch;  // of weights, and so of dst
  int64_t m, n, k;
  bool is_packed;
  std::optional<IntegerOp> integer_op{};  // of integer_matmul()
  std::optional<int64_t> level{};         // of matmul_nbits(); B has codes of 4 bits

  bool quantizes_a() const { return integer_op == IntegerOp::kDynamicQuantizeMatMul; }
  DType a_type() const { return quantizes_a() ? DType::kFloat32 : type; }
  const char* op() const {
    return level.has_value()        ? "matmulNBits"
           : integer_op.has_value() ? testing::name_of(*integer_op)
           : is_8bit()              ? "qgemm"
           : batch.empty()          ? "gemm"
                                    : "matmul";
  }
  size_t y_bytes() const {
    const size_t bytes = integer_op == IntegerOp::kQLinearMatMul ? 1
                         : is_8bit()                             ? sizeof(float)
                                                                 : dtype_bytes(type);
    return static_cast<size_t>(m * n) * (batch.empty() ? 1 : 3) * bytes;
  }
  bool is_8bit() const { return compute_type(type) == DType::kInt8; }
  Sizes with_batch(int64_t rows, int64_t cols) const {
    Sizes dims = batch;
    dims.push_back(rows);
    dims.push_back(cols);
    return dims;
  }
};

std::vector<Product> all_products() {
  std::vector<Product> products;
  for (int i = 0; i < kDTypeCount; ++i) {
    for (const bool is_packed : {false, true}) {
      const auto type = static_cast<DType>(i);
      // In place, in blocks, beyond what the stack has room for, split along K, transposed, a
      // single row, and nothing.
      for (const Sizes& s : {Sizes{2, 9, 7},
                             {30, 40, 20},
                             {100, 130, 90},
                             {3, 8, 5000},
                             {300, 2, 200},
                             {1, 700, 300},
                             {5, 20, 0},
                             {0, 3, 4}}) {
        products.push_back({type, {}, s[0], s[1], s[2], is_packed});
      }
      if (!products.back().is_8bit()) {
        products.push_back({type, {3}, 40, 50, 60, is_packed});
        continue;
      }
      for (const IntegerOp op : kIntegerOps) {
        for (const Sizes& s :
             {Sizes{2, 9, 7}, {40, 50, 60}, {100, 130, 90}, {300, 2, 200}, {5, 20, 0}, {0, 3, 4}})
          products.push_back({type, {3}, s[0], s[1], s[2], is_packed, op});
      }
    }
  }
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool is_packed : {false, true}) {
      for (const int64_t level : {0, 4}) {
        for (const Sizes& s : {Sizes{2, 9, 7},
                               {1, 700, 300},
                               {3, 8, 5000},
                               {100, 130, 90},
                               {300, 2, 200},
                               {5, 20, 0},
                               {0, 3, 4}}) {
          products.push_back({type, {}, s[0], s[1], s[2], is_packed, {}, level});
        }
      }
    }
  }
  return products;
}

std::string name_of(const ::testing::TestParamInfo<Product>& test) {
  const Product& p = test.param;
  std::string name = p.integer_op.has_value() ? std::string(p.op()) + "_" : "";
  if (p.level.has_value()) name = "matmulNBits" + std::to_string(*p.level) + "_";
  name += dtype_name(p.type);
  for (const int64_t size : {p.m, p.n, p.k}) name += "_" + std::to_string(size);
  return name + (p.batch.empty() ? "" : "_batch") + (p.is_packed ? "_packed" : "");
}

class MemoryTest : public ::testing::TestWithParam<Product> {
 protected:
  MemoryTest() : p(GetParam()), y(static_cast<size_t>(p.m * p.n) * (p.batch.empty() ? 1 : 3) * 8) {
    std::mt19937_64 random(1);
    if (p.level.has_value()) {
      const Sizes dims = code_dims();
      codes.resize(static_cast<size_t>(dims[0] * dims[1] * dims[2]) + 1);
      for (std::byte& code : codes) code = static_cast<std::byte>(random());
      const size_t bytes = dtype_bytes(p.type);
      scales.resize(static_cast<size_t>(dims[0] * dims[1]) * bytes + 1);
      for (size_t at = 0; at + bytes < scales.size(); at += bytes)
        EXPECT_TRUE(store("", "", 1, p.type, scales.data() + at).ok());
    }
    for (Memory* bytes : {&a, &b}) {
      const int64_t count = bytes == &a ? p.m * p.k : p.k * p.n * (p.batch.empty() ? 1 : 3);
      const DType type = bytes == &a ? p.a_type() : p.type;
      bytes->resize(static_cast<size_t>(count) * dtype_bytes(type) + 1);
      // Small whole numbers: every order of summation has the same result.
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_TRUE(store("", "", static_cast<double>(random() % 8), type,
                          bytes->data() + static_cast<size_t>(i) * dtype_bytes(type))
                        .ok());
      }
    }
  }

  // Blocks of 16 codes. The bytes of B are codes with any values, but all scales are 1.
  static constexpr int64_t kBlockSize = 16;
  Sizes scale_dims() const { return {p.n, (p.k + kBlockSize - 1) / kBlockSize}; }
  NBitsWeights nbits_weights(const Sizes& b_dims, const Sizes& s_dims) const {
    return {.B = {codes.data(), DType::kUInt8, b_dims},
            .scales = {scales.data(), p.type, s_dims},
            .K = p.k,
            .N = p.n,
            .block_size = kBlockSize};
  }
  Sizes code_dims() const { return {p.n, scale_dims()[1], kBlockSize / 2}; }

  Status pack_b(Context& context, PackedWeights* weights) const {
    if (p.level.has_value()) {
      const Sizes b_dims = code_dims(), s_dims = scale_dims();
      return pack_nbits(context, nbits_weights(b_dims, s_dims), weights);
    }
    const Sizes dims = p.with_batch(p.k, p.n);
    return pack(
        context,
        {.op = p.is_8bit() ? PackFor::kQGemm : PackFor::kGemm, .B = {b.data(), p.type, dims}},
        weights);
  }

  // Computes Y, with `weights` instead of B if that is packed. `plan`: the call is only explained.
  // `prepared`: it is only prepared.
  Status compute(Context& context, const PackedWeights& weights, Memory& to,
                 Explanation* plan = nullptr, PreparedCall* prepared = nullptr) const {
    const auto call = [&](auto* operation, const auto& args) {
      return plan != nullptr       ? explain(context, args, plan)
             : prepared != nullptr ? prepare(context, args, prepared)
                                   : operation(context, args);
    };
    const Sizes a_dims{p.m, p.k}, b_dims = p.with_batch(p.k, p.n), y_dims = p.with_batch(p.m, p.n);
    const ConstTensor a_tensor{a.data(), p.a_type(), a_dims}, b_tensor{b.data(), p.type, b_dims};
    const PackedWeights* packed = p.is_packed ? &weights : nullptr;
    if (p.level.has_value()) {
      const Sizes code_shape = code_dims(), scale_shape = scale_dims();
      MatMulNBitsArgs args;
      args.A = a_tensor, args.packed_weights = packed;
      if (packed == nullptr) args.weights = nbits_weights(code_shape, scale_shape);
      args.Y = {to.data(), p.type, y_dims};
      args.accuracy_level = *p.level;
      return call(&matmul_nbits, args);
    }
    if (p.integer_op.has_value()) {
      // A value per row and per column, as far as the operator allows it.
      const Sizes rows{p.m, 1}, rows_of_y = p.with_batch(p.m, 1), columns = p.with_batch(1, p.n);
      const std::vector<float> values(static_cast<size_t>(3 * (p.m + p.n)), 2);
      const Memory zero_points(values.size(), std::byte{3});
      const auto scale = [&](const Sizes& dims) {
        return ConstTensor{values.data(), DType::kFloat32, dims};
      };
      const auto zero_point = [&](const Sizes& dims) {
        return ConstTensor{zero_points.data(), p.type, dims};
      };
      const bool may_differ = *p.integer_op != IntegerOp::kMatMulIntegerToFloat;
      const Sizes one{}, &rows_of_a = may_differ ? rows : one;
      const ConstTensor params[] = {scale(rows_of_a), zero_point(rows_of_a),
                                    scale(columns),   zero_point(columns),
                                    scale(rows_of_y), zero_point(rows_of_y)};
      IntegerMatMulArgs args;
      args.op = *p.integer_op;
      args.A = a_tensor, args.B = b_tensor, args.packed_B = packed;
      const ConstTensor** const slots[] = {&args.a_scale, &args.a_zero_point,
                                           &args.b_scale, &args.b_zero_point,
                                           &args.y_scale, &args.y_zero_point};
      for (int i = 0; i < kQuantizationParams; ++i) {
        if (extent_of(args.op, static_cast<QuantizationParam>(i)) != ParamExtent::kNone)
          *slots[i] = &params[i];
      }
      const bool has_bytes = args.op == IntegerOp::kQLinearMatMul,
                 has_sums = args.op == IntegerOp::kMatMulInteger;
      args.Y = {to.data(), has_bytes ? p.type : has_sums ? DType::kInt32 : DType::kFloat32, y_dims};
      return call(&integer_matmul, args);
    }
    if (p.is_8bit()) {
      const float scale = 1;
      QGemmArgs args;
      args.A = a_tensor, args.B = b_tensor, args.packed_B = packed;
      args.a_scale = args.b_scale = {&scale, DType::kFloat32};
      args.Y = {to.data(), DType::kFloat32, y_dims};
      return call(&qgemm, args);
    }
    if (!p.batch.empty()) {
      MatMulArgs args;
      args.src = a_tensor, args.weights = b_tensor, args.packed_weights = packed;
      args.dst = {to.data(), p.type, y_dims};
      return call(&matmul, args);
    }
    GemmArgs args;
    args.A = a_tensor, args.B = b_tensor, args.packed_B = packed;
    args.Y = {to.data(), p.type, y_dims};
    args.alpha = 2;
    return call(&gemm, args);
  }

  const Product p;
  Memory a, b, codes{}, scales{}, y;
};

void expect_out_of_memory(const Status& status, const char* op) {
  EXPECT_EQ(status.code, Code::kOutOfMemory) << status.message;
  EXPECT_STREQ(status.op, op);
  EXPECT_NE(std::string(status.message).find("no memory for "), std::string::npos)
      << status.message;
}

#ifdef WGEMM_TEST_WRAPPED
// Calls `call` once per allocation that it makes, and lets that allocation fail; then again, and
// lets it and all later ones fail. `check` checks each status. Returns the number of calls that
// failed.
template <typename Call, typename Check>
int fail_each(const Call& call, const Check& check) {
  int failures = 0;
  for (const bool for_good : {false, true}) {
    for (int64_t n = 0;; ++n) {
      allocations = {n, for_good};
      const Status status = call();
      const bool has_failed = allocations.has_failed;
      allocations = {};
      EXPECT_TRUE(has_failed || status.ok()) << status.message;
      failures += !status.ok();
      check(status);
      if (!has_failed || ::testing::Test::HasFailure()) break;
    }
  }
  return failures;
}

TEST_P(MemoryTest, EveryAllocationMayFail) {
  Context sound;
  PackedWeights wanted_weights;
  ASSERT_TRUE(pack_b(sound, &wanted_weights).ok());
  Memory wanted(y);
  ASSERT_TRUE(compute(sound, wanted_weights, wanted).ok());
  Memory bytes(serialized_bytes(wanted_weights));
  for (const int threads : {1, 3}) {
    // A context that has kept no plan yet, where one is started for each call.
    std::unique_ptr<Context> context;
    const auto start = [&] {
      context = std::make_unique<Context>();
      EXPECT_TRUE(context->set_threads(threads).ok());
    };
    start();
    const auto call = [&] {
      std::ranges::fill(y, std::byte{0x33});
      return compute(*context, wanted_weights, y);
    };
    const auto check = [&](const Status& status) {
      if (!status.ok()) expect_out_of_memory(status, p.op());
      EXPECT_EQ(context->bytes_in_use(), 0U);
      if (status.ok()) {
        const size_t used = p.y_bytes();
        EXPECT_TRUE(
            std::equal(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(used), wanted.begin()));
      } else {
        EXPECT_EQ(std::ranges::count(y, std::byte{0x33}), std::ssize(y));
        const Status next = call();
        EXPECT_TRUE(next.ok()) << next.message;
        EXPECT_EQ(context->bytes_in_use(), 0U);
      }
      start();
    };
    Explanation plan;
    ASSERT_TRUE(compute(*context, wanted_weights, y, &plan).ok());
    if (plan.threads == 1 && threads > 1)
      continue;  // one thread, whose allocations have failed before
    const int failures = fail_each(call, check);
    // Small scratch is on the stack.
    if (plan.scratch_bytes > 1 << 20) {
      EXPECT_GE(failures, 1);
    } else if (plan.scratch_bytes == 0) {
      EXPECT_EQ(failures, 0);
    }
  }
  // The arguments that weights are made of.
  Context context;
  PackedWeights weights;
  const auto check_weights = [&](const char* op) {
    return [&, op](const Status& status) {
      EXPECT_EQ(weights.empty(), !status.ok());
      if (!status.ok()) {
        expect_out_of_memory(status, op);
        EXPECT_EQ(context.bytes_in_use(), 0U);
      } else {
        Memory again(serialized_bytes(weights));
        EXPECT_TRUE(serialize(weights, again).ok() && (bytes[0] == std::byte{0} || again == bytes));
        bytes = again;
      }
      weights = PackedWeights();
    };
  };
  EXPECT_EQ(fail_each([&] { return pack_b(context, &weights); }, check_weights("pack")), 2);
  EXPECT_EQ(fail_each([&] { return serialize(wanted_weights, bytes); }, [](const Status&) {}), 0);
  EXPECT_EQ(fail_each([&] { return deserialize(context, bytes, &weights); },
                      check_weights("deserialize")),
            2);
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

TEST_P(MemoryTest, EveryAllocationOfAPreparedCallMayFail) {
  Context context;
  PackedWeights weights;
  ASSERT_TRUE(pack_b(context, &weights).ok());
  Memory wanted(y);
  ASSERT_TRUE(compute(context, weights, wanted).ok());
  const size_t in_use = context.bytes_in_use();
  const char* op = p.op();
  PreparedCall call;
  const int failures = fail_each([&] { return compute(context, weights, y, nullptr, &call); },
                                 [&](const Status& status) {
                                   EXPECT_EQ(call.empty(), !status.ok());
                                   if (!status.ok()) expect_out_of_memory(status, op);
                                   call = PreparedCall();
                                   EXPECT_EQ(context.bytes_in_use(), in_use);
                                 });
  EXPECT_EQ(failures, 2);
  ASSERT_TRUE(compute(context, weights, y, nullptr, &call).ok());
  const size_t prepared = context.bytes_in_use();
  fail_each(
      [&] {
        std::ranges::fill(y, std::byte{0x33});
        return wgemm::run(call);
      },
      [&](const Status& status) {
        EXPECT_EQ(context.bytes_in_use(), prepared);
        if (status.ok()) return;
        expect_out_of_memory(status, op);
        EXPECT_EQ(std::ranges::count(y, std::byte{0x33}), std::ssize(y));
      });
  ASSERT_TRUE(wgemm::run(call).ok());
  const size_t used = p.y_bytes();
  EXPECT_TRUE(std::equal(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(used), wanted.begin()));
}

TEST(Memory, ThreadsMayNotStart) {
  Context context;
  ASSERT_TRUE(context.set_threads(2).ok());
  const auto expect_refused = [&](const Status& status) {
    EXPECT_EQ(status.code, Code::kOutOfMemory) << status.message;
    EXPECT_STREQ(status.message, "set_threads: the system does not start 4 threads");
    EXPECT_EQ(context.threads(), 2);
  };
  for (const int64_t n : {0, 1, 2}) {
    starts = {n, true};
    const Status status = context.set_threads(4);
    starts = {};
    expect_refused(status);
  }
  const int failures = fail_each([&] { return context.set_threads(4); },
                                 [&](const Status& status) {
                                   if (!status.ok()) return expect_refused(status);
                                   EXPECT_EQ(context.threads(), 4);
                                   EXPECT_TRUE(context.set_threads(2).ok());
                                 });
  EXPECT_GE(failures, 1);
}
#endif

// The limit refuses what the scratch of a call, and weights, need less a byte, and no more.
TEST_P(MemoryTest, TheLimitMayRefuseEveryAllocation) {
  Context sound;
  PackedWeights weights;
  ASSERT_TRUE(pack_b(sound, &weights).ok());
  const size_t of_weights = sound.bytes_in_use();
  Memory bytes(serialized_bytes(weights)), wanted(y);
  ASSERT_TRUE(serialize(weights, bytes).ok());
  ASSERT_TRUE(compute(sound, weights, wanted).ok());
  Explanation plan;
  ASSERT_TRUE(compute(sound, weights, y, &plan).ok());
  for (const bool fits : {false, true}) {
    Context context(of_weights - !fits);
    PackedWeights made;
    for (const bool packs : {false, true}) {
      const Status status = packs ? pack_b(context, &made) : deserialize(context, bytes, &made);
      EXPECT_EQ(made.empty(), !fits);
      if (!fits) expect_out_of_memory(status, packs ? "pack" : "deserialize");
      made = PackedWeights();
      EXPECT_EQ(context.bytes_in_use(), 0U);
    }
    if (plan.scratch_bytes == 0) continue;
    Context small(static_cast<size_t>(plan.scratch_bytes) + 64 - !fits);
    std::ranges::fill(y, std::byte{0x33});
    const Status status = compute(small, weights, y);
    EXPECT_EQ(small.bytes_in_use(), 0U);
    if (!fits) expect_out_of_memory(status, p.op());
    EXPECT_EQ(status.ok(), fits) << status.message;
    EXPECT_EQ(std::ranges::count(y, std::byte{0x33}) == std::ssize(y), !fits);
  }
}

INSTANTIATE_TEST_SUITE_P(Products, MemoryTest, ::testing::ValuesIn(all_products()), name_of);

}  // namespace
}  // namespace wgemm::testing
