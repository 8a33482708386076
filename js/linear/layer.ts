/**
 * Layers in the memory of an instance.
 *
 * A layer holds packed weights, and one piece of memory for the rest. A floating-point layer has
 * the bias there. An int8 layer has bias, scales and zero points of the weights, and C of qgemm.
 * After these it has the scales and zero points of x and of the result. Each part begins at a
 * multiple of 64 bytes.
 */
import { disposable } from '../base/dispose.js';
import { DisposedError } from '../base/errors.js';
import { readOptions } from '../base/read-options.js';
import type { DType } from '../base/tensor.js';
import { type Operand, operandOf, readTensor, viewOfBytes } from '../call/operand.js';
import { quantize, quantizeBias } from '../convert/quantize.js';
import type { Core } from '../instance/core.js';
import { HeapTensor, type PackedWeights } from '../instance/heap.js';
import { packWeights } from '../ops/pack.js';
import { checkRun, type Form, type LinearArguments } from './arguments.js';
import { bytesOfLayer } from './bytes.js';
import { Int8Runner } from './int8-runner.js';
import { heldBytes, copyElements, find, hold, layoutOf, type Vectors } from './memory.js';
import { isZero, leastScaleOf, mostSum, scalesFor } from './range.js';
import { renamed } from './rename.js';
import { floatRunner, type Runner } from './runner.js';

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

/** @internal */
export function makeLayer(core: Core, { form, attributes, operands }: LinearArguments): Layer {
  const op = 'createLinear';
  core.checkAlive(op);
  for (const operand of operands) if (operand !== null) find(core, op, operand);
  let [weights] = operands as [Operand];
  const vectors = operands.slice(1).map((operand) => operand && copyElements(core, operand));
  try {
    const isInt8 = form[3] === 1;
    if (isInt8 && core.dtypes[weights.dtype] === 'float32') {
      const { shape } = weights;
      const data = copyElements(core, weights) as Float32Array;
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
  const { c, end } = layoutOf(form);
  const held = holding(core, form, weights, vectors, op);
  const runner = isInt8
    ? new Int8Runner(core, form, weights, held as HeapTensor, leastScaleOf(vectors))
    : floatRunner(core, form, weights, held);
  const check = (op: string) => {
    core.checkAlive(op);
    if (weights.disposed) throw new DisposedError(op, 'layer', `${op}: the layer is disposed`);
  };
  const checkAlive = () => check('run');
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
      checkAlive();
      return runLayer(core, form, runner, checkAlive, x, options);
    },
    serialize() {
      const op = 'serialize';
      check(op);
      const packed = weights.serialize();
      return bytesOfLayer(form, held ? heldBytes(core, op, held, c) : new Uint8Array(0), packed);
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

/** The memory of a layer; null if it needs none. If this throws, it disposes of the weights. */
function holding(
  core: Core,
  form: Form,
  weights: PackedWeights,
  vectors: Vectors,
  op: string,
): HeapTensor | null {
  const [, n, , isInt8] = form;
  const { starts, end } = layoutOf(form);
  try {
    const [bias, bScale] = vectors as [Float32Array | null, Float32Array];
    // If each call computes the scale of x, it also computes C. This then only checks the bias.
    const sums =
      isInt8 && bias
        ? quantizeBias({ data: bias, shape: [n] }, { aScale: form[8] || 1, bScale }).data.map(
            (sum) => Math.max(-mostSum, Math.min(sum, mostSum)),
          )
        : null;
    if (end === 0) return null;
    const held = hold(core, op, isInt8 ? 'uint8' : 'float32', isInt8 ? end : n, end);
    const memory = heldBytes(core, op, held, end).fill(0);
    [...vectors, sums].forEach((data, i) => data && memory.set(viewOfBytes(data), starts[i]));
    return held;
  } catch (error) {
    weights.dispose();
    throw error;
  }
}

/** @param checkAlive throws if code that read the arguments has disposed of the layer */
function runLayer(
  core: Core,
  form: Form,
  runner: Runner,
  checkAlive: () => void,
  x: unknown,
  options: unknown,
): unknown {
  const op = 'run';
  const { out } = readOptions(op, options, ['out']);
  let shape: readonly number[] = [];
  try {
    if (HeapTensor.is(x) && HeapTensor.is(out)) {
      checkAlive();
      shape = x.shape;
      checkRun(form, x.dtype, shape, out.dtype, out.shape);
      return runner.runHeld(x, out);
    }
    const a = readTensor(core, op, 'x', x);
    const y = out === undefined ? null : readTensor(core, op, 'out', out);
    checkAlive();
    shape = a.shape;
    const typeOf = ({ dtype }: Operand) => core.dtypes[dtype] as DType;
    checkRun(form, typeOf(a), shape, y && typeOf(y), y ? y.shape : []);
    return runner.run(a, y, out);
  } catch (error) {
    throw renamed(error, op, shape);
  }
}
