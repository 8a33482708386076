// Attention. A task computes a block of queries of one head, for one block of keys after the other:
// scores, their powers, and the product of powers and values. So scores are never written whole.
// The products are products of the core: see execute/.
//
// Dao et al., "FlashAttention" (2022), has the blocks. Milakov and Gimelshein, "Online normalizer
// calculation for softmax" (2018), has the sums.
#include <wasm_simd128.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/arena.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/types.h"
#include "execute/block_product.h"
#include "nn/chunks.h"
#include "nn/functions.h"
#include "nn/operator.h"
#include "plan/partition.h"
#include "problem/problem.h"

namespace wgemm::nn {
namespace {

// The axes: the batch, heads of keys, queries per such head, queries, keys, and the elements of a
// key and of a value. So a tensor has strides of 0 along the axes that it lacks.
enum Axis : uint8_t { kBatch, kHead, kGroup, kQuery, kKey, kDepth, kWidth, kAxes };
enum Place : uint8_t { kQ, kK, kV, kMask, kLengths, kY, kScores };
enum Attribute : uint8_t {
  kScale,
  kSoftcap,  // scores become softcap * tanh(score / softcap); 0: they stay
  kMasked,   // whether the mask is added
  // Query l of a batch sees the keys before first + slope * l + length of the batch, and of these
  // the last `window`.
  kFirst,
  kSlope,
  kWindow,
  kMode,  // which scores are an output: see Stage
  kAttributes
};
enum Stage : uint8_t { kProducts, kCapped, kBiased, kPowers };

// Scores of a block: 64 KiB, so that they stay in L2.
constexpr int64_t kBlockRows = 128, kBlockScores = 1 << 14, kBlockKeysMax = 1024;

// With at most this many rows, products wait for keys and values from memory.
constexpr int64_t kWaitingRows = 8;

// Elements of scratch of a thread, at most: a gigabyte.
constexpr double kMostElements = 1 << 28;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Scores are multiplied by log2(e), so that their powers are powers of 2.
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr auto kNatural = static_cast<float>(1 / kLog2E);

// Replaces elements, four at a time. -infinity follows the last ones. `f` takes and returns four.
template <typename F>
[[gnu::always_inline]] inline void map(float* x, int64_t count, const F& f) {
  const float* const end = x + static_cast<ptrdiff_t>(count);
  for (; end - x >= 8; x += 8) {
    // Two at a time, so that they need not wait for each other.
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; i += 4) wasm_v128_store(x + i, f(wasm_v128_load(x + i)));
  }
  for (; x < end; x += 4) {
    float last[] = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
    const ptrdiff_t left = std::min<ptrdiff_t>(end - x, 4);
    std::copy_n(x, left, last);
    wasm_v128_store(last, f(wasm_v128_load(last)));
    std::copy_n(last, left, x);
  }
}

void multiply(const float* x, float factor, int64_t elements, float* y) {
  const auto count = static_cast<ptrdiff_t>(elements);
  const v128_t factors = wasm_f32x4_splat(factor);
  ptrdiff_t i = 0;
  for (; i + 4 <= count; i += 4)
    wasm_v128_store(y + i, wasm_f32x4_mul(wasm_v128_load(x + i), factors));
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < count; ++i) y[i] = x[i] * factor;
}

// Returns the greatest of `least` and the elements. Skips NaN.
float greatest(const float* x, int64_t elements, float least) {
  const auto count = static_cast<ptrdiff_t>(elements);
  v128_t most[4];
  for (v128_t& each : most) each = wasm_f32x4_splat(least);
  ptrdiff_t i = 0;
  for (; i + 16 <= count; i += 16) {
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; ++k) most[k] = wasm_f32x4_pmax(most[k], wasm_v128_load(x + i + 4 * k));
  }
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < count; ++i) most[0] = wasm_f32x4_pmax(most[0], wasm_v128_load32_splat(x + i));
  float lanes[4];
  wasm_v128_store(
      lanes, wasm_f32x4_pmax(wasm_f32x4_pmax(most[0], most[1]), wasm_f32x4_pmax(most[2], most[3])));
  return std::max({lanes[0], lanes[1], lanes[2], lanes[3]});
}

