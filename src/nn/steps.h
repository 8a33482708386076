// Steps of a program: operators as words, which JavaScript writes. The functions have the types of
// OtherSteps in program/program.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wgemm.h"

namespace wgemm::nn {

// Words of a step, whose number is the number of its operator:
//   rank, dims..., then per tensor: type, address of the first element, strides...,
//   then the attributes

// The bytes of memory that a step takes, a multiple of 8. 0: its words are out of range.
size_t step_bytes(int number, std::span<const double> words);

// Makes a step in that many bytes, which begin at a multiple of 8. Returns whether its words are in
// range and the operator takes these types. The step refers to the words.
bool read_step(int number, std::span<const double> words, void* memory);

// Computes a step that read_step() made in `memory`.
Status run_step(Context& context, const void* memory);

}  // namespace wgemm::nn
