// The problems that an instance of the templates of this folder computes. A program links no code
// for others: cblas.h has instances for matrices of one type in memory.
#pragma once

#include "execute/epilogue.h"
#include "execute/macro_kernel.h"
#include "execute/zero_points.h"
#include "pack/pack.h"

namespace wgemm {

// Every problem.
struct AnyProblem {
  static constexpr bool kIsAny = true;
  using ZeroPoints = ZeroPointCorrection;
  [[gnu::always_inline]] static void pack(const PackSource& source, const PanelLayout& layout,
                                          void* panels) {
    wgemm::pack(source, layout, panels);
  }
  [[gnu::always_inline]] static void finish(const Problem& problem, bool canonical_nan,
                                            int64_t rows, int64_t cols, const Accumulators& acc,
                                            const ConstBlock& c, const Block& y) {
    apply_epilogue(problem, canonical_nan, rows, cols, acc, c, y);
  }
  static constexpr auto run_task = wgemm::run_task;
  static constexpr auto pack_units = wgemm::pack_units;
};

// Has the interface of ZeroPointCorrection, for operands without zero points.
struct NoZeroPoints {
  NoZeroPoints(const Problem&, const Plan&, std::byte*, std::byte*) {}
  void begin_columns(const ParamOffsets&, const BSource&, int64_t, int64_t) {}
  void begin_rows(const ParamOffsets&, int64_t, int64_t) {}
  void end_rows(int64_t) {}
  int packed_a_offset() const { return 0; }
  void add_packed_a(std::byte*, int64_t, int64_t) {}
  void add_packed_b(const std::byte*, int64_t, int64_t, bool) {}
  void clear_columns(int64_t) {}
  void subtract_terms(int64_t, int64_t, uint32_t*, int64_t) const {}
  QuantizedColumns columns() const { return {}; }
  const int32_t* row_sums() const { return nullptr; }
  const int32_t* row_x() const { return nullptr; }
};

// One product of matrices of T in memory: float or double. Fast results, and Y without bounds.
template <typename T>
struct PlainProblem {
  static constexpr bool kIsAny = false;
  using ZeroPoints = NoZeroPoints;
  [[gnu::always_inline]] static void pack(const PackSource& source, const PanelLayout& layout,
                                          void* panels) {
    pack_plain<T>(source, layout, panels);
  }
  [[gnu::always_inline]] static void finish(const Problem& problem, bool, int64_t rows,
                                            int64_t cols, const Accumulators& acc,
                                            const ConstBlock& c, const Block& y) {
    finish_plain<T>(problem, rows, cols, acc, c, y);
  }
  static constexpr auto run_task = run_plain_task<T>;
  static constexpr auto pack_units = pack_plain_units<T>;
};

}  // namespace wgemm
