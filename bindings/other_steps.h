// The steps that modules for models add to programs.
#pragma once

#include "program/program.h"

namespace wgemm::bindings {

// Reads and runs the steps of programs that are not products. Null: programs have only products.
extern const OtherSteps* other_steps;

}  // namespace wgemm::bindings
