// Prepared calls: each run computes what the call itself computes from the same elements, even if
// the arguments have changed or their memory is freed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "array.h"
#include "out_of_core_tensor.h"
#include "values.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

using Sizes = std::vector<int64_t>;

struct Product {
  int64_t m, n, k;
};
// A single element, unpacked operands, a transposed product, a GEMV, packed operands, and K = 0.
constexpr Product kProducts[] = {{1, 1, 1},   {5, 8, 3},     {16, 16, 16}, {9, 1, 7},
                                 {1, 40, 33}, {20, 300, 40}, {4, 5, 0}};

// Contiguous rows, rows with a gap after each, and columns with a gap and an offset.
struct Layout {
  int64_t gap;
  bool columns;
  int64_t offset = 0;
};
constexpr Layout kLayouts[] = {{0, false}, {3, false}, {2, true, 5}};

// A tensor whose dims and strides lie in `memory`. The test frees it before the prepared call runs.
template <typename T>
ConstTensor copied(const Array<T>& array, DType type, std::vector<Sizes>& memory) {
  ConstTensor tensor = array.tensor(type);
  tensor.dims = memory.emplace_back(tensor.dims.begin(), tensor.dims.end());
  tensor.strides = memory.emplace_back(tensor.strides.begin(), tensor.strides.end());
  return tensor;
}

template <typename T>
Tensor as_output(const ConstTensor& tensor) {
  return {.data = const_cast<void*>(tensor.data),
          .dtype = tensor.dtype,
          .dims = tensor.dims,
          .strides = tensor.strides,
          .offset = tensor.offset,
          .size = tensor.size};
}

template <typename T>
void expect_same(const Array<T>& found, const Array<T>& wanted) {
  EXPECT_EQ(std::memcmp(found.data.get(), wanted.data.get(), found.length * sizeof(T)), 0);
}

enum class Addend { kNone, kRow, kInPlace };

template <typename T>
void expect_gemm(DType type, const Product& p, const Layout& layout, Addend addend, bool trans,
                 bool packed) {
  SCOPED_TRACE(std::string(dtype_name(type)) + " " + std::to_string(p.m) + " x " +
               std::to_string(p.n) + " x " + std::to_string(p.k) + " gap " +
               std::to_string(layout.gap) + " columns " + std::to_string(layout.columns) +
               " addend " + std::to_string(static_cast<int>(addend)) + " trans " +
               std::to_string(trans) + " packed " + std::to_string(packed));
  Context context;
  std::mt19937_64 random(1);
  const auto make = [&](int64_t rows, int64_t cols, bool turned = false) {
    Array<T> array(turned ? Sizes{cols, rows} : Sizes{rows, cols}, layout.gap, layout.columns);
    array.pad(layout.offset, 0);
    fill(array, random);
    return array;
  };
  Array<T> a = make(p.m, p.k, trans), b = make(p.k, p.n, trans), c = make(1, p.n),
           y = make(p.m, p.n), wanted = make(p.m, p.n);
  PackedWeights weights;
  if (packed) {
    ASSERT_TRUE(pack(context, {.B = b.tensor(type), .trans = trans}, &weights).ok());
  }
  const auto with_args = [&](const Array<T>& result, const auto& call) {
    std::vector<Sizes> memory;
    memory.reserve(16);
    const ConstTensor row = copied(c, type, memory), y_tensor = copied(result, type, memory);
    GemmArgs args;
    args.A = copied(a, type, memory);
    args.B = copied(b, type, memory);
    args.transA = trans;
    args.transB = trans;
    if (packed) args.packed_B = &weights, args.B = {}, args.transB = 0;
    if (addend != Addend::kNone) args.C = addend == Addend::kRow ? &row : &y_tensor;
    args.Y = as_output<T>(y_tensor);
    args.alpha = 3;
    args.beta = 2;
    const Status status = call(args);
    ASSERT_TRUE(status.ok()) << status.message;
    for (Sizes& sizes : memory) std::ranges::fill(sizes, -1);
  };
  PreparedCall call;
  with_args(y, [&](const GemmArgs& args) { return prepare(context, args, &call); });
  for (int round = 0; round < 2; ++round) {
    fill(a, random);
    fill(c, random);
    fill(y, random);
    if (!packed) fill(b, random);
    std::copy_n(y.data.get(), y.length, wanted.data.get());
    with_args(wanted, [&](const GemmArgs& args) { return gemm(context, args); });
    const Status status = run(call);
    ASSERT_TRUE(status.ok()) << status.message;
    expect_same(y, wanted);
  }
}

