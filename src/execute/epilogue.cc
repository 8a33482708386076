#include "execute/epilogue.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/convert.h"
#include "base/types.h"

namespace wgemm {
namespace {

// If C or Y is not contiguous in the compute type, the epilogue goes through buffers of this many
// columns in L1.
constexpr int64_t kChunk = 256;

// Truncates, and saturates to T. The bound is the largest T plus 1, which is exact in float64 for
// every T.
template <typename T>
T truncate(double value) {
  constexpr double kBound = 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
  if (value >= kBound) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

// out[j] = alpha * acc[j] + beta * c[j] for integers; acc or c may be null. Exact modulo 2^bits,
// unless a factor in use has a fraction. Accumulators may be wider than T, and their sign may
// differ.
template <typename T, typename Acc>
  requires std::is_integral_v<T>
[[gnu::noinline]] void combine_row(const Epilogue& e, const Acc* acc, const T* c, T* out,
                                   int64_t count) {
  using U = typename Modular<Acc>::type;
  static_assert(sizeof(Acc) >= sizeof(T) && sizeof(Acc) >= sizeof(int));
  const bool fraction = (acc != nullptr && !e.alpha.whole) || (c != nullptr && !e.beta.whole);
  if (fraction) {
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t j = 0; j < count; ++j) {
      const double product =
          acc == nullptr ? 0 : e.alpha.value * static_cast<double>(static_cast<T>(acc[j]));
      const double bias = c == nullptr ? 0 : e.beta.value * static_cast<double>(c[j]);
      out[j] = truncate<T>(product + bias);
    }
    return;
  }
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

// Copies `count` elements of a row of C to `out`. Integers keep their type; floating point becomes
// float32 or float64.
template <typename T, typename Work>
[[gnu::noinline]] void gather_c(const std::byte* c, int64_t stride, int64_t count, void* out) {
  const auto* from = reinterpret_cast<const T*>(c);
  auto* to = static_cast<Work*>(out);
  T chunk[kIsHalf<T> ? kChunk : 1];
  if constexpr (kIsHalf<T>) {
    if (stride != 1) {
      gather_c<uint16_t, uint16_t>(c, stride, count, chunk);
      from = chunk;
      stride = 1;
    }
  }
  if (stride == 0) {
    std::fill_n(to, count, convert<Work>(*from));
  } else if (stride == 1) {
    Converter<T, Work>()(from, to, count);
  } else if constexpr (!kIsHalf<T>) {
    for (int64_t j = 0; j < count; ++j) to[j] = from[j * stride];
  }
}

using GatherFunction = void (*)(const std::byte*, int64_t, int64_t, void*);
constexpr GatherFunction kGatherC[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since)          \
  gather_c<Storage, std::conditional_t<std::is_integral_v<Storage>, Storage, \
                                       StorageOf<DType::k##Compute>>>,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

// Applies the bounds, and makes every NaN the canonical one: IEEE 754 lets the processor choose
// which NaN an operation returns.
template <typename T>
void finish_row(const Activation& bounds, T* y, int64_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    const T low = static_cast<T>(bounds.min), high = static_cast<T>(bounds.max);
    for (int64_t j = 0; j < count; ++j) {
      const T above = y[j] < low ? low : y[j], inside = high < above ? high : above;
      y[j] = inside == inside ? inside : std::numeric_limits<T>::quiet_NaN();
    }
  } else {
    const T low = truncate<T>(bounds.min), high = truncate<T>(bounds.max);
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t j = 0; j < count; ++j) y[j] = std::clamp(y[j], low, high);
  }
}

// Rounds `count` float32 to Half.
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

// Work: the type of Y, or float32 if Y has 16 bits.
template <typename Work, typename Compute>
void combine(const Problem& problem, bool canonical_nan, int64_t rows, int64_t cols,
             const Accumulators& acc, const ConstBlock& c, const Block& y) {
  const Epilogue& e = problem.epilogue;
  if (!e.has_c && y.col_stride == 1 && y.row_stride == cols && acc.stride == cols) {
    cols *= rows;  // all is contiguous: one row
    rows = 1;
  }
  const DType c_type = e.c.dtype,  // the type of Y; or of 16 bits, if Y is float32
      y_type = problem.y.dtype;
  void (*narrow)(const float*, void*, int64_t) = nullptr;
  if (y_type == DType::kFloat16) narrow = narrow_row<Float16>;
  if (y_type == DType::kBFloat16) narrow = narrow_row<BFloat16>;
  Work c_chunk[kChunk], y_chunk[kChunk];
  uint16_t half_chunk[kChunk];
  const auto c_bytes = static_cast<int64_t>(dtype_bytes(c_type)),
             y_bytes = static_cast<int64_t>(dtype_bytes(y_type));
  const bool y_unbuffered = narrow == nullptr && y.col_stride == 1,
             c_unbuffered = narrow == nullptr && c_type == y_type && c.col_stride == 1;
  const int64_t step = y_unbuffered && (c_unbuffered || !e.has_c) ? cols : kChunk;
  const bool finishes = canonical_nan || e.has_bounds();
  for (int64_t i = 0; i < rows; ++i) {
    const std::byte* c_row = c.data + i * c.row_stride * c_bytes;
    for (int64_t j0 = 0; j0 < cols; j0 += step) {
      const int64_t count = std::min(step, cols - j0);
      const Work* c_values = nullptr;
      if (e.has_c) {
        const std::byte* from = c_row + j0 * c.col_stride * c_bytes;
        if (!c_unbuffered) kGatherC[static_cast<int>(c_type)](from, c.col_stride, count, c_chunk);
        c_values = c_unbuffered ? reinterpret_cast<const Work*>(from) : c_chunk;
      }
      std::byte* to = y.data + (i * y.row_stride + j0 * y.col_stride) * y_bytes;
      Work* y_values = y_unbuffered ? reinterpret_cast<Work*>(to) : y_chunk;
      const Compute* acc_values = acc.data == nullptr
                                      ? nullptr
                                      : static_cast<const Compute*>(acc.data) + i * acc.stride + j0;
      const void* result = acc_values;  // what is rounded to 16 bits or scattered
      if (sizeof(Work) != sizeof(Compute) || y_unbuffered || e.alpha.value != 1 || e.has_c ||
          finishes || acc_values == nullptr) {
        combine_row<Work, Compute>(e, acc_values, c_values, y_values, count);
        if (finishes) finish_row(e.bounds, y_values, count);
        result = y_values;
      }
      if (narrow != nullptr) {
        void* const halves = y.col_stride == 1 ? static_cast<void*>(to) : half_chunk;
        narrow(static_cast<const float*>(result), halves, count);
        if (y.col_stride != 1) scatter(half_chunk, to, y.col_stride, count);
      } else if (!y_unbuffered) {
        scatter(static_cast<const Work*>(result), to, y.col_stride, count);
      }
    }
  }
}

// Columns per step of requantization: four vectors of accumulators, one vector of 8-bit results.
constexpr int64_t kGroup = 16;

// Converts float32 to the type of Y: float32, int8 or uint8. For uint8 it computes int8 with a zero
// point that is 128 less, and flips the highest bit.
struct Output {
  int64_t bytes;  // of an element of Y
  // The bounds. If Y is quantized, they are within the range of int8, less the zero point.
  v128_t low, high;
  // Adding both leaves an integer in the low bits: the value rounded half to even, plus the zero
  // point.
  v128_t shifter, unshift;
  v128_t flip;

