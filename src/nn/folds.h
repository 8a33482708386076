// Folds: elements that a function of two joins to one, such as their sum.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "nn/operator.h"

namespace wgemm::nn {

// A fold has eight parts. Element i joins part i % 8, and the parts are joined at the end.
inline constexpr int64_t kParts = 8;

enum class Join { kAdd, kMul, kMax, kMin, kAddAbs, kAddSquare };

struct Fold {
  // Joins elements with the eight parts at `output`. The count must be a multiple of 8. Elements
  // are float64 or integers of 64 bits, aligned to 16 bytes.
  Loop join;
  uint64_t start;  // the bits of an element that changes no part
};

// Floating point folds as float64, and integers as 64 bits, which wrap. NaN makes all results NaN.
const Fold& fold_of(Join kind, DType type, bool is_float);

// Reads elements as float64, or integers as int64.
void load_wide(DType type, const std::byte* from, int64_t step, int64_t count, bool is_float,
               void* to);
// Writes one or more of what load_wide() reads.
void store_wide(DType type, const void* from, int64_t count, bool is_float, std::byte* to,
                int64_t step);

}  // namespace wgemm::nn