template <typename T>
void expect_gemm_of(DType type) {
  for (const Product& p : kProducts) {
    for (const Layout& layout : kLayouts) {
      for (const bool trans : {false, true}) {
        for (const bool packed : {false, true}) {
          for (const Addend addend : {Addend::kNone, Addend::kRow, Addend::kInPlace})
            expect_gemm<T>(type, p, layout, addend, trans, packed);
        }
      }
    }
  }
}

TEST(Prepare, GemmOfEveryTypeAndLayout) {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  expect_gemm_of<Storage>(DType::k##Enumerator);
#include "dtypes.def"
#undef WGEMM_DTYPE
}

template <typename Y>
void expect_qgemm(DType a_type, DType b_type, DType y_type, const Product& p, bool per_column,
                  bool packed) {
  SCOPED_TRACE(std::string(dtype_name(a_type)) + " " + dtype_name(b_type) + " " +
               dtype_name(y_type) + " " + std::to_string(p.m) + " x " + std::to_string(p.n) +
               " x " + std::to_string(p.k) + " scales per column " + std::to_string(per_column) +
               " packed " + std::to_string(packed));
  Context context;
  std::mt19937_64 random(1);
  Array<uint8_t> a({p.m, p.k}, 1, false), b({p.k, p.n}, 0, false);
  Array<int32_t> c({p.n}, 0, false);
  Array<Y> y({p.m, p.n}, 2, false), wanted({p.m, p.n}, 2, false);
  fill(b, random);
  fill(c, random);
  PackedWeights weights;
  if (packed) {
    ASSERT_TRUE(pack(context, {.op = PackFor::kQGemm, .B = b.tensor(b_type)}, &weights).ok());
  }
  const auto with_args = [&](const Array<Y>& result, const auto& call) {
    // With unused elements around the scales, and around the zero points.
    const int64_t columns[] = {p.n}, steps[] = {3};
    std::vector<float> scales(static_cast<size_t>(3 * p.n), -1.F);
    std::vector<uint8_t> zero_points(static_cast<size_t>(3 * p.n), 99);
    for (size_t i = 0; i < scales.size(); i += 3) {
      scales[i + 1] = 0.25F + static_cast<float>(i);
      zero_points[i + 1] = static_cast<uint8_t>(i % 7);
    }
    float a_scale = 0.5F, y_scale = 64;
    uint8_t a_zero_point = 3, y_zero_point = 5;
    const auto one = [](auto* element, DType type) {
      return ConstTensor{.data = element, .dtype = type, .size = 1};
    };
    const ConstTensor a_zero = one(&a_zero_point, a_type), of_y = one(&y_scale, DType::kFloat32),
                      y_zero = one(&y_zero_point, y_type), addend = c.tensor(DType::kInt32);
    ConstTensor b_zero = one(zero_points.data(), b_type);
    QGemmArgs args;
    args.A = a.tensor(a_type);
    args.a_scale = one(&a_scale, DType::kFloat32);
    args.a_zero_point = &a_zero;
    args.B = b.tensor(b_type);
    if (packed) args.packed_B = &weights, args.B = {};
    args.b_scale = one(scales.data(), DType::kFloat32);
    args.b_zero_point = &b_zero;
    for (ConstTensor* row : {&args.b_scale, &b_zero}) {
      if (per_column) row->dims = columns, row->strides = steps;
      row->offset = 1;
      row->size = 3 * p.n;
    }
    args.C = &addend;
    if (y_type != DType::kFloat32) args.y_scale = &of_y, args.y_zero_point = &y_zero;
    args.Y = result.template tensor<void>(y_type);
    const Status status = call(args);
    ASSERT_TRUE(status.ok()) << status.message;
    std::ranges::fill(scales, std::numeric_limits<float>::quiet_NaN());
    std::ranges::fill(zero_points, 77);
    a_scale = y_scale = -1;
    a_zero_point = y_zero_point = 66;
  };
  PreparedCall call;
  with_args(y, [&](const QGemmArgs& args) { return prepare(context, args, &call); });
  for (int round = 0; round < 2; ++round) {
    fill(a, random);
    fill(c, random);
    if (!packed) fill(b, random);
    fill(y, random);
    std::copy_n(y.data.get(), y.length, wanted.data.get());
    with_args(wanted, [&](const QGemmArgs& args) { return qgemm(context, args); });
    const Status status = run(call);
    ASSERT_TRUE(status.ok()) << status.message;
    expect_same(y, wanted);
  }
}

TEST(Prepare, QGemmKeepsScalesAndZeroPoints) {
  for (const DType a : {DType::kInt8, DType::kUInt8}) {
    for (const DType b : {DType::kInt8, DType::kUInt8}) {
      for (const Product& p : kProducts) {
        for (const bool per_column : {false, true}) {
          for (const bool packed : {false, true}) {
            expect_qgemm<float>(a, b, DType::kFloat32, p, per_column, packed);
            expect_qgemm<int8_t>(a, b, DType::kInt8, p, per_column, packed);
            expect_qgemm<uint8_t>(a, b, DType::kUInt8, p, per_column, packed);
          }
        }
      }
    }
  }
}

template <typename T, typename Dst>
void expect_matmul(DType type, DType dst_type, const Sizes& src_dims, const Sizes& weights_dims,
                   const Sizes& dst_dims, const Layout& layout) {
  SCOPED_TRACE(std::string(dtype_name(type)) + " rank " + std::to_string(dst_dims.size()) +
               " gap " + std::to_string(layout.gap));
  Context context;
  std::mt19937_64 random(1);
  Array<T> src(src_dims, layout.gap, layout.columns),
      weights(weights_dims, layout.gap, layout.columns), bias({dst_dims.back()}, 0, false);
  Array<Dst> dst(dst_dims, layout.gap, layout.columns),
      wanted(dst_dims, layout.gap, layout.columns);
  for (Array<T>* array : {&src, &weights, &bias}) array->pad(layout.offset, 0);
  for (Array<Dst>* array : {&dst, &wanted}) array->pad(layout.offset, 0);
  const auto with_args = [&](const Array<Dst>& result, const auto& call) {
    std::vector<Sizes> memory;
    memory.reserve(16);
    const ConstTensor addend = copied(bias, type, memory);
    MatMulArgs args;
    args.src = copied(src, type, memory);
    args.weights = copied(weights, type, memory);
    args.bias = &addend;
    args.dst = as_output<Dst>(copied(result, dst_type, memory));
    const Status status = call(args);
    ASSERT_TRUE(status.ok()) << status.message;
    for (Sizes& sizes : memory) std::ranges::fill(sizes, -1);
  };
  PreparedCall call;
  with_args(dst, [&](const MatMulArgs& args) { return prepare(context, args, &call); });
  for (int round = 0; round < 2; ++round) {
    for (Array<T>* array : {&src, &weights, &bias}) fill(*array, random);
    fill(dst, random);
    std::copy_n(dst.data.get(), dst.length, wanted.data.get());
    with_args(wanted, [&](const MatMulArgs& args) { return matmul(context, args); });
    const Status status = run(call);
    ASSERT_TRUE(status.ok()) << status.message;
    expect_same(dst, wanted);
  }
}

TEST(Prepare, MatMulOfStacks) {
  struct Shapes {
    Sizes src, weights, dst;
  };
  const Shapes all[] = {{{3, 4}, {4, 5}, {3, 5}},
                        {{2, 3, 4}, {2, 4, 5}, {2, 3, 5}},
                        {{6, 1, 9, 7}, {3, 7, 8}, {6, 3, 9, 8}},
                        {{2, 1, 2, 1, 3, 4}, {2, 1, 2, 4, 5}, {2, 2, 2, 2, 3, 5}},
                        {{5, 40, 50}, {50, 60}, {5, 40, 60}},
                        {{4}, {7, 4, 5}, {7, 5}}};
  for (const auto& [src, weights, dst] : all) {
    for (const Layout& layout : kLayouts) {
      expect_matmul<float, float>(DType::kFloat32, DType::kFloat32, src, weights, dst, layout);
      expect_matmul<int64_t, int64_t>(DType::kInt64, DType::kInt64, src, weights, dst, layout);
      expect_matmul<Float16, float>(DType::kFloat16, DType::kFloat32, src, weights, dst, layout);
    }
  }
}

// Products in one context and one array, prepared all at once and run in turn.
struct Square {
  static constexpr int64_t kSize = 64;
  std::vector<float> a, b, y;
  const int64_t dims[2];

  explicit Square(int64_t size = kSize)
      : a(count(size)), b(count(size)), y(count(size), -7.F), dims{size, size} {
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 13) - 6;
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 11) - 5;
  }
  static size_t count(int64_t size) { return static_cast<size_t>(size * size); }
  GemmArgs args() {
    GemmArgs args;
    args.A = {a.data(), DType::kFloat32, dims};
    args.B = {b.data(), DType::kFloat32, dims};
    args.Y = {y.data(), DType::kFloat32, dims};
    return args;
  }
  std::vector<float> wanted() {
    std::vector<float> result(y.size());
    GemmArgs elsewhere = args();
    elsewhere.Y.data = result.data();
    Context context;
    EXPECT_TRUE(gemm(context, elsewhere).ok());
    return result;
  }
};

