// The specification of the operations as code: computes one element of the result from the
// arguments by its definition. It adds in ascending k into one accumulator and rounds every step.
// It shares no code with the library, so that tests can compare the two. It is slow.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/convert.h"
#include "base/types.h"
#include "wgemm.h"

namespace wgemm {

// A row of A or a column of B: the factors of an element of the product, in ascending k. `first`
// and `stride` count elements.
template <typename T>
struct ReferenceLine {
  const T* data;
  int64_t first, stride;
};

// The loops over k take most of the time of all tests. For numbers they call no function, since
// Clang inlines none with -O1. Sanitizers do not check them.
#if defined(__clang__)
#define WGEMM_REFERENCE_LOOP __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define WGEMM_REFERENCE_LOOP
#endif

// The sum of a[k] * b[k] in Acc.
template <typename Acc, typename T>
WGEMM_REFERENCE_LOOP Acc reference_sum(ReferenceLine<T> a, ReferenceLine<T> b, int64_t depth) {
  using U = typename Modular<Acc>::type;
  U sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const T x = a.data[a.first + k * a.stride], y = b.data[b.first + k * b.stride];
    if constexpr (std::is_arithmetic_v<T>) {
      sum += static_cast<U>(static_cast<Acc>(x)) * static_cast<U>(static_cast<Acc>(y));
    } else {
      sum += convert<Acc>(x) * convert<Acc>(y);
    }
  }
  return static_cast<Acc>(sum);
}

// The sum of |a[k] * b[k]|.
template <typename T>
WGEMM_REFERENCE_LOOP double reference_sum_of_magnitudes(ReferenceLine<T> a, ReferenceLine<T> b,
                                                        int64_t depth) {
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const T x = a.data[a.first + k * a.stride], y = b.data[b.first + k * b.stride];
    if constexpr (std::is_arithmetic_v<T>) {
      sum += std::fabs(static_cast<double>(x) * static_cast<double>(y));
    } else {
      sum += std::fabs(convert<double>(x) * convert<double>(y));
    }
  }
  return sum;
}

// A line of 8-bit elements of a type, by their bits.
struct ReferenceBytes {
  ReferenceLine<uint8_t> line;
  bool is_signed;
  int32_t zero_point;
};

// The sum of a[k] * b[k] modulo 2^32, with zero points subtracted.
WGEMM_REFERENCE_LOOP inline uint32_t reference_sum(const ReferenceBytes& a, const ReferenceBytes& b,
                                                   int64_t depth) {
  uint32_t sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const uint8_t x = a.line.data[a.line.first + k * a.line.stride],
                  y = b.line.data[b.line.first + k * b.line.stride];
    const int32_t p = a.is_signed ? static_cast<int8_t>(x) : x,
                  q = b.is_signed ? static_cast<int8_t>(y) : y;
    sum += static_cast<uint32_t>((p - a.zero_point) * (q - b.zero_point));
  }
  return sum;
}

inline int64_t reference_stride(const ConstTensor& x, size_t axis) {
  if (!x.strides.empty()) return x.strides[axis];
  int64_t stride = 1;
  for (size_t i = axis + 1; i < x.dims.size(); ++i) stride *= x.dims[i];
  return stride;
}

// Row i of a matrix, or of its transpose.
template <typename T>
ReferenceLine<T> reference_row(const ConstTensor& matrix, int64_t i, bool transposed) {
  const size_t axis = transposed ? 1 : 0;
  return {static_cast<const T*>(matrix.data), matrix.offset + i * reference_stride(matrix, axis),
          reference_stride(matrix, 1 - axis)};
}

// The place of element `index` of `x`, which is broadcast to a shape with as many axes. By NumPy's
// rule axes align at the right, and size 1 repeats.
inline int64_t reference_place(const ConstTensor& x, std::span<const int64_t> index) {
  int64_t place = x.offset, contiguous = 1;
  for (size_t axis = x.dims.size(), from_right = index.size(); axis-- > 0;) {
    const int64_t stride = x.strides.empty() ? contiguous : x.strides[axis];
    contiguous *= x.dims[axis];
    --from_right;
    if (x.dims[axis] != 1) place += index[from_right] * stride;
  }
  return place;
}
template <typename T>
T reference_broadcast(const ConstTensor& x, std::span<const int64_t> index) {
  return static_cast<const T*>(x.data)[reference_place(x, index)];
}

