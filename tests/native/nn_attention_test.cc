#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/convert.h"
#include "nn_tester.h"

namespace wgemm::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

struct Problem {
  int64_t batch = 1, heads = 1, group = 1, queries = 1, keys = 1, depth = 1, width = 1;
  double scale = 1, softcap = 0, first = kInfinity, slope = 0, window = kInfinity;
  bool masked = false, interleaved = false;  // heads lie in rows: (batch, rows, heads, size)
  std::vector<int64_t> lengths = {};
  double values = 1;             // the largest magnitude of q and k
  DType type = DType::kFloat32;  // of q, k, v and y

  std::vector<int64_t> dims() const { return {batch, heads, group, queries, keys, depth, width}; }
};

// A tensor of elements of a type. Rounds the elements to it.
TestTensor narrowed(DType type, std::vector<float>* elements, std::vector<int64_t> strides) {
  if (type == DType::kFloat32) return TestTensor::of(type, *elements, std::move(strides));
  const auto narrow = [&]<typename T>(T) {
    std::vector<T> narrow_elements;
    for (float& each : *elements) {
      narrow_elements.push_back(narrow_to(each, T{}));
      each = widen(narrow_elements.back());
    }
    return TestTensor::of(type, narrow_elements, std::move(strides));
  };
  return type == DType::kFloat16 ? narrow(Float16{}) : narrow(BFloat16{});
}

std::vector<float> widened(const TestTensor& tensor) {
  if (tensor.type == DType::kFloat32) return tensor.elements<float>();
  std::vector<float> result;
  if (tensor.type == DType::kFloat16) {
    for (const Float16 each : tensor.elements<Float16>()) result.push_back(widen(each));
  } else {
    for (const BFloat16 each : tensor.elements<BFloat16>()) result.push_back(widen(each));
  }
  return result;
}

// The tensors of a problem.
struct Tensors {
  TestTensor q, k, v, mask, lengths, y, scores;
  std::vector<float> a, b, c, m;
  std::vector<int64_t> starts;

  explicit Tensors(const Problem& p, uint32_t seed = 1) {
    std::mt19937 random(seed);
    const auto draw = [&](int64_t count, double most) {
      std::vector<float> list(static_cast<size_t>(count));
      std::uniform_real_distribution<float> of(-static_cast<float>(most), static_cast<float>(most));
      for (float& each : list) each = of(random);
      return list;
    };
    const int64_t all = p.heads * p.group;
    a = draw(p.batch * all * p.queries * p.depth, p.values);
    b = draw(p.batch * p.heads * p.keys * p.depth, p.values);
    c = draw(p.batch * p.heads * p.keys * p.width, 1);
    m = draw(p.masked ? p.batch * all * p.queries * p.keys : 1, 3);
    starts = p.lengths;
    if (starts.empty()) starts = {0};
    const auto of_queries = [&](int64_t size) -> std::vector<int64_t> {
      const int64_t rows = p.queries * size;
      if (p.interleaved) return {rows * all, p.group * size, size, all * size, 0, 0, 0};
      return {rows * all, rows * p.group, rows, size, 0, 0, 0};
    };
    const auto of_keys = [&](int64_t size) -> std::vector<int64_t> {
      if (p.interleaved) return {p.keys * p.heads * size, size, 0, 0, p.heads * size, 0, 0};
      return {p.keys * p.heads * size, p.keys * size, 0, 0, size, 0, 0};
    };
    const auto with = [](std::vector<int64_t> strides, size_t axis) {
      strides[axis] = 1;
      return strides;
    };
    q = narrowed(p.type, &a, with(of_queries(p.depth), 5));
    k = narrowed(p.type, &b, with(of_keys(p.depth), 5));
    v = narrowed(p.type, &c, with(of_keys(p.width), 6));
    const int64_t plane = p.queries * p.keys;
    mask = TestTensor::of(
        DType::kFloat32, m,
        p.masked ? std::vector<int64_t>{plane * all, plane * p.group, plane, p.keys, 1, 0, 0}
                 : std::vector<int64_t>(7, 0));
    lengths = TestTensor::of(DType::kInt64, starts, {p.lengths.empty() ? 0 : 1, 0, 0, 0, 0, 0, 0});
    std::vector<float> before(static_cast<size_t>(p.batch * all * p.queries * p.width), -99.0F);
    y = narrowed(p.type, &before, with(of_queries(p.width), 6));
    scores = TestTensor::of(DType::kFloat32,
                            std::vector<float>(static_cast<size_t>(p.batch * all * plane)),
                            {plane * all, plane * p.group, plane, p.keys, 1, 0, 0});
  }
};

