// Random calls of every function of cblas.h, compared with their definitions, and with the
// reference BLAS if WGEMM_TEST_BLAS is the path of its library. WGEMM_TEST_CALLS says how many
// calls each function makes, per type. A failure names its seed; WGEMM_TEST_SEED=seed
// WGEMM_TEST_CALLS=1 makes that call again.
#include "cblas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#ifdef WGEMM_TEST_BLAS
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

struct Reported {
  int count = 0, position = 0;
  std::string name, message;
} reported;

#ifdef WGEMM_TEST_WRAPPED
bool has_memory = true;
#endif

}  // namespace

extern "C" {
void cblas_xerbla(int position, const char* name, const char* form, ...) {
  char message[200];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(message, sizeof(message), form, arguments);
  va_end(arguments);
  reported = {reported.count + 1, position, name, message};
}
#ifdef WGEMM_TEST_WRAPPED
void* __real_aligned_alloc(size_t alignment, size_t bytes);
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return has_memory ? __real_aligned_alloc(alignment, bytes) : nullptr;
}
#endif
}

namespace {

int number_of(const char* name, int usual) {
  const char* value = std::getenv(name);
  return value == nullptr ? usual : std::atoi(value);
}

// The functions of a type: ours, or the reference's.
template <typename T>
struct Blas;
#define WGEMM_TEST_BLAS_FUNCTION(letter, function) \
  decltype(&cblas_##letter##function) function = cblas_##letter##function;
#define WGEMM_TEST_BLAS_TYPE(T, letter)     \
  template <>                               \
  struct Blas<T> {                          \
    WGEMM_TEST_BLAS_FUNCTION(letter, dot)   \
    WGEMM_TEST_BLAS_FUNCTION(letter, nrm2)  \
    WGEMM_TEST_BLAS_FUNCTION(letter, axpy)  \
    WGEMM_TEST_BLAS_FUNCTION(letter, scal)  \
    WGEMM_TEST_BLAS_FUNCTION(letter, gemv)  \
    WGEMM_TEST_BLAS_FUNCTION(letter, ger)   \
    WGEMM_TEST_BLAS_FUNCTION(letter, gemm)  \
    WGEMM_TEST_BLAS_FUNCTION(letter, symm)  \
    WGEMM_TEST_BLAS_FUNCTION(letter, syrk)  \
    WGEMM_TEST_BLAS_FUNCTION(letter, syr2k) \
    WGEMM_TEST_BLAS_FUNCTION(letter, trmm)  \
    WGEMM_TEST_BLAS_FUNCTION(letter, trsm)  \
  };
WGEMM_TEST_BLAS_TYPE(float, s)
WGEMM_TEST_BLAS_TYPE(double, d)

template <typename T>
const Blas<T> ours;

// The functions of the reference, or null without it.
template <typename T>
const Blas<T>* reference() {
#ifdef WGEMM_TEST_BLAS
  static const Blas<T> found = [] {
    void* const library = dlopen(WGEMM_TEST_BLAS, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    Blas<T> blas;
    const auto find = [&](const char* name, auto* function) {
      const std::string full = std::string("cblas_") + (sizeof(T) == 4 ? "s" : "d") + name;
      *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(
          dlsym(library, full.c_str()));
      if (*function == nullptr) std::abort();
    };
    find("dot", &blas.dot);
    find("nrm2", &blas.nrm2);
    find("axpy", &blas.axpy);
    find("scal", &blas.scal);
    find("gemv", &blas.gemv);
    find("ger", &blas.ger);
    find("gemm", &blas.gemm);
    find("symm", &blas.symm);
    find("syrk", &blas.syrk);
    find("syr2k", &blas.syr2k);
    find("trmm", &blas.trmm);
    find("trsm", &blas.trsm);
    return blas;
  }();
  return &found;
#else
  return nullptr;
#endif
}

template <typename T>
using Exact = std::conditional_t<sizeof(T) == 4, double, long double>;

// A matrix or a vector in memory of exactly its size. Its other elements must not change.
template <typename T>
struct Operand {
  std::vector<T> memory;
  int rows, cols, leading;
  bool row_major;

  T* data() { return memory.data(); }
  size_t place(int i, int j) const {
    const auto line = static_cast<size_t>(row_major ? i : j),
               element = static_cast<size_t>(row_major ? j : i);
    return line * static_cast<size_t>(leading) + element;
  }
  T operator()(int i, int j) const { return memory[place(i, j)]; }
};

template <typename T>
struct Vector {
  std::vector<T> memory;
  int size, step;

  T* data() { return memory.data(); }
  size_t place(int i) const { return static_cast<size_t>((step < 0 ? i - (size - 1) : i) * step); }
  T operator[](int i) const { return memory[place(i)]; }
};

// Draws a call.
class Draw {
 public:
  explicit Draw(int seed) : random_(static_cast<unsigned>(seed)) {
    const int distances[] = {5, 40, 400};
    if (one_in(4)) special_distance_ = distances[below(3)];
  }

  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  bool one_in(int count) { return below(count) == 0; }
  int size() { return one_in(12) ? 0 : one_in(8) ? below(150) : 1 + below(one_in(2) ? 9 : 40); }
  CBLAS_LAYOUT layout() { return one_in(2) ? CblasRowMajor : CblasColMajor; }
  CBLAS_TRANSPOSE trans() {
    return one_in(2) ? CblasNoTrans : one_in(4) ? CblasConjTrans : CblasTrans;
  }
  CBLAS_UPLO uplo() { return one_in(2) ? CblasUpper : CblasLower; }
  CBLAS_SIDE side() { return one_in(2) ? CblasLeft : CblasRight; }
  CBLAS_DIAG diag() { return one_in(2) ? CblasUnit : CblasNonUnit; }
  // beta, and factors of level 1.
  template <typename T>
  T any_factor() {
    const T drawn = element<T>();
    return std::isfinite(drawn) ? factor<T>() : drawn;
  }
  // alpha. If it were infinite, results would depend on whether it multiplies terms or their sum.
  template <typename T>
  T factor() {
    return one_in(4) ? T{0} : one_in(3) ? T{1} : one_in(3) ? T{-1} : number<T>();
  }
  template <typename T>
  T number() {
    return static_cast<T>(below(1 << 24) - (1 << 23)) / static_cast<T>(1 << 23);
  }
  template <typename T>
  T element() {
    if (special_distance_ != 0 && one_in(special_distance_)) {
      const T values[] = {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                          std::numeric_limits<T>::quiet_NaN(), T{0}, T{0}};
      return values[below(5)];
    }
    return number<T>();
  }
  template <typename T>
  std::vector<T> elements(size_t count) {
    std::vector<T> all(count);
    for (T& one : all) one = element<T>();
    return all;
  }
  template <typename T>
  Operand<T> matrix(CBLAS_LAYOUT layout, int rows, int cols) {
    const bool row_major = layout == CblasRowMajor;
    const int lines = row_major ? rows : cols, line = row_major ? cols : rows,
              leading = std::max(1, line) + (one_in(2) ? 0 : below(7));
    const size_t count = lines == 0 || line == 0
                             ? 0
                             : static_cast<size_t>(lines - 1) * static_cast<size_t>(leading) +
                                   static_cast<size_t>(line);
    return {elements<T>(count), rows, cols, leading, row_major};
  }
  template <typename T>
  Vector<T> vector(int size) {
    const int step = one_in(2) ? 1 : below(2) == 0 ? 1 + below(4) : -1 - below(3);
    const size_t count = size == 0 ? 0 : static_cast<size_t>((size - 1) * std::abs(step)) + 1;
    return {elements<T>(count), size, step};
  }

 private:
  std::mt19937 random_;
  int special_distance_ = 0;  // one of n elements is special; 0: none is
};

// Counts the results of a test that are NaN or infinite by their definition.
struct {
  int64_t nan = 0, infinite = 0;
} specials;

// Describes the error of a result that is beyond its bound. Empty if the result is right.
template <typename T>
std::string difference(T found, Exact<T> exact, Exact<T> sum, int depth) {
  constexpr Exact<T> kEps = std::numeric_limits<T>::epsilon();
  const Exact<T> bound = sum * (depth + 8) * kEps + std::numeric_limits<T>::min();
  const bool is_near = std::isnan(exact)   ? std::isnan(found)
                       : std::isinf(exact) ? found == static_cast<T>(exact)
                                           : std::fabs(Exact<T>{found} - exact) <= bound;
  if (is_near) return "";
  return std::to_string(found) + " instead of " + std::to_string(exact);
}

// The outputs of a call. Output: Operand or Vector.
template <typename Output>
struct Outputs {
  Output before, ours;
  std::optional<Output> reference;
};

// Makes a call with our functions, and with the reference's.
template <typename T, typename Output, typename Call>
Outputs<Output> call_both(const Output& before, const Call& call) {
  Outputs<Output> outputs = {before, before, std::nullopt};
  call(ours<T>, outputs.ours.data());
  if (reference<T>() != nullptr) {
    outputs.reference = before;
    call(*reference<T>(), outputs.reference->data());
  }
  return outputs;
}

// Whether the reference leaves out terms with a factor of 0, so that 0 * NaN adds nothing. Ours and
// the definitions have all terms.
enum class Zeros { kMultiplied, kMayBeSkipped };

// Compares results with their definition.
template <typename T>
void expect_results(T found, const T* theirs, Exact<T> exact, Exact<T> sum, int depth, Zeros zeros,
                    const std::function<std::string()>& name) {
  specials.nan += std::isnan(exact);
  specials.infinite += std::isinf(exact);
  const std::string wrong = difference<T>(found, exact, sum, depth);
  if (!wrong.empty()) ADD_FAILURE() << name() << ": " << wrong;
  if (theirs == nullptr || (zeros == Zeros::kMayBeSkipped && std::isnan(exact))) return;
  const std::string of_reference = difference<T>(*theirs, exact, sum, depth);
  if (!of_reference.empty()) ADD_FAILURE() << name() << " of the reference: " << of_reference;
}

template <typename T>
void expect_number(T found, std::optional<T> theirs, Exact<T> exact, Exact<T> sum, int depth,
                   const char* name) {
  expect_results<T>(found, theirs ? &*theirs : nullptr, exact, sum, depth, Zeros::kMultiplied,
                    [&] { return name; });
}

// Expects that a call has changed no place that it must not write.
template <typename T, typename Output>
void expect_unchanged(const Outputs<Output>& outputs, const std::vector<bool>& is_written) {
  const auto expect_same = [&](const Output& output, const char* name) {
    for (size_t i = 0; i < is_written.size(); ++i) {
      const T before = outputs.before.memory[i], now = output.memory[i];
      ASSERT_TRUE(is_written[i] || before == now || (std::isnan(before) && std::isnan(now)))
          << name << " changed place " << i;
    }
  };
  expect_same(outputs.ours, "ours");
  if (outputs.reference) expect_same(*outputs.reference, "the reference");
}

// Compares an output with its elements before. `define(i, j, &exact, &sum)` returns whether the
// element is written.
template <typename T, typename Define>
void expect_matrix(const Outputs<Operand<T>>& outputs, int depth, Zeros zeros,
                   const Define& define) {
  const Operand<T>& before = outputs.before;
  std::vector<bool> is_written(before.memory.size());
  for (int i = 0; i < before.rows; ++i) {
    for (int j = 0; j < before.cols; ++j) {
      Exact<T> exact = 0, sum = 0;
      if (!define(i, j, &exact, &sum)) continue;
      const size_t place = before.place(i, j);
      is_written[place] = true;
      expect_results<T>(outputs.ours.memory[place],
                        outputs.reference ? &outputs.reference->memory[place] : nullptr, exact, sum,
                        depth, zeros,
                        [&] { return "element " + std::to_string(i) + ", " + std::to_string(j); });
      if (::testing::Test::HasFailure()) return;
    }
  }
  expect_unchanged<T>(outputs, is_written);
}

// The same for a vector.
template <typename T, typename Define>
void expect_vector(const Outputs<Vector<T>>& outputs, int depth, const Define& define) {
  const Vector<T>& before = outputs.before;
  std::vector<bool> is_written(before.memory.size());
  for (int i = 0; i < before.size; ++i) {
    Exact<T> exact = 0, sum = 0;
    if (!define(i, &exact, &sum)) continue;
    const size_t place = before.place(i);
    is_written[place] = true;
    expect_results<T>(outputs.ours.memory[place],
                      outputs.reference ? &outputs.reference->memory[place] : nullptr, exact, sum,
                      depth, Zeros::kMultiplied, [&] { return "element " + std::to_string(i); });
  }
  expect_unchanged<T>(outputs, is_written);
}

// alpha * op(A) * op(B) + beta * C, for any A and B as functions of places.
template <typename T, typename A, typename B>
void define_product(int k, T alpha, const A& a, const B& b, T beta, T c, Exact<T>* exact,
                    Exact<T>* sum) {
  using E = Exact<T>;
  E product = 0;
  *sum = 0;
  for (int p = 0; p < k && alpha != 0; ++p) {
    product += E{a(p)} * E{b(p)};
    *sum += std::fabs(E{a(p)} * E{b(p)});
  }
  *exact = alpha == 0 || k == 0 ? E{0} : E{alpha} * product;
  *sum *= std::fabs(E{alpha});
  if (beta == 0) return;
  *exact += E{beta} * E{c};
  *sum += std::fabs(E{beta} * E{c});
}

template <typename T>
class Cblas : public ::testing::Test {
 protected:
  void run(const std::function<void(Draw&)>& call, int usual = 250) {
    const int calls = number_of("WGEMM_TEST_CALLS", usual), first = number_of("WGEMM_TEST_SEED", 0);
    reported = {};
    specials = {};
    for (int seed = first; seed < first + calls; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Draw draw(seed);
      call(draw);
      if (HasFailure()) return;
    }
    EXPECT_EQ(reported.count, 0) << reported.message;
    if (calls >= 250) {
      EXPECT_GT(specials.nan, calls / 10) << "special values must be drawn";
      EXPECT_GT(specials.infinite, calls / 10) << "special values must be drawn";
    }
  }
};
using Types = ::testing::Types<float, double>;
struct Names {
  template <typename T>
  static std::string GetName(int) {
    return sizeof(T) == 4 ? "float32" : "float64";
  }
};
TYPED_TEST_SUITE(Cblas, Types, Names);

template <typename T>
void check_gemm(Draw& d) {
  const CBLAS_LAYOUT layout = d.layout();
  const CBLAS_TRANSPOSE ta = d.trans(), tb = d.trans();
  const int m = d.size(), n = d.size(), k = d.size();
  const T alpha = d.factor<T>(), beta = d.any_factor<T>();
  auto a = ta == CblasNoTrans ? d.matrix<T>(layout, m, k) : d.matrix<T>(layout, k, m),
       b = tb == CblasNoTrans ? d.matrix<T>(layout, k, n) : d.matrix<T>(layout, n, k);
  const auto c = d.matrix<T>(layout, m, n);
  const auto outputs = call_both<T>(c, [&](const Blas<T>& blas, T* out) {
    blas.gemm(layout, ta, tb, m, n, k, alpha, a.data(), a.leading, b.data(), b.leading, beta, out,
              c.leading);
  });
  expect_matrix(outputs, k, Zeros::kMultiplied, [&](int i, int j, auto* exact, auto* sum) {
    define_product<T>(
        k, alpha, [&](int p) { return ta == CblasNoTrans ? a(i, p) : a(p, i); },
        [&](int p) { return tb == CblasNoTrans ? b(p, j) : b(j, p); }, beta, c(i, j), exact, sum);
    return true;
  });
}
TYPED_TEST(Cblas, Gemm) { this->run(check_gemm<TypeParam>); }

TYPED_TEST(Cblas, Gemv) {
  using T = TypeParam;
  this->run([](Draw& d) {
    const CBLAS_LAYOUT layout = d.layout();
    const CBLAS_TRANSPOSE ta = d.trans();
    const int m = d.one_in(20) ? 700 : d.size(), n = d.one_in(20) ? 1100 : d.size();
    const T alpha = d.factor<T>(), beta = d.any_factor<T>();
    auto a = d.matrix<T>(layout, m, n);
    auto x = d.vector<T>(ta == CblasNoTrans ? n : m);
    const auto y = d.vector<T>(ta == CblasNoTrans ? m : n);
    const auto outputs = call_both<T>(y, [&](const Blas<T>& blas, T* out) {
      blas.gemv(layout, ta, m, n, alpha, a.data(), a.leading, x.data(), x.step, beta, out, y.step);
    });
    expect_vector(outputs, x.size, [&](int i, auto* exact, auto* sum) {
      if (m == 0 || n == 0) return false;
      define_product<T>(
          x.size, alpha, [&](int p) { return ta == CblasNoTrans ? a(i, p) : a(p, i); },
          [&](int p) { return x[p]; }, beta, y[i], exact, sum);
      return true;
    });
  });
}

TYPED_TEST(Cblas, Ger) {
  using T = TypeParam;
  this->run([](Draw& d) {
    const CBLAS_LAYOUT layout = d.layout();
    const int m = d.size(), n = d.size();
    const T alpha = d.factor<T>();
    auto x = d.vector<T>(m), y = d.vector<T>(n);
    const auto a = d.matrix<T>(layout, m, n);
    const auto outputs = call_both<T>(a, [&](const Blas<T>& blas, T* out) {
      blas.ger(layout, m, n, alpha, x.data(), x.step, y.data(), y.step, out, a.leading);
    });
    expect_matrix(outputs, 1, Zeros::kMultiplied, [&](int i, int j, auto* exact, auto* sum) {
      // As in the reference, a factor of 0 changes nothing.
      if (alpha == 0 || (layout == CblasRowMajor ? x[i] : y[j]) == 0) return false;
      define_product<T>(
          1, alpha, [&](int) { return x[i]; }, [&](int) { return y[j]; }, 1, a(i, j), exact, sum);
      return true;
    });
  });
}

template <typename T>
void check_update(Draw& d, bool is_twice) {
  const CBLAS_LAYOUT layout = d.layout();
  const CBLAS_UPLO uplo = d.uplo();
  const CBLAS_TRANSPOSE trans = d.trans();
  const int n = d.size(), k = d.size();
  const T alpha = d.factor<T>(), beta = d.any_factor<T>();
  const auto draw = [&] {
    return trans == CblasNoTrans ? d.matrix<T>(layout, n, k) : d.matrix<T>(layout, k, n);
  };
  auto a = draw(), b = draw();
  const auto c = d.matrix<T>(layout, n, n);
  const auto outputs = call_both<T>(c, [&](const Blas<T>& blas, T* out) {
    if (is_twice) {
      blas.syr2k(layout, uplo, trans, n, k, alpha, a.data(), a.leading, b.data(), b.leading, beta,
                 out, c.leading);
    } else {
      blas.syrk(layout, uplo, trans, n, k, alpha, a.data(), a.leading, beta, out, c.leading);
    }
  });
  const auto of = [&](const auto& matrix, int i, int p) {
    return trans == CblasNoTrans ? matrix(i, p) : matrix(p, i);
  };
  expect_matrix(outputs, 2 * k, Zeros::kMayBeSkipped, [&](int i, int j, auto* exact, auto* sum) {
    if (uplo == CblasLower ? i < j : i > j) return false;
    define_product<T>(
        is_twice ? 2 * k : k, alpha, [&](int p) { return p < k ? of(a, i, p) : of(b, i, p - k); },
        [&](int p) { return !is_twice ? of(a, j, p)
                            : p < k   ? of(b, j, p)
                                      : of(a, j, p - k); },
        beta, c(i, j), exact, sum);
    return true;
  });
}
TYPED_TEST(Cblas, Syrk) {
  this->run([](Draw& d) { check_update<TypeParam>(d, false); });
}
TYPED_TEST(Cblas, Syr2k) {
  this->run([](Draw& d) { check_update<TypeParam>(d, true); });
}

TYPED_TEST(Cblas, Symm) {
  using T = TypeParam;
  this->run([](Draw& d) {
    const CBLAS_LAYOUT layout = d.layout();
    const CBLAS_SIDE side = d.side();
    const CBLAS_UPLO uplo = d.uplo();
    const int m = d.size(), n = d.size(), k = side == CblasLeft ? m : n;
    const T alpha = d.factor<T>(), beta = d.any_factor<T>();
    auto a = d.matrix<T>(layout, k, k), b = d.matrix<T>(layout, m, n);
    const auto c = d.matrix<T>(layout, m, n);
    const auto outputs = call_both<T>(c, [&](const Blas<T>& blas, T* out) {
      blas.symm(layout, side, uplo, m, n, alpha, a.data(), a.leading, b.data(), b.leading, beta,
                out, c.leading);
    });
    const auto symmetric = [&](int i, int j) {
      return (uplo == CblasLower) == (i >= j) ? a(i, j) : a(j, i);
    };
    expect_matrix(outputs, k, Zeros::kMultiplied, [&](int i, int j, auto* exact, auto* sum) {
      define_product<T>(
          k, alpha, [&](int p) { return side == CblasLeft ? symmetric(i, p) : b(i, p); },
          [&](int p) { return side == CblasLeft ? b(p, j) : symmetric(p, j); }, beta, c(i, j),
          exact, sum);
      return true;
    });
  });
}

// trmm, or trsm by its definition: substitution.
template <typename T>
void check_triangle(Draw& d, bool solves) {
  using E = Exact<T>;
  const CBLAS_LAYOUT layout = d.layout();
  const CBLAS_SIDE side = d.side();
  const CBLAS_UPLO uplo = d.uplo();
  const CBLAS_TRANSPOSE trans = d.trans();
  const CBLAS_DIAG diag = d.diag();
  const int m = d.size(), n = d.size(), k = side == CblasLeft ? m : n,
            lines = side == CblasLeft ? n : m;
  const T alpha = d.factor<T>();
  auto a = d.matrix<T>(layout, k, k);
  const auto b = d.matrix<T>(layout, m, n);
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < k; ++j) {
      T& element = a.memory[a.place(i, j)];
      // Conditions are bounded, so that results are, too.
      if (solves && i != j) element /= static_cast<T>(k);
      if (solves && i == j && std::isfinite(element)) element = T{2} + element / 2;
    }
  }
  const auto outputs = call_both<T>(b, [&](const Blas<T>& blas, T* out) {
    (solves ? blas.trsm : blas.trmm)(layout, side, uplo, trans, diag, m, n, alpha, a.data(),
                                     a.leading, out, b.leading);
  });
  // From the left: T * X. From the right: the transposes.
  const bool transposes = (trans != CblasNoTrans) == (side == CblasLeft),
             is_lower = (uplo == CblasLower) != transposes;
  const auto t = [&](int i, int j) {
    if (i == j && diag == CblasUnit) return E{1};
    return E{transposes ? a(j, i) : a(i, j)};
  };
  std::vector<E> x(static_cast<size_t>(k) * static_cast<size_t>(lines)), sums(x.size());
  const auto place = [&](int row, int line) {
    return static_cast<size_t>(row) * static_cast<size_t>(lines) + static_cast<size_t>(line);
  };
  for (int line = 0; line < lines; ++line) {
    const auto of_b = [&](int row) { return E{side == CblasLeft ? b(row, line) : b(line, row)}; };
    for (int step = 0; step < k; ++step) {
      const int i = is_lower ? step : k - 1 - step;
      E sum = solves ? E{alpha} * of_b(i) : E{0}, size = solves ? std::fabs(sum) : E{0};
      for (int other = 0; other < (solves ? step : step + 1); ++other) {
        const int p = is_lower ? other : k - 1 - other;
        const E term = t(i, p) * (solves ? x[place(p, line)] : E{alpha} * of_b(p));
        sum += solves ? -term : term;
        size += std::fabs(term);
      }
      if (alpha == 0) sum = size = 0;
      x[place(i, line)] = solves && alpha != 0 ? sum / t(i, i) : sum;
      sums[place(i, line)] = solves ? 2 * size + 2 : size;
    }
  }
  const int depth = solves ? 2 * k : k;
  expect_matrix(outputs, depth, Zeros::kMayBeSkipped, [&](int i, int j, auto* exact, auto* sum) {
    const size_t at = side == CblasLeft ? place(i, j) : place(j, i);
    *exact = x[at];
    *sum = sums[at];
    return true;
  });
}
TYPED_TEST(Cblas, Trmm) {
  this->run([](Draw& d) { check_triangle<TypeParam>(d, false); });
}
TYPED_TEST(Cblas, Trsm) {
  this->run([](Draw& d) { check_triangle<TypeParam>(d, true); });
}

TYPED_TEST(Cblas, Level1) {
  using T = TypeParam;
  using E = Exact<T>;
  this->run([](Draw& d) {
    const int n = d.size();
    auto x = d.vector<T>(n), y = d.vector<T>(n);
    E exact = 0, sum = 0, squares = 0;
    for (int i = 0; i < n; ++i) {
      exact += E{x[i]} * E{y[i]};
      sum += std::fabs(E{x[i]} * E{y[i]});
      squares += E{x[i]} * E{x[i]};
    }
    const Blas<T>* const other = reference<T>();
    const auto both = [&](const char* name, E defined, E terms, const auto& call) {
      expect_number<T>(call(ours<T>), other ? std::optional<T>(call(*other)) : std::nullopt,
                       defined, terms, n, name);
    };
    both("dot", exact, sum,
         [&](const Blas<T>& blas) { return blas.dot(n, x.data(), x.step, y.data(), y.step); });
    const E norm = std::sqrt(squares);
    both("nrm2", norm, norm, [&](const Blas<T>& blas) { return blas.nrm2(n, x.data(), x.step); });
    const T alpha = d.any_factor<T>();
    const auto added = call_both<T>(y, [&](const Blas<T>& blas, T* out) {
      blas.axpy(n, alpha, x.data(), x.step, out, y.step);
    });
    expect_vector(added, 1, [&](int i, auto* element, auto* terms) {
      const E product = E{alpha} * E{x[i]};
      *element = product + E{y[i]};
      *terms = std::fabs(product) + std::fabs(E{y[i]});
      return alpha != 0;
    });
    const auto scaled =
        call_both<T>(x, [&](const Blas<T>& blas, T* out) { blas.scal(n, alpha, out, x.step); });
    expect_vector(scaled, 1, [&](int i, auto* element, auto* terms) {
      *element = E{alpha} * E{x[i]};
      *terms = std::fabs(*element);
      return x.step > 0;
    });
  });
}

TYPED_TEST(Cblas, Nrm2NeitherOverflowsNorUnderflows) {
  using T = TypeParam;
  for (const T size : {std::numeric_limits<T>::max() / 4, std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::denorm_min(), T{1}}) {
    const std::vector<T> x(9, size);
    EXPECT_EQ(ours<T>.nrm2(9, x.data(), 1), 3 * size);
  }
  EXPECT_EQ(ours<T>.nrm2(0, nullptr, 1), 0);
}

// The sizes at which blocks begin, and of products that threads share.
TYPED_TEST(Cblas, LargerSizes) {
  using T = TypeParam;
  for (const int size : {129, 200}) {
    std::vector<T> a(static_cast<size_t>(size * size)), c(a.size()), full(a.size());
    Draw draw(7);
    for (T& element : a) element = draw.number<T>();
    ours<T>.gemm(CblasRowMajor, CblasNoTrans, CblasTrans, size, size, size, 1, a.data(), size,
                 a.data(), size, 0, full.data(), size);
    ours<T>.syrk(CblasRowMajor, CblasLower, CblasNoTrans, size, size, 1, a.data(), size, 0,
                 c.data(), size);
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j <= i; ++j) {
        const auto at = static_cast<size_t>(i * size + j);
        ASSERT_NEAR(c[at], full[at], 1e-3);
      }
    }
  }
}

