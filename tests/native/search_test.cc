// Search against its definition in wgemm.h, vector by vector, and the contents of vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/convert.h"
#include "engine.h"
#include "search/scan.h"
#include "values.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

using Floats = std::vector<float>;
using Rows = std::vector<Floats>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The definition
// -------------------------------------------------------------------------------------------------

float rounded_to(DType type, float x) {
  if (type == DType::kFloat16) return widen(narrow_to(x, Float16{}));
  if (type == DType::kBFloat16) return widen(narrow_to(x, BFloat16{}));
  return x;
}

// A vector as an index has it.
struct Entry {
  Floats elements;
  float scale = 1;

  Entry() = default;
  Entry(DType type, const Floats& row) : elements(row) {
    if (type != DType::kInt8) {
      for (float& x : elements) x = rounded_to(type, x);
      return;
    }
    float most = 0;
    for (const float x : row) most = std::max(most, std::fabs(x));
    if (most == 0) return;
    scale = std::max(most / 127, std::numeric_limits<float>::denorm_min());
    for (float& x : elements) x = std::clamp(std::nearbyint(x / scale), -127.0F, 127.0F);
  }
};

// The sum over ascending k, unfused. Sums of 8 bits are exact in float64.
double product(DType type, const Entry& a, const Entry& b) {
  if (type == DType::kInt8 || type == DType::kUInt8) {
    double sum = 0;
    for (size_t k = 0; k < a.elements.size(); ++k)
      sum += static_cast<double>(a.elements[k]) * static_cast<double>(b.elements[k]);
    return sum;
  }
  float sum = 0;
  for (size_t k = 0; k < a.elements.size(); ++k) {
    const float each = a.elements[k] * b.elements[k];
    sum += each;
  }
  return static_cast<double>(sum);
}

float score(DType type, Metric metric, const Entry& q, const Entry& v) {
  const double acc = product(type, q, v), nq = product(type, q, q), nv = product(type, v, v),
               sq = static_cast<double>(q.scale), sv = static_cast<double>(v.scale);
  if (metric == Metric::kDot) return static_cast<float>(acc * (sq * sv));
  if (metric == Metric::kCosine)
    return static_cast<float>(std::clamp(acc / std::sqrt(nq * nv), -1.0, 1.0));
  const double square = sq * sq * nq + sv * sv * nv - 2 * (sq * sv) * acc;
  return static_cast<float>(std::sqrt(std::max(0.0, square)));
}

struct Match {
  uint32_t slot;
  float score;
  bool operator==(const Match& other) const {
    return slot == other.slot && std::memcmp(&score, &other.score, sizeof(score)) == 0;
  }
};
std::ostream& operator<<(std::ostream& out, const Match& m) {
  return out << m.slot << ": " << m.score;
}
using Matches = std::vector<Match>;

bool is_better(Metric metric, const Match& a, const Match& b) {
  if (a.score != b.score)
    return metric == Metric::kEuclidean ? a.score < b.score : a.score > b.score;
  return a.slot < b.slot;
}

// The best k of the vectors that take part.
Matches best(DType type, Metric metric, const Entry& q, const std::vector<Entry>& entries,
             const std::vector<uint32_t>& slots, size_t k) {
  Matches all;
  for (const uint32_t slot : slots)
    all.push_back({slot, score(type, metric, q, entries[slot]) + 0.0F});
  std::sort(all.begin(), all.end(),
            [&](const Match& a, const Match& b) { return is_better(metric, a, b); });
  all.resize(std::min(all.size(), k));
  return all;
}

// Sets of vectors
// -------------------------------------------------------------------------------------------------

Context& context_of(int threads) {
  static std::map<int, std::unique_ptr<Context>> contexts;
  auto& context = contexts[threads];
  if (!context) {
    context = std::make_unique<Context>();
    EXPECT_TRUE(context->set_threads(threads).ok());
  }
  return *context;
}

#if WGEMM_THREADS
constexpr int kMostThreads = 4;
#else
constexpr int kMostThreads = 1;
#endif

// Elements of a type, row after row.
std::vector<std::byte> bytes_of(DType type, const Rows& rows) {
  std::vector<std::byte> bytes;
  for (const Floats& row : rows) {
    for (const float x : row) {
      std::byte element[sizeof(float)];
      const double value = static_cast<double>(rounded_to(type, x));
      EXPECT_TRUE(store("", "", value, type, element).ok());
      bytes.insert(bytes.end(), element, element + dtype_bytes(type));
    }
  }
  return bytes;
}

// A matrix of rows, of which the address sanitizer knows the end.
struct Matrix {
  std::unique_ptr<std::byte[]> data;
  int64_t dims[2];
  DType type;

  Matrix(DType of, const Rows& rows, size_t dimensions)
      : dims{static_cast<int64_t>(rows.size()), static_cast<int64_t>(dimensions)}, type(of) {
    const std::vector<std::byte> bytes = bytes_of(of, rows);
    data.reset(new std::byte[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), data.get());
  }
  ConstTensor tensor() const { return {.data = data.get(), .dtype = type, .dims = dims}; }
};

// Vectors in segments, and the same as entries.
struct Index {
  VectorsArgs args;
  std::vector<std::unique_ptr<Vectors>> segments;
  std::vector<std::vector<uint32_t>> filters;  // empty: none
  std::vector<Entry> entries, rescored;
  std::vector<uint32_t> slots;  // that take part

