#include "search/vectors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/arena.h"
#include "base/convert.h"
#include "base/error.h"
#include "pack/pack.h"
#include "pack/weights.h"

namespace wgemm {
namespace {

// All storage layouts of these types have micro-panels of this width.
constexpr int64_t kWidth = 8;

// Elements that are converted at once. Even, since a unit of 8 bits has two.
constexpr int64_t kChunk = 256;

// Bytes of a unit: the elements of a lane that are adjacent in a panel.
int64_t unit_bytes(DType type) {
  const PanelLayout layout = storage_layout(type);
  return layout.kr * layout.element_bytes;
}

// Units of a lane, without the header.
int64_t units_of(DType type, int64_t dimensions) {
  const int64_t kr = storage_layout(type).kr;
  return (dimensions + kr - 1) / kr;
}

// The first unit of a vector, and how many units its header has: 0 or 1.
std::byte* lane_of(const VectorsHeader& v, int64_t i) {
  const PanelLayout layout = storage_layout(v.dtype);
  return v.at<std::byte>(v.panels_at) +
         static_cast<size_t>(i / kWidth) * panel_bytes(layout, v.dimensions) +
         i % kWidth * unit_bytes(v.dtype);
}
int64_t header_units(DType type) { return storage_layout(type).header / kWidth; }

template <typename Unit>
void copy_units_of(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step,
                   int64_t count) {
#pragma clang loop unroll(disable) vectorize(disable)
  for (; count > 0; --count, from += from_step, to += to_step) std::memcpy(to, from, sizeof(Unit));
}

void copy_units(int64_t bytes, const std::byte* from, int64_t from_step, std::byte* to,
                int64_t to_step, int64_t count) {
  if (bytes == 4)
    copy_units_of<uint32_t>(from, from_step, to, to_step, count);
  else
    copy_units_of<uint16_t>(from, from_step, to, to_step, count);
}

// Elements as float32.
void load(const std::byte* data, DType type, int64_t first, int64_t count, float* to) {
  const std::byte* const from = data + first * static_cast<int64_t>(dtype_bytes(type));
  if (compute_type(type) != DType::kInt8)
    return pack({from, type, 1, count, count, 1}, kRowsOf<float>, to);
#pragma clang loop unroll(disable) vectorize(disable)
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(type == DType::kInt8 ? static_cast<int>(static_cast<int8_t>(from[i]))
                                                    : static_cast<int>(from[i]));
}

bool is_byte(float x) { return x >= 0 && x <= 255 && x == std::trunc(x); }

// The error for the first bad element or, if there is none, for the norm. `whole`: elements must be
// bytes.
Status bad_element(const RowSource& s, int64_t row, const std::byte* data, bool whole) {
  for (int64_t i = 0; i < s.dimensions; ++i) {
    float x;
    load(data, s.dtype, i, 1, &x);
    const bool is_good = whole ? is_byte(x) : std::isfinite(x);
    if (is_good) continue;
    const int64_t place[] = {s.first + row, i};
    return error(
        Code::kArgument, s.op, s.argument,
        {"% has % at %; each element must be %", s.argument,
         std::isnan(x)   ? "NaN"
         : std::isinf(x) ? (x > 0 ? "Infinity" : "-Infinity")
                         : "a fraction or a number out of range",
         std::span<const int64_t>(place), whole ? "a whole number from 0 to 255" : "finite"});
  }
  return error(
      Code::kArgument, s.op, s.argument,
      {"row % of % is too large: in the type of the index, the sum of its squares must be a "
       "finite float32",
       s.first + row, s.argument});
}

Status zero_row(const RowSource& s, int64_t row) {
  return error(Code::kArgument, s.op, s.argument,
               {"row % of % is 0, or so small that its squares are 0; cosine needs a direction",
                s.first + row, s.argument});
}

// Writes elements of a row, from element `first` on.
struct RowWriter {
  std::byte* to;
  int64_t step, bytes;  // of a unit

