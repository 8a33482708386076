// ONNX Gemm, opsets 1 to 13: https://onnx.ai/onnx/operators/onnx__Gemm.html
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/tensor_check.h"

namespace wgemm {
namespace {

constexpr const char* kOp = "gemm";

// A version of the operator, and how it differs from other versions.
struct Version {
  int64_t since;
  bool c_optional;
  bool has_broadcast;
};
constexpr Version kVersions[] = {{1, false, true},  {6, false, true},  {7, false, false},
                                 {9, false, false}, {11, true, false}, {13, true, false}};

Status make_scalars(const GemmArgs& args, Epilogue* epilogue) {
  const DType dtype = args.A.dtype;
  WGEMM_RETURN_IF_ERROR(check_factor(kOp, "alpha", args.alpha, dtype, &epilogue->alpha));
  WGEMM_RETURN_IF_ERROR(check_factor(kOp, "beta", args.beta, dtype, &epilogue->beta));
  if (args.alpha.is_exact() && !epilogue->beta.whole) {
    return error(Code::kArgument, kOp, "beta",
                 {"beta has a fraction and alpha is a 64-bit integer; beta must then be whole"});
  }
  if (args.beta.is_exact() && !epilogue->alpha.whole) {
    return error(Code::kArgument, kOp, "alpha",
                 {"alpha has a fraction and beta is a 64-bit integer; alpha must then be whole"});
  }
  return {};
}

// The newest version of Gemm that `opset` includes.
Status find_version(int64_t opset, Version* version) {
  if (opset < 1)
    return error(Code::kOpset, kOp, "opset", {"opset is %; it must be 1 or more", opset});
  const Version* newest = std::end(kVersions) - 1;
  while (newest->since > opset) --newest;
  *version = *newest;
  return {};
}

Status check_tensors(const GemmArgs& args, bool with_data, bool with_y) {
  WGEMM_RETURN_IF_ERROR(check_operand(kOp, "A", args.A, with_data));
  if (args.packed_B == nullptr) WGEMM_RETURN_IF_ERROR(check_operand(kOp, "B", args.B, with_data));
  if (args.C != nullptr) WGEMM_RETURN_IF_ERROR(check_operand(kOp, "C", *args.C, with_data));
  if (with_y) WGEMM_RETURN_IF_ERROR(check_operand(kOp, "Y", args.Y, with_data));
  return {};
}

// Checks the types of A, B and C, and that the version has these types, an absent C and
// `broadcast`.
Status check_types(const GemmArgs& args, const Version& version) {
  const DType dtype = args.A.dtype;
  const int64_t since = gemm_since(dtype);
  if (since == 0) {
    return error(Code::kDType, kOp, "A",
                 {"A has type %, which Gemm does not have; 8-bit operands are for qgemm",
                  dtype_name(dtype)});
  }
  if (since > version.since) {
    return error(Code::kOpset, kOp, "opset",
                 {"opset % means Gemm-%, which has no %; opset must be at least %", args.opset,
                  version.since, dtype_name(dtype), since});
  }
  if (args.packed_B == nullptr)
    WGEMM_RETURN_IF_ERROR(check_same_dtype(kOp, "B", args.B.dtype, "A", dtype, true));
  if (args.C != nullptr) {
    WGEMM_RETURN_IF_ERROR(check_same_dtype(kOp, "C", args.C->dtype, "A", dtype));
  } else if (!version.c_optional) {
    return error(Code::kOpset, kOp, "C",
                 {"opset % means Gemm-%, which demands C; C is optional from opset 11", args.opset,
                  version.since});
  }
  if (args.broadcast.has_value() && !version.has_broadcast) {
    return error(Code::kOpset, kOp, "broadcast",
                 {"opset % means Gemm-%, which has no attribute broadcast; C broadcasts by itself "
                  "from opset 7",
                  args.opset, version.since});
  }
  return {};
}

Status check_c_shape(const GemmArgs& args, const Version& version, int64_t m, int64_t n) {
  if (args.C == nullptr) return {};
  const int64_t y_shape[2] = {m, n};
  const bool broadcast = !version.has_broadcast || args.broadcast.value_or(0) != 0;
  if (!broadcast && !std::ranges::equal(args.C->dims, y_shape)) {
    return error(
        Code::kShape, kOp, "C",
        {"C has shape %; Gemm-% without broadcast demands exactly %, the shape of the result",
         args.C->dims, version.since, std::span<const int64_t>(y_shape)});
  }
  return check_broadcast(kOp, "C", args.C->dims, y_shape);
}

// Also writes the problem's M, N and K.
Status check_shapes(const GemmArgs& args, const Version& version, Problem* problem) {
  const ConstTensor &a = args.A, &b = args.B;
  WGEMM_RETURN_IF_ERROR(check_rank2(kOp, "A", a.dims));
  const bool ta = args.transA != 0, tb = args.transB != 0;
  const int64_t m = a.dims[ta ? 1 : 0], k = a.dims[ta ? 0 : 1];
  if (args.packed_B != nullptr) {
    const PackedWeights& packed = *args.packed_B;
    WGEMM_RETURN_IF_ERROR(
        check_packed(kOp, "B", packed, PackFor::kGemm, "A", a, ta, k, args.transB, "transB"));
    if (!packed.batch().empty()) {
      return error(
          Code::kShape, kOp, "B",
          {"B is packed with batch axes %; for % it must have rank 2", packed.batch(), kOp});
    }
    problem->n = packed.n();
  } else {
    WGEMM_RETURN_IF_ERROR(check_rank2(kOp, "B", b.dims));
    WGEMM_RETURN_IF_ERROR(check_same_k(kOp, {"A", a.dims, ta, "transA", k},
                                       {"B", b.dims, tb, "transB", b.dims[tb ? 1 : 0]}));
    problem->n = b.dims[tb ? 0 : 1];
  }
  problem->m = m;
  problem->k = k;
  WGEMM_RETURN_IF_ERROR(check_result(kOp, m, problem->n));
  return check_c_shape(args, version, m, problem->n);
}

Status check_y(const GemmArgs& args, int64_t m, int64_t n) {
  const Tensor& y = args.Y;
  const int64_t shape[2] = {m, n};
  const char* const rule = "only C may be written over";
  WGEMM_RETURN_IF_ERROR(check_same_dtype(kOp, "Y", y.dtype, "A", args.A.dtype));
  WGEMM_RETURN_IF_ERROR(check_output(kOp, "Y", y, shape));
  WGEMM_RETURN_IF_ERROR(check_overlap(kOp, "Y", y, "A", &args.A, rule));
  WGEMM_RETURN_IF_ERROR(
      check_overlap(kOp, "Y", y, "B", args.packed_B == nullptr ? &args.B : nullptr, rule));
  return check_overwritten(kOp, "Y", y, "C", args.C);
}

// Writes all except M, N, K, the factors and the bounds, which the checks write. It writes member
// by member, since copying a whole Problem takes longer than the rest of this file.
void write_problem(const GemmArgs& args, bool with_y, Problem* problem) {
  const DType dtype = args.A.dtype;
  Epilogue& epilogue = problem->epilogue;
  epilogue.has_c = args.C != nullptr && epilogue.beta.value != 0;
  if (epilogue.has_c) epilogue.c = broadcast_operand(*args.C);
  problem->compute = compute_type(dtype);
  problem->a = matrix_operand(args.A, args.transA != 0);
  write_b(args.B, args.transB != 0, args.packed_B, &problem->b);
  problem->y = with_y ? output_operand(args.Y) : OutputOperand{nullptr, dtype, problem->n, 1};
}

}  // namespace

Status gemm_problem(const GemmArgs& args, bool with_data, Problem* problem) {
  const bool with_y = with_data || args.Y.dims.data() != nullptr;
  Version version{};
  WGEMM_RETURN_IF_ERROR(find_version(args.opset, &version));
  WGEMM_RETURN_IF_ERROR(check_tensors(args, with_data, with_y));
  WGEMM_RETURN_IF_ERROR(check_types(args, version));
  WGEMM_RETURN_IF_ERROR(check_shapes(args, version, problem));
  if (with_y) WGEMM_RETURN_IF_ERROR(check_y(args, problem->m, problem->n));
  Epilogue& epilogue = problem->epilogue;
  WGEMM_RETURN_IF_ERROR(make_scalars(args, &epilogue));
  WGEMM_RETURN_IF_ERROR(check_activation(kOp, args.activation, args.A.dtype, &epilogue.bounds));
  write_problem(args, with_y, problem);
  return {};
}

}  // namespace wgemm
