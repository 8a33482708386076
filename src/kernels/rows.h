// The words of the rows of kernels, which kernels.cc explains.
//
// The bounds on M are measured. Their figures are rows of docs/lab. `npm run bench -- --kernels`
// measures the kernels of each type again. The reasons for the bounds:
//   m_max, unpacked B  for more rows, the time to pack B is less than what packed B saves
//   m_max, 16-bit B    the kernel widens B as it loads it; for more rows it is faster to widen B
//                      once, as it is packed, even if B is packed weights
//   m_min, n_min, ARM  4x16: packing A takes longer than it saves, or half of the tile is idle
//   m_min, n_min,      our kernels are faster for one or two rows, and compute the columns that
//     XNNPACK          are not a whole micro-panel
//   m_min, winograd    for fewer rows, the sums over A and B take longer than they save
//   m_max in the LLC   24: at 24 rows of int32, unpacked B is still 4 to 9% faster in most shapes
//   m_max in L1, int64 7: below eight rows of such a small B, Winograd's sums take longer than they
//                      save
//   n_max, 4x4         from eight columns on, 4x8 and 6x8 read the same B
//   n_max, 1x1         for fewer columns, a wider tile computes more than its loads of A save
//   n_min, int64       a tile of four columns wastes more of a narrower B than vectors save
//   m_min, 8 bits      2, 4: MR. 3: two rows at a time are slower. 5: relaxed dot products are
//                      slower for fewer rows. 24: for fewer rows, it is faster to widen B in the
//                      kernel than as it is packed
//   n_min, n_max       8 bits: a tile of 8 or 16 columns wastes more of a narrower B than dot
//                      products save
//
// XNNPACK's `loadsplat` kernels are for x86, where V8 and SpiderMonkey compile load-and-splat to
// one instruction with a memory operand, 1.5 times as fast as splat. Its `splat` kernel is for ARM,
// where these engines multiply by a lane, without a splat. That reaches half of the peak, the most
// that unfused kernels can reach. They never fuse by a lane. So fused kernels for ARM have 16 or 20
// accumulators, which more registers allow, and few splats: docs/design/arm.md.
//
// Rows with `vectors` of 32 are for V8 with --experimental-wasm-revectorize. It joins two
// operations on 16 bytes if stores 16 bytes apart depend on them, and if each operand has such a
// neighbour, too. A joined tile has half as many chains, and needs eight: 16 or 20 accumulators.
// These rows read the micro-panels of the others, since packed weights have one layout.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/kernel.h"

namespace wgemm::rows {

inline constexpr auto kF32 = DType::kFloat32, kF64 = DType::kFloat64, kF16 = DType::kFloat16,
                      kBF16 = DType::kBFloat16, kI32 = DType::kInt32, kI64 = DType::kInt64,
                      kI8 = DType::kInt8;
inline constexpr auto kRowMajor = BLayout::kRowMajor, kColumnMajor = BLayout::kColumnMajor;
inline constexpr auto kPortable = Isa::kPortable, kSimd128 = Isa::kSimd128;
inline constexpr auto kRelaxed = Isa::kRelaxed;
inline constexpr auto kX86 = Processor::kX86, kArm = Processor::kArm;

// m_max_b_in_l1 of most kernels. More rows pay for packing even if B fits in L1.
inline constexpr int kRowsMaxInL1 = 512;

// The rows of several parts of the table, in this order.
template <size_t... counts>
constexpr auto join(const Kernel (&... parts)[counts]) {
  std::array<Kernel, (counts + ...)> all{};
  auto* to = all.data();
  ((to = std::copy_n(parts, counts, to)), ...);
  return all;
}

// The rows that need no vectors of 32 bytes.
template <const auto& part>
constexpr auto for_vectors_of_16() {
  constexpr auto is_16 = [](const Kernel& kernel) { return kernel.vectors == 16; };
  std::array<Kernel, std::ranges::count_if(part, is_16)> kept{};
  std::ranges::copy_if(part, kept.begin(), is_16);
  return kept;
}

}  // namespace wgemm::rows
