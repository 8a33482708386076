// The macro-kernel. Its loops, by the names of BLIS:
//
//   BLIS:   jc (NC) -> pc (KC) pack B -> ic (MC) pack A -> jr (NR) -> ir (MR) -> micro-kernel
//   wgemm:  tasks -> jc (NC) -> [products that share B] -> ic (MC) -> pc (KC) pack B (kept if
//           unchanged), pack A -> ir (MR) -> micro-kernel, which loops over jr
//
// The head of plan/blocking.cc says why pc is inside ic, and jr inside the micro-kernel.
//
// Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), is the source
// of the blocking.
#include "execute/execute.h"

#include <algorithm>
#include <utility>

#include "base/arena.h"
#include "base/parallel.h"
#include "base/types.h"
#include "execute/epilogue.h"
#include "execute/prefetch.h"
#include "execute/quantize_a.h"
#include "execute/zero_points.h"
#include "pack/nbits.h"
#include "pack/pack.h"
#include "pack/weights.h"

namespace wgemm {
namespace {

// Numbers from `begin` up to `end`.
struct Interval {
  int64_t begin, end;
};

// Bytes of a row of the smallest tile. C with rows of so few bytes has one tile per row, which may
// write beyond it.
constexpr size_t kSpillBytes = 32;

struct Task {
  Interval outer, inner, rows, cols;
};

// Task `index` of the plan. Tasks with adjacent indices differ in their rows first.
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

// Computes tasks in sequence, with its own scratch.
class Executor {
 public:
  Executor(const Problem& problem, const Plan& plan, std::byte* scratch)
      : p_(problem),
        plan_(plan),
        at_{problem.a, problem.b, problem.epilogue.c, problem.y, {}},
        acc_bytes_(dtype_bytes(accumulator_type(problem.compute))),
        scratch_(scratch),
        b_panels_(take(plan.b_bytes)),
        a_panels_(take(plan.a_bytes)),
        acc_(take(plan.acc_bytes)),
        zero_points_{problem, plan, take(plan.columns_bytes), take(plan.sums_bytes)} {}

