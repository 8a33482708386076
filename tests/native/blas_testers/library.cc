// Functions that the libblas.so.3 of the reference testers has in addition to src/cblas.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

[[noreturn]] void stop(const char* name, const char* why) {
  std::fprintf(stderr, "%s: %s\n", name, why);
  std::abort();
}

// The function of the tester, which is a program. A call by its name would be a call of the
// function below.
template <typename Function>
Function of_tester(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) stop(name, "the tester does not have this function");
  return reinterpret_cast<Function>(found);
}

// Arguments that the reference exchanges for row-major matrices, by their positions.
constexpr struct {
  const char* name;
  std::pair<int, int> positions[2];
} kExchanged[] = {
    {"gemm", {{4, 5}, {9, 11}}}, {"symm", {{4, 5}}}, {"trmm", {{6, 7}}},
    {"trsm", {{6, 7}}},          {"gemv", {{3, 4}}}, {"ger", {{2, 3}, {6, 8}}},
};

int exchanged(const char* name, int position) {
  for (const auto& function : kExchanged) {
    if (std::strstr(name, function.name) == nullptr) continue;
    for (const auto& [one, other] : function.positions) {
      if (position == one) return other;
      if (position == other) return one;
    }
  }
  return position;
}

}  // namespace

extern "C" {

// The testers write it, and the reference has it: whether the matrices of the call are row-major.
int RowMajorStrg = 0;

// A tester expects the positions that the reference reports. For row-major matrices, the reference
// has exchanged the arguments, and the tester exchanges the positions again.
void cblas_xerbla(int position, const char* name, const char* form, ...) {
  static const auto report =
      of_tester<void (*)(int, const char*, const char*, ...)>("cblas_xerbla");
  report(RowMajorStrg != 0 ? exchanged(name, position) : position, name, "%s", form);
}

void xerbla_(const char* name, const int* info, size_t length) {
  static const auto report = of_tester<void (*)(const char*, const int*, size_t)>("xerbla_");
  report(name, info, length);
}

// Functions that wgemm does not have. The testers of level 2 bind them, and must not call them.
#define WGEMM_TEST_ABSENT(name) \
  void name() { stop(#name, "wgemm does not have this function"); }
#define WGEMM_TEST_ABSENT_NAMES(function) \
  WGEMM_TEST_ABSENT(s##function##_)       \
  WGEMM_TEST_ABSENT(d##function##_)       \
  WGEMM_TEST_ABSENT(cblas_s##function)    \
  WGEMM_TEST_ABSENT(cblas_d##function)
WGEMM_TEST_ABSENT_NAMES(gbmv)
WGEMM_TEST_ABSENT_NAMES(sbmv)
WGEMM_TEST_ABSENT_NAMES(spmv)
WGEMM_TEST_ABSENT_NAMES(spr)
WGEMM_TEST_ABSENT_NAMES(spr2)
WGEMM_TEST_ABSENT_NAMES(symv)
WGEMM_TEST_ABSENT_NAMES(syr)
WGEMM_TEST_ABSENT_NAMES(syr2)
WGEMM_TEST_ABSENT_NAMES(tbmv)
WGEMM_TEST_ABSENT_NAMES(tbsv)
WGEMM_TEST_ABSENT_NAMES(tpmv)
WGEMM_TEST_ABSENT_NAMES(tpsv)
WGEMM_TEST_ABSENT_NAMES(trmv)
WGEMM_TEST_ABSENT_NAMES(trsv)
}
