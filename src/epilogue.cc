#include "epilogue.h"

#include <cmath>
#include <limits>

#include "types.h"

namespace wgemm {
namespace {

// Toward zero, saturated to T. Where T's last value is no float64, the comparison is with the one above it.
template <typename T>
T truncate(double value) {
  constexpr double kBound = 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
  if (value >= kBound) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

// Calls element(y, acc, c) for each element; a row at a time, with the usual steps known to the compiler.
template <typename T, typename Acc, typename Element>
void for_each(int64_t rows, int64_t cols, const void* acc, int64_t acc_stride, const ConstBlock& c, const Block& y, Element element) {
  static const T kNothing = 0;
  static const Acc kNoProduct = 0;
  const bool has_acc = acc != nullptr, has_c = c.data != nullptr;
  for (int64_t i = 0; i < rows; ++i) {
    T* y_row = reinterpret_cast<T*>(y.data) + i * y.row_stride;
    const T* c_row = has_c ? reinterpret_cast<const T*>(c.data) + i * c.row_stride : &kNothing;
    const Acc* acc_row = has_acc ? static_cast<const Acc*>(acc) + i * acc_stride : &kNoProduct;
    auto run = [&](auto y_step, auto acc_step, auto c_step) {
      for (int64_t j = 0; j < cols; ++j) y_row[j * y_step] = element(acc_row[j * acc_step], c_row[j * c_step]);
    };
    using One = std::integral_constant<int64_t, 1>;
    using Zero = std::integral_constant<int64_t, 0>;
    const int64_t c_step = has_c ? c.col_stride : 0;
    if (y.col_stride == 1 && has_acc && c_step == 0) {
      run(One{}, One{}, Zero{});
    } else if (y.col_stride == 1 && has_acc && c_step == 1) {
      run(One{}, One{}, One{});
    } else {
      run(y.col_stride, int64_t{has_acc}, c_step);
    }
  }
}

template <typename T, typename Acc>
void combine(const Epilogue& e, int64_t rows, int64_t cols, const void* acc, int64_t acc_stride, const ConstBlock& c, const Block& y) {
  auto each = [&](auto element) { for_each<T, Acc>(rows, cols, acc, acc_stride, c, y, element); };
  const bool has_acc = acc != nullptr;
  if constexpr (std::is_integral_v<T>) {
    // Exact modulo 2^bits, unless a factor that counts has a fraction.
    const bool exact = (e.alpha.whole || !has_acc) && (e.beta.whole || !e.has_c);
    if (exact) {
      using U = typename Modular<T>::type;
      const auto alpha = static_cast<U>(e.alpha.integer), beta = static_cast<U>(e.beta.integer);
      return each([=](Acc a, T b) { return static_cast<T>(alpha * static_cast<U>(a) + beta * static_cast<U>(b)); });
    }
    const double alpha = e.alpha.value, beta = e.beta.value;
    each([=](Acc a, T b) { return truncate<T>(alpha * static_cast<double>(static_cast<T>(a)) + beta * static_cast<double>(b)); });
  } else {
    const auto alpha = static_cast<Acc>(e.alpha.value), beta = static_cast<Acc>(e.beta.value);
    if (!e.has_c) {
      if (!has_acc) return each([=](Acc, T) { return static_cast<T>(0); });
      return each([=](Acc a, T) { return static_cast<T>(alpha * a); });
    }
    if (!has_acc) return each([=](Acc, T b) { return static_cast<T>(beta * static_cast<Acc>(b)); });
    each([=](Acc a, T b) { return static_cast<T>(alpha * a + beta * static_cast<Acc>(b)); });
  }
}

using EpilogueFunction = void (*)(const Epilogue&, int64_t, int64_t, const void*, int64_t, const ConstBlock&, const Block&);
constexpr EpilogueFunction kEpilogues[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) combine<Storage, StorageOf<DType::k##Compute>>,
#include "dtypes.def"
#undef WGEMM_DTYPE
};

}  // namespace

void apply_epilogue(const Epilogue& e, DType y_type, int64_t rows, int64_t cols, const void* acc, int64_t acc_stride, const ConstBlock& c,
                    const Block& y) {
  kEpilogues[static_cast<int>(y_type)](e, rows, cols, acc, acc_stride, c, y);
}

}  // namespace wgemm
