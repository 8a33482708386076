// The default context of a process.
#pragma once

#include <optional>

#include "wgemm.h"

namespace wgemm::blas {

// Takes the default context, with its threads, for one product. While another thread has it, the
// product has a context of its own, without threads.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Context& context() { return own_ ? *own_ : *shared_; }

 private:
  Context* shared_ = nullptr;
  std::optional<Context> own_;
};

}  // namespace wgemm::blas
