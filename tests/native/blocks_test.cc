// Weights of the block formats through the whole pipeline. Level 4, and level 0 with strict sums,
// are compared bit by bit with the specification as code. Otherwise level 0 must be within the
// bound of its error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api/run.h"
#include "array.h"
#include "base/convert.h"
#include "blocks_reference.h"
#include "engine.h"
#include "kernels/kernel.h"
#include "layout.h"
#include "nbits_tester.h"
#include "ops/ops.h"
#include "out_of_core_tensor.h"
#include "pack/nbits.h"
#include "plan/select_kernel.h"
#include "serialized.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
namespace {

enum class ValuesOfA {
  kAny,
  kOfOneSize,  // they quantize to 127 or -127, except one in each block
};

struct Case {
  BlockFormat format = BlockFormat::kNone;
  DType type = DType::kFloat32;
  Sizes a{1};  // without K
  int64_t n = 1, blocks = 1;
  int64_t level = 4;
  bool has_bias = false, in_parts = false, serialized = false, strict = false, prepared = false;
  int threads = 0;  // 0: as the other tests
  Activation activation{};
  Layout a_layout{}, y_layout{};
  std::optional<PlanOptions> options{};
  OutOfCoreSetup out_of_core{};
  bool specials = false, corners = false;
  ValuesOfA values = ValuesOfA::kAny;
  float a_size = 1, scale_size = 0.01F;
  uint32_t seed = 1;

  int64_t k() const { return blocks * file_of(format).steps; }
  std::string describe() const {
    std::ostringstream text;
    text << file_of(format).name << " " << dtype_name(type) << " A=" << text_of(a, a_layout) << "x"
         << k() << " N=" << n << " level " << level << (has_bias ? " bias" : "")
         << (in_parts ? " in parts" : "") << (serialized ? " serialized" : "")
         << (strict ? " strict" : "") << (prepared ? " prepared" : "") << " threads " << threads
         << " from " << activation.min << " to " << activation.max << " " << text_of(a, y_layout)
         << " limit " << out_of_core.limit << (specials ? " specials" : "")
         << (corners ? " corners" : "") << " sizes " << a_size << " " << scale_size;
    if (options.has_value()) text << text_of(*options);
    text << " seed=" << seed;
    return text.str();
  }
};

// Weights as a file has them, and their numbers.
struct Weights {
  const BlockFile* file;
  int64_t n, blocks;
  Array<std::byte> bytes;             // an allocation of exactly its size
  std::vector<BlockNumbers> numbers;  // [N][blocks]

  explicit Weights(const BlockFile& of, int64_t columns, int64_t blocks_of_k)
      : file(&of),
        n(columns),
        blocks(blocks_of_k),
        bytes({columns * blocks_of_k * of.bytes}, 0, false) {}

