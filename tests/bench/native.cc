// Compares the native library with a BLAS, on one thread, in turns: `npm run bench:native`.
#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <type_traits>
#include <vector>

#include "wgemm.h"

namespace {

constexpr int kRounds = 15;

double seconds_of(auto&& body, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) body();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / calls;
}

double median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

template <typename T>
void compare(wgemm::DType type, int m, int n, int k) {
  auto random = [seed = 1u](int64_t length) mutable {
    std::vector<T> values(static_cast<size_t>(length));
    for (T& value : values)
      value = static_cast<T>((seed = seed * 1664525 + 1013904223) >> 8) / T(1 << 24) - T(0.5);
    return values;
  };
  const std::vector<T> a = random(int64_t{m} * k), b = random(int64_t{k} * n);
  std::vector<T> y(static_cast<size_t>(m) * static_cast<size_t>(n)), wanted = y;
  const int64_t a_dims[] = {m, k}, b_dims[] = {k, n}, y_dims[] = {m, n};
  wgemm::Context context;
  wgemm::GemmArgs args;
  args.A = {a.data(), type, a_dims};
  args.B = {b.data(), type, b_dims};
  args.Y = {y.data(), type, y_dims};
  const auto ours = [&] {
    const wgemm::Status status = wgemm::gemm(context, args);
    if (!status.ok()) std::puts(status.message);
  };
  const auto blas = [&] {
    if constexpr (std::is_same_v<T, float>)
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a.data(), k, b.data(), n,
                  0, wanted.data(), n);
    else
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a.data(), k, b.data(), n,
                  0, wanted.data(), n);
  };
  ours();
  blas();
  double error = 0;
  for (size_t i = 0; i < y.size(); ++i)
    error = std::max(error, static_cast<double>(std::abs(y[i] - wanted[i])));
  const double flops = 2.0 * m * n * k;
  const int calls = std::max(1, static_cast<int>(2e8 / flops));
  std::vector<double> of_ours, of_blas;
  for (int round = 0; round < kRounds; ++round) {
    of_ours.push_back(seconds_of(ours, calls));
    of_blas.push_back(seconds_of(blas, calls));
  }
  std::printf("%s %4d x %4d x %4d  wgemm %6.1f  BLAS %6.1f GFLOP/s  ratio %.2f  error %.1e\n",
              std::is_same_v<T, float> ? "float32" : "float64", m, n, k,
              flops / median(of_ours) * 1e-9, flops / median(of_blas) * 1e-9,
              median(of_blas) / median(of_ours), error);
}

}  // namespace

int main() {
  const int sizes[][3] = {{16, 16, 16},       {64, 64, 64},    {256, 256, 256}, {512, 512, 512},
                          {1024, 1024, 1024}, {120, 256, 512}, {1, 4096, 4096}, {4, 1024, 1024},
                          {2000, 8, 256},     {1000, 1000, 3}};
  for (const auto& [m, n, k] : sizes) compare<float>(wgemm::DType::kFloat32, m, n, k);
  for (const auto& [m, n, k] : sizes) compare<double>(wgemm::DType::kFloat64, m, n, k);
}
