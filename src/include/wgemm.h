// wgemm: matrix multiplication, exact to the specifications of ONNX Gemm, com.microsoft QGemm,
// oneDNN Graph MatMul, of the products of dynamically quantized models: ONNX MatMulInteger and
// QLinearMatMul, com.microsoft DynamicQuantizeMatMul and MatMulIntegerToFloat, and of those with
// weights of a few bits: com.microsoft MatMulNBits. This header is the whole public interface.
//
//   wgemm::Context context;
//   const int64_t a_dims[] = {m, k}, b_dims[] = {k, n}, y_dims[] = {m, n};
//   wgemm::GemmArgs args;
//   args.A = {a, wgemm::DType::kFloat32, a_dims};
//   args.B = {b, wgemm::DType::kFloat32, b_dims};
//   args.Y = {y, wgemm::DType::kFloat32, y_dims};
//   if (wgemm::Status status = wgemm::gemm(context, args); !status.ok()) puts(status.message);
//
// Rules that hold throughout:
//  - Sizes and strides count elements, never bytes, unless a name says bytes.
//  - The caller owns every tensor. The library keeps no pointer to one after a call returns, except
//    in a PreparedCall.
//  - A call checks all its arguments before it writes anything. After an error nothing has changed,
//    and the next call works.
//  - The library uses neither exceptions nor RTTI: an allocation that fails is a Status.
//  - `data` must be aligned to its type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace wgemm {

class ThreadPool;

inline constexpr const char kVersion[] = "0.1.0";

// Data types --------------------------------------------------------------------------------------

// The bits of an IEEE 754 binary16, and of a bfloat16.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

enum class DType : uint8_t {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) k##Enumerator,
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) k##Enumerator,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

inline constexpr int kDTypeCount = 0
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) +1
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) +1
#include "dtypes.def"
#undef WGEMM_DTYPE
    ;

// ONNX's spelling, such as "float32".
constexpr const char* dtype_name(DType type) {
  constexpr const char* kNames[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) #name,
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) #name,
#include "dtypes.def"
#undef WGEMM_DTYPE
  };
  return kNames[static_cast<int>(type)];
}

// Bytes of one element.
constexpr size_t dtype_bytes(DType type) {
  constexpr size_t kBytes[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) sizeof(Storage),
#define WGEMM_DTYPE_8BIT(Enumerator, name, Storage) sizeof(Storage),
#include "dtypes.def"
#undef WGEMM_DTYPE
  };
  return kBytes[static_cast<int>(type)];
}

// Errors ------------------------------------------------------------------------------------------

enum class Code : uint8_t {
  kOk,
  kShape,        // a rank, size, stride, offset or array length breaks a rule
  kDType,        // a type that the operation lacks, or types that must agree and do not
  kOpset,        // the version of the operator that `opset` names lacks what was asked for
  kArgument,     // any other argument is out of its range, or an output overlaps an input
  kOutOfMemory,  // an allocation failed, or would exceed the context's limit
  // Weights were packed for another operation, or bytes are not packed weights. If their type or
  // shape does not fit the other operand, that is kDType or kShape, as it is for other weights.
  kPackMismatch,
};

// An error, in one sentence that names the argument, what was found and what is allowed.
struct Status {
  Code code = Code::kOk;
  const char* op = "";        // "gemm"; static storage
  const char* argument = "";  // "A", "C", "opset"; static storage
  char message[320];

  Status() { message[0] = 0; }
  bool ok() const { return code == Code::kOk; }
};

// Writes `value` to `element` as one element of `dtype`, rounded to nearest even. `op` and
// `argument` are what an error names. Errors: kArgument if an integer type cannot hold the value,
// kDType.
Status store(const char* op, const char* argument, double value, DType dtype, void* element);

// Tensors -----------------------------------------------------------------------------------------

// The highest rank of a tensor.
inline constexpr int kMaxRank = 64;

// Where a tensor's `data` lies, for the check that an output overlaps no input. A caller sets it if
// `data` cannot tell, because the elements are not in memory yet.
struct Place {
  uint32_t space = 0;  // the caller's number of a buffer; 0: `data` tells
  int64_t offset = 0;  // bytes from the start of that buffer
};

// A block of a tensor that is not in memory, as `count` runs of `length` elements. If the tensor
// were in memory, element j of run i would be data[offset + i * run_stride + j * stride]. So
// `offset` includes the tensor's own offset. All members count elements.
struct Runs {
  int64_t offset, count, length, run_stride, stride;

  bool operator==(const Runs&) const = default;
};

// For a tensor that is out-of-core: the caller keeps its elements, and moves blocks of them while a
// call computes. So a product may be larger than memory, or than the limit of the context.
struct OutOfCore {
  // Copies the elements of `runs` from an input to `block`, or from `block` to an output. In
  // `block` the runs are contiguous. Must not call the library.
  void (*move)(void* caller, const Runs& runs, void* block) = nullptr;
  void* caller = nullptr;
};

// An input, or with T = void an output. `dims` and `strides` must outlive the call. Element (i, j)
// is data[offset + i * strides[0] + j * strides[1]]. No two elements of an output may share a
// place: each stride must exceed the extent of all axes with smaller strides.
//
// So one head of a fused QKV is a view: `data` of the whole, an offset, and its strides.
template <typename T>
struct BasicTensor {
  T* data = nullptr;
  DType dtype = DType::kFloat32;
  std::span<const int64_t> dims{};  // each >= 0
  // In elements, each >= 0; 0 repeats an element of an input. Empty: contiguous and row-major.
  std::span<const int64_t> strides{};
  int64_t offset = 0;  // index in `data` of the first element, >= 0
  // Number of elements that `data` points to. It must be exactly what dims need. With strides or an
  // offset, it may be larger than what dims and strides need from the offset on. -1: not checked.
  int64_t size = -1;
  Place place{};
  // A, B, C and Y (src, weights, bias and dst) may be out-of-core: then this is set and `data` is
  // null. Must outlive the call.
  const OutOfCore* out_of_core = nullptr;
};
using ConstTensor = BasicTensor<const void>;
using Tensor = BasicTensor<void>;

