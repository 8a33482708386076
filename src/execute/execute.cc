// The phases of a call: quantize A, pack B, compute tasks, add the sums of parts of K.
#include "execute/execute.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "base/types.h"
#include "execute/macro_kernel.h"
#include "execute/quantize_a.h"
#include "execute/scope.h"

namespace wgemm {
namespace {

// A thread waits for this many loads until all of B is packed: some 20 us, about as long as a unit
// takes.
constexpr int kLoadsOfUnit = 10000;

// The run of `count` tasks from `index` on, which are in one line.
Task task_at(const Plan& plan, size_t index, size_t count) {
  int64_t left = static_cast<int64_t>(index) / plan.parts.count,
          pieces = static_cast<int64_t>(count);
  const auto next = [&](const Cut& cut) {
    if (cut.count == 1) return Interval{0, cut.total};
    const int64_t begin = left % cut.count * cut.size;
    left /= cut.count;
    return Interval{begin, std::min(begin + cut.size * std::exchange(pieces, 1), cut.total)};
  };
  Task task;
  if (plan.cols_first) task.cols = next(plan.cols);
  task.rows = next(plan.rows);
  task.inner = next(plan.inner);
  if (!plan.cols_first) task.cols = next(plan.cols);
  task.outer = next(plan.outer);
  return task;
}

// What the threads that execute a plan share.
struct Job {
  const Problem& problem;
  const Plan& plan;
  std::byte *parts, *shared_b, *scratch;  // sums of parts, packed B, and scratch of the threads
  const QuantizedA* quantized_a;
  std::atomic<size_t> packed_units = 0;

  std::byte* of_thread(size_t thread) const { return scratch + thread * plan.thread_bytes; }
  std::byte* sums(int64_t part) const {
    const Carry& carry = problem.carry;
    // The first part, and then the sum of all, may be where sums are carried.
    if (part == 0 && carry.sums != nullptr && carry.begins) return carry.sums;
    return parts + static_cast<size_t>(part) * part_bytes(problem);
  }
  // Packed B; null if it is not complete after about as long as a unit takes. A thread waits no
  // longer, since the system may have stopped a thread that packs a unit.
  std::byte* packed_b() const {
    if (!kHasThreads || plan.units == 0) return nullptr;
    for (int i = 0; i < kLoadsOfUnit; ++i)
      if (packed_units.load() == plan.units) return shared_b;
    return nullptr;
  }
};

template <typename Scope>
void run_packing(void* argument, size_t thread, size_t first, size_t count) {
  auto& job = *static_cast<Job*>(argument);
  Scope::pack_units(job.problem, job.plan, first, count, job.of_thread(thread), job.shared_b);
  job.packed_units += count;
}

// One part of K, as a problem whose sums are carried on.
template <typename Scope>
Problem part_of(const Job& job, int64_t part) {
  Problem p = job.problem;
  const int64_t first = part * job.plan.parts.size;
  p.k = std::min(job.plan.parts.size, p.k - first);
  p.a = p.a.at(first * p.a.col_stride);
  bool begins = true;
  if (Scope::kIsAny && p.b.is_packed()) {
    // The step before this part stands where the header of a micro-panel would be. Kernels must
    // not read it as a header.
    begins = first == 0 || p.b.packed.layout().header == 0;
    p.b.packed = p.b.packed.from(first, 0);
  } else if (Scope::kIsAny && p.b.nbits_format()) {
    p.b.nbits = p.b.nbits.from(first, 0);
  } else {
    p.b.plain = p.b.plain.at(first * p.b.plain.row_stride);
  }
  p.carry = {job.sums(part), begins, false};
  return p;
}

template <typename Scope>
void run_product(void* argument, size_t thread, size_t first, size_t count) {
  const auto& job = *static_cast<const Job*>(argument);
  const Problem& problem = job.problem;
  const Plan& plan = job.plan;
  if (!plan.adds_parts) {
    return Scope::run_task(problem, plan, task_at(plan, first, count), job.of_thread(thread),
                           job.packed_b());
  }
  for (size_t i = first; i < first + count; ++i) {
    const Problem part = part_of<Scope>(job, static_cast<int64_t>(i) % plan.parts.count);
    const Task task = task_at(plan, i, 1);
    const size_t bytes = dtype_bytes(accumulator_type(part.compute));
    for (int64_t row = task.rows.begin; row < task.rows.end && !part.carry.begins; ++row) {
      std::memset(part.carry.sums + static_cast<size_t>(row * part.n + task.cols.begin) * bytes, 0,
                  static_cast<size_t>(task.cols.end - task.cols.begin) * bytes);
    }
    Scope::run_task(part, plan, task, job.of_thread(thread), nullptr);
  }
}

// Rows of a task that adds sums; for GEMV, columns. Its sums begin at a whole vector.
constexpr int64_t kSumRows = 4, kSumColumns = 1024;

// Y, cut into these tasks.
Cut cut_of_sums(const Problem& p) {
  const int64_t size = p.m == 1 ? kSumColumns : kSumRows, total = p.m == 1 ? p.n : p.m;
  return {size, (total + size - 1) / size, total};
}

v128_t add(DType type, v128_t x, v128_t y) {
  if (type == DType::kFloat32) return wasm_f32x4_add(x, y);
  if (type == DType::kFloat64) return wasm_f64x2_add(x, y);
  return dtype_bytes(type) == 4 ? wasm_i32x4_add(x, y) : wasm_i64x2_add(x, y);
}

// Adds whole vectors: the sums of a part are padded to whole vectors.
void add_sums(DType type, const std::byte* from, std::byte* to, size_t bytes) {
  for (size_t i = 0; i < bytes; i += sizeof(v128_t))
    wasm_v128_store(to + i, add(type, wasm_v128_load(to + i), wasm_v128_load(from + i)));
}

// Adds the sums of parts in ascending order, and computes Y from them.
template <typename Scope>
void run_sums(void* argument, size_t thread, size_t first, size_t count) {
  const auto& job = *static_cast<const Job*>(argument);
  Problem p = job.problem;
  Task task{{0, 1}, {0, 1}, {0, p.m}, {0, p.n}};
  const Cut cut = cut_of_sums(p);
  Interval& block = p.m == 1 ? task.cols : task.rows;
  block.begin = static_cast<int64_t>(first) * cut.size;
  block.end = std::min(block.begin + static_cast<int64_t>(count) * cut.size, cut.total);
  const bool is_carried = p.carry.sums != nullptr;
  std::byte* const sums = is_carried ? p.carry.sums : job.sums(0);
  const DType type = accumulator_type(p.compute);
  const auto place = [&](int64_t row, int64_t col) {
    return static_cast<size_t>(row * p.n + col) * dtype_bytes(type);
  };
  const size_t begin = place(task.rows.begin, task.cols.begin),
               end = place(task.rows.end - 1, task.cols.end);
  for (int64_t part = is_carried && !p.carry.begins ? 0 : 1; part < job.plan.parts.count; ++part)
    add_sums(type, job.sums(part) + begin, sums + begin, end - begin);
  p.k = 0;
  p.carry = {sums, false, p.carry.ends};
  Scope::run_task(p, job.plan, task, job.of_thread(thread), nullptr);
}

// Rows per task of run_mirror(). Two blocks of 32 x 32 elements of 8 bytes fit in L1.
constexpr int64_t kMirrorRows = 32;

// Copies the lower triangle to kMirrorRows rows of the upper triangle, from `begin` on.
template <typename T>
void mirror(const Problem& p, int64_t begin) {
  const int64_t end = std::min(begin + kMirrorRows, p.n), row = p.y.row_stride,
                col = p.y.col_stride;
  T* const y = reinterpret_cast<T*>(p.y.base);
  for (int64_t block = begin; block < p.n; block += kMirrorRows) {
    const int64_t block_end = std::min(block + kMirrorRows, p.n);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = std::max(block, i + 1); j < block_end; ++j)
        y[i * row + j * col] = y[j * row + i * col];
    }
  }
}

