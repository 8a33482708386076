/**
 * Layers in the memory of an instance.
 *
 * A layer holds packed weights, and one piece of memory for the rest. A floating-point layer has
 * the bias there. An int8 layer has bias, scales and zero points of the weights, and C of qgemm.
 * After these it has the scales and zero points of x and of the result. Each part begins at a
 * multiple of 64 bytes.
 */
import { viewOf } from '../base/arrays.js';
import { disposable } from '../base/dispose.js';
import { ArgumentError, DisposedError, GemmError, ShapeError } from '../base/errors.js';
import { contiguousStrides } from '../base/layout.js';
import { readOptions } from '../base/read-options.js';
import type { ArrayOf, DataArray, DType } from '../base/tensor.js';
import {
  absent,
  locate,
  type Operand,
  operandOf,
  packedWeights,
  readTensor,
  viewOfBytes,
} from '../call/operand.js';
import { operandOfResult } from '../call/result.js';
import { makeCall, runCall, runInHeap } from '../call/run.js';
import { compute, copyIn, roomOf, stagedOf } from '../call/staging.js';
import { gather } from '../convert/quantize-arguments.js';
import { allocate, count, type QuantizeType } from '../convert/quantize-numbers.js';
import { quantize, quantizeBias } from '../convert/quantize.js';
import type { Core } from '../instance/core.js';
import { type Constructors, HeapTensor, locateHeld, type PackedWeights } from '../instance/heap.js';
import { attributesOfMatMul } from '../ops/matmul.js';
import { operations } from '../ops/operations.js';
import { packWeights } from '../ops/pack.js';
import { attributesOfQGemm } from '../ops/qgemm.js';
import { checkRun, type Form, type LinearArguments, quantizedTypes } from './arguments.js';
import { bytesOfLayer } from './bytes.js';

/** @internal Bias, scales and zero points. */
export type Vectors = readonly (DataArray | null)[];

/** @internal A layer, as `Linear` of linear.ts describes it. */
export interface Layer {
  readonly inputs: number;
  readonly outputs: number;
  readonly dtype: DType;
  readonly byteLength: number;
  readonly disposed: boolean;
  run(x: unknown, options?: unknown): unknown;
  serialize(): ReturnType<Uint8Array['slice']>;
  dispose(): void;
}

/** How a layer computes. */
interface Runner {
  /** From operands that were read and checked. */
  run(x: Operand, result: Operand | null, out: unknown): unknown;
  /** From tensors that were checked. Makes no objects, as `runInHeap` of call.ts. */
  runHeld(x: HeapTensor, out: HeapTensor): HeapTensor;
  dispose(): void;
}

/** @internal The offsets of the parts of the memory of a layer, and its size, in bytes. */
export function layoutOf([, n, bias, isInt8, zeros]: Form) {
  const aligned = (bytes: number) => Math.ceil(bytes / 64) * 64;
  const scale = aligned(4 * bias * n);
  const zero = scale + aligned(4 * isInt8 * n);
  const c = zero + aligned(zeros * n); // what precedes it is serialized
  const x = c + isInt8 * scale;
  return { starts: [0, scale, zero, c], c, x, end: x + 64 * isInt8 };
}

/** @internal */
export function makeLayer(core: Core, { form, attributes, operands }: LinearArguments): Layer {
  const op = 'createLinear';
  core.checkAlive(op);
  for (const operand of operands) if (operand !== null) find(core, op, operand);
  let [weights] = operands as [Operand];
  const vectors = operands.slice(1).map((operand) => operand && elementsOf(core, operand));
  try {
    const isInt8 = form[3] === 1;
    if (isInt8 && core.dtypes[weights.dtype] === 'float32') {
      const { shape } = weights;
      const data = elementsOf(core, weights) as Float32Array;
      const axis = attributes[1] === 0 ? 1 : 0;
      let quantized = quantize({ data, shape }, { symmetric: true, axis });
      const scale = scalesFor(form, quantized.scale, vectors[0] as Float32Array | null, (column) =>
        isZero(data, shape, axis, column),
      );
      if (scale.some((each, column) => each !== quantized.scale[column]))
        quantized = quantize({ data, shape }, { symmetric: true, axis, scale });
      vectors[1] = quantized.scale;
      weights = operandOf('B', core.dtypes.indexOf('int8'), shape, quantized.data);
    }
    const read = { by: 'pack' as const, attributes, operands: [weights] };
    return layerOf(core, form, packWeights(core, read), vectors, op);
  } catch (error) {
    throw renamed(error, op);
  }
}

