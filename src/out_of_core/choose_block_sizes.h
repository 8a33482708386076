// Chooses the sizes of out-of-core blocks.
#pragma once

#include "out_of_core/blocked_problem.h"

namespace wgemm {

// Sets the cheapest sizes whose bytes() fit `room`. If none fit, sets the smallest and returns
// false.
bool choose_block_sizes(BlockedProblem* blocked, int64_t room);

}  // namespace wgemm
