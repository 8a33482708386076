#include "ops/tensor_check.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/types.h"

namespace wgemm {
namespace {

// The memory of a tensor, in bytes: `count` rows of `width` bytes, which include gaps inside a row.
// A row begins every `period` bytes.
struct ByteRows {
  int64_t start, width, period, count;
  int64_t end() const { return start + (count - 1) * period + width; }
};

// Axes with a size above 1 and a stride above 0, longest stride first; contiguous ones are merged.
// There are at most two: `fits` is false if the tensor has more.
struct Axes {
  int64_t size[2] = {1, 1}, stride[2] = {0, 0};
  bool fits = true;
};

template <typename T>
Axes sorted_axes(const BasicTensor<T>& t) {
  Axes axes;
  int count = 0;
  uint64_t done = 0;  // bit mask of axes
  static_assert(kMaxRank <= 64);
  while (true) {
    int64_t next = -1, longest = 0;
    for (size_t axis = 0; axis < t.dims.size(); ++axis) {
      const int64_t stride = tensor_stride(t.dims, t.strides, axis);
      if ((done >> axis & 1) != 0 || t.dims[axis] == 1 || stride <= longest) continue;
      longest = stride;
      next = static_cast<int64_t>(axis);
    }
    if (next < 0) return axes;
    done |= uint64_t{1} << next;
    const int64_t size = t.dims[static_cast<size_t>(next)];
    if (count > 0 && axes.stride[count - 1] == size * longest) {
      axes.size[count - 1] *= size;
      axes.stride[count - 1] = longest;
    } else if (count == 2) {
      axes.fits = false;
      return axes;
    } else {
      axes.size[count] = size;
      axes.stride[count++] = longest;
    }
  }
}

// Whether count times size exceeds kMaxElements. Nearly all sizes are so small that the division is
// not needed.
bool too_many(int64_t count, int64_t size) {
  constexpr int64_t kSmall = int64_t{1} << 26;
  static_assert(kSmall <= kMaxElements / kSmall);
  return (count > kSmall || size > kSmall) && size > 0 && count > kMaxElements / size;
}

// Whether `size` must be exactly what the shape needs.
template <typename T>
bool has_exact_size(const BasicTensor<T>& t) {
  return t.strides.empty() && t.offset == 0;
}

// tensor_extent() of a checked tensor, from its size if that tells.
template <typename T>
int64_t extent_of(const BasicTensor<T>& t) {
  return t.size >= 0 && has_exact_size(t) ? t.size : tensor_extent(t.dims, t.strides);
}

// First byte of a tensor, counted from the beginning of its space.
template <typename T>
int64_t start_of(const BasicTensor<T>& t) {
  const int64_t data = t.place.space == 0
                           ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data))
                           : t.place.offset;
  return data + t.offset * static_cast<int64_t>(dtype_bytes(t.dtype));
}

template <typename T>
ByteRows rows_of(const BasicTensor<T>& t) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(t.dtype));
  const int64_t start = start_of(t);
  const Axes axes = sorted_axes(t);
  const int64_t inner = (axes.size[1] - 1) * axes.stride[1] + 1;
  // ByteRows without a gap between them and tensors with more axes count as one long row.
  if (!axes.fits || inner >= axes.stride[0]) return {start, extent_of(t) * bytes, 0, 1};
  return {start, inner * bytes, axes.stride[0] * bytes, axes.size[0]};
}

// Checks strides that are given, and writes the extent of a tensor without axes of size 0.
Status check_strides(const char* op, const char* name, std::span<const int64_t> dims,
                     std::span<const int64_t> strides, int64_t* extent) {
  if (strides.size() != dims.size()) {
    return error(
        Code::kShape, op, name,
        {"% has strides % and shape %; there must be one stride per axis", name, strides, dims});
  }
  *extent = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (strides[i] < 0)
      return error(Code::kShape, op, name,
                   {"% has strides %; each stride must be a whole number from 0 to 2^53 - 1", name,
                    strides});
    if (dims[i] <= 1) continue;
    if (strides[i] > (kMaxElements - *extent) / (dims[i] - 1)) {
      return error(
          Code::kShape, op, name,
          {"% has strides % and shape %, which reach beyond 2^53 elements", name, strides, dims});
    }
    *extent += (dims[i] - 1) * strides[i];
  }
  return {};
}

