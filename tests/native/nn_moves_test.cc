#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/convert.h"
#include "nn_tester.h"

namespace wgemm::nn {
namespace {

using Sizes = std::vector<int64_t>;

// A tensor of `count` elements with random bits.
TestTensor random_tensor(DType type, int64_t count, Sizes strides, int64_t start = 0) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::vector<std::byte> bytes(static_cast<size_t>(count) * dtype_bytes(type));
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return {type, std::move(bytes), std::move(strides), start};
}

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                            DType::kInt32,   DType::kUInt32,  DType::kInt64,   DType::kUInt64,
                            DType::kInt8,    DType::kUInt8};

// Calls `f` with the indexes of each place along the axes.
template <typename F>
void for_each_place(const Sizes& dims, const F& f) {
  Sizes place(dims.size());
  int64_t count = 1;
  for (const int64_t size : dims) count *= size;
  for (int64_t i = 0; i < count; ++i) {
    int64_t left = i;
    for (size_t axis = dims.size(); axis-- > 0; left /= dims[axis]) place[axis] = left % dims[axis];
    f(place);
  }
}

// The bytes of the element of a tensor at a place.
std::byte* element_at(TestTensor& tensor, const Sizes& place) {
  int64_t at = tensor.start;
  for (size_t axis = 0; axis < place.size(); ++axis) at += place[axis] * tensor.strides[axis];
  const auto bytes = static_cast<int64_t>(dtype_bytes(tensor.type));
  EXPECT_GE(at, 0);
  EXPECT_LE((at + 1) * bytes, static_cast<int64_t>(tensor.bytes.size()));
  return tensor.bytes.data() + at * bytes;
}

// An operand: its elements, its strides, and the place of the first element.
struct Layout {
  int64_t count;
  Sizes strides;
  int64_t start = 0;
};

void expect_copies(const Sizes& dims, const Layout& x_layout, const Layout& y_layout) {
  for (const DType type : {DType::kUInt8, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    auto x = random_tensor(type, x_layout.count, x_layout.strides, x_layout.start);
    const auto y = random_tensor(type, y_layout.count, y_layout.strides, y_layout.start);
    auto expected = y;
    for_each_place(dims, [&](const Sizes& place) {
      std::memcpy(element_at(expected, place), element_at(x, place), dtype_bytes(type));
    });
    for (const int threads : {1, 3}) {
      auto found = y;
      ASSERT_TRUE(run_operator("Copy", dims, {&x, &found}, {}, threads));
      ASSERT_EQ(found.bytes, expected.bytes)
          << testing::PrintToString(dims) << " " << testing::PrintToString(x_layout.strides) << " "
          << dtype_bytes(type) << " bytes, " << threads << " threads";
    }
  }
}

TEST(NnMoves, CopiesRows) {
  for (const int64_t n : {1, 2, 3, 7, 15, 16, 17, 31, 33, 100, 513, 5001})
    expect_copies({n}, {n, {1}}, {n, {1}});
  expect_copies({70, 513}, {70 * 513, {513, 1}}, {70 * 600, {600, 1}, 11});  // Concat
  expect_copies({70, 513}, {70 * 600, {600, 1}, 87}, {70 * 513, {513, 1}});  // Split
  expect_copies({12, 128, 33}, {12 * 128 * 33, {33, 12 * 33, 1}},
                {12 * 128 * 33, {128 * 33, 33, 1}});  // Transpose
}

TEST(NnMoves, CopiesSlicesAndBroadcastElements) {
  expect_copies({31}, {100, {3}, 5}, {31, {1}});
  expect_copies({31}, {31, {1}}, {100, {3}, 5});
  expect_copies({31}, {100, {-3}, 99}, {31, {1}});
  expect_copies({5, 31}, {155, {-31, -1}, 154}, {155, {31, 1}});
  expect_copies({5, 31}, {155, {-31, 1}, 124}, {155, {31, 1}});
  expect_copies({9, 5001}, {9, {1, 0}}, {9 * 5001, {5001, 1}});
  expect_copies({9, 7, 1}, {9, {1, 0, 0}}, {63, {7, 1, 1}});
  expect_copies({9, 2}, {9, {1, 0}}, {18, {2, 1}});
  expect_copies({9, 33}, {33, {0, 1}}, {9 * 33, {33, 1}});
  expect_copies({9, 33}, {1, {0, 0}}, {9 * 66, {66, 2}});
}

TEST(NnMoves, Transposes) {
  for (const int64_t rows : {2, 3, 4, 5, 16, 17, 31, 64, 100})
    for (const int64_t cols : {2, 3, 4, 7, 16, 33, 1030})
      expect_copies({rows, cols}, {rows * cols, {1, rows}}, {rows * cols, {cols, 1}});
  expect_copies({12, 32, 128}, {12 * 4096, {4096, 1, 32}}, {12 * 4096, {4096, 128, 1}});
  expect_copies({19, 3, 17, 5}, {4845, {1, 19 * 17, 19, 19 * 17 * 3}}, {4845, {255, 85, 5, 1}});
  expect_copies({21, 18}, {21 * 18, {1, -21}, 17 * 21}, {21 * 18, {18, 1}});
  expect_copies({21, 18}, {30 * 18, {1, 30}, 4}, {21 * 40, {40, 1}, 9});   // between parts
  expect_copies({21, 18}, {21 * 18, {1, 21}}, {21 * 36, {36, 2}});         // y has a step
  expect_copies({20, 18, 6}, {20 * 18, {1, 20, 0}}, {2160, {108, 6, 1}});  // also broadcast
}

// Calls `f` with a zero of the type that stores elements of `type`.
template <typename F>
void with_storage(DType type, const F& f) {
  switch (type) {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  case DType::k##Enumerator:                                        \
    return f(Storage{});
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) WGEMM_DTYPE(Enumerator, name, Storage, , )
#include "dtypes.def"
#undef WGEMM_DTYPE
  }
}

