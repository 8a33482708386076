// Every operator has the same strict bits natively and in every build for WebAssembly.
// nn_hashes.json has a row for each operator and each of its types. tests/js/support/nn-hashes.ts
// also reads it. A row states an operator and its tensors, and ends with the hash of all tensors
// after the step:
//
//   name [sizes] and per tensor type:count:fill[strides], then attributes and the hash
//
// Fills: `s` and `r` are random elements with and without infinities. `p` is random positive
// elements, `b` is 0 and 1, `c9` is 9, and a number n stands for indices from -n to n - 1.
//
// WGEMM_WRITE_HASHES=1 writes the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "nn_tester.h"

namespace wgemm::nn {
namespace {

// Elements of a floating-point type, as bits.
struct Bits {
  uint64_t sign, infinity, quiet;
};
Bits bits_of(DType type) {
  switch (type) {
    case DType::kFloat32:
      return {1U << 31, 0x7f800000, 1U << 22};
    case DType::kFloat64:
      return {uint64_t{1} << 63, uint64_t{0x7ff} << 52, uint64_t{1} << 51};
    case DType::kFloat16:
      return {1U << 15, 0x7c00, 1U << 9};
    default:
      return {1U << 15, 0x7f80, 1U << 6};
  }
}

// A tensor as a row states it.
struct Operand {
  DType type;
  int64_t count;
  std::string fill;
  std::vector<int64_t> strides;
};

struct Case {
  const Operator* op;
  std::vector<int64_t> dims;
  std::vector<Operand> operands;
  std::vector<double> attributes;
};

std::string list(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (const int64_t number : numbers)
    text += (text.size() > 1 ? "," : "") + std::to_string(number);
  return text + "]";
}

std::string text_of(const Case& one) {
  std::string text = std::string(one.op->name) + " " + list(one.dims);
  for (const Operand& each : one.operands)
    text += std::string(" ") + dtype_name(each.type) + ":" + std::to_string(each.count) + ":" +
            each.fill + list(each.strides);
  for (const double attribute : one.attributes) {
    char number[32];
    std::snprintf(number, sizeof(number), " %g", attribute);
    text += number;
  }
  return text;
}

// The bits of element `i`, of a random number.
uint64_t element(const Operand& operand, size_t tensor, size_t i, uint32_t random) {
  const auto whole = static_cast<int32_t>(random);
  const auto single = [](float value) { return uint64_t{std::bit_cast<uint32_t>(value)}; };
  if (operand.fill == "b") return random >> 31;
  if (operand.fill == "p") {
    // A positive number below 1/16, as float16 has it.
    const uint32_t part = random >> 25;
    switch (operand.type) {
      case DType::kFloat32:
        return single(static_cast<float>(part + 128) / 4096);
      case DType::kFloat64:
        return std::bit_cast<uint64_t>(static_cast<double>(part + 128) / 4096);
      case DType::kFloat16:
        return 10U << 10 | part << 3;
      default:
        return 122U << 7 | part;
    }
  }
  if (operand.fill.starts_with("c"))
    return static_cast<uint64_t>(std::stoi(operand.fill.substr(1)));
  if (operand.fill != "s" && operand.fill != "r") {
    const int size = std::stoi(operand.fill);
    return static_cast<uint64_t>(static_cast<int64_t>(random >> 8) % (2 * size) - size);
  }
  if (operand.fill == "s" && !is_integer(operand.type)) {
    const auto [sign, infinity, quiet] = bits_of(operand.type);
    const uint64_t specials[] = {sign, infinity, sign | infinity, 1, infinity - 1};
    if (const size_t at = i % (29 + 2 * tensor); at < std::size(specials)) return specials[at];
  }
  switch (operand.type) {
    case DType::kFloat32:
      return single(static_cast<float>(whole >> 8) / 0x1p20F);
    case DType::kBFloat16:
      return single(static_cast<float>(whole >> 8) / 0x1p20F) >> 16;
    case DType::kFloat64:
      return std::bit_cast<uint64_t>(static_cast<double>(whole) / 0x1p28);
    case DType::kFloat16:  // from 2^-7 to 8
      return (random >> 31) << 15 | (8 + (random >> 24) % 10) << 10 | (random >> 8) % 1024;
    case DType::kInt64:
    case DType::kUInt64:
      return uint64_t{random} << 32 | (random * 5 + 1);
    case DType::kInt8:
    case DType::kUInt8:
      return random >> 24;
    default:
      return random;
  }
}

TestTensor tensor_of(const Operand& operand, size_t tensor) {
  const size_t bytes = dtype_bytes(operand.type);
  TestTensor result{operand.type,
                    std::vector<std::byte>(static_cast<size_t>(operand.count) * bytes),
                    operand.strides};
  auto random = static_cast<uint32_t>(tensor + 1);
  for (size_t i = 0; i < static_cast<size_t>(operand.count); ++i) {
    random = random * 1664525 + 1013904223;
    const uint64_t bits = element(operand, tensor, i, random);
    std::memcpy(result.bytes.data() + i * bytes, &bits, bytes);
  }
  return result;
}

// FNV-1a over elements. Each NaN counts as the canonical one.
uint32_t add_hash(uint32_t hash, const TestTensor& tensor) {
  const size_t bytes = dtype_bytes(tensor.type);
  for (size_t at = 0; at < tensor.bytes.size(); at += bytes) {
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + at, bytes);
    if (!is_integer(tensor.type)) {
      const auto [sign, infinity, quiet] = bits_of(tensor.type);
      if ((bits & ~sign) > infinity) bits = infinity | quiet;
    }
    for (size_t byte = 0; byte < bytes; ++byte)
      hash = (hash ^ static_cast<uint8_t>(bits >> 8 * byte)) * 16777619;
  }
  return hash;
}

uint32_t hash_of(const Case& one, int threads) {
  std::vector<TestTensor> tensors;
  for (size_t i = 0; i < one.operands.size(); ++i) tensors.push_back(tensor_of(one.operands[i], i));
  std::vector<TestTensor*> places;
  for (TestTensor& tensor : tensors) places.push_back(&tensor);
  EXPECT_TRUE(run_operator(one.op->name, one.dims, places, one.attributes, threads));
  uint32_t hash = 2166136261;
  for (const TestTensor& tensor : tensors) hash = add_hash(hash, tensor);
  return hash;
}

// The layout of the tensors of a case. In all but the first two, inputs after the first are
// broadcast.
enum class Layout { kContiguous, kTransposed, kRow, kColumn, kScalar };
constexpr std::array kLayouts = {Layout::kContiguous, Layout::kTransposed, Layout::kRow,
                                 Layout::kColumn, Layout::kScalar};

// A case of attention. Each tensor is contiguous along its own axes.
Case attention_of(const Operator& op, const std::vector<Tensor>& tensors, Layout layout) {
  constexpr std::array<std::array<int64_t, 7>, kLayouts.size()> kDims = {
      {{1, 2, 1, 5, 19, 8, 8},
       {2, 1, 3, 4, 70, 12, 5},
       {1, 1, 2, 33, 40, 16, 16},
       {2, 2, 1, 1, 600, 8, 8},
       {1, 1, 1, 140, 150, 4, 8}}};
  const std::vector<std::vector<size_t>> axes = {{0, 1, 2, 3, 5}, {0, 1, 4, 5}, {0, 1, 4, 6},
                                                 {0, 1, 2, 3, 4}, {0},          {0, 1, 2, 3, 6},
                                                 {0, 1, 2, 3, 4}};
  const auto turn = static_cast<size_t>(layout);
  Case one{&op, {kDims[turn].begin(), kDims[turn].end()}, {}, {}};
  const auto keys = static_cast<double>(one.dims[4]);
  one.attributes = {0.03,     turn % 2 == 0 ? 0 : 4.0,      1, keys / 2, 1,
                    keys / 3, static_cast<double>(turn % 4)};
  for (size_t i = 0; i < tensors.size(); ++i) {
    Operand operand{tensors[i].type, 1, i == 4 ? "3" : "r", std::vector<int64_t>(7, 0)};
    for (size_t k = axes[i].size(); k-- > 0;) {
      operand.strides[axes[i][k]] = operand.count;
      operand.count *= one.dims[axes[i][k]];
    }
    one.operands.push_back(operand);
  }
  return one;
}

Case case_of(const Operator& op, const std::vector<Tensor>& tensors, Layout layout) {
  const std::string name = op.name;
  if (name.starts_with("Attention")) return attention_of(op, tensors, layout);
  constexpr int64_t kIndices = 9, kBest = 5;
  constexpr std::array<std::array<int64_t, 2>, kLayouts.size()> kDims = {
      {{3, 83}, {19, 37}, {5, 67}, {4, 300}, {2, 1100}}};
  const auto [rows, cols] = kDims[static_cast<size_t>(layout)];
  Case one{&op, {rows, cols}, {}, {}};
  const bool along_rows = layout == Layout::kTransposed;  // the indices of Gather
  if (name == "LeakyRelu") one.attributes = {0.1};
  if (name == "Clip") one.attributes = {-1.5, 2.25};
  if (name == "Compare") one.attributes = {static_cast<double>(3 + static_cast<int>(layout))};
  if (name == "Mod") one.attributes = {static_cast<double>(layout != Layout::kRow)};
  if (name == "Affine") one.attributes = {0, 1};
  if (name == "Elu" || name == "QuickGelu" || name == "ThresholdedRelu") one.attributes = {0.75};
  if (name.starts_with("HardS")) one.attributes = {0.2, 0.5};
  const bool normalizes = name.ends_with("Normalization") || name.ends_with("Statistics");
  if (name == "Rotary") one.attributes = {static_cast<double>(cols)};
  if (name == "WriteRows") one.attributes = {kIndices, static_cast<double>(cols), 2 * kIndices - 1};
  if (normalizes) one.attributes = {1e-5};
  if (name == "Gather") one.attributes = {kIndices, static_cast<double>(along_rows ? rows : cols)};
  const bool reduces = name.starts_with("Reduce") || name.starts_with("Arg");
  const auto turn = static_cast<double>(layout);
  if (name.starts_with("Arg")) one.attributes = {std::fmod(turn, 2)};
  if (name == "CumSum") one.attributes = {std::fmod(turn, 2), std::floor(turn / 2)};
  if (name == "TopK") one.attributes = {kBest, 1, std::fmod(turn, 2)};
  if (name == "Scatter")
    one.attributes = {kIndices, static_cast<double>(along_rows ? rows : cols), turn, 0};
  for (size_t i = 0; i < tensors.size(); ++i) {
    Operand operand{tensors[i].type, 0, "s", {cols, 1}};
    std::vector<int64_t>& strides = operand.strides;
    if (i == 0 && layout == Layout::kTransposed) strides = {1, rows};
    if (i > 0 && i < op.inputs) {
      if (layout == Layout::kRow) strides = {0, 1};
      if (layout == Layout::kColumn) strides = {1, 0};
      if (layout == Layout::kScalar) strides = {0, 0};
    }
    if (i >= op.inputs) {
      operand.fill = "r";
      if (layout == Layout::kColumn) strides = {2 * cols, 2};
      if (reduces || name == "FlatIndices") strides = {1, 0};
      if (name == "TopK") {
        strides = {kBest, 0};
        operand.count = kBest - 1;
      }
      // The statistics of a row, or the scale and the zero point.
      if (i > op.inputs && name != "TopK") strides = {normalizes ? 1 : 0, 0};
    }
    if (op.whole_rows || name == "DynamicQuantizeLinear") operand.fill = "r";
    if (name == "Rotary" && (i == 0 || i == 3)) {
      strides = {2 * cols, 1};
      operand.count = cols;
    }
    if (name == "WriteRows") {
      if (i == 0) strides = {cols, 1};
      if (i == 1) {
        strides = {1, 0};
        operand.fill = std::to_string(kIndices);
      }
      if (i == 2) {
        strides = {2 * kIndices * cols, 1};
        operand.count = (2 * kIndices - 1) * cols;
      }
    }
    if (i == 1 && (name == "QuantizeLinear" || name == "DequantizeLinear")) operand.fill = "p";
    if (name == "Where" && i == 0) operand.fill = "b";
    if (name == "Gather" && i < 2) {
      strides = i == 0 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1, 0};
      if (along_rows) std::swap(strides[0], strides[1]);
      if (i == 1)
        operand.fill = std::to_string(kIndices);
      else
        operand.count = (kIndices - 1) * static_cast<int64_t>(one.attributes[1]);
    }
    if (name == "Scatter" && i != 1) {
      strides = i == 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1, 0};
      if (along_rows) std::swap(strides[0], strides[1]);
      if (i == 0)
        operand.fill = std::to_string(kIndices);
      else
        operand.count = (kIndices - 1) * static_cast<int64_t>(one.attributes[1]);
    }
    if (name == "FlatIndices") {
      if (i == 1) strides = {0, 1};
      operand.fill = i == 0 ? std::to_string(kIndices) : i == 1 ? "c9" : "r";
    }
    operand.count += 1 + (rows - 1) * strides[0] + (cols - 1) * strides[1];
    one.operands.push_back(operand);
  }
  return one;
}

