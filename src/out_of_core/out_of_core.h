// Problems whose operands are not all in memory: an outer loop that brings blocks of them there,
// computes these as problems of their own, and hands blocks of Y out.
#pragma once

#include "plan/plan.h"
#include "problem/problem.h"

namespace wgemm {

// Of a problem's operands, those that are not in memory; null for the others.
struct Remotes {
  const Remote *a = nullptr, *b = nullptr, *c = nullptr, *y = nullptr;
  bool any() const { return a != nullptr || b != nullptr || c != nullptr || y != nullptr; }
};

// Error: kOutOfMemory, with nothing written.
Status stream(Context& context, const char* op, const Problem& problem, const Remotes& remotes);

// What that would do.
struct StreamPlan {
  Plan plan;                   // of the largest block
  bool transposed = false;     // that is computed as its transpose
  int64_t bytes = 0;           // of blocks and scratch
  int64_t streamed_bytes = 0;  // moved to and from remote operands
};

// `beside`: bytes that the caller takes before. The system may have less than the limit, of which
// it knows nothing. Error: as of stream().
Status plan_stream(const Context& context, const char* op, const Problem& problem,
                   const Remotes& remotes, int64_t beside, StreamPlan* result);

}  // namespace wgemm