#ifdef WGEMM_TEST_WRAPPED
TYPED_TEST(Cblas, WithoutMemory) {
  has_memory = false;
  this->run(check_gemm<TypeParam>, 100);
  this->run([](Draw& d) { check_update<TypeParam>(d, false); }, 50);
  this->run([](Draw& d) { check_triangle<TypeParam>(d, true); }, 50);
  has_memory = true;
}
#endif

#if WGEMM_THREADS && !defined(__EMSCRIPTEN__)
TYPED_TEST(Cblas, CallsOfSeveralThreads) {
  using T = TypeParam;
  constexpr int kSize = 90;
  const std::vector<T> a(kSize * kSize, 1);
  std::vector<std::thread> threads;
  std::vector<std::vector<T>> results(4, std::vector<T>(kSize * kSize));
  for (std::vector<T>& c : results) {
    threads.emplace_back([&] {
      for (int call = 0; call < 20; ++call)
        ours<T>.gemm(CblasColMajor, CblasNoTrans, CblasNoTrans, kSize, kSize, kSize, 1, a.data(),
                     kSize, a.data(), kSize, 1, c.data(), kSize);
    });
  }
  EXPECT_EQ(wgemm_cblas_set_threads(2), 2);
  for (std::thread& thread : threads) thread.join();
  wgemm_cblas_set_threads(number_of("WGEMM_TEST_THREADS", 1));
  for (const std::vector<T>& c : results) {
    for (const T element : c) ASSERT_EQ(element, 20 * kSize);
  }
}
#endif

