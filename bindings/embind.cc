// The functions of the module, as js/ calls them: numbers and addresses, no logic. The arguments of
// an operation cross as one block of float64 in the heap. js/call/block.ts writes it, and this file
// reads it in the same order.
#include <emscripten/bind.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <type_traits>

#include "api/call_cache.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/quantize.h"
#include "module.h"
#include "ops/tensor_check.h"
#include "other_steps.h"

// Embind calls this to name a type that was not registered. Here every type is registered, and
// printf would take 2.3 kB with brotli.
extern "C" int siprintf(char* text, const char*, ...) {
  *text = '\0';
  return 0;
}

namespace {

using namespace wgemm;

// Large enough for the arguments of any call: attributes, and tensors of rank kMaxRank.
constexpr size_t kMostTensors = 10;
constexpr size_t kBlockLength = 16 + kMostTensors * (8 + 2 * kMaxRank);
double argument_block[kBlockLength];

// Memory for copies of the arrays of a small call. Its length is in js/call/staging.ts, too.
alignas(kArenaAlignment) std::byte staging[16384];

// In bindings/blocks.js. Moves Runs of the operand at `place` among the tensors to an address, or
// from the address if the operand is the result.
extern "C" void wgemm_move_block(int place, double offset, double count, double length,
                                 double run_stride, double stride, double address);

// The out-of-core operands of a call, by their places among the tensors.
struct OutOfCoreTable {
  OutOfCore at[kMostTensors];

  OutOfCoreTable() {
    for (OutOfCore& operand : at) operand = {&move, &operand};
  }
  static void move(void* caller, const Runs& runs, void* memory);
} out_of_core_table;

void OutOfCoreTable::move(void* caller, const Runs& runs, void* memory) {
  const auto place = static_cast<int>(static_cast<const OutOfCore*>(caller) - out_of_core_table.at);
  wgemm_move_block(place, static_cast<double>(runs.offset), static_cast<double>(runs.count),
                   static_cast<double>(runs.length), static_cast<double>(runs.run_stride),
                   static_cast<double>(runs.stride),
                   static_cast<double>(reinterpret_cast<uintptr_t>(memory)));
}

std::optional<Context> instance;
Status status;  // of the last call that failed

// Reads the block from front to back.
class BlockReader {
 public:
  // `scalars`: room for the elements of operands that are given as numbers, each at its place among
  // the tensors.
  explicit BlockReader(double* scalars) : scalars_(scalars) {}

  double number() { return *next_++; }
  int64_t integer() { return static_cast<int64_t>(number()); }

  // A number and -1, or the low and high 32 bits of an exact integer.
  Factor factor() {
    const double value = number(), high = number();
    return high < 0
               ? Factor(value)
               : Factor::exact(static_cast<uint64_t>(high) << 32 | static_cast<uint64_t>(value));
  }

  Activation activation() {
    const double min = number();
    return {min, number()};
  }

  // An operand is one of
  //   type, address, size, rank, number of strides, sizes..., strides...
  //   kArray, number of its buffer, byte offset in it, and then as above
  //   kNumber, type, factor
  //   kPacked, address of packed weights
  //   kAbsent
  // The address is -1 - place for an out-of-core operand, and 0 for an operand without elements in
  // the heap. kArray is for arrays that the result may overlap.
  enum Kind : int8_t { kTensor = 0, kAbsent = -1, kPacked = -2, kNumber = -3, kArray = -4 };
  Kind operand(ConstTensor* tensor) {
    double* const scalar = scalars_++;
    int64_t dtype = integer();
    if (dtype == kAbsent) return kAbsent;
    if (dtype == kPacked) {
      packed_ = pointer(number(), kLeastWeights, kArenaAlignment);
      return kPacked;
    }
    if (dtype == kNumber) {
      read_number(tensor, scalar);
      return kNumber;
    }
    if (dtype == kArray) {
      tensor->place.space = static_cast<uint32_t>(integer());
      tensor->place.offset = integer();
      dtype = integer();
    }
    read_tensor(dtype, tensor);
    return kTensor;
  }

