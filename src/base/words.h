// Numbers of 64 bits in which JavaScript describes the steps of a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wgemm {

// Reads words from front to back. If a word is missing or out of range, it and all that follow are
// 0, and ok() is false.
class WordReader {
 public:
  explicit WordReader(std::span<const double> words) : left_(words) {}

  bool ok() const { return ok_; }
  bool empty() const { return left_.empty(); }
  bool check(bool is_good) { return ok_ = ok_ && is_good; }

  // A whole number from `least` to `most`.
  int64_t integer(double least, double most) {
    const std::span<const double> word = take(1);
    return !word.empty() && check(word[0] >= least && word[0] <= most)
               ? static_cast<int64_t>(word[0])
               : 0;
  }
  std::span<const double> take(size_t count) {
    if (!check(count <= left_.size())) return {};
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }

 private:
  std::span<const double> left_;
  bool ok_ = true;
};

}  // namespace wgemm
