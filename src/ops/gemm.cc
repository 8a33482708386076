// ONNX Gemm, opsets 1 to 13: https://onnx.ai/onnx/operators/onnx__Gemm.html
#include <cmath>
#include <type_traits>

#include "error.h"
#include "ops/ops.h"
#include "tensor_check.h"
#include "types.h"

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

Status check_rank2(const char* name, std::span<const int64_t> dims) {
  if (dims.size() == 2) return {};
  return error(Code::kShape, kOp, name,
               {name, " has shape ", dims, " of rank ", static_cast<int64_t>(dims.size()), "; it must have rank 2"});
}

Status check_dtype(const char* name, DType found, DType wanted) {
  if (found == wanted) return {};
  return error(Code::kDType, kOp, name,
               {name, " has type ", dtype_name(found), " and A has type ", dtype_name(wanted), "; they must be the same"});
}

// Unidirectional NumPy broadcast to (M, N), or exactly (M, N).
Status check_c_shape(std::span<const int64_t> c, std::span<const int64_t> y, const Version& version, bool broadcast) {
  const size_t rank = c.size();
  bool fits = rank <= 2;
  for (size_t i = 0; fits && i < rank; ++i) {
    const int64_t target = y[2 - rank + i];
    fits = c[i] == target || (broadcast && c[i] == 1);
  }
  if (fits && (broadcast || rank == 2)) return {};
  if (!broadcast) {
    return error(Code::kShape, kOp, "C",
                 {"C has shape ", c, "; Gemm-", version.since, " without broadcast demands exactly ", y, ", the shape of Y"});
  }
  return error(Code::kShape, kOp, "C",
               {"C has shape ", c, ", which does not broadcast to ", y, "; allowed are [], [1], [N], [1, 1], [1, N], [M, 1] and [M, N]"});
}

// alpha or beta as the type keeps it.
Status make_scalar(const char* name, const Factor& factor, DType dtype, Scalar* scalar) {
  const double value = factor.number();
  if (factor.is_exact()) {
    if (!is_integer(dtype) || dtype_bytes(dtype) != 8) {
      return error(Code::kArgument, kOp, name, {name, " is a 64-bit integer; with ", dtype_name(dtype), " it must be a number"});
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
                 {name, " is ", std::isnan(value) ? "NaN" : "infinite", "; with ", dtype_name(dtype), " it must be finite"});
  }
  if (std::fabs(value) > static_cast<double>(kMaxElements)) {
    return error(Code::kArgument, kOp, name, {name, " is beyond 2^53; with ", dtype_name(dtype), " it must lie from -2^53 to 2^53"});
  }
  const auto integer = static_cast<int64_t>(value);
  *scalar = {.value = value, .integer = static_cast<uint64_t>(integer), .whole = static_cast<double>(integer) == value};
  return {};
}

Status make_scalars(const GemmArgs& args, Epilogue* epilogue) {
  const DType dtype = args.A.dtype;
  if (Status s = make_scalar("alpha", args.alpha, dtype, &epilogue->alpha); !s.ok()) return s;
  if (Status s = make_scalar("beta", args.beta, dtype, &epilogue->beta); !s.ok()) return s;
  if (args.alpha.is_exact() && !epilogue->beta.whole) {
    return error(Code::kArgument, kOp, "beta", {"beta has a fraction and alpha is a 64-bit integer; beside one, it must be whole"});
  }
  if (args.beta.is_exact() && !epilogue->alpha.whole) {
    return error(Code::kArgument, kOp, "alpha", {"alpha has a fraction and beta is a 64-bit integer; beside one, it must be whole"});
  }
  return {};
}

template <typename T>
auto operand(const BasicTensor<T>& t, bool transposed) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  const int64_t rows = tensor_stride(t.dims, t.strides, 0), cols = tensor_stride(t.dims, t.strides, 1);
  return BasicOperand<Byte>{static_cast<Byte*>(t.data), t.dtype, transposed ? cols : rows, transposed ? rows : cols};
}

// C broadcast to (M, N): an axis that is not there, or has size 1, is walked with stride 0.
Operand broadcast_operand(const ConstTensor& c) {
  Operand operand{static_cast<const std::byte*>(c.data), c.dtype, 0, 0};
  for (size_t i = 0; i < c.dims.size(); ++i) {
    const bool is_column = i + 1 == c.dims.size();
    if (c.dims[i] != 1) (is_column ? operand.col_stride : operand.row_stride) = tensor_stride(c.dims, c.strides, i);
  }
  return operand;
}

}  // namespace

