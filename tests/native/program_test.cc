#include "program/program.h"

#include <gtest/gtest.h>

#include "nn/steps.h"
#include "nn_tester.h"

namespace wgemm {
namespace {

constexpr OtherSteps kOperators = {nn::step_bytes, nn::read_step, nn::run_step};

double address_of(const void* memory) {
  return static_cast<double>(reinterpret_cast<uintptr_t>(memory));
}

double number_of(std::string_view name) {
  for (size_t i = 0; const nn::Operator* op = nn::operator_at(i); ++i)
    if (op->name == name) return static_cast<double>(i);
  return -100;
}

// A plan of gemm: the words are the addresses of A, B and Y, each 2 x 2.
Status plan_gemm(Context& context, int, std::span<const double> words, double*,
                 PlannedCall* planned) {
  static const int64_t kDims[] = {2, 2};
  const auto matrix = [&](size_t i) {
    return reinterpret_cast<float*>(static_cast<uintptr_t>(words[i]));
  };
  GemmArgs args;
  args.A = {.data = matrix(0), .dtype = DType::kFloat32, .dims = kDims, .size = 4};
  args.B = {.data = matrix(1), .dtype = DType::kFloat32, .dims = kDims, .size = 4};
  args.Y = {.data = matrix(2), .dtype = DType::kFloat32, .dims = kDims, .size = 4};
  return plan_call(context, args, planned);
}

TEST(Program, RunsOperatorsAndProducts) {
  Context context;
  alignas(16) float a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1}, product[4], bias[] = {10, 20}, y[4];
  const std::vector<double> words = {-1, 7, 3, address_of(a), address_of(b), address_of(product),
                                     // product + bias
                                     number_of("Add"), 8, 15, 2, 2, 2, 0, address_of(product), 2, 1,
                                     0, address_of(bias), 0, 1, 0, address_of(y), 2, 1};
  bool is_valid = false;
  Program* const program = Program::make(context, words, plan_gemm, &kOperators, &is_valid);
  ASSERT_TRUE(program != nullptr);
  for (const float first : {1.0F, 5.0F}) {
    a[0] = first;
    ASSERT_TRUE(program->run(context, 0, SIZE_MAX).ok());
    EXPECT_EQ(y[0], first + 10);
    EXPECT_EQ(y[1], 22);
    EXPECT_EQ(y[3], 24);
  }
  program->destroy(context);
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

TEST(Program, OfProductsNeedsNoOtherSteps) {
  Context context;
  alignas(16) float a[] = {1, 2, 3, 4}, b[] = {0, 1, 1, 0}, c[4], y[4];
  const auto product = [&](float* x, float* to) {
    return std::vector<double>{-1, 0, 3, address_of(x), address_of(b), address_of(to)};
  };
  std::vector<double> words = product(a, c);
  for (const double word : product(c, y)) words.push_back(word);
  bool is_valid = false;
  Program* const program = Program::make(context, words, plan_gemm, nullptr, &is_valid);
  ASSERT_TRUE(program != nullptr);
  ASSERT_TRUE(program->run(context, 0, 1).ok());
  EXPECT_EQ(c[0], 2);
  y[0] = -1;
  ASSERT_TRUE(program->run(context, 1, SIZE_MAX).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], a[i]);
  program->destroy(context);
  EXPECT_EQ(context.bytes_in_use(), 0U);

  words.insert(words.end(), {number_of("Add"), 0, 0});
  EXPECT_EQ(Program::make(context, words, plan_gemm, nullptr, &is_valid), nullptr);
  EXPECT_FALSE(is_valid);
  Program* const empty = Program::make(context, {}, plan_gemm, nullptr, &is_valid);
  ASSERT_TRUE(empty != nullptr);
  EXPECT_TRUE(empty->run(context, 0, 1).ok());
  empty->destroy(context);
}

// Plans as plan_gemm(), or fails if the first word is 0.
Status plan_or_fail(Context& context, int operation, std::span<const double> words, double* scalars,
                    PlannedCall* planned) {
  if (words[0] != 0) return plan_gemm(context, operation, words, scalars, planned);
  Status status;
  status.code = Code::kShape;
  return status;
}

TEST(Program, SaysWhichStepFails) {
  Context context;
  alignas(16) float a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1}, y[] = {-1, -1, -1, -1};
  const std::vector<double> words = {
      -1, 5, 3, address_of(a), address_of(b), address_of(y), -1, 6, 3, 0, 0, 0};
  bool is_valid = false;
  Program* const program = Program::make(context, words, plan_or_fail, nullptr, &is_valid);
  ASSERT_TRUE(program != nullptr);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(program->run(context, 0, SIZE_MAX).code, Code::kShape);
    EXPECT_EQ(program->failed_node(), 6);
    EXPECT_EQ(y[3], 4);  // the step before it has run
  }
  program->destroy(context);
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

