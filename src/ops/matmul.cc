// oneDNN Graph MatMul: https://uxlfoundation.github.io/oneDNN/dev_guide_op_matmul.html
#include "base/error.h"
#include "base/types.h"
#include "ops/stack.h"
#include "ops/tensor_check.h"

namespace wgemm {
namespace {

constexpr const char* kOp = "matmul";
constexpr ProductNames kNames = {kOp, "src", "weights", "dst", "transpose_a", "transpose_b"};

Status check_stack(const char* name, const ConstTensor& t, bool with_data) {
  WGEMM_RETURN_IF_ERROR(check_operand(kOp, name, t, with_data));
  if (gemm_since(t.dtype) == 0) {
    return error(Code::kDType, kOp, name,
                 {"% has type %, which MatMul does not have; 8-bit operands are for qgemm", name,
                  dtype_name(t.dtype)});
  }
  return check_stack_rank(kOp, name, t.dims);
}

Status check_dst(const MatMulArgs& args, std::span<const int64_t> shape) {
  const Tensor& dst = args.dst;
  const char* const rule = "only bias may be written over";
  const ConstTensor* const weights = args.packed_weights == nullptr ? &args.weights : nullptr;
  WGEMM_RETURN_IF_ERROR(check_output(kOp, "dst", dst, shape));
  WGEMM_RETURN_IF_ERROR(check_overlap(kOp, "dst", dst, "src", &args.src, rule));
  WGEMM_RETURN_IF_ERROR(check_overlap(kOp, "dst", dst, "weights", weights, rule));
  return check_overwritten(kOp, "dst", dst, "bias", args.bias);
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
               {"dst has type % and src has type %; they must be the same, or float32 from float16 "
                "and bfloat16",
                dtype_name(dst.dtype), dtype_name(dtype)});
}

}  // namespace

Status matmul_problem(const MatMulArgs& args, bool with_data, MatMulProblem* result) {
  const bool with_dst = with_data || args.dst.dims.data() != nullptr;
  StackProduct product{kNames, args.src, args.weights, args.packed_weights};
  WGEMM_RETURN_IF_ERROR(check_src_weights(args, with_data, &product.left, &product.right));
  WGEMM_RETURN_IF_ERROR(check_bias_dst(args, with_data, with_dst));
  WGEMM_RETURN_IF_ERROR(check_shapes(product, result));
  const std::span<const int64_t> shape(result->shape, result->rank);
  if (args.bias != nullptr)
    WGEMM_RETURN_IF_ERROR(check_broadcast(kOp, "bias", args.bias->dims, shape));
  if (with_dst) WGEMM_RETURN_IF_ERROR(check_dst(args, shape));
  // If the caller has no dst yet, it will be contiguous.
  const Tensor dst =
      with_dst ? args.dst : Tensor{.data = nullptr, .dtype = args.dst.dtype, .dims = shape};
  write_product(product, args.bias, dst, result);
  Epilogue& epilogue = result->problem.epilogue;
  WGEMM_RETURN_IF_ERROR(check_factor(kOp, "alpha", args.alpha, args.src.dtype, &epilogue.alpha));
  WGEMM_RETURN_IF_ERROR(check_activation(kOp, args.activation, args.src.dtype, &epilogue.bounds));
  write_batch(product.batch_rank(), result);
  return {};
}

}  // namespace wgemm
