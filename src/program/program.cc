#include "program/program.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/types.h"

namespace wgemm {
namespace {

// Bounds of words.
constexpr double kMostBytes = 1LL << 53, kLeastOperation = -64, kMostOperators = 1 << 16;

// Reads the words of a step.
class Words {
 public:
  explicit Words(std::span<const double> words) : left_(words) {}
  bool ok() const { return ok_; }
  bool has(size_t count) { return check(count <= left_.size()); }
  double number() {
    if (!has(1)) return 0;
    const double word = left_.front();
    left_ = left_.subspan(1);
    return word;
  }
  // A whole number from `least` to `most`.
  int64_t integer(double least, double most) {
    const double word = number();
    return check(word >= least && word <= most) ? static_cast<int64_t>(word) : 0;
  }
  std::span<const double> take(size_t count) {
    if (!has(count)) return {};
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  bool empty() const { return left_.empty(); }
  bool check(bool is_good) { return ok_ = ok_ && is_good; }

 private:
  std::span<const double> left_;
  bool ok_ = true;
};

double memory_bytes() {
#if defined(__EMSCRIPTEN__)
  return static_cast<double>(__builtin_wasm_memory_size(0)) * 65536;
#else
  return static_cast<double>(UINTPTR_MAX);
#endif
}

// Whether all elements of a tensor are in memory.
bool is_inside(const nn::Step& step, double address, DType type, const int64_t* strides) {
  double low = 0, high = 0;
  for (size_t axis = 0; axis < step.rank; ++axis) {
    const auto last = static_cast<double>(step.dims[axis] - 1);
    if (last < 0) return true;
    const double reach = last * static_cast<double>(strides[axis]);
    (reach < 0 ? low : high) += reach;
  }
  const auto bytes = static_cast<double>(dtype_bytes(type));
  return address + low * bytes > 0 && address + (high + 1) * bytes <= memory_bytes();
}

// How much memory the steps of a program need.
struct Counts {
  size_t steps = 0, tensors = 0, sizes = 0;
};

// Returns whether the words are steps.
bool count(std::span<const double> words, Counts* counts) {
  Words all(words);
  for (; !all.empty() && all.ok(); ++counts->steps) {
    const int64_t number = all.integer(kLeastOperation, kMostOperators);
    all.integer(0, INT32_MAX);
    Words body(all.take(static_cast<size_t>(all.integer(0, INT32_MAX))));
    if (number < 0) continue;
    const nn::Operator* const op = nn::operator_at(static_cast<size_t>(number));
    const auto rank = static_cast<size_t>(body.integer(1, kMaxRank));
    if (!all.check(op != nullptr && body.ok())) return false;
    const size_t tensors = op->inputs + op->outputs;
    counts->tensors += tensors;
    counts->sizes += (1 + tensors) * rank;
  }
  return all.ok();
}

// What is left of the memory of a program.
struct Memory {
  nn::Tensor* tensors;
  int64_t* sizes;

  std::span<int64_t> take_sizes(size_t count) {
    return {std::exchange(sizes, sizes + count), count};
  }
};

// Reads an operator. Returns whether its words are in range and it takes these types.
bool read_operator(std::span<const double> words, int64_t number, Memory* memory, nn::Step* step) {
  Words body(words);
  step->op = nn::operator_at(static_cast<size_t>(number));
  step->rank = static_cast<size_t>(body.integer(1, kMaxRank));
  const std::span<int64_t> dims = memory->take_sizes(step->rank);
  for (int64_t& size : dims) size = body.integer(0, kMostBytes);
  step->dims = dims.data();
  const size_t tensors = step->op->inputs + step->op->outputs;
  step->tensors = {std::exchange(memory->tensors, memory->tensors + tensors), tensors};
  for (nn::Tensor& tensor : step->tensors) {
    tensor.type = static_cast<DType>(body.integer(0, kDTypeCount - 1));
    const auto address = static_cast<uintptr_t>(body.integer(0, kMostBytes));
    tensor.data = reinterpret_cast<std::byte*>(address);
    const std::span<int64_t> strides = memory->take_sizes(step->rank);
    for (int64_t& stride : strides) stride = body.integer(-kMostBytes, kMostBytes);
    tensor.strides = strides.data();
    body.check(is_inside(*step, static_cast<double>(address), tensor.type, tensor.strides) &&
               address % dtype_bytes(tensor.type) == 0);
  }
  step->attributes = body.take(step->op->attributes).data();
  if (!body.ok() || !body.empty() || !step->op->choose(step)) return false;
  nn::join_axes(step);
  return true;
}

}  // namespace

Program* Program::make(Context& context, std::span<const double> words, PlanProduct plan,
                       bool* is_valid) {
  Counts counts;
  *is_valid = count(words, &counts);
  if (!*is_valid) return nullptr;
  const size_t words_at = sizeof(Program) + counts.steps * sizeof(Step) +
                          counts.tensors * sizeof(nn::Tensor) + counts.sizes * sizeof(int64_t);
  void* const memory = context.allocate(words_at + words.size_bytes());
  if (memory == nullptr) return nullptr;
  auto* const program = new (memory) Program;
  program->plan_ = plan;
  auto* const steps = reinterpret_cast<Step*>(program + 1);
  program->steps_ = {steps, counts.steps};
  auto* const tensors = reinterpret_cast<nn::Tensor*>(steps + counts.steps);
  Memory left{tensors, reinterpret_cast<int64_t*>(tensors + counts.tensors)};
  auto* const own_words = reinterpret_cast<double*>(left.sizes + counts.sizes);
  std::copy(words.begin(), words.end(), own_words);

  Words all({own_words, words.size()});
  for (Step& own : program->steps_) {
    Step* const step = new (&own) Step{};
    const int64_t number = all.integer(kLeastOperation, kMostOperators);
    step->node = static_cast<int>(all.integer(0, INT32_MAX));
    step->words = all.take(static_cast<size_t>(all.integer(0, INT32_MAX)));
    step->operation = static_cast<int>(-1 - number);
    if (number >= 0 && !read_operator(step->words, number, &left, &step->op)) *is_valid = false;
  }
  if (*is_valid) return program;
  context.release(memory);
  return nullptr;
}

void Program::destroy(Context& context) {
  for (const Step& step : steps_) context.release(step.product);
  context.release(this);
}

Status Program::run_product(Context& context, Step* step) {
  if (step->product != nullptr) {
    WGEMM_RETURN_IF_ERROR(read_again(&step->product->planned));
    return wgemm::run(context, step->product->planned);
  }
  void* const memory = context.allocate(sizeof(Product));
  if (memory == nullptr)
    return error(
        Code::kOutOfMemory, "run", "",
        {"% bytes for the plan of a product are missing", static_cast<int64_t>(sizeof(Product))});
  auto* const product = new (memory) Product;
  Status status = plan_(context, step->operation, step->words, product->scalars, &product->planned);
  if (!status.ok()) {
    context.release(product);
    return status;
  }
  step->product = product;
  return wgemm::run(context, product->planned);
}

Status Program::run(Context& context, size_t first, size_t end) {
  for (size_t i = first; i < std::min(end, steps_.size()); ++i) {
    Step& step = steps_[i];
    Status status = step.op.op == nullptr ? run_product(context, &step) : nn::run(context, step.op);
    if (status.ok()) continue;
    failed_node_ = step.node;
    return status;
  }
  return {};
}

}  // namespace wgemm
