// wgemm: matrix multiplication, exact to the specifications of ONNX Gemm, com.microsoft QGemm and
// oneDNN Graph MatMul. This header is the whole public interface.
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
//  - The caller owns every tensor; the library keeps no pointer after a call returns.
//  - All checks are made before anything is written. After an error nothing has changed and the
//  next call works.
//  - No exceptions, no RTTI: an allocation that fails is a Status.
//  - `data` must be aligned to its type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

struct pthreadpool;

namespace wgemm {

inline constexpr const char kVersion[] = "0.1.0";

// Data types --------------------------------------------------------------------------------------

// IEEE 754 binary16 and bfloat16, by their bits.
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
  kShape,         // a rank, size, stride or array length breaks a rule
  kDType,         // a type that the operation does not have, or types that must agree and do not
  kOpset,         // the version of the operator that `opset` names lacks what was asked for
  kArgument,      // any other argument out of its range; an output that overlaps an input
  kOutOfMemory,   // an allocation failed, or would pass Context's limit
  kPackMismatch,  // weights that were packed for another operation, type or shape; bytes that are
                  // no packed weights
};

// What went wrong, in one sentence that names the argument, what was found and what is allowed.
struct Status {
  Code code = Code::kOk;
  const char* op = "";        // "gemm"; static storage
  const char* argument = "";  // "A", "C", "opset"; static storage
  char message[320];

  Status() { message[0] = 0; }
  bool ok() const { return code == Code::kOk; }
};

// Writes `value` as an element of `dtype` to `element`, rounded to nearest even. Errors: kArgument
// where an integer type cannot hold it, kDType.
Status store(const char* op, const char* argument, double value, DType dtype, void* element);

// Tensors -----------------------------------------------------------------------------------------

// The most axes that a tensor may have.
inline constexpr int kMaxRank = 64;

// Where a tensor's elements lie, for the check that an output overlaps no input, when `data` cannot
// tell because they are yet to be brought into memory: byte `offset` of the caller's buffer number
// `space`. space 0: at `data`.
struct Place {
  uint32_t space = 0;
  int64_t offset = 0;
};

// Elements of a tensor that is not in memory: element j of run i is its element offset + i *
// run_stride + j * stride.
struct Runs {
  int64_t offset, count, length, run_stride, stride;

  bool operator==(const Runs&) const = default;
};

// A caller that has the elements of a tensor somewhere else than in memory. They are moved a block
// at a time while a call computes, so that a product may be larger than memory, or than the
// context's limit.
struct Remote {
  // Copies those elements of an input to `block`, run after run without gaps, or those of an output
  // from there. Must not call the library.
  void (*move)(void* caller, const Runs& runs, void* block) = nullptr;
  void* caller = nullptr;
};

// An input, or with T = void an output. `dims` and `strides` must outlive the call. Element (i, j)
// is data[i * strides[0] + j * strides[1]]. No two elements of an output may share a place: each
// stride must clear the whole extent of the axes with shorter ones.
template <typename T>
struct BasicTensor {
  T* data = nullptr;
  DType dtype = DType::kFloat32;
  std::span<const int64_t> dims{};  // each >= 0
  std::span<const int64_t>
      strides{};      // elements, each >= 0 (0 repeats an input); empty means contiguous, row-major
  int64_t size = -1;  // elements behind `data`: exactly what dims and strides need; -1: the caller
                      // vouches for it
  Place place{};
  // Of A, B, C and Y (src, weights, bias and dst): set where the elements are not in memory; `data`
  // is null then. Must outlive the call.
  const Remote* remote = nullptr;
};
using ConstTensor = BasicTensor<const void>;
using Tensor = BasicTensor<void>;

// Context -----------------------------------------------------------------------------------------

// Whether results are the same bits everywhere.
enum class Determinism : uint8_t {
  // Floating point may depend on the build, the processor, shape, layout, packing, and the memory
  // at hand where operands are streamed: the
  // order of sums is free, products may be fused.
  kFast,
  // One order of summation: ascending k into one accumulator an element, each product and sum
  // rounded on its own; every NaN that is
  // written is the canonical one. The same bits in every build, on every processor, for every
  // number of threads, packed or not. Integers
  // are exact either way.
  kStrict,
};

