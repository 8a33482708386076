// float32 micro-kernels of XNNPACK, behind the contract of kernel.h.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

// XNNPACK starts each panel with a bias; here it is the lead, and 0.
inline constexpr PanelLayout kXnnpackPanel = panel_of<float>(8, 1, 8);

void f32_4x8_xnnpack_loadsplat(const Strip& strip);
void f32_4x8_xnnpack_splat(const Strip& strip);
void f32_1x8_xnnpack_loadsplat(const Strip& strip);
void f32_1x8_xnnpack_splat(const Strip& strip);

// In builds with relaxed SIMD only.
void f32_4x8_xnnpack_relaxed_loadsplat(const Strip& strip);
void f32_4x8_xnnpack_relaxed_splat(const Strip& strip);

}  // namespace wgemm
