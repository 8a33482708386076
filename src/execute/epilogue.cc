#include "execute/epilogue.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/convert.h"
#include "base/types.h"
#include "execute/requantize.h"

namespace wgemm {
namespace {

// If C or Y is not contiguous in the compute type, the epilogue goes through buffers of this many
// columns in L1.
constexpr int64_t kChunk = 256;

// out[j] = alpha * acc[j] + beta * c[j] in float64, truncated; acc or c may be null.
template <typename T>
[[gnu::noinline]] void combine_fractions(const Epilogue& e, const T* acc, const T* c, T* out,
                                         int64_t count) {
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t j = 0; j < count; ++j) {
    const double product = acc == nullptr ? 0 : e.alpha.value * static_cast<double>(acc[j]),
                 bias = c == nullptr ? 0 : e.beta.value * static_cast<double>(c[j]);
    out[j] = truncate<T>(product + bias);
  }
}

// out[j] = alpha * acc[j] + beta * c[j] for integers; acc or c may be null. Exact modulo 2^bits,
// unless a factor in use has a fraction. T is signed; if `is_unsigned`, its bits are bits
// of unsigned numbers.
template <typename T>
  requires std::is_integral_v<T>
[[gnu::noinline]] void combine_row(const Epilogue& e, bool is_unsigned, const T* acc, const T* c,
                                   T* out, int64_t count) {
  using U = typename Modular<T>::type;
  static_assert(sizeof(T) >= sizeof(int));
  const bool fraction = (acc != nullptr && !e.alpha.whole) || (c != nullptr && !e.beta.whole);
  if (fraction && is_unsigned) {
    return combine_fractions(e, reinterpret_cast<const U*>(acc), reinterpret_cast<const U*>(c),
                             reinterpret_cast<U*>(out), count);
  }
  if (fraction) return combine_fractions(e, acc, c, out, count);
  const auto alpha = static_cast<U>(e.alpha.integer), beta = static_cast<U>(e.beta.integer);
  if (acc == nullptr) {
    for (int64_t j = 0; j < count; ++j)
      out[j] = c == nullptr ? T{0} : static_cast<T>(beta * static_cast<U>(c[j]));
  } else if (c == nullptr) {
    for (int64_t j = 0; j < count; ++j) out[j] = static_cast<T>(alpha * static_cast<U>(acc[j]));
  } else {
    for (int64_t j = 0; j < count; ++j)
      out[j] = static_cast<T>(alpha * static_cast<U>(acc[j]) + beta * static_cast<U>(c[j]));
  }
}

// The same for floating point, unfused.
template <typename T>
  requires std::is_floating_point_v<T>
void combine_row(const Epilogue& e, bool, const T* acc, const T* c, T* out, int64_t count) {
  const auto alpha = static_cast<T>(e.alpha.value), beta = static_cast<T>(e.beta.value);
  if (acc == nullptr) {
    for (int64_t j = 0; j < count; ++j) out[j] = c == nullptr ? T{0} : beta * c[j];
  } else if (c == nullptr) {
    for (int64_t j = 0; j < count; ++j) out[j] = alpha * acc[j];
  } else {
    for (int64_t j = 0; j < count; ++j) out[j] = alpha * acc[j] + beta * c[j];
  }
}

template <typename T, typename Compute>
[[gnu::noinline]] void gather_c(const std::byte* c, int64_t stride, int64_t count, void* out) {
  const auto* from = reinterpret_cast<const T*>(c);
  auto* to = static_cast<Compute*>(out);
  T chunk[kIsHalf<T> ? kMostGathered : 1];
  if constexpr (kIsHalf<T>) {
    if (stride != 1) {
      gather_c<uint16_t, uint16_t>(c, stride, count, chunk);
      from = chunk;
      stride = 1;
    }
  }
  if (stride == 0) {
    std::fill_n(to, count, convert<Compute>(*from));
  } else if (stride == 1) {
    Converter<T, Compute>()(from, to, count);
  } else if constexpr (!kIsHalf<T>) {
    for (int64_t j = 0; j < count; ++j) to[j] = from[j * stride];
  }
}

using GatherFunction = void (*)(const std::byte*, int64_t, int64_t, void*);
// Elements that are not converted are moved as integers of their size.
template <typename T>
constexpr GatherFunction kGather =
    sizeof(T) == 8 ? gather_c<uint64_t, uint64_t> : gather_c<uint32_t, uint32_t>;
template <>
constexpr GatherFunction kGather<Float16> = gather_c<Float16, float>;
template <>
constexpr GatherFunction kGather<BFloat16> = gather_c<BFloat16, float>;
constexpr GatherFunction kGatherC[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) kGather<Storage>,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

// Applies the bounds, and makes every NaN the canonical one: IEEE 754 lets the processor choose
// which NaN an operation returns.
template <typename T>
void finish_row(const Activation& bounds, [[maybe_unused]] bool is_unsigned, T* y, int64_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    const T low = static_cast<T>(bounds.min), high = static_cast<T>(bounds.max);
    for (int64_t j = 0; j < count; ++j) {
      const T above = y[j] < low ? low : y[j], inside = high < above ? high : above;
      y[j] = inside == inside ? inside : std::numeric_limits<T>::quiet_NaN();
    }
  } else if (is_unsigned) {
    using U = typename Modular<T>::type;
    finish_row(bounds, false, reinterpret_cast<U*>(y), count);
  } else {
    const T low = truncate<T>(bounds.min), high = truncate<T>(bounds.max);
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t j = 0; j < count; ++j) y[j] = std::clamp(y[j], low, high);
  }
}

