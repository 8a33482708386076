// com.microsoft MatMulNBits. wgemm.h has the address of its specification.
#include <algorithm>

#include "base/error.h"
#include "base/types.h"
#include "ops/ops.h"
#include "ops/stack.h"
#include "ops/tensor_check.h"

namespace wgemm {
namespace {

constexpr const char* kMatMul = "matmulNBits";

Status check_format(const char* op, int64_t bits, int64_t block_size) {
  if (bits != 2 && bits != 4 && bits != 8)
    return error(Code::kArgument, op, "bits", {"bits is %; it must be 2, 4 or 8", bits});
  if (block_size < NBits::kBlockSizeMin || block_size > NBits::kBlockSizeMax ||
      (block_size & (block_size - 1)) != 0) {
    return error(Code::kArgument, op, "block_size",
                 {"block_size is %; it must be 16, 32, 64, 128 or 256", block_size});
  }
  return {};
}

Status check_size(const char* op, const char* name, int64_t size) {
  if (size >= 0 && size <= kMaxElements) return {};
  return error(Code::kShape, op, name, {"% is %; it must be from 0 to 2^53", name, size});
}

// The sizes of weights whose block size is checked.
struct Sizes {
  int64_t block_size, k, n;
};
Status check_sizes(const char* op, const Sizes& s) {
  WGEMM_RETURN_IF_ERROR(check_size(op, "K", s.k));
  return check_size(op, "N", s.n);
}

// Whether there are at most kMaxElements codes. The sizes must be checked.
bool has_room(const Sizes& s) {
  const int64_t padded = (s.k + s.block_size - 1) / s.block_size * s.block_size;
  return s.n == 0 || padded <= kMaxElements / s.n;
}

void write_pack_problem(const NBitsSource& source, int64_t k, int64_t n, PackProblem* problem) {
  problem->nbits = source;
  problem->op = PackFor::kMatMulNBits;
  problem->as = source.format.dtype;
  problem->k = k;
  problem->n = n;
}

Status check_float(const char* op, const char* name, DType type) {
  if (type == DType::kFloat32 || is_half(type)) return {};
  return error(Code::kDType, op, name,
               {"% has type %; it must be float32, float16 or bfloat16", name, dtype_name(type)});
}

// Checks that a checked tensor of the weights is contiguous, of shape `dims` or flat.
Status check_part(const char* op, const char* name, const ConstTensor& t,
                  std::span<const int64_t> dims, bool may_be_flat) {
  int64_t elements = 1;
  for (const int64_t size : dims) elements *= size;
  const bool is_flat = may_be_flat && t.dims.size() == 1 && t.dims[0] == elements;
  if (!is_flat && !std::ranges::equal(t.dims, dims)) {
    return error(Code::kShape, op, name,
                 {"% has shape %; for these K, N, bits and block_size it must be %%", name, t.dims,
                  dims, may_be_flat ? ", or flat" : ""});
  }
  int64_t stride = 1;
  for (size_t axis = t.strides.size(); axis-- > 0;) {
    if (t.dims[axis] > 1 && t.strides[axis] != stride && elements != 0) {
      return error(Code::kShape, op, name,
                   {"% has strides %; it must be contiguous", name, t.strides});
    }
    stride *= t.dims[axis];
  }
  return {};
}

const std::byte* data_of(const ConstTensor& t) { return operand_of(t, 0, 0).base; }

// Checks weights, and writes where they are.
Status check_weights(const char* op, const NBitsWeights& w, bool with_data, NBitsSource* source) {
  const Sizes sizes{w.block_size, w.K, w.N};
  WGEMM_RETURN_IF_ERROR(check_format(op, w.bits, w.block_size));
  WGEMM_RETURN_IF_ERROR(check_sizes(op, sizes));
  if (!has_room(sizes)) {
    const int64_t dims[] = {w.N, w.K};
    return error(Code::kShape, op, "B",
                 {"B would have % codes, which is more than 2^53", std::span<const int64_t>(dims)});
  }
  const int64_t blocks = (w.K + w.block_size - 1) / w.block_size;
  const int64_t codes[] = {w.N, blocks, w.block_size * w.bits / 8}, scales[] = {w.N, blocks},
                packed[] = {w.N, (blocks * w.bits + 7) / 8};
  WGEMM_RETURN_IF_ERROR(check_tensor(op, "B", w.B, with_data));
  WGEMM_RETURN_IF_ERROR(check_part(op, "B", w.B, codes, false));
  if (w.B.dtype != DType::kUInt8)
    return error(Code::kDType, op, "B", {"B has type %; it must be uint8", dtype_name(w.B.dtype)});
  WGEMM_RETURN_IF_ERROR(check_tensor(op, "scales", w.scales, with_data));
  WGEMM_RETURN_IF_ERROR(check_part(op, "scales", w.scales, scales, true));
  WGEMM_RETURN_IF_ERROR(check_float(op, "scales", w.scales.dtype));
  source->format = {static_cast<int>(w.bits), static_cast<int>(w.block_size), w.scales.dtype};
  source->codes = data_of(w.B);
  source->scales = data_of(w.scales);
  source->k = w.K;
  if (w.zero_points == nullptr) return {};
  const ConstTensor& zero_points = *w.zero_points;
  WGEMM_RETURN_IF_ERROR(check_tensor(op, "zero_points", zero_points, with_data));
  const bool typed = zero_points.dtype == w.scales.dtype;
  if (!typed && zero_points.dtype != DType::kUInt8) {
    return error(Code::kDType, op, "zero_points",
                 {"zero_points has type %; it must be uint8, or % as scales",
                  dtype_name(zero_points.dtype), dtype_name(w.scales.dtype)});
  }
  WGEMM_RETURN_IF_ERROR(check_part(op, "zero_points", zero_points, typed ? scales : packed, true));
  source->format.zero_points = typed ? NBits::ZeroPoints::kTyped : NBits::ZeroPoints::kCodes;
  source->zero_points = data_of(zero_points);
  return {};
}

// Checks a call in order.
class NBitsChecker {
 public:
  NBitsChecker(const MatMulNBitsArgs& args, bool with_data)
      : args_(args),
        with_data_(with_data),
        with_y_(with_data || args.Y.dims.data() != nullptr),
        product_{{kMatMul, "A", "B", "Y", "", ""}, args.A, args.weights.B, args.packed_weights} {}

