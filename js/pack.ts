/** Packing of weights. */
import { readFlag, readOptions, write } from './call.js';
import type { Core } from './core.js';
import { ArgumentError, describe } from './errors.js';
import { PackedWeights } from './heap.js';
import { locate, readTensor } from './operand.js';
import type { DType } from './tensor.js';

export interface PackOptions {
  /** The operation that the weights are for. Those for `'gemm'` and for `'matmul'` are the same. */
  op: 'gemm' | 'matmul' | 'qgemm';
  /** The last two axes of b are (N, K). Any number but 0 is true. Default false. */
  trans?: boolean | number;
}

/** @internal */
export function packWeights(core: Core, b: unknown, options: unknown): PackedWeights {
  const op = 'pack';
  core.checkAlive(op);
  const { op: target, trans } = readOptions(op, options, ['op', 'trans']);
  if (target !== 'gemm' && target !== 'matmul' && target !== 'qgemm') {
    throw new ArgumentError(op, 'op', `${op}: op is ${describe(target)}; it must be 'gemm', 'matmul' or 'qgemm'`);
  }
  const attributes = [target === 'qgemm' ? 1 : 0, readFlag(op, 'trans', trans, 0)]; // PackFor of wgemm.h
  const operand = readTensor(core, op, 'B', b);
  core.checkAlive(op);
  locate(core, op, operand);
  const { outside } = operand;
  const staging = outside === null ? 0 : core.allocate(outside.byteLength, op);
  try {
    if (outside !== null) {
      core.module.HEAPU8.set(outside, staging);
      operand.address = staging;
    }
    write(core, op, attributes, [operand]);
    core.check(core.module.pack(), op);
    const [address, bytes, rank] = core.block as unknown as [number, number, number];
    const shape = Array.from(core.block.subarray(3, 3 + rank));
    return new PackedWeights(core, target === 'qgemm' ? 'qgemm' : 'gemm', core.dtypes[operand.dtype] as DType, shape, address, bytes);
  } finally {
    if (staging !== 0) core.module.release(staging);
  }
}
