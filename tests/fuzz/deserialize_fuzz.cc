// Fuzzes deserialize() by libFuzzer. Refused bytes must leave nothing behind. Accepted bytes must
// be what serialize() writes, and compute what their elements say. `npm run fuzz` builds and runs
// it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "base/types.h"
#include "pack/serialize.h"
#include "pack/weights.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace wgemm;
using Bytes = std::vector<std::byte>;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "deserialize_fuzz: not so: %s\n", what);
  std::abort();
}

Bytes random_bytes(size_t count, std::minstd_rand& random) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
  return bytes;
}

Bytes serialized(const PackedWeights& weights) {
  Bytes result(serialized_bytes(weights));
  expect(serialize(weights, result).ok(), "weights are serialized");
  return result;
}

// Weights of MatMulNBits that are not packed: their tensors.
struct Codes {
  NBits format;
  int64_t k, n;
  Bytes codes, scales, zero_points;
  int64_t blocks = format.blocks(k), zero_point_bytes = (blocks * format.bits + 7) / 8,
          column_bytes = blocks * format.block_size * format.bits / 8;
  int64_t code_dims[3] = {n, blocks, int64_t{format.block_size} * format.bits / 8},
          scale_dims[2] = {n, blocks}, zero_point_dims[2] = {n, zero_point_bytes};
  ConstTensor zero_points_tensor{};

  bool is_typed() const { return format.zero_points == NBits::ZeroPoints::kTyped; }
  // The bytes must be there.
  NBitsWeights weights() {
    zero_points_tensor = is_typed()
                             ? ConstTensor{zero_points.data(), format.dtype, scale_dims}
                             : ConstTensor{zero_points.data(), DType::kUInt8, zero_point_dims};
    const bool has_zero_points = format.zero_points != NBits::ZeroPoints::kAbsent;
    return {.B = {codes.data(), DType::kUInt8, code_dims},
            .scales = {scales.data(), format.dtype, scale_dims},
            .zero_points = has_zero_points ? &zero_points_tensor : nullptr,
            .K = k,
            .N = n,
            .bits = format.bits,
            .block_size = format.block_size};
  }
};

Bytes valid_codes(std::minstd_rand& random) {
  constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  const NBits format{2 << random() % 3, 16 << random() % 3, kTypes[random() % 3],
                     static_cast<NBits::ZeroPoints>(random() % 3)};
  Codes c{.format = format,
          .k = static_cast<int64_t>(random() % 70),
          .n = static_cast<int64_t>(random() % 20),
          .codes = {},
          .scales = {},
          .zero_points = {}};
  const auto scales = static_cast<size_t>(c.n * c.blocks) * dtype_bytes(format.dtype);
  c.codes = random_bytes(static_cast<size_t>(c.n * c.column_bytes) + 1, random);
  c.scales = random_bytes(scales + 1, random);
  c.zero_points = random_bytes(
      (c.is_typed() ? scales : static_cast<size_t>(c.n * c.zero_point_bytes)) + 1, random);
  Context context;
  PackedWeights weights;
  expect(pack_nbits(context, c.weights(), &weights).ok(), "codes are packed");
  return serialized(weights);
}

// Weights of a block format. Blocks whose random scales are not finite are refused, and stay zeros.
Bytes valid_blocks(std::minstd_rand& random) {
  const auto format = static_cast<BlockFormat>(1 + random() % (kBlockFormatCount - 1));
  const auto blocks = static_cast<int64_t>(random() % (block_steps(format) == 32 ? 4 : 2)),
             n = static_cast<int64_t>(random() % 12);
  Context context;
  PackedWeights weights;
  expect(begin_pack(context, format, blocks * block_steps(format), n, &weights).ok(),
         "weights of a block format begin");
  const auto column = static_cast<size_t>(blocks * block_bytes(format));
  for (int64_t first = 0; first < n; ++first) {
    const Status status = pack_part(&weights, first, random_bytes(column, random));
    expect(status.ok() || status.code == Code::kArgument, status.message);
  }
  return serialized(weights);
}

