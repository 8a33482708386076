/**
 * Random arguments of the integer products. Valid ones give the result of the reference, to the
 * bit. Wrong ones give their GemmError.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm, type DataArray, type DType, type Gemm, type PackedWeights } from 'wgemm';
import {
  anything,
  type Layout,
  layout,
  nearlyRight,
  ones,
  seed,
  size,
  small,
} from '../support/arbitraries.js';
import {
  arrayClasses,
  get,
  quantized,
  type Quantized,
  quantizedTypes,
  round,
  set,
} from '../support/dtypes.js';
import { expectWhole, succeeds } from '../support/errors.js';
import { type Call, type Operation, operations, reference } from '../support/integer-products.js';
import type { Matrix } from '../support/reference.js';
import { runs } from '../support/short.js';
import { count, drop, extent, Random, sameBytes } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

type Loose = Record<string, (...args: unknown[]) => unknown>;
const run = (op: Operation, args: readonly unknown[]) =>
  (wg as unknown as Loose)[op]?.(...args) as Placed;
const explain = (op: Operation, args: readonly unknown[]) =>
  (wg.explain as Loose[string])(op, ...args);

/** A tensor where it lies. */
interface Placed {
  readonly data: DataArray;
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly strides?: readonly number[];
  readonly offset?: number;
}

/** The place of each element in the array of a tensor, in row-major order. */
function placesOf({ shape, strides, offset = 0 }: Omit<Placed, 'data' | 'dtype'>): number[] {
  let places = [offset];
  shape.forEach((size, axis) => {
    const stride = strides?.[axis] ?? count(shape.slice(axis + 1));
    places = places.flatMap((first) => Array.from({ length: size }, (_, i) => first + i * stride));
  });
  return places;
}

/** Its elements as numbers, contiguous: what the reference reads. */
function read(tensor: Placed): Matrix {
  const { data, dtype, shape } = tensor;
  const values = placesOf(tensor).map((at) => Number(get(data, dtype, at)));
  const readsAs = dtype === 'float16' ? 'float32' : dtype;
  const read = new arrayClasses[readsAs](values.length) as Float32Array;
  read.set(values);
  return { data: read, shape, dtype: readsAs };
}

const filler = (dtype: DType) => (dtype.startsWith('float') ? NaN : 77);

/** A tensor in a layout, of any rank. What lies between its elements is NaN, or 77. */
function layOut(
  dtype: DType,
  shape: readonly number[],
  value: () => number,
  { inHeap, columnMajor, step, gap, repeat, offset = 0, after }: Layout,
  mayRepeat = true,
): Placed {
  const axes = shape.map((_, axis) => axis);
  const strides = shape.map(() => 0);
  let next = step;
  for (const axis of columnMajor ? axes : axes.reverse()) {
    strides[axis] = next;
    next = next * (shape[axis] || 1) + gap;
  }
  if (mayRepeat && repeat === 'rows' && shape.length > 0) strides[0] = 0;
  if (mayRepeat && repeat === 'columns' && shape.length > 0) strides[shape.length - 1] = 0;
  const isPlain = gap + after + offset === 0 && step === 1 && !columnMajor && repeat === 'none';
  const length = extent(shape, strides) + offset + after;
  const owner = inHeap
    ? wg.alloc(dtype, isPlain ? shape : [length])
    : { data: new arrayClasses[dtype](length) };
  for (let i = 0; i < length; ++i) set(owner.data, dtype, i, filler(dtype));
  const where = { shape, strides, offset };
  for (const at of placesOf(where)) set(owner.data, dtype, at, value());
  if (isPlain) return inHeap ? (owner as Placed) : { data: owner.data, shape, dtype };
  return {
    // The memory may grow before the call, and the view would be detached.
    get data() {
      return owner.data;
    },
    dtype,
    ...where,
    ...(inHeap && { dispose: () => drop(owner) }),
  };
}