// Replaces x by 2^(x - most), and returns the sum.
float write_powers(float* x, int64_t count, float most) {
  // In locals, since a store in the loop might change what is in memory.
  const Constants& c = kConstants;
  const v128_t mosts = wasm_f32x4_splat(most), least = c.least_exponent, shift = c.shift_127,
               one = c.one;
  v128_t terms[std::size(c.power_terms)];
  std::copy(std::begin(c.power_terms), std::end(c.power_terms), terms);
  v128_t sum = {};
  map(x, count, [&](v128_t v) {
    const v128_t d = wasm_f32x4_pmax(wasm_f32x4_sub(v, mosts), least), n = wasm_f32x4_add(d, shift),
                 f = wasm_f32x4_sub(d, wasm_f32x4_sub(n, shift));
    v128_t p = terms[0];
#pragma clang loop unroll(full)
    for (size_t i = 1; i < std::size(terms); ++i)
      p = wasm_f32x4_add(wasm_f32x4_mul(p, f), terms[i]);
    // The low bits of n are an exponent of float32. The least one makes 0.
    const v128_t power =
        wasm_f32x4_mul(wasm_f32x4_add(wasm_f32x4_mul(p, f), one), wasm_i32x4_shl(n, 23));
    sum = wasm_f32x4_add(sum, power);
    return power;
  });
  float lanes[4];
  wasm_v128_store(lanes, sum);
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

void cap(float* x, int64_t count, float softcap) {
  const v128_t factor = wasm_f32x4_splat(softcap);
  map(x, count,
      [&](v128_t v) { return wasm_f32x4_mul(tanh_f32x4(wasm_f32x4_div(v, factor)), factor); });
}

void add(float* x, const float* y, int64_t elements) {
  const auto count = static_cast<ptrdiff_t>(elements);
  const auto by = static_cast<float>(kLog2E);
  // A finite element stays finite, such as the least number, by which masks hide keys: a query
  // whose keys are all hidden like this takes the mean of their values.
  const float lowest = std::numeric_limits<float>::lowest();
  const v128_t factor = wasm_f32x4_splat(by), least = wasm_f32x4_splat(lowest),
               hidden = wasm_f32x4_splat(-kInfinity);
  ptrdiff_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const v128_t v = wasm_v128_load(y + i),
                 scaled = wasm_f32x4_pmax(wasm_f32x4_mul(v, factor), least);
    wasm_v128_store(x + i,
                    wasm_f32x4_add(wasm_v128_load(x + i),
                                   wasm_v128_bitselect(v, scaled, wasm_f32x4_eq(v, hidden))));
  }
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < count; ++i) x[i] += y[i] == -kInfinity ? y[i] : std::max(y[i] * by, lowest);
}

// A product of float32 queries or powers.
struct Product : BlockProduct {
  // Plans a product whose B has these strides along K and N.
  void make(const Context& context, int64_t m, int64_t n, int64_t k, DType type, int64_t k_stride,
            int64_t n_stride) {
    problem.m = m;
    problem.n = n;
    problem.k = k;
    problem.b.plain = {nullptr, type, k_stride, n_stride};
    problem.a = {nullptr, DType::kFloat32, k, 1};
    plan_sums(context);
  }
  // Writes or adds the product of `rows` rows to `sums`.
  void run(const float* a, const std::byte* b, int64_t rows, float* sums, bool begins,
           std::byte* scratch) {
    problem.a.base = reinterpret_cast<const std::byte*>(a);
    problem.b.plain.base = b;
    add_sums(rows, problem.n, reinterpret_cast<std::byte*>(sums), begins, scratch);
  }
};

// Elements that hold any packed operands of a product. A double, since sizes may be up to 2^32.
double packed_elements(int64_t m, int64_t n, int64_t k) {
  constexpr double kPadding = 32;  // at least the width of each micro-panel and its header
  return (static_cast<double>(m) + static_cast<double>(n) + 2 * kPadding) *
         (static_cast<double>(k) + kPadding);
}

struct Attention {
  const Step& step;
  const Context planner;   // for plans of one thread
  int64_t rows, per_head;  // rows of a block; blocks of a head
  int64_t keys;            // of a block
  // Of a thread: the scratch of a product, and all scratch. 0: more than memory has.
  size_t product_bytes = 0, thread_bytes = 0;
  std::byte* scratch = nullptr;

