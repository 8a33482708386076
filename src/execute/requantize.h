// The epilogue of 8-bit operands: turns int32 accumulators into int32, float32, float16, int8 or
// uint8.
#pragma once

#include "execute/epilogue.h"

namespace wgemm {

// As apply_epilogue(), for a problem of 8-bit operands.
void requantize(const Problem& problem, bool canonical_nan, int64_t rows, int64_t cols,
                const Accumulators& acc, const ConstBlock& c, const Block& y);

// The most elements of a row of C that gather_c() copies.
inline constexpr int64_t kMostGathered = 512;

// Copies `count` elements of a row of C to `out`. Integers keep their type; floating point becomes
// float32 or float64. `stride` counts elements.
void gather_c(DType type, const std::byte* c, int64_t stride, int64_t count, void* out);

// Rounds `count` float32 to float16.
void narrow_to_float16(const float* from, void* to, int64_t count);

}  // namespace wgemm