const forms = ['absent', 'a number', '[]', '[1]', '[1, 1]', 'a list', 'all axes'] as const;
type Form = (typeof forms)[number];

const vectorNames = [
  'aScale',
  'aZeroPoint',
  'bScale',
  'bZeroPoint',
  'yScale',
  'yZeroPoint',
] as const;
type VectorName = (typeof vectorNames)[number];

/** The vectors of the operations, and those that may have a value per row of A or Y. */
const vectorsOf: Record<Operation, readonly VectorName[]> = {
  matmulInteger: ['aZeroPoint', 'bZeroPoint'],
  qlinearMatmul: vectorNames,
  dynamicQuantizeMatmul: ['bScale', 'bZeroPoint'],
  matmulIntegerToFloat: ['aScale', 'aZeroPoint', 'bScale', 'bZeroPoint'],
};
const hasRows = (op: Operation) => op === 'matmulInteger' || op === 'qlinearMatmul';
const hasBias = (op: Operation) => op === 'dynamicQuantizeMatmul' || op === 'matmulIntegerToFloat';
const takesHalf = (op: Operation) => op === 'qlinearMatmul' || op === 'matmulIntegerToFloat';

/** Batch axes of A, of B, and of Y. */
const batches = [
  [[], [], []],
  [[3], [], [3]],
  [[], [2], [2]],
  [[2], [1], [2]],
  [[2, 1], [3], [2, 3]],
  [
    [2, 3],
    [2, 3],
    [2, 3],
  ],
  [[0], [1], [0]],
] as const;

const choice = fc.record({
  op: fc.constantFrom(...operations),
  types: fc.tuple(fc.constantFrom(...quantizedTypes), fc.constantFrom(...quantizedTypes)),
  typeOfY: fc.constantFrom(...quantizedTypes),
  sizes: fc.tuple(size, size, size),
  batch: fc.oneof(
    { weight: 1, arbitrary: fc.constant(batches[0]) },
    { weight: 2, arbitrary: fc.constantFrom(...batches) },
  ),
  isRow: fc.nat(7).map((x) => x === 0),
  isColumn: fc.nat(7).map((x) => x === 0),
  transA: fc.boolean(),
  transB: fc.boolean(),
  half: fc.nat(3).map((x) => x === 0),
  forms: fc.tuple(...vectorNames.map(() => fc.constantFrom(...forms))),
  biases: fc.boolean(),
  layouts: fc.array(layout, { minLength: 10, maxLength: 10 }),
  numbers: fc.integer(),
});
type Choice = typeof choice extends fc.Arbitrary<infer T> ? T : never;

/** The arguments of a call, by name; and what it must return. */
interface Made {
  readonly op: Operation;
  readonly sizes: readonly [m: number, n: number, k: number];
  readonly given: Record<string, unknown>;
  readonly options: Record<string, unknown>;
  readonly wanted: Matrix;
  readonly dtype: DType;
  readonly typeOfScales: DType;
}

