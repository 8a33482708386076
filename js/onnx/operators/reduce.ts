/** Operators that reduce axes to one element, and others along one axis. */
import { ArgumentError } from '../../base/errors.js';
import type { Value } from '../read/value.js';
import {
  axisOf,
  type Compute,
  computed,
  expectShape,
  elementOf,
  numbersIn,
  recordForm,
  refuse,
  type Row,
  scalar,
  spread,
  transposed,
  withSize,
} from './define.js';
import type { Attributes } from './operator.js';
import { sizeOf } from './storage.js';

/** A row along an axis: the sizes of a step, and the strides of a tensor of the shape. */
function rowsOf(shape: readonly number[], axis: number, last = axis) {
  const inner = sizeOf(shape.slice(last + 1));
  const count = sizeOf(shape.slice(axis, last + 1));
  return {
    inner,
    count,
    dims: [sizeOf(shape.slice(0, axis)), inner, count],
    strides: [count * inner, 1, inner],
  };
}

/**
 * @param empty the result of no elements
 * @param kind the kind of the input
 * @param from the first opset where the axes are an input
 */
function reduction(name: string, empty = 0, kind = 'number', from = 18): Row {
  return {
    name,
    inputs: `data:${kind} axes:int64?@${from}`,
    compile: (attributes, opset) => {
      const fixed = opset < from ? attributes.ints('axes', undefined) : undefined;
      const keeps = attributes.flag('keepdims', true);
      const isNoop = attributes.flag(`noop_with_empty_axes@${from}`, false);
      return ([data, given], make) => {
        const { dtype, shape } = data as Value;
        const axes = (fixed ?? numbersIn(given) ?? []).map((axis) => axisOf(axis, shape.length));
        if (axes.length === 0 && isNoop) return data as Value;
        const isReduced = (axis: number) => axes.length === 0 || axes.includes(axis);
        const all = [...shape.keys()];
        const [kept, reduced] = [all.filter((axis) => !isReduced(axis)), all.filter(isReduced)];
        const result = all.flatMap((axis) =>
          isReduced(axis) ? (keeps ? 1 : []) : (shape[axis] as number),
        );
        const first = reduced[0] ?? 0;
        const isRun = reduced.every((axis, i) => axis === first + i);
        // Axes that are not adjacent become the last ones.
        const x = isRun ? (data as Value) : transposed(make, data as Value, [...kept, ...reduced]);
        const begin = isRun ? first : kept.length;
        const { inner, count, dims, strides } = rowsOf(x.shape, begin, begin + reduced.length - 1);
        if (count > 0)
          return computed(make, dtype, result, [x], {
            name,
            dims,
            strides: [strides, [inner, 1, 0]],
          });
        const value = dtype === 'bool' ? Math.max(empty, 0) : empty;
        return spread(make, scalar(dtype, value), result);
      };
    },
  };
}

function place(name: string): Row {
  return {
    name,
    inputs: 'data:number',
    compile: (attributes) => {
      const given = attributes.int('axis', 0);
      const keeps = attributes.flag('keepdims', true);
      const isLast = attributes.int('select_last_index@12', 0);
      return ([data], make) => {
        const { shape } = data as Value;
        const axis = axisOf(given, shape.length);
        const { inner, count, dims, strides } = rowsOf(shape, axis);
        const result = keeps ? withSize(shape, axis, 1) : shape.filter((_, i) => i !== axis);
        const isRight = count > 0 || sizeOf(result) === 0;
        expectShape(isRight, 'data', shape, `not empty along axis ${axis}`);
        const form = { name, dims, strides: [strides, [inner, 1, 0]], attributes: [isLast] };
        return computed(make, 'int64', result, [data as Value], form);
      };
    },
  };
}

function topK(attributes: Attributes, opset: number): Compute {
  const given = attributes.int('axis', -1);
  const fixed = opset < 10 ? attributes.int('k') : undefined;
  const isGreatest = attributes.flag('largest@11', true);
  attributes.ignore('sorted@11');
  return ([x, wanted], make) => {
    const { dtype, shape } = x as Value;
    const axis = axisOf(given, shape.length);
    const { inner, count, dims, strides } = rowsOf(shape, axis);
    const k = fixed ?? Number(elementOf(wanted as Value, 'K'));
    if (!(k >= 0 && k <= count)) refuse(ArgumentError, 'K', `is ${k}`, `from 0 to ${count}`);
    const result = withSize(shape, axis, k);
    const [values, indices] = [make(dtype, result), make('int64', result)];
    const along = [k * inner, 1, 0];
    const form = {
      name: 'TopK',
      dims,
      strides: [strides, along, along],
      attributes: [k, inner, isGreatest ? 0 : 1],
    };
    recordForm(form, [x as Value, values, indices], 2);
    return [values, indices];
  };
}

function cumSum(attributes: Attributes): Compute {
  const isExclusive = attributes.int('exclusive', 0);
  const isReverse = attributes.int('reverse', 0);
  return ([x, given], make) => {
    const { dtype, shape } = x as Value;
    const axis = axisOf(Number(elementOf(given as Value, 'axis')), shape.length);
    const { dims, strides } = rowsOf(shape, axis);
    return computed(make, dtype, shape, [x as Value], {
      name: 'CumSum',
      dims,
      strides: [strides, strides],
      attributes: [isExclusive, isReverse],
    });
  };
}

/** @internal The operators of this file. */
export const reductions: readonly Row[] = [
  reduction('ReduceSum', 0, 'number', 13),
  reduction('ReduceMax', -Infinity, 'any'),
  reduction('ReduceMin', Infinity, 'any'),
  reduction('ReduceProd', 1),
  reduction('ReduceL1'),
  reduction('ReduceSumSquare'),
  reduction('ReduceL2', 0, 'ranged'),
  reduction('ReduceLogSum', -Infinity, 'ranged'),
  reduction('ReduceLogSumExp', -Infinity, 'ranged'),
  // The mean of no elements is NaN, as in NumPy. ONNX does not define it. ONNX Runtime has 0.
  reduction('ReduceMean', NaN, 'ranged'),
  place('ArgMax'),
  place('ArgMin'),
  { name: 'TopK', inputs: 'X:number K:int64@10 > 2', compile: topK },
  { name: 'CumSum@11', inputs: 'x:number axis:index', compile: cumSum },
];
