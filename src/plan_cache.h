// Plans that were made, for calls that ask for the same again: where the product is small, its plan
// takes as long as it.
#pragma once

#include "plan.h"

namespace wgemm {

// A few plans, each beside all that it follows from, compared word by word. What a plan does not
// follow from is where operands lie, and the values of scales, zero points and bounds.
class PlanCache {
 public:
  // The plan of make_plan(problem, context), valid until the next call. Null where it is not kept:
  // for problems of many axes, and without memory.
  static const Plan* plan(const Problem& problem, Context& context);

  // What a plan follows from, as words.
  class Key {
   public:
    Key(const Problem& problem, const Context& context);
    bool fits() const { return fits_; }  // false: the problem has more axes than there is room for
    bool operator==(const Key& other) const;

   private:
    friend class PlanCache;
    static constexpr int kMostAxes = 3, kMostWords = 57;
    Key() = default;
    template <typename... Values>
    void add(Values... values) {
      ((words_[count_++] = static_cast<int64_t>(values)), ...);
    }
    void add_factor(const Scalar& factor);
    template <typename Byte>
    void add_operand(const BasicOperand<Byte>& operand);

    int count_ = 0;
    bool fits_ = true;
    int64_t words_[kMostWords];
  };

 private:
  struct Entry {
    Key key;
    Plan plan;
  };
  static constexpr int kEntries = 8;
  const Plan* find(const Problem& problem, const Context& context, const Key& key);

  Entry entries_[kEntries];
  int count_ = 0, oldest_ = 0;
};

}  // namespace wgemm
