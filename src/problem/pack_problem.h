// The work of pack(), as plain data, after all checks. Written by ops/, read by pack/.
#pragma once

#include <span>

#include "problem/nbits.h"
#include "problem/operand.h"

namespace wgemm {

// A stack of matrices B' with k rows and n columns. It points into the caller's tensor.
struct PackProblem {
  Operand b;            // the first matrix
  NBitsSource nbits{};  // of kMatMulNBits: replaces b
  PackFor op = PackFor::kGemm;
  DType as;  // type of the packed elements
  int64_t k = 0, n = 0, matrices = 1;
  std::span<const int64_t> batch;  // sizes of the axes in front of the matrix
  int64_t strides[kMaxRank];       // of these axes, in elements
};

}  // namespace wgemm
