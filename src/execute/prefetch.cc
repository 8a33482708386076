#include "execute/prefetch.h"

#include <algorithm>

#include "base/types.h"

namespace wgemm {

// Not inlined, so that the module has it once.
[[gnu::noinline]] void prefetch(const std::byte* matrix, int64_t rows, size_t stride,
                                size_t row_bytes) {
  // One stream reaches only half of the memory bandwidth.
  constexpr int64_t kStreams = 8;
  constexpr size_t kLine = 64;
  const int64_t rows_per_stream = (rows + kStreams - 1) / kStreams;
  for (int64_t row = 0; row < rows_per_stream; ++row) {
    const volatile std::byte* starts[kStreams];  // volatile: else the compiler removes the loads
    for (int64_t s = 0; s < kStreams; ++s)
      starts[s] =
          matrix + static_cast<size_t>(std::min(row + s * rows_per_stream, rows - 1)) * stride;
#pragma clang loop unroll(disable)  // it waits for memory
    for (size_t at = 0; at < row_bytes; at += kLine) {
      for (const volatile std::byte* start : starts) static_cast<void>(start[at]);
    }
  }
}

void prefetch(const ConstBlock& block, DType dtype, int64_t rows, int64_t cols) {
  const size_t bytes = dtype_bytes(dtype);
  if (block.col_stride == 1) {
    prefetch(block.data, rows, static_cast<size_t>(block.row_stride) * bytes,
             static_cast<size_t>(cols) * bytes);
  } else if (block.row_stride == 1) {
    prefetch(block.data, cols, static_cast<size_t>(block.col_stride) * bytes,
             static_cast<size_t>(rows) * bytes);
  }
}

}  // namespace wgemm
