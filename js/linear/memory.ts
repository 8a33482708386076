/** The memory of a layer, and the elements of operands. */
import { viewOf } from '../base/arrays.js';
import { ShapeError } from '../base/errors.js';
import type { ArrayOf, DataArray, DType } from '../base/tensor.js';
import { locate, type Operand } from '../call/operand.js';
import { gather } from '../convert/quantize-arguments.js';
import { allocate, count, type QuantizeType } from '../convert/quantize-numbers.js';
import type { Core } from '../instance/core.js';
import { type Constructors, HeapTensor, locateHeld } from '../instance/heap.js';
import type { Form } from './arguments.js';

/** @internal Bias, scales and zero points. */
export type Vectors = readonly (DataArray | null)[];

/** @internal The offsets of the parts of the memory of a layer, and its size, in bytes. */
export function layoutOf([, n, bias, isInt8, zeros]: Form) {
  const aligned = (bytes: number) => Math.ceil(bytes / 64) * 64;
  const scale = aligned(4 * bias * n);
  const zero = scale + aligned(4 * isInt8 * n);
  const c = zero + aligned(zeros * n); // what precedes it is serialized
  const x = c + isInt8 * scale;
  return { starts: [0, scale, zero, c], c, x, end: x + 64 * isInt8 };
}

/** @internal Memory of at least `size` elements. */
export function hold(
  core: Core,
  op: string,
  dtype: DType,
  size: number,
  bytes: number,
): HeapTensor {
  return core.guard(op, () => {
    const address = core.allocate(bytes, op);
    return new (HeapTensor as unknown as Constructors['tensor'])(
      core,
      dtype,
      [size],
      size,
      address,
      bytes,
    );
  });
}

/** @internal */
export function heldBytes(core: Core, op: string, held: HeapTensor, length: number): Uint8Array {
  const address = locateHeld(held, core, op, 'layer');
  return core.module.HEAPU8.subarray(address, address + length);
}

const mostElements = 2 ** 32;

/** @internal Finds the elements of an operand. Throws unless they are as many as in its shape. */
export function find(core: Core, op: string, operand: Operand): void {
  locate(core, op, operand);
  const { name, shape, strides, size } = operand;
  if (count(shape) > mostElements) {
    const rule = 'of more than 2^32 elements; a layer allows at most 2^32';
    throw new ShapeError(op, name, `${op}: ${name} has shape [${shape.join(', ')}], ${rule}`);
  }
  if (strides !== null || size === count(shape)) return;
  const rule = `its shape [${shape.join(', ')}] needs ${count(shape)}`;
  throw new ShapeError(op, name, `${op}: ${name} has ${size} elements; ${rule}`);
}

/** @internal The elements of an operand in order, in a new array. */
export function copyElements(core: Core, operand: Operand): DataArray {
  const dtype = core.dtypes[operand.dtype] as DType;
  const data = allocate('createLinear', operand.name, dtype, count(operand.shape));
  gatherTo(data, core, operand);
  return data;
}

/** @internal */
export function viewIn(core: Core, { dtype, address, size, outside }: Operand): DataArray {
  const [buffer, at] = outside ? [outside.buffer, outside.byteOffset] : [core.buffer, address];
  return viewOf(core.dtypes[dtype] as DType, buffer, at, size);
}

/** @internal Copies the elements of an operand in order. */
export function gatherTo(to: DataArray, core: Core, operand: Operand): void {
  const { shape, strides } = operand;
  const copy = to as ArrayOf<QuantizeType>;
  const data = viewIn(core, operand) as typeof copy;
  if (strides === null) copy.set(data);
  else if (copy.length > 0) gather(copy, 0, data, shape, strides, 0, 0);
}
