#include "kernels/f64_simd128.h"

#include "kernels/loops/axpy.h"
#include "kernels/loops/column_major.h"
#include "kernels/loops/half_panels.h"
#include "kernels/loops/ops.h"
#include "kernels/loops/single_dots.h"
#include "kernels/loops/strip.h"

namespace wgemm {
namespace {

template <typename Math, size_t vectors = 4>
struct F64 : Math, Plain<double, vectors> {
  using Half = F64<Math, vectors / 2>;
};

// The Ops of panels.h and axpy.h in this build.
#if WGEMM_AVX2
template <typename Math>
using BuildOps = Wide<Math, double>;
#else
template <typename Math>
using BuildOps = F64<Math>;
#endif

}  // namespace

void f64_2x8_simd128(const Strip& s) {
  strip_of<BuildOps<Unfused<double>>, Tile<1, 2>, Tile<2, 1>>(s);
}

#if WGEMM_RELAXED
void f64_6x8_relaxed(const Strip& s) {
  strip_of<BuildOps<Fused<double>>, Tile<1, 2>, Tile<2, 1>, HalfTile<4>, HalfTile<6>>(s);
}
void f64_5x8_relaxed(const Strip& s) {
  s.rows <= 2 ? f64_6x8_relaxed(s) : strip_of<BuildOps<Fused<double>>, Tile<5, 1>>(s);
}
void f64_gemv_1x8_relaxed_axpy(const Strip& s) { axpy<F64<Fused<double>, 2>, f64_6x8_relaxed>(s); }
void f64_gemv_1x1_relaxed_dot(const Strip& s) { single_dots<Fused<double>, double>(s); }
void f64_2x8_relaxed_colmajor(const Strip& s) {
  strip_of<F64<Fused<double>>, ColumnMajorTile<1, 8>, ColumnMajorTile<2, 8>>(s);
}
#else
void f64_gemv_1x1_simd128_dot(const Strip& s) { single_dots<Unfused<double>, double>(s); }
void f64_2x8_simd128_colmajor(const Strip& s) {
  strip_of<F64<Unfused<double>>, ColumnMajorTile<1, 8>, ColumnMajorTile<2, 8>>(s);
}
void f64_gemv_1x8_simd128_axpy(const Strip& s) {
  axpy<F64<Unfused<double>, 2>, f64_2x8_simd128>(s);
}
#endif

}  // namespace wgemm
