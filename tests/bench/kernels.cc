// Runs each micro-kernel of the table alone, on packed operands. JavaScript has the clock and the
// turns: see race.mjs.
#include <emscripten.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "base/types.h"
#include "kernels/kernel.h"
#include "pack/pack.h"
#include "plan/select_kernel.h"

namespace wgemm {
namespace {

constexpr size_t kCacheLine = 64;

struct Free {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using Memory = std::unique_ptr<std::byte, Free>;

// One line more, since XNNPACK's kernels read beyond the end.
Memory allocate(size_t bytes) {
  void* memory = std::aligned_alloc(kCacheLine, (bytes / kCacheLine + 2) * kCacheLine);
  if (memory == nullptr) std::abort();
  return Memory(static_cast<std::byte*>(memory));
}

// Numbers from 0 to 63, which are not denormals, and 8-bit ones that every kernel takes.
template <typename T>
void fill(std::byte* bytes, size_t count) {
  uint32_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const T value = static_cast<T>(state >> 26);
    std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
  }
}

void fill(DType type, std::byte* bytes, size_t size) {
  switch (type) {
    case DType::kFloat32:
      return fill<float>(bytes, size / sizeof(float));
    case DType::kFloat64:
      return fill<double>(bytes, size / sizeof(double));
    case DType::kInt32:
    case DType::kInt64:
      return fill<int32_t>(bytes, size / sizeof(int32_t));
    default:
      return fill<int8_t>(bytes, size);
  }
}

// The product that is timed. Kernels of a type read the same memory, each as its own panels: the
// numbers make no difference to its speed. The pages of memory do, by a third if B comes from DRAM.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  DType compute{};  // the type of a and b, once they are allocated
  Memory a, b, c;

  void provide(DType type) {
    if (a != nullptr && compute == type) return;
    compute = type;
    size_t a_bytes = 0, b_bytes = 0;
    const KernelTable table = kernel_table();
    for (const Kernel* kernel = table.rows; kernel != table.rows + table.count; ++kernel) {
      if (kernel->compute != type || kernel->codes != ReadsCodes::kNo) continue;
      a_bytes = std::max(a_bytes, packed_bytes(kernel->a, m, k));
      b_bytes = std::max(b_bytes, packed_bytes(kernel->b, n, k));
    }
    a = allocate(a_bytes);
    b = allocate(b_bytes);
    c = allocate(static_cast<size_t>(m * n) * dtype_bytes(accumulator_type(type)));
    fill(type, a.get(), a_bytes);
    fill(type, b.get(), b_bytes);
  }
} product;

void append(std::string& json, const char* name, const std::string& value) {
  json.append(json.back() == '{' ? "\"" : ",\"").append(name).append("\":").append(value);
}

std::string quoted(const char* text) { return std::string("\"").append(text).append("\""); }

const char* name_of(Processor processor) {
  return processor == Processor::kAny ? "any" : processor == Processor::kX86 ? "x86" : "ARM";
}

}  // namespace
}  // namespace wgemm

using namespace wgemm;

