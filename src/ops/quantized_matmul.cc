// The products of 8-bit operands: com.microsoft QGemm, ONNX MatMulInteger and QLinearMatMul,
// com.microsoft DynamicQuantizeMatMul and MatMulIntegerToFloat. wgemm.h has the addresses of their
// specifications. They differ in a row of a table.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/stack.h"
#include "ops/tensor_check.h"

namespace wgemm {
namespace {

// How many values an argument may have.
enum Extent : uint8_t {
  kNone,     // the operator has no such argument
  kOne,      // one value
  kRows,     // one value, or one per row of A or Y
  kColumns,  // one value, or one per column of B
};

struct Operator {
  const char* name;
  Extent extents[kQuantizationParams];  // in the order of QuantizationParam
  // What C is: an int32 addend of the accumulators, or the bias of a float result.
  bool has_c, has_bias;
  bool may_be_half;  // scales may be float16
  bool is_gemm;      // A and B have rank 2, scales have rank 0 or 1, and y_scale may be absent
};

// In the order of IntegerOp, and then QGemm.
constexpr Operator kOperators[] = {
    {"matmulInteger", {kNone, kRows, kNone, kColumns, kNone, kNone}, false, false, false, false},
    {"qlinearMatmul", {kRows, kRows, kColumns, kColumns, kRows, kRows}, false, false, true, false},
    {"dynamicQuantizeMatmul",
     {kNone, kNone, kColumns, kColumns, kNone, kNone},
     false,
     true,
     false,
     false},
    {"matmulIntegerToFloat",
     {kOne, kOne, kColumns, kColumns, kNone, kNone},
     false,
     true,
     true,
     false},
    {"qgemm", {kOne, kOne, kColumns, kColumns, kOne, kOne}, true, false, false, true},
};

constexpr const char* kNames[] = {"a_scale",      "a_zero_point", "b_scale",
                                  "b_zero_point", "y_scale",      "y_zero_point"};

constexpr bool is_scale(int which) {
  return which == kAScale || which == kBScale || which == kYScale;
}
constexpr bool is_of_columns(int which) { return which == kBScale || which == kBZeroPoint; }

// Checks the arguments of a call in order.
class QuantizedChecker {
 public:
  QuantizedChecker(const QuantizedArgs& args, bool with_data)
      : args_(args),
        op_(kOperators[args.op]),
        with_data_(with_data),
        quantizes_a_(args.op == static_cast<int>(IntegerOp::kDynamicQuantizeMatMul)),
        product_{{op_.name, "A", "B", "Y", "transA", "transB"}, args.A, args.B, args.packed_B},
        a_dtype_(quantizes_a_ ? DType::kUInt8 : args.A.dtype),
        b_dtype_(args.B.dtype),
        scale_dtype_(DType::kFloat32) {
    for (const int which : {kYScale, kBScale, kAScale})
      if (args.params[which] != nullptr && op_.may_be_half)
        scale_dtype_ = args.params[which]->dtype;
    const ConstTensor* const y_zero_point = args.params[kYZeroPoint];
    y_dtype_ = y_zero_point != nullptr         ? y_zero_point->dtype
               : op_.has_bias || op_.is_gemm   ? scale_dtype_
               : op_.extents[kYScale] == kNone ? DType::kInt32
                                               : a_dtype_;
  }

  // Returns whether all arguments are right. Else status() is the error.
  bool check(MatMulProblem* result, bool* have_values) {
    with_y_ = with_data_ || args_.Y.dims.data() != nullptr;
    if (!check_a()) return false;
    if (!check_b()) return false;
    if (!take(check_shapes(product_, result))) return false;
    shape_ = {result->shape, result->rank};
    if (!check_params(have_values)) return false;
    if (!check_c()) return false;
    return !with_y_ || check_y();
  }

  const Status& status() const { return status_; }

  // Writes a checked call.
  void write(MatMulProblem* result) const {
    // If the caller has no Y yet, it will be contiguous.
    const Tensor y = with_y_ ? args_.Y : Tensor{.data = nullptr, .dtype = y_dtype_, .dims = shape_};
    write_product(product_, args_.C, y, result);
    Problem& p = result->problem;
    Quantization& q = p.quantization;
    // Even if Y is empty: the scales of B are then checked, too.
    if (product_.batch_rank() == 0) p.m = product_.left.rows;
    p.n = product_.right.cols;
    p.compute = DType::kInt8;
    q.is_gemm = op_.is_gemm;
    q.alpha = static_cast<float>(args_.alpha);
    q.quantizes_y = args_.params[kYScale] != nullptr;
    for (int which = 0; which < kQuantizationParams; ++which) write_param(which, result);
    q.params[kBZeroPoint].dtype = b_dtype_;
    write_batch(product_.batch_rank(), result);
    if (!quantizes_a_) return;
    q.quantizes_a = true;
    q.float_a = std::exchange(p.a, {nullptr, DType::kUInt8, p.a.row_stride, p.a.col_stride});
  }

