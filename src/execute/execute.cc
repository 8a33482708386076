// Blocks as in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008),
// with the blocks of K innermost, so that the accumulators of one block of Y are all that waits.
#include "execute/execute.h"

#include <algorithm>
#include <utility>

#include "base/arena.h"
#include "base/parallel.h"
#include "base/types.h"
#include "execute/epilogue.h"
#include "pack/pack.h"
#include "pack/pack_8bit.h"
#include "pack/weights.h"

namespace wgemm {
namespace {

// Numbers from `begin` up to `end`.
struct Interval {
  int64_t begin, end;
};

struct Task {
  Interval outer, inner, rows, cols;
};

// Task `index` of the plan's. Those next to each other differ in their rows first.
Task task_at(const Problem& problem, const Plan& plan, size_t index) {
  auto left = static_cast<int64_t>(index);
  const auto next = [&](const Cut& cut, int64_t total) {
    const int64_t begin = left % cut.count * cut.size;
    left /= cut.count;
    return Interval{begin, std::min(begin + cut.size, total)};
  };
  Task task;
  task.rows = next(plan.rows, problem.m);
  task.inner = next(plan.inner, products_of(problem.batch_sharing_b()));
  task.cols = next(plan.cols, problem.n);
  task.outer = next(plan.outer, products_of(problem.batch_of_b()));
  return task;
}

// Reads rows of so many bytes through, `stride` bytes apart, so that they are in a cache when they
// are needed: WebAssembly has no prefetch. In eight streams, since one gets half of what memory can
// give.
[[gnu::noinline]] void prefetch(const std::byte* matrix, int64_t rows, size_t stride,
                                size_t bytes) {
  constexpr int64_t kStreams = 8;
  constexpr size_t kLine = 64;
  const int64_t share = (rows + kStreams - 1) / kStreams;
  for (int64_t row = 0; row < share; ++row) {
    const volatile std::byte* starts[kStreams];  // or nothing would be read
    for (int64_t s = 0; s < kStreams; ++s)
      starts[s] = matrix + static_cast<size_t>(std::min(row + s * share, rows - 1)) * stride;
#pragma clang loop unroll(disable)  // it waits for memory
    for (size_t at = 0; at < bytes; at += kLine) {
      for (const volatile std::byte* start : starts) static_cast<void>(start[at]);
    }
  }
}

// The same of a block whose rows or columns are contiguous.
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

// Computes tasks, one after the other, with scratch of its own.
class Executor {
 public:
  Executor(const Problem& problem, const Plan& plan, std::byte* scratch)
      : p_(problem),
        plan_(plan),
        at_{problem.a, problem.b, problem.epilogue.c, problem.y},
        acc_bytes_(dtype_bytes(accumulator_type(problem.compute))),
        scratch_(scratch),
        b_panels_(take(plan.b_bytes)),
        a_panels_(take(plan.a_bytes)),
        acc_(take(plan.acc_bytes)),
        columns_(take(plan.columns_bytes)),
        row_sums_((problem.quantization.shifts_b || plan.b_shift != 0) && plan.sums_bytes != 0
                      ? reinterpret_cast<int32_t*>(take(plan.sums_bytes))
                      : nullptr) {
    if (!kHasDots || plan.kernel == nullptr || plan.kernel->dot == Dot::kNone) return;
    byte_form_ = {.a_zero_point = problem.quantization.a_zero_point - int8_offset(problem.a.dtype) +
                                  plan.a_shift,
                  .b_shift = plan.b_shift,
                  .column_sums = problem.b.packed.column_sums,
                  .k = problem.b.packed.k};
  }

  // Products that share a matrix B lie inside the loop over its columns, so that it is packed once
  // for all of them.
  void run(const Task& task) {
    for_each_product(p_.batch_of_b(), task.outer, [&] {
      ready_k_ = ready_col_ = -1;
      for (int64_t col = task.cols.begin; col < task.cols.end; col += plan_.nc) {
        const int64_t cols = std::min(plan_.nc, task.cols.end - col);
        if (plan_.columns_bytes != 0)
          block_columns_ = make_columns(p_.quantization, byte_form_, col, cols, columns_);
        for_each_product(p_.batch_sharing_b(), task.inner, [&] {
          for (int64_t row = task.rows.begin; row < task.rows.end; row += plan_.mc) {
            block_of_y(row, std::min(plan_.mc, task.rows.end - row), col, cols);
          }
        });
      }
    });
  }