// The specification of Cast, as in JavaScript: 64-bit integers become floating point by way of
// float64, and float64 becomes 16 bits by way of float32.
template <typename Y, typename X>
Y cast(X x) {
  if constexpr (std::is_same_v<X, Y>) {
    return x;
  } else if constexpr (kIsHalf<X>) {
    return cast<Y>(widen(x));
  } else if constexpr (kIsHalf<Y>) {
    return narrow_to(cast<float>(x), Y{});
  } else if constexpr (std::is_integral_v<X> && std::is_integral_v<Y>) {
    return static_cast<Y>(static_cast<uint64_t>(x));
  } else if constexpr (std::is_integral_v<Y>) {
    using Limits = std::numeric_limits<Y>;
    const double bound = std::ldexp(1, Limits::digits), value = std::trunc(x);
    if (std::isnan(value)) return 0;
    if (value >= bound) return Limits::max();
    return value <= static_cast<double>(Limits::min()) ? Limits::min() : static_cast<Y>(value);
  } else {
    return static_cast<Y>(static_cast<double>(x));
  }
}

// Elements of a type: the bounds of all types, their neighbors, fractions, and random bits.
template <typename X>
std::vector<X> values_to_cast(size_t count) {
  std::vector<X> values;
  std::mt19937_64 random(count);
  if constexpr (std::is_integral_v<X>) {
    for (int shift = 0; shift < 64; ++shift)
      for (const int near : {-1, 0, 1})
        for (const int64_t sign : {-1, 1})
          values.push_back(static_cast<X>((uint64_t{1} << shift) * static_cast<uint64_t>(sign) +
                                          static_cast<uint64_t>(near)));
    values.push_back(static_cast<X>(0x20000020000001));  // float64 rounds it to a tie of float32
  } else {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (int power = -160; power <= 160; ++power)
      for (const double near : {1.0, 1 - 0x1p-53, 1 - 0x1p-24, 1 + 0x1p-23, 1 + 0x1p-11, 1.5})
        for (const double sign : {-1, 1}) values.push_back(cast<X>(sign * std::ldexp(near, power)));
    for (const double value : {0.0, -0.0, kInfinity, -kInfinity, std::nan(""), 127.5, -128.5, 255.5,
                               65519.0, 65520.0, 1 + 0x1p-11 + 0x1p-40})
      values.push_back(cast<X>(value));
  }
  while (values.size() < count) {
    const uint64_t bits = random();
    X value;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
  }
  std::shuffle(values.begin(), values.end(), random);
  return values;
}

