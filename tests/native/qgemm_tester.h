// The tester of QGemm, as GemmTester is Gemm's: builds a seeded random problem, runs it, and
// compares every bit of Y with the reference.
//
//   QGemmTester()
//       .types(DType::kInt8, DType::kUInt8).sizes(7, 9, 11)
//       .c({9}).output(DType::kInt8).packed().run();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "out_of_core_tensor.h"
#include "plan/plan.h"
#include "wgemm.h"

namespace wgemm::testing {

// Values of integers: absent (if optional), random, or all at the low or the high end of the type's
// range. 8-bit operands may also alternate between both ends, or be random among n neighbouring
// values. The smallest and the largest of these then occur if there are enough elements. kSymmetric
// are the 255 values from -127 to 127, as int8.
enum class Values {
  kAbsent,
  kRandom,
  kLow,
  kHigh,
  kEnds,
  k128Values,
  k129Values,
  k255Values,
  kSymmetric,
  k256Values
};

// Shape of a scale or zero point: [], [1] or [N]. [N] may be contiguous, or have unused elements
// between, or repeat one element with stride 0.
enum class Extent { kScalar, kOne, kColumns, kStrided, kRepeated };

class QGemmTester {
 public:
  QGemmTester& types(DType a, DType b) { return a_type_ = a, set(b_type_, b); }
  QGemmTester& sizes(int64_t m, int64_t n, int64_t k) { return m_ = m, n_ = n, set(k_, k); }
  QGemmTester& trans(bool a, bool b) { return trans_a_ = a, set(trans_b_, b); }
  // Values of the elements of A and B.
  QGemmTester& values(Values a, Values b) { return a_values_ = a, set(b_values_, b); }
  QGemmTester& zero_points(Values a, Values b) { return a_zero_ = a, set(b_zero_, b); }
  // The type of Y, and y_zero_point, which is absent for float32.
  QGemmTester& output(DType type, Values zero_point = Values::kRandom) {
    return y_type_ = type, set(y_zero_, zero_point);
  }
  // Shapes of the scales and zero points with one value, of b_scale, and of b_zero_point.
  QGemmTester& extents(Extent one, Extent b_scale, Extent b_zero_point) {
    return one_ = one, b_scale_extent_ = b_scale, set(b_zero_extent_, b_zero_point);
  }
  // Default: random scales, with a y_scale for which most results fit Y's type and some do not.
  struct Scales {
    float a, b, y;
  };
  QGemmTester& scales(Scales value) { return set(scales_, std::optional(value)); }
  QGemmTester& alpha(double value) { return set(alpha_, value); }
  QGemmTester& activation(Activation value) { return set(activation_, value); }
  // C with this shape. Default: no C.
  QGemmTester& c(std::vector<int64_t> dims, Values values = Values::kRandom) {
    return c_values_ = values, set(c_dims_, std::move(dims));
  }
  // This many unused elements follow each row of each matrix. If `columns`, matrices are
  // column-major.
  QGemmTester& gap(int64_t elements) { return set(gap_, elements); }
  QGemmTester& columns(bool value = true) { return set(columns_, value); }
  // Whether B is packed; the tester then overwrites the array it was packed from. Default: the
  // problem runs both ways unless a kernel is given or expected.
  QGemmTester& packed(bool value = true) { return set(packed_, std::optional(value)); }
  QGemmTester& options(const PlanOptions& value) { return set(options_, std::optional(value)); }
  // Each tensor has an offset, and unused elements behind it.
  QGemmTester& padded(bool value = true) { return set(padded_, value); }
  // Operands are handed over block by block.
  QGemmTester& out_of_core(const OutOfCoreSetup& value) { return set(out_of_core_, value); }
  QGemmTester& seed(uint32_t value) { return set(seed_, value); }
  // The kernel that the plan must choose.
  QGemmTester& by(const char* kernel) { return set(by_, std::string(kernel)); }

  // Checks the result and qgemm_shape(), that the call writes nothing around Y and no input, and
  // that it releases its memory.
  void run() const;

 private:
  template <typename T>
  QGemmTester& set(T& field, T value) {
    field = std::move(value);
    return *this;
  }
  template <typename T>
  void run_typed() const;
  std::string describe() const;

  DType a_type_ = DType::kUInt8, b_type_ = DType::kInt8, y_type_ = DType::kFloat32;
  int64_t m_ = 1, n_ = 1, k_ = 1;
  bool trans_a_ = false, trans_b_ = false, columns_ = false, padded_ = false;
  std::optional<bool> packed_;
  Values a_values_ = Values::kRandom, b_values_ = Values::kRandom, c_values_ = Values::kAbsent;
  Values a_zero_ = Values::kRandom, b_zero_ = Values::kRandom, y_zero_ = Values::kRandom;
  Extent one_ = Extent::kScalar, b_scale_extent_ = Extent::kScalar,
         b_zero_extent_ = Extent::kScalar;
  std::optional<Scales> scales_;
  double alpha_ = 1;
  Activation activation_;
  std::vector<int64_t> c_dims_;
  int64_t gap_ = 0;
  std::optional<PlanOptions> options_;
  OutOfCoreSetup out_of_core_;
  uint32_t seed_ = 1;
  std::string by_;
};

}  // namespace wgemm::testing
