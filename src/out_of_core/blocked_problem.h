// A problem that is cut into blocks of given sizes: what choosing sizes and running share.
#pragma once

#include <algorithm>
#include <utility>

#include "base/arena.h"
#include "base/types.h"
#include "out_of_core/out_of_core.h"

namespace wgemm {

// The size of a block: rows and columns of Y, and steps of K.
struct BlockSizes {
  int64_t m = 0, n = 0, k = 0;
};

// Blocks are multiples of these, so that each begins with a whole panel of any kernel.
inline constexpr int64_t kBlockStep = 16, kBlockStepOfK = 64;

// The cost of a run without its elements, in bytes that could be copied meanwhile.
inline constexpr double kRunCost = 512;

// Blocks of `size` that cover `total`.
constexpr int64_t count_of(int64_t total, int64_t size) {
  return size == 0 ? 1 : (total + size - 1) / size;
}

// An operand of the whole problem, and the block of it that is in memory.
template <typename Byte>
class StagedOperand {
 public:
  StagedOperand(const BasicOperand<Byte>& operand, const OutOfCoreOperand& out_of_core)
      : whole_(operand), out_of_core_(out_of_core) {}

  bool is_out_of_core() const { return out_of_core_.tensor != nullptr; }

  // Bytes of memory for a block of this size, and the cost of moving one, in bytes.
  int64_t room(int64_t rows, int64_t cols) const {
    return is_out_of_core() ? Arena::round_up(bytes(runs(0, 0, 0, rows, cols))) : 0;
  }
  double cost(int64_t rows, int64_t cols) const {
    if (!is_out_of_core()) return 0;
    const Runs block = runs(0, 0, 0, rows, cols);
    return static_cast<double>(bytes(block)) + kRunCost * static_cast<double>(block.count);
  }

  // Null: nothing is moved, only counted.
  void set_memory(std::byte* memory) { memory_ = memory; }
  std::byte* memory() const { return memory_; }

  // Runs follow the axis with the shorter stride. An axis with stride 0 is moved once.
  bool runs_along_rows() const {
    return whole_.row_stride == 0 ||
           (whole_.col_stride != 0 && whole_.col_stride <= whole_.row_stride);
  }

  // The block from (row, col) on, in the matrix that begins `first` elements after the first one.
  // Its elements are valid after read().
  BasicOperand<Byte> block(int64_t first, int64_t row, int64_t col, int64_t rows, int64_t cols) {
    if (!is_out_of_core())
      return whole_.at(first + row * whole_.row_stride + col * whole_.col_stride);
    wanted_ = runs(first, row, col, rows, cols);
    const int64_t row_stride = runs_along_rows() ? wanted_.length : 1,
                  col_stride = runs_along_rows() ? 1 : wanted_.length;
    return {memory_, whole_.dtype, whole_.row_stride == 0 ? 0 : row_stride,
            whole_.col_stride == 0 ? 0 : col_stride};
  }

  // Moves the block that block() returned last to memory, unless it is there. Returns the bytes
  // moved.
  int64_t read() {
    if (!is_out_of_core() || wanted_ == held_) return 0;
    held_ = wanted_;
    return move();
  }
  // The next read() moves its block, whatever memory holds.
  void forget() { held_ = {}; }
  // Pretends that memory holds the block that is `elements` further: for counting only.
  void advance_held(int64_t elements) { held_.offset += elements; }
  // Moves that block from memory. Returns the bytes moved.
  int64_t write() { return is_out_of_core() ? move() : 0; }

 private:
  int64_t move() {
    Runs runs = wanted_;
    if (runs.length == 1) {  // adjacent runs of one element make one run
      std::swap(runs.count, runs.length);
      std::swap(runs.run_stride, runs.stride);
    } else if (runs.run_stride == runs.length * runs.stride) {
      runs.length *= std::exchange(runs.count, 1);
    }
    runs.offset += out_of_core_.offset;
    const OutOfCore& tensor = *out_of_core_.tensor;
    if (memory_ != nullptr && bytes(runs) != 0) tensor.move(tensor.caller, runs, memory_);
    return bytes(runs);
  }

  int64_t bytes(const Runs& runs) const {
    return runs.count * runs.length * static_cast<int64_t>(dtype_bytes(whole_.dtype));
  }

  Runs runs(int64_t first, int64_t row, int64_t col, int64_t rows, int64_t cols) const {
    const auto& [base, dtype, row_stride, col_stride] = whole_;
    Runs runs{first + row * row_stride + col * col_stride,
              row_stride == 0 ? std::min<int64_t>(rows, 1) : rows,
              col_stride == 0 ? std::min<int64_t>(cols, 1) : cols, row_stride, col_stride};
    if (!runs_along_rows()) {
      std::swap(runs.count, runs.length);
      std::swap(runs.run_stride, runs.stride);
    }
    return runs;
  }

  const BasicOperand<Byte> whole_;
  const OutOfCoreOperand out_of_core_;
  std::byte* memory_ = nullptr;
  Runs wanted_{}, held_{};  // what block() returned last, and what memory holds: at first nothing
};

// Where a product of the batch begins, from the first one: elements, or matrices of packed weights.
struct ProductOffsets {
  int64_t a = 0, b = 0, c = 0, y = 0;
  ParamOffsets params{};
};

// The blocks of one problem. Their sizes must be set before any other call.
class BlockedProblem {
 public:
  BlockedProblem(const Context& context, const Problem& problem,
                 const OutOfCoreOperands& out_of_core);

  void set_sizes(const BlockSizes& sizes) { sizes_ = sizes; }
  const BlockSizes& sizes() const { return sizes_; }
  const Problem& problem() const { return p_; }
  // Whether the transpose of each block is computed. All blocks agree, since transposed blocks
  // carry transposed sums.
  bool transposes() const { return transposes_; }
  // Whether K is cut into parts, whose sums are added: see steps_of_part().
  bool cuts_k() const { return part_steps_ < p_.k; }
  void do_not_cut_k() { part_steps_ = p_.k; }
  // A block of K has a multiple of these steps: of a part of K, or of a block of MatMulNBits.
  int64_t step_of_k() const {
    return cuts_k() ? part_steps_
                    : std::max<int64_t>(kBlockStepOfK, p_.b.nbits_format().block_size);
  }

  // Bytes of memory for blocks of these sizes, with the scratch of the block that needs most.
  int64_t bytes();
  // About the bytes that a run moves, with those to read and write carried sums again.
  double cost(const BlockSizes& sizes) const;

  // Lays out the blocks at `memory`, and returns what is left of it.
  std::byte* set_memory(std::byte* memory);

  // The block at `from`, of `size`, as a problem of its own. It is transposed if transposes().
  Problem block(const ProductOffsets& at, const BlockSizes& from, const BlockSizes& size);
  // All blocks of a K share the kernel of the first: kernels differ in which zero-point corrections
  // they leave to the epilogue.
  Plan plan_of(const Problem& problem, const BlockSizes& size) const;

  StagedOperand<const std::byte> a, b, c;
  StagedOperand<std::byte> y;

 private:
  int64_t sums_room() const;

  const Context& context_;
  const Problem& p_;
  const int64_t acc_bytes_;
  BlockSizes sizes_;
  std::byte *sums_ = nullptr, placeholder_{};
  bool transposes_ = false;
  int64_t part_steps_ = 0;
  // Whether sums are carried in the block of Y: both then have the same layout.
  bool shares_sums_ = false;
};

}  // namespace wgemm
