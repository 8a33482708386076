#include "kernels/f64_rows.h"

namespace wgemm {
namespace {
constexpr auto kKernels = rows::for_vectors_of_16<rows::kF64Rows>();
}  // namespace

KernelTable f64_kernels() { return {kKernels.data(), static_cast<int>(kKernels.size())}; }

}  // namespace wgemm
