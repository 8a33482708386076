// The contract of micro-kernels: plain data and one function pointer. A micro-kernel computes a
// strip of the product, up to MR rows by any number of columns, tile by tile. It knows nothing of
// operands, plans or epilogues. To add one, see kernels.cc.
#pragma once

#include <cstddef>

#include "problem/panel.h"
#include "wgemm.h"

namespace wgemm {

// The work of one call. Strides are in bytes.
struct Strip {
  size_t rows;      // 1 to mr
  size_t cols;      // 1 or more. The last micro-panel of B may be used in part
  size_t k;         // 1 or more
  const void* a;    // unpacked rows, or one micro-panel
  size_t a_stride;  // from row to row
  const void* b;    // the first element of the first micro-panel, after its header
  // From micro-panel to micro-panel. They are contiguous, except in packed weights that are used
  // where they are stored. In unpacked B: from column `nr * i` to column `nr * (i + 1)` if it is
  // row-major, from column to column if it is column-major.
  size_t b_stride;
  size_t b_step;  // from one step of k to the next; a step of a micro-panel has kr elements of k
  // B is unpacked, in the kernel's BLayout. Columns before the strip's first one are readable, so
  // that nr columns are there in all.
  bool unpacked;
  void* c;          // accumulators, row-major
  size_t c_stride;  // from row to row; nothing is written beyond `rows` and `cols`
  // c holds the sums over earlier k, and the kernel adds to them. Otherwise, and always if
  // PanelLayout has fill_header, the header of each micro-panel precedes `b`.
  bool accumulate;
};
using KernelFunction = void (*)(const Strip&);

enum class Isa : uint8_t { kPortable, kSimd128, kRelaxed };
enum class Processor : uint8_t { kAny, kX86, kArm };

// Whether the table has kernels by relaxed 8-bit dot products. Without them, nothing needs operands
// packed by four bytes along k.
inline constexpr bool kHasDots = WGEMM_RELAXED != 0;

// Which relaxed 8-bit dot product a kernel uses, or an engine has. Only kernels have kSignedMasked.
// See i8_relaxed.h.
enum class Dot : uint8_t {
  kNone,          // of a kernel: none; of an engine: none that can be used
  kSevenBits,     // second operand from 0 to 127
  kUnsigned,      // second operand read as uint8, pairs exact
  kSigned,        // second operand read as int8; one dot product, for B of at most 255 values
  kSignedMasked,  // the same by two masked dot products, for any B
};

// The layout of B that a kernel reads.
enum class BLayout : uint8_t {
  kPanels,       // packed in micro-panels, by the call or in packed weights
  kRowMajor,     // unpacked, rows contiguous
  kColumnMajor,  // unpacked, columns contiguous along k
};

// A row of the table in kernels.cc. Fields without a comment on a default must be given.
struct Kernel {
  const char* name;  // by the grammar in kernels.cc
  DType compute;     // type of the accumulators and of packed elements; kInt8: see i8_simd128.h
  DType b_type = compute;  // type of the elements of B that it reads
  int mr, nr, kr = 1;      // the tile; kr: steps of k that are adjacent in a micro-panel
  PanelLayout a, b;
  BLayout b_layout = BLayout::kPanels;
  Isa isa;
  Processor processor = Processor::kAny;  // where it is the fast one
  // Sums in ascending k, with one accumulator per element and unfused: see Determinism. Integers
  // wrap, so any order of theirs is strict.
  bool strict = true;
  // Other than kNone: for packed weights whose range fits. A keeps its zero point.
  Dot dot = Dot::kNone;
  bool finite = false;  // for packed weights without infinities and NaN only
  bool axpy = false;    // GEMV by the loop in loops/axpy.h, which pays if B is larger than L2

  // Rows M of a product for which the kernel pays, over all products that share one B. Packing B
  // costs about as much as multiplying it by some rows, which bounds M for unpacked B.
  int m_min = 1;
  int64_t m_max = kAnyM;
  // The same if all of B fits in L1: reading it unpacked costs next to nothing there.
  int64_t m_max_b_in_l1 = 0;
  // The same if rows of B are short: then blocks of unpacked B come from L2 as fast as micro-panels
  // do. That holds for fused kernels, which do not wait for operands.
  int64_t m_max_short_rows = 0;

  KernelFunction run;

  static constexpr int64_t kAnyM = INT64_MAX;
};

// The table: best first, portable last. See kernels.cc.
struct KernelTable {
  const Kernel* rows;
  int count;
};
KernelTable kernel_table();

// The processor that this runs on, as far as WebAssembly shows it.
Processor processor();

// The relaxed 8-bit dot product of this engine. In wasm the first call probes, and later calls
// return its answer, since a probe may answer differently once the engine has replaced its code.
Dot relaxed_dot();

// Whether this engine has a kernel's dot product.
inline bool has_dot(Dot of_kernel) {
  if (of_kernel == Dot::kNone) return true;
  const Dot here = relaxed_dot();
  if (of_kernel == Dot::kSignedMasked) return here == Dot::kSigned;
  return here == of_kernel || (here != Dot::kNone && of_kernel == Dot::kSevenBits);
}

}  // namespace wgemm
