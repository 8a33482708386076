// Copying is small beside computing where blocks of Y are large and about square: each element of A
// is brought once for every block of columns, each of B once for every block of rows. Of K, blocks
// may be smaller, as sums are carried on from one to the next.
#include "out_of_core/out_of_core.h"

#include <algorithm>
#include <utility>

#include "base/arena.h"
#include "base/error.h"
#include "base/types.h"
#include "execute/execute.h"

namespace wgemm {
namespace {

// Blocks are multiples of these, so that they begin with a panel of whatever kernel.
constexpr int64_t kStep = 16, kStepOfK = 64;

// More memory than this makes nothing faster: blocks of 4000 rows and columns, where copying is a
// hundredth of the work.
constexpr int64_t kMostMemory = int64_t{256} << 20;

// What a run costs besides its elements, as bytes that are copied meanwhile.
constexpr double kBytesOfRun = 512;

// The most bytes that an Explanation has moved.
constexpr double kMostMoved = 0x1p62;

struct Sizes {
  int64_t m = 0, n = 0, k = 0;
};

// Equal blocks that cut `total`, none longer than `longest`, a multiple of `step`.
constexpr int64_t equal_blocks(int64_t total, int64_t longest, int64_t step) {
  if (total <= longest) return total;
  const int64_t count = (total + longest - 1) / longest;
  return ((total + count - 1) / count + step - 1) / step * step;
}

constexpr int64_t count_of(int64_t total, int64_t size) {
  return size == 0 ? 1 : (total + size - 1) / size;
}

// An operand of the whole problem, and the block of it that is in memory.
template <typename Byte>
class Stage {
 public:
  Stage(const BasicOperand<Byte>& operand, const OutOfCore* out_of_core)
      : whole_(operand), out_of_core_(out_of_core) {}

  bool is_out_of_core() const { return out_of_core_ != nullptr; }

  // Bytes of memory for blocks of this size, and what it costs to move one.
  int64_t room(int64_t rows, int64_t cols) const {
    return is_out_of_core() ? Arena::round_up(bytes(runs(0, 0, 0, rows, cols))) : 0;
  }
  double cost(int64_t rows, int64_t cols) const {
    if (!is_out_of_core()) return 0;
    const Runs block = runs(0, 0, 0, rows, cols);
    return static_cast<double>(bytes(block)) + kBytesOfRun * static_cast<double>(block.count);
  }

  // Null: nothing is moved, only counted.
  void set_memory(std::byte* memory) { memory_ = memory; }
  std::byte* memory() const { return memory_; }

  // Rows are runs where the elements of one are the nearer ones. What has stride 0 is brought once.
  bool runs_along_rows() const {
    return whole_.row_stride == 0 ||
           (whole_.col_stride != 0 && whole_.col_stride <= whole_.row_stride);
  }

  // The block from (row, col) on of the matrix that begins `first` elements behind the first;
  // elements are where it says once they are read().
  BasicOperand<Byte> block(int64_t first, int64_t row, int64_t col, int64_t rows, int64_t cols) {
    if (!is_out_of_core())
      return whole_.at(first + row * whole_.row_stride + col * whole_.col_stride);
    wanted_ = runs(first, row, col, rows, cols);
    const int64_t row_stride = runs_along_rows() ? wanted_.length : 1,
                  col_stride = runs_along_rows() ? 1 : wanted_.length;
    return {memory_, whole_.dtype, whole_.row_stride == 0 ? 0 : row_stride,
            whole_.col_stride == 0 ? 0 : col_stride};
  }

  // Moves the block that was asked for last, unless it is there; gives the bytes moved.
  int64_t read() {
    if (!is_out_of_core() || wanted_ == held_) return 0;
    held_ = wanted_;
    return move();
  }
  // As if the block that is there lay so many elements further.
  void skip(int64_t elements) { held_.offset += elements; }
  int64_t write() { return is_out_of_core() ? move() : 0; }

 private:
  int64_t move() {
    Runs runs = wanted_;
    if (runs.length == 1) {  // the runs are one
      std::swap(runs.count, runs.length);
      std::swap(runs.run_stride, runs.stride);
    } else if (runs.run_stride == runs.length * runs.stride) {
      runs.length *= std::exchange(runs.count, 1);
    }
    if (memory_ != nullptr && bytes(runs) != 0)
      out_of_core_->move(out_of_core_->caller, runs, memory_);
    return bytes(runs);
  }

