// The operations: each checks its arguments by its specification and writes a Problem. One file an operation.
#pragma once

#include "problem.h"
#include "wgemm.h"

namespace wgemm {

// with_data: the addresses count, so null data is an error and problem's operands are set; else only sizes and `place` are looked at.
// Y is checked if with_data or if its dims are given.
Status gemm_problem(const GemmArgs& args, bool with_data, Problem* problem);

// As gemm_problem. Without data the values of scales, zero points and alpha are not looked at.
Status qgemm_problem(const QGemmArgs& args, bool with_data, Problem* problem);

// Checks what is to be packed: B' as an operand of k rows and n columns.
Status pack_operand(const PackArgs& args, Operand* b, int64_t* k, int64_t* n);

}  // namespace wgemm
