#include "execute/requantize.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/convert.h"
#include "base/types.h"

namespace wgemm {
namespace {

// The most elements that are requantized together: part of a row, or several narrow rows, so that
// groups are full.
constexpr int64_t kTogether = kMostGathered;

// Columns per step of requantization: four vectors of accumulators, one vector of 8-bit results.
constexpr int64_t kGroup = 16;

// Converts float32 to what Y holds: float32, int8 or uint8. For uint8 it computes int8 with a zero
// point that is 128 less, and flips the highest bit. A float16 Y is float32 here.
struct Output {
  int64_t bytes;            // of an element
  bool is_sum, is_float_c;  // Y has the accumulators; C is added to the scaled result
  // The bounds. If Y is quantized, they are within the range of int8, less the zero point.
  v128_t low, high;
  // Adding both leaves an integer in the low bits: the value rounded half to even, plus the zero
  // point. That holds for small values only, so bounds apply first.
  v128_t shifter, unshift;
  v128_t flip;

  [[gnu::noinline]] Output(const Problem& problem, float y_scale, int y_zero_point) {
    // The last bit of a float32 of this size is worth 1, so that the addition rounds.
    constexpr float kShifter = 0x1.8p23F;
    const Quantization& q = problem.quantization;
    const int offset = q.quantizes_y ? int8_offset(problem.y.dtype) : 0,
              zero_point = y_zero_point - offset;
    const auto least = static_cast<float>(-128 - zero_point), most = least + 255;
    const auto splat = [&](double bound) {
      const auto value = static_cast<float>(bound);
      return wasm_f32x4_splat(q.quantizes_y ? std::clamp(value / y_scale, least, most) : value);
    };
    bytes = q.quantizes_y ? 1 : sizeof(float);
    is_sum = problem.y.dtype == DType::kInt32;
    is_float_c = problem.epilogue.has_float_c();
    const bool is_flipped = q.quantizes_y && y_scale < 0;
    low = splat(is_flipped ? q.bounds.max : q.bounds.min);
    high = splat(is_flipped ? q.bounds.min : q.bounds.max);
    shifter = wasm_f32x4_splat(kShifter);
    unshift = wasm_i32x4_splat(zero_point - std::bit_cast<int32_t>(kShifter));
    flip = wasm_i8x16_splat(static_cast<int8_t>(offset));
  }
  v128_t round(v128_t x) const { return wasm_i32x4_add(wasm_f32x4_add(x, shifter), unshift); }

  // Stores a group of columns.
  void store(v128_t (&x)[4], std::byte* y) const {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) x[v] = wasm_f32x4_pmin(wasm_f32x4_pmax(x[v], low), high);
    if (bytes == 1) {
      const v128_t front = wasm_i16x8_narrow_i32x4(round(x[0]), round(x[1])),
                   back = wasm_i16x8_narrow_i32x4(round(x[2]), round(x[3]));
      return wasm_v128_store(y, wasm_v128_xor(wasm_i8x16_narrow_i16x8(front, back), flip));
    }
    store_vectors(x, y);
  }
  static void store_vectors(const v128_t (&x)[4], std::byte* y) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) wasm_v128_store(y + 16 * v, x[v]);
  }
};

// The epilogue adds these to the accumulators of a row.
struct RowTerms {
  const int32_t* c;  // the bits of float32 if Output::is_float_c; null: absent
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
  if (row.c != nullptr && !out.is_float_c) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) x[v] = wasm_i32x4_add(x[v], wasm_v128_load(row.c + j + 4 * v));
  }
  if (out.is_sum) return Output::store_vectors(x, y);
#pragma clang loop unroll(full)
  for (int v = 0; v < 4; ++v) {
    x[v] =
        wasm_f32x4_mul(wasm_f32x4_convert_i32x4(x[v]), wasm_v128_load(columns.scale + j + 4 * v));
  }
  if (row.c != nullptr && out.is_float_c) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) x[v] = wasm_f32x4_add(x[v], wasm_v128_load(row.c + j + 4 * v));
  }
  out.store(x, y);
}

