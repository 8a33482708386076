// The caches that the library assumes. No other file says how large a cache is: every threshold
// that stands for a cache is an expression of these values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wgemm {

// Bytes. L2 and LLC: what one core can count on.
struct Machine {
  int64_t l1, l2, llc;
};

// One set of values serves every processor. WebAssembly cannot query caches, and a guess from the
// processor's kind would be wrong on half of the machines. They describe AMD Zen 4, where the
// thresholds were measured. It has 32 KiB of L1 and 1 MiB of L2 per core. The library assumes 8 MiB
// of its LLC, which other cores and programs use too. Zen 5, recent Intel laptops and ARM phones
// have an L1 and an L2 of this size or up to twice as large. Zen 3 and older Intel laptops have
// half of the L2 or less. A block that fills half of L2 here comes from their LLC, which is slower
// but not wrong.
inline constexpr Machine kMachine{
    .l1 = int64_t{32} << 10, .l2 = int64_t{1} << 20, .llc = int64_t{8} << 20};

// A matrix of more bytes is taken to come from memory, not from a cache.
inline constexpr size_t kFromMemory = 2 * kMachine.llc;

}  // namespace wgemm