// The most threads that a context may compute on.
inline constexpr int kMaxThreads = 64;

// Where the library's memory comes from, and how it computes. Not copyable; one thread at a time
// may call with it.
class Context {
 public:
  // memory_limit: the most bytes that may be allocated through this context at any time; 0 means no
  // limit but the system's.
  explicit Context(size_t memory_limit = 0, Determinism determinism = Determinism::kFast);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Memory aligned to 64 bytes, or null when the system or the limit refuses. Freed by release().
  void* allocate(size_t bytes);
  // Takes what allocate() returned, or null.
  void release(void* memory);

  // Bytes that one allocation may have as far as the limit goes; for wasm, where memory cannot be
  // given back, so that all that it has taken stays within the limit.
  size_t room() const;

  // Whether the limit leaves room for so many bytes more, with the alignment's share.
  bool has_room(size_t bytes) const;

  // Bytes asked for and not yet released, with the alignment's share.
  size_t bytes_in_use() const { return in_use_; }
  size_t memory_limit() const { return limit_; }
  Determinism determinism() const { return determinism_; }

  // Has calls compute on up to so many threads, the caller's own among them; 1, as at first, ends
  // the others. They wait between calls, and end with the context. Small products stay on one. With
  // kStrict the results are the same for every number. Errors: kArgument for a number that is not 1
  // to kMaxThreads, or not 1 in a build without threads; kOutOfMemory where the system starts no
  // more. Then the number is what it was.
  Status set_threads(int threads);
  int threads() const { return threads_; }

 private:
  friend struct Threads;
  void end_threads();
  size_t limit_;
  Determinism determinism_;
  size_t in_use_ = 0;
  int threads_ = 1;
  pthreadpool* pool_ = nullptr;  // of threads_, if these are more than 1
};

// Weights -----------------------------------------------------------------------------------------

// What weights are packed for.
enum class PackFor : uint8_t {
  kGemm,   // gemm() and matmul()
  kQGemm,  // with any scales and zero points
};

// B', or a stack of them, laid out once for any number of calls with any A. Holds a copy: B may go.
// Movable; empty until pack() fills it.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(PackedWeights&& other) noexcept;
  PackedWeights& operator=(PackedWeights&& other) noexcept;
  ~PackedWeights();

  bool empty() const { return block_ == nullptr; }
  // Of one that is not empty: what it is for, the type of its elements, the sizes of B after the
  // transpose with those of axes in front of the matrix, and the bytes that it takes.
  PackFor op() const;
  DType dtype() const;
  std::span<const int64_t> batch() const;
  int64_t k() const;
  int64_t n() const;
  size_t bytes() const;

  // For who keeps the memory himself, as a binding does: takes it out, to be freed by
  // Context::release(); and looks at it again, without owning it.
  void* detach();
  static PackedWeights view(const void* block);

 private:
  friend struct WeightsAccess;
  Context* context_ = nullptr;  // that owns the block; null: nobody here does
  const void* block_ = nullptr;
};

struct PackArgs {
  PackFor op = PackFor::kGemm;
  ConstTensor B;  // (..., K, N), or (..., N, K) with trans. For qgemm: rank 2, int8 or uint8; else
                  // any of Gemm's types
  int64_t trans = 0;
  std::optional<DType> as{};  // what elements are packed as: B's type, or from float32 float16 or
                              // bfloat16, rounded to nearest even; none: B's
};

// Packs weights. Those of float16 and bfloat16, packed from these types or from float32, serve
// operands of their own type and of float32. They must not outlive `context`. Errors: kShape,
// kDType, kArgument, kOutOfMemory; *weights is as it was then.
Status pack(Context& context, const PackArgs& args, PackedWeights* weights);

// Packed weights as bytes, to be kept: those that any build of this version packs on any machine
// are the same, and each reads them.

// Bytes that serialize() writes; of empty weights 0.
size_t serialized_bytes(const PackedWeights& weights);

// Fills `bytes`, which must be exactly serialized_bytes(). Errors: kArgument for weights that are
// empty, kShape.
Status serialize(const PackedWeights& weights, std::span<std::byte> bytes);

