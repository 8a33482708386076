// search() and max_sim(): what a call checks, its memory, and its results. job.h has the tasks.
#include "search/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/arena.h"
#include "base/blocks.h"
#include "base/error.h"
#include "base/parallel.h"
#include "plan/partition.h"
#include "search/heap.h"
#include "search/job.h"
#include "search/rescore.h"
#include "search/scan.h"
#include "search/vectors.h"

namespace wgemm {
namespace {

// Queries of a block.
constexpr int64_t kBlockRows = 64;

// Bytes of queries and their heaps, unless the caller says how many.
constexpr double kMemory = 1 << 24;

constexpr int64_t kTasksPerThread = 32;

// Replaces the int8 scores of candidates by the scores of their elements for rescoring.
void rescore(const Job& job, int64_t row, Heap* heap) {
  const VectorsHeader& form = *job.form;
  const float* const query =
      reinterpret_cast<const float*>(job.rescored + row * job.rescored_bytes);
  Heap best{heap->keys, 0};
  for (size_t at = 0; at < heap->count;) {
    RescoredRows rows{};
    for (; rows.count < RescoredRows::kMost && at < heap->count; ++at) {
      const uint32_t slot = slot_of_key(heap->keys[at]);
      int64_t i = slot;
      const Segment* segment = job.segments.data();
      for (; i >= header_of(*segment).count; ++segment) i -= header_of(*segment).count;
      rows.slots[rows.count] = slot;
      rows.norms[rows.count] = header_of(*segment).rescored_norm(i);
      rows.data[rows.count++] = header_of(*segment).rescored(i);
    }
    float sums[RescoredRows::kMost];
    multiply(query, rows, form.rescore, form.dimensions, sums);
    for (size_t i = 0; i < rows.count; ++i) {
      const double score =
          score_of(form.metric, sums[i], job.values[row].rescored, {1, rows.norms[i]});
      const uint64_t key = key_of(form.metric, static_cast<float>(score), rows.slots[i]);
      // The heap takes the places of keys that were read.
      if (key > job.result_floor) best.add(key, heap->count);
    }
  }
  heap->count = best.count;
}

// Joins the heaps of a query, and writes its results.
void write_results(void* argument, size_t, size_t first, size_t count) {
  const Job& job = *static_cast<const Job*>(argument);
  const SearchArgs& args = *job.search;
  for (auto row = static_cast<int64_t>(first); row < static_cast<int64_t>(first + count); ++row) {
    Heap& heap = job.heap(0, row);
    for (int64_t copy = 1; copy < job.copies; ++copy) {
      const Heap& other = job.heap(static_cast<size_t>(copy), row);
      for (size_t i = 0; i < other.count; ++i) heap.add(other.keys[i], job.capacity);
    }
    if (job.form->rescores) rescore(job, row, &heap);
    heap.sort();
    const int64_t to = (job.first + row) * args.k;
    const auto found = static_cast<int64_t>(heap.count);
    const int64_t most = std::min(found, args.k);
    for (int64_t i = 0; i < most; ++i) {
      args.slots[to + i] = slot_of_key(heap.keys[i]);
      args.scores[to + i] = score_of_key(job.form->metric, heap.keys[i]);
    }
    args.found[job.first + row] = static_cast<uint32_t>(most);
  }
}

// Checks the type of the queries, and reads the arguments into a job.
Status begin(const ConstTensor& queries, std::span<const Segment> segments, Job* job) {
  const VectorsHeader& form = header_of(segments[0]);
  for (const Segment& segment : segments) job->slots += header_of(segment).count;
  WGEMM_RETURN_IF_ERROR(check_row_type(job->op, "query", queries, form.dtype));
  job->segments = segments;
  job->form = &form;
  job->source = {.op = job->op,
                 .argument = "query",
                 .data = static_cast<const std::byte*>(queries.data),
                 .dtype = queries.dtype,
                 .dimensions = form.dimensions,
                 .first = job->search != nullptr ? job->search->first : 0};
  // A unit has two int8, so rows have an even number of them.
  job->row_bytes =
      form.is_8bit() ? round_up(form.dimensions, 2) : form.dimensions * int64_t{sizeof(float)};
  if (job->search != nullptr && form.rescores)
    job->rescored_bytes = form.dimensions * int64_t{sizeof(float)};
  return {};
}

// Converts a query of the batch, or only checks it.
Status read_query(const Job& job, int64_t row, bool writes) {
  const VectorsHeader& form = *job.form;
  const bool is_8bit = form.is_8bit();
  Query query;
  for (int i = job.rescored_bytes != 0 ? 1 : 0; i >= 0; --i) {
    std::byte* to = nullptr;
    if (writes)
      to = i == 1 ? job.rescored + row * job.rescored_bytes : job.queries + row * job.row_bytes;
    const bool is_float = i == 1 || !is_8bit;
    RowValues values;
    WGEMM_RETURN_IF_ERROR(convert_row(job.source, job.first + row,
                                      {i == 1 ? form.rescore : form.dtype, form.metric, is_float},
                                      to, is_float ? 4 : 2, &values));
    (i == 1 ? query.rescored : query.factors) = values.factors();
    query.offset = values.sum;
  }
  if (form.metric == Metric::kEuclidean) query.g = static_cast<float>(query.factors.scale);
  // The sum over k of query * (vector - 128) lacks 128 times the sum of the query.
  query.offset = form.dtype == DType::kUInt8
                     ? -128 * (query.offset + 128 * static_cast<int32_t>(form.dimensions))
                     : 0;
  if (writes) job.values[row] = query;
  return {};
}

JobThreads threads_of(const Job& job, double most) {
  return threads_of_work(static_cast<double>(job.rows) * static_cast<double>(job.slots) *
                             static_cast<double>(job.form->dimensions),
                         most);
}

// Chooses blocks, threads and heaps for a batch of `rows` queries.
void choose(const Context& context, int64_t rows, Job* job) {
  job->rows = rows;
  job->block_rows = equal_blocks(rows, kBlockRows);
  job->block_cols =
      std::max<int64_t>(job->block_sums / job->block_rows / kSearchChunk, 1) * kSearchChunk;
  job->threads = threads_of(*job, context.threads()).most;
  job->ranges = 1;
  job->copies = 1;
  job->range = job->slots;
  if (job->threads > 1 && (job->max_sim != nullptr || job->blocks() < 2 * job->threads)) {
    job->copies = job->threads;
    const int64_t tasks = job->copies * kTasksPerThread;
    job->range = (job->slots / (tasks * kSearchChunk) + 1) * kSearchChunk;
    job->ranges = (job->slots + job->range - 1) / job->range;
  }
  job->product_bytes = 0;
  for (const Segment& segment : job->segments) {
    if (header_of(segment).count == 0) continue;
    for (const int64_t each : {job->block_rows, rows - (job->blocks() - 1) * job->block_rows}) {
      const BlockProduct product = job->product_of(header_of(segment), each);
      job->product_bytes = std::max(job->product_bytes, Arena::round_up(product.plan.thread_bytes));
    }
  }
  job->thread_bytes = job->product_bytes + static_cast<size_t>(Arena::round_up(job->sums_bytes()));
}

// Bytes of a query in a batch.
double query_bytes(const Job& job) {
  const double heap = static_cast<double>(job.capacity) * sizeof(uint64_t) + sizeof(Heap);
  return heap * static_cast<double>(job.copies) + static_cast<double>(job.row_bytes) +
         static_cast<double>(job.rescored_bytes) + sizeof(Query);
}

// The memory of a batch.
class Batch {
 public:
  explicit Batch(Context& context) : context_(context) {}
  ~Batch() { context_.release(memory_); }
  Batch(const Batch&) = delete;

