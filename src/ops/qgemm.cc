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

// A scale or zero point: one, or where n is not negative one or n.
Status check_vector(const char* name, const ConstTensor& t, int64_t n, bool with_data) {
  if (Status s = check_tensor(kOp, name, t, with_data); !s.ok()) return s;
  const bool fits = t.dims.empty() || (t.dims.size() == 1 && (t.dims[0] == 1 || t.dims[0] == n));
  if (fits) return {};
  if (n < 0)
    return error(Code::kShape, kOp, name,
                 {name, " has shape ", t.dims, "; it must be one value, of shape [] or [1]"});
  return error(Code::kShape, kOp, name,
               {name, " has shape ", t.dims, " and B' has ", n,
                " columns; it must be one value or one a column, of shape [], [1] or [N]"});
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

// Different elements at the most among the scales or zero points of N columns.
int64_t count_values(const ConstTensor& t, const Operand& operand, int64_t n) {
  if (tensor_extent(t.dims, t.strides) == 0) return 0;
  return operand.col_stride == 0 ? 1 : n;
}

// Reads and checks the values that scales and zero points have.
Status read_values(const QGemmArgs& args, int64_t n, Quantization* q) {
  const auto alpha = static_cast<float>(args.alpha);
  if (Status s = check_product("alpha", "alpha", alpha); !s.ok()) return s;
  const float a_scale = read_scale(broadcast_operand(args.a_scale), 0);
  if (Status s = check_scale("a_scale", a_scale); !s.ok()) return s;
  if (args.y_scale != nullptr) {
    q->y_scale = read_scale(broadcast_operand(*args.y_scale), 0);
    if (Status s = check_scale("y_scale", q->y_scale); !s.ok()) return s;
    q->y_zero_point = read_8bit(broadcast_operand(*args.y_zero_point), 0);
  }
  q->a_scale = alpha * a_scale;
  if (Status s = check_product("a_scale", "alpha * a_scale", q->a_scale); !s.ok()) return s;
  const int64_t scales = count_values(args.b_scale, q->b_scale, n);
  for (int64_t col = 0; col < scales; ++col) {
    const float b_scale = read_scale(q->b_scale, col);
    if (Status s = check_scale("b_scale", b_scale); !s.ok()) return s;
    if (Status s = check_product("b_scale",
                                 "alpha * a_scale * b_scale, divided by y_scale if there is one,",
                                 q->scale(b_scale));
        !s.ok()) {
      return s;
    }
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
               {"Y overlaps ", name, " in memory; it must lie apart from every input"});
}

Status check_y(const QGemmArgs& args, int64_t m, int64_t n, DType dtype) {
  const Tensor& y = args.Y;
  if (y.dtype != dtype) {
    return error(
        Code::kDType, kOp, "Y",
        {"Y has type ", dtype_name(y.dtype), "; the result has type ", dtype_name(dtype),
         args.y_zero_point != nullptr ? ", that of y_zero_point" : ", since there is no y_scale"});
  }
  if (Status s = check_output(kOp, y, m, n); !s.ok()) return s;
  if (Status s = check_overlap(y, "A", &args.A); !s.ok()) return s;
  if (args.packed_B == nullptr) {
    if (Status s = check_overlap(y, "B", &args.B); !s.ok()) return s;
  }
  if (Status s = check_overlap(y, "C", args.C); !s.ok()) return s;
  if (Status s = check_overlap(y, "a_scale", &args.a_scale); !s.ok()) return s;
  if (Status s = check_overlap(y, "a_zero_point", args.a_zero_point); !s.ok()) return s;
  if (Status s = check_overlap(y, "b_scale", &args.b_scale); !s.ok()) return s;
  if (Status s = check_overlap(y, "b_zero_point", args.b_zero_point); !s.ok()) return s;
  if (Status s = check_overlap(y, "y_scale", args.y_scale); !s.ok()) return s;
  return check_overlap(y, "y_zero_point", args.y_zero_point);
}

}  // namespace