// Checks that no two elements of a checked tensor `y` share memory.
Status check_output_strides(const char* op, const char* name, const Tensor& y) {
  if (y.strides.empty() || tensor_extent(y.dims, y.strides) == 0) return {};
  for (size_t axis = 0; axis < y.dims.size(); ++axis) {
    if (y.dims[axis] == 1) continue;
    // The extent of the axes with shorter strides, and of later axes with the same stride.
    int64_t reach = 0;
    for (size_t other = 0; other < y.dims.size(); ++other) {
      const bool shorter = y.strides[other] < y.strides[axis] ||
                           (y.strides[other] == y.strides[axis] && other > axis);
      if (shorter) reach += (y.dims[other] - 1) * y.strides[other];
    }
    if (y.strides[axis] > reach) continue;
    return error(Code::kShape, op, name,
                 {"% has strides % and shape %; each stride must exceed the extent of the axes "
                  "with smaller strides, so that no two elements share memory",
                  name, y.strides, y.dims});
  }
  return {};
}

}  // namespace

int64_t tensor_stride(std::span<const int64_t> dims, std::span<const int64_t> strides,
                      size_t axis) {
  // Only an axis of size 1 may have a longer stride. Products with it must not overflow.
  if (!strides.empty()) return std::min(strides[axis], kMaxElements);
  int64_t stride = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) stride *= dims[i];
  return stride;
}

int64_t tensor_extent(std::span<const int64_t> dims, std::span<const int64_t> strides) {
  int64_t extent = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return 0;
    extent += (dims[i] - 1) * tensor_stride(dims, strides, i);
  }
  return extent;
}

template <typename T>
Status check_tensor(const char* op, const char* name, const BasicTensor<T>& t, bool with_data) {
  if (static_cast<int>(t.dtype) >= kDTypeCount) {
    return error(Code::kDType, op, name,
                 {"% has the unknown type %; see DType", name, static_cast<int64_t>(t.dtype)});
  }
  if (t.dims.size() > kMaxRank) {
    return error(Code::kShape, op, name,
                 {"% has rank %; it must be at most %", name, static_cast<int64_t>(t.dims.size()),
                  int64_t{kMaxRank}});
  }
  int64_t count = 1;
  bool empty = false;
  for (const int64_t size : t.dims) {
    if (size < 0)
      return error(
          Code::kShape, op, name,
          {"% has shape %; each size must be a whole number from 0 to 2^53 - 1", name, t.dims});
    if (size == 0) empty = true;
    if (too_many(count, size)) {
      return error(Code::kShape, op, name,
                   {"% has more than 2^53 elements, by its shape %", name, t.dims});
    }
    if (size > 0) count *= size;
  }
  int64_t reach = count;
  if (!t.strides.empty()) WGEMM_RETURN_IF_ERROR(check_strides(op, name, t.dims, t.strides, &reach));
  const int64_t needed = empty ? 0 : reach;
  const int64_t most = kMaxElements - needed;
  if (static_cast<uint64_t>(t.offset) > static_cast<uint64_t>(most)) {
    return error(Code::kShape, op, name,
                 {"% has offset %; it must be from 0 to %", name, t.offset, most});
  }
  const int64_t end = t.offset + needed;
  if (t.size >= 0 && (has_exact_size(t) ? t.size != end : t.size < end)) {
    return error(
        Code::kShape, op, name,
        {"% has % elements; its shape %%%%%% %", name, t.size, t.dims,
         t.strides.empty() ? ""
         : t.offset > 0    ? ", strides "
                           : " and strides ",
         t.strides.empty() ? Piece("") : Piece(t.strides), t.offset > 0 ? " and offset " : "",
         t.offset > 0 ? Piece(t.offset) : Piece(""), has_exact_size(t) ? " needs" : " need", end});
  }
  if (with_data && needed > 0 && t.data == nullptr)
    return error(Code::kArgument, op, name, {"% has no data", name});
  return {};
}
template Status check_tensor(const char*, const char*, const ConstTensor&, bool);
template Status check_tensor(const char*, const char*, const Tensor&, bool);

Status check_same_dtype(const char* op, const char* name, DType found, const char* other,
                        DType expected, bool may_pack) {
  if (found == expected) return {};
  const char* advice = "";
  if (may_pack && expected == DType::kFloat32 && is_half(found))
    advice = ", or pack() must pack the weights for gemm";
  if (compute_type(found) == DType::kInt8) advice = "; 8-bit operands are for qgemm";
  return error(Code::kDType, op, name,
               {"% has type % and % has type %; they must be the same%", name, dtype_name(found),
                other, dtype_name(expected), advice});
}

Status check_rank2(const char* op, const char* name, std::span<const int64_t> dims) {
  if (dims.size() == 2) return {};
  return error(Code::kShape, op, name,
               {"% has shape % of rank %; it must have rank 2", name, dims,
                static_cast<int64_t>(dims.size())});
}

