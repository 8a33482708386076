// Operators that reduce rows to one element, and others along one axis. Floating point is computed
// in float64, in a fixed order.
#include <wasm_simd128.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "nn/chunks.h"
#include "nn/folds.h"
#include "nn/functions.h"

namespace wgemm::nn {
namespace {

// Folds -------------------------------------------------------------------------------------------

v128_t add_f64(v128_t a, v128_t b) { return wasm_f64x2_add(a, b); }
v128_t mul_f64(v128_t a, v128_t b) { return wasm_f64x2_mul(a, b); }
v128_t max_f64(v128_t a, v128_t b) { return wasm_f64x2_max(a, b); }
v128_t min_f64(v128_t a, v128_t b) { return wasm_f64x2_min(a, b); }
v128_t add_abs_f64(v128_t a, v128_t b) { return wasm_f64x2_add(a, wasm_f64x2_abs(b)); }
v128_t add_square_f64(v128_t a, v128_t b) { return wasm_f64x2_add(a, wasm_f64x2_mul(b, b)); }
v128_t add_i64(v128_t a, v128_t b) { return wasm_i64x2_add(a, b); }
v128_t mul_i64(v128_t a, v128_t b) { return wasm_i64x2_mul(a, b); }
v128_t max_i64(v128_t a, v128_t b) { return wasm_v128_bitselect(a, b, wasm_i64x2_gt(a, b)); }
v128_t min_i64(v128_t a, v128_t b) { return wasm_v128_bitselect(b, a, wasm_i64x2_gt(a, b)); }
v128_t add_abs_i64(v128_t a, v128_t b) { return wasm_i64x2_add(a, wasm_i64x2_abs(b)); }
v128_t add_square_i64(v128_t a, v128_t b) { return wasm_i64x2_add(a, wasm_i64x2_mul(b, b)); }
v128_t greater_u64(v128_t a, v128_t b) {
  const v128_t sign = wasm_i64x2_splat(std::numeric_limits<int64_t>::min());
  return wasm_i64x2_gt(wasm_v128_xor(a, sign), wasm_v128_xor(b, sign));
}
v128_t max_u64(v128_t a, v128_t b) { return wasm_v128_bitselect(a, b, greater_u64(a, b)); }
v128_t min_u64(v128_t a, v128_t b) { return wasm_v128_bitselect(b, a, greater_u64(a, b)); }

template <v128_t (*kJoin)(v128_t, v128_t)>
void join(ptrdiff_t count, const void* const* inputs, void* output, const double*) {
  const auto* x = static_cast<const v128_t*>(inputs[0]);
  auto* const parts = static_cast<v128_t*>(output);
  for (; count > 0; count -= kParts, x += 4) {
#pragma clang loop unroll(disable)
    for (int k = 0; k < 4; ++k)
      wasm_v128_store(parts + k, kJoin(wasm_v128_load(parts + k), wasm_v128_load(x + k)));
  }
}

constexpr auto kLeast = uint64_t{1} << 63;  // of int64
constexpr Fold kFolds[] = {
    {join<add_f64>, 0},
    {join<mul_f64>, std::bit_cast<uint64_t>(1.0)},
    {join<max_f64>, std::bit_cast<uint64_t>(-HUGE_VAL)},
    {join<min_f64>, std::bit_cast<uint64_t>(HUGE_VAL)},
    {join<add_abs_f64>, 0},
    {join<add_square_f64>, 0},
    {join<add_i64>, 0},
    {join<mul_i64>, 1},
    {join<max_i64>, kLeast},
    {join<min_i64>, ~kLeast},
    {join<add_abs_i64>, 0},
    {join<add_square_i64>, 0},
};
constexpr Fold kUnsignedFolds[] = {{join<max_u64>, 0}, {join<min_u64>, ~uint64_t{0}}};
constexpr size_t kJoins = std::size(kFolds) / 2;

// A row of x as one element of 64 bits. With `shift`, the elements are e^(x - shift).
uint64_t fold_row(const Step& step, const Row& row, Join kind, bool is_float,
                  const double* shift = nullptr) {
  const DType type = step.tensors[0].type;
  const Fold& fold = fold_of(kind, type, is_float);
  const Fold& rest = kind > Join::kMin ? fold_of(Join::kAdd, type, is_float) : fold;
  alignas(16) uint64_t x[kChunk], parts[kParts];
  std::fill_n(parts, kParts, fold.start);
  const void* const from = x;
  for (int64_t at = 0; at < row.count; at += kChunk) {
    const int64_t count = std::min(kChunk, row.count - at),
                  whole = (count + kParts - 1) / kParts * kParts;
    load_wide(type, place(step, row, 0, at), row.steps[0], count, is_float, x);
    if (shift != nullptr) {
#pragma clang loop vectorize(disable) unroll(disable)
      for (int64_t i = 0; i < count; ++i)
        x[i] = std::bit_cast<uint64_t>(exp_f64(std::bit_cast<double>(x[i]) - *shift));
    }
    std::fill(x + count, x + whole, fold.start);
    fold.join(static_cast<ptrdiff_t>(whole), &from, parts, nullptr);
  }
  for (int64_t width = kParts / 2; width > 0; width /= 2) {
    std::fill_n(x, kParts, rest.start);
    std::copy_n(parts + width, width, x);
    rest.join(kParts, &from, parts, nullptr);
  }
  return parts[0];
}

// Reductions --------------------------------------------------------------------------------------

// What becomes of a fold.
enum class End { kSame, kRoot, kLog, kLogOfPowers, kPlace };

struct Reduction {
  Join join;
  End end;
};
// In the order of kOperators.
constexpr Reduction kReductions[] = {
    {Join::kAdd, End::kSame},       {Join::kMax, End::kSame},    {Join::kMin, End::kSame},
    {Join::kMul, End::kSame},       {Join::kAddAbs, End::kSame}, {Join::kAddSquare, End::kSame},
    {Join::kAddSquare, End::kRoot}, {Join::kAdd, End::kLog},     {Join::kMax, End::kLogOfPowers},
    {Join::kMax, End::kPlace},      {Join::kMin, End::kPlace},
};

// The index of the first or last element of a row that equals `bits`, or is NaN if they are.
int64_t place_of(const Step& step, const Row& row, uint64_t bits, bool is_float, bool is_last) {
  alignas(16) uint64_t x[kChunk];
  const auto value = std::bit_cast<double>(bits);
  int64_t found = 0;
  for (int64_t at = 0; at < row.count; at += kChunk) {
    const int64_t count = std::min(kChunk, row.count - at);
    load_wide(step.tensors[0].type, place(step, row, 0, at), row.steps[0], count, is_float, x);
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t i = 0; i < count; ++i) {
      const auto each = std::bit_cast<double>(x[i]);
      const bool is_same =
          is_float ? each == value || (each != each && value != value) : x[i] == bits;
      if (!is_same) continue;
      found = at + i;
      if (!is_last) return found;
    }
  }
  return found;
}

const Reduction& reduction_of(const Step& step) {
  return kReductions[step.op - reduce_operators().data()];
}

// Roots and logarithms of integers are computed in float64.
bool folds_float(const Step& step, End end) {
  return !is_integer(step.tensors[0].type) || (end != End::kSame && end != End::kPlace);
}

void reduce_row(const Step& step, const Row& row) {
  const auto [kind, end] = reduction_of(step);
  const bool is_float = folds_float(step, end);
  uint64_t bits = fold_row(step, row, kind, is_float);
  bool stores_float = is_float;
  auto value = std::bit_cast<double>(bits);
  if (end == End::kRoot) value = std::sqrt(value);
  if (end == End::kLog) value = log_f64(value);
  if (end == End::kLogOfPowers) {
    // The greatest power is 1, unless the greatest element is not finite.
    const double shift = std::abs(value) < HUGE_VAL ? value : 0;
    value = shift + log_f64(std::bit_cast<double>(fold_row(step, row, Join::kAdd, true, &shift)));
  }
  if (end == End::kPlace) {
    const bool is_last = step.attributes[0] != 0;
    bits = static_cast<uint64_t>(place_of(step, row, bits, is_float, is_last));
    stores_float = false;
  } else if (is_float) {
    bits = std::bit_cast<uint64_t>(value);
  }
  store_wide(step.tensors[1].type, &bits, 1, stores_float, row.at[1], 0);
}

bool choose_reduction(Step* step) {
  step->row = reduce_row;
  const DType to = step->tensors[1].type;
  return to == (reduction_of(*step).end == End::kPlace ? DType::kInt64 : step->tensors[0].type);
}

// CumSum ------------------------------------------------------------------------------------------

// The bits of a sum of two elements.
template <typename T>
T sum_of(T a, T b) {
  using Bits = typename Modular<T>::type;
  return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
}

// Attributes: whether an element is not part of its own sum, and whether the sums begin at the end.
template <typename T>
void cumulate_row(const Step& step, const Row& whole) {
  Row row = whole;
  if (step.attributes[1] != 0) {
    for (size_t i = 0; i < 2; ++i) {
      row.at[i] = place(step, whole, i, row.count - 1);
      row.steps[i] = -row.steps[i];
    }
  }
  const bool is_exclusive = step.attributes[0] != 0;
  alignas(16) T x[kChunk];
  T sum = 0;
  for (int64_t at = 0; at < row.count; at += kChunk) {
    const int64_t count = std::min(kChunk, row.count - at);
    load(step.tensors[0].type, place(step, row, 0, at), row.steps[0], count, x);
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t i = 0; i < count; ++i) {
      const T before = sum;
      sum = sum_of(sum, x[i]);
      x[i] = is_exclusive ? before : sum;
    }
    store(step.tensors[1].type, x, count, place(step, row, 1, at), row.steps[1]);
  }
}

