#include "cblas/session.h"

#include <atomic>

#include "cblas.h"

namespace wgemm::blas {
namespace {

std::atomic_flag taken = ATOMIC_FLAG_INIT;

Context& default_context() {
  static Context context;
  return context;
}

}  // namespace

Session::Session() {
  if (taken.test_and_set(std::memory_order_acquire)) {
    own_.emplace();
  } else {
    shared_ = &default_context();
  }
}

Session::~Session() {
  if (!own_) taken.clear(std::memory_order_release);
}

}  // namespace wgemm::blas

int wgemm_cblas_set_threads(int threads) {
  using namespace wgemm::blas;
  while (taken.test_and_set(std::memory_order_acquire)) {
  }
  wgemm::Context& context = default_context();
  static_cast<void>(context.set_threads(threads));
  const int now = context.threads();
  taken.clear(std::memory_order_release);
  return now;
}
