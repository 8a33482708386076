// Packed weights in the making, and what reads their panels.
#pragma once

#include "problem/pack_problem.h"
#include "problem/prepacked.h"

namespace wgemm {

// Fills `panels` of `layout`, whose width divides that of the storage, with a block of `depth` by
// `cols`; `less` is taken off 8-bit elements that stay bytes.
void unpack(const PrepackedB& weights, int64_t row, int64_t depth, int64_t col, int64_t cols,
            const PanelLayout& layout, int less, void* panels);

// Bytes of the panels of one matrix: in 64 bits, which no checked sizes pass, since they may be
// more than memory has.
int64_t stored_bytes(const PackProblem& problem);

// The parts of weights that are not empty.
struct WeightsAccess {
  static const void* block(const PackedWeights& weights) { return weights.block_; }
  static PackedWeights own(Context& context, const void* block);

  // Weights in the making: memory whose panels are yet to be filled, for `op` of packing to name in
  // errors; and its panels, matrix_bytes of operand() from matrix to matrix.
  static Status allocate(Context& context, const char* op, PackFor target,
                         const PackProblem& problem, PackedWeights* weights);
  static std::byte* panels(const PackedWeights& weights) {
    return const_cast<std::byte*>(prepacked_of(weights).panels);
  }
  // Computes what follows from the panels: of 8 bits the sums of the columns, and the range; of
  // float16 whether all are finite.
  static void finish(const PackedWeights& weights);
};

// Writes the checksum of serialized weights into them.
void seal(std::span<std::byte> bytes);

}  // namespace wgemm
