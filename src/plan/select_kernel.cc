#include "plan/select_kernel.h"

#include <algorithm>

#include "base/machine.h"
#include "base/types.h"

namespace wgemm {
namespace {

// If B has more bytes, axpy is faster than tiles. It is 250 KiB, about a quarter of L2: 256x256 of
// float32, which is 256 KiB, takes 8% less time.
constexpr auto kAxpyBytes = static_cast<double>(kMachine.l2 * 250 / 1024);

// Bytes of a row of B that counts as short. With up to 128 rows of A, fused kernels were faster
// on such a B unpacked than packed: by 4 to 25% in float32, and by up to 60% in float64.
constexpr int64_t kShortRowBytes = 512;

// Up to this K, a column-major B of 16-bit elements is faster packed if A has several rows.
// A dot kernel would add up its lanes for each row and column.
constexpr int64_t kShortDotSteps = 32;

constexpr int64_t kVectorBytes = 16;

// Most multiply-adds of a product whose floating point no kernel fuses. JavaScript computes
// products of this size, too, and must get the same bits: js/call/small.ts.
constexpr double kMostUnfused = 216;

bool is_unfused(const Problem& problem) {
  // A block of a larger problem has the kernels of that problem.
  return problem.part_steps == 0 && !problem.b.nbits_format() &&
         static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                 static_cast<double>(problem.k) <=
             kMostUnfused;
}

// Rows that one matrix B serves.
int64_t rows_of_b(const Problem& problem) {
  return problem.m * products_of(problem.batch_sharing_b());
}

// Largest difference of two elements of B, as int8, for which a dot product is exact.
int max_range_of_b(Dot dot) {
  return dot == Dot::kSevenBits ? 127 : dot == Dot::kSigned ? 254 : 255;
}

}  // namespace

double bytes_of(int64_t lanes, int64_t k, DType type) {
  return static_cast<double>(lanes) * static_cast<double>(k) *
         static_cast<double>(dtype_bytes(type));
}

bool can_read_b(const Problem& problem, const Kernel& kernel) {
  if (kernel.codes != ReadsCodes::kNo || problem.b.nbits_format())
    return kernel.codes != ReadsCodes::kNo && problem.b.packed.nbits;
  const DType type = problem.b.dtype();
  // All 8-bit types are int8 to kernels.
  const bool is_form = is_compute_form(type) || kernel.compute == DType::kInt8;
  if (type != kernel.b_type && !(kernel.b_type == kernel.compute && is_form)) return false;
  if (kernel.b_layout == BLayout::kPanels)
    return problem.b.is_packed() && kernel.b == problem.b.packed.layout();
  if (problem.b.is_packed()) return false;
  const Operand& b = problem.b.plain;
  // With less than a vector of steps, loops for a column-major B take any strides. Only a narrow B
  // has no better kernel.
  const bool has_few_steps =
      problem.n < kernel.nr &&
      problem.k * static_cast<int64_t>(dtype_bytes(problem.compute)) < kVectorBytes;
  return kernel.b_layout == BLayout::kRowMajor ? b.col_stride == 1 && problem.n >= kernel.nr
                                               : b.row_stride == 1 || has_few_steps;
}

int shift_of_b(Dot dot, const PrepackedB& b) {
  if (dot == Dot::kSevenBits) return b.low;
  return dot == Dot::kSigned && b.low == -128 ? -1 : 0;
}

namespace {

// Whether the kernel takes A and B of MatMulNBits as the problem has them. A call may pack B.
bool suits_codes(const Kernel& kernel, const Problem& problem) {
  if (!problem.b.nbits_format()) return kernel.codes == ReadsCodes::kNo;
  if (problem.quantizes_rows) return kernel.codes == ReadsCodes::kByBytes;
  if (problem.b.nbits_format().has_bytes() && kernel.codes == ReadsCodes::kByFloats) return false;
  return kernel.codes != ReadsCodes::kByBytes && kernel.b_type == kernel.compute;
}

}  // namespace

bool can_run(const Kernel& kernel, const Problem& problem) {
  if (!suits_codes(kernel, problem)) return false;
  if (kernel.codes != ReadsCodes::kNo) return has_dot(kernel.dot);
  const bool is_packed_for = kernel.b_layout == BLayout::kPanels && kernel.b_type == kernel.compute;
  if (!is_packed_for && !can_read_b(problem, kernel)) return false;
  if (kernel.finite && !problem.b.packed.finite) return false;
  if (kernel.dot == Dot::kNone) return true;
  // The range of a plain B is not known, so the kernel must be exact for any. The call packs B in
  // quads.
  if (!problem.b.is_packed())
    return has_dot(kernel.dot) && max_range_of_b(kernel.dot) == 255 && kernel.b.has_quads();
  const PrepackedB& b = problem.b.packed;
  // A kernel that reads the stored panels in place cannot shift them.
  if (kernel.b == b.layout() && shift_of_b(kernel.dot, b) != 0) return false;
  return has_dot(kernel.dot) && b.high - b.low <= max_range_of_b(kernel.dot);
}

const Kernel& select_kernel(const Problem& problem, KernelTable table, Determinism determinism,
                            Processor processor, int vectors) {
  const double b_bytes = bytes_of(problem.n, problem.k, problem.b.dtype());
  const bool small_b = b_bytes <= kMachine.l1, in_llc = b_bytes <= kMachine.llc,
             streams = b_bytes > kAxpyBytes && problem.n >= kAxpyColumnsMin;
  const Operand& b = problem.b.plain;
  const bool short_rows =
      b.row_stride <= kShortRowBytes / static_cast<int64_t>(dtype_bytes(b.dtype));
  const int64_t rows = rows_of_b(problem);
  const bool may_fuse = determinism == Determinism::kFast && !is_unfused(problem);
  const Kernel* kernel = table.rows;
  for (; kernel < table.rows + table.count - 1; ++kernel) {
    const bool fast_here = is_made_for(*kernel, processor, vectors);
    const bool allowed = kernel->strict || may_fuse;
    const bool short_dots = problem.k <= kShortDotSteps &&
                            kernel->b_layout == BLayout::kColumnMajor &&
                            kernel->b_type != kernel->compute;
    const int64_t rows_max = short_dots
                                 ? kernel->mr
                                 : std::max({kernel->m_max, small_b ? kernel->m_max_b_in_l1 : 0,
                                             in_llc ? kernel->m_max_b_in_llc : 0,
                                             short_rows ? kernel->m_max_short_rows : 0});
    // A kernel for a narrow B pays only if it reads A unpacked.
    const bool fits_n = problem.n >= kernel->n_min && problem.n <= kernel->n_max &&
                        (kernel->n_max == Kernel::kAny || problem.a.col_stride == 1);
    const bool pays = fast_here && problem.m >= kernel->m_min && rows <= rows_max && fits_n;
    if (kernel->compute == problem.compute && pays && (streams || !kernel->axpy) && allowed &&
        can_run(*kernel, problem))
      break;
  }
  return *kernel;
}

}  // namespace wgemm
