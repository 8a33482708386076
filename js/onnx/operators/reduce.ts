/** Operators that reduce axes to one element, and others along one axis. */
import { ArgumentError } from '../../base/errors.js';
import type { OnnxDType, Value } from '../read/value.js';
import {
  axisOf,
  type Compute,
  computed,
  expectShape,
  isBig,
  type Numbers,
  numbersIn,
  recordForm,
  refuse,
  type Row,
  transposed,
  widened,
  withSize,
  wordsOf,
} from './define.js';
import { convert } from './elementwise.js';
import type { Attributes } from './operator.js';
import { sizeOf } from './storage.js';

/** A function of two elements, which may be bigints. */
type Join = (a: number, b: number) => number;

const add: Join = (a, b) => a + b;
/** NaN if one is NaN. 0 is greater than -0. */
const greater: Join = (a, b) => (a > b ? a : a < b ? b : a == b && a ? a : a + b);
const less: Join = (a, b) => -greater(-a, -b);
/** Without wrapping, a product of many bigints would take much memory. */
const multiply: Join = (a, b) =>
  typeof a === 'bigint' ? (BigInt.asIntN(64, (a * b) as never) as never) : a * b;
const square = (x: number) => x * x;
/** log(e^a + e^b) */
const addPowers: Join = (a, b) =>
  a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));

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

/** The index of the first element of a row. */
const startOf = (row: number, inner: number, count: number): number =>
  (row - (row % inner)) * count + (row % inner);

interface Reduction {
  /** The kind of the input. Default: `'number'`. */
  readonly kind?: string;
  /** The first opset where the axes are an input. Default: 18. */
  readonly from?: number;
  /** Of no elements. */
  readonly start?: number;
  readonly join?: Join;
  readonly each?: (x: number) => number;
  readonly end?: (total: number, count: number) => number;
  /** How many parts are joined at the end, as in src/nn/. */
  readonly parts?: number;
  readonly folds?: boolean;
}

function reduction(
  name: string,
  {
    kind = 'number',
    from = 18,
    start = 0,
    join = add,
    each = (x) => x,
    end = (x) => x,
    parts = 8,
    folds = true,
  }: Reduction = {},
): Row {
  const reduce = (y: Numbers, x: Numbers, dtype: OnnxDType, count: number, inner: number) => {
    // Integers are bigints, unless a function follows that only numbers have.
    const isWhole = count > 0 && kind !== 'ranged' && !dtype.includes('float');
    const wide = (isWhole ? BigInt : Number) as (x: number) => number;
    const Totals = isWhole ? BigInt64Array : Float64Array;
    const totals = new Totals(y.length) as unknown as Numbers;
    for (let i = 0; i < y.length; ++i) {
      const at = startOf(i, inner, count);
      const sums = Array<number>(parts).fill(Number.isFinite(start) ? wide(start) : start);
      for (let j = 0; j < count; ++j) {
        const value = each(wide(x[at + j * inner] as number));
        sums[j % parts] = join(sums[j % parts] as number, value);
      }
      for (let width = parts; (width >>= 1);)
        for (let j = 0; j < width; ++j)
          sums[j] = join(sums[j] as number, sums[j + width] as number);
      const total = end(sums[0] as number, count);
      totals[i] = dtype === 'bool' && total < 0 ? 0 : total; // -Infinity, of no elements
    }
    convert(y, totals, isWhole ? 'int64' : 'float64', dtype);
  };
  return {
    name,
    inputs: `data:${kind} axes:int64?@${from}`,
    folds,
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
        const form = { name, dims, strides: [strides, [inner, 1, 0]] };
        const [inputs, step] = count > 0 ? [[x], form] : [[]];
        return computed(make, dtype, result, inputs, step, (y, x) =>
          reduce(y, x, dtype, count, inner),
        );
      };
    },
  };
}

