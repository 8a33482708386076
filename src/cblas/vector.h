// A view of a vector of BLAS.
#pragma once

#include <cstdint>

namespace wgemm::blas {

// Element i is data[i * step]. T may be const.
template <typename T>
struct Vector {
  T* data;
  int64_t step;  // elements; may be negative

  T& operator[](int64_t i) const { return data[i * step]; }
  Vector at(int64_t i) const { return {data + i * step, step}; }
};

// A vector of `size` elements from the lowest address on: with a negative increment, that is its
// last element.
template <typename T>
Vector<T> vector(T* lowest, int64_t size, int64_t increment) {
  return {increment < 0 && size > 0 ? lowest - (size - 1) * increment : lowest, increment};
}

}  // namespace wgemm::blas
