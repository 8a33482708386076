// Makes packed weights, and converts their panels for kernels that want another layout.
// problem/prepacked.h defines their layout. PackedWeights in wgemm.h owns their memory.
#pragma once

#include "problem/pack_problem.h"
#include "problem/prepacked.h"

namespace wgemm {

// Packs the matrices of `problem` into memory from `context`. Error: kOutOfMemory; *weights is then
// unchanged.
Status pack_weights(Context& context, const PackProblem& problem, PackedWeights* weights);

// Makes weights of zeros, which parts then replace: one matrix of floats, or in a block format.
// Error: kOutOfMemory; *weights is then unchanged.
Status begin_weights(Context& context, const PackProblem& problem, PackedWeights* weights);

// Packs a part of weights of floats, from (row, col) on. part_problem() has checked the sizes and
// the type of `part`.
void pack_part(const PackProblem& part, int64_t row, int64_t col, PackedWeights* weights);

// Fills `panels`, in a kernel's layout, with the `depth` by `cols` block of elements at (row, col).
// The layout's width divides the storage layout's. `shift` is subtracted from 8-bit elements,
// unless whole panels of them are widened. With panels of one column, cols must be 1.
void repack(const PrepackedB& weights, int64_t row, int64_t depth, int64_t col, int64_t cols,
            const PanelLayout& layout, int shift, void* panels);

// Rounds `count` elements, a multiple of 8, to float16 or bfloat16.
void round_elements(DType as, const float* from, uint16_t* to, int64_t count);

// Bytes of the panels of one matrix. The result fits 64 bits for all checked sizes, even those that
// exceed memory.
int64_t stored_bytes(const PackProblem& problem);

// Access to the members of PackedWeights. Except for memory(), weights must not be empty.
struct WeightsAccess {
  static const void* memory(const PackedWeights& weights) { return weights.memory_; }
  static PackedWeights own(Context& context, const void* memory);

  // Allocates weights whose panels the caller must fill, and then calls finish(). Errors call the
  // operation `op`.
  static Status allocate(Context& context, const char* op, const PackProblem& problem,
                         PackedWeights* weights);
  // The panels of the first matrix; the next matrix begins prepacked_of(weights).matrix_bytes
  // later.
  static std::byte* panels(const PackedWeights& weights) {
    return const_cast<std::byte*>(prepacked_of(weights).panels);
  }
  // Computes what follows from the panels: the column sums and range of 8-bit elements, and whether
  // all float16 elements are finite.
  static void finish(const PackedWeights& weights);
};

}  // namespace wgemm