  Attention(const Context& context, const Step& s) : step(s), planner(0, context.determinism()) {
    const int64_t all = size(kGroup) * size(kQuery), total = size(kKey);
    rows = std::min(all, kBlockRows);
    const int64_t most = std::min(kBlockScores / rows / 8 * 8, kBlockKeysMax);
    if (has_scores()) {
      keys = std::max<int64_t>(total, 1);  // the sum of a row is known after its only block
      rows = std::clamp<int64_t>(kBlockScores / keys, 1, rows);
    } else {
      const int64_t blocks = std::max<int64_t>((total + most - 1) / most, 1);
      keys = std::max<int64_t>(((total + blocks - 1) / blocks + 7) / 8, 1) * 8;
    }
    per_head = (all + rows - 1) / rows;
    const double packed = std::max(packed_elements(rows, keys, size(kDepth)),
                                   packed_elements(rows, size(kWidth), keys)),
                 own = static_cast<double>(rows) *
                           static_cast<double>(size(kDepth) + size(kWidth) + keys + 2) +
                       static_cast<double>(std::max(keys, size(kDepth)));
    if (packed + own > kMostElements) return;
    product_bytes = static_cast<size_t>(packed) * sizeof(float);
    thread_bytes = Arena::round_up(product_bytes + static_cast<size_t>(own) * sizeof(float));
  }

  int64_t size(Axis axis) const { return step.dims[axis]; }
  bool has_scores() const { return step.tensors.size() > kScores; }
  bool hides_keys() const {
    return std::min(step.attributes[kFirst], step.attributes[kWindow]) < kInfinity;
  }
  size_t tasks() const { return static_cast<size_t>(size(kBatch) * size(kHead) * per_head); }
};

// A block of queries.
class Block {
 public:
  Block(const Attention& attention, size_t thread)
      : a_(attention), step_(attention.step), scratch_(a_.scratch + thread * a_.thread_bytes) {
    auto* next = reinterpret_cast<float*>(scratch_ + a_.product_bytes);
    const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
    queries_ = take(a_.rows * a_.size(kDepth));
    sums_ = take(a_.rows * a_.size(kWidth));
    scores_ = take(a_.rows * a_.keys);
    most_ = take(a_.rows);
    total_ = take(a_.rows);
    buffer_ = next;
  }

  void run(size_t task) {
    const auto index = static_cast<int64_t>(task);
    head_ = index / a_.per_head % a_.size(kHead);
    batch_ = index / a_.per_head / a_.size(kHead);
    first_ = index % a_.per_head * a_.rows;
    rows_ = std::min(a_.rows, a_.size(kGroup) * a_.size(kQuery) - first_);
    load(type(kLengths), at(kLengths, 0, 0), 0, 1, &length_);
    const int64_t depth = a_.size(kDepth), width = a_.size(kWidth);
    for (int64_t row = 0; row < rows_; ++row) {
      const float* const q = read(kQ, row, 0, kDepth, depth);
      multiply(q, static_cast<float>(attribute(kScale) * kLog2E), depth, queries_ + row * depth);
    }
    std::fill_n(sums_, rows_ * width, 0.0F);
    std::fill_n(most_, rows_, -kInfinity);
    std::fill_n(total_, rows_, 0.0F);
    const int64_t end = a_.has_scores() ? a_.size(kKey) : end_of(rows_ - 1);
    for (int64_t key = begin_of(0) / a_.keys * a_.keys; key < end; key += a_.keys)
      add_keys(key, std::min(a_.keys, end - key));
    for (int64_t row = 0; row < rows_; ++row) {
      float* const sums = sums_ + row * width;
      // A query that sees no key has a result of 0.
      const float factor = total_[row] == 0 ? 0 : 1 / total_[row];
      const bool direct = stride(kY, kWidth) == 1 && type(kY) == DType::kFloat32;
      std::byte* const y = at(kY, row, 0);
      multiply(sums, factor, width, direct ? reinterpret_cast<float*>(y) : sums);
      if (!direct) store(type(kY), sums, width, y, stride(kY, kWidth));
    }
  }

 private:
  double attribute(Attribute which) const { return step_.attributes[which]; }
  DType type(Place tensor) const { return step_.tensors[tensor].type; }
  int64_t stride(Place tensor, Axis axis) const { return step_.tensors[tensor].strides[axis]; }