// Context -----------------------------------------------------------------------------------------

// Whether results are the same bits everywhere.
enum class Determinism : uint8_t {
  // The order of summation is free, and products may be fused. Results in floating point may
  // depend on the build, the processor, shapes, layouts and packing; if operands are out-of-core,
  // also on the free memory. They do not depend on the number of threads.
  kFast,
  // One order of summation: ascending k into one accumulator per element, unfused, with each
  // product and each sum rounded. Every NaN that is written is the canonical one. The bits are the
  // same in every build, on every processor, for every number of threads, packed or not. Integers
  // are exact in either mode.
  kStrict,
};

// The largest number of threads of a context.
inline constexpr int kMaxThreads = 64;

// Owns the threads, and counts all memory that the library allocates. Not copyable. Only one thread
// at a time may make calls with a context.
class Context {
 public:
  // memory_limit: bytes that may be allocated through this context at the same time. 0: only the
  // system sets a limit.
  explicit Context(size_t memory_limit = 0, Determinism determinism = Determinism::kFast);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Returns memory aligned to 64 bytes, or null if the system or the limit refuses. The caller owns
  // it and frees it by release().
  void* allocate(size_t bytes);
  // Frees memory from allocate(). `memory` may be null.
  void release(void* memory);

  // The largest number of bytes that the limit allows one allocation. In wasm, where the memory of
  // a module never shrinks, the limit applies to all memory that the module has committed.
  size_t room() const;

  // Whether the limit allows another allocation of `bytes`, including its overhead for alignment.
  bool has_room(size_t bytes) const;

  // Bytes allocated and not yet released, including the overhead for alignment.
  size_t bytes_in_use() const { return in_use_; }
  size_t memory_limit() const { return limit_; }
  Determinism determinism() const { return determinism_; }

  // Sets the number of threads that compute a call, including the caller's own: 1 at first. The
  // other threads sleep between calls and end with the context, or when `threads` is 1. A call with
  // few multiply-adds uses fewer threads. Every number of threads returns the same results.
  // Errors: kArgument if `threads` is not 1 to kMaxThreads, or not 1 in a build without threads.
  // kOutOfMemory if the system does not start that many. The number is then as before.
  Status set_threads(int threads);
  int threads() const { return threads_; }

  // Sets the bytes of the vectors that kernels are chosen for: 16 at first, or 32. V8 joins two
  // neighbouring operations on 16 bytes to one on 32 bytes with the flag
  // --experimental-wasm-revectorize, on processors with AVX2. 32 chooses kernels whose operations
  // all have such a neighbour. They are slower if the engine joins nothing. Both return the same
  // results. Any number except 32 means 16.
  void set_vectors(int bytes);
  int vectors() const { return vectors_; }

  // Changes with the number of threads and the vectors. A plan is for one generation.
  uint32_t generation() const { return generation_; }

 private:
  friend struct Threads;
  void end_threads();
  size_t limit_;
  Determinism determinism_;
  size_t in_use_ = 0;
  int threads_ = 1;
  int vectors_ = 16;
  uint32_t generation_ = 0;
  ThreadPool* pool_ = nullptr;  // of threads_ threads; null if that is 1
};

// Weights -----------------------------------------------------------------------------------------

// The operation that weights are packed for.
enum class PackFor : uint8_t {
  kGemm,   // gemm() and matmul()
  kQGemm,  // qgemm() and integer_matmul(), with any scales and zero points
  kMatMulNBits,
};

// The block formats of ggml. See ggml-common.h and ggml-quants.c:
// https://github.com/ggml-org/llama.cpp/tree/master/ggml/src. W = d * q, with codes q of a few
// bits; or W = d * q - minimum. Formats whose names end with K have blocks of 256 steps, with
// sub-blocks that have scales of their own. The others have blocks of 32 steps.
enum class BlockFormat : uint8_t {
  kNone,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K
};
// The steps of K in a block, and the bytes of a block in a file. Both are 0 for kNone.
int64_t block_steps(BlockFormat format);
int64_t block_bytes(BlockFormat format);

// B', or a stack of such matrices, packed once for any number of calls with any A. Owns a copy in
// memory of the context; B may be freed. Movable. Empty until pack() fills it.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(PackedWeights&& other) noexcept;
  PackedWeights& operator=(PackedWeights&& other) noexcept;
  ~PackedWeights();

  bool empty() const { return memory_ == nullptr; }
  // Only for weights that are not empty:
  PackFor op() const;
  DType dtype() const;                     // of the packed elements; for kMatMulNBits of scales
  BlockFormat block_format() const;        // kNone: not weights of a block format
  std::span<const int64_t> batch() const;  // sizes of the axes in front of the matrix
  int64_t k() const;                       // rows of B'
  int64_t n() const;                       // columns of B'
  size_t bytes() const;                    // of memory, for all matrices

  // For a binding that keeps the memory itself. detach() passes ownership to the caller, who frees
  // the memory by Context::release(). view() makes weights that use such memory and do not own it.
  void* detach();
  static PackedWeights view(const void* memory);

 private:
  friend struct WeightsAccess;
  Context* context_ = nullptr;  // releases the memory; null: these weights do not own it
  const void* memory_ = nullptr;
};

