// MatMulNBits through the whole pipeline. Level 4, and level 0 with strict sums, are compared bit
// by bit with the specification as code. Otherwise level 0 must be within the bound of its error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "array.h"
#include "base/convert.h"
#include "engine.h"
#include "kernels/kernel.h"
#include "layout.h"
#include "nbits_tester.h"
#include "out_of_core_tensor.h"
#include "plan/select_kernel.h"
#include "serialized.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
namespace {

using ZeroPoints = NBits::ZeroPoints;

struct Case {
  DType type = DType::kFloat32;
  Sizes a{1, 1};  // without K
  int64_t n = 1, k = 1;
  int bits = 4, block_size = 32;
  ZeroPoints zero_points = ZeroPoints::kAbsent;
  int64_t level = 0;
  bool has_bias = false, packed = false, serialized = false, strict = false, flat = false;
  bool prepared = false;
  int threads = 0;  // 0: as the other tests
  Activation activation{};
  Layout a_layout{}, y_layout{};
  std::optional<PlanOptions> options{};
  OutOfCoreSetup out_of_core{};
  bool specials = false;
  float a_size = 1, scale_size = 1;  // factors of A and of scales
  uint32_t seed = 1;

  std::string describe() const {
    std::ostringstream text;
    text << dtype_name(type) << " A=" << text_of(a, {}) << "x" << k << " N=" << n
         << " bits=" << bits << " block_size=" << block_size << " zero points "
         << static_cast<int>(zero_points) << " level " << level << (has_bias ? " bias" : "")
         << (packed ? " packed" : "") << (serialized ? " serialized" : "")
         << (strict ? " strict" : "") << (flat ? " flat" : "") << (prepared ? " prepared" : "")
         << " threads " << threads << " from " << activation.min << " to " << activation.max << " "
         << text_of(a, a_layout) << " " << text_of(a, y_layout) << " limit " << out_of_core.limit
         << (specials ? " specials" : "") << " sizes " << a_size << " " << scale_size;
    if (options.has_value()) text << text_of(*options);
    text << " seed=" << seed;
    return text.str();
  }
};

// The specification -------------------------------------------------------------------------------

// Codes and zero points, unpacked, and floats in float32.
struct Numbers {
  std::vector<int> codes;                  // [N][K]
  std::vector<float> scales, zero_points;  // [N][blocks]
};

// Element of a row of A and column j, before bias.
ReferenceElement reference(const Case& c, const Numbers& w, std::span<const float> a, int64_t j) {
  const int64_t blocks = (c.k + c.block_size - 1) / c.block_size;
  ReferenceElement sum;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = b * c.block_size, end = std::min<int64_t>(begin + c.block_size, c.k);
    const auto index = static_cast<size_t>(j * blocks + b);
    const float scale = w.scales[index], zero_point = w.zero_points[index];
    const float of_a =
        scale_of_row(a.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    int32_t dot = 0;
    for (int64_t k = begin; k < end; ++k) {
      const float x = a[static_cast<size_t>(k)];
      const int code = w.codes[static_cast<size_t>(j * c.k + k)];
      const float number = (static_cast<float>(code) - zero_point) * scale;
      const double of_x = std::fabs(static_cast<double>(x)),
                   of_scale = std::fabs(static_cast<double>(scale));
      sum.exact += static_cast<double>(x) *
                   ((code - static_cast<double>(zero_point)) * static_cast<double>(scale));
      sum.magnitude += of_x * (code + std::fabs(static_cast<double>(zero_point))) * of_scale;
      sum.underflow += 1 + of_x + of_scale;
      if (c.level != 4 || c.zero_points == ZeroPoints::kTyped) {
        const float product = x * number;
        sum.value += product;
      } else if (of_a != 0 && !std::isnan(x / of_a)) {
        const float q = std::clamp(std::nearbyint(x / of_a), -127.0F, 127.0F);
        dot += static_cast<int32_t>(q) * (code - static_cast<int32_t>(zero_point));
      }
    }
    if (c.level == 4 && c.zero_points != ZeroPoints::kTyped) {
      const float factor = of_a * scale, part = static_cast<float>(dot) * factor;
      sum.value += part;
    }
  }
  return sum;
}

// A problem in memory -----------------------------------------------------------------------------

template <typename T>
void run_typed(const Case& c) {
  SCOPED_TRACE(c.describe());
  std::mt19937 random(c.seed);
  const auto uniform = [&](float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random);
  };
  const int64_t blocks = (c.k + c.block_size - 1) / c.block_size,
                column_bytes = blocks * c.block_size * c.bits / 8,
                zero_bytes = (blocks * c.bits + 7) / 8;
  Sizes a_dims = c.a, y_dims = c.a;
  a_dims.push_back(c.k);
  y_dims.push_back(c.n);
  Array<T> a = make_array<T>(a_dims, c.a_layout), y = make_array<T>(y_dims, c.y_layout);
  const Sizes scale_dims = c.flat ? Sizes{c.n * blocks} : Sizes{c.n, blocks};
  Array<uint8_t> codes = make_array<uint8_t>({c.n, blocks, c.block_size * c.bits / 8}, {});
  Array<T> scales = make_array<T>(scale_dims, {}), typed = make_array<T>(scale_dims, {});
  Array<uint8_t> zeros =
      make_array<uint8_t>(c.flat ? Sizes{c.n * zero_bytes} : Sizes{c.n, zero_bytes}, {});
  Array<T> bias = make_array<T>({c.n}, {});
  for (size_t i = 0; i < a.length; ++i)
    a.data[i] = rounded<T>(random_element(random, c.a_size, c.specials));
  if (random() % 2 == 0 && c.k > c.block_size && a.length > 0 && c.a_layout.is_plain())
    std::fill_n(a.data.get(), c.block_size, rounded<T>(0.0F));  // a block of zeros
  for (size_t i = 0; i < codes.length; ++i) codes.data[i] = static_cast<uint8_t>(random());
  for (size_t i = 0; i < scales.length; ++i) {
    scales.data[i] = rounded<T>(uniform(-0.1F, 0.1F) * c.scale_size);
    typed.data[i] = rounded<T>(uniform(-3, static_cast<float>(1 << c.bits)));
    if (c.specials && random() % 20 == 0) {
      const float values[] = {INFINITY, -INFINITY, NAN, 0, 0x1p-140F, -0x1p-149F};
      (random() % 2 == 0 ? scales : typed).data[i] = rounded<T>(values[random() % 6]);
    }
  }
  for (size_t i = 0; i < zeros.length; ++i) zeros.data[i] = static_cast<uint8_t>(random());
  for (size_t i = 0; i < bias.length; ++i) bias.data[i] = rounded<T>(uniform(-3, 3));
  if (y.length != 0)
    std::memset(static_cast<void*>(y.data.get()), kUntouched, y.length * sizeof(T));

