// The best keys of a query: see scan.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace wgemm {

// A heap of keys whose root is the least. It owns no memory.
struct Heap {
  uint64_t* keys = nullptr;
  size_t count = 0;
  float bound = 0;  // of the next key: see scan.h

  // The key that another one must exceed.
  uint64_t least(size_t capacity, uint64_t floor) const {
    return count == capacity ? std::max(keys[0], floor) : floor;
  }
  void add(uint64_t key, size_t capacity) {
    if (count < capacity) {
      size_t at = count++;
      for (; at > 0 && keys[(at - 1) / 2] > key; at = (at - 1) / 2) keys[at] = keys[(at - 1) / 2];
      keys[at] = key;
    } else if (key > keys[0]) {
      sink(key, count);
    }
  }
  // Puts a key in place of the root of the first `size` keys.
  void sink(uint64_t key, size_t size) {
    size_t at = 0;
    for (size_t child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && keys[child + 1] < keys[child]) ++child;
      if (keys[child] >= key) break;
      keys[at] = keys[child];
      at = child;
    }
    keys[at] = key;
  }
  // Sorts from the greatest key to the least.
  void sort() {
    for (size_t size = count; size > 1;) {
      const uint64_t key = keys[--size];
      keys[size] = keys[0];
      sink(key, size);
    }
  }
};

}  // namespace wgemm
