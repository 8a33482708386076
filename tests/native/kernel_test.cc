// Every micro-kernel of the table, and some with odd layouts that only tests have: nothing but its
// row may be known to the stages around.
#include "kernels/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "base/types.h"
#include "engine.h"
#include "kernels/portable.h"
#include "pack/weights.h"
#include "qgemm_tester.h"
#include "tester.h"

namespace wgemm::testing {
namespace {

std::vector<Kernel> kernels() {
  const KernelTable table = kernel_table();
  std::vector<Kernel> all(table.rows, table.rows + table.count);
  const PanelLayout a3 = panel_of<float>(3, 2), b5 = panel_of<float>(5, 2, 3),
                    a5 = panel_of<int32_t>(5, 3), b3 = panel_of<int32_t>(3, 3, 1);
  const PanelLayout q3 = panel_of<int16_t>(3, 2), q5 = panel_of<int16_t>(5, 2),
                    q8 = panel_of<int16_t>(8, 2);
  const KernelFunction odd_float = portable_kernel<float, 3, 5, 2, false>,
                       odd_int = portable_kernel<int32_t, 5, 3, 3, false>;
  all.push_back({"f32_3x5c2_portable", DType::kFloat32, 3, 5, 2, a3, b5, Isa::kPortable,
                 Processor::kAny, 1, odd_float});
  all.push_back({"i32_5x3c3_portable", DType::kInt32, 5, 3, 3, a5, b3, Isa::kPortable,
                 Processor::kAny, 1, odd_int});
  all.push_back({"i8_3x5c2_portable", DType::kInt8, 3, 5, 2, q3, q5, Isa::kPortable,
                 Processor::kAny, 1, portable_kernel<int16_t, 3, 5, 2, false, int32_t>});
  all.push_back({"i8_5x8c2_portable", DType::kInt8, 5, 8, 2, q5, q8, Isa::kPortable,
                 Processor::kAny, 1, portable_kernel<int16_t, 5, 8, 2, false, int32_t>});
  return all;
}

// Those of Gemm, or those of QGemm.
std::vector<Kernel> kernels(bool quantized) {
  std::vector<Kernel> some = kernels();
  std::erase_if(
      some, [&](const Kernel& kernel) { return (kernel.compute == DType::kInt8) != quantized; });
  return some;
}

std::string name_of(const ::testing::TestParamInfo<Kernel>& test) { return test.param.name; }

class KernelTest : public ::testing::TestWithParam<Kernel> {
 protected:
  // Of B as the kernel reads it: in place as it wants, or packed if it has a type of its own.
  // `columns` as of the tester's.
  static GemmTester tester(int64_t m, int64_t n, int64_t k, PlanOptions options = {},
                           bool columns = false) {
    const Kernel& kernel = GetParam();
    options.kernel = &kernel;
    return GemmTester()
        .type(kernel.b_type)
        .sizes(m, n, k)
        .trans(false, (kernel.b_layout == BLayout::kColumnMajor) != columns)
        .columns(columns)
        .packed(kernel.b_layout == BLayout::kPanels && kernel.b_type != kernel.compute)
        .options(options);
  }
  static int64_t least_n() { return GetParam().b_layout == BLayout::kPanels ? 1 : GetParam().nr; }
};

TEST_P(KernelTest, EveryRemainderOfTheTile) {
  const Kernel& kernel = GetParam();
  for (int64_t m = 1; m <= 2 * kernel.mr + 1; ++m) {
    for (int64_t n = least_n(); n <= 3 * kernel.nr + 1; ++n) {
      for (const int64_t k : {1, 2, 3, 4, 5, 16, 31}) tester(m, n, k).run();
    }
  }
}

// Kernels take few rows by several panels at once.
TEST_P(KernelTest, EveryRemainderOfManyColumns) {
  for (const int64_t m : {1, 2}) {
    for (int64_t n = least_n(); n <= 72; ++n) {
      for (const int64_t k : {7, 16, 40}) {
        tester(m, n, k).gap(1).run();
        tester(m, n, k, {.kc = 3}).gap(1).run();
      }
      tester(m, n, 40, {.kc = 20}).gap(1).run();
    }
  }
}

TEST_P(KernelTest, GoesOnFromEarlierSums) {
  const Kernel& kernel = GetParam();
  for (const int64_t kc : {1, 4, 6}) {
    for (int64_t n = least_n(); n <= 2 * kernel.nr + 1; ++n) {
      // A full strip, and each that is not.
      for (int64_t m = kernel.mr + 1; m <= 2 * kernel.mr; ++m) {
        tester(m, n, 13, {.kc = kc}).gap(2).run();
        tester(m, n, 13, {.nc = kernel.nr, .kc = kc}).c({n}).run();
      }
    }
  }
}

TEST_P(KernelTest, KeepsNanAndInfinities) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    tester(9, 18, 9).specials().seed(seed).run();
    tester(9, 18, 9, {.kc = 4}).specials().seed(seed).run();
    tester(9, 18, 39).specials().seed(seed).run();
    tester(9, 18, 39, {.kc = 20}).specials().seed(seed).run();
  }
}

