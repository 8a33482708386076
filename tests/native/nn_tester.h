// Runs operators of src/nn/ on vectors.
#pragma once

#include <cstring>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "base/types.h"
#include "nn/operator.h"

namespace wgemm::nn {

// A tensor of a test: elements of a type as bytes, with strides along the axes of the step.
struct TestTensor {
  DType type;
  std::vector<std::byte> bytes;
  std::vector<int64_t> strides;
  int64_t start = 0;  // the place of the first element

  template <typename T>
  static TestTensor of(DType type, const std::vector<T>& elements, std::vector<int64_t> strides) {
    TestTensor result{type, std::vector<std::byte>(elements.size() * sizeof(T)),
                      std::move(strides)};
    if (!elements.empty()) std::memcpy(result.bytes.data(), elements.data(), result.bytes.size());
    return result;
  }
  template <typename T>
  std::vector<T> elements() const {
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
};

inline const Operator* find_operator(std::string_view name) {
  for (size_t i = 0; const Operator* op = operator_at(i); ++i)
    if (op->name == name) return op;
  return nullptr;
}

// The strides of a contiguous tensor.
inline std::vector<int64_t> contiguous(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Runs an operator with strict results. The last tensors are its outputs. Returns false if it has
// no such types, or if the step failed: then `status` has the error.
inline bool run_operator(std::string_view name, const std::vector<int64_t>& dims,
                         std::vector<TestTensor*> tensors,
                         const std::vector<double>& attributes = {}, int threads = 1,
                         Status* status = nullptr) {
  Context context(0, Determinism::kStrict);
  if (kHasThreads && !context.set_threads(threads).ok()) return false;
  std::vector<Tensor> views;
  std::vector<std::vector<int64_t>> strides;
  strides.reserve(tensors.size());
  std::byte none{};  // since a step may add to the address of a tensor without elements
  for (TestTensor* t : tensors) {
    strides.push_back(t->strides);
    std::byte* const data = t->bytes.empty() ? &none : t->bytes.data();
    views.push_back({data + t->start * static_cast<int64_t>(dtype_bytes(t->type)), t->type,
                     strides.back().data()});
  }
  std::vector<int64_t> sizes = dims;
  Step step;
  step.op = find_operator(name);
  step.tensors = views;
  step.attributes = attributes.data();
  step.rank = sizes.size();
  step.dims = sizes.data();
  if (step.op == nullptr || !step.op->choose(&step)) return false;
  join_axes(&step);
  const Status result = run(context, step);
  if (status != nullptr) *status = result;
  return result.ok();
}

}  // namespace wgemm::nn
