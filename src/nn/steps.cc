#include "nn/steps.h"

#include <new>
#include <utility>

#include "base/types.h"
#include "base/words.h"
#include "nn/operator.h"

namespace wgemm::nn {
namespace {

constexpr double kMostBytes = 1LL << 53;

constexpr size_t round_up(size_t bytes) { return (bytes + 7) / 8 * 8; }

// Memory of a step: the step, the sizes and strides, the tensors.
constexpr size_t kSizesAt = round_up(sizeof(Step));

double memory_bytes() {
#if defined(__EMSCRIPTEN__)
  return static_cast<double>(__builtin_wasm_memory_size(0)) * 65536;
#else
  return static_cast<double>(UINTPTR_MAX);
#endif
}

// Whether all elements of a tensor are in memory.
bool is_inside(const Step& step, double address, DType type, const int64_t* strides) {
  double low = 0, high = 0;
  for (size_t axis = 0; axis < step.rank; ++axis) {
    const auto last = static_cast<double>(step.dims[axis] - 1);
    if (last < 0) return true;
    const double reach = last * static_cast<double>(strides[axis]);
    (reach < 0 ? low : high) += reach;
  }
  const auto bytes = static_cast<double>(dtype_bytes(type));
  return address + low * bytes > 0 && address + (high + 1) * bytes <= memory_bytes();
}

size_t tensors_of(const Operator& op) { return op.inputs + op.outputs; }

size_t sizes_of(const Operator& op, size_t rank) { return (1 + tensors_of(op)) * rank; }

}  // namespace

size_t step_bytes(int number, std::span<const double> words) {
  const Operator* const op = operator_at(static_cast<size_t>(number));
  WordReader body(words);
  const auto rank = static_cast<size_t>(body.integer(1, kMaxRank));
  if (op == nullptr || !body.ok()) return 0;
  return kSizesAt + sizes_of(*op, rank) * sizeof(int64_t) +
         round_up(tensors_of(*op) * sizeof(Tensor));
}

bool read_step(int number, std::span<const double> words, void* memory) {
  WordReader body(words);
  auto* const step = new (memory) Step;
  step->op = operator_at(static_cast<size_t>(number));
  step->rank = static_cast<size_t>(body.integer(1, kMaxRank));
  auto* sizes = reinterpret_cast<int64_t*>(static_cast<std::byte*>(memory) + kSizesAt);
  const auto take_sizes = [&] { return std::exchange(sizes, sizes + step->rank); };
  step->tensors = {reinterpret_cast<Tensor*>(sizes + sizes_of(*step->op, step->rank)),
                   tensors_of(*step->op)};
  step->dims = take_sizes();
  for (size_t axis = 0; axis < step->rank; ++axis) step->dims[axis] = body.integer(0, kMostBytes);
  for (Tensor& tensor : step->tensors) {
    const auto type = static_cast<DType>(body.integer(0, kDTypeCount - 1));
    const auto address = static_cast<uintptr_t>(body.integer(0, kMostBytes));
    int64_t* const strides = take_sizes();
    for (size_t axis = 0; axis < step->rank; ++axis)
      strides[axis] = body.integer(-kMostBytes, kMostBytes);
    new (&tensor) Tensor{reinterpret_cast<std::byte*>(address), type, strides};
    body.check(is_inside(*step, static_cast<double>(address), type, strides) &&
               address % dtype_bytes(type) == 0);
  }
  step->attributes = body.take(step->op->attributes).data();
  if (!body.ok() || !body.empty() || !step->op->choose(step)) return false;
  join_axes(step);
  return true;
}

Status run_step(Context& context, const void* memory) {
  return run(context, *static_cast<const Step*>(memory));
}

}  // namespace wgemm::nn
