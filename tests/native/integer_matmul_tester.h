// The tester of integer_matmul(), as MatMulTester is MatMul's: builds a seeded random problem, runs
// it, and compares every bit of Y with the reference.
//
//   IntegerMatMulTester(IntegerOp::kQLinearMatMul)
//       .types(DType::kInt8, DType::kUInt8).a({5, 3, 7}).b({7, 2})
//       .param(kYScale, {5, 3, 1}).packed().run();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout.h"
#include "out_of_core_tensor.h"
#include "plan/plan.h"
#include "problem/problem.h"
#include "wgemm.h"

namespace wgemm::testing {

inline constexpr IntegerOp kIntegerOps[] = {IntegerOp::kMatMulInteger, IntegerOp::kQLinearMatMul,
                                            IntegerOp::kDynamicQuantizeMatMul,
                                            IntegerOp::kMatMulIntegerToFloat};

// The name of an operator in errors.
const char* name_of(IntegerOp op);

// The parameters that an operator has: one value each, or one per row, or one per column.
enum class ParamExtent { kNone, kOne, kRows, kColumns };
ParamExtent extent_of(IntegerOp op, QuantizationParam which);

// Values of 8-bit operands and zero points: random, or all at one end of the range of the type.
// k128Values are random among 128 adjacent values.
enum class Bytes { kRandom, kLow, kHigh, k128Values };

// Values of the A of DynamicQuantizeMatMul. kTiny are so small that the scale underflows.
enum class Floats { kRandom, kPositive, kNegative, kConstant, kZero, kTiny, kHuge };

class IntegerMatMulTester {
 public:
  explicit IntegerMatMulTester(IntegerOp op) : op_(op) {}

  // The 8-bit types of A and B. DynamicQuantizeMatMul ignores the type of A.
  IntegerMatMulTester& types(DType a, DType b) { return a_type_ = a, set(b_type_, b); }
  // Shapes, before a transpose.
  IntegerMatMulTester& a(Sizes dims, Layout layout = {}) {
    return a_ = std::move(dims), set(a_layout_, std::move(layout));
  }
  IntegerMatMulTester& b(Sizes dims, Layout layout = {}) {
    return b_ = std::move(dims), set(b_layout_, std::move(layout));
  }
  IntegerMatMulTester& y(Layout layout) { return set(y_layout_, std::move(layout)); }
  IntegerMatMulTester& trans(bool a, bool b) { return trans_a_ = a, set(trans_b_, b); }
  // Default: one value for each scale, and no zero points. Ignored if the operator lacks it.
  IntegerMatMulTester& param(QuantizationParam which, Sizes dims, Layout layout = {}) {
    if (extent_of(op_, which) == ParamExtent::kNone) return *this;
    return set(params_[which], std::optional(Param{std::move(dims), std::move(layout)}));
  }
  // All zero points have one value.
  IntegerMatMulTester& zero_points() {
    return param(kAZeroPoint, {}).param(kBZeroPoint, {1}).param(kYZeroPoint, {});
  }
  // Default: no bias. Ignored if the operator lacks it.
  IntegerMatMulTester& bias(Sizes dims, Layout layout = {}) {
    if (!has_float_result()) return *this;
    return set(bias_, std::optional(Param{std::move(dims), std::move(layout)}));
  }
  // Scales and bias are float16. Ignored if the operator lacks that.
  IntegerMatMulTester& half(bool value = true) {
    return set(half_, value && (op_ == IntegerOp::kQLinearMatMul ||
                                op_ == IntegerOp::kMatMulIntegerToFloat));
  }
  // The type of y_zero_point.
  IntegerMatMulTester& output(DType type) { return set(y_zero_type_, type); }
  IntegerMatMulTester& values(Bytes a, Bytes b) { return a_values_ = a, set(b_values_, b); }
  IntegerMatMulTester& values(Floats a) { return set(float_values_, a); }
  IntegerMatMulTester& zero_point_values(Bytes a, Bytes b) {
    return a_zero_values_ = a, set(b_zero_values_, b);
  }
  // Some scales are negative, and some are 0, except y_scale.
  IntegerMatMulTester& any_scales(bool value = true) { return set(any_scales_, value); }
  // Adds NaN and infinities to the bias.
  IntegerMatMulTester& specials(bool value = true) { return set(specials_, value); }
  // Ignored if the operator lacks it.
  IntegerMatMulTester& activation(Activation value) {
    return op_ == IntegerOp::kMatMulInteger ? *this : set(activation_, value);
  }
  IntegerMatMulTester& determinism(Determinism value) { return set(determinism_, value); }
  // Runs a prepared call. Between prepare() and run() A changes, and the parameters are
  // overwritten.
  IntegerMatMulTester& prepared(bool value = true) { return set(prepared_, value); }
  // Whether B is packed; the tester then overwrites the array it was packed from. Default: the
  // problem runs both ways unless B is a vector.
  IntegerMatMulTester& packed(bool value = true) { return set(packed_, std::optional(value)); }
  IntegerMatMulTester& options(const PlanOptions& value) {
    return set(options_, std::optional(value));
  }
  // On two threads, with several tasks.
  IntegerMatMulTester& threads() { return set(threads_, true); }
  // Each tensor has an offset, and unused elements behind it.
  IntegerMatMulTester& padded(bool value = true) { return set(padded_, value); }
  // Operands are handed over block by block.
  IntegerMatMulTester& out_of_core(const OutOfCoreSetup& value) { return set(out_of_core_, value); }
  IntegerMatMulTester& seed(uint32_t value) { return set(seed_, value); }

  // Shapes by the rules of the specification: of Y, and of a parameter with one value per row of A,
  // per row of Y, or per column of B.
  Sizes y_dims() const;
  Sizes param_dims(QuantizationParam which) const;
  bool has_float_result() const {
    return op_ == IntegerOp::kDynamicQuantizeMatMul || op_ == IntegerOp::kMatMulIntegerToFloat;
  }
  DType y_type() const;

  // Checks the result, integer_matmul_shape() and explain(), that the call writes nothing around Y
  // and no input, and that it releases its memory.
  void run() const;

 private:
  struct Param {
    Sizes dims;
    Layout layout;
  };

  template <typename T>
  IntegerMatMulTester& set(T& field, T value) {
    field = std::move(value);
    return *this;
  }
  template <typename T, typename A>
  void run_typed() const;
  template <typename T>
  void run_into() const;
  bool quantizes_a() const { return op_ == IntegerOp::kDynamicQuantizeMatMul; }
  std::string describe() const;

  IntegerOp op_;
  DType a_type_ = DType::kUInt8, b_type_ = DType::kInt8, y_zero_type_ = DType::kUInt8;
  Sizes a_{1, 1}, b_{1, 1};
  Layout a_layout_, b_layout_, y_layout_;
  std::optional<Param> params_[kQuantizationParams], bias_;
  bool trans_a_ = false, trans_b_ = false, half_ = false, any_scales_ = false, specials_ = false,
       prepared_ = false, threads_ = false, padded_ = false;
  Bytes a_values_ = Bytes::kRandom, b_values_ = Bytes::kRandom, a_zero_values_ = Bytes::kRandom,
        b_zero_values_ = Bytes::kRandom;
  Floats float_values_ = Floats::kRandom;
  Activation activation_;
  Determinism determinism_ = Determinism::kFast;
  std::optional<bool> packed_;
  std::optional<PlanOptions> options_;
  OutOfCoreSetup out_of_core_;
  uint32_t seed_ = 1;
};

}  // namespace wgemm::testing