// Whether elements have the same bits, or both are NaN.
template <typename Y>
bool is_same(Y a, Y b) {
  if constexpr (!std::is_integral_v<Y>)
    if (std::isnan(cast<double>(a)) && std::isnan(cast<double>(b))) return true;
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

template <typename X, typename Y>
void expect_casts(DType from, DType to) {
  for (const size_t length : {size_t{4001}, size_t{20000}}) {
    const std::vector<X> values = values_to_cast<X>(length);
    const auto count = static_cast<int64_t>(values.size());
    for (const int64_t x_step : {1, 3, -1, 0}) {
      for (const int64_t y_step : {1, 2}) {
        // Few elements are one task.
        for (const int threads : {1, 3}) {
          if (threads == 3 && length == 4001) continue;
          const int64_t size = x_step > 1 ? count / x_step : count;
          auto x = TestTensor::of(from, values, {x_step});
          if (x_step < 0) x.start = count - 1;
          auto y = random_tensor(to, size * y_step, {y_step});
          auto expected = y.elements<Y>();
          for (int64_t i = 0; i < size; ++i)
            expected[static_cast<size_t>(i * y_step)] =
                cast<Y>(values[static_cast<size_t>(x.start + i * x_step)]);
          ASSERT_TRUE(run_operator("Cast", {size}, {&x, &y}, {}, threads));
          const auto found = y.elements<Y>();
          size_t i = 0;
          while (i < found.size() && is_same(found[i], expected[i])) ++i;
          ASSERT_EQ(i, found.size())
              << "types " << static_cast<int>(from) << " and " << static_cast<int>(to) << ", steps "
              << x_step << " and " << y_step;
        }
      }
    }
  }
}

TEST(NnMoves, Casts) {
  for (const DType from : kTypes)
    for (const DType to : kTypes)
      with_storage(from, [&]<typename X>(X) {
        with_storage(to, [&]<typename Y>(Y) { expect_casts<X, Y>(from, to); });
      });
}

TEST(NnMoves, CastsRowsOfAnyLength) {
  for (int64_t count = 0; count < 20; ++count) {
    std::vector<int32_t> values(static_cast<size_t>(count) + 1);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * i) - 9;
    auto x = TestTensor::of(DType::kInt32, values, {1});
    auto y = TestTensor::of(DType::kFloat32, std::vector<float>(values.size(), 0.5F), {1});
    ASSERT_TRUE(run_operator("Cast", {count}, {&x, &y}));
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(y.elements<float>()[i],
                i < static_cast<size_t>(count) ? static_cast<float>(values[i]) : 0.5F);
  }
}

TEST(NnMoves, CastsToBool) {
  for (const DType from : kTypes) {
    with_storage(from, [&]<typename X>(X) {
      auto values = values_to_cast<X>(5000);
      for (int zeros = 0; zeros < 10; ++zeros) values[static_cast<size_t>(zeros * 7)] = cast<X>(0);
      if constexpr (std::is_same_v<X, double>) values[1] = 0x1p-1074;
      const auto count = static_cast<int64_t>(values.size());
      for (const int64_t step : {1, -1}) {
        for (const int threads : {1, 3}) {
          auto x = TestTensor::of(from, values, {step});
          if (step < 0) x.start = count - 1;
          auto y = random_tensor(DType::kUInt8, count, {1});
          ASSERT_TRUE(run_operator("CastToBool", {count}, {&x, &y}, {}, threads));
          const auto found = y.elements<uint8_t>();
          for (int64_t i = 0; i < count; ++i) {
            const X value = values[static_cast<size_t>(x.start + i * step)];
            bool expected;
            if constexpr (std::is_integral_v<X>) {
              expected = value != 0;
            } else {
              expected = cast<double>(value) != 0;
            }
            ASSERT_EQ(found[static_cast<size_t>(i)], expected ? 1 : 0)
                << "type " << static_cast<int>(from) << " at " << i;
          }
        }
      }
    });
  }
}

