// A checked call as plain data: ops/ writes it, all later stages read it. Transposes have become
// strides, broadcast axes have stride 0, opsets and defaults are resolved. It points into the
// caller's tensors and owns nothing. Sizes and strides count elements.
#pragma once

#include <cstdint>
#include <utility>

#include "base/convert.h"
#include "base/types.h"
#include "problem/operand.h"
#include "problem/prepacked.h"

namespace wgemm {

// alpha or beta, rounded as the type demands.
struct Scalar {
  double value = 1;
  uint64_t integer = 1;  // value modulo 2^64, if `whole`
  bool whole = true;     // value has no fraction
};

inline int read_8bit(const std::byte* element, DType dtype) {
  return dtype == DType::kUInt8 ? static_cast<int>(*element)
                                : static_cast<int>(static_cast<int8_t>(*element));
}

// An element of a scale or a zero point. Base null: absent, which means 1 and 0.
inline float read_scale(const Operand& v, int64_t row, int64_t col) {
  if (v.base == nullptr) return 1;
  const std::byte* const element = v.block(row, col, 1, 1).data;
  return v.dtype == DType::kFloat16 ? convert<float>(*reinterpret_cast<const Float16*>(element))
                                    : *reinterpret_cast<const float*>(element);
}
inline int read_zero_point(const Operand& v, int64_t row, int64_t col) {
  return v.base == nullptr ? 0 : read_8bit(v.block(row, col, 1, 1).data, v.dtype);
}

// The parameters of quantization: scales and zero points, for rows of A and Y and columns of B.
enum QuantizationParam : uint8_t {
  kAScale,
  kAZeroPoint,
  kBScale,
  kBZeroPoint,
  kYScale,
  kYZeroPoint,
};
inline constexpr int kQuantizationParams = 6;

// Elements from the parameters of the first product of a batch to the parameters of another.
struct ParamOffsets {
  int64_t at[kQuantizationParams] = {};
};

// How a product of 8-bit operands becomes Y. If Y is int32, Y = acc + C. Else Y = (acc + C) * s, as
// float or quantized, where s = a_scale * b_scale / y_scale. A plan depends on none of the values,
// since a call that is planned may read them again.
struct Quantization {
  // M x 1 for A and Y, 1 x N for B; strides are 0 if one value serves all. Base null: absent, which
  // means a zero point of 0 and a scale of 1. Scales are float32 or float16. Zero points have the
  // types of their operands.
  Operand params[kQuantizationParams];
  // Whether the scales of A and Y, with the zero points of Y, or the zero points of A differ
  // between rows or products. Else the values below serve all.
  bool has_row_scales = false, has_row_zero_points = false;
  bool quantizes_y = false;
  // read_quantization() in ops/ reads these from `params`. a_zero_point is subtracted from A when A
  // is packed. Kernels with relaxed dot products multiply A as it is, and their sums are corrected.
  int a_zero_point = 0;
  float a_scale = 1;  // alpha * a_scale
  float y_scale = 1;
  int y_zero_point = 0;
  bool shifts_b = false;  // whether any zero point of B, as int8, is not 0
  float b_scale_max = 1;  // in magnitude
  bool is_gemm = false;   // of qgemm(): a scale that is not above 0 is an error
  float alpha = 1;
  Activation bounds;  // of the real numbers that Y stands for
  // If the call quantizes A: the matrix of float32 that it reads. Problem::a is then where the
  // bytes go, with the strides of float_a, and has no base before.
  bool quantizes_a = false;
  Operand float_a;

  // The factor of an element. The order of operations is ONNX Runtime's, to match it bit for bit.
  float scale(float of_a, float of_b, float of_y) const {
    const float product = of_a * of_b;
    return quantizes_y ? product / of_y : product;
  }
};

// Turns accumulators into Y = alpha * acc + beta * C, kept within bounds. For 8-bit operands the
// problem's `quantization` replaces alpha, beta and bounds. A C of int32 is then added to the
// accumulators, and a C of float32 or float16 to the scaled result.
struct Epilogue {
  Scalar alpha, beta;
  bool has_c = false;  // false: C is absent, or beta is 0 and C must not be read
  Operand c;           // M x N
  Activation bounds;   // of Y, rounded as the type demands

  // Whether C is added to the scaled result of 8-bit operands.
  bool has_float_c() const { return has_c && !is_integer(c.dtype); }
  bool has_bounds() const { return bounds.min > Activation{}.min || bounds.max < Activation{}.max; }
};

// A batch axis: `size` products of different matrices.
struct BatchAxis {
  int64_t size;
  // Strides of A, B, C and Y from one product to the next; 0 if all products share the matrix. They
  // count elements, or matrices of packed weights.
  int64_t a, b, c, y;
  int64_t params[kQuantizationParams];  // the same of Quantization::params

