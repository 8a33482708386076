#include "execute/block_product.h"

#include "execute/macro_kernel.h"

namespace wgemm {
namespace {

// A plan depends on whether sums are kept, and not on where.
std::byte kept_elsewhere;

}  // namespace

void BlockProduct::plan_sums(const Context& planner, const PlanOptions& options) {
  problem.part_steps = -1;
  problem.y = {nullptr, accumulator_type(problem.compute), problem.n, 1};
  problem.carry = {&kept_elsewhere, true, false};
  plan = make_plan(problem, planner, options);
}

void BlockProduct::add_sums(int64_t rows, int64_t cols, std::byte* sums, bool begins,
                            std::byte* scratch) {
  problem.m = rows;
  problem.n = cols;
  problem.carry.sums = sums;
  problem.carry.begins = begins;
  run_task(problem, plan, {{0, 1}, {0, 1}, {0, rows}, {0, cols}}, scratch, nullptr);
}

}  // namespace wgemm