  template <typename Fill>
  void fill(const Fill& fill_one) {
    numbers.clear();
    for (std::byte* at = bytes.data.get(); at != bytes.data.get() + bytes.length;
         at += file->bytes) {
      fill_one(at);
      numbers.push_back(numbers_of(*file, at));
    }
  }
  std::span<const BlockNumbers> column(int64_t j) const {
    return std::span<const BlockNumbers>(numbers).subspan(static_cast<size_t>(j * blocks),
                                                          static_cast<size_t>(blocks));
  }
  std::span<const std::byte> columns(int64_t first, int64_t count) const {
    const auto column_bytes = static_cast<size_t>(blocks * file->bytes);
    return std::span<const std::byte>(bytes.data.get(), bytes.length)
        .subspan(static_cast<size_t>(first) * column_bytes,
                 static_cast<size_t>(count) * column_bytes);
  }
  Status begin(Context& context, PackedWeights* packed) const {
    return begin_pack(context, file->format, blocks * file->steps, n, packed);
  }
  Status pack(Context& context, PackedWeights* packed) const {
    const Status status = begin(context, packed);
    return status.ok() ? pack_part(packed, 0, columns(0, n)) : status;
  }
};

// Packs parts of any size in any order. Some come twice, at first with other bytes.
void pack_parts(std::mt19937& random, const Weights& w, PackedWeights* packed) {
  std::vector<std::pair<int64_t, int64_t>> parts;  // first and count
  for (int64_t first = 0; first < w.n;) {
    const auto count = std::min<int64_t>(1 + random() % 11, w.n - first);
    parts.emplace_back(first, count);
    first += count;
  }
  std::ranges::shuffle(parts, random);
  for (const auto& [first, count] : parts) {
    const std::span<const std::byte> bytes = w.columns(first, count);
    if (random() % 3 == 0) {
      Array<std::byte> other({std::ssize(bytes)}, 0, false);
      for (size_t i = 0; i < other.length; i += static_cast<size_t>(w.file->bytes))
        fill_block(random, *w.file, 1, true, other.data.get() + i);
      ASSERT_TRUE(pack_part(packed, first, {other.data.get(), other.length}).ok());
    }
    ASSERT_TRUE(pack_part(packed, first, bytes).ok());
  }
}

// A problem in memory -----------------------------------------------------------------------------

template <typename T>
void run_typed(const Case& c) {
  SCOPED_TRACE(c.describe());
  const BlockFile& file = file_of(c.format);
  const int64_t k = c.k();
  std::mt19937 random(c.seed);
  Weights weights(file, c.n, c.blocks);
  weights.fill([&](std::byte* block) { fill_block(random, file, c.scale_size, c.corners, block); });
  Sizes a_dims = c.a, y_dims = c.a;
  a_dims.push_back(k);
  y_dims.push_back(c.n);
  Array<T> a = make_array<T>(a_dims, c.a_layout), y = make_array<T>(y_dims, c.y_layout);
  Array<T> bias = make_array<T>({c.n}, {});
  const auto uniform = [&](float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random);
  };
  for (size_t i = 0; i < a.length; ++i) {
    float value = random_element(random, c.a_size, c.specials);
    if (c.values == ValuesOfA::kOfOneSize)
      value = c.a_size * (random() % 2 == 0 ? -1.0F : 1.0F) *
              (i % static_cast<size_t>(file.steps) == 3 ? 100.0F / 127 : 1.0F);
    a.data[i] = rounded<T>(value);
  }
  if (random() % 2 == 0 && c.blocks > 1 && a.length > 0 && c.a_layout.is_plain())
    std::fill_n(a.data.get(), file.steps, rounded<T>(0.0F));  // a block of zeros
  for (size_t i = 0; i < bias.length; ++i) bias.data[i] = rounded<T>(uniform(-3, 3));
  if (y.length != 0)
    std::memset(static_cast<void*>(y.data.get()), kUntouched, y.length * sizeof(T));

  Context own(0, c.strict ? Determinism::kStrict : Determinism::kFast);
  const bool shares = !c.strict && c.out_of_core.limit == 0 && c.threads == 0;
  Context& context = shares ? test_context() : own;
  if (!shares) {
    ASSERT_TRUE(own.set_threads(threads_of(c)).ok());
  }

  PackedWeights packed;
  Status status = weights.begin(context, &packed);
  ASSERT_TRUE(status.ok()) << status.message;
  if (c.in_parts) {
    pack_parts(random, weights, &packed);
  } else {
    status = pack_part(&packed, 0, weights.columns(0, c.n));
    ASSERT_TRUE(status.ok()) << status.message;
  }
  EXPECT_EQ(packed.block_format(), c.format);
  EXPECT_EQ(packed.op(), PackFor::kMatMulNBits);
  EXPECT_EQ(packed.k(), k);
  EXPECT_EQ(packed.n(), c.n);
  if (c.serialized) {
    const Bytes bytes = serialized(packed);
    PackedWeights other;
    status = deserialize(context, bytes, &other);
    ASSERT_TRUE(status.ok()) << status.message;
    packed = std::move(other);
    EXPECT_EQ(packed.block_format(), c.format);
    EXPECT_TRUE(bytes == serialized(packed));
  }
  for (size_t i = 0; i < weights.bytes.length; ++i) weights.bytes.data[i] ^= std::byte{0xa5};

  MatMulNBitsArgs args;
  args.A = make_tensor<const void>(a, c.type, c.a_layout);
  args.packed_weights = &packed;
  args.accuracy_level = c.level;
  args.activation = c.activation;
  const ConstTensor bias_tensor = make_tensor<const void>(bias, c.type, {});
  if (c.has_bias) args.bias = &bias_tensor;
  Snapshot before;
  before.add("A", a);
  before.add("bias", bias);
  const size_t in_use = context.bytes_in_use();