/** @internal A layer that owns these packed weights. If this throws, it disposes of them. */
export function layerOf(
  core: Core,
  form: Form,
  weights: PackedWeights,
  vectors: Vectors,
  op: string,
): Layer {
  const [k, n, , isInt8] = form;
  const { starts, c, end } = layoutOf(form);
  let held: HeapTensor | null = null;
  try {
    const [bias, bScale] = vectors as [Float32Array | null, Float32Array];
    // If each call computes the scale of x, it also computes C. This then only checks the bias.
    const sums =
      isInt8 && bias
        ? quantizeBias({ data: bias, shape: [n] }, { aScale: form[8] || 1, bScale }).data.map(
            (sum) => Math.max(-mostSum, Math.min(sum, mostSum)),
          )
        : null;
    if (end > 0) {
      held = hold(core, op, isInt8 ? 'uint8' : 'float32', isInt8 ? end : n, end);
      const memory = bytesOf(core, op, held, end).fill(0);
      [...vectors, sums].forEach((data, i) => data && memory.set(viewOfBytes(data), starts[i]));
    }
  } catch (error) {
    weights.dispose();
    throw error;
  }
  const runner = isInt8
    ? int8Runner(core, form, weights, held as HeapTensor, leastScaleOf(vectors))
    : floatRunner(core, form, weights, held);
  const check = (op: string) => {
    core.checkAlive(op);
    if (weights.disposed) throw new DisposedError(op, 'layer', `${op}: the layer is disposed`);
  };
  // Not a class: bundlers keep classes that nothing uses.
  const layer = {
    inputs: k,
    outputs: n,
    dtype: weights.dtype,
    byteLength: weights.byteLength + end,
    get disposed() {
      return weights.disposed;
    },
    run(x: unknown, options?: unknown): unknown {
      const op = 'run';
      check(op);
      const { out } = readOptions(op, options, ['out']);
      let shape: readonly number[] = [];
      try {
        if (HeapTensor.is(x) && HeapTensor.is(out)) {
          if (weights.disposed) check(op); // code that read the options may have disposed of it
          shape = x.shape;
          checkRun(form, x.dtype, shape, out.dtype, out.shape);
          return runner.runHeld(x, out);
        }
        const a = readTensor(core, op, 'x', x);
        const y = out === undefined ? null : readTensor(core, op, 'out', out);
        check(op);
        shape = a.shape;
        const typeOf = ({ dtype }: Operand) => core.dtypes[dtype] as DType;
        checkRun(form, typeOf(a), shape, y && typeOf(y), y ? y.shape : []);
        return runner.run(a, y, out);
      } catch (error) {
        throw renamed(error, op, shape);
      }
    },
    serialize() {
      const op = 'serialize';
      check(op);
      const packed = weights.serialize();
      return bytesOfLayer(form, held ? bytesOf(core, op, held, c) : new Uint8Array(0), packed);
    },
    dispose() {
      weights.dispose();
      held?.dispose();
      runner.dispose();
    },
  };
  disposable(layer);
  return Object.freeze(layer);
}

/** The greatest magnitude in C, so that adding the products does not wrap. */
const mostSum = 2 ** 30;

/**
 * A column's scale is at least its bias times this. Otherwise a column whose weights are next to
 * nothing has a bias beyond `mostSum`, or needs an x with few steps.
 */
