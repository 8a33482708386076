// The macro-kernel: computes a task of a plan on one thread, block by block.
#pragma once

#include "plan/plan.h"
#include "problem/problem.h"

namespace wgemm {

// Numbers from `begin` up to `end`.
struct Interval {
  int64_t begin, end;
};

// A task, or a run of tasks: products of a batch, and rows and columns of Y.
struct Task {
  Interval outer, inner, rows, cols;
};

// Computes a task, with the scratch of a thread. `shared_b`: B, packed by pack_units(); null:
// blocks of B are packed as they are needed.
void run_task(const Problem& problem, const Plan& plan, const Task& task, std::byte* scratch,
              std::byte* shared_b);

// Packs `count` units of B from `first` on: see Plan::units. `shared_b` has room for all units.
void pack_units(const Problem& problem, const Plan& plan, size_t first, size_t count,
                std::byte* scratch, std::byte* shared_b);

// The same for a PlainProblem (execute/scope.h) of T, float or double.
template <typename T>
void run_plain_task(const Problem& problem, const Plan& plan, const Task& task, std::byte* scratch,
                    std::byte* shared_b);
template <typename T>
void pack_plain_units(const Problem& problem, const Plan& plan, size_t first, size_t count,
                      std::byte* scratch, std::byte* shared_b);

}  // namespace wgemm