function make(chosen: Choice): Made {
  const { op, sizes, batch, isRow, isColumn, layouts } = chosen;
  const random = new Random(chosen.numbers);
  const [m, n, k] = [isRow ? 1 : sizes[0], isColumn ? 1 : sizes[1], sizes[2]];
  const [batchA, batchB] = [isRow ? [] : batch[0], isColumn ? [] : batch[1]];
  const batchY = isRow ? batchB : isColumn ? batchA : batch[2];
  const isDynamic = op === 'dynamicQuantizeMatmul';
  const typeA: DType = isDynamic ? 'float32' : chosen.types[0];
  const typeB = chosen.types[1];
  let used = 0;
  const lay = (dtype: DType, shape: readonly number[], value: () => number) =>
    layOut(dtype, shape, value, layouts[used++] as Layout);
  const whole = (dtype: Quantized) => () =>
    random.pick([
      quantized[dtype].min,
      quantized[dtype].max,
      random.between(quantized[dtype].min, quantized[dtype].max),
      random.between(quantized[dtype].min, quantized[dtype].max),
    ]);
  const spread = 2 ** random.between(-30, 8);
  const values = isDynamic ? () => (random.next() * 2 - 0.5) * spread : whole(typeA as Quantized);
  const turned = (trans: boolean, [rows, columns]: [number, number]) =>
    trans ? [columns, rows] : [rows, columns];
  const stack = (dtype: DType, own: readonly number[], value: () => number) =>
    lay(dtype, own, value);
  const a = stack(typeA, isRow ? [k] : [...batchA, ...turned(chosen.transA, [m, k])], values);
  const b = stack(
    typeB,
    isColumn ? [k] : [...batchB, ...turned(chosen.transB, [k, n])],
    whole(typeB),
  );

  /** The shape of a vector; undefined if it is a number. */
  const shapeOf = (name: VectorName, form: Form): readonly number[] | undefined => {
    const ofB = name.startsWith('b');
    const [isVector, length] = ofB ? [isColumn, n] : [isRow, m];
    const batch = ofB ? batchB : name.startsWith('a') ? batchA : batchY;
    const hasMany = !isVector && (ofB || hasRows(op));
    if (form === 'a list' && hasMany && !(ofB && batch.length > 0)) return [length];
    if (form === 'all axes' && hasMany) return [...batch, ...(ofB ? [1, length] : [length, 1])];
    return form === 'a number' || form === 'absent' ? undefined : { '[]': [], '[1]': [1] }[form as '[]'] ?? [1, 1]; // prettier-ignore
  };
  const names = vectorsOf[op];
  const formOf = (name: VectorName) => chosen.forms[vectorNames.indexOf(name)] as Form;
  const isScale = (name: VectorName) => name.endsWith('Scale');
  const isHalf = chosen.half && takesHalf(op) && names.some((name) => isScale(name) && shapeOf(name, formOf(name)) !== undefined); // prettier-ignore
  const typeOfScales: DType = isHalf ? 'float16' : 'float32';
  const typeOfY =
    shapeOf('yZeroPoint', formOf('yZeroPoint')) === undefined
      ? (typeA as Quantized)
      : chosen.typeOfY;

  const given: Record<string, unknown> = {};
  const vectors: Record<string, Matrix> = {};
  const scaleOf = (name: VectorName) => () => {
    const sign = random.pick([1, 1, 1, -1]);
    const value =
      name === 'yScale' ? 2 ** -random.between(0, 6) * (k + 1) : 2 ** -random.between(2, 9);
    const isZero = name !== 'yScale' && random.between(0, 19) === 0;
    return isZero ? 0 : round(typeOfScales, sign * value * (1 + random.next()));
  };
  for (const name of names) {
    const dtype: DType = isScale(name)
      ? typeOfScales
      : name === 'aZeroPoint'
        ? typeA
        : name === 'bZeroPoint'
          ? typeB
          : typeOfY;
    const value = isScale(name) ? scaleOf(name) : whole(dtype as Quantized);
    const form = formOf(name);
    if (form === 'absent' && !isScale(name)) continue;
    const shape = shapeOf(name, form);
    const vector = shape === undefined ? value() : lay(dtype, shape, value);
    given[name] = vector;
    vectors[name] =
      typeof vector === 'number'
        ? read({ data: arrayOf(dtype, [vector]), shape: [], dtype })
        : read(vector);
  }
  const bias =
    chosen.biases && hasBias(op)
      ? lay(typeOfScales, [n], () => round(typeOfScales, random.next() * 40 - 20))
      : undefined;

  const call: Call = {
    op,
    a: untransposed(read(a), chosen.transA && !isRow),
    b: untransposed(read(b), chosen.transB && !isColumn),
    vectors,
    bias: bias && read(bias),
  };
  const wanted = reference(call);
  return {
    op,
    sizes: [m, n, k],
    given: { a, b, ...given, ...(bias && { bias }) },
    options: { transA: chosen.transA, transB: chosen.transB },
    wanted,
    dtype: hasBias(op) ? typeOfScales : (wanted.dtype as DType),
    typeOfScales,
  };
}

