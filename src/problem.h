// What an operation asks for, as plain data, after all checks: transposes have become strides, broadcast axes have stride 0, opsets and
// defaults are resolved. Written by ops/, read by everything behind.
#pragma once

#include <cstdint>

#include "operand.h"

namespace wgemm {

// alpha or beta, rounded as the type demands.
struct Scalar {
  double value = 1;
  uint64_t integer = 1;  // value modulo 2^64, where `whole`
  bool whole = true;
};

// What becomes of the accumulators: Y = alpha * acc + beta * C.
struct Epilogue {
  Scalar alpha, beta;
  bool has_c = false;  // false: C is absent, or beta is 0 and C must not be read
  Operand c;           // M x N
};

struct Problem {
  int64_t m = 0, n = 0, k = 0;
  DType compute = DType::kFloat32;  // the type that kernels multiply and accumulate in
  Operand a;                        // M x K
  Operand b;                        // K x N
  OutputOperand y;                  // M x N
  Epilogue epilogue;
};

}  // namespace wgemm
