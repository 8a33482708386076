// A set of vectors in memory, and how rows become its elements. One block of memory has these
// sections, each aligned to 64 bytes, with room for `capacity` vectors:
//   header
//   panels    elements in the storage layout of their type: see problem/prepacked.h
//   norms     4 bytes each: float32, or int32 for 8 bits
//   factors   f and h of the bound of a score: see scan.h
//   scales    only for int8
//   sums      over k of the int8 elements, only for 8 bits
//   rescored  rows of the type for rescoring, without gaps, and their norms
#pragma once

#include "base/types.h"
#include "problem/prepacked.h"
#include "wgemm.h"

namespace wgemm {

struct VectorsHeader {
  DType dtype;
  Metric metric;
  bool rescores;
  DType rescore;  // if it rescores
  int64_t dimensions, capacity;
  int64_t count = 0;
  size_t bytes = 0;
  // Offsets in bytes.
  size_t panels_at = 0, norms_at = 0, f_at = 0, h_at = 0, scales_at = 0, sums_at = 0,
         rescored_at = 0, rescored_norms_at = 0;
  // Of all vectors that were appended: the least and largest int8 element, and the largest
  // scale^2 * norm.
  int low = 0, high = 0;
  double greatest = 0;

  // Whether both have the same VectorsArgs, except for the capacity.
  bool is_like(const VectorsHeader& other) const {
    return dimensions == other.dimensions && dtype == other.dtype && metric == other.metric &&
           rescores == other.rescores && rescore == other.rescore;
  }
  bool is_8bit() const { return compute_type(dtype) == DType::kInt8; }

  template <typename T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(const_cast<VectorsHeader*>(this)) +
                                offset);
  }
  const float* f() const { return at<float>(f_at); }
  const float* h() const { return at<float>(h_at); }
  const int32_t* sums() const { return at<int32_t>(sums_at); }
  double norm(int64_t i) const {
    return is_8bit() ? static_cast<double>(at<int32_t>(norms_at)[i])
                     : static_cast<double>(at<float>(norms_at)[i]);
  }
  double scale(int64_t i) const { return scales_at == 0 ? 1 : at<float>(scales_at)[i]; }
  double rescored_norm(int64_t i) const { return at<float>(rescored_norms_at)[i]; }
  const std::byte* rescored(int64_t i) const {
    return at<std::byte>(rescored_at) + i * dimensions * static_cast<int64_t>(dtype_bytes(rescore));
  }

  // The panels as kernels see them. Elements of uint8 are int8 there: 128 less.
  PrepackedB packed() const {
    return {.panels = at<std::byte>(panels_at),
            .dtype = is_8bit() ? DType::kInt8 : dtype,
            .k = dimensions,
            .column_sums = sums(),
            .n = capacity,
            .low = low,
            .high = high,
            .finite = true};
  }
};

// Whether it is float32, float16 or bfloat16.
inline bool is_search_float(DType type) { return !is_integer(type) && type != DType::kFloat64; }

struct VectorsAccess {
  // As make_vectors(), of arguments that are checked. Error: kOutOfMemory.
  static Status make(Context& context, const VectorsArgs& args, Vectors* vectors);
  // As append(), for rows of the right size that fit in the capacity.
  static Status append(Vectors* vectors, const AppendArgs& args);
  static VectorsHeader* header(const Vectors& vectors) {
    return static_cast<VectorsHeader*>(vectors.memory_);
  }
  static Vectors own(Context& context, void* memory) {
    Vectors vectors = Vectors::view(memory);
    vectors.context_ = &context;
    return vectors;
  }
};

// Rows to convert, contiguous.
struct RowSource {
  const char* op;
  const char* argument;  // in errors
  const std::byte* data;
  DType dtype;
  int64_t dimensions;
  const float* scales = nullptr;
  int64_t first = 0;  // number of the first row in errors
};

// The form that rows are converted to.
struct RowForm {
  DType dtype;
  Metric metric;
  bool widens = false;  // queries of 16 bits stay float32 after they are rounded
};

// The numbers of a query or of a vector that its scores depend on.
struct Factors {
  double scale, norm;
};

// A row that was converted.
struct RowValues {
  float scale = 1;
  float norm = 0;          // of float types
  int32_t exact_norm = 0;  // of 8 bits
  int32_t sum = 0;         // of the int8 elements
  int low = 0, high = 0;   // of the int8 elements and 0
  Factors factors() const;
  double magnitude() const;  // scale^2 * norm
};

// Checks that rows of a type become elements of `dtype`.
Status check_row_type(const char* op, const char* argument, const ConstTensor& rows, DType dtype);

// Converts row `row`. Writes a unit every `step` bytes: 4 bytes, which are an element of 32 bits;
// or 2 bytes, which are an element of 16 bits or two of 8. `to` may be null. Errors: kArgument.
Status convert_row(const RowSource& source, int64_t row, const RowForm& form, std::byte* to,
                   int64_t step, RowValues* values);

// A score before it is rounded to float32, by the definition in wgemm.h.
double score_of(Metric metric, double acc, const Factors& query, const Factors& vector);

}  // namespace wgemm