void expect_selects(const Sizes& dims, const Layout& condition_layout, const Layout& x_layout,
                    const Layout& z_layout, const Layout& y_layout) {
  for (const DType type : {DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kInt64}) {
    const auto make = [](DType t, const Layout& layout) {
      return random_tensor(t, layout.count, layout.strides, layout.start);
    };
    auto condition = make(DType::kUInt8, condition_layout), x = make(type, x_layout),
         z = make(type, z_layout);
    for (size_t i = 0; i < condition.bytes.size(); ++i)  // half are 0; the others are any byte
      if (i % 5 % 2 == 0) condition.bytes[i] = std::byte{0};
    for (std::byte& b : z.bytes) b = ~b;
    const auto y = make(type, y_layout);
    auto expected = y;
    for_each_place(dims, [&](const Sizes& place) {
      auto& from = *element_at(condition, place) != std::byte{0} ? x : z;
      std::memcpy(element_at(expected, place), element_at(from, place), dtype_bytes(type));
    });
    for (const int threads : {1, 3}) {
      auto found = y;
      ASSERT_TRUE(run_operator("Where", dims, {&condition, &x, &z, &found}, {}, threads));
      ASSERT_EQ(found.bytes, expected.bytes)
          << testing::PrintToString(dims) << " " << dtype_bytes(type) << " bytes, " << threads
          << " threads";
    }
  }
}

TEST(NnMoves, Selects) {
  for (const int64_t n : {1, 3, 4, 5, 17, 5001}) {
    const Layout contiguous{n, {1}}, one{1, {0}}, backward{n, {-1}, n - 1}, spread{2 * n, {2}};
    expect_selects({n}, contiguous, contiguous, contiguous, contiguous);
    expect_selects({n}, contiguous, one, contiguous, contiguous);
    expect_selects({n}, contiguous, contiguous, one, contiguous);
    expect_selects({n}, contiguous, one, one, contiguous);
    expect_selects({n}, one, contiguous, contiguous, contiguous);
    expect_selects({n}, backward, contiguous, spread, contiguous);
    expect_selects({n}, contiguous, backward, contiguous, contiguous);
    expect_selects({n}, contiguous, contiguous, contiguous, spread);
  }
  // As in a mask of attention: the condition is broadcast along heads.
  expect_selects({12, 64, 67}, {64 * 67, {0, 67, 1}}, {12 * 64 * 67, {64 * 67, 67, 1}},
                 {1, {0, 0, 0}}, {12 * 64 * 67, {64 * 67, 67, 1}});
  expect_selects({6, 0}, {0, {0, 1}}, {0, {0, 1}}, {1, {0, 0}}, {0, {0, 1}});
}

// A gather from contiguous data of shape [outer..., size, inner...].
struct GatherCase {
  Sizes outer, indices, inner;
  int64_t size;
};

// Gathers with indices of type I, and compares with the specification of ONNX.
template <typename I>
void expect_gathers(const GatherCase& c, DType index_type) {
  const auto joined = [](Sizes a, const Sizes& b, const Sizes& d) {
    a.insert(a.end(), b.begin(), b.end());
    a.insert(a.end(), d.begin(), d.end());
    return a;
  };
  const auto product = [](const Sizes& sizes) {
    int64_t result = 1;
    for (const int64_t size : sizes) result *= size;
    return result;
  };
  const auto zeros = [](const Sizes& sizes) { return Sizes(sizes.size(), 0); };
  const int64_t outer = product(c.outer), count = product(c.indices), inner = product(c.inner);
  std::vector<I> list(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    list[static_cast<size_t>(i)] = static_cast<I>((i * 7 + 3) % (2 * c.size) - c.size);
  const Sizes dims = joined(c.outer, c.indices, c.inner);
  Sizes outer_strides = contiguous(c.outer);
  for (int64_t& stride : outer_strides) stride *= c.size * inner;
  for (const DType type : {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kInt64}) {
    const auto bytes = static_cast<int64_t>(dtype_bytes(type));
    auto data = random_tensor(type, outer * c.size * inner,
                              joined(outer_strides, zeros(c.indices), contiguous(c.inner)));
    auto indices = TestTensor::of(index_type, list,
                                  joined(zeros(c.outer), contiguous(c.indices), zeros(c.inner)));
    const auto y = random_tensor(type, outer * count * inner, contiguous(dims));
    auto expected = y;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < count; ++i) {
        const auto index = static_cast<int64_t>(list[static_cast<size_t>(i)]);
        const int64_t at = index < 0 ? index + c.size : index;
        for (int64_t b = 0; b < inner * bytes; ++b)
          expected.bytes[static_cast<size_t>((o * count + i) * inner * bytes + b)] =
              data.bytes[static_cast<size_t>((o * c.size + at) * inner * bytes + b)];
      }
    }
    for (const int threads : {1, 3}) {
      auto found = y;
      ASSERT_TRUE(run_operator("Gather", dims, {&data, &indices, &found},
                               {static_cast<double>(c.size), static_cast<double>(inner)}, threads));
      ASSERT_EQ(found.bytes, expected.bytes)
          << testing::PrintToString(dims) << " " << bytes << " bytes, " << threads << " threads";
    }
  }
}

