// Products of stacks of matrices. The last two axes of a tensor are the matrix. The axes before
// them are batch axes, aligned at the right and broadcast in both directions, as in NumPy. A vector
// is a 1 x K matrix on the left and a K x 1 matrix on the right, and no flag transposes it. Only
// ops/ includes this. Sizes and strides count elements.
#pragma once

#include "ops/ops.h"

namespace wgemm {

struct Stack {
  std::span<const int64_t> dims, strides;  // of the tensor; of packed weights, the batch axes
  size_t batch_rank = 0;                   // number of axes in front of the matrix
  int64_t rows = 1, cols = 1;
  int64_t row_stride = 0, col_stride = 0;
  bool is_vector = false;
  bool is_transposed = false;

  std::span<const int64_t> batch() const { return dims.first(batch_rank); }
};

// Checks that a tensor can be a stack.
Status check_stack_rank(const char* op, const char* name, std::span<const int64_t> dims);

Stack make_stack(const PackedWeights& weights);
Stack make_stack(const ConstTensor& t, bool transposed, bool is_left);

// The names of the operation, its two stacks and the result in errors, and the arguments that
// transpose the stacks.
struct ProductNames {
  const char *op, *a, *b, *y, *trans_a, *trans_b;
};

// A product of two stacks: their tensors, and the packed weights that replace `b` or null.
struct StackProduct {
  ProductNames names;
  const ConstTensor &a, &b;
  const PackedWeights* packed_b;
  Stack left{}, right{};

  size_t batch_rank() const {
    return left.batch_rank < right.batch_rank ? right.batch_rank : left.batch_rank;
  }
};

// Checks that both stacks have the same K and that their batch axes broadcast. Writes the shape and
// rank of the result.
Status check_shapes(const StackProduct& product, MatMulProblem* result);

// Writes the sizes, the operands and the batch axes of a product with checked shapes. The axes are
// not merged yet. `c` broadcasts to Y; null: absent. The problem must be newly constructed.
void write_product(const StackProduct& product, const ConstTensor* c, const Tensor& y,
                   MatMulProblem* result);

// Stride of a tensor along axis `axis` of a shape of rank `rank`; 0 if the tensor repeats along it.
// Broadcasting aligns `broadcast`, the first axes of `dims`, with that shape.
int64_t stride_at(std::span<const int64_t> dims, std::span<const int64_t> strides,
                  std::span<const int64_t> broadcast, size_t axis, size_t rank);

// Merges the first `batch_rank` axes that write_product() wrote. Moves axes that share B behind the
// others, so that all their products use each packed block of B.
void write_batch(size_t batch_rank, MatMulProblem* result);

}  // namespace wgemm
