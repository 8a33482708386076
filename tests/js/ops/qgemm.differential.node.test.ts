/**
 * Seeded random problems of QGemm, computed by the library with B as it is and with B packed, by
 * the reference, and by ONNX Runtime Web: all bits must be the same.
 *
 * The runtime has no int8 x uint8, quantizes to the type of A only, and wants b_scale and
 * b_zero_point in one shape. If K is 0, it returns memory that it never wrote. For these problems
 * only the reference counts.
 */
import { describe, expect, it } from 'vitest';
import { type DType } from 'wgemm';
import { encodeModel } from '../../peers/onnx.mjs';
import { dtypeOf } from '../support/dtypes.js';
import {
  draw,
  dropAll,
  expectQGemm,
  forms,
  kernelOf,
  oneForms,
  type Output,
  packed,
  type QuantizedInputs,
  relaxedDots,
  shapesOfC,
  typePairs,
} from '../support/quantized.js';
import {
  elements,
  list,
  type Matrix,
  type QuantizedFactors,
  referenceQGemm,
  type Vector,
} from '../support/reference.js';
import { expectNear, placeNames, Random, tensor } from '../support/tensors.js';
import { ort, wg } from '../support/with-ort.js';

/** Inputs of the operator, in its order. */
const names = [
  'a',
  'aScale',
  'aZeroPoint',
  'b',
  'bScale',
  'bZeroPoint',
  'c',
  'yScale',
  'yZeroPoint',
] as const;

/** The kernels of calls with B packed. */
const kernels = new Set<string>();

/** Calls qgemm with B as it is, and with B packed. */
function expectTwice(
  inputs: QuantizedInputs,
  options: QuantizedFactors & { alpha?: number },
  what: string,
): void {
  expectQGemm(wg, inputs, options as object, what);
  const weights = packed(wg, inputs.b as Matrix, Boolean(options.transB));
  try {
    const call = [
      { ...inputs, b: weights },
      { ...options, transB: false },
    ] as const;
    kernels.add(kernelOf(wg, ...call));
    expectQGemm(wg, call[0], call[1] as object, `${what}, packed`);
  } finally {
    weights.dispose();
  }
}

/** What the runtime computes. Constant: B is a part of the model, which the runtime may pack. */
async function runOrt(
  inputs: QuantizedInputs,
  { alpha = 1, transA, transB }: QuantizedFactors,
  output: Output,
  constant: boolean,
): Promise<Matrix> {
  const all = names.map((name) => {
    const input = inputs[name] as Vector | null | undefined;
    return input === undefined || input === null ? null : { name, ...plain(input) };
  });
  while (all.at(-1) === null) all.pop();
  const isGiven = (input: (typeof all)[number]) =>
    input !== null && !(constant && input.name === 'b');
  const attributes = { alpha: { float: alpha }, transA: Number(transA), transB: Number(transB) };
  const declared = all.map((input) =>
    isGiven(input) && input ? { name: input.name, dtype: input.dtype } : input,
  );
  const model = encodeModel({
    type: 'QGemm',
    domain: 'com.microsoft',
    attributes,
    inputs: declared,
    output: { dtype: output },
  });
  const session = await ort.createSession(model);
  const feeds = all.flatMap((input) =>
    isGiven(input) && input ? [[input.name, ort.tensor(input)] as const] : [],
  );
  const { Y } = await session.run(Object.fromEntries(feeds));
  return { data: Y.data, shape: Y.dims, dtype: Y.type as DType };
}

/** A tensor without gaps. */
function plain(input: Vector): Required<Omit<Matrix, 'strides' | 'offset'>> {
  const { shape, ...rest } = input as Matrix;
  const dtype = dtypeOf({ ...rest, data: (input as Matrix).data });
  const [rows = 1, columns = 1] = shape.length === 2 ? shape : [1, ...shape];
  return { ...tensor(dtype, shape, list(rows, columns, elements(dtype, input as Matrix))), dtype };
}

const alphas = [1, 0.5, -1, 0.37, -2.5, 0];

/** Small sizes more often than large ones, up to 70. Every fifth problem is a GEMV. */
const size = (random: Random) => Math.floor(71 ** random.next());