 private:
  // The matrices of one product of the batch.
  struct Operands {
    Operand a;
    BSource b;
    Operand c;
    OutputOperand y;

    void advance(const BatchAxis& axis, int64_t steps) {
      a = a.at(axis.a * steps);
      b = b.at(axis.b * steps);
      c = c.at(axis.c * steps);
      y = y.at(axis.y * steps);
    }
  };

  // Calls `work` with at_ set to each product of these axes in turn, of those in `range`, counted
  // along the last axis first.
  template <typename Work>
  void for_each_product(std::span<const BatchAxis> axes, Interval range, const Work& work) {
    if (axes.empty()) return work();
    const std::span<const BatchAxis> rest = axes.subspan(1);
    const int64_t step = products_of(rest);
    const Operands first = at_;
    for (int64_t i = range.begin / step; i * step < range.end; ++i) {
      at_ = first;
      at_.advance(axes[0], i);
      for_each_product(
          rest,
          {std::max<int64_t>(range.begin - i * step, 0), std::min(range.end - i * step, step)},
          work);
    }
    at_ = first;
  }

  void block_of_y(int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const Block y = at_.y.block(row, col, rows, cols);
    const Carry& carry = p_.carry;
    // Accumulators of this block: none without a product, Y itself, scratch, or those that are
    // carried on.
    std::byte* acc = plan_.kernel == nullptr ? nullptr : plan_.direct ? y.data : acc_;
    int64_t acc_stride = plan_.direct ? y.row_stride : cols;
    if (carry.sums != nullptr) {
      acc = carry.sums + static_cast<size_t>(row * p_.n + col) * acc_bytes_;
      acc_stride = p_.n;
    }
    if (row_sums_ != nullptr) std::fill_n(row_sums_, rows, 0);
    for (int64_t k = 0; k < p_.k; k += plan_.kc) {
      const int64_t depth = std::min(plan_.kc, p_.k - k);
      if (plan_.prefetch_a) prefetch(at_.a.block(row, k, rows, depth), p_.a.dtype, rows, depth);
      if (ready_k_ != k || ready_col_ != col) {
        if (plan_.prefetch_b) prefetch_b(k, depth, col, cols);
        if (plan_.pack_b) pack_b(k, depth, col, cols);
        ready_k_ = k;
        ready_col_ = col;
      }
      multiply(row, rows, k, depth, col, cols, acc, acc_stride);
    }
    if (plan_.direct) return;
    if (!carry.ends)
      return row_sums_ == nullptr
                 ? void()
                 : take_off_zero_points(rows, cols, reinterpret_cast<uint32_t*>(acc));
    const ConstBlock c = p_.epilogue.has_c ? at_.c.block(row, col, rows, cols) : ConstBlock{};
    apply_epilogue(p_, plan_.canonical_nan, rows, cols,
                   {acc, acc_stride, block_columns_, row_sums_}, c, y);
  }

  // From sums that are carried on, what these k have too much by the zero points of B: so that no
  // sums of rows need to be carried.
  void take_off_zero_points(int64_t rows, int64_t cols, uint32_t* acc) {
    for (int64_t i = 0; i < rows; ++i, acc += p_.n) {
      const auto sum = static_cast<uint32_t>(row_sums_[i]);
      for (int64_t j = 0; j < cols; ++j)
        acc[j] -= sum * static_cast<uint32_t>(block_columns_.zero_point[j]);
    }
  }

  void prefetch_b(int64_t k, int64_t depth, int64_t col, int64_t cols) {
    if (!at_.b.is_packed())
      return prefetch(at_.b.plain.block(k, col, depth, cols), p_.b.plain.dtype, depth, cols);
    const PanelLayout layout = at_.b.packed.layout();
    prefetch(at_.b.packed.block(k, col), (cols + layout.width - 1) / layout.width,
             at_.b.packed.panel_stride(),
             static_cast<size_t>(depth * layout.width * layout.element_bytes));
  }

  void pack_b(int64_t k, int64_t depth, int64_t col, int64_t cols) {
    const PanelLayout& layout = plan_.kernel->b;
    if (at_.b.is_packed()) {
      unpack(at_.b.packed, k, depth, col, cols, layout, plan_.b_shift, b_panels_);
    } else {
      const ConstBlock b = at_.b.plain.block(k, col, depth, cols);
      pack({b.data, p_.b.plain.dtype, cols, depth, b.col_stride, b.row_stride,
            int8_offset(p_.b.plain.dtype)},
           layout, b_panels_);
    }
  }

