// Properties of data types, as templates and as functions of DType, generated from dtypes.def.
#pragma once

#include <type_traits>

#include "wgemm.h"

namespace wgemm {

template <DType>
struct TypeTraits;
#define WGEMM_DTYPE(Enumerator, name, StorageType, Compute, gemm_since) \
  template <>                                                           \
  struct TypeTraits<DType::k##Enumerator> {                             \
    using Storage = StorageType;                                        \
  };
#define WGEMM_DTYPE_8BIT(Enumerator, name, StorageType) \
  WGEMM_DTYPE(Enumerator, name, StorageType, Int8, 0)
#include "dtypes.def"
#undef WGEMM_DTYPE

template <DType type>
using StorageOf = typename TypeTraits<type>::Storage;

// The type that packing widens `type` to, and in which kernels multiply and accumulate. kInt8 for
// both 8-bit types.
constexpr DType compute_type(DType type) {
  constexpr DType kCompute[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) DType::k##Compute,
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) DType::kInt8,
#include "dtypes.def"
#undef WGEMM_DTYPE
  };
  return kCompute[static_cast<int>(type)];
}

// The type in which kernels of a compute type accumulate.
constexpr DType accumulator_type(DType compute) {
  return compute == DType::kInt8 ? DType::kInt32 : compute;
}

// Whether kernels read and write elements of `type` as they are, without conversion.
constexpr bool is_compute_form(DType type) {
  constexpr bool kSame[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  sizeof(Storage) == sizeof(StorageOf<DType::k##Compute>) &&        \
      std::is_integral_v<Storage> == std::is_integral_v<StorageOf<DType::k##Compute>>,
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) false,
#include "dtypes.def"
#undef WGEMM_DTYPE
  };
  return kSame[static_cast<int>(type)];
}

constexpr bool is_integer(DType type) {
  constexpr bool kInteger[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) std::is_integral_v<Storage>,
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) true,
#include "dtypes.def"
#undef WGEMM_DTYPE
  };
  return kInteger[static_cast<int>(type)];
}

// First version of ONNX Gemm that has the type; 0 if none has it.
constexpr int64_t gemm_since(DType type) {
  constexpr int64_t kSince[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) gemm_since,
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) 0,
#include "dtypes.def"
#undef WGEMM_DTYPE
  };
  return kSince[static_cast<int>(type)];
}

// Integers wrap. Kernels compute with unsigned types, since C++ defines their overflow.
template <typename T, bool = std::is_integral_v<T>>
struct Modular {
  using type = T;
};
template <typename T>
struct Modular<T, true> {
  using type = std::make_unsigned_t<T>;
};

}  // namespace wgemm
