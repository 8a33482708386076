#include "pack/serialize.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "pack/blocks.h"
#include "pack/nbits.h"
#include "pack/pack.h"
#include "pack/weights.h"

namespace wgemm {
namespace {

// Sizes and offsets in bytes. The head of serialize.h lists them.
constexpr size_t kNameBytes = 8, kByteOrderAt = 8, kVersionAt = 12, kChecksumAt = 16, kOpAt = 24,
                 kTypeAt = 32, kLayoutAt = 40, kRankAt = 48, kShapeAt = 56;
constexpr size_t kCheckedFrom = kOpAt;  // the checksum covers all bytes from here on
constexpr char kMagic[] = "wgemm-pw";
constexpr uint32_t kByteOrder = std::endian::native == std::endian::little ? 1 : 2;
// Versions of the format.
constexpr uint32_t kElements = 1, kBlocks = 2;

template <typename T>
T load(const std::byte* from) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

// Writes a header from front to back.
class HeaderWriter {
 public:
  explicit HeaderWriter(std::byte* to) : to_(to) {}
  [[gnu::noinline]] void number(uint64_t value, int bytes) {
    for (; bytes > 0; --bytes, value >>= 8) *to_++ = static_cast<std::byte>(value & 0xff);
  }
  [[gnu::noinline]] void name(const char* letters) {
    for (size_t i = 0; i < kNameBytes; ++i)
      *to_++ = static_cast<std::byte>(*letters == 0 ? 0 : *letters++);
  }
  // The layout of the elements, or the format of MatMulNBits.
  void layout(const PanelLayout& layout, const NBits& nbits) {
    const int of_elements[] = {layout.width, layout.kr, layout.header, layout.element_bytes},
              of_codes[] = {layout.width, nbits.bits, static_cast<int>(nbits.zero_points),
                            nbits.block_size};
    for (const int value : nbits ? of_codes : of_elements) number(static_cast<uint64_t>(value), 2);
  }

