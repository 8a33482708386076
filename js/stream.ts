/**
 * How blocks of the caller's arrays come to the heap and back while the core computes, where they
 * do not fit as a whole.
 */
import type { Core } from './core.js';
import type { Operand } from './operand.js';
import { bytesOf, type DType } from './tensor.js';
import type { CoreModule } from './wgemm-simd128.mjs';

const words = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };

/** Of a view: engines have none of any number, the least of those in use 2^32. */
const mostWords = 2 ** 30;

/**
 * @internal What the core calls: moves elements of the operand at `place`, of the last from the
 * heap, of the others to it. Element j of run i is that at offset + i * runStride + j * stride; at
 * the address they are contiguous. An error in here, such as a stack overflow, ends the instance.
 */
export function moverOf(
  core: Core,
  operands: readonly (Operand | null)[],
): CoreModule['moveBlock'] {
  return (place, offset, count, length, runStride, stride, address) => {
    const { dtype, outside } = operands[place] as Operand & { outside: ArrayBufferView };
    const isResult = place === operands.length - 1;
    const bytes = bytesOf(core.dtypes[dtype] as DType);
    // As integers, since floating point may not keep the bits of a NaN.
    const perElement = bytes > 4 ? 2 : 1;
    const Words = words[(bytes / perElement) as keyof typeof words];
    const block = new Words(core.buffer as ArrayBuffer, address, count * length * perElement);
    const most = Math.ceil(mostWords / perElement / (stride || 1)); // elements of a view
    let next = 0;
    for (let i = 0; i < count; ++i) {
      for (let first = 0; first < length; first += most) {
        const size = Math.min(most, length - first);
        const at = outside.byteOffset + (offset + i * runStride + first * stride) * bytes;
        const elements = new Words(
          outside.buffer as ArrayBuffer,
          at,
          ((size - 1) * stride + 1) * perElement,
        );
        const end = next + size * perElement;
        if (stride === 1) {
          const part = block.subarray(next, end);
          if (isResult) elements.set(part);
          else part.set(elements);
          next = end;
        }
        for (let word = 0; next < end; word += (stride - 1) * perElement) {
          for (let each = 0; each < perElement; ++each, ++word, ++next) {
            if (isResult) elements[word] = block[next] as number;
            else block[next] = elements[word] as number;
          }
        }
      }
    }
  };
}