// Makes packed weights of such bytes, of any alignment, and keeps a copy. They must not outlive
// `context`. Errors: kPackMismatch for all bytes that are not to the last what serialize() gives,
// be they cut short, changed, or made by whom it may; kOutOfMemory; *weights is as it was then.
Status deserialize(Context& context, std::span<const std::byte> bytes, PackedWeights* weights);

// Operations --------------------------------------------------------------------------------------

// alpha or beta: a number, or exactly an integer modulo 2^64.
class Factor {
 public:
  Factor(double number)
      : number_(number) {}  // NOLINT(google-explicit-constructor): args.alpha = 0.5
  // For the 64-bit integer types only, and not beside a factor with a fraction.
  static Factor exact(uint64_t integer) {
    Factor factor(static_cast<double>(static_cast<int64_t>(integer)));
    factor.integer_ = integer;
    factor.is_exact_ = true;
    return factor;
  }
  double number() const { return number_; }      // of an exact one, the nearest to it read as int64
  uint64_t integer() const { return integer_; }  // of an exact one
  bool is_exact() const { return is_exact_; }

 private:
  double number_;
  uint64_t integer_ = 0;
  bool is_exact_ = false;
};

// Bounds that the elements of a result are kept within, as some activation functions do: what is
// below min becomes min, what is above max becomes max, and all else stays as it is, so NaN, and -0
// where a bound is 0. {0} is relu, {0, 6} relu6.
//
// Neither may be NaN, nor min above max. Rounded to float32 for float32, float16 and bfloat16, and
// kept in float64 for float64. A result of 16 bits is rounded after, so that it is within the
// bounds as these are rounded to its type: with a max of 0.1 a bfloat16 may be 0.10009765625. For
// integers a bound must be infinite, or whole and at most 2^53 in size; one beyond the type's range
// means the end of it.
struct Activation {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

// ONNX Gemm, Y = alpha * A' * B' + beta * C, at opsets 1, 6, 7, 9, 11 and 13. A' is A, or its
// transpose when transA is not zero. https://onnx.ai/onnx/operators/onnx__Gemm.html
//
// Floating point: NaN and infinities propagate, alpha = 0 does not skip the product (0 * NaN is
// NaN), and with beta = 0 C is not read. The order of summation is Context's matter. K = 0 means
// there is no product, whatever alpha is: Y = beta * C, or zeros without C.
//
// Integers: exact modulo 2^bits while alpha and beta are whole. A fraction in a factor that counts
// (alpha's where K > 0, beta's where there is a C) sends Y through float64: the wrapped product and
// C are converted, combined, cut toward zero and saturated, so that 64-bit values above 2^53 lose
// bits. Factors must be finite and, unless exact, at most 2^53 in size.
//
// float16 and bfloat16: accumulated and combined in float32, and rounded once, to nearest even.
//
// A, B, C and Y have one type. Beside A of float32, packed weights may be float16 or bfloat16: they
// are widened, exactly, to float32, and all else is as with float32.
struct GemmArgs {
  ConstTensor A;  // (M, K), or (K, M) with transA
  ConstTensor B;  // (K, N), or (N, K) with transB
  const PackedWeights* packed_B =
      nullptr;  // stands for B, which is not looked at then; transB must be 0
  const ConstTensor* C =
      nullptr;       // broadcast to (M, N) in one direction; null: absent (from opset 11)
  Tensor Y;          // (M, N); may be exactly C: the same memory, shape and strides
  Factor alpha = 1;  // rounded to float32 for float32, float16 and bfloat16; kept in float64 for
                     // float64 and integers
  Factor beta = 1;   // as alpha; 0: C is checked but not read
  Activation activation;  // of alpha * A' * B' + beta * C, before it is rounded to 16 bits; of
                          // integers, of Y; at any opset
  int64_t transA = 0;
  int64_t transB = 0;
  int64_t opset = 13;  // the model's opset: means the newest version of Gemm that is not above it
  std::optional<int64_t> broadcast;  // opsets 1 and 6 only, default 0: C must be exactly (M, N)
};

// Computes. Errors: kShape, kDType, kOpset, kArgument, kPackMismatch, kOutOfMemory.
Status gemm(Context& context, const GemmArgs& args);

// Makes all the checks of gemm() and gives the shape of Y, dims[0] = M and dims[1] = N, computing
// nothing. The tensors' data may be null; Y is checked if its dims are given, and overlap is judged
// by `place`.
Status gemm_shape(const GemmArgs& args, int64_t dims[2]);

// com.microsoft QGemm of 8-bit A and B, int8 or uint8 each:
//   acc = sum over k of (A' - a_zero_point) * (B' - b_zero_point[n]) + C, in int32 that wraps
//   s[n] = ((alpha * a_scale) * b_scale[n]) / y_scale, each step rounded to float32, without the
//   division where there is no y_scale
// Without y_scale and y_zero_point Y is float32, float(acc) * s[n]. With both it has the type of
// y_zero_point: float(acc) * s[n] rounded half to even, plus y_zero_point, saturated. One without
// the other is an error. Before it is rounded, float(acc) * s[n] is kept within the bounds of
// `activation`, rounded to float32 and, where there is a y_scale, divided by it in float32.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QGemm
//
// Scales are float32, finite and above 0. What is "one" is of shape [] or [1]; what is "one or N",
// of shape [], [1] or [N]. Zero points have the type of their tensor; left out, they are 0. alpha
// and the products of scales must be finite.
struct QGemmArgs {
  ConstTensor A;                              // (M, K), or (K, M) with transA
  ConstTensor a_scale;                        // one
  const ConstTensor* a_zero_point = nullptr;  // one
  ConstTensor B;                              // (K, N), or (N, K) with transB
  const PackedWeights* packed_B =
      nullptr;          // stands for B, which is not looked at then; transB must be 0
  ConstTensor b_scale;  // one or N
  const ConstTensor* b_zero_point = nullptr;  // one or N
  const ConstTensor* C = nullptr;        // int32, broadcast to (M, N) in one direction; null: 0
  const ConstTensor* y_scale = nullptr;  // one
  const ConstTensor* y_zero_point = nullptr;  // one, int8 or uint8
  Tensor Y;               // (M, N), float32 or the type of y_zero_point; overlaps no input
  double alpha = 1;       // rounded to float32
  Activation activation;  // of the numbers that Y stands for
  int64_t transA = 0;
  int64_t transB = 0;
};

// Computes. Errors: kShape, kDType, kArgument, kPackMismatch, kOutOfMemory.
Status qgemm(Context& context, const QGemmArgs& args);

// As gemm_shape(), and gives Y's type. The values of scales, zero points and alpha are not looked
// at.
Status qgemm_shape(const QGemmArgs& args, int64_t dims[2], DType* dtype);

// oneDNN Graph MatMul: dst = src * weights + bias for stacks of matrices. The last two axes are the
// matrix; those before them are batch axes, broadcast like NumPy's, both ways, aligned at the
// right. A src of rank 1, [K], is a row, and weights of rank 1 are a column, whatever the flags;
// the axis that this adds is not in dst.
// https://uxlfoundation.github.io/oneDNN/dev_guide_op_matmul.html
//
// src, weights and bias have one type, any of Gemm's. dst has it too, or may be float32 where it is
// float16 or bfloat16. Packed weights may be float16 or bfloat16 where all else is float32.
// Accumulation is as in gemm(). With K = 0 dst is bias, or zeros.
struct MatMulArgs {
  ConstTensor src;      // (..., M, K), or (..., K, M) with transpose_a; or (K)
  ConstTensor weights;  // (..., K, N), or (..., N, K) with transpose_b; or (K)
  const PackedWeights* packed_weights =
      nullptr;  // stands for weights, which is not looked at then; transpose_b must be 0
  const ConstTensor* bias = nullptr;  // broadcast to dst in one direction; null: absent
  Tensor dst;  // (..., M, N), without M if src has rank 1, without N if weights have; may be
               // exactly bias
  int64_t transpose_a = 0;
  int64_t transpose_b = 0;
  Activation activation;  // of src * weights + bias, as in gemm()
};

// Computes. Errors: kShape, kDType, kArgument, kPackMismatch, kOutOfMemory.
Status matmul(Context& context, const MatMulArgs& args);

// As gemm_shape(): gives the rank and the sizes of dst, for which `dims` has room for kMaxRank.
// dst.dtype must be set.
Status matmul_shape(const MatMulArgs& args, int64_t* dims, size_t* rank);

// Prepared calls ----------------------------------------------------------------------------------

// A call that is checked and planned once and runs any number of times, each time on the elements
// that A, B and C then hold. Worth its while for small products: at 16 x 16 x 16 in float32, to
// check and plan takes as long as to compute.
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

