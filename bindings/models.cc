// The functions of modules for models: programs, as js/onnx/run/recording.ts writes them.
#include <emscripten/bind.h>

#include <algorithm>

#include "base/error.h"
#include "calls.h"
#include "nn/operator.h"
#include "program/program.h"

namespace {

using namespace wgemm;

Program* program_at(uintptr_t address) { return reinterpret_cast<Program*>(address); }

// Reads a program of `count` words at an address. The block then begins with its address.
int make_program(uintptr_t words, size_t count) {
  bool is_valid = false;
  Program* const program =
      Program::make(bindings::instance(), {reinterpret_cast<const double*>(words), count},
                    bindings::plan, &is_valid);
  bindings::block()[0] = static_cast<double>(reinterpret_cast<uintptr_t>(program));
  if (program != nullptr) return 0;
  return bindings::finish(is_valid ? error(Code::kOutOfMemory, "run", "",
                                           {"memory does not suffice for the steps of the model"})
                                   : bindings::refusal());
}

}  // namespace

// The glue of the core has no abort(), which libc++ calls if a container gets no memory.
extern "C" void abort() { __builtin_trap(); }

EMSCRIPTEN_BINDINGS(wgemm_models) {
  using emscripten::function;
  function("makeProgram", &make_program);
  function(
      "runProgram", +[](uintptr_t program, size_t first, size_t end) {
        return bindings::finish(program_at(program)->run(bindings::instance(), first, end));
      });
  function("failedNode", +[](uintptr_t program) { return program_at(program)->failed_node(); });
  function(
      "dropProgram",
      +[](uintptr_t program) { program_at(program)->destroy(bindings::instance()); });
  // The name of an operator, by its number; 0 if there are fewer.
  function(
      "operatorName", +[](int number) {
        const nn::Operator* const op = nn::operator_at(static_cast<size_t>(number));
        return reinterpret_cast<uintptr_t>(op == nullptr ? nullptr : op->name);
      });
}
