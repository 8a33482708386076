// The cases that the planner distinguishes. blocking.cc has a row of rules for each.
#pragma once

#include "kernels/kernel.h"
#include "problem/problem.h"

namespace wgemm {

// M and the layout of B decide. The problem that is computed has them, which may be the transpose
// of the caller's.
enum class Regime : uint8_t {
  kGemm,               // B in micro-panels, M of at least kGemmRowsMin
  kSkinny,             // B in micro-panels, fewer rows
  kSkinnyRowMajor,     // B unpacked and row-major
  kSkinnyColumnMajor,  // B unpacked and column-major
  kGemv,               // M = 1, B in micro-panels
  kGemvRowMajor,       // M = 1, B unpacked and row-major, by tiles
  kGemvColumnMajor,    // M = 1, B unpacked and column-major
  kGemvAxpy,           // M = 1, B unpacked and row-major, by long streams
};

// With fewer rows it is a skinny GEMM, for which packing B costs more than reading A again for each
// block of columns.
inline constexpr int64_t kGemmRowsMin = 512;

Regime regime_of(const Problem& problem, const Kernel& kernel);

// For explain(), such as "skinny GEMM".
const char* name_of(Regime regime);

}  // namespace wgemm
