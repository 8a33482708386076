// Runs a problem block by block, or only counts the bytes that this moves.
#include "out_of_core/out_of_core.h"

#include <algorithm>

#include "base/arena.h"
#include "base/error.h"
#include "execute/execute.h"
#include "execute/quantize_a.h"
#include "out_of_core/choose_block_sizes.h"

namespace wgemm {
namespace {

// Bytes. More memory is not faster: with this much, blocks have about 4000 rows and columns, and
// copying is a hundredth of the work. So this follows from the cost of copying, not from a cache.
constexpr int64_t kMostMemory = int64_t{256} << 20;

// Explanation::moved_bytes is at most this.
constexpr double kMostMoved = 0x1p62;

class BlockLoop {
 public:
  // `memory` has blocked->bytes(). Both null: only counts.
  BlockLoop(BlockedProblem* blocked, Context* context, std::byte* memory)
      : blocked_(*blocked),
        p_(blocked->problem()),
        context_(context),
        scratch_(memory == nullptr ? nullptr : blocked->set_memory(memory)) {}

  // Widens `range` by all elements of A, which the call quantizes. This moves all of A once.
  void find_range(std::span<const BatchAxis> axes, const ProductOffsets& at, FloatRange* range) {
    if (!axes.empty()) {
      for (int64_t i = 0; i < (axes[0].a == 0 ? 1 : axes[0].size); ++i)
        find_range(axes.subspan(1), advanced(at, axes[0], i), range);
      return;
    }
    const BlockSizes& sizes = blocked_.sizes();
    for (BlockSizes from; from.m < p_.m; from.m += sizes.m) {
      for (from.k = 0; from.k < p_.k; from.k += sizes.k) {
        const BlockSizes size{std::min(sizes.m, p_.m - from.m), sizes.n,
                              std::min(sizes.k, p_.k - from.k)};
        const Problem block = blocked_.block(at, from, size);
        blocked_.a.read();
        add_range(block, range);
      }
    }
    blocked_.a.forget();
  }
  // Returns the bytes moved so far, which may be more than an integer holds.
  double run() {
    run_products(p_.batch, {});
    return moved_;
  }

 private:
  bool only_counts() const { return context_ == nullptr; }

  // Calls `body` with each index below `count`. `step`: elements by which operands advance from one
  // index to the next. All indices except the first and the last move the same number of bytes. So
  // if it only counts, it calls `body` with 0, 1 and the last, and multiplies the bytes of 1.
  template <typename Body>
  void for_each_index(int64_t count, const ProductOffsets& step, const Body& body) {
    for (int64_t i = 0; i < count; ++i) {
      const double before = moved_;
      body(i);
      const int64_t skipped = count - 3;
      if (!only_counts() || i != 1 || skipped <= 0) continue;
      moved_ += (moved_ - before) * static_cast<double>(skipped);
      blocked_.a.advance_held(step.a * skipped);
      blocked_.b.advance_held(step.b * skipped);
      blocked_.c.advance_held(step.c * skipped);
      i += skipped;
    }
  }

  ProductOffsets advanced(ProductOffsets at, const BatchAxis& axis, int64_t steps) const {
    at.a += axis.a * steps;
    at.b += axis.b * steps;
    at.c += axis.c * steps;
    at.y += axis.y * steps;
    for (int i = 0; i < kQuantizationParams; ++i) at.params.at[i] += axis.params[i] * steps;
    return at;
  }

  void run_products(std::span<const BatchAxis> axes, const ProductOffsets& at) {
    if (axes.empty()) return run_product(at);
    for_each_index(axes[0].size, advanced({}, axes[0], 1),
                   [&](int64_t i) { run_products(axes.subspan(1), advanced(at, axes[0], i)); });
  }

  void run_product(const ProductOffsets& at) {
    const auto& sizes = blocked_.sizes();
    const int64_t &m = sizes.m, &n = sizes.n, &k = sizes.k;  // Clang 14 captures no bindings
    const Operand &a = p_.a, &b = p_.b.plain, &c = p_.epilogue.c;
    for_each_index(count_of(p_.n, n), {0, n * b.col_stride, n * c.col_stride}, [&](int64_t j) {
      for_each_index(count_of(p_.m, m), {m * a.row_stride, 0, m * c.row_stride}, [&](int64_t i) {
        for_each_index(count_of(p_.k, k), {k * a.col_stride, k * b.row_stride}, [&](int64_t step) {
          const BlockSizes from{i * m, j * n, step * k};
          run_block(
              at, from,
              {std::min(m, p_.m - from.m), std::min(n, p_.n - from.n), std::min(k, p_.k - from.k)});
        });
        moved_ += static_cast<double>(blocked_.y.write());
      });
    });
  }

