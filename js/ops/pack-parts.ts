/** Weights that arrive in parts, so that they never lie in memory twice. */
import type { DType } from '../base/tensor.js';
import { writeBlock } from '../call/block.js';
import { type Operand, operandOf, packedWeights } from '../call/operand.js';
import type { Core } from '../instance/core.js';
import { type BlockFormat, blockFormats, type PackedWeights } from '../instance/heap.js';
import { packStaged } from './pack.js';

/** @internal Weights that arrive in parts: B', of shape [k, n]. */
export interface PartedWeights {
  /** The format of their blocks, or the type of their elements. */
  readonly type: BlockFormat | DType;
  readonly k: number;
  readonly n: number;
}

/** @internal Where a part begins in B'. For weights in a block format, only `col` counts. */
export interface PartPlace {
  readonly trans: number;
  readonly row: number;
  readonly col: number;
}

/** @internal Makes weights of zeros. */
export function beginPack(core: Core, op: string, { type, k, n }: PartedWeights): PackedWeights {
  const format = blockFormats.indexOf(type as BlockFormat);
  return packStaged(core, op, [], () =>
    format < 0
      ? core.module.beginPack(core.dtypes.indexOf(type as DType), k, n)
      : core.module.beginBlocks(format, k, n),
  );
}

/** @internal Packs a part. For weights in a block format, `part` has the bytes of whole columns. */
export function packPart(
  core: Core,
  op: string,
  weights: PackedWeights,
  { trans, row, col }: PartPlace,
  part: Operand,
): void {
  const whole = operandOf('weights', packedWeights, [], weights);
  const pack = () => {
    const { module } = core;
    if (weights.format) return module.packBlocks(whole.address, col, part.address, part.size);
    writeBlock(core, Float64Array.of(trans, row, col), [part, whole]);
    return module.packPart();
  };
  packStaged(core, op, [part, whole], pack, () => undefined);
}
