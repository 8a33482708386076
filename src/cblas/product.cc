#include "cblas/product.h"

#include <cstddef>

#include "base/arena.h"
#include "cblas/session.h"
#include "execute/execute.h"
#include "kernels/kernel.h"
#include "plan/plan.h"
#include "problem/problem.h"

namespace wgemm::blas {
namespace {

using Execute = void (*)(Context&, const Problem&, const Plan&, std::byte*);

// Blocks whose scratch lies on the stack.
constexpr PlanOptions kSmallBlocks = {.mc = 12, .nc = 16, .kc = 48, .tasks = 1};
constexpr size_t kSmallScratch = size_t{16} << 10;  // bytes

[[gnu::noinline]] bool run_plan(Context& context, const Problem& problem, const Plan& plan,
                                Execute execute) {
  Arena arena(context, plan.scratch_bytes);
  if (arena.ok()) execute(context, problem, plan, arena.data());
  return arena.ok();
}

// Without memory. The order of sums is another one, since K is not cut into parts.
[[gnu::noinline]] void run_small(Context& context, Problem problem, KernelTable kernels,
                                 Execute execute) {
  alignas(kArenaAlignment) std::byte scratch[kSmallScratch];
  problem.part_steps = -1;
  const Plan plan = make_plan(problem, context, kernels, kSmallBlocks);
  if (plan.scratch_bytes > sizeof(scratch)) __builtin_trap();
  execute(context, problem, plan, scratch);
}

[[gnu::noinline]] void run(const Problem& problem, KernelTable kernels, Execute execute) {
  Session session;
  Context& context = session.context();
  const Plan plan = make_plan(problem, context, kernels, {});
  if (run_plan(context, problem, plan, execute)) return;
  if (plan.threads > 1) {
    const PlanOptions one_thread = {.tasks = 1};
    if (run_plan(context, problem, make_plan(problem, context, kernels, one_thread), execute))
      return;
  }
  run_small(context, problem, kernels, execute);
}

[[gnu::noinline]] void set_sizes(Problem* problem, DType type, int64_t m, int64_t n, int64_t k) {
  problem->m = m;
  problem->n = n;
  problem->k = k;
  problem->compute = type;
}

}  // namespace

template <typename T>
void multiply(const Product<T>& p) {
  constexpr bool kIsFloat = sizeof(T) == sizeof(float);
  constexpr DType kType = kIsFloat ? DType::kFloat32 : DType::kFloat64;
  const bool is_zero = p.alpha == 0 || p.k == 0;
  if (p.m == 0 || p.n == 0 || (is_zero && p.beta == 1)) return;
  Problem problem;
  set_sizes(&problem, kType, p.m, p.n, is_zero ? 0 : p.k);
  const auto operand = [](const Matrix<const T>& matrix) {
    return Operand{reinterpret_cast<const std::byte*>(matrix.data), kType, matrix.row, matrix.col};
  };
  problem.a = operand(p.a);
  problem.b.plain = operand(p.b);
  problem.y = {reinterpret_cast<std::byte*>(p.c.data), kType, p.c.row, p.c.col};
  problem.epilogue.alpha.value = static_cast<double>(p.alpha);
  problem.epilogue.beta.value = static_cast<double>(p.beta);
  problem.epilogue.has_c = p.beta != 0;
  if (problem.epilogue.has_c) problem.epilogue.c = operand(p.c);
  problem.triangle = p.triangle;
  // Kernels write rows of Y.
  if (p.c.col != 1 && p.c.row == 1) transpose(&problem);
  transpose_if_faster(&problem);
  run(problem, kIsFloat ? f32_kernels() : f64_kernels(), execute_plain<T>);
}

template void multiply<float>(const Product<float>&);
template void multiply<double>(const Product<double>&);

}  // namespace wgemm::blas
