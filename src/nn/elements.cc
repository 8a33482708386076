// Elements of any type and stride, as contiguous elements of the type in which a loop computes.
#include <algorithm>
#include <type_traits>

#include "base/convert.h"
#include "base/types.h"
#include "nn/chunks.h"
#include "nn/operator.h"

namespace wgemm::nn {
namespace {

// Elements of a buffer. All buffers of a row fit L1.
constexpr int64_t kBuffer = 256;

// Whether T holds every value of an element of type E, or the bits of an integer.
template <typename T, typename E>
constexpr bool takes() {
  if (std::is_same_v<T, double>) return true;
  if (kIsHalf<E> || std::is_floating_point_v<E>) return std::is_same_v<T, float> && sizeof(E) <= 4;
  return std::is_integral_v<T> && sizeof(E) <= sizeof(T);
}

template <typename T, typename E>
void load_as(const std::byte* from, int64_t step, int64_t count, T* to) {
  const auto* x = reinterpret_cast<const E*>(from);
  if constexpr (kIsHalf<E> && std::is_same_v<T, float>) {
    if (step == 1) return Converter<E, float>()(x, to, count);
  }
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t i = 0; i < count; ++i) to[i] = convert<T>(x[i * step]);
}

template <typename E, typename T>
E element(T value) {
  if constexpr (kIsHalf<E>) {
    return narrow_to(static_cast<float>(value), E{});
  } else if constexpr (std::is_integral_v<E> && std::is_floating_point_v<T>) {
    return value == value ? truncate<E>(static_cast<double>(value)) : E{0};
  } else {
    return static_cast<E>(value);
  }
}

template <typename T, typename E>
void store_as(const T* from, int64_t count, std::byte* to, int64_t step) {
  auto* y = reinterpret_cast<E*>(to);
  if constexpr (kIsHalf<E> && std::is_same_v<T, float>) {
    if (step == 1) return Converter<float, E>()(from, y, count);
  }
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t i = 0; i < count; ++i) y[i * step] = element<E>(from[i]);
}

}  // namespace

template <typename T>
void load(DType type, const std::byte* from, int64_t step, int64_t count, T* to) {
  switch (type) {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since)                       \
  case DType::k##Enumerator:                                                              \
    if constexpr (takes<T, Storage>()) return load_as<T, Storage>(from, step, count, to); \
    return;
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) WGEMM_DTYPE(Enumerator, name, Storage, , )
#include "dtypes.def"
#undef WGEMM_DTYPE
  }
}

template <typename T>
void store(DType type, const T* from, int64_t count, std::byte* to, int64_t step) {
  switch (type) {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since)                        \
  case DType::k##Enumerator:                                                               \
    if constexpr (takes<T, Storage>()) return store_as<T, Storage>(from, count, to, step); \
    return;
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) WGEMM_DTYPE(Enumerator, name, Storage, , )
#include "dtypes.def"
#undef WGEMM_DTYPE
  }
}

template <typename T>
void run_elements(const Step& step, const Row& row) {
  const size_t inputs = step.tensors.size() - 1;
  alignas(16) T buffers[kMostTensors][kBuffer];
  const void* from[kMostTensors];
  bool direct[kMostTensors];
  bool all_direct = true;
  for (size_t i = 0; i <= inputs; ++i) {
    const Tensor& tensor = step.tensors[i];
    direct[i] = is_direct<T>(step, row, i);
    // An element for all is read once.
    if (row.steps[i] == 0 && i != inputs) {
      load(tensor.type, row.at[i], 0, std::min(kBuffer, row.count), buffers[i]);
    }
    all_direct = all_direct && direct[i];
  }
  const int64_t most = all_direct ? row.count : kBuffer;
  for (int64_t at = 0; at < row.count; at += most) {
    const int64_t count = std::min(most, row.count - at);
    std::byte* places[kMostTensors];
    for (size_t i = 0; i <= inputs; ++i) {
      places[i] = place(step, row, i, at);
      from[i] = direct[i] ? static_cast<const void*>(places[i]) : buffers[i];
      if (!direct[i] && i != inputs && row.steps[i] != 0)
        load(step.tensors[i].type, places[i], row.steps[i], count, buffers[i]);
    }
    void* const to = direct[inputs] ? places[inputs] : static_cast<void*>(buffers[inputs]);
    step.loop(static_cast<ptrdiff_t>(count), from, to, step.attributes);
    if (!direct[inputs])
      store(step.tensors[inputs].type, buffers[inputs], count, places[inputs], row.steps[inputs]);
  }
}

#define WGEMM_NN_TYPE(T)                                                 \
  template void load<T>(DType, const std::byte*, int64_t, int64_t, T*);  \
  template void store<T>(DType, const T*, int64_t, std::byte*, int64_t); \
  template void run_elements<T>(const Step&, const Row&);
WGEMM_NN_TYPE(float)
WGEMM_NN_TYPE(double)
WGEMM_NN_TYPE(int32_t)
WGEMM_NN_TYPE(int64_t)
#undef WGEMM_NN_TYPE

}  // namespace wgemm::nn