  // The elements of a tensor for a row of the block, from a key on.
  std::byte* at(Place tensor, int64_t row, int64_t key) const {
    const int64_t query = query_of(row), group = first_ + row - query * a_.size(kGroup);
    const int64_t element = batch_ * stride(tensor, kBatch) + head_ * stride(tensor, kHead) +
                            group * stride(tensor, kGroup) + query * stride(tensor, kQuery) +
                            key * stride(tensor, kKey);
    return step_.tensors[tensor].data + element * static_cast<int64_t>(dtype_bytes(type(tensor)));
  }

  // Elements of a tensor along an axis, as float32. They may be in the buffer.
  const float* read(Place tensor, int64_t row, int64_t key, Axis axis, int64_t count) {
    const std::byte* const from = at(tensor, row, key);
    const int64_t step = stride(tensor, axis);
    if (step == 1 && type(tensor) == DType::kFloat32) return reinterpret_cast<const float*>(from);
    load(type(tensor), from, step, count, buffer_);
    return buffer_;
  }

  // A division takes long.
  int64_t query_of(int64_t row) const {
    const int64_t groups = a_.size(kGroup);
    return groups == 1 ? first_ + row : (first_ + row) / groups;
  }

  // The keys that a row sees end here.
  int64_t end_of(int64_t row) const {
    const auto query = static_cast<double>(query_of(row));
    const double end = attribute(kFirst) + attribute(kSlope) * query + static_cast<double>(length_);
    return static_cast<int64_t>(std::clamp(end, 0.0, static_cast<double>(a_.size(kKey))));
  }
  int64_t begin_of(int64_t row) const {
    const double begin = static_cast<double>(end_of(row)) - attribute(kWindow);
    return begin > 0 ? static_cast<int64_t>(begin) : 0;
  }

  // Prefetches a block of keys or values, if its product would wait for memory. It is one stream,
  // which the hardware prefetcher follows farther than the streams of the kernels.
  void prefetch(Place tensor, int64_t key, int64_t count, Axis axis) const {
    if (rows_ > kWaitingRows || stride(tensor, axis) != 1) return;
    constexpr int64_t kLine = 64;
    const auto bytes = static_cast<int64_t>(dtype_bytes(type(tensor)));
    const int64_t length = a_.size(axis) * bytes, next = stride(tensor, kKey) * bytes;
    const volatile std::byte* row = at(tensor, 0, key);  // volatile: else the loads are removed
    for (; count > 0; --count, row += next) {
#pragma clang loop unroll(disable)
      for (int64_t i = 0; i < length; i += kLine) static_cast<void>(row[i]);
    }
  }

  // Adds the values of `count` keys from `key` on.
  void add_keys(int64_t key, int64_t count) {
    const int64_t width = a_.size(kWidth), depth = a_.size(kDepth);
    // The plans depend on the sizes of the block alone, so that threads do not change results.
    if (planned_rows_ != rows_ || planned_keys_ != count) {
      planned_rows_ = rows_;
      planned_keys_ = count;
      qk_.make(a_.planner, rows_, count, depth, type(kK), stride(kK, kDepth), stride(kK, kKey));
      pv_.make(a_.planner, rows_, width, count, type(kV), stride(kV, kKey), stride(kV, kWidth));
      if (std::max(qk_.plan.thread_bytes, pv_.plan.thread_bytes) > a_.product_bytes)
        __builtin_trap();
    }
    // The rows that see some of the keys.
    int64_t row = 0, end = rows_;
    if (!a_.has_scores() && a_.hides_keys()) {
      while (row < end && end_of(row) <= key) ++row;
      while (end > row && begin_of(end - 1) >= key + count) --end;
    }
    if (row == end) return;
    float* const scores = scores_ + row * count;
    if (depth == 0) std::fill_n(scores, (end - row) * count, 0.0F);
    prefetch(kK, key, count, kDepth);
    qk_.run(queries_ + row * depth, at(kK, 0, key), end - row, scores, true, scratch_);
    for (int64_t i = row; i < end; ++i) write_powers_of(i, key, count, scores_ + i * count);
    prefetch(kV, key, count, kWidth);
    pv_.run(scores, at(kV, 0, key), end - row, sums_ + row * width, false, scratch_);
  }

