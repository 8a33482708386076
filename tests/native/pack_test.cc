// Packing: compares every element with the definition of a panel.
#include "pack/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "kernels/i64_simd128.h"
#include "pack/pack_8bit.h"

namespace wgemm::testing {
namespace {

TEST(Pack, PanelsHoldTheElementsAndZeros) {
  const PanelLayout layouts[] = {
      kRowsOf<float>,        panel_of<float>(8),        panel_of<float>(8, 1, 8),
      panel_of<float>(4),    panel_of<float>(16, 1, 2), panel_of<float>(5, 2, 3),
      panel_of<float>(8, 2), panel_of<float>(3, 4, 1)};
  for (const PanelLayout& layout : layouts) {
    for (const int64_t lanes : {1, 7, 8, 9, 16, 33, 70}) {
      for (const int64_t depth : {1, 2, 15, 16, 17, 40}) {
        for (const bool lanes_adjacent : {true, false}) {
          const int64_t lane_stride = lanes_adjacent ? 1 : depth + 2,
                        depth_stride = lanes_adjacent ? lanes + 3 : 1;
          std::vector<float> source(
              static_cast<size_t>((lanes - 1) * lane_stride + (depth - 1) * depth_stride + 1));
          for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i + 1);
          std::vector<float> panels(packed_bytes(layout, lanes, depth) / sizeof(float), -1.0F);
          pack({reinterpret_cast<const std::byte*>(source.data()), DType::kFloat32, lanes, depth,
                lane_stride, depth_stride},
               layout, panels.data());

          size_t at = 0;
          for (int64_t lane0 = 0; lane0 < lanes; lane0 += layout.width) {
            for (int i = 0; i < layout.header; ++i) ASSERT_EQ(panels[at++], 0.0F);
            for (int64_t d0 = 0; d0 < depth; d0 += layout.kr) {
              for (int64_t lane = lane0; lane < lane0 + layout.width; ++lane) {
                for (int64_t d = d0; d < d0 + layout.kr; ++d) {
                  const bool inside = lane < lanes && d < depth;
                  const float expected =
                      inside ? source[static_cast<size_t>(lane * lane_stride + d * depth_stride)]
                             : 0.0F;
                  ASSERT_EQ(panels[at++], expected)
                      << "lane " << lane << " depth " << d << " of " << lanes << " x " << depth;
                }
              }
            }
          }
          ASSERT_EQ(at, panels.size());
        }
      }
    }
  }
}

TEST(Pack, PanelHeadersOfInt64HoldTheCorrectionOfSums) {
  std::mt19937_64 random(1);
  for (const int64_t lanes : {1, 4, 7}) {
    for (const int64_t depth : {1, 2, 5, 8}) {
      std::vector<uint64_t> source(static_cast<size_t>(lanes * depth));
      for (uint64_t& element : source) element = random();
      std::vector<uint64_t> panels(packed_bytes(kI64PanelOfB, lanes, depth) / sizeof(uint64_t), 1);
      pack({reinterpret_cast<const std::byte*>(source.data()), DType::kUInt64, lanes, depth, 1,
            lanes},
           kI64PanelOfB, panels.data());
      for (int64_t lane = 0; lane < (lanes + 3) / 4 * 4; ++lane) {
        uint64_t expected = 0;
        for (int64_t d = 0; lane < lanes && d + 1 < depth; d += 2) {
          expected -= source[static_cast<size_t>(d * lanes + lane)] *
                      source[static_cast<size_t>((d + 1) * lanes + lane)];
        }
        EXPECT_EQ(panels[static_cast<size_t>(lane / 4 * (1 + depth) * 4 + lane % 4)], expected)
            << lane << " of " << lanes << ", " << depth;
      }
    }
  }
}

// 8-bit elements in an allocation of exactly their size.
template <typename From>
std::vector<From> random_source(int64_t lanes, int64_t depth, int64_t lane_stride,
                                int64_t depth_stride) {
  std::mt19937 random(static_cast<uint32_t>(lanes * 1000 + depth));
  std::vector<From> source(
      static_cast<size_t>((lanes - 1) * lane_stride + (depth - 1) * depth_stride + 1));
  for (From& element : source)
    element = random() % 16 == 0 ? std::numeric_limits<From>::min() : static_cast<From>(random());
  return source;
}

// Checks panels with kr elements of k together, minus a zero point, modulo the range of their
// elements. pack() must write nothing after the panels.
template <typename From, typename To>
void check_8bit(int width, const std::vector<int>& zero_points, int kr = 2) {
  const DType type = std::is_signed_v<From> ? DType::kInt8 : DType::kUInt8;
  const PanelLayout layout = panel_of<To>(width, kr);
  constexpr size_t kGuard = 16;
  for (const int64_t lanes : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 70}) {
    for (const int64_t depth : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 19, 32, 40, 41}) {
      const int64_t strides[][2] = {{1, lanes + 3}, {1, lanes},     {depth + 2, 1},
                                    {depth, 1},     {3 * depth, 2}, {2, 2 * lanes + 1}};
      for (const auto& [lane_stride, depth_stride] : strides) {
        const std::vector<From> source =
            random_source<From>(lanes, depth, lane_stride, depth_stride);
        for (const int zero_point : zero_points) {
          const size_t size = packed_bytes(layout, lanes, depth) / sizeof(To);
          std::vector<To> panels(size + kGuard, To{99});
          pack({.data = reinterpret_cast<const std::byte*>(source.data()),
                .dtype = type,
                .lanes = lanes,
                .depth = depth,
                .lane_stride = lane_stride,
                .depth_stride = depth_stride,
                .zero_point = zero_point},
               layout, panels.data());
          size_t at = 0;
          for (int64_t lane0 = 0; lane0 < lanes; lane0 += width) {
            for (int64_t d0 = 0; d0 < depth; d0 += kr) {
              for (int64_t lane = lane0; lane < lane0 + width; ++lane) {
                for (int64_t d = d0; d < d0 + kr; ++d) {
                  const bool inside = lane < lanes && d < depth;
                  const int expected =
                      inside ? source[static_cast<size_t>(lane * lane_stride + d * depth_stride)] -
                                   zero_point
                             : 0;
                  ASSERT_EQ(panels[at++], static_cast<To>(expected))
                      << "lane " << lane << " depth " << d << " of " << lanes << " x " << depth
                      << ", width " << width << ", strides " << lane_stride << ", " << depth_stride;
                }
              }
            }
          }
          ASSERT_EQ(at, size);
          for (; at < panels.size(); ++at) ASSERT_EQ(panels[at], To{99});
        }
      }
    }
  }
}

