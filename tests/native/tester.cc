#include "tester.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "api/run.h"
#include "base/types.h"
#include "ops/ops.h"
#include "plan/select_kernel.h"
#include "reference.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
namespace {

// The bound of the error is proportional to this: |alpha| * sum |a||b| + |beta * c|.
template <typename T>
double sum_of_sizes(const GemmArgs& args, int64_t i, int64_t j) {
  const int64_t depth = args.A.dims[args.transA != 0 ? 0 : 1];
  double sum = reference_sum_of_magnitudes(reference_row<T>(args.A, i, args.transA != 0),
                                           reference_row<T>(args.B, j, args.transB == 0), depth);
  if (depth > 0) sum *= std::fabs(reference_factor<T>(args.alpha));
  const double beta = reference_factor<T>(args.beta);
  if (args.C != nullptr && beta != 0)
    sum += std::fabs(beta * convert<double>(reference_broadcast<T>(*args.C, i, j)));
  return sum;
}

}  // namespace

std::string GemmTester::describe() const {
  std::string text = std::string(dtype_name(type_)) + " M=" + std::to_string(m_) +
                     " N=" + std::to_string(n_) + " K=" + std::to_string(k_);
  text += " transA=" + std::to_string(trans_a_) + " transB=" + std::to_string(trans_b_) +
          " alpha=" + std::to_string(alpha_.number()) + " beta=" + std::to_string(beta_.number()) +
          " gap=" + std::to_string(gap_) + " columns=" + std::to_string(columns_) + " from " +
          std::to_string(activation_.min) + " to " + std::to_string(activation_.max);
  if (in_place_) text += " in place";
  if (has_c_ && !in_place_) {
    text += " C=[";
    for (const int64_t size : c_dims_) text += std::to_string(size) + " ";
    text += "]";
  }
  text += " opset=" + std::to_string(opset_);
  if (options_.kernel != nullptr) text += std::string(" kernel=") + options_.kernel->name;
  text += " mc=" + std::to_string(options_.mc) + " nc=" + std::to_string(options_.nc) +
          " kc=" + std::to_string(options_.kc);
  if (out_of_core_.limit != 0)
    text += " out_of_core=" + std::to_string(out_of_core_.limit) +
            " operands=" + std::to_string(out_of_core_.operands);
  if (padded_) text += " padded";
  return text + " seed=" + std::to_string(seed_);
}

template <typename T>
void GemmTester::run_typed() const {
  SCOPED_TRACE(describe());
  std::mt19937_64 random(seed_);
  Array<T> a(trans_a_ ? std::vector{k_, m_} : std::vector{m_, k_}, gap_, columns_);
  Array<T> b(trans_b_ ? std::vector{n_, k_} : std::vector{k_, n_}, gap_, columns_);
  Array<T> c(in_place_ ? std::vector{m_, n_} : c_dims_, gap_, columns_);
  Array<T> y({m_, n_}, gap_, columns_);
  if (padded_) pad(random, a, b, c, y);
  const bool finite_b = options_.kernel != nullptr && options_.kernel->finite;
  for (auto* array : {&a, &b, &c, &y})
    fill(*array, random, specials_ && !(finite_b && array == &b));

  GemmArgs args;
  args.A = a.tensor(type_);
  args.B = b.tensor(type_);
  const ConstTensor c_tensor = c.tensor(type_);
  if (has_c_) args.C = &c_tensor;
  args.alpha = alpha_;
  args.beta = beta_;
  args.activation = activation_;
  args.transA = trans_a_;
  args.transB = trans_b_;
  args.opset = opset_;
  args.broadcast = broadcast_;

  // The expected result, computed before the call writes anything.
  std::vector<Exact<T>> expected;
  std::vector<double> sums;
  for (int64_t i = 0; i < m_; ++i) {
    for (int64_t j = 0; j < n_; ++j) {
      expected.push_back(reference_gemm<T, Exact<T>>(args, i, j));
      if constexpr (!std::is_integral_v<T>) sums.push_back(sum_of_sizes<T>(args, i, j));
    }
  }
  Array<T>& result = in_place_ ? c : y;
  Snapshot before;
  before.add("A", a);
  before.add("B", b);
  before.add("C", c);
  before.add("Y", y);
  const std::vector<T> result_before = result.values();

  args.Y = result.template tensor<void>(type_);
  Context& context = test_context();
  const GemmArgs plain = args;
  for (const bool is_packed : {false, true}) {
    if (packed_.has_value() ? is_packed != *packed_ : is_packed && options_.kernel != nullptr)
      continue;
    SCOPED_TRACE(is_packed ? "B is packed" : "B is not packed");
    args = plain;
    PackedWeights weights;
    if (is_packed) {
      const Status packed =
          pack(context, {.op = PackFor::kGemm, .B = args.B, .trans = args.transB}, &weights);
      ASSERT_TRUE(packed.ok()) << packed.message;
      args.packed_B = &weights;
      args.B = {};
      args.transB = 0;
    }
    const size_t in_use = context.bytes_in_use();
    Status status;
    if (out_of_core_.limit != 0) {
      status = check_out_of_core(&gemm, args, out_of_core_, test_threads(), &args.A, &args.B,
                                 &args.C, &args.Y);
    } else {
      Problem problem;
      const Status checked = gemm_problem(args, true, &problem);
      ASSERT_TRUE(checked.ok()) << checked.message;
      ASSERT_TRUE(options_.kernel == nullptr || can_run(*options_.kernel, problem));
      status = wgemm::run(context, "gemm", problem, test_options(options_));
    }
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(context.bytes_in_use(), in_use);

    for (int64_t i = 0; i < m_; ++i) {
      for (int64_t j = 0; j < n_; ++j) {
        const auto at = static_cast<size_t>(i * n_ + j);
        T& value = result.data[result.place(i, j)];
        ASSERT_TRUE(is_near(value, expected[at], k_, sums.empty() ? 0 : sums[at]))
            << "at " << i << ", " << j;
        // Restore the element: then all memory must be as it was.
        value = result_before[result.place(i, j)];
      }
    }
    before.expect_unchanged();
  }
}

void GemmTester::run() const {
  using Run = void (GemmTester::*)() const;
  constexpr Run kRun[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) &GemmTester::run_typed<Storage>,
#include "dtypes.def"
#undef WGEMM_DTYPE
  };
  (this->*kRun[static_cast<int>(type_)])();
}

}  // namespace wgemm::testing
