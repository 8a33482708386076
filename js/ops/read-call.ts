/** Reads the arguments of a call whose operation is a value. */
import { ArgumentError, describe } from '../base/errors.js';
import type { Arguments, OperationName } from '../call/call.js';
import type { Reader } from '../call/operand.js';
import { readGemm } from './gemm.js';
import { readIntegerMatMul } from './integer-matmul.js';
import { readMatMulNBits } from './matmul-nbits.js';
import { readMatMul } from './matmul.js';
import { isOperation, operations } from './operations.js';
import { readQGemm } from './qgemm.js';
import { readSyrk } from './syrk.js';

/** How the arguments of each operation are read. */
const readers: Record<OperationName, (reader: Reader, args: readonly unknown[]) => Arguments> = {
  gemm: readGemm,
  matmul: readMatMul,
  qgemm: readQGemm,
  matmulInteger: (reader, args) => readIntegerMatMul(reader, 'matmulInteger', args),
  qlinearMatmul: (reader, args) => readIntegerMatMul(reader, 'qlinearMatmul', args),
  dynamicQuantizeMatmul: (reader, args) => readIntegerMatMul(reader, 'dynamicQuantizeMatmul', args),
  matmulIntegerToFloat: (reader, args) => readIntegerMatMul(reader, 'matmulIntegerToFloat', args),
  matmulNBits: readMatMulNBits,
  syrk: readSyrk,
};

/** @internal Reads the arguments of an operation. */
export function readCall(reader: Reader, op: OperationName, args: readonly unknown[]): Arguments {
  return readers[op](reader, args);
}

/** @internal Reads the arguments of `explain`: the name of an operation, and its arguments. */
export function readExplained(reader: Reader, op: unknown, args: readonly unknown[]): Arguments {
  if (isOperation(op)) return readCall(reader, op, args);
  const names = Object.keys(operations).map((name) => `'${name}'`);
  throw new ArgumentError(
    'explain',
    'op',
    `explain: op is ${describe(op)}; it must be ` +
      `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`,
  );
}
