// Operands of a product: A, B and C to read, Y to write. Later stages ask for one block at a time.
// So an operand need not be in memory as a whole. out_of_core/ makes operands of the blocks that it
// has copied to memory. Operands and blocks are views; the caller owns the elements. All strides
// count elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wgemm.h"

namespace wgemm {

// A rectangle of elements in memory: element (i, j) is data[i * row_stride + j * col_stride].
template <typename Byte>
struct BasicBlock {
  Byte* data = nullptr;
  int64_t row_stride = 0, col_stride = 0;
};
using ConstBlock = BasicBlock<const std::byte>;
using Block = BasicBlock<std::byte>;

template <typename Byte>
struct BasicOperand {
  Byte* base = nullptr;  // element (0, 0)
  DType dtype = DType::kFloat32;
  int64_t row_stride = 0, col_stride = 0;

  // The same operand, `elements` later in memory.
  BasicOperand at(int64_t elements) const {
    if (base == nullptr) return *this;  // an operand without elements
    return {base + elements * static_cast<int64_t>(dtype_bytes(dtype)), dtype, row_stride,
            col_stride};
  }

  void advance(int64_t elements) {
    if (base != nullptr) base += elements * static_cast<int64_t>(dtype_bytes(dtype));
  }

  // The block of `rows` by `cols` elements at (row, col), valid for the whole call. Ask for a block
  // when you need it, and for no more than you need.
  BasicBlock<Byte> block(int64_t row, int64_t col, [[maybe_unused]] int64_t rows,
                         [[maybe_unused]] int64_t cols) const {
    const int64_t offset =
        (row * row_stride + col * col_stride) * static_cast<int64_t>(dtype_bytes(dtype));
    return {base + offset, row_stride, col_stride};
  }
};
using Operand = BasicOperand<const std::byte>;
using OutputOperand = BasicOperand<std::byte>;

}  // namespace wgemm