std::vector<double> attributes_of(const Problem& p, int mode = 0) {
  return {p.scale, p.softcap, p.masked ? 1.0 : 0.0,     p.first,
          p.slope, p.window,  static_cast<double>(mode)};
}

// Calls back with the result in float64 and the element of y.
template <typename F>
void for_each_exact(const Problem& p, const Tensors& t, const F& f) {
  const auto at = [](const TestTensor& tensor, std::vector<int64_t> place) {
    int64_t sum = 0;
    for (size_t i = 0; i < place.size(); ++i) sum += place[i] * tensor.strides[i];
    return static_cast<size_t>(sum);
  };
  std::vector<double> powers(static_cast<size_t>(p.keys));
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t g = 0; g < p.group; ++g)
        for (int64_t l = 0; l < p.queries; ++l) {
          const double length =
              static_cast<double>(p.lengths.empty() ? 0 : p.lengths[static_cast<size_t>(b)]);
          const double end = std::clamp(p.first + p.slope * static_cast<double>(l) + length, 0.0,
                                        static_cast<double>(p.keys)),
                       begin = end - p.window;
          double most = -kInfinity, total = 0;
          for (int64_t s = 0; s < p.keys; ++s) {
            double dot = 0;
            for (int64_t d = 0; d < p.depth; ++d)
              dot += static_cast<double>(t.a[at(t.q, {b, h, g, l, 0, d, 0})]) *
                     static_cast<double>(t.b[at(t.k, {b, h, 0, 0, s, d, 0})]);
            dot *= p.scale;
            if (p.softcap > 0) dot = p.softcap * std::tanh(dot / p.softcap);
            if (p.masked) dot += static_cast<double>(t.m[at(t.mask, {b, h, g, l, s, 0, 0})]);
            const auto key = static_cast<double>(s);
            if (key >= end || key < begin) dot = -kInfinity;
            powers[static_cast<size_t>(s)] = dot;
            most = std::max(most, dot);
          }
          for (double& power : powers) {
            power = most == -kInfinity ? 0 : std::exp(power - most);
            total += power;
          }
          for (int64_t e = 0; e < p.width; ++e) {
            double sum = 0;
            for (int64_t s = 0; s < p.keys; ++s)
              sum += powers[static_cast<size_t>(s)] *
                     static_cast<double>(t.c[at(t.v, {b, h, 0, 0, s, 0, e})]);
            f(total == 0 ? 0 : sum / total, at(t.y, {b, h, g, l, 0, 0, e}));
          }
        }
}

std::vector<float> run(const Problem& p, Tensors* t, int threads) {
  EXPECT_TRUE(run_operator("Attention", p.dims(),
                           {&t->q, &t->k, &t->v, &t->mask, &t->lengths, &t->y}, attributes_of(p),
                           threads));
  return widened(t->y);
}

// What rounding to a type changes at most, relatively.
double unit_of(DType type) {
  return type == DType::kFloat32 ? 0 : type == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
}

// Values are at most 1. For random elements, errors are a few units of 2^-24 times the scores.
void expect_close(const Problem& p, const std::string& what, uint32_t seed = 1) {
  Tensors t(p, seed);
  const std::vector<float> y = run(p, &t, 1);
  const double scores = 2 + std::abs(p.scale) * p.values * p.values * static_cast<double>(p.depth),
               unit = unit_of(p.type);
  double worst = 0;
  for_each_exact(p, t, [&](double exact, size_t i) {
    const double rounding = std::abs(exact) * unit + (unit > 0 ? 0x1p-25 : 0);
    worst = std::max(worst, std::abs(static_cast<double>(y[i]) - exact) - rounding);
  });
  EXPECT_LT(worst, 4 * scores * 0x1p-24) << what;
  Tensors other(p, seed);
  EXPECT_EQ(run(p, &other, 3), y) << what;
}

