/** Operators that compute with all elements along some axes. */
import { ShapeError } from '../../base/errors.js';
import { contiguousStrides } from '../../base/layout.js';
import type { Value } from '../read/value.js';
import {
  axisOf,
  computed,
  define,
  type Numbers,
  numbersIn,
  picked,
  refuse,
  shown,
  stridesIn,
  walk,
} from './define.js';
import { exp } from './functions.js';
import { unsupported } from './operator.js';
import { inArray, sizeOf } from './storage.js';

/** Along `size` elements with a step, from index `at`. */
function softmax(
  y: Numbers,
  x: Numbers,
  at: number,
  size: number,
  step: number,
  isLog: boolean,
): void {
  const end = at + size * step;
  let most = -Infinity;
  for (let i = at; i < end; i += step) {
    const v = x[i] as number;
    if (v > most) most = v;
  }
  let sum = 0;
  if (isLog) {
    for (let i = at; i < end; i += step) sum += exp((x[i] as number) - most);
    const log = Math.log(sum);
    for (let i = at; i < end; i += step) y[i] = (x[i] as number) - most - log;
  } else {
    for (let i = at; i < end; i += step) {
      const e = exp((x[i] as number) - most);
      sum += e;
      y[i] = e;
    }
    const factor = 1 / sum;
    for (let i = at; i < end; i += step) (y[i] as number) *= factor;
  }
}

function normalize(
  y: Numbers,
  x: Numbers,
  size: number,
  epsilon: number,
  factors: Numbers,
  terms: Numbers,
  means?: Numbers,
  deviations?: Numbers,
): void {
  for (let at = 0, row = 0; at < y.length; at += size, ++row) {
    const [p, q] = [at % factors.length, at % terms.length]; // all rows may have the same ones
    let sum = 0;
    for (let i = 0; i < size; ++i) sum += x[at + i] as number;
    const mean = sum / size;
    let squares = 0;
    for (let i = 0; i < size; ++i) {
      const d = (x[at + i] as number) - mean;
      squares += d * d;
    }
    const inverse = 1 / Math.sqrt(squares / size + epsilon);
    if (means) means[row] = mean;
    if (deviations) deviations[row] = inverse;
    for (let i = 0; i < size; ++i)
      y[at + i] =
        ((x[at + i] as number) - mean) * inverse * (factors[p + i] as number) +
        (terms[q + i] as number);
  }
}

function add(
  sums: Float64Array,
  x: Numbers,
  length: number,
  to: number,
  from: number,
  toStep: number,
  fromStep: number,
): void {
  let sum = 0;
  for (let i = 0; i < length; ++i, to += toStep, from += fromStep)
    if (toStep) (sums[to] as number) += x[from] as number;
    else sum += x[from] as number;
  if (!toStep) (sums[to] as number) += sum;
}