TEST_P(KernelTest, TransposedAndStridedOperands) {
  const Kernel& kernel = GetParam();
  const bool any_b = kernel.b_layout == BLayout::kPanels;
  for (const bool columns : {false, true}) {
    const bool trans_b = any_b || (kernel.b_layout == BLayout::kColumnMajor) != columns;
    tester(22, 35, 40, {.mc = 8}, columns).trans(true, trans_b).gap(1).run();
    tester(22, 35, 40, {}, columns).trans(false, !any_b && trans_b).gap(1).run();
  }
}

INSTANTIATE_TEST_SUITE_P(Table, KernelTest, ::testing::ValuesIn(kernels(false)), name_of);

class QuantizedKernelTest : public ::testing::TestWithParam<Kernel> {
 protected:
  // With `seed` the types of A and B, of Y, and what is absent change.
  static QGemmTester tester(const Kernel& kernel, uint32_t seed, PlanOptions options = {}) {
    constexpr DType kTypes[] = {DType::kInt8, DType::kUInt8},
                    kOutputs[] = {DType::kFloat32, DType::kInt8, DType::kUInt8};
    options.kernel = &kernel;
    QGemmTester t = QGemmTester()
                        .types(kTypes[seed % 2], kTypes[seed / 2 % 2])
                        .output(kOutputs[seed % 3])
                        .options(options)
                        .seed(seed);
    t.zero_points(seed % 5 == 0 ? Values::kAbsent : Values::kRandom,
                  seed % 7 == 0 ? Values::kAbsent : Values::kRandom);
    if (kernel.dot == Dot::kSevenBits) t.values(Values::kRandom, Values::k128Values);
    if (kernel.dot == Dot::kSigned) t.values(Values::kRandom, Values::k255Values);
    return t.extents(Extent::kOne, Extent::kColumns, Extent::kColumns);
  }
  // Without packed weights, if the kernel takes such; and with, if its panels of B are as wide as
  // those that they are stored in. On every engine that it is for.
  static void run(QGemmTester tester) {
    const Kernel& kernel = GetParam();
    for (const Engine& engine : engines_for(kernel)) {
      const Simulated simulated(engine);
      if (kernel.dot == Dot::kNone) tester.packed(false).run();
      if (kernel.b.width == kI8StorageLayout.width) tester.packed().run();
    }
  }
};

TEST_P(QuantizedKernelTest, EveryRemainderOfTheTile) {
  const Kernel& kernel = GetParam();
  uint32_t seed = 0;
  for (int64_t m = 1; m <= 2 * kernel.mr + 1; ++m) {
    for (int64_t n = 1; n <= 3 * kernel.nr + 1; ++n) {
      for (const int64_t k : {1, 2, 3, 4, 5, 16, 31}) run(tester(kernel, ++seed).sizes(m, n, k));
    }
  }
}

TEST_P(QuantizedKernelTest, GoesOnFromEarlierSums) {
  const Kernel& kernel = GetParam();
  uint32_t seed = 0;
  for (const int64_t kc : {1, 4, 6}) {
    for (int64_t n = 1; n <= 2 * kernel.nr + 1; ++n) {
      for (int64_t m = kernel.mr + 1; m <= 2 * kernel.mr; ++m) {
        run(tester(kernel, ++seed, {.kc = kc}).sizes(m, n, 13).gap(2));
        run(tester(kernel, ++seed, {.nc = kernel.nr, .kc = kc}).sizes(m, n, 14).c({n}));
      }
    }
  }
}

TEST_P(QuantizedKernelTest, TransposedAndStridedOperands) {
  const Kernel& kernel = GetParam();
  uint32_t seed = 0;
  for (const bool columns : {false, true}) {
    for (const bool trans : {false, true}) {
      for (const int64_t kc : {0, 18}) {
        run(tester(kernel, ++seed, {.mc = 8, .kc = kc})
                .sizes(22, 35, 40)
                .trans(trans, trans)
                .columns(columns)
                .gap(1));
        run(tester(kernel, ++seed, {.nc = 16, .kc = kc})
                .sizes(22, 35, 41)
                .trans(trans, !trans)
                .columns(columns));
      }
    }
  }
}

