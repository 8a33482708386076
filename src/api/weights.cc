// The public functions that make packed weights and write them as bytes.
#include "pack/weights.h"

#include "base/error.h"
#include "ops/ops.h"
#include "pack/blocks.h"
#include "pack/serialize.h"

namespace wgemm {

Status pack(Context& context, const PackArgs& args, PackedWeights* weights) {
  PackProblem problem;
  WGEMM_RETURN_IF_ERROR(pack_problem("pack", "B", args, &problem));
  return pack_weights(context, problem, weights);
}

Status pack_nbits(Context& context, const NBitsWeights& weights, PackedWeights* packed) {
  PackProblem problem;
  WGEMM_RETURN_IF_ERROR(nbits_pack_problem(weights, &problem));
  return pack_weights(context, problem, packed);
}

Status begin_pack(Context& context, DType as, int64_t K, int64_t N, PackedWeights* weights) {
  const int64_t dims[] = {K, N};
  PackProblem problem;
  WGEMM_RETURN_IF_ERROR(begin_problem(as, dims, &problem));
  return begin_weights(context, problem, weights);
}

Status pack_part(PackedWeights* weights, const PackPart& part) {
  PackProblem problem;
  WGEMM_RETURN_IF_ERROR(part_problem(*weights, part, &problem));
  pack_part(problem, part.row, part.col, weights);
  return {};
}

int64_t block_steps(BlockFormat format) { return row_of(format).nbits.block_size; }
int64_t block_bytes(BlockFormat format) { return row_of(format).file_bytes; }

Status begin_pack(Context& context, BlockFormat format, int64_t K, int64_t N,
                  PackedWeights* weights) {
  PackProblem problem;
  WGEMM_RETURN_IF_ERROR(blocks_pack_problem("pack", format, K, N, &problem));
  return begin_weights(context, problem, weights);
}

Status pack_part(PackedWeights* weights, int64_t first, std::span<const std::byte> bytes) {
  WGEMM_RETURN_IF_ERROR(check_blocks(*weights, first, bytes));
  return pack_blocks(prepacked_of(*weights), first, bytes, WeightsAccess::panels(*weights));
}

Status serialize(const PackedWeights& weights, std::span<std::byte> bytes) {
  const char* op = "serialize";
  if (weights.empty())
    return error(Code::kArgument, op, "weights",
                 {"weights is an empty PackedWeights; pack() fills it"});
  const size_t expected = serialized_bytes(weights);
  if (bytes.size() != expected) {
    return error(Code::kShape, op, "bytes",
                 {"bytes has % bytes; expected %", static_cast<int64_t>(bytes.size()),
                  static_cast<int64_t>(expected)});
  }
  write_serialized(weights, bytes);
  return {};
}

Status deserialize(Context& context, std::span<const std::byte> bytes, PackedWeights* weights) {
  SerializedHeader header;
  WGEMM_RETURN_IF_ERROR(read_serialized_header(bytes, &header));
  PackProblem problem;
  if (Status s = header.nbits ? nbits_pack_problem(header.nbits, header.args.B.dims, &problem)
                              : pack_problem("deserialize", "bytes", header.args, &problem);
      !s.ok()) {
    s.code = Code::kPackMismatch;
    return s;
  }
  return read_serialized_panels(context, bytes, header.bytes, problem, weights);
}

}  // namespace wgemm
