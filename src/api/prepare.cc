// The public PreparedCall: a PlannedCall in memory of the context.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "api/run.h"
#include "base/arena.h"
#include "base/error.h"

namespace wgemm {

// What a PreparedCall owns. The copies of b_scale and b_zero_point follow it in memory.
struct PreparedCall::Block {
  Context* context;
  int threads;  // of the context, when the plan was made
  PlannedCall planned;
};

namespace {

// The destructor of PreparedCall only releases the memory.
static_assert(std::is_trivially_destructible_v<PlannedCall>);

// Number of elements of a scale or zero point for `n` columns. One may serve all columns.
int64_t elements_of(const Operand& row, int64_t n) {
  return row.base == nullptr || n == 0 ? 0 : row.col_stride == 0 ? 1 : n;
}

int64_t bytes_of_row(const Operand& row, int64_t n) {
  return elements_of(row, n) * static_cast<int64_t>(dtype_bytes(row.dtype));
}

// Copies the elements to `memory`, contiguous, and makes `row` stand for the copy.
void move_row(Operand* row, int64_t n, std::byte* memory) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(row->dtype));
  const int64_t count = elements_of(*row, n);
  if (count == 0) return;
  for (int64_t col = 0; col < count; ++col)
    std::copy_n(row->block(0, col, 1, 1).data, bytes, memory + col * bytes);
  row->base = memory;
  if (row->col_stride != 0) row->col_stride = 1;
}

// Copies a planned call. PlannedCall has no copy constructor, since its batch points into itself.
void copy_call(const PlannedCall& from, PlannedCall* to) {
  const std::span<const BatchAxis> batch = from.call.problem.batch;
  to->op = from.op;
  to->call.problem = from.call.problem;
  to->out_of_core = from.out_of_core;
  to->plan = from.plan;
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
  const Quantization& q = problem.quantization;
  const int64_t scales_at = Arena::round_up(int64_t{sizeof(PreparedCall::Block)}),
                zero_points_at = scales_at + bytes_of_row(q.b_scale, problem.n),
                bytes = zero_points_at + bytes_of_row(q.b_zero_point, problem.n);
  void* memory =
      std::in_range<size_t>(bytes) ? context.allocate(static_cast<size_t>(bytes)) : nullptr;
  if (memory == nullptr) {
    return error(Code::kOutOfMemory, planned.op, "",
                 {"no memory for a prepared call of ", bytes, " bytes; ",
                  static_cast<int64_t>(context.bytes_in_use()), " bytes are in use"});
  }
  PreparedCall made;
  made.block_ = std::construct_at(static_cast<PreparedCall::Block*>(memory));
  made.block_->context = &context;
  made.block_->threads = context.threads();
  copy_call(planned, &made.block_->planned);
  Quantization& kept = made.block_->planned.call.problem.quantization;
  move_row(&kept.b_scale, problem.n, static_cast<std::byte*>(memory) + scales_at);
  move_row(&kept.b_zero_point, problem.n, static_cast<std::byte*>(memory) + zero_points_at);
  *call = std::move(made);
  return {};
}

Status PreparedAccess::run(PreparedCall& call) {
  if (call.block_ == nullptr) {
    return error(Code::kArgument, "run", "call",
                 {"call is empty; it must come from a prepare() that succeeded"});
  }
  auto& [context, threads, planned] = *call.block_;
  if (threads != context->threads()) {
    if (!planned.out_of_core.any()) planned.plan = make_plan(planned.call.problem, *context);
    threads = context->threads();
  }
  return wgemm::run(*context, planned);
}

PreparedCall::PreparedCall(PreparedCall&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)) {}

PreparedCall& PreparedCall::operator=(PreparedCall&& other) noexcept {
  PreparedCall taken(std::move(other));
  std::swap(block_, taken.block_);
  return *this;
}

PreparedCall::~PreparedCall() {
  if (block_ != nullptr) block_->context->release(block_);
}

Status prepare(Context& context, const GemmArgs& args, PreparedCall* call) {
  return PreparedAccess::prepare(context, args, call);
}

Status prepare(Context& context, const QGemmArgs& args, PreparedCall* call) {
  return PreparedAccess::prepare(context, args, call);
}

Status prepare(Context& context, const MatMulArgs& args, PreparedCall* call) {
  return PreparedAccess::prepare(context, args, call);
}

Status run(PreparedCall& call) { return PreparedAccess::run(call); }

}  // namespace wgemm
