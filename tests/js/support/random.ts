/**
 * Random numbers that are the same in every run (mulberry32). Programs without Vitest use them too.
 */
import type { DataArray, DType } from 'wgemm';
import { arrayClasses, bytesOf, dtypeOf, isFloat, toBits } from './dtypes.js';
import type { Matrix } from './reference.js';

export class Random {
  constructor(private state: number) {}

  /** From 0 up to 1. */
  next(): number {
    return this.bits() / 2 ** 32;
  }

  /** A whole number. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** One of several. */
  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.next() * values.length)] as T;
  }

  /**
   * Floating point from -1 to 1, with all its digits; integers over their whole range, so that
   * products wrap.
   */
  fill<A extends DataArray>(data: A, dtype = dtypeOf({ data })): A {
    const { length } = data;
    if (isFloat(dtype)) {
      const numbers = new Float64Array(length);
      for (let i = 0; i < length; ++i) numbers[i] = (this.next() + this.next() / 2 ** 32) * 2 - 1;
      if (data instanceof Uint16Array)
        numbers.forEach((value, i) => (data[i] = toBits(dtype, value)));
      else (data as Float32Array).set(numbers);
    } else if (bytesOf(dtype) <= 4) {
      const words = new Uint32Array(length);
      for (let i = 0; i < length; ++i) words[i] = this.bits();
      (data as Uint32Array).set(words);
    } else {
      const words = new Uint32Array(2 * length);
      for (let i = 0; i < 2 * length; ++i) words[i ^ 1] = this.bits(); // the upper half first
      (data as BigUint64Array).set(new BigUint64Array(words.buffer));
    }
    return data;
  }

  /** A contiguous tensor. */
  tensor(dtype: DType, shape: readonly number[]): Matrix {
    const data = new arrayClasses[dtype](shape.reduce((product, size) => product * size, 1));
    return { data: this.fill(data, dtype), shape, dtype };
  }

  private bits(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  }
}
