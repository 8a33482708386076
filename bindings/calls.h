// What the functions of models share with the functions of calls.
#pragma once

#include <cstdint>
#include <span>

#include "api/run.h"

namespace wgemm::bindings {

Context& instance();

// The block of arguments, in which numbers return to JavaScript.
double* block();

// Keeps an error for errorMessage(), and returns its code.
int finish(const Status& result);

// The error of words that JavaScript never writes.
Status refusal();

// Plans the call whose block of arguments is `words`.
Status plan(Context& context, int operation, std::span<const double> words, double* scalars,
            PlannedCall* planned);

}  // namespace wgemm::bindings
