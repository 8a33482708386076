/** Arrays of the caller, which may be views of the heap. */
import { bufferOf, byteLengthOf, offsetOf } from '../base/arrays.js';
import { DisposedError } from '../base/errors.js';
import type { DataArray } from '../base/tensor.js';
import type { Core } from '../instance/core.js';

/**
 * @internal The address of an array in the heap; 0 for an array elsewhere. A view of the heap is
 * stale once the memory has grown, but the address stays. Throws if its tensor was disposed.
 */
export function addressOf(core: Core, op: string, name: string, array: DataArray): number {
  if (!core.owns(bufferOf(array))) return 0;
  const start = offsetOf(array);
  if (core.holds(start, byteLengthOf(array))) return start;
  const found = `${name} is a view of a tensor that was disposed`;
  throw new DisposedError(op, name, `${op}: ${found}`);
}
