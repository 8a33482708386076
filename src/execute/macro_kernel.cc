// Its loops, by the names of BLIS:
//
//   BLIS:   jc (NC) -> pc (KC) pack B -> ic (MC) pack A -> jr (NR) -> ir (MR) -> micro-kernel
//   wgemm:  tasks -> jc (NC) -> [products that share B] -> ic (MC) -> pc (KC) pack B (kept if
//           unchanged), pack A -> ir (MR) -> micro-kernel, which loops over jr
//
// The head of plan/blocking.cc says why pc is inside ic, and jr inside the micro-kernel.
//
// Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), is the source
// of the blocking.
#include "execute/macro_kernel.h"

#include <algorithm>
#include <utility>

#include "base/arena.h"
#include "base/types.h"
#include "execute/prefetch.h"
#include "execute/scope.h"
#include "pack/nbits.h"
#include "pack/weights.h"

namespace wgemm {
namespace {

// Bytes of a row of the smallest tile. C with rows of so few bytes has one tile per row, which may
// write beyond it.
constexpr size_t kSpillBytes = 32;

// Computes tasks in sequence, with its own scratch. The scope says which problems it has code for.
template <typename Scope>
class Executor {
 public:
  // `shared_b`: B, packed for all threads; null: blocks of B are packed as they are needed.
  [[gnu::noinline]] Executor(const Problem& problem, const Plan& plan, std::byte* scratch,
                             std::byte* shared_b)
      : p_(problem),
        plan_(plan),
        shared_b_(kHasThreads ? shared_b : nullptr),
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
    if (!kIsAny) return run_columns(task);
    for_each_product(p_.batch_of_b(), task.outer, [&] { run_columns(task); });
  }

  // Packs units of shared_b_: kUnitColumns of a block of K.
  void pack_units(size_t first, size_t count) {
    const int64_t cols = (p_.n + Plan::kUnitColumns - 1) / Plan::kUnitColumns;
    for (size_t i = first; i < first + count; ++i) {
      const int64_t pc = static_cast<int64_t>(i) / cols * plan_.kc,
                    jc = static_cast<int64_t>(i) % cols * Plan::kUnitColumns,
                    kc = std::min(plan_.kc, p_.k - pc);
      pack_b(pc, kc, jc, std::min(Plan::kUnitColumns, p_.n - jc), shared_block(pc, kc, jc));
    }
  }

 private:
  static constexpr bool kIsAny = Scope::kIsAny;

  // The matrices of one product of the batch.
  struct Operands {
    Operand a;
    BSource b;
    Operand c;
    OutputOperand y;
    ParamOffsets params;
  };

  // These are not inlined, so that the module has them once.
  [[gnu::noinline]] void run_columns(const Task& task) {
    ready_pc_ = ready_jc_ = -1;
    for (int64_t jc = task.cols.begin; jc < task.cols.end; jc += plan_.nc) {
      const int64_t nc = std::min(plan_.nc, task.cols.end - jc);
      zero_points_.begin_columns(at_.params, at_.b, jc, nc);
      if (!kIsAny) {
        run_rows(task, jc, nc);
        continue;
      }
      for_each_product(p_.batch_sharing_b(), task.inner, [&] { run_rows(task, jc, nc); });
    }
  }
  [[gnu::noinline]] void run_rows(const Task& task, int64_t jc, int64_t nc) {
    for (int64_t ic = task.rows.begin; ic < task.rows.end; ic += plan_.mc)
      macro_kernel(ic, std::min(plan_.mc, task.rows.end - ic), jc, nc);
  }