  // Replaces the scores of a row by their powers. If a score is greater than all scores before, the
  // sums before are multiplied.
  void write_powers_of(int64_t row, int64_t key, int64_t count, float* scores) {
    write(kProducts, row, count, scores, kNatural);
    const auto softcap = static_cast<float>(attribute(kSoftcap) * kLog2E);
    if (softcap > 0) cap(scores, count, softcap);
    write(kCapped, row, count, scores, kNatural);
    if (attribute(kMasked) != 0) add(scores, read(kMask, row, key, kKey, count), count);
    if (a_.hides_keys()) {
      const int64_t begin = std::clamp<int64_t>(begin_of(row) - key, 0, count),
                    end = std::clamp<int64_t>(end_of(row) - key, 0, count);
      std::fill_n(scores, begin, -kInfinity);
      std::fill(scores + end, scores + count, -kInfinity);
    }
    write(kBiased, row, count, scores, kNatural);
    const float before = most_[row], most = greatest(scores, count, before);
    most_[row] = most;
    if (most > before && key > 0) {
      float factor[4];
      wasm_v128_store(factor, exp_f32x4(wasm_f32x4_splat((before - most) * kNatural)));
      total_[row] *= factor[0];
      float* const sums = sums_ + row * a_.size(kWidth);
      multiply(sums, factor[0], a_.size(kWidth), sums);
    }
    total_[row] += write_powers(scores, count, most == -kInfinity ? 0 : most);
    write(kPowers, row, count, scores, total_[row] == 0 ? 0 : 1 / total_[row]);
  }

  // Writes the scores of a row if the step has them as an output, multiplied.
  void write(Stage stage, int64_t row, int64_t count, const float* scores, float factor) {
    if (!a_.has_scores() || static_cast<Stage>(attribute(kMode)) != stage) return;
    multiply(scores, factor, count, buffer_);
    store(type(kScores), buffer_, count, at(kScores, row, 0), stride(kScores, kKey));
  }

  const Attention& a_;
  const Step& step_;
  std::byte* const scratch_;
  float *queries_, *sums_, *scores_, *most_, *total_, *buffer_;
  int64_t batch_, head_, first_, rows_, length_;
  int64_t planned_rows_ = -1, planned_keys_ = -1;
  Product qk_, pv_;
};

void run_blocks(void* argument, size_t thread, size_t first, size_t count) {
  Block block(*static_cast<const Attention*>(argument), thread);
  for (size_t i = first; i < first + count; ++i) block.run(i);
}

Status run_attention(Context& context, const Step& step) {
  for (const Axis axis : {kBatch, kHead, kGroup, kQuery})
    if (step.dims[axis] == 0) return {};
  Attention attention(context, step);
  double work = static_cast<double>(step.dims[kDepth] + step.dims[kWidth]);
  for (const Axis axis : {kBatch, kHead, kGroup, kQuery, kKey})
    work *= static_cast<double>(step.dims[axis]);
  // Threads share a gigabyte.
  const double thread_elements = static_cast<double>(attention.thread_bytes) / sizeof(float) + 1,
               most = std::min({static_cast<double>(context.threads()),
                                static_cast<double>(attention.tasks()),
                                std::max(kMostElements / thread_elements, 1.0)});
  const JobThreads threads = threads_of_work(work, most);
  Arena arena(context, attention.thread_bytes * threads.most);
  if (attention.thread_bytes == 0 || !arena.ok())
    return error(Code::kOutOfMemory, "run", "", {"no memory for the scratch of attention"});
  attention.scratch = arena.data();
  const Phase phase = {run_blocks, attention.tasks(), SIZE_MAX};
  Threads::run(context, threads, {&phase, 1}, &attention);
  return {};
}

bool choose_attention(Step* step) {
  const auto& t = step->tensors;
  const DType type = t[kQ].type, lengths = t[kLengths].type;
  return fits_float(type) && t[kK].type == type && t[kV].type == type &&
         fits_float(t[kMask].type) && (lengths == DType::kInt32 || lengths == DType::kInt64) &&
         t[kY].type == type && t.back().type == type;
}

constexpr Operator kOperators[] = {
    // q, k, v, mask, lengths, y: see Axis and Attribute.
    {"Attention", 5, 1, kAttributes, false, 16, choose_attention, run_attention, true},
    // The last output is the scores.
    {"AttentionScores", 5, 2, kAttributes, false, 16, choose_attention, run_attention, true},
};

}  // namespace

std::span<const Operator> attention_operators() { return kOperators; }

}  // namespace wgemm::nn