  Vectors& add_segment(Context& context, int64_t capacity) {
    args.capacity = capacity;
    segments.push_back(std::make_unique<Vectors>());
    filters.emplace_back();
    const Status status = make_vectors(context, args, segments.back().get());
    EXPECT_TRUE(status.ok()) << status.message;
    return *segments.back();
  }
  void add(Vectors* vectors, DType input, const Rows& rows) {
    const Matrix matrix(input, rows, static_cast<size_t>(args.dimensions));
    const Status status = append(vectors, {.vectors = matrix.tensor()});
    ASSERT_TRUE(status.ok()) << status.message;
    for (const Floats& row : rows) {
      Floats given;
      for (const float x : row) given.push_back(rounded_to(input, x));
      slots.push_back(static_cast<uint32_t>(entries.size()));
      entries.emplace_back(input == args.dtype ? DType::kFloat32 : args.dtype, given);
      if (args.rescore) rescored.emplace_back(*args.rescore, given);
    }
  }
  std::vector<Segment> list() const {
    std::vector<Segment> result;
    for (size_t i = 0; i < segments.size(); ++i)
      result.push_back({segments[i].get(), filters[i].empty() ? nullptr : filters[i].data()});
    return result;
  }
  // Makes filters by a rule for slots.
  template <typename Rule>
  void filter(const Rule& rule) {
    slots.clear();
    uint32_t slot = 0;
    for (size_t s = 0; s < segments.size(); ++s) {
      const auto count = static_cast<size_t>(segments[s]->count());
      filters[s].assign((count + 31) / 32, 0);
      for (size_t i = 0; i < count; ++i, ++slot) {
        if (!rule(slot)) continue;
        filters[s][i / 32] |= 1U << i % 32;
        slots.push_back(slot);
      }
    }
  }
};

struct Results {
  std::vector<uint32_t> slots, found;
  Floats scores;
  Results(size_t queries, size_t k)
      : slots(queries * k, 77), found(queries, 77), scores(queries * k, 77) {}
  void set(SearchArgs* args) {
    args->slots = slots.data();
    args->scores = scores.data();
    args->found = found.data();
  }
  bool is_untouched() const {
    const auto same = [](const auto& list) {
      return std::all_of(list.begin(), list.end(), [](auto x) { return x == 77; });
    };
    return same(slots) && same(found) && same(scores);
  }
};

void expect_matches(const Results& results, size_t query, size_t k, const Matches& expected) {
  ASSERT_EQ(results.found[query], expected.size());
  for (size_t i = 0; i < k; ++i) {
    const Match found{results.slots[query * k + i], results.scores[query * k + i]};
    if (i < expected.size()) {
      ASSERT_EQ(found, expected[i]) << "query " << query << ", place " << i;
    } else {
      ASSERT_EQ(found, (Match{77, 77}));
    }
  }
}

// Drawing
// -------------------------------------------------------------------------------------------------

using Random = std::mt19937_64;

enum class Kind : uint8_t { kUniform, kSmallWhole, kTiny, kHuge, kMixed, kNear, kClustered };
constexpr Kind kKinds[] = {Kind::kUniform, Kind::kSmallWhole, Kind::kTiny,     Kind::kHuge,
                           Kind::kMixed,   Kind::kNear,       Kind::kClustered};

// A row whose norm is finite in `type`, and not 0.
Floats draw_row(Random& random, DType type, Kind kind, size_t dimensions, const Floats& center) {
  const bool is_half = type == DType::kFloat16;
  Floats row(dimensions);
  for (size_t k = 0; k < dimensions; ++k) {
    const float unit = uniform<float>(random, -1, 1);
    float x = unit;
    if (type == DType::kUInt8) {
      x = static_cast<float>(random() % (kind == Kind::kSmallWhole ? 3 : 256));
    } else if (kind == Kind::kSmallWhole) {
      x = std::round(unit * 2);
    } else if (kind == Kind::kTiny) {
      x = unit * (is_half ? 0x1p-12F : 0x1p-68F);  // squares are below the normal range
    } else if (kind == Kind::kHuge) {
      x = unit * (is_half ? 60000.0F : 0x1.8p63F) / std::sqrt(static_cast<float>(dimensions));
    } else if (kind == Kind::kMixed) {
      x = std::ldexp(unit, static_cast<int>(random() % (is_half ? 20 : 100)) - (is_half ? 10 : 50));
    } else if (kind == Kind::kNear) {
      x = random() % 4 == 0 ? std::nextafter(center[k], unit * kInfinity) : center[k];
    } else if (kind == Kind::kClustered) {
      x = center[k] + unit * 0x1p-10F;
    }
    row[k] = x;
  }
  // No row is 0.
  if (type == DType::kUInt8 || kind == Kind::kSmallWhole)
    row[random() % dimensions] = type == DType::kUInt8 ? 255 : 1;
  if (type == DType::kUInt8) return row;
  if (kind == Kind::kTiny) row[0] = is_half ? 0x1p-10F : 0x1p-66F;
  if (kind == Kind::kMixed) row[0] = 1;
  return row;
}

Rows draw(Random& random, DType type, Kind kind, size_t count, size_t dimensions) {
  Floats center(dimensions);
  for (float& x : center) x = uniform<float>(random, 1, 2);
  Rows rows;
  while (rows.size() < count) {
    rows.push_back(draw_row(random, type, kind, dimensions, center));
    if (rows.size() > 1 && random() % 4 == 0) rows.back() = rows[random() % rows.size()];
  }
  return rows;
}

// Types and metrics
// -------------------------------------------------------------------------------------------------

struct Case {
  DType type;
  Metric metric;
};
constexpr const char* kMetrics[] = {"Dot", "Cosine", "Euclidean"};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType type :
       {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8})
    for (const Metric metric : {Metric::kDot, Metric::kCosine, Metric::kEuclidean})
      all.push_back({type, metric});
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return std::string(dtype_name(info.param.type)) +
         kMetrics[static_cast<size_t>(info.param.metric)];
}

class Search : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Search, Search, ::testing::ValuesIn(cases()), name_of);

constexpr size_t kDimensions[] = {1, 2, 3, 7, 8, 31, 64, 130};

Index draw_index(Random& random, Context& context, const Case& c, Kind kind, size_t dimensions,
                 size_t most) {
  Index index;
  index.args.dimensions = static_cast<int64_t>(dimensions);
  index.args.dtype = c.type;
  index.args.metric = c.metric;
  for (size_t segments = 1 + random() % 4; segments > 0; --segments) {
    const size_t count = random() % (most + 1);
    Vectors& vectors = index.add_segment(context, static_cast<int64_t>(count + 1 + random() % 9));
    const Rows rows = draw(random, c.type, kind, count, dimensions);
    const size_t first = random() % (count + 1);
    index.add(&vectors, DType::kFloat32,
              {rows.begin(), rows.begin() + static_cast<ptrdiff_t>(first)});
    index.add(&vectors, DType::kFloat32,
              {rows.begin() + static_cast<ptrdiff_t>(first), rows.end()});
  }
  return index;
}

