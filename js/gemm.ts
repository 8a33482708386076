/** ONNX Gemm: its options, and how a call of it is read. */
import { type Call, makeCall, operations, readAddend, readFlag, readOptions } from './call.js';
import type { Core } from './core.js';
import { ArgumentError, describe, OpsetError } from './errors.js';
import { readTensor } from './operand.js';
import type { DataArray, DType, TensorLike } from './tensor.js';

export interface GemmOptions<A extends DataArray = DataArray> {
  /**
   * Factor of the product. Rounded to float32 with float32, float16 and bfloat16. With integers a fraction sends the result through
   * float64, in which 64-bit values above 2^53 lose bits. A bigint is for int64 and uint64, modulo 2^64. Default 1.
   */
  alpha?: number | bigint;
  /** Factor of C, as alpha. 0: C is not read. Default 1. */
  beta?: number | bigint;
  /** A has shape (K, M). Any number but 0 is true. Default false. */
  transA?: boolean | number;
  /** B has shape (N, K). Any number but 0 is true. Default false. */
  transB?: boolean | number;
  /** The model's opset: the newest Gemm that is not above it is meant. Default 13. */
  opset?: number;
  /** Opsets 1 to 6 only: whether C may be broadcast. Default false. */
  broadcast?: boolean | number;
  /** Filled in place and returned. May be C itself, else must not overlap an input. */
  out?: TensorLike<A>;
}

const optionNames = ['alpha', 'beta', 'transA', 'transB', 'opset', 'broadcast', 'out'];

/** @internal */
export function readGemm(core: Core, a: unknown, b: unknown, c: unknown, options: unknown): Call {
  const op = 'gemm';
  core.checkAlive(op);
  const { alpha, beta, transA, transB, opset, broadcast, out } = readOptions(op, options, optionNames);
  const operandA = readTensor(core, op, 'A', a);
  const operandB = readTensor(core, op, 'B', b);
  const operandC = readAddend(core, op, 'C', c, core.dtypes[operandA.dtype] as DType);
  const attributes: number[] = [];
  readFactor('alpha', alpha, attributes);
  readFactor('beta', beta, attributes);
  attributes.push(
    readFlag(op, 'transA', transA, 0),
    readFlag(op, 'transB', transB, 0),
    readOpset(opset),
    readFlag(op, 'broadcast', broadcast, NaN), // NaN: not given
  );
  const operandY = out === undefined ? null : readTensor(core, op, 'Y', out);
  return makeCall(core, operations.gemm, attributes, [operandA, operandB, operandC, operandY], out);
}

/** Appends a number; whether it is a bigint instead; and of that the low and high 32 bits. */
function readFactor(name: string, value: unknown, attributes: number[]): void {
  if (value === undefined) attributes.push(1, 0, 0, 0);
  else if (typeof value === 'number') attributes.push(value, 0, 0, 0);
  else if (typeof value === 'bigint') attributes.push(0, 1, Number(BigInt.asUintN(32, value)), Number(BigInt.asUintN(32, value >> 32n)));
  else throw new ArgumentError('gemm', name, `gemm: ${name} is ${describe(value)}; it must be a number, or a bigint with int64 and uint64`);
}

function readOpset(value: unknown): number {
  if (value === undefined) return 13;
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw new OpsetError('gemm', 'opset', `gemm: opset is ${describe(value)}; it must be a whole number from 1`);
  }
  return value;
}
