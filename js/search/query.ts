/** The queries of a search, from the caller's objects to the heap. */
import { checkAttached, classOf, dtypesOf, lengthOf } from '../base/arrays.js';
import type { DataArray, DType } from '../base/tensor.js';
import type { Operand } from '../call/operand.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, locateHeld } from '../instance/heap.js';
import { readVectors, wrongShape } from './arguments.js';
import { bytesOf, find, isInPlace, mostStaged, stage } from './pieces.js';
import { addressOf } from './views.js';

const name = 'query';

/**
 * @internal The queries of a call. An index has one Query for all its calls, and `read` makes no
 * object for a HeapTensor, or for one vector in a typed array.
 */
export class Query {
  /** The core's number of the type. */
  type = 0;
  rows = 0;
  /** Whether the caller gave one vector, without an axis of rows. */
  isOne = false;
  /** After `find`: the address of queries that are in the heap, one after the other; else 0. */
  address = 0;
  readonly #core: Core;
  readonly #dimensions: number;
  #source: HeapTensor | DataArray | undefined;
  #operand: Operand | undefined;

  constructor(core: Core, dimensions: number) {
    this.#core = core;
    this.#dimensions = dimensions;
  }

  /**
   * Reads the queries. This may run code of the caller, so `find` must follow.
   * @param isVector an array without a shape must be one vector
   */
  read(op: string, value: unknown, isVector: boolean): void {
    const { dtypes } = this.#core;
    if (HeapTensor.is(value)) {
      const { shape } = value;
      const rank = shape.length;
      if ((rank !== 1 && rank !== 2) || shape[rank - 1] !== this.#dimensions)
        throw wrongShape(op, name, shape, this.#dimensions);
      this.#set(dtypes.indexOf(value.dtype), rank === 1 ? 1 : (shape[0] as number), rank === 1);
      this.#source = value;
      return;
    }
    const types = dtypesOf[classOf(value) ?? ''];
    if (types?.length === 1 && lengthOf(value as DataArray) === this.#dimensions) {
      this.#set(dtypes.indexOf(types[0] as DType), 1, true);
      this.#source = value as DataArray;
      return;
    }
    const { operand, isOne } = readVectors(this.#core, op, name, value, this.#dimensions, isVector);
    this.#set(operand.dtype, operand.shape[0] as number, isOne);
    this.#operand = operand;
  }

  #set(type: number, rows: number, isOne: boolean): void {
    this.type = type;
    this.rows = rows;
    this.isOne = isOne;
    this.forget();
  }

  /** Drops the caller's objects. */
  forget(): void {
    this.#source = undefined;
    this.#operand = undefined;
  }

  /** Finds the elements. From here on no code of the caller may run. */
  find(op: string): void {
    const core = this.#core;
    const source = this.#source;
    if (this.#operand) {
      find(core, op, this.#operand);
      this.address = isInPlace(this.#operand) ? this.#operand.address : 0;
    } else if (HeapTensor.is(source)) {
      this.address = locateHeld(source, core, op, name);
    } else {
      checkAttached(op, name, source as DataArray, 'is a detached array');
      this.address = addressOf(core, op, name, source as DataArray);
    }
  }

  /** Bytes of a query. */
  get bytes(): number {
    return this.#dimensions * bytesOf(this.#core, this.#core.dtypes[this.type] as DType);
  }

  /** The most queries that are in the heap at once. */
  get most(): number {
    if (this.address !== 0) return this.rows;
    return mostStaged(this.rows, this.bytes);
  }

  /** Copies queries to the heap, unless they are there. Returns their address. */
  stage(first: number, rows: number, to: number): number {
    const core = this.#core;
    if (this.address !== 0) return this.address + first * this.bytes;
    if (this.#operand) {
      stage(core, this.#operand, first, rows, to);
    } else {
      const type = core.dtypes[this.type] as DType;
      (core.elements(type) as Uint8Array).set(this.#source as Uint8Array, to / bytesOf(core, type));
    }
    return to;
  }
}