function arrayOf(dtype: DType, values: readonly number[]): DataArray {
  const data = new arrayClasses[dtype](values.length);
  values.forEach((value, i) => set(data, dtype, i, value));
  return data;
}

function untransposed(matrix: Matrix, trans: boolean): Matrix {
  if (!trans) return matrix;
  const shape = [...matrix.shape.slice(0, -2), ...matrix.shape.slice(-2).reverse()];
  const strides = matrix.shape.map((_, axis) => count(matrix.shape.slice(axis + 1)));
  strides.push(...strides.splice(-2).reverse());
  return read({ data: matrix.data, dtype: matrix.dtype as DType, shape, strides });
}

/** The arguments as the operation takes them. */
function argumentsOf(
  op: Operation,
  { a, b, ...others }: Record<string, unknown>,
  options: object,
): unknown[] {
  if (op === 'qlinearMatmul') return [{ a, b, ...others }, options];
  return [a, b, { ...others, ...options }];
}

/** Makes the call, and expects every bit, and that all else is as it was. */
function expectRight(made: Made, out: Placed | undefined, weights?: PackedWeights): void {
  const { op, wanted, dtype } = made;
  const tensors = Object.values(made.given).filter((value) => typeof value === 'object');
  const before = (tensors as Placed[]).map(({ data }) => data.slice());
  const filled = out?.data.slice();
  const { inUse } = wg.memory();
  const given = weights ? { ...made.given, b: weights } : made.given;
  const options = { ...made.options, ...(weights && { transB: false }), ...(out && { out }) };
  const y = run(op, argumentsOf(op, given, options));
  expect(wg.memory().inUse, 'bytes in use').toBe(inUse);
  (tensors as Placed[]).forEach(({ data }, i) =>
    expect(sameBytes(data, before[i] as DataArray), 'an input is as it was').toBe(true),
  );
  if (out) expect(y).toBe(out);
  else expect([y.dtype, y.data.constructor]).toEqual([dtype, arrayClasses[dtype]]);
  expect([...y.shape]).toEqual([...wanted.shape]);
  const places = placesOf(y);
  places.forEach((at, i) => {
    const value = Number(wanted.data[i]);
    const found = get(y.data, dtype, at);
    const expected = dtype === 'float16' ? round('float16', value) : value;
    if (!Object.is(found, expected)) expect.fail(`Y[${i}] is ${found}; it must be ${expected}`);
  });
  if (!out || !filled) return;
  const gaps = out.data.slice();
  for (const at of places) for (const data of [gaps, filled]) set(data, dtype, at, 0);
  expect(sameBytes(gaps, filled), 'what lies between the elements of out').toBe(true);
}

/** Tries out in the layout too, from the same operands. */
function expectAllRight(made: Made, layoutOfOut: Layout, trans: boolean): void {
  const out = () => layOut(made.dtype, made.wanted.shape, () => 7, layoutOfOut, false);
  expectRight(made, undefined);
  const first = out();
  expectRight(made, first);
  drop(first);
  if ((made.given.b as Placed).shape.length < 2) return;
  const weights = wg.pack(made.given.b as never, { op: 'qgemm', trans });
  expectRight(made, undefined, weights);
  const second = out();
  expectRight(made, second, weights);
  drop(second, weights);
}

interface Fault {
  /** Spoils the arguments. */
  spoil: (made: Made) => void;
  code: string;
  /** With packed weights. */
  argument: string;
  /** Where it is none. */
  unless?: (made: Made, isPacked: boolean) => boolean;
}