TEST(Prepare, CallsTakeTurns) {
  Context context;
  Square squares[] = {Square(3), Square(16), Square(64), Square(130)};
  std::vector<PreparedCall> calls;
  for (Square& square : squares) {
    PreparedCall call;
    ASSERT_TRUE(prepare(context, square.args(), &call).ok());
    calls.push_back(std::move(call));  // may move the earlier calls
  }
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < calls.size(); ++i) {
      std::ranges::fill(squares[i].y, -7.F);
      squares[i].a[0] = static_cast<float>(round);
      const std::vector<float> wanted = squares[i].wanted();
      ASSERT_TRUE(run(calls[i]).ok());
      EXPECT_EQ(squares[i].y, wanted);
    }
  }
  calls.clear();
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

TEST(Prepare, ErrorsLeaveTheCallAsItWas) {
  Context context;
  Square square;
  GemmArgs wrong = square.args();
  const int64_t dims[] = {3, 64};
  wrong.B.dims = dims;
  PreparedCall call;
  const Status refused = prepare(context, wrong, &call);
  EXPECT_EQ(refused.code, Code::kShape);
  EXPECT_STREQ(refused.message, gemm(context, wrong).message);
  EXPECT_TRUE(call.empty());
  EXPECT_EQ(context.bytes_in_use(), 0U);
  const Status empty = run(call);
  EXPECT_EQ(empty.code, Code::kArgument);
  EXPECT_STREQ(empty.message, "run: call is empty; it must come from a prepare() that succeeded");
  EXPECT_STREQ(empty.op, "run");
  EXPECT_STREQ(empty.argument, "call");

  ASSERT_TRUE(prepare(context, square.args(), &call).ok());
  EXPECT_EQ(prepare(context, wrong, &call).code, Code::kShape);
  EXPECT_FALSE(prepare(context, QGemmArgs{}, &call).ok());
  EXPECT_FALSE(prepare(context, MatMulArgs{}, &call).ok());
  const std::vector<float> wanted = square.wanted();
  ASSERT_TRUE(run(call).ok());
  EXPECT_EQ(square.y, wanted);
}

