// What pack() is asked for, as plain data, after all checks.
#pragma once

#include <span>

#include "problem/operand.h"

namespace wgemm {

// What is to be packed: a stack of matrices B' of k rows and n columns.
struct PackProblem {
  Operand b;  // the first
  DType as;   // what elements are packed as
  int64_t k = 0, n = 0, matrices = 1;
  std::span<const int64_t> batch;  // sizes of the axes in front of the matrix
  int64_t strides[kMaxRank];       // of these axes
};

}  // namespace wgemm
