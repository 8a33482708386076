// The speed limits of one core: it repeats the innermost step of a type's fastest kernel in
// registers alone, and it reads memory.
#include <emscripten.h>

#include <cstdlib>
#include <cstring>

#include "kernels/kernel.h"
#include "kernels/loops/ops.h"

namespace wgemm {
namespace {

// Each chain waits for its own last step, so there must be enough chains to fill the processor.
// x86 starts two steps per cycle, and an unfused step takes six or seven cycles. Thirteen chains,
// both factors and the register that engines keep are all sixteen registers. Unfused, twelve chains
// ran at 47.5 GOP/s, and thirteen at 54.7. ARM has 32 registers, and starts up to four fused steps
// per cycle, of four cycles.
constexpr size_t kChains = 13, kChainsOnArm = 20, kScalarChains = 8;
constexpr int kSteps = 1 << 16;

const bool is_arm = processor() == Processor::kArm;

// From memory, so that no compiler foresees it: 0.5 and 0.0003 in float32, so that chains stay
// finite and no denormals.
volatile uint32_t factor_bits = 0x3f000000, term_bits = 0x39a00000;

v128_t splat(uint32_t bits) { return wasm_i32x4_splat(static_cast<int32_t>(bits)); }

// The exclusive or of the first lanes of all chains.
template <size_t count, typename Step>
int run_chains(int times, Step step) {
  constexpr auto chains = std::make_index_sequence<count>{};
  const v128_t factor = splat(factor_bits), term = splat(term_bits);
  v128_t acc[count], all = splat(0);
  unroll(chains, [&](auto i) { acc[i] = splat(term_bits + 64 * static_cast<uint32_t>(i)); });
  int left = times * kSteps;
  do {
    unroll(chains, [&](auto i) { acc[i] = step(acc[i], factor, term); });
  } while (--left != 0);
  unroll(chains, [&](auto i) { all = wasm_v128_xor(all, acc[i]); });
  return wasm_i32x4_extract_lane(all, 0);
}

template <typename Step>
double run(int times, Step step) {
  return is_arm ? run_chains<kChainsOnArm>(times, step) : run_chains<kChains>(times, step);
}

// A step of floats. If the sum is a step of its own, the chain itself is multiplied, since a
// product that stays the same would leave the loop. A lambda, not a function: both types of a
// function are one type of pointer. One instance would then serve both and call it at each step.
template <typename T>
constexpr auto multiply_add = [](v128_t acc, v128_t factor, v128_t term) {
#if WGEMM_RELAXED
  return Fused<T>::multiply_add(acc, factor, term);
#else
  return Unfused<T>::multiply_add(term, acc, factor);
#endif
};

constexpr auto int8_step = [](v128_t acc, v128_t factor, v128_t term) {
  return wasm_i32x4_add(wasm_i32x4_dot_i16x8(acc, factor), term);
};

#if WGEMM_RELAXED
// The steps of 8-bit kernels with relaxed dot products: of those for B of 7 bits, and of the
// others.
constexpr auto dot_7bit_step = [](v128_t acc, v128_t factor, v128_t ones) {
  return wasm_i32x4_add(
      acc, wasm_i32x4_dot_i16x8(wasm_i16x8_relaxed_dot_i8x16_i7x16(acc, factor), ones));
};

constexpr auto dot_step = [](v128_t acc, v128_t factor, v128_t term) {
  return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(factor, term, acc);
};
#endif

// Chains of vectors that an engine may join: they come from memory and go back to it, 16 bytes from
// each other. There are ten of 32 bytes, with both factors thirteen registers.
constexpr size_t kJoined = 20;
alignas(64) std::byte joined_chains[kJoined * sizeof(v128_t)];

template <typename Step>
double run_joined(int times, Step step) {
  constexpr auto chains = std::make_index_sequence<kJoined>{};
  const v128_t factor = splat(factor_bits), term = splat(term_bits);
  v128_t acc[kJoined];
  unroll(chains, [&](auto i) { acc[i] = wasm_v128_load(joined_chains + i * sizeof(v128_t)); });
  int left = times * kSteps;
  do {
    unroll(chains, [&](auto i) { acc[i] = step(acc[i], factor, term); });
  } while (--left != 0);
  unroll(chains, [&](auto i) { wasm_v128_store(joined_chains + i * sizeof(v128_t), acc[i]); });
  return std::to_integer<int>(joined_chains[0]);
}

std::byte* memory = nullptr;
size_t memory_bytes = 0;

}  // namespace
}  // namespace wgemm

using namespace wgemm;