void draw_filter(Random& random, Index* index) {
  const uint32_t period = 1U << random() % 11;
  switch (random() % 4) {
    case 0:
      return;
    case 1:
      return index->filter([&](uint32_t) { return random() % 3 == 0; });
    case 2:  // whole chunks have no bit
      return index->filter([&](uint32_t slot) { return slot / period % 3 == 0; });
    default:
      return index->filter([&](uint32_t) { return random() % 64 == 0; });
  }
}

TEST_P(Search, FindsTheBestByTheDefinition) {
  const Case c = GetParam();
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Kind kind = kKinds[seed % std::size(kKinds)];
    Context& context = context_of(1 + static_cast<int>(seed) % kMostThreads);
    // Sums of 8 bits by each kind of dot products. A simulation is for one thread.
    const std::vector<Engine> list = engines();
    const Engine& engine = list[context.threads() == 1 ? seed / kMostThreads % list.size() : 0];
    std::optional<Simulated> simulated;
    if (context.threads() == 1) simulated.emplace(engine);
    const size_t before = context.bytes_in_use(),
                 dimensions = kDimensions[random() % std::size(kDimensions)];
    {
      // Many rows compute by other kernels, and many columns by several blocks.
      const bool is_tall = seed % 5 == 0;
      Index index = draw_index(random, context, c, kind, dimensions, is_tall ? 200 : 1500);
      draw_filter(random, &index);
      const size_t counts[] = {0, 1, 1, 2, 3, 5, 8, 17},
                   queries = is_tall ? 150 : counts[random() % std::size(counts)],
                   ks[] = {1, 3, 10, 40, index.entries.size() + 5},
                   k = std::max<size_t>(ks[random() % std::size(ks)], 1);
      Rows asked = draw(random, c.type, kind, queries, dimensions);
      const Matrix matrix(DType::kFloat32, asked, dimensions);
      const std::vector<Segment> segments = index.list();
      SearchArgs args{.queries = matrix.tensor(), .segments = segments};
      args.k = static_cast<int64_t>(k);
      if (random() % 4 == 0) args.max_memory = 1 + random() % 20000;
      std::vector<Matches> expected;
      for (const Floats& row : asked)
        expected.push_back(
            best(c.type, c.metric, Entry(c.type, row), index.entries, index.slots, k));
      if (!expected.empty() && !expected[0].empty() && random() % 3 == 0) {
        args.min_score = expected[0][random() % expected[0].size()].score;
        for (Matches& matches : expected)
          while (!matches.empty() &&
                 is_better(c.metric, {0, *args.min_score}, {0, matches.back().score}))
            matches.pop_back();
      }
      Results results(queries, k);
      results.set(&args);
      const Status status = search(context, args);
      ASSERT_TRUE(status.ok()) << status.message;
      for (size_t i = 0; i < queries; ++i) {
        expect_matches(results, i, k, expected[i]);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_EQ(context.bytes_in_use(), before);
  }
}

TEST_P(Search, AVectorFindsItself) {
  const Case c = GetParam();
  for (const Kind kind : kKinds) {
    Random random(static_cast<uint64_t>(kind));
    Context context;
    Index index;
    index.args = {.dimensions = 33, .dtype = c.type, .metric = c.metric};
    const Rows rows = draw(random, c.type, kind, 20, 33);
    index.add(&index.add_segment(context, 20), DType::kFloat32, rows);
    for (uint32_t i = 0; i < 20; ++i) {
      const Matrix matrix(DType::kFloat32, {rows[i]}, 33);
      index.filter([&](uint32_t slot) { return slot == i; });
      const std::vector<Segment> segments = index.list();
      SearchArgs args{.queries = matrix.tensor(), .segments = segments};
      args.k = 2;
      Results results(1, 2);
      results.set(&args);
      ASSERT_TRUE(search(context, args).ok());
      const Match itself{i, results.scores[0]};
      expect_matches(results, 0, 2, {itself});
      if (c.metric != Metric::kDot) {
        EXPECT_EQ(itself.score, c.metric == Metric::kCosine ? 1 : 0);
      }
    }
  }
}

TEST_P(Search, TakesRowsOfEveryType) {
  const Case c = GetParam();
  std::vector<DType> inputs = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  if (c.type == DType::kInt8 || c.type == DType::kUInt8) inputs.push_back(c.type);
  for (const DType input : inputs) {
    SCOPED_TRACE(dtype_name(input));
    Random random(5);
    Context context;
    Index index;
    index.args = {.dimensions = 300, .dtype = c.type, .metric = c.metric};
    // Whole numbers that each type holds exactly.
    const Rows rows = draw(random, c.type, Kind::kSmallWhole, 40, 300);
    index.add(&index.add_segment(context, 40), input, rows);
    const Matrix matrix(input, rows, 300);
    const std::vector<Segment> segments = index.list();
    SearchArgs args{.queries = matrix.tensor(), .segments = segments};
    args.k = 7;
    Results results(40, 7);
    results.set(&args);
    const Status status = search(context, args);
    ASSERT_TRUE(status.ok()) << status.message;
    for (size_t i = 0; i < 40; ++i)
      expect_matches(results, i, 7,
                     best(c.type, c.metric, index.entries[i], index.entries, index.slots, 7));
  }
}

TEST_P(Search, FastScoresAreNear) {
  const Case c = GetParam();
  Random random(3);
  for (const size_t queries : {size_t{1}, size_t{7}, size_t{40}}) {
    Context& context = context_of(kMostThreads);
    Index index = draw_index(random, context, c, Kind::kUniform, 130, 1000);
    const Rows asked = draw(random, c.type, Kind::kUniform, queries, 130);
    const Matrix matrix(DType::kFloat32, asked, 130);
    const std::vector<Segment> segments = index.list();
    SearchArgs args{.queries = matrix.tensor(), .segments = segments};
    args.k = 10;
    args.fast = true;
    Results results(queries, 10);
    results.set(&args);
    ASSERT_TRUE(search(context, args).ok());
    for (size_t i = 0; i < queries; ++i) {
      const Matches expected =
          best(c.type, c.metric, Entry(c.type, asked[i]), index.entries, index.slots, 10);
      ASSERT_EQ(results.found[i], expected.size());
      for (size_t j = 0; j < expected.size(); ++j) {
        const float found = results.scores[i * 10 + j], exact = expected[j].score;
        EXPECT_LE(std::fabs(found - exact), std::max(std::fabs(exact), 1.0F) * 1e-4F);
      }
    }
  }
}

// Every vector whose score is at least as good as a key has an x of at least the bound.
TEST_P(Search, TheBoundIsNeverTooHigh) {
  const Case c = GetParam();
  Random random(7);
  int passed = 0, all = 0;
  for (int i = 0; i < 4000; ++i) {
    const size_t dimensions = 1 + random() % 6;
    const auto kind = [&] { return kKinds[random() % std::size(kKinds)]; };
    const Kind of_query = kind(), of_rows = random() % 2 == 0 ? of_query : kind();
    Rows rows = draw(random, c.type, of_rows, 8, dimensions);
    Floats query = draw(random, c.type, of_query, 1, dimensions)[0];
    if (random() % 4 == 0) query = rows[0];
    const Entry q(c.type, query);
    std::vector<Entry> entries;
    double greatest = 0;
    for (const Floats& row : rows) {
      const Entry& e = entries.emplace_back(c.type, row);
      const double s = static_cast<double>(e.scale);
      greatest = std::max(greatest, s * s * product(c.type, e, e));
    }
    const Factors factors{static_cast<double>(q.scale), product(c.type, q, q)};
    for (const Entry& limit : entries) {
      const float least = score(c.type, c.metric, q, limit);
      const uint64_t key = key_of(c.metric, least, 0);
      ASSERT_EQ(score_of_key(c.metric, key), least);
      const float bound = bound_of(c.metric, key, factors, greatest);
      for (const Entry& e : entries) {
        const double norm = product(c.type, e, e), s = static_cast<double>(e.scale);
        const auto acc = static_cast<float>(product(c.type, q, e));
        const auto f =
            c.metric == Metric::kCosine ? static_cast<float>(1 / std::sqrt(norm)) : e.scale;
        const float h = c.metric == Metric::kEuclidean ? static_cast<float>(s * s * norm / 2) : 0;
        const float scaled = acc * f,
                    product = c.metric == Metric::kEuclidean ? scaled * q.scale : scaled,
                    x = product - h;
        ++all;
        passed += x >= bound ? 1 : 0;
        if (is_better(c.metric, {1, least}, {0, score(c.type, c.metric, q, e)})) continue;
        ASSERT_GE(x, bound) << i << ": " << least;
      }
    }
  }
  EXPECT_LT(passed, all * 9 / 10);
}

// The largest sums of 8 bits, by every kind of dot products.
TEST(SearchBytes, SumsOf32768DimensionsFit) {
  constexpr size_t kMost = 32768;
  const auto filled = [](float even, float odd) {
    Floats row(kMost, even);
    for (size_t k = 1; k < kMost; k += 2) row[k] = odd;
    return row;
  };
  for (const Engine& engine : engines()) {
    SCOPED_TRACE(engine.name);
    const Simulated simulated(engine);
    for (const Metric metric : {Metric::kDot, Metric::kCosine, Metric::kEuclidean}) {
      for (const DType type : {DType::kInt8, DType::kUInt8}) {
        const bool is_signed = type == DType::kInt8;
        const float low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
        const Rows rows = {filled(high, high), filled(low, high), filled(high, low), filled(1, 1),
                           filled(is_signed ? low : 128, is_signed ? low : 128)};
        Context context;
        Index index;
        index.args = {.dimensions = kMost, .dtype = type, .metric = metric};
        index.add(&index.add_segment(context, 9), type, rows);
        for (const size_t queries : {size_t{1}, size_t{2}, size_t{5}}) {
          const Matrix matrix(type, {rows.begin(), rows.begin() + static_cast<ptrdiff_t>(queries)},
                              kMost);
          const std::vector<Segment> segments = index.list();
          SearchArgs args{.queries = matrix.tensor(), .segments = segments};
          args.k = 5;
          Results results(queries, 5);
          results.set(&args);
          ASSERT_TRUE(search(context, args).ok());
          for (size_t i = 0; i < queries; ++i)
            expect_matches(results, i, 5,
                           best(type, metric, index.entries[i], index.entries, index.slots, 5));
        }
      }
    }
  }
}

// Contents of vectors
// -------------------------------------------------------------------------------------------------

struct Bytes {
  std::vector<std::byte> rows, rescored;
  Floats scales;
  bool operator==(const Bytes&) const = default;
};

Bytes read_all(const VectorsArgs& args, const Vectors& v) {
  const auto count = static_cast<size_t>(v.count()), d = static_cast<size_t>(args.dimensions);
  Bytes bytes{std::vector<std::byte>(count * d * dtype_bytes(args.dtype)),
              std::vector<std::byte>(args.rescore ? count * d * dtype_bytes(*args.rescore) : 0),
              Floats(args.dtype == DType::kInt8 ? count : 0)};
  read(v, 0, v.count(), bytes.rows.data(), bytes.scales.empty() ? nullptr : bytes.scales.data(),
       bytes.rescored.empty() ? nullptr : bytes.rescored.data());
  return bytes;
}

TEST_P(Search, CompactKeepsTheOrder) {
  const Case c = GetParam();
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Kind kind = kKinds[seed % std::size(kKinds)];
    Context context;
    const size_t dimensions = kDimensions[random() % std::size(kDimensions)];
    Index index = draw_index(random, context, c, kind, dimensions, 90);
    for (int round = 0; round < 3; ++round) {
      const bool keeps = seed % 7 != 0;
      index.filter([&](uint32_t) { return keeps; });
      if (keeps) draw_filter(random, &index);
      std::vector<Entry> kept;
      for (const uint32_t slot : index.slots) kept.push_back(index.entries[slot]);
      std::vector<Vectors*> vectors;
      std::vector<const uint32_t*> filters;
      for (const Segment& segment : index.list()) {
        vectors.push_back(const_cast<Vectors*>(segment.vectors));
        filters.push_back(segment.filter);
      }
      compact(vectors, filters);
      index.entries = kept;
      index.filter([](uint32_t) { return true; });
      ASSERT_EQ(index.slots.size(), kept.size());
      // Only the last segments have room.
      bool is_full = true;
      for (const auto& segment : index.segments) {
        EXPECT_TRUE(is_full || segment->count() == 0);
        is_full = segment->count() == segment->capacity();
      }
      const Rows asked = draw(random, c.type, kind, 3, dimensions);
      const Matrix matrix(DType::kFloat32, asked, dimensions);
      const std::vector<Segment> segments = index.list();
      SearchArgs args{.queries = matrix.tensor(), .segments = segments};
      args.k = 20;
      Results results(3, 20);
      results.set(&args);
      ASSERT_TRUE(search(context, args).ok());
      for (size_t i = 0; i < 3; ++i)
        expect_matches(results, i, 20,
                       best(c.type, c.metric, Entry(c.type, asked[i]), kept, index.slots, 20));
      // There is room again.
      Vectors& last = *index.segments.back();
      if (last.count() < last.capacity())
        index.add(&last, DType::kFloat32, draw(random, c.type, kind, 1, dimensions));
    }
  }
}