  // Returns whether there is memory.
  bool allocate(Job* job, size_t totals) {
    const double bytes = query_bytes(*job) * static_cast<double>(job->rows) +
                         static_cast<double>(job->thread_bytes) * job->threads +
                         static_cast<double>(totals) * sizeof(double) + 8 * kArenaAlignment;
    if (bytes >= static_cast<double>(PTRDIFF_MAX)) return false;
    memory_ = context_.allocate(static_cast<size_t>(bytes));
    if (memory_ == nullptr) return false;
    auto* next = static_cast<std::byte*>(memory_);
    const auto take = [&](int64_t count) {
      return std::exchange(next, next + Arena::round_up(count));
    };
    const int64_t rows = job->rows, heaps = rows * job->copies;
    job->scratch = take(static_cast<int64_t>(job->thread_bytes) * job->threads);
    job->queries = take(rows * job->row_bytes);
    job->rescored = take(rows * job->rescored_bytes);
    job->values = reinterpret_cast<Query*>(take(rows * int64_t{sizeof(Query)}));
    job->heaps = reinterpret_cast<Heap*>(take(heaps * int64_t{sizeof(Heap)}));
    job->totals = reinterpret_cast<double*>(take(static_cast<int64_t>(totals * sizeof(double))));
    auto* const keys = reinterpret_cast<uint64_t*>(next);
    for (int64_t i = 0; i < heaps; ++i)
      job->heaps[i] = {keys + static_cast<size_t>(i) * job->capacity, 0};
    std::fill_n(job->totals, totals, 0.0);
    return true;
  }

