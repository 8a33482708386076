#include "plan/regime.h"

namespace wgemm {

Regime regime_of(const Problem& problem, const Kernel& kernel) {
  const bool is_gemv = problem.m == 1;
  switch (kernel.b_layout) {
    case BLayout::kRowMajor:
      if (kernel.axpy) return Regime::kGemvAxpy;
      return is_gemv ? Regime::kGemvRowMajor : Regime::kSkinnyRowMajor;
    case BLayout::kColumnMajor:
      return is_gemv ? Regime::kGemvColumnMajor : Regime::kSkinnyColumnMajor;
    case BLayout::kPanels:
      break;
  }
  if (is_gemv) return Regime::kGemv;
  return problem.m < kGemmRowsMin ? Regime::kSkinny : Regime::kGemm;
}

}  // namespace wgemm