  Status check(MatMulProblem* result) {
    const ConstTensor& a = args_.A;
    WGEMM_RETURN_IF_ERROR(check_operand(kMatMul, "A", a, with_data_));
    WGEMM_RETURN_IF_ERROR(check_float(kMatMul, "A", a.dtype));
    WGEMM_RETURN_IF_ERROR(check_stack_rank(kMatMul, "A", a.dims));
    product_.left = make_stack(a, false, true);
    WGEMM_RETURN_IF_ERROR(check_b());
    if (args_.accuracy_level < 0 || args_.accuracy_level > 4) {
      return error(Code::kArgument, kMatMul, "accuracy_level",
                   {"accuracy_level is %; it must be from 0 to 4", args_.accuracy_level});
    }
    if (product_.left.cols != product_.right.rows) {
      return error(Code::kShape, kMatMul, "A",
                   {"A has shape %; its last size must be K, which is % in the weights", a.dims,
                    product_.right.rows});
    }
    WGEMM_RETURN_IF_ERROR(check_shapes(product_, result));
    shape_ = {result->shape, result->rank};
    WGEMM_RETURN_IF_ERROR(check_bias());
    return with_y_ ? check_y() : Status{};
  }

  void write(MatMulProblem* result) const {
    // If the caller has no Y yet, it will be contiguous.
    const Tensor y =
        with_y_ ? args_.Y : Tensor{.data = nullptr, .dtype = args_.A.dtype, .dims = shape_};
    write_product(product_, args_.bias, y, result);
    Problem& p = result->problem;
    if (args_.packed_weights == nullptr) {
      p.b.plain = {nullptr, source_.format.dtype, 0, 0};
      p.b.nbits = source_;
    }
    p.quantizes_rows =
        args_.accuracy_level == 4 && p.b.nbits_format().zero_points != NBits::ZeroPoints::kTyped;
    write_batch(product_.batch_rank(), result);
  }

 private:
  Status check_b() {
    Stack& right = product_.right;
    DType dtype;
    if (args_.packed_weights != nullptr) {
      const PackedWeights& weights = *args_.packed_weights;
      WGEMM_RETURN_IF_ERROR(check_packed_for(kMatMul, "B", weights, PackFor::kMatMulNBits));
      dtype = weights.dtype();
      right = make_stack(weights);
      // Weights in a block format take an A of float32, float16 or bfloat16.
      if (weights.block_format() != BlockFormat::kNone) return {};
    } else {
      WGEMM_RETURN_IF_ERROR(check_weights(kMatMul, args_.weights, with_data_, &source_));
      dtype = source_.format.dtype;
      right = {.dims = {}, .strides = {}, .rows = args_.weights.K, .cols = args_.weights.N};
    }
    return check_same_dtype(kMatMul, "scales", dtype, "A", args_.A.dtype);
  }

  Status check_bias() const {
    const ConstTensor* const bias = args_.bias;
    if (bias == nullptr) return {};
    WGEMM_RETURN_IF_ERROR(check_operand(kMatMul, "bias", *bias, with_data_));
    WGEMM_RETURN_IF_ERROR(check_same_dtype(kMatMul, "bias", bias->dtype, "A", args_.A.dtype));
    if (bias->dims.size() == 1 && bias->dims[0] == product_.right.cols) return {};
    return error(Code::kShape, kMatMul, "bias",
                 {"bias has shape %; it must have N elements, of shape [%]", bias->dims,
                  product_.right.cols});
  }

