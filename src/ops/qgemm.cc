// com.microsoft QGemm:
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
#include <wasm_simd128.h>

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

float read_scale(const std::byte* element) { return *reinterpret_cast<const float*>(element); }

// Number of values in a scale or zero point of N columns.
int64_t count_values(const Operand& row, int64_t n) {
  return row.base == nullptr ? 0 : row.col_stride == 0 ? 1 : n;
}

// Number of the first columns, checked as vectors, whose scales are all good. 0 if one is not.
int64_t count_good_scales(const Quantization& q, int64_t n) {
  if (q.b_scale.col_stride != 1) return 0;
  const v128_t a_scale = wasm_f32x4_splat(q.a_scale), y_scale = wasm_f32x4_splat(q.y_scale);
  v128_t least = wasm_f32x4_splat(1), difference = wasm_f32x4_splat(0);
  int64_t col = 0;
  for (; col + 4 <= n; col += 4) {
    const v128_t b_scale = wasm_v128_load(q.b_scale.base + col * int64_t{sizeof(float)});
    v128_t scale = wasm_f32x4_mul(a_scale, b_scale);
    if (q.quantizes_y) scale = wasm_f32x4_div(scale, y_scale);
    least = wasm_f32x4_pmin(least, b_scale);
    // NaN if a scale is infinite or NaN.
    difference = wasm_f32x4_add(difference, wasm_f32x4_sub(scale, scale));
  }
  const v128_t zero = wasm_f32x4_splat(0);
  const bool good = wasm_i32x4_all_true(
      wasm_v128_and(wasm_f32x4_gt(least, zero), wasm_f32x4_eq(difference, zero)));
  return good ? col : 0;
}

// Whether any zero point of B, as int8, is not 0.
bool shifts_b(const Quantization& q, int64_t n) {
  const Operand& row = q.b_zero_point;
  const int64_t count = row.base == nullptr ? 1 : count_values(row, n);
  int64_t col = 0;
  if (row.col_stride == 1) {
    const v128_t zero = wasm_i8x16_splat(static_cast<int8_t>(int8_offset(row.dtype)));
    v128_t different = wasm_i8x16_splat(0);
    for (; col + 16 <= count; col += 16)
      different = wasm_v128_or(different, wasm_v128_xor(wasm_v128_load(row.base + col), zero));
    if (wasm_v128_any_true(different)) return true;
  }
  while (col < count && q.b_zero_point_at(col) == 0) ++col;
  return col < count;
}

// Reads scales and zero points, and checks their values and alpha. Changes nothing after an error.
Status read_values(Problem* problem) {
  Quantization q = problem->quantization;
  WGEMM_RETURN_IF_ERROR(check_product("alpha", "alpha", q.alpha));
  const float a_scale = read_scale(q.a_scale_at);
  WGEMM_RETURN_IF_ERROR(check_scale("a_scale", a_scale));
  if (q.quantizes_y) {
    q.y_scale = read_scale(q.y_scale_at);
    WGEMM_RETURN_IF_ERROR(check_scale("y_scale", q.y_scale));
    q.y_zero_point = read_8bit(q.y_zero_point_at, problem->y.dtype);
  }
  q.a_scale = q.alpha * a_scale;
  WGEMM_RETURN_IF_ERROR(check_product("a_scale", "alpha * a_scale", q.a_scale));
  const int64_t scales = count_values(q.b_scale, problem->n);
  for (int64_t col = count_good_scales(q, scales); col < scales; ++col) {
    const float b_scale = read_scale(q.b_scale.block(0, col, 1, 1).data);
    WGEMM_RETURN_IF_ERROR(check_scale("b_scale", b_scale));
    WGEMM_RETURN_IF_ERROR(
        check_product("b_scale", "alpha * a_scale * b_scale, divided by y_scale if there is one,",
                      q.scale(b_scale)));
  }
  if (q.a_zero_point_at != nullptr) q.a_zero_point = read_8bit(q.a_zero_point_at, problem->a.dtype);
  q.shifts_b = shifts_b(q, problem->n);
  problem->quantization = q;
  return {};
}

// The bounds of a quantized Y are in units of y_scale.
void write_bounds(Problem* problem) {
  const Quantization& q = problem->quantization;
  const auto scaled = [&](double bound) {
    return static_cast<double>(static_cast<float>(bound) / q.y_scale);
  };
  problem->epilogue.bounds = {scaled(q.bounds.min), scaled(q.bounds.max)};
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

void write_quantization(const QGemmArgs& args, Quantization* q) {
  const auto element = [](const ConstTensor* t) {
    return t == nullptr ? nullptr : broadcast_operand(*t).base;
  };
  q->alpha = static_cast<float>(args.alpha);
  q->a_scale_at = element(&args.a_scale);
  q->a_zero_point_at = element(args.a_zero_point);
  q->y_scale_at = element(args.y_scale);
  q->y_zero_point_at = element(args.y_zero_point);
  q->quantizes_y = args.y_scale != nullptr;
  const auto row = [](const ConstTensor& t) {
    Operand operand = broadcast_operand(t);
    if (tensor_extent(t.dims, t.strides) == 0) operand.base = nullptr;
    return operand;
  };
  q->b_scale = row(args.b_scale);
  q->b_zero_point = args.b_zero_point != nullptr ? row(*args.b_zero_point)
                                                 : Operand{nullptr, b_dtype(args), 0, 0};
}

void write_c(const QGemmArgs& args, Epilogue* epilogue) {
  epilogue->has_c = args.C != nullptr;
  if (epilogue->has_c) epilogue->c = broadcast_operand(*args.C);
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
  write_operands(args, with_y, problem);
  write_c(args, &problem->epilogue);
  write_quantization(args, &q);
  if (with_data || (with_values && have_data)) {
    WGEMM_RETURN_IF_ERROR(read_values(problem));
  }
  WGEMM_RETURN_IF_ERROR(check_activation(kOp, args.activation, DType::kFloat32, &q.bounds));
  write_bounds(problem);
  return {};
}

Status read_quantization(Problem* problem) {
  WGEMM_RETURN_IF_ERROR(read_values(problem));
  write_bounds(problem);
  return {};
}

}  // namespace wgemm
