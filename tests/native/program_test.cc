#include "program/program.h"

#include <gtest/gtest.h>

#include "nn_tester.h"

namespace wgemm {
namespace {

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
  Program* const program = Program::make(context, words, plan_gemm, &is_valid);
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

TEST(Program, RefusesWordsOutOfRange) {
  Context context;
  alignas(16) float x[2] = {};
  const std::vector<double> good = {
      number_of("Sub"), 0, 14, 1, 2, 0, address_of(x), 1, 0, address_of(x), 1, 0, address_of(x), 1};
  const auto make = [&](const std::vector<double>& words) {
    bool is_valid = true;
    Program* const program = Program::make(context, words, plan_gemm, &is_valid);
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
