/**
 * Random numbers that are the same in every run (mulberry32). Programs without Vitest use them too.
 */
import type { DataArray, DType } from 'wgemm';
import { arrayClasses, bytesOf, dtypeOf, isFloat, set } from './dtypes.js';
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
    for (let i = 0; i < data.length; ++i) {
      if (isFloat(dtype)) set(data, dtype, i, (this.next() + this.next() / 2 ** 32) * 2 - 1);
      else if (bytesOf(dtype) <= 4) set(data, dtype, i, this.bits());
      else set(data, dtype, i, (BigInt(this.bits()) << 32n) | BigInt(this.bits()));
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
