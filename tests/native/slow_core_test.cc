// Cores of two speeds, as phones have them, or one core that another program uses too. In virtual
// time, four threads share the tasks of a plan by the rules of ThreadPool. One is three times as
// slow. The tail, in which some threads have nothing left to do, is short.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "engine.h"
#include "plan/plan.h"

namespace wgemm::testing {
namespace {

#if WGEMM_THREADS

constexpr uint32_t kThreads = 4;

struct Times {
  double first_idle, end;
};

// Simulates a phase of equal tasks. `speeds`: tasks per unit of time.
Times simulate(uint32_t tasks, uint32_t line, const std::vector<double>& speeds) {
  const auto threads = static_cast<uint32_t>(speeds.size());
  std::vector<TaskRange> ranges(threads);
  for (uint32_t i = 0; i < threads; ++i)
    ranges[i] = {(tasks * i + threads - 1) / threads, (tasks * (i + 1) + threads - 1) / threads};
  std::vector<double> time(threads, 0);
  std::vector<bool> is_idle(threads, false);
  Times times{-1, 0};
  std::vector<uint32_t> running(threads, 0);
  for (uint32_t taken = 0; taken < tasks;) {
    uint32_t thread = threads;
    for (uint32_t i = 0; i < threads; ++i)
      if (!is_idle[i] && (thread == threads || time[i] < time[thread])) thread = i;
    running[thread] = 0;
    uint32_t done = taken;  // without what other threads compute
    for (const uint32_t count : running) done -= count;
    const uint32_t wanted = tasks_to_take(tasks, done, threads);
    TaskRange run{0, 0};
    for (uint32_t i = 0; i < threads && run.begin == run.end; ++i)
      run = take_run(&ranges[(thread + i) % threads], wanted, line, i != 0);
    is_idle[thread] = run.begin == run.end;
    if (is_idle[thread] && times.first_idle < 0) times.first_idle = time[thread];
    running[thread] = run.end - run.begin;
    taken += running[thread];
    time[thread] += running[thread] / speeds[thread];
    times.end = std::max(times.end, time[thread]);
  }
  if (times.first_idle < 0) times.first_idle = *std::min_element(time.begin(), time.end());
  return times;
}

struct Shape {
  int64_t m, n, k;
};

void expect_short_tail(const Shape& shape, double most, const std::vector<double>& speeds) {
  SCOPED_TRACE(std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
               std::to_string(shape.k));
  Context context;
  ASSERT_TRUE(context.set_threads(kThreads).ok());
  alignas(64) static std::byte somewhere[64];
  Problem p;
  p.m = shape.m;
  p.n = shape.n;
  p.k = shape.k;
  p.a = {somewhere, DType::kFloat32, shape.k, 1};
  p.b.plain = {somewhere, DType::kFloat32, shape.n, 1};
  p.y = {somewhere, DType::kFloat32, shape.n, 1};
  const Plan plan = make_plan(p, context);
  ASSERT_EQ(plan.threads, static_cast<int>(kThreads));
  const auto [first_idle, end] =
      simulate(static_cast<uint32_t>(plan.tasks()), static_cast<uint32_t>(plan.line), speeds);
  EXPECT_LE(end - first_idle, most * end);
}

TEST(SlowCore, DelaysTheEndByLessThanATenth) {
  const std::vector<double> slow = {1, 1, 1, 1.0 / 3}, caller_is_slow = {1.0 / 3, 1, 1, 1};
  for (const Shape& shape : {Shape{1024, 1024, 1024},
                             {128, 3072, 768},
                             {8192, 64, 64},
                             {512, 512, 512},
                             {8, 4096, 4096}}) {
    expect_short_tail(shape, 0.1, slow);
    expect_short_tail(shape, 0.1, caller_is_slow);
    expect_short_tail(shape, 0.1, {1, 1, 1, 1});
  }
}

// Streams of axpy are cut into sixteen parts, so that few begin again: four per thread.
TEST(SlowCore, DelaysStreamsByAThird) {
  expect_short_tail({1, 4096, 4096}, 0.34, {1, 1, 1, 1.0 / 3});
}

#endif

}  // namespace
}  // namespace wgemm::testing
