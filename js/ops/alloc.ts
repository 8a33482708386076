/** `alloc` and `memory`: the memory of an instance. */

import { bytesOf } from '../base/arrays.js';
import { describe, DTypeError, ShapeError } from '../base/errors.js';
import { readSizes } from '../base/layout.js';
import type { DType } from '../base/tensor.js';
import type { Reader } from '../call/operand.js';
import type { Core } from '../instance/core.js';
import { type Constructors, HeapTensor } from '../instance/heap.js';

/**
 * How much memory an instance uses. `memory()` returns it.
 *
 * @category Instances
 */
export interface MemoryUse {
  /** Bytes that tensors and packed weights hold. */
  inUse: number;
  /** Bytes that the wasm memory has taken from the system. They only grow. */
  committed: number;
}

/** @internal The arguments of `alloc`, as they were read from the caller's objects. */
export interface AllocArguments {
  readonly dtype: DType;
  readonly sizes: number[];
}

/** @internal */
export function readAlloc(reader: Reader, dtype: unknown, shape: unknown): AllocArguments {
  const op = 'alloc';
  const { dtypes } = reader;
  reader.checkAlive(op);
  if (!dtypes.includes(dtype as DType)) {
    throw new DTypeError(
      op,
      'dtype',
      `${op}: dtype is ${describe(dtype)}; it must be ${dtypes.join(' or ')}`,
    );
  }
  const sizes = readSizes(op, 'shape', 'shape is', shape);
  if (!(sizes.reduce((product, n) => product * (n || 1), 1) <= 2 ** 53)) {
    throw new ShapeError(
      op,
      'shape',
      `${op}: shape is [${sizes.join(', ')}], of more than 2^53 elements`,
    );
  }
  return { dtype: dtype as DType, sizes };
}

/** @internal */
export function allocTensor(core: Core, { dtype, sizes }: AllocArguments): HeapTensor {
  const op = 'alloc';
  core.checkAlive(op);
  const size = sizes.reduce((product, n) => product * n, 1);
  const bytes = size * bytesOf(dtype);
  return core.guard(op, () => {
    const address = core.allocate(bytes, op);
    core.module.HEAPU8.fill(0, address, address + bytes);
    return new (HeapTensor as unknown as Constructors['tensor'])(
      core,
      dtype,
      sizes,
      size,
      address,
      bytes,
    );
  });
}

/** @internal */
export function memoryOf(core: Core): MemoryUse {
  core.checkAlive('memory');
  return { inUse: core.module.bytesInUse(), committed: core.buffer.byteLength };
}