  int64_t shape[kMaxRank];
  size_t rank = 99;
  status = matmul_nbits_shape(args, shape, &rank);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(text_of({shape, rank}), text_of(y_dims));
  args.Y = make_tensor<void>(y, c.type, c.y_layout);
  status = compute(c, context, args);
  ASSERT_TRUE(status.ok()) << status.message;
  before.expect_unchanged();
  EXPECT_EQ(context.bytes_in_use(), in_use);

  const bool quantizes = c.level == 4;
  check_result(c, quantizes, a, bias, y, [&](std::span<const float> row) {
    return [&, row, quantized = QuantizedRow(row, static_cast<size_t>(file.steps))](int64_t j) {
      if (!quantizes) return reference_level_0(file, weights.column(j), row.data());
      return ReferenceElement{.value = reference_level_4(file, weights.column(j), quantized)};
    };
  });
}

void run(const Case& c) {
  if (c.type == DType::kFloat32) return run_typed<float>(c);
  if (c.type == DType::kFloat16) return run_typed<Float16>(c);
  run_typed<BFloat16>(c);
}

class Blocks : public ::testing::TestWithParam<BlockFormat> {
 protected:
  const BlockFile& file() const { return file_of(GetParam()); }
  Case with(Case c) const {
    c.format = GetParam();
    return c;
  }
};
INSTANTIATE_TEST_SUITE_P(Formats, Blocks,
                         ::testing::Values(BlockFormat::kQ4_0, BlockFormat::kQ4_1,
                                           BlockFormat::kQ5_0, BlockFormat::kQ5_1,
                                           BlockFormat::kQ8_0, BlockFormat::kQ2_K,
                                           BlockFormat::kQ3_K, BlockFormat::kQ4_K,
                                           BlockFormat::kQ5_K, BlockFormat::kQ6_K),
                         [](const auto& of) { return file_of(of.param).name; });

// Sizes -------------------------------------------------------------------------------------------

TEST_P(Blocks, SizesOfFilesAndOfPackedWeights) {
  EXPECT_EQ(block_steps(GetParam()), file().steps);
  EXPECT_EQ(block_bytes(GetParam()), file().bytes);
  Context context;
  PackedWeights packed;
  const int64_t k = 1024, n = 512, blocks = k / file().steps;
  ASSERT_TRUE(begin_pack(context, GetParam(), k, n, &packed).ok());
  const auto least = static_cast<double>(n * blocks * file().stored_bytes);
  EXPECT_GE(static_cast<double>(packed.bytes()), least);
  EXPECT_LT(static_cast<double>(packed.bytes()), least + 1024);
  EXPECT_LT(static_cast<double>(serialized_bytes(packed)), least + 1024);
}

// The floats that weights stand for ---------------------------------------------------------------

// A row of the identity times the weights has no other rounding.
TEST_P(Blocks, ProductsWithTheIdentityAreTheWeights) {
  const int64_t steps = file().steps, blocks = 2, k = blocks * steps, n = 19;
  std::mt19937 random(7);
  for (const Determinism determinism : {Determinism::kFast, Determinism::kStrict}) {
    Weights weights(file(), n, blocks);
    weights.fill([&](std::byte* block) { fill_block(random, file(), 0.1F, true, block); });
    Context context(0, determinism);
    PackedWeights packed;
    ASSERT_TRUE(weights.pack(context, &packed).ok());
    std::vector<float> identity(static_cast<size_t>(k * k));
    for (int64_t i = 0; i < k; ++i) identity[static_cast<size_t>(i * k + i)] = 1;
    for (const int64_t rows : {int64_t{1}, int64_t{2}, k}) {
      for (int64_t first = 0; first < k; first += rows) {
        std::vector<float> y(static_cast<size_t>(rows * n));
        const int64_t a_dims[] = {rows, k}, y_dims[] = {rows, n};
        MatMulNBitsArgs args;
        args.A = {.data = identity.data() + first * k, .dims = a_dims};
        args.packed_weights = &packed;
        args.Y = {.data = y.data(), .dims = y_dims};
        const Status status = matmul_nbits(context, args);
        ASSERT_TRUE(status.ok()) << status.message;
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const auto step = static_cast<size_t>(first + i);
            const BlockNumbers& block = weights.column(j)[step / static_cast<size_t>(steps)];
            ASSERT_EQ(y[static_cast<size_t>(i * n + j)],
                      block.weight(step % static_cast<size_t>(steps)))
                << rows << " rows, step " << step << " of column " << j;
          }
        }
      }
    }
  }
}

