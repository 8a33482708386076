// Operators that move elements: copies by strides, casts, selections and gathers.
#include <wasm_simd128.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/transpose.h"
#include "base/types.h"
#include "nn/chunks.h"
#include "nn/operator.h"

namespace wgemm::nn {
namespace {

// Calls `f` with a 0 of the unsigned integer that has the size of an element.
template <typename F>
void with_word(DType type, const F& f) {
  switch (dtype_bytes(type)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

// The elements of a tensor along a row.
template <typename W>
struct Along {
  W* at;
  ptrdiff_t step;

  Along(const Row& row, size_t tensor)
      : at(reinterpret_cast<W*>(row.at[tensor])), step(static_cast<ptrdiff_t>(row.steps[tensor])) {}
  W& operator[](ptrdiff_t i) const { return at[i * step]; }
};

// Copies `bytes`, at least 16. A call of memcpy() would take longer for a few vectors.
void copy_bytes(const std::byte* from, std::byte* to, size_t bytes) {
  constexpr size_t kVector = sizeof(v128_t), kMostInline = 512;
  if (bytes > kMostInline) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (size_t at = 0; at + kVector < bytes; at += kVector)
    wasm_v128_store(to + at, wasm_v128_load(from + at));
  wasm_v128_store(to + bytes - kVector, wasm_v128_load(from + bytes - kVector));
}

// Copies a row of the tensor at `from` to the tensor at `to`.
void copy_run(DType type, const Row& row, size_t from, size_t to) {
  const size_t bytes = static_cast<size_t>(row.count) * dtype_bytes(type);
  const int64_t step = row.steps[from];
  if (row.steps[to] == 1 && bytes >= sizeof(v128_t)) {
    if (step == 1) return copy_bytes(row.at[from], row.at[to], bytes);
    if (step == 0) {
      // Each copy doubles the part that is filled.
      std::memcpy(row.at[to], row.at[from], dtype_bytes(type));
      for (size_t done = dtype_bytes(type); done < bytes; done *= 2)
        std::memcpy(row.at[to] + done, row.at[to], std::min(done, bytes - done));
      return;
    }
  }
  with_word(type, [&]<typename W>(W) {
    const Along<W> x(row, from), y(row, to);
    for (ptrdiff_t i = 0; i < row.count; ++i) y[i] = x[i];
  });
}

void copy_row(const Step& step, const Row& row) { copy_run(step.tensors[0].type, row, 0, 1); }

// How many rows a transposition writes together, and how many elements of each: a cache line.
constexpr int64_t kStrip = 16;

// Writes several rows of y, whose elements lie one after another. Attributes: how many rows, and
// the stride of y from one to the next, where the stride of x is 1.
void transpose_row(const Step& step, const Row& row) {
  const auto rows = static_cast<ptrdiff_t>(step.attributes[0]),
             stride = static_cast<ptrdiff_t>(step.attributes[1]),
             count = static_cast<ptrdiff_t>(row.count);
  with_word(step.tensors[0].type, [&]<typename W>(W) {
    const Along<W> x(row, 0);
    W* const y = Along<W>(row, 1).at;
    const auto move = [&](ptrdiff_t first, ptrdiff_t j) {
      for (ptrdiff_t i = first; i < rows; ++i) y[i * stride + j] = (&x[j])[i];
    };
    ptrdiff_t j = 0;
    if constexpr (sizeof(W) == 4) {
      const ptrdiff_t squares = rows / 4 * 4;
      for (const ptrdiff_t end = count / 4 * 4; j < end;) {
        const ptrdiff_t first = j, last = std::min<ptrdiff_t>(first + kStrip, end);
        for (ptrdiff_t i = 0; i < squares; i += 4) {
          W* to = y + i * stride + first;
          const W* from = &x[first] + i;
          for (j = first; j < last; j += 4, to += 4, from += 4 * x.step) {
            v128_t square[4];
#pragma clang loop unroll(full)
            for (int k = 0; k < 4; ++k) square[k] = wasm_v128_load(from + k * x.step);
            transpose(square);
#pragma clang loop unroll(full)
            for (int k = 0; k < 4; ++k) wasm_v128_store(to + k * stride, square[k]);
          }
        }
        for (j = first; j < last; ++j) move(squares, j);
      }
    }
    for (; j < count; ++j) move(0, j);
  });
}

constexpr Operator kTranspose = {"Transpose", 1, 1, 2, false, kStrip, nullptr};

// If x is contiguous along another axis than y, copies strips along that axis. Else copies rows.
Status run_copy(Context& context, const Step& step) {
  const int64_t *x = step.tensors[0].strides, *y = step.tensors[1].strides;
  const size_t last = step.rank - 1;
  const auto axis = static_cast<size_t>(std::find(x, x + last, 1) - x);
  if (axis == last || y[last] != 1 || x[last] == 0 || x[last] == 1) {
    run_rows(context, step);
    return {};
  }
  int64_t dims[kMaxRank], strides[2][kMaxRank] = {};
  Tensor tensors[2];
  std::copy(step.dims, step.dims + step.rank, dims);
  for (size_t i = 0; i < 2; ++i) {
    tensors[i] = step.tensors[i];
    std::copy(tensors[i].strides, tensors[i].strides + step.rank, strides[i]);
    tensors[i].strides = strides[i];
    strides[i][axis] *= kStrip;
  }
  double attributes[] = {kStrip, static_cast<double>(y[axis])};
  Step strips = step;
  strips.op = &kTranspose;
  strips.row = transpose_row;
  strips.tensors = tensors;
  strips.attributes = attributes;
  strips.dims = dims;
  dims[axis] = step.dims[axis] / kStrip;
  if (dims[axis] > 0) run_rows(context, strips);
  if (const int64_t rest = step.dims[axis] % kStrip; rest > 0) {
    for (size_t i = 0; i < 2; ++i)
      tensors[i].data +=
          dims[axis] * strides[i][axis] * static_cast<int64_t>(dtype_bytes(tensors[i].type));
    dims[axis] = 1;
    attributes[0] = static_cast<double>(rest);
    run_rows(context, strips);
  }
  return {};
}

bool choose_copy(Step* step) {
  step->row = copy_row;
  return step->tensors[0].type == step->tensors[1].type;
}

v128_t float32_of(const int32_t* x) { return wasm_f32x4_convert_i32x4(wasm_v128_load(x)); }
v128_t float32_of(const uint8_t* x) {
  const v128_t wide = wasm_u16x8_extend_low_u8x16(wasm_v128_load32_zero(x));
  return wasm_f32x4_convert_i32x4(wasm_u32x4_extend_low_u16x8(wide));
}
// As in JavaScript, by way of float64.
v128_t float32_of(const int64_t* x) {
  const auto narrow = [](int64_t v) { return static_cast<float>(static_cast<double>(v)); };
  return wasm_f32x4_make(narrow(x[0]), narrow(x[1]), narrow(x[2]), narrow(x[3]));
}
v128_t int32_of(const float* x) { return wasm_i32x4_trunc_sat_f32x4(wasm_v128_load(x)); }
v128_t int32_of(const int64_t* x) {
  return wasm_i32x4_shuffle(wasm_v128_load(x), wasm_v128_load(x + 2), 0, 2, 4, 6);
}

// Casts contiguous elements, four at a time. `kFour` returns the results of four elements.
template <typename X, v128_t (*kFour)(const X*)>
void cast_loop(ptrdiff_t count, const void* const* inputs, void* output, const double*) {
  const auto* x = static_cast<const X*>(inputs[0]);
  auto* y = static_cast<uint32_t*>(output);
  for (; count >= 4; count -= 4, x += 4, y += 4) wasm_v128_store(y, kFour(x));
  X from[4] = {};
  uint32_t to[4];
  std::memcpy(from, x, static_cast<size_t>(count) * sizeof(X));
  wasm_v128_store(to, kFour(from));
  std::memcpy(y, to, static_cast<size_t>(count) * sizeof(*y));
}

// Casts that models have often.
struct FastCast {
  DType from, to;
  Loop loop;
};
constexpr FastCast kFastCasts[] = {
    {DType::kInt32, DType::kFloat32, cast_loop<int32_t, float32_of>},
    {DType::kUInt8, DType::kFloat32, cast_loop<uint8_t, float32_of>},
    {DType::kInt64, DType::kFloat32, cast_loop<int64_t, float32_of>},
    {DType::kFloat32, DType::kInt32, cast_loop<float, int32_of>},
    {DType::kInt64, DType::kInt32, cast_loop<int64_t, int32_of>},
};

// Casts by way of T. Elements that are a T need no buffer.
template <typename T>
void cast_row(const Step& step, const Row& row) {
  const DType from = step.tensors[0].type, to = step.tensors[1].type;
  const bool reads = is_direct<T>(step, row, 0), writes = is_direct<T>(step, row, 1);
  if (step.loop != nullptr && row.steps[0] == 1 && row.steps[1] == 1) {
    const void* const x = row.at[0];
    return step.loop(static_cast<ptrdiff_t>(row.count), &x, row.at[1], nullptr);
  }
  alignas(16) T buffer[kChunk];
  const int64_t most = reads || writes ? row.count : kChunk;
  for (int64_t at = 0; at < row.count; at += most) {
    const int64_t count = std::min(most, row.count - at);
    std::byte *const x = place(step, row, 0, at), *const y = place(step, row, 1, at);
    T* const values = reads ? reinterpret_cast<T*>(x) : writes ? reinterpret_cast<T*>(y) : buffer;
    if (!reads) load(from, x, row.steps[0], count, values);
    if (!writes || reads) store(to, values, count, y, row.steps[1]);
  }
}

bool choose_cast(Step* step) {
  const DType from = step->tensors[0].type, to = step->tensors[1].type;
  const bool integers = is_integer(from) && is_integer(to);
  const auto is_narrow = [](DType type) { return !is_integer(type) && dtype_bytes(type) <= 4; };
  if (from == to || (integers && dtype_bytes(from) == dtype_bytes(to))) {
    step->row = copy_row;
  } else if (integers) {
    step->row = cast_row<int64_t>;
  } else {
    step->row = is_narrow(from) && is_narrow(to) ? cast_row<float> : cast_row<double>;
  }
  for (const FastCast& cast : kFastCasts)
    if (cast.from == from && cast.to == to) step->loop = cast.loop;
  return true;
}

// 1 if a bit other than the sign of floating point is 1.
void bool_row(const Step& step, const Row& row) {
  const DType type = step.tensors[0].type;
  const int sign = is_integer(type) ? 0 : 1;
  with_word(type, [&]<typename W>(W) {
    const Along<W> x(row, 0);
    const Along<uint8_t> y(row, 1);
    for (ptrdiff_t i = 0; i < row.count; ++i) y[i] = static_cast<W>(x[i] << sign) != 0;
  });
}

bool choose_bool(Step* step) {
  step->row = bool_row;
  return step->tensors[1].type == DType::kUInt8;
}

// All ones for each of four conditions that is true.
v128_t mask_of(const uint8_t* conditions) {
  const v128_t bytes = wasm_i8x16_ne(wasm_v128_load32_zero(conditions), wasm_i32x4_splat(0));
  return wasm_i32x4_extend_low_i16x8(wasm_i16x8_extend_low_i8x16(bytes));
}

// Selects elements of 32 bits, contiguous or broadcast. Returns how many: all but the last three.
ptrdiff_t where_vectors(const Row& row) {
  const Along<const uint8_t> condition(row, 0);
  const Along<const uint32_t> x(row, 1), z(row, 2);
  const Along<uint32_t> y(row, 3);
  const auto is_simple = [](ptrdiff_t step) { return step == 0 || step == 1; };
  if (condition.step != 1 || !is_simple(x.step) || !is_simple(z.step) || y.step != 1) return 0;
  v128_t chosen = wasm_v128_load32_splat(x.at), other = wasm_v128_load32_splat(z.at);
  ptrdiff_t i = 0;
  for (; i + 4 <= row.count; i += 4) {
    if (x.step != 0) chosen = wasm_v128_load(x.at + i);
    if (z.step != 0) other = wasm_v128_load(z.at + i);
    wasm_v128_store(y.at + i, wasm_v128_bitselect(chosen, other, mask_of(condition.at + i)));
  }
  return i;
}

void where_row(const Step& step, const Row& row) {
  const DType type = step.tensors[3].type;
  with_word(type, [&]<typename W>(W) {
    const Along<const uint8_t> condition(row, 0);
    const Along<const W> x(row, 1), z(row, 2);
    const Along<W> y(row, 3);
    ptrdiff_t i = 0;
    if constexpr (sizeof(W) == 4) i = where_vectors(row);
    for (; i < row.count; ++i) {
      const W chosen = x[i], other = z[i];  // read both, so that the loop has no branch
      y[i] = condition[i] != 0 ? chosen : other;
    }
  });
}

bool choose_where(Step* step) {
  step->row = where_row;
  const DType type = step->tensors[3].type;
  return step->tensors[0].type == DType::kUInt8 && step->tensors[1].type == type &&
         step->tensors[2].type == type;
}

// Attributes of Gather.
constexpr size_t kSize = 0, kStride = 1;

void gather_row(const Step& step, const Row& row) {
  const Tensor &data = step.tensors[0], &indices = step.tensors[1];
  const auto size = static_cast<int64_t>(step.attributes[kSize]),
             stride = static_cast<int64_t>(step.attributes[kStride]);
  // Elements from the start of the axis to the one of an index.
  const auto place = [&](const std::byte* at) {
    const int64_t index = index_at(indices, at);
    return (index < 0 ? index + size : index) * stride;
  };
  const auto bytes = static_cast<int64_t>(dtype_bytes(data.type)),
             index_step = row.steps[1] * static_cast<int64_t>(dtype_bytes(indices.type));
  if (index_step == 0) {
    Row part = row;
    part.at[0] += place(row.at[1]) * bytes;
    return copy_run(data.type, part, 0, 2);
  }
  with_word(data.type, [&]<typename W>(W) {
    const Along<const W> x(row, 0);
    const Along<W> y(row, 2);
    const std::byte* at = row.at[1];
    for (ptrdiff_t i = 0; i < row.count; ++i, at += index_step) y[i] = (&x[i])[place(at)];
  });
}

// Reads all indices before data.
Status run_gather(Context& context, const Step& step) {
  const Tensor& indices = step.tensors[1];
  const auto size = static_cast<int64_t>(step.attributes[kSize]);
  int64_t place[kMaxRank];
  for (int64_t i = 0, count = element_count(step, 1); i < count; ++i) {
    const int64_t index = index_at(indices, element_at(step, 1, i, place));
    if (index < -size || index >= size)
      return error(Code::kArgument, "run", "indices",
                   {"% is %; it must be from % to %", "indices", index, -size, size - 1});
  }
  run_rows(context, step);
  return {};
}

bool choose_gather(Step* step) {
  step->row = gather_row;
  const DType type = step->tensors[1].type;
  return step->tensors[0].type == step->tensors[2].type &&
         (type == DType::kInt32 || type == DType::kInt64);
}

constexpr Operator kOperators[] = {
    {"Copy", 1, 1, 0, false, 1, choose_copy, run_copy},
    {"Cast", 1, 1, 0, false, 2, choose_cast},
    {"CastToBool", 1, 1, 0, false, 1, choose_bool},
    // condition, x, z, y: x where the condition is not 0, else z.
    {"Where", 3, 1, 0, false, 1, choose_where},
    // data, indices, y. Data has strides of 0 along the axes of the indices, and the indices along
    // all others. The attributes are the size and the stride of the axis of data that is indexed.
    {"Gather", 2, 1, 2, false, 1, choose_gather, run_gather},
};

}  // namespace

std::span<const Operator> move_operators() { return kOperators; }

}  // namespace wgemm::nn