const other = (dtype: unknown): Quantized => (dtype === 'int8' ? 'uint8' : 'int8');
const has = (name: VectorName) => (made: Made) => !vectorsOf[made.op].includes(name);
const typeOf = (made: Made, name: 'a' | 'b') => (made.given[name] as Placed).dtype;
const isDynamic = ({ op }: Made) => op === 'dynamicQuantizeMatmul';
const numbers = (dtype: DType, length: number, value = 1) => ({
  ...ones(dtype, [length]),
  data: arrayOf(dtype, Array<number>(length).fill(value)),
});

const faults: Record<string, Fault> = {
  'A of another type': {
    spoil: (made) => (made.given.a = ones(isDynamic(made) ? 'uint8' : 'float32', [2, 2])),
    code: 'DTYPE',
    argument: 'A',
  },
  'B of another type': {
    spoil: ({ given }) => (given.b = ones('float32', [2, 2])),
    code: 'DTYPE',
    argument: 'B',
    unless: (_, isPacked) => isPacked,
  },
  'A of rank 0': {
    spoil: (made) => (made.given.a = ones(typeOf(made, 'a'), [])),
    code: 'SHAPE',
    argument: 'A',
  },
  'A too long': {
    spoil: (made) => (made.given.a = { ...ones(typeOf(made, 'a'), [7]), shape: [2, 3] }),
    code: 'SHAPE',
    argument: 'A',
  },
  'A of another K': {
    spoil: (made) => (made.given.a = ones(typeOf(made, 'a'), [made.sizes[2] + 1])),
    code: 'SHAPE',
    argument: 'B',
  },
  'batch axes that do not fit': {
    spoil: (made) => {
      made.given.a = ones(typeOf(made, 'a'), [5, 1, 1]);
      made.given.b = ones(typeOf(made, 'b'), [7, 1, 1]);
    },
    code: 'SHAPE',
    argument: 'B',
    unless: (_, isPacked) => isPacked,
  },
  'transB next to packed weights': {
    spoil: ({ options }) => (options.transB = 1),
    code: 'ARGUMENT',
    argument: 'transB',
    unless: (_, isPacked) => !isPacked,
  },
  'no aScale': {
    spoil: ({ given }) => (given.aScale = undefined),
    code: 'ARGUMENT',
    argument: 'aScale',
    unless: has('aScale'),
  },
  'no bScale': {
    spoil: ({ given }) => (given.bScale = null),
    code: 'ARGUMENT',
    argument: 'bScale',
    unless: has('bScale'),
  },
  'no yScale': {
    spoil: ({ given }) => delete given.yScale,
    code: 'ARGUMENT',
    argument: 'yScale',
    unless: has('yScale'),
  },
  'yScale 0': {
    spoil: ({ given, typeOfScales }) => (given.yScale = numbers(typeOfScales, 1, -0)),
    code: 'ARGUMENT',
    argument: 'yScale',
    unless: has('yScale'),
  },
  'aScale infinite': {
    spoil: ({ given, typeOfScales }) => (given.aScale = numbers(typeOfScales, 1, -Infinity)),
    code: 'ARGUMENT',
    argument: 'aScale',
    unless: has('aScale'),
  },
  'bScale too long': {
    spoil: ({ given, sizes, typeOfScales }) => (given.bScale = numbers(typeOfScales, sizes[1] + 2)),
    code: 'SHAPE',
    argument: 'bScale',
    unless: has('bScale'),
  },
  'bScale float64': {
    spoil: ({ given }) => (given.bScale = Float64Array.of(1)),
    code: 'DTYPE',
    argument: 'bScale',
    unless: has('bScale'),
  },
  'aZeroPoint of another type': {
    spoil: (made) => (made.given.aZeroPoint = ones(other(typeOf(made, 'a')), [])),
    code: 'DTYPE',
    argument: 'aZeroPoint',
    unless: has('aZeroPoint'),
  },
  'aZeroPoint too long': {
    spoil: (made) => (made.given.aZeroPoint = numbers(typeOf(made, 'a'), made.sizes[0] + 2)),
    code: 'SHAPE',
    argument: 'aZeroPoint',
    unless: has('aZeroPoint'),
  },
  'bZeroPoint out of range': {
    spoil: (made) => (made.given.bZeroPoint = typeOf(made, 'b') === 'int8' ? 128 : -1),
    code: 'ARGUMENT',
    argument: 'bZeroPoint',
  },
  'bZeroPoint of another type': {
    spoil: (made) => (made.given.bZeroPoint = ones(other(typeOf(made, 'b')), [1])),
    code: 'DTYPE',
    argument: 'bZeroPoint',
  },
  'yZeroPoint float32': {
    spoil: ({ given }) => (given.yZeroPoint = Float32Array.of(1)),
    code: 'DTYPE',
    argument: 'yZeroPoint',
    unless: has('yZeroPoint'),
  },
  'bias too long': {
    spoil: ({ given, sizes, typeOfScales }) => (given.bias = numbers(typeOfScales, sizes[1] + 1)),
    code: 'SHAPE',
    argument: 'bias',
    unless: ({ op }) => !hasBias(op),
  },
  'bias int32': {
    spoil: ({ given, sizes }) => (given.bias = ones('int32', [sizes[1]])),
    code: 'DTYPE',
    argument: 'bias',
    unless: ({ op }) => !hasBias(op),
  },
  'a bias that there is not': {
    spoil: ({ given, sizes }) => (given.bias = ones('float32', [sizes[1]])),
    code: 'ARGUMENT',
    argument: 'bias',
    unless: ({ op }) => hasBias(op),
  },
  'NaN in A': {
    spoil: ({ given }) => {
      const a = given.a as Placed;
      const { shape } = a;
      const data = read(a).data as Float32Array;
      data[data.length - 1] = NaN;
      given.a = { data, shape };
    },
    code: 'ARGUMENT',
    argument: 'A',
    unless: (made) => !isDynamic(made) || count((made.given.a as Placed).shape) * count(made.wanted.shape) === 0, // prettier-ignore
  },
  'an unknown option': {
    spoil: ({ options }) => (options.alpha = 1),
    code: 'ARGUMENT',
    argument: 'alpha',
  },
  'a wrong activation': {
    spoil: ({ options }) => (options.activation = [2, 1]),
    code: 'ARGUMENT',
    argument: 'activation',
  },
  'out of another type': {
    spoil: ({ options, wanted }) => (options.out = ones('float64', [...wanted.shape])),
    code: 'DTYPE',
    argument: 'out',
  },
  'out of another shape': {
    spoil: ({ options, wanted, dtype }) => (options.out = ones(dtype, [...wanted.shape, 2])),
    code: 'SHAPE',
    argument: 'out',
  },
};