// A product at level 4 and the floats of the same weights: two million blocks of all formats.
TEST_P(Blocks, TwoMillionAtRandom) {
#if defined(__EMSCRIPTEN__) || !defined(NDEBUG)  // sanitizers run debug builds
  constexpr int64_t kRounds = 3;
#else
  constexpr int64_t kRounds = 50;
#endif
  const auto steps = static_cast<size_t>(file().steps);
  const int64_t n = 500, blocks = 8, k = blocks * file().steps;
  std::mt19937 random(11);
  std::set<std::pair<int, int>> seen;  // codes and sub-scales
  Weights weights(file(), n, blocks);
  for (int64_t round = 0; round < kRounds; ++round) {
    weights.fill([&](std::byte* block) { fill_block(random, file(), 1, true, block); });
    PackedWeights packed;
    ASSERT_TRUE(weights.pack(test_context(), &packed).ok());

    std::vector<float> a(static_cast<size_t>(k)), y(static_cast<size_t>(n));
    for (float& x : a) x = static_cast<float>(random() % 2001) / 1000 - 1;
    const int64_t a_dims[] = {k}, y_dims[] = {n};
    MatMulNBitsArgs args;
    args.A = {.data = a.data(), .dims = a_dims};
    args.packed_weights = &packed;
    args.accuracy_level = 4;
    args.Y = {.data = y.data(), .dims = y_dims};
    MatMulProblem p;
    const Status status = nbits_problem(args, true, &p);
    ASSERT_TRUE(status.ok()) << status.message;
    ASSERT_TRUE(wgemm::run(test_context(), "matmulNBits", p.problem, test_options({})).ok());
    const QuantizedRow quantized(a, steps);
    for (int64_t j = 0; j < n; ++j) {
      const float wanted = reference_level_4(file(), weights.column(j), quantized);
      ASSERT_EQ(std::memcmp(&y[static_cast<size_t>(j)], &wanted, sizeof(wanted)), 0)
          << round << " column " << j << ": " << y[static_cast<size_t>(j)] << ", not " << wanted;
    }

    constexpr PanelLayout kPanel = panel_of<float>(8);
    std::vector<float> floats(static_cast<size_t>((n + 7) / 8 * 8 * k)), column(steps);
    widen_codes(p.problem.b.packed, 0, k, 0, n, kPanel, floats.data());
    for (int64_t j = 0; j < n; ++j) {
      const float* from = floats.data() + j / 8 * 8 * k + j % 8;
      for (const BlockNumbers& block : weights.column(j)) {
        for (size_t i = 0; i < steps; ++i, from += 8) {
          const float wanted = block.weight(i);
          if (std::memcmp(from, &wanted, sizeof(wanted)) != 0) {
            FAIL() << round << " column " << j << " step " << i << ": " << *from << ", not "
                   << wanted;
          }
          if (round < 2) seen.emplace(block.codes[i], block.subs[i]);
        }
      }
    }
  }
  // Every code with every scale of a sub-block was there.
  const std::map<BlockFormat, int> scales = {{BlockFormat::kQ2_K, 16},
                                             {BlockFormat::kQ3_K, 64},
                                             {BlockFormat::kQ4_K, 64},
                                             {BlockFormat::kQ5_K, 64},
                                             {BlockFormat::kQ6_K, 256}};
  const auto found = scales.find(GetParam());
  EXPECT_EQ(seen.size(), static_cast<size_t>((file().code_max + 1) *
                                             (found == scales.end() ? 1 : found->second)));
}

// Products ----------------------------------------------------------------------------------------

TEST_P(Blocks, EverySize) {
  uint32_t seed = 0;
  for (const int64_t m : {1, 2, 4, 5, 33}) {
    for (const int64_t n : {1, 7, 8, 9, 40}) {
      for (int64_t blocks = 1; blocks <= 9; ++blocks) {
        run(with({.a = {m}, .n = n, .blocks = blocks, .seed = ++seed}));
        if (seed % 4 == 0)
          run(with({.a = {m}, .n = n, .blocks = blocks, .level = 0, .seed = seed}));
      }
    }
    if (HasFailure()) return;
  }
}