// Element (i, j) of C broadcast to the shape of Y.
template <typename T>
T reference_broadcast(const ConstTensor& c, int64_t i, int64_t j) {
  const int64_t index[] = {i, j};
  return reference_broadcast<T>(c, index);
}

// alpha or beta for floating-point type T. float32 and narrower types round it to float32.
template <typename T>
double reference_factor(const Factor& factor) {
  return sizeof(T) <= sizeof(float) ? static_cast<double>(static_cast<float>(factor.number()))
                                    : factor.number();
}

// A value kept within the bounds of an activation, which are rounded for type T.
template <typename T, typename Value>
Value reference_activation(const Activation& activation, Value value) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    // A bound beyond the range of the type becomes the end of the range.
    if (activation.min >= std::ldexp(1.0, Limits::digits)) return Limits::max();
    if (activation.max <= static_cast<double>(Limits::min())) return Limits::min();
    const T low = activation.min <= static_cast<double>(Limits::min())
                      ? Limits::min()
                      : static_cast<T>(activation.min);
    const T high = activation.max >= std::ldexp(1.0, Limits::digits)
                       ? Limits::max()
                       : static_cast<T>(activation.max);
    return value < low ? low : value > high ? high : value;
  } else {
    const auto low = static_cast<Value>(reference_factor<T>(activation.min)),
               high = static_cast<Value>(reference_factor<T>(activation.max));
    return value < low ? low : value > high ? high : value;
  }
}

// alpha * acc + beta * c, within bounds, for a product `acc` of `depth` steps and operands of type
// T. c null: absent. Floating point: the result is in Acc, not yet rounded to T. Integers: Acc is
// T; exact modulo 2^bits, or through float64 if a factor that counts has a fraction.
template <typename T, typename Acc>
Acc reference_combine(const Factor& alpha, Acc acc, int64_t depth, const Factor& beta, const T* c,
                      const Activation& activation) {
  const auto bounded = [&](Acc value) { return reference_activation<T>(activation, value); };
  const bool has_c =
      c != nullptr && (std::is_integral_v<T> ? beta.number() : reference_factor<T>(beta)) != 0;
  if constexpr (std::is_integral_v<T>) {
    using U = typename Modular<T>::type;
    const T term = has_c ? *c : T{0};
    const auto is_whole = [](const Factor& f) { return f.number() == std::trunc(f.number()); };
    if ((depth == 0 || is_whole(alpha)) && (!has_c || is_whole(beta))) {
      const auto factor = [](const Factor& f) {
        return static_cast<U>(
            f.is_exact() ? f.integer() : static_cast<uint64_t>(static_cast<int64_t>(f.number())));
      };
      return bounded(static_cast<T>(factor(alpha) * static_cast<U>(acc) +
                                    factor(beta) * static_cast<U>(term)));
    }
    const double value =
        alpha.number() * static_cast<double>(acc) + beta.number() * static_cast<double>(term);
    using Limits = std::numeric_limits<T>;
    if (value >= std::ldexp(1.0, Limits::digits)) return bounded(Limits::max());
    if (value <= static_cast<double>(Limits::min())) return bounded(Limits::min());
    return bounded(static_cast<T>(value));  // toward zero
  } else {
    const Acc scaled = depth == 0 ? Acc{0} : static_cast<Acc>(reference_factor<T>(alpha)) * acc;
    if (!has_c) return bounded(scaled);
    const Acc bias = static_cast<Acc>(reference_factor<T>(beta)) * convert<Acc>(*c);
    return bounded(depth == 0 ? bias : scaled + bias);
  }
}