 private:
  Context& context_;
  void* memory_ = nullptr;
};

// Halves the blocks of a job for which there is no memory. Error: kOutOfMemory, if they are as
// small as they can be.
Status shrink(const Context& context, Job& job) {
  job.block_sums /= 2;
  if (job.block_sums >= kSearchChunk) return {};
  return error(Code::kOutOfMemory, job.op, "",
               {"no memory for the best % vectors of a query; % bytes are in use",
                static_cast<int64_t>(job.capacity), static_cast<int64_t>(context.bytes_in_use())});
}

void run_job(Context& context, Job* job, std::span<const Phase> phases) {
  Threads::run(context, threads_of(*job, job->threads), phases, job);
}

}  // namespace

Status run_search(Context& context, const SearchArgs& args) {
  Job job("search", args.fast);
  job.search = &args;
  WGEMM_RETURN_IF_ERROR(begin(args.queries, args.segments, &job));
  const int64_t queries = args.queries.dims[0];
  int64_t candidates = std::min(args.k, job.slots);
  if (job.form->rescores) {
    const int64_t wanted = args.candidates != 0 ? args.candidates : 4 * candidates;
    candidates = std::clamp(wanted, candidates, job.slots);
  }
  job.capacity = static_cast<size_t>(std::max<int64_t>(candidates, 1));
  if (args.min_score) {
    job.result_floor = (key_of(job.form->metric, *args.min_score, 0) >> 32 << 32) - 1;
    if (!job.form->rescores) job.floor = job.result_floor;
  }
  const double memory = args.max_memory == 0 ? kMemory : static_cast<double>(args.max_memory);
  // Heaps of several threads take more memory, but then there are few queries.
  const double most = std::max(memory / query_bytes(job), 1.0);
  int64_t rows = static_cast<int64_t>(std::min(most, static_cast<double>(queries)));
  bool is_checked = false;  // all queries, before results of some are written
  while (job.first < queries) {
    rows = std::min(rows, queries - job.first);
    if (rows < queries && !is_checked) {
      for (int64_t row = 0; row < queries; ++row)
        WGEMM_RETURN_IF_ERROR(read_query(job, row, false));
      is_checked = true;
    }
    choose(context, rows, &job);
    Batch batch(context);
    if (!batch.allocate(&job, 0)) {
      if (rows == 1) WGEMM_RETURN_IF_ERROR(shrink(context, job));
      rows = (rows + 1) / 2;
      continue;
    }
    for (int64_t row = 0; row < rows; ++row) WGEMM_RETURN_IF_ERROR(read_query(job, row, true));
    const auto ranges = static_cast<size_t>(job.ranges);
    const Phase phases[] = {{run_ranges, static_cast<size_t>(job.blocks()) * ranges, ranges},
                            {write_results, static_cast<size_t>(rows), SIZE_MAX}};
    run_job(context, &job, phases);
    job.first += rows;
  }
  return {};
}

Status run_max_sim(Context& context, const MaxSimArgs& args) {
  Job job("max_sim", args.fast);
  job.max_sim = &args;
  WGEMM_RETURN_IF_ERROR(begin(args.queries, args.segments, &job));
  const int64_t queries = args.queries.dims[0];
  if (queries == 0)
    return error(Code::kShape, job.op, "query", {"query has no rows; it must have one or more"});
  const size_t documents = args.ends.size();
  Batch batch(context);
  for (choose(context, queries, &job); !batch.allocate(&job, documents);
       choose(context, queries, &job))
    WGEMM_RETURN_IF_ERROR(shrink(context, job));
  for (int64_t row = 0; row < queries; ++row) WGEMM_RETURN_IF_ERROR(read_query(job, row, true));
  if (documents == 0) return {};
  const Phase phase{run_documents, documents, SIZE_MAX};
  run_job(context, &job, {&phase, 1});
  for (size_t i = 0; i < documents; ++i) args.scores[i] = static_cast<float>(job.totals[i]);
  return {};
}

}  // namespace wgemm
