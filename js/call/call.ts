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
  | 'matmulNBits'
  | 'syrk';

/** @internal Where attributes are in the block, as indices, and how many numbers they take. */
export interface Places<N extends string = string> {
  readonly at: Readonly<Record<N, number>>;
  readonly length: number;
}

/** @internal An operation of the core, and of its callers. ops/operations.ts has the rows. */
export interface Operation<N extends string = string> {
  readonly name: OperationName;
  /** Its index in kOperations of bindings/embind.cc. */
  readonly number: number;
  /** The block begins with them. */
  readonly attributes: Places<N>;
  /** Names in errors, in the order of the block. The last is `out`. */
  readonly operands: readonly string[];
  /**
   * Names of the operands that may be out-of-core, besides the result. If there are none, the
   * result must be in memory, too.
   */
  readonly outOfCore: readonly string[];
  /** Names of the properties of the first argument, if it is an object of inputs. */
  readonly inputs: readonly string[];
  /** Names of the options. */
  readonly options: readonly string[];
  /** The place of the options among the arguments. */
  readonly optionsAt: number;
  /** The classes of arrays that errors offer. Default: all. */
  readonly arrays?: readonly string[];
  /** Type and shape of the result if the caller gives no `out`. */
  resultType(read: Omit<Arguments, 'out'>, core: Core): ResultType;
  /** Computes from the block up to `end`. Returns an error code. */
  run(module: CoreModule, end: number): number;
  /**
   * Leaves the numbers of an explanation in the block, for a caller that will allocate `reserved`
   * bytes before the call. Returns an error code.
   */
  explain(module: CoreModule, reserved: number): number;
}

/** @internal An operation with two factors. */
export interface Product<N extends string = string> extends Operation<N> {
  /** The last operands before `out`: both factors, and what is added. */
  readonly matrices: readonly [string, string, string];
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