TEST(Pack8Bit, PanelsHoldTheElementsMinusTheZeroPoint) {
  for (const int width : {1, 2, 3, 4, 5, 8}) {
    check_8bit<int8_t, int16_t>(width, {0, -128, 127, 5});
    check_8bit<uint8_t, int16_t>(width, {0, 128, 255, 77});
  }
  check_8bit<int8_t, int8_t>(8, {0});
  check_8bit<uint8_t, int8_t>(8, {128});
  // Rows.
  check_8bit<int8_t, int8_t>(1, {0, -128}, 1);
  check_8bit<uint8_t, int8_t>(1, {0, 128}, 1);
  check_8bit<int8_t, int16_t>(1, {0, -128, 127}, 8);
  check_8bit<uint8_t, int16_t>(1, {0, 128, 255}, 8);
}

TEST(Pack8Bit, WidensPanelsWithGaps) {
  const PanelLayout narrow = panel_of<int8_t>(8, 2), wide = panel_of<int16_t>(8, 2);
  std::mt19937 random(1);
  for (const int64_t count : {1, 2, 5}) {
    for (const int64_t depth : {1, 2, 3, 8, 17}) {
      for (const size_t more : {size_t{0}, size_t{16}, size_t{80}}) {  // bytes between panels
        const size_t size = panel_bytes(narrow, depth), stride = size + more;
        std::vector<int8_t> source((static_cast<size_t>(count) - 1) * stride + size);
        for (int8_t& element : source) element = static_cast<int8_t>(random());
        std::vector<int16_t> panels(static_cast<size_t>(count) * size + 8, int16_t{999});
        widen_panels(reinterpret_cast<const std::byte*>(source.data()), stride, count, depth, wide,
                     panels.data());
        for (size_t i = 0; i < static_cast<size_t>(count) * size; ++i) {
          ASSERT_EQ(panels[i], source[i / size * stride + i % size])
              << count << " panels, " << depth << " deep";
        }
        for (size_t i = static_cast<size_t>(count) * size; i < panels.size(); ++i)
          ASSERT_EQ(panels[i], 999);
      }
    }
  }
}

