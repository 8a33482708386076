#include "weights.h"

#include <algorithm>
#include <utility>

#include "arena.h"
#include "error.h"
#include "ops/ops.h"
#include "pack.h"

namespace wgemm {
namespace {

struct Header {
  DType dtype;
  int64_t k, n;
  size_t bytes;  // of the whole block
};

const Header& header_of(const void* block) { return *static_cast<const Header*>(block); }

constexpr size_t kSumsAt = Arena::round_up(sizeof(Header));
constexpr size_t panels_at(int64_t n) { return kSumsAt + Arena::round_up(static_cast<size_t>(n) * sizeof(int32_t)); }

void sum_columns(const int8_t* panels, int64_t k, int64_t n, int32_t* sums) {
  constexpr int64_t kWidth = kStorageLayout.width;
  const int64_t pairs = (k + 1) / 2;
  for (int64_t col = 0; col < n; col += kWidth) {
    uint32_t sum[kWidth] = {};
    for (int64_t pair = 0; pair < pairs; ++pair, panels += 2 * kWidth) {
      for (int64_t lane = 0; lane < kWidth; ++lane)
        sum[lane] += static_cast<uint32_t>(panels[2 * lane]) + static_cast<uint32_t>(panels[2 * lane + 1]);
    }
    std::copy_n(sum, std::min(kWidth, n - col), reinterpret_cast<uint32_t*>(sums) + col);
  }
}

}  // namespace

PackedWeights::PackedWeights(PackedWeights&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)), block_(std::exchange(other.block_, nullptr)) {}

PackedWeights& PackedWeights::operator=(PackedWeights&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(block_, other.block_);
  return *this;
}

PackedWeights::~PackedWeights() {
  if (context_ != nullptr) context_->release(const_cast<void*>(block_));
}

DType PackedWeights::dtype() const { return header_of(block_).dtype; }
int64_t PackedWeights::k() const { return header_of(block_).k; }
int64_t PackedWeights::n() const { return header_of(block_).n; }
size_t PackedWeights::bytes() const { return header_of(block_).bytes; }

void* PackedWeights::detach() {
  context_ = nullptr;
  return const_cast<void*>(std::exchange(block_, nullptr));
}

PackedWeights PackedWeights::view(const void* block) {
  PackedWeights weights;
  weights.block_ = block;
  return weights;
}

PackedWeights WeightsAccess::own(Context& context, const void* block) {
  PackedWeights weights = PackedWeights::view(block);
  weights.context_ = &context;
  return weights;
}

StoredOperand WeightsAccess::operand(const PackedWeights& weights) {
  return {static_cast<const std::byte*>(weights.block_) + panels_at(weights.n()), weights.k()};
}

const int32_t* WeightsAccess::column_sums(const PackedWeights& weights) {
  return reinterpret_cast<const int32_t*>(static_cast<const std::byte*>(weights.block_) + kSumsAt);
}

Status pack(Context& context, const PackArgs& args, PackedWeights* weights) {
  Operand b;
  int64_t k = 0, n = 0;
  if (Status s = pack_operand(args, &b, &k, &n); !s.ok()) return s;
  // Whether it fits in memory at all, before sizes are computed that might not fit in a size_t.
  const double elements = static_cast<double>(k + kStorageLayout.kr) * static_cast<double>(n + kStorageLayout.width);
  const bool fits = elements + sizeof(int32_t) * static_cast<double>(n) + 1024 < static_cast<double>(PTRDIFF_MAX);
  const size_t bytes = fits ? panels_at(n) + packed_bytes(kStorageLayout, n, k) : 0;
  void* block = fits ? context.allocate(bytes) : nullptr;
  if (block == nullptr) {
    return error(
        Code::kOutOfMemory, "pack", "",
        {"no memory for weights of ", k, " x ", n, " elements; ", static_cast<int64_t>(context.bytes_in_use()), " bytes are in use"});
  }
  *static_cast<Header*>(block) = {b.dtype, k, n, bytes};
  auto* panels = static_cast<std::byte*>(block) + panels_at(n);
  const ConstBlock source = b.block(0, 0, k, n);
  pack({.data = source.data,
        .dtype = b.dtype,
        .lanes = n,
        .depth = k,
        .lane_stride = source.col_stride,
        .depth_stride = source.row_stride,
        .zero_point = int8_offset(b.dtype)},
       kStorageLayout, panels);
  sum_columns(reinterpret_cast<const int8_t*>(panels), k, n, reinterpret_cast<int32_t*>(static_cast<std::byte*>(block) + kSumsAt));
  *weights = WeightsAccess::own(context, block);
  return {};
}

}  // namespace wgemm