TEST(NnAttention, IsCloseToFloat64) {
  bool interleaved = false;
  for (const int64_t queries : {1, 3, 130})
    for (const int64_t keys : {1, 7, 129, 600})
      for (const int64_t depth : {1, 20, 64}) {
        Problem p{.batch = 2,
                  .heads = 2,
                  .group = queries == 3 ? 3 : 1,
                  .queries = queries,
                  .keys = keys,
                  .depth = depth,
                  .width = depth == 20 ? 5 : depth};
        p.interleaved = interleaved = !interleaved;
        p.scale = 1 / std::sqrt(static_cast<double>(depth));
        expect_close(p, std::to_string(queries) + " queries, " + std::to_string(keys) +
                            " keys, depth " + std::to_string(depth));
      }
}

TEST(NnAttention, RandomProblemsAreCloseToFloat64) {
  std::mt19937 random(51);
  const auto pick = [&]<typename T>(std::initializer_list<T> list) {
    return list.begin()[random() % list.size()];
  };
  for (int i = 0; i < 120; ++i) {
    Problem p{.batch = pick({1, 2}),
              .heads = pick({1, 2, 3}),
              .group = pick({1, 1, 3}),
              .queries = 1 + static_cast<int64_t>(random() % 9),
              .keys = pick({0, 1, 2, 17, 128, 129, 1023, 1024, 1025, 2049}),
              .depth = pick({1, 3, 63, 64, 80, 128})};
    p.width = pick({p.depth, int64_t{5}});
    p.type = pick({DType::kFloat32, DType::kFloat32, DType::kFloat16, DType::kBFloat16});
    p.scale = pick({1.0, 0.25, -0.5}) / std::sqrt(static_cast<double>(p.depth));
    p.masked = random() % 3 == 0;
    p.softcap = pick({0.0, 0.0, 1.5});
    p.window = pick({kInfinity, kInfinity, 5.0, 1000.0});
    p.interleaved = random() % 2 == 0;
    p.values = pick({1.0, 3.0});
    if (random() % 3 == 0) {
      p.first = 0;
      for (int64_t b = 0; b < p.batch; ++b)
        p.lengths.push_back(static_cast<int64_t>(random() % (static_cast<size_t>(p.keys) + 1)));
    }
    if (random() % 2 == 0) {  // causal
      p.slope = 1;
      p.first = static_cast<double>((p.lengths.empty() ? p.keys : 0) - p.queries + 1);
    }
    expect_close(p, "problem " + std::to_string(i), static_cast<uint32_t>(i));
  }
}

// Equal values of one sign, whose sums round in one direction, and products that cancel.
TEST(NnAttention, IsWithinTheBoundOfAnyElements) {
  for (const int64_t queries : {1, 7})
    for (const int64_t keys : {7, 128, 1000, 2049, 5000})
      for (const int64_t depth : {2, 64, 128}) {
        Problem p{.queries = queries, .keys = keys, .depth = depth, .width = depth};
        Tensors t(p);
        for (size_t i = 0; i < t.a.size(); ++i) t.a[i] = i % 2 == 0 ? 2.0F + t.a[i] : -2.0F;
        for (size_t i = 0; i < t.b.size(); ++i) t.b[i] = 0.7F;
        for (size_t i = 0; i < t.c.size(); ++i) t.c[i] = 0.55F + 0.01F * static_cast<float>(i % 5);
        t.q = TestTensor::of(p.type, t.a, t.q.strides);
        t.k = TestTensor::of(p.type, t.b, t.k.strides);
        t.v = TestTensor::of(p.type, t.c, t.v.strides);
        p.scale = 1 / std::sqrt(static_cast<double>(depth));
        const std::vector<float> y = run(p, &t, 1);
        // docs/operators/attention.md states it.
        const auto size = static_cast<double>(depth);
        const double sum = 3 * 0.7 * size * p.scale,
                     bound = 2 * (size + 12) * sum + 1.5 * static_cast<double>(keys) + 12;
        for_each_exact(p, t, [&](double exact, size_t i) {
          ASSERT_NEAR(static_cast<double>(y[i]), exact, bound * 0x1p-24) << keys;
        });
      }
}