 private:
  using Pieces = std::initializer_list<Piece>;
  [[gnu::noinline]] bool take(const Status& status) {
    if (status.ok()) return true;
    status_ = status;
    return false;
  }
  bool fail(Code code, const char* name, Pieces pieces) {
    status_ = error(code, op_.name, name, pieces);
    return false;
  }

  bool check_rank(const char* name, const ConstTensor& t) {
    return take(op_.is_gemm ? check_rank2(op_.name, name, t.dims)
                            : check_stack_rank(op_.name, name, t.dims));
  }

  // `other`: also allowed.
  bool check_dtype(const char* name, DType found, DType expected, DType other) {
    if (found == expected || found == other) return true;
    const bool has_other = other != expected;
    return fail(Code::kDType, name,
                {"% has type %; it must be %%%", name, dtype_name(found), dtype_name(expected),
                 has_other ? " or " : "", has_other ? dtype_name(other) : ""});
  }
  bool check_dtype(const char* name, DType found, DType expected) {
    return check_dtype(name, found, expected, expected);
  }

  bool check_a() {
    const ConstTensor& a = args_.A;
    if (!take(check_operand(op_.name, "A", a, with_data_))) return false;
    if (!check_dtype("A", a.dtype, quantizes_a_ ? DType::kFloat32 : DType::kInt8,
                     quantizes_a_ ? DType::kFloat32 : DType::kUInt8))
      return false;
    if (!check_rank("A", a)) return false;
    product_.left = make_stack(a, args_.transA != 0, true);
    return true;
  }

  bool check_b() {
    const Stack& left = product_.left;
    if (args_.packed_B == nullptr) {
      const ConstTensor& b = args_.B;
      if (!take(check_operand(op_.name, "B", b, with_data_))) return false;
      if (!check_dtype("B", b.dtype, DType::kInt8, DType::kUInt8)) return false;
      if (!check_rank("B", b)) return false;
      product_.right = make_stack(b, args_.transB != 0, false);
      return true;
    }
    const PackedWeights& b = *args_.packed_B;
    if (!take(check_packed(op_.name, "B", b, PackFor::kQGemm, "A", args_.A, left.is_transposed,
                           left.cols, args_.transB, "transB")))
      return false;
    if (op_.is_gemm && !b.batch().empty())
      return fail(
          Code::kShape, "B",
          {"B is packed with batch axes %; for % it must have rank 2", b.batch(), op_.name});
    product_.right = make_stack(b);
    b_dtype_ = b.dtype();
    return true;
  }

  // Checks scales and zero points by themselves. `have_data`: whether each of them has data or is
  // empty.
  bool check_params(bool* have_data) {
    *have_data = true;
    for (int which = 0; which < kQuantizationParams; ++which) {
      const ConstTensor* const t = args_.params[which];
      const char* const name = kNames[which];
      const bool exists = op_.extents[which] != kNone;
      if (t != nullptr && exists) {
        *have_data = *have_data && (t->data != nullptr || t->size == 0);
        if (!take(check_tensor(op_.name, name, *t, with_data_))) return false;
        if (!check_extent(which)) return false;
        if (!check_param_dtype(which)) return false;
      } else if (t != nullptr) {
        return fail(Code::kArgument, name, {"% is given; this operation has none", name});
      } else if (exists && is_scale(which) && !(op_.is_gemm && which == kYScale)) {
        return fail(Code::kArgument, name, {"% is absent; it must be given", name});
      }
    }
    return true;
  }

  // Whether `dims` is `batch`, and then `row` and `col`.
  static bool is_shape(std::span<const int64_t> dims, std::span<const int64_t> batch, int64_t row,
                       int64_t col) {
    const size_t rank = batch.size();
    return dims.size() == rank + 2 && std::ranges::equal(dims.first(rank), batch) &&
           dims[rank] == row && dims[rank + 1] == col;
  }
  static bool has_one_element(std::span<const int64_t> dims) {
    return std::ranges::all_of(dims, [](int64_t size) { return size == 1; });
  }

