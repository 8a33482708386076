// What an operation asks for, as plain data, after all checks: transposes have become strides,
// broadcast axes have stride 0, opsets and defaults are resolved. Written by ops/, read by
// everything behind.
#pragma once

#include <cstdint>
#include <utility>

#include "problem/operand.h"
#include "problem/prepacked.h"

namespace wgemm {

// alpha or beta, rounded as the type demands.
struct Scalar {
  double value = 1;
  uint64_t integer = 1;  // value modulo 2^64, where `whole`
  bool whole = true;
};

// An element of an 8-bit operand of one row.
inline int read_8bit(const Operand& operand, int64_t col) {
  const std::byte* at = operand.block(0, col, 1, 1).data;
  return operand.dtype == DType::kUInt8 ? static_cast<int>(*at)
                                        : static_cast<int>(static_cast<int8_t>(*at));
}

// How 8-bit operands stand for numbers, and what becomes of the accumulators: Y = (acc + C) * scale
// of the column, in float32 or quantized again. Operands of one row, walked along N.
struct Quantization {
  int a_zero_point =
      0;  // taken off A when that is packed, or off the sums by kernels that multiply bytes
  Operand b_zero_point;   // taken off the accumulators; base null: 0
  bool shifts_b = false;  // whether any zero point of B, as int8, is not 0
  float a_scale = 1;      // alpha * a_scale
  Operand b_scale;
  bool quantizes_y = false;
  float y_scale = 1;
  int y_zero_point = 0;

  // Of B as int8, in a column.
  int b_zero_point_at(int64_t col) const {
    return (b_zero_point.base == nullptr ? 0 : read_8bit(b_zero_point, col)) -
           int8_offset(b_zero_point.dtype);
  }

  // The factor of a column. ONNX Runtime computes in this order, which its results show bit for
  // bit.
  float scale(float b_scale_of_column) const {
    const float product = a_scale * b_scale_of_column;
    return quantizes_y ? product / y_scale : product;
  }
};

// What becomes of the accumulators: Y = alpha * acc + beta * C, or what `quantization` of the
// problem says of acc + C; within bounds.
struct Epilogue {
  Scalar alpha, beta;
  bool has_c = false;  // false: C is absent, or beta is 0 and C must not be read
  Operand c;           // M x N
  Activation
      bounds;  // of Y, rounded as the type demands; of what is quantized, in units of y_scale

  bool has_bounds() const { return bounds.min > Activation{}.min || bounds.max < Activation{}.max; }
};

// An axis along which the same product is made of other matrices: elements from one of them to the
// next (of packed weights: matrices), 0 where it stays the same.
struct BatchAxis {
  int64_t size;
  int64_t a, b, c, y;
};

// Where the sums go on from and to, of a product whose K is cut into several problems. The epilogue
// is the last one's.
struct Carry {
  std::byte* sums = nullptr;  // M x N accumulators, row after row; null: this is the whole of K
  bool begins = true, ends = true;
};

// Where B comes from: a matrix in memory, or packed weights.
struct BSource {
  Operand plain{};      // unpacked; of packed weights the type alone counts
  PrepackedB packed{};  // without panels: B is `plain`

  bool is_packed() const { return packed.panels != nullptr; }
  DType dtype() const { return is_packed() ? packed.dtype : plain.dtype; }
  // The same, `steps` further: elements, or matrices of packed weights.
  BSource at(int64_t steps) const {
    return is_packed() ? BSource{plain, packed.at(steps)} : BSource{plain.at(steps), packed};
  }
};

struct Problem {
  int64_t m = 0, n = 0, k = 0;
  DType compute = DType::kFloat32;  // the type that kernels multiply and accumulate in; kInt8: see
                                    // `quantization`
  Operand a;                        // M x K
  BSource b;                        // K x N
  OutputOperand y;                  // M x N
  Epilogue epilogue{};
  std::span<const BatchAxis> batch{};  // of many products: the outermost first, and last those
                                       // along which b stays the same; no size is 0 or 1
  Quantization quantization{};
  Carry carry{};

  // The axes of `batch` along which b changes, and those behind, along which it does not.
  std::span<const BatchAxis> batch_of_b() const {
    return batch.first(batch.size() - batch_sharing_b().size());
  }
  std::span<const BatchAxis> batch_sharing_b() const {
    size_t count = 0;
    while (count < batch.size() && batch[batch.size() - count - 1].b == 0) ++count;
    return batch.last(count);
  }
};

// The same product of a problem without a batch, as Y' = B' A': M and N are exchanged.
inline Problem transposed(const Problem& problem) {
  Problem other = problem;
  std::swap(other.m, other.n);
  std::swap(other.a, other.b.plain);
  for (Operand* operand : {&other.a, &other.b.plain, &other.epilogue.c})
    std::swap(operand->row_stride, operand->col_stride);
  std::swap(other.y.row_stride, other.y.col_stride);
  return other;
}

// Products along all of these axes.
inline int64_t products_of(std::span<const BatchAxis> axes) {
  int64_t products = 1;
  for (const BatchAxis& axis : axes) products *= axis.size;
  return products;
}

}  // namespace wgemm
