// The functions of modules for models: operators around products, which programs may have as steps.
#include <emscripten/bind.h>

#include "nn/operator.h"
#include "nn/steps.h"
#include "other_steps.h"

namespace {

using namespace wgemm;

constexpr OtherSteps kSteps = {nn::step_bytes, nn::read_step, nn::run_step};

Program* program_at(uintptr_t program) { return reinterpret_cast<Program*>(program); }

}  // namespace

// The glue of the core has no abort(), which libc++ calls if a container gets no memory.
extern "C" void abort() { __builtin_trap(); }

EMSCRIPTEN_BINDINGS(wgemm_models) {
  bindings::other_steps = &kSteps;
  emscripten::function(
      "takePlans", +[](uintptr_t program, uintptr_t other) {
        program_at(program)->take_plans(program_at(other));
      });
  // The name of an operator, by its number; 0 if there are fewer.
  emscripten::function(
      "operatorName", +[](int number) {
        const nn::Operator* const op = nn::operator_at(static_cast<size_t>(number));
        return reinterpret_cast<uintptr_t>(op == nullptr ? nullptr : op->name);
      });
}
