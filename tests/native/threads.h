// On how many threads the testers compute: the environment variable WGEMM_TEST_THREADS says it,
// else one.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>

#include "plan/plan.h"
#include "plan/select_kernel.h"
#include "wgemm.h"

namespace wgemm::testing {

inline int test_threads() {
  const char* value = std::getenv("WGEMM_TEST_THREADS");
  return value == nullptr ? 1 : std::max(1, std::atoi(value));
}

// One for all tests, since it takes long to start threads.
inline Context& test_context() {
  static Context context;
  static const Status status = context.set_threads(test_threads());
  if (!status.ok()) std::abort();
  return context;
}

// With several threads, even small products are cut into tasks.
inline PlanOptions test_options(PlanOptions options) {
  if (test_threads() > 1 && options.tasks == 0) options.tasks = 5;
  return options;
}

// The same options. A kernel that cannot run the problem is left out, such as one that reads B
// unpacked in another layout.
inline PlanOptions fitting(PlanOptions options, const Problem& problem) {
  if (options.kernel != nullptr && !can_run(*options.kernel, problem)) options.kernel = nullptr;
  return options;
}

// Options for the description of a test.
inline std::string text_of(const PlanOptions& options) {
  return std::string(" kernel=") + (options.kernel != nullptr ? options.kernel->name : "any") +
         " mc=" + std::to_string(options.mc) + " nc=" + std::to_string(options.nc) +
         " kc=" + std::to_string(options.kc);
}

}  // namespace wgemm::testing