void run_mirror(void* argument, size_t, size_t first, size_t count) {
  const Problem& p = static_cast<const Job*>(argument)->problem;
  for (size_t i = first; i < first + count; ++i) {
    const auto begin = static_cast<int64_t>(i) * kMirrorRows;
    dtype_bytes(p.y.dtype) == 8 ? mirror<uint64_t>(p, begin) : mirror<uint32_t>(p, begin);
  }
}

void run_quantization(void* argument, size_t, size_t first, size_t count) {
  static_cast<const Job*>(argument)->quantized_a->run(first, count, nullptr);
}

template <typename Scope>
void run_phases(Context& context, const Problem& problem, const Plan& plan, std::byte* scratch) {
  if (problem.m == 0 || problem.n == 0) return;
  const bool mirrors = Scope::kIsAny && problem.mirrors;
  if (plan.tasks() == 1 && plan.quantized_a_bytes == 0 && !plan.adds_parts && !mirrors) {
    const auto whole = [](const Cut& cut) { return Interval{0, cut.total}; };
    const Task task{whole(plan.outer), whole(plan.inner), whole(plan.rows), whole(plan.cols)};
    return Scope::run_task(problem, plan, task, scratch, nullptr);
  }
  std::optional<QuantizedA> quantized;
  if (Scope::kIsAny && plan.quantized_a_bytes != 0) quantized.emplace(problem, scratch);
  std::byte *const parts = scratch + plan.quantized_a_bytes, *const b = parts + plan.parts_bytes;
  Job job{quantized ? quantized->problem() : problem, plan, parts, b, b + plan.shared_b_bytes,
          quantized ? &*quantized : nullptr};
  Phase phases[ThreadPool::kMaxPhases];
  size_t count = 0;
  if (quantized) phases[count++] = {run_quantization, quantized->tasks(), SIZE_MAX};
  if (kHasThreads && plan.units != 0) phases[count++] = {run_packing<Scope>, plan.units, SIZE_MAX};
  phases[count] = {run_product<Scope>, static_cast<size_t>(plan.tasks()),
                   static_cast<size_t>(plan.line)};
  phases[count++].waits = plan.units == 0;
  if (plan.adds_parts)
    phases[count++] = {run_sums<Scope>, static_cast<size_t>(cut_of_sums(problem).count), SIZE_MAX};
  if (mirrors)
    phases[count++] = {run_mirror, static_cast<size_t>((problem.n + kMirrorRows - 1) / kMirrorRows),
                       SIZE_MAX};
  Threads::run(context, plan.job_threads(), {phases, count}, &job);
}

}  // namespace

void execute(Context& context, const Problem& problem, const Plan& plan, std::byte* scratch) {
  run_phases<AnyProblem>(context, problem, plan, scratch);
}

template <typename T>
void execute_plain(Context& context, const Problem& problem, const Plan& plan, std::byte* scratch) {
  run_phases<PlainProblem<T>>(context, problem, plan, scratch);
}
template void execute_plain<float>(Context&, const Problem&, const Plan&, std::byte*);
template void execute_plain<double>(Context&, const Problem&, const Plan&, std::byte*);

}  // namespace wgemm
