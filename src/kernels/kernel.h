// The contract of micro-kernels: plain data and one function pointer. A kernel computes a strip of
// the product, up to mr rows by any number of columns, tile by tile. It knows nothing of operands,
// plans or epilogues.
#pragma once

#include <cstddef>

#include "problem/panel.h"
#include "wgemm.h"

namespace wgemm {

// The work of one call. Strides are in bytes.
struct Strip {
  size_t rows;      // 1 to mr
  size_t cols;      // 1 and more: so many panels as hold them, the last may be partly used
  size_t k;         // 1 and more
  const void* a;    // rows, `a_stride` apart, or one panel
  size_t a_stride;  // from row to row
  const void* b;    // first weight of the first panel, behind its header
  size_t
      b_stride;  // from panel to panel, which lie side by side, but for weights that are read where
                 // they are stored; in place, from nr columns to the next, or from column to column
  size_t b_step;  // from step to step of kr k
  bool unpacked;  // B is read where it lies: as BLayout of the kernel says, and columns before the
                  // first are there, back to nr in all
  void* c;        // accumulators, row-major
  size_t c_stride;  // from row to row; nothing is written beyond `rows` and `cols`
  bool accumulate;  // c holds the sums over earlier k: go on from them; else, and always where it
                    // is filled, the header of each panel precedes `b`
};
using KernelFunction = void (*)(const Strip&);

enum class Isa : uint8_t { kPortable, kSimd128, kRelaxed };
enum class Processor : uint8_t { kAny, kX86, kArm };

// Whether the table has kernels by relaxed dot products; without them nobody needs quads of bytes.
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

// How B lies that a kernel reads.
enum class BLayout : uint8_t {
  kPanels,       // in panels, of the call's own or of packed weights
  kRowMajor,     // in place, columns side by side
  kColumnMajor,  // in place, k side by side
};

// One row of the table in kernels.cc.
struct Kernel {
  const char* name;  // <type>_<mr>x<nr>[c<kr>]_<instruction set>[_<origin and variant>]
  DType compute;     // type of the packed elements and of the accumulators; kInt8: see i8_simd128.h
  int mr, nr, kr;
  PanelLayout a, b;
  Isa isa;
  Processor processor;  // where it is the fast one; kAny: everywhere
  int rows_min;         // fewest rows of a product for which it pays
  KernelFunction run;
  bool strict = true;  // ascending k, one accumulator an element, products and sums rounded apart:
                       // see Determinism
  Dot dot = Dot::kNone;  // other than kNone: packed weights only, if their range fits; A keeps its
                         // zero point
  BLayout b_layout = BLayout::kPanels;
  DType b_type = compute;         // of the elements of B that it reads
  int64_t rows_max = kAnyRows;    // most rows for which it pays
  int64_t rows_max_small_b = 0;   // the same where all of B fits in L1
  int64_t rows_max_narrow_b = 0;  // and where its rows are short
  bool finite = false;            // for packed weights only of which no element is infinite or NaN
  bool streams =
      false;  // it reads rows of B as long streams, which pays for more than L2 holds beside

  static constexpr int64_t kAnyRows = INT64_MAX;
};

// The table: best first, portable last. See kernels.cc.
struct KernelTable {
  const Kernel* rows;
  int count;
};
KernelTable kernel_table();

// The processor that this runs on, so far as WebAssembly lets one tell.
Processor processor();

// The relaxed 8-bit dot product of this engine. In wasm the first call probes, later calls return
// what it found: the answer of a probe may change when the engine replaces its code.
Dot relaxed_dot();

// Whether this engine has a kernel's dot product.
inline bool has_dot(Dot of_kernel) {
  if (of_kernel == Dot::kNone) return true;
  const Dot here = relaxed_dot();
  if (of_kernel == Dot::kSignedMasked) return here == Dot::kSigned;
  return here == of_kernel || (here != Dot::kNone && of_kernel == Dot::kSevenBits);
}

}  // namespace wgemm
