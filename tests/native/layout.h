// Tensors of any rank and layout, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "array.h"
#include "wgemm.h"

namespace wgemm::testing {

using Sizes = std::vector<int64_t>;

// How a tensor lies in memory.
struct Layout {
  // Axes from the longest stride to the shortest; empty: the order of the shape.
  std::vector<size_t> order{};
  // Unused elements after the last element of each axis. If above 0, axes of size 1 have a huge
  // stride.
  int64_t gap = 0;
  uint64_t repeated = 0;  // bit mask of axes with stride 0; for inputs only

  bool is_plain() const { return order.empty() && gap == 0 && repeated == 0; }
};

template <typename T>
Array<T> make_array(const Sizes& dims, const Layout& layout) {
  Array<T> array({}, 0, false);
  std::vector<size_t> order = layout.order;
  if (order.empty()) {
    order.resize(dims.size());
    std::iota(order.begin(), order.end(), size_t{0});
  }
  array.dims = dims;
  array.strides.assign(dims.size(), 0);
  int64_t stride = 1, extent = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t axis = order[i];
    const bool repeats = (layout.repeated >> axis & 1) != 0;
    if (repeats) continue;
    array.strides[axis] =
        dims[axis] == 1 && layout.gap > 0 ? std::numeric_limits<int64_t>::max() : stride;
    if (dims[axis] > 1) {
      extent += (dims[axis] - 1) * stride;
      stride = stride * dims[axis] + layout.gap;
    }
  }
  const bool is_empty = std::ranges::count(dims, 0) > 0;
  array.length = is_empty ? 0 : static_cast<size_t>(extent);
  array.data.reset(new T[array.length]);
  return array;
}

template <typename Void, typename T>
BasicTensor<Void> make_tensor(const Array<T>& array, DType dtype, const Layout& layout) {
  BasicTensor<Void> tensor = array.template tensor<Void>(dtype);
  if (layout.is_plain()) tensor.strides = {};
  return tensor;
}

// Calls `work` with each index of a shape.
template <typename Work>
void for_each_index(const Sizes& dims, const Work& work) {
  if (std::ranges::count(dims, 0) > 0) return;
  Sizes index(dims.size(), 0);
  while (true) {
    work(std::span<const int64_t>(index));
    size_t axis = dims.size();
    while (axis > 0 && ++index[axis - 1] == dims[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

inline std::string text_of(std::span<const int64_t> sizes) {
  std::ostringstream text;
  for (size_t i = 0; i < sizes.size(); ++i) text << (i == 0 ? "[" : ", ") << sizes[i];
  text << (sizes.empty() ? "[]" : "]");
  return text.str();
}

inline std::string text_of(const Sizes& dims, const Layout& layout) {
  std::ostringstream text;
  text << text_of(dims);
  for (const size_t axis : layout.order) text << " " << axis;
  if (layout.gap != 0) text << " gap " << layout.gap;
  if (layout.repeated != 0) text << " repeated " << layout.repeated;
  return text.str();
}

// Draws problems at random.
class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}
  bool one_in(uint32_t n) { return random_() % n == 0; }
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t one_of(const Sizes& sizes) {
    return sizes[static_cast<size_t>(below(std::ssize(sizes)))];
  }

  Layout layout(size_t rank, bool may_repeat) {
    Layout layout;
    if (one_in(3)) return layout;
    layout.order.resize(rank);
    std::iota(layout.order.begin(), layout.order.end(), size_t{0});
    if (one_in(2)) std::ranges::shuffle(layout.order, random_);
    layout.gap = one_of({0, 0, 1, 3});
    if (may_repeat && one_in(4)) layout.repeated = random_() % 32;
    return layout;
  }

  // A shape that broadcasts to `dims`: some of its last axes, some of them 1.
  Sizes part_of(const Sizes& dims) {
    Sizes part(dims.begin() + static_cast<std::ptrdiff_t>(below(std::ssize(dims) + 1)), dims.end());
    for (int64_t& size : part) size = one_in(4) ? 1 : size;
    return part;
  }

 private:
  std::mt19937 random_;
};

}  // namespace wgemm::testing
