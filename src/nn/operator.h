// The operators around products: element by element, along rows, and copies.
//
// An operator is a row of a table. A step is an operator with its tensors. All tensors of a step
// lie along the same axes: a tensor that is broadcast has strides of 0, and a transpose, a slice or
// a part of a larger tensor has strides of its own. So one loop over axes serves every operator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wgemm.h"

namespace wgemm::nn {

inline constexpr size_t kMostTensors = 7;

struct Tensor {
  std::byte* data;         // the first element
  DType type;              // kUInt8 for bool, whose elements are 0 and 1
  const int64_t* strides;  // elements, one per axis; 0: broadcast
};

// A run of elements along the last axis. At each index: a tensor of the step.
struct Row {
  int64_t count;
  std::byte* at[kMostTensors];
  int64_t steps[kMostTensors];  // elements from one element to the next
};

// A loop over contiguous elements of one type, of operators that compute element by element.
// `count` has 32 bits in wasm: Emscripten's glue names each type of function that has numbers of 64
// bits, and all modules share one glue.
using Loop = void (*)(ptrdiff_t count, const void* const* inputs, void* output,
                      const double* attributes);

struct Operator;
struct Step;
using RowFunction = void (*)(const Step& step, const Row& row);

// An operator with its tensors. Whoever makes it owns everything that it points to.
struct Step {
  const Operator* op = nullptr;
  // Set by Operator::choose(). `loop` is for rows of run_elements().
  RowFunction row = nullptr;
  Loop loop = nullptr;
  std::span<Tensor> tensors;  // the inputs, then the outputs
  const double* attributes = nullptr;
  size_t rank = 0;
  int64_t* dims = nullptr;
};

struct Operator {
  const char* name;
  size_t inputs, outputs, attributes;
  bool whole_rows;  // the last axis is a row of the operator, which must not be cut
  int work;         // of an element, in additions of float32: few elements are one task
  // Sets the functions that compute tensors of the step's types. Returns false if there are none.
  bool (*choose)(Step* step);
  // Computes a step in another way than by its rows; may be null.
  Status (*run)(Context& context, const Step& step) = nullptr;
  bool keeps_axes = false;  // join_axes() leaves them, so that an error can name a place
};

// The operators of each family, in files of their own.
std::span<const Operator> elementwise_operators();
std::span<const Operator> activation_operators();
std::span<const Operator> comparison_operators();
std::span<const Operator> row_operators();
std::span<const Operator> move_operators();
std::span<const Operator> quantize_operators();
std::span<const Operator> reduce_operators();
std::span<const Operator> index_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> cache_operators();

// By number, in the order of the families; null if there are fewer.
const Operator* operator_at(size_t number);

// Removes axes of size 1 and joins axes that every tensor allows to be one. Keeps the last axis if
// it is a row. The rank is at least 1 afterwards if it was.
void join_axes(Step* step);

// Computes a step, on the threads of the context if it is large. Errors: the errors of
// Operator::run.
Status run(Context& context, const Step& step);

// Computes a step by its rows. For Operator::run. When step.row() has computed all rows, `second`
// computes them, if it is not null.
void run_rows(Context& context, const Step& step, RowFunction second = nullptr);

// The number of elements of a tensor. An axis along which it is broadcast counts once.
int64_t element_count(const Step& step, size_t tensor);
// Returns the address of element `number`, which is below element_count(). Writes its place on each
// axis to `place`.
std::byte* element_at(const Step& step, size_t tensor, int64_t number, int64_t* place);

// The row of operators that compute element by element in type T: float, double, int32_t or
// int64_t. Calls step.loop for runs of contiguous elements. Elements of other types, or with steps,
// go through buffers in L1.
template <typename T>
void run_elements(const Step& step, const Row& row);
extern template void run_elements<float>(const Step&, const Row&);
extern template void run_elements<double>(const Step&, const Row&);
extern template void run_elements<int32_t>(const Step&, const Row&);
extern template void run_elements<int64_t>(const Step&, const Row&);

// Reads `count` elements of `type`, `step` elements apart, as T. 16-bit types are widened.
template <typename T>
void load(DType type, const std::byte* from, int64_t step, int64_t count, T* to);
// Writes elements as `type`. Integers wrap. Floating point becomes an integer by truncation, within
// its bounds; NaN becomes 0.
template <typename T>
void store(DType type, const T* from, int64_t count, std::byte* to, int64_t step);
extern template void load<float>(DType, const std::byte*, int64_t, int64_t, float*);
extern template void load<double>(DType, const std::byte*, int64_t, int64_t, double*);
extern template void load<int32_t>(DType, const std::byte*, int64_t, int64_t, int32_t*);
extern template void load<int64_t>(DType, const std::byte*, int64_t, int64_t, int64_t*);
extern template void store<float>(DType, const float*, int64_t, std::byte*, int64_t);
extern template void store<double>(DType, const double*, int64_t, std::byte*, int64_t);
extern template void store<int32_t>(DType, const int32_t*, int64_t, std::byte*, int64_t);
extern template void store<int64_t>(DType, const int64_t*, int64_t, std::byte*, int64_t);

}  // namespace wgemm::nn
