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
        kernel_(*plan.kernel),
        acc_bytes_(dtype_bytes(accumulator_type(problem.compute))),
        b_panels_(arena.take(plan.b_bytes)),
        a_panels_(arena.take(plan.a_bytes)),
        acc_(arena.take(plan.acc_bytes)),
        columns_(arena.take(plan.columns_bytes)),
        row_sums_(problem.quantization.shifts_b ? static_cast<int32_t*>(arena.take(plan.sums_bytes)) : nullptr) {}

  void run() {
    for (int64_t col = 0; col < p_.n; col += plan_.nc) {
      const int64_t cols = std::min(plan_.nc, p_.n - col);
      if (plan_.columns_bytes != 0) block_columns_ = make_columns(p_.quantization, col, cols, columns_);
      for (int64_t row = 0; row < p_.m; row += plan_.mc) block_of_y(row, std::min(plan_.mc, p_.m - row), col, cols);
    }
  }

 private:
  void block_of_y(int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const Block y = p_.y.block(row, col, rows, cols);
    // Accumulators of this block: Y itself, or scratch.
    std::byte* acc = plan_.direct ? y.data : static_cast<std::byte*>(acc_);
    const int64_t acc_stride = plan_.direct ? y.row_stride : cols;
    if (row_sums_ != nullptr) std::fill_n(row_sums_, rows, 0);
    for (int64_t k = 0; k < p_.k; k += plan_.kc) {
      const int64_t depth = std::min(plan_.kc, p_.k - k);
      if (plan_.pack_b) pack_b(k, depth, col, cols);
      multiply(row, rows, k, depth, col, cols, acc, acc_stride);
    }
    if (plan_.direct) return;
    const ConstBlock c = p_.epilogue.has_c ? p_.epilogue.c.block(row, col, rows, cols) : ConstBlock{};
    apply_epilogue(p_, rows, cols, {acc, acc_stride, block_columns_, row_sums_}, c, y);
  }

  void pack_b(int64_t k, int64_t depth, int64_t col, int64_t cols) {
    if (packed_k_ == k && packed_col_ == col) return;
    if (p_.stored_b.panels != nullptr) {
      const int64_t panels = (cols + kernel_.b.width - 1) / kernel_.b.width;
      widen_panels(p_.stored_b.block(k, col), p_.stored_b.stride(), panels, depth, kernel_.b, b_panels_);
    } else {
      const ConstBlock b = p_.b.block(k, col, depth, cols);
      pack({b.data, p_.b.dtype, cols, depth, b.col_stride, b.row_stride, int8_offset(p_.b.dtype)}, kernel_.b, b_panels_);
    }
    packed_k_ = k;
    packed_col_ = col;
  }

  void multiply(int64_t row, int64_t rows, int64_t k, int64_t depth, int64_t col, int64_t cols, std::byte* acc, int64_t acc_stride) {
    const ConstBlock a = p_.a.block(row, k, rows, depth);
    const std::byte* a_rows = a.data;
    size_t row_bytes = static_cast<size_t>(a.row_stride) * dtype_bytes(p_.a.dtype);
    if (plan_.pack_a) {
      pack({a.data, p_.a.dtype, rows, depth, a.row_stride, a.col_stride, p_.quantization.a_zero_point}, kernel_.a, a_panels_);
      if (row_sums_ != nullptr) sum_lanes(a_panels_, kernel_.a, rows, depth, row_sums_);
      a_rows = static_cast<const std::byte*>(a_panels_);
      // Of a panel of several rows, a row's share.
      row_bytes = panel_bytes(kernel_.a, depth) / static_cast<size_t>(kernel_.a.width);
    }
    const auto* b_panels = static_cast<const std::byte*>(b_panels_) + static_cast<size_t>(kernel_.b.lead * kernel_.b.element_bytes);
    Strip strip{.rows = 0,
                .cols = static_cast<size_t>(cols),
                .k = static_cast<size_t>(depth),
                .a = nullptr,
                .a_stride = row_bytes,
                .b = plan_.pack_b ? b_panels : p_.stored_b.block(k, col),
                .b_stride = plan_.pack_b ? panel_bytes(kernel_.b, depth) : p_.stored_b.stride(),
                .c = nullptr,
                .c_stride = static_cast<size_t>(acc_stride) * acc_bytes_,
                .accumulate = k > 0};
    for (int64_t i = 0; i < rows; i += kernel_.mr) {
      strip.rows = static_cast<size_t>(std::min<int64_t>(kernel_.mr, rows - i));
      strip.a = a_rows + static_cast<size_t>(i) * row_bytes;
      strip.c = acc + static_cast<size_t>(i) * strip.c_stride;
      kernel_.run(strip);
    }
  }

  const Problem& p_;
  const Plan& plan_;
  const Kernel& kernel_;
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
  if (problem.m == 0 || problem.n == 0) return;
  if (plan.kernel != nullptr) return Executor(problem, plan, arena).run();
  // No product.
  void* const memory = arena.take(plan.columns_bytes);
  for (int64_t col = 0; col < problem.n; col += plan.nc) {
    const int64_t cols = std::min(plan.nc, problem.n - col);
    const ConstBlock c = problem.epilogue.has_c ? problem.epilogue.c.block(0, col, problem.m, cols) : ConstBlock{};
    const Columns columns = plan.columns_bytes == 0 ? Columns{} : make_columns(problem.quantization, col, cols, memory);
    apply_epilogue(problem, problem.m, cols, {nullptr, 0, columns, nullptr}, c, problem.y.block(0, col, problem.m, cols));
  }
}

}  // namespace wgemm