  void write(const void* from, int64_t first, int64_t count, int64_t per_unit) const {
    if (to == nullptr) return;
    copy_units(bytes, static_cast<const std::byte*>(from), bytes, to + first / per_unit * step,
               step, (count + per_unit - 1) / per_unit);
  }
};

// Rows of float types.
Status convert_floats(const RowSource& s, int64_t row, const std::byte* data, const RowForm& form,
                      const RowWriter& writer, RowValues* values) {
  alignas(16) float x[kChunk];
  alignas(16) uint16_t halves[kChunk];
  for (int64_t at = 0; at < s.dimensions; at += kChunk) {
    const int64_t count = std::min(kChunk, s.dimensions - at);
    load(data, s.dtype, at, count, x);
    // Widened int8 may have a scale.
    if (s.scales != nullptr)
      for (int64_t i = 0; i < count; ++i) x[i] *= s.scales[row];
    const bool rounds = form.dtype != DType::kFloat32;
    if (rounds) {
      std::fill(x + count, x + kChunk, 0.0F);
      round_elements(form.dtype, x, halves, (count + 7) / 8 * 8);
      load(reinterpret_cast<const std::byte*>(halves), form.dtype, 0, count, x);
    }
#pragma clang loop unroll(disable) vectorize(disable)
    for (int64_t i = 0; i < count; ++i) values->norm += x[i] * x[i];
    writer.write(rounds && !form.widens ? static_cast<void*>(halves) : x, at, count, 1);
  }
  return std::isfinite(values->norm) ? Status{} : bad_element(s, row, data, false);
}

// Rows of 8 bits.
Status convert_bytes(const RowSource& s, int64_t row, const std::byte* data, const RowForm& form,
                     const RowWriter& writer, RowValues* values) {
  alignas(16) float x[kChunk];
  alignas(16) int8_t codes[kChunk + 1];
  const bool is_signed = form.dtype == DType::kInt8,
             quantizes = is_signed && is_search_float(s.dtype);
  if (quantizes) {
    float most = 0, check = 0;
    for (int64_t at = 0; at < s.dimensions; at += kChunk) {
      const int64_t count = std::min(kChunk, s.dimensions - at);
      load(data, s.dtype, at, count, x);
#pragma clang loop unroll(disable) vectorize(disable)
      for (int64_t i = 0; i < count; ++i) {
        most = std::max(most, std::fabs(x[i]));
        check += x[i] * 0;
      }
    }
    if (check != 0) return bad_element(s, row, data, false);  // it is NaN
    values->scale = most == 0 ? 1 : std::max(most / 127, std::numeric_limits<float>::denorm_min());
  } else if (s.scales != nullptr) {
    values->scale = s.scales[row];
    if (!(values->scale > 0) || std::isinf(values->scale)) {
      return error(Code::kArgument, s.op, "scales",
                   {"the scale of row % is not finite or not above 0", s.first + row});
    }
  }
  int32_t norm = 0;
  for (int64_t at = 0; at < s.dimensions; at += kChunk) {
    const int64_t count = std::min(kChunk, s.dimensions - at);
    load(data, s.dtype, at, count, x);
#pragma clang loop unroll(disable) vectorize(disable)
    for (int64_t i = 0; i < count; ++i) {
      float each = x[i];
      if (quantizes) each = std::clamp(std::nearbyint(each / values->scale), -127.0F, 127.0F);
      if (!is_signed && !is_byte(each)) return bad_element(s, row, data, true);
      const auto element = static_cast<int>(each);
      norm += element * element;
      const int stored = element - int8_offset(form.dtype);
      codes[i] = static_cast<int8_t>(stored);
      values->sum += stored;
      values->low = std::min(values->low, stored);
      values->high = std::max(values->high, stored);
    }
    codes[count] = 0;  // the last unit may have one element
    writer.write(codes, at, count, 2);
  }
  values->exact_norm = norm;
  const auto magnitude = static_cast<float>(values->magnitude());
  return std::isfinite(magnitude) ? Status{} : bad_element(s, row, data, false);
}

struct Sections {
  int64_t end;
  size_t take(int64_t bytes) {
    return static_cast<size_t>(std::exchange(end, end + Arena::round_up(bytes)));
  }
};

}  // namespace

Factors RowValues::factors() const {
  return {scale, exact_norm != 0 ? static_cast<double>(exact_norm) : static_cast<double>(norm)};
}

double RowValues::magnitude() const {
  const Factors f = factors();
  return f.scale * f.scale * f.norm;
}

double score_of(Metric metric, double acc, const Factors& query, const Factors& vector) {
  const double scales = query.scale * vector.scale;
  if (metric == Metric::kDot) return acc * scales;
  if (metric == Metric::kCosine)
    return std::clamp(acc / std::sqrt(query.norm * vector.norm), -1.0, 1.0);
  const double square = query.scale * query.scale * query.norm +
                        vector.scale * vector.scale * vector.norm - 2 * scales * acc;
  return std::sqrt(std::max(square, 0.0));
}

Status check_row_type(const char* op, const char* argument, const ConstTensor& rows, DType dtype) {
  const auto found = static_cast<size_t>(rows.dtype);
  if (found >= kDTypeCount ||
      !(is_search_float(rows.dtype) || (rows.dtype == dtype && is_integer(dtype)))) {
    return error(Code::kDType, op, argument,
                 {"% has type %; it must be float32, float16%%", argument,
                  found < kDTypeCount ? dtype_name(rows.dtype) : "unknown",
                  is_integer(dtype) ? ", bfloat16 or " : " or bfloat16",
                  is_integer(dtype) ? dtype_name(dtype) : ""});
  }
  return {};
}

Status convert_row(const RowSource& s, int64_t row, const RowForm& form, std::byte* to,
                   int64_t step, RowValues* values) {
  const std::byte* const data =
      s.data + row * s.dimensions * static_cast<int64_t>(dtype_bytes(s.dtype));
  *values = {};
  const bool is_8bit = is_integer(form.dtype);
  const RowWriter writer{to, step, form.widens ? 4 : unit_bytes(form.dtype)};
  WGEMM_RETURN_IF_ERROR(is_8bit ? convert_bytes(s, row, data, form, writer, values)
                                : convert_floats(s, row, data, form, writer, values));
  if (form.metric == Metric::kCosine && values->magnitude() == 0) return zero_row(s, row);
  return {};
}

Vectors::Vectors(Vectors&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)),
      memory_(std::exchange(other.memory_, nullptr)) {}

