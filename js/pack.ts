/** Packed weights, from tensors and from bytes. */
import { write } from './block.js';
import type { Core } from './core.js';
import { ArgumentError, describe, DTypeError } from './errors.js';
import { type Constructors, PackedWeights } from './heap.js';
import {
  checkAttached,
  locate,
  type Operand,
  operandOf,
  type Reader,
  readTensor,
  viewOfBytes,
} from './operand.js';
import { readFlag, readOptions } from './options.js';
import { bytesIn, classOf, type DType } from './tensor.js';

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

/** @internal The arguments of `pack`, as they were read from the caller's objects. */
export interface PackArguments {
  /** PackFor of wgemm.h, then whether to transpose, then the number of a type or -1. */
  readonly attributes: Float64Array;
  readonly operand: Operand;
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
  if (target !== 'gemm' && target !== 'matmul' && target !== 'qgemm') {
    throw new ArgumentError(
      op,
      'op',
      `${op}: op is ${describe(target)}; it must be 'gemm', 'matmul' or 'qgemm'`,
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
    target === 'qgemm' ? 1 : 0,
    readFlag(op, 'trans', trans, 0),
    stored,
  );
  return { attributes, operand: readTensor(reader, op, 'B', b) };
}

/** @internal */
export function packWeights(core: Core, { attributes, operand }: PackArguments): PackedWeights {
  const op = 'pack';
  return makeWeights(core, op, operand, () => {
    write(core, attributes, [operand]);
    return core.module.pack();
  });
}

/** @internal Reads the argument of `deserialize`, and checks that it holds bytes. */
export function readBytes(reader: Reader, value: unknown, op = 'deserialize'): Operand {
  reader.checkAlive(op);
  const bytes = bytesIn(value);
  const found = classOf(bytes);
  if (found !== 'Uint8Array') {
    throw new ArgumentError(
      op,
      'bytes',
      `${op}: bytes is ${found ?? describe(bytes)}; it must be a Uint8Array or an ArrayBuffer`,
    );
  }
  checkAttached(op, 'bytes', bytes as Uint8Array, 'is a detached array');
  return operandOf('bytes', reader.dtypes.indexOf('uint8'), [], bytes as Uint8Array);
}

/** @internal Makes weights from the bytes that `serialize` returned. */
export function readWeights(core: Core, operand: Operand): PackedWeights {
  return makeWeights(core, 'deserialize', operand, () =>
    core.module.deserialize(operand.address, operand.size),
  );
}

/** Copies the operand to the heap if it is not there, and makes weights from it by `make`. */
function makeWeights(core: Core, op: string, operand: Operand, make: () => number): PackedWeights {
  core.checkAlive(op);
  locate(core, op, operand);
  const { outside } = operand;
  return core.guard(op, () => {
    const staging = outside === null ? 0 : core.allocate(outside.byteLength, op);
    try {
      if (outside !== null) {
        core.module.HEAPU8.set(viewOfBytes(outside), staging);
        operand.address = staging;
      }
      core.check(make(), op);
      const [address, bytes, target, dtype, rank] = core.block as unknown as [
        number,
        number,
        number,
        number,
        number,
      ];
      const shape = Array.from(core.block.subarray(5, 5 + rank));
      return new (PackedWeights as unknown as Constructors['weights'])(
        core,
        target === 1 ? 'qgemm' : 'gemm',
        core.dtypes[dtype] as DType,
        shape,
        address,
        bytes,
      );
    } finally {
      if (staging !== 0) core.module.release(staging);
    }
  });
}
