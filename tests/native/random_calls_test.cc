// Random calls of every operation: a context with several threads writes the bytes that a context
// with one thread writes, in both modes. WGEMM_TEST_CALLS says how many calls each operation makes.
// A failure names its seed; WGEMM_TEST_SEED=seed WGEMM_TEST_CALLS=1 makes that call again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "array.h"
#include "integer_matmul_tester.h"
#include "layout.h"
#include "values.h"
#include "wgemm.h"

namespace wgemm::testing {
namespace {

#if WGEMM_THREADS

#ifdef __EMSCRIPTEN__
constexpr std::array kThreads = {1, 2, 3, 5};  // each thread is a worker, which starts slowly
#else
constexpr std::array kThreads = {1, 2, 3, 5, 8, 16};
#endif

// Multiply-adds of most calls, and of one call in 16. Today, 2^20 are the fewest of a product that
// several threads compute.
constexpr int64_t kWork = 3 << 20, kMostWork = 12 << 20;

// A test ends after this many calls that differ.
constexpr int kMostFailures = 10;

int64_t number_of(const char* name, int64_t usual) {
  const char* value = std::getenv(name);
  return value == nullptr ? usual : std::atoll(value);
}

// One context per number of threads, for all tests, since it takes long to start threads.
Context& context_of(size_t which, Determinism determinism) {
  struct Started {
    Context context;
    Started(int threads, Determinism mode) : context(0, mode) {
      if (!context.set_threads(threads).ok()) std::abort();
    }
  };
  static std::array<std::unique_ptr<Started>, 2 * kThreads.size()> all;
  std::unique_ptr<Started>& one = all[2 * which + (determinism == Determinism::kStrict ? 1 : 0)];
  if (one == nullptr) one = std::make_unique<Started>(kThreads[which], determinism);
  return one->context;
}

// Elements of each type, from which operands are copied: to draw each element would take longer
// than to compute. Floats are from -1 to 1, integers have any value. The number is a prime, so that
// rows of an operand differ.
const std::vector<uint8_t>& elements(DType type) {
  constexpr size_t kCount = 65521;
  static std::array<std::vector<uint8_t>, kDTypeCount> all;
  std::vector<uint8_t>& bytes = all[static_cast<size_t>(type)];
  if (!bytes.empty()) return bytes;
  const size_t size = dtype_bytes(type);
  bytes.resize(kCount * size);
  std::mt19937_64 random(static_cast<uint64_t>(type) + 1);
  for (size_t i = 0; i < kCount; ++i) {
    uint8_t* element = &bytes[i * size];
    if (type <= DType::kBFloat16) {
      EXPECT_TRUE(store("", "", uniform<double>(random, -1, 1), type, element).ok());
    } else {
      const uint64_t value = random();
      std::memcpy(element, &value, size);
    }
  }
  return bytes;
}

using Args = std::variant<GemmArgs, MatMulArgs, QGemmArgs, IntegerMatMulArgs, MatMulNBitsArgs>;

Status compute(Context& context, const GemmArgs& args) { return gemm(context, args); }
Status compute(Context& context, const MatMulArgs& args) { return matmul(context, args); }
Status compute(Context& context, const QGemmArgs& args) { return qgemm(context, args); }
Status compute(Context& context, const IntegerMatMulArgs& args) {
  return integer_matmul(context, args);
}
Status compute(Context& context, const MatMulNBitsArgs& args) {
  return matmul_nbits(context, args);
}

struct Shape {
  int64_t m, n, k;
};

// A random call, and the memory of its operands.
class RandomCall {
 public:
  RandomCall(const std::string& op, uint32_t seed) : draw_(seed), random_(seed) {
    text_ << op << " of seed " << seed << ":";
    determinism_ = draw_.one_in(3) ? Determinism::kStrict : Determinism::kFast;
    is_prepared_ = draw_.one_in(4);
    if (determinism_ == Determinism::kStrict) text_ << " strict";
    if (is_prepared_) text_ << " prepared";
    if (op == "gemm") make_gemm();
    if (op == "matmul") make_matmul();
    if (op == "qgemm") make_qgemm();
    if (op == "integer_matmul") make_integer_matmul();
    if (op == "matmul_nbits") make_nbits();
  }