// Element (i, j) of Y = alpha * A' * B' + beta * C for operands of type T. The arguments must be
// valid. The result is as reference_combine()'s.
template <typename T, typename Acc>
Acc reference_gemm(const GemmArgs& args, int64_t i, int64_t j) {
  const bool trans_a = args.transA != 0, trans_b = args.transB != 0;
  const int64_t depth = args.A.dims[trans_a ? 0 : 1];
  const Acc acc = reference_sum<Acc>(reference_row<T>(args.A, i, trans_a),
                                     reference_row<T>(args.B, j, !trans_b), depth);
  const T c = args.C == nullptr ? T{} : reference_broadcast<T>(*args.C, i, j);
  return reference_combine<T, Acc>(args.alpha, acc, depth, args.beta,
                                   args.C == nullptr ? nullptr : &c, args.activation);
}

// The row of src, and the column of weights, whose product is element `index` of MatMul's dst. A
// vector has no row or column in dst, and no flag transposes it.
template <typename T>
ReferenceLine<T> reference_src(const MatMulArgs& args, std::span<const int64_t> index) {
  const size_t rank = args.src.dims.size();
  int64_t at[kMaxRank] = {};
  size_t axes = 1;
  if (rank > 1) {
    const size_t row = index.size() - (args.weights.dims.size() == 1 ? 1 : 2);
    std::copy_n(index.begin(), row, at);
    at[args.transpose_a != 0 ? row + 1 : row] = index[row];
    axes = row + 2;
  }
  const size_t axis = rank > 1 && args.transpose_a != 0 ? rank - 2 : rank - 1;
  return {static_cast<const T*>(args.src.data), reference_place(args.src, {at, axes}),
          reference_stride(args.src, axis)};
}
template <typename T>
ReferenceLine<T> reference_weights(const MatMulArgs& args, std::span<const int64_t> index) {
  const size_t rank = args.weights.dims.size();
  int64_t at[kMaxRank] = {};
  size_t axes = 1;
  if (rank > 1) {
    const size_t col = index.size() - 1, batch = args.src.dims.size() == 1 ? col : col - 1;
    std::copy_n(index.begin(), batch, at);
    at[args.transpose_b != 0 ? batch : batch + 1] = index[col];
    axes = batch + 2;
  }
  const size_t axis = rank > 1 && args.transpose_b == 0 ? rank - 2 : rank - 1;
  return {static_cast<const T*>(args.weights.data), reference_place(args.weights, {at, axes}),
          reference_stride(args.weights, axis)};
}

// Element `index` of MatMul's dst = alpha * src * weights + bias for operands of type T. The
// arguments must be valid. args.weights is read even if packed_weights replaces it. The result is
// as reference_combine()'s.
template <typename T, typename Acc>
Acc reference_matmul(const MatMulArgs& args, std::span<const int64_t> index) {
  const size_t rank = args.src.dims.size();
  const int64_t depth = args.src.dims[rank > 1 && args.transpose_a != 0 ? rank - 2 : rank - 1];
  const Acc acc =
      reference_sum<Acc>(reference_src<T>(args, index), reference_weights<T>(args, index), depth);
  const T bias = args.bias == nullptr ? T{} : reference_broadcast<T>(*args.bias, index);
  return reference_combine<T, Acc>(args.alpha, acc, depth, 1,
                                   args.bias == nullptr ? nullptr : &bias, args.activation);
}

// The zero point of column j; 0 if it is absent.
inline int32_t reference_zero_point(const ConstTensor* zero_point, int64_t j) {
  if (zero_point == nullptr) return 0;
  if (zero_point->dtype == DType::kInt8) return reference_broadcast<int8_t>(*zero_point, 0, j);
  return reference_broadcast<uint8_t>(*zero_point, 0, j);
}

