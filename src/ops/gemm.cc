// ONNX Gemm, opsets 1 to 13: https://onnx.ai/onnx/operators/onnx__Gemm.html
#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/tensor_check.h"

namespace wgemm {
namespace {

constexpr const char* kOp = "gemm";

// A version of the operator, and what it lacks.
struct Version {
  int64_t since;
  bool c_optional;
  bool has_broadcast;
};
constexpr Version kVersions[] = {{1, false, true},  {6, false, true},  {7, false, false},
                                 {9, false, false}, {11, true, false}, {13, true, false}};

Status check_dtype(const char* name, DType found, DType wanted) {
  if (found == wanted) return {};
  return error(Code::kDType, kOp, name,
               {name, " has type ", dtype_name(found), " and A has type ", dtype_name(wanted),
                "; they must be the same"});
}

// alpha or beta as the type keeps it.
Status make_scalar(const char* name, const Factor& factor, DType dtype, Scalar* scalar) {
  const double value = factor.number();
  if (factor.is_exact()) {
    if (!is_integer(dtype) || dtype_bytes(dtype) != 8) {
      return error(
          Code::kArgument, kOp, name,
          {name, " is a 64-bit integer; with ", dtype_name(dtype), " it must be a number"});
    }
    *scalar = {.value = value, .integer = factor.integer(), .whole = true};
    return {};
  }
  if (!is_integer(dtype)) {
    // float32 and the types that accumulate in it round the factor to float32.
    const bool single = compute_type(dtype) == DType::kFloat32;
    *scalar = {.value = single ? static_cast<double>(static_cast<float>(value)) : value};
    return {};
  }
  if (!std::isfinite(value)) {
    return error(Code::kArgument, kOp, name,
                 {name, " is ", std::isnan(value) ? "NaN" : "infinite", "; with ",
                  dtype_name(dtype), " it must be finite"});
  }
  if (std::fabs(value) > static_cast<double>(kMaxElements)) {
    return error(
        Code::kArgument, kOp, name,
        {name, " is beyond 2^53; with ", dtype_name(dtype), " it must lie from -2^53 to 2^53"});
  }
  const auto integer = static_cast<int64_t>(value);
  *scalar = {.value = value,
             .integer = static_cast<uint64_t>(integer),
             .whole = static_cast<double>(integer) == value};
  return {};
}

Status make_scalars(const GemmArgs& args, Epilogue* epilogue) {
  const DType dtype = args.A.dtype;
  if (Status s = make_scalar("alpha", args.alpha, dtype, &epilogue->alpha); !s.ok()) return s;
  if (Status s = make_scalar("beta", args.beta, dtype, &epilogue->beta); !s.ok()) return s;
  if (args.alpha.is_exact() && !epilogue->beta.whole) {
    return error(
        Code::kArgument, kOp, "beta",
        {"beta has a fraction and alpha is a 64-bit integer; beside one, it must be whole"});
  }
  if (args.beta.is_exact() && !epilogue->alpha.whole) {
    return error(
        Code::kArgument, kOp, "alpha",
        {"alpha has a fraction and beta is a 64-bit integer; beside one, it must be whole"});
  }
  return {};
}

}  // namespace

Status gemm_problem(const GemmArgs& args, bool with_data, Problem* problem) {
  const ConstTensor &a = args.A, &b = args.B;
  const ConstTensor* c = args.C;
  const Tensor& y = args.Y;
  const bool packed = args.packed_B != nullptr, with_y = with_data || y.dims.data() != nullptr;

  if (args.opset < 1)
    return error(Code::kOpset, kOp, "opset", {"opset is ", args.opset, "; it must be 1 or more"});
  const Version* newest = std::end(kVersions) - 1;
  while (newest->since > args.opset) --newest;
  const Version& version = *newest;

  if (Status s = check_tensor(kOp, "A", a, with_data && a.remote == nullptr); !s.ok()) return s;
  if (!packed) {
    if (Status s = check_tensor(kOp, "B", b, with_data && b.remote == nullptr); !s.ok()) return s;
  }
  if (c != nullptr) {
    if (Status s = check_tensor(kOp, "C", *c, with_data && c->remote == nullptr); !s.ok()) return s;
  }
  if (with_y) {
    if (Status s = check_tensor(kOp, "Y", y, with_data && y.remote == nullptr); !s.ok()) return s;
  }

  const int64_t since = gemm_since(a.dtype);
  if (since == 0) {
    return error(Code::kDType, kOp, "A",
                 {"A has type ", dtype_name(a.dtype),
                  ", which Gemm does not have; 8-bit operands are for qgemm"});
  }
  if (since > version.since) {
    return error(Code::kOpset, kOp, "opset",
                 {"opset ", args.opset, " means Gemm-", version.since, ", which has no ",
                  dtype_name(a.dtype), "; that comes with opset ", since});
  }
  if (!packed) {
    if (Status s = check_dtype("B", b.dtype, a.dtype); !s.ok()) return s;
  }
  if (c != nullptr) {
    if (Status s = check_dtype("C", c->dtype, a.dtype); !s.ok()) return s;
  } else if (!version.c_optional) {
    return error(Code::kOpset, kOp, "C",
                 {"opset ", args.opset, " means Gemm-", version.since,
                  ", which demands C; without it from opset 11"});
  }
  if (args.broadcast.has_value() && !version.has_broadcast) {
    return error(Code::kOpset, kOp, "broadcast",
                 {"opset ", args.opset, " means Gemm-", version.since,
                  ", which has no attribute broadcast; C broadcasts by itself from opset 7"});
  }

  if (Status s = check_rank2(kOp, "A", a.dims); !s.ok()) return s;
  const bool ta = args.transA != 0, tb = args.transB != 0;
  const int64_t m = a.dims[ta ? 1 : 0], k = a.dims[ta ? 0 : 1];
  if (packed) {
    if (Status s = check_packed(kOp, "B", *args.packed_B, PackFor::kGemm, "A", a, ta, k,
                                args.transB, "transB");
        !s.ok())
      return s;
    if (const std::span<const int64_t> batch = args.packed_B->batch(); !batch.empty()) {
      return error(Code::kPackMismatch, kOp, "B",
                   {"B is packed with batch axes ", batch, "; for gemm it must have rank 2"});
    }
  } else {
    if (Status s = check_rank2(kOp, "B", b.dims); !s.ok()) return s;
    if (Status s = check_inner(kOp, a, ta, k, b, tb, b.dims[tb ? 1 : 0]); !s.ok()) return s;
  }
  const int64_t n = packed ? args.packed_B->n() : b.dims[tb ? 0 : 1];
  if (Status s = check_result(kOp, m, n); !s.ok()) return s;
  if (c != nullptr) {
    const int64_t y_shape[2] = {m, n};
    const bool broadcast = !version.has_broadcast || args.broadcast.value_or(0) != 0;
    if (!broadcast && !std::ranges::equal(c->dims, y_shape)) {
      return error(
          Code::kShape, kOp, "C",
          {"C has shape ", c->dims, "; Gemm-", version.since, " without broadcast demands exactly ",
           std::span<const int64_t>(y_shape), ", the shape of Y"});
    }
    if (Status s = check_broadcast(kOp, "C", c->dims, y_shape); !s.ok()) return s;
  }

  if (with_y) {
    if (Status s = check_dtype("Y", y.dtype, a.dtype); !s.ok()) return s;
    if (Status s = check_output(kOp, y, m, n); !s.ok()) return s;
    if (tensors_overlap(y, a))
      return error(Code::kArgument, kOp, "Y",
                   {"Y overlaps A in memory; only C may be written over"});
    if (!packed && tensors_overlap(y, b))
      return error(Code::kArgument, kOp, "Y",
                   {"Y overlaps B in memory; only C may be written over"});
    if (c != nullptr && tensors_overlap(y, *c) && !tensors_equal(y, *c)) {
      return error(Code::kArgument, kOp, "Y",
                   {"Y overlaps C in memory and is not exactly C; it must be, with shape and "
                    "strides, or lie apart"});
    }
  }

  // Member by member: a whole Problem to be copied takes longer than the rest of this.
  Epilogue& epilogue = problem->epilogue;
  if (Status s = make_scalars(args, &epilogue); !s.ok()) return s;
  if (Status s = check_activation(kOp, args.activation, a.dtype, &epilogue.bounds); !s.ok())
    return s;
  epilogue.has_c = c != nullptr && epilogue.beta.value != 0;
  if (epilogue.has_c) epilogue.c = broadcast_operand(*c);
  problem->m = m;
  problem->n = n;
  problem->k = k;
  problem->compute = compute_type(a.dtype);
  problem->a = matrix_operand(a, ta);
  problem->b.plain =
      packed ? Operand{nullptr, args.packed_B->dtype(), 0, 0} : matrix_operand(b, tb);
  if (packed) problem->b.packed = prepacked_of(*args.packed_B);
  problem->y = with_y ? output_operand(y) : OutputOperand{nullptr, a.dtype, n, 1};
  return {};
}

}  // namespace wgemm