TEST(NnAttention, HidesKeys) {
  for (const int64_t queries : {1, 140})
    for (const int64_t keys : {5, 140, 700}) {
      Problem p{.batch = 2,
                .heads = 1,
                .group = 2,
                .queries = queries,
                .keys = keys,
                .depth = 16,
                .width = 12};
      p.scale = 0.25;
      p.first = 1;
      p.slope = 1;
      expect_close(p, "causal");
      p.window = 7;
      expect_close(p, "window");
      p.first = kInfinity;
      expect_close(p, "only a window");
      p.window = kInfinity;
      p.lengths = {2, keys - 3};
      p.first = 0;
      expect_close(p, "lengths");
      p.slope = 0;
      expect_close(p, "only lengths");
      p.lengths.clear();
      p.first = kInfinity;
      p.masked = true;
      p.softcap = 2;
      p.values = 4;
      expect_close(p, "mask and softcap");
    }
}

TEST(NnAttention, QueriesThatSeeNothingAreZero) {
  Problem p{.heads = 2, .queries = 3, .keys = 4, .depth = 8, .width = 4};
  p.first = -1;
  p.slope = 1;
  Tensors t(p);
  const std::vector<float> y = run(p, &t, 1);
  EXPECT_TRUE(std::all_of(y.begin(), y.begin() + 8, [](float each) { return each == 0; }));
  EXPECT_TRUE(std::all_of(y.begin() + 8, y.begin() + 12, [](float each) { return each != 0; }));
}

TEST(NnAttention, MasksOfTheLeastNumberTakeTheMean) {
  for (const int64_t keys : {3, 700}) {
    Problem p{.heads = 2, .queries = 3, .keys = keys, .depth = 8, .width = 4};
    p.masked = true;
    Tensors t(p);
    std::fill(t.m.begin(), t.m.end(), std::numeric_limits<float>::lowest());
    std::fill_n(t.m.begin(), keys - 2, -static_cast<float>(kInfinity));
    t.mask = TestTensor::of(DType::kFloat32, t.m, t.mask.strides);
    const std::vector<float> y = run(p, &t, 1);
    for_each_exact(p, t, [&](double exact, size_t i) { EXPECT_NEAR(y[i], exact, 1e-6) << i; });
    const float* const last = t.c.data() + (keys - 2) * 4;
    EXPECT_NEAR(y[0], (last[0] + last[4]) / 2, 1e-6);
  }
}

TEST(NnAttention, DoesNotReadHiddenValues) {
  Problem p{.batch = 2, .queries = 2, .keys = 600, .depth = 8, .width = 8};
  p.first = 0;
  p.lengths = {3, 9};
  Tensors t(p), other(p);
  const std::vector<float> expected = run(p, &t, 1);
  for (size_t batch = 0; batch < 2; ++batch)
    for (auto key = static_cast<size_t>(p.lengths[batch]); key < 600; ++key)
      for (size_t i = 0; i < 8; ++i) {
        other.b[(batch * 600 + key) * 8 + i] = std::numeric_limits<float>::quiet_NaN();
        other.c[(batch * 600 + key) * 8 + i] = std::numeric_limits<float>::quiet_NaN();
      }
  other.k = TestTensor::of(DType::kFloat32, other.b, other.k.strides);
  other.v = TestTensor::of(DType::kFloat32, other.c, other.v.strides);
  EXPECT_EQ(run(p, &other, 1), expected);
}

TEST(NnAttention, KeepsNaN) {
  Problem p{.queries = 2, .keys = 5, .depth = 4, .width = 4};
  Tensors t(p);
  t.a[0] = static_cast<float>(kNaN);
  t.q = TestTensor::of(DType::kFloat32, t.a, t.q.strides);
  const std::vector<float> y = run(p, &t, 1);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[3]));
  EXPECT_FALSE(std::isnan(y[4]));
}

