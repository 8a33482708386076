// A program: products and other steps, in order. A run executes them by one call. JavaScript writes
// a program as words, which hold addresses of memory that must stay where it is as long as the
// program exists.
#pragma once

#include <span>

#include "api/run.h"
#include "wgemm.h"

namespace wgemm {

// Plans the product of some words, which plan() of a run passes on. Each run then reads scales and
// zero points by read_again(), so they need not be valid yet. `scalars` has room for operands that
// are given as numbers, and lives as long as the plan.
using PlanProduct = Status (*)(Context& context, int operation, std::span<const double> words,
                               double* scalars, PlannedCall* planned);

// Reads and runs steps that are not products. The number of a step has 32 bits, since Emscripten's
// glue names each type of function that has numbers of 64 bits, and all modules share one glue.
struct OtherSteps {
  // The bytes of memory that a step takes, a multiple of 8. 0: its words are out of range.
  size_t (*bytes)(int number, std::span<const double> words);
  // Makes the step in that many bytes. Returns whether its words are in range. The words live as
  // long as the step.
  bool (*read)(int number, std::span<const double> words, void* memory);
  Status (*run)(Context& context, const void* memory);
};

// Words per step:
//   -1 - operation of a product, number of the node, length of the rest:
//     the block of arguments of compute()
//   number of another step from 0 on, number of the node, length of the rest:
//     words that OtherSteps::read() reads
class alignas(8) Program {
 public:
  static constexpr size_t kMostScalars = 10;

  // Reads words. Null if memory is missing or a word is out of range; `*is_valid` says which. The
  // program copies the words. `others` is null if all steps are products. destroy() frees it.
  static Program* make(Context& context, std::span<const double> words, PlanProduct plan,
                       const OtherSteps* others, bool* is_valid);
  void destroy(Context& context);

  // Executes steps `first` to `end`, or to the last one if there are fewer. A product is planned
  // when it is executed for the first time. After an error, failed_node() is the node of the step
  // at fault.
  Status run(Context& context, size_t first, size_t end);
  int failed_node() const { return failed_node_; }

  // Takes the plans of products from a program with the same steps, if their words are the same.
  void take_plans(Program* other);

 private:
  struct Product {
    PlannedCall planned;
    double scalars[kMostScalars];
  };
  struct alignas(8) Step {
    std::span<const double> words;
    int operation;  // of a product
    int node;
    Product* product;  // null until it is planned
    void* other;       // what OtherSteps::read() made; null for a product
  };

  Program() = default;
  Status plan_product(Context& context, Step* step);

  PlanProduct plan_ = nullptr;
  const OtherSteps* others_ = nullptr;
  std::span<Step> steps_;
  int failed_node_ = -1;
};

}  // namespace wgemm