TEST_P(Blocks, KBeyondKC) {
  uint32_t seed = 0;
  for (const int64_t steps : {8192, 8448}) {
    for (const int64_t m : {1, 5, 20}) {
      for (const bool strict : {false, true}) {
        for (const int64_t level : {4, 0}) {
          run(with({.a = {m},
                    .n = 24,
                    .blocks = steps / file().steps,
                    .level = level,
                    .has_bias = true,
                    .strict = strict,
                    .corners = true,
                    .seed = ++seed}));
        }
      }
    }
  }
}

Case any(BlockFormat format, uint32_t seed) {
  Draw draw(seed);
  Case c;
  c.format = format;
  c.seed = seed;
  c.type = kTypesOfA[draw.below(3)];
  c.a.clear();
  for (int64_t rank = draw.below(4); rank > 0; --rank)
    c.a.push_back(draw.one_in(20) ? 0 : draw.one_of({1, 1, 2, 3, 5, 9}));
  c.n = draw.one_in(20) ? 0 : draw.one_of({1, 3, 7, 8, 9, 16, 17, 31, 40, 65});
  c.blocks = draw.one_in(20) ? 0 : draw.one_of({1, 1, 2, 3, 4, 5, 7});
  c.level = draw.one_in(3) ? draw.below(4) : 4;
  c.has_bias = draw.one_in(2);
  c.in_parts = draw.one_in(3);
  c.serialized = draw.one_in(3);
  c.strict = draw.one_in(3);
  c.prepared = draw.one_in(6);
  c.specials = draw.one_in(8);
  c.corners = draw.one_in(2);
  if (draw.one_in(6)) c.values = ValuesOfA::kOfOneSize;
  if (draw.one_in(4)) c.activation = {-0.5, draw.one_in(2) ? 6.0 : 0.75};
  c.a_layout = draw.layout(c.a.size() + 1, true);
  c.y_layout = draw.layout(c.a.size() + 1, false);
  if (draw.one_in(3)) {
    c.options = PlanOptions{.mc = draw.one_of({0, 1, 4, 6}),
                            .nc = draw.one_of({0, 8, 16, 40}),
                            .kc = draw.one_of({0, 1, 32, 64, 256})};
  }
  return c;
}

TEST_P(Blocks, ProblemsAtRandom) {
  for (uint32_t seed = 1; seed <= 400 && !HasFailure(); ++seed) run(any(GetParam(), seed));
}

// At level 4, a row with one of them is NaN. At level 0 as IEEE 754 has it for the sum of a * W.
TEST_P(Blocks, InfinitiesNanAndSubnormals) {
  for (const Engine& engine : engines()) {
    const Simulated simulated(engine);
    for (uint32_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
      Draw draw(seed);
      run(with({.type = kTypesOfA[draw.below(3)],
                .a = {draw.one_of({1, 1, 1, 2, 7})},
                .n = draw.one_of({1, 7, 8, 17}),
                .blocks = draw.one_of({1, 1, 2, 3}),
                .level = draw.one_in(2) ? 4 : 0,
                .has_bias = draw.one_in(2),
                .strict = draw.one_in(4),
                .specials = true,
                .corners = draw.one_in(2),
                .seed = seed}));
    }
  }
}

// A, and scales, at the ends of their range.
TEST_P(Blocks, HugeAndTinyNumbers) {
  constexpr float kSizes[][2] = {{1, 0x1p-24F},       {0x1p100F, 0x1p-22F}, {0x1p-148F, 1},
                                 {0x1p-140F, 0x1p5F}, {0x1p-100F, 1e-3F},   {1, 0},
                                 {0x1p125F, 0x1p15F}, {0x1p126F, 0x1p-20F}, {0x1p-130F, 65504}};
  uint32_t seed = 0;
  for (const auto& [a_size, scale_size] : kSizes) {
    for (const DType type : {DType::kFloat32, DType::kBFloat16}) {
      for (const int64_t m : {1, 5}) {
        for (const int64_t level : {4, 0}) {
          for (const bool strict : {false, true}) {
            // Sums at level 0 that overflow depend on their order.
            if (level == 0 && !strict && a_size * scale_size > 0x1p110F) continue;
            run(with({.type = type,
                      .a = {m},
                      .n = 11,
                      .blocks = 3,
                      .level = level,
                      .strict = strict,
                      .a_size = a_size,
                      .scale_size = scale_size,
                      .seed = ++seed}));
          }
        }
      }
    }
  }
}