Vectors& Vectors::operator=(Vectors&& other) noexcept {
  Vectors taken(std::move(other));
  std::swap(context_, taken.context_);
  std::swap(memory_, taken.memory_);
  return *this;
}

Vectors::~Vectors() {
  if (context_ != nullptr) context_->release(memory_);
}

int64_t Vectors::dimensions() const { return VectorsAccess::header(*this)->dimensions; }
int64_t Vectors::capacity() const { return VectorsAccess::header(*this)->capacity; }
int64_t Vectors::count() const { return VectorsAccess::header(*this)->count; }
size_t Vectors::bytes() const { return VectorsAccess::header(*this)->bytes; }

void* Vectors::detach() {
  context_ = nullptr;
  return std::exchange(memory_, nullptr);
}

Vectors Vectors::view(void* memory) {
  Vectors vectors;
  vectors.memory_ = memory;
  return vectors;
}

Status VectorsAccess::make(Context& context, const VectorsArgs& args, Vectors* vectors) {
  const DType type = args.dtype, rescore = args.rescore.value_or(DType::kFloat32);
  const bool rescores = args.rescore.has_value();
  VectorsHeader h{.dtype = type,
                  .metric = args.metric,
                  .rescores = rescores,
                  .rescore = rescore,
                  .dimensions = args.dimensions,
                  .capacity = args.capacity};
  const PanelLayout layout = storage_layout(type);
  // A scan may read some numbers after the last one.
  const int64_t panels = (args.capacity + kWidth - 1) / kWidth,
                column = (panels + 1) * kWidth * int64_t{sizeof(float)},
                panel = (layout.header + units_of(type, args.dimensions) * layout.kr * kWidth) *
                        layout.element_bytes;
  Sections next{Arena::round_up(int64_t{sizeof(VectorsHeader)})};
  h.panels_at = next.take(panels * panel);
  h.norms_at = next.take(column);
  h.f_at = next.take(column);
  h.h_at = next.take(column);
  if (type == DType::kInt8) h.scales_at = next.take(column);
  if (h.is_8bit()) h.sums_at = next.take(column);
  if (rescores) {
    h.rescored_at =
        next.take(args.capacity * args.dimensions * static_cast<int64_t>(dtype_bytes(rescore)));
    h.rescored_norms_at = next.take(column);
  }
  h.bytes = static_cast<size_t>(next.end);
  void* const memory =
      std::in_range<std::ptrdiff_t>(next.end) ? context.allocate(h.bytes) : nullptr;
  if (memory == nullptr) {
    return error(Code::kOutOfMemory, "make_vectors", "",
                 {"no memory for % vectors of % dimensions; % bytes are in use", args.capacity,
                  args.dimensions, static_cast<int64_t>(context.bytes_in_use())});
  }
  std::memcpy(memory, &h, sizeof(h));
  *vectors = own(context, memory);
  return {};
}

