// Which row of the table of kernels computes a problem.
#pragma once

#include "kernels/kernel.h"
#include "problem/problem.h"

namespace wgemm {

// Whether the kernel can read B as it is stored: B has the element type and the layout of the
// kernel.
bool can_read_b(const Problem& problem, const Kernel& kernel);

// Whether the kernel is right for these operands on this engine. Relaxed dot products have
// conditions.
bool can_run(const Kernel& kernel, const Problem& problem);

// The number subtracted from B, as int8, for a dot product. Then the second operand is 0 to 127, or
// has no -128.
int shift_of_b(Dot dot, const PrepackedB& b);

// The first row of the table that can run and pays. `vectors`: as of a context.
const Kernel& select_kernel(const Problem& problem, KernelTable table, Determinism determinism,
                            Processor processor, int vectors);

// Bytes of a matrix of `lanes` rows or columns by K. A double, since a shape may exceed 2^63 bytes.
double bytes_of(int64_t lanes, int64_t k, DType type);

// Fewest columns of a task or a product for which kernels by axpy are faster than tiles. 32
// columns were 70% slower.
inline constexpr int64_t kAxpyColumnsMin = 64;

}  // namespace wgemm
