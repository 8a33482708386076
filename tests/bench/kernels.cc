// Runs each micro-kernel of the table alone, on panels that are packed before. Clocks and turns are JavaScript's: see race.mjs.
#include <emscripten.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "pack.h"
#include "types.h"
#include "weights.h"

namespace wgemm {
namespace {

constexpr size_t kCacheLine = 64;

struct Free {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using Memory = std::unique_ptr<std::byte, Free>;

// A line more: XNNPACK's kernels read beyond the end.
Memory allocate(size_t bytes) {
  void* memory = std::aligned_alloc(kCacheLine, (bytes / kCacheLine + 2) * kCacheLine);
  if (memory == nullptr) std::abort();
  return Memory(static_cast<std::byte*>(memory));
}

// Numbers from 0 to 63, always the same: whatever a kernel multiplies, their sums are exact in it, and no engine's 8-bit products saturate.
template <typename T>
void fill(std::byte* bytes, size_t count) {
  uint32_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const T value = static_cast<T>(state >> 26);
    std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
  }
}

void fill(DType type, std::byte* bytes, size_t count) {
  switch (type) {
    case DType::kFloat32:
      return fill<float>(bytes, count);
    case DType::kFloat64:
      return fill<double>(bytes, count);
    case DType::kInt32:
      return fill<int32_t>(bytes, count);
    case DType::kInt64:
      return fill<int64_t>(bytes, count);
    default:
      return fill<int8_t>(bytes, count);
  }
}

// Layouts of 8-bit kernels may be for weights of a kind, which pack() does not make of any.
bool is_packable(const Kernel& kernel, const PanelLayout& layout) {
  if (kernel.compute != DType::kInt8) return true;
  return layout.arrange == nullptr && layout.kr == 2 && (layout.element_bytes == 2 || layout == kI8StorageLayout);
}

Memory make_panels(const Kernel& kernel, const PanelLayout& layout, int64_t lanes, int64_t depth) {
  const size_t bytes = packed_bytes(layout, lanes, depth);
  Memory panels = allocate(bytes);
  if (is_packable(kernel, layout)) {
    // Each lane is the one before, moved by one: so the source of panels of a hundred megabytes is small.
    const auto count = static_cast<size_t>(lanes + depth);
    const Memory source = allocate(count * dtype_bytes(kernel.compute));
    fill(kernel.compute, source.get(), count);
    pack({.data = source.get(), .dtype = kernel.compute, .lanes = lanes, .depth = depth, .lane_stride = 1, .depth_stride = 1}, layout,
         panels.get());
  } else if (layout.element_bytes == 2) {
    fill<int16_t>(panels.get(), bytes / 2);
  } else {
    fill<int8_t>(panels.get(), bytes);
  }
  return panels;
}

// Rows of A, or columns of B, in a layout.
struct Panels {
  DType compute;
  PanelLayout layout;
  int64_t lanes;
  Memory memory;
};

// The product that is timed, and what kernels have needed for it so far: those that want the same layout share the panels.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  std::vector<Panels> panels;
  Memory c;

  const std::byte* get(const Kernel& kernel, const PanelLayout& layout, int64_t lanes) {
    for (const Panels& p : panels) {
      if (p.compute == kernel.compute && p.layout == layout && p.lanes == lanes) return p.memory.get();
    }
    panels.push_back({kernel.compute, layout, lanes, make_panels(kernel, layout, lanes, k)});
    return panels.back().memory.get();
  }
} product;

void append(std::string& json, const char* name, const std::string& value) {
  json.append(json.back() == '{' ? "\"" : ",\"").append(name).append("\":").append(value);
}

std::string quoted(const char* text) { return std::string("\"").append(text).append("\""); }

const char* name_of(Processor processor) { return processor == Processor::kAny ? "any" : processor == Processor::kX86 ? "x86" : "ARM"; }

}  // namespace
}  // namespace wgemm

using namespace wgemm;

extern "C" {

// JSON: { processor, kernels: the rows of the table }.
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
    append(json, "type", quoted(dtype_name(kernel.compute)));
    append(json, "processor", quoted(name_of(kernel.processor)));
    append(json, "rowsMin", std::to_string(kernel.rows_min));
    append(json, "strict", kernel.strict ? "true" : "false");
    json += "}";
  }
  json += "]}";
  return json.c_str();
}

// Begins another product, and forgets the panels of the last. M, N and K are to be multiples of all tiles.
EMSCRIPTEN_KEEPALIVE void set_product(int m, int n, int k) {
  product = {};
  product.m = m;
  product.n = n;
  product.k = k;
  product.c = allocate(static_cast<size_t>(m) * static_cast<size_t>(n) * sizeof(int64_t));
}

// Runs the product so often on a row of the table, as execute.cc does; the first time it packs before. Returns a sum over the result, so
// that nothing of it can be left out.
EMSCRIPTEN_KEEPALIVE double run(int index, int times) {
  const Kernel& kernel = kernel_table().rows[index];
  const std::byte* a = product.get(kernel, kernel.a, product.m);
  const std::byte* b = product.get(kernel, kernel.b, product.n) + kernel.b.lead * kernel.b.element_bytes;
  const size_t row_bytes = panel_bytes(kernel.a, product.k) / static_cast<size_t>(kernel.a.width);
  const size_t c_stride = static_cast<size_t>(product.n) * dtype_bytes(accumulator_type(kernel.compute));
  Strip strip{.rows = 0,
              .cols = static_cast<size_t>(product.n),
              .k = static_cast<size_t>(product.k),
              .a = nullptr,
              .a_stride = row_bytes,
              .b = b,
              .b_stride = panel_bytes(kernel.b, product.k),
              .c = nullptr,
              .c_stride = c_stride,
              .accumulate = false};
  for (int time = 0; time < times; ++time) {
    for (int64_t i = 0; i < product.m; i += kernel.mr) {
      strip.rows = static_cast<size_t>(std::min<int64_t>(kernel.mr, product.m - i));
      strip.a = a + static_cast<size_t>(i) * row_bytes;
      strip.c = product.c.get() + static_cast<size_t>(i) * c_stride;
      kernel.run(strip);
    }
  }
  double sum = 0;
  for (int64_t i = 0; i < product.m; ++i) {
    uint32_t words[2] = {};
    std::memcpy(words, product.c.get() + static_cast<size_t>(i) * c_stride, dtype_bytes(accumulator_type(kernel.compute)));
    sum += words[0] + words[1];
  }
  return sum;
}

}  // extern "C"