Status qgemm_problem(const QGemmArgs& args, bool with_data, Problem* problem, bool with_values) {
  const ConstTensor &a = args.A, &b = args.B;
  const bool packed = args.packed_B != nullptr, with_y = with_data || args.Y.dims.data() != nullptr;
  if (Status s = check_tensor(kOp, "A", a, with_data && a.remote == nullptr); !s.ok()) return s;
  if (Status s = check_8bit("A", a.dtype); !s.ok()) return s;
  if (Status s = check_rank2(kOp, "A", a.dims); !s.ok()) return s;
  const bool ta = args.transA != 0, tb = args.transB != 0;
  const int64_t m = a.dims[ta ? 1 : 0], k = a.dims[ta ? 0 : 1];
  if (packed) {
    if (Status s = check_packed(kOp, "B", *args.packed_B, PackFor::kQGemm, "A", a, ta, k,
                                args.transB, "transB");
        !s.ok())
      return s;
  } else {
    if (Status s = check_tensor(kOp, "B", b, with_data && b.remote == nullptr); !s.ok()) return s;
    if (Status s = check_8bit("B", b.dtype); !s.ok()) return s;
    if (Status s = check_rank2(kOp, "B", b.dims); !s.ok()) return s;
  }
  const DType b_dtype = packed ? args.packed_B->dtype() : b.dtype;
  const int64_t n = packed ? args.packed_B->n() : b.dims[tb ? 0 : 1];
  if (!packed) {
    if (Status s = check_inner(kOp, a, ta, k, b, tb, b.dims[tb ? 1 : 0]); !s.ok()) return s;
  }
  if (Status s = check_result(kOp, m, n); !s.ok()) return s;

  struct Vector {
    const char* name;
    const ConstTensor* tensor;  // null: left out
    DType dtype;
    int64_t n;  // columns that it may have one for; -1: none
  };
  const Vector vectors[] = {{"a_scale", &args.a_scale, DType::kFloat32, -1},
                            {"a_zero_point", args.a_zero_point, a.dtype, -1},
                            {"b_scale", &args.b_scale, DType::kFloat32, n},
                            {"b_zero_point", args.b_zero_point, b_dtype, n},
                            {"y_scale", args.y_scale, DType::kFloat32, -1},
                            {"y_zero_point", args.y_zero_point, DType::kInt8, -1}};
  bool have_data = true;
  for (const Vector& v : vectors) {
    if (v.tensor == nullptr) continue;
    have_data = have_data && (v.tensor->data != nullptr || v.tensor->size == 0);
    if (Status s = check_vector(v.name, *v.tensor, v.n, with_data); !s.ok()) return s;
    const bool either = &v == &vectors[5];  // y_zero_point
    if (Status s = either ? check_8bit(v.name, v.tensor->dtype)
                          : check_dtype(v.name, v.tensor->dtype, v.dtype);
        !s.ok())
      return s;
  }
  if (args.C != nullptr) {
    const int64_t y_shape[2] = {m, n};
    if (Status s = check_tensor(kOp, "C", *args.C, with_data && args.C->remote == nullptr); !s.ok())
      return s;
    if (Status s = check_dtype("C", args.C->dtype, DType::kInt32); !s.ok()) return s;
    if (Status s = check_broadcast(kOp, "C", args.C->dims, y_shape); !s.ok()) return s;
  }
  if ((args.y_scale == nullptr) != (args.y_zero_point == nullptr)) {
    const bool has_scale = args.y_scale != nullptr;
    return error(Code::kArgument, kOp, has_scale ? "y_zero_point" : "y_scale",
                 {has_scale ? "y_scale is there and y_zero_point is not"
                            : "y_zero_point is there and y_scale is not",
                  "; both make Y quantized, neither makes it float32"});
  }
  const DType y_dtype = args.y_zero_point != nullptr ? args.y_zero_point->dtype : DType::kFloat32;
  if (with_y) {
    if (Status s = check_tensor(kOp, "Y", args.Y, with_data && args.Y.remote == nullptr); !s.ok())
      return s;
    if (Status s = check_y(args, m, n, y_dtype); !s.ok()) return s;
  }

  Quantization q;
  q.b_scale = broadcast_operand(args.b_scale);
  q.b_zero_point = args.b_zero_point != nullptr ? broadcast_operand(*args.b_zero_point)
                                                : Operand{nullptr, b_dtype, 0, 0};
  q.quantizes_y = args.y_scale != nullptr;
  if (with_data || (with_values && have_data)) {
    if (Status s = read_values(args, n, &q); !s.ok()) return s;
  }
  Epilogue epilogue;
  if (Status s = check_activation(kOp, args.activation, DType::kFloat32, &epilogue.bounds); !s.ok())
    return s;
  for (double* bound : {&epilogue.bounds.min, &epilogue.bounds.max})
    *bound = static_cast<double>(static_cast<float>(*bound) / q.y_scale);
  epilogue.has_c = args.C != nullptr;
  if (epilogue.has_c) epilogue.c = broadcast_operand(*args.C);
  *problem = {.m = m,
              .n = n,
              .k = k,
              .compute = compute_type(a.dtype),
              .a = matrix_operand(a, ta),
              .b = {packed ? Operand{nullptr, b_dtype, 0, 0} : matrix_operand(b, tb),
                    packed ? prepacked_of(*args.packed_B) : PrepackedB{}},
              .y = with_y ? output_operand(args.Y) : OutputOperand{nullptr, y_dtype, n, 1},
              .epilogue = epilogue,
              .quantization = q};
  return {};
}

}  // namespace wgemm
