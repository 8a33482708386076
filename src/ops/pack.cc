// Checks the arguments of pack(), also in parts, and that packed weights may replace an operand.
#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/tensor_check.h"
#include "problem/prepacked.h"

namespace wgemm {
namespace {

// Whether weights of `type` may be packed as type `as`. By the same rule, a call with an A of
// `type` takes weights that are packed as `as`.
bool packs_as(DType type, DType as) {
  return type == as || (type == DType::kFloat32 && is_half(as));
}

// The types of weights that arrive in parts.
bool comes_in_parts(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat64 || is_half(type);
}

// Parts consist of whole micro-panels, and may begin at any step of k.
constexpr bool is_layout_of_parts(DType type) {
  const PanelLayout layout = storage_layout(type);
  return layout.width == kPartColumns && layout.kr == 1;
}
static_assert(is_layout_of_parts(DType::kFloat32) && is_layout_of_parts(DType::kFloat64) &&
              is_layout_of_parts(DType::kFloat16) && is_layout_of_parts(DType::kBFloat16));

// Checks that weights have the rows, or columns, of a part.
Status check_range(const char* argument, int64_t first, int64_t count, int64_t all,
                   const char* things) {
  if (first >= 0 && first <= all - count) return {};
  return error(Code::kShape, "pack", argument,
               {"% is % and the part has % %; weights has %", argument, first, count, things, all});
}

}  // namespace

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
  if (!packs_as(b.dtype, as)) {
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

Status begin_problem(DType as, std::span<const int64_t> dims, PackProblem* problem) {
  if (!comes_in_parts(as)) {
    const bool is_known = static_cast<int>(as) < kDTypeCount;
    return error(Code::kDType, "pack", "as",
                 {"as is %; it must be float32, float64, float16 or bfloat16",
                  is_known ? dtype_name(as) : "an unknown type"});
  }
  PackArgs args;
  // Not null, since pack_problem() demands data; nothing reads it.
  args.B = {.data = dims.data(), .dtype = as, .dims = dims};
  return pack_problem("pack", "weights", args, problem);
}

Status part_problem(const PackedWeights& weights, const PackPart& part, PackProblem* problem) {
  const char *op = "pack", *name = "weights";
  if (weights.empty())
    return error(Code::kArgument, op, name,
                 {"weights is an empty PackedWeights; begin_pack() makes weights for parts"});
  if (weights.op() != PackFor::kGemm || !comes_in_parts(weights.dtype()) ||
      !weights.batch().empty()) {
    return error(Code::kPackMismatch, op, name,
                 {"weights is not one matrix of float32, float64, float16 or bfloat16 for gemm; "
                  "begin_pack() makes such weights"});
  }
  const DType as = weights.dtype(), type = part.B.dtype;
  WGEMM_RETURN_IF_ERROR(check_tensor(op, "B", part.B, true));
  if (!packs_as(type, as)) {
    return error(Code::kDType, op, "B",
                 {"B has type % and weights has type %; it must be %%", dtype_name(type),
                  dtype_name(as), dtype_name(as), is_half(as) ? " or float32" : ""});
  }
  if (part.B.dims.size() != 2) {
    return error(Code::kShape, op, "B",
                 {"B has shape % of rank %; it must have rank 2", part.B.dims,
                  static_cast<int64_t>(part.B.dims.size())});
  }
  PackArgs args;
  args.B = part.B;
  args.trans = part.trans;
  args.as = as;
  WGEMM_RETURN_IF_ERROR(pack_problem(op, "B", args, problem));
  const int64_t rows = problem->k, cols = problem->n, n = weights.n();
  WGEMM_RETURN_IF_ERROR(check_range("row", part.row, rows, weights.k(), "rows"));
  WGEMM_RETURN_IF_ERROR(check_range("col", part.col, cols, n, "columns"));
  if (part.col % kPartColumns != 0) {
    return error(Code::kArgument, op, "col",
                 {"col is %; it must be a multiple of %", part.col, kPartColumns});
  }
  if (cols % kPartColumns != 0 && part.col + cols != n) {
    return error(Code::kShape, op, "B",
                 {"the part has % columns from % on, of %; it must have a multiple of %, or reach "
                  "the last column",
                  cols, part.col, n, kPartColumns});
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
  if (expected != PackFor::kQGemm && !packs_as(a.dtype, weights.dtype())) {
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
