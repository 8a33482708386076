/** Checks of errors, which the tests share. */
import { expect } from 'vitest';
import { createGemm, type CreateOptions, GemmError } from 'wgemm';
import * as wgemm from 'wgemm';

const classes = {
  SHAPE: 'ShapeError',
  DTYPE: 'DTypeError',
  OPSET: 'OpsetError',
  ARGUMENT: 'ArgumentError',
  OUT_OF_MEMORY: 'OutOfMemoryError',
  PACK_MISMATCH: 'PackMismatchError',
  DISPOSED: 'DisposedError',
  UNSUPPORTED: 'UnsupportedError',
  LOAD: 'GemmError',
  WORKER: 'GemmError',
  INTERRUPTED: 'GemmError',
} as const;

export interface Wanted {
  code: keyof typeof classes;
  /** Default: gemm. */
  op?: string;
  argument: string;
  /** Texts that the message must contain: what was found, and what is allowed. */
  says: readonly (string | RegExp)[];
}

const namesOfCore =
  /\b(Y|dst|zero_points|accuracy_level|block_size|g_idx|transpose_|[aby]_(scale|zero_point))/;

/** Expects all properties of an error. */
export function expectError(error: unknown, { code, op = 'gemm', argument, says }: Wanted): void {
  expect(error).toBeInstanceOf(GemmError);
  expect(error).toBeInstanceOf(wgemm[classes[code]]);
  expect(error).toMatchObject({ name: classes[code], code, op, argument });
  const { message } = error as GemmError;
  expect(message.startsWith(`${op}: `), message).toBe(true);
  expect(message).toContain(argument);
  // Arguments have the names of JavaScript, not of the core. Names in quotes are the caller's.
  expect(message.replace(/"[^"]*"/g, '')).not.toMatch(namesOfCore);
  for (const text of says)
    expect(message).toMatch(
      text instanceof RegExp ? text : new RegExp(text.replace(/[\^$.*+?()[\]{}|]/g, '\\$&')),
    );
}

export function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return expect.fail('there was no error');
}

/** The error that rejects a promise. */
export async function rejected(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return expect.fail('there was no error');
}

/** The error of a createGemm. */
export function notCreated(options: unknown): Promise<unknown> {
  return rejected(createGemm(options as CreateOptions).then((wg) => wg.dispose()));
}

/** Expects that an error of a worker has all properties of the error of `wgemm`. */
export function expectSameError(found: unknown, wanted: unknown): void {
  expect(wanted).toBeInstanceOf(GemmError);
  expect(found).toBeInstanceOf((wanted as GemmError).constructor);
  const parts = ({ name, code, op, argument, message }: GemmError) => ({
    name,
    code,
    op,
    argument,
    message,
  });
  expect(parts(found as GemmError)).toEqual(parts(wanted as GemmError));
}

const knownOperations = [
  'gemm',
  'qgemm',
  'matmulInteger',
  'qlinearMatmul',
  'dynamicQuantizeMatmul',
  'matmulIntegerToFloat',
  'matmulNBits',
  'syrk',
  'pack',
  'alloc',
  'createGemm',
];

/** Expects a GemmError with all its properties. */
export function expectWhole(error: unknown): void {
  if (!(error instanceof GemmError)) throw error;
  expect(error.code).toMatch(/^[A-Z_]+$/);
  expect(knownOperations).toContain(error.op);
  expect(typeof error.argument).toBe('string');
  expect(error.message).toMatch(/^\w+: .{10}/);
}

/** Expects that a call throws nothing except a complete GemmError. Returns whether it succeeded. */
export function succeeds(call: () => unknown): boolean {
  try {
    call();
    return true;
  } catch (error) {
    expectWhole(error);
    return false;
  }
}