  // The batch axes of the operand that a scale or zero point belongs to.
  std::span<const int64_t> batch_of(int which) const {
    if (is_of_columns(which)) return product_.right.batch();
    if (which == kAScale || which == kAZeroPoint) return product_.left.batch();
    return shape_.first(product_.batch_rank());
  }

  bool check_extent(int which) {
    const std::span<const int64_t> dims = args_.params[which]->dims, batch = batch_of(which);
    const char* const name = kNames[which];
    const Extent extent = op_.extents[which];
    const bool of_columns = extent == kColumns;
    const Stack& stack = of_columns ? product_.right : product_.left;
    const int64_t count = of_columns ? stack.cols : stack.rows;
    if (has_one_element(dims) && !(op_.is_gemm && dims.size() > 1)) return true;
    if (extent == kOne)
      return fail(Code::kShape, name,
                  {"% has shape %; it must be one value%", name, dims,
                   op_.is_gemm ? ", of shape [] or [1]" : ""});
    const bool may_be_list = !stack.is_vector && !(of_columns && !batch.empty());
    if (may_be_list && dims.size() == 1 && dims[0] == count) return true;
    if (!stack.is_vector && !op_.is_gemm &&
        is_shape(dims, batch, of_columns ? 1 : count, of_columns ? count : 1))
      return true;
    return fail(
        Code::kShape, name,
        {"% has shape %%%%%%", name, dims, of_columns ? " and B' has " : " and A' has ", count,
         of_columns ? " columns; it must be one value or one per column, of shape "
                    : " rows; it must be one value or one per row, of shape ",
         op_.is_gemm  ? "[], [1] or [N]"
         : of_columns ? "[N] if B has no batch axes, or [..., 1, N] after batch axes "
                      : "[M], or [..., M, 1] after batch axes ",
         op_.is_gemm ? Piece("") : Piece(batch)});
  }

  bool check_param_dtype(int which) {
    const DType found = args_.params[which]->dtype;
    const char* const name = kNames[which];
    if (which == kYZeroPoint) return check_dtype(name, found, DType::kInt8, DType::kUInt8);
    if (!is_scale(which))
      return check_dtype(name, found, which == kAZeroPoint ? a_dtype_ : b_dtype_);
    if (!check_dtype(name, found, DType::kFloat32,
                     op_.may_be_half ? DType::kFloat16 : DType::kFloat32))
      return false;
    if (found == scale_dtype_) return true;
    return fail(Code::kDType, name,
                {"% has type % and another scale has type %; they must be the same", name,
                 dtype_name(found), dtype_name(scale_dtype_)});
  }

  bool check_c() {
    const ConstTensor* const c = args_.C;
    const char* const name = op_.is_gemm ? "C" : "bias";
    const bool has_scale = args_.params[kYScale] != nullptr;
    if (op_.is_gemm && has_scale != (args_.params[kYZeroPoint] != nullptr)) {
      const char *const given = kNames[has_scale ? kYScale : kYZeroPoint],
                        *const absent = kNames[has_scale ? kYZeroPoint : kYScale];
      return fail(Code::kArgument, absent,
                  {"% is absent and % is given; give both for a quantized result, or neither for "
                   "float32",
                   absent, given});
    }
    if (c == nullptr) return true;
    if (!op_.has_c && !op_.has_bias)
      return fail(Code::kArgument, name, {"% is given; this operation has none", name});
    if (!take(check_operand(op_.name, name, *c, with_data_))) return false;
    if (!check_dtype(name, c->dtype, op_.has_c ? DType::kInt32 : y_dtype_)) return false;
    if (op_.has_c) return take(check_broadcast(op_.name, name, c->dims, shape_));
    const int64_t n = product_.right.cols;
    if ((c->dims.size() == 1 && c->dims[0] == n) || (n == 1 && has_one_element(c->dims)))
      return true;
    return fail(
        Code::kShape, name,
        {"% has shape % and B' has % columns; it must have one element per column, of shape [N]",
         name, c->dims, n});
  }