TEST_P(Search, ReadIsTheInverseOfAppend) {
  const Case c = GetParam();
  for (const size_t dimensions : kDimensions) {
    for (const bool rescores : {false, true}) {
      if (rescores && c.type != DType::kInt8) continue;
      Random random(dimensions);
      Context context;
      Index index;
      index.args = {
          .dimensions = static_cast<int64_t>(dimensions), .dtype = c.type, .metric = c.metric};
      if (rescores) index.args.rescore = DType::kBFloat16;
      const Rows rows = draw(random, c.type, Kind::kUniform, 21, dimensions);
      Vectors& all = index.add_segment(context, 30);
      index.add(&all, DType::kFloat32, rows);
      const Bytes bytes = read_all(index.args, all);
      // The elements by the definition.
      Rows elements;
      for (size_t i = 0; i < 21; ++i) {
        elements.push_back(index.entries[i].elements);
        if (!bytes.scales.empty()) {
          EXPECT_EQ(bytes.scales[i], index.entries[i].scale);
        }
      }
      EXPECT_EQ(bytes.rows, bytes_of(c.type, elements));
      // One by one.
      Vectors& single = index.add_segment(context, 21);
      for (const Floats& row : rows) index.add(&single, DType::kFloat32, {row});
      EXPECT_EQ(read_all(index.args, single), bytes);
      // From bytes.
      Vectors& again = index.add_segment(context, 21);
      const int64_t dims[] = {21, static_cast<int64_t>(dimensions)};
      const Status status =
          append(&again, {.vectors = {.data = bytes.rows.data(), .dtype = c.type, .dims = dims},
                          .scales = bytes.scales.empty() ? nullptr : bytes.scales.data(),
                          .rescored = rescores ? bytes.rescored.data() : nullptr});
      ASSERT_TRUE(status.ok()) << status.message;
      EXPECT_EQ(read_all(index.args, again), bytes);
      // A part of them.
      std::vector<std::byte> part(2 * dimensions * dtype_bytes(c.type));
      read(all, 9, 2, part.data(), nullptr, nullptr);
      EXPECT_TRUE(std::equal(part.begin(), part.end(),
                             bytes.rows.begin() + static_cast<ptrdiff_t>(part.size() / 2 * 9)));
      truncate(&again, 9);
      EXPECT_EQ(again.count(), 9);
      truncate(&again, 10);
      EXPECT_EQ(again.count(), 9);
    }
  }
}

