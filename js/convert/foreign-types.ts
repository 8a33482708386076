/** The types that `tensor` takes and `toNested` returns. */
import type { DataArray, DType } from '../base/tensor.js';
import type { TensorLike, TensorView } from '../instance/heap.js';

/**
 * Options of {@link tensor}.
 *
 * @typeParam D the type that `dtype` names
 * @category Conversion
 */
export interface TensorOptions<D extends DType | undefined = DType | undefined> {
  /**
   * The type of the result. Default: the type of the array. An Int16Array and a Uint8ClampedArray
   * hold no {@link DType}: they become int32 and uint8. Other numbers become float32, bigints
   * become int64, and matrices of ml-matrix become float64.
   *
   * A Uint16Array has the bits of `'float16'` or `'bfloat16'`, and needs a `dtype`. If its library
   * says that it is `'uint16'`, it has integers, which convert to other types.
   */
  dtype?: D | undefined;
}

/**
 * A value, or arrays of it that are nested up to 64 deep.
 *
 * @typeParam T the type of the values
 * @category Conversion
 */
export type Nested<T> = T | Nested<T>[];

/**
 * Arrays that are nested up to 64 deep, of values of a type.
 *
 * @typeParam T the type of the values
 * @category Conversion
 */
export type NestedInput<T> = readonly (T | NestedInput<T>)[];

/**
 * The elements of an array: bigints for int64 and uint64, else numbers.
 *
 * @typeParam A the class of the array
 * @category Conversion
 */
export type ElementOf<A extends DataArray> = A extends BigInt64Array | BigUint64Array
  ? bigint
  : number;

/**
 * An array of ndarray, numpy-ts or `@stdlib/ndarray`.
 *
 * @category Conversion
 */
export interface NdarrayLike {
  /** A typed array, an array, or an object that has `get(index)`. */
  readonly data: unknown;
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /** The type of the elements, in the words of the library. Default: the type of the array. */
  readonly dtype?: unknown;
  /**
   * Distance from one element to the next along each axis, in elements; may be negative. Default:
   * contiguous, in row-major order.
   */
  readonly strides?: readonly number[] | undefined;
  /** The strides, as ndarray names them. */
  readonly stride?: readonly number[] | undefined;
  /** Index in `data` of the first element. Default 0. */
  readonly offset?: number | undefined;
}

/**
 * A tensor of tfjs.
 *
 * @category Conversion
 */
export interface TfjsTensor {
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /** Returns the elements in a typed array, in row-major order. */
  dataSync(): unknown;
}

/**
 * A TensorBuffer of tfjs.
 *
 * @category Conversion
 */
export interface TfjsBuffer {
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /** The elements in a typed array, in row-major order. */
  readonly values: unknown;
}

/**
 * A matrix of ml-matrix.
 *
 * @category Conversion
 */
export interface MlMatrix {
  /** Number of rows. */
  readonly rows: number;
  /** Number of columns. */
  readonly columns: number;
  /** Returns the elements in nested arrays: one per row. */
  to2DArray(): number[][];
}

/**
 * A matrix of mathjs, dense or sparse, with any number of axes.
 *
 * @category Conversion
 */
export interface MathjsMatrix {
  /** Whether it is a matrix: `true`. */
  readonly isMatrix: boolean;
  /** Returns the elements in nested arrays. */
  toArray(): unknown;
}

/**
 * A tensor of another library.
 *
 * @category Conversion
 */
export type ForeignTensor = NdarrayLike | TfjsTensor | TfjsBuffer | MlMatrix | MathjsMatrix;

/**
 * Typed arrays that {@link tensor} takes. Arrays that hold no {@link DType} are copied.
 *
 * @category Conversion
 */
export type SourceArray = DataArray | Int16Array | Uint8ClampedArray;

/**
 * A value that {@link tensor} takes.
 *
 * @category Conversion
 */
export type TensorSource =
  | number
  | bigint
  | SourceArray
  | NestedInput<number | bigint | SourceArray>
  | TensorLike
  | TensorView
  | ForeignTensor;
