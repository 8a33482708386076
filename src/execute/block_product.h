// A product whose sums stay in memory of the caller, who computes on with them block by block:
// attention and search. It has no Y.
#pragma once

#include "plan/plan.h"
#include "problem/problem.h"

namespace wgemm {

struct BlockProduct {
  Problem problem;  // the caller sets its sizes, its operands, and the type that it computes in
  Plan plan;

  // Plans the problem, for the threads of `planner`. M and N may be less when it runs.
  void plan_sums(const Context& planner, const PlanOptions& options = {});

  // Writes the product of the first `rows` rows and `cols` columns to `sums`, which has `cols`
  // accumulators per row; or adds it, unless it `begins`. `scratch` has plan.thread_bytes.
  void add_sums(int64_t rows, int64_t cols, std::byte* sums, bool begins, std::byte* scratch);
};

}  // namespace wgemm
