// The loop over the axes of a step, and how threads share it.
#include "nn/operator.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/types.h"

namespace wgemm::nn {
namespace {

// Work of a task, in additions of float32: some 2 us. A thread that waits in a loop takes about as
// long to join.
constexpr int64_t kTaskWork = 1 << 14;

// Work of a step that wakes threads after a gap: a quarter of a millisecond.
constexpr int64_t kWorkAfterGap = 1 << 21;

// The fewest elements of a piece of a row.
constexpr int64_t kPiece = 1 << 10;

// A step, cut into pieces of rows.
struct Pieces {
  const Step& step;
  RowFunction second;
  int64_t length, per_row, rows, per_task;

  Pieces(const Step& s, RowFunction then) : step(s), second(then) {
    const int64_t last = s.dims[s.rank - 1];
    rows = 1;
    for (size_t axis = 0; axis + 1 < s.rank; ++axis) rows *= s.dims[axis];
    const int64_t elements = std::max<int64_t>(kTaskWork / s.op->work, kPiece);
    length = s.op->whole_rows ? last : std::min(last, elements);
    length = std::max<int64_t>(length, 1);
    per_row = s.op->whole_rows ? 1 : (last + length - 1) / length;
    per_task = std::max<int64_t>(elements / length, 1);
  }
  int64_t tasks() const { return (rows * per_row + per_task - 1) / per_task; }

  void run(int64_t first, int64_t end, RowFunction compute) const {
    const size_t axes = step.rank - 1, count = step.tensors.size();
    Row row = {};
    int64_t bytes[kMostTensors], next[kMostTensors];  // per element, and from row to row
    bool only_loops = compute == run_elements<float>;
    for (size_t i = 0; i < count; ++i) {
      const Tensor& tensor = step.tensors[i];
      bytes[i] = static_cast<int64_t>(dtype_bytes(tensor.type));
      row.steps[i] = tensor.strides[axes];
      next[i] = axes == 0 ? 0 : tensor.strides[axes - 1] * bytes[i];
      only_loops = only_loops && row.steps[i] == 1 && tensor.type == DType::kFloat32;
    }
    while (first < end) {
      int64_t left = first / per_row;
      const int64_t from = first % per_row * length;
      int64_t same = 1;  // rows at one place on all axes except the last two
      for (size_t i = 0; i < count; ++i)
        row.at[i] = step.tensors[i].data + from * row.steps[i] * bytes[i];
      for (size_t axis = axes; axis-- > 0; left /= step.dims[axis]) {
        const int64_t place = left % step.dims[axis];
        for (size_t i = 0; i < count; ++i)
          row.at[i] += place * step.tensors[i].strides[axis] * bytes[i];
        if (axis + 1 == axes && per_row == 1) same = std::min(step.dims[axis] - place, end - first);
      }
      row.count = std::min(length, step.dims[axes] - from);
      for (first += same; same > 0; --same) {
        if (only_loops) {
          // Rows of contiguous float32 need nothing else.
          const void* const inputs[] = {row.at[0], row.at[1], row.at[2]};
          step.loop(static_cast<ptrdiff_t>(row.count), inputs, row.at[count - 1], step.attributes);
        } else {
          compute(step, row);
        }
        for (size_t i = 0; i < count; ++i) row.at[i] += next[i];
      }
    }
  }
};

template <bool kSecond>
void run_pieces(void* argument, size_t, size_t first, size_t count) {
  const auto& pieces = *static_cast<const Pieces*>(argument);
  const auto begin = static_cast<int64_t>(first) * pieces.per_task,
             end = begin + static_cast<int64_t>(count) * pieces.per_task;
  pieces.run(begin, std::min(end, pieces.rows * pieces.per_row),
             kSecond ? pieces.second : pieces.step.row);
}

}  // namespace

const Operator* operator_at(size_t number) {
  for (const auto family :
       {elementwise_operators(), row_operators(), move_operators(), quantize_operators(),
        activation_operators(), comparison_operators(), reduce_operators(), index_operators(),
        attention_operators(), cache_operators()}) {
    if (number < family.size()) return &family[number];
    number -= family.size();
  }
  return nullptr;
}

void join_axes(Step* step) {
  if (step->op->keeps_axes) return;
  const size_t rank = step->rank;
  const bool keeps_last = step->op->whole_rows;
  size_t to = 0;  // axes so far
  for (size_t axis = 0; axis < rank; ++axis) {
    const bool is_last = axis + 1 == rank;
    const int64_t size = step->dims[axis];
    if (size == 1 && !(is_last && (keeps_last || to == 0))) continue;
    bool joins = to != 0 && !(is_last && keeps_last);
    for (const Tensor& t : step->tensors)
      joins = joins && t.strides[to - 1] == t.strides[axis] * size;
    if (joins) --to;
    step->dims[to] = joins ? step->dims[to] * size : size;
    // The tensors' strides are the step's own, as are its dims.
    for (const Tensor& t : step->tensors) const_cast<int64_t*>(t.strides)[to] = t.strides[axis];
    ++to;
  }
  step->rank = to;
}

Status run(Context& context, const Step& step) {
  if (step.op->run != nullptr) return step.op->run(context, step);
  run_rows(context, step);
  return {};
}

void run_rows(Context& context, const Step& step, RowFunction second) {
  for (size_t axis = 0; axis < step.rank; ++axis)
    if (step.dims[axis] == 0 && !(step.op->whole_rows && axis + 1 == step.rank)) return;
  Pieces pieces(step, second);
  const int64_t tasks = pieces.tasks();
  const auto threads = static_cast<uint32_t>(std::min<int64_t>(context.threads(), tasks));
  const auto count = static_cast<size_t>(tasks);
  const Phase phases[] = {{run_pieces<false>, count, SIZE_MAX},
                          {run_pieces<true>, count, SIZE_MAX}};
  const bool wakes = pieces.rows * step.dims[step.rank - 1] * step.op->work >= kWorkAfterGap;
  Threads::run(context, {threads, threads - 1, wakes ? threads - 1 : 0},
               {phases, second == nullptr ? size_t{1} : 2}, &pieces);
}

int64_t element_count(const Step& step, size_t tensor) {
  int64_t count = 1;
  for (size_t axis = 0; axis < step.rank; ++axis)
    if (step.tensors[tensor].strides[axis] != 0) count *= step.dims[axis];
  return count;
}

std::byte* element_at(const Step& step, size_t tensor, int64_t number, int64_t* place) {
  const Tensor& t = step.tensors[tensor];
  int64_t at = 0;
  for (size_t axis = step.rank; axis-- > 0;) {
    const int64_t size = t.strides[axis] == 0 ? 1 : step.dims[axis];
    place[axis] = number % size;
    number /= size;
    at += place[axis] * t.strides[axis];
  }
  return t.data + at * static_cast<int64_t>(dtype_bytes(t.type));
}

}  // namespace wgemm::nn