  Numbers w;
  const int mask = (1 << c.bits) - 1;
  for (int64_t j = 0; j < c.n; ++j) {
    for (int64_t k = 0; k < c.k; ++k) {
      const int64_t bit = k * c.bits;
      w.codes.push_back(codes.data[static_cast<size_t>(j * column_bytes + bit / 8)] >> bit % 8 &
                        mask);
    }
    for (int64_t b = 0; b < blocks; ++b) {
      const auto index = static_cast<size_t>(j * blocks + b);
      w.scales.push_back(convert<float>(scales.data[index]));
      const int64_t bit = b * c.bits;
      w.zero_points.push_back(
          c.zero_points == ZeroPoints::kTyped ? convert<float>(typed.data[index])
          : c.zero_points == ZeroPoints::kCodes
              ? static_cast<float>(
                    zeros.data[static_cast<size_t>(j * zero_bytes + bit / 8)] >> bit % 8 & mask)
              : static_cast<float>(1 << (c.bits - 1)));
    }
  }

  MatMulNBitsArgs args;
  args.A = make_tensor<const void>(a, c.type, c.a_layout);
  args.weights.B = make_tensor<const void>(codes, DType::kUInt8, {});
  args.weights.scales = make_tensor<const void>(scales, c.type, {});
  const ConstTensor zero_points = c.zero_points == ZeroPoints::kTyped
                                      ? make_tensor<const void>(typed, c.type, {})
                                      : make_tensor<const void>(zeros, DType::kUInt8, {});
  if (c.zero_points != ZeroPoints::kAbsent) args.weights.zero_points = &zero_points;
  args.weights.K = c.k;
  args.weights.N = c.n;
  args.weights.bits = c.bits;
  args.weights.block_size = c.block_size;
  args.accuracy_level = c.level;
  args.activation = c.activation;
  const ConstTensor bias_tensor = make_tensor<const void>(bias, c.type, {});
  if (c.has_bias) args.bias = &bias_tensor;