  bool check_y() {
    const Tensor& y = args_.Y;
    if (!take(check_operand(op_.name, "Y", y, with_data_))) return false;
    if (y.dtype != y_dtype_)
      return fail(
          Code::kDType, "Y",
          {"Y has type %; the result has type %%", dtype_name(y.dtype), dtype_name(y_dtype_),
           args_.params[kYZeroPoint] != nullptr ? ", the type of y_zero_point"
           : op_.is_gemm                        ? ", since y_scale is absent"
                                                : ""});
    if (!take(check_output(op_.name, "Y", y, shape_))) return false;
    if (!check_no_overlap("A", &args_.A)) return false;
    if (!check_no_overlap("B", args_.packed_B == nullptr ? &args_.B : nullptr)) return false;
    if (!check_no_overlap(op_.is_gemm ? "C" : "bias", args_.C)) return false;
    for (int which = 0; which < kQuantizationParams; ++which)
      if (!check_no_overlap(kNames[which], args_.params[which])) return false;
    return true;
  }

  bool check_no_overlap(const char* name, const ConstTensor* x) {
    return take(check_overlap(op_.name, "Y", args_.Y, name, x, "it must overlap no input"));
  }

  // Writes a scale or zero point, and its strides along the batch axes.
  void write_param(int which, MatMulProblem* result) const {
    const ConstTensor* const t = args_.params[which];
    Quantization& q = result->problem.quantization;
    if (t == nullptr || tensor_extent(t->dims, t->strides) == 0) return;
    Operand& param = q.params[which];
    param = operand_of(*t, 0, 0);
    if (has_one_element(t->dims)) return;
    const size_t rank = t->dims.size(), batch_rank = product_.batch_rank();
    const auto stride = [&](size_t axis) { return tensor_stride(t->dims, t->strides, axis); };
    const bool of_columns = is_of_columns(which);
    (of_columns ? param.col_stride : param.row_stride) =
        stride(of_columns || rank == 1 ? rank - 1 : rank - 2);
    for (size_t axis = 0; rank > 1 && axis < batch_rank; ++axis) {
      result->axes[axis].params[which] =
          stride_at(t->dims, t->strides, t->dims.first(rank - 2), axis, batch_rank);
    }
    if (of_columns) return;
    (which == kAZeroPoint ? q.has_row_zero_points : q.has_row_scales) = true;
  }

  const QuantizedArgs& args_;
  const Operator& op_;
  const bool with_data_, quantizes_a_;
  bool with_y_ = false;
  StackProduct product_;
  const DType a_dtype_;
  DType b_dtype_, scale_dtype_, y_dtype_;
  std::span<const int64_t> shape_;  // of Y
  Status status_;
};

}  // namespace

const char* name_of(const QuantizedArgs& args) { return kOperators[args.op].name; }

QuantizedArgs::QuantizedArgs(const QGemmArgs& args)
    : op(kQGemm),
      A(args.A),
      B(args.B),
      packed_B(args.packed_B),
      params{&args.a_scale,     args.a_zero_point, &args.b_scale,
             args.b_zero_point, args.y_scale,      args.y_zero_point},
      C(args.C),
      Y(args.Y),
      activation(args.activation),
      alpha(args.alpha),
      transA(args.transA),
      transB(args.transB) {}

QuantizedArgs::QuantizedArgs(const IntegerMatMulArgs& args)
    : op(static_cast<int>(args.op) + (args.op > IntegerOp::kMatMulIntegerToFloat ? 1 : 0)),
      A(args.A),
      B(args.B),
      packed_B(args.packed_B),
      params{args.a_scale,      args.a_zero_point, args.b_scale,
             args.b_zero_point, args.y_scale,      args.y_zero_point},
      C(args.bias),
      Y(args.Y),
      activation(args.activation),
      transA(args.transA),
      transB(args.transB) {}

Status quantized_problem(const QuantizedArgs& args, bool with_data, MatMulProblem* result,
                         bool with_values) {
  if (args.op > QuantizedArgs::kQGemm) {
    return error(Code::kArgument, "integer_matmul", "op",
                 {"op is the unknown operation %; see IntegerOp", int64_t{args.op} - 1});
  }
  QuantizedChecker call(args, with_data);
  bool have_values = false;
  const char* const op = name_of(args);
  if (!call.check(result, &have_values)) return call.status();
  call.write(result);
  Problem& p = result->problem;
  if (args.reads_values && (with_data || (with_values && have_values)))
    WGEMM_RETURN_IF_ERROR(read_quantization(op, &p));
  Activation& bounds = p.quantization.bounds;
  WGEMM_RETURN_IF_ERROR(check_activation(op, args.activation, DType::kFloat32, &bounds));
  const Activation none;
  if (p.y.dtype != DType::kInt32 || (bounds.min == none.min && bounds.max == none.max)) return {};
  return error(Code::kArgument, op, "activation",
               {"% is given; this operation has none", "activation"});
}

}  // namespace wgemm