  // Calls `work` for each product in `range`, with at_ set to its matrices. Products are numbered
  // along the last axis first.
  template <typename Work>
  [[gnu::always_inline]] void for_each_product(std::span<const BatchAxis> axes, Interval range,
                                               const Work& work) {
    if (axes.empty()) return work();
    for_each_of_batch(axes, range, work);
  }
  template <typename Work>
  [[gnu::noinline]] void for_each_of_batch(std::span<const BatchAxis> axes, Interval range,
                                           const Work& work) {
    const std::span<const BatchAxis> rest = axes.subspan(1);
    const int64_t step = products_of(rest);
    int64_t i = range.begin / step;
    advance(axes[0], i);
    for (; i * step < range.end; ++i) {
      for_each_product(
          rest,
          {std::max<int64_t>(range.begin - i * step, 0), std::min(range.end - i * step, step)},
          work);
      advance(axes[0], 1);
    }
    advance(axes[0], -i);
  }

  [[gnu::noinline]] void advance(const BatchAxis& axis, int64_t steps) {
    at_.a.advance(axis.a * steps);
    at_.b.advance(axis.b * steps);
    at_.c.advance(axis.c * steps);
    at_.y.advance(axis.y * steps);
    for (int i = 0; i < kQuantizationParams; ++i) at_.params.at[i] += axis.params[i] * steps;
  }

  // The accumulators of a block. `data` is null if there is no product.
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

  // The columns that the triangle has in rows [row, end) of a block of nc columns. They count from
  // `jc`. The interval is empty if its end is not greater than its begin.
  Interval columns_of(int64_t row, int64_t end, int64_t jc, int64_t nc) const {
    switch (p_.triangle) {
      case Triangle::kLower:
        return {0, std::min(nc, end - jc)};
      case Triangle::kUpper:
        return {std::max<int64_t>(row - jc, 0), nc};
      default:
        return {0, nc};
    }
  }

  // Computes mc rows by nc columns of Y.
  void macro_kernel(int64_t ic, int64_t mc, int64_t jc, int64_t nc) {
    const Interval columns = columns_of(ic, ic + mc, jc, nc);
    if (columns.begin >= columns.end) return;
    const Block y = at_.y.block(ic, jc, mc, nc);
    const Sums sums = sums_of(ic, jc, nc, y);
    zero_points_.begin_rows(at_.params, ic, mc);
    for (int64_t pc = 0; pc < p_.k; pc += plan_.kc) {
      const int64_t kc = std::min(plan_.kc, p_.k - pc);
      if (plan_.prefetch_a) prefetch(at_.a.block(ic, pc, mc, kc), p_.a.dtype, mc, kc);
      if (ready_pc_ != pc || ready_jc_ != jc) {
        if (kHasThreads && shared_b_ != nullptr) {
          zero_points_.add_packed_b(shared_block(pc, kc, jc), nc, kc, pc == 0);
        } else {
          if (plan_.prefetch_b) prefetch_b(pc, kc, jc, nc);
          if (plan_.pack_b) {
            pack_b(pc, kc, jc, nc, b_panels_);
            zero_points_.add_packed_b(b_panels_, nc, kc, pc == 0);
          }
        }
        ready_pc_ = pc;
        ready_jc_ = jc;
      }
      multiply(ic, mc, pc, kc, jc, nc, sums);
    }
    if (plan_.direct) return;
    if (p_.k == 0) zero_points_.clear_columns(nc);
    zero_points_.end_rows(mc);
    if (!p_.carry.ends) {
      zero_points_.subtract_terms(mc, nc, reinterpret_cast<uint32_t*>(sums.data), sums.stride);
      return;
    }
    if (p_.triangle != Triangle::kNone) return finish_triangle(ic, mc, jc, nc, sums);
    const ConstBlock c = p_.epilogue.has_c ? at_.c.block(ic, jc, mc, nc) : ConstBlock{};
    if (!kIsAny)
      return Scope::finish(p_, false, mc, nc, {sums.data, sums.stride, {}, nullptr, {}}, c, y);
    Scope::finish(p_, plan_.canonical_nan, mc, nc,
                  {sums.data, sums.stride, zero_points_.columns(), zero_points_.row_sums(),
                   quantized_rows(ic)},
                  c, y);
  }