// Rescoring and documents
// -------------------------------------------------------------------------------------------------

TEST(SearchRescored, OrdersCandidatesOfInt8) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Context& context = context_of(1 + static_cast<int>(seed) % kMostThreads);
    const Case c{DType::kInt8, static_cast<Metric>(seed % 3)};
    const Kind kind = kKinds[seed % std::size(kKinds)];
    const size_t dimensions = kDimensions[random() % std::size(kDimensions)],
                 queries = 1 + seed % 9;
    Index index;
    index.args = {
        .dimensions = static_cast<int64_t>(dimensions), .dtype = c.type, .metric = c.metric};
    index.args.rescore = seed % 2 == 0 ? DType::kFloat32 : DType::kBFloat16;
    for (const int64_t count : {40, 1, 600}) {
      index.add(&index.add_segment(context, count + 3), DType::kFloat32,
                draw(random, c.type, kind, static_cast<size_t>(count), dimensions));
    }
    draw_filter(random, &index);
    const Rows asked = draw(random, c.type, kind, queries, dimensions);
    const Matrix matrix(DType::kFloat32, asked, dimensions);
    const std::vector<Segment> segments = index.list();
    SearchArgs args{.queries = matrix.tensor(), .segments = segments};
    const size_t k = 5;
    args.k = k;
    args.candidates = seed % 4 == 0 ? 0 : static_cast<int64_t>(random() % 60);
    const size_t candidates =
        args.candidates == 0 ? 4 * k : std::max(static_cast<size_t>(args.candidates), k);
    Results results(queries, k);
    results.set(&args);
    std::vector<Matches> expected;
    for (const Floats& row : asked) {
      std::vector<uint32_t> chosen;
      for (const Match& match :
           best(c.type, c.metric, Entry(c.type, row), index.entries, index.slots, candidates))
        chosen.push_back(match.slot);
      expected.push_back(best(DType::kFloat32, c.metric, Entry(*index.args.rescore, row),
                              index.rescored, chosen, k));
    }
    if (seed % 3 == 0 && !expected[0].empty()) {
      args.min_score = expected[0].back().score;
      for (Matches& matches : expected)
        while (!matches.empty() &&
               is_better(c.metric, {0, *args.min_score}, {0, matches.back().score}))
          matches.pop_back();
    }
    const Status status = search(context, args);
    ASSERT_TRUE(status.ok()) << status.message;
    for (size_t i = 0; i < queries; ++i) expect_matches(results, i, k, expected[i]);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Search, MaxSimAddsTheLargestScores) {
  const Case c = GetParam();
  if (c.metric == Metric::kEuclidean) return;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Context& context = context_of(1 + static_cast<int>(seed) % kMostThreads);
    const Kind kind = kKinds[seed % std::size(kKinds)];
    const size_t dimensions = kDimensions[random() % std::size(kDimensions)],
                 counts[] = {1, 2, 5, 32, 150}, queries = counts[seed % std::size(counts)];
    Index index = draw_index(random, context, c, kind, dimensions, queries > 32 ? 200 : 900);
    draw_filter(random, &index);
    std::vector<uint32_t> ends;
    const size_t longest = seed % 3 == 0 ? 1000 : 30;
    for (size_t end = 0; end < index.entries.size(); end += random() % longest)
      ends.push_back(static_cast<uint32_t>(end));
    const Rows asked = draw(random, c.type, kind, queries, dimensions);
    const Matrix matrix(DType::kFloat32, asked, dimensions);
    const std::vector<Segment> segments = index.list();
    Floats scores(ends.size() + 1, 77);
    const Status status = max_sim(
        context,
        {.queries = matrix.tensor(), .segments = segments, .ends = ends, .scores = scores.data()});
    ASSERT_TRUE(status.ok()) << status.message;
    for (size_t i = 0; i < ends.size(); ++i) {
      std::vector<uint32_t> slots;
      for (const uint32_t slot : index.slots)
        if (slot >= (i == 0 ? 0 : ends[i - 1]) && slot < ends[i]) slots.push_back(slot);
      double sum = 0;
      for (const Floats& row : asked) {
        const Matches match = best(c.type, c.metric, Entry(c.type, row), index.entries, slots, 1);
        sum += match.empty() ? -INFINITY : static_cast<double>(match[0].score);
      }
      ASSERT_EQ(scores[i], static_cast<float>(sum)) << "document " << i;
    }
    EXPECT_EQ(scores.back(), 77);
  }
}