it('is right for random shapes, layouts and options, and refuses what is wrong in one place', () => {
  const fault = fc.option(fc.constantFrom(...Object.entries(faults)), { freq: 2 });
  let [refused, right] = [0, 0];
  fc.assert(
    fc.property(choice, fault, fc.boolean(), (chosen, spoiled, packs) => {
      const { inUse } = wg.memory();
      const made = make(chosen);
      const trans = chosen.transB;
      const isPacked = packs && (made.given.b as Placed).shape.length > 1;
      const tensors = Object.values(made.given);
      const [name, fault] = spoiled ?? [];
      if (!fault || fault.unless?.(made, isPacked)) {
        ++right;
        expectAllRight(made, chosen.layouts[9] as Layout, trans);
      } else {
        ++refused;
        const out = layOut(
          made.dtype,
          made.wanted.shape,
          () => 7,
          chosen.layouts[9] as Layout,
          false,
        );
        const before = out.data.slice();
        made.options.out = out;
        fault.spoil(made);
        let weights: PackedWeights | undefined;
        if (isPacked) {
          weights = wg.pack(made.given.b as never, { op: 'qgemm', trans });
          made.given.b = weights;
          made.options.transB &&= made.options.transB === 1;
        }
        const taken = wg.memory().inUse;
        let error: unknown;
        try {
          run(made.op, argumentsOf(made.op, made.given, made.options));
        } catch (thrown) {
          error = thrown;
        }
        expectWhole(error);
        const { code, argument } = fault;
        expect(error, name).toMatchObject({ op: made.op, code, argument });
        expect(wg.memory().inUse).toBe(taken);
        expect(sameBytes(out.data, before), 'out is as it was').toBe(true);
        drop(out, weights);
      }
      drop(...tensors);
      expect(wg.memory().inUse).toBe(inUse);
    }),
    { seed, numRuns: runs(4000) },
  );
  expect(refused).toBeGreaterThan(runs(1000));
  expect(right).toBeGreaterThan(runs(1000));
}, 120_000);