Status check_broadcast(const char* op, const char* name, std::span<const int64_t> c,
                       std::span<const int64_t> y) {
  bool fits = c.size() <= y.size();
  for (size_t i = 0; fits && i < c.size(); ++i)
    fits = c[i] == 1 || c[i] == y[y.size() - c.size() + i];
  if (fits) return {};
  if (y.size() == 2 && name[0] == 'C') {
    return error(Code::kShape, op, name,
                 {"% has shape %, which does not broadcast to %; allowed are [], [1], [N], [1, 1], "
                  "[1, N], [M, 1] and [M, N]",
                  name, c, y});
  }
  return error(Code::kShape, op, name,
               {"% has shape %, which does not broadcast to %; aligned at the right, each size "
                "must be the same or 1, and there may be no more axes",
                name, c, y});
}

Status check_same_k(const char* op, const FactorShape& a, const FactorShape& b) {
  if (a.k == b.k) return {};
  const auto size = [](std::span<const int64_t> dims, bool is_last) {
    return dims.size() < 2 ? -1 : dims[dims.size() - (is_last ? 1 : 2)];
  };
  const auto set = [](const FactorShape& f) { return f.is_transposed ? "; unset " : "; set "; };
  std::array<const char*, 6> advice = {"", "", "", "", "", ""};
  if (b.is_packed) {
    if (b.dims[1] == a.k) advice[0] = "; pack it with another trans if K and N are exchanged";
  } else if (size(b.dims, !b.is_transposed) == a.k) {
    advice = {set(b), b.trans, " if ", b.name, " is ", b.is_transposed ? "(K, N)" : "(N, K)"};
  } else if (size(a.dims, a.is_transposed) == b.k) {
    advice = {set(a), a.trans, " if ", a.name, " is ", a.is_transposed ? "(M, K)" : "(K, M)"};
  }
  return error(
      Code::kShape, op, b.name,
      {"%% has shape % and %% % shape %; K is % in % and % in %, and must be the "
       "same%%%%%%",
       a.name, a.is_transposed ? " (transposed)" : "", a.dims, b.name,
       b.is_transposed ? " (transposed)" : "", b.is_packed ? "is packed from" : "has", b.dims, a.k,
       a.name, b.k, b.name, advice[0], advice[1], advice[2], advice[3], advice[4], advice[5]});
}

Status check_factor(const char* op, const char* name, const Factor& factor, DType type,
                    Scalar* scalar) {
  const double value = factor.number();
  if (factor.is_exact()) {
    if (!is_integer(type) || dtype_bytes(type) != 8) {
      return error(Code::kArgument, op, name,
                   {"% is a 64-bit integer; with % it must be a number", name, dtype_name(type)});
    }
    *scalar = {.value = value, .integer = factor.integer(), .whole = true};
    return {};
  }
  if (!is_integer(type)) {
    // float32, float16 and bfloat16 accumulate in float32 and so round the factor to it.
    const bool single = compute_type(type) == DType::kFloat32;
    *scalar = {.value = single ? static_cast<double>(static_cast<float>(value)) : value};
    return {};
  }
  if (!std::isfinite(value)) {
    return error(Code::kArgument, op, name,
                 {"% is %; with % it must be finite", name, std::isnan(value) ? "NaN" : "infinite",
                  dtype_name(type)});
  }
  if (std::fabs(value) > static_cast<double>(kMaxElements)) {
    return error(
        Code::kArgument, op, name,
        {"% is beyond 2^53; with % it must be from -2^53 to 2^53", name, dtype_name(type)});
  }
  const auto integer = static_cast<int64_t>(value);
  *scalar = {.value = value,
             .integer = static_cast<uint64_t>(integer),
             .whole = static_cast<double>(integer) == value};
  return {};
}

Status check_activation(const char* op, const Activation& activation, DType type,
                        Activation* bounds) {
  const char* name = "activation";
  for (const bool is_max : {false, true}) {
    const double bound = is_max ? activation.max : activation.min;
    const char* which = is_max ? " has a max that is " : " has a min that is ";
    if (std::isnan(bound))
      return error(Code::kArgument, op, name,
                   {"%%NaN; it must be a number, which may be infinite", name, which});
    if (is_integer(type) && std::isfinite(bound) &&
        !(std::fabs(bound) <= static_cast<double>(kMaxElements) && bound == std::trunc(bound))) {
      return error(Code::kArgument, op, name,
                   {"%%not a whole number from -2^53 to 2^53; with % it must be one, or infinite",
                    name, which, dtype_name(type)});
    }
    const bool single = compute_type(type) == DType::kFloat32;
    (is_max ? bounds->max : bounds->min) =
        single ? static_cast<double>(static_cast<float>(bound)) : bound;
  }
  if (activation.min > activation.max) {
    return error(Code::kArgument, op, name,
                 {"% has a min above its max; min must be at most max", name});
  }
  return {};
}

