/** The runner of an int8 layer. */
import { ArgumentError, ShapeError } from '../base/errors.js';
import type { DType } from '../base/tensor.js';
import { absent, type Operand, packedWeights } from '../call/operand.js';
import { operandOfResult } from '../call/result.js';
import { compute, copyIn, roomOf, stagedOf } from '../call/staging.js';
import { count } from '../convert/quantize-numbers.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, locateHeld, type PackedWeights } from '../instance/heap.js';
import { operations } from '../ops/operations.js';
import { attributesOfQGemm } from '../ops/qgemm.js';
import { type Form, quantizedTypes } from './arguments.js';
import { find, gatherTo, hold, layoutOf, viewIn } from './memory.js';
import type { Runner } from './runner.js';

const op = 'run';
const none = new Float64Array(0);

/** A tensor as the bindings read it: type, address, size, rank, strides, sizes. */
const scalar = (dtype: number, at: number) => [dtype, at, 1, 0, 0];
const vector = (dtype: number, at: number, n: number) => [dtype, at, n, 1, 0, n];
const matrix = (dtype: number, columns: number) => [dtype, 0, 0, 2, 0, 0, columns];

/** The index of each of these numbers in a tensor of the block. Only a matrix has rows. */
const [addressAt, sizeAt, rowsAt] = [1, 2, 5];

/** Where module.quantize() reads the address of x, its elements, their capacity and the result. */
const quantizing = { from: 0, size: 2, capacity: 3, to: 5 };

/** @internal Runs an int8 layer: module.quantize(), unless x is quantized, and then qgemm. */
export class Int8Runner implements Runner {
  readonly #core: Core;
  readonly #k: number;
  readonly #n: number;
  readonly #typeOfResult: number;
  /** The block of module.quantize(). */
  readonly #quantize: Float64Array;
  /** The block of qgemm, and where x and the result begin in it. */
  readonly #multiply: Float64Array;
  readonly #xAt: number;
  readonly #resultAt: number;
  /** The quantized x. */
  #scratch: HeapTensor | undefined;
  #scratchAt = 0;

