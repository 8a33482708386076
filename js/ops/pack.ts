/** Packed weights, from tensors and from bytes. */
import { givenBytes } from '../base/bytes.js';
import { ArgumentError, describe, DTypeError } from '../base/errors.js';
import { has, isReadable } from '../base/properties.js';
import { readOptions } from '../base/read-options.js';
import type { DType } from '../base/tensor.js';
import { writeBlock } from '../call/block.js';
import { locate, type Operand, operandOf, type Reader, readTensor } from '../call/operand.js';
import { readFlag } from '../call/options.js';
import { copyIn, roomOf } from '../call/staging.js';
import type { Core } from '../instance/core.js';
import { blockFormats, type Constructors, PackedWeights } from '../instance/heap.js';
import { readNBits } from './matmul-nbits.js';

/**
 * Options of `pack`.
 *
 * @category Operations
 */
export interface PackOptions {
  /** The operation that the weights are for. `'gemm'` and `'matmul'` mean the same. */
  op: 'gemm' | 'matmul' | 'qgemm';
  /** True: the last two axes of b are (N, K). Any number except 0 is true. Default false. */
  trans?: boolean | number | undefined;
  /**
   * The type that elements are packed as. A float32 b may be packed as `'float16'` or `'bfloat16'`,
   * rounded to nearest even. Calls take weights of these two types with operands of the same type,
   * and with float32. Default: the type of b.
   */
  as?: DType | undefined;
}

/**
 * Options of `pack` for weights of `matmulNBits`, which have neither `trans` nor `as`.
 *
 * @category Operations
 */
export interface PackNBitsOptions {
  /** The operation that the weights are for. */
  op: 'matmulNBits';
}

/** @internal The arguments of `pack`, as they were read from the caller's objects. */
export interface PackArguments {
  /** The function of the core. */
  readonly by: 'pack' | 'packNBits';
  /**
   * PackFor of wgemm.h, then whether to transpose, then the number of a type or -1. For weights of
   * matmulNBits: K, N, bits and block size.
   */
  readonly attributes: Float64Array;
  /** In the order of the bindings; null for an absent one. */
  readonly operands: readonly (Operand | null)[];
}

/** @internal Reads the arguments of `pack`, and checks what needs no core. */
export function readPack(reader: Reader, b: unknown, options: unknown): PackArguments {
  const op = 'pack';
  const { dtypes, callOptions } = reader;
  reader.checkAlive(op);
  const {
    op: target,
    trans,
    as,
  } = readOptions(op, options, ['op', 'trans', 'as'], 'options', callOptions);
  if (target === 'matmulNBits') return readPackNBits(reader, b, trans, as);
  if (target !== 'gemm' && target !== 'matmul' && target !== 'qgemm') {
    throw new ArgumentError(
      op,
      'op',
      `${op}: op is ${describe(target)}; it must be 'gemm', 'matmul', 'qgemm' or 'matmulNBits'`,
    );
  }
  if (isReadable(b) && has(b, 'blockSize') && !has(b, 'shape')) {
    throw new ArgumentError(
      op,
      'op',
      `${op}: op is '${target}' and B has a blockSize; for such weights it must be 'matmulNBits'`,
    );
  }
  if (as !== undefined && !dtypes.includes(as as DType)) {
    throw new DTypeError(
      op,
      'as',
      `${op}: as is ${describe(as)}; it must be ${dtypes.join(' or ')}`,
    );
  }
  const stored = as === undefined ? -1 : dtypes.indexOf(as as DType);
  const attributes = Float64Array.of(
    target === 'qgemm' ? 1 : 0, // their places in packedFor
    readFlag(op, 'trans', trans, 0),
    stored,
  );
  return { by: 'pack', attributes, operands: [readTensor(reader, op, 'B', b)] };
}

function readPackNBits(
  reader: Reader,
  weights: unknown,
  trans: unknown,
  as: unknown,
): PackArguments {
  const op = 'pack';
  for (const [name, value] of Object.entries({ trans, as })) {
    if (value === undefined) continue;
    throw new ArgumentError(
      op,
      name,
      `${op}: ${name} is ${describe(value)}; for matmulNBits it must be absent`,
    );
  }
  const attributes = new Float64Array(4);
  return { by: 'packNBits', attributes, operands: readNBits(reader, op, weights, attributes, 0) };
}

/** @internal */
export function packWeights(
  core: Core,
  { by, attributes, operands }: PackArguments,
): PackedWeights {
  return packStaged(core, 'pack', operands, () => {
    writeBlock(core, attributes, operands);
    return core.module[by]();
  });
}

/** @internal Reads the argument of `deserialize`, and checks that it holds bytes. */
export function readBytes(reader: Reader, value: unknown, op = 'deserialize'): Operand {
  reader.checkAlive(op);
  return operandOf('bytes', reader.dtypes.indexOf('uint8'), [], givenBytes(op, 'bytes', value));
}

/** @internal Makes weights from the bytes that `serialize` returned. */
export function readWeights(core: Core, operand: Operand): PackedWeights {
  return packStaged(core, 'deserialize', [operand], () =>
    core.module.deserialize(operand.address, operand.size),
  );
}

/** Packed weights by PackFor of wgemm.h. */
const packedFor = ['gemm', 'qgemm', 'matmulNBits'] as const;

/**
 * @internal Copies operands to the heap that are not there, and packs them.
 * @param pack calls the core, and returns its code
 * @param result default: returns the weights that the core has described in the block
 */
export function packStaged(
  core: Core,
  op: string,
  operands: readonly (Operand | null)[],
  pack: () => number,
): PackedWeights;
/** @internal */
export function packStaged(
  core: Core,
  op: string,
  operands: readonly (Operand | null)[],
  pack: () => number,
  result: () => void,
): void;
export function packStaged(
  core: Core,
  op: string,
  operands: readonly (Operand | null)[],
  pack: () => number,
  result: (core: Core) => unknown = weightsIn,
): unknown {
  core.checkAlive(op);
  const staged: Operand[] = [];
  for (const operand of operands) {
    if (operand === null) continue;
    locate(core, op, operand);
    if (operand.outside !== null) staged.push(operand);
  }
  return core.guard(op, () => {
    const room = roomOf(core, staged);
    const staging = room === 0 ? 0 : core.allocate(room, op);
    try {
      copyIn({ core }, staged, staging);
      core.check(pack(), op, op);
      return result(core);
    } finally {
      if (staging !== 0) core.module.release(staging);
    }
  });
}

/** The weights that the core has described in the block. */
function weightsIn(core: Core): PackedWeights {
  const [address, bytes, target, dtype, rank] = core.block as unknown as [
    number,
    number,
    number,
    number,
    number,
  ];
  const end = 5 + rank;
  return new (PackedWeights as unknown as Constructors['weights'])(
    core,
    packedFor[target] as PackedWeights['op'],
    core.dtypes[dtype] as DType,
    blockFormats[core.block[end] as number] || undefined,
    Array.from(core.block.subarray(5, end)),
    address,
    bytes,
  );
}
