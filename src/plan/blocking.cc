// Block sizes, from one table of rules: a row per regime. base/machine.h has the caches.
//
// Why not the analytical model (Low et al., "Analytical Modeling Is Enough for High-Performance
// BLIS", 2016)? It was tried. It derives KC from L1, so that a micro-panel of B stays there for all
// strips, and jr is the loop around ir. From 256 to 2048 cubed that was 3 to 7% slower. Here the
// micro-kernel loops over jr, since a call through a table costs more in WebAssembly. So each strip
// of A stays in L1, and B comes from L2 or the LLC.
//
// Why is KC up to 4096, and not 256? A split of K costs a pass over the accumulators, and B is
// packed again for each block of MC rows. At 1024 cubed two blocks of K instead of one took 6% of
// the speed. Micro-panels longer than L1 cost less: kernels read them in order, so that the
// processor prefetches them. The bound is there for scratch memory, and for L2 in skinny GEMM.
//
// Why is K the innermost block loop? Then one block of MC x NC accumulators is alive, and the
// epilogue runs while it is in L2. With K outside, as in BLIS, C would hold the sums between blocks
// of K. The types of C are too narrow for them, and each block would pass through memory.
#include "plan/blocking.h"

#include <algorithm>

#include "base/blocks.h"
#include "base/machine.h"
#include "base/types.h"
#include "plan/partition.h"
#include "plan/select_kernel.h"

