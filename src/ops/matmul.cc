// oneDNN Graph MatMul: https://uxlfoundation.github.io/oneDNN/dev_guide_op_matmul.html
#include <algorithm>

#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/tensor_check.h"

namespace wgemm {
namespace {

constexpr const char* kOp = "matmul";

// src or weights: a stack of matrices. A vector is a matrix of one row (src) or one column
// (weights), and no flag transposes it.
struct Stack {
  std::span<const int64_t> batch;  // sizes of the axes in front of the matrix
  int64_t rows = 1, cols = 1;
  int64_t row_stride = 0, col_stride = 0;
  bool is_vector = false;
};

Stack make_stack(const PackedWeights& weights) {
  return {.batch = weights.batch(), .rows = weights.k(), .cols = weights.n()};
}

Stack make_stack(const ConstTensor& t, bool transposed, bool is_src) {
  const size_t rank = t.dims.size();
  Stack stack{.batch = t.dims.first(rank < 2 ? 0 : rank - 2), .is_vector = rank == 1};
  if (stack.is_vector) {
    (is_src ? stack.cols : stack.rows) = t.dims[0];
    (is_src ? stack.col_stride : stack.row_stride) = tensor_stride(t.dims, t.strides, 0);
    return stack;
  }
  const size_t row = transposed ? rank - 1 : rank - 2, col = transposed ? rank - 2 : rank - 1;
  stack.rows = t.dims[row];
  stack.cols = t.dims[col];
  stack.row_stride = tensor_stride(t.dims, t.strides, row);
  stack.col_stride = tensor_stride(t.dims, t.strides, col);
  return stack;
}

// Stride of `t` along axis `axis` of a shape of rank `rank` that it broadcasts to, aligned at the
// right.
template <typename T>
int64_t broadcast_stride(const BasicTensor<T>& t, size_t axis, size_t rank) {
  const size_t missing = rank - t.dims.size();
  if (axis < missing || t.dims[axis - missing] == 1) return 0;
  return tensor_stride(t.dims, t.strides, axis - missing);
}

int64_t size_at(std::span<const int64_t> batch, size_t axis, size_t rank) {
  const size_t missing = rank - batch.size();
  return axis < missing ? 1 : batch[axis - missing];
}

Status check_operand(const char* name, const ConstTensor& t, bool with_data) {
  if (Status s = check_tensor(kOp, name, t, with_data && t.remote == nullptr); !s.ok()) return s;
  if (gemm_since(t.dtype) == 0) {
    return error(Code::kDType, kOp, name,
                 {name, " has type ", dtype_name(t.dtype),
                  ", which MatMul does not have; 8-bit operands are for qgemm"});
  }
  if (t.dims.empty())
    return error(Code::kShape, kOp, name, {name, " has rank 0; it must have rank 1 or more"});
  return {};
}

Status check_same_dtype(const char* name, DType found, DType wanted) {
  if (found == wanted) return {};
  return error(Code::kDType, kOp, name,
               {name, " has type ", dtype_name(found), " and src has type ", dtype_name(wanted),
                "; they must be the same"});
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
  if (Status s = check_output_strides(kOp, "dst", dst); !s.ok()) return s;
  if (Status s = check_overlap(dst, "src", args.src); !s.ok()) return s;
  if (args.packed_weights == nullptr) {
    if (Status s = check_overlap(dst, "weights", args.weights); !s.ok()) return s;
  }
  if (args.bias != nullptr && tensors_overlap(dst, *args.bias) && !tensors_equal(dst, *args.bias)) {
    return error(Code::kArgument, kOp, "dst",
                 {"dst overlaps bias in memory and is not exactly bias; it must be, with shape and "
                  "strides, or lie apart"});
  }
  return {};
}

// Fewer axes of the batch, to the same effect: an axis whose every operand goes on where the next
// one ends is one with it.
size_t merge_axes(BatchAxis* axes, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    const BatchAxis& inner = axes[i];
    if (inner.size == 1) continue;
    const auto goes_on = [&](const BatchAxis& outer) {
      return outer.a == inner.a * inner.size && outer.b == inner.b * inner.size &&
             outer.c == inner.c * inner.size && outer.y == inner.y * inner.size;
    };
    if (kept > 0 && goes_on(axes[kept - 1])) {
      const int64_t size = axes[kept - 1].size * inner.size;
      axes[kept - 1] = inner;
      axes[kept - 1].size = size;
    } else {
      axes[kept++] = inner;
    }
  }
  return kept;
}

// Makes an axis along which weights stay the same part of M, if rows go on from matrix to matrix.
// One tall product is faster than many.
bool merge_into_rows(const BatchAxis& axis, Problem* p) {
  const auto goes_on = [&](int64_t stride, int64_t row_stride) {
    return p->m == 1 || stride == p->m * row_stride;
  };
  if (!goes_on(axis.a, p->a.row_stride) || !goes_on(axis.y, p->y.row_stride)) return false;
  if (p->epilogue.has_c && !goes_on(axis.c, p->epilogue.c.row_stride)) return false;
  if (p->m == 1) {
    p->a.row_stride = axis.a;
    p->y.row_stride = axis.y;
    p->epilogue.c.row_stride = axis.c;
  }
  p->m *= axis.size;
  return true;
}

}  // namespace