TEST_P(Blocks, EveryKernelOnEveryEngine) {
  const KernelTable table = kernel_table();
  for (const Kernel* kernel = table.rows; kernel < table.rows + table.count; ++kernel) {
    if (kernel->codes == ReadsCodes::kNo) continue;
    for (const Engine& engine : engines_for(*kernel)) {
      const Simulated simulated(engine);
      for (const int64_t m : {1, 2, 3, 4, 5, 8, 9}) {
        run(with(
            {.a = {m},
             .n = 75,
             .blocks = 4,
             .level = kernel->codes == ReadsCodes::kByBytes ? 4 : 0,
             .in_parts = m == 3,
             .options = PlanOptions{.kernel = kernel, .nc = 40, .kc = m == 2 ? file().steps : 0},
             .corners = m != 2}));
      }
    }
  }
}

// The largest codes and scales, and A that quantizes to 127: the sums of some formats have more
// bits than float32.
TEST_P(Blocks, LargestSums) {
  int64_t largest = 0;
  for (const Engine& engine : engines()) {
    const Simulated simulated(engine);
    for (const bool codes_are_0 : {false, true}) {
      for (const int sub : {0xff, 0x80, 0x7f, 0}) {
        for (const int64_t m : {1, 3, 5}) {
          const int64_t n = 11, blocks = 2, k = blocks * file().steps;
          std::mt19937 random(static_cast<uint32_t>(sub));
          Weights weights(file(), n, blocks);
          weights.fill([&](std::byte* block) {
            // The codes of Q8_0 are int8.
            const bool is_q8 = file().format == BlockFormat::kQ8_0;
            std::memset(block,
                        is_q8         ? (codes_are_0 ? 0x80 : 0x7f)
                        : codes_are_0 ? 0
                                      : 0xff,
                        static_cast<size_t>(file().bytes));
            for (int i = 0; i < file().subs; ++i)
              block[file().subs_at + i] = static_cast<std::byte>(sub);
            for (const int at : {file().scale_at, file().second_at}) {
              const uint16_t half = random_half(random, 2, false);
              if (at >= 0) std::memcpy(block + at, &half, sizeof(half));
            }
          });
          PackedWeights packed;
          ASSERT_TRUE(weights.pack(test_context(), &packed).ok());
          std::vector<float> a(static_cast<size_t>(m * k)), y(static_cast<size_t>(m * n));
          for (size_t i = 0; i < a.size(); ++i)  // rows of one sign, of the other, and of both
            a[i] = (static_cast<int64_t>(i) / k % 2 == 0 ? 1.5F : -1.5F) *
                   (static_cast<int64_t>(i) / k == 2 && i % 2 == 0 ? -1.0F : 1.0F) *
                   (i % 32 == 5 ? 125.0F / 127 : 1.0F);
          const int64_t a_dims[] = {m, k}, y_dims[] = {m, n};
          MatMulNBitsArgs args;
          args.A = {.data = a.data(), .dims = a_dims};
          args.packed_weights = &packed;
          args.accuracy_level = 4;
          args.Y = {.data = y.data(), .dims = y_dims};
          ASSERT_TRUE(matmul_nbits(test_context(), args).ok());
          const auto steps = static_cast<size_t>(file().steps);
          for (int64_t i = 0; i < m; ++i) {
            const QuantizedRow row(std::span<const float>(a).subspan(static_cast<size_t>(i * k),
                                                                     static_cast<size_t>(k)),
                                   steps);
            for (int64_t j = 0; j < n; ++j) {
              const BlockSums sums = sums_of(weights.column(j)[0], row.q.data(), steps);
              largest = std::max<int64_t>(largest, std::abs(sums.codes));
              ASSERT_EQ(y[static_cast<size_t>(i * n + j)],
                        reference_level_4(file(), weights.column(j), row))
                  << m << " rows, row " << i << " column " << j << " sub-scales " << sub;
            }
          }
        }
      }
    }
  }
  const bool exceeds = GetParam() == BlockFormat::kQ4_K || GetParam() == BlockFormat::kQ5_K ||
                       GetParam() == BlockFormat::kQ6_K;
  EXPECT_EQ(largest > 1 << 24, exceeds) << largest;
}

TEST_P(Blocks, ThreadsReturnTheSame) {
  uint32_t seed = 0;
  for (const int threads : {1, 2, 3, 4}) {
    for (const int64_t level : {0, 4}) {
      for (const bool strict : {false, true}) {
        for (const int64_t m : {1, 37}) {
          run(with({.a = {m},
                    .n = m == 1 ? 600 : 200,
                    .blocks = 512 / file().steps,
                    .level = level,
                    .has_bias = true,
                    .strict = strict,
                    .threads = threads,
                    .seed = ++seed}));
        }
      }
    }
  }
}

