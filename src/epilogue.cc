#include "epilogue.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "convert.h"
#include "types.h"

namespace wgemm {
namespace {

// Columns that are worked on at a time, where C or Y is not simply a row of the compute type: brought into a buffer in L1 and back.
constexpr int64_t kChunk = 256;

// Toward zero, saturated to T. Where T's last value is no float64, the comparison is with the one above it.
template <typename T>
T truncate(double value) {
  constexpr double kBound = 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
  if (value >= kBound) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

// out[j] = alpha * acc[j] + beta * c[j] for integers; acc or c may be null. Exact modulo 2^bits, unless a factor that counts has a
// fraction. Accumulators may be wider than T, and of the other sign.
template <typename T, typename Acc>
  requires std::is_integral_v<T>
[[gnu::noinline]] void combine_row(const Epilogue& e, const Acc* acc, const T* c, T* out, int64_t count) {
  using U = typename Modular<Acc>::type;
  static_assert(sizeof(Acc) >= sizeof(T) && sizeof(Acc) >= sizeof(int));
  const bool fraction = (acc != nullptr && !e.alpha.whole) || (c != nullptr && !e.beta.whole);
  if (fraction) {
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t j = 0; j < count; ++j) {
      const double product = acc == nullptr ? 0 : e.alpha.value * static_cast<double>(static_cast<T>(acc[j]));
      const double bias = c == nullptr ? 0 : e.beta.value * static_cast<double>(c[j]);
      out[j] = truncate<T>(product + bias);
    }
    return;
  }
  const auto alpha = static_cast<U>(e.alpha.integer), beta = static_cast<U>(e.beta.integer);
  if (acc == nullptr) {
    for (int64_t j = 0; j < count; ++j) out[j] = c == nullptr ? T{0} : static_cast<T>(beta * static_cast<U>(c[j]));
  } else if (c == nullptr) {
    for (int64_t j = 0; j < count; ++j) out[j] = static_cast<T>(alpha * static_cast<U>(acc[j]));
  } else {
    for (int64_t j = 0; j < count; ++j) out[j] = static_cast<T>(alpha * static_cast<U>(acc[j]) + beta * static_cast<U>(c[j]));
  }
}

// The same for floating point, every step rounded on its own.
template <typename T, typename Acc>
  requires std::is_floating_point_v<T> && std::is_same_v<T, Acc>
void combine_row(const Epilogue& e, const Acc* acc, const T* c, T* out, int64_t count) {
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
void combine(const Epilogue& e, int64_t rows, int64_t cols, const void* acc, int64_t acc_stride, const ConstBlock& c, const Block& y) {
  // Integers are combined in their own type, floating point in the accumulators'.
  using Work = std::conditional_t<std::is_integral_v<T>, T, Compute>;
  constexpr bool kSame = std::is_same_v<T, Work>;
  Work c_chunk[kChunk], y_chunk[kChunk];
  const Converter<T, Work> widen_run;
  const Converter<Work, T> narrow_run;
  const bool y_in_place = kSame && y.col_stride == 1, c_in_place = kSame && c.col_stride == 1;
  const int64_t step = y_in_place && (c_in_place || !e.has_c) ? cols : kChunk;
  for (int64_t i = 0; i < rows; ++i) {
    T* y_row = reinterpret_cast<T*>(y.data) + i * y.row_stride;
    const T* c_row = reinterpret_cast<const T*>(c.data) + i * c.row_stride;
    const Compute* acc_row = static_cast<const Compute*>(acc) + i * acc_stride;
    for (int64_t j0 = 0; j0 < cols; j0 += step) {
      const int64_t count = std::min(step, cols - j0);
      const Work* c_part = e.has_c ? c_chunk : nullptr;
      if (e.has_c) {
        const T* from = c_row + j0 * c.col_stride;
        if (c_in_place) {
          c_part = reinterpret_cast<const Work*>(from);
        } else if (c.col_stride == 0) {
          std::fill_n(c_chunk, count, convert<Work>(*from));
        } else if (c.col_stride == 1) {
          widen_run(from, c_chunk, count);
        } else {
          for (int64_t j = 0; j < count; ++j) c_chunk[j] = convert<Work>(from[j * c.col_stride]);
        }
      }
      T* to = y_row + j0 * y.col_stride;
      Work* y_part = y_in_place ? reinterpret_cast<Work*>(to) : y_chunk;
      combine_row<Work, Compute>(e, acc == nullptr ? nullptr : acc_row + j0, c_part, y_part, count);
      if (y_in_place) continue;
      if (y.col_stride == 1) {
        narrow_run(y_chunk, to, count);
      } else {
        for (int64_t j = 0; j < count; ++j) to[j * y.col_stride] = convert<T>(y_chunk[j]);
      }
    }
  }
}

using EpilogueFunction = void (*)(const Epilogue&, int64_t, int64_t, const void*, int64_t, const ConstBlock&, const Block&);
constexpr EpilogueFunction kEpilogues[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) combine<Storage, StorageOf<DType::k##Compute>>,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

}  // namespace

void apply_epilogue(const Epilogue& e, DType y_type, int64_t rows, int64_t cols, const void* acc, int64_t acc_stride, const ConstBlock& c,
                    const Block& y) {
  kEpilogues[static_cast<int>(y_type)](e, rows, cols, acc, acc_stride, c, y);
}

}  // namespace wgemm