const leastRatio = 2 ** -15;

/**
 * The scales of weights that the layer quantizes: those by their range, or greater ones if the bias
 * needs them. A column of zeros has the scale of its bias.
 */
function scalesFor(
  form: Form,
  scales: Float32Array,
  bias: Float32Array | null,
  isZeroAt: (column: number) => boolean,
): Float32Array {
  const scaleOfX = form[8];
  const ratio = Math.max(leastRatio, scaleOfX && 1 / (scaleOfX * mostSum));
  return scales.map((scale, column) => {
    const least = Math.abs(bias?.[column] ?? 0) * ratio;
    return least > 0 && (least > scale || isZeroAt(column)) ? least : scale;
  });
}

function isZero(data: Float32Array, [k, n]: readonly number[], axis: number, column: number) {
  const [size, step, start] = (axis === 1 ? [k, n, column] : [n, 1, column * (n as number)]) as [
    number,
    number,
    number,
  ];
  for (let i = 0; i < size; ++i) if (data[start + i * step] !== 0) return false;
  return true;
}

/**
 * The least scale of x that a call computes. With a smaller one C would exceed `mostSum`. It is at
 * most `leastRatio`, so that one column does not take the steps of x from all others.
 */
function leastScaleOf([bias, bScale]: Vectors): number {
  const scales = bScale as Float32Array;
  const ratios = (bias as Float32Array | null)?.map(
    (value, column) => Math.abs(value) / (scales[column] as number) / mostSum,
  );
  return Math.min(leastRatio, ratios?.reduce((most, ratio) => Math.max(most, ratio), 0) ?? 0);
}

