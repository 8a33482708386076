// Checks of arguments, in the order of the reference BLAS: the first wrong one is reported.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "cblas.h"

namespace wgemm::blas {

// Who called: the names of Fortran have no layout, and report to xerbla_().
struct Caller {
  const char* name;  // such as "cblas_sgemm", for Fortran too
  bool is_fortran = false;
};

// An argument, by its position in the function of cblas.h, and the least and the most that it may
// be.
struct Argument {
  int position;
  const char* name;
  int value, least, most = 0x7fffffff;
};

// Whether all arguments are allowed. Reports the first that is not.
bool are_allowed(const Caller& caller, std::initializer_list<Argument> arguments);

// The enumerations.
constexpr Argument layout_of(int value) {
  return {1, "layout", value, CblasRowMajor, CblasColMajor};
}
constexpr Argument trans_of(int position, const char* name, int value) {
  return {position, name, value, CblasNoTrans, CblasConjTrans};
}
constexpr Argument uplo_of(int position, int value) {
  return {position, "Uplo", value, CblasUpper, CblasLower};
}
constexpr Argument side_of(int position, int value) {
  return {position, "Side", value, CblasLeft, CblasRight};
}
constexpr Argument diag_of(int position, int value) {
  return {position, "Diag", value, CblasNonUnit, CblasUnit};
}

// A leading dimension of lines of `elements`.
constexpr Argument leading(int position, const char* name, int value, int elements) {
  return {position, name, value, std::max(1, elements)};
}

// Reports an increment of 0.
bool is_increment(const Caller& caller, int position, const char* name, int value);

#if WGEMM_BLAS_FORTRAN
// The type that a Fortran subroutine returns: void, or int as f2c has it, whose value is 0. In
// WebAssembly, a caller must declare the same type.
#if WGEMM_BLAS_FORTRAN_INT
using Subroutine = int;
#else
using Subroutine = void;
#endif

// The enumerations of the letters of Fortran; 0 if there is none.
constexpr char upper(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}
constexpr int trans_of(const char* letter) {
  const char c = upper(*letter);
  return c == 'N' ? CblasNoTrans : c == 'T' ? CblasTrans : c == 'C' ? CblasConjTrans : 0;
}
constexpr int uplo_of(const char* letter) {
  const char c = upper(*letter);
  return c == 'U' ? CblasUpper : c == 'L' ? CblasLower : 0;
}
constexpr int side_of(const char* letter) {
  const char c = upper(*letter);
  return c == 'L' ? CblasLeft : c == 'R' ? CblasRight : 0;
}
constexpr int diag_of(const char* letter) {
  const char c = upper(*letter);
  return c == 'N' ? CblasNonUnit : c == 'U' ? CblasUnit : 0;
}
#endif

}  // namespace wgemm::blas
