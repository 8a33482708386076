#include "base/error.h"

#include <cstring>

namespace wgemm {
namespace {

void append(char* message, size_t capacity, size_t& length, const char* text, size_t count) {
  const size_t room = capacity - 1 - length;
  const size_t taken = count < room ? count : room;
  std::memcpy(message + length, text, taken);
  length += taken;
  message[length] = 0;
  if (taken < count) std::memcpy(message + capacity - 4, "...", 3);
}

}  // namespace

void Piece::append_to(char* message, size_t capacity, size_t& length) const {
  auto text = [&](const char* t) { append(message, capacity, length, t, std::strlen(t)); };
  auto number = [&](int64_t value) {
    // Not std::to_chars(): its tables would enlarge the binary.
    char digits[20];  // a sign and 19 digits
    char* const end = digits + sizeof(digits);
    char* first = end;
    uint64_t left = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    do {
      *--first = static_cast<char>('0' + left % 10);
      left /= 10;
    } while (left != 0);
    if (value < 0) *--first = '-';
    append(message, capacity, length, first, static_cast<size_t>(end - first));
  };
  if (count_ == kText) return text(text_);
  if (count_ == kNumber) return number(number_);
  text("[");
  for (size_t i = 0; i < count_; ++i) {
    if (i > 0) text(", ");
    number(sizes_[i]);
  }
  text("]");
}

Status error(Code code, const char* op, const char* argument, std::initializer_list<Piece> pieces) {
  Status status;
  status.code = code;
  status.op = op;
  status.argument = argument;
  size_t length = 0;
  const auto write = [&](const Piece& piece) {
    piece.append_to(status.message, sizeof(status.message), length);
  };
  write(op);
  write(": ");
  const Piece* next = pieces.begin();
  const char* pattern = next++->text();
  for (; *pattern != 0; ++pattern) {
    if (*pattern == '%') {
      write(*next++);
    } else {
      append(status.message, sizeof(status.message), length, pattern, 1);
    }
  }
  return status;
}

}  // namespace wgemm