bool choose_cumulation(Step* step) {
  const DType type = step->tensors[0].type;
  step->row = is_integer(type) ? cumulate_row<int64_t> : cumulate_row<double>;
  return type == step->tensors[1].type;
}

// TopK --------------------------------------------------------------------------------------------

// A number that is greater for greater elements, of which NaN is the greatest.
uint64_t rank_of(uint64_t bits, DType type) {
  if (is_integer(type)) return type == DType::kUInt64 ? bits : bits ^ kLeast;
  const double value = std::bit_cast<double>(bits) + 0.0;  // -0 is 0
  if (value != value) return ~uint64_t{0};
  bits = std::bit_cast<uint64_t>(value);
  return bits >= kLeast ? ~bits : bits | kLeast;
}

// The best elements of a row in their order, and then their indices. Attributes: how many, the
// stride of the results, and whether the least ones are best. Of equal elements, the first is best.
void top_row(const Step& step, const Row& row) {
  const DType type = step.tensors[0].type;
  const auto k = static_cast<ptrdiff_t>(step.attributes[0]),
             stride = static_cast<ptrdiff_t>(step.attributes[1]);
  if (k == 0) return;
  const uint64_t flip = step.attributes[2] != 0 ? ~uint64_t{0} : 0;
  auto* const indices = reinterpret_cast<int64_t*>(row.at[2]);
  const auto read = [&](int64_t at, int64_t count, uint64_t* to) {
    load_wide(type, place(step, row, 0, at), row.steps[0], count, !is_integer(type), to);
    for (int64_t i = 0; i < count; ++i) to[i] = rank_of(to[i], type) ^ flip;
  };
  const auto rank_at = [&](int64_t index) {
    alignas(16) uint64_t rank;
    read(index, 1, &rank);
    return rank;
  };
  const auto is_worse = [&](int64_t a, int64_t b) {
    const uint64_t first = rank_at(a), second = rank_at(b);
    return first < second || (first == second && a > b);
  };
  // The indices are a heap of the best elements so far. Its root is the worst. Puts an index in the
  // place of a node, or below it.
  const auto sift = [&](ptrdiff_t node, ptrdiff_t size, int64_t index) {
    for (;;) {
      ptrdiff_t child = 2 * node + 1;
      if (child >= size) break;
      if (child + 1 < size && is_worse(indices[(child + 1) * stride], indices[child * stride]))
        ++child;
      if (!is_worse(indices[child * stride], index)) break;
      indices[node * stride] = indices[child * stride];
      node = child;
    }
    indices[node * stride] = index;
  };
  for (ptrdiff_t i = 0; i < k; ++i) indices[i * stride] = i;
  for (ptrdiff_t node = k / 2; node-- > 0;) sift(node, k, indices[node * stride]);
  uint64_t worst = rank_at(indices[0]);
  alignas(16) uint64_t ranks[kChunk];
  for (int64_t at = k; at < row.count; at += kChunk) {
    const int64_t count = std::min(kChunk, row.count - at);
    read(at, count, ranks);
    for (int64_t i = 0; i < count; ++i) {
      if (ranks[i] <= worst) continue;
      sift(0, k, at + i);
      worst = rank_at(indices[0]);
    }
  }
  for (ptrdiff_t last = k; --last > 0;) {
    const int64_t index = indices[last * stride];
    indices[last * stride] = indices[0];
    sift(0, last, index);
  }
  const size_t bytes = dtype_bytes(type);
  for (ptrdiff_t i = 0; i < k; ++i)
    std::memcpy(row.at[1] + i * stride * static_cast<ptrdiff_t>(bytes),
                place(step, row, 0, indices[i * stride]), bytes);
}

