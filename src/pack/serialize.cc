// Packed weights as bytes, which every build on every machine reads and writes alike. Numbers are
// little-endian, names are letters with zeros behind them:
//
//    0  name     "wgemm-pw"
//    8  uint32   byte order of the elements: 1 is little-endian, 2 big-endian
//   12  uint32   kFormVersion
//   16  uint64   XXH64, of seed 0, of all that follows
//   24  name     operation: "gemm" or "qgemm"
//   32  name     type of the elements, as "float32"
//   40  uint16   layout of a panel, as in kernel.h: width, kr, header and element_bytes
//   48  uint64   rank, of the batch, K and N
//   56  uint64   each size
//       ...      the panels, matrix after matrix
//
// All else that weights carry follows from these, and is computed anew. What is refused is anything
// that serialize() does not write, but for the elements themselves.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "ops/ops.h"
#include "pack/pack.h"
#include "pack/weights.h"

namespace wgemm {
namespace {

constexpr size_t kNameBytes = 8, kSumAt = 16, kSummedAt = 24, kShapeAt = 56;
constexpr char kMagic[] = "wgemm-pw";
constexpr uint32_t kByteOrder = std::endian::native == std::endian::little ? 1 : 2,
                   kFormVersion = 1;

template <typename T>
T load(const std::byte* from) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

// Writes a header from front to back.
class Writer {
 public:
  explicit Writer(std::byte* to) : to_(to) {}
  [[gnu::noinline]] void number(uint64_t value, int bytes) {
    for (; bytes > 0; --bytes, value >>= 8) *to_++ = static_cast<std::byte>(value & 0xff);
  }
  [[gnu::noinline]] void name(const char* letters) {
    for (size_t i = 0; i < kNameBytes; ++i)
      *to_++ = static_cast<std::byte>(*letters == 0 ? 0 : *letters++);
  }
  void layout(const PanelLayout& layout) {
    for (const int value : {layout.width, layout.kr, layout.header, layout.element_bytes})
      number(static_cast<uint64_t>(value), 2);
  }

 private:
  std::byte* to_;
};

// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, of whole words, as all bytes here
// are.
uint64_t xxh64(std::span<const std::byte> bytes) {
  constexpr uint64_t kPrime[] = {0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5};
  const auto round = [&](uint64_t lane, const std::byte* from) {
    return std::rotl(lane + load<uint64_t>(from) * kPrime[1], 31) * kPrime[0];
  };
  const std::byte *from = bytes.data(), *end = from + bytes.size();
  uint64_t hash = kPrime[4];
  if (bytes.size() >= 32) {
    uint64_t lanes[] = {kPrime[0] + kPrime[1], kPrime[1], 0, 0 - kPrime[0]};
    for (; end - from >= 32; from += 32) {
      for (size_t i = 0; i < 4; ++i) lanes[i] = round(lanes[i], from + 8 * i);
    }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes)
      hash = (hash ^ std::rotl(lane * kPrime[1], 31) * kPrime[0]) * kPrime[0] + kPrime[3];
  }
  hash += bytes.size();
  for (; from != end; from += 8)
    hash = std::rotl(hash ^ round(0, from), 27) * kPrime[0] + kPrime[3];
  hash = (hash ^ hash >> 33) * kPrime[1];
  hash = (hash ^ hash >> 29) * kPrime[2];
  return hash ^ hash >> 32;
}

const char* name_of(PackFor op) { return op == PackFor::kQGemm ? "qgemm" : "gemm"; }

bool is_named(const std::byte* bytes, const char* letters) {
  std::byte name[kNameBytes];
  Writer(name).name(letters);
  return std::memcmp(bytes, name, kNameBytes) == 0;
}

int64_t matrices_of(const PackedWeights& weights) {
  int64_t matrices = 1;
  for (const int64_t size : weights.batch()) matrices *= size;
  return matrices;
}

size_t header_bytes(size_t rank) { return kShapeAt + rank * sizeof(uint64_t); }

bool are_zeros(const std::byte* from, int64_t bytes) {
  return std::all_of(from, from + bytes, [](std::byte b) { return b == std::byte{0}; });
}

// Whether the panels of a matrix hold nothing but zeros where they hold no elements.
bool is_padded(const std::byte* panels, const PanelLayout& layout, int64_t k, int64_t n) {
  const int64_t bytes = layout.element_bytes, column = layout.kr * bytes,
                step = layout.width * column, rest = k % layout.kr * bytes;
  for (int64_t col = 0; col < n; col += layout.width) {
    if (!are_zeros(panels, layout.header * bytes)) return false;
    panels += layout.header * bytes;
    const int64_t used = std::min<int64_t>(layout.width, n - col) * column;
    for (int64_t row = 0; row < k; row += layout.kr, panels += step) {
      if (!are_zeros(panels + used, step - used)) return false;
      if (k - row >= layout.kr) continue;
      for (int64_t at = 0; at < used; at += column) {
        if (!are_zeros(panels + at + rest, column - rest)) return false;
      }
    }
  }
  return true;
}

}  // namespace

void seal(std::span<std::byte> bytes) {
  Writer(bytes.data() + kSumAt).number(xxh64(bytes.subspan(kSummedAt)), 8);
}

size_t serialized_bytes(const PackedWeights& weights) {
  if (weights.empty()) return 0;
  const size_t matrix = packed_bytes(storage_layout(weights.dtype()), weights.n(), weights.k());
  return header_bytes(weights.batch().size() + 2) +
         static_cast<size_t>(matrices_of(weights)) * matrix;
}

