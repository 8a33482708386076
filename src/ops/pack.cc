// Checks the arguments of pack(), and that packed weights may replace an operand.
#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/tensor_check.h"

namespace wgemm {
Status pack_problem(const char* op, const char* name, const PackArgs& args, PackProblem* problem) {
  const ConstTensor& b = args.B;
  WGEMM_RETURN_IF_ERROR(check_tensor(op, name, b, true));
  if (args.op > PackFor::kMatMulNBits) {
    return error(Code::kArgument, op, "op",
                 {"op is the unknown operation %; see PackFor", static_cast<int64_t>(args.op)});
  }
  if (args.op == PackFor::kMatMulNBits) {
    return error(Code::kArgument, op, "op",
                 {"op is matmulNBits and % is a tensor; it must be NBitsWeights", name});
  }
  const bool is_8bit = compute_type(b.dtype) == DType::kInt8,
             wants_8bit = args.op == PackFor::kQGemm;
  if (is_8bit != wants_8bit) {
    return error(
        Code::kDType, op, name,
        {"% has type %%", name, dtype_name(b.dtype),
         wants_8bit ? "; for qgemm it must be int8 or uint8" : "; 8-bit weights are for qgemm"});
  }
  const size_t rank = b.dims.size();
  if (rank < 2) {
    return error(Code::kShape, op, name,
                 {"% has shape % of rank %; it must have rank 2 or more", name, b.dims,
                  static_cast<int64_t>(rank)});
  }
  const DType as = args.as.value_or(b.dtype);
  if (as != b.dtype && !(b.dtype == DType::kFloat32 && is_half(as))) {
    const bool is_known = static_cast<int>(as) < kDTypeCount;
    return error(Code::kDType, op, "as",
                 {"as is % and % has type %; it must be %%",
                  is_known ? dtype_name(as) : "an unknown type", name, dtype_name(b.dtype),
                  dtype_name(b.dtype), b.dtype == DType::kFloat32 ? ", float16 or bfloat16" : ""});
  }
  const size_t row = args.trans != 0 ? rank - 1 : rank - 2,
               col = args.trans != 0 ? rank - 2 : rank - 1;
  PackProblem& p = *problem;
  p.b = operand_of(b, tensor_stride(b.dims, b.strides, row), tensor_stride(b.dims, b.strides, col));
  p.op = args.op;
  p.as = as;
  p.k = b.dims[row];
  p.n = b.dims[col];
  p.batch = b.dims.first(rank - 2);
  for (size_t axis = 0; axis < p.batch.size(); ++axis) {
    p.matrices *= p.batch[axis];
    p.strides[axis] = tensor_stride(b.dims, b.strides, axis);
  }
  return {};
}

Status check_packed_for(const char* op, const char* name, const PackedWeights& weights,
                        PackFor expected) {
  if (weights.empty())
    return error(Code::kArgument, op, name, {"% is an empty PackedWeights; pack() fills it", name});
  if (weights.op() == expected) return {};
  constexpr const char* kOperations[] = {"gemm and matmul", "qgemm", "matmulNBits"};
  return error(
      Code::kPackMismatch, op, name,
      {"% is packed for %; pack it for %", name, kOperations[static_cast<int>(weights.op())],
       expected == PackFor::kQGemm ? "qgemm" : op});
}

Status check_packed(const char* op, const char* name, const PackedWeights& weights,
                    PackFor expected, const char* other, const ConstTensor& a, bool a_transposed,
                    int64_t k, int64_t transpose, const char* flag) {
  WGEMM_RETURN_IF_ERROR(check_packed_for(op, name, weights, expected));
  if (transpose != 0) {
    return error(Code::kArgument, op, flag,
                 {"% is set and % is packed; transpose when packing, by trans", flag, name});
  }
  if (expected != PackFor::kQGemm && weights.dtype() != a.dtype &&
      !(a.dtype == DType::kFloat32 && is_half(weights.dtype()))) {
    return error(Code::kDType, op, name,
                 {"% is packed as % and % has type %; they must be the same, or float16 or "
                  "bfloat16 for a float32 %",
                  name, dtype_name(weights.dtype()), other, dtype_name(a.dtype), other});
  }
  const int64_t shape[2] = {weights.k(), weights.n()};
  return check_same_k(op, {other, a.dims, a_transposed, "", k},
                      {name, shape, false, "", weights.k(), true});
}

}  // namespace wgemm
