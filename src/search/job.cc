#include "search/job.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <limits>

#include "search/scan.h"

namespace wgemm {
namespace {

// Panels have this many columns, so blocks begin at a multiple of it.
constexpr int64_t kWidth = 8;

// A scan may read this many sums after a row.
constexpr int64_t kPadding = 16;

// Whether a filter has a bit for the vectors from `begin` up to `end`, or next to them.
bool has_bits(const uint32_t* filter, int64_t begin, int64_t end) {
  if (filter == nullptr) return true;
  uint32_t any = 0;
  for (int64_t word = begin / 32; word < (end + 31) / 32; ++word) any |= filter[word];
  return any != 0;
}

// The work of a thread.
class Worker {
 public:
  Worker(const Job& job, size_t thread)
      : job_(job), thread_(thread), scratch_(job.scratch + thread * job.thread_bytes) {
    sums_ = scratch_ + job.product_bytes;
    corrections_ = reinterpret_cast<int32_t*>(sums_ + (job.block_rows * job.block_cols + kPadding) *
                                                          int64_t{sizeof(float)});
  }

  // Scans vectors from slot `begin` up to `end` for `rows` queries from `row` on. For max_sim(),
  // `document` is the document that begins at slot `begin`.
  void run(int64_t row, int64_t rows, int64_t begin, int64_t end, int64_t document) {
    row_ = row;
    rows_ = rows;
    document_ = document;
    int64_t base = 0;  // the slot of the first vector of the segment
    for (const Segment& segment : job_.segments) {
      const VectorsHeader& v = header_of(segment);
      const int64_t from = std::max(begin - base, int64_t{0}), to = std::min(end - base, v.count);
      if (from < to) run_segment(segment, base, from, to);
      base += v.count;
    }
  }

  // Ends the documents before `end` that have no slot from `slot` on.
  void end_documents(int64_t slot, int64_t end) {
    for (; document_ < end && job_.end_of_document(document_) <= slot; ++document_) {
      for (int64_t row = row_; row < row_ + rows_; ++row) {
        Heap& heap = job_.heap(thread_, row);
        job_.totals[document_] += heap.count == 0 ? -std::numeric_limits<double>::infinity()
                                                  : score_of_key(job_.form->metric, heap.keys[0]);
        heap.count = 0;
        heap.bound = -std::numeric_limits<float>::infinity();
      }
    }
  }

 private:
  void run_segment(const Segment& segment, int64_t base, int64_t from, int64_t to) {
    const VectorsHeader& v = header_of(segment);
    BlockProduct product = job_.product_of(v, rows_);
    const Plan& plan = product.plan;
    Problem& problem = product.problem;
    if (plan.thread_bytes > job_.product_bytes) __builtin_trap();
    for (int64_t i = 0; i < rows_; ++i) set_bound(v, row_ + i);
    const PrepackedB packed = problem.b.packed;
    for (int64_t col = from / kWidth * kWidth, next; col < to; col = next) {
      next = std::min(col + kSearchChunk, to);
      if (!has_bits(segment.filter, col, next)) continue;
      while (next < to && next - col < job_.block_cols) {
        const int64_t after = std::min(next + kSearchChunk, std::min(to, col + job_.block_cols));
        if (!has_bits(segment.filter, next, after)) break;
        next = after;
      }
      problem.a.base = job_.queries + row_ * job_.row_bytes;
      problem.b.packed = packed.from(0, col);
      product.add_sums(rows_, next - col, sums_, true, scratch_);
      correct(v, col, problem.n, plan.a_shift);
      if (job_.max_sim == nullptr) {
        scan(segment, base, col, next, from, next);
        continue;
      }
      for (int64_t at = std::max(col, from); at < next;) {
        end_documents(base + at, static_cast<int64_t>(job_.max_sim->ends.size()));
        const int64_t end = std::min(next, job_.end_of_document(document_) - base);
        scan(segment, base, col, next, at, end);
        at = end;
      }
    }
  }

  void set_bound(const VectorsHeader& v, int64_t row) {
    Heap& heap = job_.heap(thread_, row);
    heap.bound = bound_of(v.metric, heap.least(job_.capacity, job_.floor), job_.values[row].factors,
                          v.greatest);
  }