Status serialize(const PackedWeights& weights, std::span<std::byte> bytes) {
  const char* op = "serialize";
  if (weights.empty())
    return error(Code::kArgument, op, "weights",
                 {"weights is packed weights that are empty; pack() fills them"});
  const size_t wanted = serialized_bytes(weights);
  if (bytes.size() != wanted) {
    return error(Code::kShape, op, "bytes",
                 {"bytes has ", static_cast<int64_t>(bytes.size()),
                  " bytes; for these weights it must have ", static_cast<int64_t>(wanted)});
  }
  const PrepackedB stored = prepacked_of(weights);
  const size_t rank = weights.batch().size() + 2,
               matrix = packed_bytes(stored.layout(), weights.n(), weights.k());
  Writer writer(bytes.data());
  writer.name(kMagic);
  writer.number(kByteOrder, 4);
  writer.number(kFormVersion, 4);
  writer.number(0, 8);  // until it is sealed
  writer.name(name_of(weights.op()));
  writer.name(dtype_name(weights.dtype()));
  writer.layout(stored.layout());
  writer.number(rank, 8);
  for (const int64_t size : weights.batch()) writer.number(static_cast<uint64_t>(size), 8);
  writer.number(static_cast<uint64_t>(weights.k()), 8);
  writer.number(static_cast<uint64_t>(weights.n()), 8);
  const std::byte* from = stored.panels;
  for (std::byte* to = bytes.data() + header_bytes(rank); to != bytes.data() + wanted;
       to += matrix, from += stored.matrix_bytes) {
    std::memcpy(to, from, matrix);
  }
  seal(bytes);
  return {};
}

namespace {

// "bytes " and so on; a number that is negative is left out.
[[gnu::noinline]] Status refuse(const char* what, int64_t found = -1, const char* but = "",
                                int64_t wanted = -1, const char* end = "") {
  const auto part = [](int64_t number) { return number < 0 ? Part("") : Part(number); };
  return error(Code::kPackMismatch, "deserialize", "bytes",
               {"bytes ", what, part(found), but, part(wanted), end});
}

}  // namespace

Status deserialize(Context& context, std::span<const std::byte> bytes, PackedWeights* weights) {
  const std::byte* from = bytes.data();
  const auto length = static_cast<int64_t>(bytes.size());
  const auto cut_short = [&](int64_t wanted, const char* end = " wanted") {
    return refuse("is cut short: ", length, " bytes, ", wanted, end);
  };
  if (bytes.size() < kShapeAt) return cut_short(kShapeAt, " wanted at the least");
  if (!is_named(from, kMagic))
    return refuse("is no packed weights: it does not begin with \"wgemm-pw\"");
  if (const auto version = load<uint32_t>(from + 12); version != kFormVersion) {
    return refuse("is of version ", version, "; this library reads version ", kFormVersion);
  }
  if (const auto order = load<uint32_t>(from + 8); order != kByteOrder) {
    return refuse("has byte order ", order, "; this machine has ", kByteOrder,
                  ", 1 being little-endian");
  }
  PackArgs args;
  if (is_named(from + 24, name_of(PackFor::kQGemm))) args.op = PackFor::kQGemm;
  if (!is_named(from + 24, name_of(args.op)))
    return refuse("is for an operation that is none; it must be gemm or qgemm");
  int dtype = 0;
  while (dtype < kDTypeCount && !is_named(from + 32, dtype_name(static_cast<DType>(dtype))))
    ++dtype;
  if (dtype == kDTypeCount) return refuse("has elements of an unknown type; see DType");
  args.B.dtype = static_cast<DType>(dtype);
  const PanelLayout layout = storage_layout(args.B.dtype);
  std::byte numbers[4 * sizeof(uint16_t)];
  Writer(numbers).layout(layout);
  if (std::memcmp(from + 40, numbers, sizeof(numbers)) != 0) {
    return refuse("has panels of ", load<uint16_t>(from + 40),
                  " columns, or of another layout than those of ", layout.width, " here");
  }
  const auto rank = load<uint64_t>(from + 48);
  if (rank > kMaxRank) return refuse("has a rank above ", kMaxRank);
  const size_t header = header_bytes(static_cast<size_t>(rank));
  if (bytes.size() < header) return cut_short(static_cast<int64_t>(header));
  int64_t dims[kMaxRank];
  for (size_t i = 0; i < rank; ++i) dims[i] = load<int64_t>(from + header_bytes(i));
  args.B.dims = {dims, static_cast<size_t>(rank)};
  args.B.data = dims;  // which is not looked at
  PackProblem p;
  if (Status s = pack_problem("deserialize", "bytes", args, &p); !s.ok()) {
    s.code = Code::kPackMismatch;
    return s;
  }
  const int64_t wanted = static_cast<int64_t>(header) + p.matrices * stored_bytes(p);
  if (length < wanted) return cut_short(wanted);
  if (length > wanted)
    return refuse("goes on behind its end: ", length, " bytes, ", wanted, " wanted");
  const auto matrix = static_cast<size_t>(stored_bytes(p));
  const std::byte* const end = from + length;
  if (load<uint64_t>(from + kSumAt) != xxh64(bytes.subspan(kSummedAt))) {
    return refuse("was changed: its checksum is another than that of what it holds");
  }
  for (from += header; from != end; from += matrix) {
    if (!is_padded(from, layout, p.k, p.n)) return refuse("has panels whose padding is not zeros");
  }
  PackedWeights made;
  if (Status s = WeightsAccess::allocate(context, "deserialize", args.op, p, &made); !s.ok())
    return s;
  std::byte* to = WeightsAccess::panels(made);
  for (from = bytes.data() + header; from != end;
       from += matrix, to += prepacked_of(made).matrix_bytes) {
    std::memcpy(to, from, matrix);
  }
  WeightsAccess::finish(made);
  *weights = std::move(made);
  return {};
}

}  // namespace wgemm