  void multiply(int64_t row, int64_t rows, int64_t k, int64_t depth, int64_t col, int64_t cols,
                std::byte* acc, int64_t acc_stride) {
    const Kernel& kernel = *plan_.kernel;
    const ConstBlock a = at_.a.block(row, k, rows, depth);
    const std::byte* a_rows = a.data;
    size_t row_bytes = static_cast<size_t>(a.row_stride) * dtype_bytes(p_.a.dtype);
    if (plan_.pack_a) {
      const bool bytes = kHasDots && kernel.dot != Dot::kNone;
      const int less =
          bytes ? int8_offset(p_.a.dtype) - plan_.a_shift : p_.quantization.a_zero_point;
      pack({a.data, p_.a.dtype, rows, depth, a.row_stride, a.col_stride, less}, kernel.a,
           a_panels_);
      if (row_sums_ != nullptr && bytes) {
        sum_quads(a_panels_, plan_.a_shift == 0, byte_form_.a_zero_point, rows, depth, row_sums_);
      } else if (row_sums_ != nullptr) {
        sum_lanes(a_panels_, kernel.a, rows, depth, row_sums_);
      }
      a_rows = a_panels_;
      // Of a panel of several rows, a row's share.
      row_bytes = panel_bytes(kernel.a, depth) / static_cast<size_t>(kernel.a.width);
    }
    Strip strip{
        .rows = 0,
        .cols = static_cast<size_t>(cols),
        .k = static_cast<size_t>(depth),
        .a = nullptr,
        .a_stride = row_bytes,
        .b = nullptr,
        .b_stride = 0,
        .b_step = static_cast<size_t>(kernel.b.width * kernel.b.kr * kernel.b.element_bytes),
        .unpacked = kernel.b_layout != BLayout::kPanels,
        .c = nullptr,
        .c_stride = static_cast<size_t>(acc_stride) * acc_bytes_,
        .accumulate = k > 0 || !p_.carry.begins};
    if (strip.unpacked) {
      const ConstBlock b = at_.b.plain.block(k, col, depth, cols);
      const size_t bytes = dtype_bytes(p_.b.plain.dtype);
      strip.b = b.data;
      strip.b_step = static_cast<size_t>(b.row_stride) * bytes;
      strip.b_stride = static_cast<size_t>(kernel.b_layout == BLayout::kRowMajor ? kernel.b.width
                                                                                 : b.col_stride) *
                       bytes;
    } else if (plan_.pack_b) {
      strip.b = b_panels_ + kernel.b.header * kernel.b.element_bytes;
      strip.b_stride = panel_bytes(kernel.b, depth);
    } else {
      strip.b = at_.b.packed.block(k, col);
      strip.b_stride = at_.b.packed.panel_stride();
    }
    for (int64_t i = 0; i < rows; i += kernel.mr) {
      strip.rows = static_cast<size_t>(std::min<int64_t>(kernel.mr, rows - i));
      strip.a = a_rows + static_cast<size_t>(i) * row_bytes;
      strip.c = acc + static_cast<size_t>(i) * strip.c_stride;
      kernel.run(strip);
    }
  }

  std::byte* take(size_t bytes) {
    return std::exchange(scratch_, scratch_ + Arena::round_up(bytes));
  }

  const Problem& p_;
  const Plan& plan_;
  Operands at_;
  const size_t acc_bytes_;  // of an accumulator
  std::byte* scratch_;      // what is left of it
  std::byte* const b_panels_;
  std::byte* const a_panels_;
  std::byte* const acc_;
  std::byte* const columns_;
  int32_t* const row_sums_;  // null where they are not needed
  ByteForm byte_form_;
  Columns block_columns_;
  int64_t ready_k_ = -1,
          ready_col_ = -1;  // the block of B that is read through, or that b_panels_ holds
};

}  // namespace

void execute(Context& context, const Problem& problem, const Plan& plan, std::byte* scratch) {
  if (problem.m == 0 || problem.n == 0) return;
  struct Job {
    const Problem& problem;
    const Plan& plan;
    std::byte* scratch;
  } job{problem, plan, scratch};
  const auto work = [](void* argument, size_t thread, size_t task) {
    const auto& [p, all, memory] = *static_cast<const Job*>(argument);
    Executor(p, all, memory + thread * all.thread_bytes).run(task_at(p, all, task));
  };
  if (plan.tasks() == 1) return work(&job, 0, 0);  // without a call of the pool
  Threads::run(context, static_cast<size_t>(plan.tasks()), work, &job);
}

}  // namespace wgemm