function place(name: string): Row {
  return {
    name,
    inputs: 'data:number',
    folds: false,
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

/** The order of elements: NaN is the greatest. */
const orderOf = (a: number, b: number): number =>
  a === b || (a !== a && b !== b) ? 0 : a > b || a !== a ? 1 : -1;

function topK(attributes: Attributes, opset: number): Compute {
  const given = attributes.int('axis', -1);
  const fixed = opset < 10 ? attributes.int('k') : undefined;
  const isGreatest = attributes.flag('largest@11', true);
  attributes.ignore('sorted@11');
  return ([x, wanted], make) => {
    const { dtype, shape } = x as Value;
    const axis = axisOf(given, shape.length);
    const { inner, count, dims, strides } = rowsOf(shape, axis);
    const k = fixed ?? numbersIn(wanted as Value)[0] ?? NaN;
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
    if (recordForm(form, [x as Value, values, indices], false)) return [values, indices];
    const [from, words] = [widened(x as Value), wordsOf((x as Value).data)];
    const [to, places] = [wordsOf(values.data), indices.data as BigInt64Array];
    const sign = isGreatest ? -1 : 1;
    for (let row = 0; row < sizeOf(dims.slice(0, 2)); ++row) {
      const [at, start] = [count, k].map((size) => startOf(row, inner, size)) as [number, number];
      const valueOf = (index: number) => from[at + index * inner] as number;
      new Float64Array(count)
        .map((_, index) => index)
        .sort((a, b) => sign * orderOf(valueOf(a), valueOf(b)) || a - b)
        .subarray(0, k)
        .forEach((index, j) => {
          to[start + j * inner] = words[at + index * inner] as number;
          places[start + j * inner] = BigInt(index);
        });
    }
    return [values, indices];
  };
}

function cumSum(attributes: Attributes): Compute {
  const isExclusive = attributes.int('exclusive', 0);
  const isReverse = attributes.int('reverse', 0);
  return ([x, given], make) => {
    const { dtype, shape } = x as Value;
    const axis = axisOf(numbersIn(given as Value)[0] as number, shape.length);
    const { inner, count, dims, strides } = rowsOf(shape, axis);
    const form = {
      name: 'CumSum',
      dims,
      strides: [strides, strides],
      attributes: [isExclusive, isReverse],
    };
    return computed(make, dtype, shape, [x as Value], form, (y, x) => {
      const isSmall = !dtype.includes('float') && !isBig(dtype);
      let sum = 0;
      for (let i = 0; i < y.length; ++i) {
        // The elements of a row follow one another.
        const j = i % count;
        const along = (isReverse ? count - 1 - j : j) * inner;
        const at = startOf(Math.floor(i / count), inner, count) + along;
        const value = x[at] as number;
        if (j === 0) sum = (isBig(dtype) ? 0n : 0) as number;
        const next = isSmall ? (sum + value) | 0 : sum + value;
        y[at] = isExclusive ? sum : next;
        sum = next;
      }
    });
  };
}

/** @internal The operators of this file. Those that fold have the same bits in src/nn/. */
export const reductions: readonly Row[] = [
  reduction('ReduceSum', { from: 13 }),
  reduction('ReduceMax', { kind: 'any', start: -Infinity, join: greater }),
  reduction('ReduceMin', { kind: 'any', start: Infinity, join: less }),
  reduction('ReduceProd', { start: 1, join: multiply }),
  reduction('ReduceL1', { each: (x) => (x < 0 ? -x : x) }),
  reduction('ReduceSumSquare', { each: square }),
  reduction('ReduceL2', { kind: 'ranged', each: square, end: Math.sqrt }),
  reduction('ReduceLogSum', { kind: 'ranged', end: Math.log, folds: false }),
  reduction('ReduceLogSumExp', {
    kind: 'ranged',
    start: -Infinity,
    join: addPowers,
    folds: false,
  }),
  // The mean of no elements is NaN, as in NumPy. ONNX does not define it. ONNX Runtime has 0.
  reduction('ReduceMean', {
    kind: 'ranged',
    end: (sum, count) => sum / count,
    parts: 1,
    folds: false,
  }),
  place('ArgMax'),
  place('ArgMin'),
  { name: 'TopK', inputs: 'X:number K:int64@10 > 2', compile: topK },
  { name: 'CumSum@11', inputs: 'x:number axis:index', compile: cumSum },
];
