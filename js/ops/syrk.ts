/** A times its transpose, as BLAS syrk computes it: its options, and how a call of it is read. */
import { readOptions } from '../base/read-options.js';
import { writeFactor } from '../call/block.js';
import type { Arguments } from '../call/call.js';
import { type Reader, readTensor } from '../call/operand.js';
import { readAlpha, readFlag } from '../call/options.js';
import { computeBlock, makeCall, runCall } from '../call/run.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, type TensorLike, type TensorView, writeHeld } from '../instance/heap.js';
import { operations } from './operations.js';

/**
 * Arrays of the types that `syrk` computes in: float32 and float64.
 *
 * @category Operations
 */
export type SyrkArray = Float32Array | Float64Array;

/**
 * Options of `syrk`.
 *
 * @typeParam A the class of the array of `out`
 * @category Operations
 */
export interface SyrkOptions<A extends SyrkArray = SyrkArray> {
  /** Factor of the product, rounded to float32 with float32. Default 1. */
  alpha?: number | undefined;
  /**
   * True: a has shape (K, N), such as samples and features. Any number except 0 is true. Default
   * false.
   */
  transA?: boolean | number | undefined;
  /**
   * A tensor (N, N) of the type of a. The call writes it and returns it. It must not overlap a.
   * Default: none, so that the call returns a new array.
   */
  out?: TensorLike<A> | TensorView<A> | undefined;
}

const op = 'syrk';
const row = operations[op];
const { arrays } = row;
const { at, length } = row.attributes;

/** @internal */
export function runSyrk(core: Core, a: unknown, options: unknown): unknown {
  core.checkAlive(op);
  const { alpha, transA, out } = readOptions(op, options, row.options);
  // Code that read the options may have disposed of the instance.
  if (core.disposed || !HeapTensor.is(a) || !HeapTensor.is(out))
    return runCall(makeCall(core, readArguments(core, a, alpha, transA, out)));
  const { block } = core;
  writeAttributes(block, alpha, transA);
  const end = writeHeld(core, op, 'A', a, block, length);
  computeBlock(core, row, writeHeld(core, op, 'out', out, block, end));
  return out;
}

/** @internal Reads a call, and checks what needs no core. */
export function readSyrk(reader: Reader, [a, options]: readonly unknown[]): Arguments {
  reader.checkAlive(op);
  const { alpha, transA, out } = readOptions(
    op,
    options,
    row.options,
    'options',
    reader.callOptions,
  );
  return readArguments(reader, a, alpha, transA, out);
}

function readArguments(
  reader: Reader,
  a: unknown,
  alpha: unknown,
  transA: unknown,
  out: unknown,
): Arguments {
  const attributes = new Float64Array(length);
  writeAttributes(attributes, alpha, transA);
  const operands = [
    readTensor(reader, op, 'A', a, arrays),
    out === undefined ? null : readTensor(reader, op, 'out', out, arrays),
  ];
  return { operation: row, attributes, operands, out };
}

function writeAttributes(to: Float64Array, alpha: unknown, transA: unknown): void {
  writeFactor(to, at.alpha, readAlpha(op, alpha));
  to[at.transA] = readFlag(op, 'transA', transA, 0);
}
