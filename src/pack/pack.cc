#include "pack/pack.h"

#include <wasm_simd128.h>

#include <algorithm>
#include <cstring>

#include "base/convert.h"
#include "base/transpose.h"
#include "base/types.h"
#include "pack/pack_8bit.h"

namespace wgemm {
namespace {

// A transposing copy proceeds in squares of 16 x 16 elements. A cache line has 16 float32. So each
// line that it reads or writes is used completely while it is in L1.
constexpr int64_t kTile = 16;

// Rows of B that are packed together. Their cache lines stay in L1 until they are used completely.
// This holds even for a row stride of a power of two, which maps all rows to a few sets of L1.
constexpr int64_t kRowsAtOnce = 8;

// Loads contiguous elements of type From as a vector of To.
template <typename From, typename To>
struct LoadVector {
  v128_t operator()(const From* from) const { return wasm_v128_load(from); }
};
template <typename Half>
  requires kIsHalf<Half>
struct LoadVector<Half, float> {
  HalfSimd<Half> simd;
  v128_t operator()(const Half* from) const { return simd.widen(wasm_i32x4_load16x4(from)); }
};

// Not inlined for 16 bits, so that the module has it once.
template <typename To, typename From>
To convert_one(From x) {
  return x;
}
template <typename To, typename Half>
  requires kIsHalf<Half>
[[gnu::noinline]] To convert_one(Half x) {
  return widen(x);
}

// Whether there is a transpose() for this pair of types. Packing one element at a time took a
// quarter of the time of a product of attention.
template <typename From, typename To>
inline constexpr bool kHasSquares =
    sizeof(To) >= 4 && (sizeof(From) == sizeof(To) || kIsHalf<From>);

// Elements on a side of the square that transpose() takes: lanes of a vector.
template <typename To>
inline constexpr int64_t kSideOf = 16 / sizeof(To);

template <typename From, typename To>
void transpose_square(const From* from, int64_t from_stride, To* to, int64_t to_stride,
                      const LoadVector<From, To>& load) {
  v128_t x[kSideOf<To>];
  for (int64_t i = 0; i < kSideOf<To>; ++i) x[i] = load(from + i * from_stride);
  transpose(x);
  for (int64_t i = 0; i < kSideOf<To>; ++i) wasm_v128_store(to + i * to_stride, x[i]);
}

// From the first square to the second, which may overlap it, so that the last one ends at `end`.
// `end` is at least a side away from `begin`.
int64_t to_second_square(int64_t begin, int64_t end, int64_t side) {
  return (end - begin - 1) % side + 1;
}

// Transposes all lanes except the last ones, and returns their number. There are two or three steps
// of k. Each lane is written as a vector, and the next lane then overwrites what is too much.
template <typename T>
[[gnu::noinline]] int64_t transpose_few_steps(const PackSource& s, const T* from, T* to) {
  const T *second = from + s.depth_stride, *last = from + (s.depth - 1) * s.depth_stride;
  int64_t lane = 0;
#pragma clang loop unroll(disable)
  for (; lane + 4 < s.lanes; lane += 4) {
    v128_t x[4] = {wasm_v128_load(from + lane), wasm_v128_load(second + lane),
                   wasm_v128_load(last + lane), wasm_v128_load(last + lane)};
    transpose(x);
    for (int64_t i = 0; i < 4; ++i, to += s.depth) wasm_v128_store(to, x[i]);
  }
  return lane;
}

// Transposes contiguous lanes, at least a side of a square of them and of steps of k.
template <typename From, typename To>
void transpose_rows(const PackSource& s, const From* from, To* to) {
  constexpr int64_t kSide = kSideOf<To>;
  const LoadVector<From, To> load;
  for (int64_t lane0 = 0; lane0 < s.lanes; lane0 += kTile) {
    const int64_t lane_end = std::min(lane0 + kTile, s.lanes);
    for (int64_t d0 = 0; d0 < s.depth; d0 += kTile) {
      const int64_t d_end = std::min(d0 + kTile, s.depth);
      int64_t d = std::min(d0, d_end - kSide), d_step = to_second_square(d, d_end, kSide);
#pragma clang loop unroll(disable)
      for (; d < d_end; d += d_step, d_step = kSide) {
        int64_t lane = std::min(lane0, lane_end - kSide),
                lane_step = to_second_square(lane, lane_end, kSide);
#pragma clang loop unroll(disable)
        for (; lane < lane_end; lane += lane_step, lane_step = kSide) {
          transpose_square(from + d * s.depth_stride + lane, s.depth_stride,
                           to + lane * s.depth + d, s.depth, load);
        }
      }
    }
  }
}

template <typename From, typename To>
void pack_rows(const PackSource& s, const From* from, To* to) {
  if (s.depth_stride == 1 || s.depth == 1) {
    const Converter<From, To> convert_run;
    const bool contiguous = s.lane_stride == s.depth;  // then all lanes are one run
    const int64_t lanes = contiguous ? 1 : s.lanes, run = contiguous ? s.lanes * s.depth : s.depth;
    for (int64_t lane = 0; lane < lanes; ++lane)
      convert_run(from + lane * s.lane_stride, to + lane * run, run);
    return;
  }
  int64_t lane = 0;
  if constexpr (kHasSquares<From, To>) {
    constexpr int64_t kSide = kSideOf<To>;
    if (s.lane_stride == 1 && s.depth >= kSide && s.lanes >= kSide)
      return transpose_rows(s, from, to);
    if constexpr (std::is_same_v<From, To> && kSide == 4) {
      if (s.lane_stride == 1 && s.depth < kSide) lane = transpose_few_steps(s, from, to);
    }
  }
  for (; lane < s.lanes; ++lane) {
    const From* source = from + lane * s.lane_stride;
    To* const out = to + lane * s.depth;
    const int64_t stride = s.depth_stride;
#pragma clang loop vectorize(disable) unroll(disable)
    for (int64_t d = 0; d < s.depth; ++d) out[d] = convert_one<To>(source[d * stride]);
  }
}

// Copies one step of k: Width contiguous elements. The copy without conversion uses vectors
// explicitly, since the compiler would guard a loop over elements with an overlap test.
template <int Width, typename From, typename To>
struct StepCopy {
  Converter<From, To> convert_run;
  void operator()(const From* from, To* to) const { convert_run(from, to, Width); }
};
template <typename Half>
  requires kIsHalf<Half>
struct StepCopy<4, Half, float> {
  LoadVector<Half, float> load;
  void operator()(const Half* from, float* to) const { wasm_v128_store(to, load(from)); }
};
template <int Width, typename T>
  requires(Width * sizeof(T) % 16 == 0)
struct StepCopy<Width, T, T> {
  void operator()(const T* from, T* to) const {
    constexpr int kLanes = 16 / sizeof(T);
#pragma clang loop unroll(full)
    for (int i = 0; i < Width; i += kLanes) wasm_v128_store(to + i, wasm_v128_load(from + i));
  }
};

// Copies `steps` steps of a micro-panel, one, two or four vectors each, and clears what follows the
// first `bytes` bytes of a step. It reads whole vectors.
[[gnu::noinline]] void copy_part_of_panel(const std::byte* from, size_t from_stride, std::byte* to,
                                          size_t vectors, size_t bytes, int64_t steps) {
  v128_t mask[4] = {};
  std::memset(mask, 0xff, bytes);
  const auto copy = [&](size_t v) {
    wasm_v128_store(to + v * sizeof(v128_t),
                    wasm_v128_and(wasm_v128_load(from + v * sizeof(v128_t)), mask[v]));
  };
#pragma clang loop unroll(disable)
  for (; steps != 0; --steps, from += from_stride, to += vectors * sizeof(v128_t)) {
    copy(0);
    if (vectors == 1) continue;
    copy(1);
    if (vectors == 2) continue;
    copy(2);
    copy(3);
  }
}

// Packs contiguous lanes (lane_stride 1) by copying whole steps of k. Width is the panel's, known
// at compile time. Fills the panels in which every lane has elements, and returns their number. It
// may also fill the first steps of the next panel: `part_steps` is their number.
template <int Width, typename From, typename To>
int64_t interleave(const PackSource& s, const From* from, const PanelLayout& layout, To* to,
                   int64_t* part_steps) {
  const auto panel = static_cast<int64_t>(panel_bytes(layout, s.depth) / sizeof(To));
  const int64_t full = s.lanes / Width;
  const StepCopy<Width, From, To> step;
  for (int64_t d0 = 0; d0 < s.depth; d0 += kRowsAtOnce) {
    const int64_t d_end = std::min(d0 + kRowsAtOnce, s.depth), row_stride = s.depth_stride;
    for (int64_t p = 0; p < full; ++p) {
      const From* source = from + d0 * s.depth_stride + p * Width;
      To* out = to + p * panel + layout.header + d0 * Width;
      for (int64_t d = d0; d < d_end; ++d, source += row_stride, out += Width) step(source, out);
    }
  }
  if constexpr (std::is_same_v<From, To> && Width * sizeof(To) % sizeof(v128_t) == 0) {
    // Whole vectors read beyond the lanes, into the next steps. The last steps have none behind
    // them, so gather() packs these.
    const int64_t lanes = s.lanes - full * Width, missing = Width - lanes;
    if (lanes > 0 && s.depth > 0 && s.depth_stride > 0) {
      *part_steps = std::max<int64_t>(s.depth - (missing + s.depth_stride - 1) / s.depth_stride, 0);
      copy_part_of_panel(reinterpret_cast<const std::byte*>(from + full * Width),
                         static_cast<size_t>(s.depth_stride) * sizeof(To),
                         reinterpret_cast<std::byte*>(to + full * panel + layout.header),
                         Width * sizeof(To) / sizeof(v128_t),
                         static_cast<size_t>(lanes) * sizeof(To), *part_steps);
    }
  }
  return full;
}

// Packs lanes that are contiguous along k (depth_stride 1). Returns what interleave() returns.
template <typename From, typename To>
int64_t transpose_panels(const PackSource& s, const From* from, const PanelLayout& layout, To* to) {
  if constexpr (!kHasSquares<From, To>) {
    return 0;
  } else {
    constexpr int64_t kSide = kSideOf<To>;
    const auto panel = static_cast<int64_t>(panel_bytes(layout, s.depth) / sizeof(To));
    const int64_t width = layout.width, full = s.lanes / width;
    if (s.depth < kSide) return 0;
    const LoadVector<From, To> load;
    for (int64_t p = 0; p < full; ++p) {
      const From* source = from + p * width * s.lane_stride;
      To* out = to + p * panel + layout.header;
      int64_t step = to_second_square(0, s.depth, kSide);
#pragma clang loop unroll(disable)
      for (int64_t d = 0; d < s.depth; d += step, step = kSide) {
#pragma clang loop unroll(disable)
        for (int64_t lane = 0; lane < width; lane += kSide) {
          transpose_square(source + lane * s.lane_stride + d, s.lane_stride, out + d * width + lane,
                           width, load);
        }
      }
    }
    return full;
  }
}

// Packs with any strides into any layout, from step `first_step` of panel `first_panel` on. The
// step must be 0 if there are several panels or if kr is not 1.
template <typename From, typename To>
void gather(const PackSource& s, const From* from, const PanelLayout& layout, int64_t first_panel,
            int64_t first_step, To* to) {
  const auto panel = static_cast<int64_t>(panel_bytes(layout, s.depth) / sizeof(To));
  const int64_t width = layout.width, kr = layout.kr;
  for (int64_t lane0 = first_panel * width; lane0 < s.lanes; lane0 += width) {
    To* out = to + lane0 / width * panel + layout.header;
    const int64_t lanes = std::min(width, s.lanes - lane0);
    if (lanes < width || s.depth % kr != 0)
      std::fill(out + first_step * width, out + panel - layout.header, To{0});
    out += first_step * width;
    int64_t left = kr;  // steps of the group of kr steps
    for (int64_t d = first_step; d < s.depth; ++d, ++out) {
      const From* source = from + lane0 * s.lane_stride + d * s.depth_stride;
#pragma clang loop unroll(disable)
      for (int64_t lane = 0; lane < lanes; ++lane)
        out[lane * kr] = convert_one<To>(source[lane * s.lane_stride]);
      if (--left != 0) continue;
      left = kr;
      out += kr * (width - 1);
    }
  }
}

template <typename From, typename To>
void pack_typed(const PackSource& s, const PanelLayout& layout, void* panels) {
  const auto* from = reinterpret_cast<const From*>(s.data);
  auto* to = static_cast<To*>(panels);
  if constexpr (sizeof(To) > 2) {  // no rows have 16 bits
    if (layout.is_rows()) return pack_rows(s, from, to);
  }
  const size_t panel = panel_bytes(layout, s.depth) / sizeof(To);
  const int64_t count = (s.lanes + layout.width - 1) / layout.width;
  for (int64_t p = 0; p < count; ++p)
    std::fill_n(to + static_cast<size_t>(p) * panel, layout.header, To{0});
  int64_t done = 0, part_steps = 0;  // panels, and steps of the next one
  if (layout.kr == 1 && s.lane_stride == 1) {
    if (layout.width == 4) done = interleave<4>(s, from, layout, to, &part_steps);
    if (layout.width == 8) done = interleave<8>(s, from, layout, to, &part_steps);
  } else if (layout.kr == 1 && s.depth_stride == 1) {
    if (layout.width % 4 == 0) done = transpose_panels(s, from, layout, to);
  }
  gather(s, from, layout, done, part_steps, to);
}

// Types that need no widening are copied as bits: one instance serves all types of the same size.
template <typename From, typename To, bool same>
constexpr auto pack_function() {
  if constexpr (same) {
    using Bits = std::conditional_t<sizeof(From) == 4, uint32_t, uint64_t>;
    return pack_typed<Bits, Bits>;
  } else {
    return pack_typed<From, To>;
  }
}

using PackFunction = void (*)(const PackSource&, const PanelLayout&, void*);
constexpr PackFunction kPack[] = {
#define WGEMM_DTYPE(Enumerator, name, Storage, Compute, gemm_since) \
  pack_function<Storage, StorageOf<DType::k##Compute>, is_compute_form(DType::k##Enumerator)>(),
#include "dtypes.def"
#undef WGEMM_DTYPE
};

}  // namespace

void pack(const PackSource& source, const PanelLayout& layout, void* panels) {
  if (compute_type(source.dtype) == DType::kInt8) return pack_8bit(source, layout, panels);
  // Packed weights keep 16-bit elements as they are.
  if (layout.element_bytes == 2) return pack_typed<uint16_t, uint16_t>(source, layout, panels);
  kPack[static_cast<int>(source.dtype)](source, layout, panels);
  if (layout.fill_header == nullptr) return;
  auto* header = static_cast<std::byte*>(panels);
  for (int64_t lane = 0; lane < source.lanes;
       lane += layout.width, header += panel_bytes(layout, source.depth)) {
    layout.fill_header(header, source.depth);
  }
}

template <>
void pack_plain<float>(const PackSource& source, const PanelLayout& layout, void* panels) {
  pack_typed<uint32_t, uint32_t>(source, layout, panels);
}
template <>
void pack_plain<double>(const PackSource& source, const PanelLayout& layout, void* panels) {
  pack_typed<uint64_t, uint64_t>(source, layout, panels);
}

}  // namespace wgemm
