// The work of a call of search() or max_sim(), cut into tasks.
//
// A task computes a block of sums of some queries and vectors, scans it, and goes on to the next:
// as attention does in nn/attention.cc. So scores are never written whole. The products are
// products of the core: see execute/block_product.h.
//
// Each query has a heap of the best keys, which goes on from block to block and from segment to
// segment. Tasks are blocks of queries if these suffice for all threads. Otherwise tasks are also
// ranges of slots; each thread then has heaps of its own, which are joined at the end.
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "execute/block_product.h"
#include "search/heap.h"
#include "search/vectors.h"

namespace wgemm {

// The number of vectors of a block is a multiple of this. A chunk whose filter has no bit is not
// computed.
inline constexpr int64_t kSearchChunk = 256;

struct Query {
  Factors factors{}, rescored{};
  int32_t offset = 0;  // this and g: see ScanBlock
  float g = 1;
};

inline const VectorsHeader& header_of(const Segment& segment) {
  return *VectorsAccess::header(*segment.vectors);
}

// A call, for a batch of queries. It points to the memory of the caller.
struct Job {
  std::span<const Segment> segments;
  const VectorsHeader* form = nullptr;  // any of the segments
  int64_t slots = 0;                    // of all segments
  const Context planner;                // for plans of one thread
  const char* op;
  RowSource source;           // all queries
  size_t capacity = 1;        // of a heap
  uint64_t floor = 0;         // keys of a heap exceed it
  uint64_t result_floor = 0;  // keys of results exceed it
  // For a batch:
  int64_t rows = 0, block_rows = 0, block_cols = 0;
  // Sums of a block: 64 KiB, so that they stay in L2, or less if memory is short. Smaller blocks
  // break the stream of vectors from memory more often: one query of 100,000 x 384 in int8 takes
  // 1.08 ms, and 1.26 ms in blocks of 1024 vectors (Zen 5).
  int64_t block_sums = 1 << 14;
  int64_t row_bytes = 0, rescored_bytes = 0;  // of a query
  int64_t first = 0;                          // number of the first query
  std::byte *queries = nullptr, *rescored = nullptr;
  Query* values = nullptr;
  Heap* heaps = nullptr;
  int64_t copies = 1;  // of heaps: 1, or one per thread
  uint32_t threads = 1;
  // For search(): tasks are ranges of slots, for each block of rows.
  int64_t range = 0, ranges = 1;
  const SearchArgs* search = nullptr;
  // For max_sim(): tasks are documents.
  const MaxSimArgs* max_sim = nullptr;
  double* totals = nullptr;
  std::byte* scratch = nullptr;
  size_t product_bytes = 0, thread_bytes = 0;

  Job(const char* call, bool fast)
      : planner(0, fast ? Determinism::kFast : Determinism::kStrict), op(call) {}

  int64_t blocks() const { return (rows + block_rows - 1) / block_rows; }
  Heap& heap(size_t thread, int64_t row) const {
    return heaps[(copies == 1 ? 0 : static_cast<int64_t>(thread) * rows) + row];
  }
  int64_t end_of_document(int64_t i) const {
    return i < 0 ? 0 : static_cast<int64_t>(max_sim->ends[static_cast<size_t>(i)]);
  }

  // A product of `count` queries and a segment.
  BlockProduct product_of(const VectorsHeader& v, int64_t count) const;
  // Bytes of sums and their corrections.
  int64_t sums_bytes() const;
};

// Tasks of search() and of max_sim(), as functions of a Phase.
void run_ranges(void* job, size_t thread, size_t first, size_t count);
void run_documents(void* job, size_t thread, size_t first, size_t count);

}  // namespace wgemm