  Context own(0, c.strict ? Determinism::kStrict : Determinism::kFast);
  const bool shares = !c.strict && c.out_of_core.limit == 0 && c.threads == 0;
  Context& context = shares ? test_context() : own;
  if (!shares) {
    ASSERT_TRUE(own.set_threads(threads_of(c)).ok());
  }
  PackedWeights packed;
  if (c.packed) {
    ASSERT_TRUE(pack_nbits(context, args.weights, &packed).ok());
    if (c.serialized) {
      const Bytes bytes = serialized(packed);
      PackedWeights other;
      const Status status = deserialize(context, bytes, &other);
      ASSERT_TRUE(status.ok()) << status.message;
      packed = std::move(other);
      EXPECT_TRUE(bytes == serialized(packed));
    }
    for (size_t i = 0; i < codes.length; ++i) codes.data[i] ^= 0xa5;
    args.weights = {};
    args.packed_weights = &packed;
  }
  Snapshot before;
  before.add("A", a);
  before.add("B", codes);
  before.add("scales", scales);
  before.add("zero_points", zeros);
  before.add("bias", bias);
  const size_t in_use = context.bytes_in_use();

  int64_t shape[kMaxRank];
  size_t rank = 99;
  ASSERT_TRUE(matmul_nbits_shape(args, shape, &rank).ok());
  EXPECT_EQ(text_of({shape, rank}), text_of(y_dims));
  args.Y = make_tensor<void>(y, c.type, c.y_layout);
  const Status status = compute(c, context, args);
  ASSERT_TRUE(status.ok()) << status.message;
  before.expect_unchanged();
  EXPECT_EQ(context.bytes_in_use(), in_use);

  const bool quantizes = c.level == 4 && c.zero_points != ZeroPoints::kTyped;
  check_result(c, quantizes, a, bias, y, [&](std::span<const float> row) {
    return [&, row](int64_t j) { return reference(c, w, row, j); };
  });
}

void run(const Case& c) {
  if (c.type == DType::kFloat32) return run_typed<float>(c);
  if (c.type == DType::kFloat16) return run_typed<Float16>(c);
  run_typed<BFloat16>(c);
}

constexpr int kBits[] = {2, 4, 8};

Case any(uint32_t seed) {
  Draw draw(seed);
  Case c;
  c.seed = seed;
  c.type = kTypesOfA[draw.below(3)];
  c.a.clear();
  for (int64_t rank = draw.below(4); rank > 0; --rank)
    c.a.push_back(draw.one_in(20) ? 0 : draw.one_of({1, 1, 2, 3, 5, 9}));
  c.n = draw.one_in(20) ? 0 : draw.one_of({1, 3, 7, 8, 9, 16, 17, 31, 40, 65});
  c.k = draw.one_in(20) ? 0 : draw.one_of({1, 2, 15, 16, 17, 31, 32, 33, 64, 70, 100, 257});
  c.bits = kBits[draw.below(3)];
  c.block_size = 16 << draw.below(5);
  c.zero_points = static_cast<ZeroPoints>(draw.below(3));
  c.level = draw.one_in(2) ? 4 : draw.below(4);
  c.has_bias = draw.one_in(2);
  c.packed = !draw.one_in(3);
  c.serialized = draw.one_in(3);
  c.strict = draw.one_in(3);
  c.flat = draw.one_in(3);
  c.prepared = draw.one_in(6);
  c.specials = draw.one_in(8);
  if (draw.one_in(4)) c.activation = {-0.5, draw.one_in(2) ? 6.0 : 0.75};
  c.a_layout = draw.layout(c.a.size() + 1, true);
  c.y_layout = draw.layout(c.a.size() + 1, false);
  if (draw.one_in(3)) {
    c.options = PlanOptions{.mc = draw.one_of({0, 1, 4, 6}),
                            .nc = draw.one_of({0, 8, 16, 40}),
                            .kc = draw.one_of({0, 1, 32, 64})};
  }
  return c;
}

TEST(MatMulNBits, ProblemsAtRandom) {
  for (uint32_t seed = 1; seed <= 1500 && !::testing::Test::HasFailure(); ++seed) run(any(seed));
}

// As IEEE 754 has it for the sum of a * ((code - zero point) * scale), over codes before K only.
TEST(MatMulNBits, InfinitiesNanAndSubnormals) {
  for (const Engine& engine : engines()) {
    const Simulated simulated(engine);
    for (uint32_t seed = 1; seed <= 400 && !::testing::Test::HasFailure(); ++seed) {
      Draw draw(seed);
      run({.type = kTypesOfA[draw.below(3)],
           .a = {draw.one_of({1, 1, 1, 2, 7})},
           .n = draw.one_of({1, 7, 8, 17}),
           .k = draw.one_of({1, 5, 16, 17, 31, 32, 70}),
           .bits = kBits[draw.below(3)],
           .block_size = 16 << draw.below(3),
           .zero_points = static_cast<ZeroPoints>(draw.below(3)),
           .level = draw.one_in(4) ? 4 : 0,
           .has_bias = draw.one_in(2),
           .packed = !draw.one_in(4),
           .strict = draw.one_in(8),
           .specials = true,
           .seed = seed});
    }
  }
}

