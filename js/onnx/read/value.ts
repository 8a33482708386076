/** Values that flow through a graph. */
import type { DataArray, DType } from '../../base/tensor.js';

/**
 * A type of elements in a model: one of wgemm's, or `'bool'`, whose elements are the bytes 0 and 1.
 *
 * @category Models
 */
export type OnnxDType = DType | 'bool';

/** @internal The type of the array that has elements of a type. */
export function storedAs(dtype: OnnxDType): DType {
  return dtype === 'bool' ? 'uint8' : dtype;
}

/** @internal A tensor between two nodes: dense and in row-major order. */
export interface Value {
  readonly dtype: OnnxDType;
  readonly shape: readonly number[];
  /**
   * Exactly the elements of the shape. It may be a getter, if they are in the memory of an instance
   * and move when it grows. So an operator reads it once, after its last call of `make`.
   */
  readonly data: DataArray;
  /** The same elements in another shape; absent if `data` can be shared. */
  reshape?(shape: readonly number[]): Value;
}

/**
 * @internal Makes the value of a result, whose elements are not initialised.
 * @param over inputs whose memory the result may take. `define()` passes them: see `overwrites`
 */
export type Make = (dtype: OnnxDType, shape: readonly number[], over?: readonly Value[]) => Value;