extern "C" {

// Each runs limit_steps() steps `times` times, and returns a value that depends on all of them.
EMSCRIPTEN_KEEPALIVE double limit_float32(int times) { return run(times, multiply_add<float>); }

EMSCRIPTEN_KEEPALIVE double limit_float64(int times) { return run(times, multiply_add<double>); }

EMSCRIPTEN_KEEPALIVE double limit_int32(int times) {
  return run(times, [](v128_t acc, v128_t factor, v128_t term) {
    return wasm_i32x4_add(wasm_i32x4_mul(acc, factor), term);
  });
}

EMSCRIPTEN_KEEPALIVE double limit_int64(int times) {
  return run(times, [](v128_t acc, v128_t factor, v128_t term) {
    return wasm_i64x2_add(wasm_i64x2_mul(acc, factor), term);
  });
}

// Eight chains, since a processor starts two steps per cycle at most, of four cycles.
EMSCRIPTEN_KEEPALIVE double limit_int64_scalar(int times) {
  constexpr auto chains = std::make_index_sequence<kScalarChains>{};
  const uint64_t factor = factor_bits, term = term_bits;
  uint64_t acc[kScalarChains], all = 0;
  unroll(chains, [&](auto i) { acc[i] = term_bits + i; });
  int left = times * kSteps;
  do {
    unroll(chains, [&](auto i) {
      acc[i] = acc[i] * factor + term;
      asm volatile("" : "+r"(acc[i]));  // or the compiler would make vectors
    });
  } while (--left != 0);
  unroll(chains, [&](auto i) { all ^= acc[i]; });
  return static_cast<double>(all);
}

EMSCRIPTEN_KEEPALIVE double limit_int8(int times) { return run(times, int8_step); }

#if WGEMM_RELAXED
EMSCRIPTEN_KEEPALIVE double limit_dot_7bit(int times) { return run(times, dot_7bit_step); }

EMSCRIPTEN_KEEPALIVE double limit_dot(int times) { return run(times, dot_step); }
#endif

// The same by vectors that V8 joins with --experimental-wasm-revectorize. Without, they spill.
EMSCRIPTEN_KEEPALIVE double limit_joined_float32(int times) {
  return run_joined(times, multiply_add<float>);
}

EMSCRIPTEN_KEEPALIVE double limit_joined_float64(int times) {
  return run_joined(times, multiply_add<double>);
}

EMSCRIPTEN_KEEPALIVE double limit_joined_int8(int times) { return run_joined(times, int8_step); }

#if WGEMM_RELAXED
EMSCRIPTEN_KEEPALIVE double limit_joined_dot_7bit(int times) {
  return run_joined(times, dot_7bit_step);
}

EMSCRIPTEN_KEEPALIVE double limit_joined_dot(int times) { return run_joined(times, dot_step); }
#endif

EMSCRIPTEN_KEEPALIVE int limit_joined_steps() { return kSteps * static_cast<int>(kJoined); }

// Provides memory for read_memory(); 0 bytes: frees it.
EMSCRIPTEN_KEEPALIVE void set_memory(int bytes) {
  std::free(memory);
  memory = nullptr;
  memory_bytes = static_cast<size_t>(bytes);
  if (bytes == 0) return;
  memory = static_cast<std::byte*>(std::malloc(memory_bytes));
  std::memset(memory, 1, memory_bytes);
}

// Reads a byte of each line `times` times, in six streams, 1 kB of each in turn: the fastest of the
// orders that were tried. A rest that is not a whole number of bursts, less than 6 kB, is left out.
EMSCRIPTEN_KEEPALIVE double read_memory(int times) {
  constexpr size_t kStreams = 6, kLine = 64, kBurst = 1024;
  const size_t stream_bytes = memory_bytes / kStreams / kBurst * kBurst;
  unsigned sum = 0;
  for (int i = 0; i < times; ++i) {
    for (size_t at = 0; at < stream_bytes; at += kBurst) {
      for (size_t s = 0; s < kStreams; ++s) {
        const std::byte* line = memory + s * stream_bytes + at;
#pragma clang loop unroll(disable) vectorize(disable)  // in this order
        for (const std::byte* const end = line + kBurst; line != end; line += kLine)
          sum += std::to_integer<unsigned>(*line);
      }
    }
  }
  return sum;
}

EMSCRIPTEN_KEEPALIVE int limit_scalar_steps() { return kSteps * kScalarChains; }

// Steps of all chains, each of one vector.
EMSCRIPTEN_KEEPALIVE int limit_steps() {
  return kSteps * static_cast<int>(is_arm ? kChainsOnArm : kChains);
}

}  // extern "C"
