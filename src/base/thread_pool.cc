#include "base/thread_pool.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>

#if defined(__EMSCRIPTEN__)
#include <emscripten.h>
#include <emscripten/threading.h>
#else
#include <chrono>
#endif
#if defined(_WIN32)
#include <process.h>
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace wgemm {
namespace {

// A thread waits in a loop for this many microseconds before it sleeps. The clock may be coarse, so
// the loop looks at it kLooks times at most, after kLoads loads each.
constexpr double kSpin = 50;
constexpr int kLooks = 2000, kLoads = 64;

// The fields of state_.
constexpr uint32_t kPlaces = 0xff, kJoined = 0x100, kJob = 0x10000;
constexpr uint32_t kEnd = kPlaces;  // places of the job that ends the threads

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

double now() {  // microseconds
#if defined(__EMSCRIPTEN__)
  return emscripten_get_now() * 1000;
#else
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(time).count();
#endif
}

template <typename Ready>
bool spin_until(const Ready& ready) {
  double end = 0;
  for (int look = 0; look < kLooks; ++look) {
    for (int load = 0; load < kLoads; ++load, pause())
      if (ready()) return true;
    const double time = now();
    if (look == 0) end = time + kSpin;
    if (time >= end) return false;
  }
  return false;
}

// Sleeps while `word` is `value`, or until it is woken. The main thread of a page cannot sleep: it
// waits in a loop.
void sleep_while(std::atomic<uint32_t>* word, uint32_t value) {
#if defined(__EMSCRIPTEN__)
  emscripten_futex_wait(word, value, INFINITY);
#else
  word->wait(value);
#endif
}

void wake_all(std::atomic<uint32_t>* word) {
#if defined(__EMSCRIPTEN__)
  emscripten_futex_wake(word, INT32_MAX);
#else
  word->notify_all();
#endif
}

#if defined(_WIN32)
bool start_thread(unsigned (*work)(void*), void* argument, uintptr_t* handle) {
  *handle = _beginthreadex(nullptr, 0, work, argument, 0, nullptr);
  return *handle != 0;
}
void join_thread(uintptr_t handle) {
  WaitForSingleObject(reinterpret_cast<HANDLE>(handle), INFINITE);
  CloseHandle(reinterpret_cast<HANDLE>(handle));
}
using ThreadResult = unsigned;
#else
bool start_thread(void* (*work)(void*), void* argument, uintptr_t* handle) {
  static_assert(sizeof(pthread_t) <= sizeof(*handle));
  return pthread_create(reinterpret_cast<pthread_t*>(handle), nullptr, work, argument) == 0;
}
void join_thread(uintptr_t handle) {
  pthread_join(*reinterpret_cast<pthread_t*>(&handle), nullptr);
}
using ThreadResult = void*;
#endif

TaskRange take(std::atomic<uint64_t>* range, uint32_t wanted, uint32_t line, bool from_back) {
  for (uint64_t seen = range->load();;) {
    auto left = std::bit_cast<TaskRange>(seen);
    const TaskRange run = take_run(&left, wanted, line, from_back);
    if (run.begin == run.end || range->compare_exchange_weak(seen, std::bit_cast<uint64_t>(left)))
      return run;
  }
}

}  // namespace

void ThreadPool::Gate::add(uint32_t steps) {
  count.fetch_add(steps);
  if (sleepers.load() != 0) wake_all(&count);
}

void ThreadPool::Gate::wait_for(uint32_t target, bool spins) {
  const auto is_open = [&] { return count.load() >= target; };
  if (is_open() || (spins && spin_until(is_open))) return;
  sleepers.fetch_add(1);
  for (uint32_t seen; (seen = count.load()) < target;) sleep_while(&count, seen);
  sleepers.fetch_sub(1);
}

void ThreadPool::help(uint32_t thread) {
  uint32_t before = 0;  // tasks of the phases before
  for (size_t p = 0; p < phases_.size(); ++p) {
    const Phase& phase = phases_[p];
    if (phase.waits) done_.wait_for(before, spins_);
    const auto tasks = static_cast<uint32_t>(phase.tasks), line = static_cast<uint32_t>(phase.line);
    const auto wanted = [&] {
      const uint32_t done = std::max(done_.count.load(), before) - before;
      return tasks_to_take(tasks, std::min(done, tasks), places_);
    };
    for (uint32_t i = 0; i < places_; ++i) {
      std::atomic<uint64_t>* const range = &threads_[(thread + i) % places_].ranges[p];
      for (TaskRange run{}; run = take(range, wanted(), line, i != 0), run.begin != run.end;) {
        phase.run(argument_, thread, run.begin, run.end - run.begin);
        done_.add(run.end - run.begin);
      }
    }
    before += tasks;
  }
}

// Returns the state of the first job after `state` that has a place for the thread.
uint32_t ThreadPool::wait_for_job(Thread* self, uint32_t state) {
  uint32_t seen = 0;
  const auto has_place = [&] {
    seen = state_.load();
    return (seen & kPlaces) > id_of(*self) &&
           (seen / kJob != state / kJob || (seen & kPlaces) == kEnd);
  };
  if (spins_ && spin_until(has_place)) return seen;
  for (;;) {
    self->asleep = 1;
    if (has_place()) break;
    sleep_while(&self->asleep, 1);
  }
  self->asleep = 0;
  return seen;
}

void ThreadPool::work(Thread* self) {
  left_.add(1);
  for (uint32_t state = 0;;) {
    state = wait_for_job(self, state);
    while ((state & kPlaces) > id_of(*self)) {
      if ((state & kPlaces) == kEnd) return;
      if (!state_.compare_exchange_weak(state, state + kJoined)) continue;
      help(id_of(*self));
      left_.add(1);
      break;
    }
  }
}

void ThreadPool::wake(Thread* thread) {
  if (thread->asleep.exchange(0) != 0) wake_all(&thread->asleep);
}

void ThreadPool::run(const JobThreads& threads, std::span<const Phase> phases, void* argument) {
  phases_ = phases;
  argument_ = argument;
  places_ = std::min(threads.most, size_);
  done_.count = 0;
  left_.count = 0;
  for (size_t p = 0; p < phases.size(); ++p) {
    const uint64_t tasks = phases[p].tasks;
    const auto first_of = [&](uint64_t thread) {
      return static_cast<uint32_t>((tasks * thread + places_ - 1) / places_);
    };
    for (uint32_t i = 0; i < places_; ++i)
      threads_[i].ranges[p] = std::bit_cast<uint64_t>(TaskRange{first_of(i), first_of(i + 1)});
  }
  state_ = (state_ / kJob + 1) * kJob + places_;
  uint32_t wakes = threads.after_gap;
  if (wakes < threads.wakes && now() < end_ + kSpin) wakes = threads.wakes;
  for (uint32_t i = 1; i < places_ && wakes != 0; ++i) {
    if (threads_[i].asleep.load() == 0) continue;
    wake(&threads_[i]);
    --wakes;
  }
  help(0);
  left_.wait_for(state_.fetch_and(~kPlaces) / kJoined % (kJob / kJoined), spins_);
  end_ = now();
}

ThreadPool* ThreadPool::start(uint32_t threads, bool spins) {
  void* const memory = std::aligned_alloc(alignof(ThreadPool), sizeof(ThreadPool));
  if (memory == nullptr) return nullptr;
  auto* const pool = new (memory) ThreadPool(spins);
  const auto work = [](void* argument) -> ThreadResult {
    auto* const self = static_cast<Thread*>(argument);
    self->pool->work(self);
    return {};
  };
  for (; pool->size_ < threads; ++pool->size_) {
    Thread& thread = pool->threads_[pool->size_];
    thread.pool = pool;
    if (start_thread(work, &thread, &thread.handle)) continue;
    pool->end();
    return nullptr;
  }
  pool->left_.wait_for(threads - 1, spins);
  return pool;
}

void ThreadPool::end() {
  state_ = (state_ / kJob + 1) * kJob + kEnd;
  for (uint32_t i = 1; i < size_; ++i) wake(&threads_[i]);
  for (uint32_t i = 1; i < size_; ++i) join_thread(threads_[i].handle);
  this->~ThreadPool();
  std::free(this);
}

}  // namespace wgemm
