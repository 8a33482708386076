#include "api/run.h"

#include <algorithm>
#include <utility>

#include "base/arena.h"
#include "base/error.h"
#include "execute/execute.h"
#include "execute/quantize_a.h"

namespace wgemm {
namespace {

Status no_scratch(const Context& context, const char* op, const Plan& plan) {
  return error(
      Code::kOutOfMemory, op, "",
      {"no memory for % bytes of scratch; % bytes are in use",
       static_cast<int64_t>(plan.scratch_bytes), static_cast<int64_t>(context.bytes_in_use())});
}

Status run_plan(Context& context, const char* op, const Problem& problem, const Plan& plan,
                const PlanOptions& options) {
  Arena arena(context, plan.scratch_bytes);
  if (arena.ok()) {
    if (!problem.quantization.quantizes_a || problem.m == 0 || problem.n == 0) {
      execute(context, problem, plan, arena.data());
      return {};
    }
    Problem scaled = problem;
    WGEMM_RETURN_IF_ERROR(find_a_scale(context, plan.job_threads(), op, &scaled));
    execute(context, scaled, plan, arena.data());
    return {};
  }
  Plan smaller = plan;
  return fall_back_to_one_thread(problem, context, options, &smaller)
             ? run_plan(context, op, problem, smaller, options)
             : no_scratch(context, op, plan);
}

// `tensor` may be null.
template <typename T>
OutOfCoreOperand out_of_core_operand(const BasicTensor<T>* tensor) {
  if (tensor == nullptr) return {};
  return {tensor->out_of_core, tensor->offset};
}

// For GemmArgs and QuantizedArgs, which name their operands alike.
template <typename Args>
OutOfCoreOperands out_of_core_operands(const Args& args) {
  return {out_of_core_operand(&args.A), out_of_core_operand(&args.B), out_of_core_operand(args.C),
          out_of_core_operand(&args.Y)};
}
OutOfCoreOperands out_of_core_operands(const MatMulArgs& args) {
  return {out_of_core_operand(&args.src), out_of_core_operand(&args.weights),
          out_of_core_operand(args.bias), out_of_core_operand(&args.dst)};
}

OutOfCoreOperands out_of_core_operands(const MatMulNBitsArgs& args) {
  return {out_of_core_operand(&args.A),
          {},
          out_of_core_operand(args.bias),
          out_of_core_operand(&args.Y)};
}

void plan_checked(Context& context, const char* op, const OutOfCoreOperands& out_of_core,
                  PlannedCall* planned) {
  planned->op = op;
  planned->out_of_core = out_of_core;
  planned->generation = context.generation();
  if (out_of_core.any()) return;
  Problem& problem = planned->call.problem;
  transpose_if_faster(&problem);
  planned->plan = make_plan(problem, context);
}

template <typename Args>
Status compute(Context& context, const Args& args) {
  PlannedCall planned;
  WGEMM_RETURN_IF_ERROR(plan_call(context, args, &planned));
  return run(context, planned);
}

}  // namespace

Status run(Context& context, const char* op, const Problem& problem, const PlanOptions& options) {
  Problem planned = problem;
  transpose_if_faster(&planned, options);
  return run_plan(context, op, planned, make_plan(planned, context, options), options);
}

Status run(Context& context, const PlannedCall& planned) {
  const auto& [op, call, out_of_core, plan, generation] = planned;
  return out_of_core.any() ? run_out_of_core(context, op, call.problem, out_of_core)
                           : run_plan(context, op, call.problem, plan, {});
}

void plan_again(const Context& context, PlannedCall* planned) {
  if (planned->generation == context.generation()) return;
  planned->generation = context.generation();
  if (!planned->out_of_core.any()) planned->plan = make_plan(planned->call.problem, context);
}

Status read_again(const Context& context, PlannedCall* planned) {
  plan_again(context, planned);
  Problem& problem = planned->call.problem;
  return problem.compute == DType::kInt8 ? read_quantization(planned->op, &problem) : Status{};
}

Status plan_call(Context& context, const GemmArgs& args, PlannedCall* planned) {
  WGEMM_RETURN_IF_ERROR(gemm_problem(args, true, &planned->call.problem));
  plan_checked(context, "gemm", out_of_core_operands(args), planned);
  return {};
}

Status plan_call(Context& context, const SyrkArgs& args, PlannedCall* planned) {
  WGEMM_RETURN_IF_ERROR(syrk_problem(args, true, &planned->call.problem));
  plan_checked(context, "syrk", {}, planned);
  return {};
}

Status plan_call(Context& context, const MatMulArgs& args, PlannedCall* planned) {
  WGEMM_RETURN_IF_ERROR(matmul_problem(args, true, &planned->call));
  plan_checked(context, "matmul", out_of_core_operands(args), planned);
  return {};
}

Status plan_call(Context& context, const QuantizedArgs& args, PlannedCall* planned) {
  WGEMM_RETURN_IF_ERROR(quantized_problem(args, true, &planned->call));
  plan_checked(context, name_of(args), out_of_core_operands(args), planned);
  return {};
}

Status plan_call(Context& context, const MatMulNBitsArgs& args, PlannedCall* planned) {
  WGEMM_RETURN_IF_ERROR(nbits_problem(args, true, &planned->call));
  plan_checked(context, "matmulNBits", out_of_core_operands(args), planned);
  return {};
}

Status gemm(Context& context, const GemmArgs& args) { return compute(context, args); }

Status syrk(Context& context, const SyrkArgs& args) { return compute(context, args); }

Status qgemm(Context& context, const QGemmArgs& args) {
  return compute<QuantizedArgs>(context, args);
}

Status matmul(Context& context, const MatMulArgs& args) { return compute(context, args); }

Status integer_matmul(Context& context, const IntegerMatMulArgs& args) {
  return compute<QuantizedArgs>(context, args);
}

Status matmul_nbits(Context& context, const MatMulNBitsArgs& args) {
  return compute(context, args);
}

Status gemm_shape(const GemmArgs& args, int64_t dims[2]) {
  Problem problem;
  WGEMM_RETURN_IF_ERROR(gemm_problem(args, false, &problem));
  dims[0] = problem.m;
  dims[1] = problem.n;
  return {};
}

Status syrk_shape(const SyrkArgs& args, int64_t dims[2]) {
  Problem problem;
  WGEMM_RETURN_IF_ERROR(syrk_problem(args, false, &problem));
  dims[0] = dims[1] = problem.n;
  return {};
}

Status qgemm_shape(const QGemmArgs& args, int64_t dims[2], DType* dtype) {
  MatMulProblem p;
  WGEMM_RETURN_IF_ERROR(quantized_problem(args, false, &p));
  std::copy_n(p.shape, 2, dims);
  *dtype = p.problem.y.dtype;
  return {};
}

Status matmul_shape(const MatMulArgs& args, int64_t* dims, size_t* rank) {
  MatMulProblem p;
  WGEMM_RETURN_IF_ERROR(matmul_problem(args, false, &p));
  std::copy_n(p.shape, p.rank, dims);
  *rank = p.rank;
  return {};
}

Status integer_matmul_shape(const IntegerMatMulArgs& args, int64_t* dims, size_t* rank,
                            DType* dtype) {
  MatMulProblem p;
  WGEMM_RETURN_IF_ERROR(quantized_problem(args, false, &p));
  std::copy_n(p.shape, p.rank, dims);
  *rank = p.rank;
  *dtype = p.problem.y.dtype;
  return {};
}

Status matmul_nbits_shape(const MatMulNBitsArgs& args, int64_t* dims, size_t* rank) {
  MatMulProblem p;
  WGEMM_RETURN_IF_ERROR(nbits_problem(args, false, &p));
  std::copy_n(p.shape, p.rank, dims);
  *rank = p.rank;
  return {};
}

namespace {

// Makes the plan that run() would use, judged by the memory limit alone. `reserved`: bytes that the
// caller will allocate first.
Status plan_run(const Context& context, const char* op, const Problem& problem, int64_t reserved,
                Plan* plan) {
  const auto fits = [&] {
    const auto scratch = static_cast<int64_t>(plan->scratch_bytes);
    const int64_t bytes =
        reserved == 0 || scratch == 0 ? reserved + scratch : Arena::taken_by(reserved) + scratch;
    return bytes == 0 ||
           (std::in_range<size_t>(bytes) && context.has_room(static_cast<size_t>(bytes)));
  };
  *plan = make_plan(problem, context);
  if (!fits()) fall_back_to_one_thread(problem, context, {}, plan);
  return fits() ? Status{} : no_scratch(context, op, *plan);
}

Status explain_problem(const Context& context, const char* op, const Problem& problem,
                       const OutOfCoreOperands& out_of_core, int64_t reserved,
                       Explanation* explanation) {
  *explanation = {};
  reserved = std::clamp(reserved, int64_t{0}, INT64_MAX / 2);
  explanation->out_of_core = out_of_core.any();
  explanation->vectors = context.vectors();
  Plan plan;
  if (explanation->out_of_core) {
    OutOfCorePlan planned;
    WGEMM_RETURN_IF_ERROR(plan_out_of_core(context, op, problem, out_of_core, reserved, &planned));
    plan = planned.plan;
    explanation->transposed = planned.transposed;
    explanation->moved_bytes = planned.moved_bytes;
    explanation->scratch_bytes = planned.bytes;
  } else {
    Problem planned = problem;
    explanation->transposed = transpose_if_faster(&planned);
    WGEMM_RETURN_IF_ERROR(plan_run(context, op, planned, reserved, &plan));
    explanation->scratch_bytes = static_cast<int64_t>(plan.scratch_bytes);
  }
  explanation->batch = products_of(problem.batch);
  explanation->m = problem.m;
  explanation->n = problem.n;
  explanation->k = problem.k;
  if (plan.kernel == nullptr) return {};
  explanation->kernel = plan.kernel->name;
  explanation->regime = name_of(plan.regime);
  explanation->mr = plan.kernel->mr;
  explanation->nr = plan.kernel->nr;
  explanation->kr = plan.kernel->kr;
  explanation->threads = std::min<int64_t>(plan.threads, plan.tasks());
  explanation->mc = plan.mc;
  explanation->nc = plan.nc;
  explanation->kc = plan.kc;
  explanation->packs_a = plan.pack_a;
  explanation->packs_b = plan.pack_b;
  explanation->direct = plan.direct;
  return {};
}

}  // namespace

Status explain(const Context& context, const GemmArgs& args, Explanation* explanation,
               int64_t reserved) {
  Problem problem;
  WGEMM_RETURN_IF_ERROR(gemm_problem(args, false, &problem));
  return explain_problem(context, "gemm", problem, out_of_core_operands(args), reserved,
                         explanation);
}

Status explain(const Context& context, const SyrkArgs& args, Explanation* explanation,
               int64_t reserved) {
  Problem problem;
  WGEMM_RETURN_IF_ERROR(syrk_problem(args, false, &problem));
  return explain_problem(context, "syrk", problem, {}, reserved, explanation);
}

Status explain(const Context& context, const MatMulArgs& args, Explanation* explanation,
               int64_t reserved) {
  MatMulProblem p;
  WGEMM_RETURN_IF_ERROR(matmul_problem(args, false, &p));
  return explain_problem(context, "matmul", p.problem, out_of_core_operands(args), reserved,
                         explanation);
}

Status explain(const Context& context, const QuantizedArgs& args, Explanation* explanation,
               int64_t reserved) {
  MatMulProblem p;
  WGEMM_RETURN_IF_ERROR(quantized_problem(args, false, &p, true));
  return explain_problem(context, name_of(args), p.problem, out_of_core_operands(args), reserved,
                         explanation);
}

Status explain(const Context& context, const QGemmArgs& args, Explanation* explanation,
               int64_t reserved) {
  return explain(context, QuantizedArgs(args), explanation, reserved);
}

Status explain(const Context& context, const IntegerMatMulArgs& args, Explanation* explanation,
               int64_t reserved) {
  return explain(context, QuantizedArgs(args), explanation, reserved);
}

Status explain(const Context& context, const MatMulNBitsArgs& args, Explanation* explanation,
               int64_t reserved) {
  MatMulProblem p;
  WGEMM_RETURN_IF_ERROR(nbits_problem(args, false, &p));
  return explain_problem(context, "matmulNBits", p.problem, out_of_core_operands(args), reserved,
                         explanation);
}

int kernel_count() { return kernel_table().count; }

KernelInfo kernel_info(int index, int vectors) {
  const Kernel& kernel = kernel_table().rows[index];
  const bool preferred = is_made_for(kernel, processor(), vectors) && has_dot(kernel.dot);
  return {kernel.name, kernel.compute, kernel.mr, kernel.nr, kernel.kr, preferred};
}

}  // namespace wgemm
