// The module's functions, as js/ calls them: numbers and addresses, no logic. The arguments of an operation cross as one block of float64
// in the heap (js/index.ts writes it), read here in the same order.
#include <emscripten/bind.h>

#include <cmath>
#include <optional>

#include "wgemm.h"

namespace {

using namespace wgemm;

// Room for the arguments of the largest call: 4 tensors of rank kMaxRank, and the scalars.
constexpr size_t kBlockLength = 16 + 4 * (8 + 2 * kMaxRank);
double block[kBlockLength];

std::optional<Context> instance;
Status status;  // of the last call that failed

// Reads the block from front to back.
class Reader {
 public:
  double number() { return *next_++; }
  int64_t integer() { return static_cast<int64_t>(number()); }

  // number, whether it is exact instead, and then its low and high 32 bits.
  Factor factor() {
    const double value = number();
    const bool exact = number() != 0;
    const auto low = static_cast<uint64_t>(number()), high = static_cast<uint64_t>(number());
    return exact ? Factor::exact(high << 32 | low) : Factor(value);
  }

  // address, type, size, space, offset, rank, number of strides, sizes..., strides...; type below 0: absent.
  template <typename T>
  bool tensor(BasicTensor<T>* tensor) {
    const auto address = static_cast<uintptr_t>(number());
    const int64_t dtype = integer();
    tensor->data = reinterpret_cast<T*>(address);
    tensor->size = integer();
    tensor->place.space = static_cast<uint32_t>(integer());
    tensor->place.offset = integer();
    const auto rank = static_cast<size_t>(integer());
    const auto stride_count = static_cast<size_t>(integer());
    if (dtype < 0) return false;
    tensor->dtype = static_cast<DType>(dtype);
    tensor->dims = axes(rank);
    tensor->strides = axes(stride_count);
    return true;
  }

 private:
  std::span<const int64_t> axes(size_t rank) {
    const std::span<int64_t> result(free_axes_, rank);
    free_axes_ += rank;
    for (int64_t& value : result) value = integer();
    return result;
  }

  const double* next_ = block;
  int64_t axes_[4 * 2 * kMaxRank];
  int64_t* free_axes_ = axes_;
};

// The arguments of gemm, in the block's order.
struct Gemm {
  Gemm(const Gemm&) = delete;  // args points into it
  Gemm() {
    args.alpha = reader.factor();
    args.beta = reader.factor();
    args.transA = reader.integer();
    args.transB = reader.integer();
    args.opset = reader.integer();
    if (const double broadcast = reader.number(); !std::isnan(broadcast)) args.broadcast = static_cast<int64_t>(broadcast);
    reader.tensor(&args.A);
    reader.tensor(&args.B);
    if (reader.tensor(&c)) args.C = &c;
    reader.tensor(&args.Y);
  }
  Reader reader;
  ConstTensor c;
  GemmArgs args;
};

int finish(const Status& result) {
  if (!result.ok()) status = result;
  return static_cast<int>(result.code);
}

int run_gemm() {
  const Gemm call;
  return finish(gemm(*instance, call.args));
}

// On success the block begins with M, N.
int shape_of_gemm() {
  const Gemm call;
  int64_t dims[2];
  Status result = gemm_shape(call.args, dims);
  if (!result.ok()) return finish(result);
  block[0] = static_cast<double>(dims[0]);
  block[1] = static_cast<double>(dims[1]);
  return 0;
}

// On success the block begins with the numbers of an Explanation, in its order, the kernel's name as an address.
int explain_gemm() {
  const Gemm call;
  Explanation e;
  Status result = explain(call.args, &e);
  if (!result.ok()) return finish(result);
  double* out = block;
  *out++ = static_cast<double>(reinterpret_cast<uintptr_t>(e.kernel));
  for (const int64_t value : {e.m, e.n, e.k, e.mr, e.nr, e.kr, e.mc, e.nc, e.kc, e.threads, int64_t{e.packs_a}, int64_t{e.packs_b},
                              int64_t{e.direct}, e.scratch_bytes}) {
    *out++ = static_cast<double>(value);
  }
  return 0;
}

// Puts an operand that is given as a number into the block's last place.
int store_scalar(int dtype, double value) { return finish(store("gemm", "C", value, static_cast<DType>(dtype), block + kBlockLength - 1)); }

// A row of the table of kernels: name, compute type, mr, nr, kr, preferred.
void kernel(int index) {
  const KernelInfo info = kernel_info(index);
  double* out = block;
  *out++ = static_cast<double>(reinterpret_cast<uintptr_t>(info.name));
  for (const int value : {static_cast<int>(info.compute), info.mr, info.nr, info.kr, static_cast<int>(info.preferred)}) *out++ = value;
}

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

EMSCRIPTEN_BINDINGS(wgemm) {
  using emscripten::function;
  // First of all, once. 0: no limit.
  function("start", +[](double memory_limit) { instance.emplace(static_cast<size_t>(memory_limit)); });
  function("block", +[] { return address(block); });
  function("blockLength", +[] { return kBlockLength; });
  function("gemm", &run_gemm);
  function("gemmShape", &shape_of_gemm);
  function("explainGemm", &explain_gemm);
  function("storeScalar", &store_scalar);
  function("kernelCount", &kernel_count);
  function("kernel", &kernel);
  function("errorMessage", +[] { return address(status.message); });
  function("errorArgument", +[] { return address(status.argument); });
  function(
      "allocate", +[](double bytes) {
        return bytes > static_cast<double>(SIZE_MAX) ? uintptr_t{0} : address(instance->allocate(static_cast<size_t>(bytes)));
      });
  function("release", +[](uintptr_t memory) { instance->release(reinterpret_cast<void*>(memory)); });
  function("bytesInUse", +[] { return instance->bytes_in_use(); });
  function("dtypeName", +[](int index) { return address(dtype_name(static_cast<DType>(index))); });
  function("dtypeCount", +[] { return kDTypeCount; });
}
