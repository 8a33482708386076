// Packs blocks of ggml as files have them, and checks packed blocks. problem/nbits.h has the packed
// layout.
#pragma once

#include <span>

#include "problem/nbits.h"
#include "problem/prepacked.h"

namespace wgemm {

// Packs whole columns from column `first` on. `bytes` has their blocks, column after column, as a
// file has them. `panels` are the panels of `weights`; check_blocks() has checked the sizes. Error:
// kArgument, if a scale is infinite or NaN; then nothing is packed.
Status pack_blocks(const PrepackedB& weights, int64_t first, std::span<const std::byte> bytes,
                   std::byte* panels);

// Describes the first fault of packed blocks, which come from outside: padding that is not zeros,
// also in the unused bits of a byte, or a scale that is infinite or NaN. Null: there is none.
const char* fault_of_blocks(const std::byte* panels, const NBits& format, int64_t k, int64_t n);

}  // namespace wgemm