  // The result.
  void output(Tensor* result) {
    ConstTensor t;
    operand(&t);
    *result = {.data = const_cast<void*>(t.data),
               .dtype = t.dtype,
               .dims = t.dims,
               .strides = t.strides,
               .size = t.size,
               .place = t.place,
               .out_of_core = t.out_of_core};
  }

  // An operand that may be packed weights.
  const PackedWeights* weights(ConstTensor* other, PackedWeights* memory) {
    if (operand(other) != kPacked || !ok_) return nullptr;
    *memory = PackedWeights::view(packed_);
    return memory;
  }

  // The address of the packed weights in the block, or null.
  const void* packed() const { return packed_; }

  // A type, or a number below 0 for none.
  std::optional<DType> optional_dtype() {
    const int64_t type = integer();
    if (type < 0) return std::nullopt;
    check(is_dtype(type));
    return static_cast<DType>(type);
  }

  int quantized_op() {
    const int64_t op = integer();
    check(is_within(op, QuantizedArgs::kQGemm));
    return ok_ ? static_cast<int>(op) : 0;
  }

  // An operand that may be absent.
  const ConstTensor* optional(ConstTensor* memory) {
    return operand(memory) == kAbsent ? nullptr : memory;
  }

  // Whether every rank, size, type and address so far was in range. If not, nothing that was read
  // may be used.
  bool ok() const { return ok_; }

 private:
  void read_number(ConstTensor* tensor, double* scalar) {
    const int64_t dtype = integer();
    tensor->dtype = static_cast<DType>(dtype);
    tensor->data = scalar;
    tensor->size = 1;
    const Factor value = factor();
    check(is_dtype(dtype));
    if (value.is_exact()) {
      *scalar = std::bit_cast<double>(value.integer());
    } else {
      check(store("", "", value.number(), tensor->dtype, scalar).ok());
    }
  }

  void read_tensor(int64_t dtype, ConstTensor* tensor) {
    tensor->dtype = static_cast<DType>(dtype);
    const double address = number();
    const int64_t size = integer(), rank = integer(), strides = integer();
    tensor->size = size;
    check(is_dtype(dtype) && is_within(rank, kMaxRank) && is_within(strides, kMaxRank) &&
          is_within(size, kMaxElements) && address >= -static_cast<double>(kMostTensors));
    if (!ok_) return;
    if (address > 0) {
      const size_t bytes = dtype_bytes(tensor->dtype);
      tensor->data =
          pointer(address, static_cast<double>(size) * static_cast<double>(bytes), bytes);
    } else if (address < 0) {
      tensor->out_of_core = &out_of_core_table.at[static_cast<size_t>(-1 - address)];
    }
    tensor->dims = axes(static_cast<size_t>(rank));
    tensor->strides = axes(static_cast<size_t>(strides));
  }

  // The fewest bytes of packed weights: the header in weights.cc.
  static constexpr double kLeastWeights = 512;

  static bool is_within(int64_t value, int64_t most) {
    return static_cast<uint64_t>(value) <= static_cast<uint64_t>(most);
  }
  static bool is_dtype(int64_t type) { return is_within(type, kDTypeCount - 1); }
  // `bytes` bytes of the memory.
  [[gnu::noinline]] const void* pointer(double address, double bytes, size_t alignment) {
    const auto at = static_cast<uintptr_t>(address);
    check(address > 0 &&
          address + bytes <= static_cast<double>(__builtin_wasm_memory_size(0)) * 65536 &&
          at % alignment == 0);
    return reinterpret_cast<const void*>(at);
  }
  void check(bool is_good) { ok_ = ok_ && is_good; }

  std::span<const int64_t> axes(size_t rank) {
    const std::span<int64_t> result(free_axes_, rank);
    free_axes_ += rank;
    for (int64_t& value : result) value = integer();
    return result;
  }

