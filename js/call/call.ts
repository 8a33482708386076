/** A call, as plain data. */
import type { Core } from '../instance/core.js';
import type { CoreModule } from '../instance/glue.js';
import type { Operand } from './operand.js';
import type { ResultType } from './result.js';

/** The names of the calls that compute. */
export type OperationName =
  | 'gemm'
  | 'qgemm'
  | 'matmul'
  | 'matmulInteger'
  | 'qlinearMatmul'
  | 'dynamicQuantizeMatmul'
  | 'matmulIntegerToFloat'
  | 'matmulNBits';

/** @internal An operation of the core. */
export interface Operation {
  readonly name: OperationName;
  /** Names of its matrices in errors. */
  readonly operands: readonly [string, string, string];
  /** Names of the operands that may be out-of-core, besides the result. */
  readonly matrices: readonly string[];
  /** Type and shape of the result if the caller gives no `out`. */
  resultType(
    core: Core,
    operands: readonly (Operand | null)[],
    attributes: Float64Array,
  ): ResultType;
  /** Computes from the block up to `end`. Returns an error code. */
  run(module: CoreModule, end: number): number;
  /**
   * Leaves the numbers of an explanation in the block, for a caller that will allocate `beside`
   * bytes before the call. Returns an error code.
   */
  explain(module: CoreModule, beside: number): number;
}

/** @internal The arguments of a call, as they were read from the caller's objects. */
export interface Arguments {
  readonly operation: Operation;
  /** Attributes, in the order in which bindings/embind.cc reads them. */
  readonly attributes: Float64Array;
  /** In the order of the bindings; null for an absent one. The last is the result. */
  readonly operands: readonly (Operand | null)[];
  /** The caller's `out`; undefined if the call makes the result. */
  readonly out: unknown;
}

/** @internal A call of an instance in this thread, checked as far as JavaScript checks it. */
export interface Call extends Arguments {
  readonly core: Core;
  /** The last of the operands, which is never null here. */
  readonly result: Operand;
}