// Small serialized weights of any type and sizes.
Bytes valid_bytes(std::minstd_rand& random) {
  if (random() % 4 == 0) return valid_codes(random);
  if (random() % 4 == 0) return valid_blocks(random);
  const auto type = static_cast<DType>(random() % kDTypeCount);
  const bool is_8bit = compute_type(type) == DType::kInt8;
  std::vector<int64_t> dims;
  for (size_t axes = is_8bit ? 0 : random() % 3; axes > 0; --axes)
    dims.push_back(static_cast<int64_t>(random() % 4));
  for (int i = 0; i < 2; ++i) dims.push_back(static_cast<int64_t>(random() % 20));
  size_t bytes = dtype_bytes(type);
  for (const int64_t size : dims) bytes *= static_cast<size_t>(size);
  const Bytes elements = random_bytes(bytes + 1, random);
  Context context;
  PackedWeights weights;
  const PackFor op = is_8bit ? PackFor::kQGemm : PackFor::kGemm;
  const auto aligned = static_cast<std::byte*>(context.allocate(elements.size()));
  std::ranges::copy(elements, aligned);
  expect(pack(context, {.op = op, .B = {aligned, type, dims}}, &weights).ok(),
         "weights are packed");
  context.release(aligned);
  return serialized(weights);
}

// Y of rows of A and the weights, or `b` instead. Memory has exactly the size that it needs, so
// that the address sanitizer sees accesses beyond it.
Bytes product(const PackedWeights& weights, const Bytes* b, int64_t rows) {
  Context context(0, Determinism::kStrict);
  const DType type = weights.dtype();
  std::vector<int64_t> y_dims(weights.batch().begin(), weights.batch().end());
  size_t size = static_cast<size_t>(rows * weights.n());
  for (const int64_t axis : y_dims) size *= static_cast<size_t>(axis);
  y_dims.push_back(rows);
  y_dims.push_back(weights.n());
  const int64_t a_dims[] = {rows, weights.k()}, b_dims[] = {weights.k(), weights.n()};
  std::minstd_rand random(1);
  const Bytes a = random_bytes(static_cast<size_t>(rows * weights.k()) * dtype_bytes(type), random);
  Status status;
  Bytes y(size * (weights.op() == PackFor::kQGemm ? sizeof(float) : dtype_bytes(type)));
  if (weights.op() == PackFor::kQGemm) {
    const float scale = 1;
    QGemmArgs args;
    args.A = {a.data(), type, a_dims};
    args.a_scale = args.b_scale = {&scale, DType::kFloat32};
    if (b == nullptr) args.packed_B = &weights;
    if (b != nullptr) args.B = {b->data(), type, b_dims};
    args.Y = {y.data(), DType::kFloat32, y_dims};
    status = qgemm(context, args);
  } else if (b != nullptr) {
    GemmArgs args;
    args.A = {a.data(), type, a_dims};
    args.B = {b->data(), type, b_dims};
    args.Y = {y.data(), type, y_dims};
    status = gemm(context, args);
  } else {
    MatMulArgs args;
    args.src = {a.data(), type, a_dims};
    args.packed_weights = &weights;
    args.dst = {y.data(), type, y_dims};
    status = matmul(context, args);
  }
  expect(status.ok(), status.message);
  return y;
}

// B, read from the elements in the panels.
Bytes elements_of(const PackedWeights& weights) {
  const PrepackedB stored = prepacked_of(weights);
  const PanelLayout layout = stored.layout();
  const size_t bytes = dtype_bytes(weights.dtype());
  Bytes elements(static_cast<size_t>(weights.k() * weights.n()) * bytes);
  std::byte* to = elements.data();
  for (int64_t k = 0; k < weights.k(); ++k) {
    for (int64_t col = 0; col < weights.n(); ++col, to += bytes) {
      const int64_t place = col % layout.width * layout.kr + k % layout.kr;
      std::memcpy(to,
                  stored.block(k - k % layout.kr, col - col % layout.width) +
                      static_cast<size_t>(place) * bytes,
                  bytes);
      if (weights.dtype() == DType::kUInt8) *to ^= std::byte{128};
    }
  }
  return elements;
}