  const double* next_ = argument_block;
  double* scalars_;
  const void* packed_ = nullptr;
  bool ok_ = true;
  int64_t axes_[kMostTensors * 2 * kMaxRank];
  int64_t* free_axes_ = axes_;
};

// The arguments of gemm, in the block's order.
struct Gemm {
  Gemm(const Gemm&) = delete;  // args points into it
  explicit Gemm(double* scalars) : reader(scalars) {
    args.alpha = reader.factor();
    args.beta = reader.factor();
    args.transA = reader.integer();
    args.transB = reader.integer();
    args.opset = reader.integer();
    if (const double broadcast = reader.number(); !std::isnan(broadcast))
      args.broadcast = static_cast<int64_t>(broadcast);
    args.activation = reader.activation();
    reader.operand(&args.A);
    args.packed_B = reader.weights(&args.B, &weights);
    args.C = reader.optional(&c);
    reader.output(&args.Y);
  }
  BlockReader reader;
  ConstTensor c;
  PackedWeights weights;
  GemmArgs args;
};

// The arguments of a product of 8-bit operands, in the block's order.
struct Quantized {
  Quantized(const Quantized&) = delete;
  explicit Quantized(double* scalars) : reader(scalars) {
    args.op = reader.quantized_op();
    args.transA = reader.integer();
    args.transB = reader.integer();
    args.alpha = reader.number();
    args.activation = reader.activation();
    for (int i = 0; i < kQuantizationParams; ++i) args.params[i] = reader.optional(&params[i]);
    reader.operand(&args.A);
    args.packed_B = reader.weights(&args.B, &weights);
    args.C = reader.optional(&c);
    reader.output(&args.Y);
  }
  BlockReader reader;
  ConstTensor params[kQuantizationParams], c;
  PackedWeights weights;
  QuantizedArgs args;
};

// The arguments of matmul, in the block's order.
struct MatMul {
  MatMul(const MatMul&) = delete;
  explicit MatMul(double* scalars) : reader(scalars) {
    args.alpha = reader.factor();
    args.transpose_a = reader.integer();
    args.transpose_b = reader.integer();
    reader.integer();  // the type of a result that JavaScript makes, which dst has too
    args.activation = reader.activation();
    reader.operand(&args.src);
    args.packed_weights = reader.weights(&args.weights, &weights);
    args.bias = reader.optional(&bias);
    reader.output(&args.dst);
  }
  BlockReader reader;
  ConstTensor bias;
  PackedWeights weights;
  MatMulArgs args;
};

// Reads weights of MatMulNBits, in the block's order, except for B.
NBitsWeights read_nbits(BlockReader& reader, ConstTensor* zero_points) {
  NBitsWeights weights;
  weights.K = reader.integer();
  weights.N = reader.integer();
  weights.bits = reader.integer();
  weights.block_size = reader.integer();
  reader.operand(&weights.scales);
  weights.zero_points = reader.optional(zero_points);
  return weights;
}

// The arguments of matmulNBits, in the block's order.
struct MatMulNBits {
  MatMulNBits(const MatMulNBits&) = delete;
  explicit MatMulNBits(double* scalars) : reader(scalars) {
    args.accuracy_level = reader.integer();
    args.activation = reader.activation();
    args.weights = read_nbits(reader, &zero_points);
    reader.operand(&args.A);
    args.packed_weights = reader.weights(&args.weights.B, &weights);
    args.bias = reader.optional(&bias);
    reader.output(&args.Y);
  }
  BlockReader reader;
  ConstTensor bias, zero_points;
  PackedWeights weights;
  MatMulNBitsArgs args;
};

// The arguments of syrk, in the block's order.
struct Syrk {
  Syrk(const Syrk&) = delete;
  explicit Syrk(double* scalars) : reader(scalars) {
    args.alpha = reader.factor();
    args.transA = reader.integer();
    reader.operand(&args.A);
    reader.output(&args.Y);
  }
  BlockReader reader;
  SyrkArgs args;
};

int finish(const Status& result) {
  if (!result.ok()) status = result;
  return static_cast<int>(result.code);
}

CallCache call_cache;
static_assert(CallCache::kMaxScalars >= kMostTensors);

// js/ never writes a block with such an error. The check keeps calls inside the operands.
Status refusal() {
  return error(Code::kArgument, "call", "",
               {"a size, type or address in the block of arguments is out of range"});
}

// Asks for a plan of a call, or else for its explanation.
struct Request {
  PlannedCall* planned = nullptr;  // null: explain
  Explanation* explanation = nullptr;
  int64_t reserved = 0;          // see explain()
  const void* packed = nullptr;  // set to the packed weights of the call, or null
  bool reads_values = true;      // whether to check the values of scales and zero points
};

// Reads the arguments in the block. `scalars` receives the elements of operands that are given as
// numbers.
template <typename Arguments>
Status perform(double* scalars, Request* request) {
  Arguments call(scalars);
  if (!call.reader.ok()) return refusal();
  if constexpr (std::is_same_v<Arguments, Quantized>)
    call.args.reads_values = request->reads_values;
  request->packed = call.reader.packed();
  return request->planned != nullptr
             ? plan_call(*instance, call.args, request->planned)
             : explain(*instance, call.args, request->explanation, request->reserved);
}

// js/ops/operations.ts numbers them.
constexpr Status (*kOperations[])(double* scalars, Request* request) = {
    perform<Gemm>, perform<MatMul>, perform<Quantized>, perform<MatMulNBits>, perform<Syrk>};

constexpr size_t kOperationCount = sizeof(kOperations) / sizeof(*kOperations);

int compute(int operation, size_t words) {
  const std::span<const double> arguments(argument_block, words);
  if (PlannedCall* cached = call_cache.find(operation, arguments); cached != nullptr) {
    const int code = finish(read_again(*instance, cached));
    return code != 0 ? code : finish(run(*instance, *cached));
  }
  const auto [planned, scalars] = call_cache.next();
  Request request{.planned = &planned};
  if (const int code = finish(kOperations[operation](scalars, &request)); code != 0) return code;
  call_cache.keep(operation, arguments, request.packed);
  return finish(run(*instance, planned));
}

// Checks the call in the block, except for the values of scales and zero points.
int check(int operation) {
  const auto [planned, scalars] = call_cache.next();
  Request request{.planned = &planned, .reads_values = false};
  return finish(kOperations[operation](scalars, &request));
}

// Plans a product of a program.
Status plan_product(Context&, int operation, std::span<const double> words, double* scalars,
                    PlannedCall* planned) {
  if (static_cast<size_t>(operation) >= kOperationCount || words.size() > kBlockLength)
    return refusal();
  std::copy(words.begin(), words.end(), argument_block);
  Request request{.planned = planned, .reads_values = false};
  return kOperations[operation](scalars, &request);
}
static_assert(Program::kMostScalars >= kMostTensors);

Program* program_at(uintptr_t address) { return reinterpret_cast<Program*>(address); }

// Reads a program of `count` words at an address. The block then begins with the program's address.
int make_program(uintptr_t words, size_t count) {
  bool is_valid = false;
  Program* const program = Program::make(*instance, {reinterpret_cast<const double*>(words), count},
                                         plan_product, bindings::other_steps, &is_valid);
  argument_block[0] = static_cast<double>(reinterpret_cast<uintptr_t>(program));
  if (program != nullptr) return 0;
  return finish(is_valid ? error(Code::kOutOfMemory, "run", "",
                                 {"memory does not suffice for % words of steps",
                                  static_cast<int64_t>(count)})
                         : refusal());
}

int run_program(uintptr_t program, size_t first, size_t end) {
  return finish(program_at(program)->run(*instance, first, end));
}

void release(uintptr_t memory) {
  void* const address = reinterpret_cast<void*>(memory);
  call_cache.forget(address);
  instance->release(address);
}

// The elements of operands that are given as numbers, for calls that are not computed.
double scalars[kMostTensors];

// On success the block begins with the members of an Explanation, in this order. The name of the
// kernel is an address.
int run_explain(int operation, double reserved) {
  Explanation e;
  Request request{.explanation = &e, .reserved = static_cast<int64_t>(reserved)};
  if (const int code = finish(kOperations[operation](scalars, &request)); code != 0) return code;
  double* out = argument_block;
  for (const char* name : {e.kernel, e.regime})
    *out++ = static_cast<double>(reinterpret_cast<uintptr_t>(name));
  for (const int64_t value :
       {e.batch, e.m, e.n, e.k, e.mr, e.nr, e.kr, e.mc, e.nc, e.kc, e.threads, e.vectors,
        int64_t{e.packs_a}, int64_t{e.packs_b}, int64_t{e.direct}, int64_t{e.transposed},
        e.scratch_bytes, int64_t{e.out_of_core}, e.moved_bytes}) {
    *out++ = static_cast<double>(value);
  }
  return 0;
}

// `result`: the status of the call that made `weights`. On success, the block begins with their
// address, bytes, operation, type, rank, sizes, and the number of their block format.
int return_weights(PackedWeights& weights, const Status& result) {
  if (!result.ok()) return finish(result);
  double* out = argument_block + 1;
  *out++ = static_cast<double>(weights.bytes());
  *out++ = static_cast<double>(weights.op());
  *out++ = static_cast<double>(weights.dtype());
  *out++ = static_cast<double>(weights.batch().size() + 2);
  for (const int64_t size : weights.batch()) *out++ = static_cast<double>(size);
  *out++ = static_cast<double>(weights.k());
  *out++ = static_cast<double>(weights.n());
  *out++ = static_cast<double>(weights.block_format());
  argument_block[0] = static_cast<double>(reinterpret_cast<uintptr_t>(weights.detach()));
  return 0;
}

int run_pack() {
  BlockReader reader(scalars);
  PackArgs args;
  args.op = static_cast<PackFor>(reader.integer());
  args.trans = reader.integer();
  args.as = reader.optional_dtype();
  reader.operand(&args.B);
  if (!reader.ok()) return finish(refusal());
  PackedWeights weights;
  return return_weights(weights, pack(*instance, args, &weights));
}

int run_begin_pack(int dtype, double k, double n) {
  PackedWeights weights;
  return return_weights(weights,
                        begin_pack(*instance, static_cast<DType>(dtype), static_cast<int64_t>(k),
                                   static_cast<int64_t>(n), &weights));
}

// The block: trans, row and column of the part, B, and packed weights.
int run_pack_part() {
  BlockReader reader(scalars);
  PackPart part;
  part.trans = reader.integer();
  part.row = reader.integer();
  part.col = reader.integer();
  reader.operand(&part.B);
  ConstTensor none;
  PackedWeights weights;
  const bool is_packed = reader.weights(&none, &weights) != nullptr;
  if (!reader.ok() || !is_packed) return finish(refusal());
  call_cache.forget(reader.packed());  // a plan may rely on finite elements
  return finish(pack_part(&weights, part));
}

// The block: address of x, rows, cols, elements from row to row, type of y, address of y, scale,
// zero point, addresses that receive the scale and the zero point. Then for C of a bias: its number
// of elements, the addresses of the bias and of the scales of B, their number, the address of C.
// The scale and the zero point are as in quantize() in base/quantize.h. An address that receives
// one of them may be 0.
int run_quantize() {
  const auto integer = [](int i) { return static_cast<int64_t>(argument_block[i]); };
  const auto pointer = [](int i) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(argument_block[i]));
  };
  QuantizedScale q{static_cast<float>(argument_block[6]), static_cast<int>(argument_block[7])};
  const FloatRows x{static_cast<const float*>(pointer(0)), integer(1), integer(2), integer(3)};
  Status result = quantize(x, static_cast<DType>(integer(4)), &q, pointer(5));
  if (!result.ok()) return finish(result);
  if (auto* const scale = static_cast<float*>(pointer(8)); scale != nullptr) *scale = q.scale;
  if (auto* const zero_point = static_cast<std::byte*>(pointer(9)); zero_point != nullptr)
    *zero_point = static_cast<std::byte>(q.zero_point);
  quantize_bias(static_cast<const float*>(pointer(11)), integer(10), q.scale,
                static_cast<const float*>(pointer(12)), argument_block[13] > 1,
                static_cast<int32_t*>(pointer(14)));
  return 0;
}

