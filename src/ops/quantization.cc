// Reads the values of scales and zero points.
#include <wasm_simd128.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/ops.h"

namespace wgemm {
namespace {

// Reads the values of a scale or zero point, of all products.
class ParamValues {
 public:
  ParamValues(const Problem& problem, QuantizationParam which)
      : p_(problem), which_(which), of_columns_(which == kBScale || which == kBZeroPoint) {
    const Operand& param = p_.quantization.params[which];
    if (param.base != nullptr) read(p_.batch, param);
  }

  // The smallest and the largest magnitude of scales, and the first that is not allowed; 1 if all
  // are.
  float least = std::numeric_limits<float>::infinity(), most = 0, bad = 1;
  // Whether any zero point, as int8, is not 0.
  bool shifts = false;

 private:
  // Products that share values read them once.
  void read(std::span<const BatchAxis> axes, const Operand& param) {
    if (axes.empty()) return read(param);
    const int64_t stride = axes[0].params[which_];
    for (int64_t i = 0; i < (stride == 0 ? 1 : axes[0].size); ++i)
      read(axes.subspan(1), param.at(i * stride));
  }

  void read(const Operand& param) {
    const int64_t stride = of_columns_ ? param.col_stride : param.row_stride,
                  count = stride == 0   ? 1
                          : of_columns_ ? p_.n
                                        : p_.m;
    if (which_ == kBZeroPoint) {
      const auto zero = static_cast<std::byte>(int8_offset(param.dtype));
      int64_t i = 0;
      while (i < count && param.base[i * stride] == zero) ++i;
      shifts = shifts || i < count;
      return;
    }
    for (int64_t i = read_four_at_once(param, stride, count); i < count; ++i)
      add(read_scale(param.at(i * stride), 0, 0));
  }

  void add(float scale) {
    const bool may_be_zero = which_ != kYScale, is_gemm = p_.quantization.is_gemm,
               is_good =
                   std::isfinite(scale) && (scale > 0 || (!is_gemm && (scale < 0 || may_be_zero)));
    if (!is_good && bad == 1) bad = scale;
    least = std::min(least, std::abs(scale));
    most = std::max(most, std::abs(scale));
  }

  // Reads contiguous float32 scales of B if all are finite and above 0. Returns their number, or
  // else 0.
  int64_t read_four_at_once(const Operand& v, int64_t stride, int64_t count) {
    if (which_ != kBScale || stride != 1 || v.dtype != DType::kFloat32) return 0;
    const v128_t zero = wasm_f32x4_splat(0), infinity = wasm_f32x4_splat(INFINITY);
    v128_t good = wasm_i32x4_splat(-1), greatest = zero;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      const v128_t scale = wasm_v128_load(v.base + i * int64_t{sizeof(float)});
      good = wasm_v128_and(
          good, wasm_v128_and(wasm_f32x4_gt(scale, zero), wasm_f32x4_lt(scale, infinity)));
      greatest = wasm_f32x4_pmax(greatest, scale);
    }
    if (!wasm_i32x4_all_true(good)) return 0;
    float lanes[4];
    wasm_v128_store(lanes, greatest);
    for (const float lane : lanes) most = std::max(most, lane);
    return i;
  }

  const Problem& p_;
  const QuantizationParam which_;
  const bool of_columns_;
};

Status check_scales(const char* op, const char* name, const ParamValues& range,
                    bool must_be_positive) {
  const float scale = range.bad;
  if (scale == 1) return {};
  const char* found = std::isnan(scale)               ? "NaN"
                      : scale == 0                    ? "0"
                      : scale < 0 && must_be_positive ? "negative"
                                                      : "infinite";
  return error(Code::kArgument, op, name,
               {"% is %%", name, found,
                must_be_positive ? "; a scale must be finite and above 0"
                : scale == 0     ? "; it must be finite and not 0"
                                 : "; a scale must be finite"});
}

Status check_finite(const char* op, const char* name, const char* product, float value) {
  if (std::isfinite(value)) return {};
  return error(Code::kArgument, op, name, {"% is not finite in float32; it must be", product});
}

}  // namespace

Status read_quantization(const char* op, Problem* problem) {
  Quantization& q = problem->quantization;
  WGEMM_RETURN_IF_ERROR(check_finite(op, "alpha", "alpha", q.alpha));
  const ParamValues of_a(*problem, kAScale), of_b(*problem, kBScale), of_y(*problem, kYScale),
      zero_points(*problem, kBZeroPoint);
  const float a_scale_max = std::abs(q.alpha) * of_a.most;
  WGEMM_RETURN_IF_ERROR(check_scales(op, "a_scale", of_a, q.is_gemm));
  WGEMM_RETURN_IF_ERROR(check_scales(op, "y_scale", of_y, q.is_gemm));
  WGEMM_RETURN_IF_ERROR(check_finite(op, "a_scale", "alpha * a_scale", a_scale_max));
  WGEMM_RETURN_IF_ERROR(check_scales(op, "b_scale", of_b, q.is_gemm));
  WGEMM_RETURN_IF_ERROR(
      check_finite(op, "b_scale",
                   q.is_gemm ? "alpha * a_scale * b_scale, divided by y_scale if there is one,"
                             : "a_scale * b_scale, divided by y_scale if there is one,",
                   q.scale(a_scale_max, of_b.most, of_y.least)));
  q.b_scale_max = of_b.most;
  if (!q.has_row_scales) {
    q.a_scale = q.alpha * read_scale(q.params[kAScale], 0, 0);
    q.y_scale = read_scale(q.params[kYScale], 0, 0);
    q.y_zero_point = read_zero_point(q.params[kYZeroPoint], 0, 0);
  }
  if (!q.has_row_zero_points) q.a_zero_point = read_zero_point(q.params[kAZeroPoint], 0, 0);
  const Operand& of_columns = q.params[kBZeroPoint];
  q.shifts_b = of_columns.base == nullptr ? int8_offset(of_columns.dtype) != 0 : zero_points.shifts;
  return {};
}

}  // namespace wgemm
