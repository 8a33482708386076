// Tensors in memory, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "wgemm.h"

namespace wgemm::testing {

// A tensor in an allocation of exactly its size, so that the address sanitizer detects an overrun
// by one element. pad() makes the allocation larger.
template <typename T>
struct Array {
  std::vector<int64_t> dims, strides;
  int64_t offset = 0;
  std::unique_ptr<T[]> data;
  size_t length;

  // `gap` unused elements follow each row, or each column if `columns`. A tensor of rank 1 is a
  // row.
  Array(std::vector<int64_t> shape, int64_t gap, bool columns)
      : dims(std::move(shape)), strides(dims.size(), 1) {
    const size_t rank = dims.size();
    if (rank == 1 && columns) strides[0] = 1 + gap;
    if (rank == 2 && columns) {
      strides[1] = dims[0] + gap;
    } else {
      for (size_t axis = rank; axis-- > 1;) strides[axis - 1] = dims[axis] * strides[axis] + gap;
    }
    int64_t extent = 1;
    for (size_t axis = 0; axis < rank; ++axis)
      extent = dims[axis] == 0 ? INT64_MIN / 2 : extent + (dims[axis] - 1) * strides[axis];
    length = static_cast<size_t>(std::max<int64_t>(extent, 0));
    data.reset(new T[length]);
  }

  // Puts unused elements before the first and behind the last. The values are lost.
  void pad(int64_t before, int64_t behind) {
    offset += before;
    length += static_cast<size_t>(before + behind);
    data.reset(new T[length]);
  }

  template <typename Void = const void>
  BasicTensor<Void> tensor(DType dtype) const {
    return {.data = data.get(),
            .dtype = dtype,
            .dims = dims,
            .strides = strides,
            .offset = offset,
            .size = static_cast<int64_t>(length)};
  }
  size_t place(int64_t row, int64_t col) const {
    return static_cast<size_t>(offset + row * strides[0] + col * strides[1]);
  }
  // The place of element `last` in the row at `index`.
  size_t place(std::span<const int64_t> index, int64_t last) const {
    int64_t at = offset + last * strides.back();
    for (size_t axis = 0; axis + 1 < dims.size(); ++axis) at += index[axis] * strides[axis];
    return static_cast<size_t>(at);
  }
  std::vector<T> values() const { return {data.get(), data.get() + length}; }
};

// Packs an array, and then changes every byte of it, so that a product that still reads it fails.
template <typename T>
Status pack_and_overwrite(Context& context, const PackArgs& args, Array<T>& array,
                          PackedWeights* packed) {
  const Status status = pack(context, args, packed);
  auto* bytes = reinterpret_cast<uint8_t*>(array.data.get());
  for (size_t i = 0; i < array.length * sizeof(T); ++i) bytes[i] ^= 0xa5;
  return status;
}

// A copy of arrays, to check later that they are unchanged.
class Snapshot {
 public:
  template <typename T>
  void add(const char* name, const Array<T>& array) {
    const auto* bytes = reinterpret_cast<const std::byte*>(array.data.get());
    entries_.push_back({name, bytes, {bytes, bytes + array.length * sizeof(T)}});
  }
  void expect_unchanged() const {
    for (const Entry& entry : entries_) {
      EXPECT_TRUE(entry.bytes.empty() ||
                  std::memcmp(entry.data, entry.bytes.data(), entry.bytes.size()) == 0)
          << "written to " << entry.name;
    }
  }

 private:
  struct Entry {
    const char* name;
    const std::byte* data;
    std::vector<std::byte> bytes;
  };
  std::vector<Entry> entries_;
};

}  // namespace wgemm::testing