  [[gnu::always_inline]] bool shares_b() const {
    return b == 0 && params[kBScale] == 0 && params[kBZeroPoint] == 0;
  }
};

// Accumulators that successive problems pass on, if out_of_core/ splits one product along K. Each
// problem adds its steps of K to `sums`; the last one runs the epilogue.
struct Carry {
  // M x N accumulators, contiguous and row-major, in memory of out_of_core/; null: K is not split.
  std::byte* sums = nullptr;
  bool begins = true;  // the first problem: writes `sums` without reading them
  bool ends = true;    // the last problem: writes Y instead of `sums`
};

// B: a matrix in memory, packed weights, or weights of MatMulNBits that are not packed.
struct BSource {
  Operand plain{};      // the matrix; else only its type counts
  PrepackedB packed{};  // has no panels if B is not packed
  NBitsSource nbits{};  // has no codes if B is one of the others

  bool is_packed() const { return packed.panels != nullptr; }
  // The format of weights of MatMulNBits, packed or not.
  const NBits& nbits_format() const { return is_packed() ? packed.nbits : nbits.format; }
  DType dtype() const { return is_packed() ? packed.dtype : plain.dtype; }
  // Becomes the source `steps` later: elements of `plain`, or matrices of packed weights.
  void advance(int64_t steps) {
    if (!is_packed()) return plain.advance(steps);
    packed.panels += steps * static_cast<int64_t>(packed.matrix_bytes);
    packed.column_sums += steps * packed.n;
  }
};

// The elements of a square Y that are computed: all, or one triangle with the diagonal.
enum class Triangle : uint8_t { kNone, kLower, kUpper };

struct Problem {
  int64_t m = 0, n = 0, k = 0;
  // The type that kernels multiply and accumulate in. kInt8: int32 accumulators and `quantization`.
  DType compute = DType::kFloat32;
  Operand a;        // M x K
  BSource b;        // K x N
  OutputOperand y;  // M x N
  Epilogue epilogue{};
  // A triangle requires M = N, no batch axes, and operands that are not 8-bit. Elements of Y
  // outside the triangle are not written, unless `mirrors`: then they mirror the lower triangle.
  Triangle triangle = Triangle::kNone;
  bool mirrors = false;
  // Outermost axis first; axes that share B last. No size is 0 or 1.
  std::span<const BatchAxis> batch{};
  Quantization quantization{};
  bool quantizes_rows = false;  // of A, for products with codes: accuracy level 4 of MatMulNBits
  Carry carry{};
  // For a block of a larger problem: steps_of_part() of that problem; -1 if its K is not cut. 0:
  // for a whole problem.
  int64_t part_steps = 0;

  // The axes of `batch` with different B, and those that follow them and share B, its scales and
  // its zero points.
  [[gnu::always_inline]] std::span<const BatchAxis> batch_of_b() const {
    return batch.first(batch.size() - batch_sharing_b().size());
  }
  [[gnu::always_inline]] std::span<const BatchAxis> batch_sharing_b() const {
    size_t count = 0;
    while (count < batch.size() && batch[batch.size() - count - 1].shares_b()) ++count;
    return batch.last(count);
  }
};

// The problem whose result is the transpose of Y: it exchanges A and B, and M and N. `problem` must
// have no batch, and must not mirror.
inline Problem transposed(const Problem& problem) {
  Problem other = problem;
  std::swap(other.m, other.n);
  std::swap(other.a, other.b.plain);
  for (Operand* operand : {&other.a, &other.b.plain, &other.epilogue.c})
    std::swap(operand->row_stride, operand->col_stride);
  std::swap(other.y.row_stride, other.y.col_stride);
  if (problem.triangle != Triangle::kNone) {
    other.triangle = problem.triangle == Triangle::kLower ? Triangle::kUpper : Triangle::kLower;
  }
  return other;
}

// Number of products along all of these axes.
inline int64_t products_of(std::span<const BatchAxis> axes) {
  int64_t products = 1;
  for (const BatchAxis& axis : axes) products *= axis.size;
  return products;
}

// Number of different matrices A of a batch.
inline int64_t matrices_of_a(const Problem& problem) {
  int64_t matrices = 1;
  for (const BatchAxis& axis : problem.batch) matrices *= axis.a == 0 ? 1 : axis.size;
  return matrices;
}

}  // namespace wgemm
