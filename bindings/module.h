// Functions for the files of the module. embind.cc defines them.
#pragma once

#include "wgemm.h"

namespace wgemm::bindings {

// The context of the module. start() must have been called.
Context& context();

// The block of arguments.
double* block();

// Returns the code of a Status, and keeps its message if it failed.
int finish(const Status& result);

}  // namespace wgemm::bindings
