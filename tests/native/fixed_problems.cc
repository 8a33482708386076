// The fixed problems of tests/js/support/fixed-problems.ts, computed natively: reads problems from
// standard input, and writes the bytes of their results, one after another, to standard output.
//
//   wgemm_fixed_problems strict|fast THREADS [packed|serialized] < problems > results
//
// With packed, B is packed first. With serialized, weights are made again of the bytes of these,
// and each result stands behind its bytes.
//
// Problems are words of 8 bytes. A number is a float64; a name is its letters, and zeros behind
// them. A problem is the name of the operation, then its attributes and its operands, in the order
// of the specifications. An operand is the name of its type, its rank, its sizes, and its elements,
// filled up to whole words; one that is absent is a name without letters.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "wgemm.h"

namespace {

using wgemm::ConstTensor;
using wgemm::Context;
using wgemm::DType;
using wgemm::PackedWeights;
using wgemm::PackFor;
using wgemm::Status;
using wgemm::Tensor;

[[noreturn]] void fail(const char* sentence) {
  std::fprintf(stderr, "wgemm_fixed_problems: %s\n", sentence);
  std::exit(1);
}

void check(const Status& status) {
  if (!status.ok()) fail(status.message);
}

size_t bytes_of(std::span<const int64_t> dims, DType dtype) {
  size_t bytes = wgemm::dtype_bytes(dtype);
  for (const int64_t size : dims) bytes *= static_cast<size_t>(size);
  return bytes;
}

size_t words_of(size_t bytes) { return (bytes + 7) / 8; }

// Elements lie where they were read.
struct FixedOperand {
  std::vector<int64_t> dims;
  ConstTensor tensor;  // data is null where it is absent

  const ConstTensor* if_present() const { return tensor.data == nullptr ? nullptr : &tensor; }
};

class WordReader {
 public:
  explicit WordReader(std::span<const uint64_t> words) : words_(words) {}

  bool at_end() const { return words_.empty(); }

  double number() {
    double value;
    std::memcpy(&value, take(1), sizeof(value));
    return value;
  }
  int64_t whole() { return static_cast<int64_t>(number()); }

  std::string_view name() {
    const std::string_view letters(reinterpret_cast<const char*>(take(1)), 8);
    return letters.substr(0, letters.find('\0'));
  }
  DType dtype() { return dtype_of(name()); }

  FixedOperand operand() {
    FixedOperand operand;
    const std::string_view type = name();
    if (type.empty()) return operand;
    operand.tensor.dtype = dtype_of(type);
    operand.dims.resize(static_cast<size_t>(whole()));
    for (int64_t& size : operand.dims) size = whole();
    operand.tensor.dims =
        operand.dims;  // what a vector holds stays in its place as the vector moves
    const size_t bytes = bytes_of(operand.dims, operand.tensor.dtype);
    operand.tensor.size = static_cast<int64_t>(bytes / wgemm::dtype_bytes(operand.tensor.dtype));
    operand.tensor.data = take(words_of(bytes));
    return operand;
  }

 private:
  const uint64_t* take(size_t count) {
    if (count > words_.size()) fail("the input ends within a problem");
    const uint64_t* words = words_.data();
    words_ = words_.subspan(count);
    return words;
  }

  static DType dtype_of(std::string_view name) {
    for (int i = 0; i < wgemm::kDTypeCount; ++i) {
      if (name == wgemm::dtype_name(static_cast<DType>(i))) return static_cast<DType>(i);
    }
    fail("the input names a type that is none");
  }

  std::span<const uint64_t> words_;
};

void write_bytes(const void* bytes, size_t length) {
  if (std::fwrite(bytes, 1, length, stdout) != length) fail("the results cannot be written");
}

// Memory for a result.
class Result {
 public:
  Result(std::span<const int64_t> dims, DType dtype)
      : bytes_(bytes_of(dims, dtype)), words_(words_of(bytes_)) {
    tensor = {.data = words_.data(), .dtype = dtype, .dims = dims};
  }
  void write() const { write_bytes(words_.data(), bytes_); }

  Tensor tensor;

