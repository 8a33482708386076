// A micro-kernel in plain C++ for any type and tile. Every other kernel is compared with it, and it
// serves types that have no other.
#pragma once

#include <cstring>

#include "base/types.h"
#include "kernels/kernel.h"

namespace wgemm {

// A: unpacked rows if ARows, else micro-panels of MR rows. B: micro-panels of NR columns. Element:
// the type of both; one narrower than Acc is widened before it is multiplied.
template <typename Element, int MR, int NR, int KR, bool ARows, typename Acc = Element>
void portable_kernel(const Strip& s) {
  using T = typename Modular<Acc>::type;
  static_assert(!ARows || KR == 1);
  const auto* b_panel = static_cast<const std::byte*>(s.b);
  for (size_t col = 0; col < s.cols; col += NR, b_panel += s.b_stride) {
    const size_t cols = s.cols - col < NR ? s.cols - col : NR;
    T tile[MR][NR] = {};
    auto c_row = [&](size_t i) {
      return static_cast<std::byte*>(s.c) + i * s.c_stride + col * sizeof(T);
    };
    if (s.accumulate) {
      for (size_t i = 0; i < s.rows; ++i) std::memcpy(tile[i], c_row(i), cols * sizeof(T));
    }
    const auto* b = reinterpret_cast<const Element*>(b_panel);
    for (size_t k = 0; k < s.k; k += KR, b += NR * KR) {
      for (size_t i = 0; i < MR; ++i) {
        if (ARows && i >= s.rows) break;
        const Element* a = ARows ? reinterpret_cast<const Element*>(
                                       static_cast<const std::byte*>(s.a) + i * s.a_stride) +
                                       k
                                 : static_cast<const Element*>(s.a) + k * MR + i * KR;
        for (int step = 0; step < KR; ++step) {
          for (size_t j = 0; j < NR; ++j) {
            tile[i][j] +=
                static_cast<T>(a[step]) * static_cast<T>(b[j * KR + static_cast<size_t>(step)]);
          }
        }
      }
    }
    for (size_t i = 0; i < s.rows; ++i) std::memcpy(c_row(i), tile[i], cols * sizeof(T));
  }
}

}  // namespace wgemm
