// Packs weights of MatMulNBits, computes the floats that they stand for, and quantizes A for them.
#pragma once

#include "pack/pack.h"
#include "problem/nbits.h"
#include "problem/prepacked.h"

namespace wgemm {

// Packs the `depth` by `cols` block at (row, col) into micro-panels. `row` must be the first of a
// block of K, and `depth` must end one or end at K.
void pack_codes(const NBitsSource& source, int64_t row, int64_t depth, int64_t col, int64_t cols,
                std::byte* panels);

// Fills `panels`, in the layout of a float32 kernel, with the numbers that packed weights stand
// for, each rounded to float32. As repack() otherwise.
void widen_codes(const PrepackedB& weights, int64_t row, int64_t depth, int64_t col, int64_t cols,
                 const PanelLayout& layout, void* panels);
// The same for weights that are not packed.
void widen_codes(const NBitsSource& source, int64_t row, int64_t depth, int64_t col, int64_t cols,
                 const PanelLayout& layout, void* panels);

// Quantizes a piece of a row of A to int8, with a scale per block of K. The piece begins with a
// block. With s = max|a| / 127, q is a / s rounded half to even. NBits::quantized_row_bytes() has
// the layout. `a` has one lane.
void quantize_row(const PackSource& a, const NBits& format, std::byte* to);

// Whether the padding of packed weights is zeros. For block formats, see pack/blocks.h.
bool is_padded(const std::byte* panels, const NBits& format, int64_t k, int64_t n);

}  // namespace wgemm
