// Packed weights as bytes. Every build on every machine reads and writes the same bytes. Numbers
// are little-endian. Names are letters, padded with zeros:
//
//    0  name     "wgemm-pw"
//    8  uint32   byte order of the elements: 1 is little-endian, 2 big-endian
//   12  uint32   version of this format: kFormatVersion in serialize.cc
//   16  uint64   XXH64, with seed 0, of all later bytes
//   24  name     operation: "gemm", "qgemm" or "nbits"
//   32  name     type of the elements, such as "float32"; for nbits the type of the scales
//   40  uint16   four numbers, a PanelLayout: width, kr, header and element_bytes; for nbits width,
//                bits, kind of zero points (NBits::ZeroPoints) and block size
//   48  uint64   rank, which counts the batch axes, K and N
//   56  uint64   each size
//       ...      the panels, matrix after matrix, without gaps
//
// Reading computes everything else that packed weights hold. It refuses all bytes that serialize()
// would not write; only the elements are free.
//
// kFormatVersion gets the next number in the release in which serialize() first writes other bytes
// for the same weights: if a storage layout, the header or the checksum changes. A new type,
// operation or format of MatMulNBits keeps the number, since older versions refuse its name or its
// numbers. A library reads the bytes of its own number only, so CHANGELOG.md must say "pack the
// weights again". The test Serialize.HasOneFormatForever fails if the bytes change.
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