// Without memory, each run fails, and none keeps any.
TEST(Program, NeedsMemoryForPlans) {
  alignas(16) float a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1}, y[4];
  const std::vector<double> words = {-1, 3, 3, address_of(a), address_of(b), address_of(y)};
  bool is_valid = false;
  Context tiny(64);
  EXPECT_EQ(Program::make(tiny, words, plan_gemm, nullptr, &is_valid), nullptr);
  EXPECT_TRUE(is_valid);
  Context small(1024);
  Program* const program = Program::make(small, words, plan_gemm, nullptr, &is_valid);
  ASSERT_TRUE(program != nullptr);
  const size_t before = small.bytes_in_use();
  EXPECT_EQ(program->run(small, 0, 1).code, Code::kOutOfMemory);
  EXPECT_EQ(program->failed_node(), 3);
  EXPECT_EQ(small.bytes_in_use(), before);
  program->destroy(small);
  EXPECT_EQ(small.bytes_in_use(), 0U);
}

TEST(Program, TakesThePlansOfProductsThatAreTheSame) {
  Context context;
  alignas(16) float a[] = {1, 2, 3, 4}, b[] = {1, 0, 0, 1}, y[4], z[4];
  bool is_valid = false;
  const auto make = [&](const float* second) {
    const std::vector<double> words = {-1, 0, 3, address_of(a), address_of(b), address_of(y),
                                       -1, 1, 3, address_of(a), address_of(b), address_of(second)};
    return Program::make(context, words, plan_gemm, nullptr, &is_valid);
  };
  Program* const first = make(y);
  ASSERT_TRUE(first->run(context, 0, SIZE_MAX).ok());
  const size_t planned = context.bytes_in_use();
  Program* const second = make(z);
  const size_t made = context.bytes_in_use() - planned;
  second->take_plans(first);
  first->destroy(context);
  // One of two plans has moved, and the other has ended.
  const size_t plan = (planned - made) / 2;
  EXPECT_EQ(context.bytes_in_use(), made + plan);
  ASSERT_TRUE(second->run(context, 0, SIZE_MAX).ok());
  EXPECT_EQ(context.bytes_in_use(), made + 2 * plan);
  EXPECT_EQ(z[3], 4);
  second->destroy(context);
  EXPECT_EQ(context.bytes_in_use(), 0U);
}

TEST(Program, RefusesWordsOutOfRange) {
  Context context;
  alignas(16) float x[2] = {};
  const std::vector<double> good = {
      number_of("Sub"), 0, 14, 1, 2, 0, address_of(x), 1, 0, address_of(x), 1, 0, address_of(x), 1};
  const auto make = [&](const std::vector<double>& words) {
    bool is_valid = true;
    Program* const program = Program::make(context, words, plan_gemm, &kOperators, &is_valid);
    if (program != nullptr) program->destroy(context);
    return is_valid;
  };
  std::vector<double> words = good;
  words[2] = 11;
  EXPECT_TRUE(make(words));
  for (size_t i = 0; i < words.size(); ++i) {
    for (const double wrong : {-1e300, 1e300, std::nan("")}) {
      std::vector<double> bad = words;
      bad[i] = wrong;
      EXPECT_FALSE(make(bad)) << i << " " << wrong;
    }
    std::vector<double> cut = words;
    cut.resize(i);
    if (i != 0) {
      EXPECT_FALSE(make(cut)) << i;
    }
  }
}

}  // namespace
}  // namespace wgemm