  // Computes with every number of threads, and compares the bytes of Y and of the gaps in it.
  ::testing::AssertionResult run() {
    std::vector<uint8_t> first;
    for (size_t which = 0; which < kThreads.size(); ++which) {
      std::ranges::copy(y_before_, y_bytes_);
      Context& context = context_of(which, determinism_);
      const size_t in_use = context.bytes_in_use();
      const Status status = run_on(context);
      if (!status.ok())
        return ::testing::AssertionFailure() << text_.str() << "\n" << status.message;
      if (context.bytes_in_use() != in_use)
        return ::testing::AssertionFailure() << text_.str() << "\nkeeps memory";
      const std::vector<uint8_t> bytes(y_bytes_, y_bytes_ + y_before_.size());
      if (which == 0) first = bytes;
      if (bytes != first) {
        return ::testing::AssertionFailure() << text_.str() << "\n"
                                             << difference(first, bytes) << "\n"
                                             << plan(context_of(0, determinism_)) << "\n"
                                             << plan(context);
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  Status run_on(Context& context) const {
    return std::visit(
        [&](const auto& args) {
          if (!is_prepared_) return compute(context, args);
          PreparedCall call;
          Status status = prepare(context, args, &call);
          return status.ok() ? wgemm::run(call) : status;
        },
        args_);
  }

  std::string difference(const std::vector<uint8_t>& first, const std::vector<uint8_t>& other) {
    size_t count = 0, at = 0;
    for (size_t i = first.size() / y_size_; i-- > 0;) {
      if (std::memcmp(&first[i * y_size_], &other[i * y_size_], y_size_) == 0) continue;
      ++count;
      at = i;
    }
    return std::to_string(count) + " of " + std::to_string(first.size() / y_size_) +
           " elements differ, the first at " + std::to_string(at);
  }

  std::string plan(const Context& context) const {
    Explanation plan;
    const Status status =
        std::visit([&](const auto& args) { return explain(context, args, &plan); }, args_);
    std::ostringstream text;
    if (!status.ok()) return status.message;
    text << context.threads() << " threads: " << plan.kernel << " " << plan.regime << " " << plan.m
         << "x" << plan.n << "x" << plan.k << " mc=" << plan.mc << " nc=" << plan.nc
         << " kc=" << plan.kc << (plan.packs_a ? " packs A" : "")
         << (plan.packs_b ? " packs B" : "") << (plan.direct ? " direct" : "")
         << (plan.transposed ? " transposed" : "");
    return text.str();
  }

  // Shapes ----------------------------------------------------------------------------------------

  // A number whose logarithm is uniform.
  int64_t between(int64_t low, int64_t high) {
    const double ratio = static_cast<double>(high) / static_cast<double>(low);
    const double value = static_cast<double>(low) * std::pow(ratio, uniform<double>(random_, 0, 1));
    return std::clamp(static_cast<int64_t>(std::lround(value)), low, high);
  }

  // Small and medium products, GEMV, skinny GEMM, and a long K. `products`: in the stack.
  Shape shape(int64_t products = 1) {
    Shape s{};
    switch (draw_.below(6)) {
      case 0:
        s = {between(1, 64), between(1, 64), between(1, 64)};
        break;
      case 1:
        s = {between(32, 400), between(32, 400), between(32, 1000)};
        break;
      case 2:  // GEMV
        s = {1, between(400, 8000), between(400, 8000)};
        break;
      case 3:
        s = {between(2, 12), between(400, 6000), between(64, 2000)};
        break;
      case 4:
        s = {between(2, 12), between(2, 12), between(8000, 60000)};
        break;
      default:
        s = {between(4, 40), between(4, 48), between(2000, 12000)};
    }
    if (draw_.one_in(3)) std::swap(s.m, s.n);
    const int64_t most = draw_.one_in(16) ? kMostWork : kWork;
    while (products * s.m * s.n * s.k > most) {
      int64_t* largest =
          std::max({&s.m, &s.n, &s.k}, [](const int64_t* a, const int64_t* b) { return *a < *b; });
      *largest = (*largest + 1) / 2;
    }
    return s;
  }

  // Batch axes of A and B that broadcast to each other.
  std::pair<Sizes, Sizes> batches() {
    const std::vector<std::pair<Sizes, Sizes>> all = {
        {{}, {}},   {{}, {}},         {{3}, {}},        {{}, {2}},
        {{5}, {5}}, {{2, 1}, {1, 3}}, {{2, 2}, {2, 2}}, {{1, 4}, {3, 1, 1}}};
    return all[static_cast<size_t>(draw_.below(std::ssize(all)))];
  }

  static int64_t size_of(const Sizes& dims) {
    int64_t size = 1;
    for (const int64_t each : dims) size *= each;
    return size;
  }

  static Sizes joined(Sizes batch, bool swaps, int64_t rows, int64_t cols) {
    if (swaps) std::swap(rows, cols);
    batch.insert(batch.end(), {rows, cols});
    return batch;
  }

  // Operands --------------------------------------------------------------------------------------

  Array<uint8_t>& array(DType type, const Sizes& dims, const Layout& layout) {
    // make_array() places elements of a byte; then there is room for elements of the type.
    Array<uint8_t>& made = arrays_.emplace_back(make_array<uint8_t>(dims, layout));
    const std::vector<uint8_t>& from = elements(type);
    const size_t bytes = made.length * dtype_bytes(type);
    made.data.reset(new uint8_t[bytes]);
    size_t start = static_cast<size_t>(draw_.below(60000)) * dtype_bytes(type);
    for (size_t done = 0; done < bytes; start = 0) {
      const size_t count = std::min(bytes - done, from.size() - start);
      std::memcpy(&made.data[done], &from[start], count);
      done += count;
    }
    return made;
  }

  ConstTensor operand(const char* name, DType type, const Sizes& dims, bool is_plain = false) {
    const Layout layout = is_plain ? Layout{} : draw_.layout(dims.size(), draw_.one_in(4));
    text_ << " " << name << "=" << dtype_name(type) << text_of(dims, layout);
    return make_tensor<const void>(array(type, dims, layout), type, layout);
  }

  // Strict mode must write one NaN, whatever the order of NaN and infinity. Fast mode need not.
  ConstTensor factor(const char* name, DType type, const Sizes& dims) {
    ConstTensor tensor = operand(name, type, dims);
    if (type > DType::kBFloat16 || determinism_ != Determinism::kStrict || !draw_.one_in(8))
      return tensor;
    text_ << " with specials";
    Array<uint8_t>& values = arrays_.back();
    for (size_t i = 0; i < values.length; i += 1 + random_() % 999) {
      const double specials[] = {INFINITY, -INFINITY, NAN, -0.0};
      EXPECT_TRUE(
          store("", "", specials[random_() % 4], type, &values.data[i * dtype_bytes(type)]).ok());
    }
    return tensor;
  }

  // Scales from 0.01 to 0.2.
  const ConstTensor* scales(const char* name, DType type, const Sizes& dims) {
    const ConstTensor* tensor = keep(operand(name, type, dims, true));
    Array<uint8_t>& values = arrays_.back();
    for (size_t i = 0; i < values.length; ++i) {
      EXPECT_TRUE(store("", "", uniform<double>(random_, 0.01, 0.2), type,
                        &values.data[i * dtype_bytes(type)])
                      .ok());
    }
    return tensor;
  }

  const ConstTensor* keep(const ConstTensor& tensor) { return &tensors_.emplace_back(tensor); }

  Tensor result(DType type, const Sizes& dims) {
    const Layout layout = draw_.layout(dims.size(), false);
    text_ << " Y=" << dtype_name(type) << text_of(dims, layout);
    Array<uint8_t>& y = array(type, dims, layout);
    y_size_ = dtype_bytes(type);
    y_bytes_ = y.data.get();
    y_before_.assign(y_bytes_, y_bytes_ + y.length * y_size_);
    return make_tensor<void>(y, type, layout);
  }

  static ConstTensor input(const Tensor& y) {
    return {.data = y.data,
            .dtype = y.dtype,
            .dims = y.dims,
            .strides = y.strides,
            .offset = y.offset,
            .size = y.size};
  }

  bool flag(const char* name, bool value) {
    if (value) text_ << " " << name;
    return value;
  }

  Activation activation(DType type) {
    if (!draw_.one_in(3)) return {};
    text_ << " bounded";
    return type <= DType::kBFloat16 ? Activation{-0.5, 0.75} : Activation{0, 1000};
  }

  // Packs B in a third of all calls.
  const PackedWeights* packed(PackArgs args) {
    if (!flag("packed", draw_.one_in(3))) return nullptr;
    if (args.op == PackFor::kGemm && args.B.dtype == DType::kFloat32 && draw_.one_in(2)) {
      args.as = draw_.one_in(2) ? DType::kFloat16 : DType::kBFloat16;
      text_ << " as " << dtype_name(*args.as);
    }
    const Status status = pack(context_of(0, determinism_), args, &weights_);
    EXPECT_TRUE(status.ok()) << status.message;
    return &weights_;
  }

  DType any_type() {
    // Half of all products of floats are of float32.
    const int64_t type = draw_.below(11);
    return type < 8 ? static_cast<DType>(type) : DType::kFloat32;
  }
  DType byte_type() { return draw_.one_in(2) ? DType::kInt8 : DType::kUInt8; }

  // Operations ------------------------------------------------------------------------------------

  void make_gemm() {
    const DType type = any_type();
    const auto [m, n, k] = shape();
    GemmArgs args;
    args.transA = flag("transA", draw_.one_in(3));
    args.transB = flag("transB", draw_.one_in(2));
    args.A = factor("A", type, joined({}, args.transA != 0, m, k));
    args.B = factor("B", type, joined({}, args.transB != 0, k, n));
    args.Y = result(type, {m, n});
    if (draw_.one_in(2)) {
      const bool is_y = flag("in place", draw_.one_in(3));
      args.C = keep(is_y ? input(args.Y) : operand("C", type, draw_.part_of({m, n})));
    }
    if (draw_.one_in(3)) args.alpha = type <= DType::kBFloat16 ? 0.37 : 3;
    if (draw_.one_in(3)) args.beta = type <= DType::kBFloat16 ? -1.5 : 2;
    if (type > DType::kBFloat16 && draw_.one_in(6)) args.alpha = 0.5;
    text_ << " alpha=" << args.alpha.number() << " beta=" << args.beta.number();
    args.activation = activation(type);
    args.packed_B = packed({.B = args.B, .trans = args.transB});
    if (args.packed_B != nullptr) {
      args.B = {};
      args.transB = 0;
    }
    args_ = args;
  }

  void make_matmul() {
    const DType type = any_type();
    const auto [a, b] = batches();
    const IntegerMatMulTester sizes =
        IntegerMatMulTester({}).a(joined(a, false, 1, 1)).b(joined(b, false, 1, 1));
    const auto [m, n, k] = shape(size_of(sizes.y_dims()));
    MatMulArgs args;
    args.transpose_a = flag("transA", draw_.one_in(3));
    args.transpose_b = flag("transB", draw_.one_in(2));
    const Sizes a_dims = joined(a, args.transpose_a != 0, m, k),
                b_dims = joined(b, args.transpose_b != 0, k, n);
    args.src = factor("A", type, a_dims);
    args.weights = factor("B", type, b_dims);
    const Sizes dims = IntegerMatMulTester({})
                           .a(a_dims)
                           .b(b_dims)
                           .trans(args.transpose_a != 0, args.transpose_b != 0)
                           .y_dims();
    const bool is_half = type == DType::kFloat16 || type == DType::kBFloat16;
    args.dst = result(is_half && draw_.one_in(2) ? DType::kFloat32 : type, dims);
    if (draw_.one_in(2)) {
      const bool is_y = args.dst.dtype == type && flag("in place", draw_.one_in(3));
      args.bias = keep(is_y ? input(args.dst) : operand("bias", type, draw_.part_of(dims)));
    }
    if (draw_.one_in(3)) args.alpha = type <= DType::kBFloat16 ? 0.37 : 3;
    text_ << " alpha=" << args.alpha.number();
    args.activation = activation(type);
    args.packed_weights = packed({.B = args.weights, .trans = args.transpose_b});
    if (args.packed_weights != nullptr) {
      args.weights = {};
      args.transpose_b = 0;
    }
    args_ = args;
  }

  void make_qgemm() {
    const DType a_type = byte_type(), b_type = byte_type(), y_type = byte_type();
    const auto [m, n, k] = shape();
    QGemmArgs args;
    args.transA = flag("transA", draw_.one_in(3));
    args.transB = flag("transB", draw_.one_in(2));
    args.A = operand("A", a_type, joined({}, args.transA != 0, m, k));
    args.B = operand("B", b_type, joined({}, args.transB != 0, k, n));
    const auto one_or_all = [&, all = n] { return Sizes{draw_.one_in(2) ? 1 : all}; };
    args.a_scale = *scales("a_scale", DType::kFloat32, {});
    args.b_scale = *scales("b_scale", DType::kFloat32, one_or_all());
    if (draw_.one_in(2)) args.a_zero_point = keep(operand("a_zero_point", a_type, {}));
    if (draw_.one_in(2)) args.b_zero_point = keep(operand("b_zero_point", b_type, one_or_all()));
    if (draw_.one_in(2)) args.C = keep(operand("C", DType::kInt32, draw_.part_of({m, n})));
    const bool is_quantized = draw_.one_in(2);
    if (is_quantized) {
      args.y_scale = scales("y_scale", DType::kFloat32, {});
      args.y_zero_point = keep(operand("y_zero_point", y_type, {}));
    }
    args.Y = result(is_quantized ? y_type : DType::kFloat32, {m, n});
    args.activation = activation(DType::kFloat32);
    args.packed_B = packed({.op = PackFor::kQGemm, .B = args.B, .trans = args.transB});
    if (args.packed_B != nullptr) {
      args.B = {};
      args.transB = 0;
    }
    args_ = args;
  }

  void make_integer_matmul() {
    using enum ParamExtent;
    const IntegerOp op = kIntegerOps[draw_.below(4)];
    const DType a_type = byte_type(), b_type = byte_type(), y_type = byte_type();
    const auto [a, b] = batches();
    const IntegerMatMulTester ones =
        IntegerMatMulTester(op).a(joined(a, false, 1, 1)).b(joined(b, false, 1, 1));
    const auto [m, n, k] = shape(size_of(ones.y_dims()));
    IntegerMatMulArgs args;
    args.op = op;
    text_ << " " << name_of(op);
    args.transA = flag("transA", draw_.one_in(3));
    args.transB = flag("transB", draw_.one_in(2));
    const Sizes a_dims = joined(a, args.transA != 0, m, k),
                b_dims = joined(b, args.transB != 0, k, n);
    const IntegerMatMulTester sizes =
        IntegerMatMulTester(op).a(a_dims).b(b_dims).trans(args.transA != 0, args.transB != 0);
    const bool is_float = op == IntegerOp::kDynamicQuantizeMatMul;
    args.A = operand("A", is_float ? DType::kFloat32 : a_type, a_dims);
    args.B = operand("B", b_type, b_dims);
    const bool is_half = !is_float && op != IntegerOp::kMatMulInteger && draw_.one_in(4);
    const DType scale_type = is_half ? DType::kFloat16 : DType::kFloat32;
    const ConstTensor** const slots[] = {&args.a_scale, &args.a_zero_point,
                                         &args.b_scale, &args.b_zero_point,
                                         &args.y_scale, &args.y_zero_point};
    const DType types[] = {scale_type, a_type, scale_type, b_type, scale_type, y_type};
    const char* const names[] = {"a_scale",      "a_zero_point", "b_scale",
                                 "b_zero_point", "y_scale",      "y_zero_point"};
    for (int i = 0; i < kQuantizationParams; ++i) {
      const auto which = static_cast<QuantizationParam>(i);
      const bool is_scale = i % 2 == 0;
      const ParamExtent extent = extent_of(op, which);
      if (extent == kNone || (!is_scale && draw_.one_in(3))) continue;
      const Sizes all = sizes.param_dims(which);
      Sizes dims = draw_.one_in(2) || extent == kOne ? Sizes{} : all;
      if (extent == kRows && draw_.one_in(4)) dims = {m};
      if (extent == kColumns && b.empty() && draw_.one_in(4)) dims = {n};
      *slots[i] = is_scale ? scales(names[i], types[i], dims)
                           : keep(operand(names[i], types[i], dims, true));
    }
    const bool is_real = sizes.has_float_result();
    if (is_real && draw_.one_in(2)) args.bias = keep(operand("bias", scale_type, {n}));
    const DType integer_type = args.y_zero_point != nullptr ? y_type : a_type;
    args.Y = result(op == IntegerOp::kMatMulInteger ? DType::kInt32
                    : is_real                       ? scale_type
                                                    : integer_type,
                    sizes.y_dims());
    if (op != IntegerOp::kMatMulInteger) args.activation = activation(DType::kFloat32);
    args.packed_B = packed({.op = PackFor::kQGemm, .B = args.B, .trans = args.transB});
    if (args.packed_B != nullptr) {
      args.B = {};
      args.transB = 0;
    }
    args_ = args;
  }

  void make_nbits() {
    const DType types[] = {DType::kFloat32, DType::kFloat32, DType::kFloat16, DType::kBFloat16};
    const DType type = types[draw_.below(4)];
    const Sizes batch = batches().first;
    const auto [m, n, k] = shape(size_of(batch));
    const int64_t bits = draw_.one_of({2, 4, 4, 8}), block_size = 16 << draw_.below(5);
    const int64_t blocks = (k + block_size - 1) / block_size;
    MatMulNBitsArgs args;
    args.accuracy_level = draw_.one_in(2) ? 4 : 0;
    text_ << " level=" << args.accuracy_level << " bits=" << bits << " block_size=" << block_size;
    args.A = factor("A", type, joined(batch, false, m, k));
    NBitsWeights& weights = args.weights;
    weights.B = operand("B", DType::kUInt8, {n, blocks, block_size * bits / 8}, true);
    weights.scales = operand("scales", type, {n, blocks}, true);
    if (draw_.one_in(3)) {
      weights.zero_points = keep(operand("zero_points", type, {n, blocks}, true));
    } else if (draw_.one_in(2)) {
      weights.zero_points =
          keep(operand("zero_points", DType::kUInt8, {n, (blocks * bits + 7) / 8}, true));
    }
    weights.K = k;
    weights.N = n;
    weights.bits = bits;
    weights.block_size = block_size;
    if (draw_.one_in(2)) args.bias = keep(operand("bias", type, {n}, true));
    args.Y = result(type, joined(batch, false, m, n));
    args.activation = activation(type);
    if (flag("packed", draw_.one_in(3))) {
      const Status status = pack_nbits(context_of(0, determinism_), weights, &weights_);
      EXPECT_TRUE(status.ok()) << status.message;
      args.packed_weights = &weights_;
    }
    args_ = args;
  }

  Draw draw_;
  std::mt19937_64 random_;
  std::ostringstream text_;
  Determinism determinism_ = Determinism::kFast;
  bool is_prepared_ = false;
  std::deque<Array<uint8_t>> arrays_;  // their `data` has elements of other types
  std::deque<ConstTensor> tensors_;
  PackedWeights weights_;
  size_t y_size_ = 1;  // bytes of an element
  uint8_t* y_bytes_ = nullptr;
  std::vector<uint8_t> y_before_;
  Args args_;
};

class RandomCalls : public ::testing::TestWithParam<const char*> {};

TEST_P(RandomCalls, HaveTheSameBytesForEveryNumberOfThreads) {
  const int64_t first = number_of("WGEMM_TEST_SEED", 1), count = number_of("WGEMM_TEST_CALLS", 10);
  int failures = 0;
  for (int64_t seed = first; seed < first + count && failures < kMostFailures; ++seed) {
    RandomCall call(GetParam(), static_cast<uint32_t>(seed));
    const ::testing::AssertionResult result = call.run();
    EXPECT_TRUE(result);
    if (!result) ++failures;
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, RandomCalls,
                         ::testing::Values("gemm", "matmul", "qgemm", "integer_matmul",
                                           "matmul_nbits"),
                         [](const auto& test) { return std::string(test.param); });

#endif

}  // namespace
}  // namespace wgemm::testing