extern "C" {

// JSON: { processor, kernels: the rows of the table }. `function`: its index in the table of wasm.
// `readsCodes`: run() cannot run it.
EMSCRIPTEN_KEEPALIVE const char* describe() {
  static std::string json;
  json = "{";
  append(json, "processor", quoted(name_of(processor())));
  append(json, "kernels", "[");
  const KernelTable table = kernel_table();
  for (int i = 0; i < table.count; ++i) {
    const Kernel& kernel = table.rows[i];
    json += i == 0 ? "{" : ",{";
    append(json, "name", quoted(kernel.name));
    append(json, "function", std::to_string(reinterpret_cast<uintptr_t>(kernel.run)));
    append(json, "type", quoted(dtype_name(kernel.compute)));
    append(json, "processor", quoted(name_of(kernel.processor)));
    append(json, "vectors", std::to_string(kernel.vectors));
    append(json, "mr", std::to_string(kernel.mr));
    append(json, "mMin", std::to_string(kernel.m_min));
    append(json, "mMax", std::to_string(std::min<int64_t>(kernel.m_max, INT32_MAX)));
    append(json, "typeOfB", quoted(dtype_name(kernel.b_type)));
    append(json, "readsCodes", kernel.codes == ReadsCodes::kNo ? "false" : "true");
    append(json, "strict", kernel.strict ? "true" : "false");
    append(json, "exactFor",
           quoted(!has_dot(kernel.dot)            ? "nothing"
                  : kernel.dot == Dot::kSevenBits ? "7 bits"
                                                  : "anything"));
    json += "}";
  }
  append(json += "]", "types", "[");
  for (int type = 0; type < kDTypeCount; ++type)
    json += (type == 0 ? "" : ",") + quoted(dtype_name(static_cast<DType>(type)));
  json += "]}";
  return json.c_str();
}

// Index of the row that the planner takes on ARM for a product with plain operands, or with packed
// weights. Types are indices of `types`. 8-bit weights have `range` + 1 values. `transposed`: B
// is column-major.
EMSCRIPTEN_KEEPALIVE int choose_on_arm(int compute, int type_of_b, bool packed, bool transposed,
                                       int m, int n, int k, int range) {
  static const std::byte element{};
  Problem problem{
      .m = m, .n = n, .k = k, .compute = static_cast<DType>(compute), .a = {}, .b = {}, .y = {}};
  const auto type = static_cast<DType>(type_of_b);
  if (packed) {
    problem.b.packed = {.panels = &element, .dtype = type, .k = k, .high = range, .finite = true};
  } else {
    problem.b.plain = {&element, type, transposed ? 1 : n, transposed ? k : 1};
  }
  return static_cast<int>(
      &select_kernel(problem, kernel_table(), Determinism::kFast, Processor::kArm, 16) -
      kernel_table().rows);
}

// Begins another product, and frees the memory of the last. N and K must be multiples of all tiles,
// and so must M, unless it is small.
EMSCRIPTEN_KEEPALIVE void set_product(int m, int n, int k) {
  product = {};
  product.m = m;
  product.n = n;
  product.k = k;
}

// Runs the product `times` times on a row of the table, as execute.cc does. Returns a sum over the
// result, so that no compiler leaves out any of it.
EMSCRIPTEN_KEEPALIVE double run(int index, int times) {
  const Kernel& kernel = kernel_table().rows[index];
  product.provide(kernel.compute);
  const size_t row_bytes = panel_bytes(kernel.a, product.k) / static_cast<size_t>(kernel.a.width);
  const size_t c_stride =
      static_cast<size_t>(product.n) * dtype_bytes(accumulator_type(kernel.compute));
  const auto b_bytes = static_cast<size_t>(kernel.b.element_bytes);
  Strip strip{.rows = 0,
              .cols = static_cast<size_t>(product.n),
              .k = static_cast<size_t>(product.k),
              .a = nullptr,
              .a_stride = row_bytes,
              .b = product.b.get(),
              .b_stride = static_cast<size_t>(kernel.b.width) * b_bytes,
              .b_step = static_cast<size_t>(kernel.b.width * kernel.kr) * b_bytes,
              .unpacked = kernel.b_layout != BLayout::kPanels,
              .c = nullptr,
              .c_stride = c_stride,
              .accumulate = false};
  switch (kernel.b_layout) {
    case BLayout::kPanels:
      strip.b = product.b.get() + static_cast<size_t>(kernel.b.header) * b_bytes;
      strip.b_stride = panel_bytes(kernel.b, product.k);
      break;
    case BLayout::kRowMajor:
      strip.b_step = static_cast<size_t>(product.n) * b_bytes;
      break;
    case BLayout::kColumnMajor:
      strip.b_stride = static_cast<size_t>(product.k) * b_bytes;
      strip.b_step = b_bytes;
      break;
  }
  for (int time = 0; time < times; ++time) {
    for (int64_t i = 0; i < product.m; i += kernel.mr) {
      strip.rows = static_cast<size_t>(std::min<int64_t>(kernel.mr, product.m - i));
      strip.a = product.a.get() + static_cast<size_t>(i) * row_bytes;
      strip.c = product.c.get() + static_cast<size_t>(i) * c_stride;
      kernel.run(strip);
    }
  }
  double sum = 0;
  for (int64_t i = 0; i < product.m; ++i) {
    uint32_t words[2] = {};
    std::memcpy(words, product.c.get() + static_cast<size_t>(i) * c_stride,
                dtype_bytes(accumulator_type(kernel.compute)));
    sum += words[0] + words[1];
  }
  return sum;
}

}  // extern "C"
