/**
 * Helpers of the tests of QGemm: random problems, operands in every form and place, and the check
 * of a result.
 */
import {
  type DType,
  type Gemm,
  PackedWeights,
  type QGemmInputs,
  type QGemmOptions,
  type TensorLike,
} from 'wgemm';
import { arrayClasses, type Quantized, quantized, quantizedTypes } from './dtypes.js';
import { type Matrix, type QuantizedOperands, referenceQGemm, type Vector } from './reference.js';
import {
  drop,
  expectCall,
  extent,
  type Place,
  place,
  places,
  type Random,
  snapshot,
} from './tensors.js';

/** Types of A and B, in all combinations. */
export interface Types {
  a: Quantized;
  b: Quantized;
}
export const typePairs: readonly Types[] = quantizedTypes.flatMap((a) =>
  quantizedTypes.map((b) => ({ a, b })),
);

export type Output = 'float32' | Quantized;
export const outputs: readonly Output[] = ['float32', ...quantizedTypes];

/** Shapes that broadcast to (M, N). */
export const shapesOfC = (m: number, n: number): readonly (readonly number[])[] => [
  [],
  [1],
  [n],
  [1, 1],
  [1, n],
  [m, 1],
  [m, n],
];

/**
 * Forms of a scale or zero point. The second list is for parameters of B, which may have one per
 * column.
 */
export const oneForms = ['a number', 'an array', '[]', '[1]'] as const;
export const forms = [
  ...oneForms,
  'an array of N',
  '[N]',
  '[N] with gaps',
  '[N] repeated',
] as const;
export type OneForm = (typeof oneForms)[number];
export type Form = (typeof forms)[number];

/** A scale or zero point in a form. If that is a tensor without gaps, it is in a place. */
export function vector(
  wg: Gemm,
  form: Form,
  where: Place,
  dtype: Output,
  n: number,
  value: () => number,
): Vector {
  const filled = (length: number, step = 1) => {
    const data = new arrayClasses[dtype](length) as Float32Array;
    return data.fill(NaN).map((unused, i) => (i % step === 0 ? value() : unused));
  };
  switch (form) {
    case 'a number':
      return value();
    case 'an array':
      return filled(1);
    case 'an array of N':
      return filled(n);
    case '[N] with gaps':
      return { data: filled(extent([n], [3]), 3), shape: [n], strides: [3] };
    case '[N] repeated':
      return { data: filled(extent([n], [0])), shape: [n], strides: [0] };
    default: {
      const tensor = places[where](wg, dtype, { '[]': [], '[1]': [1], '[N]': [n] }[form]);
      const { data } = tensor;
      for (let i = 0; i < data.length; ++i) data[i] = value();
      return tensor;
    }
  }
}

export const drawScale = (random: Random): number => Math.fround(2 ** (-8 * random.next()));

/** Half of the zero points are at an end of the range. */
export function drawZeroPoint(random: Random, dtype: Quantized): number {
  const { min, max } = quantized[dtype];
  return random.pick([min, max, random.between(min, max), random.between(min, max)]);
}

/** Makes most of a C so small that it does not hide the product. */
export function shrink<T extends TensorLike>(c: T, random: Random): T {
  const data = c.data as Int32Array;
  data.forEach((value, i) => (data[i] = random.next() < 0.1 ? value : value >> 16));
  return c;
}

export interface QuantizedInputs extends Omit<QuantizedOperands, 'b'> {
  b: Matrix | PackedWeights;
}
interface Options {
  alpha?: number;
  transA?: boolean;
  transB?: boolean;
}

export interface Wanted extends Options {
  types: Types;
  sizes: readonly [m: number, n: number, k: number];
  /** The place of each operand that is a tensor. */
  where?: Place;
  /** Makes A, B and C, instead of random tensors in `where`. */
  make?: (dtype: DType, shape: number[]) => TensorLike;
  /** Replaces the random B. */
  b?: Matrix | PackedWeights;
  c?: readonly number[] | number | null | undefined;
  output?: Output;
  /** The form of all parameters except the parameters of B. Without a form, it is random. */
  one?: OneForm;
  bScale?: Form;
  bZeroPoint?: Form;
}