// Arguments of every kind: arguments of a valid call with some replaced, so that a call fails late, or
// succeeds.
const replacement = fc.record({
  argument: fc.constantFrom(
    'a',
    'b',
    ...vectorNames,
    'bias',
    'transA',
    'out',
    'activation',
    'else',
  ),
  field: fc.constantFrom(undefined, 'data', 'shape', 'strides', 'offset', 'dtype'),
  value: fc.oneof(nearlyRight, anything),
});

it('takes arguments of every JavaScript kind: a GemmError, or a result', () => {
  const call = fc.record({
    op: fc.constantFrom(...operations),
    types: fc.tuple(fc.constantFrom(...quantizedTypes), fc.constantFrom(...quantizedTypes)),
    sizes: fc.tuple(small, small, small),
    packs: fc.boolean(),
    whole: fc.oneof(
      { weight: 19, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.tuple(fc.nat(2), fc.oneof(nearlyRight, anything)) },
    ),
    replacements: fc.array(replacement, { maxLength: 3 }),
  });
  let succeeded = 0;
  fc.assert(
    fc.property(call, ({ op, types, sizes: [m, n, k], packs, whole, replacements }) => {
      const { inUse } = wg.memory();
      const b = ones(types[1], [k, n]);
      const weights = packs ? wg.pack(b, { op: 'qgemm' }) : undefined;
      const given: Record<string, unknown> = {
        a: ones(op === 'dynamicQuantizeMatmul' ? 'float32' : types[0], [m, k]),
        b: weights ?? b,
      };
      for (const name of vectorsOf[op])
        if (name.endsWith('Scale')) given[name] = ones('float32', name === 'bScale' ? [n] : []);
      const options: Record<string, unknown> = {};
      for (const { argument, field, value } of replacements) {
        const to = ['transA', 'out', 'activation', 'else'].includes(argument) ? options : given;
        const old = to[argument];
        to[argument] =
          field === undefined || typeof old !== 'object' ? value : { ...old, [field]: value };
      }
      const args = argumentsOf(op, given, options);
      if (whole && whole[0] < args.length) args[whole[0]] = whole[1];
      const taken = wg.memory().inUse;
      const explained = succeeds(() => explain(op, args));
      expect(wg.memory().inUse).toBe(taken);
      let y: Placed | undefined;
      // Only a call reads the values of scales, and so may still refuse them.
      if (succeeds(() => (y = run(op, args)))) {
        expect(explained).toBe(true);
        expect(y?.shape.length).toBeLessThanOrEqual(8);
        ++succeeded;
      }
      expect(wg.memory().inUse).toBe(taken);
      drop(weights);
      expect(wg.memory().inUse).toBe(inUse);
    }),
    { seed, numRuns: runs(6000) },
  );
  expect(succeeded, 'calls that succeeded: the arguments must not be all bad').toBeGreaterThan(
    runs(1500),
  );
}, 60_000);
