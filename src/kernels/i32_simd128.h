// int32 and uint32, which are the same modulo 2^32, on vectors of four.
#pragma once

#include "kernels/kernel.h"

namespace wgemm {

void i32_2x16_simd128(const Strip& strip);

}  // namespace wgemm
