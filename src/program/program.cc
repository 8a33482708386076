#include "program/program.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/words.h"

namespace wgemm {
namespace {

// Bounds of the number of a step.
constexpr double kLeastOperation = -64, kMostOthers = 1 << 16;

// A step as words.
struct StepWords {
  int number;
  int node;
  std::span<const double> body;

  bool is_product() const { return number < 0; }
};

StepWords next_step(WordReader& words) {
  StepWords step;
  step.number = static_cast<int>(words.integer(kLeastOperation, kMostOthers));
  step.node = static_cast<int>(words.integer(0, INT32_MAX));
  step.body = words.take(static_cast<size_t>(words.integer(0, INT32_MAX)));
  return step;
}

// How much memory the steps of a program need.
struct Counts {
  size_t steps = 0, bytes_of_others = 0;
};

// Returns whether the words are steps.
bool count(std::span<const double> words, const OtherSteps* others, Counts* counts) {
  WordReader all(words);
  for (; !all.empty() && all.ok(); ++counts->steps) {
    const StepWords step = next_step(all);
    if (!all.ok() || step.is_product()) continue;
    const size_t bytes = others == nullptr ? 0 : others->bytes(step.number, step.body);
    all.check(bytes != 0);
    counts->bytes_of_others += bytes;
  }
  return all.ok();
}

}  // namespace

Program* Program::make(Context& context, std::span<const double> words, PlanProduct plan,
                       const OtherSteps* others, bool* is_valid) {
  Counts counts;
  *is_valid = count(words, others, &counts);
  if (!*is_valid) return nullptr;
  void* const memory = context.allocate(sizeof(Program) + counts.steps * sizeof(Step) +
                                        words.size_bytes() + counts.bytes_of_others);
  if (memory == nullptr) return nullptr;
  auto* const program = new (memory) Program;
  program->plan_ = plan;
  program->others_ = others;
  auto* const steps = reinterpret_cast<Step*>(program + 1);
  program->steps_ = {steps, counts.steps};
  auto* const own_words = reinterpret_cast<double*>(steps + counts.steps);
  std::copy(words.begin(), words.end(), own_words);
  auto* free_bytes = reinterpret_cast<std::byte*>(own_words + words.size());

  WordReader all({own_words, words.size()});
  for (Step& own : program->steps_) {
    const StepWords step = next_step(all);
    new (&own) Step{step.body, -1 - step.number, step.node, nullptr, nullptr};
    if (step.is_product()) continue;
    own.other = std::exchange(free_bytes, free_bytes + others->bytes(step.number, step.body));
    if (!others->read(step.number, step.body, own.other)) *is_valid = false;
  }
  if (*is_valid) return program;
  context.release(memory);
  return nullptr;
}

void Program::destroy(Context& context) {
  for (const Step& step : steps_) context.release(step.product);
  context.release(this);
}

void Program::take_plans(Program* other) {
  for (size_t i = 0; i < std::min(steps_.size(), other->steps_.size()); ++i) {
    Step &to = steps_[i], &from = other->steps_[i];
    if (from.product != nullptr && to.product == nullptr && to.operation == from.operation &&
        to.words.size() == from.words.size() &&
        std::memcmp(to.words.data(), from.words.data(), to.words.size_bytes()) == 0)
      to.product = std::exchange(from.product, nullptr);
  }
}

Status Program::plan_product(Context& context, Step* step) {
  void* const memory = context.allocate(sizeof(Product));
  if (memory == nullptr)
    return error(
        Code::kOutOfMemory, "run", "",
        {"% bytes for the plan of a product are missing", static_cast<int64_t>(sizeof(Product))});
  auto* const product = new (memory) Product;
  Status status = plan_(context, step->operation, step->words, product->scalars, &product->planned);
  if (status.ok()) {
    step->product = product;
  } else {
    context.release(product);
  }
  return status;
}

Status Program::run(Context& context, size_t first, size_t end) {
  const auto run_product = [&](Step* step) -> Status {
    if (step->product == nullptr) WGEMM_RETURN_IF_ERROR(plan_product(context, step));
    PlannedCall& planned = step->product->planned;
    WGEMM_RETURN_IF_ERROR(read_again(context, &planned));
    return wgemm::run(context, planned);
  };
  for (size_t i = first; i < std::min(end, steps_.size()); ++i) {
    Step& step = steps_[i];
    Status status = step.other == nullptr ? run_product(&step) : others_->run(context, step.other);
    if (status.ok()) continue;
    failed_node_ = step.node;
    return status;
  }
  return {};
}

}  // namespace wgemm
