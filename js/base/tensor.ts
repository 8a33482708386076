/** Types of tensors, as callers pass and get them. */

/**
 * A Float16Array, declared here for projects whose TypeScript does not know it. It has
 * the members of every typed array.
 *
 * @category Tensors
 */
export interface Float16ArrayLike {
  /** Bytes per element: 2. */
  readonly BYTES_PER_ELEMENT: number;
  /** The memory that has the elements. */
  readonly buffer: ArrayBufferLike;
  /** Size in bytes. */
  readonly byteLength: number;
  /** Bytes in `buffer` before the first element. */
  readonly byteOffset: number;
  /** Number of elements. */
  readonly length: number;
  /** The name of the class. */
  readonly [Symbol.toStringTag]: 'Float16Array';
  [index: number]: number;
  /**
   * Sets elements to a value, rounded to float16. Returns this array.
   * @param value the value
   * @param start index of the first element, default 0
   * @param end index after the last element, default `length`
   */
  fill(value: number, start?: number, end?: number): Float16ArrayLike;
  /**
   * Copies numbers to elements, each rounded to float16.
   * @param array the numbers
   * @param offset index of the first element that is written, default 0
   */
  set(array: ArrayLike<number>, offset?: number): void;
  /**
   * Returns a copy of elements.
   * @param start index of the first element, default 0
   * @param end index after the last element, default `length`
   */
  slice(start?: number, end?: number): Float16ArrayLike;
  /**
   * Returns an array over the same memory.
   * @param start index of the first element, default 0
   * @param end index after the last element, default `length`
   */
  subarray(start?: number, end?: number): Float16ArrayLike;
  /** Iterates over the elements. */
  [Symbol.iterator](): IterableIterator<number>;
}

/**
 * The arrays that hold each type of elements, by ONNX's names for the types.
 *
 * @category Tensors
 */
export interface Arrays {
  /** IEEE 754 binary32. */
  float32: Float32Array;
  /** IEEE 754 binary64. */
  float64: Float64Array;
  /** IEEE 754 binary16. A Float16Array if the engine has one, else the bits in a Uint16Array. */
  float16: Float16ArrayLike | Uint16Array;
  /** bfloat16, as bits. */
  bfloat16: Uint16Array;
  /** Signed, 32 bits. */
  int32: Int32Array;
  /** Unsigned, 32 bits. */
  uint32: Uint32Array;
  /** Signed, 64 bits. */
  int64: BigInt64Array;
  /** Unsigned, 64 bits. */
  uint64: BigUint64Array;
  /** Signed, 8 bits. Only for `qgemm` and the integer products. */
  int8: Int8Array;
  /** Unsigned, 8 bits. Only for `qgemm`, the integer products and codes of `matmulNBits`. */
  uint8: Uint8Array;
}

/**
 * A type of elements, by ONNX's name for it: a key of {@link Arrays}.
 *
 * @category Tensors
 */
export type DType =
  | 'float32'
  | 'float64'
  | 'float16'
  | 'bfloat16'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'int8'
  | 'uint8';

/**
 * Arrays that hold elements of any type: the values of {@link Arrays}.
 *
 * @category Tensors
 */
export type DataArray = Arrays[DType];

/**
 * The array that holds elements of type `D`.
 *
 * @typeParam D the type of the elements
 * @category Tensors
 */
export type ArrayOf<D extends DType> = Arrays[D];

/**
 * The types that an array may hold, by the name of its class.
 *
 * @category Type machinery
 */
export interface DTypes {
  /** Holds float32. */
  Float32Array: 'float32';
  /** Holds float64. */
  Float64Array: 'float64';
  /** Holds float16. */
  Float16Array: 'float16';
  /** Holds the bits of either. `dtype` tells which. */
  Uint16Array: 'float16' | 'bfloat16';
  /** Holds int32. */
  Int32Array: 'int32';
  /** Holds uint32. */
  Uint32Array: 'uint32';
  /** Holds int64. */
  BigInt64Array: 'int64';
  /** Holds uint64. */
  BigUint64Array: 'uint64';
  /** Holds int8. */
  Int8Array: 'int8';
  /** Holds uint8. */
  Uint8Array: 'uint8';
}

/**
 * The types that an array may hold: one, except for a Uint16Array.
 *
 * @typeParam A the class of the array
 * @category Tensors
 */
export type DTypeOf<A extends DataArray> = DTypes[A[typeof Symbol.toStringTag]];

/**
 * Arrays that `gemm` and `matmul` take: all except arrays of 8 bits.
 *
 * @category Tensors
 */
export type GemmArray = Exclude<DataArray, Int8Array | Uint8Array>;

/**
 * `A`, or an array of the same type that is, for example, in shared memory.
 *
 * @typeParam A the class of the array
 * @category Type machinery
 */
export type Matching<A extends DataArray> = A | ArrayOf<DTypeOf<A>>;

/**
 * New arrays, by type. TypeScript from 5.7 on knows that their memory is not shared.
 *
 * @category Type machinery
 */
export type NewArrays = { [D in DType]: ReturnType<Arrays[D]['slice']> };

/**
 * The array of a result, by the array of an operand. For float16 that is passed as bits, the result
 * is a Float16Array if the engine has one.
 *
 * @typeParam A the class of the array of an operand
 * @category Tensors
 */
export type ResultArray<A extends DataArray> = A extends Float16ArrayLike
  ? A
  : NewArrays[DTypeOf<A>];

/**
 * A tensor that a call takes. The caller owns its array, and calls only read it.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export interface TensorInput<A extends DataArray = DataArray> {
  /**
   * The elements. With `strides` or `offset`, the array has at least as many elements as these and
   * the shape need. With neither, it has exactly as many as the shape needs.
   */
  readonly data: A;
  /** The size of each axis, in elements: up to 64 axes. A tensor of rank 0 has shape []. */
  readonly shape: readonly number[];
  /**
   * The type of the elements. Default: the type of the array. A Uint16Array has the bits of
   * `'float16'` or `'bfloat16'`, and needs a `dtype`.
   */
  readonly dtype?: DTypeOf<A> | undefined;
  /**
   * Distance from one element to the next along each axis, in elements, 0 or more. Default:
   * contiguous, in row-major order.
   */
  readonly strides?: readonly number[] | undefined;
  /** Index in `data` of the first element. Default 0. */
  readonly offset?: number | undefined;
}

/**
 * A contiguous tensor that a call returns. The caller owns its array, which is new.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export interface Tensor<A extends DataArray = DataArray> {
  /** The elements, in row-major order. */
  readonly data: A;
  /** The size of each axis, in elements. */
  readonly shape: readonly number[];
  /** The type of the elements. */
  readonly dtype: DTypeOf<A>;
}

/**
 * A result of `gemm` or `qgemm`.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export interface Matrix<A extends DataArray = DataArray> extends Tensor<A> {
  /** M and N: the numbers of rows and columns. */
  readonly shape: readonly [rows: number, columns: number];
}

/**
 * Arrays of quantized elements.
 *
 * @category Quantization
 */
export type QuantizedArray = Int8Array | Uint8Array;

/**
 * Arrays of the types that `matmulNBits` computes in: float32, float16 and bfloat16.
 *
 * @category Operations
 */
export type NBitsArray = Float32Array | Uint16Array | Float16ArrayLike;

/**
 * The types of A and B of QGemm.
 *
 * @category Quantization
 */
export type QuantizedDType = 'int8' | 'uint8';