// Element (i, j) of QGemm's Y, of type T: int8_t or uint8_t if there is a y_zero_point, else float.
// The arguments must be valid. args.B is read even if packed_B replaces it.
template <typename T>
T reference_qgemm(const QGemmArgs& args, int64_t i, int64_t j) {
  const bool trans_a = args.transA != 0, trans_b = args.transB != 0;
  const int64_t depth = args.A.dims[trans_a ? 0 : 1];
  const ReferenceBytes a = {reference_row<uint8_t>(args.A, i, trans_a),
                            args.A.dtype == DType::kInt8,
                            reference_zero_point(args.a_zero_point, 0)},
                       b = {reference_row<uint8_t>(args.B, j, !trans_b),
                            args.B.dtype == DType::kInt8,
                            reference_zero_point(args.b_zero_point, j)};
  uint32_t acc = reference_sum(a, b, depth);
  if (args.C != nullptr) acc += static_cast<uint32_t>(reference_broadcast<int32_t>(*args.C, i, j));

  float scale = static_cast<float>(args.alpha);
  scale *= reference_broadcast<float>(args.a_scale, 0, j);
  scale *= reference_broadcast<float>(args.b_scale, 0, j);
  const float unit = args.y_scale != nullptr ? reference_broadcast<float>(*args.y_scale, 0, j) : 1;
  scale /= unit;
  const float low = static_cast<float>(args.activation.min) / unit,
              high = static_cast<float>(args.activation.max) / unit;
  const float product = static_cast<float>(static_cast<int32_t>(acc)) * scale,
              value = product < low    ? low
                      : product > high ? high
                                       : product;
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    using Limits = std::numeric_limits<T>;
    const double y = static_cast<double>(std::nearbyint(value)) +
                     reference_zero_point(args.y_zero_point, j);  // half to even
    if (y >= Limits::max()) return Limits::max();
    if (y <= Limits::min()) return Limits::min();
    return static_cast<T>(y);
  }
}

// A float32 scale, or a float16 one.
inline float reference_scale(const ConstTensor* scale, std::span<const int64_t> index) {
  if (scale->dtype == DType::kFloat16)
    return convert<float>(reference_broadcast<Float16>(*scale, index));
  return reference_broadcast<float>(*scale, index);
}

// A zero point; 0 if it is absent.
inline int32_t reference_zero_point(const ConstTensor* zero_point, std::span<const int64_t> index) {
  if (zero_point == nullptr) return 0;
  if (zero_point->dtype == DType::kInt8) return reference_broadcast<int8_t>(*zero_point, index);
  return reference_broadcast<uint8_t>(*zero_point, index);
}

// The scale and zero point of ONNX DynamicQuantizeLinear for all elements of A, in float32.
struct ReferenceQuantizedA {
  float scale = 1;
  int32_t zero_point = 0;
  std::vector<uint8_t> elements;  // row-major
};
inline ReferenceQuantizedA reference_quantized_a(const ConstTensor& a) {
  int64_t count = 1;
  for (const int64_t size : a.dims) count *= size;
  std::vector<float> values;
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t index[kMaxRank], rest = i;
    for (size_t axis = a.dims.size(); axis-- > 0; rest /= a.dims[axis])
      index[axis] = rest % a.dims[axis];
    values.push_back(reference_broadcast<float>(a, {index, a.dims.size()}));
    low = std::min(low, values.back());
    high = std::max(high, values.back());
  }
  ReferenceQuantizedA result;
  const float width = high - low, scale = width == 0 ? 1 : width / 255;
  if (scale != 0) {
    const float quotient = low / scale, zero_point = std::clamp(0 - quotient, 0.0F, 255.0F);
    result.scale = scale;
    result.zero_point = static_cast<int32_t>(std::nearbyint(zero_point));
  }
  for (const float value : values) {
    const double q = static_cast<double>(std::nearbyint(value / result.scale)) + result.zero_point;
    result.elements.push_back(static_cast<uint8_t>(std::clamp(q, 0.0, 255.0)));  // half to even
  }
  return result;
}