TEST_P(QuantizedKernelTest, NeverSaturates) {
  const Kernel& kernel = GetParam();
  for (const DType a : {DType::kInt8, DType::kUInt8}) {
    for (const DType b : {DType::kInt8, DType::kUInt8}) {
      for (const Values x : {Values::kLow, Values::kHigh}) {
        for (const Values y : {Values::kLow, Values::kHigh}) {
          const Values other_x = x == Values::kLow ? Values::kHigh : Values::kLow,
                       other_y = y == Values::kLow ? Values::kHigh : Values::kLow;
          const QGemmTester t = tester(kernel, 1)
                                    .types(a, b)
                                    .output(DType::kFloat32)
                                    .values(x, y)
                                    .sizes(kernel.mr, 9, 200);
          run(QGemmTester(t).zero_points(other_x, other_y));
          run(QGemmTester(t).zero_points(other_x, Values::kAbsent));
          run(QGemmTester(t).zero_points(Values::kAbsent, other_y));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, QuantizedKernelTest, ::testing::ValuesIn(kernels(true)), name_of);

class KernelRow : public ::testing::TestWithParam<Kernel> {};

// <type>_<mr>x<nr>[c<kr>]_<instruction set>[_<origin and variant>], such as
// f32_4x8_simd128_xnnpack_splat.
TEST_P(KernelRow, NameTellsTheTruth) {
  const Kernel& kernel = GetParam();
  const std::string type = dtype_name(kernel.compute);
  std::string start(1, type[0]);
  std::copy_if(type.begin(), type.end(), std::back_inserter(start),
               [](unsigned char letter) { return std::isdigit(letter) != 0; });
  start.append("_").append(std::to_string(kernel.mr)).append("x").append(std::to_string(kernel.nr));
  if (kernel.kr > 1) start.append("c").append(std::to_string(kernel.kr));
  start += kernel.isa == Isa::kRelaxed   ? "_relaxed"
           : kernel.isa == Isa::kSimd128 ? "_simd128"
                                         : "_portable";
  const std::string name = kernel.name;
  EXPECT_EQ(name.substr(0, start.size()), start);
  EXPECT_TRUE(name.size() == start.size() || name[start.size()] == '_') << name;
  EXPECT_EQ(kernel.nr % kernel.b.width, 0);
  EXPECT_TRUE(kernel.b.width == kernel.nr || kernel.compute == DType::kInt8);
  EXPECT_EQ(name.find("_rows") != std::string::npos, kernel.b_layout == BLayout::kRowMajor);
  EXPECT_EQ(name.find("_columns") != std::string::npos, kernel.b_layout == BLayout::kColumnMajor);
  EXPECT_EQ(name.find("_f16") != std::string::npos, kernel.b_type == DType::kFloat16);
  EXPECT_EQ(name.find("_bf16") != std::string::npos, kernel.b_type == DType::kBFloat16);
  EXPECT_EQ(name.find("_finite") != std::string::npos, kernel.finite);
  EXPECT_EQ(kernel.b.kr, kernel.kr);
  EXPECT_TRUE(kernel.a.width == kernel.mr || (kernel.a.width == 1 && kernel.kr == 1));
  EXPECT_EQ(kernel.a.kr, kernel.kr);
  EXPECT_EQ(kernel.a.header, 0);
}

INSTANTIATE_TEST_SUITE_P(Table, KernelRow, ::testing::ValuesIn(kernels()), name_of);

TEST(KernelTable, EveryComputeTypeEndsInAPortableRow) {
  const KernelTable table = kernel_table();
  for (int type = 0; type < kDTypeCount; ++type) {
    if (compute_type(static_cast<DType>(type)) != static_cast<DType>(type))
      continue;  // kInt8 stands for both 8-bit types
    const Kernel* last = nullptr;
    for (int i = 0; i < table.count; ++i) {
      if (table.rows[i].compute == static_cast<DType>(type)) last = &table.rows[i];
    }
    ASSERT_NE(last, nullptr) << dtype_name(static_cast<DType>(type));
    EXPECT_TRUE(last->isa == Isa::kPortable && last->processor == Processor::kAny &&
                last->rows_min == 1)
        << last->name;
  }
}

TEST(KernelTable, KnowsTheProcessor) {
#if defined(WGEMM_TEST_PROCESSOR_X86)
  EXPECT_EQ(processor(), Processor::kX86);
#elif defined(WGEMM_TEST_PROCESSOR_ARM)
  EXPECT_EQ(processor(), Processor::kArm);
#endif
  EXPECT_NE(processor(), Processor::kAny);
}

}  // namespace
}  // namespace wgemm::testing
