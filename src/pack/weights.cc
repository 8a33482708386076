#include "pack/weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/arena.h"
#include "base/convert.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/types.h"
#include "kernels/kernel.h"
#include "pack/nbits.h"
#include "pack/pack.h"
#include "pack/pack_8bit.h"

namespace wgemm {
namespace {

struct WeightsHeader {
  PackFor op;
  DType dtype;
  int64_t k, n;
  size_t batch_rank;
  size_t bytes = 0;                   // of all the memory
  size_t sums_at = 0, panels_at = 0;  // offsets in the memory, in bytes
  size_t matrix_bytes = 0;            // from matrix to matrix
  Int8Range range{};                  // of 8-bit elements
  bool finite = false;                // of float16: no element is infinite or NaN
  NBits nbits{};
  int64_t batch[kMaxRank] = {};
};

static_assert(sizeof(WeightsHeader) >= 512, "bindings/embind.cc reads 512 bytes");

const WeightsHeader& header_of(const void* memory) {
  return *static_cast<const WeightsHeader*>(memory);
}

WeightsHeader& header_in(const PackedWeights& weights) {
  return *static_cast<WeightsHeader*>(const_cast<void*>(WeightsAccess::memory(weights)));
}

void sum_columns(const int8_t* panels, int64_t k, int64_t n, int32_t* sums) {
  constexpr int64_t kWidth = kI8StorageLayout.width;
  const int64_t pairs = (k + 1) / 2;
  for (int64_t col = 0; col < n; col += kWidth) {
    uint32_t sum[kWidth] = {};
    for (int64_t pair = 0; pair < pairs; ++pair, panels += 2 * kWidth) {
      for (int64_t lane = 0; lane < kWidth; ++lane)
        sum[lane] +=
            static_cast<uint32_t>(panels[2 * lane]) + static_cast<uint32_t>(panels[2 * lane + 1]);
    }
    std::copy_n(sum, std::min(kWidth, n - col), reinterpret_cast<uint32_t*>(sums) + col);
  }
}

// Whether none of `count` float16 elements, a multiple of 8, is infinite or NaN.
bool are_finite(const uint16_t* elements, size_t count) {
  v128_t largest = wasm_i32x4_const(0, 0, 0, 0);
#pragma clang loop unroll(disable)
  for (size_t i = 0; i < count; i += 8)
    largest = wasm_u16x8_max(largest, wasm_i16x8_shl(wasm_v128_load(elements + i), 1));
  return !wasm_v128_any_true(wasm_u16x8_ge(largest, wasm_i16x8_splat(-0x800)));
}

template <typename Half>
void round_to(const float* from, uint16_t* to, int64_t count) {
  const HalfSimd<Half> simd;
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < count; i += 8) wasm_v128_store(to + i, narrow_eight(simd, from + i));
}

// Packs float32 as 16-bit elements: packs blocks of float32 panels, and rounds each while it is in
// L1.
void pack_rounded(const PackSource& s, DType as, std::byte* panels) {
  constexpr int64_t kLanes = 32, kDepth = 64;
  const PanelLayout layout = storage_layout(as), wide = panel_of<float>(layout.width);
  const auto panel = static_cast<int64_t>(panel_bytes(layout, s.depth) / sizeof(uint16_t));
  alignas(16) float block[kLanes * kDepth];
  static_assert(sizeof(block) <= kMachine.l1 / 4);
  for (int64_t lane = 0; lane < s.lanes; lane += kLanes) {
    for (int64_t d = 0; d < s.depth; d += kDepth) {
      const int64_t lanes = std::min(kLanes, s.lanes - lane), depth = std::min(kDepth, s.depth - d);
      const auto* data =
          reinterpret_cast<const float*>(s.data) + lane * s.lane_stride + d * s.depth_stride;
      pack({reinterpret_cast<const std::byte*>(data), s.dtype, lanes, depth, s.lane_stride,
            s.depth_stride},
           wide, block);
      for (int64_t i = 0; i < lanes; i += layout.width) {
        uint16_t* to = reinterpret_cast<uint16_t*>(panels) + (lane + i) / layout.width * panel +
                       d * layout.width;
        round_elements(as, block + i * depth, to, depth * layout.width);
      }
    }
  }
}

// Packs floats as elements of type `as`, without panel headers unless `layout` has them.
void pack_as(const PackSource& s, DType as, const PanelLayout& layout, std::byte* panels) {
  if (as == s.dtype) return pack(s, layout, panels);
  pack_rounded(s, as, panels);
}

// Calls `work` with each matrix of the batch axes from `axis` on.
template <typename Work>
void for_each_matrix(const PackProblem& p, size_t axis, const Operand& b, const Work& work) {
  if (p.matrices == 0) return;
  if (axis == p.batch.size()) return work(b);
  for (int64_t i = 0; i < p.batch[axis]; ++i)
    for_each_matrix(p, axis + 1, b.at(i * p.strides[axis]), work);
}

}  // namespace

