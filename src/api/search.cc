// The public functions of search: they check their arguments. The bindings call what these call,
// since js/search/ makes the same checks.
#include "search/search.h"

#include <cmath>

#include "base/error.h"
#include "ops/tensor_check.h"
#include "search/vectors.h"

namespace wgemm {
namespace {

constexpr int64_t kMostDimensions = 1 << 15;  // a sum of products of uint8 then fits int32
constexpr int64_t kMostVectors = UINT32_MAX;

Status check_args(const VectorsArgs& args) {
  const char* const op = "make_vectors";
  const auto out_of_range = [&](const char* name, int64_t found, int64_t most) {
    return error(Code::kArgument, op, name, {"% is %; it must be from 1 to %", name, found, most});
  };
  if (args.dimensions < 1 || args.dimensions > kMostDimensions)
    return out_of_range("dimensions", args.dimensions, kMostDimensions);
  if (args.capacity < 1 || args.capacity > kMostVectors)
    return out_of_range("capacity", args.capacity, kMostVectors);
  if (args.metric > Metric::kEuclidean) {
    return error(Code::kArgument, op, "metric",
                 {"metric is the unknown metric %; see Metric", static_cast<int64_t>(args.metric)});
  }
  const auto name_of = [](DType type) {
    return static_cast<int>(type) < kDTypeCount ? dtype_name(type) : "unknown";
  };
  const DType type = args.dtype;
  if (static_cast<int>(type) >= kDTypeCount ||
      !(is_search_float(type) || compute_type(type) == DType::kInt8)) {
    return error(
        Code::kDType, op, "dtype",
        {"dtype is %; it must be float32, float16, bfloat16, int8 or uint8", name_of(type)});
  }
  const DType rescore = args.rescore.value_or(DType::kFloat32);
  if (rescore != DType::kFloat32 && rescore != DType::kBFloat16) {
    return error(Code::kDType, op, "rescore",
                 {"rescore is %; it must be float32 or bfloat16", name_of(rescore)});
  }
  if (args.rescore && type != DType::kInt8) {
    return error(Code::kArgument, op, "rescore",
                 {"rescore is set and dtype is %; only int8 is rescored", name_of(type)});
  }
  return {};
}

// Checks the type, the shape and the layout of rows.
Status check_rows(const char* op, const char* argument, const ConstTensor& rows,
                  const VectorsHeader& v) {
  WGEMM_RETURN_IF_ERROR(check_row_type(op, argument, rows, v.dtype));
  if (rows.out_of_core != nullptr)
    return error(Code::kArgument, op, argument,
                 {"% is out-of-core; it must be in memory", argument});
  WGEMM_RETURN_IF_ERROR(check_tensor(op, argument, rows, true));
  const int64_t dimensions = v.dimensions;
  if (rows.dims.size() != 2 || rows.dims[0] < 0 || rows.dims[1] != dimensions) {
    return error(
        Code::kShape, op, argument,
        {"% has shape %; expected % columns, one per dimension", argument, rows.dims, dimensions});
  }
  const bool is_contiguous =
      rows.strides.empty() || ((rows.strides[0] == dimensions || rows.dims[0] <= 1) &&
                               (rows.strides[1] == 1 || dimensions == 1));
  if (rows.offset != 0 || !is_contiguous)
    return error(Code::kShape, op, argument,
                 {"% has an offset or strides; it must be contiguous", argument});
  return {};
}

Status check_segments(const char* op, std::span<const Segment> segments, int64_t* slots) {
  const auto has_vectors = [](const Segment& segment) {
    return segment.vectors != nullptr && !segment.vectors->empty();
  };
  if (segments.empty() || !has_vectors(segments[0]))
    return error(Code::kArgument, op, "segments", {"segments has no vectors"});
  const VectorsHeader& form = *VectorsAccess::header(*segments[0].vectors);
  for (const Segment& segment : segments) {
    if (!has_vectors(segment) || !VectorsAccess::header(*segment.vectors)->is_like(form))
      return error(Code::kArgument, op, "segments",
                   {"segments differ; only their capacity may differ"});
    *slots += segment.vectors->count();
  }
  if (*slots <= kMostVectors) return {};
  return error(Code::kArgument, op, "segments",
               {"segments has % vectors; it must have fewer than 2^32", *slots});
}

}  // namespace

Status make_vectors(Context& context, const VectorsArgs& args, Vectors* vectors) {
  WGEMM_RETURN_IF_ERROR(check_args(args));
  return VectorsAccess::make(context, args, vectors);
}

Status append(Vectors* vectors, const AppendArgs& args) {
  const char* const op = "append";
  const VectorsHeader& v = *VectorsAccess::header(*vectors);
  const ConstTensor& rows = args.vectors;
  WGEMM_RETURN_IF_ERROR(check_rows(op, "vectors", rows, v));
  const int64_t count = rows.dims[0];
  if (count > v.capacity - v.count) {
    return error(Code::kOutOfMemory, op, "vectors",
                 {"vectors has % rows; there is room for %", count, v.capacity - v.count});
  }
  return VectorsAccess::append(vectors, args);
}

Status search(Context& context, const SearchArgs& args) {
  const char* const op = "search";
  int64_t slots = 0;
  WGEMM_RETURN_IF_ERROR(check_segments(op, args.segments, &slots));
  WGEMM_RETURN_IF_ERROR(
      check_rows(op, "query", args.queries, *VectorsAccess::header(*args.segments[0].vectors)));
  const auto at_least = [&](const char* name, int64_t found, int64_t least) {
    return error(Code::kArgument, op, name, {"% is %; it must be % or more", name, found, least});
  };
  if (args.k < 1) return at_least("k", args.k, 1);
  if (args.candidates < 0) return at_least("candidates", args.candidates, 0);
  if (args.min_score && std::isnan(*args.min_score))
    return error(Code::kArgument, op, "min_score", {"min_score is NaN; it must be a number"});
  return run_search(context, args);
}

Status max_sim(Context& context, const MaxSimArgs& args) {
  const char* const op = "max_sim";
  int64_t slots = 0;
  WGEMM_RETURN_IF_ERROR(check_segments(op, args.segments, &slots));
  WGEMM_RETURN_IF_ERROR(
      check_rows(op, "query", args.queries, *VectorsAccess::header(*args.segments[0].vectors)));
  if (VectorsAccess::header(*args.segments[0].vectors)->metric == Metric::kEuclidean)
    return error(Code::kArgument, op, "segments",
                 {"the metric is euclidean; it must be dot or cosine"});
  int64_t begin = 0;
  for (size_t i = 0; i < args.ends.size(); begin = args.ends[i++]) {
    const int64_t end = args.ends[i];
    if (end >= begin && end <= slots) continue;
    return error(
        Code::kArgument, op, "ends",
        {"ends has % at %; it must be from % to %", end, static_cast<int64_t>(i), begin, slots});
  }
  return run_max_sim(context, args);
}

}  // namespace wgemm