  /** @param leastScale the least scale of x that a call may choose, see `leastScaleOf` */
  constructor(
    core: Core,
    form: Form,
    weights: PackedWeights,
    held: HeapTensor,
    leastScale: number,
  ) {
    const [k, n, bias, , zeros, min, max, typeOfX, scaleOfX, zeroOfX, ...y] = form;
    const [typeOfY, scaleOfY, zeroOfY] = y;
    this.#core = core;
    this.#k = k;
    this.#n = n;
    const { starts, x } = layoutOf(form);
    const numberOf = (dtype: DType) => core.dtypes.indexOf(dtype);
    const [float32, int32] = [numberOf('float32'), numberOf('int32')];
    const typeOfA = numberOf(quantizedTypes[typeOfX]);
    const address = locateHeld(held, core, op, 'layer');
    const places = starts.map((start) => address + start) as [number, number, number, number];
    const [biasAt, scalesAt, zerosAt, sumsAt] = places;
    const [aAt, yAt] = [address + x, address + x + 8];
    const parameters = new DataView(core.buffer as ArrayBuffer, aAt);
    parameters.setFloat32(0, scaleOfX, true);
    parameters.setInt8(4, zeroOfX);
    parameters.setFloat32(8, scaleOfY, true);
    parameters.setInt8(12, zeroOfY);

    this.#quantize = Float64Array.of(
      ...[0, 1, 0, 0, typeOfA, 0, scaleOfX || -leastScale, zeroOfX],
      ...(scaleOfX === 0
        ? [aAt, aAt + 4, bias * n, biasAt, scalesAt, n, sumsAt]
        : [0, 0, 0, 0, 0, 0, 0]),
    );
    this.#typeOfResult = scaleOfY === 0 ? float32 : numberOf(quantizedTypes[typeOfY]);
    const pair = (dtype: number, at: number) => [...scalar(float32, at), ...scalar(dtype, at + 4)];
    const before = [
      Array.from(attributesOfQGemm(min, max)),
      pair(typeOfA, aAt),
      vector(float32, scalesAt, n),
      zeros === 0 ? [absent] : vector(numberOf(weights.dtype), zerosAt, n),
      scaleOfY === 0 ? [absent, absent] : pair(this.#typeOfResult, yAt),
    ].flat();
    const factors = [
      ...matrix(typeOfA, k),
      ...[packedWeights, locateHeld(weights, core, op, 'layer')],
      ...(bias === 0 ? [absent] : vector(int32, sumsAt, n)),
    ];
    this.#xAt = before.length;
    this.#resultAt = before.length + factors.length;
    const result = matrix(this.#typeOfResult, n);
    this.#multiply = Float64Array.from([...before, ...factors, ...result]);
  }

  run(x: Operand, given: Operand | null, out: unknown): unknown {
    const core = this.#core;
    const k = this.#k;
    find(core, op, x);
    if (given) this.#checkOut(x, given);
    const before = x.shape.slice(0, -1);
    const rows = count(before);
    const isFloat = x.dtype === core.dtypes.indexOf('float32');
    const shape = [...before, this.#n];
    const result = given ?? operandOfResult('out', { dtype: this.#typeOfResult, shape });
    const source = x.strides ? operandOfResult('x', x) : x;
    if (isFloat) this.#grow(rows * k);
    const operation = {
      ...operations.qgemm,
      run: () => this.#compute(source.address, isFloat, rows, result.address),
    };
    const operands = [source, result];
    const call = { core, operation, attributes: none, operands, result, out };
    const staged = stagedOf(call);
    return core.guard(op, () => {
      const room = roomOf(core, staged);
      const memory = room === 0 ? 0 : core.allocate(room, op);
      try {
        copyIn(call, staged, memory);
        if (source !== x) gatherTo(viewIn(core, source), core, x);
        return compute(call);
      } finally {
        if (memory !== 0) core.module.release(memory);
      }
    });
  }

  runHeld(x: HeapTensor, out: HeapTensor): HeapTensor {
    const core = this.#core;
    const { shape } = x;
    let rows = 1;
    for (let axis = shape.length - 2; axis >= 0; --axis) rows *= shape[axis] as number;
    const size = rows * this.#k;
    const from = locateHeld(x, core, op, 'x');
    const to = locateHeld(out, core, op, 'out');
    const isFloat = x.dtype === 'float32';
    // Two tensors in the heap are the same or do not overlap.
    if (from === to && size > 0) throw overlap();
    if (isFloat) this.#grow(size);
    core.enter(op);
    try {
      core.check(this.#compute(from, isFloat, rows, to), op);
    } catch (error) {
      core.leave(error);
      throw error;
    }
    core.leave();
    return out;
  }

  dispose(): void {
    this.#scratch?.dispose();
  }

  #checkOut(x: Operand, out: Operand): void {
    find(this.#core, op, out);
    if (overlaps(this.#core, x, out)) throw overlap();
    if (!out.strides) return;
    const found = `out has strides [${out.strides.join(', ')}]`;
    throw new ShapeError(op, 'out', `${op}: ${found}; in an int8 layer it must be contiguous`);
  }

  /** Makes `#scratch` large enough. Must not be called inside `guard`. */
  #grow(bytes: number): void {
    if (this.#scratch && this.#scratch.size >= bytes) return;
    this.#scratch?.dispose();
    this.#scratch = undefined;
    this.#scratch = hold(this.#core, op, 'uint8', bytes, bytes);
    this.#scratchAt = locateHeld(this.#scratch, this.#core, op, 'layer');
  }

  /** Computes from x at one address to the result at another. Returns an error code. */
  #compute(from: number, isFloat: boolean, rows: number, to: number): number {
    const { block, module } = this.#core;
    let x = from;
    if (isFloat) {
      block.set(this.#quantize);
      block[quantizing.from] = from;
      block[quantizing.size] = block[quantizing.capacity] = rows * this.#k;
      block[quantizing.to] = x = this.#scratchAt;
      this.#core.check(module.quantize(), op);
    }
    const [a, y] = [this.#xAt, this.#resultAt];
    block.set(this.#multiply);
    block[a + addressAt] = x;
    block[a + sizeAt] = rows * this.#k;
    block[a + rowsAt] = rows;
    block[y + addressAt] = to;
    block[y + sizeAt] = rows * this.#n;
    block[y + rowsAt] = rows;
    return operations.qgemm.run(module, this.#multiply.length);
  }
}

/** The error if `out` overlaps x. In floating-point layers, the core throws it. */
function overlap(): ArgumentError {
  return new ArgumentError('run', 'out', 'run: out overlaps x in memory; it must overlap no input');
}

/** Whether a contiguous `out` has bytes of a row of x. It may have bytes between the rows. */
function overlaps(core: Core, x: Operand, out: Operand): boolean {
  const { shape, strides } = x;
  const from = viewIn(core, x);
  const to = viewIn(core, out);
  if (from.buffer !== to.buffer || from.length * to.length === 0) return false;
  const start = (to.byteOffset - from.byteOffset) / from.BYTES_PER_ELEMENT; // in elements of x
  const end = start + to.byteLength / from.BYTES_PER_ELEMENT;
  const isIn = (axis: number, at: number, length: number): boolean => {
    if (at >= end || at + length <= start) return false;
    if (axis === shape.length - 1 || !strides) return true;
    const [size, step] = [shape[axis] as number, strides[axis] as number];
    const rest = length - (size - 1) * step;
    for (let i = 0; i < size; ++i) if (isIn(axis + 1, at + i * step, rest)) return true;
    return false;
  };
  return isIn(0, 0, from.length);
}