  int64_t bytes(const Runs& runs) const {
    return runs.count * runs.length * static_cast<int64_t>(dtype_bytes(whole_.dtype));
  }

  Runs runs(int64_t first, int64_t row, int64_t col, int64_t rows, int64_t cols) const {
    const auto& [base, dtype, row_stride, col_stride] = whole_;
    Runs runs{first + row * row_stride + col * col_stride, row_stride == 0 ? 1 : rows,
              col_stride == 0 ? 1 : cols, row_stride, col_stride};
    if (!runs_along_rows()) {
      std::swap(runs.count, runs.length);
      std::swap(runs.run_stride, runs.stride);
    }
    return runs;
  }

  const BasicOperand<Byte> whole_;
  const OutOfCore* const out_of_core_;
  std::byte* memory_ = nullptr;
  Runs wanted_{}, held_{};  // of those that memory holds; at first of no elements
};

class OutOfCoreProduct {
 public:
  // Chooses blocks for so much memory.
  OutOfCoreProduct(const Context& context, const Problem& problem,
                   const OutOfCoreOperands& out_of_core, int64_t room)
      : context_(context),
        p_(problem),
        a_(problem.a, out_of_core.a),
        b_(problem.b.plain, problem.b.is_packed() ? nullptr : out_of_core.b),
        c_(problem.epilogue.c, problem.epilogue.has_c ? out_of_core.c : nullptr),
        y_(problem.y, out_of_core.y),
        acc_bytes_(static_cast<int64_t>(dtype_bytes(accumulator_type(problem.compute)))),
        shares_sums_(out_of_core.y != nullptr && y_.runs_along_rows() && p_.n >= kStep &&
                     dtype_bytes(p_.y.dtype) == static_cast<size_t>(acc_bytes_)) {
    choose(room);
  }

  // False: there is too little memory for the smallest blocks, which need bytes().
  bool fits() const { return fits_; }
  int64_t bytes() const { return bytes_; }

  // Of the largest block.
  Plan plan(bool* is_transposed) {
    const Problem largest = block({}, {}, sizes_);
    *is_transposed = largest.m != sizes_.m || largest.n != sizes_.n;
    return plan_of(largest, sizes_);
  }

  // Computes in `memory` of bytes(), or with null only counts. Gives the bytes moved, which may be
  // more than an integer holds.
  double run(Context* context, std::byte* memory) {
    if (memory != nullptr) {
      const auto take = [&](int64_t bytes) { return std::exchange(memory, memory + bytes); };
      a_.set_memory(take(a_.room(sizes_.m, sizes_.k)));
      b_.set_memory(take(b_.room(sizes_.k, sizes_.n)));
      c_.set_memory(take(c_.room(sizes_.m, sizes_.n)));
      y_.set_memory(take(y_.room(sizes_.m, sizes_.n)));
      sums_ = shares_sums_ ? y_.memory() : take(sums_room(sizes_));
    }
    scratch_ = memory;
    moved_ = 0;
    run_products(context, p_.batch, {});
    return moved_;
  }

 private:
  // Of a product of the batch, from the first: elements, of packed weights matrices.
  struct Offsets {
    int64_t a = 0, b = 0, c = 0, y = 0;
  };

  // Calls `body` with each number below `count`; `step` is how far the operands' elements are moved
  // on by each. Where nothing is computed the second stands for all that are between it and the
  // last.
  template <typename Body>
  void repeat(int64_t count, const Offsets& step, const Body& body) {
    for (int64_t i = 0; i < count; ++i) {
      const double before = moved_;
      const int64_t skipped = count - 3;
      body(i);
      if (scratch_ != nullptr || i != 1 || skipped <= 0) continue;
      moved_ += (moved_ - before) * static_cast<double>(skipped);
      a_.skip(step.a * skipped);
      b_.skip(step.b * skipped);
      c_.skip(step.c * skipped);
      i += skipped;
    }
  }

  void run_products(Context* context, std::span<const BatchAxis> axes, const Offsets& at) {
    if (axes.empty()) return run_product(context, at);
    const BatchAxis& axis = axes[0];
    repeat(axis.size, {axis.a, axis.b, axis.c, axis.y}, [&](int64_t i) {
      run_products(context, axes.subspan(1),
                   {at.a + i * axis.a, at.b + i * axis.b, at.c + i * axis.c, at.y + i * axis.y});
    });
  }

