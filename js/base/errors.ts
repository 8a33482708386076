import { isRevoked } from './properties.js';

/**
 * The kind of rule that was broken.
 *
 * Most kinds have a class of errors. These have none:
 *
 * - `LOAD`: a file of the package, a file of weights, or the worker of `wgemm/worker`, did not load
 *   or start.
 * - `WORKER`: a thread did not start. Or a thread or a worker died, which ends the instance. Or a
 *   call could not be sent to the worker, which ends only that call.
 * - `INTERRUPTED`: the engine interrupted a call, which ends the instance.
 *
 * @category Errors
 */
export type ErrorCode =
  | 'SHAPE'
  | 'DTYPE'
  | 'OPSET'
  | 'ARGUMENT'
  | 'OUT_OF_MEMORY'
  | 'PACK_MISMATCH'
  | 'DISPOSED'
  | 'UNSUPPORTED'
  | 'LOAD'
  | 'WORKER'
  | 'INTERRUPTED';

/**
 * Every error of the library is a `GemmError`. The `message` is one sentence that names the
 * argument, what was found and what is allowed. It names options and inputs as the caller wrote
 * them, such as `out`. It names matrices as the specification does: A, B and C in `gemm` and
 * `qgemm`, and src, weights and bias in `matmul`.
 *
 * A call that throws an error has written nothing, and the instance still works. The codes `WORKER`
 * and `INTERRUPTED` are the exceptions: they may mean that the instance has ended. `disposed` is
 * true then.
 *
 * @category Errors
 */
export class GemmError extends Error {
  /** The name of the class. */
  override name = 'GemmError';

  /** @hidden */
  constructor(
    /** The kind of rule that was broken. */
    readonly code: ErrorCode,
    /** The call: `gemm`, `alloc`, `createGemm` and so on. */
    readonly op: string,
    /** The argument at fault, or '' if no argument is. */
    readonly argument: string,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message);
    if (options && 'cause' in options) {
      // It has no prototype, since the page may have given `Object.prototype` a `get`.
      const descriptor = { __proto__: null, value: options.cause, configurable: true };
      Object.defineProperty(this, 'cause', descriptor);
    }
  }
}

/**
 * A rank, size, stride or array length breaks a rule. `code` is `SHAPE`.
 *
 * @category Errors
 */
export class ShapeError extends GemmError {
  override name = 'ShapeError';
  /** @hidden */
  constructor(op: string, argument: string, message: string) {
    super('SHAPE', op, argument, message);
  }
}

/**
 * The operation does not support this type, or types differ that must be the same. `code` is
 * `DTYPE`.
 *
 * @category Errors
 */
export class DTypeError extends GemmError {
  override name = 'DTypeError';
  /** @hidden */
  constructor(op: string, argument: string, message: string) {
    super('DTYPE', op, argument, message);
  }
}

/**
 * The version of Gemm that the option `opset` selects lacks what the call needs. `code` is `OPSET`.
 *
 * @category Errors
 */
export class OpsetError extends GemmError {
  override name = 'OpsetError';
  /** @hidden */
  constructor(op: string, argument: string, message: string) {
    super('OPSET', op, argument, message);
  }
}

/**
 * An argument is out of range, of the wrong kind, or not known; or `out` overlaps an input. `code`
 * is `ARGUMENT`.
 *
 * @category Errors
 */
export class ArgumentError extends GemmError {
  override name = 'ArgumentError';
  /** @hidden */
  constructor(op: string, argument: string, message: string) {
    super('ARGUMENT', op, argument, message);
  }
}

/**
 * The engine grants no more memory, or the call would exceed `maxMemory`. `code` is
 * `OUT_OF_MEMORY`.
 *
 * @category Errors
 */
export class OutOfMemoryError extends GemmError {
  override name = 'OutOfMemoryError';
  /** @hidden */
  constructor(op: string, argument: string, message: string) {
    super('OUT_OF_MEMORY', op, argument, message);
  }
}

/**
 * Weights were packed for another operation, or bytes are not packed weights, a layer or an index.
 * `code` is `PACK_MISMATCH`.
 *
 * @category Errors
 */
export class PackMismatchError extends GemmError {
  override name = 'PackMismatchError';
  /** @hidden */
  constructor(op: string, argument: string, message: string) {
    super('PACK_MISMATCH', op, argument, message);
  }
}

/**
 * A tensor, packed weights, a layer, an index or an instance was used after its `dispose()`. `code`
 * is `DISPOSED`.
 *
 * @category Errors
 */
export class DisposedError extends GemmError {
  override name = 'DisposedError';
  /** @hidden */
  constructor(op: string, argument: string, message: string) {
    super('DISPOSED', op, argument, message);
  }
}

/**
 * The engine, the page or the entry of the package lacks a feature that the call needs. `code` is
 * `UNSUPPORTED`.
 *
 * @category Errors
 */
export class UnsupportedError extends GemmError {
  override name = 'UnsupportedError';
  /** @hidden */
  constructor(op: string, argument: string, message: string) {
    super('UNSUPPORTED', op, argument, message);
  }
}

/** @internal Returns a value as a message shows it, in a short text. Never throws. */
export function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}...` : value);
    case 'number':
    case 'boolean':
    case 'undefined':
      return Object.is(value, -0) ? '-0' : String(value);
    case 'bigint':
      // A huge one takes half a minute to write out.
      return BigInt.asIntN(128, value) === value ? `${value}n` : 'a bigint of more than 128 bits';
    case 'symbol':
      return 'a symbol';
    case 'function':
      return 'a function';
    default:
      if (value === null) return 'null';
      if (isRevoked(value)) return 'a revoked proxy';
      if (isPromise(value)) return 'a promise, which must be awaited';
      return Array.isArray(value) ? 'an array' : 'an object';
  }
}

/** @internal Whether a value is a promise. Never throws. */
export function isPromise(value: unknown): boolean {
  try {
    return typeof (value as PromiseLike<unknown>).then === 'function';
  } catch {
    return false;
  }
}