Status gemm_problem(const GemmArgs& args, bool with_data, Problem* problem) {
  const ConstTensor &a = args.A, &b = args.B;
  const ConstTensor* c = args.C;
  const Tensor& y = args.Y;
  const bool with_y = with_data || y.dims.data() != nullptr;

  if (args.opset < 1) return error(Code::kOpset, kOp, "opset", {"opset is ", args.opset, "; it must be 1 or more"});
  Version version = kVersions[0];
  for (const Version& v : kVersions) {
    if (v.since <= args.opset) version = v;
  }

  if (Status s = check_tensor(kOp, "A", a, with_data); !s.ok()) return s;
  if (Status s = check_tensor(kOp, "B", b, with_data); !s.ok()) return s;
  if (c != nullptr) {
    if (Status s = check_tensor(kOp, "C", *c, with_data); !s.ok()) return s;
  }
  if (with_y) {
    if (Status s = check_tensor(kOp, "Y", y, with_data); !s.ok()) return s;
  }

  const int64_t since = gemm_since(a.dtype);
  if (since > version.since) {
    return error(
        Code::kOpset, kOp, "opset",
        {"opset ", args.opset, " means Gemm-", version.since, ", which has no ", dtype_name(a.dtype), "; that comes with opset ", since});
  }
  if (Status s = check_dtype("B", b.dtype, a.dtype); !s.ok()) return s;
  if (c != nullptr) {
    if (Status s = check_dtype("C", c->dtype, a.dtype); !s.ok()) return s;
  } else if (!version.c_optional) {
    return error(Code::kOpset, kOp, "C",
                 {"opset ", args.opset, " means Gemm-", version.since, ", which demands C; without it from opset 11"});
  }
  if (args.broadcast.has_value() && !version.has_broadcast) {
    return error(
        Code::kOpset, kOp, "broadcast",
        {"opset ", args.opset, " means Gemm-", version.since, ", which has no attribute broadcast; C broadcasts by itself from opset 7"});
  }

  if (Status s = check_rank2("A", a.dims); !s.ok()) return s;
  if (Status s = check_rank2("B", b.dims); !s.ok()) return s;
  const bool ta = args.transA != 0, tb = args.transB != 0;
  const int64_t m = a.dims[ta ? 1 : 0], k = a.dims[ta ? 0 : 1], n = b.dims[tb ? 0 : 1];
  if (b.dims[tb ? 1 : 0] != k) {
    return error(Code::kShape, kOp, "B",
                 {"A", ta ? " (transposed)" : "", " has shape ", a.dims, " and B", tb ? " (transposed)" : "", " has shape ", b.dims,
                  "; K is ", k, " in A and ", b.dims[tb ? 1 : 0], " in B, and must be the same"});
  }
  const int64_t sizes[2] = {m, n};
  const std::span<const int64_t> y_shape(sizes);
  if (n > 0 && m > kMaxElements / n) return error(Code::kShape, kOp, "Y", {"Y would have shape ", y_shape, ", of more than 2^53 elements"});
  if (c != nullptr) {
    const bool broadcast = version.has_broadcast ? args.broadcast.value_or(0) != 0 : true;
    if (Status s = check_c_shape(c->dims, y_shape, version, broadcast); !s.ok()) return s;
  }

  if (with_y) {
    if (Status s = check_dtype("Y", y.dtype, a.dtype); !s.ok()) return s;
    if (y.dims.size() != 2 || y.dims[0] != m || y.dims[1] != n) {
      return error(Code::kShape, kOp, "Y", {"Y has shape ", y.dims, "; the result has shape ", y_shape});
    }
    if (Status s = check_output_strides(kOp, "Y", y); !s.ok()) return s;
    if (tensors_overlap(y, a)) return error(Code::kArgument, kOp, "Y", {"Y overlaps A in memory; only C may be written over"});
    if (tensors_overlap(y, b)) return error(Code::kArgument, kOp, "Y", {"Y overlaps B in memory; only C may be written over"});
    if (c != nullptr && tensors_overlap(y, *c) && !tensors_equal(y, *c)) {
      return error(Code::kArgument, kOp, "Y",
                   {"Y overlaps C in memory and is not exactly C; it must be, with shape and strides, or lie apart"});
    }
  }

  Epilogue epilogue;
  if (Status s = make_scalars(args, &epilogue); !s.ok()) return s;
  epilogue.has_c = c != nullptr && epilogue.beta.value != 0;
  if (epilogue.has_c) epilogue.c = broadcast_operand(*c);
  *problem = {.m = m,
              .n = n,
              .k = k,
              .compute = compute_type(a.dtype),
              .a = operand(a, ta),
              .b = operand(b, tb),
              .y = with_y ? operand(y, false) : OutputOperand{nullptr, a.dtype, n, 1},
              .epilogue = epilogue};
  return {};
}

}  // namespace wgemm