 private:
  size_t bytes_;
  std::vector<uint64_t> words_;
};

// In what form B is multiplied.
enum class Form { kPlain, kPacked, kSerialized };

// Packs B where that is asked for, and what is computed then has no transpose left.
void pack_if(Form form, Context& context, PackFor op, const ConstTensor& b, int64_t* trans,
             PackedWeights* weights, const PackedWeights** packed) {
  if (form == Form::kPlain) return;
  check(pack(context, {.op = op, .B = b, .trans = *trans}, weights));
  if (form == Form::kSerialized) {
    std::vector<std::byte> bytes(serialized_bytes(*weights));
    check(serialize(*weights, bytes));
    write_bytes(bytes.data(), bytes.size());
    check(deserialize(context, bytes, weights));
  }
  *packed = weights;
  *trans = 0;
}

void run_gemm(Context& context, WordReader& in, Form form) {
  wgemm::GemmArgs args;
  args.alpha = in.number();
  args.beta = in.number();
  args.transA = in.whole();
  args.transB = in.whole();
  const FixedOperand a = in.operand(), b = in.operand(), c = in.operand();
  args.A = a.tensor;
  args.B = b.tensor;
  args.C = c.if_present();
  PackedWeights weights;
  pack_if(form, context, PackFor::kGemm, args.B, &args.transB, &weights, &args.packed_B);
  int64_t dims[2];
  check(gemm_shape(args, dims));
  const Result y(dims, args.A.dtype);
  args.Y = y.tensor;
  check(gemm(context, args));
  y.write();
}

void run_qgemm(Context& context, WordReader& in, Form form) {
  wgemm::QGemmArgs args;
  args.alpha = in.number();
  args.transA = in.whole();
  args.transB = in.whole();
  const FixedOperand a = in.operand(), a_scale = in.operand(), a_zero_point = in.operand();
  const FixedOperand b = in.operand(), b_scale = in.operand(), b_zero_point = in.operand();
  const FixedOperand c = in.operand(), y_scale = in.operand(), y_zero_point = in.operand();
  args.A = a.tensor;
  args.a_scale = a_scale.tensor;
  args.a_zero_point = a_zero_point.if_present();
  args.B = b.tensor;
  args.b_scale = b_scale.tensor;
  args.b_zero_point = b_zero_point.if_present();
  args.C = c.if_present();
  args.y_scale = y_scale.if_present();
  args.y_zero_point = y_zero_point.if_present();
  PackedWeights weights;
  pack_if(form, context, PackFor::kQGemm, args.B, &args.transB, &weights, &args.packed_B);
  int64_t dims[2];
  DType dtype;
  check(qgemm_shape(args, dims, &dtype));
  const Result y(dims, dtype);
  args.Y = y.tensor;
  check(qgemm(context, args));
  y.write();
}

void run_matmul(Context& context, WordReader& in, Form form) {
  wgemm::MatMulArgs args;
  args.transpose_a = in.whole();
  args.transpose_b = in.whole();
  args.dst.dtype = in.dtype();
  const FixedOperand src = in.operand(), weights = in.operand(), bias = in.operand();
  args.src = src.tensor;
  args.weights = weights.tensor;
  args.bias = bias.if_present();
  PackedWeights packed;
  pack_if(form, context, PackFor::kGemm, args.weights, &args.transpose_b, &packed,
          &args.packed_weights);
  int64_t dims[wgemm::kMaxRank];
  size_t rank;
  check(matmul_shape(args, dims, &rank));
  const Result dst({dims, rank}, args.dst.dtype);
  args.dst = dst.tensor;
  check(matmul(context, args));
  dst.write();
}

std::vector<uint64_t> read_all() {
  std::vector<uint64_t> words(1 << 20);
  size_t bytes = 0;
  while (const size_t more = std::fread(reinterpret_cast<char*>(words.data()) + bytes, 1,
                                        8 * words.size() - bytes, stdin)) {
    bytes += more;
    if (bytes == 8 * words.size()) words.resize(2 * words.size());
  }
  if (bytes % 8 != 0) fail("the input is not of whole words");
  words.resize(bytes / 8);
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<size_t>(argc));
  const std::string_view determinism = argc > 1 ? words[1] : "", form = argc > 3 ? words[3] : "";
  if (argc < 3 || argc > 4 || (determinism != "strict" && determinism != "fast") ||
      (argc == 4 && form != "packed" && form != "serialized")) {
    fail("its arguments are strict or fast, the number of threads, and maybe packed or serialized");
  }
  Context context(
      0, determinism == "strict" ? wgemm::Determinism::kStrict : wgemm::Determinism::kFast);
  if (const wgemm::Status status = context.set_threads(std::atoi(words[2])); !status.ok())
    fail(status.message);
  const std::vector<uint64_t> input = read_all();
  for (WordReader in(input); !in.at_end();) {
    const std::string_view op = in.name();
    const auto run = op == "gemm"     ? run_gemm
                     : op == "qgemm"  ? run_qgemm
                     : op == "matmul" ? run_matmul
                                      : nullptr;
    if (run == nullptr) fail("the input names an operation that is none");
    run(context, in,
        form.empty()       ? Form::kPlain
        : form == "packed" ? Form::kPacked
                           : Form::kSerialized);
  }
  return std::fclose(stdout) == 0 ? 0 : 1;
}