// Errors and memory
// -------------------------------------------------------------------------------------------------

void expect_error(const Status& status, Code code, const char* message) {
  EXPECT_EQ(status.code, code);
  EXPECT_STREQ(status.message, message);
}

// The sums of these vectors round such that their quotient is above 1.
TEST(Search, CosinesAreAtMostOne) {
  Context context;
  Vectors vectors;
  ASSERT_TRUE(make_vectors(context, {.dimensions = 2, .capacity = 1}, &vectors).ok());
  const float row[] = {0.3F, 3.6F}, same[] = {0.1F, 1.2F}, opposite[] = {-0.1F, -1.2F};
  const int64_t dims[] = {1, 2};
  ASSERT_TRUE(append(&vectors, {.vectors = {row, DType::kFloat32, dims}}).ok());
  const Segment segments[] = {{&vectors}};
  for (const float* const query : {same, opposite}) {
    SearchArgs args{.queries = {query, DType::kFloat32, dims}, .segments = segments, .k = 1};
    Results results(1, 1);
    results.set(&args);
    ASSERT_TRUE(search(context, args).ok());
    EXPECT_EQ(results.scores[0], query == same ? 1 : -1);
  }
}

// Rows are read as they lie, so other layouts must be refused.
TEST(SearchErrors, OfRowsThatAreNotContiguous) {
  Context context;
  Vectors vectors;
  ASSERT_TRUE(make_vectors(context, {.dimensions = 3, .capacity = 4}, &vectors).ok());
  const float data[12] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3}, strides[] = {4, 1}, contiguous[] = {3, 1};
  const OutOfCore elsewhere;
  const ConstTensor rows{data, DType::kFloat32, dims};
  const auto append_rows = [&](auto change) {
    ConstTensor changed = rows;
    change(changed);
    return append(&vectors, {.vectors = changed});
  };
  expect_error(append_rows([&](ConstTensor& t) { t.size = 5; }), Code::kShape,
               "append: vectors has 5 elements; its shape [2, 3] needs 6");
  expect_error(append_rows([&](ConstTensor& t) { t.strides = strides; }), Code::kShape,
               "append: vectors has an offset or strides; it must be contiguous");
  expect_error(append_rows([&](ConstTensor& t) { t.offset = 3; }), Code::kShape,
               "append: vectors has an offset or strides; it must be contiguous");
  expect_error(append_rows([&](ConstTensor& t) {
                 t.data = nullptr;
                 t.out_of_core = &elsewhere;
               }),
               Code::kArgument, "append: vectors is out-of-core; it must be in memory");
  EXPECT_EQ(vectors.count(), 0);
  EXPECT_TRUE(append_rows([&](ConstTensor& t) { t.strides = contiguous; }).ok());
}

