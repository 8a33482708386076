#include "kernels/f32_rows.h"

namespace wgemm {
namespace {
constexpr auto kKernels = rows::for_vectors_of_16<rows::kF32Rows>();
}  // namespace

KernelTable f32_kernels() { return {kKernels.data(), static_cast<int>(kKernels.size())}; }

}  // namespace wgemm