#if WGEMM_BLAS_FORTRAN
extern "C" {
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
            const double*, const int*, const double*, const int*, const double*, double*,
            const int*);
double ddot_(const int*, const double*, const int*, const double*, const int*);
void xerbla_(const char* name, const int* info, size_t length) {
  reported = {reported.count + 1, *info, std::string(name, length), ""};
}
}

TEST(Fortran, ColumnMajorWithPositionsOfFortran) {
  const double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, one = 1, zero = 0;
  double c[4];
  const int two = 2, step = 1;
  reported = {};
  dgemm_("n", "T", &two, &two, &two, &one, a, &two, b, &two, &zero, c, &two);
  EXPECT_EQ(std::vector<double>(c, c + 4), (std::vector<double>{26, 38, 30, 44}));
  EXPECT_EQ(ddot_(&two, a, &step, b, &step), 17);
  EXPECT_EQ(reported.count, 0);
  dgemm_("n", "T", &two, &two, &two, &one, a, &step, b, &two, &zero, c, &two);
  EXPECT_EQ(reported.position, 8);
  EXPECT_EQ(reported.name, "DGEMM ");
  dgemm_("x", "T", &two, &two, &two, &one, a, &two, b, &two, &zero, c, &two);
  EXPECT_EQ(reported.position, 1);
}
#endif

