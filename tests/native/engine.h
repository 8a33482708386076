// Engines, by what their relaxed 8-bit dot makes of a second operand with its highest bit set: natively all that there may be, simulated;
// in wasm the one that the tests run on.
#pragma once

#include <wasm_simd128.h>

#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"

namespace wgemm::testing {

#ifdef __EMSCRIPTEN__

struct Engine {
  const char* name;
  Dot dot;
};
inline std::vector<Engine> engines() { return {{"ThisOne", relaxed_dot()}}; }

class Simulated {
 public:
  explicit Simulated(const Engine&) {}
};

#else

struct Engine {
  const char* name;
  Dot dot;  // what its probe is to find
  SimulatedDot simulated;
};
inline std::vector<Engine> engines() {
  return {{"UnsignedSaturated", Dot::kSevenBits, {true, false, SimulatedDot::kSaturated}},
          {"UnsignedWrapped", Dot::kSevenBits, {true, false, SimulatedDot::kWrapped}},
          {"UnsignedExact", Dot::kUnsigned, {true, false, SimulatedDot::kExact}},
          {"SignedSaturated", Dot::kSevenBits, {true, true, SimulatedDot::kSaturated}},
          {"SignedWrapped", Dot::kSevenBits, {true, true, SimulatedDot::kWrapped}},
          {"SignedExact", Dot::kSigned, {true, true, SimulatedDot::kExact}},
          {"None", Dot::kNone, {}}};
}

// Makes the engine that one, as long as it lives.
class Simulated {
 public:
  explicit Simulated(const Engine& engine) : before_(std::exchange(simulated_dot, engine.simulated)) {}
  ~Simulated() { simulated_dot = before_; }
  Simulated(const Simulated&) = delete;

 private:
  const SimulatedDot before_;
};

#endif

// Those on which the kernel computes right.
inline std::vector<Engine> engines_for(const Kernel& kernel) {
  std::vector<Engine> all = engines();
  if (kernel.dot == Dot::kNone) return {all[0]};
  std::erase_if(all, [&](const Engine& engine) {
    const Simulated simulated(engine);
    return !has_dot(kernel.dot);
  });
  return all;
}

}  // namespace wgemm::testing