// The tensors that packed weights of MatMulNBits are made of.
Codes codes_of(const PackedWeights& weights) {
  const PrepackedB stored = prepacked_of(weights);
  const NBits& f = stored.nbits;
  Codes c{.format = f,
          .k = weights.k(),
          .n = weights.n(),
          .codes = {},
          .scales = {},
          .zero_points = {}};
  const size_t scale = dtype_bytes(f.dtype), scales = static_cast<size_t>(c.n * c.blocks) * scale;
  c.codes.resize(static_cast<size_t>(c.n * c.column_bytes) + 1);
  c.scales.resize(scales + 1);
  c.zero_points.resize((c.is_typed() ? scales : static_cast<size_t>(c.n * c.zero_point_bytes)) + 1);
  for (int64_t col = 0; col < c.n; ++col) {
    const int64_t lane = col % NBits::kColumns;
    const auto put = [&](Bytes& to, int64_t begin, int64_t i, uint32_t code) {
      to[static_cast<size_t>(begin + i * f.bits / 8)] |=
          static_cast<std::byte>(code << (i * f.bits % 8));
    };
    for (int64_t block = 0; block < c.blocks; ++block) {
      const std::byte* const at = stored.block(block * f.block_size, col - lane);
      const size_t index = static_cast<size_t>(col * c.blocks + block) * scale,
                   of_lane = static_cast<size_t>(lane) * scale;
      std::memcpy(c.scales.data() + index, at + of_lane, scale);
      if (c.is_typed()) {
        std::memcpy(c.zero_points.data() + index,
                    at + static_cast<size_t>(f.scale_bytes()) + of_lane, scale);
      } else if (f.zero_points == NBits::ZeroPoints::kCodes) {
        put(c.zero_points, col * c.zero_point_bytes, block, f.zero_point(at, lane));
      }
      for (int64_t i = 0; i < f.block_size; ++i)
        put(c.codes, col * c.column_bytes, block * f.block_size + i, f.code(at, i, lane));
    }
  }
  return c;
}

// Compares products with packed weights of MatMulNBits and with their tensors.
void compute_with_codes(const PackedWeights& weights) {
  Context context(0, Determinism::kStrict);
  Codes codes = codes_of(weights);
  const size_t bytes = dtype_bytes(weights.dtype());
  for (const int64_t level : {0, 4}) {
    for (const int64_t rows : {1, 7}) {
      const int64_t a_dims[] = {rows, weights.k()}, y_dims[] = {rows, weights.n()};
      std::minstd_rand random(1);
      const Bytes a = random_bytes(static_cast<size_t>(rows * weights.k()) * bytes + 1, random);
      Bytes y[2];
      for (const bool is_packed : {false, true}) {
        Bytes& to = y[is_packed ? 1 : 0];
        to.resize(static_cast<size_t>(rows * weights.n()) * bytes + 1);
        MatMulNBitsArgs args;
        args.A = {a.data(), weights.dtype(), a_dims};
        if (is_packed) args.packed_weights = &weights;
        if (!is_packed) args.weights = codes.weights();
        args.Y = {to.data(), weights.dtype(), y_dims};
        args.accuracy_level = level;
        const Status status = matmul_nbits(context, args);
        expect(status.ok(), status.message);
      }
      expect(y[0] == y[1], "products of packed codes and of codes are the same bits");
    }
  }
}

