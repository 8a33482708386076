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

#include "base/convert.h"
#include "base/types.h"
#include "wgemm.h"

namespace wgemm {

// Element (i, j) of a matrix, or of its transpose.
template <typename T, typename Void>
T reference_read(const BasicTensor<Void>& matrix, int64_t i, int64_t j, bool transposed = false) {
  const int64_t row = transposed ? j : i, col = transposed ? i : j;
  const int64_t place = matrix.strides.empty() ? row * matrix.dims[1] + col
                                               : row * matrix.strides[0] + col * matrix.strides[1];
  return static_cast<const T*>(matrix.data)[matrix.offset + place];
}

// Element `index` of `x` broadcast to a shape with as many axes, by NumPy's rule: axes align at the
// right, size 1 repeats.
template <typename T>
T reference_broadcast(const ConstTensor& x, std::span<const int64_t> index) {
  int64_t place = 0, contiguous = 1;
  for (size_t axis = x.dims.size(), from_right = index.size(); axis-- > 0;) {
    const int64_t stride = x.strides.empty() ? contiguous : x.strides[axis];
    contiguous *= x.dims[axis];
    --from_right;
    if (x.dims[axis] != 1) place += index[from_right] * stride;
  }
  return static_cast<const T*>(x.data)[x.offset + place];
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
  using U = typename Modular<Acc>::type;
  U acc = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const U product = static_cast<U>(convert<Acc>(reference_read<T>(args.A, i, k, trans_a))) *
                      static_cast<U>(convert<Acc>(reference_read<T>(args.B, k, j, trans_b)));
    acc += product;
  }
  const T c = args.C == nullptr ? T{} : reference_broadcast<T>(*args.C, i, j);
  return reference_combine<T, Acc>(args.alpha, static_cast<Acc>(acc), depth, args.beta,
                                   args.C == nullptr ? nullptr : &c, args.activation);
}

// The k-th factors of element `index` of MatMul's dst, from src and from weights. A vector has no
// row or column in dst, and no flag transposes it.
template <typename T>
T reference_src(const MatMulArgs& args, std::span<const int64_t> index, int64_t k) {
  if (args.src.dims.size() == 1) return reference_broadcast<T>(args.src, {&k, 1});
  const size_t row = index.size() - (args.weights.dims.size() == 1 ? 1 : 2);
  int64_t at[kMaxRank];
  std::copy_n(index.begin(), row, at);
  at[row] = args.transpose_a != 0 ? k : index[row];
  at[row + 1] = args.transpose_a != 0 ? index[row] : k;
  return reference_broadcast<T>(args.src, {at, row + 2});
}
template <typename T>
T reference_weights(const MatMulArgs& args, std::span<const int64_t> index, int64_t k) {
  if (args.weights.dims.size() == 1) return reference_broadcast<T>(args.weights, {&k, 1});
  const size_t col = index.size() - 1, batch = args.src.dims.size() == 1 ? col : col - 1;
  int64_t at[kMaxRank];
  std::copy_n(index.begin(), batch, at);
  at[batch] = args.transpose_b != 0 ? index[col] : k;
  at[batch + 1] = args.transpose_b != 0 ? k : index[col];
  return reference_broadcast<T>(args.weights, {at, batch + 2});
}