bool choose_top(Step* step) {
  step->row = top_row;
  return step->tensors[0].type == step->tensors[1].type && step->tensors[2].type == DType::kInt64;
}

constexpr Operator kOperators[] = {
    {"ReduceSum", 1, 1, 0, true, 2, choose_reduction},
    {"ReduceMax", 1, 1, 0, true, 2, choose_reduction},
    {"ReduceMin", 1, 1, 0, true, 2, choose_reduction},
    {"ReduceProd", 1, 1, 0, true, 2, choose_reduction},
    {"ReduceL1", 1, 1, 0, true, 2, choose_reduction},
    {"ReduceSumSquare", 1, 1, 0, true, 2, choose_reduction},
    {"ReduceL2", 1, 1, 0, true, 2, choose_reduction},
    {"ReduceLogSum", 1, 1, 0, true, 2, choose_reduction},
    {"ReduceLogSumExp", 1, 1, 0, true, 16, choose_reduction},
    {"ArgMax", 1, 1, 1, true, 4, choose_reduction},  // whether the last of equal elements counts
    {"ArgMin", 1, 1, 1, true, 4, choose_reduction},
    {"CumSum", 1, 1, 2, true, 4, choose_cumulation},
    {"TopK", 1, 2, 3, true, 4, choose_top},
};

}  // namespace