TEST(NnAttention, WritesScores) {
  Problem p{.batch = 2, .group = 2, .queries = 9, .keys = 11, .depth = 8, .width = 3};
  p.first = 1;
  p.slope = 1;
  p.masked = true;
  p.softcap = 3;
  Tensors t(p);
  std::vector<std::vector<float>> scores;
  for (int mode = 0; mode < 4; ++mode) {
    EXPECT_TRUE(run_operator("AttentionScores", p.dims(),
                             {&t.q, &t.k, &t.v, &t.mask, &t.lengths, &t.y, &t.scores},
                             attributes_of(p, mode)));
    scores.push_back(t.scores.elements<float>());
    for_each_exact(p, t, [&, y = t.y.elements<float>()](double exact, size_t i) {
      EXPECT_NEAR(static_cast<double>(y[i]), exact, 1e-5);
    });
  }
  for (size_t i = 0; i < scores[0].size(); ++i) {
    const double product = static_cast<double>(scores[0][i]);
    EXPECT_NEAR(static_cast<double>(scores[1][i]), 3 * std::tanh(product / 3), 1e-5);
    const bool seen = i % 11 <= i / 11 % 9;
    if (seen) {
      EXPECT_NEAR(scores[2][i], scores[1][i] + t.m[i], 1e-5);
    }
    EXPECT_EQ(std::isinf(scores[2][i]), !seen);
    EXPECT_EQ(scores[3][i] == 0, !seen);
  }
}

TEST(NnAttention, TakesNoKeys) {
  Problem p{.queries = 2, .keys = 0, .depth = 4, .width = 3};
  Tensors t(p);
  for (const float each : run(p, &t, 1)) EXPECT_EQ(each, 0);
}

TEST(NnRotary, RotatesPairs) {
  for (const bool interleaved : {false, true}) {
    constexpr int64_t kHalf = 5;
    std::vector<float> x(20), cos(10), sin(10);
    for (size_t i = 0; i < 20; ++i) x[i] = static_cast<float>(i) - 7;
    for (size_t i = 0; i < 10; ++i) {
      cos[i] = std::cos(static_cast<float>(i));
      sin[i] = std::sin(static_cast<float>(i));
    }
    const int64_t step = interleaved ? 2 : 1, distance = interleaved ? 1 : kHalf;
    TestTensor a = TestTensor::of(DType::kFloat32, x, {10, step}),
               b = TestTensor::of(DType::kFloat32, cos, {kHalf, 1}),
               c = TestTensor::of(DType::kFloat32, sin, {kHalf, 1}),
               y = TestTensor::of(DType::kFloat32, std::vector<float>(20), {10, step});
    ASSERT_TRUE(
        run_operator("Rotary", {2, kHalf}, {&a, &b, &c, &y}, {static_cast<double>(distance)}));
    const std::vector<float> found = y.elements<float>();
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < kHalf; ++i) {
        const auto at = static_cast<size_t>(row * 10 + i * step),
                   to = at + static_cast<size_t>(distance),
                   angle = static_cast<size_t>(row * kHalf + i);
        EXPECT_EQ(found[at], x[at] * cos[angle] - x[to] * sin[angle]);
        EXPECT_EQ(found[to], x[at] * sin[angle] + x[to] * cos[angle]);
      }
  }
}

TEST(NnWriteRows, WritesAtNumbers) {
  TestTensor x = TestTensor::of(DType::kFloat32, std::vector<float>{1, 2, 3, 4}, {2, 2, 1}),
             at = TestTensor::of(DType::kInt32, std::vector<int32_t>{2, 4}, {1, 0, 0}),
             y = TestTensor::of(DType::kFloat32, std::vector<float>(16), {8, 2, 1});
  ASSERT_TRUE(run_operator("WriteRows", {2, 1, 2}, {&x, &at, &y}, {-1, 2, 3}));
  EXPECT_EQ(y.elements<float>(),
            (std::vector<float>{0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4}));
  at = TestTensor::of(DType::kInt32, std::vector<int32_t>{2, 5}, {1, 0, 0});
  Status status;
  EXPECT_FALSE(run_operator("WriteRows", {2, 1, 2}, {&x, &at, &y}, {-1, 2, 3}, 1, &status));
  EXPECT_STREQ(status.message, "run: the length of a sequence is 5; it must be from 1 to 4");
}

}  // namespace
}  // namespace wgemm::nn