  void run_product(Context* context, const Offsets& at) {
    const int64_t &m = sizes_.m, &n = sizes_.n, &k = sizes_.k;  // Clang 14 captures no bindings
    const Operand &a = p_.a, &b = p_.b.plain, &c = p_.epilogue.c;
    repeat(count_of(p_.n, n), {0, n * b.col_stride, n * c.col_stride, 0}, [&](int64_t col) {
      repeat(count_of(p_.m, m), {m * a.row_stride, 0, m * c.row_stride, 0}, [&](int64_t row) {
        repeat(count_of(p_.k, k), {k * a.col_stride, k * b.row_stride, 0, 0}, [&](int64_t step) {
          const Sizes from{row * m, col * n, step * k};
          run_block(
              context, at, from,
              {std::min(m, p_.m - from.m), std::min(n, p_.n - from.n), std::min(k, p_.k - from.k)});
        });
        moved_ += static_cast<double>(y_.write());
      });
    });
  }

  void run_block(Context* context, const Offsets& at, const Sizes& from, const Sizes& size) {
    const Problem problem = block(at, from, size);
    moved_ += static_cast<double>(a_.read() + b_.read());
    if (problem.carry.ends && p_.epilogue.has_c) moved_ += static_cast<double>(c_.read());
    if (scratch_ != nullptr) execute(*context, problem, plan_of(problem, size), scratch_);
  }

  // That many rows, columns and steps of k from there on, as a problem of its own.
  Problem block(const Offsets& at, const Sizes& from, const Sizes& size) {
    Problem other = p_;
    other.batch = {};
    other.m = size.m;
    other.n = size.n;
    other.k = size.k;
    other.a = a_.block(at.a, from.m, from.k, size.m, size.k);
    if (p_.b.is_packed()) {
      other.b.packed = p_.b.packed.at(at.b).from(from.k, from.n);
    } else {
      other.b.plain = b_.block(at.b, from.k, from.n, size.k, size.n);
    }
    if (p_.epilogue.has_c) other.epilogue.c = c_.block(at.c, from.m, from.n, size.m, size.n);
    other.y = y_.block(at.y, from.m, from.n, size.m, size.n);
    Quantization& q = other.quantization;
    q.b_zero_point = q.b_zero_point.at(from.n * q.b_zero_point.col_stride);
    q.b_scale = q.b_scale.at(from.n * q.b_scale.col_stride);
    if (sizes_.k < p_.k) {
      // Of a problem that is only planned, some place that is not null.
      other.carry = {sums_ == nullptr ? &nowhere_ : sums_, from.k == 0, from.k + size.k == p_.k};
    }
    if (p_.n < kStep) transpose_if_faster(&other);
    return other;
  }

  // The kernel is that of the first block of K, for all: kernels differ in what of zero points they
  // leave to the epilogue.
  Plan plan_of(const Problem& problem, const Sizes& size) const {
    if (size.k == sizes_.k) return make_plan(problem, context_);
    Problem first = problem;
    first.k = sizes_.k;
    return make_plan(problem, context_, {.kernel = make_plan(first, context_).kernel});
  }

  int64_t sums_room(const Sizes& s) const {
    return s.k < p_.k && !shares_sums_ ? Arena::round_up(s.m * s.n * acc_bytes_) : 0;
  }

  // Bytes for blocks of this size, with the most scratch that any of them takes, the last ones too.
  int64_t room_for(const Sizes& s) {
    sizes_ = s;
    size_t scratch = 0;
    for (const int64_t m : {s.m, p_.m % s.m}) {
      for (const int64_t n : {s.n, p_.n % s.n}) {
        for (const int64_t k : {s.k, s.k == 0 ? 0 : p_.k % s.k}) {
          if (m == 0 || n == 0 || (k == 0 && s.k != 0)) continue;
          const Sizes size{m, n, k};
          scratch = std::max(scratch, plan_of(block({}, {}, size), size).scratch_bytes);
        }
      }
    }
    return a_.room(s.m, s.k) + b_.room(s.k, s.n) + c_.room(s.m, s.n) + y_.room(s.m, s.n) +
           sums_room(s) + static_cast<int64_t>(scratch);
  }

