// Loops over contiguous elements of one type, and the choice among them by the type of a step.
#pragma once

#include <wasm_simd128.h>

#include <cstring>
#include <type_traits>

#include "base/types.h"
#include "nn/operator.h"

namespace wgemm::nn {

// Functions of float32 on vectors.
template <v128_t (*kFunction)(v128_t)>
struct Unary {
  explicit Unary(const double*) {}
  v128_t operator()(v128_t x, v128_t) const { return kFunction(x); }
};
template <v128_t (*kFunction)(v128_t, v128_t)>
struct Binary {
  explicit Binary(const double*) {}
  v128_t operator()(v128_t a, v128_t b) const { return kFunction(a, b); }
};

// Computes whole vectors only. With two inputs, it computes 16 elements per iteration, because a
// group of vectors needs few instructions more than its loads and stores.
template <typename F, size_t kInputs>
void vector_loop(ptrdiff_t count, const void* const* inputs, void* output,
                 const double* attributes) {
  const F f(attributes);
  const auto *a = static_cast<const float*>(inputs[0]),
             *b = static_cast<const float*>(inputs[kInputs - 1]);
  auto* y = static_cast<float*>(output);
  if constexpr (kInputs == 2) {
    for (; count >= 16; count -= 16, a += 16, b += 16, y += 16) {
#pragma clang loop unroll(full)
      for (int i = 0; i < 16; i += 4)
        wasm_v128_store(y + i, f(wasm_v128_load(a + i), wasm_v128_load(b + i)));
    }
  }
  for (; count >= 4; count -= 4, a += 4, b += 4, y += 4)
    wasm_v128_store(y, f(wasm_v128_load(a), wasm_v128_load(b)));
}

// Calls a loop of vectors. Calls it once more for the elements after the last whole vector.
[[gnu::noinline]] inline void all_elements(Loop loop, size_t inputs, ptrdiff_t count,
                                           const void* const* from, void* to,
                                           const double* attributes) {
  loop(count, from, to, attributes);
  const ptrdiff_t rest = count % 4, whole = count - rest;
  if (rest == 0) return;
  float last[3][4] = {};
  const void* const last_inputs[] = {last[0], last[1]};
  const auto bytes = static_cast<size_t>(rest) * sizeof(float);
  for (size_t i = 0; i < inputs; ++i)
    std::memcpy(last[i], static_cast<const float*>(from[i]) + whole, bytes);
  loop(4, last_inputs, last[2], attributes);
  std::memcpy(static_cast<float*>(to) + whole, last[2], bytes);
}

template <typename F, size_t kInputs>
void f32_loop(ptrdiff_t count, const void* const* inputs, void* output, const double* attributes) {
  all_elements(vector_loop<F, kInputs>, kInputs, count, inputs, output, attributes);
}

// y[i] = F(a[i], b[i]).
template <typename T, auto kFunction>
void binary_loop(ptrdiff_t count, const void* const* inputs, void* output, const double*) {
  const auto *a = static_cast<const T*>(inputs[0]), *b = static_cast<const T*>(inputs[1]);
  auto* y = static_cast<T*>(output);
  for (ptrdiff_t i = 0; i < count; ++i) y[i] = kFunction(a[i], b[i]);
}

// y[i] = F(x[i], attributes).
template <typename T, auto kFunction>
void unary_loop(ptrdiff_t count, const void* const* inputs, void* output,
                const double* attributes) {
  const auto* x = static_cast<const T*>(inputs[0]);
  auto* y = static_cast<T*>(output);
  for (ptrdiff_t i = 0; i < count; ++i) y[i] = kFunction(x[i], attributes);
}

// The loop of each type in which an operator computes; null: it has no such type.
struct Loops {
  Loop f32 = nullptr, f64 = nullptr, i32 = nullptr, i64 = nullptr, u32 = i32, u64 = i64;
};

// Chooses by the type: 16-bit types are float32, and 8 bits are int32.
[[gnu::noinline]] inline bool choose_loop(const Loops& loops, Step* step) {
  const DType type = step->tensors[0].type;
  for (const Tensor& t : step->tensors)
    if (t.type != type) return false;
  switch (type) {
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
      step->row = run_elements<float>;
      step->loop = loops.f32;
      break;
    case DType::kFloat64:
      step->row = run_elements<double>;
      step->loop = loops.f64;
      break;
    case DType::kInt64:
    case DType::kUInt64:
      step->row = run_elements<int64_t>;
      step->loop = type == DType::kInt64 ? loops.i64 : loops.u64;
      break;
    default:
      step->row = run_elements<int32_t>;
      step->loop = type == DType::kUInt32 ? loops.u32 : loops.i32;
  }
  return step->loop != nullptr;
}

template <const Loops& kLoops>
bool choose(Step* step) {
  return choose_loop(kLoops, step);
}

// Integers wrap.
template <typename T>
using Bits = typename Modular<T>::type;
inline constexpr auto kAdd = []<typename T>(T a, T b) {
  return static_cast<T>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b));
};
inline constexpr auto kSub = []<typename T>(T a, T b) {
  return static_cast<T>(static_cast<Bits<T>>(a) - static_cast<Bits<T>>(b));
};
inline constexpr auto kMul = []<typename T>(T a, T b) {
  return static_cast<T>(static_cast<Bits<T>>(a) * static_cast<Bits<T>>(b));
};
inline constexpr auto kNeg = []<typename T>(T x, const double*) {
  if constexpr (std::is_integral_v<T>) {
    return kSub(T{0}, x);
  } else {
    return -x;
  }
};

// Not a lambda: Clang 14 gives the lambdas of all functions one symbol, and the linker keeps one.
template <double (*kFunction)(double)>
double without_attributes(double x, const double*) {
  return kFunction(x);
}
template <double (*kFunction)(double)>
inline constexpr Loop kF64 = unary_loop<double, without_attributes<kFunction>>;

template <v128_t (*kVectors)(v128_t), auto kFunction>
inline constexpr Loops kAllTypes = {f32_loop<Unary<kVectors>, 1>, unary_loop<double, kFunction>,
                                    unary_loop<int32_t, kFunction>, unary_loop<int64_t, kFunction>};
template <v128_t (*kVectors)(v128_t), double (*kFunction)(double)>
inline constexpr Loops kFunctionLoops = {f32_loop<Unary<kVectors>, 1>, kF64<kFunction>};

}  // namespace wgemm::nn
