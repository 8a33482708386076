#include "cblas/arguments.h"

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#if defined(__EMSCRIPTEN__)
#include <emscripten/console.h>
#else
#include <cstdio>
#endif

namespace {

// printf() would be larger than a kernel. It knows %s and %d.
class Line {
 public:
  void add(const char* form, va_list arguments) {
    for (; *form != '\0'; ++form) {
      if (form[0] != '%') {
        add(*form);
      } else if (*++form == 'd') {
        add(va_arg(arguments, int));
      } else if (*form == 's') {
        add(va_arg(arguments, const char*));
      }
    }
  }
  void add(const char* text) {
    while (*text != '\0') add(*text++);
  }
  void add(int number) {
    char digits[12];
    int count = 0;
    unsigned left = number < 0 ? 0U - static_cast<unsigned>(number) : static_cast<unsigned>(number);
    do {
      digits[count++] = static_cast<char>('0' + left % 10);
    } while ((left /= 10) != 0);
    if (number < 0) add('-');
    while (count > 0) add(digits[--count]);
  }
  const char* text() const { return text_; }

 private:
  void add(char c) {
    if (size_ + 1 < sizeof(text_)) text_[size_++] = c;
  }

  char text_[256] = {};
  size_t size_ = 0;
};

[[noreturn]] void end_with(const char* line) {
#if defined(__EMSCRIPTEN__)
  emscripten_console_error(line);
#else
  std::fprintf(stderr, "%s\n", line);
#endif
  std::abort();
}

}  // namespace

extern "C" {

[[gnu::weak]] void cblas_xerbla(CBLAS_INT position, const char* name, const char* form, ...) {
  Line line;
  line.add(name);
  line.add(": argument ");
  line.add(position);
  line.add(", ");
  va_list arguments;
  va_start(arguments, form);
  line.add(form, arguments);
  va_end(arguments);
  end_with(line.text());
}

#if WGEMM_BLAS_FORTRAN
// `name` has `length` letters, padded with blanks. `info` is the position of the argument.
[[gnu::weak]] wgemm::blas::Subroutine xerbla_(const char* name, const int* info, size_t length) {
  char text[16] = {};
  std::memcpy(text, name, std::min(length, sizeof(text) - 1));
  Line line;
  line.add(text);
  line.add(": argument ");
  line.add(*info);
  line.add(" is not allowed");
  end_with(line.text());
}
#endif
}

namespace wgemm::blas {
namespace {

void report(const Caller& caller, const Argument& argument, const char* form) {
#if WGEMM_BLAS_FORTRAN
  if (caller.is_fortran) {
    char name[] = "      ";
    const char* from = caller.name + std::strlen("cblas_");
    for (char* to = name; *from != '\0' && *to != '\0'; ++from, ++to) *to = upper(*from);
    const int info = argument.position - 1;
    return static_cast<void>(xerbla_(name, &info, sizeof(name) - 1));
  }
#endif
  cblas_xerbla(argument.position, caller.name, form, argument.name, argument.value, argument.least,
               argument.most);
}

}  // namespace

bool are_allowed(const Caller& caller, std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (argument.value < argument.least) {
      report(caller, argument, "%s is %d; it must be at least %d");
    } else if (argument.value > argument.most) {
      report(caller, argument, "%s is %d; it must be from %d to %d");
    } else {
      continue;
    }
    return false;
  }
  return true;
}

bool is_increment(const Caller& caller, int position, const char* name, int value) {
  if (value != 0) return true;
  report(caller, {position, name, value, 0}, "%s is %d; it must not be 0");
  return false;
}

}  // namespace wgemm::blas
