// The contract of micro-kernels: plain data and one function pointer. A micro-kernel computes a
// strip of the product, up to MR rows by any number of columns, tile by tile. It knows nothing of
// operands, plans or epilogues. To add one, see kernels.cc.
#pragma once

#include <cstddef>

#include "problem/nbits.h"
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
  // In packed B: from micro-panel to micro-panel. These are contiguous, unless the
  // kernel reads stored panels in place. In row-major B: from b.width columns to the next ones. In
  // column-major B: from column to column.
  size_t b_stride;
  size_t b_step;  // from step to step along k. A step of a micro-panel has kr elements per column
  // B is unpacked, in the kernel's BLayout. In a row-major B, the columns before a strip of fewer
  // than nr columns are readable. So a tile may start earlier and still read nr columns.
  bool unpacked;
  bool unsigned_a = false;  // A is unpacked uint8, and the kernel subtracts 128
  void* c;                  // accumulators, row-major
  size_t c_stride;          // from row to row; only `spills` allows to write beyond the strip
  size_t c_step = sizeof(int64_t);  // from column to column; only kernels that scatter read it
  // c holds the sums over earlier k, and the kernel adds to them. If it does not, or if PanelLayout
  // has fill_header, the header of each micro-panel is in memory before the micro-panel.
  bool accumulate;
  bool from_memory = false;  // B has more than kFromMemory bytes; only axpy kernels read it
  // The strip is one tile wide, and the whole tile may be written: what follows the columns of a
  // row is written later.
  bool spills = false;
  const NBits* nbits = nullptr;  // of a B of MatMulNBits. b_stride is as in packed B
};
using KernelFunction = void (*)(const Strip&);

enum class Isa : uint8_t { kPortable, kSimd128, kRelaxed };
enum class Processor : uint8_t { kAny, kX86, kArm };

// Whether the table has kernels with relaxed 8-bit dot products. No other kernel needs operands
// packed in groups of four bytes along k.
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

// Rows of B that an axpy kernel reads at once. K is best an odd multiple of them.
constexpr int64_t axpy_streams(bool from_memory) { return from_memory ? 6 : 4; }

// The layout of B that a kernel reads.
enum class BLayout : uint8_t {
  kPanels,       // packed in micro-panels, by the call or in packed weights
  kRowMajor,     // unpacked, rows contiguous
  kColumnMajor,  // unpacked, columns contiguous along k
};

// Whether a kernel reads weights of MatMulNBits as they are packed.
enum class ReadsCodes : uint8_t {
  kNo,
  kByFloats,  // A is float32
  kByBytes,   // A is int8 with scales, which the call quantizes
};

// The most lanes of an 8-bit micro-panel. The buffers of pack/pack_8bit.cc have as many rows.
inline constexpr int k8BitLanesMax = 8;

// A row of the table in kernels.cc. A row must set each field that has no default.
struct Kernel {
  const char* name;  // by the grammar in kernels.cc
  DType compute;     // type of the accumulators and of packed elements; kInt8: see i8_simd128.h
  DType b_type = compute;  // type of the elements of B that it reads
  int mr, nr, kr = 1;      // the tile; kr: steps of k that are adjacent in a micro-panel
  PanelLayout a, b;
  BLayout b_layout = BLayout::kPanels;
  Isa isa;
  Processor processor = Processor::kAny;  // the planner uses the row on this one only
  // 32: its accumulators are pairs of neighbours, which an engine may join to vectors of 32 bytes.
  // The planner uses the row for such vectors (Context::vectors()), and on `processor` if it names
  // one. Joined or not, an element of C has one chain of multiply-adds.
  uint8_t vectors = 16;
  // It sums in ascending k, unfused, with one accumulator per element: see Determinism. Integers
  // wrap, so any order of their sums is strict.
  bool strict = true;
  // If not kNone, the dot product must be exact for the range of B, and A keeps its zero point. The
  // range of a B that is not packed weights is unknown, so the kernel must be exact for any B.
  Dot dot = Dot::kNone;
  bool finite = false;  // for packed weights without infinities and NaN only
  ReadsCodes codes = ReadsCodes::kNo;
  bool scatters = false;  // it takes any Strip::c_step; else the columns of C are contiguous
  bool axpy = false;      // GEMV by loops/axpy.h. It pays for B of more than kAxpyBytes

  // The planner takes the kernel for products with at least m_min rows. All products that share one
  // B must have at most m_max rows together. kernels.cc says where the bounds come from.
  int m_min = 1;
  int64_t m_max = kAny;
  // Fewest and most columns.
  int64_t n_min = 1, n_max = kAny;
  // m_max if all of B fits in L1: reading it unpacked costs next to nothing there.
  int64_t m_max_b_in_l1 = 0;
  // m_max if all of B fits in the LLC. From memory, a packed B arrives faster than it is read
  // unpacked several times.
  int64_t m_max_b_in_llc = 0;
  // m_max if rows of B are short: then fused kernels read blocks of unpacked B from L2 as fast as
  // micro-panels.
  int64_t m_max_short_rows = 0;

  KernelFunction run;

  static constexpr int64_t kAny = INT64_MAX;
};

// Rows, best first. See kernels.cc.
struct KernelTable {
  const Kernel* rows;
  int count;
};
// The whole table.
KernelTable kernel_table();
// The rows for one type of A, B and Y, without rows for vectors of 32 bytes. A program that links
// no other table has no other kernels.
KernelTable f32_kernels();
KernelTable f64_kernels();

// The kind of processor that runs this code, as far as WebAssembly shows it.
Processor processor();

// The relaxed 8-bit dot product of this engine. In wasm the first call probes, and later calls
// return its answer, since a probe may answer differently once the engine has replaced its code.
Dot relaxed_dot();

// Whether a kernel is made for a processor, or for vectors of `vectors` bytes.
constexpr bool is_made_for(const Kernel& kernel, Processor processor, int vectors) {
  if (kernel.vectors == 32 && vectors == 32) return true;
  return kernel.processor == processor ||
         (kernel.processor == Processor::kAny && kernel.vectors == 16);
}

// Whether this engine has a kernel's dot product.
inline bool has_dot(Dot of_kernel) {
  if (of_kernel == Dot::kNone) return true;
  const Dot here = relaxed_dot();
  if (of_kernel == Dot::kSignedMasked) return here == Dot::kSigned;
  return here == of_kernel || (here != Dot::kNone && of_kernel == Dot::kSevenBits);
}

}  // namespace wgemm