/** Memory of at least `size` elements. */
function hold(core: Core, op: string, dtype: DType, size: number, bytes: number): HeapTensor {
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

function bytesOf(core: Core, op: string, held: HeapTensor, length: number): Uint8Array {
  const address = locateHeld(held, core, op, 'layer');
  return core.module.HEAPU8.subarray(address, address + length);
}

function floatRunner(
  core: Core,
  [, n, , , , min, max]: Form,
  weights: PackedWeights,
  bias: HeapTensor | null,
): Runner {
  const operation = operations.matmul;
  const float32 = core.dtypes.indexOf('float32');
  const attributes = attributesOfMatMul(false, false, float32, [min, max]);
  const b = operandOf('weights', packedWeights, [], weights);
  const c = bias && operandOf('bias', float32, [n], bias);
  return {
    run(x, result, out) {
      const operands = [{ ...x, name: 'src' }, b, c, result];
      return runCall(makeCall(core, { operation, attributes, operands, out }));
    },
    runHeld(x, out) {
      core.block.set(attributes);
      return runInHeap(core, operation, attributes.length, x, weights, bias, out);
    },
    dispose: () => undefined,
  };
}

/** @param leastScale the least scale of x that a call may choose, see `leastScaleOf` */
function int8Runner(
  core: Core,
  form: Form,
  weights: PackedWeights,
  held: HeapTensor,
  leastScale: number,
): Runner {
  const op = 'run';
  const [k, n, bias, , zeros, min, max, typeOfX, scaleOfX, zeroOfX, ...y] = form;
  const [typeOfY, scaleOfY, zeroOfY] = y;
  const { starts, x } = layoutOf(form);
  const numberOf = (dtype: DType) => core.dtypes.indexOf(dtype);
  const [float32, int32] = [numberOf('float32'), numberOf('int32')];
  const typeOfA = numberOf(quantizedTypes[typeOfX]);
  const address = locateHeld(held, core, op, 'layer');
  const [biasAt, scalesAt, zerosAt, sumsAt] = starts.map((start) => address + start) as [
    number,
    number,
    number,
    number,
  ];
  const [aAt, yAt] = [address + x, address + x + 8];
  const parameters = new DataView(core.buffer as ArrayBuffer, aAt);
  parameters.setFloat32(0, scaleOfX, true);
  parameters.setInt8(4, zeroOfX);
  parameters.setFloat32(8, scaleOfY, true);
  parameters.setInt8(12, zeroOfY);

  // The block of module.quantize(), and then that of qgemm; see block.ts for operands.
  const quantizing = Float64Array.of(
    ...[0, 1, 0, 0, typeOfA, 0, scaleOfX || -leastScale, zeroOfX],
    ...(scaleOfX === 0
      ? [aAt, aAt + 4, bias * n, biasAt, scalesAt, n, sumsAt]
      : [0, 0, 0, 0, 0, 0, 0]),
  );
  const scalar = (dtype: number, at: number) => [dtype, at, 1, 0, 0];
  const vector = (dtype: number, at: number) => [dtype, at, n, 1, 0, n];
  const pair = (dtype: number, at: number) => [...scalar(float32, at), ...scalar(dtype, at + 4)];
  const typeOfResult = scaleOfY === 0 ? float32 : numberOf(quantizedTypes[typeOfY]);
  const parts = [
    Array.from(attributesOfQGemm(min, max)),
    pair(typeOfA, aAt),
    vector(float32, scalesAt),
    zeros === 0 ? [absent] : vector(numberOf(weights.dtype), zerosAt),
    scaleOfY === 0 ? [absent, absent] : pair(typeOfResult, yAt),
  ].flat();
  const a = parts.length;
  parts.push(typeOfA, 0, 0, 2, 0, 0, k);
  parts.push(packedWeights, locateHeld(weights, core, op, 'layer'));
  parts.push(...(bias === 0 ? [absent] : vector(int32, sumsAt)));
  const result = parts.length;
  parts.push(typeOfResult, 0, 0, 2, 0, 0, n);
  const multiplying = Float64Array.from(parts);

  /** The quantized x. */
  let scratch: HeapTensor | undefined;
  let scratchAt = 0;
  /** Makes `scratch` large enough. Must not be called inside `guard`. */
  const grow = (bytes: number): void => {
    if (scratch && scratch.size >= bytes) return;
    scratch?.dispose();
    scratch = undefined;
    scratch = hold(core, op, 'uint8', bytes, bytes);
    scratchAt = locateHeld(scratch, core, op, 'layer');
  };
  const multiply = (from: number, isFloat: boolean, rows: number, to: number): number => {
    const { block, module } = core;
    if (isFloat) {
      block.set(quantizing);
      block[0] = from;
      block[2] = block[3] = rows * k;
      block[5] = from = scratchAt;
      core.check(module.quantize(), op);
    }
    block.set(multiplying);
    block[a + 1] = from;
    block[a + 2] = rows * k;
    block[a + 5] = rows;
    block[result + 1] = to;
    block[result + 2] = rows * n;
    block[result + 5] = rows;
    return operations.qgemm.run(module, multiplying.length);
  };

  return {
    run(x, given, out) {
      find(core, op, x);
      if (given) {
        find(core, op, given);
        if (overlaps(core, x, given)) throw overlap();
        if (given.strides) {
          const found = `out has strides [${given.strides.join(', ')}]`;
          throw new ShapeError(op, 'out', `${op}: ${found}; with int8 it must be contiguous`);
        }
      }
      const before = x.shape.slice(0, -1);
      const rows = count(before);
      const isFloat = x.dtype === float32;
      const result =
        given ?? operandOfResult('out', { dtype: typeOfResult, shape: [...before, n] });
      const source = x.strides ? operandOfResult('x', x) : x;
      if (isFloat) grow(rows * k);
      const operation = {
        ...operations.qgemm,
        run: () => multiply(source.address, isFloat, rows, result.address),
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
    },
    runHeld(x, out) {
      const { shape } = x;
      let rows = 1;
      for (let axis = shape.length - 2; axis >= 0; --axis) rows *= shape[axis] as number;
      const from = locateHeld(x, core, op, 'x');
      const to = locateHeld(out, core, op, 'out');
      const isFloat = x.dtype === 'float32';
      // Two tensors in the heap are the same or do not overlap.
      if (from === to && rows * k > 0) throw overlap();
      if (isFloat) grow(rows * k);
      core.enter(op);
      try {
        core.check(multiply(from, isFloat, rows, to), op);
      } catch (error) {
        core.leave(error);
        throw error;
      }
      core.leave();
      return out;
    },
    dispose: () => scratch?.dispose(),
  };
}

const none = new Float64Array(0);

/** The error if `out` overlaps x. In floating-point layers, the core throws it. */
function overlap(): ArgumentError {
  return new ArgumentError('run', 'out', 'run: out overlaps x in memory; it must not');
}

/** Whether a contiguous `out` has bytes of a row of x. What lies between the rows is free. */
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

const mostElements = 2 ** 32;

/** Finds the elements of an operand, and throws unless there are as many as its shape needs. */
function find(core: Core, op: string, operand: Operand): void {
  locate(core, op, operand);
  const { name, shape, strides, size } = operand;
  if (count(shape) > mostElements) {
    const rule = `of more than 2^32 elements; a layer has memory for at most that`;
    throw new ShapeError(op, name, `${op}: ${name} has shape [${shape.join(', ')}], ${rule}`);
  }
  if (strides !== null || size === count(shape)) return;
  const rule = `its shape [${shape.join(', ')}] needs ${count(shape)}`;
  throw new ShapeError(op, name, `${op}: ${name} has ${size} elements; ${rule}`);
}

/** The elements of an operand in order, in a new array. */
function elementsOf(core: Core, operand: Operand): DataArray {
  const dtype = core.dtypes[operand.dtype] as DType;
  const data = allocate('createLinear', operand.name, dtype, count(operand.shape));
  gatherTo(data, core, operand);
  return data;
}

function viewIn(core: Core, { dtype, address, size, outside }: Operand): DataArray {
  const [buffer, at] = outside ? [outside.buffer, outside.byteOffset] : [core.buffer, address];
  return viewOf(core.dtypes[dtype] as DType, buffer, at, size);
}

/** Copies the elements of an operand in order. */
function gatherTo(to: DataArray, core: Core, operand: Operand): void {
  const { shape, strides } = operand;
  const copy = to as ArrayOf<QuantizeType>;
  const data = viewIn(core, operand) as typeof copy;
  if (strides === null) copy.set(data);
  else if (copy.length > 0) gather(copy, 0, data, shape, strides, 0, 0);
}

/** Operands as the errors of operations name them, and as a layer names them. */
const names: readonly (readonly [RegExp, string])[] = [
  [/\b(src|A)\b/g, 'x'],
  [/; (only bias may|it must overlap).*/, '; it must not'],
];
const namesInCreate: typeof names = [
  [/\b[xB]\b/, 'weights'],
  [/\baScale\b/, 'input.scale'],
  [/\bbScale\b/, 'weights.scale'],
];

/**
 * @internal Renames the operands in an error of an operation that a layer uses. `shape` is that of
 * x, which `quantize` sees as a row; undefined: the error is of `createLinear`.
 */
export function renamed(error: unknown, op: string, shape?: readonly number[]): unknown {
  if (!(error instanceof GemmError) || error.constructor === GemmError) return error;
  const rename = (text: string) =>
    (shape ? names : namesInCreate).reduce((text, [from, to]) => text.replace(from, to), text);
  const place = (_: string, index: string) => {
    const at = contiguousStrides(shape as number[]).map(
      (step, axis) => Math.floor(+index / step) % (shape?.[axis] as number),
    );
    return `at [${at.join(', ')}]`;
  };
  let message = rename(error.message.replace(/^\w+/, op));
  if (shape) message = message.replace(/at \[0, (\d+)\]/, place);
  const Same = error.constructor as new (op: string, argument: string, text: string) => GemmError;
  return new Same(op, rename(error.argument), message);
}