struct PackArgs {
  PackFor op = PackFor::kGemm;
  // (..., K, N), or (..., N, K) with trans. For kQGemm: int8 or uint8; qgemm() takes only weights
  // without batch axes. For kGemm: any type of Gemm.
  ConstTensor B;
  int64_t trans = 0;  // not 0: B' is the transpose of B
  // The type of the packed elements: B's type, which is the default. If that is float32, also
  // float16 or bfloat16, rounded to nearest even.
  std::optional<DType> as{};
};

// Packs weights. Weights packed as float16 or bfloat16 serve an A of that type and of float32. The
// weights must not outlive `context`. Errors: kShape, kDType, kArgument, kOutOfMemory; *weights is
// then as it was before.
Status pack(Context& context, const PackArgs& args, PackedWeights* weights);

// Weights of MatMulNBits: codes of a few bits. Each column has a scale and a zero point for each
// block of block_size steps of K. The weights are (code - zero point) * scale.
struct NBitsWeights {
  // uint8, (N, nb, block_size * bits / 8) with nb = ceil(K / block_size): for each column its codes
  // along k, without gaps, the first in the lowest bits. Codes beyond K may have any value.
  ConstTensor B;
  ConstTensor scales;  // float32, float16 or bfloat16; (N, nb), or (N * nb)
  // uint8: codes of the same bits, of nb blocks in ceil(nb * bits / 8) bytes per column. Or the
  // type of scales: any numbers, one per scale. Absent: 2^(bits - 1). (N, bytes), or (N * bytes).
  const ConstTensor* zero_points = nullptr;
  int64_t K = 0, N = 0;
  int64_t bits = 4;        // 2, 4 or 8
  int64_t block_size = 0;  // 16, 32, 64, 128 or 256
};

// Packs weights of MatMulNBits, in their own bits. B, scales and zero_points must be contiguous.
Status pack_nbits(Context& context, const NBitsWeights& weights, PackedWeights* packed);

// Weights can arrive in parts, such as from a file or a network, and then never lie in memory
// twice. begin_pack() makes weights of zeros, and pack_part() packs a part of them. Parts may come
// in any order, and may come again. After the last part, the weights have the bytes that pack()
// makes of the whole matrix. Pack all parts before calls take the weights: a PreparedCall does not
// see later parts. Errors: kShape, kDType, kArgument; for begin_pack() also kOutOfMemory, and for
// pack_part() kPackMismatch. After an error nothing has changed.

// Begins weights of K x N elements for gemm() and matmul(). `as`: float32, float64, float16 or
// bfloat16. The weights must not outlive `context`.
Status begin_pack(Context& context, DType as, int64_t K, int64_t N, PackedWeights* weights);

// The part of B' that begins at this row and this column.
struct PackPart {
  // (rows, columns), or (columns, rows) with trans. B has the type of the weights. If that is
  // float16 or bfloat16, B may be float32, and is rounded to nearest even.
  ConstTensor B;
  int64_t trans = 0;  // not 0: the part is the transpose of B
  int64_t row = 0;    // of B', from 0 to K minus the rows of the part
  int64_t col = 0;    // of B', a multiple of kPartColumns
};

// The number of columns of a part must be a multiple of this, unless the part has the last column.
inline constexpr int64_t kPartColumns = 8;

// Packs a part of weights that begin_pack() made, or that pack() made of one matrix of these types.
Status pack_part(PackedWeights* weights, const PackPart& part);

// Begins weights of K x N elements in a block format, for matmul_nbits(). K must be a multiple of
// block_steps(format). The weights must not outlive `context`.
Status begin_pack(Context& context, BlockFormat format, int64_t K, int64_t N,
                  PackedWeights* weights);

// Packs columns of weights in a block format, from column `first` on. `bytes` has whole columns,
// one after the other, as a file has its rows: K / block_steps() blocks of block_bytes() bytes per
// column, at any address. Error kArgument also if a scale is infinite or NaN.
Status pack_part(PackedWeights* weights, int64_t first, std::span<const std::byte> bytes);

// Packed weights can be kept as bytes. Every build of this version, on every machine, writes the
// same bytes for the same weights, and reads the bytes of every other.

// The number of bytes that serialize() writes; 0 for empty weights.
size_t serialized_bytes(const PackedWeights& weights);

// Writes the weights to `bytes`, whose length must be serialized_bytes(). Errors: kArgument if the
// weights are empty, kShape if the length differs.
Status serialize(const PackedWeights& weights, std::span<std::byte> bytes);

// Makes packed weights from bytes of serialize(), of any alignment, and keeps a copy. The weights
// must not outlive `context`. Errors: kPackMismatch if the bytes are not exactly what serialize()
// writes for some weights; kOutOfMemory. *weights is then as it was before.
Status deserialize(Context& context, std::span<const std::byte> bytes, PackedWeights* weights);

// Operations --------------------------------------------------------------------------------------

// alpha or beta: a float64, or an exact integer modulo 2^64.
class Factor {
 public:
  // Implicit, for args.alpha = 0.5.
  Factor(double number) : number_(number) {}  // NOLINT(google-explicit-constructor)
  // For the 64-bit integer types only. The other factor must then be whole.
  static Factor exact(uint64_t integer) {
    Factor factor(static_cast<double>(static_cast<int64_t>(integer)));
    factor.integer_ = integer;
    factor.is_exact_ = true;
    return factor;
  }
  // The number; for an exact factor the float64 nearest to its value as an int64.
  double number() const { return number_; }
  // Only for an exact factor.
  uint64_t integer() const { return integer_; }
  bool is_exact() const { return is_exact_; }

