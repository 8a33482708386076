// The tester of MatMul, as GemmTester is Gemm's: builds a seeded random problem, runs it, and
// compares every element with the reference.
//
//   MatMulTester()
//       .type(DType::kFloat16)
//       .src({5, 1, 3, 7}).weights({4, 7, 2}).bias({4, 1, 1})
//       .float32().packed().run();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout.h"
#include "out_of_core_tensor.h"
#include "plan/plan.h"
#include "wgemm.h"

namespace wgemm::testing {

class MatMulTester {
 public:
  MatMulTester& type(DType value) { return set(type_, value); }
  // Shapes of the arguments, before a transpose.
  MatMulTester& src(Sizes dims, Layout layout = {}) {
    return src_ = std::move(dims), set(src_layout_, std::move(layout));
  }
  MatMulTester& weights(Sizes dims, Layout layout = {}) {
    return weights_ = std::move(dims), set(weights_layout_, std::move(layout));
  }
  MatMulTester& trans(bool a, bool b) { return trans_a_ = a, set(trans_b_, b); }
  // Default: no bias.
  MatMulTester& bias(Sizes dims, Layout layout = {}) {
    return bias_ = std::move(dims), set(bias_layout_, std::move(layout));
  }
  MatMulTester& dst(Layout layout) { return set(dst_layout_, std::move(layout)); }
  MatMulTester& alpha(Factor value) { return set(alpha_, value); }
  // bias is dst and is overwritten.
  MatMulTester& in_place() { return set(in_place_, true); }
  MatMulTester& activation(Activation value) { return set(activation_, value); }
  // dst of a 16-bit type is float32.
  MatMulTester& float32(bool value = true) { return set(float32_, value); }
  // Whether weights are packed; the tester then overwrites the array they were packed from.
  // Default: the problem runs both ways unless weights are a vector.
  MatMulTester& packed(bool value = true) { return set(packed_, std::optional(value)); }
  // Adds NaN and infinities to the values.
  MatMulTester& specials() { return set(specials_, true); }
  MatMulTester& options(const PlanOptions& value) { return set(options_, std::optional(value)); }
  // Each tensor has an offset, and unused elements behind it.
  MatMulTester& padded(bool value = true) { return set(padded_, value); }
  // Operands are handed over block by block.
  MatMulTester& out_of_core(const OutOfCoreSetup& value) { return set(out_of_core_, value); }
  MatMulTester& seed(uint32_t value) { return set(seed_, value); }

  // The shape of dst, by the rules of the specification.
  Sizes dst_dims() const;

  // Checks the result, matmul_shape() and explain(), that the call writes nothing around dst and no
  // input, and that it releases its memory.
  void run() const;

 private:
  template <typename T>
  MatMulTester& set(T& field, T value) {
    field = std::move(value);
    return *this;
  }
  template <typename T>
  void run_typed() const;
  template <typename T, typename Dst>
  void run_into() const;
  std::string describe() const;

  DType type_ = DType::kFloat32;
  Sizes src_{1, 1}, weights_{1, 1};
  std::optional<Sizes> bias_;
  Layout src_layout_, weights_layout_, bias_layout_, dst_layout_;
  bool trans_a_ = false, trans_b_ = false, in_place_ = false, float32_ = false, specials_ = false,
       padded_ = false;
  std::optional<bool> packed_;
  Factor alpha_ = 1;
  Activation activation_;
  std::optional<PlanOptions> options_;
  OutOfCoreSetup out_of_core_;
  uint32_t seed_ = 1;
};

}  // namespace wgemm::testing