/** Arguments of a call. y_scale is such that most results fit the type and some do not. */
export function draw(
  wg: Gemm,
  random: Random,
  wanted: Wanted,
): { inputs: QuantizedInputs; options: Options } {
  const {
    types,
    sizes,
    where = 'an array',
    c,
    output = 'float32',
    alpha = 1,
    transA = false,
    transB = false,
  } = wanted;
  const [m, n, k] = sizes;
  const {
    one = random.pick(oneForms),
    bScale = random.pick(forms),
    bZeroPoint = random.pick(forms),
  } = wanted;
  const { make = (dtype, shape) => place(wg, where, dtype, shape, random) } = wanted;
  const b = wanted.b ?? make(types.b, transB ? [n, k] : [k, n]);
  const inputs: QuantizedInputs = {
    a: make(types.a, transA ? [k, m] : [m, k]),
    aScale: vector(wg, one, where, 'float32', 1, () => drawScale(random)),
    aZeroPoint: vector(wg, one, where, types.a, 1, () => drawZeroPoint(random, types.a)),
    b,
    bScale: vector(wg, bScale, where, 'float32', n, () => drawScale(random)),
    bZeroPoint: vector(wg, bZeroPoint, where, types.b, n, () => drawZeroPoint(random, types.b)),
    c: typeof c === 'object' && c !== null ? shrink(make('int32', [...c]), random) : c,
  };
  const options = { alpha, transA, ...(b instanceof PackedWeights ? {} : { transB }) };
  if (output !== 'float32') {
    const largest = reference(inputs, options).values.reduce(
      (most, value) => Math.max(Number(most), Math.abs(Number(value))),
      0,
    );
    // A number would take the type of A.
    const form = one === 'a number' && output !== types.a ? 'an array' : one;
    inputs.yScale = vector(
      wg,
      one,
      where,
      'float32',
      1,
      () => Math.fround(Number(largest) / 150) || 1,
    );
    inputs.yZeroPoint = vector(wg, form, where, output, 1, () => drawZeroPoint(random, output));
  }
  return { inputs, options };
}

/** The tensor that weights were packed from. */
const origins = new WeakMap<PackedWeights, { b: Matrix; transB: boolean }>();

/** Packs a tensor, and remembers it for `expectQGemm`. */
export function packed(wg: Gemm, b: Matrix, trans = false): PackedWeights {
  const weights = wg.pack(b as QGemmInputs['a'], { op: 'qgemm', trans });
  origins.set(weights, { b: snapshot(b), transB: trans });
  return weights;
}

/**
 * Kernels by relaxed 8-bit dot products that are made for this engine. B of 7 bits must be packed
 * weights to reach theirs.
 */
export const relaxedDots = ({ info }: Gemm): string[] =>
  info.kernels.flatMap(({ name, dtype, preferred }) =>
    dtype === 'int8' && preferred && name.includes('_relaxed_') ? [name] : [],
  );

/** The kernel that a call takes. */
export const kernelOf = (wg: Gemm, inputs: QuantizedInputs, options: object): string =>
  wg.explain('qgemm', inputs as QGemmInputs, options as QGemmOptions).kernel;

function reference(inputs: QuantizedInputs, options: Options) {
  const origin = inputs.b instanceof PackedWeights ? origins.get(inputs.b) : undefined;
  return referenceQGemm({ ...inputs, b: inputs.b as Matrix, ...origin }, { ...options, ...origin });
}

/** Disposes of the inputs and other arguments that are in the heap. */
export function dropAll(inputs: object, ...more: unknown[]): void {
  drop(...(Object.values(inputs) as unknown[]), ...more);
}

/** Calls qgemm, and expects all of `expectCall`: of the result, every bit. Returns it. */
export function expectQGemm(
  wg: Gemm,
  inputs: QuantizedInputs,
  options?: (Options & { out?: TensorLike }) | null,
  what = '',
): TensorLike {
  const tensors = Object.values(inputs).flatMap(
    (input: Vector | PackedWeights | null | undefined): TensorLike[] => {
      if (typeof input !== 'object' || input === null || input instanceof PackedWeights) return [];
      return 'data' in input ? [input] : [{ data: input, shape: [input.length] }];
    },
  );
  const call = () => wg.qgemm(inputs as QGemmInputs, options as QGemmOptions);
  return expectCall(wg, tensors, options?.out, reference(inputs, options ?? {}), call, what);
}
