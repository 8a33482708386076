/** The kind of rule that was broken. */
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
 * Every error of the library. The message is one sentence that names the argument, what was found
 * and what is allowed. Operands have the names of the specifications: A, B, C, and Y for the
 * output. Nothing was written, and the instance still works. The codes `WORKER` and `INTERRUPTED`
 * are the exceptions: a thread died, or the engine interrupted a call, and the instance has ended.
 */
export class GemmError extends Error {
  override name = 'GemmError';

  constructor(
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

/** A rank, size, stride or array length breaks a rule. */
export class ShapeError extends GemmError {
  override name = 'ShapeError';
  constructor(op: string, argument: string, message: string) {
    super('SHAPE', op, argument, message);
  }
}

/** The operation does not have this type, or types differ that must be the same. */
export class DTypeError extends GemmError {
  override name = 'DTypeError';
  constructor(op: string, argument: string, message: string) {
    super('DTYPE', op, argument, message);
  }
}

/** The version of the operator that `opset` names lacks what the call needs. */
export class OpsetError extends GemmError {
  override name = 'OpsetError';
  constructor(op: string, argument: string, message: string) {
    super('OPSET', op, argument, message);
  }
}

/** Any other argument is out of range, of the wrong kind, or not known. */
export class ArgumentError extends GemmError {
  override name = 'ArgumentError';
  constructor(op: string, argument: string, message: string) {
    super('ARGUMENT', op, argument, message);
  }
}

/** The memory cannot grow, or would exceed `maxMemory`. */
export class OutOfMemoryError extends GemmError {
  override name = 'OutOfMemoryError';
  constructor(op: string, argument: string, message: string) {
    super('OUT_OF_MEMORY', op, argument, message);
  }
}

/** B was packed for another operation, type or shape, or bytes are no packed weights. */
export class PackMismatchError extends GemmError {
  override name = 'PackMismatchError';
  constructor(op: string, argument: string, message: string) {
    super('PACK_MISMATCH', op, argument, message);
  }
}

/** A tensor or an instance was used after its `dispose()`. */
export class DisposedError extends GemmError {
  override name = 'DisposedError';
  constructor(op: string, argument: string, message: string) {
    super('DISPOSED', op, argument, message);
  }
}

/** This engine, page or version of the library lacks a feature that the call needs. */
export class UnsupportedError extends GemmError {
  override name = 'UnsupportedError';
  constructor(op: string, argument: string, message: string) {
    super('UNSUPPORTED', op, argument, message);
  }
}

/** @internal A value as a message shows it. The text is short. Never throws. */
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
      try {
        return Array.isArray(value) ? 'an array' : 'an object';
      } catch {
        return 'a revoked proxy';
      }
  }
}
