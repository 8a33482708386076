/* Prints how much faster products are on two threads than on one. It measures until two threads are
 * clearly faster, and gives up after 20 s: other programs may use the processors. */
#include <cblas.h>
#include <emscripten.h>
#include <stdio.h>

enum { kSize = 512 };
static float a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];

static double milliseconds(void) {
  const double start = emscripten_get_now();
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSize, kSize, kSize, 1, a, kSize, b, kSize,
              0, c, kSize);
  return emscripten_get_now() - start;
}

int main(void) {
  double one = 1e9, two = 1e9;
  for (int i = 0; i < kSize * kSize; ++i) a[i] = (float)(i % 7), b[i] = (float)(i % 5);
  for (int i = 0; i < 20; ++i) {
    const double time = milliseconds();
    if (time < one) one = time;
  }
  const int threads = wgemm_cblas_set_threads(2);
  const double end = emscripten_get_now() + 20000;
  while (two > 0.7 * one && emscripten_get_now() < end) {
    const double time = milliseconds();
    if (time < two) two = time;
  }
  for (int i = 0; i < kSize; i += 37) {
    double sum = 0;
    for (int k = 0; k < kSize; ++k) sum += a[i * kSize + k] * b[k * kSize + i];
    if (c[i * kSize + i] != sum) return puts("wrong"), 1;
  }
  printf("%d threads, %s, %.2f times as fast\n", threads, two > 0.7 * one ? "slow" : "fast",
         one / two);
  return 0;
}