// A case for each operator and each choice of types that it takes. The layouts take turns. The most
// common types of models have a case for each layout.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (size_t number = 0; const Operator* op = operator_at(number); ++number) {
    std::vector<Tensor> tensors(op->inputs + op->outputs);
    size_t choices = 1, turn = 0;
    for (size_t i = 0; i < tensors.size(); ++i) choices *= kDTypeCount;
    for (size_t choice = 0; choice < choices; ++choice) {
      size_t left = choice;
      bool is_usual = true;
      for (Tensor& tensor : tensors) {
        tensor.type = static_cast<DType>(left % kDTypeCount);
        left /= kDTypeCount;
        is_usual = is_usual && (tensor.type == DType::kFloat32 || tensor.type == DType::kUInt8);
      }
      Step step;
      step.op = op;
      step.tensors = tensors;
      if (!op->choose(&step)) continue;
      // The mean and the deviation, which may have any types.
      if (tensors.size() == 6 && tensors[4].type != tensors[5].type) continue;
      if (is_usual) {
        for (const Layout layout : kLayouts) cases.push_back(case_of(*op, tensors, layout));
      } else {
        cases.push_back(case_of(*op, tensors, kLayouts[turn++ % kLayouts.size()]));
      }
    }
  }
  return cases;
}

TEST(NnHashes, AreAsStored) {
  std::string table = "[\n";
  for (const Case& one : all_cases()) {
    const std::string text = text_of(one);
    const uint32_t hash = hash_of(one, 1);
    EXPECT_EQ(hash_of(one, 3), hash) << text;
    char row[16];
    std::snprintf(row, sizeof(row), " %08x\"", hash);
    table += std::string(table.size() > 2 ? ",\n" : "") + "  \"" + text + row;
  }
  table += "\n]\n";
  if (std::getenv("WGEMM_WRITE_HASHES") != nullptr) {
    std::ofstream(WGEMM_TEST_HASHES) << table;
    return;
  }
  std::ifstream stored(WGEMM_TEST_HASHES);
  std::istringstream found(table);
  for (std::string line, expected; std::getline(found, line);) {
    std::getline(stored, expected);
    EXPECT_EQ(line, expected);
  }
  EXPECT_EQ(stored.peek(), EOF) << "nn_hashes.json has more rows";
}

}  // namespace
}  // namespace wgemm::nn
