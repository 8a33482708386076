// Packing, element by element against the definition of a panel.
#include "pack.h"

#include <gtest/gtest.h>

#include <vector>

namespace wgemm::testing {
namespace {

TEST(Pack, PanelsHoldTheElementsZerosAndNothingElse) {
  const PanelLayout layouts[] = {kRowsOf<float>,        panel_of<float>(8),        panel_of<float>(8, 1, 8),
                                 panel_of<float>(4),    panel_of<float>(16, 1, 2), panel_of<float>(5, 2, 3),
                                 panel_of<float>(8, 2), panel_of<float>(3, 4, 1)};
  for (const PanelLayout& layout : layouts) {
    for (const int64_t lanes : {1, 7, 8, 9, 16, 33, 70}) {
      for (const int64_t depth : {1, 2, 15, 16, 17, 40}) {
        for (const bool lanes_adjacent : {true, false}) {
          const int64_t lane_stride = lanes_adjacent ? 1 : depth + 2, depth_stride = lanes_adjacent ? lanes + 3 : 1;
          std::vector<float> source(static_cast<size_t>((lanes - 1) * lane_stride + (depth - 1) * depth_stride + 1));
          for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i + 1);
          std::vector<float> panels(packed_bytes(layout, lanes, depth) / sizeof(float), -1.0F);
          pack({reinterpret_cast<const std::byte*>(source.data()), DType::kFloat32, lanes, depth, lane_stride, depth_stride}, layout,
               panels.data());

          size_t at = 0;
          for (int64_t lane0 = 0; lane0 < lanes; lane0 += layout.width) {
            for (int i = 0; i < layout.lead; ++i) ASSERT_EQ(panels[at++], 0.0F);
            for (int64_t d0 = 0; d0 < depth; d0 += layout.kr) {
              for (int64_t lane = lane0; lane < lane0 + layout.width; ++lane) {
                for (int64_t d = d0; d < d0 + layout.kr; ++d) {
                  const bool inside = lane < lanes && d < depth;
                  const float expected = inside ? source[static_cast<size_t>(lane * lane_stride + d * depth_stride)] : 0.0F;
                  ASSERT_EQ(panels[at++], expected) << "lane " << lane << " depth " << d << " of " << lanes << " x " << depth;
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

}  // namespace
}  // namespace wgemm::testing
