// Builds the sentence of a Status from parts, without allocating.
#pragma once

#include <initializer_list>
#include <span>

#include "wgemm.h"

namespace wgemm {

// One part of a sentence: a text, a whole number, or sizes, which are written as "[2, 3]".
class Part {
 public:
  Part(const char* text)
      : text_(text), count_(kText) {}  // NOLINT(google-explicit-constructor): parts stand in a list
  Part(int64_t number) : number_(number), count_(kNumber) {}                            // NOLINT
  Part(std::span<const int64_t> sizes) : sizes_(sizes.data()), count_(sizes.size()) {}  // NOLINT
  void append_to(char* message, size_t capacity, size_t& length) const;

 private:
  // Small, since sentences are made in many places.
  static constexpr size_t kText = SIZE_MAX, kNumber = SIZE_MAX - 1;
  union {
    const char* text_;
    int64_t number_;
    const int64_t* sizes_;
  };
  size_t count_;  // of the sizes; or which of the others it is
};

// "op: part part part". op and argument must have static storage. What does not fit the message is
// cut, and ends in "...".
Status error(Code code, const char* op, const char* argument, std::initializer_list<Part> parts);

}  // namespace wgemm
