#include "plan/plan.h"

#include <algorithm>

#include "base/arena.h"
#include "base/types.h"
#include "pack/pack.h"

namespace wgemm {
namespace {

// The size of equal blocks that cut `total` into as few as possible, none longer than `longest`: so
// that the last is no sliver.
constexpr int64_t equal_blocks(int64_t total, int64_t longest) {
  const int64_t count = (total + longest - 1) / longest;
  return (total + count - 1) / count;
}

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// K up to this goes in one block, but where few rows are computed, which want less of B at a time.
// Splitting K costs a pass over the accumulators and is slower than letting long panels stream
// through the cache: it is here to bound scratch memory. The others where B is read as streams that
// a block would end: along k, where other rows are to find four columns in L2, and by one row.
constexpr int64_t kDeepest = 4096, kDeepestByColumns = int64_t{1} << 15,
                  kDeepestStreamed = int64_t{1} << 20;

// Blocks of K are a multiple of this, which some kernels take together.
constexpr int64_t kStepsAtOnce = 2;

// Bytes of packed B that are held at a time, and read again for each strip. With many rows narrow
// blocks of N lose, since A is read once for each, and those of 8 MB and more, which the last cache
// shares with A. With few, packing counts for more, and what is packed is to be still in L2 when it
// is read.
constexpr int64_t kBlockOfB = int64_t{6} << 20, kBlockForFewRows = int64_t{512} << 10;
constexpr int64_t kFewRows = 512, kNarrowestBlock = 32;

// Bytes of a column in such a block, where B's rows are packed: deep and narrow ones would read a
// few cache lines of each page of B.
constexpr int64_t kDeepestForFewRows = int64_t{1} << 10;

// Columns of a block at the most, however shallow it is, so that the accumulators of a strip stay
// in L2.
constexpr int64_t kWidest = 16384;

// The same of kernels that read B as streams, which go on from row to row of B where a block has
// all columns and k; the fewest; and bytes of B beyond which they are faster than tiles.
constexpr int64_t kWidestStreamed = 65536, kNarrowestStreamed = 64;
constexpr double kLeastStreamed = 250 << 10;

// Bytes of B that are read in place before A goes on to further k: all strips read them, and find
// them in L2; fewer where B's rows are short, since those of A read on along k. One row reads them
// once, and is faster by fewer; where B comes from memory, so are rows that are computed by twos,
// but for 16 bits, which wait for their widening.
constexpr int64_t kBlockInPlace = int64_t{1} << 20, kSmallBlockInPlace = int64_t{128} << 10;

// Rows of such a block at the least, or its sums are read and written too often; and for one or two
// rows, where B is not in L2 and a task has so many columns of it, at the most: processors follow
// up to sixteen streams.
constexpr int64_t kShallowest = 12, kLongRow = 256;
constexpr double kInL2 = 512 << 10;

// Bytes of packed A, and of accumulators that wait for the epilogue: half of a usual L2 cache.
constexpr int64_t kBlockOfA = int64_t{512} << 10;
constexpr int64_t kBlockOfAcc = int64_t{256} << 10;

// Rows for which a packed block of B is used, at the least, where K is split and B is therefore
// packed again for each block of rows: packing an element costs as much as about eight
// multiplications.
constexpr int64_t kRowsPerPacking = 512;

// Bytes that packed A may take for that.
constexpr int64_t kMostOfA = int64_t{12} << 20;

// Multiply-adds of a product that are worth other threads: to wake them and wait for them takes
// microseconds.
constexpr double kLeastWork = 1 << 20;

// Parts for each thread, so that one that starts late or is slower leaves some of its own to the
// others; and multiply-adds of a task.
constexpr double kTasksPerThread = 4;
constexpr double kWorkPerTask = 1 << 18;

// Columns and rows of a task, at the least, where there are more: what is packed for it is to be
// used often.
constexpr int64_t kNarrowest = 32, kLowest = 32;

// Whether a kernel can be given B as it is: elements of its type, where it looks for them.
bool can_read_b(const Problem& problem, const Kernel& kernel) {
  const PrepackedB& stored = problem.b.packed;
  const DType type = problem.b.dtype();
  // 8-bit ones are all int8 to kernels.
  const bool is_form = is_compute_form(type) || kernel.compute == DType::kInt8;
  if (type != kernel.b_type && !(kernel.b_type == kernel.compute && is_form)) return false;
  if (kernel.b_layout == BLayout::kPanels)
    return problem.b.is_packed() && kernel.b == stored.layout();
  return !problem.b.is_packed() && problem.n >= kernel.nr &&
         (kernel.b_layout == BLayout::kRowMajor ? problem.b.plain.col_stride
                                                : problem.b.plain.row_stride) == 1;
}

// Columns up to which Y is computed as its transpose: kernels waste no columns then, and read A,
// which is nearly all there is to read, in place, as B.
constexpr int64_t kFewColumns = 4, kManyRows = 8;

// Bytes of B that fit in L1.
constexpr double kSmallB = 32 << 10;

// Bytes from row to row of B, up to which reading it in place by blocks is reading memory through.
constexpr int64_t kNarrowB = 512;

// Of B that is read by rows.
bool is_narrow(const Operand& b) {
  return b.row_stride <= kNarrowB / static_cast<int64_t>(dtype_bytes(b.dtype));
}

// Operands of more bytes come from memory. Where each element is used for few rows or columns, the
// kernel waits for it, a sixth of its time where Y is small and up to half where it reads panels of
// weights, one at a time. To read blocks through first, in eight streams (execute.cc), takes half
// of that or less. Of weights, float64 is waited for, and what kernels that multiply and add at
// once take; others take about as long to multiply as to arrive. Fewer rows than the least that
// wait read several panels at a time.
constexpr double kInCaches = 2 << 20;
constexpr int64_t kFewUses = 128, kWaitingRowsOfF32 = 3, kWaitingRowsOfF64 = 2;

// Weights of fewer bytes are in the last cache from one call to the next: there is nothing to wait
// for.
constexpr double kInLastCache = 8 << 20;

// Bytes of A and B in such a block where Y is small, for which L2 has room.
constexpr int64_t kFetchedBlock = int64_t{512} << 10;

double bytes_of(int64_t lanes, int64_t k, DType type) {
  return static_cast<double>(lanes) * static_cast<double>(k) *
         static_cast<double>(dtype_bytes(type));
}

// K up to which several rows by columns of 16 bits are faster by packed panels: dot products are of
// one row, and are not of few k.
constexpr int64_t kShortDots = 32;

// Rows that one matrix B serves.
int64_t rows_of_b(const Problem& problem) {
  return problem.m * products_of(problem.batch_sharing_b());
}

const Kernel* choose_kernel(const Problem& problem, Determinism determinism, Processor here) {
  const KernelTable table = kernel_table();
  const double b_bytes = bytes_of(problem.n, problem.k, problem.b.dtype());
  const bool small_b = b_bytes <= kSmallB,
             streams = b_bytes > kLeastStreamed && problem.n >= kNarrowestStreamed;
  const bool narrow_b = is_narrow(problem.b.plain);
  for (int i = 0; i < table.count; ++i) {
    const Kernel& kernel = table.rows[i];
    const bool fast_here = kernel.processor == Processor::kAny || kernel.processor == here;
    const bool allowed = kernel.strict || determinism == Determinism::kFast;
    const int64_t rows_max = std::max({kernel.rows_max, small_b ? kernel.rows_max_small_b : 0,
                                       narrow_b ? kernel.rows_max_narrow_b : 0});
    const bool short_dots = problem.k <= kShortDots && kernel.b_layout == BLayout::kColumnMajor &&
                            kernel.b_type != kernel.compute;
    const int64_t most = short_dots ? kernel.mr : rows_max;
    const bool pays = fast_here && problem.m >= kernel.rows_min && rows_of_b(problem) <= most;
    if (kernel.compute == problem.compute && pays && (streams || !kernel.streams) && allowed &&
        can_run(kernel, problem))
      return &kernel;
  }
  return nullptr;  // not reached: each compute type has a portable row
}

// The kernel writes Y itself where nothing is left to do and Y looks like accumulators.
bool can_write_y(const Problem& problem) {
  const Epilogue& e = problem.epilogue;
  const bool plain =
      !e.has_c && !e.has_bounds() && e.alpha.value == 1 && problem.compute != DType::kInt8;
  return plain && is_compute_form(problem.y.dtype) && (problem.y.col_stride == 1 || problem.n == 1);
}

bool can_read_a(const Problem& problem, const Kernel& kernel) {
  return kernel.a.is_rows() && is_compute_form(problem.a.dtype) &&
         (problem.a.col_stride == 1 || problem.k == 1);
}

// Cuts `total` into about `wanted` pieces, each a multiple of `step` and, where there is that much,
// at least `shortest`.
Cut cut(int64_t total, int64_t step, int64_t shortest, int64_t wanted) {
  const int64_t count = std::clamp<int64_t>(total / shortest, 1, wanted);
  const int64_t size = round_up((total + count - 1) / count, step);
  return {std::min(size, total), (total + size - 1) / size};
}

// Cuts the result into about `wanted` tasks: first between products that share nothing, then
// between rows and columns, last between products that share weights. Of the grids of rows and
// columns with most tasks it takes the one that packs least: columns that are cut have all of A
// packed for each task, rows all of B.
void cut_tasks(const Problem& problem, int64_t row_step, int64_t col_step, int64_t narrowest,
               int64_t wanted, Plan* plan) {
  const auto left = [&](int64_t tasks) { wanted = (wanted + tasks - 1) / tasks; };
  plan->outer = cut(products_of(problem.batch_of_b()), 1, 1, wanted);
  left(plan->outer.count);
  const double rows_of_a = plan->pack_a ? static_cast<double>(problem.m) : 0,
               cols_of_b = plan->pack_b ? static_cast<double>(problem.n) : 0;
  int64_t most = 0;
  double least = 0;
  for (int64_t count = 1; count <= wanted; ++count) {
    const Cut rows = cut(problem.m, row_step, kLowest, count);
    const Cut cols = cut(problem.n, col_step, narrowest, (wanted + rows.count - 1) / rows.count);
    const int64_t tasks = std::min(rows.count * cols.count, wanted);
    const double packed =
        rows_of_a * static_cast<double>(cols.count) + cols_of_b * static_cast<double>(rows.count);
    if (tasks > most || (tasks == most && packed < least)) {
      most = tasks;
      least = packed;
      plan->rows = rows;
      plan->cols = cols;
    }
  }
  left(plan->rows.count * plan->cols.count);
  plan->inner = cut(products_of(problem.batch_sharing_b()), 1, 1, wanted);
}

// How many tasks are worth while. Streams of B are broken at each.
int64_t wanted_tasks(const Problem& problem, const Kernel& kernel, int threads) {
  const double work = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                      static_cast<double>(problem.k) *
                      static_cast<double>(products_of(problem.batch));
  if (threads == 1 || work < kLeastWork) return 1;
  return static_cast<int64_t>(
      std::min(threads * (kernel.streams ? 1 : kTasksPerThread), work / kWorkPerTask));
}

// Largest difference of two elements of B, as int8, for which a dot product is exact.
int max_range_of_b(Dot dot) {
  return dot == Dot::kSevenBits ? 127 : dot == Dot::kSigned ? 254 : 255;
}

// The number subtracted from B, as int8. Then the second operand is 0 to 127, or has no -128.
int shift_of_b(Dot dot, const PrepackedB& b) {
  if (dot == Dot::kSevenBits) return b.low;
  return dot == Dot::kSigned && b.low == -128 ? -1 : 0;
}

}  // namespace

bool can_run(const Kernel& kernel, const Problem& problem) {
  const bool is_packed_for = kernel.b_layout == BLayout::kPanels && kernel.b_type == kernel.compute;
  if (!is_packed_for && !can_read_b(problem, kernel)) return false;
  if (kernel.finite && !problem.b.packed.finite) return false;
  if (kernel.dot == Dot::kNone) return true;
  const PrepackedB& b = problem.b.packed;
  if (b.panels == nullptr) return false;  // neither its range nor sums of its columns are known
  return has_dot(kernel.dot) && b.high - b.low <= max_range_of_b(kernel.dot);
}

bool pays_transposed(const Problem& problem) {
  const bool is_few = problem.n <= kFewColumns && problem.m >= kManyRows;
  const bool is_in_place = problem.a.row_stride == 1 || problem.a.col_stride == 1;
  return is_few && is_in_place && problem.compute != DType::kInt8 && !problem.b.is_packed() &&
         problem.batch.empty();
}

Plan make_plan(const Problem& problem, const Context& context, const PlanOptions& options) {
  Plan plan;
  const Determinism determinism = context.determinism();
  plan.canonical_nan = determinism == Determinism::kStrict && !is_integer(problem.compute);
  if (problem.m == 0 || problem.n == 0) return plan;
  const bool quantized = problem.compute == DType::kInt8;
  if (problem.k == 0) {
    cut_tasks(problem, 1, 1, kNarrowest, 1, &plan);
    plan.mc = problem.m;
    plan.nc = std::min(problem.n, kWidest);
    if (quantized)
      plan.columns_bytes = plan.thread_bytes = plan.scratch_bytes =
          Arena::round_up(column_bytes(plan.nc));
    return plan;
  }
  const Kernel& kernel =
      options.kernel != nullptr
          ? *options.kernel
          : *choose_kernel(problem, determinism, options.processor.value_or(processor()));
  plan.kernel = &kernel;
  plan.a_shift = kernel.dot == Dot::kUnsigned ? 128 : 0;
  plan.b_shift = shift_of_b(kernel.dot, problem.b.packed);
  plan.pack_b = !can_read_b(problem, kernel);
  const bool carried = problem.carry.sums != nullptr;
  plan.direct = can_write_y(problem) && !plan.canonical_nan && !carried;
  plan.pack_a = !can_read_a(problem, kernel);
  const auto accumulator = static_cast<int64_t>(dtype_bytes(accumulator_type(problem.compute)));

  // Blocks begin with a panel, of packed weights too, whose panels are wider than some kernels'.
  const bool stored = problem.b.is_packed();
  const int64_t step = !stored ? kernel.nr : std::max(kernel.nr, problem.b.packed.layout().width);
  const int64_t narrowest = kernel.streams ? kNarrowestStreamed : kNarrowest;
  cut_tasks(problem, kernel.mr, step, narrowest,
            options.tasks != 0 ? options.tasks : wanted_tasks(problem, kernel, context.threads()),
            &plan);
  if (plan.tasks() > 1) plan.threads = context.threads();

  const int64_t deepest_block = kernel.streams                             ? kDeepestStreamed
                                : kernel.b_layout == BLayout::kColumnMajor ? kDeepestByColumns
                                                                           : kDeepest;
  int64_t deepest = problem.k <= deepest_block ? problem.k : deepest_block / 2;
  const bool packs_rows_of_b = plan.pack_b && !stored && problem.b.plain.col_stride == 1;
  if (packs_rows_of_b && problem.m < kFewRows)
    deepest = std::min(deepest, kDeepestForFewRows / kernel.b.element_bytes);
  const double b_bytes = bytes_of(problem.n, problem.k, problem.b.dtype());
  if (kernel.b_layout == BLayout::kRowMajor && !kernel.streams) {
    const bool by_twos =
        (problem.m == 2 || kernel.mr == 2) && kernel.b.element_bytes > 2 && b_bytes > kInLastCache;
    const bool one_or_two = problem.m == 1 || by_twos;
    const int64_t block =
        one_or_two || is_narrow(problem.b.plain) ? kSmallBlockInPlace : kBlockInPlace;
    const bool few_at_once = one_or_two && b_bytes > kInL2 && plan.cols.size >= kLongRow;
    const int64_t rows = few_at_once ? 0 : block / kernel.b.element_bytes / plan.cols.size;
    deepest = std::min(deepest, std::max(rows, kShallowest));
  }
  if (problem.m > kernel.mr && problem.m <= kFewUses && problem.n <= kFewUses) {
    plan.prefetch_a = bytes_of(problem.m, problem.k, problem.a.dtype) > kInCaches;
    plan.prefetch_b = b_bytes > kInCaches;
    if (plan.prefetch_a || plan.prefetch_b)
      deepest = std::min(deepest, kFetchedBlock / kernel.b.element_bytes / (problem.m + problem.n));
  } else if (stored && b_bytes > kInLastCache && problem.m <= kFewUses) {
    const int64_t least =
        problem.compute == DType::kFloat64 ? kWaitingRowsOfF64 : kWaitingRowsOfF32;
    const bool waits = problem.compute == DType::kFloat64 ||
                       (problem.compute == DType::kFloat32 && !kernel.strict);
    plan.prefetch_b = waits && problem.m >= least;
    // That of the fewest columns is not to be larger either.
    if (plan.prefetch_b)
      deepest = std::min(deepest, kBlockForFewRows / kNarrowestBlock / kernel.b.element_bytes);
  }
  if (deepest < problem.k) deepest -= deepest % kStepsAtOnce;
  plan.kc = options.kc != 0 ? options.kc : round_up(equal_blocks(problem.k, deepest), kStepsAtOnce);
  plan.kc = std::min(round_up(plan.kc, kernel.kr), problem.k);

  const int64_t block_of_b = problem.m < kFewRows ? kBlockForFewRows : kBlockOfB;
  // What is packed or read through, and what several strips read, comes from a cache then. By rows,
  // B in place has blocks of few k.
  const bool read_again =
      kernel.b_layout != BLayout::kRowMajor && (plan.prefetch_b || plan.rows.size > kernel.mr);
  int64_t widest = kernel.streams ? kWidestStreamed : kWidest;
  if (plan.pack_b || read_again) {
    widest = std::clamp<int64_t>(block_of_b / kernel.b.element_bytes / plan.kc, kNarrowestBlock,
                                 kWidest);
  }
  plan.nc = options.nc != 0 ? options.nc : equal_blocks(plan.cols.size, widest);
  plan.nc = std::min(round_up(plan.nc, step), plan.cols.size);

  int64_t mc = plan.rows.size;
  if (plan.pack_a) mc = std::min(mc, kBlockOfA / kernel.a.element_bytes / plan.kc);
  if (!plan.direct && !carried) mc = std::min(mc, kBlockOfAcc / accumulator / plan.nc);
  if (plan.kc < problem.k)
    mc = std::max(mc, std::min(kRowsPerPacking, kMostOfA / kernel.a.element_bytes / plan.kc));
  plan.mc = options.mc != 0 ? options.mc : mc;
  plan.mc = std::min(round_up(std::max<int64_t>(plan.mc, 1), kernel.mr), plan.rows.size);

  if (plan.pack_b) plan.b_bytes = packed_bytes(kernel.b, plan.nc, plan.kc);
  if (plan.pack_a) plan.a_bytes = packed_bytes(kernel.a, plan.mc, plan.kc);
  if (!plan.direct && !carried)
    plan.acc_bytes = static_cast<size_t>(plan.mc * plan.nc * accumulator);
  if (quantized) {
    plan.columns_bytes = column_bytes(plan.nc);
    plan.sums_bytes = static_cast<size_t>(plan.mc) * sizeof(int32_t);
  }
  for (const size_t bytes :
       {plan.b_bytes, plan.a_bytes, plan.acc_bytes, plan.columns_bytes, plan.sums_bytes}) {
    plan.thread_bytes += Arena::round_up(bytes);
  }
  plan.scratch_bytes = plan.thread_bytes * static_cast<size_t>(plan.threads);
  return plan;
}

}  // namespace wgemm
