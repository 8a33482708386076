/** The words of a program: see src/program/program.h and src/nn/steps.h. */
import { bytesOf } from '../../base/arrays.js';
import type { StepTensor } from '../operators/record.js';
import { type OnnxDType, storedAs } from '../read/value.js';

/** @internal The words of a program while it is recorded. Recordings use one after the other. */
export class Words {
  #array = new Float64Array(1 << 10);
  length = 0;

  push(...words: number[]): void {
    this.append(words);
  }

  /** Changes a word that was pushed. */
  set(index: number, word: number): void {
    this.#array[index] = word;
  }

  append(words: ArrayLike<number>): void {
    const end = this.length + words.length;
    if (end > this.#array.length) {
      const larger = new Float64Array(2 * end);
      larger.set(this.#array);
      this.#array = larger;
    }
    this.#array.set(words, this.length);
    this.length = end;
  }

  /** Begins the words of a step. The last of them is the length of the rest. */
  begin(number: number, node: number): void {
    this.push(number, node, 0);
  }

  /** Pushes the rest of the words of a step, which has begun. */
  step(
    dims: readonly number[],
    tensors: readonly StepTensor[],
    addresses: readonly number[],
    attributes: readonly number[],
    types: (dtype: OnnxDType) => number,
  ): void {
    const start = this.length;
    const isScalar = dims.length === 0;
    this.push(dims.length || 1, ...(isScalar ? [1] : dims));
    tensors.forEach(({ strides, start, value: { dtype } }, i) => {
      const place = (addresses[i] as number) + (start && start * bytesOf(storedAs(dtype)));
      this.push(types(dtype), place, ...(isScalar ? [0] : strides));
    });
    this.append(attributes);
    this.set(start - 1, this.length - start);
  }

  /** A copy of the words. */
  taken(): Float64Array {
    return this.#array.slice(0, this.length);
  }

  get all(): Float64Array {
    return this.#array.subarray(0, this.length);
  }
}