 private:
  double number_;
  uint64_t integer_ = 0;
  bool is_exact_ = false;
};

// Bounds of the elements of a result, as some activation functions have them: {0} is relu, {0, 6}
// is relu6. An element below min becomes min, an element above max becomes max. All others stay as
// they are, including NaN, and -0 if a bound is 0.
//
// Neither bound may be NaN, and min must not exceed max. For float32, float16 and bfloat16 the
// bounds are rounded to float32; for float64 they stay float64. A result of 16 bits is rounded
// after it is bounded, so the bounds that it obeys are rounded to its type. With a max of 0.1 a
// bfloat16 may be 0.10009765625. For integers each bound must be infinite, or whole and at most
// 2^53 in magnitude. A bound beyond the range of the type means the end of that range.
struct Activation {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

// ONNX Gemm, Y = alpha * A' * B' + beta * C, at opsets 1, 6, 7, 9, 11 and 13. A' is A, or its
// transpose when transA is not zero. https://onnx.ai/onnx/operators/onnx__Gemm.html
//
// Floating point: NaN and infinities propagate. alpha = 0 does not skip the product: 0 * NaN is
// NaN. With beta = 0, C is not read. The context's Determinism sets the order of summation. If K =
// 0 there is no product, whatever alpha is: Y is beta * C, or 0 without C.
//
// Integers: exact modulo 2^bits if alpha and beta are whole. A factor with a fraction that has an
// effect (alpha if K > 0, beta if there is a C) makes the call combine in float64. It converts the
// wrapped product and C, combines them, truncates toward zero and saturates. Then 64-bit values
// above 2^53 lose bits. Factors must be finite and, unless exact, at most 2^53 in magnitude.
//
// float16 and bfloat16: accumulated and combined in float32, and rounded once, to nearest even.
//
// A, B, C and Y have one type. If A is float32, packed weights may be float16 or bfloat16. They are
// widened to float32, which is exact, and all else is as with float32.
struct GemmArgs {
  ConstTensor A;  // (M, K), or (K, M) with transA
  ConstTensor B;  // (K, N), or (N, K) with transB
  // Replaces B, which is then not read; transB must be 0.
  const PackedWeights* packed_B = nullptr;
  // Broadcast to (M, N) in one direction. null: absent, from opset 11 on.
  const ConstTensor* C = nullptr;
  Tensor Y;  // (M, N); may be exactly C: the same memory, shape and strides
  // Rounded to float32 for float32, float16 and bfloat16; kept as it is for float64 and integers.
  Factor alpha = 1;
  Factor beta = 1;  // as alpha; 0: C is checked but not read
  // Bounds alpha * A' * B' + beta * C before it is rounded to 16 bits; for integers, bounds Y.
  // Every opset allows it.
  Activation activation;
  int64_t transA = 0;  // not 0: A' is the transpose of A
  int64_t transB = 0;  // not 0: B' is the transpose of B
  int64_t opset = 13;  // of the model; selects the newest version of Gemm that is not above it
  // Only for opsets 1 and 6, where the default is 0: C must have exactly shape (M, N).
  std::optional<int64_t> broadcast;
};

// Computes Y. Errors: kShape, kDType, kOpset, kArgument, kPackMismatch, kOutOfMemory.
Status gemm(Context& context, const GemmArgs& args);

// Makes all checks of gemm(), computes nothing, and returns the shape of Y: dims[0] = M and
// dims[1] = N. `data` of the tensors may be null. Y is checked if its dims are set; `place` then
// decides whether it overlaps an input.
Status gemm_shape(const GemmArgs& args, int64_t dims[2]);

// Y = alpha * A' * transpose(A'): the products of all pairs of rows of A', such as a Gram matrix or
// a covariance. A' is A, or its transpose when transA is not zero. Computes the lower triangle,
// which takes half of the work of gemm(), and copies it to the upper one. So Y is exactly
// symmetric. Otherwise as gemm() with B = A, no C, and transB = !transA, for float32 and float64.
struct SyrkArgs {
  ConstTensor A;  // (N, K), or (K, N) with transA; float32 or float64, in memory
  Tensor Y;       // (N, N), of the type of A, in memory; must not overlap A
  Factor alpha = 1;
  int64_t transA = 0;  // not 0: A' is the transpose of A
};

// Computes Y. Errors: kShape, kDType, kArgument, kOutOfMemory.
Status syrk(Context& context, const SyrkArgs& args);

// As gemm_shape(): writes dims[0] = dims[1] = N.
Status syrk_shape(const SyrkArgs& args, int64_t dims[2]);

// com.microsoft QGemm of 8-bit A and B, int8 or uint8 each:
//   acc = sum over k of (A' - a_zero_point) * (B' - b_zero_point[n]) + C, in int32 that wraps
//   s[n] = ((alpha * a_scale) * b_scale[n]) / y_scale, each step rounded to float32; without
//   y_scale there is no division
// Without y_scale and y_zero_point, Y is float32: float(acc) * s[n]. With both, Y has the type of
// y_zero_point: float(acc) * s[n] rounded half to even, plus y_zero_point, saturated. One without
// the other is an error. `activation` bounds float(acc) * s[n] before it is rounded. Its bounds are
// rounded to float32 and, if there is a y_scale, divided by it in float32.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
//
// Scales are float32, finite and above 0. A tensor of one value has shape [] or [1]; a tensor of
// one value per column of B' has shape [N]. Zero points have the type of their tensor; if absent,
// they are 0. alpha and the products of scales must be finite.
struct QGemmArgs {
  ConstTensor A;                              // (M, K), or (K, M) with transA; int8 or uint8
  ConstTensor a_scale;                        // one value
  const ConstTensor* a_zero_point = nullptr;  // one value
  ConstTensor B;                              // (K, N), or (N, K) with transB; int8 or uint8
  // Replaces B, which is then not read; transB must be 0.
  const PackedWeights* packed_B = nullptr;
  ConstTensor b_scale;                        // one value, or one per column
  const ConstTensor* b_zero_point = nullptr;  // one value, or one per column
  const ConstTensor* C = nullptr;  // int32, broadcast to (M, N) in one direction; null: absent
  const ConstTensor* y_scale = nullptr;       // one value
  const ConstTensor* y_zero_point = nullptr;  // one value, int8 or uint8
  Tensor Y;               // (M, N), float32 or the type of y_zero_point; overlaps no input
  double alpha = 1;       // rounded to float32
  Activation activation;  // bounds the real numbers that Y represents, before y_scale
  int64_t transA = 0;     // not 0: A' is the transpose of A
  int64_t transB = 0;     // not 0: B' is the transpose of B
};

// Computes Y. Errors: kShape, kDType, kArgument, kPackMismatch, kOutOfMemory.
Status qgemm(Context& context, const QGemmArgs& args);

// As gemm_shape(); also returns the type of Y. Reads no values of scales, zero points or alpha.
Status qgemm_shape(const QGemmArgs& args, int64_t dims[2], DType* dtype);

// oneDNN Graph MatMul, with a factor: dst = alpha * src * weights + bias for stacks of matrices.
// The last two axes are the matrix. The axes before them are batch axes, aligned at the right and
// broadcast in both directions, as in NumPy. A src of rank 1, [K], is a row, and weights of rank 1
// are a column, whatever the flags say. dst lacks the axis that this adds.
// https://uxlfoundation.github.io/oneDNN/dev_guide_op_matmul.html
//
// src, weights and bias have one type, any of Gemm's, and dst has the same. If it is float16 or
// bfloat16, dst may also be float32. If all others are float32, packed weights may be float16 or
// bfloat16. alpha acts, and sums accumulate, as in gemm(). If K = 0, dst is bias, or 0 without
// bias.
struct MatMulArgs {
  ConstTensor src;      // (..., M, K), or (..., K, M) with transpose_a; or (K)
  ConstTensor weights;  // (..., K, N), or (..., N, K) with transpose_b; or (K)
  // Replaces weights, which is then not read; transpose_b must be 0.
  const PackedWeights* packed_weights = nullptr;
  const ConstTensor* bias = nullptr;  // broadcast to dst in one direction; null: absent
  // (..., M, N), without M if src has rank 1, without N if weights has rank 1. May be exactly bias:
  // the same memory, shape and strides.
  Tensor dst;
  Factor alpha = 1;         // as in gemm()
  int64_t transpose_a = 0;  // not 0: the last two axes of src are exchanged
  int64_t transpose_b = 0;  // not 0: the last two axes of weights are exchanged
  Activation activation;    // bounds alpha * src * weights + bias, as in gemm()
};

// Computes dst. Errors: kShape, kDType, kArgument, kPackMismatch, kOutOfMemory.
Status matmul(Context& context, const MatMulArgs& args);

// As gemm_shape(): returns the rank and the sizes of dst. `dims` must have room for kMaxRank sizes.
// The caller must set dst.dtype.
Status matmul_shape(const MatMulArgs& args, int64_t* dims, size_t* rank);

// The products of 8-bit operands that dynamically quantized models use.
enum class IntegerOp : uint8_t {
  // Y = acc, int32. https://onnx.ai/onnx/operators/onnx__MatMulInteger.html
  kMatMulInteger,
  // s = (a_scale * b_scale) / y_scale, each step rounded to float32. Y = acc * s rounded half to
  // even, plus y_zero_point, saturated. https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html
  kQLinearMatMul,
  // A is float32. The call quantizes it to uint8, with the scale and zero point that ONNX
  // DynamicQuantizeLinear computes from the range of all of A. Then as kMatMulIntegerToFloat.
  // com.microsoft.DynamicQuantizeMatMul in
  // https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
  kDynamicQuantizeMatMul,
  // Y = acc * (a_scale * b_scale) + bias, each step rounded to float32. Y is float32; or float16,
  // rounded once, if scales and bias are float16. com.microsoft.MatMulIntegerToFloat in
  // https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
  kMatMulIntegerToFloat,
};

// A product of stacks of matrices, with batch axes and vectors as in matmul():
//   acc = sum over k of (A' - a_zero_point[m]) * (B' - b_zero_point[n]), in int32 that wraps
//
//                          a_scale  a_zero_point  b_scale  b_zero_point  y_scale  y_zero_point bias
//   kMatMulInteger         -        rows          -        columns       -        -             -
//   kQLinearMatMul         rows     rows          columns  columns       rows     rows          -
//   kDynamicQuantizeMatMul -        -             columns  columns       -        -             yes
//   kMatMulIntegerToFloat  one      one           columns  columns       -        -             yes
//
// -        must be null
// one      one value: any shape of one element
// rows     one value, or one per row: [M], or the shape of A' (of Y for y_scale and y_zero_point)
//          with its last size replaced by 1
// columns  one value, or one per column: [N] if B has rank 2, or the shape of B' with 1 in place of
//          K
//
// Scales are required. They are float32, or float16 for kQLinearMatMul and kMatMulIntegerToFloat;
// all scales and the bias of a call have one type. A scale must be finite, and y_scale not 0. The
// largest a_scale times the largest b_scale, divided by the smallest y_scale, must be finite in
// float32. Zero points have the type of their operand; if absent, they are 0. y_zero_point may be
// int8 or uint8. If it is absent, Y has the type of A.
struct IntegerMatMulArgs {
  IntegerOp op = IntegerOp::kMatMulInteger;
  // (..., M, K), or (..., K, M) with transA; or (K). int8 or uint8; for kDynamicQuantizeMatMul
  // float32, finite.
  ConstTensor A;
  ConstTensor B;  // (..., K, N), or (..., N, K) with transB; or (K). int8 or uint8
  // Replaces B, which is then not read; transB must be 0.
  const PackedWeights* packed_B = nullptr;
  const ConstTensor *a_scale = nullptr, *a_zero_point = nullptr;
  const ConstTensor *b_scale = nullptr, *b_zero_point = nullptr;
  const ConstTensor *y_scale = nullptr, *y_zero_point = nullptr;
  const ConstTensor* bias = nullptr;  // N elements, of the type of Y; added last
  // (..., M, N), without M if A has rank 1, without N if B has rank 1. Overlaps no input.
  Tensor Y;
  // Bounds the numbers that Y represents, before y_scale and after bias. Not for kMatMulInteger.
  Activation activation;
  int64_t transA = 0;  // not 0: the last two axes of A are exchanged
  int64_t transB = 0;  // not 0: the last two axes of B are exchanged
};

// Computes Y. Errors: kShape, kDType, kArgument, kPackMismatch, kOutOfMemory.
Status integer_matmul(Context& context, const IntegerMatMulArgs& args);

// As matmul_shape(); also returns the type of Y. Reads no values of scales and zero points.
Status integer_matmul_shape(const IntegerMatMulArgs& args, int64_t* dims, size_t* rank,
                            DType* dtype);

// com.microsoft MatMulNBits: Y = A * B + bias, with B by NBitsWeights.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
//
// accuracy_level 0 to 3: sums in float32 of A times the numbers that codes stand for. The context's
// Determinism sets their order.
// accuracy_level 4: A is quantized to int8, for each row and each block of K. With s = max|a| / 127
// rounded to float32, q is a / s rounded half to even, at most 127 in magnitude. With d the sum
// of q * (code - zero point), Y is the sum over ascending blocks of float(d) * (s * scale), each
// step rounded to float32. It has the same bits everywhere. Zero points of the type of scales make
// the call compute as level 0.
// Block formats at level 4: d is the sum over the sub-blocks of a block of sub-scale * (sum of q *
// code), with signed codes unless the format has minima. Such formats subtract float(u) * (s *
// scale of minima) from the term of a block, where u is the sum over its sub-blocks of minimum *
// (sum of q). d and u are exact.
struct MatMulNBitsArgs {
  // (..., K), of the type of scales; for a block format float32, float16 or bfloat16
  ConstTensor A;
  NBitsWeights weights;  // contiguous
  // Replaces weights, which are then not read.
  const PackedWeights* packed_weights = nullptr;
  const ConstTensor* bias = nullptr;  // (N), of the type of A; added last. null: absent
  Tensor Y;                           // (..., N), of the type of A; overlaps no input
  int64_t accuracy_level = 0;         // 0 to 4
  Activation activation;              // bounds the result, as in gemm()
};

// Computes Y. Errors: kShape, kDType, kArgument, kPackMismatch, kOutOfMemory.
Status matmul_nbits(Context& context, const MatMulNBitsArgs& args);

// As matmul_shape(). Y has the type of A.
Status matmul_nbits_shape(const MatMulNBitsArgs& args, int64_t* dims, size_t* rank);

// Prepared calls ----------------------------------------------------------------------------------

// A call that is checked and planned once and runs any number of times. Each run uses the elements
// that A, B and C then hold. It pays for small products. To check and plan takes 0.2 microseconds,
// which is 40% of a gemm() of 16 x 16 x 16 in float32.
//
//   wgemm::PreparedCall call;
//   if (wgemm::Status status = prepare(context, args, &call); !status.ok()) return status;
//   for (...) {  // fill A
//     if (wgemm::Status status = run(call); !status.ok()) return status;
//   }
//
// Movable. Empty until prepare() fills it, and after it is moved from. It owns about 4 KiB of the
// context's memory, plus copies of the scales and zero points; its destructor releases them.
class PreparedCall {
 public:
  PreparedCall() = default;
  PreparedCall(PreparedCall&& other) noexcept;
  PreparedCall& operator=(PreparedCall&& other) noexcept;
  ~PreparedCall();

