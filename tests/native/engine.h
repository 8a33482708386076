// Engines, by how their relaxed 8-bit dot reads a second operand with its highest bit set. Natively
// these are all possible engines, simulated. In wasm it is the engine that the tests run on.
#pragma once

#include <wasm_simd128.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"

namespace wgemm::testing {

// The name of a kernel, or of ours that stands in for XNNPACK's in a build without it.
inline std::string of_build(std::string name) {
  if (!WGEMM_XNNPACK) name.resize(std::min(name.size(), name.find("_xnnpack")));
  return name;
}

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
// SignedChanging takes another behaviour for each dot product, which the specification allows.
inline std::vector<Engine> engines() {
  using enum SimulatedDot::Pairs;
  return {{"UnsignedSaturated", Dot::kSevenBits, {true, false, kSaturated}},
          {"UnsignedWrapped", Dot::kSevenBits, {true, false, kWrapped}},
          {"UnsignedExact", Dot::kUnsigned, {true, false, kExact}},
          {"SignedSaturated", Dot::kSigned, {true, true, kSaturated}},
          {"SignedWrapped", Dot::kSigned, {true, true, kWrapped}},
          {"SignedExact", Dot::kSigned, {true, true, kExact}},
          {"SignedChanging", Dot::kSigned, {true, true, kChanging}},
          {"None", Dot::kNone, {}}};
}

// Makes the engine that one, as long as it lives.
class Simulated {
 public:
  explicit Simulated(const Engine& engine)
      : before_(std::exchange(simulated_dot, engine.simulated)) {}
  ~Simulated() { simulated_dot = before_; }
  Simulated(const Simulated&) = delete;

 private:
  const SimulatedDot before_;
};

#endif

// The engines on which the kernel computes right.
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