TEST(Pack8Bit, AddsToTheSumsOfLanes) {
  constexpr int32_t kNear = std::numeric_limits<int32_t>::max() - 100;
  std::mt19937 random(1);
  for (const int width : {1, 2, 3, 4, 5, 8}) {
    const PanelLayout layout = panel_of<int16_t>(width, 2);
    for (const int64_t lanes : {1, 3, 4, 5, 8, 13}) {
      for (const int64_t depth : {1, 2, 7, 40}) {
        std::vector<uint8_t> source(static_cast<size_t>(lanes * depth));
        for (uint8_t& element : source) element = static_cast<uint8_t>(random());
        std::vector<int16_t> panels(packed_bytes(layout, lanes, depth) / sizeof(int16_t));
        const int zero_point = static_cast<int>(random() % 256);
        pack({reinterpret_cast<const std::byte*>(source.data()), DType::kUInt8, lanes, depth, depth,
              1, zero_point},
             layout, panels.data());
        // Previous sums, some so large that they wrap. The one after the last must not change.
        std::vector<int32_t> sums(static_cast<size_t>(lanes) + 1);
        for (size_t lane = 0; lane < sums.size(); ++lane)
          sums[lane] = lane % 2 == 0 ? kNear : -kNear - static_cast<int32_t>(lane);
        const std::vector<int32_t> before = sums;
        sum_lanes(panels.data(), layout, lanes, depth, sums.data());
        for (int64_t lane = 0; lane <= lanes; ++lane) {
          auto expected = static_cast<uint32_t>(before[static_cast<size_t>(lane)]);
          for (int64_t d = 0; d < depth && lane < lanes; ++d) {
            expected +=
                static_cast<uint32_t>(source[static_cast<size_t>(lane * depth + d)] - zero_point);
          }
          ASSERT_EQ(sums[static_cast<size_t>(lane)], static_cast<int32_t>(expected))
              << "width " << width << ", lane " << lane;
        }
      }
    }
  }
}

#if WGEMM_RELAXED  // only relaxed builds have quads
TEST(Pack8Bit, QuadsHoldTheBytesMinusTheZeroPoint) {
  for (const int width : {1, 4, 8}) {
    check_8bit<int8_t, int8_t>(width, {0, -128}, 4);
    check_8bit<uint8_t, int8_t>(width, {128, 0}, 4);
  }
}
#endif

TEST(Pack8Bit, JoinsPairsToQuads) {
  const PanelLayout pairs = panel_of<int8_t>(8, 2), quads = panel_of<int8_t>(8, 4);
  std::mt19937 random(1);
  for (const int64_t count : {1, 2, 5}) {
    for (const int64_t depth : {1, 2, 3, 4, 5, 6, 7, 8, 16, 17}) {
      for (const size_t more : {size_t{0}, size_t{16}, size_t{80}}) {  // bytes between panels
        for (const int shift : {0, -128, 127, 5}) {
          const size_t stride = panel_bytes(pairs, depth) + more, size = panel_bytes(quads, depth);
          std::vector<int8_t> source(static_cast<size_t>(count - 1) * stride +
                                     panel_bytes(pairs, depth));
          for (int8_t& element : source) element = static_cast<int8_t>(random());
          std::vector<int8_t> panels(static_cast<size_t>(count) * size + 8, int8_t{99});
          join_pairs(reinterpret_cast<const std::byte*>(source.data()), stride, count, depth, shift,
                     panels.data());
          for (size_t i = 0; i < static_cast<size_t>(count) * size; ++i) {
            const size_t d = i % size / 32 * 4 + i % 4, lane = i % 32 / 4;
            const bool inside = d < static_cast<size_t>(depth);
            const int expected =
                inside ? source[i / size * stride + d / 2 * 16 + 2 * lane + d % 2] - shift : 0;
            ASSERT_EQ(panels[i], static_cast<int8_t>(expected))
                << count << " panels, " << depth << " deep";
          }
          for (size_t i = static_cast<size_t>(count) * size; i < panels.size(); ++i)
            ASSERT_EQ(panels[i], 99);
        }
      }
    }
  }
}

