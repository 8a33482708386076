// Blocks as in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), with the blocks of K innermost, so that
// the accumulators of one block of Y are all that waits.
#include "execute.h"

#include <algorithm>

#include "epilogue.h"
#include "pack.h"
#include "pack_8bit.h"
#include "types.h"

namespace wgemm {
namespace {

class Executor {
 public:
  Executor(const Problem& problem, const Plan& plan, Arena& arena)
      : p_(problem),
        plan_(plan),
        at_{problem.a, problem.b, problem.stored_b, problem.epilogue.c, problem.y},
        acc_bytes_(dtype_bytes(accumulator_type(problem.compute))),
        b_panels_(arena.take(plan.b_bytes)),
        a_panels_(arena.take(plan.a_bytes)),
        acc_(arena.take(plan.acc_bytes)),
        columns_(arena.take(plan.columns_bytes)),
        row_sums_(problem.quantization.shifts_b && plan.sums_bytes != 0 ? static_cast<int32_t*>(arena.take(plan.sums_bytes)) : nullptr) {}

  // Products that share a matrix B lie inside the loop over its columns, so that it is packed once for all of them.
  void run() {
    size_t sharing = p_.batch.size();
    while (sharing > 0 && p_.batch[sharing - 1].b == 0) --sharing;
    for_each_product(p_.batch.first(sharing), [&] {
      packed_k_ = packed_col_ = -1;
      for (int64_t col = 0; col < p_.n; col += plan_.nc) {
        const int64_t cols = std::min(plan_.nc, p_.n - col);
        if (plan_.columns_bytes != 0) block_columns_ = make_columns(p_.quantization, col, cols, columns_);
        for_each_product(p_.batch.subspan(sharing), [&] {
          for (int64_t row = 0; row < p_.m; row += plan_.mc) block_of_y(row, std::min(plan_.mc, p_.m - row), col, cols);
        });
      }
    });
  }

 private:
  // The matrices of one product of the batch.
  struct Operands {
    Operand a, b;
    StoredOperand stored_b;
    Operand c;
    OutputOperand y;

    void advance(const BatchAxis& axis, int64_t steps) {
      a = a.at(axis.a * steps);
      if (stored_b.panels != nullptr) {
        stored_b = stored_b.at(axis.b * steps);
      } else {
        b = b.at(axis.b * steps);
      }
      c = c.at(axis.c * steps);
      y = y.at(axis.y * steps);
    }
  };

  // Calls `work` with at_ set to each product of these axes in turn.
  template <typename Work>
  void for_each_product(std::span<const BatchAxis> axes, const Work& work) {
    if (axes.empty()) return work();
    const Operands first = at_;
    for (int64_t i = 0; i < axes[0].size; ++i) {
      at_ = first;
      at_.advance(axes[0], i);
      for_each_product(axes.subspan(1), work);
    }
    at_ = first;
  }

  void block_of_y(int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const Block y = at_.y.block(row, col, rows, cols);
    // Accumulators of this block: none without a product, Y itself, or scratch.
    std::byte* acc = plan_.kernel == nullptr ? nullptr : plan_.direct ? y.data : static_cast<std::byte*>(acc_);
    const int64_t acc_stride = plan_.direct ? y.row_stride : cols;
    if (row_sums_ != nullptr) std::fill_n(row_sums_, rows, 0);
    for (int64_t k = 0; k < p_.k; k += plan_.kc) {
      const int64_t depth = std::min(plan_.kc, p_.k - k);
      if (plan_.pack_b) pack_b(k, depth, col, cols);
      multiply(row, rows, k, depth, col, cols, acc, acc_stride);
    }
    if (plan_.direct) return;
    const ConstBlock c = p_.epilogue.has_c ? at_.c.block(row, col, rows, cols) : ConstBlock{};
    apply_epilogue(p_, plan_.canonical_nan, rows, cols, {acc, acc_stride, block_columns_, row_sums_}, c, y);
  }

  void pack_b(int64_t k, int64_t depth, int64_t col, int64_t cols) {
    if (packed_k_ == k && packed_col_ == col) return;
    const PanelLayout& layout = plan_.kernel->b;
    if (at_.stored_b.panels != nullptr) {
      unpack(at_.stored_b, k, depth, col, cols, layout, b_panels_);
    } else {
      const ConstBlock b = at_.b.block(k, col, depth, cols);
      pack({b.data, p_.b.dtype, cols, depth, b.col_stride, b.row_stride, int8_offset(p_.b.dtype)}, layout, b_panels_);
    }
    packed_k_ = k;
    packed_col_ = col;
  }

  void multiply(int64_t row, int64_t rows, int64_t k, int64_t depth, int64_t col, int64_t cols, std::byte* acc, int64_t acc_stride) {
    const Kernel& kernel = *plan_.kernel;
    const ConstBlock a = at_.a.block(row, k, rows, depth);
    const std::byte* a_rows = a.data;
    size_t row_bytes = static_cast<size_t>(a.row_stride) * dtype_bytes(p_.a.dtype);
    if (plan_.pack_a) {
      pack({a.data, p_.a.dtype, rows, depth, a.row_stride, a.col_stride, p_.quantization.a_zero_point}, kernel.a, a_panels_);
      if (row_sums_ != nullptr) sum_lanes(a_panels_, kernel.a, rows, depth, row_sums_);
      a_rows = static_cast<const std::byte*>(a_panels_);
      // Of a panel of several rows, a row's share.
      row_bytes = panel_bytes(kernel.a, depth) / static_cast<size_t>(kernel.a.width);
    }
    const size_t lead_bytes = static_cast<size_t>(kernel.b.lead * kernel.b.element_bytes);
    Strip strip{.rows = 0,
                .cols = static_cast<size_t>(cols),
                .k = static_cast<size_t>(depth),
                .a = nullptr,
                .a_stride = row_bytes,
                .b = plan_.pack_b ? static_cast<const std::byte*>(b_panels_) + lead_bytes : at_.stored_b.block(k, col),
                .b_stride = plan_.pack_b ? panel_bytes(kernel.b, depth) : at_.stored_b.panel_stride(),
                .c = nullptr,
                .c_stride = static_cast<size_t>(acc_stride) * acc_bytes_,
                .accumulate = k > 0};
    for (int64_t i = 0; i < rows; i += kernel.mr) {
      strip.rows = static_cast<size_t>(std::min<int64_t>(kernel.mr, rows - i));
      strip.a = a_rows + static_cast<size_t>(i) * row_bytes;
      strip.c = acc + static_cast<size_t>(i) * strip.c_stride;
      kernel.run(strip);
    }
  }

  const Problem& p_;
  const Plan& plan_;
  Operands at_;
  const size_t acc_bytes_;  // of an accumulator
  void* const b_panels_;
  void* const a_panels_;
  void* const acc_;
  void* const columns_;
  int32_t* const row_sums_;  // null where they are not needed
  Columns block_columns_;
  int64_t packed_k_ = -1, packed_col_ = -1;  // the block of B that b_panels_ holds
};

}  // namespace

void execute(const Problem& problem, const Plan& plan, Arena& arena) {
  if (problem.m != 0 && problem.n != 0) Executor(problem, plan, arena).run();
}

}  // namespace wgemm
