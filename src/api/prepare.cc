// The public PreparedCall: a PlannedCall in memory of the context.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "api/run.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/types.h"

namespace wgemm {

// A PreparedCall owns one of these. The copies of scales and zero points follow it in memory.
struct PreparedCall::State {
  Context* context;
  PlannedCall planned;
};

namespace {

// The destructor of PreparedCall only releases the memory.
static_assert(std::is_trivially_destructible_v<PlannedCall>);

// Copies the elements of a scale or zero point, of all products of a batch, to contiguous memory.
class ParamCopy {
 public:
  ParamCopy(const Problem& problem, int which) : p_(problem), which_(which) {}

  // Bytes of a copy.
  int64_t bytes() const {
    int64_t elements = from().base == nullptr ? 0 : length();
    for (const BatchAxis& axis : p_.batch) elements *= axis.params[which_] == 0 ? 1 : axis.size;
    return elements * element_bytes();
  }

  // Copies the elements to `memory`, and makes `call` stand for the copy. It has the batch
  // axes of the problem.
  void move_to(std::byte* memory, MatMulProblem* call) const {
    if (bytes() == 0) return;
    Operand& to = call->problem.quantization.params[which_];
    copy(p_.batch, from(), memory);
    to.base = memory;
    if (to.row_stride != 0) to.row_stride = 1;
    if (to.col_stride != 0) to.col_stride = 1;
    int64_t stride = length();
    for (size_t axis = p_.batch.size(); axis-- > 0;) {
      int64_t& step = call->axes[axis].params[which_];
      if (step == 0) continue;
      step = stride;
      stride *= p_.batch[axis].size;
    }
  }

 private:
  const Operand& from() const { return p_.quantization.params[which_]; }
  int64_t element_bytes() const { return static_cast<int64_t>(dtype_bytes(from().dtype)); }
  // Elements of one product.
  int64_t length() const {
    return (from().row_stride == 0 ? 1 : p_.m) * (from().col_stride == 0 ? 1 : p_.n);
  }
  // Returns the end of what it copied.
  std::byte* copy(std::span<const BatchAxis> axes, const Operand& param, std::byte* to) const {
    if (axes.empty()) {
      const int64_t stride = param.row_stride + param.col_stride;
      for (int64_t i = 0; i < length(); ++i, to += element_bytes())
        std::copy_n(param.at(i * stride).base, element_bytes(), to);
      return to;
    }
    const int64_t step = axes[0].params[which_];
    for (int64_t i = 0; i < (step == 0 ? 1 : axes[0].size); ++i)
      to = copy(axes.subspan(1), param.at(i * step), to);
    return to;
  }

  const Problem& p_;
  const int which_;
};

// Copies a planned call. PlannedCall has no copy constructor, since its batch points into itself.
void copy_call(const PlannedCall& from, PlannedCall* to) {
  const std::span<const BatchAxis> batch = from.call.problem.batch;
  to->op = from.op;
  to->call.problem = from.call.problem;
  to->out_of_core = from.out_of_core;
  to->plan = from.plan;
  to->generation = from.generation;
  std::ranges::copy(batch, to->call.axes);
  to->call.problem.batch = {to->call.axes, batch.size()};
}

}  // namespace

// Has access to the members of PreparedCall.
struct PreparedAccess {
  template <typename Args>
  static Status prepare(Context& context, const Args& args, PreparedCall* call);
  static Status run(PreparedCall& call);
};

template <typename Args>
Status PreparedAccess::prepare(Context& context, const Args& args, PreparedCall* call) {
  PlannedCall planned;
  WGEMM_RETURN_IF_ERROR(plan_call(context, args, &planned));
  const Problem& problem = planned.call.problem;
  int64_t bytes = Arena::round_up(int64_t{sizeof(PreparedCall::State)});
  int64_t places[kQuantizationParams];
  for (int i = 0; i < kQuantizationParams; ++i) {
    places[i] = bytes;
    bytes += Arena::round_up(ParamCopy(problem, i).bytes());
  }
  void* memory =
      std::in_range<size_t>(bytes) ? context.allocate(static_cast<size_t>(bytes)) : nullptr;
  if (memory == nullptr) {
    return error(Code::kOutOfMemory, planned.op, "",
                 {"no memory for a prepared call of % bytes; % bytes are in use", bytes,
                  static_cast<int64_t>(context.bytes_in_use())});
  }
  PreparedCall made;
  made.state_ = std::construct_at(static_cast<PreparedCall::State*>(memory));
  made.state_->context = &context;
  copy_call(planned, &made.state_->planned);
  for (int i = 0; i < kQuantizationParams; ++i)
    ParamCopy(problem, i)
        .move_to(static_cast<std::byte*>(memory) + places[i], &made.state_->planned.call);
  *call = std::move(made);
  return {};
}

Status PreparedAccess::run(PreparedCall& call) {
  if (call.state_ == nullptr) {
    return error(Code::kArgument, "run", "call",
                 {"call is empty; it must come from a prepare() that succeeded"});
  }
  auto& [context, planned] = *call.state_;
  plan_again(*context, &planned);
  return wgemm::run(*context, planned);
}

PreparedCall::PreparedCall(PreparedCall&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)) {}

PreparedCall& PreparedCall::operator=(PreparedCall&& other) noexcept {
  PreparedCall taken(std::move(other));
  std::swap(state_, taken.state_);
  return *this;
}

PreparedCall::~PreparedCall() {
  if (state_ != nullptr) state_->context->release(state_);
}

Status prepare(Context& context, const GemmArgs& args, PreparedCall* call) {
  return PreparedAccess::prepare(context, args, call);
}

Status prepare(Context& context, const SyrkArgs& args, PreparedCall* call) {
  return PreparedAccess::prepare(context, args, call);
}

Status prepare(Context& context, const QGemmArgs& args, PreparedCall* call) {
  return PreparedAccess::prepare<QuantizedArgs>(context, args, call);
}

Status prepare(Context& context, const MatMulArgs& args, PreparedCall* call) {
  return PreparedAccess::prepare(context, args, call);
}

Status prepare(Context& context, const IntegerMatMulArgs& args, PreparedCall* call) {
  return PreparedAccess::prepare<QuantizedArgs>(context, args, call);
}

Status prepare(Context& context, const MatMulNBitsArgs& args, PreparedCall* call) {
  return PreparedAccess::prepare(context, args, call);
}

Status run(PreparedCall& call) { return PreparedAccess::run(call); }

}  // namespace wgemm
