// The layout of packed operands, as data: kernels state theirs, packing follows it, and packed
// weights record it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wgemm {

// How a kernel wants an operand laid out. A panel holds `width` rows of A or columns of B:
//   [header] then [k / kr][width][kr], k and width padded with zeros.
// A has panels of mr rows and no header; or width 1 and kr 1, which means plain rows: then A may
// also be read in place, at any row stride. B has panels of nr columns, or of a divisor of nr, of
// which the last tile may hold fewer.
struct PanelLayout {
  int width;
  int kr;
  int header;         // elements before each panel; none for A
  int element_bytes;  // in the panel
  // Writes a header, from the elements behind it, which are `k` deep; null: it is 0. Of elements of
  // 32 and 64 bits alone.
  void (*fill_header)(void* header, int64_t k);

  bool operator==(const PanelLayout&) const = default;
  constexpr bool is_rows() const { return width == 1 && kr == 1 && header == 0; }
};

// Panels of elements of T, and plain rows of them.
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

// Bytes from one panel to the next, for panels `k` deep.
constexpr size_t panel_bytes(const PanelLayout& layout, int64_t k) {
  const int64_t steps = (k + layout.kr - 1) / layout.kr;
  return static_cast<size_t>((layout.header + steps * layout.kr * layout.width) *
                             layout.element_bytes);
}

}  // namespace wgemm