// Scales whole groups to float32, without any terms: a loop without branches for the common case.
void scale_groups(const int32_t* acc, const float* scale, const Output& out, int64_t cols,
                  std::byte* y) {
  const v128_t low = out.low, high = out.high;
  for (int64_t j = 0; j + kGroup <= cols; j += kGroup) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) {
      const v128_t x = wasm_f32x4_mul(wasm_f32x4_convert_i32x4(wasm_v128_load(acc + j + 4 * v)),
                                      wasm_v128_load(scale + j + 4 * v));
      wasm_v128_store(y + 4 * (j + 4 * v), wasm_f32x4_pmin(wasm_f32x4_pmax(x, low), high));
    }
  }
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
  const bool is_plain = columns.b_zero_point == nullptr && columns.a_correction == nullptr &&
                        row.c == nullptr && !out.is_sum && out.bytes == sizeof(float);
  for (int64_t group = has_rest ? -kGroup : 0; group + kGroup <= cols; group += kGroup) {
    const bool is_rest = group < 0;
    if (!is_rest && is_plain) {
      scale_groups(acc, columns.scale, out, cols, y);
      break;
    }
    const int64_t j = is_rest ? last : group;
    requantize_group(acc, row, columns, j, out,
                     is_rest ? reinterpret_cast<std::byte*>(y_rest) : y + j * out.bytes);
  }
  if (has_rest)
    std::memcpy(y + last * out.bytes, y_rest, static_cast<size_t>((cols - last) * out.bytes));
}

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

// How a block is cut into chunks that are requantized at once.
struct Chunks {
  bool rows_differ;                 // scales or zero points differ between rows
  bool c_unbuffered, y_unbuffered;  // C and Y are contiguous: no copy is needed
  int64_t lines, cols;              // of a chunk, at most
};
Chunks chunks_of(const Problem& problem, int64_t rows, int64_t cols, const Accumulators& acc,
                 const ConstBlock& c, const Block& y) {
  const Epilogue& e = problem.epilogue;
  Chunks chunks{};
  chunks.rows_differ = problem.quantization.has_row_scales || acc.rows.a_zero_point != nullptr;
  const bool adjacent = acc.data == nullptr || acc.stride == cols;
  const int64_t lines = adjacent && !chunks.rows_differ ? rows_together(rows, cols) : 1;
  const auto is_contiguous = [&](const auto& block, DType dtype) {
    return block.col_stride == 1 && (lines == 1 || block.row_stride == cols) &&
           dtype != DType::kFloat16;
  };
  chunks.c_unbuffered = e.has_c && is_contiguous(c, e.c.dtype);
  chunks.y_unbuffered = is_contiguous(y, problem.y.dtype);
  chunks.lines = lines;
  const bool whole_rows = acc.data != nullptr && chunks.y_unbuffered && !chunks.rows_differ &&
                          (chunks.c_unbuffered || !e.has_c);
  chunks.cols = lines > 1 || whole_rows ? cols : kTogether;
  return chunks;
}

// Gathers `lines` by `count` elements of C. `row_stride` counts bytes, `col_stride` elements.
void gather_lines(DType type, const std::byte* c, int64_t row_stride, int64_t col_stride,
                  int64_t lines, int64_t count, int32_t* to) {
  for (int64_t line = 0; line < lines; ++line, c += row_stride, to += count)
    gather_c(type, c, col_stride, count, to);
}

// Writes `lines` by `count` contiguous results to `y`, which is not contiguous or has float16.
void write_lines(const float* results, int64_t lines, int64_t count, DType type, const Block& y) {
  uint16_t halves[kTogether];
  const auto* from = reinterpret_cast<const std::byte*>(results);
  if (type == DType::kFloat16) {
    narrow_to_float16(results, halves, lines * count);
    from = reinterpret_cast<const std::byte*>(halves);
  }
  const auto bytes = static_cast<int64_t>(dtype_bytes(type));
  std::byte* to = y.data;
  for (int64_t line = 0; line < lines; ++line, to += y.row_stride * bytes) {
    std::byte* element = to;
    for (int64_t j = 0; j < count; ++j, element += y.col_stride * bytes, from += bytes) {
      if (bytes == 1) {
        *element = *from;
      } else if (bytes == 2) {
        std::memcpy(element, from, sizeof(Float16));
      } else {
        std::memcpy(element, from, sizeof(float));
      }
    }
  }
}

}  // namespace