  // In 8 bits, kernels multiply by query + a_shift and, for uint8, by vector - 128. Segments may
  // differ in their kernels, and so in a_shift.
  void correct(const VectorsHeader& v, int64_t col, int64_t count, int a_shift) {
    if (!v.is_8bit()) return;
    const int factor = a_shift - (v.dtype == DType::kUInt8 ? 128 : 0);
    const int32_t* const sums = v.sums() + col;
    // Both arrays have whole vectors.
    const v128_t factors = wasm_i32x4_splat(factor);
    for (int64_t i = 0; i < count; i += 4)
      wasm_v128_store(corrections_ + i, wasm_i32x4_mul(wasm_v128_load(sums + i), factors));
  }

  // Scans the vectors from `from` up to `to` of the block from `col` up to `next`.
  void scan(const Segment& segment, int64_t base, int64_t col, int64_t next, int64_t from,
            int64_t to) {
    const VectorsHeader& v = header_of(segment);
    from = std::max(from, col);
    for (int64_t i = 0; i < rows_; ++i) {
      const Query& query = job_.values[row_ + i];
      Heap& heap = job_.heap(thread_, row_ + i);
      const ScanBlock block{
          .sums = sums_ + (i * (next - col) + from - col) * int64_t{sizeof(float)},
          .f = v.f() + from,
          .h = v.h() + from,
          .corrections = corrections_ + (from - col),
          .offset = query.offset,
          .g = query.g,
          .count = to - from,
          .is_8bit = v.is_8bit(),
          .has_h = v.metric == Metric::kEuclidean};
      for (int64_t at = -1; (at = find(block, at + 1, heap.bound)) < block.count;) {
        const int64_t j = from + at;
        if (segment.filter != nullptr && (segment.filter[j / 32] >> j % 32 & 1) == 0) continue;
        const auto score = static_cast<float>(
            score_of(v.metric, acc_at(block, at), query.factors, {v.scale(j), v.norm(j)}));
        const uint64_t key = key_of(v.metric, score, static_cast<uint32_t>(base + j));
        if (key <= heap.least(job_.capacity, job_.floor)) continue;
        heap.add(key, job_.capacity);
        set_bound(v, row_ + i);
      }
    }
  }

  const Job& job_;
  const size_t thread_;
  std::byte *const scratch_, *sums_;
  int32_t* corrections_;
  int64_t row_ = 0, rows_ = 0, document_ = 0;
};

}  // namespace

BlockProduct Job::product_of(const VectorsHeader& v, int64_t count) const {
  BlockProduct product;
  Problem& p = product.problem;
  p.m = count;
  p.n = v.count;
  p.k = v.dimensions;
  p.b.packed = v.packed();
  p.b.plain.dtype = p.b.packed.dtype;
  const bool is_8bit = v.is_8bit();
  p.compute = is_8bit ? DType::kInt8 : DType::kFloat32;
  p.a = {nullptr, p.compute, row_bytes / (is_8bit ? 1 : int64_t{sizeof(float)}), 1};
  PlanOptions options;
  options.nc = block_cols;
  product.plan_sums(planner, options);
  // Then sums need no correction except correct(): see execute/zero_points.h.
  p.quantization.a_zero_point = -product.plan.a_shift;
  return product;
}

int64_t Job::sums_bytes() const {
  return ((block_rows + 1) * block_cols + 2 * kPadding) * int64_t{sizeof(float)};
}

void run_ranges(void* argument, size_t thread, size_t first, size_t count) {
  const Job& job = *static_cast<const Job*>(argument);
  Worker worker(job, thread);
  const auto task = static_cast<int64_t>(first);
  const int64_t row = task / job.ranges * job.block_rows, begin = task % job.ranges * job.range;
  worker.run(row, std::min(job.block_rows, job.rows - row), begin,
             std::min(begin + static_cast<int64_t>(count) * job.range, job.slots), 0);
}

void run_documents(void* argument, size_t thread, size_t first, size_t count) {
  const Job& job = *static_cast<const Job*>(argument);
  Worker worker(job, thread);
  const auto document = static_cast<int64_t>(first), end = document + static_cast<int64_t>(count);
  for (int64_t row = 0; row < job.rows; row += job.block_rows) {
    worker.run(row, std::min(job.block_rows, job.rows - row), job.end_of_document(document - 1),
               job.end_of_document(end - 1), document);
    worker.end_documents(INT64_MAX, end);
  }
}

}  // namespace wgemm