TEST_P(Blocks, OutOfCore) {
  for (const int64_t level : {0, 4}) {
    for (const bool strict : {false, true}) {
      run(with({.a = {130},
                .n = 70,
                .blocks = 768 / file().steps,
                .level = level,
                .has_bias = true,
                .strict = strict,
                .out_of_core = {.limit = size_t{220} << 10, .operands = 9}}));
    }
  }
}

TEST_P(Blocks, OutOfCoreAtRandom) {
  for (uint32_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    Draw draw(seed);
    std::mt19937_64 random(seed);
    const SmallShape small(random);
    OutOfCoreSetup setup = small_setup(random);
    setup.operands = random() % 2 != 0 ? 9 : 13;  // A and Y, and maybe bias
    run(with({.type = kTypesOfA[draw.below(3)],
              .a = {small.m},
              .n = small.n,
              .blocks = file().steps == 32 ? small.k / 32 : draw.below(4),
              .level = draw.one_in(2) ? 4 : 0,
              .has_bias = draw.one_in(2),
              .strict = draw.one_in(3),
              .out_of_core = setup,
              .seed = seed}));
  }
}

// Parts -------------------------------------------------------------------------------------------

TEST_P(Blocks, PartsInAnyOrderGiveTheSameBytes) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    Weights weights(file(), 1 + static_cast<int64_t>(random() % 70), 1 + random() % 3);
    weights.fill([&](std::byte* block) { fill_block(random, file(), 1, true, block); });
    Context context;
    PackedWeights whole, in_parts;
    ASSERT_TRUE(weights.pack(context, &whole).ok());
    ASSERT_TRUE(weights.begin(context, &in_parts).ok());
    pack_parts(random, weights, &in_parts);
    EXPECT_TRUE(serialized(whole) == serialized(in_parts)) << seed;
    EXPECT_EQ(whole.bytes(), in_parts.bytes());
  }
}

TEST_P(Blocks, ColumnsThatNoPartHasAreZeros) {
  const int64_t n = 21, blocks = 3, k = blocks * file().steps;
  std::mt19937 random(3);
  Weights weights(file(), n, blocks);
  weights.fill([&](std::byte* block) { fill_block(random, file(), 1, false, block); });
  Context context;
  PackedWeights packed;
  ASSERT_TRUE(weights.begin(context, &packed).ok());
  for (const int64_t column : {3, 12}) {
    ASSERT_TRUE(pack_part(&packed, column, weights.columns(column, 1)).ok());
    ASSERT_TRUE(pack_part(&packed, column, {}).ok());  // of no columns
  }
  const std::vector<float> a(static_cast<size_t>(k), 1);
  for (const int64_t level : {0, 4}) {
    std::vector<float> y(static_cast<size_t>(n), 7);
    const int64_t a_dims[] = {k}, y_dims[] = {n};
    MatMulNBitsArgs args;
    args.A = {.data = a.data(), .dims = a_dims};
    args.packed_weights = &packed;
    args.accuracy_level = level;
    args.Y = {.data = y.data(), .dims = y_dims};
    ASSERT_TRUE(matmul_nbits(context, args).ok());
    for (int64_t j = 0; j < n; ++j)
      EXPECT_EQ(y[static_cast<size_t>(j)] != 0, j == 3 || j == 12) << j;
  }
}

// Plans -------------------------------------------------------------------------------------------

TEST_P(Blocks, GemvReadsPackedWeightsInPlace) {
  const int64_t k = 4096, n = 4096;
  const int64_t a_dims[] = {1, k};
  Context context;
  PackedWeights packed;
  ASSERT_TRUE(begin_pack(context, GetParam(), k, n, &packed).ok());
  for (const int64_t level : {0, 4}) {
    MatMulNBitsArgs args;
    args.A.dims = a_dims;
    args.packed_weights = &packed;
    args.accuracy_level = level;
    Explanation plan;
    const Status status = explain(context, args, &plan);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_LT(plan.scratch_bytes, 1 << 20) << plan.kernel << " level " << level;
    EXPECT_STREQ(plan.regime, "GEMV");
  }
}

}  // namespace
}  // namespace wgemm::testing