const Fold& fold_of(Join kind, DType type, bool is_float) {
  const auto number = static_cast<size_t>(kind);
  if (type == DType::kUInt64 && !is_float && (kind == Join::kMax || kind == Join::kMin))
    return kUnsignedFolds[number - static_cast<size_t>(Join::kMax)];
  return kFolds[number + (is_float ? 0 : kJoins)];
}

void load_wide(DType type, const std::byte* from, int64_t step, int64_t count, bool is_float,
               void* to) {
  if (!is_float) return load(type, from, step, count, static_cast<int64_t*>(to));
  auto* const y = static_cast<double*>(to);
  int64_t i = 0;
  if (type == DType::kFloat32 && step == 1) {
    const auto* const x = reinterpret_cast<const float*>(from);
    for (; i + 2 <= count; i += 2)
      wasm_v128_store(y + i, wasm_f64x2_promote_low_f32x4(wasm_v128_load64_zero(x + i)));
  }
  load(type, from + i * static_cast<int64_t>(sizeof(float)), step, count - i, y + i);
}

void store_wide(DType type, const void* from, int64_t count, bool is_float, std::byte* to,
                int64_t step) {
  if (is_float) return store(type, static_cast<const double*>(from), count, to, step);
  store(type, static_cast<const int64_t*>(from), count, to, step);
}

std::span<const Operator> reduce_operators() { return kOperators; }

}  // namespace wgemm::nn