/** @internal Adds the operators of this file to the table. */
export function addNormalize(): void {
  for (const name of ['Softmax', 'LogSoftmax']) {
    define(name, 'input:float', (attributes, opset) => {
      const given = attributes.int('axis', opset < 13 ? 1 : -1);
      return ([input], make) => {
        const { dtype, shape } = input as Value;
        // Before opset 13 the axis may be the rank. It and all axes after it count as one axis.
        const axis = axisOf(given, shape.length, opset < 13 ? 1 : 0);
        const step = opset < 13 ? 1 : sizeOf(shape.slice(axis + 1));
        const size = opset < 13 ? sizeOf(shape.slice(axis)) : (shape[axis] as number);
        const compute = (y: Numbers, x: Numbers) => {
          for (let from = 0; from < y.length; from += size * step)
            for (let i = 0; i < step; ++i)
              softmax(y, x, from + i, size, step, name === 'LogSoftmax');
        };
        const strides = [size * step, 1, step];
        return computed(make, dtype, shape, [input as Value], compute, {
          name,
          dims: [sizeOf(shape.slice(0, axis)), step, size],
          strides: [strides, strides],
        });
      };
    });
  }

  define('LayerNormalization@1', 'X:float Scale:same B:same? > 3', (attributes, _, node) => {
    const given = attributes.int('axis', -1);
    const epsilon = attributes.float('epsilon', Math.fround(1e-5));
    if (attributes.int('stash_type', 1) !== 1)
      throw unsupported(node, 'has a stash_type other than 1, which is not supported');
    return ([input, scale, bias], make) => {
      const { dtype, shape } = input as Value;
      const axis = axisOf(given, shape.length);
      const inner = shape.slice(axis);
      const size = sizeOf(inner);
      const rows = shape.map((size, i) => (i < axis ? size : 1));
      const statistics = node.outputs.slice(1).map(() => make('float32', rows));
      /** Scale or B: as large as a row, or broadcast to all of them. */
      const spread = (part: Value, i: number): Value => {
        const from = part.shape;
        if (from.some((each, j) => each !== 1 && each !== shape.at(j - from.length)))
          refuse(
            ShapeError,
            i ? 'B' : 'Scale',
            `has shape ${shown(from)}`,
            `a shape that broadcasts to ${shown(shape)}`,
          );
        return shown(from) === shown(inner)
          ? part
          : picked(inArray, part, shape, stridesIn(shape, from));
      };
      const parts = ([scale, bias].filter(Boolean) as Value[]).map(spread);
      const compute = (y: Numbers, x: Numbers, ...others: Numbers[]) => {
        const [means, deviations] = statistics.map(({ data }) => data as Numbers);
        const [factors, terms = new Float32Array(size)] = others;
        normalize(y, x, size, epsilon, factors as Numbers, terms, means, deviations);
      };
      const along = [size, 1];
      const spreads = parts.map((part) => (sizeOf(part.shape) === size ? [0, 1] : along));
      const isWhole = statistics.length === 0 && parts.length === 2;
      const form = isWhole && {
        name: 'LayerNormalization',
        dims: [sizeOf(rows), size],
        strides: [along, ...spreads, along],
        attributes: [epsilon],
      };
      const inputs = [input as Value, ...parts];
      const y = computed(make, dtype, shape, inputs, compute, form || undefined);
      return [y, ...statistics];
    };
  });

  // The mean of nothing is NaN, as in NumPy. ONNX does not define it. (In ONNX Runtime, 0.)
  define('ReduceMean', 'data:ranged axes:int64?@18', (attributes, opset) => {
    const fixed = opset < 18 ? attributes.ints('axes', undefined) : undefined;
    const keeps = attributes.flag('keepdims', true);
    const isNoop = attributes.flag('noop_with_empty_axes@18', false);
    return ([data, given], make) => {
      const { dtype, shape } = data as Value;
      const rank = shape.length;
      const axes = (fixed ?? numbersIn(given) ?? []).map((axis) => axisOf(axis, rank));
      if (axes.length === 0 && isNoop) return data as Value;
      const isReduced = (axis: number) => axes.length === 0 || axes.includes(axis);
      const kept = shape.map((size, axis) => (isReduced(axis) ? 1 : size));
      const count = sizeOf(shape.filter((_, axis) => isReduced(axis)));
      const result = keeps ? kept : shape.filter((_, axis) => !isReduced(axis));
      // Steps have the reduced axes as their last one.
      const first = shape.findIndex((_, axis) => isReduced(axis));
      const last = first + shape.slice(first).findIndex((_, axis) => !isReduced(first + axis));
      const isRun = shape.every(
        (_, axis) => isReduced(axis) === (axis >= first && (last < first || axis < last)),
      );
      const inner = last < first ? 1 : sizeOf(shape.slice(last));
      const form = isRun &&
        first >= 0 && {
          name: 'ReduceMean',
          dims: [sizeOf(shape.slice(0, first)), inner, count],
          strides: [
            [count * inner, 1, inner],
            [inner, 1, 0],
          ],
        };
      const compute = (y: Numbers, x: Numbers) => {
        const sums = new Float64Array(y.length);
        walk(
          shape,
          [stridesIn(shape, kept), contiguousStrides(shape)],
          (length, [q, p], [t, s]) => {
            add(sums, x, length, q as number, p as number, t as number, s as number);
          },
        );
        sums.forEach((sum, i) => (y[i] = sum / count));
      };
      return computed(make, dtype, result, [data as Value], compute, form || undefined);
    };
  });
}