  // Products that share B are inside the jc loop, so that a block of B is packed once for all of
  // them.
  void run(const Task& task) {
    for_each_product(p_.batch_of_b(), task.outer, [&] {
      ready_pc_ = ready_jc_ = -1;
      for (int64_t jc = task.cols.begin; jc < task.cols.end; jc += plan_.nc) {
        const int64_t nc = std::min(plan_.nc, task.cols.end - jc);
        zero_points_.begin_columns(at_.params, at_.b, jc, nc);
        for_each_product(p_.batch_sharing_b(), task.inner, [&] {
          for (int64_t ic = task.rows.begin; ic < task.rows.end; ic += plan_.mc)
            macro_kernel(ic, std::min(plan_.mc, task.rows.end - ic), jc, nc);
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
    ParamOffsets params;

    void advance(const BatchAxis& axis, int64_t steps) {
      a = a.at(axis.a * steps);
      b = b.at(axis.b * steps);
      c = c.at(axis.c * steps);
      y = y.at(axis.y * steps);
    }
    [[gnu::noinline]] void advance_params(const BatchAxis& axis, int64_t steps) {
      for (int i = 0; i < kQuantizationParams; ++i) params.at[i] += axis.params[i] * steps;
    }
  };

  // Calls `work` for each product in `range`, with at_ set to its matrices. Products are numbered
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
      if (p_.compute == DType::kInt8) at_.advance_params(axes[0], i);
      for_each_product(
          rest,
          {std::max<int64_t>(range.begin - i * step, 0), std::min(range.end - i * step, step)},
          work);
    }
    at_ = first;
  }

  // Accumulators of a block; null if there is no product.
  struct Sums {
    std::byte* data;
    int64_t stride;    // elements from row to row
    int64_t step = 1;  // elements from column to column
  };

  // The sums of an MC x NC block of C: carried over blocks of K, or in Y itself, or in scratch.
  Sums sums_of(int64_t ic, int64_t jc, int64_t nc, const Block& y) const {
    if (p_.carry.sums != nullptr)
      return {p_.carry.sums + static_cast<size_t>(ic * p_.n + jc) * acc_bytes_, p_.n};
    if (plan_.kernel == nullptr) return {nullptr, nc};
    return plan_.direct ? Sums{y.data, y.row_stride, y.col_stride} : Sums{acc_, nc};
  }

  // Computes mc rows by nc columns of Y.
  void macro_kernel(int64_t ic, int64_t mc, int64_t jc, int64_t nc) {
    const Block y = at_.y.block(ic, jc, mc, nc);
    const Sums sums = sums_of(ic, jc, nc, y);
    zero_points_.begin_rows(at_.params, ic, mc);
    for (int64_t pc = 0; pc < p_.k; pc += plan_.kc) {
      const int64_t kc = std::min(plan_.kc, p_.k - pc);
      if (plan_.prefetch_a) prefetch(at_.a.block(ic, pc, mc, kc), p_.a.dtype, mc, kc);
      if (ready_pc_ != pc || ready_jc_ != jc) {
        if (plan_.prefetch_b) prefetch_b(pc, kc, jc, nc);
        if (plan_.pack_b) pack_b(pc, kc, jc, nc);
        ready_pc_ = pc;
        ready_jc_ = jc;
      }
      multiply(ic, mc, pc, kc, jc, nc, sums);
    }
    if (plan_.direct) return;
    zero_points_.end_rows(mc);
    if (!p_.carry.ends) {
      zero_points_.subtract_terms(mc, nc, reinterpret_cast<uint32_t*>(sums.data), sums.stride);
      return;
    }
    const ConstBlock c = p_.epilogue.has_c ? at_.c.block(ic, jc, mc, nc) : ConstBlock{};
    apply_epilogue(p_, plan_.canonical_nan, mc, nc,
                   {sums.data, sums.stride, zero_points_.columns(), zero_points_.row_sums(),
                    quantized_rows(ic)},
                   c, y);
  }

  // The values of the rows from `ic` on.
  [[gnu::noinline]] QuantizedRows quantized_rows(int64_t ic) const {
    const Quantization& q = p_.quantization;
    const auto from = [&](QuantizationParam which) {
      const Operand& param = q.params[which];
      return param.at(at_.params.at[which] + ic * param.row_stride);
    };
    if (!q.has_row_scales) return {{}, {}, {}, zero_points_.row_x()};
    return {from(kAScale), from(kYScale), from(kYZeroPoint), zero_points_.row_x()};
  }

  void prefetch_b(int64_t pc, int64_t kc, int64_t jc, int64_t nc) {
    if (!at_.b.is_packed())
      return prefetch(at_.b.plain.block(pc, jc, kc, nc), p_.b.plain.dtype, kc, nc);
    const PanelLayout layout = at_.b.packed.layout();
    prefetch(at_.b.packed.block(pc, jc), (nc + layout.width - 1) / layout.width,
             at_.b.packed.panel_stride(),
             static_cast<size_t>(kc * layout.width * layout.element_bytes));
  }

  void pack_b(int64_t pc, int64_t kc, int64_t jc, int64_t nc) {
    const PanelLayout& layout = plan_.kernel->b;
    if (plan_.packs_columns()) {
      for (int64_t j = 0; j < nc; ++j)
        pack_column(pc, kc, jc + j, b_panels_ + static_cast<size_t>(j) * panel_bytes(layout, kc));
    } else if (at_.b.is_packed()) {
      repack(at_.b.packed, pc, kc, jc, nc, layout, plan_.b_shift, b_panels_);
    } else if (at_.b.nbits.codes != nullptr) {
      if (plan_.kernel->codes != ReadsCodes::kNo) {
        pack_codes(at_.b.nbits, pc, kc, jc, nc, b_panels_);
      } else {
        widen_codes(at_.b.nbits, pc, kc, jc, nc, layout, b_panels_);
      }
    } else {
      const ConstBlock b = at_.b.plain.block(pc, jc, kc, nc);
      pack({b.data, p_.b.plain.dtype, nc, kc, b.col_stride, b.row_stride,
            int8_offset(p_.b.plain.dtype)},
           layout, b_panels_);
    }
    zero_points_.add_packed_b(b_panels_, nc, kc, pc == 0);
  }

  void pack_column(int64_t pc, int64_t kc, int64_t col, std::byte* to) {
    const PanelLayout& layout = plan_.kernel->b;
    const Operand& zero_points = p_.quantization.params[kBZeroPoint];
    const int zero_point = read_zero_point(zero_points.at(at_.params.at[kBZeroPoint]), 0, col) -
                           int8_offset(zero_points.dtype);
    if (at_.b.is_packed()) return repack(at_.b.packed, pc, kc, col, 1, layout, zero_point, to);
    const ConstBlock b = at_.b.plain.block(pc, col, kc, 1);
    const DType type = p_.b.plain.dtype;
    pack({b.data, type, 1, kc, 0, b.row_stride, zero_point + int8_offset(type)}, layout, to);
  }

  // Adds the product of one block of A and one of B to `sums`: packs A, then loops over ir.
  void multiply(int64_t ic, int64_t mc, int64_t pc, int64_t kc, int64_t jc, int64_t nc,
                const Sums& sums) {
    const Kernel& kernel = *plan_.kernel;
    const ConstBlock a = at_.a.block(ic, pc, mc, kc);
    const std::byte* a_rows = a.data;
    size_t row_bytes = static_cast<size_t>(a.row_stride) * dtype_bytes(p_.a.dtype);
    const NBits& nbits = p_.b.nbits_format();
    if (kernel.codes == ReadsCodes::kByBytes) {
      quantize_rows({a.data, p_.a.dtype, mc, kc, a.row_stride, a.col_stride}, nbits, a_panels_);
      a_rows = a_panels_;
      row_bytes = static_cast<size_t>(nbits.quantized_row_bytes(kc));
    } else if (plan_.pack_a) {
      pack({a.data, p_.a.dtype, mc, kc, a.row_stride, a.col_stride, zero_points_.packed_a_offset()},
           kernel.a, a_panels_);
      zero_points_.add_packed_a(a_panels_, mc, kc);
      a_rows = a_panels_;
      // Bytes per row of a micro-panel.
      row_bytes = panel_bytes(kernel.a, kc) / static_cast<size_t>(kernel.a.width);
    }
    Strip strip{
        .rows = 0,
        .cols = static_cast<size_t>(nc),
        .k = static_cast<size_t>(kc),
        .a = nullptr,
        .a_stride = row_bytes,
        .b = nullptr,
        .b_stride = 0,
        .b_step = static_cast<size_t>(kernel.b.width * kernel.b.kr * kernel.b.element_bytes),
        .unpacked = kernel.b_layout != BLayout::kPanels,
        .unsigned_a = !plan_.pack_a && p_.a.dtype == DType::kUInt8,
        .c = nullptr,
        .c_stride = static_cast<size_t>(sums.stride) * acc_bytes_,
        .c_step = static_cast<size_t>(sums.step) * acc_bytes_,
        .accumulate = pc > 0 || !p_.carry.begins,
        .nbits = &nbits};
    set_b(&strip, pc, kc, jc, nc);
    const bool can_spill = static_cast<size_t>(nc) * acc_bytes_ <= kSpillBytes &&
                           sums.stride == nc && !strip.unpacked && !strip.accumulate;
    for (int64_t ir = 0; ir < mc; ir += kernel.mr) {
      strip.rows = static_cast<size_t>(std::min<int64_t>(kernel.mr, mc - ir));
      strip.a = a_rows + static_cast<size_t>(ir) * row_bytes;
      strip.c = sums.data + static_cast<size_t>(ir) * strip.c_stride;
      strip.spills = can_spill && (mc - ir - kernel.mr) * nc >= kernel.nr;
      kernel.run(strip);
    }
  }

  // Where the kernel reads B: unpacked, from b_panels_, or from packed weights.
  void set_b(Strip* strip, int64_t pc, int64_t kc, int64_t jc, int64_t nc) {
    const Kernel& kernel = *plan_.kernel;
    if (strip->unpacked) {
      const ConstBlock b = at_.b.plain.block(pc, jc, kc, nc);
      const size_t bytes = dtype_bytes(p_.b.plain.dtype);
      const bool row_major = kernel.b_layout == BLayout::kRowMajor;
      strip->b = b.data;
      strip->b_step = static_cast<size_t>(b.row_stride) * bytes;
      strip->b_stride = static_cast<size_t>(row_major ? kernel.b.width : b.col_stride) * bytes;
    } else if (plan_.pack_b) {
      strip->b = b_panels_ + kernel.b.header * kernel.b.element_bytes;
      strip->b_stride = kernel.codes == ReadsCodes::kNo
                            ? panel_bytes(kernel.b, kc)
                            : static_cast<size_t>(strip->nbits->panel_bytes(kc));
    } else {
      strip->b = at_.b.packed.block(pc, jc);
      strip->b_stride = at_.b.packed.panel_stride();
    }
  }

  std::byte* take(size_t bytes) {
    return std::exchange(scratch_, scratch_ + Arena::round_up(bytes));
  }

  const Problem& p_;
  const Plan& plan_;
  Operands at_;
  const size_t acc_bytes_;  // of an accumulator
  std::byte* scratch_;      // the rest, which take() has not returned yet
  std::byte* const b_panels_;
  std::byte* const a_panels_;
  std::byte* const acc_;
  ZeroPointCorrection zero_points_;
  // The block of B that is prefetched, or that b_panels_ holds.
  int64_t ready_pc_ = -1, ready_jc_ = -1;
};

void run_tasks(Context& context, const Problem& problem, const Plan& plan, std::byte* scratch) {
  struct Job {
    const Problem& problem;
    const Plan& plan;
    std::byte* scratch;
  } job{problem, plan, scratch};
  const auto work = [](void* argument, size_t thread, size_t task) {
    const auto& [p, all, memory] = *static_cast<const Job*>(argument);
    Executor(p, all, memory + thread * all.thread_bytes).run(task_at(p, all, task));
  };
  if (plan.tasks() == 1) return work(&job, 0, 0);  // the thread pool would cost time
  Threads::run(context, static_cast<size_t>(plan.tasks()), work, &job);
}

}  // namespace

void execute(Context& context, const Problem& problem, const Plan& plan, std::byte* scratch) {
  if (problem.m == 0 || problem.n == 0) return;
  if (!problem.quantization.quantizes_a) return run_tasks(context, problem, plan, scratch);
  Problem quantized = problem;
  quantize_a(&quantized, scratch);
  run_tasks(context, quantized, plan, scratch + plan.quantized_a_bytes);
}

}  // namespace wgemm
