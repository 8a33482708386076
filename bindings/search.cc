// The function of the module for vectors: js/search/ checks its arguments, and writes them to the
// block.
#include "search/search.h"

#include <emscripten/bind.h>

#include <cmath>
#include <new>

#include "module.h"
#include "search/vectors.h"

namespace {

using namespace wgemm;

// Reads the block from front to back.
class Numbers {
 public:
  [[gnu::noinline]] double number() { return *next_++; }
  [[gnu::noinline]] int64_t integer() { return static_cast<int64_t>(number()); }
  template <typename T>
  T* pointer() {
    return reinterpret_cast<T*>(address());
  }
  [[gnu::noinline]] uintptr_t address() { return static_cast<uintptr_t>(number()); }
  Vectors vectors() { return Vectors::view(pointer<void>()); }
  DType dtype() { return static_cast<DType>(integer()); }

  // type, address, rows, columns. `dims` receives the sizes.
  ConstTensor matrix(int64_t (&dims)[2]) {
    const DType type = dtype();
    const void* const data = pointer<void>();
    for (int64_t& size : dims) size = integer();
    return {.data = data, .dtype = type, .dims = dims};
  }

 private:
  const double* next_ = bindings::block();
};

// js/search/pieces.ts has the same limit.
constexpr size_t kMostSegments = 256;

// A number, and for each segment the address of its vectors and of its filter, which may be 0.
struct Segments {
  explicit Segments(Numbers& numbers) : count(static_cast<size_t>(numbers.integer())) {
    if (count > kMostSegments) __builtin_trap();
    for (size_t i = 0; i < count; ++i) {
      Vectors* const vectors = new (&memory[i]) Vectors(numbers.vectors());
      segments[i] = {vectors, numbers.pointer<const uint32_t>()};
    }
  }
  std::span<const Segment> span() const { return {segments, count}; }
  Vectors* vectors(size_t i) const { return const_cast<Vectors*>(segments[i].vectors); }

  size_t count;
  Segment segments[kMostSegments];
  // Views own nothing, so they need no destructor.
  struct alignas(Vectors) View {
    std::byte bytes[sizeof(Vectors)];
  } memory[kMostSegments];
};

// dimensions, capacity, type, metric, type for rescoring or -1. Returns the address and the bytes.
Status make(Numbers& in) {
  VectorsArgs args;
  args.dimensions = in.integer();
  args.capacity = in.integer();
  args.dtype = in.dtype();
  args.metric = static_cast<Metric>(in.integer());
  if (const int64_t rescore = in.integer(); rescore >= 0)
    args.rescore = static_cast<DType>(rescore);
  Vectors vectors;
  Status status = VectorsAccess::make(bindings::context(), args, &vectors);
  if (!status.ok()) return status;
  double* const out = bindings::block();
  out[1] = static_cast<double>(vectors.bytes());
  out[0] = static_cast<double>(reinterpret_cast<uintptr_t>(vectors.detach()));
  return {};
}

// vectors, rows as Numbers::matrix() reads them, scales, elements for rescoring, number of the
// first row in errors. Returns the number of vectors.
Status run_append(Numbers& in) {
  Vectors vectors = in.vectors();
  AppendArgs args;
  int64_t dims[2];
  args.vectors = in.matrix(dims);
  args.scales = in.pointer<const float>();
  args.rescored = in.pointer<const void>();
  args.first = in.integer();
  Status status = VectorsAccess::append(&vectors, args);
  bindings::block()[0] = static_cast<double>(vectors.count());
  return status;
}

// vectors, first, count, addresses of rows, scales and elements for rescoring.
Status run_read(Numbers& in) {
  const Vectors vectors = in.vectors();
  const int64_t first = in.integer(), count = in.integer();
  void* const rows = in.pointer<void>();
  auto* const scales = in.pointer<float>();
  read(vectors, first, count, rows, scales, in.pointer<void>());
  return {};
}

// vectors, number of vectors that stay.
Status run_truncate(Numbers& in) {
  Vectors vectors = in.vectors();
  truncate(&vectors, in.integer());
  return {};
}

// segments. Returns the number of vectors of each.
Status run_compact(Numbers& in) {
  Segments segments(in);
  Vectors* vectors[kMostSegments];
  const uint32_t* filters[kMostSegments];
  for (size_t i = 0; i < segments.count; ++i) {
    vectors[i] = segments.vectors(i);
    filters[i] = segments.segments[i].filter;
  }
  compact({vectors, segments.count}, {filters, segments.count});
  for (size_t i = 0; i < segments.count; ++i)
    bindings::block()[i] = static_cast<double>(vectors[i]->count());
  return {};
}

// queries, fast, k, candidates, score or NaN, number of the first query in errors, addresses of
// slots, scores and numbers of results, segments.
Status search_vectors(Numbers& in) {
  SearchArgs args;
  int64_t dims[2];
  args.queries = in.matrix(dims);
  args.fast = in.number() != 0;
  args.k = in.integer();
  args.candidates = in.integer();
  if (const double score = in.number(); !std::isnan(score))
    args.min_score = static_cast<float>(score);
  args.first = in.integer();
  args.slots = in.pointer<uint32_t>();
  args.scores = in.pointer<float>();
  args.found = in.pointer<uint32_t>();
  const Segments segments(in);
  args.segments = segments.span();
  return run_search(bindings::context(), args);
}

// queries, fast, address and number of the ends of documents, address of scores, segments.
Status add_best(Numbers& in) {
  MaxSimArgs args;
  int64_t dims[2];
  args.queries = in.matrix(dims);
  args.fast = in.number() != 0;
  const auto* const ends = in.pointer<const uint32_t>();
  args.ends = {ends, static_cast<size_t>(in.integer())};
  args.scores = in.pointer<float>();
  const Segments segments(in);
  args.segments = segments.span();
  return run_max_sim(bindings::context(), args);
}

// address, bytes. Returns the low and high 32 bits.
Status run_checksum(Numbers& in) {
  const auto* const bytes = in.pointer<const std::byte>();
  const uint64_t sum = checksum({bytes, static_cast<size_t>(in.number())});
  bindings::block()[0] = static_cast<double>(sum & 0xffffffff);
  bindings::block()[1] = static_cast<double>(sum >> 32);
  return {};
}

// In the order of js/search/pieces.ts.
constexpr Status (*kOperations[])(Numbers&) = {make,        run_append,     run_read, run_truncate,
                                               run_compact, search_vectors, add_best, run_checksum};

}  // namespace

EMSCRIPTEN_BINDINGS(wgemm_search) {
  emscripten::function(
      "vectors", +[](int operation) {
        Numbers numbers;
        return bindings::finish(kOperations[operation](numbers));
      });
}
