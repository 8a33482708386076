// Prefetch of blocks that come from memory, by ordinary loads: WebAssembly has no instruction for
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "problem/operand.h"

namespace wgemm {

// Loads `rows` rows of `row_bytes` bytes into the caches. `stride`: bytes from row to row.
void prefetch(const std::byte* matrix, int64_t rows, size_t stride, size_t row_bytes);

// Loads a row-major or column-major block. Does nothing for any other layout.
void prefetch(const ConstBlock& block, DType dtype, int64_t rows, int64_t cols);

}  // namespace wgemm