TEST(SearchErrors, OfMakeVectors) {
  Context context(1 << 20);
  Vectors vectors;
  const auto make = [&](VectorsArgs args) { return make_vectors(context, args, &vectors); };
  expect_error(make({.dimensions = 0, .capacity = 1}), Code::kArgument,
               "make_vectors: dimensions is 0; it must be from 1 to 32768");
  expect_error(make({.dimensions = 32769, .capacity = 1}), Code::kArgument,
               "make_vectors: dimensions is 32769; it must be from 1 to 32768");
  expect_error(make({.dimensions = 4, .capacity = 0}), Code::kArgument,
               "make_vectors: capacity is 0; it must be from 1 to 4294967295");
  expect_error(
      make({.dimensions = 4, .capacity = 1, .dtype = DType::kFloat64}), Code::kDType,
      "make_vectors: dtype is float64; it must be float32, float16, bfloat16, int8 or uint8");
  expect_error(
      make({.dimensions = 4, .capacity = 1, .dtype = static_cast<DType>(99)}), Code::kDType,
      "make_vectors: dtype is unknown; it must be float32, float16, bfloat16, int8 or uint8");
  expect_error(make({.dimensions = 4, .capacity = 1, .metric = static_cast<Metric>(9)}),
               Code::kArgument, "make_vectors: metric is the unknown metric 9; see Metric");
  expect_error(make({.dimensions = 4, .capacity = 1, .rescore = DType::kFloat32}), Code::kArgument,
               "make_vectors: rescore is set and dtype is float32; only int8 is rescored");
  expect_error(
      make({.dimensions = 4, .capacity = 1, .dtype = DType::kInt8, .rescore = DType::kFloat16}),
      Code::kDType, "make_vectors: rescore is float16; it must be float32 or bfloat16");
  expect_error(make({.dimensions = 1024, .capacity = 1000}), Code::kOutOfMemory,
               "make_vectors: no memory for 1000 vectors of 1024 dimensions; 0 bytes are in use");
  expect_error(make({.dimensions = 32768, .capacity = 4294967295}), Code::kOutOfMemory,
               "make_vectors: no memory for 4294967295 vectors of 32768 dimensions; 0 bytes are in "
               "use");
  EXPECT_TRUE(vectors.empty());
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

TEST(SearchErrors, OfAppendLeaveNothing) {
  Context context;
  const auto append_to = [&](DType type, Metric metric, DType input, const Rows& rows,
                             const float* scales = nullptr, int64_t first = 0) {
    Index index;
    index.args = {.dimensions = 2, .dtype = type, .metric = metric};
    Vectors& vectors = index.add_segment(context, 3);
    index.add(&vectors, DType::kFloat32, {{1, 2}});
    const Bytes before = read_all(index.args, vectors);
    const Matrix matrix(input, rows, rows[0].size());
    const Status status =
        append(&vectors, {.vectors = matrix.tensor(), .scales = scales, .first = first});
    EXPECT_EQ(vectors.count(), 1);
    EXPECT_EQ(read_all(index.args, vectors), before);
    return status;
  };
  const auto f32 = DType::kFloat32, f16 = DType::kFloat16, i8 = DType::kInt8, u8 = DType::kUInt8;
  const auto dot = Metric::kDot, cosine = Metric::kCosine;
  expect_error(append_to(f32, dot, f32, {{1, 2}, {3, NAN}}, nullptr, 100), Code::kArgument,
               "append: vectors has NaN at [101, 1]; each element must be finite");
  expect_error(append_to(i8, dot, f32, {{1, 2}, {kInfinity, 0}}), Code::kArgument,
               "append: vectors has Infinity at [1, 0]; each element must be finite");
  expect_error(append_to(f32, dot, f16, {{1, -kInfinity}}), Code::kArgument,
               "append: vectors has -Infinity at [0, 1]; each element must be finite");
  expect_error(
      append_to(f32, dot, f32, {{1, 2e19F}}), Code::kArgument,
      "append: row 0 of vectors is too large: in the type of the index, the sum of its squares "
      "must be a finite float32");
  expect_error(
      append_to(i8, dot, f32, {{3e19F, 0}}), Code::kArgument,
      "append: row 0 of vectors is too large: in the type of the index, the sum of its squares "
      "must be a finite float32");
  expect_error(
      append_to(f16, dot, f32, {{65520, 0}}), Code::kArgument,
      "append: row 0 of vectors is too large: in the type of the index, the sum of its squares "
      "must be a finite float32");
  for (const DType type : {f32, f16, i8, u8})
    expect_error(
        append_to(type, cosine, f32, {{1, 2}, {0, 0}}), Code::kArgument,
        "append: row 1 of vectors is 0, or so small that its squares are 0; cosine needs a "
        "direction");
  expect_error(append_to(f32, cosine, f32, {{1e-25F, 0}}), Code::kArgument,
               "append: row 0 of vectors is 0, or so small that its squares are 0; cosine needs a "
               "direction");
  expect_error(append_to(u8, dot, f32, {{1, 256}}), Code::kArgument,
               "append: vectors has a fraction or a number out of range at [0, 1]; each element "
               "must be a whole number from 0 to 255");
  expect_error(append_to(u8, dot, f32, {{0.5F, 1}}), Code::kArgument,
               "append: vectors has a fraction or a number out of range at [0, 0]; each element "
               "must be a whole number from 0 to 255");
  expect_error(append_to(u8, dot, f32, {{1, NAN}}), Code::kArgument,
               "append: vectors has NaN at [0, 1]; each element must be a whole number from 0 to "
               "255");
  expect_error(append_to(f32, dot, f32, {{1, 2, 3}}), Code::kShape,
               "append: vectors has shape [1, 3]; expected 2 columns, one per dimension");
  expect_error(append_to(f32, dot, i8, {{1, 2}}), Code::kDType,
               "append: vectors has type int8; it must be float32, float16 or bfloat16");
  expect_error(append_to(i8, dot, u8, {{1, 2}}), Code::kDType,
               "append: vectors has type uint8; it must be float32, float16, bfloat16 or int8");
  expect_error(append_to(f32, dot, f32, {{1, 2}, {1, 2}, {1, 2}}), Code::kOutOfMemory,
               "append: vectors has 3 rows; there is room for 2");
  for (const float scale : {0.0F, -1.0F, NAN, kInfinity}) {
    const float scales[] = {1, scale};
    expect_error(append_to(i8, dot, i8, {{1, 2}, {1, 2}}, scales), Code::kArgument,
                 "append: the scale of row 1 is not finite or not above 0");
  }
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

TEST(SearchErrors, OfSearchWriteNothing) {
  Context context;
  Index index, other;
  index.args = {.dimensions = 2};
  index.add(&index.add_segment(context, 8), DType::kFloat32, {{1, 2}, {3, 4}});
  other.args = {.dimensions = 2, .metric = Metric::kDot};
  other.add_segment(context, 8);
  const auto run = [&](const Rows& queries, const auto& change) {
    const Matrix matrix(DType::kFloat32, queries, queries[0].size());
    std::vector<Segment> segments = index.list();
    SearchArgs args{.queries = matrix.tensor(), .segments = segments};
    args.k = 1;
    change(args, segments);
    Results results(3, 4);
    results.set(&args);
    const Status status = search(context, args);
    EXPECT_TRUE(results.is_untouched());
    return status;
  };
  const auto none = [](SearchArgs&, std::vector<Segment>&) {};
  expect_error(run({{1, 2}, {1, NAN}}, none), Code::kArgument,
               "search: query has NaN at [1, 1]; each element must be finite");
  expect_error(run({{1, 2}, {0, 0}}, none), Code::kArgument,
               "search: row 1 of query is 0, or so small that its squares are 0; cosine needs a "
               "direction");
  // Queries in several batches are checked before the first.
  expect_error(run({{1, 2}, {1, 2}, {1, NAN}},
                   [](SearchArgs& args, std::vector<Segment>&) { args.max_memory = 1; }),
               Code::kArgument, "search: query has NaN at [2, 1]; each element must be finite");
  expect_error(run({{1, 2, 3}}, none), Code::kShape,
               "search: query has shape [1, 3]; expected 2 columns, one per dimension");
  expect_error(run({{1, 2}}, [](SearchArgs& args, std::vector<Segment>&) { args.k = 0; }),
               Code::kArgument, "search: k is 0; it must be 1 or more");
  expect_error(run({{1, 2}}, [](SearchArgs& args, std::vector<Segment>&) { args.candidates = -1; }),
               Code::kArgument, "search: candidates is -1; it must be 0 or more");
  expect_error(run({{1, 2}}, [](SearchArgs& args, std::vector<Segment>&) { args.min_score = NAN; }),
               Code::kArgument, "search: min_score is NaN; it must be a number");
  expect_error(run({{1, 2}}, [](SearchArgs& args, std::vector<Segment>&) { args.segments = {}; }),
               Code::kArgument, "search: segments has no vectors");
  expect_error(run({{1, 2}},
                   [&](SearchArgs& args, std::vector<Segment>& segments) {
                     segments.push_back({other.segments[0].get(), nullptr});
                     args.segments = segments;
                   }),
               Code::kArgument, "search: segments differ; only their capacity may differ");
}

TEST(SearchErrors, OfMaxSim) {
  Context context;
  Index index, distances;
  index.args = {.dimensions = 2};
  index.add(&index.add_segment(context, 8), DType::kFloat32, {{1, 2}, {3, 4}});
  distances.args = {.dimensions = 2, .metric = Metric::kEuclidean};
  distances.add_segment(context, 8);
  float scores[3] = {77, 77, 77};
  const auto run = [&](const Index& in, const Rows& queries, std::vector<uint32_t> ends) {
    const Matrix matrix(DType::kFloat32, queries, 2);
    const std::vector<Segment> segments = in.list();
    return max_sim(
        context,
        {.queries = matrix.tensor(), .segments = segments, .ends = ends, .scores = scores});
  };
  expect_error(run(index, {}, {2}), Code::kShape,
               "max_sim: query has no rows; it must have one or more");
  expect_error(run(index, {{1, 1}}, {2, 1}), Code::kArgument,
               "max_sim: ends has 1 at 1; it must be from 2 to 2");
  expect_error(run(index, {{1, 1}}, {3}), Code::kArgument,
               "max_sim: ends has 3 at 0; it must be from 0 to 2");
  expect_error(run(index, {{1, 1}, {0, 0}}, {2}), Code::kArgument,
               "max_sim: row 1 of query is 0, or so small that its squares are 0; cosine needs a "
               "direction");
  expect_error(run(distances, {{1, 1}}, {0}), Code::kArgument,
               "max_sim: the metric is euclidean; it must be dot or cosine");
  for (const float each : scores) EXPECT_EQ(each, 77);
  EXPECT_TRUE(run(index, {{1, 1}}, {}).ok());
}

// With less memory, queries are searched in smaller batches, until one does not fit.
TEST(SearchMemory, LimitsAreKept) {
  Random random(1);
  const Rows rows = draw(random, DType::kFloat32, Kind::kUniform, 2000, 24),
             asked = draw(random, DType::kFloat32, Kind::kUniform, 60, 24);
  const Matrix matrix(DType::kFloat32, asked, 24);
  Results whole(60, 100);
  int failures = 0, successes = 0;
  const auto make = [&](Context& context) {
    Index index;
    index.args = {.dimensions = 24};
    index.add(&index.add_segment(context, 2000), DType::kFloat32, rows);
    return index;
  };
  Context free;
  const Index unlimited = make(free);
  const size_t before = free.bytes_in_use();
  for (size_t room = 0; room < 400000; room = room * 5 / 4 + 1000) {
    Context context(before + room);
    const Index index = make(context);
    ASSERT_EQ(context.bytes_in_use(), before);
    const std::vector<Segment> segments = index.list();
    SearchArgs args{.queries = matrix.tensor(), .segments = segments};
    args.k = 100;
    Results results(60, 100);
    results.set(&args);
    const Status status = search(context, args);
    EXPECT_EQ(context.bytes_in_use(), before);
    if (!status.ok()) {
      ++failures;
      EXPECT_EQ(status.code, Code::kOutOfMemory);
      EXPECT_TRUE(results.is_untouched());
      continue;
    }
    if (successes++ == 0) whole = results;
    EXPECT_EQ(results.slots, whole.slots);
    EXPECT_EQ(results.scores, whole.scores);
  }
  EXPECT_GT(failures, 0);
  EXPECT_GT(successes, 1);
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(whole.found[i], 100U);
}

TEST(SearchVectors, MoveAndDetach) {
  Context context;
  Vectors a, b;
  ASSERT_TRUE(make_vectors(context, {.dimensions = 3, .capacity = 5}, &a).ok());
  EXPECT_EQ(a.dimensions(), 3);
  EXPECT_EQ(a.capacity(), 5);
  EXPECT_EQ(a.count(), 0);
  EXPECT_GE(context.bytes_in_use(), a.bytes());
  b = std::move(a);
  EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move)
  Vectors c(std::move(b));
  void* const memory = c.detach();
  EXPECT_TRUE(c.empty());
  EXPECT_EQ(Vectors::view(memory).capacity(), 5);
  context.release(memory);
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

}  // namespace
}  // namespace wgemm::testing