namespace wgemm {
namespace {

// The rules of a regime. If K > kc_max, K is split into equal blocks of at most kc_max / 2.
struct BlockRule {
  Regime regime;
  const char* name;
  int32_t kc_max;   // steps of K
  int32_t b_bytes;  // of a KC x NC block of B: bounds NC; of a row-major B: KC
  int32_t nc_max;   // columns, also if the block has few bytes
};

constexpr int32_t kNone = INT32_MAX;

// The other half of L2 is for A, accumulators and streams.
constexpr int32_t kHalfL2 = kMachine.l2 / 2;

// KC: see the head of this file. NC: the accumulators of a strip stay in L2, 384 KiB for 6 rows.
constexpr int32_t kKc = 4096, kNc = 16384;

constexpr BlockRule kRules[] = {
    // B takes three eighths of the LLC: two threads then share it, with A. Narrower blocks read A
    // more often: 1024 cubed ran at 49.3 GFLOP/s with 512 KiB, and at 52.1 with 8 MiB (Zen 4). From
    // 3 MiB to 12 MiB it made no difference on Zen 5.
    {Regime::kGemm, "GEMM", kKc, kMachine.llc / 8 * 3, kNc},

    // Packing takes much of the time, so a packed block must still be in L2 when it is read.
    // 32x4096x4096 ran at 32.3 GFLOP/s, and at 20.6 with 8 MiB. Blocks of a row-major B are shallow
    // and wide: see packed_row_major_kc(). A column-major B is packed along K, and is faster with a
    // KC of up to kc_max.
    {Regime::kSkinny, "skinny GEMM", kKc, kHalfL2, kNc},

    // A block has all columns of a task, so its bytes give KC. All strips then read it from L2, of
    // which it takes a quarter: 4096 columns then have 16 rows, as many streams as processors
    // prefetch.
    {Regime::kSkinnyRowMajor, "skinny GEMM, unpacked row-major B", kKc, kMachine.l2 / 4, kNc},

    // Columns are streams along K, which a split would break. KC is bounded only for the scratch of
    // a packed A. If there are several strips, the second finds the block in L2.
    {Regime::kSkinnyColumnMajor, "skinny GEMM, unpacked column-major B", 1 << 15, kHalfL2, kNc},

    // B is read once, so only its packing needs a block: as in skinny GEMM.
    {Regime::kGemv, "GEMV", kKc, kHalfL2, kNc},

    // As with several rows.
    {Regime::kGemvRowMajor, "GEMV, unpacked row-major B", kKc, kMachine.l2 / 4, kNc},

    // As with several rows, but no strip comes back to the block.
    {Regime::kGemvColumnMajor, "GEMV, unpacked column-major B", 1 << 15, kNone, kNc},

    // The kernel reads four or six streams of consecutive rows of B. A stream continues from row to
    // row if a block has all columns: 1x4096x4096 takes 2.04 ms, and 3.97 in blocks of 2048
    // columns. KC is bounded for the scratch of a packed A, and NC so that accumulators stay in L2.
    {Regime::kGemvAxpy, "GEMV, axpy", 1 << 20, kNone, 65536},
};

constexpr const BlockRule& rule_of(Regime regime) { return kRules[static_cast<int>(regime)]; }

constexpr bool has_a_row_per_regime() {
  int row = 0;
  for (const BlockRule& rule : kRules)
    if (static_cast<int>(rule.regime) != row++) return false;
  return row == static_cast<int>(Regime::kGemvAxpy) + 1;
}
static_assert(has_a_row_per_regime());

// KC is a multiple of this: some kernels compute two steps of K together.
constexpr int64_t kKcStep = 2;

// The least NC of packed blocks, for any KC: four micro-panels.
constexpr int64_t kNcMin = 32;

// The least KC of an unpacked row-major block: with fewer rows of B, the kernel loads and stores
// accumulators too often.
constexpr int64_t kKcMin = 12;

// If B comes from memory, or from the LLC for GEMV, and has at least this many columns, KC is
// kKcMin. Each row of a block is then a stream, and processors prefetch up to sixteen. On Zen 4
// 1x2048x8192 takes 2.88 ms, and 3.70 with blocks of 128 KiB. On Zen 5 8x4096x4096 takes 5.9 ms,
// and 7.1 with blocks of 256 KiB. Shorter rows need blocks of more bytes.
constexpr int64_t kStreamColumns = 256;

// Bytes of packed A, and of accumulators that wait for the epilogue.
constexpr int64_t kABytes = kMachine.l2 / 2, kAccumulatorBytes = kMachine.l2 / 4;

// If K is split, B is packed again for each block of MC rows. So MC is at least kRowsPerPacking
// then: to pack an element costs as much as about eight multiplications. Packed A may take
// kABytesIfSplit for that, and comes from the LLC.
constexpr int64_t kRowsPerPacking = 512, kABytesIfSplit = kMachine.llc;

constexpr int64_t kPageBytes = 4096;

// With at most this many rows or columns, a kernel uses each element so rarely that it waits for
// memory.
constexpr int64_t kFewUses = 128;

// An operand of a small result is prefetched if it has more bytes: then it comes from memory. From
// 512 KiB on, 64x64x4096 was 5% faster from memory, but 5% slower from the LLC.
constexpr auto kPrefetchedOperand = static_cast<double>(2 * kMachine.l2);

// Packed weights, and a B of 8 bits that the call packs, are prefetched if they have more bytes.
// Smaller ones stay in the LLC between calls.
constexpr auto kPrefetchedWeights = static_cast<double>(kMachine.llc);

// Bytes of A and B that are prefetched for a block.
constexpr int64_t kPrefetchedBlock = kMachine.l2 / 2;

// M and N are small, and K may be long: A and B are both read once.
bool has_small_result(const Problem& problem, const Kernel& kernel) {
  return problem.m > kernel.mr && problem.m <= kFewUses && problem.n <= kFewUses &&
         !problem.b.nbits_format();
}

// Rows from which a kernel waits for packed weights. With fewer, kernels read several panels at a
// time, as streams.
constexpr int64_t kWaitingRowsOfF32 = 3, kWaitingRowsOfF64 = 2;

// Whether the kernel waits for packed weights from memory. Fused kernels and
// kernels of float64 do. Others multiply about as long as the weights take to arrive. 6x4096x4096
// of float32: 8.93 to 5.69 ms.
bool waits_for_weights(const Problem& problem, const Kernel& kernel) {
  const bool is_f64 = problem.compute == DType::kFloat64;
  return problem.b.is_packed() && !problem.b.nbits_format() && problem.m <= kFewUses &&
         problem.m >= (is_f64 ? kWaitingRowsOfF64 : kWaitingRowsOfF32) &&
         (is_f64 || (problem.compute == DType::kFloat32 && !kernel.strict)) &&
         bytes_of(problem.n, problem.k, problem.b.dtype()) > kPrefetchedWeights;
}

// Whether packing waits for B. Elements of more bits pack as fast as they arrive, and so do
// columns.
bool packing_waits(const Problem& problem, const Plan& plan) {
  return plan.pack_b && problem.compute == DType::kInt8 && problem.m <= kFewUses &&
         problem.n >= kStreamColumns && !problem.b.is_packed() && problem.b.plain.col_stride == 1 &&
         !plan.packs_columns() &&
         bytes_of(problem.n, problem.k, problem.b.dtype()) > kPrefetchedWeights;
}

// KC of an unpacked row-major B, of which a block has all columns of a task.
int64_t row_major_kc(const Problem& problem, const Plan& plan) {
  const int64_t element = plan.kernel->b.element_bytes;
  const double b_bytes = bytes_of(problem.n, problem.k, problem.b.dtype());
  const bool waits = b_bytes > static_cast<double>(problem.m == 1 ? kHalfL2 : kMachine.llc);
  if (waits && plan.run_cols >= kStreamColumns) return kKcMin;
  return std::max(rule_of(plan.regime).b_bytes / element / plan.run_cols, kKcMin);
}

// KC of a row-major B that the call packs. The rows of a block have a page, or all of N. With
// deep and narrow blocks, the call reads few cache lines of each page. On Intel Emerald Rapids
// 1x4096x4096 of 8 bits takes 6.1 ms with rows of 512 bytes, and 3.6 ms with these.
int64_t packed_row_major_kc(const Problem& problem, const Plan& plan) {
  if (plan.regime == Regime::kGemm) return kKc;
  const int64_t element = plan.kernel->b.element_bytes;
  return rule_of(plan.regime).b_bytes / std::min(problem.n * element, kPageBytes);
}

}  // namespace

const char* name_of(Regime regime) { return rule_of(regime).name; }

// WebAssembly has no prefetch instruction, so a block is read in eight streams before it is used.
// That takes half of the time that the kernel would wait for it, or less.
void choose_prefetch(const Problem& problem, Plan* plan) {
  if (plan->kernel == nullptr) return;
  if (has_small_result(problem, *plan->kernel)) {
    plan->prefetch_a = bytes_of(problem.m, problem.k, problem.a.dtype) > kPrefetchedOperand;
    plan->prefetch_b = bytes_of(problem.n, problem.k, problem.b.dtype()) > kPrefetchedOperand;
  } else {
    plan->prefetch_b = waits_for_weights(problem, *plan->kernel) || packing_waits(problem, *plan);
  }
}

int64_t choose_kc(const Problem& problem, const Plan& plan, int64_t size) {
  if (plan.kernel == nullptr) return 0;
  const Kernel& kernel = *plan.kernel;
  const BlockRule& rule = rule_of(plan.regime);
  const int64_t k = plan.parts.size, element = kernel.b.element_bytes;
  int64_t kc = k <= rule.kc_max ? k : rule.kc_max / 2;
  const BSource& b = problem.b;
  if (plan.pack_b && !b.is_packed() && b.plain.col_stride == 1 && !plan.packs_columns() &&
      problem.n > kernel.nr)
    kc = std::min(kc, packed_row_major_kc(problem, plan));
  if (kernel.b_layout == BLayout::kRowMajor && !kernel.axpy)
    kc = std::min(kc, row_major_kc(problem, plan));
  if (plan.prefetch_a || plan.prefetch_b) {
    const bool both = has_small_result(problem, kernel);
    // A block of weights must fit as well, with the fewest columns.
    kc = std::min(kc, kPrefetchedBlock / element / (both ? problem.m + problem.n : kNcMin));
  }
  if (size == 0) {
    if (kc == k) return k;
    size = round_up(equal_blocks(k, kc - kc % kKcStep), kKcStep);
  }
  const NBits& nbits = b.nbits_format();
  if (nbits) size = std::min<int64_t>(size, NBits::kStepsMax);
  return std::min(round_up(size, nbits ? nbits.block_size : kernel.kr), k);
}

int64_t choose_nc(const Problem& problem, const Plan& plan, int64_t size) {
  if (plan.kernel == nullptr) return std::min<int64_t>(problem.n, kNc);
  const Kernel& kernel = *plan.kernel;
  const BlockRule& rule = rule_of(plan.regime);
  // A block that is packed, prefetched or read by several strips comes from a cache after the first
  // time. A row-major B has blocks of small KC instead.
  const bool reused =
      kernel.b_layout != BLayout::kRowMajor && (plan.prefetch_b || plan.run_rows > kernel.mr);
  int64_t nc = rule.nc_max;
  if (plan.pack_b || reused)
    nc = std::clamp<int64_t>(rule.b_bytes / kernel.b.element_bytes / plan.kc, kNcMin, rule.nc_max);
  if (size == 0) {
    if (nc >= plan.run_cols) return plan.run_cols;
    size = equal_blocks(plan.run_cols, nc);
  }
  return std::min(round_up(size, column_step(problem, kernel)), plan.run_cols);
}

int64_t choose_mc(const Problem& problem, const Plan& plan, int64_t size) {
  if (plan.kernel == nullptr) return problem.m;
  const Kernel& kernel = *plan.kernel;
  int64_t mc = plan.run_rows;
  // A row that is quantized has whole blocks.
  const int64_t steps = kernel.codes == ReadsCodes::kByBytes
                            ? round_up(plan.kc, problem.b.nbits_format().block_size)
                            : plan.kc;
  if (plan.pack_a) mc = std::min(mc, kABytes / kernel.a.element_bytes / steps);
  if (plan.has_accumulators(problem)) {
    const auto bytes = static_cast<int64_t>(dtype_bytes(accumulator_type(problem.compute)));
    mc = std::min(mc, kAccumulatorBytes / bytes / plan.nc);
  }
  if (plan.kc < plan.parts.size)
    mc = std::max(mc, std::min(kRowsPerPacking, kABytesIfSplit / kernel.a.element_bytes / plan.kc));
  if (size == 0) {
    if (mc >= plan.run_rows) return plan.run_rows;
    size = std::max<int64_t>(mc, 1);
  }
  return std::min(round_up(size, kernel.mr), plan.run_rows);
}

}  // namespace wgemm