Status VectorsAccess::append(Vectors* vectors, const AppendArgs& args) {
  const char* op = "append";
  VectorsHeader& v = *header(*vectors);
  const ConstTensor& rows = args.vectors;
  WGEMM_RETURN_IF_ERROR(check_row_type(op, "vectors", rows, v.dtype));
  const int64_t count = rows.dims[0];
  const RowSource source{.op = op,
                         .argument = "vectors",
                         .data = static_cast<const std::byte*>(rows.data),
                         .dtype = rows.dtype,
                         .dimensions = v.dimensions,
                         .scales = rows.dtype == DType::kInt8 ? args.scales : nullptr,
                         .first = args.first};
  RowSource rescored = source;
  if (args.rescored != nullptr) {
    rescored.data = static_cast<const std::byte*>(args.rescored);
    rescored.dtype = v.rescore;
    rescored.scales = nullptr;
  }
  int low = v.low, high = v.high;
  double greatest = v.greatest;
  const int64_t unit = unit_bytes(v.dtype), step = kWidth * unit, header = header_units(v.dtype);
  for (int64_t row = 0; row < count; ++row) {
    const int64_t i = v.count + row;
    std::byte* const lane = lane_of(v, i);
    std::memset(lane, 0, static_cast<size_t>(header * unit));
    RowValues values;
    WGEMM_RETURN_IF_ERROR(
        convert_row(source, row, {v.dtype, v.metric}, lane + header * step, step, &values));
    const double magnitude = values.magnitude(), scale = values.scale;
    low = std::min(low, values.low);
    high = std::max(high, values.high);
    greatest = std::max(greatest, magnitude);
    const bool is_8bit = v.is_8bit();
    if (is_8bit) {
      v.at<int32_t>(v.norms_at)[i] = values.exact_norm;
      v.at<int32_t>(v.sums_at)[i] = values.sum;
    } else {
      v.at<float>(v.norms_at)[i] = values.norm;
    }
    if (v.scales_at != 0) v.at<float>(v.scales_at)[i] = values.scale;
    v.at<float>(v.f_at)[i] =
        static_cast<float>(v.metric == Metric::kCosine ? 1 / std::sqrt(v.norm(i)) : scale);
    v.at<float>(v.h_at)[i] = v.metric == Metric::kEuclidean ? static_cast<float>(magnitude / 2) : 0;
    if (!v.rescores) continue;
    const auto bytes = static_cast<int64_t>(dtype_bytes(v.rescore));
    WGEMM_RETURN_IF_ERROR(convert_row(rescored, row, {v.rescore, v.metric},
                                      const_cast<std::byte*>(v.rescored(i)), bytes, &values));
    v.at<float>(v.rescored_norms_at)[i] = values.norm;
  }
  v.low = low;
  v.high = high;
  v.greatest = greatest;
  v.count += count;
  return {};
}