TEST(Pack8Bit, FindsTheRangeOfPanelsWithoutTheirPadding) {
  const PanelLayout layout = panel_of<int8_t>(8, 2);
  std::mt19937 random(1);
  for (const int64_t n : {0, 1, 7, 8, 9, 16, 21}) {
    for (const int64_t k : {0, 1, 2, 3, 8, 9}) {
      std::vector<int8_t> source(static_cast<size_t>(n * k));
      for (int tries = 0; tries < 20; ++tries) {
        // All have one sign, so that counting the padding would be noticed.
        for (int8_t& element : source) {
          const auto draw = static_cast<int>(random() % 127);
          element = static_cast<int8_t>(tries % 2 == 0 ? 1 + draw : -128 + draw);
        }
        std::vector<int8_t> panels(packed_bytes(layout, n, k));
        pack({reinterpret_cast<const std::byte*>(source.data()), DType::kInt8, n, k, 1, n}, layout,
             panels.data());
        const Int8Range range = range_of_panels(panels.data(), k, n);
        const auto [low, high] = std::minmax_element(source.begin(), source.end());
        ASSERT_EQ(range.low, source.empty() ? 0 : *low) << k << " x " << n;
        ASSERT_EQ(range.high, source.empty() ? 0 : *high) << k << " x " << n;
      }
    }
  }
}

#if WGEMM_RELAXED  // only relaxed builds have quads
TEST(Pack8Bit, AddsToTheSumsOfQuads) {
  constexpr int32_t kNear = std::numeric_limits<int32_t>::max() - 100;
  std::mt19937 random(1);
  for (const auto& [width, is_signed] :
       {std::pair{1, false}, std::pair{1, true}, std::pair{4, false}, std::pair{4, true},
        std::pair{8, false}, std::pair{8, true}}) {
    const PanelLayout layout = panel_of<int8_t>(width, 4);
    for (const int64_t lanes : {1, 3, 4, 5, 8, 13}) {
      for (const int64_t depth : {1, 2, 3, 4, 7, 40}) {
        std::vector<uint8_t> source(static_cast<size_t>(lanes * depth));
        for (uint8_t& element : source) element = static_cast<uint8_t>(random());
        std::vector<int8_t> panels(packed_bytes(layout, lanes, depth));
        pack({reinterpret_cast<const std::byte*>(source.data()), DType::kInt8, lanes, depth, depth,
              1},
             layout, panels.data());
        const int zero_point = static_cast<int>(random() % 256) - (is_signed ? 128 : 0);
        // Some are so large that they wrap. The one after the last must not change.
        std::vector<int32_t> sums(static_cast<size_t>(lanes) + 1);
        for (size_t lane = 0; lane < sums.size(); ++lane)
          sums[lane] = lane % 2 == 0 ? kNear : -kNear - static_cast<int32_t>(lane);
        const std::vector<int32_t> before = sums;
        sum_quads(panels.data(), width, is_signed, zero_point, lanes, depth, sums.data());
        for (int64_t lane = 0; lane <= lanes; ++lane) {
          auto expected = static_cast<uint32_t>(before[static_cast<size_t>(lane)]);
          for (int64_t d = 0; d < depth && lane < lanes; ++d) {
            const uint8_t byte = source[static_cast<size_t>(lane * depth + d)];
            expected +=
                static_cast<uint32_t>((is_signed ? static_cast<int8_t>(byte) : byte) - zero_point);
          }
          ASSERT_EQ(sums[static_cast<size_t>(lane)], static_cast<int32_t>(expected))
              << "lane " << lane << " of " << lanes << ", panels of " << width;
        }
      }
    }
  }
}
#endif

}  // namespace
}  // namespace wgemm::testing