// What a call reports.
void expect_error(int position, const char* name, const char* message,
                  const std::function<void()>& call) {
  reported = {};
  call();
  EXPECT_EQ(reported.count, 1) << name << " " << position;
  EXPECT_EQ(reported.position, position) << name << ": " << reported.message;
  EXPECT_EQ(reported.name, name);
  EXPECT_EQ(reported.message, message);
}

TEST(CblasErrors, Gemm) {
  float x[64] = {};
  const auto gemm = [&](CBLAS_LAYOUT layout, int ta, int tb, int m, int n, int k, int lda, int ldb,
                        int ldc) {
    return [=, &x] {
      cblas_sgemm(layout, static_cast<CBLAS_TRANSPOSE>(ta), static_cast<CBLAS_TRANSPOSE>(tb), m, n,
                  k, 1, x, lda, x, ldb, 0, x, ldc);
    };
  };
  const auto row = CblasRowMajor, col = CblasColMajor;
  const char* const name = "cblas_sgemm";
  expect_error(1, name, "layout is 99; it must be at least 101",
               gemm(static_cast<CBLAS_LAYOUT>(99), 111, 111, 1, 1, 1, 1, 1, 1));
  expect_error(2, name, "TransA is 114; it must be from 111 to 113",
               gemm(row, 114, 111, 1, 1, 1, 1, 1, 1));
  expect_error(3, name, "TransB is 0; it must be at least 111",
               gemm(row, 111, 0, 1, 1, 1, 1, 1, 1));
  // The reference computes the transpose of a row-major C: N comes before M, and ldb before lda.
  expect_error(4, name, "M is -1; it must be at least 0", gemm(col, 111, 111, -1, -1, 1, 1, 1, 1));
  expect_error(5, name, "N is -1; it must be at least 0", gemm(row, 111, 111, -1, -1, 1, 1, 1, 1));
  expect_error(6, name, "K is -2; it must be at least 0", gemm(row, 111, 111, 1, 1, -2, 0, 0, 0));
  expect_error(9, name, "lda is 2; it must be at least 3", gemm(col, 111, 111, 3, 4, 5, 2, 4, 0));
  expect_error(11, name, "ldb is 3; it must be at least 4", gemm(row, 111, 111, 3, 4, 5, 2, 3, 0));
  expect_error(9, name, "lda is 4; it must be at least 5", gemm(row, 111, 111, 3, 4, 5, 4, 4, 0));
  expect_error(9, name, "lda is 2; it must be at least 3", gemm(row, 112, 111, 3, 4, 5, 2, 4, 0));
  expect_error(11, name, "ldb is 3; it must be at least 4", gemm(col, 111, 112, 3, 4, 5, 3, 3, 0));
  expect_error(14, name, "ldc is 0; it must be at least 1", gemm(row, 111, 111, 0, 0, 0, 1, 1, 0));
  expect_error(14, name, "ldc is 2; it must be at least 3", gemm(col, 111, 111, 3, 1, 1, 3, 1, 2));
}

