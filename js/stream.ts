/** How blocks of the caller's arrays come to the heap and back while the core computes, where they do not fit as a whole. */
import type { Core } from './core.js';
import type { Operand } from './operand.js';
import { bytesOf, type DType } from './tensor.js';
import type { CoreModule } from './wgemm-simd128.mjs';

const words = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };

/**
 * @internal What the core calls: moves elements of the operand at `place`, of the last from the heap, of the others to it. Element j of run i is that at
 * offset + i * runStride + j * stride; at the address they lie side by side. An error on the way, as of a stack overflow, ends the instance.
 */
export function moverOf(core: Core, operands: readonly (Operand | null)[]): CoreModule['moveBlock'] {
  return (place, offset, count, length, runStride, stride, address) => {
    const { dtype, outside } = operands[place] as Operand & { outside: Uint8Array };
    const isResult = place === operands.length - 1;
    const bytes = bytesOf(core.dtypes[dtype] as DType);
    if (stride === 1) {
      const heap = core.module.HEAPU8;
      const size = length * bytes;
      for (let i = 0; i < count; ++i) {
        const at = (offset + i * runStride) * bytes;
        if (isResult) outside.set(heap.subarray(address, address + size), at);
        else heap.set(outside.subarray(at, at + size), address);
        address += size;
      }
      return;
    }
    // As integers, since floating point may not keep the bits of a NaN.
    const perElement = bytes > 4 ? 2 : 1;
    const Words = words[(bytes / perElement) as keyof typeof words];
    const elements = new Words(outside.buffer as ArrayBuffer, outside.byteOffset, outside.byteLength / Words.BYTES_PER_ELEMENT);
    const block = new Words(core.buffer as ArrayBuffer, address, count * length * perElement);
    let next = 0;
    for (let i = 0; i < count; ++i) {
      for (let j = 0; j < length; ++j) {
        const at = (offset + i * runStride + j * stride) * perElement;
        for (let word = at; word < at + perElement; ++word, ++next) {
          if (isResult) elements[word] = block[next] as number;
          else block[next] = elements[word] as number;
        }
      }
    }
  };
}
