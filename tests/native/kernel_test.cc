// Tests every micro-kernel of the table, and some with odd layouts that only tests have. The other
// stages may know nothing of a kernel except its row.
#include "kernels/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "base/convert.h"
#include "base/types.h"
#include "engine.h"
#if WGEMM_XNNPACK
#include "kernels/f32_xnnpack.h"
#endif
#include "kernels/portable.h"
#include "pack/weights.h"
#include "qgemm_tester.h"
#include "tester.h"

namespace wgemm::testing {
namespace {

std::vector<Kernel> kernels() {
  const KernelTable table = kernel_table();
  std::vector<Kernel> all(table.rows, table.rows + table.count);
  // Kernels of MatMulNBits have a test of their own.
  std::erase_if(all, [](const Kernel& kernel) { return kernel.codes != ReadsCodes::kNo; });
  all.push_back({.name = "f32_3x5c2__portable",
                 .compute = DType::kFloat32,
                 .mr = 3,
                 .nr = 5,
                 .kr = 2,
                 .a = panel_of<float>(3, 2),
                 .b = panel_of<float>(5, 2, 3),
                 .isa = Isa::kPortable,
                 .run = portable_kernel<float, 3, 5, 2, false>});
  all.push_back({.name = "i32_5x3c3__portable",
                 .compute = DType::kInt32,
                 .mr = 5,
                 .nr = 3,
                 .kr = 3,
                 .a = panel_of<int32_t>(5, 3),
                 .b = panel_of<int32_t>(3, 3, 1),
                 .isa = Isa::kPortable,
                 .run = portable_kernel<int32_t, 5, 3, 3, false>});
  all.push_back({.name = "i8_i16_3x5c2__portable",
                 .compute = DType::kInt8,
                 .mr = 3,
                 .nr = 5,
                 .kr = 2,
                 .a = panel_of<int16_t>(3, 2),
                 .b = panel_of<int16_t>(5, 2),
                 .isa = Isa::kPortable,
                 .run = portable_kernel<int16_t, 3, 5, 2, false, int32_t>});
  all.push_back({.name = "i8_i16_5x8c2__portable",
                 .compute = DType::kInt8,
                 .mr = 5,
                 .nr = 8,
                 .kr = 2,
                 .a = panel_of<int16_t>(5, 2),
                 .b = panel_of<int16_t>(8, 2),
                 .isa = Isa::kPortable,
                 .run = portable_kernel<int16_t, 5, 8, 2, false, int32_t>});
  return all;
}

// The kernels of QGemm if `quantized`, otherwise the kernels of Gemm.
std::vector<Kernel> kernels(bool quantized) {
  std::vector<Kernel> some = kernels();
  std::erase_if(
      some, [&](const Kernel& kernel) { return (kernel.compute == DType::kInt8) != quantized; });
  return some;
}

std::string name_of(const ::testing::TestParamInfo<Kernel>& test) { return test.param.name; }

class KernelTest : public ::testing::TestWithParam<Kernel> {
 protected:
  // B is as the kernel reads it: unpacked in its layout, or packed if its type is not `compute`.
  // `columns` as in GemmTester.
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
  static int64_t least_n() { return GetParam().b_layout == BLayout::kRowMajor ? GetParam().nr : 1; }
};

TEST_P(KernelTest, EveryRemainderOfTheTile) {
  const Kernel& kernel = GetParam();
  for (int64_t m = 1; m <= 2 * kernel.mr + 1; ++m) {
    for (int64_t n = least_n(); n <= 3 * kernel.nr + 1; ++n) {
      for (const int64_t k : {1, 2, 3, 4, 5, 16, 31}) tester(m, n, k).run();
    }
  }
}

// Tiles for GEMV and skinny GEMM take several micro-panels at once.
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
      // A full strip, and each size of the last one.
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
  // `seed` chooses the types of A, B and Y, and which zero points are absent.
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
    if (kernel.dot == Dot::kSigned)
      t.values(Values::kRandom, reads_stored(kernel) ? Values::kSymmetric : Values::k255Values);
    return t.extents(Extent::kOne, Extent::kColumns, Extent::kColumns);
  }
  // Whether the call packs B for the kernel. Nothing is known of the range of such a B.
  static bool takes_plain_b(const Kernel& kernel) {
    const bool any_b = kernel.dot == Dot::kUnsigned || kernel.dot == Dot::kSignedMasked;
    return kernel.dot == Dot::kNone || (any_b && !reads_stored(kernel));
  }
  // Whether a kernel by dot products reads packed weights as they are stored, without a shift.
  static bool reads_stored(const Kernel& kernel) { return kernel.b == kI8StorageLayout; }
  // Runs on every engine that the kernel is for. B is unpacked, if the kernel takes it, and packed
  // weights, if its micro-panels are as wide as theirs.
  static void run(QGemmTester tester) {
    const Kernel& kernel = GetParam();
    for (const Engine& engine : engines_for(kernel)) {
      const Simulated simulated(engine);
      if (takes_plain_b(kernel)) tester.packed(false).run();
      if (kernel.b.width == kI8StorageLayout.width || kernel.b.width == 1) tester.packed().run();
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
          // It would need a shift: plans take another kernel, see dot_test.cc.
          if (kernel.dot == Dot::kSigned && reads_stored(kernel) && y == Values::kLow) continue;
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

// "f32" for float32, "bf16" for bfloat16.
std::string short_name(DType type) {
  const std::string name = dtype_name(type);
  std::string letters = name.starts_with("b") ? "bf" : name.substr(0, 1);
  std::copy_if(name.begin(), name.end(), std::back_inserter(letters),
               [](unsigned char letter) { return std::isdigit(letter) != 0; });
  return letters;
}

// Whether a kernel for unpacked B of floats adds in ascending k. One of 40 products is so large
// that each 1 added to it is lost. So the sum depends on how many were added before, and where.
template <typename T>
bool adds_in_ascending_k(const Kernel& kernel) {
  constexpr size_t kK = 40;
  const auto cols = static_cast<size_t>(kernel.nr);
  const size_t b_bytes = dtype_bytes(kernel.b_type);
  const auto a_width = static_cast<size_t>(kernel.a.width);  // a row of A, or a micro-panel
  std::vector<T> a(kK * a_width), c(cols);
  T ascending = 0;
  for (size_t k = 0; k < kK; ++k) {
    T& product = a[k * a_width];
    product = k != kK / 2 ? 1 : sizeof(T) == 4 ? T{0x1p26} : T{0x1p55};
    ascending += product;
  }
  std::vector<std::byte> b(kK * cols * b_bytes);
  for (size_t i = 0; i < kK * cols; ++i)
    EXPECT_TRUE(store("", "B", 1, kernel.b_type, &b[i * b_bytes]).ok());
  const bool row_major = kernel.b_layout == BLayout::kRowMajor;
  kernel.run({.rows = 1,
              .cols = cols,
              .k = kK,
              .a = a.data(),
              .a_stride = kK * sizeof(T),
              .b = b.data(),
              .b_stride = (row_major ? static_cast<size_t>(kernel.b.width) : kK) * b_bytes,
              .b_step = (row_major ? cols : 1) * b_bytes,
              .unpacked = true,
              .c = c.data(),
              .c_stride = cols * sizeof(T),
              .accumulate = false});
  return c[0] == ascending;
}

// Sums of integers do not depend on the order, so this trusts the name.
bool is_dot_or_axpy(const Kernel& kernel) {
  if (kernel.compute == DType::kFloat32) return !adds_in_ascending_k<float>(kernel);
  if (kernel.compute == DType::kFloat64) return !adds_in_ascending_k<double>(kernel);
  return kernel.axpy || std::string(kernel.name).ends_with("_dot");
}

std::string xnnpack_variant([[maybe_unused]] KernelFunction run) {
#if WGEMM_XNNPACK && WGEMM_RELAXED
  if (run == f32_6x8_relaxed_xnnpack_loadsplat) return "_xnnpack_loadsplat";
#endif
#if WGEMM_XNNPACK
  if (run == f32_4x8_simd128_xnnpack_splat) return "_xnnpack_splat";
  if (run == f32_4x8_simd128_xnnpack_loadsplat) return "_xnnpack_loadsplat";
#endif
  return "";
}

// The name of a row by the grammar in kernels.cc.
std::string name_by_grammar(const Kernel& kernel) {
  std::string name = short_name(kernel.compute);
  if (kernel.b_type != kernel.compute) name.append("_").append(short_name(kernel.b_type));
  if (kernel.compute == DType::kInt8 && kernel.b.element_bytes == 2) name += "_i16";
  if (kernel.m_max == 1) name += "_gemv";
  name.append("_").append(std::to_string(kernel.mr)).append("x").append(std::to_string(kernel.nr));
  if (kernel.kr > 1) name.append("c").append(std::to_string(kernel.kr));
  constexpr const char* kIsa[] = {"__portable", "__simd128", "__relaxed"};
  name += kIsa[static_cast<int>(kernel.isa)];
  if (kernel.b_layout != BLayout::kPanels) {
    const bool row_major = kernel.b_layout == BLayout::kRowMajor;
    EXPECT_FALSE(kernel.axpy && !row_major);
    name += is_dot_or_axpy(kernel) ? row_major ? "_axpy" : "_dot"
            : row_major            ? "_rowmajor"
                                   : "_colmajor";
    EXPECT_EQ(name.ends_with("_axpy"), kernel.axpy);
  }
  if (kernel.kr == 1 && kernel.a.width > 1) name += "_packed_a";
  if (kernel.finite) name += "_finite";
  if (kernel.b.fill_header != nullptr) name += "_winograd";
  constexpr const char* kDot[] = {"", "_dot_7bit", "_dot_unsigned", "_dot_signed",
                                  "_dot_signed_masked"};
  return name + kDot[static_cast<int>(kernel.dot)] + xnnpack_variant(kernel.run);
}

TEST_P(KernelRow, NameTellsTheTruth) { EXPECT_EQ(GetParam().name, name_by_grammar(GetParam())); }

TEST_P(KernelRow, LayoutsFitTheTile) {
  const Kernel& kernel = GetParam();
  EXPECT_EQ(kernel.nr % kernel.b.width, 0);
  const bool several_panels =
      kernel.compute == DType::kInt8 || kernel.a.width > 1 || kernel.vectors == 32;
  EXPECT_TRUE(kernel.b.width == kernel.nr || several_panels);
  EXPECT_TRUE(kernel.b.kr == kernel.kr ||
              (kernel.dot != Dot::kNone && kernel.b == kI8StorageLayout));
  // Kernels that read one column of B at a time read A unpacked.
  const bool reads_rows = kernel.a.is_rows() && (kernel.kr == 1 || kernel.b.width == 1);
  EXPECT_TRUE(kernel.a.width == kernel.mr || reads_rows);
  EXPECT_TRUE(kernel.a.kr == kernel.kr || reads_rows);
  EXPECT_EQ(kernel.a.header, 0);
}

INSTANTIATE_TEST_SUITE_P(Table, KernelRow, ::testing::ValuesIn(kernels()), name_of);

TEST(KernelTable, EveryComputeTypeEndsInARowForAnyProduct) {
  const KernelTable table = kernel_table();
  for (int type = 0; type < kDTypeCount; ++type) {
    if (compute_type(static_cast<DType>(type)) != static_cast<DType>(type))
      continue;  // kInt8 stands for both 8-bit types
    const Kernel* last = nullptr;
    for (int i = 0; i < table.count; ++i) {
      const Kernel& row = table.rows[i];
      if (row.compute == static_cast<DType>(type) && row.codes == ReadsCodes::kNo) last = &row;
    }
    ASSERT_NE(last, nullptr) << dtype_name(static_cast<DType>(type));
    EXPECT_TRUE(last->processor == Processor::kAny && last->strict && last->dot == Dot::kNone &&
                last->b_layout == BLayout::kPanels && !last->finite && last->m_min == 1 &&
                last->m_max == Kernel::kAny && last->n_min == 1 && last->n_max == Kernel::kAny)
        << last->name;
#if !defined(__wasm__)
    EXPECT_EQ(last->isa, Isa::kPortable) << last->name;
#endif
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
