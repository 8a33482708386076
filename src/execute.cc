// Blocks as in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), with the blocks of K innermost, so that
// the accumulators of one block of Y are all that waits.
#include "execute.h"

#include <algorithm>

#include "epilogue.h"
#include "pack.h"

namespace wgemm {
namespace {

class Executor {
 public:
  Executor(const Problem& problem, const Plan& plan, Arena& arena)
      : p_(problem),
        plan_(plan),
        kernel_(*plan.kernel),
        bytes_(dtype_bytes(problem.compute)),
        b_panels_(arena.take(plan.b_bytes)),
        a_panels_(arena.take(plan.a_bytes)),
        acc_(arena.take(plan.acc_bytes)) {}

  void run() {
    for (int64_t col = 0; col < p_.n; col += plan_.nc) {
      const int64_t cols = std::min(plan_.nc, p_.n - col);
      for (int64_t row = 0; row < p_.m; row += plan_.mc) block_of_y(row, std::min(plan_.mc, p_.m - row), col, cols);
    }
  }

 private:
  void block_of_y(int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const Block y = p_.y.block(row, col, rows, cols);
    // Accumulators of this block: Y itself, or scratch.
    std::byte* acc = plan_.direct ? y.data : static_cast<std::byte*>(acc_);
    const int64_t acc_stride = plan_.direct ? y.row_stride : cols;
    for (int64_t k = 0; k < p_.k; k += plan_.kc) {
      const int64_t depth = std::min(plan_.kc, p_.k - k);
      pack_b(k, depth, col, cols);
      multiply(row, rows, k, depth, cols, acc, acc_stride);
    }
    if (plan_.direct) return;
    const ConstBlock c = p_.epilogue.has_c ? p_.epilogue.c.block(row, col, rows, cols) : ConstBlock{};
    apply_epilogue(p_.epilogue, p_.y.dtype, rows, cols, acc, acc_stride, c, y);
  }

  void pack_b(int64_t k, int64_t depth, int64_t col, int64_t cols) {
    if (packed_k_ == k && packed_col_ == col) return;
    const ConstBlock b = p_.b.block(k, col, depth, cols);
    pack({b.data, p_.b.dtype, cols, depth, b.col_stride, b.row_stride}, kernel_.b, b_panels_);
    packed_k_ = k;
    packed_col_ = col;
  }

  void multiply(int64_t row, int64_t rows, int64_t k, int64_t depth, int64_t cols, std::byte* acc, int64_t acc_stride) {
    const ConstBlock a = p_.a.block(row, k, rows, depth);
    const std::byte* a_rows = a.data;
    size_t row_bytes = static_cast<size_t>(a.row_stride) * bytes_;
    if (plan_.pack_a) {
      pack({a.data, p_.a.dtype, rows, depth, a.row_stride, a.col_stride}, kernel_.a, a_panels_);
      a_rows = static_cast<const std::byte*>(a_panels_);
      // Of a panel of several rows, a row's share.
      row_bytes = panel_bytes(kernel_.a, depth) / static_cast<size_t>(kernel_.a.width);
    }
    Strip strip{.rows = 0,
                .cols = static_cast<size_t>(cols),
                .k = static_cast<size_t>(depth),
                .a = nullptr,
                .a_stride = row_bytes,
                .b = static_cast<const std::byte*>(b_panels_) + static_cast<size_t>(kernel_.b.lead * kernel_.b.element_bytes),
                .b_stride = panel_bytes(kernel_.b, depth),
                .c = nullptr,
                .c_stride = static_cast<size_t>(acc_stride) * bytes_,
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
  const size_t bytes_;  // of an element of the compute type
  void* const b_panels_;
  void* const a_panels_;
  void* const acc_;
  int64_t packed_k_ = -1, packed_col_ = -1;  // the block of B that b_panels_ holds
};

}  // namespace

void execute(const Problem& problem, const Plan& plan, Arena& arena) {
  if (problem.m == 0 || problem.n == 0) return;
  if (plan.kernel != nullptr) return Executor(problem, plan, arena).run();
  const ConstBlock c = problem.epilogue.has_c ? problem.epilogue.c.block(0, 0, problem.m, problem.n) : ConstBlock{};
  apply_epilogue(problem.epilogue, problem.y.dtype, problem.m, problem.n, nullptr, 0, c, problem.y.block(0, 0, problem.m, problem.n));
}

}  // namespace wgemm
