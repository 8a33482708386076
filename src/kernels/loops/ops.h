// The arithmetic of a micro-kernel: the template parameter Ops of the loops in this folder. A loop
// makes one Ops per tile and asks it for
//   A, Acc                   the types of A's elements and of the accumulators
//   Vector                   v128_t, or the wider one of Wide: panels.h and axpy.h only
//   kLanes, kVectors         accumulators per vector, vectors per micro-panel of B (NR columns)
//   Half                     the same for half a micro-panel: half_panels.h only
//   kColumn                  bytes of one column of B per step of k
//   load_splat(const A*)     one element of A in all lanes
//   load(b, Vector[])        one step of k of a micro-panel, widened to Acc
//   load_along_k(b)          kLanes steps of k of one column, widened: column_major.h only
//   one(b)                   one element, widened: column_major.h only
//   multiply_add(acc, a, b)
#pragma once

#include <wasm_simd128.h>

#if WGEMM_AVX2
#include <immintrin.h>

#include <cstring>
#include <type_traits>
#endif

#include <cstddef>

#include "kernels/loops/unroll.h"

namespace wgemm {

// Loads of elements of B that have the type of the accumulators already.
template <typename T, size_t vectors>
struct Plain {
  using A = T;
  using Acc = T;
  using Vector = v128_t;
  static constexpr size_t kLanes = sizeof(v128_t) / sizeof(T), kVectors = vectors,
                          kColumn = sizeof(T);
  static v128_t load_splat(const T* a) {
    if constexpr (sizeof(T) == 4) {
      return wasm_v128_load32_splat(a);
    } else {
      return wasm_v128_load64_splat(a);
    }
  }
  static void load(const std::byte* b, v128_t (&to)[vectors]) {
    unroll(std::make_index_sequence<vectors>{},
           [&](auto v) { to[v] = wasm_v128_load(b + v * sizeof(v128_t)); });
  }
  static v128_t load_along_k(const std::byte* b) { return wasm_v128_load(b); }
  static T one(const std::byte* b) { return *reinterpret_cast<const T*>(b); }
};

// Multiply-add of floats with two roundings.
template <typename T>
struct Unfused {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    if constexpr (sizeof(T) == 4) {
      return wasm_f32x4_add(acc, wasm_f32x4_mul(a, b));
    } else {
      return wasm_f64x2_add(acc, wasm_f64x2_mul(a, b));
    }
  }
};
#if WGEMM_RELAXED
// One rounding if the processor has FMA, else two.
template <typename T>
struct Fused {
  static v128_t multiply_add(v128_t acc, v128_t a, v128_t b) {
    if constexpr (sizeof(T) == 4) {
      return wasm_f32x4_relaxed_madd(a, b, acc);
    } else {
      return wasm_f64x2_relaxed_madd(a, b, acc);
    }
  }
};
#endif

// Vectors of 32 bytes in native builds with WGEMM_AVX2, of 16 bytes in all others. Math: Unfused or
// Fused. Micro-panels are the same, and so are the bits of strict results.
#if WGEMM_AVX2
template <typename Math, typename T>
struct Wide {
  using A = T;
  using Acc = T;
  using Vector [[gnu::vector_size(32)]] = T;
  using Half = Wide;  // a whole micro-panel: half as many vectors already
  static constexpr size_t kLanes = sizeof(Vector) / sizeof(T), kVectors = 8 / kLanes,
                          kColumn = sizeof(T);
  static Vector load_splat(const T* a) {
    if constexpr (sizeof(T) == 4) {
      return _mm256_broadcast_ss(a);
    } else {
      return _mm256_broadcast_sd(a);
    }
  }
  static void load(const std::byte* b, Vector (&to)[kVectors]) {
    unroll(std::make_index_sequence<kVectors>{},
           [&](auto v) { std::memcpy(&to[v], b + v * sizeof(Vector), sizeof(Vector)); });
  }
  static Vector multiply_add(Vector acc, Vector a, Vector b) {
    if constexpr (std::is_same_v<Math, Unfused<T>>) {
      return acc + a * b;
    } else if constexpr (sizeof(T) == 4) {
      return _mm256_fmadd_ps(a, b, acc);
    } else {
      return _mm256_fmadd_pd(a, b, acc);
    }
  }
};
#endif

}  // namespace wgemm