  void run_block(const ProductOffsets& at, const BlockSizes& from, const BlockSizes& size) {
    const Problem problem = blocked_.block(at, from, size);
    moved_ += static_cast<double>(blocked_.a.read() + blocked_.b.read());
    if (problem.carry.ends && p_.epilogue.has_c) moved_ += static_cast<double>(blocked_.c.read());
    if (!only_counts()) execute(*context_, problem, blocked_.plan_of(problem, size), scratch_);
  }

  BlockedProblem& blocked_;
  const Problem& p_;
  Context* const context_;
  std::byte* const scratch_;
  double moved_ = 0;  // bytes
};

// Bytes for blocks and scratch, after the caller has allocated `reserved` bytes.
int64_t room_of(const Context& context, int64_t reserved = 0) {
  const auto room = static_cast<int64_t>(std::min(context.room(), size_t{PTRDIFF_MAX}));
  return std::clamp<int64_t>(
      reserved == 0 ? room : room - std::min(room, Arena::taken_by(reserved)), 0, kMostMemory);
}

// Bytes of all elements of A, which the call quantizes. An axis with stride 0 counts once.
double bytes_of_a(const Problem& problem) {
  double bytes = sizeof(float);
  const auto add = [&](int64_t stride, int64_t size) {
    bytes *= static_cast<double>(stride == 0 ? std::min<int64_t>(size, 1) : size);
  };
  add(problem.a.row_stride, problem.m);
  add(problem.a.col_stride, problem.k);
  for (const BatchAxis& axis : problem.batch) add(axis.a, axis.size);
  return bytes;
}

Status no_blocks(const Context& context, const char* op, int64_t bytes) {
  return error(Code::kOutOfMemory, op, "",
               {"no memory for % bytes, which the smallest blocks take; % bytes are in use", bytes,
                static_cast<int64_t>(context.bytes_in_use())});
}

}  // namespace

Status run_out_of_core(Context& context, const char* op, const Problem& problem,
                       const OutOfCoreOperands& out_of_core) {
  if (problem.m == 0 || problem.n == 0) return {};
  Problem scaled = problem;
  for (int64_t room = room_of(context);;) {
    BlockedProblem blocked(context, scaled, out_of_core);
    const bool fits = choose_block_sizes(&blocked, room);
    const int64_t bytes = blocked.bytes();
    if (!fits) return no_blocks(context, op, bytes);
    Arena arena(context, static_cast<size_t>(bytes));
    if (arena.ok()) {
      BlockLoop loop(&blocked, &context, arena.data());
      if (scaled.quantization.quantizes_a) {
        FloatRange range;
        loop.find_range(scaled.batch, {}, &range);
        WGEMM_RETURN_IF_ERROR(set_a_scale(op, range, &scaled.quantization));
      }
      loop.run();
      return {};
    }
    room = bytes / 4 * 3;  // the system has less than the limit allows
  }
}

Status plan_out_of_core(const Context& context, const char* op, const Problem& problem,
                        const OutOfCoreOperands& out_of_core, int64_t reserved,
                        OutOfCorePlan* result) {
  if (problem.m == 0 || problem.n == 0) return {};
  BlockedProblem blocked(context, problem, out_of_core);
  const bool fits = choose_block_sizes(&blocked, room_of(context, reserved));
  result->bytes = blocked.bytes();
  if (!fits) return no_blocks(context, op, result->bytes);
  const BlockSizes& sizes = blocked.sizes();
  result->plan = blocked.plan_of(blocked.block({}, {}, sizes), sizes);
  result->transposed = blocked.transposes();
  double moved = BlockLoop(&blocked, nullptr, nullptr).run();
  if (problem.quantization.quantizes_a && blocked.a.is_out_of_core()) moved += bytes_of_a(problem);
  result->moved_bytes = static_cast<int64_t>(std::min(moved, kMostMoved));
  return {};
}

}  // namespace wgemm
