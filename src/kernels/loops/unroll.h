// Loops over accumulators, unrolled by the language. An array of vectors that is indexed at run
// time would live in memory, at a tenth of the speed.
#pragma once

#include <cstddef>
#include <utility>

namespace wgemm {

// Calls `body` with 0, 1, ... as constants.
template <size_t... I>
constexpr void unroll(std::index_sequence<I...>, auto&& body) {
  (body(std::integral_constant<size_t, I>{}), ...);
}

// The same for a body so large that the compiler would call it, with accumulators in memory.
template <size_t... I>
[[gnu::always_inline]] constexpr void unroll_inline(std::index_sequence<I...>, auto&& body) {
  (body(std::integral_constant<size_t, I>{}), ...);
}

}  // namespace wgemm