TEST(CblasErrors, OtherFunctions) {
  double x[64] = {};
  const auto row = CblasRowMajor, col = CblasColMajor;
  const auto gemv = [&](CBLAS_LAYOUT layout, int m, int n, int lda, int inc_x, int inc_y) {
    return [=, &x] { cblas_dgemv(layout, CblasNoTrans, m, n, 1, x, lda, x, inc_x, 0, x, inc_y); };
  };
  expect_error(4, "cblas_dgemv", "N is -1; it must be at least 0", gemv(row, -1, -1, 1, 1, 1));
  expect_error(3, "cblas_dgemv", "M is -1; it must be at least 0", gemv(col, -1, -1, 1, 1, 1));
  expect_error(7, "cblas_dgemv", "lda is 2; it must be at least 3", gemv(row, 2, 3, 2, 0, 0));
  expect_error(9, "cblas_dgemv", "incX is 0; it must not be 0", gemv(row, 2, 3, 3, 0, 0));
  expect_error(12, "cblas_dgemv", "incY is 0; it must not be 0", gemv(row, 2, 3, 3, 1, 0));
  const auto ger = [&](CBLAS_LAYOUT layout, int m, int n, int inc_x, int inc_y, int lda) {
    return [=, &x] { cblas_dger(layout, m, n, 1, x, inc_x, x, inc_y, x, lda); };
  };
  expect_error(3, "cblas_dger", "N is -1; it must be at least 0", ger(row, -1, -1, 1, 1, 1));
  expect_error(2, "cblas_dger", "M is -1; it must be at least 0", ger(col, -1, -1, 1, 1, 1));
  expect_error(8, "cblas_dger", "incY is 0; it must not be 0", ger(row, 1, 1, 0, 0, 1));
  expect_error(6, "cblas_dger", "incX is 0; it must not be 0", ger(col, 1, 1, 0, 0, 1));
  expect_error(10, "cblas_dger", "lda is 2; it must be at least 3", ger(row, 2, 3, 1, 1, 2));
  const auto syrk = [&](int uplo, int trans, int n, int k, int lda, int ldc) {
    return [=, &x] {
      cblas_dsyrk(row, static_cast<CBLAS_UPLO>(uplo), static_cast<CBLAS_TRANSPOSE>(trans), n, k, 1,
                  x, lda, 0, x, ldc);
    };
  };
  expect_error(2, "cblas_dsyrk", "Uplo is 123; it must be from 121 to 122",
               syrk(123, 111, 1, 1, 1, 1));
  expect_error(3, "cblas_dsyrk", "Trans is 110; it must be at least 111",
               syrk(121, 110, 1, 1, 1, 1));
  expect_error(4, "cblas_dsyrk", "N is -1; it must be at least 0", syrk(121, 111, -1, -1, 1, 1));
  expect_error(5, "cblas_dsyrk", "K is -1; it must be at least 0", syrk(121, 111, 1, -1, 1, 1));
  expect_error(8, "cblas_dsyrk", "lda is 2; it must be at least 3", syrk(121, 111, 2, 3, 2, 1));
  expect_error(11, "cblas_dsyrk", "ldc is 1; it must be at least 2", syrk(121, 111, 2, 3, 3, 1));
  expect_error(13, "cblas_dsyr2k", "ldc is 1; it must be at least 2",
               [&] { cblas_dsyr2k(row, CblasUpper, CblasNoTrans, 2, 3, 1, x, 3, x, 3, 0, x, 1); });
  expect_error(10, "cblas_dsyr2k", "ldb is 1; it must be at least 2",
               [&] { cblas_dsyr2k(row, CblasUpper, CblasTrans, 2, 3, 1, x, 3, x, 1, 0, x, 1); });
  const auto symm = [&](CBLAS_LAYOUT layout, int side, int m, int n, int lda, int ldb, int ldc) {
    return [=, &x] {
      cblas_dsymm(layout, static_cast<CBLAS_SIDE>(side), CblasUpper, m, n, 1, x, lda, x, ldb, 0, x,
                  ldc);
    };
  };
  expect_error(2, "cblas_dsymm", "Side is 143; it must be from 141 to 142",
               symm(row, 143, 1, 1, 1, 1, 1));
  expect_error(5, "cblas_dsymm", "N is -1; it must be at least 0", symm(row, 141, -1, -1, 1, 1, 1));
  expect_error(4, "cblas_dsymm", "M is -1; it must be at least 0", symm(col, 141, -1, -1, 1, 1, 1));
  expect_error(8, "cblas_dsymm", "lda is 2; it must be at least 3", symm(row, 142, 2, 3, 2, 1, 1));
  expect_error(10, "cblas_dsymm", "ldb is 2; it must be at least 3", symm(row, 142, 2, 3, 3, 2, 1));
  expect_error(13, "cblas_dsymm", "ldc is 1; it must be at least 2", symm(col, 142, 2, 3, 3, 2, 1));
  const auto trsm = [&](CBLAS_LAYOUT layout, int diag, int m, int n, int lda, int ldb) {
    return [=, &x] {
      cblas_dtrsm(layout, CblasLeft, CblasUpper, CblasNoTrans, static_cast<CBLAS_DIAG>(diag), m, n,
                  1, x, lda, x, ldb);
    };
  };
  expect_error(5, "cblas_dtrsm", "Diag is 130; it must be at least 131",
               trsm(row, 130, 1, 1, 1, 1));
  expect_error(7, "cblas_dtrsm", "N is -1; it must be at least 0", trsm(row, 131, -1, -1, 1, 1));
  expect_error(6, "cblas_dtrsm", "M is -1; it must be at least 0", trsm(col, 131, -1, -1, 1, 1));
  expect_error(10, "cblas_dtrsm", "lda is 1; it must be at least 2", trsm(row, 131, 2, 3, 1, 1));
  expect_error(12, "cblas_dtrsm", "ldb is 2; it must be at least 3", trsm(row, 131, 2, 3, 2, 2));
}

