#include "plan/partition.h"

#include <algorithm>

#include "base/blocks.h"
#include "base/thread_pool.h"
#include "base/types.h"
#include "plan/select_kernel.h"

namespace wgemm {
namespace {

// Multiply-adds of a call that wakes threads after a gap, when they will sleep again before the
// next call: half a millisecond of float32. A thread that wakes may come late, and may take the
// caller's own processor for a moment. 192 cubed (0.2 ms) took up to 1.3 times as long with a
// second thread.
constexpr double kWorkAfterGap = 1 << 24;

// Multiply-adds of a task at least, and of a task that packs.
constexpr double kTaskWork = 1 << 16, kPackingTaskWork = 1 << 18;

// Tasks per thread. A thread takes a third of its tasks first, and the last tasks one by one. So a
// thread that is three times as slow delays the end by a tenth. If A is packed, each run packs it.
constexpr int64_t kTasksPerThread = 32, kPackingTasksPerThread = 8;

// Fewest rows and columns of a task, unless there are fewer: packed micro-panels must be reused.
constexpr int64_t kTaskRowsMin = 32, kTaskColumnsMin = 32;

// Cuts `total` into about `target` pieces, each a multiple of `step`, and at least `size_min` if
// there is that much.
Cut cut(int64_t total, int64_t step, int64_t size_min, int64_t target) {
  const int64_t count = std::clamp<int64_t>(total / size_min, 1, target);
  const int64_t size = round_up((total + count - 1) / count, step);
  return {std::min(size, total), (total + size - 1) / size, total};
}

double work_of(const Problem& problem) {
  return static_cast<double>(problem.m) * static_cast<double>(problem.n) *
         static_cast<double>(problem.k) * static_cast<double>(products_of(problem.batch));
}

// K is cut only if the product has fewer tasks of rows and columns.
constexpr int64_t kTasksWithoutParts = 16;

// The most parts, and the fewest steps and multiply-adds of a part. The sums of a part then cost
// less than a hundredth of it.
constexpr int64_t kPartsMax = 16, kPartStepsMin = 1024;
constexpr int64_t kPartWork = 1 << 20;

// kPartWork for streams of rows with at least kStreamColumns columns. Parts of shorter rows begin
// slowly: four parts of 1x64x65536 cost nothing, and sixteen a tenth of the call (Zen 5).
constexpr int64_t kStreamPartWork = 1 << 18;
constexpr int64_t kStreamColumns = 1024;

// The most elements of Y if K is cut: 64 KiB of float32 per part.
constexpr int64_t kPartElementsMax = 1 << 14;

// Steps of a part are a multiple of this: of every block size of MatMulNBits, and of kr of every
// kernel. Parts of streams are not.
constexpr int64_t kPartStep = 256;
static_assert(kPartStep % NBits::kBlockSizeMax == 0);

// Chooses the grid with the most tasks, up to `target`. Among equals it chooses the grid that packs
// least: tasks of different columns each pack all of A, tasks of different rows all of B.
void cut_matrix(const Problem& problem, int64_t target, Plan* plan) {
  const Kernel* kernel = plan->kernel;
  const int64_t row_step = kernel == nullptr ? 1 : kernel->mr,
                col_step = kernel == nullptr ? 1 : column_step(problem, *kernel),
                cols_min = kernel != nullptr && kernel->axpy ? kAxpyColumnsMin : kTaskColumnsMin;
  const double rows_of_a = plan->pack_a ? static_cast<double>(problem.m) : 0,
               cols_of_b = plan->pack_b ? static_cast<double>(problem.n) : 0;
  int64_t most = 0;
  double least = 0;
  for (int64_t count = 1; count <= target; ++count) {
    const Cut rows = cut(problem.m, row_step, kTaskRowsMin, count);
    const Cut cols = cut(problem.n, col_step, cols_min, (target + rows.count - 1) / rows.count);
    const int64_t tasks = std::min(rows.count * cols.count, target);
    const double packed =
        rows_of_a * static_cast<double>(cols.count) + cols_of_b * static_cast<double>(rows.count);
    if (tasks > most || (tasks == most && packed < least)) {
      most = tasks;
      least = packed;
      plan->rows = rows;
      plan->cols = cols;
    }
  }
  plan->cols_first = plan->cols.count > plan->rows.count;
}

// Chooses the tasks of a line, and the most rows and columns of a run.
void choose_runs(const Problem& problem, Plan* plan) {
  const Cut* line = &plan->outer;
  for (const Cut* cut : {&plan->inner, plan->cols_first ? &plan->rows : &plan->cols,
                         plan->cols_first ? &plan->cols : &plan->rows, &plan->parts})
    if (cut->count > 1) line = cut;
  plan->line = line->count;
  const int64_t share = (plan->tasks() + plan->threads - 1) / plan->threads,
                most = plan->threads == 1 ? share : std::max<int64_t>((share + 1) / 3, 1);
  plan->run_rows = std::min(problem.m, plan->rows.size * (line == &plan->rows ? most : 1));
  plan->run_cols = std::min(problem.n, plan->cols.size * (line == &plan->cols ? most : 1));
}

}  // namespace

int64_t column_step(const Problem& problem, const Kernel& kernel) {
  // The panels of packed weights are wider than the panels of some kernels.
  return problem.b.is_packed() ? std::max(kernel.nr, problem.b.packed.layout().width) : kernel.nr;
}

int64_t steps_of_part(const Problem& problem, Determinism determinism) {
  const int64_t m = problem.m, n = problem.n, k = problem.k;
  const bool is_exact = is_integer(problem.compute);
  if ((determinism == Determinism::kStrict && !is_exact) || problem.quantizes_rows ||
      !problem.batch.empty())
    return k;
  if (m == 0 || n == 0 || m > kPartElementsMax || n > kPartElementsMax / m) return k;
  // Columns of a row-major B are not cut, since each row is a stream.
  const BSource& b = problem.b;
  const bool has_streams = m == 1 && !b.is_packed() && !b.nbits_format() &&
                           b.plain.col_stride == 1 && problem.compute != DType::kInt8 &&
                           b.dtype() != DType::kFloat16;
  const int64_t grid = has_streams ? 1
                                   : ((m + kTaskRowsMin - 1) / kTaskRowsMin) *
                                         ((n + kTaskColumnsMin - 1) / kTaskColumnsMin);
  const int64_t work = has_streams && n >= kStreamColumns ? kStreamPartWork : kPartWork;
  const int64_t steps = std::max(has_streams ? kPartStep : kPartStepsMin, work / (m * n)),
                count = std::min(kPartsMax, k / steps);
  if (grid >= kTasksWithoutParts || count < 2) return k;
  const int64_t size = (k + count - 1) / count;
  if (!has_streams) return std::min(k, round_up(size, kPartStep));
  const int64_t streams = axpy_streams(is_from_memory(problem));
  return streams * ((size + streams - 1) / streams | 1);
}

void choose_partition(const Problem& problem, int threads, int64_t tasks, Plan* plan) {
  const double work = work_of(problem);
  int64_t target = std::max<int64_t>(tasks, 1);
  if (tasks != 0) {
    plan->threads = tasks == 1 ? 1 : threads;
    plan->wakes = plan->wakes_after_gap = threads - 1;
  } else if (kHasThreads) {
    plan->threads = static_cast<int>(std::clamp<double>(work / kJoinWork, 1, threads));
    plan->wakes = static_cast<int>(std::min<double>(work / kWakeWork, plan->threads - 1));
    // GEMV waits for memory, and 64 bits take longer.
    const double slower = (problem.m == 1 ? 8 : 1) * (dtype_bytes(problem.compute) == 8 ? 4 : 1);
    plan->wakes_after_gap = work * slower < kWorkAfterGap ? 0 : plan->wakes;
    const int64_t per_thread = plan->pack_a ? kPackingTasksPerThread : kTasksPerThread;
    target = plan->threads == 1
                 ? 1
                 : static_cast<int64_t>(std::min(
                       static_cast<double>(plan->threads * per_thread),
                       work / (plan->pack_a || plan->pack_b ? kPackingTaskWork : kTaskWork)));
  }
  if (plan->kernel == nullptr) target = 1;
  const auto divide_by = [&](int64_t count) { target = (target + count - 1) / count; };
  divide_by(plan->parts.count);
  // Each run of axpy breaks streams, so a thread has four.
  if (plan->kernel != nullptr && plan->kernel->axpy)
    target = (target + kTasksPerThread / 4 - 1) / (kTasksPerThread / 4);
  // First products that share nothing, then rows and columns, last products that share B.
  plan->outer = cut(products_of(problem.batch_of_b()), 1, 1, target);
  divide_by(plan->outer.count);
  cut_matrix(problem, target, plan);
  divide_by(plan->rows.count * plan->cols.count);
  plan->inner = cut(products_of(problem.batch_sharing_b()), 1, 1, target);
  if (plan->tasks() == 1) plan->threads = 1;
  choose_runs(problem, plan);
}

}  // namespace wgemm