  explicit Output(const Problem& problem) {
    // The last bit of a float32 of this size is worth 1, so that the addition rounds.
    constexpr float kShifter = 0x1.8p23F;
    const Quantization& q = problem.quantization;
    const int offset = q.quantizes_y ? int8_offset(problem.y.dtype) : 0,
              zero_point = q.y_zero_point - offset;
    const auto least = static_cast<float>(-128 - zero_point), most = least + 255;
    const auto splat = [&](double bound) {
      const auto value = static_cast<float>(bound);
      return wasm_f32x4_splat(q.quantizes_y ? std::clamp(value, least, most) : value);
    };
    bytes = static_cast<int64_t>(dtype_bytes(problem.y.dtype));
    low = splat(problem.epilogue.bounds.min);
    high = splat(problem.epilogue.bounds.max);
    shifter = wasm_f32x4_splat(kShifter);
    unshift = wasm_i32x4_splat(zero_point - std::bit_cast<int32_t>(kShifter));
    flip = wasm_i8x16_splat(static_cast<int8_t>(offset));
  }
  v128_t round(v128_t x) const { return wasm_i32x4_add(wasm_f32x4_add(x, shifter), unshift); }

  // Stores a group of columns.
  void store(v128_t (&x)[4], std::byte* y) const {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) x[v] = wasm_f32x4_pmin(wasm_f32x4_pmax(x[v], low), high);
    if (bytes != 1) {
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v) wasm_v128_store(y + 16 * v, x[v]);
      return;
    }
    const v128_t front = wasm_i16x8_narrow_i32x4(round(x[0]), round(x[1])),
                 back = wasm_i16x8_narrow_i32x4(round(x[2]), round(x[3]));
    wasm_v128_store(y, wasm_v128_xor(wasm_i8x16_narrow_i16x8(front, back), flip));
  }
};

