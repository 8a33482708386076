// Packed weights as bytes. Every build on every machine reads and writes the same bytes. Numbers
// are little-endian. Names are letters, padded with zeros:
//
//    0  name     "wgemm-pw"
//    8  uint32   byte order of the elements: 1 is little-endian, 2 big-endian
//   12  uint32   version of this format: 2 for weights of a block format, 1 for all others
//   16  uint64   XXH64, with seed 0, of all later bytes
//   24  name     operation: "gemm", "qgemm" or "nbits"
//   32  name     type of the elements, such as "float32"; for nbits the type of the scales, or the
//                name of a block format, such as "Q4_K"
//   40  uint16   four numbers, a PanelLayout: width, kr, header and element_bytes; for nbits width,
//                bits, kind of zero points (NBits::ZeroPoints) and block size
//   48  uint64   rank, which counts the batch axes, K and N
//   56  uint64   each size
//       ...      the panels, matrix after matrix, without gaps
//
// Reading computes everything else that packed weights hold. It refuses all bytes that serialize()
// would not write; only the elements are free, except that scales of block formats are finite.
//
// In the release in which serialize() first writes other bytes for the same weights, their version
// gets the next free number. Such a change is a change of a storage layout, the header or the
// checksum. A new type, operation or format of MatMulNBits keeps the number, since older libraries
// refuse its name or its numbers. A library reads only the versions that it writes, so CHANGELOG.md
// must say "pack the weights again". The tests Serialize.HasOneFormatForever and
// Serialize.HasOneFormatOfBlocksForever fail if the bytes change.
#pragma once

#include "problem/pack_problem.h"

namespace wgemm {

// Writes weights that are not empty to `bytes`, which must be serialized_bytes() long.
void write_serialized(const PackedWeights& weights, std::span<std::byte> bytes);

// The contents of the header of serialized weights. Do not copy it: args.B.dims points to `dims`.
struct SerializedHeader {
  PackArgs args;  // B has no elements: only its type and dims count
  NBits nbits{};  // of kMatMulNBits
  int64_t dims[kMaxRank];
  size_t bytes;  // of the header
};

// Reads the header. Its sizes may still be impossible: pack_problem() checks them.
Status read_serialized_header(std::span<const std::byte> bytes, SerializedHeader* header);

// Reads the panels that follow a header of `header_bytes`, into weights with memory from `context`.
// `problem` is what pack_problem() makes of the header.
Status read_serialized_panels(Context& context, std::span<const std::byte> bytes,
                              size_t header_bytes, const PackProblem& problem,
                              PackedWeights* weights);

// Writes the checksum of serialized weights into them.
void seal(std::span<std::byte> bytes);

}  // namespace wgemm
