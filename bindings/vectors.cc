// Two loops with the same instructions, whose times js/instance/vectors.ts compares. Only builds
// with relaxed SIMD have kernels for joined vectors.
#if WGEMM_RELAXED
#include <emscripten/bind.h>
#include <wasm_simd128.h>

#include "kernels/loops/unroll.h"

namespace wgemm::bindings {
namespace {

// 12 sums fit in registers. Integer addition takes one cycle, so loads limit both loops.
constexpr size_t kChains = 12, kRowBytes = kChains * sizeof(v128_t), kRows = 16;

}  // namespace

// 3 kB of elements, and room for the sums. They are external, so that the compiler keeps the loads
// and stores.
extern std::byte vectors_rows[kRows * kRowBytes], vectors_sums[3 * kRowBytes];
alignas(64) std::byte vectors_rows[kRows * kRowBytes], vectors_sums[3 * kRowBytes];

namespace {

// V8 grows pairs from stores 16 bytes apart, so it joins nothing if gaps are between the stores.
template <size_t distance>
[[gnu::always_inline]] inline void sum_rows(size_t steps) {
  constexpr auto chains = std::make_index_sequence<kChains>{};
  v128_t sums[kChains] = {};
#pragma clang loop unroll(disable) vectorize(disable)
  for (; steps != 0; --steps) {
    const std::byte* row = vectors_rows + steps % kRows * kRowBytes;
    asm("" : "+r"(row));  // one base for all loads: V8 joins no others
    unroll(chains, [&](auto i) {
      sums[i] = wasm_i32x4_add(sums[i], wasm_v128_load(row + i * sizeof(v128_t)));
    });
  }
  unroll(chains, [&](auto i) { wasm_v128_store(vectors_sums + i * distance, sums[i]); });
}

// Both loops are in one function, so that the engine replaces the code of both at the same time.
void add_vectors(bool gaps, size_t steps) {
  if (gaps) {
    sum_rows<3 * sizeof(v128_t)>(steps);
  } else {
    sum_rows<sizeof(v128_t)>(steps);
  }
}

}  // namespace
}  // namespace wgemm::bindings

EMSCRIPTEN_BINDINGS(wgemm_vectors) {
  emscripten::function("addVectors", &wgemm::bindings::add_vectors);
}
#endif
