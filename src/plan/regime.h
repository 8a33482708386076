// The cases of a product that plans distinguish. blocking.cc has a row of rules for each.
#pragma once

#include "kernels/kernel.h"
#include "problem/problem.h"

namespace wgemm {

// What decides: M, and how the kernel reads B. Columns and rows are those of the problem that is
// computed, which may be the transpose of what the caller asked for.
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

// Fewer rows are a skinny GEMM: to pack B counts for more than to read A again for each block.
inline constexpr int64_t kGemmRowsMin = 512;

Regime regime_of(const Problem& problem, const Kernel& kernel);

// For explain(): "skinny GEMM", for instance. Part of the regime's row in blocking.cc.
const char* name_of(Regime regime);

}  // namespace wgemm
