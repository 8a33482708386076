#include "plan/partition.h"

#include <algorithm>

#include "base/blocks.h"
#include "plan/select_kernel.h"

namespace wgemm {
namespace {

// Multiply-adds from which threads pay: it takes microseconds to wake them and to wait for them.
// Products below 100 cubed were not faster on two threads.
constexpr double kThreadedWork = 1 << 20;

// Multiply-adds of a task at least: the smallest product that is threaded has four tasks.
constexpr double kTaskWork = 1 << 18;

// Tasks per thread, so that other threads take over from one that starts late or is slower. Axpy
// kernels have one task per thread, since each task breaks their streams. Two tasks of 1x4096x4096
// took 1.82 ms on two threads, eight took 2.83.
constexpr double kTasksPerThread = 4;

// Fewest rows and columns of a task, unless there are fewer: packed micro-panels must be reused.
constexpr int64_t kTaskRowsMin = 32, kTaskColumnsMin = 32;

// Cuts `total` into about `target` pieces, each a multiple of `step`, and at least `size_min` if
// there is that much.
Cut cut(int64_t total, int64_t step, int64_t size_min, int64_t target) {
  const int64_t count = std::clamp<int64_t>(total / size_min, 1, target);
  const int64_t size = round_up((total + count - 1) / count, step);
  return {std::min(size, total), (total + size - 1) / size};
}

int64_t tasks_that_pay(const Problem& problem, const Kernel& kernel, int threads) {
  const double work = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                      static_cast<double>(problem.k) *
                      static_cast<double>(products_of(problem.batch));
  if (threads == 1 || work < kThreadedWork) return 1;
  return static_cast<int64_t>(
      std::min(threads * (kernel.axpy ? 1 : kTasksPerThread), work / kTaskWork));
}

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
}

}  // namespace

int64_t column_step(const Problem& problem, const Kernel& kernel) {
  // The panels of packed weights are wider than the panels of some kernels.
  return problem.b.is_packed() ? std::max(kernel.nr, problem.b.packed.layout().width) : kernel.nr;
}

void choose_partition(const Problem& problem, int threads, int64_t tasks, Plan* plan) {
  if (plan->kernel == nullptr) tasks = 1;
  int64_t target = tasks != 0 ? tasks : tasks_that_pay(problem, *plan->kernel, threads);
  const auto divide_by = [&](int64_t count) { target = (target + count - 1) / count; };
  // First products that share nothing, then rows and columns, last products that share B.
  plan->outer = cut(products_of(problem.batch_of_b()), 1, 1, target);
  divide_by(plan->outer.count);
  cut_matrix(problem, target, plan);
  divide_by(plan->rows.count * plan->cols.count);
  plan->inner = cut(products_of(problem.batch_sharing_b()), 1, 1, target);
  if (plan->tasks() > 1) plan->threads = threads;
}

}  // namespace wgemm