void read(const Vectors& vectors, int64_t first, int64_t count, void* rows, float* scales,
          void* rescored) {
  const VectorsHeader& v = *VectorsAccess::header(vectors);
  const int64_t unit = unit_bytes(v.dtype), step = kWidth * unit,
                row_bytes = v.dimensions * static_cast<int64_t>(dtype_bytes(v.dtype)),
                full = row_bytes / unit, rest = row_bytes % unit;
  auto* to = static_cast<std::byte*>(rows);
  for (int64_t i = first; to != nullptr && i < first + count; ++i, to += row_bytes) {
    const std::byte* const lane = lane_of(v, i) + header_units(v.dtype) * step;
    copy_units(unit, lane, step, to, unit, full);
    if (rest != 0) to[row_bytes - 1] = lane[full * step];
    if (v.dtype == DType::kUInt8)
      for (int64_t k = 0; k < row_bytes; ++k) to[k] ^= std::byte{0x80};
  }
  if (scales != nullptr && v.scales_at != 0)
    std::copy_n(v.at<float>(v.scales_at) + first, count, scales);
  if (rescored != nullptr && v.rescores) {
    std::memcpy(rescored, v.rescored(first),
                static_cast<size_t>(v.rescored(first + count) - v.rescored(first)));
  }
}

void truncate(Vectors* vectors, int64_t count) {
  VectorsHeader& v = *VectorsAccess::header(*vectors);
  v.count = std::clamp<int64_t>(count, 0, v.count);
}

void compact(std::span<Vectors* const> segments, std::span<const uint32_t* const> filters) {
  size_t segment = 0;
  int64_t place = 0;  // where the next vector goes
  for (size_t s = 0; s < segments.size(); ++s) {
    const VectorsHeader& from = *VectorsAccess::header(*segments[s]);
    const int64_t count = from.count;  // the segment may receive vectors meanwhile
    const int64_t unit = unit_bytes(from.dtype), step = kWidth * unit,
                  units = header_units(from.dtype) + units_of(from.dtype, from.dimensions);
    for (int64_t i = 0; i < count; ++i) {
      if (filters[s] != nullptr && (filters[s][i / 32] >> i % 32 & 1) == 0) continue;
      VectorsHeader* to = VectorsAccess::header(*segments[segment]);
      if (place == to->capacity) {
        to->count = place;
        place = 0;
        to = VectorsAccess::header(*segments[++segment]);
      }
      const int64_t j = place++;
      to->low = std::min(to->low, from.low);
      to->high = std::max(to->high, from.high);
      to->greatest = std::max(to->greatest, from.greatest);
      if (to == &from && j == i) continue;
      copy_units(unit, lane_of(from, i), step, lane_of(*to, j), step, units);
      const auto copy = [&](size_t of_from, size_t of_to) {
        if (of_to != 0) to->at<uint32_t>(of_to)[j] = from.at<uint32_t>(of_from)[i];
      };
      copy(from.norms_at, to->norms_at);
      copy(from.f_at, to->f_at);
      copy(from.h_at, to->h_at);
      copy(from.scales_at, to->scales_at);
      copy(from.sums_at, to->sums_at);
      copy(from.rescored_norms_at, to->rescored_norms_at);
      if (from.rescores) {
        std::memcpy(const_cast<std::byte*>(to->rescored(j)), from.rescored(i),
                    static_cast<size_t>(from.rescored(1) - from.rescored(0)));
      }
    }
  }
  for (; segment < segments.size(); ++segment, place = 0)
    VectorsAccess::header(*segments[segment])->count = place;
}

}  // namespace wgemm
