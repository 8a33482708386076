/** Reads objects of options. */
import { classOf } from './arrays.js';
import { ArgumentError, describe, isPromise } from './errors.js';
import { handleIn, has, isList, isReadable, unpolluted } from './properties.js';

/** @internal How to call some operations, as errors advise. */
export const callOf: Readonly<Record<string, string | undefined>> = {
  gemm: 'call gemm(a, b, c or null, options)',
  matmul: 'call matmul(src, weights, bias or null, options)',
  syrk: 'call syrk(a, options)',
};

const noOptions = Object.freeze(Object.create(null) as Record<string, unknown>);

/**
 * @internal Reads an object of options. All of its own properties must be `allowed`, or among those
 * `besides` that something else reads. Returns the caller's object, since a copy takes as long as a
 * small product. Read each property once, before anything is in the block of arguments: it may be a
 * getter.
 */
export function readOptions(
  op: string,
  options: unknown,
  allowed: readonly string[],
  what = 'options',
  besides: readonly string[] = [],
): Record<string, unknown> {
  if (options === undefined || options === null) return noOptions;
  if (!isReadable(options)) {
    throw new ArgumentError(
      op,
      what,
      `${op}: ${what} is ${describe(options)}; it must be an object`,
    );
  }
  let isBare = true;
  // Object.keys() would make an array.
  for (const key in options) {
    isBare = false;
    if (allowed.includes(key) || besides.includes(key)) continue;
    if (Object.prototype.hasOwnProperty.call(options, key))
      throw unknownOption(op, options, key, what, allowed);
  }
  // Properties may be inherited, or not enumerable.
  if (isBare && !allowed.some((key) => has(options, key))) {
    const found = mistakenFor(options) ?? tagOf(options);
    if (found !== undefined) throw notOptions(op, what, found, allowed);
  }
  return unpolluted(options, allowed);
}

/** @internal Checks an option that aborts a call. */
export function checkSignal(op: string, signal: unknown): void {
  const isSignal = ({ aborted, addEventListener, removeEventListener }: Record<string, unknown>) =>
    typeof aborted === 'boolean' &&
    typeof addEventListener === 'function' &&
    typeof removeEventListener === 'function';
  if (signal !== undefined && !(isReadable(signal) && isSignal(signal as never)))
    throw new ArgumentError(op, 'signal', `${op}: signal must be an AbortSignal`);
}

/** @internal Reads the object of inputs that some calls take. */
export function readInputs(
  op: string,
  inputs: unknown,
  allowed: readonly string[],
): Record<string, unknown> {
  if (typeof inputs === 'object' && inputs !== null)
    return readOptions(op, inputs, allowed, 'inputs');
  throw new ArgumentError(
    op,
    'inputs',
    `${op}: inputs is ${describe(inputs)}; it must be an object with ${allowed.join(', ')}`,
  );
}

/** An array, a promise, a handle or a tensor in the place of options; undefined for others. */
function mistakenFor(options: object): string | undefined {
  return (
    classOf(options) ??
    (isList(options) || isPromise(options) ? describe(options) : undefined) ??
    handleIn(options)?.replace(/ (in|of) .*/, '') ?? // 'packed weights'
    (has(options, 'data') ? 'a tensor' : undefined)
  );
}

/** The class of an object without properties, such as `Map`; undefined if it may hold options. */
function tagOf(options: object): string | undefined {
  const tag = Object.prototype.toString.call(options).slice(8, -1);
  return tag === 'Object' ? undefined : tag;
}

function notOptions(
  op: string,
  what: string,
  found: string,
  allowed: readonly string[],
): ArgumentError {
  const call = what === 'options' ? callOf[op] : undefined;
  const rule = call ?? `it must be an object with ${allowed.join(', ')}`;
  return new ArgumentError(op, what, `${op}: ${what} is ${found}; ${rule}`);
}

function unknownOption(
  op: string,
  options: object,
  key: string,
  what: string,
  allowed: readonly string[],
): ArgumentError {
  if (what === 'options' || what === 'inputs') {
    const mistaken = mistakenFor(options);
    if (mistaken !== undefined) return notOptions(op, what, mistaken, allowed);
  }
  const kind = /^(op|in)/.test(what) ? what.slice(0, -1) : `property of ${what}`;
  const found = `the ${kind} ${describe(key)} is not known`;
  const advice = what === 'inputs' ? '; options come second' : '';
  return new ArgumentError(
    op,
    key,
    `${op}: ${found}; it must be one of ${allowed.join(', ')}${advice}`,
  );
}
