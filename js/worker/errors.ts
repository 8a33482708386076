/** How errors cross from the worker to the page. */
import {
  ArgumentError,
  describe,
  DisposedError,
  DTypeError,
  type ErrorCode,
  GemmError,
  OpsetError,
  OutOfMemoryError,
  PackMismatchError,
  ShapeError,
  UnsupportedError,
} from '../base/errors.js';
import { messageOf } from '../base/port.js';
import { isError } from '../base/properties.js';
import type { ErrorAnswer, SentCause } from './message.js';

const classes: Partial<
  Record<ErrorCode, new (op: string, argument: string, message: string) => GemmError>
> = {
  SHAPE: ShapeError,
  DTYPE: DTypeError,
  OPSET: OpsetError,
  ARGUMENT: ArgumentError,
  OUT_OF_MEMORY: OutOfMemoryError,
  PACK_MISMATCH: PackMismatchError,
  DISPOSED: DisposedError,
  UNSUPPORTED: UnsupportedError,
};

/** @internal Page: the error that the worker sent. */
export function errorOf({ code, op, argument, message, cause }: ErrorAnswer): GemmError {
  const ErrorClass = classes[code];
  const error = ErrorClass
    ? new ErrorClass(op, argument, message)
    : new GemmError(code, op, argument, message);
  return withCause(error, cause);
}

function withCause<E extends Error>(error: E, cause: SentCause | undefined): E {
  if (!cause) return error;
  const value =
    cause.name === undefined
      ? cause.message
      : withCause(named(cause.name, new Error(cause.message)), cause.cause);
  return Object.defineProperty(error, 'cause', { value, configurable: true });
}

function named(name: string, error: Error): Error {
  return Object.defineProperty(error, 'name', { value: name, configurable: true });
}

/** @internal Page: the error of a call whose message cannot be made or posted. */
export function notSent(op: string, error: unknown): GemmError {
  if (error instanceof GemmError) return error;
  const message = `${op}: the arguments cannot be sent to the worker (${messageOf(error)})`;
  if (isError(error) && error.name === 'RangeError')
    return new OutOfMemoryError(op, '', `${message}; pass smaller arrays`);
  return new GemmError('WORKER', op, '', `${message}; check the postMessage() of the worker`, {
    cause: error,
  });
}

/** @internal Page: the error of a call on an instance that is disposed. */
export function disposedInstance(op: string): DisposedError {
  return new DisposedError(
    op,
    'instance',
    `${op}: the instance is disposed; create another with createGemm()`,
  );
}

/** @internal Worker: the message about an error that the call `op` threw. */
export function errorAnswer(id: number, op: string, error: unknown): ErrorAnswer {
  if (error instanceof GemmError) {
    const { code, op, argument, message, cause } = error;
    return { kind: 'error', id, code, op, argument, message, cause: causeOf(cause) };
  }
  const message = `${op}: ${String(error)}`;
  return { kind: 'error', id, code: 'ARGUMENT', op, argument: '', message, cause: causeOf(error) };
}

function causeOf(cause: unknown): SentCause | undefined {
  if (cause === undefined) return undefined;
  if (isError(cause))
    return { name: cause.name, message: cause.message, cause: causeOf(cause.cause) };
  const message = typeof cause === 'string' ? cause : describe(cause);
  return { name: undefined, message, cause: undefined };
}
