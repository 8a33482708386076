// The layout of packed operands, as data: kernels state theirs, packing follows it, and packed
// weights record it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wgemm {

// The layout in which a kernel takes an operand. A micro-panel holds `width` rows of A or columns
// of B: [header], then [k / kr][width][kr], with k and width padded with zeros.
//
// A has micro-panels of MR rows and no header, or plain rows: width 1 and kr 1. If the kernel takes
// plain rows, A may also be unpacked, with any row stride. B has micro-panels of NR columns, or of
// a divisor of NR. The last one may hold fewer.
struct PanelLayout {
  int width;
  int kr;             // elements of k that are adjacent
  int header;         // elements before each micro-panel of B; none for A
  int element_bytes;  // bytes per element of a micro-panel
  // Computes the header of a micro-panel from its elements, which are `k` steps. If null, the
  // header is 0. Only for elements of 32 and 64 bits.
  void (*fill_header)(void* header, int64_t k);

  bool operator==(const PanelLayout&) const = default;
  constexpr bool is_rows() const { return width == 1 && kr == 1 && header == 0; }
  // Whether four steps of k are adjacent, for 8-bit dot products. Else 8-bit panels have pairs.
  constexpr bool has_quads() const { return kr == 4; }
};

// Micro-panels of elements of T, and plain rows.
template <typename T>
constexpr PanelLayout panel_of(int width, int kr = 1, int header = 0) {
  return {.width = width,
          .kr = kr,
          .header = header,
          .element_bytes = sizeof(T),
          .fill_header = nullptr};
}
template <typename T>
inline constexpr PanelLayout kRowsOf = panel_of<T>(1);

// Bytes from one micro-panel to the next, with its header, if each has `k` elements along k.
constexpr size_t panel_bytes(const PanelLayout& layout, int64_t k) {
  const int64_t steps = (k + layout.kr - 1) / layout.kr;
  return static_cast<size_t>((layout.header + steps * layout.kr * layout.width) *
                             layout.element_bytes);
}

// Bytes that pack() writes: whole micro-panels. `lanes`: rows of A or columns of B. `depth`: K.
constexpr size_t packed_bytes(const PanelLayout& layout, int64_t lanes, int64_t depth) {
  return static_cast<size_t>((lanes + layout.width - 1) / layout.width) *
         panel_bytes(layout, depth);
}

}  // namespace wgemm