Status matmul_problem(const MatMulArgs& args, bool with_data, MatMulProblem* result) {
  const bool with_dst = with_data || args.dst.dims.data() != nullptr;
  const ConstTensor* bias = args.bias;
  if (Status s = check_operand("src", args.src, with_data); !s.ok()) return s;
  const DType dtype = args.src.dtype;
  const bool packed = args.packed_weights != nullptr;
  const Stack src = make_stack(args.src, args.transpose_a != 0, true);
  if (packed) {
    if (Status s = check_packed(kOp, "weights", *args.packed_weights, PackFor::kGemm, "src",
                                args.src, args.transpose_a != 0 && !src.is_vector, src.cols,
                                args.transpose_b, "transpose_b");
        !s.ok()) {
      return s;
    }
  } else {
    if (Status s = check_operand("weights", args.weights, with_data); !s.ok()) return s;
    if (Status s = check_same_dtype("weights", args.weights.dtype, dtype); !s.ok()) return s;
  }
  const Stack weights = packed ? make_stack(*args.packed_weights)
                               : make_stack(args.weights, args.transpose_b != 0, false);
  if (bias != nullptr) {
    if (Status s = check_tensor(kOp, "bias", *bias, with_data && bias->remote == nullptr); !s.ok())
      return s;
    if (Status s = check_same_dtype("bias", bias->dtype, dtype); !s.ok()) return s;
  }
  // Of a dst that is yet to be made, the type counts.
  const Tensor given = with_dst ? args.dst : Tensor{.data = nullptr, .dtype = args.dst.dtype};
  if (Status s = check_tensor(kOp, "dst", given, with_data && given.remote == nullptr); !s.ok())
    return s;
  if (args.dst.dtype != dtype &&
      !(args.dst.dtype == DType::kFloat32 && compute_type(dtype) == DType::kFloat32)) {
    return error(
        Code::kDType, kOp, "dst",
        {"dst has type ", dtype_name(args.dst.dtype), " and src has type ", dtype_name(dtype),
         "; they must be the same, or float32 from float16 and bfloat16"});
  }

  if (src.cols != weights.rows) {
    return error(Code::kShape, kOp, "weights",
                 {"src", args.transpose_a != 0 && !src.is_vector ? " (transposed)" : "",
                  " has shape ", args.src.dims, " and weights",
                  args.transpose_b != 0 && !weights.is_vector ? " (transposed)" : "", " has shape ",
                  args.weights.dims, "; K is ", src.cols, " in src and ", weights.rows,
                  " in weights, and must be the same"});
  }
  const size_t batch_rank = std::max(src.batch.size(), weights.batch.size());
  int64_t* shape = result->shape;
  for (size_t axis = 0; axis < batch_rank; ++axis) {
    const int64_t a = size_at(src.batch, axis, batch_rank),
                  b = size_at(weights.batch, axis, batch_rank);
    if (a != b && a != 1 && b != 1) {
      return error(
          packed ? Code::kPackMismatch : Code::kShape, kOp, "weights",
          {"src has batch axes ", src.batch, " and weights has ", weights.batch,
           "; sizes of batch axes, aligned at the right, must be the same, or 1 in one of them"});
    }
    shape[axis] = a == 1 ? b : a;
  }
  size_t rank = batch_rank;
  if (!src.is_vector) shape[rank++] = src.rows;
  if (!weights.is_vector) shape[rank++] = weights.cols;
  result->rank = rank;
  const std::span<const int64_t> dst_shape(shape, rank);
  int64_t elements = 1;
  bool is_empty = false;
  for (const int64_t size : dst_shape) {
    if (size == 0)
      is_empty = true;
    else if (elements > kMaxElements / size)
      return error(Code::kShape, kOp, "dst",
                   {"dst would have shape ", dst_shape, ", of more than 2^53 elements"});
    else
      elements *= size;
  }
  if (bias != nullptr) {
    if (Status s = check_broadcast(kOp, "bias", bias->dims, dst_shape); !s.ok()) return s;
  }
  if (with_dst) {
    if (Status s = check_dst(args, dst_shape); !s.ok()) return s;
  }

  // Strides of dst along its axes; of one that is yet to be made, contiguous ones.
  const Tensor dst =
      with_dst ? args.dst : Tensor{.data = nullptr, .dtype = args.dst.dtype, .dims = dst_shape};
  const auto dst_stride = [&](size_t axis) { return tensor_stride(dst.dims, dst.strides, axis); };
  const auto bias_stride = [&](size_t axis) {
    return bias == nullptr ? 0 : broadcast_stride(*bias, axis, rank);
  };
  for (size_t axis = 0; axis < batch_rank; ++axis) {
    const auto stride_of = [&](std::span<const int64_t> batch, std::span<const int64_t> dims,
                               std::span<const int64_t> strides) {
      const size_t missing = batch_rank - batch.size();
      return axis < missing || batch[axis - missing] == 1
                 ? 0
                 : tensor_stride(dims, strides, axis - missing);
    };
    result->axes[axis] = {
        .size = shape[axis],
        .a = stride_of(src.batch, args.src.dims, args.src.strides),
        // Of packed weights: matrices.
        .b = packed ? stride_of(weights.batch, weights.batch, {})
                    : stride_of(weights.batch, args.weights.dims, args.weights.strides),
        .c = bias_stride(axis),
        .y = dst_stride(axis)};
  }
  const size_t row_axis = batch_rank, col_axis = rank - 1;
  const auto matrix = [&](auto stride) -> std::pair<int64_t, int64_t> {
    return {src.is_vector ? 0 : stride(row_axis), weights.is_vector ? 0 : stride(col_axis)};
  };
  const auto [y_rows, y_cols] = matrix(dst_stride);
  const auto [c_rows, c_cols] = matrix(bias_stride);

  Problem& p = result->problem;
  p = {};
  p.m = is_empty ? 0 : src.rows;
  p.n = is_empty ? 0 : weights.cols;
  p.k = src.cols;
  p.compute = compute_type(dtype);
  p.a = {static_cast<const std::byte*>(args.src.data), dtype, src.row_stride, src.col_stride};
  if (packed) {
    p.b.packed = prepacked_of(*args.packed_weights);
  } else {
    p.b.plain = {static_cast<const std::byte*>(args.weights.data), dtype, weights.row_stride,
                 weights.col_stride};
  }
  p.y = {static_cast<std::byte*>(dst.data), dst.dtype, y_rows, y_cols};
  if (Status s = check_activation(kOp, args.activation, dtype, &p.epilogue.bounds); !s.ok())
    return s;
  p.epilogue.has_c = bias != nullptr;
  if (bias != nullptr)
    p.epilogue.c = {static_cast<const std::byte*>(bias->data), dtype, c_rows, c_cols};

  BatchAxis* axes = result->axes;
  size_t count = merge_axes(axes, batch_rank);
  // Axes along which weights stay the same go last, so that what is packed of them serves all of
  // these.
  size_t first_shared = 0;
  for (size_t i = 0; i < count; ++i) {
    if (axes[i].b != 0) std::rotate(axes + first_shared++, axes + i, axes + i + 1);
  }
  for (size_t i = count; i-- > first_shared;) {
    if (!merge_into_rows(axes[i], &p)) continue;
    std::copy(axes + i + 1, axes + count, axes + i);
    --count;
  }
  p.batch = {axes, count};
  return {};
}

}  // namespace wgemm