TEST(Prepare, MovesAndReleases) {
  Context context;
  Square square, other(16);
  const std::vector<float> wanted = square.wanted(), wanted_other = other.wanted();
  PreparedCall call;
  ASSERT_TRUE(prepare(context, square.args(), &call).ok());
  const size_t bytes = context.bytes_in_use();
  EXPECT_GT(bytes, 0U);
  EXPECT_LT(bytes, 8U << 10);
  PreparedCall moved(std::move(call));
  EXPECT_TRUE(call.empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(run(call).code, Code::kArgument);
  EXPECT_FALSE(moved.empty());
  ASSERT_TRUE(run(moved).ok());
  EXPECT_EQ(square.y, wanted);

  // prepare() and a move replace a prepared call.
  ASSERT_TRUE(prepare(context, other.args(), &moved).ok());
  EXPECT_EQ(context.bytes_in_use(), bytes);
  ASSERT_TRUE(run(moved).ok());
  EXPECT_EQ(other.y, wanted_other);
  PreparedCall third;
  ASSERT_TRUE(prepare(context, square.args(), &third).ok());
  moved = std::move(third);
  std::ranges::fill(square.y, -7.F);
  ASSERT_TRUE(run(moved).ok());
  EXPECT_EQ(square.y, wanted);
  moved = PreparedCall();
  third = PreparedCall();  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

// Else the caller would keep the other call's memory, perhaps after the context has gone.
TEST(Prepare, IsEmptyAfterAMoveOverAnother) {
  Context context;
  Square square, other(16);
  const std::vector<float> wanted = square.wanted();
  PreparedCall from;
  ASSERT_TRUE(prepare(context, square.args(), &from).ok());
  const size_t bytes = context.bytes_in_use();
  {
    Context short_lived;
    PreparedCall to;
    ASSERT_TRUE(prepare(short_lived, other.args(), &to).ok());
    to = std::move(from);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(run(from).code, Code::kArgument);
    EXPECT_EQ(short_lived.bytes_in_use(), 0U);
    PreparedCall& itself = to;
    to = std::move(itself);
    ASSERT_FALSE(to.empty());
    ASSERT_TRUE(run(to).ok());
    EXPECT_EQ(square.y, wanted);
    EXPECT_EQ(context.bytes_in_use(), bytes);
  }
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

// After that it must not run, but its destructor reads neither.
TEST(Prepare, IsDestroyedAfterItsTensorsAndWeights) {
  Context context;
  PreparedCall call;
  {
    Square square;
    PackedWeights weights;
    ASSERT_TRUE(pack(context, {.B = square.args().B}, &weights).ok());
    GemmArgs args = square.args();
    args.packed_B = &weights;
    ASSERT_TRUE(prepare(context, args, &call).ok());
    const std::vector<float> wanted = square.wanted();
    // The PackedWeights may end before the call, but not the memory that it owns.
    const PackedWeights moved(std::move(weights));
    ASSERT_TRUE(run(call).ok());
    EXPECT_EQ(square.y, wanted);
  }
  EXPECT_FALSE(call.empty());
}

#if WGEMM_THREADS
TEST(Prepare, OutlivesAChangeOfThreads) {
  for (const int64_t size : {16, 200}) {
    Square square(size);
    const std::vector<float> wanted = square.wanted();
    for (const int before : {1, 2, 5}) {
      Context context;
      ASSERT_TRUE(context.set_threads(before).ok());
      PreparedCall call;
      ASSERT_TRUE(prepare(context, square.args(), &call).ok());
      for (const int threads : {before, 4, 1, 7, 2}) {
        ASSERT_TRUE(context.set_threads(threads).ok());
        for (int round = 0; round < 2; ++round) {
          std::ranges::fill(square.y, -7.F);
          const Status status = run(call);
          ASSERT_TRUE(status.ok()) << status.message;
          EXPECT_EQ(square.y, wanted) << before << " threads, then " << threads;
        }
      }
    }
  }
}
#endif

TEST(Prepare, OutlivesAChangeOfVectors) {
  Square square(100);
  const std::vector<float> wanted = square.wanted();
  Context context;
  PreparedCall call;
  ASSERT_TRUE(prepare(context, square.args(), &call).ok());
  const auto kernel_of = [&] {
    Explanation plan;
    EXPECT_TRUE(explain(context, square.args(), &plan).ok());
    EXPECT_EQ(plan.vectors, context.vectors());
    return std::string(plan.kernel);
  };
  const std::string narrow = kernel_of();
  for (const int bytes : {16, 32, 16, 64, 32}) {
    const uint32_t before = context.generation();
    context.set_vectors(bytes);
    EXPECT_NE(context.generation(), before);
    EXPECT_EQ(context.vectors(), bytes == 32 ? 32 : 16);
    EXPECT_EQ(kernel_of() != narrow, bytes == 32 && WGEMM_RELAXED != 0);
    std::ranges::fill(square.y, -7.F);
    ASSERT_TRUE(run(call).ok());
    EXPECT_EQ(square.y, wanted);
  }
}

TEST(Prepare, CountsItsMemory) {
  Square square(200);
  const std::vector<float> before = square.y;
  Context small(1000);
  PreparedCall call;
  const Status refused = prepare(small, square.args(), &call);
  EXPECT_EQ(refused.code, Code::kOutOfMemory);
  EXPECT_STREQ(refused.op, "gemm");
  EXPECT_NE(std::string(refused.message).find("gemm: no memory for a prepared call of "),
            std::string::npos)
      << refused.message;
  EXPECT_TRUE(call.empty());
  EXPECT_EQ(small.bytes_in_use(), 0U);

  // Room for the call and not for its scratch.
  Context context(8 << 10);
  ASSERT_TRUE(prepare(context, square.args(), &call).ok());
  const size_t bytes = context.bytes_in_use();
  for (int round = 0; round < 2; ++round) {
    const Status status = run(call);
    EXPECT_EQ(status.code, Code::kOutOfMemory);
    EXPECT_STREQ(status.message, gemm(context, square.args()).message);
    EXPECT_EQ(square.y, before);
    EXPECT_EQ(context.bytes_in_use(), bytes);
  }
  call = PreparedCall();

  // It stays valid: there is room later.
  Context enough(2 << 20);
  ASSERT_TRUE(prepare(enough, square.args(), &call).ok());
  void* memory = enough.allocate((2 << 20) - (8 << 10));
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(run(call).code, Code::kOutOfMemory);
  EXPECT_EQ(square.y, before);
  enough.release(memory);
  const std::vector<float> wanted = square.wanted();
  EXPECT_TRUE(run(call).ok());
  EXPECT_EQ(square.y, wanted);
  call = PreparedCall();  // before its context ends
}

TEST(Prepare, RunsOutOfCore) {
  Square square(150);
  const std::vector<float> wanted = square.wanted();
  Context context(96 << 10);
  GemmArgs args = square.args();
  args.A.size = args.B.size = args.Y.size = std::ssize(square.y);
  const OutOfCoreTensor<const void> a(&args.A), b(&args.B);
  const OutOfCoreTensor<void> y(&args.Y);
  PreparedCall call;
  {
    const GemmArgs copy = args;
    ASSERT_TRUE(prepare(context, copy, &call).ok());
  }
  EXPECT_EQ(a.moved_bytes(), 0);
  for (int round = 0; round < 2; ++round) {
    std::ranges::fill(square.y, -7.F);
    ASSERT_TRUE(context.set_threads(1).ok());
    const Status status = run(call);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(square.y, wanted);
  }
  EXPECT_GE(a.moved_bytes(), 2 * std::ssize(square.a));
}

}  // namespace
}  // namespace wgemm::testing
