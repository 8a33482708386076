// Helpers that the tests of MatMulNBits share: nbits_test.cc has codes, and blocks_test.cc has
// block formats.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/run.h"
#include "array.h"
#include "base/convert.h"
#include "layout.h"
#include "ops/ops.h"
#include "out_of_core_tensor.h"
#include "reference.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {

inline constexpr DType kTypesOfA[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

// An element of A, often 0. `specials` adds infinities, NaN and subnormal numbers.
inline float random_element(std::mt19937& random, float size, bool specials) {
  const float value = std::uniform_real_distribution<float>(-2, 2)(random) * size;
  const bool is_zero = random() % 16 == 0;
  if (specials && random() % 40 == 0) {
    const float values[] = {INFINITY, -INFINITY, NAN, 0x1p-149F, -0x1p-140F};
    return values[random() % 5];
  }
  return is_zero ? 0 : value;
}

// A Case of either test says how its call is computed.

template <typename Case>
int threads_of(const Case& c) {
  return c.threads != 0 && WGEMM_THREADS ? c.threads : test_threads();
}

template <typename Case>
Status compute(const Case& c, Context& context, MatMulNBitsArgs& args) {
  if (c.out_of_core.limit != 0) {
    OutOfCoreSetup setup = c.out_of_core;
    if (c.strict) setup.determinism = Determinism::kStrict;
    return check_out_of_core(&matmul_nbits, args, setup, threads_of(c), &args.A, &args.weights.B,
                             &args.bias, &args.Y);
  }
  if (c.prepared) {
    PreparedCall call;
    const Status status = prepare(context, args, &call);
    if (!status.ok()) return status;
    args = {};
    EXPECT_TRUE(wgemm::run(call).ok());
    return wgemm::run(call);
  }
  const bool has_tasks = c.threads > 1 || test_threads() > 1;
  if (!c.options.has_value() && !has_tasks) return matmul_nbits(context, args);
  MatMulProblem p;
  const Status status = nbits_problem(args, true, &p);
  if (!status.ok()) return status;
  PlanOptions options = fitting(c.options.value_or(PlanOptions{}), p.problem);
  if (has_tasks && options.tasks == 0) options.tasks = 5;
  return wgemm::run(context, "matmulNBits", p.problem, options);
}

// A test fills Y with this byte.
constexpr int kUntouched = 0x5a;

// Compares Y with a reference, and expects that the memory between its elements is untouched.
// `reference_of(row)` takes a row of A in float32, and returns a function from a column to its
// ReferenceElement.
template <typename T, typename Case, typename ReferenceOf>
void check_result(const Case& c, bool quantizes, const Array<T>& a, const Array<T>& bias,
                  const Array<T>& y, const ReferenceOf& reference_of) {
  const int64_t k = a.dims.back();
  const auto bounded = [&](auto x) {
    using X = decltype(x);
    const X low = static_cast<float>(c.activation.min), high = static_cast<float>(c.activation.max);
    return x < low ? low : x > high ? high : x;
  };
  std::vector<bool> written(y.length);
  bool is_wrong = false;
  for_each_index(c.a, [&](std::span<const int64_t> index) {
    std::vector<float> row;
    for (int64_t i = 0; i < k; ++i) row.push_back(convert<float>(a.data[a.place(index, i)]));
    const auto reference = reference_of(row);
    for (int64_t j = 0; j < c.n; ++j) {
      const ReferenceElement element = reference(j);
      const float addend = c.has_bias ? convert<float>(bias.data[static_cast<size_t>(j)]) : 0;
      const float wanted = !c.has_bias ? element.value : k == 0 ? addend : element.value + addend;
      const size_t at = y.place(index, j);
      written[at] = true;
      const T found = y.data[at], rounded_wanted = rounded<T>(bounded(wanted));
      const float got = convert<float>(found);
      bool is_right = true;
      if (std::isnan(wanted)) {
        is_right = std::isnan(got);
      } else if (quantizes || c.strict || !std::isfinite(wanted)) {
        is_right = std::memcmp(&found, &rounded_wanted, sizeof(T)) == 0;
      }
      if (!quantizes && std::isfinite(wanted)) {
        const auto term = static_cast<double>(addend);
        const double value = element.exact + term, bound = element.bound(k, term);
        const auto low = convert<float>(rounded<T>(bounded(value - bound))),
                   high = convert<float>(rounded<T>(bounded(value + bound)));
        is_right = is_right && low <= got && got <= high;
      }
      if (!is_right && !std::exchange(is_wrong, true))
        ADD_FAILURE() << text_of(index) << " column " << j << ": " << got << ", not " << wanted;
    }
  });
  for (size_t i = 0; i < y.length; ++i) {
    T untouched;
    std::memset(static_cast<void*>(&untouched), kUntouched, sizeof(T));
    EXPECT_TRUE(written[i] || std::memcmp(&y.data[i], &untouched, sizeof(T)) == 0) << i;
  }
}

}  // namespace wgemm::testing
