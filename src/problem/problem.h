// A checked call as plain data: ops/ writes it, all later stages read it. Transposes have become
// strides, broadcast axes have stride 0, opsets and defaults are resolved. It points into the
// caller's tensors and owns nothing. Sizes and strides count elements.
#pragma once

#include <cstdint>
#include <utility>

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

// Scales and zero points of a product of 8-bit operands: Y = (acc + C) * scale(column), as float32
// or quantized. The operands are 1 x N. A plan depends on none of the values, since a call that is
// planned may read them again.
struct Quantization {
  // Subtracted from A when A is packed. Kernels with relaxed dot products multiply A as it is, and
  // their sums are corrected.
  int a_zero_point = 0;
  Operand b_zero_point;   // corrected in the accumulators; base null: 0
  bool shifts_b = false;  // whether any zero point of B, as int8, is not 0
  float a_scale = 1;      // alpha * a_scale
  Operand b_scale;
  bool quantizes_y = false;
  float y_scale = 1;
  int y_zero_point = 0;
  // What read_quantization() in ops/ reads the values from: an element each, null if absent. Zero
  // points have the types of A and Y.
  const std::byte *a_scale_at = nullptr, *a_zero_point_at = nullptr, *y_scale_at = nullptr,
                  *y_zero_point_at = nullptr;
  float alpha = 1;
  Activation bounds;  // of the real numbers that Y stands for

  // Zero point of B as int8 in column `col`.
  int b_zero_point_at(int64_t col) const {
    return (b_zero_point.base == nullptr
                ? 0
                : read_8bit(b_zero_point.block(0, col, 1, 1).data, b_zero_point.dtype)) -
           int8_offset(b_zero_point.dtype);
  }

  // The factor of a column. The order of operations is ONNX Runtime's, to match it bit for bit.
  float scale(float b_scale_of_column) const {
    const float product = a_scale * b_scale_of_column;
    return quantizes_y ? product / y_scale : product;
  }
};

// Turns accumulators into Y = alpha * acc + beta * C, kept within bounds. For 8-bit operands the
// problem's `quantization` replaces alpha and beta.
struct Epilogue {
  Scalar alpha, beta;
  bool has_c = false;  // false: C is absent, or beta is 0 and C must not be read
  Operand c;           // M x N
  // Of Y, rounded as the type demands; in units of y_scale if Y is quantized.
  Activation bounds;

  bool has_bounds() const { return bounds.min > Activation{}.min || bounds.max < Activation{}.max; }
};

// A batch axis: `size` products of different matrices.
struct BatchAxis {
  int64_t size;
  // Strides of A, B, C and Y from one product to the next; 0 if all products share the matrix. They
  // count elements, or matrices of packed weights.
  int64_t a, b, c, y;
};

// Accumulators that successive problems pass on, if out_of_core/ splits one product along K. Each
// problem adds its steps of K to `sums`; the last one runs the epilogue.
struct Carry {
  // M x N accumulators, contiguous and row-major, in memory of out_of_core/; null: K is not split.
  std::byte* sums = nullptr;
  bool begins = true;  // the first problem: writes `sums` without reading them
  bool ends = true;    // the last problem: writes Y instead of `sums`
};

// B: a matrix in memory, or packed weights.
struct BSource {
  Operand plain{};      // the matrix; unused if B is packed weights
  PrepackedB packed{};  // has no panels if B is `plain`

  bool is_packed() const { return packed.panels != nullptr; }
  DType dtype() const { return is_packed() ? packed.dtype : plain.dtype; }
  // The same source, `steps` later: elements of `plain`, or matrices of packed weights.
  BSource at(int64_t steps) const {
    return is_packed() ? BSource{plain, packed.at(steps)} : BSource{plain.at(steps), packed};
  }
};

struct Problem {
  int64_t m = 0, n = 0, k = 0;
  // The type that kernels multiply and accumulate in. kInt8: int32 accumulators and `quantization`.
  DType compute = DType::kFloat32;
  Operand a;        // M x K
  BSource b;        // K x N
  OutputOperand y;  // M x N
  Epilogue epilogue{};
  // Outermost axis first; axes that share B last. No size is 0 or 1.
  std::span<const BatchAxis> batch{};
  Quantization quantization{};
  Carry carry{};

  // The axes of `batch` with different B, and those that follow them and share B.
  std::span<const BatchAxis> batch_of_b() const {
    return batch.first(batch.size() - batch_sharing_b().size());
  }
  std::span<const BatchAxis> batch_sharing_b() const {
    size_t count = 0;
    while (count < batch.size() && batch[batch.size() - count - 1].b == 0) ++count;
    return batch.last(count);
  }
};

// The problem whose result is the transpose of Y: it exchanges A and B, and M and N. `problem` must
// have no batch.
inline Problem transposed(const Problem& problem) {
  Problem other = problem;
  std::swap(other.m, other.n);
  std::swap(other.a, other.b.plain);
  for (Operand* operand : {&other.a, &other.b.plain, &other.epilogue.c})
    std::swap(operand->row_stride, operand->col_stride);
  std::swap(other.y.row_stride, other.y.col_stride);
  return other;
}

// Number of products along all of these axes.
inline int64_t products_of(std::span<const BatchAxis> axes) {
  int64_t products = 1;
  for (const BatchAxis& axis : axes) products *= axis.size;
  return products;
}

}  // namespace wgemm