TEST(MatMulNBits, EveryKernelOnEveryEngine) {
  const KernelTable table = kernel_table();
  for (const Kernel* kernel = table.rows; kernel < table.rows + table.count; ++kernel) {
    const bool by_bytes = kernel->codes == ReadsCodes::kByBytes;
    if (kernel->codes == ReadsCodes::kNo) continue;
    for (const Engine& engine : engines_for(*kernel)) {
      const Simulated simulated(engine);
      for (const int bits : kBits) {
        for (const ZeroPoints zero_points :
             {ZeroPoints::kAbsent, ZeroPoints::kCodes, ZeroPoints::kTyped}) {
          if (by_bytes && zero_points == ZeroPoints::kTyped) continue;
          for (const int64_t m : {1, 2, 5, 8, 9}) {
            for (const bool packed : {false, true}) {
              run({.a = {m},
                   .n = 75,
                   .k = 100,
                   .bits = bits,
                   .zero_points = zero_points,
                   .level = by_bytes ? 4 : 0,
                   .packed = packed,
                   .options = PlanOptions{.kernel = kernel, .nc = 40, .kc = m == 2 ? 64 : 0}});
            }
          }
        }
      }
    }
  }
}

TEST(MatMulNBits, ExtremeCodesAreExact) {
  // A of one magnitude quantizes to 127, and all codes at the end of their range.
  for (const Engine& engine : engines()) {
    const Simulated simulated(engine);
    for (const int bits : kBits) {
      const int64_t k = 512, n = 8, bytes = k * bits / 8;
      const std::vector<float> a(k, -1.5F), scales(static_cast<size_t>(n * k / 256), 1);
      const std::vector<uint8_t> codes(static_cast<size_t>(n * bytes), 0xff);
      std::vector<float> y(n);
      const int64_t a_dims[] = {k}, b_dims[] = {n, k / 256, bytes * 256 / k},
                    s_dims[] = {n, k / 256}, y_dims[] = {n};
      MatMulNBitsArgs args;
      args.A = {.data = a.data(), .dims = a_dims};
      args.weights.B = {.data = codes.data(), .dtype = DType::kUInt8, .dims = b_dims};
      args.weights.scales = {.data = scales.data(), .dims = s_dims};
      args.weights.K = k;
      args.weights.N = n;
      args.weights.bits = bits;
      args.weights.block_size = 256;
      args.accuracy_level = 4;
      args.Y = {.data = y.data(), .dims = y_dims};
      Context context;
      ASSERT_TRUE(matmul_nbits(context, args).ok());
      const float scale = 1.5F / 127, code = static_cast<float>((1 << (bits - 1)) - 1);
      const float block = -127.0F * 256 * code * scale;
      for (const float value : y) EXPECT_EQ(value, block + block);
    }
  }
}

TEST(MatMulNBits, ThreadsAndBlocksOutOfCore) {
  for (const int64_t level : {0, 4}) {
    for (const bool packed : {false, true}) {
      for (const bool strict : {false, true}) {
        run({.a = {37},
             .n = 600,
             .k = 320,
             .level = level,
             .has_bias = true,
             .packed = packed,
             .strict = strict,
             .threads = 2});
        run({.a = {130},
             .n = 70,
             .k = 700,
             .zero_points = ZeroPoints::kCodes,
             .level = level,
             .packed = packed,
             .strict = strict,
             .out_of_core = {.limit = size_t{220} << 10, .operands = 9}});
      }
    }
  }
}