  bool empty() const { return block_ == nullptr; }

 private:
  friend struct PreparedAccess;
  struct Block;
  Block* block_ = nullptr;
};

// Checks and plans gemm(), qgemm() or matmul() with these arguments, and computes nothing.
//
// prepare() reads the arguments and copies them: shapes, strides, flags, alpha, beta, activation,
// scales and zero points. The prepared call may outlive the args struct, its tensors' dims and
// strides, and the memory of scales and zero points. To change any of these, prepare another call.
//
// run() reads A, B and C and writes Y. The prepared call must not outlive the memory of these
// tensors, their Remotes, the packed weights, or `context`. They must not move either.
//
// Errors: those of the call itself; kOutOfMemory if the context has no memory for the prepared
// call. *call is then as it was before.
Status prepare(Context& context, const GemmArgs& args, PreparedCall* call);
Status prepare(Context& context, const QGemmArgs& args, PreparedCall* call);
Status prepare(Context& context, const MatMulArgs& args, PreparedCall* call);

// Computes a prepared call in the context that prepared it. The results are those of gemm(),
// qgemm() or matmul(). Like these, it may need scratch memory and threads of the
// context. As for all calls, one thread at a time may use the context.
//
// After Context::set_threads() the call stays valid: the next run() plans it for the new number of
// threads. If tensors are remote, each run() chooses its blocks by the memory that is then free.
// If Y is C, each run() adds to what the last one wrote.
//
// Errors: kArgument if the call is empty; kOutOfMemory, with nothing written. The call stays valid.
Status run(PreparedCall& call);