Status check_result(const char* op, int64_t m, int64_t n) {
  if (!too_many(m, n)) return {};
  const int64_t y[2] = {m, n};
  return error(Code::kShape, op, "Y",
               {"Y would have shape %, of more than 2^53 elements", std::span<const int64_t>(y)});
}

Status check_output(const char* op, const char* name, const Tensor& y,
                    std::span<const int64_t> shape) {
  if (std::ranges::equal(y.dims, shape)) return check_output_strides(op, name, y);
  return error(Code::kShape, op, name,
               {"% has shape %; the result has shape %", name, y.dims, shape});
}

Status check_overlap(const char* op, const char* name, const Tensor& y, const char* other,
                     const ConstTensor* x, const char* rule) {
  if (x == nullptr || !tensors_overlap(y, *x)) return {};
  return error(Code::kArgument, op, name, {"% overlaps % in memory; %", name, other, rule});
}

Status check_overwritten(const char* op, const char* name, const Tensor& y, const char* other,
                         const ConstTensor* c) {
  if (c == nullptr || !tensors_overlap(y, *c) || tensors_equal(y, *c)) return {};
  return error(Code::kArgument, op, name,
               {"% overlaps % in memory; it must have the memory, shape and strides of %, or not "
                "overlap it",
                name, other, other});
}

Operand matrix_operand(const ConstTensor& t, bool transposed) {
  const int64_t rows = tensor_stride(t.dims, t.strides, 0),
                cols = tensor_stride(t.dims, t.strides, 1);
  return operand_of(t, transposed ? cols : rows, transposed ? rows : cols);
}

OutputOperand output_operand(const Tensor& y) {
  return operand_of(y, tensor_stride(y.dims, y.strides, 0), tensor_stride(y.dims, y.strides, 1));
}

// The stride of an absent axis, or of one with size 1, is 0.
Operand broadcast_operand(const ConstTensor& c) {
  Operand operand = operand_of(c, 0, 0);
  for (size_t i = 0; i < c.dims.size(); ++i) {
    const bool is_column = i + 1 == c.dims.size();
    if (c.dims[i] != 1)
      (is_column ? operand.col_stride : operand.row_stride) = tensor_stride(c.dims, c.strides, i);
  }
  return operand;
}

void write_b(const ConstTensor& b, bool transposed, const PackedWeights* packed, BSource* source) {
  if (packed != nullptr) {
    source->packed = prepacked_of(*packed);
  } else {
    source->plain = matrix_operand(b, transposed);
  }
}

bool tensors_overlap(const Tensor& y, const ConstTensor& x) {
  if (y.place.space != x.place.space) return false;
  if (y.place.space == 0 && (y.data == nullptr || x.data == nullptr))
    return false;  // it is unknown where one of them will lie
  const int64_t y_bytes = extent_of(y) * static_cast<int64_t>(dtype_bytes(y.dtype));
  const int64_t x_bytes = extent_of(x) * static_cast<int64_t>(dtype_bytes(x.dtype));
  if (y_bytes == 0 || x_bytes == 0 || start_of(y) + y_bytes <= start_of(x) ||
      start_of(x) + x_bytes <= start_of(y))
    return false;
  const ByteRows a = rows_of(y), b = rows_of(x);
  const int64_t period = std::max(a.period, b.period);
  if ((a.count > 1 && a.period != period) || (b.count > 1 && b.period != period) || period == 0)
    return true;
  // Both have the same period. They overlap if rows overlap modulo the period.
  const int64_t shift = ((b.start - a.start) % period + period) % period;
  return shift < a.width || shift + b.width > period;
}

bool tensors_equal(const Tensor& y, const ConstTensor& x) {
  if (y.dtype != x.dtype || y.place.space != x.place.space ||
      !std::equal(y.dims.begin(), y.dims.end(), x.dims.begin(), x.dims.end())) {
    return false;
  }
  if (start_of(y) != start_of(x)) return false;
  for (size_t i = 0; i < y.dims.size(); ++i) {
    if (y.dims[i] > 1 && tensor_stride(y.dims, y.strides, i) != tensor_stride(x.dims, x.strides, i))
      return false;
  }
  return true;
}

}  // namespace wgemm
