/**
 * The types of calls. `wgemm` and `wgemm/worker` have the same calls. Only their handles differ,
 * and the way in which a result arrives.
 */
import type {
  ArrayOf,
  DataArray,
  DType,
  DTypeOf,
  Float16ArrayLike,
  Matching,
  NewArrays,
  QuantizedArray,
  ResultArray,
  TensorInput,
} from '../base/tensor.js';
import type { NBitsWeights } from '../convert/quantize-nbits.js';
import type { HeapTensor, PackedWeights, TensorView } from '../instance/heap.js';
import type { QLinearMatMulInputs } from '../ops/integer-matmul.js';
import type { QGemmInputs } from '../ops/qgemm.js';
import type { Recording } from '../ops/record.js';
import type { CallOptions, WorkerTensor, WorkerWeights } from './worker-handles.js';
import type { WorkerRecording } from './worker-recording.js';

/** Where an instance computes: in the thread of its caller, or in a worker. */
export type Place = 'here' | 'worker';

// These are tables by place, since a type parameter of TypeScript cannot be a generic type.
// TypeScript looks `P` up in a table before it infers the other parameters, and before it shows a
// signature. So users see only what is in the tables.

/** How a result arrives. */
export interface Arrival<T> {
  here: T;
  worker: Promise<T>;
}

export interface Operands<A extends DataArray = DataArray> {
  here: Operand<A>;
  worker: WorkerTensorLike<A>;
}

export interface Outs<A extends DataArray, Y extends DataArray, U extends DataArray> {
  here: Out<A, Y, U>;
  worker: WorkerOut<A, Y, U>;
}

export interface Allocated<D extends DType> {
  here: HeapTensor<ArrayOf<D>>;
  worker: WorkerTensor<NewArrays[D]>; // what its `read()` returns
}

export interface Weights {
  here: PackedWeights;
  worker: WorkerWeights;
}

/** An argument or option that may hold handles. */
export interface Holding<T> {
  here: T;
  worker: InWorker<T>;
}

export interface Inputs {
  here: QGemmInputs;
  worker: WorkerQGemmInputs;
}

export interface QLinearInputs {
  here: QLinearMatMulInputs;
  worker: HoldingHandles<QLinearMatMulInputs>;
}

export interface NBits<A extends DataArray> {
  here: NBitsWeights<A>;
  worker: HoldingHandles<NBitsWeights<A>>;
}

/** Options that hold operands, except those for the result. */
export interface OptionsWithOperands<T> {
  here: Omit<T, 'out'>;
  worker: HoldingHandles<Omit<T, 'out'>> & CallOptions;
}

/** A tensor in the memory of the instance, or a view of one. */
export interface HeldOperands<A extends DataArray = DataArray> {
  here: HeapTensor<A> | TensorView<A>;
  worker: WorkerTensor<A> | TensorView<A, WorkerTensor<A>>;
}

/** Inputs or options of a recorded call, without arrays. */
export interface HeldInputs<T> {
  here: { [K in keyof T]: InMemory<T[K]> };
  worker: { [K in keyof T]: InWorker<InMemory<T[K]>> };
}

/** What `record` makes. */
export interface Recordings {
  here: Recording;
  worker: WorkerRecording;
}

/** Options of an operation, except those for its result. */
export interface Options<T> {
  here: Omit<T, 'out' | 'outType'>;
  worker: Omit<T, 'out' | 'outType'> & CallOptions;
}

/** Options that every call has. */
export interface EveryCall {
  here: unknown;
  worker: CallOptions;
}

/** The last argument of a call that has no options of its own. */
export interface Last {
  here: [];
  worker: [options?: CallOptions];
}

/**
 * A {@link TensorInput} or a {@link TensorView}. It is one type, so that TypeScript infers `A` from
 * either.
 *
 * @typeParam A the class of the array
 * @category Type machinery
 */
export interface DescribedTensor<A extends DataArray> extends Omit<TensorInput<A>, 'data'> {
  /** The array, or the tensor in the memory of the instance, that has the elements. */
  readonly data: A | HeapTensor<A>;
}

/**
 * The counterpart of `DescribedTensor` in `wgemm/worker`. It is a type of its own: with the class
 * of `data` as a type parameter, TypeScript would not infer `A` from a view.
 *
 * @typeParam A the class of the array
 * @category Type machinery
 */
export interface WorkerDescribedTensor<A extends DataArray> extends Omit<TensorInput<A>, 'data'> {
  /** The array, or the tensor in the memory of the instance, that has the elements. */
  readonly data: A | WorkerTensor<A>;
}

/**
 * A tensor that a call of `wgemm` takes. It is in an array of the caller, or in the memory of the
 * instance, or a view of a tensor there.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export type Operand<A extends DataArray = DataArray> = DescribedTensor<A> | HeapTensor<A>;

/**
 * A tensor that a call of `wgemm/worker` takes. It is in an array of the caller, or in the memory
 * of the instance in the worker, or a view of a tensor there.
 *
 * @typeParam A the class of its array
 * @category Tensors
 */
