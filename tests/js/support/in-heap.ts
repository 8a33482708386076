/** Arguments of calls in the memory of an instance. */
import type { DataArray, DType, Gemm, HeapTensor } from 'wgemm';
import { dtypeOf } from './dtypes.js';
import type { Named } from './error-calls.js';
import { count } from './tensors.js';

/** All arrays in arguments, in objects of any depth; not the memory of handles. */
export function arraysIn(value: unknown, found = new Set<DataArray>()): Set<DataArray> {
  if (ArrayBuffer.isView(value)) {
    if (!(value instanceof DataView)) found.add(value as unknown as DataArray);
  } else if (isPlain(value)) {
    for (const part of Object.values(value)) arraysIn(part, found);
  }
  return found;
}
function isPlain(value: unknown): value is Named {
  try {
    return Object.getPrototypeOf(value) === Object.prototype;
  } catch {
    return false; // nothing, or a revoked proxy
  }
}

/** The arguments with their arrays in the heap: as tensors, or views if several share a buffer. */
export function inHeap(wg: Gemm, args: Named): [moved: Named, dispose: () => void] {
  const arrays = [...arraysIn(args)];
  const held: HeapTensor[] = [];
  const alloc = (dtype: DType, shape: readonly number[]) => {
    const tensor = wg.alloc(dtype, shape) as HeapTensor;
    held.push(tensor);
    return tensor;
  };
  const isShared = ({ buffer }: DataArray) =>
    arrays.filter((array) => array.buffer === buffer).length > 1;
  const shared = arrays.find(isShared)?.buffer;
  const arena = shared && alloc('uint8', [shared.byteLength]);
  if (arena) (arena.data as Uint8Array).set(new Uint8Array(shared));
  const move = (array: DataArray, { shape = [array.length], dtype, ...more }: Named) => {
    if (array.buffer === shared) {
      const { buffer, byteOffset } = (arena as HeapTensor).data;
      const Class = array.constructor as Float32ArrayConstructor;
      const data = new Class(buffer as ArrayBuffer, byteOffset + array.byteOffset, array.length);
      return { data, shape, ...more };
    }
    const sizes = shape as readonly number[];
    const type = dtypeOf({ data: array, ...(dtype ? { dtype: dtype as DType } : {}) });
    const isWhole =
      Object.keys(more).length === 0 &&
      count(sizes) === array.length &&
      sizes.every((size) => size < 1000);
    const tensor = alloc(type, isWhole ? sizes : [array.length]);
    (tensor.data as Uint8Array).set(array as Uint8Array);
    return isWhole ? tensor : { data: tensor, shape, ...more };
  };
  const moveAll = (value: unknown): unknown => {
    if (ArrayBuffer.isView(value)) return move(value as unknown as DataArray, {});
    if (!isPlain(value)) return value;
    const { data, ...more } = value;
    if (ArrayBuffer.isView(data) && 'shape' in value)
      return move(data as unknown as DataArray, more);
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, moveAll(part)]));
  };
  return [moveAll(args) as Named, () => held.forEach((tensor) => tensor.dispose())];
}