TEST(NnMoves, Gathers) {
  for (const GatherCase& c :
       std::initializer_list<GatherCase>{{{}, {128}, {33}, 1000},  // rows of a table
                                         {{}, {1, 128}, {48}, 10},
                                         {{}, {4, 5}, {}, 9},
                                         {{}, {3000}, {}, 9},
                                         {{3}, {7}, {5}, 4},
                                         {{3, 2}, {2, 3}, {2, 5}, 4},
                                         {{70}, {1}, {100}, 4},
                                         {{7}, {1}, {1}, 4},
                                         {{7}, {3}, {}, 1},
                                         {{1}, {1}, {1}, 1},
                                         {{5}, {0}, {3}, 2},
                                         {{0}, {2}, {3}, 2},
                                         {{40, 3}, {17}, {2}, 6}}) {
    expect_gathers<int64_t>(c, DType::kInt64);
    expect_gathers<int32_t>(c, DType::kInt32);
  }
}

TEST(NnMoves, RefusesIndicesOutOfRange) {
  for (const int64_t wrong : {int64_t{5}, int64_t{-6}, int64_t{9}, INT64_MAX, INT64_MIN}) {
    for (const size_t at : {size_t{0}, size_t{1}, size_t{3}, size_t{7}}) {
      std::vector<int64_t> list = {4, -5, 99, 0,  1, 99,
                                   2, 3,  99, -1, 0, 99};  // 99 is between the rows
      list[at] = wrong;
      auto data = random_tensor(DType::kFloat32, 10, {0, 0, 1});
      auto indices = TestTensor::of(DType::kInt64, list, {3, 1, 0});
      auto y = random_tensor(DType::kFloat32, 16, {4, 2, 1});
      const auto before = y.bytes;
      Status status;
      EXPECT_FALSE(run_operator("Gather", {4, 2, 2}, {&data, &indices, &y}, {5, 2}, at == 0 ? 3 : 1,
                                &status));
      EXPECT_EQ(status.code, Code::kArgument);
      EXPECT_STREQ(status.argument, "indices");
      EXPECT_EQ(status.message,
                "run: indices is " + std::to_string(wrong) + "; it must be from -5 to 4");
      EXPECT_EQ(y.bytes, before);
    }
  }
}

TEST(NnMoves, RefusesTypes) {
  auto f32 = random_tensor(DType::kFloat32, 4, {1}), i32 = random_tensor(DType::kInt32, 4, {1}),
       u8 = random_tensor(DType::kUInt8, 4, {1}), i8 = random_tensor(DType::kInt8, 4, {1});
  EXPECT_FALSE(run_operator("Copy", {4}, {&f32, &i32}));
  EXPECT_FALSE(run_operator("CastToBool", {4}, {&f32, &i8}));
  EXPECT_FALSE(run_operator("Where", {4}, {&i8, &f32, &f32, &f32}));
  EXPECT_FALSE(run_operator("Where", {4}, {&u8, &f32, &i32, &f32}));
  EXPECT_FALSE(run_operator("Where", {4}, {&u8, &i32, &f32, &f32}));
  EXPECT_FALSE(run_operator("Gather", {4}, {&f32, &u8, &f32}, {4, 1}));
  EXPECT_FALSE(run_operator("Gather", {4}, {&f32, &i32, &i32}, {4, 1}));
}

TEST(NnMoves, CopiesNothing) {
  expect_copies({0}, {0, {1}}, {0, {1}});
  expect_copies({4, 0, 3}, {0, {0, 3, 1}}, {0, {0, 3, 1}});
  expect_copies({0, 3}, {7, {1, 2}}, {7, {3, 1}});
}

}  // namespace
}  // namespace wgemm::nn