export type WorkerTensorLike<A extends DataArray = DataArray> =
  WorkerDescribedTensor<A> | WorkerTensor<A>;

/**
 * Refuses a number that is not one of `T`. A variable of type `number` is allowed: the call checks
 * it at run time.
 *
 * @typeParam N the type of the number
 * @typeParam T the numbers that the call takes
 * @category Type machinery
 */
export type OneOf<N extends number, T extends number> = number extends N ? N : T;

/**
 * Refuses a bigint unless the elements are integers of 64 bits. A variable that may be a number is
 * allowed: the call checks it at run time.
 *
 * @typeParam F the type of the factor
 * @typeParam A the class of the array of the elements
 * @category Type machinery
 */
export type FactorOf<F, A extends DataArray> = number extends F
  ? F
  : F extends bigint
    ? [Extract<DTypeOf<A>, 'int64' | 'uint64'>] extends [never]
      ? 'a bigint is for int64 and uint64'
      : F
    : F;

/** The option alpha. */
export type Alpha<F, A extends DataArray> = { alpha?: F | undefined } & {
  alpha?: FactorOf<F, A> | undefined;
};

/** The options alpha and beta. */
export type Factors<F, A extends DataArray> = Alpha<F, A> & { beta?: F | undefined } & {
  beta?: FactorOf<F, A> | undefined;
};

/**
 * The 8-bit types that an array, a tensor or a handle may have; `never` if the value is a number or
 * absent.
 *
 * @typeParam T the type of the value
 * @category Type machinery
 */
export type TypeIn8Bits<T> = T extends number | null | undefined
  ? never
  : T extends
        | Int8Array
        | {
            /** The elements. */
            readonly data: Int8Array | HeapTensor<Int8Array> | WorkerTensor<Int8Array>;
          }
        | WorkerTensor<Int8Array>
    ? 'int8'
    : T extends
          | Uint8Array
          | {
              /** The elements. */
              readonly data: Uint8Array | HeapTensor<Uint8Array> | WorkerTensor<Uint8Array>;
            }
          | WorkerTensor<Uint8Array>
      ? 'uint8'
      : 'int8' | 'uint8';

/**
 * Refuses a zero point whose array does not have the type of its operand. A zero point of a wider
 * type is allowed: the call checks it at run time.
 *
 * @typeParam Z the type of the zero point
 * @typeParam T the type of the operand
 * @category Type machinery
 */
export type ZeroPointOf<Z, T> = [TypeIn8Bits<Z>] extends [never]
  ? Z
  : [TypeIn8Bits<Z> & TypeIn8Bits<T>] extends [never]
    ? 'a zero point has the type of its operand'
    : Z;

/**
 * Arrays that hold a result of `qlinearMatmul`. Their type is the type of `yZeroPoint` if that is
 * an array, else the type of a.
 *
 * @typeParam T the type of a
 * @typeParam Z the type of `yZeroPoint`
 * @category Type machinery
 */
export type QLinearArray<T, Z> = ArrayOf<
  [TypeIn8Bits<Z>] extends [never]
    ? TypeIn8Bits<T>
    : TypeIn8Bits<Z> | (Z extends number | null | undefined ? TypeIn8Bits<T> : never)
>;

/** The zero point of a. */
export type ZeroPointOfA<Z, T> = { aZeroPoint?: Z | undefined } & {
  aZeroPoint?: ZeroPointOf<Z, T> | undefined;
};

/** The zero point of b. */
export type ZeroPointOfB<Z, T> = { bZeroPoint?: Z | undefined } & {
  bZeroPoint?: ZeroPointOf<Z, T> | undefined;
};

/** Codes of a few bits. */
export type Bits<N extends number, S extends number> = {
  bits?: N | undefined;
  blockSize: S;
} & { bits?: OneOf<N, 2 | 4 | 8> | undefined; blockSize: OneOf<S, 16 | 32 | 64 | 128 | 256> };

/** The option accuracyLevel. */
export type Level<L extends number> = { accuracyLevel?: L | undefined } & {
  accuracyLevel?: OneOf<L, 0 | 1 | 2 | 3 | 4> | undefined;
};

/**
 * The result of a call: `O`, the type of the option `out`; or `T` if there is no `out`.
 *
 * @typeParam O the type of `out`
 * @typeParam T the type of a result without `out`
 * @category Type machinery
 */
export type OutOr<O, T> = O extends undefined ? T : O;

/**
 * Refuses a tensor of 8 bits, which `qgemm` and the integer products take. For other arrays this
 * type is `unknown`, which allows everything.
 *
 * @typeParam A the class of the array of the tensor
 * @category Type machinery
 */
export type Not8Bit<A extends DataArray> = {
  [T in DType]: T extends 'int8' | 'uint8' ? 'int8 and uint8 are for qgemm' : unknown;
}[DTypeOf<A>];

/**
 * Refuses an `out` whose elements do not have the type of the result. For other arrays this type is
 * `unknown`, which allows everything.
 *
 * @typeParam A the class of the array of the result
 * @typeParam U the class of the array of `out`
 * @category Type machinery
 */
