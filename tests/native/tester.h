// One tester for every kernel, type, shape and flag: builds a seeded random problem, runs it, and
// compares every element with the reference.
//
//   GemmTester().sizes(7, 9, 11).trans(true, false).c({9}).alpha(0.5).run();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "out_of_core_tensor.h"
#include "plan/plan.h"
#include "wgemm.h"

namespace wgemm::testing {

class GemmTester {
 public:
  GemmTester& type(DType value) { return set(type_, value); }
  GemmTester& sizes(int64_t m, int64_t n, int64_t k) { return m_ = m, n_ = n, set(k_, k); }
  GemmTester& trans(bool a, bool b) { return trans_a_ = a, set(trans_b_, b); }
  GemmTester& alpha(Factor value) { return set(alpha_, value); }
  GemmTester& beta(Factor value) { return set(beta_, value); }
  GemmTester& activation(Activation value) { return set(activation_, value); }
  // C with this shape. Default: no C.
  GemmTester& c(std::vector<int64_t> dims) { return has_c_ = true, set(c_dims_, std::move(dims)); }
  // C is Y: it has Y's shape and is overwritten.
  GemmTester& in_place() { return has_c_ = true, set(in_place_, true); }
  // This many unused elements follow each row of each operand. If `columns`, operands are
  // column-major.
  GemmTester& gap(int64_t elements) { return set(gap_, elements); }
  GemmTester& columns(bool value = true) { return set(columns_, value); }
  GemmTester& opset(int64_t value, std::optional<int64_t> broadcast = {}) {
    return opset_ = value, set(broadcast_, broadcast);
  }
  // Whether B is packed weights. Default: the problem runs both ways unless a kernel is given.
  GemmTester& packed(bool value = true) { return set(packed_, std::optional(value)); }
  // Adds NaN and infinities to the values.
  GemmTester& specials() { return set(specials_, true); }
  GemmTester& options(const PlanOptions& value) { return set(options_, value); }
  // Each tensor has an offset, and unused elements behind it.
  GemmTester& padded(bool value = true) { return set(padded_, value); }
  // Operands are handed over block by block.
  GemmTester& out_of_core(const OutOfCoreSetup& value) { return set(out_of_core_, value); }
  GemmTester& seed(uint32_t value) { return set(seed_, value); }

  // Checks the result, and that the call writes nothing around Y and no input.
  void run() const;

 private:
  template <typename T>
  GemmTester& set(T& field, T value) {
    field = std::move(value);
    return *this;
  }
  template <typename T>
  void run_typed() const;
  std::string describe() const;

  DType type_ = DType::kFloat32;
  int64_t m_ = 1, n_ = 1, k_ = 1;
  bool trans_a_ = false, trans_b_ = false, has_c_ = false, in_place_ = false, columns_ = false,
       specials_ = false, padded_ = false;
  std::optional<bool> packed_;
  Factor alpha_ = 1, beta_ = 1;
  Activation activation_;
  std::vector<int64_t> c_dims_;
  int64_t gap_ = 0;
  int64_t opset_ = 13;
  std::optional<int64_t> broadcast_;
  PlanOptions options_;
  OutOfCoreSetup out_of_core_;
  uint32_t seed_ = 1;
};

}  // namespace wgemm::testing
