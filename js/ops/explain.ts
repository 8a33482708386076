/** `explain`: what a call would do. */

import { explained, explainedNumber } from '../call/block.js';
import type { Call, OperationName } from '../call/call.js';
import { leaveExplanation } from '../call/out-of-core.js';

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
  /**
   * Bytes of the vectors that the kernel was chosen for, as by the option `vectors` of
   * `createGemm`.
   */
  vectors: 16 | 32;
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

/** @internal */
export function explainCall(call: Call): Explanation {
  const { core, operation } = call;
  const copies = core.guard(operation.name, () => leaveExplanation(call));
  const entries = explained.map((name) => [name, explainedNumber(core, name)]);
  const found = Object.fromEntries(entries) as Record<(typeof explained)[number], number>;
  return {
    op: operation.name,
    batch: found.batch,
    m: found.m,
    n: found.n,
    k: found.k,
    kernel: core.text(found.kernel),
    regime: core.text(found.regime),
    tile: [found.mr, found.nr, found.kr],
    blocks: [found.mc, found.nc, found.kc],
    threads: found.threads,
    vectors: found.vectors === 32 ? 32 : 16,
    packs: { a: found.packsA !== 0, b: found.packsB !== 0 },
    direct: found.direct !== 0,
    transposed: found.transposed !== 0,
    outOfCore: found.outOfCore !== 0,
    copies,
    scratch: found.scratch,
  };
}
