/** `explain`: what a call would do. */

import { ArgumentError, describe } from '../base/errors.js';
import type { Arguments, Call, OperationName } from '../call/call.js';
import type { Reader } from '../call/operand.js';
import { explain } from '../call/out-of-core.js';
import type { Core } from '../instance/core.js';
import { readGemm } from './gemm.js';
import { isIntegerMatMul, readIntegerMatMul } from './integer-matmul.js';
import { readMatMulNBits } from './matmul-nbits.js';
import { readMatMul } from './matmul.js';
import { operations } from './operations.js';
import { readQGemm } from './qgemm.js';

/**
 * The plan for a call: what it would do. `explain` returns it.
 *
 * @category Instances
 */
export interface Explanation {
  /** The operation. */
  op: OperationName;
  /**
   * Number of products of the sizes `m`, `n` and `k`. If one product can replace several, it counts
   * once.
   */
  batch: number;
  /** M: rows of the result of each product. */
  m: number;
  /** N: columns of the result of each product. */
  n: number;
  /** K: elements in each sum. */
  k: number;
  /** The name of the micro-kernel; '' if M, N or K is 0, since there is no product then. */
  kernel: string;
  /**
   * Which rules chose the block sizes: 'GEMM', 'skinny GEMM' (small M) or 'GEMV' (M is 1). It also
   * says how B is read if B is unpacked. '' if there is no product.
   */
  regime: string;
  /**
   * Rows (MR) and columns (NR) of the micro-kernel's tile, in elements, and k steps per iteration.
   */
  tile: [mr: number, nr: number, kr: number];
  /** Block sizes MC, NC and KC, in elements. */
  blocks: [mc: number, nc: number, kc: number];
  /** Number of threads that compute the call. */
  threads: number;
  /** Which operands the call packs. Others are read unpacked, or were packed by `pack`. */
  packs: {
    /** Whether the call packs A. */
    a: boolean;
    /** Whether the call packs B. */
    b: boolean;
  };
  /** Whether the micro-kernel writes the result. If not, the epilogue writes it. */
  direct: boolean;
  /**
   * Whether the call computes the transpose of the result, since N is small. `tile`, `blocks` and
   * `packs` then describe the transposed product, in which B' is the first operand.
   */
  transposed: boolean;
  /**
   * Whether the arrays do not fit in memory, so that the call copies them there block by block.
   * `tile`, `blocks` and `packs` then describe the largest product of blocks. This is a prediction
   * from the limit and the bytes in use now. If the engine grants less, a call is out-of-core, too.
   */
  outOfCore: boolean;
  /**
   * Bytes copied between the caller's arrays and the heap. An out-of-core call copies some of
   * them more than once.
   */
  copies: number;
  /** Bytes of scratch memory during the call. An out-of-core call counts its blocks, too. */
  scratch: number;
}

/** @internal Reads the name of a call, and its arguments. */
export function readExplained(reader: Reader, op: unknown, args: unknown[]): Arguments {
  if (op === 'matmul') return readMatMul(reader, args[0], args[1], args[2], args[3]);
  if (op === 'gemm') return readGemm(reader, args[0], args[1], args[2], args[3]);
  if (op === 'qgemm') return readQGemm(reader, args[0], args[1]);
  if (op === 'matmulNBits') return readMatMulNBits(reader, args);
  if (isIntegerMatMul(op)) return readIntegerMatMul(reader, op, args);
  const names = Object.keys(operations).map((name) => `'${name}'`);
  throw new ArgumentError(
    'explain',
    'op',
    `explain: op is ${describe(op)}; it must be ` +
      `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`,
  );
}

/** The numbers that the core left at the front of the block. */
function numbers<N extends 6 | 19>(core: Core, count: N): Numbers[N] {
  return Array.from(core.block.subarray(0, count)) as Numbers[N];
}

type N4 = [number, number, number, number];
type N5 = [number, ...N4];
type Numbers = { 6: [number, ...N5]; 19: [...N4, ...N5, ...N5, ...N5] };

/** @internal */
export function explainCall(call: Call): Explanation {
  const { core, operation } = call;
  const copies = core.guard(operation.name, () => explain(call));
  const [
    kernel,
    regime,
    batch,
    m,
    n,
    k,
    mr,
    nr,
    kr,
    mc,
    nc,
    kc,
    threads,
    packsA,
    packsB,
    direct,
    transposed,
    scratch,
    outOfCore,
  ] = numbers(core, 19);
  return {
    op: operation.name,
    batch,
    m,
    n,
    k,
    kernel: core.text(kernel),
    regime: core.text(regime),
    tile: [mr, nr, kr],
    blocks: [mc, nc, kc],
    threads,
    packs: { a: packsA !== 0, b: packsB !== 0 },
    direct: direct !== 0,
    transposed: transposed !== 0,
    outOfCore: outOfCore !== 0,
    copies,
    scratch,
  };
}