// What the epilogue adds to the accumulators, for each row.
struct RowTerms {
  const int32_t* c;  // null: absent
  v128_t sum;        // of the row of A, less its zero point; in each lane
  // If several rows are requantized together: the sum that belongs to each accumulator. Null: it is
  // `sum`.
  const int32_t* sums = nullptr;
};

// Requantizes kGroup columns from `j` on.
void requantize_group(const int32_t* acc, const RowTerms& row, const QuantizedColumns& columns,
                      int64_t j, const Output& out, std::byte* y) {
  v128_t x[4];
#pragma clang loop unroll(full)
  for (int v = 0; v < 4; ++v) x[v] = wasm_v128_load(acc + j + 4 * v);
  if (columns.b_zero_point != nullptr) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) {
      const v128_t sum = row.sums == nullptr ? row.sum : wasm_v128_load(row.sums + j + 4 * v);
      x[v] = wasm_i32x4_sub(x[v],
                            wasm_i32x4_mul(sum, wasm_v128_load(columns.b_zero_point + j + 4 * v)));
    }
  }
  if (columns.a_correction != nullptr) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v)
      x[v] = wasm_i32x4_sub(x[v], wasm_v128_load(columns.a_correction + j + 4 * v));
  }
  if (row.c != nullptr) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) x[v] = wasm_i32x4_add(x[v], wasm_v128_load(row.c + j + 4 * v));
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < 4; ++v) {
    x[v] =
        wasm_f32x4_mul(wasm_f32x4_convert_i32x4(x[v]), wasm_v128_load(columns.scale + j + 4 * v));
  }
  out.store(x, y);
}

// The columns from `j` on. Absent values stay null.
template <typename T>
T* from(T* values, int64_t j) {
  return values == nullptr ? nullptr : values + j;
}
QuantizedColumns columns_from(const QuantizedColumns& columns, int64_t j) {
  return {columns.scale + j, from(columns.b_zero_point, j), from(columns.a_correction, j)};
}

// Copies the bytes of values that are there, and clears the rest of a group.
template <typename T>
T* copy_rest(const T* values, size_t bytes, T (&to)[kGroup]) {
  if (values == nullptr) return nullptr;
  std::memset(to, 0, sizeof(to));
  std::memcpy(to, values, bytes);
  return to;
}

// Requantizes `cols` columns, which are contiguous in acc, c and y. y may be acc.
void requantize_row(const int32_t* acc, RowTerms row, QuantizedColumns columns, const Output& out,
                    int64_t cols, std::byte* y) {
  // Fewer columns than a group are computed in copies.
  int32_t acc_rest[kGroup], c_rest[kGroup], sums_rest[kGroup], zero_rest[kGroup],
      correction_rest[kGroup];
  float scale_rest[kGroup], y_rest[kGroup];
  const int64_t last = std::max<int64_t>(cols - kGroup, 0);
  if (cols < kGroup) {
    const auto bytes = static_cast<size_t>(cols) * sizeof(int32_t);
    acc = copy_rest(acc, bytes, acc_rest);
    row.c = copy_rest(row.c, bytes, c_rest);
    row.sums = copy_rest(row.sums, bytes, sums_rest);
    columns.scale = copy_rest(columns.scale, bytes, scale_rest);
    columns.b_zero_point = copy_rest(columns.b_zero_point, bytes, zero_rest);
    columns.a_correction = copy_rest(columns.a_correction, bytes, correction_rest);
  }
  // The last group comes first if it overlaps the one before it, since y may be acc.
  const bool has_rest = cols % kGroup != 0;
  for (int64_t group = has_rest ? -kGroup : 0; group + kGroup <= cols; group += kGroup) {
    const bool is_rest = group < 0;
    const int64_t j = is_rest ? last : group;
    requantize_group(acc, row, columns, j, out,
                     is_rest ? reinterpret_cast<std::byte*>(y_rest) : y + j * out.bytes);
  }
  if (has_rest)
    std::memcpy(y + last * out.bytes, y_rest, static_cast<size_t>((cols - last) * out.bytes));
}

// The most elements that are requantized together: part of a row, or several narrow rows, so that
// groups are full.
constexpr int64_t kTogether = 512;

// How many rows of `cols` columns are requantized together.
int64_t rows_together(int64_t rows, int64_t cols) {
  if (cols % kGroup == 0) return 1;
  // The fewest rows whose elements fill whole groups.
  const int64_t step = kGroup / std::min(kGroup, cols & -cols);
  return std::clamp<int64_t>(kTogether / (step * cols) * step, 1, rows);
}

// Fills `to` with `count` values, by repeating `cols` of them. Returns null if `values` is null.
[[gnu::noinline]] int32_t* repeat(const void* values, int64_t cols, int64_t count, int32_t* to) {
  if (values == nullptr) return nullptr;
  const auto copy = [&](const void* from, int64_t at, int64_t n) {
    std::memcpy(to + at, from, static_cast<size_t>(n) * sizeof(int32_t));
  };
  copy(values, 0, cols);
  for (int64_t done = cols; done < count; done *= 2) copy(to, done, std::min(done, count - done));
  return to;
}