// Element `index` of integer_matmul()'s Y. A float16 result is not yet rounded to float16. The
// arguments must be valid. args.B is read even if packed_B replaces it. `of_a` is
// reference_quantized_a() for kDynamicQuantizeMatMul, and unused otherwise.
inline double reference_integer_matmul(const IntegerMatMulArgs& args,
                                       const ReferenceQuantizedA& of_a,
                                       std::span<const int64_t> index) {
  const bool quantizes_a = args.op == IntegerOp::kDynamicQuantizeMatMul,
             has_rows = args.A.dims.size() > 1, has_cols = args.B.dims.size() > 1;
  // The index as if neither operand were a vector; and the index of a tensor of one value per row.
  int64_t full[kMaxRank + 2];
  const size_t batch = index.size() - has_rows - has_cols;
  std::copy_n(index.begin(), batch, full);
  full[batch] = has_rows ? index[batch] : 0;
  full[batch + 1] = has_cols ? index.back() : 0;
  const std::span<const int64_t> element(full, batch + 2);
  const auto row_of = [&](const ConstTensor* t) {
    return t != nullptr && t->dims.size() == 1 ? element.subspan(batch, 1) : element;
  };

  MatMulArgs product;
  product.src = args.A;
  if (quantizes_a)
    product.src = {.data = of_a.elements.data(), .dtype = DType::kUInt8, .dims = args.A.dims};
  product.weights = args.B;
  product.transpose_a = args.transA;
  product.transpose_b = args.transB;
  const size_t rank = args.A.dims.size();
  const int64_t depth = args.A.dims[has_rows && args.transA != 0 ? rank - 2 : rank - 1];
  const ReferenceBytes a = {reference_src<uint8_t>(product, index),
                            product.src.dtype == DType::kInt8,
                            quantizes_a ? of_a.zero_point
                                        : reference_zero_point(args.a_zero_point,
                                                               row_of(args.a_zero_point))},
                       b = {reference_weights<uint8_t>(product, index),
                            args.B.dtype == DType::kInt8,
                            reference_zero_point(args.b_zero_point, element)};
  const auto acc = static_cast<int32_t>(reference_sum(a, b, depth));
  if (args.op == IntegerOp::kMatMulInteger) return acc;

  const float a_scale =
      quantizes_a ? of_a.scale : reference_scale(args.a_scale, row_of(args.a_scale));
  float scale = a_scale * reference_scale(args.b_scale, element);
  const auto rounded = static_cast<float>(acc);
  auto low = static_cast<float>(args.activation.min),
       high = static_cast<float>(args.activation.max);
  if (args.y_scale == nullptr) {
    float value = rounded * scale;
    if (args.bias != nullptr) value = value + reference_scale(args.bias, element.last(1));
    return static_cast<double>(value < low ? low : value > high ? high : value);
  }
  const float y_scale = reference_scale(args.y_scale, row_of(args.y_scale));
  const int32_t y_zero_point = reference_zero_point(args.y_zero_point, row_of(args.y_zero_point));
  scale = scale / y_scale;
  low = low / y_scale;
  high = high / y_scale;
  if (y_scale < 0) std::swap(low, high);
  const float value = rounded * scale, bounded = value < low ? low : value > high ? high : value;
  const double y = static_cast<double>(std::nearbyint(bounded)) + y_zero_point;  // half to even
  return args.Y.dtype == DType::kInt8 ? std::clamp(y, -128.0, 127.0) : std::clamp(y, 0.0, 255.0);
}

// The scale of a block of A at accuracy level 4 of MatMulNBits.
inline float scale_of_row(std::span<const float> block) {
  float most = 0;
  for (const float x : block) most = std::isnan(x) || std::fabs(x) > most ? std::fabs(x) : most;
  return most / 127;
}

// An element of MatMulNBits, before bias.
struct ReferenceElement {
  float value = 0;  // as the specification rounds it
  // At accuracy level 0: the element in float64, and the sums that bound its error.
  double exact = 0, magnitude = 0, underflow = 0;

  // |y - exact| is at most this, bias included: docs/operators/matmul-nbits.md.
  double bound(int64_t k, double bias) const {
    const double steps = static_cast<double>(k) + 4;
    return std::min(steps, 4 * std::sqrt(steps)) * 0x1p-24 * (magnitude + std::fabs(bias)) +
           0x1p-149 * underflow;
  }
};

}  // namespace wgemm