// Plans -------------------------------------------------------------------------------------------

// What a call would do.
struct Explanation {
  const char* kernel =
      "";             // name of the micro-kernel; "" when no product is needed (M, N or K is 0)
  int64_t batch = 1;  // products of the same sizes, after what can be one is one
  int64_t m = 0, n = 0, k = 0;  // of each
  int64_t mr = 0, nr = 0,
          kr = 0;  // rows and columns of the micro-kernel's tile, and k steps it takes at once
  int64_t mc = 0, nc = 0, kc = 0;  // rows, columns and k steps of a block
  int64_t threads = 1;             // that the work is shared out among
  bool packs_a = false;            // else A is read in place
  bool packs_b = false;            // else B is read in place, where it lies or was packed before
  bool direct =
      false;  // the micro-kernel writes Y itself; else it writes scratch and the epilogue writes Y
  bool transposed = false;    // Y' = B' A' is computed, since N is small: what is said of tile,
                              // blocks, A and B is of that
  int64_t scratch_bytes = 0;  // scratch memory of the call, for all threads
  bool streams =
      false;  // operands are remote: blocks of them are brought to memory, and each is computed so
  int64_t streamed_bytes = 0;  // (2^62 at the most) moved between remote operands and memory; for a
                               // call that streams, scratch_bytes has room for blocks
};

// As gemm_shape(), and tells how gemm() would go about it in this context, by the bytes that are in
// use now and the limit; the system may have less. `beside`: bytes that the caller will allocate
// from the context before the call. The values of scales and zero points are looked at if all of
// them have data. Error besides: kOutOfMemory, as of gemm().
Status explain(const Context& context, const GemmArgs& args, Explanation* explanation,
               int64_t beside = 0);
Status explain(const Context& context, const QGemmArgs& args, Explanation* explanation,
               int64_t beside = 0);
Status explain(const Context& context, const MatMulArgs& args, Explanation* explanation,
               int64_t beside = 0);

// A micro-kernel of this build, best first.
struct KernelInfo {
  const char* name;  // states its types, tile and instruction set
  DType compute;     // the type that it multiplies and accumulates in; kInt8: both 8-bit types,
                     // accumulated in int32
  int mr, nr, kr;
  bool preferred;  // made for this processor, and engine
};

int kernel_count();
KernelInfo kernel_info(int index);  // 0 <= index < kernel_count()

}  // namespace wgemm
