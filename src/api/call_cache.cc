#include "api/call_cache.h"

#include <algorithm>
#include <bit>

namespace wgemm {
namespace {

uint64_t bits(double word) { return std::bit_cast<uint64_t>(word); }

}  // namespace

const PreparedCall* KnownCalls::find(int operation, std::span<const double> words) const {
  for (const Call& call : calls_) {
    if (call.count == 0 || call.count != words.size() || call.operation != operation) continue;
    // From behind, where a caller has the result, in which most calls differ.
    size_t left = words.size();
    while (left > 0 && bits(call.words[left - 1]) == bits(words[left - 1])) --left;
    if (left == 0) return &*call.prepared;
  }
  return nullptr;
}

KnownCalls::Place KnownCalls::next() {
  Call& call = calls_[next_];
  call.count = 0;
  return {call.prepared.emplace(), call.scalars};
}

void KnownCalls::keep(int operation, std::span<const double> words, const void* packed) {
  if (words.size() > kMostWords) return;
  Call& call = calls_[next_];
  next_ = (next_ + 1) % kCalls;
  call.operation = operation;
  call.count = words.size();
  std::ranges::copy(words, call.words);
  call.packed = packed;
}

void KnownCalls::forget(const void* packed) {
  for (Call& call : calls_) {
    if (call.packed == packed) call.count = 0;
  }
}

}  // namespace wgemm