  bool empty() const { return state_ == nullptr; }

 private:
  friend struct PreparedAccess;
  struct State;
  State* state_ = nullptr;
};

// Checks and plans gemm(), syrk(), qgemm(), matmul(), integer_matmul() or matmul_nbits() with these
// arguments, and computes nothing.
//
// prepare() reads the arguments and copies them: shapes, strides, flags, alpha, beta, activation,
// scales and zero points. The prepared call may outlive the args struct, its tensors' dims and
// strides, and the memory of scales and zero points. To change any of these, prepare another call.
//
// run() reads A, B, C and bias, and all of NBitsWeights, and writes Y. The prepared call must not
// outlive the memory of these tensors, their OutOfCore structs, the packed weights, or `context`.
// They must not move either.
//
// Errors: every error of the call itself; kOutOfMemory if the context has no memory for the
// prepared call. *call is then as it was before.
Status prepare(Context& context, const GemmArgs& args, PreparedCall* call);
Status prepare(Context& context, const SyrkArgs& args, PreparedCall* call);
Status prepare(Context& context, const QGemmArgs& args, PreparedCall* call);
Status prepare(Context& context, const MatMulArgs& args, PreparedCall* call);
Status prepare(Context& context, const IntegerMatMulArgs& args, PreparedCall* call);
Status prepare(Context& context, const MatMulNBitsArgs& args, PreparedCall* call);

// Computes a prepared call in the context that prepared it. The results are the same as of the call
// itself. Like the call, it may need scratch memory and threads of the context. As for all calls,
// one thread at a time may use the context.
//
// After Context::set_threads() and set_vectors() the call stays valid: the next run() plans it
// again. If tensors are out-of-core, each run() chooses its blocks by the memory that is then
// free. If Y is C, each run() adds to what the last one wrote.
//
// Errors: kArgument if the call is empty, or if A of kDynamicQuantizeMatMul is not finite;
// kOutOfMemory. Nothing is written then, and the call stays valid.
Status run(PreparedCall& call);

// Search ------------------------------------------------------------------------------------------

// Exact search: finds the k vectors with the best scores for a query, as a product and a sort
// would. Scores are never written whole.
//
// Vectors and queries become elements of one type by the same rule, and then
//   acc   = sum over k of query * vector: in float32 with ascending k, unfused; of 8 bits exactly
//   norm  = the same sum of vector * vector
//   scale = the scale of int8 elements, and 1 for all other types
//   kDot        acc * (query's scale * vector's scale)
//   kCosine     acc / sqrt(query's norm * vector's norm), at least -1 and at most 1
//   kEuclidean  sqrt(max(0, query's scale^2 * norm + vector's scale^2 * norm - 2 * (both scales) *
//               acc))
// computed in float64 and rounded once to float32. So a vector finds itself at a cosine of exactly
// 1 and at a distance of exactly 0. Ties go to the vector that was added first. The bits are the
// same in every build, on every processor and for every number of threads.
enum class Metric : uint8_t {
  kDot,        // larger is better
  kCosine,     // larger is better; no vector may be 0
  kEuclidean,  // a distance: smaller is better
};

struct VectorsArgs {
  int64_t dimensions = 0;  // 1 to 32768
  int64_t capacity = 0;    // vectors for which there is memory, 1 to 2^32 - 1
  // float32, float16 or bfloat16: rounded to nearest even. int8: v / s rounded half to even. The
  // scale s is max|v| / 127 rounded to float32, at least the smallest float32, and 1 for a vector
  // of zeros. uint8: whole numbers.
  DType dtype = DType::kFloat32;
  Metric metric = Metric::kCosine;
  // float32 or bfloat16, only for int8: the vectors are also kept in this type. search() finds
  // candidates by the scores of int8, and then orders them by the scores of this type.
  std::optional<DType> rescore{};
};

// A set of vectors with a fixed capacity. A set that grows is a list of these: see Segment. Owns
// memory of the context. Movable. Empty until make_vectors() fills it.
class Vectors {
 public:
  Vectors() = default;
  Vectors(Vectors&& other) noexcept;
  Vectors& operator=(Vectors&& other) noexcept;
  ~Vectors();