// Compares products of seven rows and of each row, with packed weights of a block format.
void compute_with_blocks(const PackedWeights& weights) {
  Context context(0, Determinism::kStrict);
  constexpr int64_t kRows = 7;
  std::minstd_rand random(1);
  std::vector<float> a(static_cast<size_t>(kRows * weights.k()) + 1);
  for (float& x : a) x = static_cast<float>(static_cast<int64_t>(random() % 2001) - 1000);
  const auto product = [&](int64_t level, int64_t first, int64_t rows) {
    const int64_t a_dims[] = {rows, weights.k()}, y_dims[] = {rows, weights.n()};
    std::vector<float> y(static_cast<size_t>(rows * weights.n()) + 1);
    MatMulNBitsArgs args;
    args.A = {a.data() + first * weights.k(), DType::kFloat32, a_dims};
    args.packed_weights = &weights;
    args.Y = {y.data(), DType::kFloat32, y_dims};
    args.accuracy_level = level;
    const Status status = matmul_nbits(context, args);
    expect(status.ok(), status.message);
    y.pop_back();
    return y;
  };
  for (const int64_t level : {0, 4}) {
    const std::vector<float> all = product(level, 0, kRows);
    for (int64_t row = 0; row < kRows; ++row) {
      const std::vector<float> one = product(level, row, 1);
      const auto* const expected = all.data() + row * weights.n();
      // The order of sums at level 0 depends on the number of rows.
      if (level == 4)
        expect(std::equal(one.begin(), one.end(), expected), "each row has its own product");
    }
  }
}

void compute(const PackedWeights& weights) {
  constexpr int64_t kMost = 1 << 12;
  if (weights.k() > kMost || weights.n() > kMost) return;
  int64_t columns = std::max<int64_t>(
      weights.n(), 1);  // of all matrices; a size of 0 counts as 1, since shapes must be small
  for (const int64_t size : weights.batch()) {
    if (size > kMost || (columns *= std::max<int64_t>(size, 1)) > kMost) return;
  }
  if (weights.op() == PackFor::kMatMulNBits) {
    return weights.block_format() == BlockFormat::kNone ? compute_with_codes(weights)
                                                        : compute_with_blocks(weights);
  }
  for (const int64_t rows : {1, 7, 30}) {
    const Bytes y = product(weights, nullptr, rows);
    if (!weights.batch().empty()) continue;
    const Bytes b = elements_of(weights);
    expect(y == product(weights, &b, rows),
           "products of weights and of their elements are the same bits");
  }
}

}  // namespace

// Makes whole weights, or changes the bytes and usually corrects their checksum.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  std::minstd_rand random(seed);
  if (size == 0 || random() % 64 == 0) {
    const Bytes bytes = valid_bytes(random);
    if (bytes.size() > max_size) return 0;
    std::memcpy(data, bytes.data(), bytes.size());
    return bytes.size();
  }
  if (const size_t words = std::min<size_t>(size / 8, 12); words > 0 && random() % 4 == 0) {
    // A number in the header: small, or at an end of a range.
    const uint64_t shift = random() % 65,
                   number = (shift == 64 ? 0 : uint64_t{1} << shift) - random() % 3;
    std::memcpy(data + random() % words * 8, &number, 8);
  } else {
    size = LLVMFuzzerMutate(data, size, max_size);
  }
  if (size >= 24 && random() % 8 != 0) seal({reinterpret_cast<std::byte*>(data), size / 8 * 8});
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  Context context(size_t{1} << 24);
  {
    PackedWeights weights;
    const Status status = deserialize(context, bytes, &weights);
    expect(weights.empty() != status.ok(), "weights are there if they were taken");
    if (!status.ok()) {
      expect(status.code == Code::kPackMismatch || status.code == Code::kOutOfMemory,
             status.message);
    } else {
      Bytes again(serialized_bytes(weights));
      expect(serialize(weights, again).ok() && std::ranges::equal(again, bytes),
             "what was taken is what serialize() gives");
      compute(weights);
    }
  }
  expect(context.bytes_in_use() == 0, "nothing is left");
  return 0;
}
