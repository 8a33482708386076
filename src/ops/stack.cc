#include "ops/stack.h"

#include <algorithm>

#include "base/error.h"
#include "base/types.h"
#include "ops/tensor_check.h"

namespace wgemm {

Status check_stack_rank(const char* op, const char* name, std::span<const int64_t> dims) {
  if (!dims.empty()) return {};
  return error(Code::kShape, op, name, {"% has rank 0; it must have rank 1 or more", name});
}

Stack make_stack(const PackedWeights& weights) {
  return {.dims = weights.batch(),
          .strides = {},
          .batch_rank = weights.batch().size(),
          .rows = weights.k(),
          .cols = weights.n()};
}

Stack make_stack(const ConstTensor& t, bool transposed, bool is_left) {
  const size_t rank = t.dims.size();
  Stack stack{.dims = t.dims, .strides = t.strides, .is_vector = rank == 1};
  if (stack.is_vector) {
    (is_left ? stack.cols : stack.rows) = t.dims[0];
    (is_left ? stack.col_stride : stack.row_stride) = tensor_stride(t.dims, t.strides, 0);
    return stack;
  }
  const size_t row = transposed ? rank - 1 : rank - 2, col = transposed ? rank - 2 : rank - 1;
  stack.batch_rank = rank - 2;
  stack.rows = t.dims[row];
  stack.cols = t.dims[col];
  stack.row_stride = tensor_stride(t.dims, t.strides, row);
  stack.col_stride = tensor_stride(t.dims, t.strides, col);
  stack.is_transposed = transposed;
  return stack;
}

namespace {

// Broadcasting aligns `dims` at the right with a shape of rank `rank`. Returns the axis of `dims`
// that meets the shape's axis `axis`; -1 if `dims` lacks it or has size 1 there.
int64_t aligned_axis(std::span<const int64_t> dims, size_t axis, size_t rank) {
  const size_t missing = rank - dims.size();
  if (axis < missing || dims[axis - missing] == 1) return -1;
  return static_cast<int64_t>(axis - missing);
}

int64_t size_at(std::span<const int64_t> dims, size_t axis, size_t rank) {
  const int64_t own = aligned_axis(dims, axis, rank);
  return own < 0 ? 1 : dims[static_cast<size_t>(own)];
}

// Broadcasts the batch axes to `shape`, the first `rank` sizes of Y.
Status broadcast_batch(const StackProduct& product, size_t rank, int64_t* shape) {
  const auto& [names, tensor_a, tensor_b, packed, left, right] = product;
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t a = size_at(left.batch(), axis, rank), b = size_at(right.batch(), axis, rank);
    if (a != b && a != 1 && b != 1) {
      return error(Code::kShape, names.op, names.b,
                   {"% has batch axes % and % has %; sizes of batch axes, aligned at the right, "
                    "must be the same, or 1 in one of them",
                    names.a, left.batch(), names.b, right.batch()});
    }
    shape[axis] = a == 1 ? b : a;
  }
  return {};
}

Status check_element_count(const ProductNames& names, std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size == 0) continue;
    if (elements > kMaxElements / size) {
      return error(Code::kShape, names.op, names.y,
                   {"% would have shape %, of more than 2^53 elements", names.y, shape});
    }
    elements *= size;
  }
  return {};
}

// Merges neighbouring axes along which every operand is contiguous. Returns the new number of axes.
size_t merge_axes(BatchAxis* axes, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    const BatchAxis& inner = axes[i];
    if (inner.size == 1) continue;
    const auto is_contiguous = [&](const BatchAxis& outer) {
      for (int v = 0; v < kQuantizationParams; ++v)
        if (outer.params[v] != inner.params[v] * inner.size) return false;
      return outer.a == inner.a * inner.size && outer.b == inner.b * inner.size &&
             outer.c == inner.c * inner.size && outer.y == inner.y * inner.size;
    };
    if (kept > 0 && is_contiguous(axes[kept - 1])) {
      const int64_t size = axes[kept - 1].size * inner.size;
      axes[kept - 1] = inner;
      axes[kept - 1].size = size;
    } else {
      axes[kept++] = inner;
    }
  }
  return kept;
}