PackedWeights::PackedWeights(PackedWeights&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)),
      memory_(std::exchange(other.memory_, nullptr)) {}

PackedWeights& PackedWeights::operator=(PackedWeights&& other) noexcept {
  PackedWeights taken(std::move(other));
  std::swap(context_, taken.context_);
  std::swap(memory_, taken.memory_);
  return *this;
}

PackedWeights::~PackedWeights() {
  if (context_ != nullptr) context_->release(const_cast<void*>(memory_));
}

PackFor PackedWeights::op() const { return header_of(memory_).op; }
std::span<const int64_t> PackedWeights::batch() const {
  return {header_of(memory_).batch, header_of(memory_).batch_rank};
}
DType PackedWeights::dtype() const { return header_of(memory_).dtype; }
BlockFormat PackedWeights::block_format() const { return header_of(memory_).nbits.format; }
int64_t PackedWeights::k() const { return header_of(memory_).k; }
int64_t PackedWeights::n() const { return header_of(memory_).n; }
size_t PackedWeights::bytes() const { return header_of(memory_).bytes; }

void* PackedWeights::detach() {
  context_ = nullptr;
  return const_cast<void*>(std::exchange(memory_, nullptr));
}

PackedWeights PackedWeights::view(const void* memory) {
  PackedWeights weights;
  weights.memory_ = memory;
  return weights;
}

PackedWeights WeightsAccess::own(Context& context, const void* memory) {
  PackedWeights weights = PackedWeights::view(memory);
  weights.context_ = &context;
  return weights;
}

PrepackedB prepacked_of(const PackedWeights& weights) {
  const WeightsHeader& header = header_of(WeightsAccess::memory(weights));
  const auto* memory = static_cast<const std::byte*>(WeightsAccess::memory(weights));
  return {.panels = memory + header.panels_at,
          .dtype = header.dtype,
          .k = header.k,
          .matrix_bytes = header.matrix_bytes,
          .column_sums = reinterpret_cast<const int32_t*>(memory + header.sums_at),
          .n = header.n,
          .low = header.range.low,
          .high = header.range.high,
          .finite = header.finite,
          .nbits = header.nbits};
}

void repack(const PrepackedB& weights, int64_t row, int64_t depth, int64_t col, int64_t cols,
            const PanelLayout& layout, int shift, void* panels) {
  if (weights.nbits) return widen_codes(weights, row, depth, col, cols, layout, panels);
  const PanelLayout from = weights.layout();
  if (compute_type(weights.dtype) == DType::kInt8) {
    if (layout.width == 1) {
      const int64_t lane = col % from.width;
      return widen_column(weights.block(row, col - lane), lane, depth, shift,
                          static_cast<int16_t*>(panels));
    }
    const int64_t count = (cols + from.width - 1) / from.width;
    if (kHasDots && layout.has_quads())
      return join_pairs(weights.block(row, col), weights.panel_stride(), count, depth, shift,
                        panels);
    return widen_panels(weights.block(row, col), weights.panel_stride(), count, depth, layout,
                        panels);
  }
  auto* to = static_cast<std::byte*>(panels);
  if (layout.fill_header != nullptr) {  // panels differ in their headers only
    const auto bytes = static_cast<size_t>(depth * from.width * from.element_bytes);
    for (int64_t c = 0; c < cols; c += from.width, to += panel_bytes(layout, depth)) {
      std::memcpy(to + layout.header * layout.element_bytes, weights.block(row, col + c), bytes);
      layout.fill_header(to, depth);
    }
    return;
  }
  for (int64_t c = 0; c < cols; c += from.width) {
    const int64_t lanes = std::min<int64_t>(from.width, cols - c);
    pack({weights.block(row, col + c), weights.dtype, lanes, depth, 1, from.width}, layout, to);
    to += packed_bytes(layout, from.width, depth);
  }
}

void round_elements(DType as, const float* from, uint16_t* to, int64_t count) {
  (as == DType::kFloat16 ? round_to<Float16> : round_to<BFloat16>)(from, to, count);
}

int64_t stored_bytes(const PackProblem& p) {
  if (p.nbits.format) return p.nbits.format.packed_bytes(p.n, p.k);
  const PanelLayout layout = storage_layout(p.as);
  const int64_t panels = (p.n + layout.width - 1) / layout.width,
                steps = (p.k + layout.kr - 1) / layout.kr;
  return panels * (layout.header + steps * layout.kr * layout.width) * layout.element_bytes;
}

