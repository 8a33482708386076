// A times its transpose: BLAS's syrk, with the whole symmetric matrix as result.
#include <string_view>

#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/tensor_check.h"

namespace wgemm {
namespace {

constexpr const char* kOp = "syrk";

// Out-of-core calls cut Y into blocks that are not square.
template <typename T>
Status check_in_memory(const char* name, const BasicTensor<T>& tensor) {
  if (tensor.out_of_core == nullptr) return {};
  return error(Code::kArgument, kOp, name, {"% is out-of-core; it must be in memory", name});
}

Status check_tensors(const SyrkArgs& args, bool with_data, bool with_y) {
  WGEMM_RETURN_IF_ERROR(check_in_memory("A", args.A));
  WGEMM_RETURN_IF_ERROR(check_in_memory("Y", args.Y));
  WGEMM_RETURN_IF_ERROR(check_operand(kOp, "A", args.A, with_data));
  if (with_y) WGEMM_RETURN_IF_ERROR(check_operand(kOp, "Y", args.Y, with_data));
  const DType type = args.A.dtype;
  if (type != DType::kFloat32 && type != DType::kFloat64) {
    return error(Code::kDType, kOp, "A",
                 {"A has type %; it must be float32 or float64", dtype_name(type)});
  }
  return check_rank2(kOp, "A", args.A.dims);
}

Status check_y(const SyrkArgs& args, int64_t n) {
  const int64_t shape[2] = {n, n};
  WGEMM_RETURN_IF_ERROR(check_same_dtype(kOp, "Y", args.Y.dtype, "A", args.A.dtype));
  WGEMM_RETURN_IF_ERROR(check_output(kOp, "Y", args.Y, shape));
  return check_overlap(kOp, "Y", args.Y, "A", &args.A, "it must overlap no input");
}

}  // namespace

Status syrk_problem(const SyrkArgs& args, bool with_data, Problem* problem) {
  const bool with_y = with_data || args.Y.dims.data() != nullptr, is_transposed = args.transA != 0;
  WGEMM_RETURN_IF_ERROR(check_tensors(args, with_data, with_y));
  const DType type = args.A.dtype;
  const int64_t n = args.A.dims[is_transposed ? 1 : 0];
  WGEMM_RETURN_IF_ERROR(check_result(kOp, n, n));
  if (with_y) WGEMM_RETURN_IF_ERROR(check_y(args, n));
  WGEMM_RETURN_IF_ERROR(check_factor(kOp, "alpha", args.alpha, type, &problem->epilogue.alpha));
  problem->m = problem->n = n;
  problem->k = args.A.dims[is_transposed ? 0 : 1];
  problem->compute = compute_type(type);
  problem->a = matrix_operand(args.A, is_transposed);
  problem->b.plain = matrix_operand(args.A, !is_transposed);
  problem->y = with_y ? output_operand(args.Y) : OutputOperand{nullptr, type, n, 1};
  problem->triangle = Triangle::kLower;
  problem->mirrors = true;
  return {};
}

}  // namespace wgemm