// Merges an axis that shares B into M, if the rows of every operand have one stride across
// matrices. One tall product is faster than many.
bool merge_into_rows(const BatchAxis& axis, Problem* p) {
  struct Rows {
    int64_t stride, *row_stride;
  };
  Quantization& q = p->quantization;
  const Rows all[] = {{axis.a, &p->a.row_stride},
                      {axis.y, &p->y.row_stride},
                      {axis.c, &p->epilogue.c.row_stride},
                      {axis.params[kAScale], &q.params[kAScale].row_stride},
                      {axis.params[kAZeroPoint], &q.params[kAZeroPoint].row_stride},
                      {axis.params[kYScale], &q.params[kYScale].row_stride},
                      {axis.params[kYZeroPoint], &q.params[kYZeroPoint].row_stride}};
  for (const auto& [stride, row_stride] : all)
    if (p->m != 1 && stride != p->m * *row_stride) return false;
  if (p->m == 1) {
    for (const auto& [stride, row_stride] : all) *row_stride = stride;
  }
  p->m *= axis.size;
  return true;
}

}  // namespace

int64_t stride_at(std::span<const int64_t> dims, std::span<const int64_t> strides,
                  std::span<const int64_t> broadcast, size_t axis, size_t rank) {
  const int64_t own = aligned_axis(broadcast, axis, rank);
  return own < 0 ? 0 : tensor_stride(dims, strides, static_cast<size_t>(own));
}

Status check_shapes(const StackProduct& product, MatMulProblem* result) {
  const auto& [names, a, b, packed, left, right] = product;
  WGEMM_RETURN_IF_ERROR(
      check_same_k(names.op, {names.a, a.dims, left.is_transposed, names.trans_a, left.cols},
                   {names.b, b.dims, right.is_transposed, names.trans_b, right.rows}));
  size_t rank = product.batch_rank();
  WGEMM_RETURN_IF_ERROR(broadcast_batch(product, rank, result->shape));
  if (!left.is_vector) result->shape[rank++] = left.rows;
  if (!right.is_vector) result->shape[rank++] = right.cols;
  result->rank = rank;
  return check_element_count(names, {result->shape, rank});
}

void write_product(const StackProduct& product, const ConstTensor* c, const Tensor& y,
                   MatMulProblem* result) {
  const ConstTensor &a = product.a, &b = product.b;
  const Stack &left = product.left, &right = product.right;  // Clang 14 captures no bindings
  const PackedWeights* const packed = product.packed_b;
  const size_t rank = result->rank, batch_rank = product.batch_rank();
  const auto y_stride = [&](size_t axis) { return tensor_stride(y.dims, y.strides, axis); };
  const auto c_stride = [&](size_t axis) {
    return c == nullptr ? 0 : stride_at(c->dims, c->strides, c->dims, axis, rank);
  };
  const auto batch_stride = [&](const Stack& stack, size_t axis) {
    return stride_at(stack.dims, stack.strides, stack.batch(), axis, batch_rank);
  };
  for (size_t axis = 0; axis < batch_rank; ++axis) {
    result->axes[axis] = {.size = result->shape[axis],
                          .a = batch_stride(left, axis),
                          .b = batch_stride(right, axis),
                          .c = c_stride(axis),
                          .y = y_stride(axis),
                          .params = {}};
  }
  const bool is_empty = std::ranges::count(y.dims, 0) != 0;
  Problem& p = result->problem;
  p.m = is_empty ? 0 : left.rows;
  p.n = is_empty ? 0 : right.cols;
  p.k = left.cols;
  p.compute = compute_type(a.dtype);
  p.a = operand_of(a, left.row_stride, left.col_stride);
  if (packed != nullptr) {
    p.b.packed = prepacked_of(*packed);
  } else {
    p.b.plain = operand_of(b, right.row_stride, right.col_stride);
  }
  const auto row = [&](auto stride) { return left.is_vector ? 0 : stride(batch_rank); };
  const auto col = [&](auto stride) { return right.is_vector ? 0 : stride(rank - 1); };
  p.y = operand_of(y, row(y_stride), col(y_stride));
  p.epilogue.has_c = c != nullptr;
  if (c != nullptr) p.epilogue.c = operand_of(*c, row(c_stride), col(c_stride));
}

void write_batch(size_t batch_rank, MatMulProblem* result) {
  BatchAxis* axes = result->axes;
  size_t count = merge_axes(axes, batch_rank);
  size_t first_shared = 0;
  for (size_t i = 0; i < count; ++i) {
    if (axes[i].shares_b()) continue;
    const BatchAxis axis = axes[i];
    std::copy_backward(axes + first_shared, axes + i, axes + i + 1);
    axes[first_shared++] = axis;
  }
  for (size_t i = count; i-- > first_shared;) {
    if (!merge_into_rows(axes[i], &result->problem)) continue;
    std::copy(axes + i + 1, axes + count, axes + i);
    --count;
  }
  result->problem.batch = {axes, count};
}

}  // namespace wgemm