  // Finishes a block row by row, and writes only elements of the triangle.
  [[gnu::noinline]] void finish_triangle(int64_t ic, int64_t mc, int64_t jc, int64_t nc,
                                         const Sums& sums) {
    for (int64_t i = 0; i < mc; ++i) {
      const Interval columns = columns_of(ic + i, ic + i + 1, jc, nc);
      if (columns.begin >= columns.end) continue;
      const int64_t col = jc + columns.begin, cols = columns.end - columns.begin;
      const std::byte* const row =
          sums.data == nullptr
              ? nullptr
              : sums.data + static_cast<size_t>(i * sums.stride + columns.begin) * acc_bytes_;
      Scope::finish(p_, plan_.canonical_nan, 1, cols, {row, sums.stride, {}, nullptr, {}},
                    p_.epilogue.has_c ? at_.c.block(ic + i, col, 1, cols) : ConstBlock{},
                    at_.y.block(ic + i, col, 1, cols));
    }
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
    if (!kIsAny || !at_.b.is_packed())
      return prefetch(at_.b.plain.block(pc, jc, kc, nc), p_.b.plain.dtype, kc, nc);
    const PanelLayout layout = at_.b.packed.layout();
    prefetch(at_.b.packed.block(pc, jc), (nc + layout.width - 1) / layout.width,
             at_.b.packed.panel_stride(),
             static_cast<size_t>(kc * layout.width * layout.element_bytes));
  }

  // Where a block of shared_b_ begins. It has blocks of KC steps, each with the panels of all N.
  [[gnu::noinline]] std::byte* shared_block(int64_t pc, int64_t kc, int64_t jc) const {
    const PanelLayout& layout = plan_.kernel->b;
    const int64_t blocks = pc / plan_.kc, panels = jc / layout.width;
    const NBits& nbits = p_.b.nbits_format();
    if (kIsAny && plan_.kernel->codes != ReadsCodes::kNo)
      return shared_b_ + blocks * nbits.packed_bytes(p_.n, plan_.kc) +
             panels * nbits.panel_bytes(kc);
    return shared_b_ + static_cast<size_t>(blocks) * packed_bytes(layout, p_.n, plan_.kc) +
           static_cast<size_t>(panels) * panel_bytes(layout, kc);
  }

  void pack_b(int64_t pc, int64_t kc, int64_t jc, int64_t nc, std::byte* panels) {
    const PanelLayout& layout = plan_.kernel->b;
    if (kIsAny && plan_.packs_columns()) {
      for (int64_t j = 0; j < nc; ++j)
        pack_column(pc, kc, jc + j, panels + static_cast<size_t>(j) * panel_bytes(layout, kc));
    } else if (kIsAny && at_.b.is_packed()) {
      repack(at_.b.packed, pc, kc, jc, nc, layout, plan_.b_shift, panels);
    } else if (kIsAny && at_.b.nbits.codes != nullptr) {
      if (plan_.kernel->codes != ReadsCodes::kNo) {
        pack_codes(at_.b.nbits, pc, kc, jc, nc, panels);
      } else {
        widen_codes(at_.b.nbits, pc, kc, jc, nc, layout, panels);
      }
    } else {
      const ConstBlock b = at_.b.plain.block(pc, jc, kc, nc);
      Scope::pack({b.data, p_.b.plain.dtype, nc, kc, b.col_stride, b.row_stride,
                   int8_offset(p_.b.plain.dtype)},
                  layout, panels);
    }
  }

  void pack_column(int64_t pc, int64_t kc, int64_t col, std::byte* to) {
    const PanelLayout& layout = plan_.kernel->b;
    const Operand& zero_points = p_.quantization.params[kBZeroPoint];
    const int zero_point = read_zero_point(zero_points.at(at_.params.at[kBZeroPoint]), 0, col) -
                           int8_offset(zero_points.dtype);
    if (at_.b.is_packed()) return repack(at_.b.packed, pc, kc, col, 1, layout, zero_point, to);
    const ConstBlock b = at_.b.plain.block(pc, col, kc, 1);
    const DType type = p_.b.plain.dtype;
    Scope::pack({b.data, type, 1, kc, 0, b.row_stride, zero_point + int8_offset(type)}, layout, to);
  }

