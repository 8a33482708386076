// Builds the sentence of a Status from parts, without allocating.
#pragma once

#include <initializer_list>
#include <span>

#include "wgemm.h"

namespace wgemm {

// One part of a sentence: a text, a whole number, or sizes, which are written as "[2, 3]".
class Part {
 public:
  Part(const char* text) : text_(text) {}                                   // NOLINT(google-explicit-constructor): parts stand in a list
  Part(int64_t number) : number_(number) {}                                 // NOLINT
  Part(std::span<const int64_t> sizes) : sizes_(sizes), is_sizes_(true) {}  // NOLINT
  void append_to(char* message, size_t capacity, size_t& length) const;

 private:
  const char* text_ = nullptr;
  int64_t number_ = 0;
  std::span<const int64_t> sizes_;
  bool is_sizes_ = false;
};

// "op: part part part". op and argument must have static storage. What does not fit the message is cut, and ends in "...".
Status error(Code code, const char* op, const char* argument, std::initializer_list<Part> parts);

}  // namespace wgemm