void requantize(const Problem& problem, bool, int64_t rows, int64_t cols, const Accumulators& acc,
                const ConstBlock& c, const Block& y) {
  const Output out(problem);
  const bool has_c = problem.epilogue.has_c, adjacent = acc.data == nullptr || acc.stride == cols;
  const int64_t together = adjacent ? rows_together(rows, cols) : 1;
  const auto is_contiguous = [&](const auto& block) {
    return block.col_stride == 1 && (together == 1 || block.row_stride == cols);
  };
  const bool c_unbuffered = has_c && is_contiguous(c), y_unbuffered = is_contiguous(y);
  const int64_t step =
      together > 1 || (acc.data != nullptr && y_unbuffered && (c_unbuffered || !has_c)) ? cols
                                                                                        : kTogether;
  static constexpr int32_t kNoSums[kTogether] = {};
  int32_t scale[kTogether], zero_points[kTogether], corrections[kTogether], sums[kTogether],
      c_chunk[kTogether];
  float y_chunk[kTogether];
  auto* const y_bytes = reinterpret_cast<std::byte*>(y_chunk);
  QuantizedColumns columns = acc.columns;
  if (together > 1) {
    const int64_t count = together * cols;
    columns = {reinterpret_cast<float*>(repeat(columns.scale, cols, count, scale)),
               repeat(columns.b_zero_point, cols, count, zero_points),
               repeat(columns.a_correction, cols, count, corrections)};
  }
  for (int64_t i = 0; i < rows; i += together) {
    const int64_t lines = std::min(together, rows - i);
    RowTerms row{nullptr, wasm_i32x4_splat(acc.row_sums == nullptr ? 0 : acc.row_sums[i])};
    if (together > 1 && columns.b_zero_point != nullptr) {
      row.sums = sums;
      int32_t* to = sums;
      for (int64_t line = i; line < i + lines; ++line, to += cols)
        std::fill_n(to, cols, acc.row_sums[line]);
    }
    for (int64_t j0 = 0; j0 < cols; j0 += step) {
      const int64_t count = std::min(step, cols - j0);
      const int32_t* c_row =
          reinterpret_cast<const int32_t*>(c.data) + i * c.row_stride + j0 * c.col_stride;
      if (c_unbuffered) {
        row.c = c_row;
      } else if (has_c) {
        row.c = c_chunk;
        // If all rows of C are the same, the first copy serves all.
        if (i == 0 || together == 1 || c.row_stride != 0) {
          int32_t* to = c_chunk;
          for (int64_t line = 0; line < lines; ++line, c_row += c.row_stride) {
#pragma clang loop vectorize(disable) unroll(disable)
            for (int64_t j = 0; j < count; ++j) *to++ = c_row[j * c.col_stride];
          }
        }
      }
      const int32_t* acc_values = acc.data == nullptr
                                      ? kNoSums
                                      : static_cast<const int32_t*>(acc.data) + i * acc.stride + j0;
      std::byte* to = y.data + (i * y.row_stride + j0 * y.col_stride) * out.bytes;
      requantize_row(acc_values, row, columns_from(columns, j0), out, lines * count,
                     y_unbuffered ? to : y_bytes);
      if (y_unbuffered) continue;
      const std::byte* from = y_bytes;
      for (int64_t line = 0; line < lines; ++line, to += y.row_stride * out.bytes) {
        std::byte* element = to;
        for (int64_t j = 0; j < count;
             ++j, element += y.col_stride * out.bytes, from += out.bytes) {
          if (out.bytes == 1) {
            *element = *from;
          } else {
            std::memcpy(element, from, sizeof(float));
          }
        }
      }
    }
  }
}

using EpilogueFunction = void (*)(const Problem&, bool, int64_t, int64_t, const Accumulators&,
                                  const ConstBlock&, const Block&);
constexpr EpilogueFunction kEpilogues[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  combine<std::conditional_t<kIsHalf<Storage>, float, Storage>, StorageOf<DType::k##Compute>>,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

}  // namespace

void apply_epilogue(const Problem& problem, bool canonical_nan, int64_t rows, int64_t cols,
                    const Accumulators& acc, const ConstBlock& c, const Block& y) {
  const bool quantized = problem.compute == DType::kInt8;
  const EpilogueFunction epilogue =
      quantized ? requantize : kEpilogues[static_cast<int>(problem.y.dtype)];
  epilogue(problem, canonical_nan, rows, cols, acc, c, y);
}

}  // namespace wgemm
