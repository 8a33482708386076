// A layer of a network, y = x * weights + bias: in float32, one batch after another with weights
// packed once, and in 8 bits.
#include <wgemm.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>

namespace {

using wgemm::DType;

constexpr int64_t kXDims[] = {2, 3}, kWeightsDims[] = {3, 2}, kBiasDims[] = {2}, kYDims[] = {2, 2},
                  kOneDims[] = {1};

constexpr float kBatches[][6] = {{1, 0.5f, 0, 0.25f, 1, 0.75f}, {0, 0, 1, 1, 1, 1}};
constexpr float kWeights[] = {0.1f, -2, 0.3f, 4, -0.5f, 6};
constexpr float kBias[] = {1, -1};

// The library checks accesses against the number of elements behind the pointer. It keeps no
// pointer after a call.
template <typename T>
wgemm::ConstTensor input(const T& elements, DType dtype, std::span<const int64_t> dims) {
  return {.data = std::data(elements), .dtype = dtype, .dims = dims, .size = std::ssize(elements)};
}

// Errors are values. Their message names the argument, its value and what is allowed.
bool ok(const wgemm::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message);
  return status.ok();
}

void print(const char* what, const float (&y)[4]) {
  std::printf("%-8s %5.2f %5.2f | %5.2f %5.2f\n", what, y[0], y[1], y[2], y[3]);
}

bool in_float32(wgemm::Context& context) {
  wgemm::PackedWeights packed;  // a copy in the kernels' layout: kWeights could be freed now
  if (!ok(pack(context, {.B = input(kWeights, DType::kFloat32, kWeightsDims)}, &packed)))
    return false;
  const wgemm::ConstTensor bias =
      input(kBias, DType::kFloat32, kBiasDims);  // [N]: the same for every row of y
  float y[4];
  wgemm::GemmArgs args;
  args.packed_B = &packed;
  args.C = &bias;
  args.Y = {.data = y, .dtype = DType::kFloat32, .dims = kYDims};
  for (const auto& batch : kBatches) {
    args.A = input(batch, DType::kFloat32, kXDims);
    if (!ok(gemm(context, args))) return false;
    print("float32", y);
  }
  return true;
}

// The first batch: x as uint8 = x / x_scale, and weights as int8 with a scale for each column. Bias
// and sums are int32, and y is float32 again.
bool in_8_bits(wgemm::Context& context) {
  const float x_scale[] = {1.0f / 255};  // x lies from 0 to 1
  float scales[2], y[4];
  uint8_t x[6];
  int8_t weights[6];
  int32_t bias[2];
  for (int i = 0; i < 6; i++) x[i] = static_cast<uint8_t>(std::lround(kBatches[0][i] / x_scale[0]));
  for (int n = 0; n < 2; n++) {
    scales[n] =
        std::max({std::abs(kWeights[n]), std::abs(kWeights[n + 2]), std::abs(kWeights[n + 4])}) /
        127;
    for (int i = n; i < 6; i += 2)
      weights[i] = static_cast<int8_t>(std::lround(kWeights[i] / scales[n]));
    bias[n] = static_cast<int32_t>(std::lround(kBias[n] / (x_scale[0] * scales[n])));
  }
  const wgemm::ConstTensor c = input(bias, DType::kInt32, kBiasDims);
  wgemm::QGemmArgs args;
  args.A = input(x, DType::kUInt8, kXDims);
  args.a_scale = input(x_scale, DType::kFloat32, kOneDims);
  args.B = input(weights, DType::kInt8, kWeightsDims);
  args.b_scale = input(scales, DType::kFloat32, kBiasDims);
  args.C = &c;
  args.Y = {.data = y, .dtype = DType::kFloat32, .dims = kYDims};
  if (!ok(qgemm(context, args))) return false;
  print("8 bits", y);
  return true;
}

}  // namespace

int main() {
  // The library's memory comes from it. One thread at a time uses it, and it outlives packed
  // weights.
  wgemm::Context context;
  return in_float32(context) && in_8_bits(context) ? 0 : 1;
}
