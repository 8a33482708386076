#include "matmul_tester.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <sstream>
#include <type_traits>

#include "api/run.h"
#include "array.h"
#include "ops/ops.h"
#include "reference.h"
#include "threads.h"
#include "values.h"

namespace wgemm::testing {
Sizes MatMulTester::dst_dims() const {
  const bool has_rows = src_.size() > 1, has_cols = weights_.size() > 1;
  const Sizes a(src_.begin(), src_.end() - (has_rows ? 2 : 1)),
      b(weights_.begin(), weights_.end() - (has_cols ? 2 : 1));
  Sizes dims(std::max(a.size(), b.size()));
  for (size_t i = 1; i <= dims.size(); ++i) {
    const int64_t a_size = i <= a.size() ? a[a.size() - i] : 1,
                  b_size = i <= b.size() ? b[b.size() - i] : 1;
    EXPECT_TRUE(a_size == b_size || a_size == 1 || b_size == 1);
    dims[dims.size() - i] = a_size == 1 ? b_size : a_size;
  }
  if (has_rows) dims.push_back(src_[src_.size() - (trans_a_ ? 1 : 2)]);
  if (has_cols) dims.push_back(weights_[weights_.size() - (trans_b_ ? 2 : 1)]);
  return dims;
}

std::string MatMulTester::describe() const {
  std::ostringstream text;
  text << dtype_name(type_) << " src=" << text_of(src_, src_layout_)
       << (trans_a_ ? " transposed" : "");
  text << " weights=" << text_of(weights_, weights_layout_) << (trans_b_ ? " transposed" : "");
  if (bias_.has_value()) text << " bias=" << text_of(*bias_, bias_layout_);
  text << " dst=" << text_of(dst_dims(), dst_layout_) << (in_place_ ? " in place" : "")
       << (float32_ ? " float32" : "");
  text << " alpha=" << alpha_.number() << " from " << activation_.min << " to " << activation_.max;
  if (options_.has_value()) text << text_of(*options_);
  if (out_of_core_.limit != 0)
    text << " out_of_core=" << out_of_core_.limit << " operands=" << out_of_core_.operands;
  text << (specials_ ? " specials" : "") << (padded_ ? " padded" : "") << " seed=" << seed_;
  return text.str();
}

template <typename T, typename Dst>
void MatMulTester::run_into() const {
  SCOPED_TRACE(describe());
  const DType dst_type = std::is_same_v<T, Dst> ? type_ : DType::kFloat32;
  const Sizes dims = dst_dims();
  std::mt19937_64 random(seed_);
  Array<T> src = make_array<T>(src_, src_layout_),
           weights = make_array<T>(weights_, weights_layout_);
  Array<T> bias = make_array<T>(bias_.value_or(Sizes{}), bias_layout_);
  Array<Dst> dst = make_array<Dst>(dims, dst_layout_);
  if (padded_) pad(random, src, weights, bias, dst);
  for (auto* array : {&src, &weights, &bias}) fill(*array, random, specials_);
  fill(dst, random);

  MatMulArgs args;
  args.src = make_tensor<const void>(src, type_, src_layout_);
  args.weights = make_tensor<const void>(weights, type_, weights_layout_);
  const ConstTensor bias_tensor = in_place_ ? make_tensor<const void>(dst, type_, dst_layout_)
                                            : make_tensor<const void>(bias, type_, bias_layout_);
  if (in_place_ || bias_.has_value()) args.bias = &bias_tensor;
  args.transpose_a = trans_a_;
  args.transpose_b = trans_b_;
  args.alpha = alpha_;
  args.activation = activation_;

  // The expected result, computed before the call writes anything.
  const int64_t depth = src_[src_.size() - (trans_a_ && src_.size() > 1 ? 2 : 1)];
  std::vector<Exact<T>> expected;
  std::vector<double> sums;  // |alpha| * sum |src||weights| + |bias|
  for_each_index(dims, [&](std::span<const int64_t> index) {
    expected.push_back(reference_matmul<T, Exact<T>>(args, index));
    double sum = 0;
    if constexpr (!std::is_integral_v<T>) {
      sum = reference_sum_of_magnitudes(reference_src<T>(args, index),
                                        reference_weights<T>(args, index), depth);
    }
    if (depth > 0) sum *= std::fabs(reference_factor<T>(args.alpha));
    if (args.bias != nullptr)
      sum += std::fabs(convert<double>(reference_broadcast<T>(*args.bias, index)));
    sums.push_back(sum);
  });

  Context& context = test_context();
  const MatMulArgs plain = args;
  for (const bool is_packed : {false, true}) {
    if (packed_.has_value() ? is_packed != *packed_ : is_packed && weights_.size() < 2) continue;
    SCOPED_TRACE(is_packed ? "weights are packed" : "weights are not packed");
    args = plain;
    PackedWeights packed;
    if (is_packed) {
      const Status status =
          pack_and_overwrite(context, {.B = args.weights, .trans = trans_b_}, weights, &packed);
      ASSERT_TRUE(status.ok()) << status.message;
      args.weights = {};
      args.packed_weights = &packed;
      args.transpose_b = 0;
    }
    Snapshot before;
    before.add("src", src);
    before.add("weights", weights);
    before.add("bias", bias);
    before.add("dst", dst);
    const std::vector<Dst> dst_before = dst.values();
    const size_t in_use = context.bytes_in_use();

    int64_t shape[kMaxRank];
    size_t rank = 99;
    args.dst.dtype = dst_type;
    Status status = matmul_shape(args, shape, &rank);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(text_of({shape, rank}), text_of(dims));

    args.dst = make_tensor<void>(dst, dst_type, dst_layout_);
    Explanation plan;
    status = explain(Context(), args, &plan);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(plan.batch * plan.m * plan.n, static_cast<int64_t>(expected.size()));

    if (out_of_core_.limit != 0) {
      status = check_out_of_core(&matmul, args, out_of_core_, test_threads(), &args.src,
                                 &args.weights, &args.bias, &args.dst);
    } else if (options_.has_value() || test_threads() > 1) {
      MatMulProblem p;
      status = matmul_problem(args, true, &p);
      if (status.ok())
        status = wgemm::run(context, "matmul", p.problem,
                            fitting(test_options(options_.value_or(PlanOptions{})), p.problem));
    } else {
      status = matmul(context, args);
    }
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(context.bytes_in_use(), in_use);

    size_t next = 0;
    bool ok = true;
    for_each_index(dims, [&](std::span<const int64_t> index) {
      int64_t place = dst.offset;
      for (size_t axis = 0; axis < dims.size(); ++axis) place += index[axis] * dst.strides[axis];
      Dst& value = dst.data[static_cast<size_t>(place)];
      const ::testing::AssertionResult near = is_near(value, expected[next], depth, sums[next]);
      EXPECT_TRUE(near || !ok) << near.message() << " at " << text_of(index);
      ok = ok && near;
      // Restore the element: then all memory must be as it was.
      value = dst_before[static_cast<size_t>(place)];
      ++next;
    });
    before.expect_unchanged();
  }
}

template <typename T>
void MatMulTester::run_typed() const {
  if constexpr (kIsHalf<T>) {
    if (float32_) return run_into<T, float>();
  }
  run_into<T, T>();
}

void MatMulTester::run() const {
  using Run = void (MatMulTester::*)() const;
  constexpr Run kRun[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  &MatMulTester::run_typed<Storage>,
#include "dtypes.def"
#undef WGEMM_DTYPE
  };
  (this->*kRun[static_cast<int>(type_)])();
}

}  // namespace wgemm::testing