  // Adds the product of one block of A and one of B to `sums`: packs A, then loops over ir.
  void multiply(int64_t ic, int64_t mc, int64_t pc, int64_t kc, int64_t jc, int64_t nc,
                const Sums& sums) {
    const Kernel& kernel = *plan_.kernel;
    const ConstBlock a = at_.a.block(ic, pc, mc, kc);
    const std::byte* a_rows = a.data;
    size_t row_bytes = static_cast<size_t>(a.row_stride) * dtype_bytes(p_.a.dtype);
    const NBits& nbits = p_.b.nbits_format();
    if (kIsAny && kernel.codes == ReadsCodes::kByBytes && plan_.pack_a) {
      a_rows = a_panels_;
      row_bytes = static_cast<size_t>(nbits.quantized_row_bytes(kc));
      for (int64_t row = 0; row < mc; ++row) {
        const std::byte* const from =
            a.data + row * a.row_stride * static_cast<int64_t>(dtype_bytes(p_.a.dtype));
        quantize_row({from, p_.a.dtype, 1, kc, 0, a.col_stride}, nbits,
                     a_panels_ + static_cast<size_t>(row) * row_bytes);
      }
    } else if (kIsAny && kernel.codes == ReadsCodes::kByBytes) {
      a_rows += nbits.quantized_row_bytes(pc);  // the columns of the block have no stride
    } else if (plan_.pack_a) {
      Scope::pack(
          {a.data, p_.a.dtype, mc, kc, a.row_stride, a.col_stride, zero_points_.packed_a_offset()},
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
        .unsigned_a = kIsAny && !plan_.pack_a && p_.a.dtype == DType::kUInt8,
        .c = nullptr,
        .c_stride = static_cast<size_t>(sums.stride) * acc_bytes_,
        .c_step = static_cast<size_t>(sums.step) * acc_bytes_,
        .accumulate = pc > 0 || !p_.carry.begins,
        .from_memory = plan_.from_memory,
        .nbits = &nbits};
    set_b(&strip, pc, kc, jc, nc);
    const std::byte* const b = static_cast<const std::byte*>(strip.b);
    const bool can_spill = static_cast<size_t>(nc) * acc_bytes_ <= kSpillBytes &&
                           sums.stride == nc && !strip.unpacked && !strip.accumulate;
    for (int64_t ir = 0; ir < mc; ir += kernel.mr) {
      strip.rows = static_cast<size_t>(std::min<int64_t>(kernel.mr, mc - ir));
      strip.a = a_rows + static_cast<size_t>(ir) * row_bytes;
      strip.c = sums.data + static_cast<size_t>(ir) * strip.c_stride;
      strip.spills = can_spill && (mc - ir - kernel.mr) * nc >= kernel.nr;
      if (p_.triangle != Triangle::kNone && !cut_strip(&strip, ic + ir, jc, nc, b)) continue;
      kernel.run(strip);
    }
  }

  // Cuts a strip, whose first row is `row`, to the tiles that the triangle touches. `b` and `nc`
  // belong to the whole strip. Returns false if the triangle touches no tile.
  [[gnu::noinline]] bool cut_strip(Strip* strip, int64_t row, int64_t jc, int64_t nc,
                                   const std::byte* b) {
    const Kernel& kernel = *plan_.kernel;
    const Interval columns = columns_of(row, row + static_cast<int64_t>(strip->rows), jc, nc);
    if (columns.begin >= columns.end) return false;
    const int64_t tile = std::max<int64_t>(kernel.nr, kernel.b.width),
                  begin = columns.begin / tile * tile,
                  end = std::min(nc, (columns.end + tile - 1) / tile * tile),
                  step = kernel.b_layout == BLayout::kColumnMajor ? 1 : kernel.b.width;
    strip->cols = static_cast<size_t>(end - begin);
    strip->b = b + static_cast<size_t>(begin / step) * strip->b_stride;
    strip->c = static_cast<std::byte*>(strip->c) + static_cast<size_t>(begin) * acc_bytes_;
    return true;
  }

  // Where the kernel reads B: unpacked, from b_panels_, or from packed weights.
  [[gnu::noinline]] void set_b(Strip* strip, int64_t pc, int64_t kc, int64_t jc, int64_t nc) {
    const Kernel& kernel = *plan_.kernel;
    if (strip->unpacked) {
      const ConstBlock b = at_.b.plain.block(pc, jc, kc, nc);
      const size_t bytes = dtype_bytes(p_.b.plain.dtype);
      const bool row_major = kernel.b_layout == BLayout::kRowMajor;
      strip->b = b.data;
      strip->b_step = static_cast<size_t>(b.row_stride) * bytes;
      strip->b_stride = static_cast<size_t>(row_major ? kernel.b.width : b.col_stride) * bytes;
    } else if (plan_.pack_b) {
      strip->b = (!kHasThreads || shared_b_ == nullptr ? b_panels_ : shared_block(pc, kc, jc)) +
                 kernel.b.header * kernel.b.element_bytes;
      strip->b_stride = !kIsAny || kernel.codes == ReadsCodes::kNo
                            ? panel_bytes(kernel.b, kc)
                            : static_cast<size_t>(strip->nbits->panel_bytes(kc));
    } else if (kIsAny) {
      strip->b = at_.b.packed.block(pc, jc);
      strip->b_stride = at_.b.packed.panel_stride();
    }
  }

  std::byte* take(size_t bytes) {
    return std::exchange(scratch_, scratch_ + Arena::round_up(bytes));
  }

  const Problem& p_;
  const Plan& plan_;
  std::byte* const shared_b_;
  Operands at_;
  const size_t acc_bytes_;  // of an accumulator
  std::byte* scratch_;      // the rest, which take() has not returned yet
  std::byte* const b_panels_;
  std::byte* const a_panels_;
  std::byte* const acc_;
  typename Scope::ZeroPoints zero_points_;
  // The block of B that is prefetched, or that b_panels_ holds.
  int64_t ready_pc_ = -1, ready_jc_ = -1;
};

}  // namespace

void run_task(const Problem& problem, const Plan& plan, const Task& task, std::byte* scratch,
              std::byte* shared_b) {
  Executor<AnyProblem>(problem, plan, scratch, shared_b).run(task);
}

void pack_units(const Problem& problem, const Plan& plan, size_t first, size_t count,
                std::byte* scratch, std::byte* shared_b) {
  Executor<AnyProblem>(problem, plan, scratch, shared_b).pack_units(first, count);
}

template <typename T>
void run_plain_task(const Problem& problem, const Plan& plan, const Task& task, std::byte* scratch,
                    std::byte* shared_b) {
  Executor<PlainProblem<T>>(problem, plan, scratch, shared_b).run(task);
}
template void run_plain_task<float>(const Problem&, const Plan&, const Task&, std::byte*,
                                    std::byte*);
template void run_plain_task<double>(const Problem&, const Plan&, const Task&, std::byte*,
                                     std::byte*);

template <typename T>
void pack_plain_units(const Problem& problem, const Plan& plan, size_t first, size_t count,
                      std::byte* scratch, std::byte* shared_b) {
  Executor<PlainProblem<T>>(problem, plan, scratch, shared_b).pack_units(first, count);
}
template void pack_plain_units<float>(const Problem&, const Plan&, size_t, size_t, std::byte*,
                                      std::byte*);
template void pack_plain_units<double>(const Problem&, const Plan&, size_t, size_t, std::byte*,
                                       std::byte*);

}  // namespace wgemm
