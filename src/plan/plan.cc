#include "plan/plan.h"

#include <algorithm>

#include "base/arena.h"
#include "base/machine.h"
#include "base/types.h"
#include "plan/blocking.h"
#include "plan/partition.h"
#include "plan/select_kernel.h"

namespace wgemm {
namespace {

// When the transpose is computed, with a row-major A. Kernels then waste no columns, and read A
// unpacked, as B. A is nearly all of the data. Kernels of 64-bit types waste none of four columns.
// The transpose pays from a few steps of k on, since dot kernels take four at a time. Kernels of
// int64 take one, and write columns of Y as fast as rows. If Y is a column, float64 kernels read
// K = 2 as vectors; with fewer than kTransposeRowsOfFewSteps rows, all types save calls.
constexpr int64_t kTransposeColumnsMax = 4, kTransposeColumnsMax64 = 3, kTransposeRowsMin = 8,
                  kTransposeStepsMin = 4, kTransposeRowsOfFewSteps = 256;

// Fewest rows for which the transpose pays. A column-major B of two to four columns is packed from
// five rows on, but as A it is read unpacked. A row-major B is packed either way: 5x3x4096 of
// float32 took 23% longer by the transpose. Kernels of int64 take two rows but one column at a
// time.
int64_t transpose_rows_min(const Problem& problem) {
  if (problem.b.is_packed() || problem.compute == DType::kInt64) return kTransposeRowsMin;
  return problem.n == 1 ? 2 : problem.b.plain.row_stride == 1 ? 5 : kTransposeRowsMin;
}

// Whether the transpose is faster. A column-major A would be packed, so there it pays for any K, as
// long as Y is narrower than a micro-panel. With one step of k, kernels read such an A unpacked.
bool has_narrow_y(const Problem& problem) {
  const int64_t m = problem.m, n = problem.n, k = problem.k;
  if (problem.a.row_stride == 1 && (k > 1 || n < kTransposeColumnsMax)) {
    return m > n && n < storage_layout(problem.compute).width && (n == 1 || m >= kTransposeRowsMin);
  }
  const bool is_64_bit = dtype_bytes(problem.compute) == 8;
  const int64_t columns_max = is_64_bit ? kTransposeColumnsMax64 : kTransposeColumnsMax;
  const bool pays_for_few_steps = n == 1 ? k == 1 || is_64_bit || m < kTransposeRowsOfFewSteps
                                         : problem.compute == DType::kInt64;
  return problem.a.col_stride == 1 && m >= transpose_rows_min(problem) && n <= columns_max &&
         (k >= kTransposeStepsMin || pays_for_few_steps);
}

// The kernel writes Y itself if nothing is left to do and Y looks like accumulators, or if the
// kernel takes any strides of them.
bool can_write_y(const Problem& problem, const Kernel& kernel) {
  const Epilogue& e = problem.epilogue;
  // Tiles cross the diagonal: a kernel would write Y outside the triangle.
  const bool has_whole_tiles = problem.triangle == Triangle::kNone || problem.mirrors;
  const bool plain = !e.has_c && !e.has_bounds() && e.alpha.value == 1 &&
                     problem.compute != DType::kInt8 && has_whole_tiles;
  return plain && is_compute_form(problem.y.dtype) &&
         (problem.y.col_stride == 1 || problem.n == 1 || kernel.scatters);
}

// Bytes of an A that the call quantizes, whole.
double quantized_a_bytes(const Problem& problem) {
  const NBits& nbits = problem.b.nbits_format();
  // A row that A repeats is quantized once, unless it has scales of its own.
  const int64_t m = !nbits && problem.a.row_stride == 0 ? 1 : problem.m;
  const double rows = static_cast<double>(m) * static_cast<double>(matrices_of_a(problem));
  return rows * static_cast<double>(nbits ? nbits.quantized_row_bytes(problem.k) : problem.k);
}

// At accuracy level 4, A is quantized once, before the product, if it then has at most this many
// bytes. A larger A is quantized block by block, so that scratch stays small.
constexpr auto kQuantizedRows = static_cast<double>(kMachine.llc);

// Whether the kernel finds A as it reads it: in memory, or quantized before the product.
bool can_read_a(const Problem& problem, const Kernel& kernel) {
  if (kernel.codes == ReadsCodes::kByBytes) return quantized_a_bytes(problem) <= kQuantizedRows;
  const bool is_form = is_compute_form(problem.a.dtype) || kernel.compute == DType::kInt8;
  return kernel.a.is_rows() && is_form && (problem.a.col_stride == 1 || problem.k == 1);
}

// Packed weights of one micro-panel are a row-major matrix.
Operand only_panel(const PrepackedB& b) {
  static_assert(kTransposeColumnsMax <= storage_layout(DType::kInt64).width);
  return {b.block(0, 0), b.dtype, b.layout().width, 1};
}

// The most bytes of a packed B that threads share. If B is larger, tasks have many rows, and each
// may pack its own blocks.
constexpr size_t kSharedB = 4 * size_t{kMachine.llc};

// If runs have more rows, it does not matter that each packs its own B: to pack an element costs as
// much as about eight multiplications.
constexpr int64_t kSharingRowsMax = 256;

// Whether several tasks read the same columns of B. A B of one panel is packed by each.
void choose_units(const Problem& problem, Plan* plan) {
  if (!kHasThreads || !plan->pack_b || plan->threads == 1 || plan->adds_parts ||
      plan->run_rows > kSharingRowsMax || plan->rows.count * plan->inner.count == 1 ||
      plan->packs_columns() || !problem.batch_of_b().empty())
    return;
  const bool has_codes = plan->kernel->codes != ReadsCodes::kNo;
  const NBits& nbits = problem.b.nbits_format();
  size_t bytes = 0;
  for (int64_t pc = 0; pc < problem.k; pc += plan->kc) {
    const int64_t kc = std::min(plan->kc, problem.k - pc);
    bytes += has_codes ? static_cast<size_t>(nbits.packed_bytes(problem.n, kc))
                       : packed_bytes(plan->kernel->b, problem.n, kc);
    if (bytes > kSharedB) return;
  }
  plan->shared_b_bytes = Arena::round_up(bytes);
  plan->units = static_cast<size_t>(((problem.k + plan->kc - 1) / plan->kc) *
                                    ((problem.n + Plan::kUnitColumns - 1) / Plan::kUnitColumns));
}

void choose_scratch(const Problem& problem, Plan* plan) {
  if (plan->pack_b) plan->b_bytes = packed_bytes(plan->kernel->b, plan->nc, plan->kc);
  if (plan->pack_a) plan->a_bytes = packed_bytes(plan->kernel->a, plan->mc, plan->kc);
  const NBits& nbits = problem.b.nbits_format();
  if (plan->pack_b && plan->kernel->codes != ReadsCodes::kNo)
    plan->b_bytes = static_cast<size_t>(nbits.packed_bytes(plan->nc, plan->kc));
  if (plan->pack_a && plan->kernel->codes == ReadsCodes::kByBytes)
    plan->a_bytes = static_cast<size_t>(plan->mc * nbits.quantized_row_bytes(plan->kc));
  if (plan->has_accumulators(problem)) {
    plan->acc_bytes =
        static_cast<size_t>(plan->mc * plan->nc) * dtype_bytes(accumulator_type(problem.compute));
  }
  if (problem.compute == DType::kInt8) {
    plan->columns_bytes = column_bytes(plan->nc);
    // A sum, and a zero point of A if they differ.
    const bool has_row_zero_points = problem.quantization.has_row_zero_points;
    if (plan->kernel != nullptr && (!plan->packs_columns() || has_row_zero_points))
      plan->sums_bytes =
          static_cast<size_t>(plan->mc * (has_row_zero_points ? 2 : 1)) * sizeof(int32_t);
  }
  for (const size_t bytes :
       {plan->b_bytes, plan->a_bytes, plan->acc_bytes, plan->columns_bytes, plan->sums_bytes}) {
    plan->thread_bytes += Arena::round_up(bytes);
  }
  plan->scratch_bytes = plan->thread_bytes * static_cast<size_t>(plan->threads);
  const bool quantizes_rows = problem.quantizes_rows && plan->kernel != nullptr && !plan->pack_a;
  if (problem.quantization.quantizes_a || quantizes_rows) {
    const double bytes = quantized_a_bytes(problem);
    // More than an allocation may have: it is refused.
    plan->quantized_a_bytes = bytes < static_cast<double>(PTRDIFF_MAX / 2)
                                  ? Arena::round_up(static_cast<size_t>(bytes))
                                  : SIZE_MAX / 2;
  }
  if (plan->adds_parts) {
    plan->parts_bytes = static_cast<size_t>(plan->parts.count) * part_bytes(problem);
  }
  choose_units(problem, plan);
  const size_t before = plan->scratch_bytes;
  plan->scratch_bytes += plan->quantized_a_bytes + plan->parts_bytes + plan->shared_b_bytes;
  if (plan->quantized_a_bytes == SIZE_MAX / 2 || plan->scratch_bytes < before)
    plan->scratch_bytes =
        sizeof(size_t) == 4 ? SIZE_MAX - Arena::taken_by(size_t{0}) : SIZE_MAX / 4;
}

}  // namespace

Plan make_plan(const Problem& problem, const Context& context, const PlanOptions& options) {
  return make_plan(problem, context, kernel_table(), options);
}

Plan make_plan(const Problem& problem, const Context& context, KernelTable table,
               const PlanOptions& options) {
  Plan plan;
  const Determinism determinism = context.determinism();
  const bool may_be_nan = !is_integer(problem.compute) || problem.epilogue.has_float_c();
  plan.canonical_nan = determinism == Determinism::kStrict && may_be_nan;
  if (problem.m == 0 || problem.n == 0) return plan;
  if (problem.k != 0) {
    const Kernel& kernel =
        options.kernel != nullptr
            ? *options.kernel
            : select_kernel(problem, table, determinism, options.processor.value_or(processor()),
                            context.vectors());
    plan.kernel = &kernel;
    plan.regime = regime_of(problem, kernel);
    plan.a_shift = kernel.dot == Dot::kUnsigned ? 128 : 0;
    plan.b_shift = shift_of_b(kernel.dot, problem.b.packed);
    plan.pack_a = !can_read_a(problem, kernel);
    plan.pack_b = !can_read_b(problem, kernel);
    plan.from_memory = is_from_memory(problem);
    plan.direct =
        can_write_y(problem, kernel) && !plan.canonical_nan && problem.carry.sums == nullptr;
  }
  plan.parts.size = problem.part_steps == 0  ? steps_of_part(problem, determinism)
                    : problem.part_steps > 0 ? std::min(problem.part_steps, problem.k)
                                             : problem.k;
  if (problem.k != 0) plan.parts.count = (problem.k + plan.parts.size - 1) / plan.parts.size;
  plan.adds_parts = plan.parts.count > 1 || (problem.part_steps > 0 && !problem.carry.begins);
  plan.direct = plan.direct && !plan.adds_parts;
  choose_partition(problem, context.threads(), options.tasks, &plan);
  choose_prefetch(problem, &plan);
  plan.kc = choose_kc(problem, plan, options.kc);
  plan.nc = choose_nc(problem, plan, options.nc);
  plan.mc = choose_mc(problem, plan, options.mc);
  choose_scratch(problem, &plan);
  return plan;
}

bool transpose_is_faster(const Problem& problem, const PlanOptions& options) {
  return has_narrow_y(problem) && problem.compute != DType::kInt8 && problem.batch.empty() &&
         !problem.b.nbits_format() && options.kernel == nullptr;
}

void transpose(Problem* problem) {
  if (problem->b.is_packed()) problem->b = {.plain = only_panel(problem->b.packed)};
  *problem = transposed(*problem);
}

bool transpose_if_faster(Problem* problem, const PlanOptions& options) {
  const bool faster = transpose_is_faster(*problem, options);
  if (faster) transpose(problem);
  return faster;
}

bool fall_back_to_one_thread(const Problem& problem, const Context& context,
                             const PlanOptions& options, Plan* plan) {
  if (plan->threads == 1 || options.tasks != 0) return false;
  PlanOptions one_thread = options;
  one_thread.tasks = 1;
  *plan = make_plan(problem, context, one_thread);
  return true;
}

}  // namespace wgemm