// Rounds `count` float32 to 16 bits.
template <typename Half>
[[gnu::noinline]] void narrow_row(const float* from, void* to, int64_t count) {
  Converter<float, Half>()(from, static_cast<Half*>(to), count);
}

// Copies `count` elements to every `stride`-th element of `to`.
template <typename T>
void scatter(const T* from, std::byte* to, int64_t stride, int64_t count) {
  auto* element = reinterpret_cast<T*>(to);
  for (int64_t j = 0; j < count; ++j, element += stride) *element = from[j];
}

// Compute: the compute type; unsigned types have the bits of signed ones. If `is_plain`, C and Y
// have that type, and Y has no bounds.
template <typename Compute, bool is_plain = false>
void combine(const Problem& problem, bool canonical_nan, int64_t rows, int64_t cols,
             const Accumulators& acc, const ConstBlock& c, const Block& y) {
  const Epilogue& e = problem.epilogue;
  if (!e.has_c && y.col_stride == 1 && y.row_stride == cols && acc.stride == cols) {
    cols *= rows;  // all is contiguous
    rows = 1;
  }
  const DType c_type = e.c.dtype,  // the type of Y; or of 16 bits, if Y is float32
      y_type = problem.y.dtype;
  void (*narrow)(const float*, void*, int64_t) = nullptr;
  if (!is_plain && y_type == DType::kFloat16) narrow = narrow_row<Float16>;
  if (!is_plain && y_type == DType::kBFloat16) narrow = narrow_row<BFloat16>;
  Compute c_chunk[kChunk], y_chunk[kChunk];
  uint16_t half_chunk[kChunk];
  const auto c_bytes = static_cast<int64_t>(is_plain ? sizeof(Compute) : dtype_bytes(c_type)),
             y_bytes = static_cast<int64_t>(is_plain ? sizeof(Compute) : dtype_bytes(y_type));
  const bool y_unbuffered = narrow == nullptr && y.col_stride == 1,
             c_unbuffered =
                 narrow == nullptr && (is_plain || c_type == y_type) && c.col_stride == 1;
  const int64_t step = y_unbuffered && (c_unbuffered || !e.has_c) ? cols : kChunk;
  const bool finishes = !is_plain && (canonical_nan || e.has_bounds()),
             is_unsigned = y_type == DType::kUInt32 || y_type == DType::kUInt64;
  for (int64_t i = 0; i < rows; ++i) {
    const std::byte* c_row = c.data + i * c.row_stride * c_bytes;
    for (int64_t j0 = 0; j0 < cols; j0 += step) {
      const int64_t count = std::min(step, cols - j0);
      const Compute* c_values = nullptr;
      if (e.has_c) {
        const std::byte* from = c_row + j0 * c.col_stride * c_bytes;
        if (!c_unbuffered) {
          const GatherFunction gather =
              is_plain ? kGather<Compute> : kGatherC[static_cast<int>(c_type)];
          gather(from, c.col_stride, count, c_chunk);
        }
        c_values = c_unbuffered ? reinterpret_cast<const Compute*>(from) : c_chunk;
      }
      std::byte* to = y.data + (i * y.row_stride + j0 * y.col_stride) * y_bytes;
      Compute* y_values = y_unbuffered ? reinterpret_cast<Compute*>(to) : y_chunk;
      const Compute* acc_values = acc.data == nullptr
                                      ? nullptr
                                      : static_cast<const Compute*>(acc.data) + i * acc.stride + j0;
      const void* result = acc_values;  // what is rounded to 16 bits or scattered
      if (y_unbuffered || e.alpha.value != 1 || e.has_c || finishes || acc_values == nullptr) {
        combine_row(e, is_unsigned, acc_values, c_values, y_values, count);
        if (finishes) finish_row(e.bounds, is_unsigned, y_values, count);
        result = y_values;
      }
      if (narrow != nullptr) {
        void* const halves = y.col_stride == 1 ? static_cast<void*>(to) : half_chunk;
        narrow(static_cast<const float*>(result), halves, count);
        if (y.col_stride != 1) scatter(half_chunk, to, y.col_stride, count);
      } else if (!y_unbuffered) {
        scatter(static_cast<const Compute*>(result), to, y.col_stride, count);
      }
    }
  }
}

using EpilogueFunction = void (*)(const Problem&, bool, int64_t, int64_t, const Accumulators&,
                                  const ConstBlock&, const Block&);
constexpr EpilogueFunction kEpilogues[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  combine<StorageOf<DType::k##Compute>>,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

}  // namespace

template <typename T>
void finish_plain(const Problem& problem, int64_t rows, int64_t cols, const Accumulators& acc,
                  const ConstBlock& c, const Block& y) {
  combine<T, true>(problem, false, rows, cols, acc, c, y);
}
template void finish_plain<float>(const Problem&, int64_t, int64_t, const Accumulators&,
                                  const ConstBlock&, const Block&);
template void finish_plain<double>(const Problem&, int64_t, int64_t, const Accumulators&,
                                   const ConstBlock&, const Block&);

void narrow_to_float16(const float* from, void* to, int64_t count) {
  narrow_row<Float16>(from, to, count);
}

void gather_c(DType type, const std::byte* c, int64_t stride, int64_t count, void* out) {
  kGatherC[static_cast<int>(type)](c, stride, count, out);
}

void apply_epilogue(const Problem& problem, bool canonical_nan, int64_t rows, int64_t cols,
                    const Accumulators& acc, const ConstBlock& c, const Block& y) {
  const bool quantized = problem.compute == DType::kInt8;
  const EpilogueFunction epilogue =
      quantized ? requantize : kEpilogues[static_cast<int>(problem.y.dtype)];
  epilogue(problem, canonical_nan, rows, cols, acc, c, y);
}

}  // namespace wgemm