export type SameDType<A extends DataArray, U extends DataArray> = {
  [T in DType]: T extends DTypeOf<A> ? unknown : 'out must have the type of the result';
}[DTypeOf<U>];

/**
 * The option `out` of a call. Its array may have a wider type, such as the `DataArray` of options
 * in a variable. The call checks such an `out` when it runs.
 *
 * @typeParam A the class of the array of the result
 * @typeParam Y the class of the array of `out`
 * @typeParam U a class that may be wider than `Y`
 * @category Type machinery
 */
export type Out<A extends DataArray, Y extends DataArray, U extends DataArray> =
  Operand<Y> | ((Operand<U> | TensorView<U>) & SameDType<A, U>) | undefined;

/**
 * {@link Out} of a call in a worker. It also allows views of handles of `wgemm`, since
 * `GemmOptions` names these. The call checks them when it runs.
 *
 * @typeParam A the class of the array of the result
 * @typeParam Y the class of the array of `out`
 * @typeParam U a class that may be wider than `Y`
 * @category Type machinery
 */
export type WorkerOut<A extends DataArray, Y extends DataArray, U extends DataArray> =
  WorkerTensorLike<Y> | ((WorkerTensorLike<U> | TensorView<U>) & SameDType<A, U>) | undefined;

/**
 * Arrays for which `matmul` can make a float32 result: float32, float16 and bfloat16.
 *
 * @category Type machinery
 */
export type Widened = Float32Array | Uint16Array | Float16ArrayLike;

/**
 * Arrays that can hold a result of `matmul`.
 *
 * @typeParam A the class of the array of src
 * @category Type machinery
 */
export type MatMulArray<A extends DataArray> =
  Matching<A> | (A extends Widened ? Float32Array : never);

/**
 * The values of the option `outType` of `matmul`.
 *
 * @typeParam A the class of the array of src
 * @typeParam D the type that the call names
 * @category Type machinery
 */
export type OutType<A extends DataArray, D> =
  DTypeOf<MatMulArray<A>> | ([D & DTypeOf<MatMulArray<A>>] extends [never] ? never : D) | undefined;

/**
 * The array of a result of `matmul`.
 *
 * @typeParam A the class of the array of src
 * @typeParam D the types that `outType` may name
 * @category Type machinery
 */
export type MatMulResultArray<A extends DataArray, D> =
  ResultArray<A> | ('float32' extends D ? ResultArray<MatMulArray<A>> : never);

/**
 * Arrays that hold a result of `qgemm`, by `yScale`: without it float32, with it 8 bits.
 *
 * @typeParam S the type of `yScale`
 * @category Type machinery
 */
export type QGemmArray<S> = S extends null | undefined ? Float32Array : QuantizedArray;

/**
 * Refuses a tensor that `pack` does not take for the operation, or cannot pack as the type. For
 * other tensors this type is `unknown`, which allows everything.
 *
 * @typeParam O the operation
 * @typeParam D the type that `as` names
 * @typeParam A the class of the array of b
 * @category Type machinery
 */
export type Packable<O, D, A extends DataArray> = {
  [T in DType]: [O] extends [T extends 'int8' | 'uint8' ? 'gemm' | 'matmul' : 'qgemm']
    ? 'int8 and uint8 are for qgemm, all others for gemm and matmul'
    : [D & (T | (T extends 'float32' ? 'float16' | 'bfloat16' : never))] extends [never]
      ? 'as is the type of b; for float32 also float16 or bfloat16'
      : unknown;
}[DTypeOf<A>];

/**
 * The type of an argument of a call, without arrays and tensors in arrays.
 *
 * @typeParam T the type in a call that is not recorded
 * @category Type machinery
 */
export type InMemory<T> = T extends HeapTensor ? T : T extends DataArray | TensorInput ? never : T;

/**
 * The type of an argument of `wgemm`, in which handles of `wgemm/worker` replace its own.
 *
 * @typeParam T the type in `wgemm`
 * @category Type machinery
 */
export type InWorker<T> =
  T extends HeapTensor<infer A>
    ? WorkerTensor<A>
    : T extends TensorView<infer A>
      ? TensorView<A, WorkerTensor<A>>
      : T extends PackedWeights
        ? WorkerWeights
        : T;

/**
 * Inputs of `qgemm` in `wgemm/worker`: {@link QGemmInputs}, with handles of the worker.
 *
 * @interface
 * @category Operations
 */
export type WorkerQGemmInputs = { [K in keyof QGemmInputs]: InWorker<QGemmInputs[K]> };

/**
 * Inputs or options of a call in `wgemm/worker`, with handles of the worker.
 *
 * @typeParam T the inputs or options in `wgemm`
 * @category Type machinery
 */
export type HoldingHandles<T> = { [K in keyof T]: InWorker<T[K]> };

/**
 * `T`, the options of a call in `wgemm`, and the options of every call in a worker.
 *
 * @typeParam T the options in `wgemm`
 * @category Operations
 */
export type WorkerOptions<T> = Omit<T, 'out'> & CallOptions;