// Element `index` of MatMul's dst = alpha * src * weights + bias for operands of type T. The
// arguments must be valid. args.weights is read even if packed_weights replaces it. The result is
// as reference_combine()'s.
template <typename T, typename Acc>
Acc reference_matmul(const MatMulArgs& args, std::span<const int64_t> index) {
  const size_t rank = args.src.dims.size();
  const int64_t depth = args.src.dims[rank > 1 && args.transpose_a != 0 ? rank - 2 : rank - 1];
  using U = typename Modular<Acc>::type;
  U acc = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const U product = static_cast<U>(convert<Acc>(reference_src<T>(args, index, k))) *
                      static_cast<U>(convert<Acc>(reference_weights<T>(args, index, k)));
    acc += product;
  }
  const T bias = args.bias == nullptr ? T{} : reference_broadcast<T>(*args.bias, index);
  return reference_combine<T, Acc>(args.alpha, static_cast<Acc>(acc), depth, 1,
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
  const auto element = [](const ConstTensor& matrix, int64_t row, int64_t col,
                          bool transposed) -> int32_t {
    if (matrix.dtype == DType::kInt8) return reference_read<int8_t>(matrix, row, col, transposed);
    return reference_read<uint8_t>(matrix, row, col, transposed);
  };
  const int64_t depth = args.A.dims[trans_a ? 0 : 1];
  const int32_t a_zero_point = reference_zero_point(args.a_zero_point, 0),
                b_zero_point = reference_zero_point(args.b_zero_point, j);
  uint32_t acc = 0;  // unsigned, so that it wraps
  for (int64_t k = 0; k < depth; ++k) {
    const int32_t product = (element(args.A, i, k, trans_a) - a_zero_point) *
                            (element(args.B, k, j, trans_b) - b_zero_point);
    acc += static_cast<uint32_t>(product);
  }
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

// What ONNX DynamicQuantizeLinear computes from all elements of A, in float32.
struct ReferenceQuantizedA {
  float scale = 1;
  int32_t zero_point = 0;

  int32_t quantize(float a) const {
    const double q = static_cast<double>(std::nearbyint(a / scale)) + zero_point;  // half to even
    return static_cast<int32_t>(std::clamp(q, 0.0, 255.0));
  }
};
inline ReferenceQuantizedA reference_quantized_a(const ConstTensor& a) {
  float low = 0, high = 0;
  int64_t count = 1;
  for (const int64_t size : a.dims) count *= size;
  for (int64_t i = 0; i < count; ++i) {
    int64_t index[kMaxRank], rest = i;
    for (size_t axis = a.dims.size(); axis-- > 0; rest /= a.dims[axis])
      index[axis] = rest % a.dims[axis];
    const float x = reference_broadcast<float>(a, {index, a.dims.size()});
    low = std::min(low, x);
    high = std::max(high, x);
  }
  const float width = high - low, scale = width == 0 ? 1 : width / 255;
  if (scale == 0) return {1, 0};
  const float quotient = low / scale, zero_point = std::clamp(0 - quotient, 0.0F, 255.0F);
  return {scale, static_cast<int32_t>(std::nearbyint(zero_point))};
}

// Element `index` of integer_matmul()'s Y. A float16 result is not yet rounded to float16. The
// arguments must be valid. args.B is read even if packed_B replaces it. `of_a` is
// reference_quantized_a() for kDynamicQuantizeMatMul, and unused otherwise.
inline double reference_integer_matmul(const IntegerMatMulArgs& args,
                                       const ReferenceQuantizedA& of_a,
                                       std::span<const int64_t> index) {
  const bool quantizes_a = args.op == IntegerOp::kDynamicQuantizeMatMul,
             has_rows = args.A.dims.size() > 1, has_cols = args.B.dims.size() > 1;
  // The index as if neither operand were a vector; and that of a tensor of one value per row.
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
  product.weights = args.B;
  product.transpose_a = args.transA;
  product.transpose_b = args.transB;
  const size_t rank = args.A.dims.size();
  const int64_t depth = args.A.dims[has_rows && args.transA != 0 ? rank - 2 : rank - 1];
  const int32_t a_zero_point = quantizes_a ? of_a.zero_point
                                           : reference_zero_point(args.a_zero_point,
                                                                  row_of(args.a_zero_point)),
                b_zero_point = reference_zero_point(args.b_zero_point, element);
  uint32_t sum = 0;  // unsigned, so that it wraps
  for (int64_t k = 0; k < depth; ++k) {
    const int32_t a = quantizes_a ? of_a.quantize(reference_src<float>(product, index, k))
                      : args.A.dtype == DType::kInt8 ? reference_src<int8_t>(product, index, k)
                                                     : reference_src<uint8_t>(product, index, k),
                  b = args.B.dtype == DType::kInt8 ? reference_weights<int8_t>(product, index, k)
                                                   : reference_weights<uint8_t>(product, index, k);
    sum += static_cast<uint32_t>((a - a_zero_point) * (b - b_zero_point));
  }
  const auto acc = static_cast<int32_t>(sum);
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

}  // namespace wgemm