std::span<std::byte> bytes_at(uintptr_t address, size_t length) {
  return {reinterpret_cast<std::byte*>(address), length};
}

// The block: as of matmulNBits from K to the zero points, and then B.
int run_pack_nbits() {
  BlockReader reader(scalars);
  ConstTensor zero_points;
  NBitsWeights weights = read_nbits(reader, &zero_points);
  reader.operand(&weights.B);
  if (!reader.ok()) return finish(refusal());
  PackedWeights packed;
  return return_weights(packed, pack_nbits(*instance, weights, &packed));
}

int run_begin_blocks(int format, double k, double n) {
  PackedWeights weights;
  return return_weights(
      weights, begin_pack(*instance, static_cast<BlockFormat>(format), static_cast<int64_t>(k),
                          static_cast<int64_t>(n), &weights));
}

int run_pack_blocks(uintptr_t weights, double first, uintptr_t bytes, size_t length) {
  PackedWeights view = PackedWeights::view(reinterpret_cast<void*>(weights));
  return finish(pack_part(&view, static_cast<int64_t>(first), bytes_at(bytes, length)));
}

int run_serialize(uintptr_t weights, uintptr_t bytes, size_t length) {
  return finish(
      serialize(PackedWeights::view(reinterpret_cast<void*>(weights)), bytes_at(bytes, length)));
}

