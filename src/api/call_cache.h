// Calls that came before: one that comes again, all on the same places, is not read, checked and
// planned again, which takes as long as a small product.
#pragma once

#include <optional>
#include <span>

#include "api/run.h"

namespace wgemm {

// The last calls, each by words that tell all its arguments: addresses, sizes, strides, attributes.
// For a caller who has them so, as the bindings do. What else a call follows from must not change:
// the context and its threads, and what lies at addresses but for the elements of operands, which
// of qgemm's scales and zero points are part of what it follows from.
class KnownCalls {
 public:
  // The call of these words, if it is kept. Words are compared as bits: NaN is equal to itself, and
  // 0 is not -0. `operation`: any number that tells operations apart whose words may be the same.
  const PreparedCall* find(int operation, std::span<const double> words) const;

  // A call, and room for elements that the caller has as numbers, which are to live as long as it.
  struct Place {
    PreparedCall& prepared;
    double* scalars;  // kMostScalars
  };
  static constexpr size_t kMostScalars = 10;
  // Where the next call is to be prepared. Valid until this is called again, or the call that is
  // kept then is forgotten.
  Place next();
  // Keeps that call, once it is prepared; but for calls of many words. `packed`: the weights that
  // it takes, or null.
  void keep(int operation, std::span<const double> words, const void* packed);

  // To be called before packed weights are released: others, which look the same from outside, may
  // come to lie there.
  void forget(const void* packed);

 private:
  // Enough for tensors of rank 6 with strides. There are few calls, since each is compared with.
  static constexpr size_t kMostWords = 80, kCalls = 8;
  struct Call {
    int operation;
    size_t count = 0;  // 0: there is none
    double words[kMostWords];
    const void* packed;
    double scalars[kMostScalars];
    std::optional<PreparedCall> prepared;
  };
  Call calls_[kCalls];
  size_t next_ = 0;
};

}  // namespace wgemm
