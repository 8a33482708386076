// A program: the steps of a model for one set of input shapes, in order. A run executes them by one
// call. JavaScript writes a program as words, which hold addresses of memory that must stay where
// it is as long as the program exists.
#pragma once

#include <span>

#include "api/run.h"
#include "nn/operator.h"
#include "wgemm.h"

namespace wgemm {

// Plans the product of some words, which plan() of a run passes on. `scalars` has room for operands
// that are given as numbers, and lives as long as the plan.
using PlanProduct = Status (*)(Context& context, int operation, std::span<const double> words,
                               double* scalars, PlannedCall* planned);

// Words per step:
//   number of an operator, number of the node, length of the rest:
//     rank, dims..., then per tensor: type, address of the first element, strides...,
//     then the attributes
//   -1 - operation of a product, number of the node, length of the rest:
//     the block of arguments of compute()
class Program {
 public:
  static constexpr size_t kMostScalars = 10;

  // Reads words. Null if memory is missing or a word is out of range; `*is_valid` says which. The
  // program copies the words. destroy() frees it.
  static Program* make(Context& context, std::span<const double> words, PlanProduct plan,
                       bool* is_valid);
  void destroy(Context& context);

  // Executes steps `first` to `end`, or to the last one if there are fewer. A product is planned
  // when it is executed for the first time, since its scales exist only then. After an error,
  // failed_node() is the node of the step at fault.
  Status run(Context& context, size_t first, size_t end);
  int failed_node() const { return failed_node_; }

 private:
  struct Product {
    PlannedCall planned;
    double scalars[kMostScalars];
  };
  struct Step {
    nn::Step op;                    // op.op is null for a product
    std::span<const double> words;  // of a product
    int operation;
    int node;
    Product* product;  // null until it is planned
  };

  Program() = default;
  Status run_product(Context& context, Step* step);

  PlanProduct plan_ = nullptr;
  std::span<Step> steps_;
  int failed_node_ = -1;
};

}  // namespace wgemm