  Status check_y() const {
    const Tensor& y = args_.Y;
    WGEMM_RETURN_IF_ERROR(check_operand(kMatMul, "Y", y, with_data_));
    WGEMM_RETURN_IF_ERROR(check_same_dtype(kMatMul, "Y", y.dtype, "A", args_.A.dtype));
    WGEMM_RETURN_IF_ERROR(check_output(kMatMul, "Y", y, shape_));
    const NBitsWeights* const w = args_.packed_weights == nullptr ? &args_.weights : nullptr;
    const struct {
      const char* name;
      const ConstTensor* tensor;
    } inputs[] = {{"A", &args_.A},
                  {"B", w == nullptr ? nullptr : &w->B},
                  {"scales", w == nullptr ? nullptr : &w->scales},
                  {"zero_points", w == nullptr ? nullptr : w->zero_points},
                  {"bias", args_.bias}};
    for (const auto& [name, tensor] : inputs) {
      WGEMM_RETURN_IF_ERROR(
          check_overlap(kMatMul, "Y", y, name, tensor, "it must overlap no input"));
    }
    return {};
  }

  const MatMulNBitsArgs& args_;
  const bool with_data_, with_y_;
  StackProduct product_;
  NBitsSource source_;
  std::span<const int64_t> shape_;  // of Y
};

}  // namespace

Status nbits_problem(const MatMulNBitsArgs& args, bool with_data, MatMulProblem* result) {
  NBitsChecker call(args, with_data);
  WGEMM_RETURN_IF_ERROR(call.check(result));
  call.write(result);
  return check_activation(kMatMul, args.activation, args.A.dtype, &result->problem.epilogue.bounds);
}

Status nbits_pack_problem(const NBitsWeights& weights, PackProblem* problem) {
  NBitsSource source;
  WGEMM_RETURN_IF_ERROR(check_weights("pack", weights, true, &source));
  write_pack_problem(source, weights.K, weights.N, problem);
  return {};
}

Status blocks_pack_problem(const char* op, BlockFormat format, int64_t k, int64_t n,
                           PackProblem* problem) {
  const auto& [name, nbits, file_bytes] = row_of(format);
  if (!nbits)
    return error(Code::kArgument, op, "format",
                 {"format is the unknown format %; see BlockFormat", static_cast<int64_t>(format)});
  const Sizes sizes{nbits.block_size, k, n};
  WGEMM_RETURN_IF_ERROR(check_sizes(op, sizes));
  if (k % sizes.block_size != 0) {
    return error(Code::kShape, op, "K",
                 {"K is %; for % it must be a multiple of %", k, name, sizes.block_size});
  }
  if (!has_room(sizes)) {
    const int64_t dims[] = {k, n};
    return error(Code::kShape, op, "N",
                 {"K and N are %, of more than 2^53 elements", std::span<const int64_t>(dims)});
  }
  write_pack_problem({.format = nbits}, k, n, problem);
  return {};
}

Status check_blocks(const PackedWeights& weights, int64_t first, std::span<const std::byte> bytes) {
  const char* const op = "pack";
  if (weights.empty() || weights.block_format() == BlockFormat::kNone) {
    return error(weights.empty() ? Code::kArgument : Code::kPackMismatch, op, "weights",
                 {"weights is %; begin_pack() with a BlockFormat makes weights of blocks",
                  weights.empty() ? "an empty PackedWeights" : "of no block format"});
  }
  const auto& [name, nbits, file_bytes] = row_of(weights.block_format());
  const auto length = static_cast<int64_t>(bytes.size());
  const int64_t column = nbits.blocks(weights.k()) * file_bytes, n = weights.n(),
                columns = column == 0 ? 0 : length / column;
  if (length != columns * column) {
    return error(Code::kShape, op, "bytes",
                 {"bytes has % bytes; it must be a multiple of %, the bytes of a column of %",
                  length, column, name});
  }
  if (first >= 0 && first <= n && columns <= n - first) return {};
  return error(Code::kShape, op, "first",
               {"first is % and bytes has % columns; there are % columns", first, columns, n});
}

Status nbits_pack_problem(const NBits& format, std::span<const int64_t> dims,
                          PackProblem* problem) {
  const char* const op = "deserialize";
  if (dims.size() != 2)
    return error(Code::kShape, op, "bytes",
                 {"bytes has rank %; it must be 2", static_cast<int64_t>(dims.size())});
  if (format.format != BlockFormat::kNone)
    return blocks_pack_problem(op, format.format, dims[0], dims[1], problem);
  WGEMM_RETURN_IF_ERROR(check_format(op, format.bits, format.block_size));
  WGEMM_RETURN_IF_ERROR(check_float(op, "bytes", format.dtype));
  const auto kind = static_cast<int64_t>(format.zero_points);
  if (format.zero_points > NBits::ZeroPoints::kTyped)
    return error(Code::kArgument, op, "bytes",
                 {"bytes has zero points of kind %; it must be from 0 to 2", kind});
  const Sizes sizes{format.block_size, dims[0], dims[1]};
  WGEMM_RETURN_IF_ERROR(check_sizes(op, sizes));
  if (!has_room(sizes))
    return error(Code::kShape, op, "bytes", {"bytes has sizes %, of more than 2^53 codes", dims});
  write_pack_problem({.format = format}, sizes.k, sizes.n, problem);
  return {};
}

}  // namespace wgemm
