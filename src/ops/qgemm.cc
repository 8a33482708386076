// com.microsoft QGemm:
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
#include <cmath>

#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/tensor_check.h"

namespace wgemm {
namespace {

constexpr const char* kOp = "qgemm";

Status check_8bit(const char* name, DType found) {
  if (compute_type(found) == DType::kInt8) return {};
  return error(Code::kDType, kOp, name,
               {name, " has type ", dtype_name(found), "; it must be int8 or uint8"});
}

Status check_dtype(const char* name, DType found, DType wanted) {
  if (found == wanted) return {};
  return error(Code::kDType, kOp, name,
               {name, " has type ", dtype_name(found), "; it must be ", dtype_name(wanted)});
}

// Checks a scale or zero point. It must have one value, or may also have n if n is not negative.
Status check_vector(const char* name, const ConstTensor& t, int64_t n, bool with_data) {
  WGEMM_RETURN_IF_ERROR(check_tensor(kOp, name, t, with_data));
  const bool fits = t.dims.empty() || (t.dims.size() == 1 && (t.dims[0] == 1 || t.dims[0] == n));
  if (fits) return {};
  if (n < 0)
    return error(Code::kShape, kOp, name,
                 {name, " has shape ", t.dims, "; it must be one value, of shape [] or [1]"});
  return error(Code::kShape, kOp, name,
               {name, " has shape ", t.dims, " and B' has ", n,
                " columns; it must be one value or one per column, of shape [], [1] or [N]"});
}

Status check_scale(const char* name, float scale) {
  if (std::isfinite(scale) && scale > 0) return {};
  const char* found = std::isnan(scale) ? "NaN"
                      : scale == 0      ? "0"
                      : scale < 0       ? "negative"
                                        : "infinite";
  return error(Code::kArgument, kOp, name,
               {name, " is ", found, "; a scale must be finite and above 0"});
}

Status check_product(const char* name, const char* product, float value) {
  if (std::isfinite(value)) return {};
  return error(Code::kArgument, kOp, name, {product, " is not finite in float32; it must be"});
}

float read_scale(const Operand& scale, int64_t col) {
  return *reinterpret_cast<const float*>(scale.block(0, col, 1, 1).data);
}

// Upper bound of the number of different values in a scale or zero point of N columns.
int64_t count_values(const ConstTensor& t, const Operand& operand, int64_t n) {
  if (tensor_extent(t.dims, t.strides) == 0) return 0;
  return operand.col_stride == 0 ? 1 : n;
}

// Reads alpha, scales and zero points, and checks their values.
Status read_values(const QGemmArgs& args, int64_t n, Quantization* q) {
  const auto alpha = static_cast<float>(args.alpha);
  WGEMM_RETURN_IF_ERROR(check_product("alpha", "alpha", alpha));
  const float a_scale = read_scale(broadcast_operand(args.a_scale), 0);
  WGEMM_RETURN_IF_ERROR(check_scale("a_scale", a_scale));
  if (args.y_scale != nullptr) {
    q->y_scale = read_scale(broadcast_operand(*args.y_scale), 0);
    WGEMM_RETURN_IF_ERROR(check_scale("y_scale", q->y_scale));
    q->y_zero_point = read_8bit(broadcast_operand(*args.y_zero_point), 0);
  }
  q->a_scale = alpha * a_scale;
  WGEMM_RETURN_IF_ERROR(check_product("a_scale", "alpha * a_scale", q->a_scale));
  const int64_t scales = count_values(args.b_scale, q->b_scale, n);
  for (int64_t col = 0; col < scales; ++col) {
    const float b_scale = read_scale(q->b_scale, col);
    WGEMM_RETURN_IF_ERROR(check_scale("b_scale", b_scale));
    WGEMM_RETURN_IF_ERROR(
        check_product("b_scale", "alpha * a_scale * b_scale, divided by y_scale if there is one,",
                      q->scale(b_scale)));
  }
  if (args.a_zero_point != nullptr)
    q->a_zero_point = read_8bit(broadcast_operand(*args.a_zero_point), 0);
  const int64_t zero_points =
      args.b_zero_point == nullptr ? 1 : count_values(*args.b_zero_point, q->b_zero_point, n);
  for (int64_t col = 0; col < zero_points; ++col)
    q->shifts_b = q->shifts_b || q->b_zero_point_at(col) != 0;
  return {};
}

Status check_overlap(const Tensor& y, const char* name, const ConstTensor* x) {
  if (x == nullptr || !tensors_overlap(y, *x)) return {};
  return error(Code::kArgument, kOp, "Y",
               {"Y overlaps ", name, " in memory; it must overlap no input"});
}

// The type of Y, which y_zero_point determines.
DType y_dtype(const QGemmArgs& args) {
  return args.y_zero_point != nullptr ? args.y_zero_point->dtype : DType::kFloat32;
}

DType b_dtype(const QGemmArgs& args) {
  return args.packed_B != nullptr ? args.packed_B->dtype() : args.B.dtype;
}

Status check_y(const QGemmArgs& args, bool with_data, int64_t m, int64_t n) {
  const Tensor& y = args.Y;
  const DType dtype = y_dtype(args);
  WGEMM_RETURN_IF_ERROR(check_operand(kOp, "Y", y, with_data));
  if (y.dtype != dtype) {
    return error(
        Code::kDType, kOp, "Y",
        {"Y has type ", dtype_name(y.dtype), "; the result has type ", dtype_name(dtype),
         args.y_zero_point != nullptr ? ", that of y_zero_point" : ", since there is no y_scale"});
  }
  WGEMM_RETURN_IF_ERROR(check_output(kOp, y, m, n));
  WGEMM_RETURN_IF_ERROR(check_overlap(y, "A", &args.A));
  if (args.packed_B == nullptr) {
    WGEMM_RETURN_IF_ERROR(check_overlap(y, "B", &args.B));
  }
  WGEMM_RETURN_IF_ERROR(check_overlap(y, "C", args.C));
  WGEMM_RETURN_IF_ERROR(check_overlap(y, "a_scale", &args.a_scale));
  WGEMM_RETURN_IF_ERROR(check_overlap(y, "a_zero_point", args.a_zero_point));
  WGEMM_RETURN_IF_ERROR(check_overlap(y, "b_scale", &args.b_scale));
  WGEMM_RETURN_IF_ERROR(check_overlap(y, "b_zero_point", args.b_zero_point));
  WGEMM_RETURN_IF_ERROR(check_overlap(y, "y_scale", args.y_scale));
  return check_overlap(y, "y_zero_point", args.y_zero_point);
}

Status check_matrix(const char* name, const ConstTensor& t, bool with_data) {
  WGEMM_RETURN_IF_ERROR(check_operand(kOp, name, t, with_data));
  WGEMM_RETURN_IF_ERROR(check_8bit(name, t.dtype));
  return check_rank2(kOp, name, t.dims);
}

// Checks A and B, and writes the problem's M, N and K.
Status check_a_b(const QGemmArgs& args, bool with_data, Problem* problem) {
  const ConstTensor &a = args.A, &b = args.B;
  WGEMM_RETURN_IF_ERROR(check_matrix("A", a, with_data));
  const bool ta = args.transA != 0, tb = args.transB != 0;
  const int64_t m = a.dims[ta ? 1 : 0], k = a.dims[ta ? 0 : 1];
  if (args.packed_B != nullptr) {
    WGEMM_RETURN_IF_ERROR(check_packed(kOp, "B", *args.packed_B, PackFor::kQGemm, "A", a, ta, k,
                                       args.transB, "transB"));
    problem->n = args.packed_B->n();
  } else {
    WGEMM_RETURN_IF_ERROR(check_matrix("B", b, with_data));
    WGEMM_RETURN_IF_ERROR(check_inner(kOp, a, ta, k, b, tb, b.dims[tb ? 1 : 0]));
    problem->n = b.dims[tb ? 0 : 1];
  }
  problem->m = m;
  problem->k = k;
  return check_result(kOp, m, problem->n);
}

// Checks types and shapes of scales and zero points. `have_data`: whether each of them has data or
// is empty.
Status check_vectors(const QGemmArgs& args, bool with_data, int64_t n, bool* have_data) {
  struct Vector {
    const char* name;
    const ConstTensor* tensor;  // null: absent
    DType dtype;
    int64_t n;                 // the number of values may be 1 or n; -1: only 1
    bool either_8bit = false;  // int8 or uint8, instead of `dtype`
  };
  const Vector vectors[] = {{"a_scale", &args.a_scale, DType::kFloat32, -1},
                            {"a_zero_point", args.a_zero_point, args.A.dtype, -1},
                            {"b_scale", &args.b_scale, DType::kFloat32, n},
                            {"b_zero_point", args.b_zero_point, b_dtype(args), n},
                            {"y_scale", args.y_scale, DType::kFloat32, -1},
                            {"y_zero_point", args.y_zero_point, DType::kInt8, -1, true}};
  *have_data = true;
  for (const Vector& v : vectors) {
    if (v.tensor == nullptr) continue;
    *have_data = *have_data && (v.tensor->data != nullptr || v.tensor->size == 0);
    WGEMM_RETURN_IF_ERROR(check_vector(v.name, *v.tensor, v.n, with_data));
    WGEMM_RETURN_IF_ERROR(v.either_8bit ? check_8bit(v.name, v.tensor->dtype)
                                        : check_dtype(v.name, v.tensor->dtype, v.dtype));
  }
  return {};
}

Status check_c(const QGemmArgs& args, bool with_data, int64_t m, int64_t n) {
  if (args.C == nullptr) return {};
  const int64_t y_shape[2] = {m, n};
  WGEMM_RETURN_IF_ERROR(check_operand(kOp, "C", *args.C, with_data));
  WGEMM_RETURN_IF_ERROR(check_dtype("C", args.C->dtype, DType::kInt32));
  return check_broadcast(kOp, "C", args.C->dims, y_shape);
}

Status check_y_quantization(const QGemmArgs& args) {
  if ((args.y_scale == nullptr) == (args.y_zero_point == nullptr)) return {};
  const bool has_scale = args.y_scale != nullptr;
  return error(Code::kArgument, kOp, has_scale ? "y_zero_point" : "y_scale",
               {has_scale ? "y_scale is there and y_zero_point is not"
                          : "y_zero_point is there and y_scale is not",
                "; both make Y quantized, neither makes it float32"});
}

// Writes the quantization, and reads values if `with_values`.
Status write_quantization(const QGemmArgs& args, bool with_values, int64_t n, Quantization* q) {
  q->b_scale = broadcast_operand(args.b_scale);
  q->b_zero_point = args.b_zero_point != nullptr ? broadcast_operand(*args.b_zero_point)
                                                 : Operand{nullptr, b_dtype(args), 0, 0};
  q->quantizes_y = args.y_scale != nullptr;
  return with_values ? read_values(args, n, q) : Status{};
}

// Writes the epilogue. The bounds of a quantized Y are in units of y_scale.
Status write_epilogue(const QGemmArgs& args, float y_scale, Epilogue* epilogue) {
  Activation& bounds = epilogue->bounds;
  WGEMM_RETURN_IF_ERROR(check_activation(kOp, args.activation, DType::kFloat32, &bounds));
  for (double* bound : {&bounds.min, &bounds.max})
    *bound = static_cast<double>(static_cast<float>(*bound) / y_scale);
  epilogue->has_c = args.C != nullptr;
  if (epilogue->has_c) epilogue->c = broadcast_operand(*args.C);
  return {};
}

void write_operands(const QGemmArgs& args, bool with_y, Problem* problem) {
  problem->compute = compute_type(args.A.dtype);
  problem->a = matrix_operand(args.A, args.transA != 0);
  write_b(args.B, args.transB != 0, args.packed_B, &problem->b);
  problem->y =
      with_y ? output_operand(args.Y) : OutputOperand{nullptr, y_dtype(args), problem->n, 1};
}

}  // namespace

Status qgemm_problem(const QGemmArgs& args, bool with_data, Problem* problem, bool with_values) {
  const bool with_y = with_data || args.Y.dims.data() != nullptr;
  bool have_data = false;
  WGEMM_RETURN_IF_ERROR(check_a_b(args, with_data, problem));
  const int64_t m = problem->m, n = problem->n;
  WGEMM_RETURN_IF_ERROR(check_vectors(args, with_data, n, &have_data));
  WGEMM_RETURN_IF_ERROR(check_c(args, with_data, m, n));
  WGEMM_RETURN_IF_ERROR(check_y_quantization(args));
  if (with_y) WGEMM_RETURN_IF_ERROR(check_y(args, with_data, m, n));
  Quantization& q = problem->quantization;
  WGEMM_RETURN_IF_ERROR(write_quantization(args, with_data || (with_values && have_data), n, &q));
  WGEMM_RETURN_IF_ERROR(write_epilogue(args, q.y_scale, &problem->epilogue));
  write_operands(args, with_y, problem);
  return {};
}

}  // namespace wgemm