#ifdef WGEMM_TEST_BLAS
// Returns the error that the reference reports for a call; position 0 if it reports none. The
// reference writes a line and ends the process.
template <typename T>
Reported report_of_reference(const std::function<void(const Blas<T>&)>& call) {
  const Blas<T>& blas = *reference<T>();
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    std::atexit([] { _exit(1); });  // before what this process has registered
    call(blas);
    _exit(0);
  }
  close(ends[1]);
  char line[200] = {}, name[sizeof(line)] = {};
  size_t size = 0;
  for (ssize_t got; size + 1 < sizeof(line); size += static_cast<size_t>(got)) {
    if ((got = read(ends[0], line + size, sizeof(line) - 1 - size)) <= 0) break;
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Reported report;
  report.count = status != 0;
  if (std::sscanf(line, "Parameter %d to routine %199s", &report.position, name) == 2)
    report.name = name;
  report.message = line;
  // For row-major matrices, these positions are wrong.
  const auto says = [&](const char* text) { return std::strstr(line, text) != nullptr; };
  if (says("gemm") && says("TransB")) report.position = 3;
  if (says("syr") && says("Uplo")) report.position = 2;
  return report;
}

// A call whose arguments are wrong now and then, several at a time.
template <typename T>
std::function<void(const Blas<T>&)> draw_wrong_call(Draw& d, int function) {
  const auto one_of = [&d](auto first, int count) {
    const int value = static_cast<int>(first);
    return static_cast<decltype(first)>(d.one_in(12) ? value - 1 + d.below(2) * (count + 1)
                                                     : value + d.below(count));
  };
  const auto layout = one_of(CblasRowMajor, 2);
  const auto ta = one_of(CblasNoTrans, 3), tb = one_of(CblasNoTrans, 3);
  const auto side = one_of(CblasLeft, 2);
  const auto uplo = one_of(CblasUpper, 2);
  const auto diag = one_of(CblasNonUnit, 2);
  const auto size = [&d] { return d.one_in(10) ? -1 : d.below(5); };
  const int m = size(), n = size(), k = size();
  const auto leading = [&d] { return d.one_in(3) ? d.below(5) : 5; };
  const int lda = leading(), ldb = leading(), ldc = leading();
  const auto step = [&d] { return d.one_in(6) ? 0 : 1; };
  const int inc_x = step(), inc_y = step();
  return [=](const Blas<T>& blas) {
    T a[25] = {}, b[25] = {}, c[25] = {};
    switch (function) {
      case 0:
        return blas.gemv(layout, ta, m, n, 1, a, lda, b, inc_x, 0, c, inc_y);
      case 1:
        return blas.ger(layout, m, n, 1, a, inc_x, b, inc_y, c, lda);
      case 2:
        return blas.gemm(layout, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
      case 3:
        return blas.symm(layout, side, uplo, m, n, 1, a, lda, b, ldb, 0, c, ldc);
      case 4:
        return blas.syrk(layout, uplo, ta, n, k, 1, a, lda, 0, c, ldc);
      case 5:
        return blas.syr2k(layout, uplo, ta, n, k, 1, a, lda, b, ldb, 0, c, ldc);
      case 6:
        return blas.trmm(layout, side, uplo, ta, diag, m, n, 1, a, lda, c, ldc);
      default:
        return blas.trsm(layout, side, uplo, ta, diag, m, n, 1, a, lda, c, ldc);
    }
  };
}

TYPED_TEST(Cblas, ErrorsOfTheReference) {
  using T = TypeParam;
  const int calls = number_of("WGEMM_TEST_CALLS", 100), first = number_of("WGEMM_TEST_SEED", 0);
  for (int function = 0; function < 8; ++function) {
    std::vector<bool> positions(16);
    for (int seed = first; seed < first + calls; ++seed) {
      SCOPED_TRACE("function " + std::to_string(function) + ", seed " + std::to_string(seed));
      Draw draw(seed);
      const auto call = draw_wrong_call<T>(draw, function);
      reported = {};
      call(ours<T>);
      const Reported expected = report_of_reference<T>(call);
      ASSERT_EQ(reported.count, expected.count) << reported.message << expected.message;
      ASSERT_EQ(reported.position, expected.position) << reported.name << expected.message;
      ASSERT_EQ(reported.name, expected.name);
      positions[static_cast<size_t>(expected.position)] = true;
    }
    const int checked[] = {7, 6, 9, 8, 7, 8, 9, 9};  // arguments that may be wrong
    if (calls >= 100) {
      EXPECT_EQ(std::count(positions.begin() + 1, positions.end(), true), checked[function])
          << "each argument must have been wrong first: function " << function;
    }
  }
}
#endif

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  wgemm_cblas_set_threads(number_of("WGEMM_TEST_THREADS", 1));
  const int failed = RUN_ALL_TESTS();
  wgemm_cblas_set_threads(1);
  return failed;
}
