/* Checks products on two threads, and prints how many times as fast they are as on one. The test
 * does not judge this figure: other programs may use the processors. */
#include <cblas.h>
#include <emscripten.h>
#include <stdio.h>

enum { kSize = 512 };
static float a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];

/* The least time of 20 products, in milliseconds. */
static double least_time(void) {
  double least = 1e9;
  for (int i = 0; i < 20; ++i) {
    const double start = emscripten_get_now();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSize, kSize, kSize, 1, a, kSize, b,
                kSize, 0, c, kSize);
    const double time = emscripten_get_now() - start;
    if (time < least) least = time;
  }
  return least;
}

int main(void) {
  for (int i = 0; i < kSize * kSize; ++i) a[i] = (float)(i % 7), b[i] = (float)(i % 5);
  const double one = least_time();
  const int threads = wgemm_cblas_set_threads(2);
  const double two = least_time();
  for (int i = 0; i < kSize; i += 37) {
    double sum = 0;
    for (int k = 0; k < kSize; ++k) sum += a[i * kSize + k] * b[k * kSize + i];
    if (c[i * kSize + i] != sum) return puts("wrong"), 1;
  }
  printf("%d threads, %.2f times as fast\n", threads, one / two);
  return 0;
}
