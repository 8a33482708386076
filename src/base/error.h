// Makes a failed Status, with a message from pieces and without allocating, and returns from the
// enclosing function if a Status failed.
#pragma once

#include <initializer_list>
#include <span>

#include "wgemm.h"

namespace wgemm {

// One piece of a message: a text, an integer, or sizes, which are written as "[2, 3]". It refers to
// the caller's text or sizes. Implicit constructors allow a list of pieces in braces.
class Piece {
 public:
  Piece(const char* text) : text_(text), count_(kText) {}                                // NOLINT
  Piece(int64_t number) : number_(number), count_(kNumber) {}                            // NOLINT
  Piece(std::span<const int64_t> sizes) : sizes_(sizes.data()), count_(sizes.size()) {}  // NOLINT
  void append_to(char* message, size_t capacity, size_t& length) const;
  // Only for a text.
  const char* text() const { return text_; }

 private:
  // A union, since many call sites build pieces and each byte of them is code.
  static constexpr size_t kText = SIZE_MAX, kNumber = SIZE_MAX - 1;
  union {
    const char* text_;
    int64_t number_;
    const int64_t* sizes_;
  };
  size_t count_;  // number of sizes; kText or kNumber for the other two
};

// A failed Status with the message "op: " and the first piece, a text in which each "%" stands for
// the next piece: {"% has rank %", name, rank}. Nothing checks that as many pieces follow. `op` and
// `argument` must have static storage. A message that is too long is cut and ends in "...".
Status error(Code code, const char* op, const char* argument, std::initializer_list<Piece> pieces);

// Evaluates a Status once, and returns it from the enclosing function if it failed.
#define WGEMM_RETURN_IF_ERROR(expression)                                   \
  do {                                                                      \
    if (::wgemm::Status failed = (expression); !failed.ok()) return failed; \
  } while (false)

}  // namespace wgemm