int run_deserialize(uintptr_t bytes, size_t length) {
  PackedWeights weights;
  return return_weights(weights, deserialize(*instance, bytes_at(bytes, length), &weights));
}

// The block then begins with a row of the table of kernels: name, compute type, mr, nr, kr,
// preferred.
void kernel(int index) {
  const KernelInfo info = kernel_info(index, instance->vectors());
  double* out = argument_block;
  *out++ = static_cast<double>(reinterpret_cast<uintptr_t>(info.name));
  for (const int value : {static_cast<int>(info.compute), info.mr, info.nr, info.kr,
                          static_cast<int>(info.preferred)})
    *out++ = value;
}

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

namespace wgemm::bindings {

const OtherSteps* other_steps = nullptr;

Context& context() { return *instance; }
double* block() { return argument_block; }
int finish(const Status& result) { return ::finish(result); }

}  // namespace wgemm::bindings

EMSCRIPTEN_BINDINGS(wgemm) {
  using emscripten::function;
  // Must be called first, and once. A memory_limit of 0 means no limit.
  function(
      "start", +[](double memory_limit, bool strict) {
        instance.emplace(static_cast<size_t>(memory_limit),
                         strict ? Determinism::kStrict : Determinism::kFast);
      });
  // Must be called at most once, after the workers of the threads exist.
  function("setThreads", +[](int threads) { return finish(instance->set_threads(threads)); });
  function("setVectors", +[](int bytes) { instance->set_vectors(bytes); });
  function("block", +[] { return address(argument_block); });
  function("blockLength", +[] { return kBlockLength; });
  function("staging", +[] { return address(staging); });
  function("compute", &compute);
  function("check", &check);
  function("explain", &run_explain);
  function("makeProgram", &make_program);
  function("runProgram", &run_program);
  function("failedNode", +[](uintptr_t program) { return program_at(program)->failed_node(); });
  function("dropProgram", +[](uintptr_t program) { program_at(program)->destroy(*instance); });
  function("pack", &run_pack);
  function("packNBits", &run_pack_nbits);
  function("beginPack", &run_begin_pack);
  function("packPart", &run_pack_part);
  function("beginBlocks", &run_begin_blocks);
  function("packBlocks", &run_pack_blocks);
  function("quantize", &run_quantize);
  function(
      "serializedBytes", +[](uintptr_t weights) {
        return serialized_bytes(PackedWeights::view(reinterpret_cast<void*>(weights)));
      });
  function("serialize", &run_serialize);
  function("deserialize", &run_deserialize);
  function("kernelCount", &kernel_count);
  function("kernel", &kernel);
  function("errorMessage", +[] { return address(status.message); });
  function("errorArgument", +[] { return address(status.argument); });
  function(
      "allocate", +[](double bytes) {
        return bytes > static_cast<double>(SIZE_MAX)
                   ? uintptr_t{0}
                   : address(instance->allocate(static_cast<size_t>(bytes)));
      });
  function("release", &release);
  function("bytesInUse", +[] { return instance->bytes_in_use(); });
  function("dtypeName", +[](int index) { return address(dtype_name(static_cast<DType>(index))); });
  function("dtypeCount", +[] { return kDTypeCount; });
}