  bool empty() const { return memory_ == nullptr; }
  // These must not be called if it is empty:
  int64_t dimensions() const;
  int64_t capacity() const;
  int64_t count() const;  // vectors that were appended
  size_t bytes() const;   // of memory

  // As in PackedWeights, for a binding that keeps the memory itself.
  void* detach();
  static Vectors view(void* memory);

 private:
  friend struct VectorsAccess;
  Context* context_ = nullptr;
  void* memory_ = nullptr;
};

// Allocates memory for vectors, which must not outlive `context`. Errors: kArgument, kDType,
// kOutOfMemory; *vectors is then as it was before.
Status make_vectors(Context& context, const VectorsArgs& args, Vectors* vectors);

struct AppendArgs {
  // (n, dimensions), contiguous, in memory. float32, float16 or bfloat16; int8 or uint8 only for
  // vectors of the same type, whose elements they then are.
  ConstTensor vectors;
  // Only for rows of int8: n scales, finite and above 0. null: 1.
  const float* scales = nullptr;
  // (n, dimensions) elements of the type of VectorsArgs::rescore. null: made of `vectors`.
  const void* rescored = nullptr;
  int64_t first = 0;  // number of the first row in errors
};

// Adds rows at the end: all of them, or none after an error. Errors: kShape, kDType; kArgument if
// an element is NaN or infinite, if the norm of a row is not finite in float32, or 0 with kCosine;
// kOutOfMemory if the capacity does not suffice.
Status append(Vectors* vectors, const AppendArgs& args);

// The inverse of append(), for vectors that are kept as bytes: `count` rows from `first` on, which
// must exist. Writes contiguous elements of the type of the vectors, the scales of int8, and the
// elements for rescoring. Each pointer may be null.
void read(const Vectors& vectors, int64_t first, int64_t count, void* rows, float* scales,
          void* rescored);

// Removes all vectors from the number `count` on.
void truncate(Vectors* vectors, int64_t count);

// Removes vectors whose bit in the filter of their segment is 0: see Segment. The others move to
// the first places over all segments and keep their order. The segments must have the same
// VectorsArgs except for the capacity. A null filter keeps all.
void compact(std::span<Vectors* const> segments, std::span<const uint32_t* const> filters);

// Vectors, of which only those whose bit is 1 take part: bit c % 32 of word c / 32 for vector c.
struct Segment {
  const Vectors* vectors = nullptr;
  const uint32_t* filter = nullptr;  // null: all
};

// The slot of a vector counts the vectors of all segments before it, whether they take part or not.
struct SearchArgs {
  ConstTensor queries;  // (m, dimensions), contiguous, in memory, of a type that append() takes
  // With the same VectorsArgs except for the capacity. Fewer than 2^32 vectors.
  std::span<const Segment> segments;
  int64_t k = 0;  // at least 1
  // With rescoring: how many vectors the scores of int8 choose, if more than k. 0: 4 * k.
  int64_t candidates = 0;
  // The worst score that a result may have; for kEuclidean the largest distance.
  std::optional<float> min_score{};
  bool fast = false;  // gives up the order of sums: see Determinism. Rescored sums keep it
  // Bytes of queries and candidates, at most: queries are then searched in several runs. One query
  // is always searched. 0: 16 MiB.
  size_t max_memory = 0;
  int64_t first = 0;  // number of the first query in errors
  // Per query: the best k slots and scores, best first, and their number, which is less than k if
  // fewer vectors reach min_score. Elements after them are not written.
  uint32_t* slots = nullptr;  // (m, k)
  float* scores = nullptr;    // (m, k)
  uint32_t* found = nullptr;  // (m)
};

// Errors: kShape, kDType, kArgument, kOutOfMemory.
Status search(Context& context, const SearchArgs& args);

// Scores of documents, which are sets of vectors, for a set of queries. Each query adds its largest
// score with a vector of the document. The sum is in float64, in the order of the queries, and is
// rounded once to float32. The metric must be kDot or kCosine. Rescoring does not take part. The
// score of a document without vectors is -infinity.
struct MaxSimArgs {
  ConstTensor queries;                // as in SearchArgs; at least one
  std::span<const Segment> segments;  // as in SearchArgs
  // Document i has the slots from ends[i - 1], or 0, up to ends[i]. Ascending, at most the number
  // of all vectors.
  std::span<const uint32_t> ends;
  bool fast = false;
  float* scores = nullptr;  // of each document
};

// Errors: kShape, kDType, kArgument, kOutOfMemory.
Status max_sim(Context& context, const MaxSimArgs& args);

// XXH64, with seed 0, of a multiple of 8 bytes: the checksum of serialize().
uint64_t checksum(std::span<const std::byte> bytes);

// Plans -------------------------------------------------------------------------------------------

// How a call would run, in the terms of BLIS.
struct Explanation {
  const char* kernel = "";         // the micro-kernel's name; "" if M, N or K is 0
  const char* regime = "";         // "GEMM", "skinny GEMM" or "GEMV", and how B is read if unpacked
  int64_t batch = 1;               // number of products, after batch axes are merged
  int64_t m = 0, n = 0, k = 0;     // sizes of each product
  int64_t mr = 0, nr = 0, kr = 0;  // the micro-kernel's tile, and its k steps per iteration
  int64_t mc = 0, nc = 0, kc = 0;  // block sizes, in elements
  int64_t threads = 1;             // the most that compute the call
  int64_t vectors = 16;            // of the context: the bytes that the kernel was chosen for
  bool packs_a = false;            // the call packs A; else the micro-kernel reads it unpacked
  bool packs_b = false;  // the call packs B; else B is read unpacked, or was packed by pack()
  bool direct = false;   // the micro-kernel writes Y; else the epilogue writes it from scratch
  // The call computes the transpose of Y, since N is small. The tile, the blocks, A and B then
  // belong to the transposed product.
  bool transposed = false;
  int64_t scratch_bytes = 0;  // scratch memory of the call, for all threads
  // Some operands are out-of-core. The call copies blocks of them to memory and computes block by
  // block. scratch_bytes includes these blocks.
  bool out_of_core = false;
  // Bytes that the call moves between out-of-core operands and memory, 2^62 at most.
  int64_t moved_bytes = 0;
};

// As gemm_shape(); also explains how gemm() would run in this context, given its limit and its
// bytes in use. The system may have less memory than the limit allows. `reserved`: bytes that the
// caller will allocate from the context before the call. Values of scales and zero points count if
// all of them have data. Errors: every error of gemm(), including kOutOfMemory.
Status explain(const Context& context, const GemmArgs& args, Explanation* explanation,
               int64_t reserved = 0);
Status explain(const Context& context, const SyrkArgs& args, Explanation* explanation,
               int64_t reserved = 0);
Status explain(const Context& context, const QGemmArgs& args, Explanation* explanation,
               int64_t reserved = 0);
Status explain(const Context& context, const MatMulArgs& args, Explanation* explanation,
               int64_t reserved = 0);
Status explain(const Context& context, const IntegerMatMulArgs& args, Explanation* explanation,
               int64_t reserved = 0);
Status explain(const Context& context, const MatMulNBitsArgs& args, Explanation* explanation,
               int64_t reserved = 0);

// A micro-kernel of this build.
struct KernelInfo {
  const char* name;  // states its types, tile and instruction set
  // The type that it multiplies and accumulates in. kInt8: it multiplies both 8-bit types and
  // accumulates in int32.
  DType compute;
  int mr, nr, kr;  // its tile, and its k steps per iteration
  bool preferred;  // made for this processor, this engine and these vectors
};

int kernel_count();
// 0 <= index < kernel_count(), in order of preference. `vectors`: as of a context.
KernelInfo kernel_info(int index, int vectors = 16);

}  // namespace wgemm
