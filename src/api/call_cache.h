// Caches recent calls: to check and plan a small product takes as long as to compute it. The
// JavaScript API uses this cache; native callers keep a PreparedCall themselves.
#pragma once

#include <optional>
#include <span>

#include "api/run.h"

namespace wgemm {

// The key of a call is an operation and words that state all its arguments: addresses, sizes,
// strides and attributes. A cached call is valid only while the context and packed weights at those
// addresses stay the same. Elements may change. run() reads A, B, C and Y again. Before it,
// read_again() must read scales and zero points, and plan again if the context has changed.
class CallCache {
 public:
  // The cached call of this key, or null. Words are compared as bits: NaN equals itself, and 0
  // differs from -0. `operation`: the caller's number for one of its operations.
  PlannedCall* find(int operation, std::span<const double> words);

  // The cache owns both.
  struct Slot {
    PlannedCall& call;  // for the caller to plan
    double* scalars;    // kMaxScalars elements, for operands that the caller has as numbers
  };
  static constexpr size_t kMaxScalars = 10;
  // The slot for the next call. Valid until the next call of next() or forget().
  Slot next();
  // Keeps the call in that slot, which must be planned. A call of more than kMaxWords words is not
  // kept. `packed`: the packed weights that it reads, or null.
  void keep(int operation, std::span<const double> words, const void* packed);

  // The caller must call this before it releases packed weights: other weights may come to the same
  // address, with the same key.
  void forget(const void* packed);

 private:
  // Enough for tensors of rank 6 with strides. find() compares with each entry, so they are few.
  static constexpr size_t kMaxWords = 80, kEntries = 8;
  struct Entry {
    int operation;
    size_t count = 0;  // of words; 0: the entry is free
    double words[kMaxWords];
    const void* packed;
    double scalars[kMaxScalars];
    std::optional<PlannedCall> call;
  };
  Entry entries_[kEntries];
  size_t next_ = 0;
};

}  // namespace wgemm
