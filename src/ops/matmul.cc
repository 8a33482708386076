// oneDNN Graph MatMul: https://uxlfoundation.github.io/oneDNN/dev_guide_op_matmul.html
#include <algorithm>

#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/tensor_check.h"

namespace wgemm {
namespace {

constexpr const char* kOp = "matmul";

// src or weights: a stack of matrices. A vector is a 1 x K (src) or K x 1 (weights) matrix, and no
// flag transposes it. Strides count elements.
struct Stack {
  std::span<const int64_t> dims, strides;  // of the tensor; of packed weights, the batch axes
  size_t batch_rank = 0;                   // number of axes in front of the matrix
  int64_t rows = 1, cols = 1;
  int64_t row_stride = 0, col_stride = 0;
  bool is_vector = false;
  bool is_transposed = false;

  std::span<const int64_t> batch() const { return dims.first(batch_rank); }
};

Stack make_stack(const PackedWeights& weights) {
  return {.dims = weights.batch(),
          .strides = {},
          .batch_rank = weights.batch().size(),
          .rows = weights.k(),
          .cols = weights.n()};
}

Stack make_stack(const ConstTensor& t, bool transposed, bool is_src) {
  const size_t rank = t.dims.size();
  Stack stack{.dims = t.dims, .strides = t.strides, .is_vector = rank == 1};
  if (stack.is_vector) {
    (is_src ? stack.cols : stack.rows) = t.dims[0];
    (is_src ? stack.col_stride : stack.row_stride) = tensor_stride(t.dims, t.strides, 0);
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

// Stride of a tensor along axis `axis` of a shape of rank `rank`; 0 if the tensor repeats along it.
// Broadcasting aligns `broadcast`, the first axes of `dims`, with that shape.
int64_t stride_at(std::span<const int64_t> dims, std::span<const int64_t> strides,
                  std::span<const int64_t> broadcast, size_t axis, size_t rank) {
  const int64_t own = aligned_axis(broadcast, axis, rank);
  return own < 0 ? 0 : tensor_stride(dims, strides, static_cast<size_t>(own));
}

Status check_stack(const char* name, const ConstTensor& t, bool with_data) {
  WGEMM_RETURN_IF_ERROR(check_operand(kOp, name, t, with_data));
  if (gemm_since(t.dtype) == 0) {
    return error(Code::kDType, kOp, name,
                 {name, " has type ", dtype_name(t.dtype),
                  ", which MatMul does not have; 8-bit operands are for qgemm"});
  }
  if (t.dims.empty())
    return error(Code::kShape, kOp, name, {name, " has rank 0; it must have rank 1 or more"});
  return {};
}

Status check_overlap(const Tensor& dst, const char* name, const ConstTensor& x) {
  if (!tensors_overlap(dst, x)) return {};
  return error(Code::kArgument, kOp, "dst",
               {"dst overlaps ", name, " in memory; only bias may be written over"});
}

Status check_dst(const MatMulArgs& args, std::span<const int64_t> shape) {
  const Tensor& dst = args.dst;
  if (!std::ranges::equal(dst.dims, shape)) {
    return error(Code::kShape, kOp, "dst",
                 {"dst has shape ", dst.dims, "; the result has shape ", shape});
  }
  WGEMM_RETURN_IF_ERROR(check_output_strides(kOp, "dst", dst));
  WGEMM_RETURN_IF_ERROR(check_overlap(dst, "src", args.src));
  if (args.packed_weights == nullptr) {
    WGEMM_RETURN_IF_ERROR(check_overlap(dst, "weights", args.weights));
  }
  if (args.bias != nullptr && tensors_overlap(dst, *args.bias) && !tensors_equal(dst, *args.bias)) {
    return error(Code::kArgument, kOp, "dst",
                 {"dst overlaps bias in memory and is not exactly bias; it must be, with shape and "
                  "strides, or not overlap it"});
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

// Merges an axis that shares weights into M, if the rows of every operand have one stride across
// matrices. One tall product is faster than many.
bool merge_into_rows(const BatchAxis& axis, Problem* p) {
  const auto is_regular = [&](int64_t stride, int64_t row_stride) {
    return p->m == 1 || stride == p->m * row_stride;
  };
  if (!is_regular(axis.a, p->a.row_stride) || !is_regular(axis.y, p->y.row_stride)) return false;
  if (p->epilogue.has_c && !is_regular(axis.c, p->epilogue.c.row_stride)) return false;
  if (p->m == 1) {
    p->a.row_stride = axis.a;
    p->y.row_stride = axis.y;
    p->epilogue.c.row_stride = axis.c;
  }
  p->m *= axis.size;
  return true;
}

// Checks src and weights, and makes stacks of them.
Status check_src_weights(const MatMulArgs& args, bool with_data, Stack* src, Stack* weights) {
  WGEMM_RETURN_IF_ERROR(check_stack("src", args.src, with_data));
  *src = make_stack(args.src, args.transpose_a != 0, true);
  if (args.packed_weights != nullptr) {
    WGEMM_RETURN_IF_ERROR(check_packed(kOp, "weights", *args.packed_weights, PackFor::kGemm, "src",
                                       args.src, src->is_transposed, src->cols, args.transpose_b,
                                       "transpose_b"));
    *weights = make_stack(*args.packed_weights);
    return {};
  }
  WGEMM_RETURN_IF_ERROR(check_stack("weights", args.weights, with_data));
  *weights = make_stack(args.weights, args.transpose_b != 0, false);
  return check_same_dtype(kOp, "weights", args.weights.dtype, "src", args.src.dtype, true);
}

// Checks bias and dst by themselves. If the caller has no dst yet, only its type counts.
Status check_bias_dst(const MatMulArgs& args, bool with_data, bool with_dst) {
  const DType dtype = args.src.dtype;
  if (args.bias != nullptr) {
    WGEMM_RETURN_IF_ERROR(check_operand(kOp, "bias", *args.bias, with_data));
    WGEMM_RETURN_IF_ERROR(check_same_dtype(kOp, "bias", args.bias->dtype, "src", dtype));
  }
  const Tensor dst = with_dst ? args.dst : Tensor{.data = nullptr, .dtype = args.dst.dtype};
  WGEMM_RETURN_IF_ERROR(check_operand(kOp, "dst", dst, with_data));
  if (dst.dtype == dtype ||
      (dst.dtype == DType::kFloat32 && compute_type(dtype) == DType::kFloat32))
    return {};
  return error(Code::kDType, kOp, "dst",
               {"dst has type ", dtype_name(dst.dtype), " and src has type ", dtype_name(dtype),
                "; they must be the same, or float32 from float16 and bfloat16"});
}

Status check_k(const MatMulArgs& args, const Stack& src, const Stack& weights) {
  if (src.cols == weights.rows) return {};
  return error(Code::kShape, kOp, "weights",
               {"src", src.is_transposed ? " (transposed)" : "", " has shape ", args.src.dims,
                " and weights", weights.is_transposed ? " (transposed)" : "", " has shape ",
                args.weights.dims, "; K is ", src.cols, " in src and ", weights.rows,
                " in weights, and must be the same"});
}

// Broadcasts the batch axes of src and weights to `shape`, the first `rank` sizes of dst.
Status broadcast_batch(const MatMulArgs& args, const Stack& src, const Stack& weights, size_t rank,
                       int64_t* shape) {
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t a = size_at(src.batch(), axis, rank), b = size_at(weights.batch(), axis, rank);
    if (a != b && a != 1 && b != 1) {
      return error(
          args.packed_weights != nullptr ? Code::kPackMismatch : Code::kShape, kOp, "weights",
          {"src has batch axes ", src.batch(), " and weights has ", weights.batch(),
           "; sizes of batch axes, aligned at the right, must be the same, or 1 in one of them"});
    }
    shape[axis] = a == 1 ? b : a;
  }
  return {};
}

Status check_element_count(std::span<const int64_t> dst_shape) {
  int64_t elements = 1;
  for (const int64_t size : dst_shape) {
    if (size == 0) continue;
    if (elements > kMaxElements / size) {
      return error(Code::kShape, kOp, "dst",
                   {"dst would have shape ", dst_shape, ", of more than 2^53 elements"});
    }
    elements *= size;
  }
  return {};
}

// Checks shapes against each other, and writes the shape and rank of dst.
Status check_shapes(const MatMulArgs& args, const Stack& src, const Stack& weights,
                    MatMulProblem* result) {
  WGEMM_RETURN_IF_ERROR(check_k(args, src, weights));
  size_t rank = std::max(src.batch_rank, weights.batch_rank);
  WGEMM_RETURN_IF_ERROR(broadcast_batch(args, src, weights, rank, result->shape));
  if (!src.is_vector) result->shape[rank++] = src.rows;
  if (!weights.is_vector) result->shape[rank++] = weights.cols;
  result->rank = rank;
  const std::span<const int64_t> dst_shape(result->shape, rank);
  WGEMM_RETURN_IF_ERROR(check_element_count(dst_shape));
  if (args.bias == nullptr) return {};
  return check_broadcast(kOp, "bias", args.bias->dims, dst_shape);
}

// Writes the sizes, the operands and the batch axes, which are not merged yet.
void write_problem(const MatMulArgs& args, const Stack& src, const Stack& weights,
                   const Tensor& dst, MatMulProblem* result) {
  const size_t rank = result->rank, batch_rank = std::max(src.batch_rank, weights.batch_rank);
  const ConstTensor* bias = args.bias;
  const auto y_stride = [&](size_t axis) { return tensor_stride(dst.dims, dst.strides, axis); };
  const auto c_stride = [&](size_t axis) {
    return bias == nullptr ? 0 : stride_at(bias->dims, bias->strides, bias->dims, axis, rank);
  };
  const auto batch_stride = [&](const Stack& stack, size_t axis) {
    return stride_at(stack.dims, stack.strides, stack.batch(), axis, batch_rank);
  };
  for (size_t axis = 0; axis < batch_rank; ++axis) {
    result->axes[axis] = {.size = result->shape[axis],
                          .a = batch_stride(src, axis),
                          .b = batch_stride(weights, axis),
                          .c = c_stride(axis),
                          .y = y_stride(axis)};
  }
  const bool is_empty = std::ranges::count(dst.dims, 0) != 0;
  Problem& p = result->problem;
  p = {};
  p.m = is_empty ? 0 : src.rows;
  p.n = is_empty ? 0 : weights.cols;
  p.k = src.cols;
  p.compute = compute_type(args.src.dtype);
  p.a = operand_of(args.src, src.row_stride, src.col_stride);
  if (args.packed_weights != nullptr) {
    p.b.packed = prepacked_of(*args.packed_weights);
  } else {
    p.b.plain = operand_of(args.weights, weights.row_stride, weights.col_stride);
  }
  const auto row = [&](auto stride) { return src.is_vector ? 0 : stride(batch_rank); };
  const auto col = [&](auto stride) { return weights.is_vector ? 0 : stride(rank - 1); };
  p.y = operand_of(dst, row(y_stride), col(y_stride));
  p.epilogue.has_c = bias != nullptr;
  if (bias == nullptr) return;
  p.epilogue.c = operand_of(*bias, row(c_stride), col(c_stride));
}

// Merges the batch axes, and moves those that share weights behind the others, so that all their
// products use each packed block of B.
void write_batch(size_t batch_rank, MatMulProblem* result) {
  BatchAxis* axes = result->axes;
  size_t count = merge_axes(axes, batch_rank);
  size_t first_shared = 0;
  for (size_t i = 0; i < count; ++i) {
    if (axes[i].b != 0) std::rotate(axes + first_shared++, axes + i, axes + i + 1);
  }
  for (size_t i = count; i-- > first_shared;) {
    if (!merge_into_rows(axes[i], &result->problem)) continue;
    std::copy(axes + i + 1, axes + count, axes + i);
    --count;
  }
  result->problem.batch = {axes, count};
}

}  // namespace

Status matmul_problem(const MatMulArgs& args, bool with_data, MatMulProblem* result) {
  const bool with_dst = with_data || args.dst.dims.data() != nullptr;
  Stack src, weights;
  WGEMM_RETURN_IF_ERROR(check_src_weights(args, with_data, &src, &weights));
  WGEMM_RETURN_IF_ERROR(check_bias_dst(args, with_data, with_dst));
  WGEMM_RETURN_IF_ERROR(check_shapes(args, src, weights, result));
  const std::span<const int64_t> shape(result->shape, result->rank);
  if (with_dst) WGEMM_RETURN_IF_ERROR(check_dst(args, shape));
  // If the caller has no dst yet, it will be contiguous.
  const Tensor dst =
      with_dst ? args.dst : Tensor{.data = nullptr, .dtype = args.dst.dtype, .dims = shape};
  write_problem(args, src, weights, dst, result);
  Epilogue& epilogue = result->problem.epilogue;
  WGEMM_RETURN_IF_ERROR(check_factor(kOp, "alpha", args.alpha, args.src.dtype, &epilogue.alpha));
  WGEMM_RETURN_IF_ERROR(check_activation(kOp, args.activation, args.src.dtype, &epilogue.bounds));
  write_batch(std::max(src.batch_rank, weights.batch_rank), result);
  return {};
}

}  // namespace wgemm