 private:
  std::byte* to_;
};

// By PackFor.
constexpr const char* kOperations[] = {"gemm", "qgemm", "nbits"};
const char* name_of(PackFor op) { return kOperations[static_cast<int>(op)]; }

// The name of a type or, for block formats, of a format.
const char* type_name(bool is_format, int type) {
  return is_format ? kBlockFormats[type].name : dtype_name(static_cast<DType>(type));
}

bool is_named(const std::byte* bytes, const char* letters) {
  std::byte name[kNameBytes];
  HeaderWriter(name).name(letters);
  return std::memcmp(bytes, name, kNameBytes) == 0;
}

int64_t matrices_of(const PackedWeights& weights) {
  int64_t matrices = 1;
  for (const int64_t size : weights.batch()) matrices *= size;
  return matrices;
}

// Bytes of the panels of a matrix, without gaps.
size_t matrix_bytes(const PackedWeights& weights) {
  const PrepackedB stored = prepacked_of(weights);
  return stored.nbits ? static_cast<size_t>(stored.nbits.packed_bytes(weights.n(), weights.k()))
                      : packed_bytes(stored.layout(), weights.n(), weights.k());
}

size_t header_bytes(size_t rank) { return kShapeAt + rank * sizeof(uint64_t); }

bool are_zeros(const std::byte* from, int64_t bytes) {
  return std::all_of(from, from + bytes, [](std::byte b) { return b == std::byte{0}; });
}

// Whether the padding and the panel headers of a matrix are zeros.
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

// Makes an error about `bytes`. It omits negative numbers.
[[gnu::noinline]] Status refuse(const char* what, int64_t found = -1, const char* but = "",
                                int64_t expected = -1, const char* end = "") {
  const auto piece = [](int64_t number) { return number < 0 ? Piece("") : Piece(number); };
  return error(Code::kPackMismatch, "deserialize", "bytes",
               {"bytes %%%%%", what, piece(found), but, piece(expected), end});
}

Status check_length(std::span<const std::byte> bytes, int64_t least) {
  const auto length = static_cast<int64_t>(bytes.size());
  return length < least ? refuse("has ", length, " bytes; expected at least ", least) : Status{};
}

// Checks name, version and byte order.
Status check_format(const std::byte* from) {
  if (!is_named(from, kMagic))
    return refuse("is not packed weights: it does not begin with \"wgemm-pw\"");
  if (const auto version = load<uint32_t>(from + kVersionAt);
      version != kElements && version != kBlocks) {
    return refuse("is of version ", version, "; this library reads versions 1 and 2");
  }
  if (const auto order = load<uint32_t>(from + kByteOrderAt); order != kByteOrder) {
    return refuse("has byte order ", order, "; this machine has ", kByteOrder,
                  ", and 1 is little-endian");
  }
  return {};
}

bool has_blocks(const std::byte* from) { return load<uint32_t>(from + kVersionAt) == kBlocks; }

// Reads operation, type and layout. The layout of elements follows from their type. Which formats
// of MatMulNBits exist is checked later.
Status read_kind(const std::byte* from, SerializedHeader* header) {
  size_t op = 0;
  while (op < std::size(kOperations) && !is_named(from + kOpAt, kOperations[op])) ++op;
  if (op == std::size(kOperations))
    return refuse("is for an unknown operation; it must be gemm, qgemm or nbits");
  header->args.op = static_cast<PackFor>(op);
  const bool is_blocks = has_blocks(from);
  if (is_blocks && header->args.op != PackFor::kMatMulNBits)
    return refuse("is of version 2, which is for nbits only");
  const int types = is_blocks ? kBlockFormatCount : kDTypeCount;
  int type = is_blocks;  // the first block format is none
  while (type < types && !is_named(from + kTypeAt, type_name(is_blocks, type))) ++type;
  if (type == types)
    return refuse(is_blocks ? "has blocks of an unknown format; see BlockFormat"
                            : "has elements of an unknown type; see DType");
  const auto dtype = is_blocks ? DType::kFloat16 : static_cast<DType>(type);
  header->args.B.dtype = dtype;
  const auto number = [&](size_t i) { return load<uint16_t>(from + kLayoutAt + 2 * i); };
  PanelLayout layout = storage_layout(dtype);
  if (header->args.op == PackFor::kMatMulNBits) {
    layout = kNBitsLayout;
    header->nbits = is_blocks
                        ? kBlockFormats[type].nbits
                        : NBits{number(1), number(3), dtype,
                                static_cast<NBits::ZeroPoints>(std::min<uint16_t>(number(2), 255))};
  }
  std::byte numbers[4 * sizeof(uint16_t)];
  HeaderWriter(numbers).layout(layout, header->nbits);
  if (std::memcmp(from + kLayoutAt, numbers, sizeof(numbers)) == 0) return {};
  return refuse("has panels of ", number(0), " columns, or of another layout; expected ",
                layout.width, " columns");
}

}  // namespace

// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, for a multiple of 8 bytes only,
// as serialized weights always are.
uint64_t checksum(std::span<const std::byte> bytes) {
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

void seal(std::span<std::byte> bytes) {
  HeaderWriter(bytes.data() + kChecksumAt).number(checksum(bytes.subspan(kCheckedFrom)), 8);
}

size_t serialized_bytes(const PackedWeights& weights) {
  if (weights.empty()) return 0;
  const size_t matrix = matrix_bytes(weights);
  return header_bytes(weights.batch().size() + 2) +
         static_cast<size_t>(matrices_of(weights)) * matrix;
}

void write_serialized(const PackedWeights& weights, std::span<std::byte> bytes) {
  const PrepackedB stored = prepacked_of(weights);
  const size_t rank = weights.batch().size() + 2, matrix = matrix_bytes(weights);
  const BlockFormat format = weights.block_format();
  const bool is_format = format != BlockFormat::kNone;
  HeaderWriter writer(bytes.data());
  writer.name(kMagic);
  writer.number(kByteOrder, 4);
  writer.number(is_format ? kBlocks : kElements, 4);
  writer.number(0, 8);  // the checksum, which seal() writes
  writer.name(name_of(weights.op()));
  writer.name(is_format ? row_of(format).name : dtype_name(weights.dtype()));
  writer.layout(stored.layout(), stored.nbits);
  writer.number(rank, 8);
  for (const int64_t size : weights.batch()) writer.number(static_cast<uint64_t>(size), 8);
  writer.number(static_cast<uint64_t>(weights.k()), 8);
  writer.number(static_cast<uint64_t>(weights.n()), 8);
  const std::byte* from = stored.panels;
  for (std::byte* to = bytes.data() + header_bytes(rank); to != bytes.data() + bytes.size();
       to += matrix, from += stored.matrix_bytes) {
    std::memcpy(to, from, matrix);
  }
  seal(bytes);
}

Status read_serialized_header(std::span<const std::byte> bytes, SerializedHeader* header) {
  WGEMM_RETURN_IF_ERROR(check_length(bytes, kShapeAt));
  const std::byte* from = bytes.data();
  WGEMM_RETURN_IF_ERROR(check_format(from));
  ConstTensor& b = header->args.B;
  WGEMM_RETURN_IF_ERROR(read_kind(from, header));
  const auto rank = load<uint64_t>(from + kRankAt);
  if (rank > kMaxRank) return refuse("has a rank above ", kMaxRank);
  header->bytes = header_bytes(static_cast<size_t>(rank));
  WGEMM_RETURN_IF_ERROR(check_length(bytes, static_cast<int64_t>(header->bytes)));
  for (size_t i = 0; i < rank; ++i) header->dims[i] = load<int64_t>(from + header_bytes(i));
  b.dims = {header->dims, static_cast<size_t>(rank)};
  b.data = header->dims;  // not null, since pack_problem() demands data; nothing reads it
  return {};
}

Status read_serialized_panels(Context& context, std::span<const std::byte> bytes,
                              size_t header_bytes, const PackProblem& problem,
                              PackedWeights* weights) {
  const int64_t matrix_bytes = stored_bytes(problem), length = static_cast<int64_t>(bytes.size()),
                expected = static_cast<int64_t>(header_bytes) + problem.matrices * matrix_bytes;
  if (length != expected) return refuse("has ", length, " bytes; expected ", expected);
  if (load<uint64_t>(bytes.data() + kChecksumAt) != checksum(bytes.subspan(kCheckedFrom))) {
    return refuse("is corrupt: the checksum does not match the contents");
  }
  const std::byte *const panels = bytes.data() + header_bytes, *const end = bytes.data() + length;
  for (const std::byte* from = panels; from != end; from += matrix_bytes) {
    const NBits& nbits = problem.nbits.format;
    if (nbits.format != BlockFormat::kNone) {
      if (const char* fault = fault_of_blocks(from, nbits, problem.k, problem.n); fault != nullptr)
        return refuse(fault);
    } else if (!(nbits ? is_padded(from, nbits, problem.k, problem.n)
                       : is_padded(from, storage_layout(problem.as), problem.k, problem.n)))
      return refuse("has panels whose padding is not zeros");
  }
  PackedWeights made;
  WGEMM_RETURN_IF_ERROR(WeightsAccess::allocate(context, "deserialize", problem, &made));
  std::byte* to = WeightsAccess::panels(made);
  for (const std::byte* from = panels; from != end;
       from += matrix_bytes, to += prepacked_of(made).matrix_bytes) {
    std::memcpy(to, from, static_cast<size_t>(matrix_bytes));
  }
  WeightsAccess::finish(made);
  *weights = std::move(made);
  return {};
}

}  // namespace wgemm
