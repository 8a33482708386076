// The operators that prepare queries and keys for attention: they rotate pairs of elements, and
// write rows into caches.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/types.h"
#include "nn/chunks.h"
#include "nn/operator.h"

namespace wgemm::nn {
namespace {

// Rotary ------------------------------------------------------------------------------------------

// Rotates pairs of elements of x. The attribute is the distance from the first element of a pair to
// the second one, in x and y.
void rotary_row(const Step& step, const Row& row) {
  const auto distance = static_cast<int64_t>(step.attributes[0]);
  alignas(16) float buffers[4][kChunk];
  for (int64_t from = 0; from < row.count; from += kChunk) {
    const int64_t count = std::min(kChunk, row.count - from);
    const auto read = [&](size_t tensor, int64_t more, float* to) {
      const DType type = step.tensors[tensor].type;
      load(type, place(step, row, tensor, from) + more * static_cast<int64_t>(dtype_bytes(type)),
           row.steps[tensor], count, to);
    };
    auto& [x, z, cos, sin] = buffers;
    read(0, 0, x);
    read(0, distance, z);
    read(1, 0, cos);
    read(2, 0, sin);
    for (int64_t i = 0; i < count; ++i) {
      const float first = x[i] * cos[i] - z[i] * sin[i];
      z[i] = x[i] * sin[i] + z[i] * cos[i];
      x[i] = first;
    }
    const DType type = step.tensors[3].type;
    std::byte* const y = place(step, row, 3, from);
    store(type, x, count, y, row.steps[3]);
    store(type, z, count, y + distance * static_cast<int64_t>(dtype_bytes(type)), row.steps[3]);
  }
}

bool choose_rotary(Step* step) {
  const auto& t = step->tensors;
  step->row = rotary_row;
  return std::ranges::all_of(
      t, [&](const Tensor& tensor) { return tensor.type == t[0].type && fits_float(tensor.type); });
}

// WriteRows ---------------------------------------------------------------------------------------

// Attributes of WriteRows.
constexpr size_t kShift = 0, kStride = 1, kLast = 2;

int64_t row_of(const Step& step, const std::byte* at) {
  int64_t number;
  load(step.tensors[1].type, at, 0, 1, &number);
  return number + static_cast<int64_t>(step.attributes[kShift]);
}

void write_row(const Step& step, const Row& row) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(step.tensors[0].type));
  std::byte* to =
      row.at[2] + row_of(step, row.at[1]) * static_cast<int64_t>(step.attributes[kStride]) * bytes;
  std::memcpy(to, row.at[0], static_cast<size_t>(row.count * bytes));
}

Status run_write_rows(Context& context, const Step& step) {
  const auto shift = static_cast<int64_t>(step.attributes[kShift]),
             last = static_cast<int64_t>(step.attributes[kLast]);
  int64_t place[kMaxRank];
  for (int64_t i = 0, count = element_count(step, 1); i < count; ++i) {
    const int64_t number = row_of(step, element_at(step, 1, i, place));
    if (number < 0 || number > last)
      return error(Code::kArgument, "run", "",
                   {"the length of a sequence is %; it must be from % to %", number - shift, -shift,
                    last - shift});
  }
  run_rows(context, step);
  return {};
}

bool choose_write_rows(Step* step) {
  const auto& t = step->tensors;
  step->row = write_row;
  return t[0].type == t[2].type && (t[1].type == DType::kInt32 || t[1].type == DType::kInt64);
}

constexpr Operator kOperators[] = {
    // x, cos, sin, y.
    {"Rotary", 3, 1, 1, true, 8, choose_rotary},
    // x, numbers, y. Moves y by `number + shift` rows, and copies x there. The last axis of both is
    // contiguous. Attributes: the shift, the elements of a row of y, and the most of the sum.
    {"WriteRows", 2, 1, 3, true, 2, choose_write_rows, run_write_rows},
};

}  // namespace

std::span<const Operator> cache_operators() { return kOperators; }

}  // namespace wgemm::nn