  // Bytes that are moved, about, and that sums take to be read and written again.
  double cost(const Sizes& s) const {
    const auto blocks =
        static_cast<double>(count_of(p_.m, s.m)) * static_cast<double>(count_of(p_.n, s.n));
    const auto of_k = static_cast<double>(count_of(p_.k, s.k));
    const double sums =
        static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(acc_bytes_);
    return blocks * (of_k * (a_.cost(s.m, s.k) + b_.cost(s.k, s.n)) + c_.cost(s.m, s.n) +
                     y_.cost(s.m, s.n) + (of_k - 1) * sums);
  }

  // For each of some depths of K the largest blocks of Y that fit, as near to square as M and N let
  // them; of these the cheapest. Where none fit, the smallest.
  void choose(int64_t room) {
    Sizes best;
    for (int64_t k = p_.k;; k = std::max(kStepOfK, (k / 2 + kStepOfK - 1) / kStepOfK * kStepOfK)) {
      const auto sizes_for = [&](int64_t longest) {
        return Sizes{equal_blocks(p_.m, longest, kStep), equal_blocks(p_.n, longest, kStep),
                     equal_blocks(p_.k, k, kStepOfK)};
      };
      int64_t side = 0, too_large = (std::max(p_.m, p_.n) + kStep - 1) / kStep * kStep + kStep;
      while (too_large - side > kStep) {
        const int64_t middle = side + (too_large - side) / 2 / kStep * kStep;
        (room_for(sizes_for(middle)) <= room ? side : too_large) = middle;
      }
      if (side != 0 && (best.m == 0 || cost(sizes_for(side)) < cost(best))) best = sizes_for(side);
      fits_ = best.m != 0;
      if (k > kStepOfK) continue;
      if (!fits_) best = sizes_for(kStep);
      break;
    }
    bytes_ = room_for(best);
  }

  const Context& context_;
  const Problem& p_;
  Stage<const std::byte> a_, b_, c_;
  Stage<std::byte> y_;
  const int64_t acc_bytes_;
  const bool shares_sums_;  // with the block of Y: these are the same places in both, as there is
                            // no transpose
  Sizes sizes_;             // of blocks
  bool fits_ = false;
  int64_t bytes_ = 0;
  std::byte *sums_ = nullptr, *scratch_ = nullptr, nowhere_{};
  double moved_ = 0;  // bytes
};

// Bytes for blocks and scratch, where the caller takes so many before.
int64_t room_of(const Context& context, int64_t beside = 0) {
  const auto room = static_cast<int64_t>(std::min(context.room(), size_t{PTRDIFF_MAX}));
  return std::clamp<int64_t>(beside == 0 ? room : room - std::min(room, Arena::taken_by(beside)), 0,
                             kMostMemory);
}

Status no_blocks(const Context& context, const char* op, const OutOfCoreProduct& product) {
  return error(Code::kOutOfMemory, op, "",
               {"no memory for ", product.bytes(), " bytes, which the smallest blocks take; ",
                static_cast<int64_t>(context.bytes_in_use()), " bytes are in use"});
}

}  // namespace

Status run_out_of_core(Context& context, const char* op, const Problem& problem,
                       const OutOfCoreOperands& out_of_core) {
  if (problem.m == 0 || problem.n == 0) return {};
  for (int64_t room = room_of(context);;) {
    OutOfCoreProduct product(context, problem, out_of_core, room);
    if (!product.fits()) return no_blocks(context, op, product);
    Arena arena(context, static_cast<size_t>(product.bytes()));
    if (arena.ok()) {
      product.run(&context, arena.data());
      return {};
    }
    room = product.bytes() / 4 * 3;  // the system has less than the limit allows
  }
}

Status plan_out_of_core(const Context& context, const char* op, const Problem& problem,
                        const OutOfCoreOperands& out_of_core, int64_t beside,
                        OutOfCorePlan* result) {
  if (problem.m == 0 || problem.n == 0) return {};
  OutOfCoreProduct product(context, problem, out_of_core, room_of(context, beside));
  if (!product.fits()) return no_blocks(context, op, product);
  result->plan = product.plan(&result->transposed);
  result->bytes = product.bytes();
  result->moved_bytes = static_cast<int64_t>(std::min(product.run(nullptr, nullptr), kMostMoved));
  return {};
}

}  // namespace wgemm