describe.each(typePairs)('$a x $b', (types) => {
  const inOrt = !(types.a === 'int8' && types.b === 'uint8');

  it.each([
    [false, false],
    [false, true],
    [true, false],
    [true, true],
  ])('transA %o, transB %o', async (transA, transB) => {
    const random = new Random(typePairs.indexOf(types) * 4 + Number(transA) * 2 + Number(transB));
    let compared = 0;
    for (const output of ['float32', types.a] as const) {
      for (const perColumn of [false, true]) {
        for (let i = 0; i < 9; ++i) {
          const sizes = [
            random.next() < 0.2 ? 1 : size(random),
            size(random),
            size(random),
          ] as const;
          const c = [undefined, ...shapesOfC(sizes[0], sizes[1]), [sizes[0], sizes[1]]][i];
          const form = perColumn
            ? random.pick(['[N]', '[N] with gaps'] as const)
            : random.pick(['[]', '[1]'] as const);
          const one = random.pick(['[]', '[1]'] as const);
          const where = random.pick(placeNames);
          const { inputs, options } = draw(wg, random, {
            types,
            sizes,
            where,
            c,
            output,
            one,
            bScale: form,
            bZeroPoint: form,
            alpha: random.pick(alphas),
            transA,
            transB,
          });
          const constant = random.pick([false, true]);
          const what = `${sizes.join(' x ')}, ${JSON.stringify({ ...options, c, output, form, where, constant })}`;
          if (inOrt) {
            const wanted = referenceQGemm(inputs as never, options);
            const found = await runOrt(inputs, options, output, constant);
            expect([found.shape, found.dtype], what).toEqual([wanted.shape, wanted.dtype]);
            expectNear(found, wanted, `of the runtime, ${what}`);
            ++compared;
          }
          expectTwice(inputs, options, what);
          dropAll(inputs);
        }
      }
    }
    expect(compared, 'problems that the runtime has computed').toBe(inOrt ? 36 : 0);
  });

  it('as the runtime has it not: other types of Y, any forms, K = 0', () => {
    const random = new Random(100 + typePairs.indexOf(types));
    for (let i = 0; i < 150; ++i) {
      const sizes = [size(random), size(random), random.next() < 0.1 ? 0 : size(random)] as const;
      const [transA, transB] = [random.pick([false, true]), random.pick([false, true])];
      const output = types.a === 'int8' ? 'uint8' : 'int8';
      const c = random.pick([undefined, 9, ...shapesOfC(sizes[0], sizes[1])]);
      const [one, bScale, bZeroPoint] = [
        random.pick(oneForms),
        random.pick(forms),
        random.pick(forms),
      ];
      const where = random.pick(placeNames);
      const { inputs, options } = draw(wg, random, {
        types,
        sizes,
        where,
        c,
        output,
        one,
        bScale,
        bZeroPoint,
        transA,
        transB,
      });
      expectTwice(
        inputs,
        options,
        `${sizes.join(' x ')}, ${JSON.stringify({ ...options, c, one, bScale, bZeroPoint, where })}`,
      );
      dropAll(inputs);
    }
  });
});

it.each([2, 25])(
  'the runtime computes operands and zero points at the ends of their ranges alike: %i rows',
  async (m) => {
    const random = new Random(200);
    const ends = { int8: [-128, 127], uint8: [0, 255] };
    for (const types of typePairs) {
      if (types.a === 'int8' && types.b === 'uint8') continue;
      for (const a of ends[types.a]) {
        for (const b of ends[types.b]) {
          const { inputs, options } = draw(wg, random, {
            types,
            sizes: [m, 5, 4096],
            one: '[]',
            bScale: '[N]',
            bZeroPoint: '[N]',
            output: types.a,
          });
          (inputs.a.data as Int8Array).fill(a);
          ((inputs.b as Matrix).data as Int8Array).fill(b);
          const what = JSON.stringify({ types, a, b });
          const found = await runOrt(inputs, options, types.a, false);
          expectNear(found, referenceQGemm(inputs as never, options), `of the runtime, ${what}`);
          expectTwice(inputs, options, what);
        }
      }
    }
  },
);

it('calls with B packed have taken relaxed dot products, if this engine has any', () => {
  const dots = relaxedDots(wg);
  if (dots.length > 0)
    expect(
      [...kernels].filter((name) => dots.includes(name)),
      dots.join(' or '),
    ).not.toEqual([]);
});

it('the runtime is wrong or fails on the problems that it does not get', async () => {
  const one = (types: (typeof typePairs)[number], output: Output) => {
    const drawn = draw(wg, new Random(1), {
      types,
      sizes: [1, 2, 1],
      one: '[]',
      bScale: '[]',
      bZeroPoint: '[]',
      output,
    });
    return runOrt(drawn.inputs, drawn.options, output, false);
  };
  await expect(one({ a: 'int8', b: 'uint8' }, 'float32')).rejects.toThrow(
    'Could not find an implementation',
  );
  await expect(one({ a: 'uint8', b: 'int8' }, 'int8')).rejects.toThrow(
    'Could not find an implementation',
  );
});
