// Every micro-kernel of the table, and one with an odd layout that only tests have: nothing but its row may be known to the stages around.
#include "kernels/kernel.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/portable.h"
#include "tester.h"
#include "types.h"

namespace wgemm::testing {
namespace {

std::vector<Kernel> kernels() {
  const KernelTable table = kernel_table();
  std::vector<Kernel> all(table.rows, table.rows + table.count);
  const PanelLayout a3 = panel_of<float>(3, 2), b5 = panel_of<float>(5, 2, 3), a5 = panel_of<int32_t>(5, 3),
                    b3 = panel_of<int32_t>(3, 3, 1);
  const KernelFunction odd_float = portable_kernel<float, 3, 5, 2, false>, odd_int = portable_kernel<int32_t, 5, 3, 3, false>;
  all.push_back({"f32_3x5c2_portable", DType::kFloat32, 3, 5, 2, a3, b5, Isa::kPortable, Processor::kAny, 1, odd_float});
  all.push_back({"i32_5x3c3_portable", DType::kInt32, 5, 3, 3, a5, b3, Isa::kPortable, Processor::kAny, 1, odd_int});
  return all;
}

class KernelTest : public ::testing::TestWithParam<Kernel> {};

TEST_P(KernelTest, EveryRemainderOfTheTile) {
  const Kernel& kernel = GetParam();
  for (int64_t m = 1; m <= 2 * kernel.mr + 1; ++m) {
    for (int64_t n = 1; n <= 3 * kernel.nr + 1; ++n) {
      for (const int64_t k : {1, 2, 3, 4, 5, 16, 31}) {
        GemmTester().type(kernel.compute).sizes(m, n, k).options({.kernel = &kernel}).run();
      }
    }
  }
}

TEST_P(KernelTest, GoesOnFromEarlierSums) {
  const Kernel& kernel = GetParam();
  for (const int64_t kc : {1, 4, 6}) {
    for (int64_t n = 1; n <= 2 * kernel.nr; ++n) {
      GemmTester().type(kernel.compute).sizes(kernel.mr + 1, n, 13).gap(2).options({.kernel = &kernel, .kc = kc}).run();
      GemmTester().type(kernel.compute).sizes(kernel.mr + 1, n, 13).c({n}).options({.kernel = &kernel, .nc = kernel.nr, .kc = kc}).run();
    }
  }
}

TEST_P(KernelTest, KeepsNanAndInfinities) {
  const Kernel& kernel = GetParam();
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    GemmTester().type(kernel.compute).sizes(9, 18, 9).specials().seed(seed).options({.kernel = &kernel}).run();
    GemmTester().type(kernel.compute).sizes(9, 18, 9).specials().seed(seed).options({.kernel = &kernel, .kc = 4}).run();
  }
}

TEST_P(KernelTest, TransposedAndStridedOperands) {
  const Kernel& kernel = GetParam();
  for (const bool columns : {false, true}) {
    GemmTester()
        .type(kernel.compute)
        .sizes(22, 35, 40)
        .trans(true, true)
        .columns(columns)
        .gap(1)
        .options({.kernel = &kernel, .mc = 8})
        .run();
    GemmTester().type(kernel.compute).sizes(22, 35, 40).columns(columns).gap(1).options({.kernel = &kernel}).run();
  }
}

// <type>_<mr>x<nr>[c<kr>]_<instruction set>[_<origin and variant>], such as f32_4x8_simd128_xnnpack_splat.
TEST_P(KernelTest, NameTellsTheTruth) {
  const Kernel& kernel = GetParam();
  const std::string type = dtype_name(kernel.compute);
  std::string start(1, type[0]);
  start.append(type, type.size() - 2, 2).append("_").append(std::to_string(kernel.mr)).append("x").append(std::to_string(kernel.nr));
  if (kernel.kr > 1) start.append("c").append(std::to_string(kernel.kr));
  start += kernel.isa == Isa::kSimd128 ? "_simd128" : "_portable";
  const std::string name = kernel.name;
  EXPECT_EQ(name.substr(0, start.size()), start);
  EXPECT_TRUE(name.size() == start.size() || name[start.size()] == '_') << name;
  EXPECT_EQ(kernel.b.width, kernel.nr);
  EXPECT_EQ(kernel.b.kr, kernel.kr);
  EXPECT_TRUE(kernel.a.width == kernel.mr || (kernel.a.width == 1 && kernel.kr == 1));
  EXPECT_EQ(kernel.a.kr, kernel.kr);
  EXPECT_EQ(kernel.a.lead, 0);
}

INSTANTIATE_TEST_SUITE_P(Table, KernelTest, ::testing::ValuesIn(kernels()), [](const auto& test) { return std::string(test.param.name); });

TEST(KernelTable, EveryComputeTypeEndsInAPortableRow) {
  const KernelTable table = kernel_table();
  for (int type = 0; type < kDTypeCount; ++type) {
    if (compute_type(static_cast<DType>(type)) != static_cast<DType>(type)) continue;
    const Kernel* last = nullptr;
    for (int i = 0; i < table.count; ++i) {
      if (table.rows[i].compute == static_cast<DType>(type)) last = &table.rows[i];
    }
    ASSERT_NE(last, nullptr) << dtype_name(static_cast<DType>(type));
    EXPECT_TRUE(last->isa == Isa::kPortable && last->processor == Processor::kAny && last->rows_min == 1) << last->name;
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
