#include "base/parallel.h"

#include <algorithm>

namespace wgemm {

void Threads::run([[maybe_unused]] Context& context, [[maybe_unused]] const JobThreads& threads,
                  std::span<const Phase> phases, void* argument) {
#if WGEMM_THREADS
  if (threads.most > 1 && context.pool_ != nullptr)
    return context.pool_->run(threads, phases, argument);
#endif
  for (const Phase& phase : phases) {
    for (size_t first = 0; first < phase.tasks; first += phase.line)
      phase.run(argument, 0, first, std::min(phase.line, phase.tasks - first));
  }
}

}  // namespace wgemm
