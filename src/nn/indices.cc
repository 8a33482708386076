// Operators that write elements to the places of indices.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "nn/chunks.h"
#include "nn/folds.h"

namespace wgemm::nn {
namespace {

Status out_of_range(int64_t index, int64_t size) {
  return error(Code::kArgument, "run", "indices",
               {"% is %; it must be from % to %", "indices", index, -size, size - 1});
}

// FlatIndices -------------------------------------------------------------------------------------

// Each row of indices becomes one index of all their axes.
Status run_flat(Context&, const Step& step) {
  const Tensor &indices = step.tensors[0], &sizes = step.tensors[1];
  const size_t last = step.rank - 1;
  uint64_t flat = 0;
  int64_t place[kMaxRank];
  for (int64_t i = 0, row = 0, count = element_count(step, 0); i < count; ++i) {
    int64_t index = index_at(indices, element_at(step, 0, i, place));
    const int64_t axis = place[last],
                  size = reinterpret_cast<const int64_t*>(sizes.data)[axis * sizes.strides[last]];
    if (index < -size || index >= size) return out_of_range(index, size);
    index += index < 0 ? size : 0;
    flat = (axis == 0 ? 0 : flat * static_cast<uint64_t>(size)) + static_cast<uint64_t>(index);
    if (axis + 1 == step.dims[last])
      *reinterpret_cast<uint64_t*>(element_at(step, 2, row++, place)) = flat;
  }
  return {};
}

bool choose_flat(Step* step) {
  return std::ranges::all_of(step->tensors,
                             [](const Tensor& tensor) { return tensor.type == DType::kInt64; });
}

// Scatter -----------------------------------------------------------------------------------------

// Attributes of Scatter.
constexpr size_t kSize = 0, kStride = 1, kKind = 2, kSkips = 3;

// Writes updates to y, or joins them with its elements.
void write(const Step& step, const Row& row, std::byte* to, const std::byte* from, int64_t count) {
  const DType type = step.tensors[2].type;
  const auto bytes = static_cast<int64_t>(dtype_bytes(type));
  const int64_t from_step = row.steps[1], to_step = row.steps[2];
  const auto kind = static_cast<int>(step.attributes[kKind]);
  if (kind == 0 && from_step == 1 && to_step == 1) {
    std::memcpy(to, from, static_cast<size_t>(count * bytes));
    return;
  }
  const int64_t part = kind == 0 ? 1 : kParts;
  for (int64_t i = 0; i < count; i += part) {
    std::byte* const y = to + i * to_step * bytes;
    const std::byte* const x = from + i * from_step * bytes;
    if (kind == 0) {
      std::memcpy(y, x, static_cast<size_t>(bytes));
      continue;
    }
    const int64_t some = std::min(part, count - i);
    const bool is_float = !is_integer(type);
    alignas(16) uint64_t sums[kParts] = {}, updates[kParts] = {};
    load_wide(type, y, to_step, some, is_float, sums);
    load_wide(type, x, from_step, some, is_float, updates);
    const void* const joined = updates;
    fold_of(static_cast<Join>(kind - 1), type, is_float).join(kParts, &joined, sums, nullptr);
    store_wide(type, sums, some, is_float, y, to_step);
  }
}

void scatter_row(const Step& step, const Row& row) {
  const Tensor& indices = step.tensors[0];
  const auto size = static_cast<int64_t>(step.attributes[kSize]),
             stride = static_cast<int64_t>(step.attributes[kStride]);
  const int64_t part = row.steps[0] == 0 ? row.count : 1;
  for (int64_t i = 0; i < row.count; i += part) {
    int64_t index = index_at(indices, place(step, row, 0, i));
    index += index < 0 ? size : 0;
    if (index < 0 || index >= size) continue;
    std::byte* const to = place(step, row, 2, i) +
                          index * stride * static_cast<int64_t>(dtype_bytes(step.tensors[2].type));
    write(step, row, to, place(step, row, 1, i), part);
  }
}

// Reads all indices before it writes. Rows are written one after the other, since they may have the
// same indices.
Status run_scatter(Context&, const Step& step) {
  const auto size = static_cast<int64_t>(step.attributes[kSize]);
  int64_t place[kMaxRank];
  if (step.attributes[kSkips] == 0) {
    for (int64_t i = 0, count = element_count(step, 0); i < count; ++i) {
      const int64_t index = index_at(step.tensors[0], element_at(step, 0, i, place));
      if (index < -size || index >= size) return out_of_range(index, size);
    }
  }
  const size_t last = step.rank - 1;
  int64_t rows = 1;
  for (size_t axis = 0; axis < last; ++axis) rows *= step.dims[axis];
  Row row = {step.dims[last], {}, {}};
  for (int64_t i = 0; i < rows; ++i) {
    for (size_t tensor = 0; tensor < 3; ++tensor) {
      const Tensor& t = step.tensors[tensor];
      row.steps[tensor] = t.strides[last];
      int64_t left = i, at = 0;
      for (size_t axis = last; axis-- > 0; left /= step.dims[axis])
        at += left % step.dims[axis] * t.strides[axis];
      row.at[tensor] = t.data + at * static_cast<int64_t>(dtype_bytes(t.type));
    }
    scatter_row(step, row);
  }
  return {};
}

bool choose_scatter(Step* step) {
  const DType type = step->tensors[0].type;
  return step->tensors[1].type == step->tensors[2].type &&
         (type == DType::kInt32 || type == DType::kInt64);
}

constexpr Operator kOperators[] = {
    // indices, sizes, y. The last axis is the axes that a row indexes. y has an element per row.
    {"FlatIndices", 2, 1, 0, true, 1, choose_flat, run_flat},
    // indices, updates, y. y has strides of 0 along the axes of the indices. The attributes are the
    // size and the stride of the axis of y that is indexed, 0 or the number of a Join plus 1, and
    // whether to skip indices that are out of range.
    {"Scatter", 2, 1, 4, false, 1, choose_scatter, run_scatter},
};

}  // namespace

std::span<const Operator> index_operators() { return kOperators; }

}  // namespace wgemm::nn