void requantize(const Problem& problem, bool canonical_nan, int64_t rows, int64_t cols,
                const Accumulators& acc, const ConstBlock& c, const Block& y) {
  const Quantization& q = problem.quantization;
  const Epilogue& e = problem.epilogue;
  Output out(problem, q.y_scale, q.y_zero_point);
  const Chunks chunks = chunks_of(problem, rows, cols, acc, c, y);
  const int64_t together = chunks.lines;
  static constexpr int32_t kNoSums[kTogether] = {};
  int32_t scale[kTogether], zero_points[kTogether], corrections[kTogether], sums[kTogether],
      c_chunk[kTogether];
  float y_chunk[kTogether];
  const DType y_type = problem.y.dtype;
  const auto y_bytes = static_cast<int64_t>(dtype_bytes(y_type)),
             c_bytes = static_cast<int64_t>(dtype_bytes(e.c.dtype));
  QuantizedColumns columns = acc.columns;
  if (together > 1) {
    const int64_t count = together * cols;
    columns = {reinterpret_cast<float*>(repeat(columns.scale, cols, count, scale)),
               repeat(columns.b_zero_point, cols, count, zero_points),
               repeat(columns.a_correction, cols, count, corrections)};
  }
  for (int64_t i = 0; i < rows; i += together) {
    const int64_t lines = std::min(together, rows - i);
    if (q.has_row_scales)
      out = Output(problem, read_scale(acc.rows.y_scale, i, 0),
                   read_zero_point(acc.rows.y_zero_point, i, 0));
    RowTerms row{nullptr, wasm_i32x4_splat(acc.row_sums == nullptr ? 0 : acc.row_sums[i])};
    if (together > 1 && columns.b_zero_point != nullptr) {
      row.sums = sums;
      int32_t* to = sums;
      for (int64_t line = i; line < i + lines; ++line, to += cols)
        std::fill_n(to, cols, acc.row_sums[line]);
    }
    for (int64_t j0 = 0; j0 < cols; j0 += chunks.cols) {
      const int64_t count = std::min(chunks.cols, cols - j0);
      const std::byte* c_row = c.data + (i * c.row_stride + j0 * c.col_stride) * c_bytes;
      if (chunks.c_unbuffered) {
        row.c = reinterpret_cast<const int32_t*>(c_row);
      } else if (e.has_c) {
        row.c = c_chunk;
        // If all rows of C are the same, the first copy serves all.
        if (i == 0 || together == 1 || c.row_stride != 0)
          gather_lines(e.c.dtype, c_row, c.row_stride * c_bytes, c.col_stride, lines, count,
                       c_chunk);
      }
      const int32_t* acc_values = acc.data == nullptr
                                      ? kNoSums
                                      : static_cast<const int32_t*>(acc.data) + i * acc.stride + j0;
      QuantizedColumns of_row = columns_from(columns, j0);
      if (chunks.rows_differ)
        apply_row_values(q, acc.rows, i, count, &of_row, reinterpret_cast<float*>(scale),
                         corrections);
      std::byte* const to = y.data + (i * y.row_stride + j0 * y.col_stride) * y_bytes;
      void* const written = chunks.y_unbuffered ? static_cast<void*>(to) : y_chunk;
      requantize_row(acc_values, row, of_row, out, lines * count, static_cast<std::byte*>(written));
      if (canonical_nan) make_nan_canonical(static_cast<float*>(written), lines * count);
      if (!chunks.y_unbuffered)
        write_lines(y_chunk, lines, count, y_type, {to, y.row_stride, y.col_stride});
    }
  }
}

}  // namespace wgemm