TEST(MatMulNBits, BlocksOutOfCoreAtRandom) {
  for (uint32_t seed = 1; seed <= 240 && !::testing::Test::HasFailure(); ++seed) {
    Draw draw(seed);
    std::mt19937_64 random(seed);
    const bool is_small = seed > 60;
    const SmallShape small(random);
    OutOfCoreSetup setup = small_setup(random);
    setup.operands = random() % 2 != 0 ? 9 : 13;  // A and Y, and maybe bias
    if (!is_small) {
      setup.limit = static_cast<size_t>(draw.one_of({60, 100, 220})) << 10;
      setup.grows = false;
    }
    run({.type = kTypesOfA[draw.below(3)],
         .a = {is_small ? small.m : draw.one_of({1, 2, 37, 90})},
         .n = is_small ? small.n : draw.one_of({9, 70, 130}),
         .k = is_small ? small.k : draw.one_of({40, 300, 700, 1300}),
         .bits = kBits[draw.below(3)],
         .block_size = 16 << draw.below(5),
         .zero_points = static_cast<ZeroPoints>(draw.below(3)),
         .level = draw.one_in(2) ? 4 : 0,
         .has_bias = draw.one_in(2),
         .packed = draw.one_in(2),
         .strict = draw.one_in(3),
         .out_of_core = setup,
         .seed = seed});
  }
}

TEST(MatMulNBits, SubnormalNumbers) {
  constexpr float kSizes[][2] = {{1, 0x1p-145F},      {1, 0x1p-138F}, {0x1p100F, 0x1p-145F},
                                 {0x1p-148F, 1},      {1, 0},         {0x1p-140F, 0x1p120F},
                                 {0x1p-90F, 0x1p-50F}};
  uint32_t seed = 0;
  for (const auto& [a_size, scale_size] : kSizes) {
    for (const DType type : {DType::kFloat32, DType::kBFloat16}) {
      for (const int64_t m : {1, 5}) {
        for (const int bits : kBits) {
          for (const int zero_points : {0, 1, 2}) {
            for (const bool strict : {false, true}) {
              run({.type = type,
                   .a = {m},
                   .n = 11,
                   .k = 150,
                   .bits = bits,
                   .zero_points = static_cast<ZeroPoints>(zero_points),
                   .level = seed % 3 == 0 ? 4 : 0,
                   .packed = seed % 2 == 0,
                   .strict = strict,
                   .a_size = a_size,
                   .scale_size = scale_size,
                   .seed = ++seed});
              if (::testing::Test::HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(MatMulNBits, GemvNeedsLittleScratch) {
  for (const int64_t level : {0, 4}) {
    for (const int bits : kBits) {
      const int64_t k = 4096, n = 4096, blocks = k / 32, bytes = 4 * bits;
      const int64_t a_dims[] = {1, k}, b_dims[] = {n, blocks, bytes}, s_dims[] = {n, blocks};
      MatMulNBitsArgs args;
      args.A.dims = a_dims;
      args.weights.B = {.dtype = DType::kUInt8, .dims = b_dims};
      args.weights.scales.dims = s_dims;
      args.weights.K = k;
      args.weights.N = n;
      args.weights.bits = bits;
      args.weights.block_size = 32;
      args.accuracy_level = level;
      Explanation plan;
      ASSERT_TRUE(explain(Context(), args, &plan).ok());
      EXPECT_LT(plan.scratch_bytes, 1 << 20) << plan.kernel;
    }
  }
}

TEST(MatMulNBits, PackedWeightsTakeLittleMoreThanTheirBits) {
  for (const DType type : kTypesOfA) {
    for (const int bits : kBits) {
      for (const int block_size : {16, 32, 128}) {
        for (const bool has_zero_points : {false, true}) {
          const int64_t k = 1024, n = 512, blocks = k / block_size;
          const std::vector<uint8_t> data(static_cast<size_t>(n * k * bits / 8 + n * blocks * 4));
          const int64_t b_dims[] = {n, blocks, block_size * bits / 8}, s_dims[] = {n, blocks},
                        z_dims[] = {n, (blocks * bits + 7) / 8};
          const ConstTensor zero_points = {
              .data = data.data(), .dtype = DType::kUInt8, .dims = z_dims};
          const NBitsWeights weights{.B = {data.data(), DType::kUInt8, b_dims},
                                     .scales = {data.data(), type, s_dims},
                                     .zero_points = has_zero_points ? &zero_points : nullptr,
                                     .K = k,
                                     .N = n,
                                     .bits = bits,
                                     .block_size = block_size};
          Context context;
          PackedWeights packed;
          ASSERT_TRUE(pack_nbits(context, weights, &packed).ok());
          const double own =
              static_cast<double>(n) *
              (static_cast<double>(k * bits) / 8 +
               static_cast<double>(blocks) *
                   (static_cast<double>(dtype_bytes(type)) + (has_zero_points ? bits / 8.0 : 0)));
          EXPECT_LT(static_cast<double>(packed.bytes()), 1.05 * own)
              << dtype_name(type) << " " << bits << " " << block_size;
        }
      }
    }
  }
}

}  // namespace
}  // namespace wgemm::testing