Status WeightsAccess::allocate(Context& context, const char* op, const PackProblem& p,
                               PackedWeights* weights) {
  const bool has_sums = compute_type(p.as) == DType::kInt8 && p.k != 0;
  const int64_t sums_at = Arena::round_up(int64_t{sizeof(WeightsHeader)}),
                panels_at =
                    sums_at +
                    (has_sums ? Arena::round_up(p.matrices * p.n * int64_t{sizeof(int32_t)}) : 0),
                matrix_bytes = Arena::round_up(stored_bytes(p)),
                bytes = panels_at + matrix_bytes * p.matrices;
  const bool fits = std::in_range<std::ptrdiff_t>(bytes);
  WeightsHeader header{.op = p.op,
                       .dtype = p.as,
                       .k = p.k,
                       .n = p.n,
                       .batch_rank = p.batch.size(),
                       .bytes = static_cast<size_t>(bytes),
                       .sums_at = static_cast<size_t>(sums_at),
                       .panels_at = static_cast<size_t>(panels_at),
                       .matrix_bytes = static_cast<size_t>(matrix_bytes),
                       .nbits = p.nbits.format};
  std::copy(p.batch.begin(), p.batch.end(), header.batch);
  void* memory = fits ? context.allocate(header.bytes) : nullptr;
  if (memory == nullptr) {
    return error(Code::kOutOfMemory, op, "",
                 {"no memory for weights of % x % x % elements; % bytes are in use", p.matrices,
                  p.k, p.n, static_cast<int64_t>(context.bytes_in_use())});
  }
  std::memcpy(memory, &header, sizeof(header));
  *weights = own(context, memory);
  return {};
}

void WeightsAccess::finish(const PackedWeights& weights) {
  const PrepackedB stored = prepacked_of(weights);
  WeightsHeader& header = header_in(weights);
  if (stored.nbits) return;
  if (stored.dtype == DType::kFloat16 && stored.matrix_bytes != 0) {
    const size_t count = packed_bytes(stored.layout(), header.n, header.k) / sizeof(uint16_t);
    header.finite = true;
    for (size_t at = header.panels_at; header.finite && at < header.bytes;
         at += stored.matrix_bytes) {
      header.finite = are_finite(
          reinterpret_cast<const uint16_t*>(static_cast<const std::byte*>(weights.memory_) + at),
          count);
    }
  }
  if (compute_type(stored.dtype) != DType::kInt8 || stored.matrix_bytes == 0) return;
  bool is_first = true;
  PrepackedB matrix = stored;
  for (size_t at = header.panels_at; at < header.bytes; at += stored.matrix_bytes) {
    const auto* panels = reinterpret_cast<const int8_t*>(matrix.panels);
    sum_columns(panels, stored.k, header.n, const_cast<int32_t*>(matrix.column_sums));
    const auto [low, high] = range_of_panels(panels, stored.k, header.n);
    if (is_first || low < header.range.low) header.range.low = low;
    if (is_first || high > header.range.high) header.range.high = high;
    is_first = false;
    matrix = matrix.at(1);
  }
}

Status pack_weights(Context& context, const PackProblem& p, PackedWeights* weights) {
  PackedWeights made;
  WGEMM_RETURN_IF_ERROR(WeightsAccess::allocate(context, "pack", p, &made));
  std::byte* panels = WeightsAccess::panels(made);
  const size_t matrix_bytes = prepacked_of(made).matrix_bytes;
  if (p.nbits.format) {
    pack_codes(p.nbits, 0, p.k, 0, p.n, panels);
  } else if (matrix_bytes != 0) {  // to visit each of many empty matrices would take too long
    for_each_matrix(p, 0, p.b, [&](const Operand& b) {
      const ConstBlock source = b.block(0, 0, p.k, p.n);
      const PackSource from{
          source.data,         b.dtype, p.n, p.k, source.col_stride, source.row_stride,
          int8_offset(b.dtype)};
      pack_as(from, p.as, storage_layout(p.as), panels);
      panels += matrix_bytes;
    });
  }
  WeightsAccess::finish(made);
  *weights = std::move(made);
  return {};
}

Status begin_weights(Context& context, const PackProblem& p, PackedWeights* weights) {
  WGEMM_RETURN_IF_ERROR(WeightsAccess::allocate(context, "pack", p, weights));
  std::memset(WeightsAccess::panels(*weights), 0, prepacked_of(*weights).matrix_bytes);
  header_in(*weights).finite = p.as == DType::kFloat16 && !p.nbits.format;
  return {};
}

void pack_part(const PackProblem& part, int64_t row, int64_t col, PackedWeights* weights) {
  const PrepackedB stored = prepacked_of(*weights);
  PanelLayout layout = stored.layout();
  layout.header = 0;
  const int64_t width = layout.width;
  for (int64_t c = 0; c < part.n; c += width) {
    const int64_t lanes = std::min(width, part.n - c);
    const ConstBlock from = part.b.block(0, c, part.k, lanes);
    auto* const panel = const_cast<std::byte*>(stored.block(row, col + c));
    pack_as({from.data, part.b.dtype, lanes, part.k, from.col_stride, from.row_stride},
            stored.dtype, layout, panel);
    if (stored.finite &&
        !are_finite(reinterpret_cast<const uint16_t*>(panel), static_cast<size_t>(part.k * width)))
      header_in(*weights).finite = false;
  }
}

}  // namespace wgemm
