/**
 * Random arguments of qgemm, explain and pack. Valid ones give the result of the reference, to the
 * bit. Wrong ones give their GemmError.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createGemm,
  type Gemm,
  type PackedWeights,
  type QGemmInputs,
  type QGemmOptions,
} from 'wgemm';
import {
  anything,
  layout,
  layOut,
  nearlyRight,
  ones,
  orAnything,
  seed,
  size,
  sizes,
  small,
} from '../support/arbitraries.js';
import { quantizedTypes, type Quantized } from '../support/dtypes.js';
import { expectWhole, succeeds } from '../support/errors.js';
import {
  draw,
  dropAll,
  expectQGemm,
  forms,
  oneForms,
  type Output,
  outputs,
  packed,
  type QuantizedInputs,
  typePairs,
} from '../support/quantized.js';
import type { Matrix } from '../support/reference.js';
import { count, drop, Random, snapshot, tensor } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

interface Call {
  sizes: [m: number, n: number, k: number];
  types: { a: Quantized; b: Quantized };
  output: Output;
  inputs: QuantizedInputs;
  options: QGemmOptions;
}
interface Fault {
  /** Spoils the call. */
  spoil: (call: Call) => void;
  /** The argument of the error; with packed weights the second one. */
  code: string;
  argument: string;
  /** Where it is none. */
  unless?: (call: Call) => boolean;
}

const other = (dtype: Output): Quantized => (dtype === 'int8' ? 'uint8' : 'int8');
const filled = (dtype: Output, length: number, value: number) =>
  tensor(dtype, [length], Array<number>(length).fill(value));
const outOf =
  (dtype: (call: Call) => Output, rows = 0) =>
  (call: Call) => {
    call.options.out = ones(dtype(call), [
      call.sizes[0] + rows,
      call.sizes[1],
    ]) as QGemmOptions['out'];
  };
const isPacked = ({ inputs }: Call) => 'byteLength' in inputs.b;

const faults: Record<string, Fault> = {
  'A of another type': {
    spoil: ({ inputs }) => (inputs.a = ones('float32', [...inputs.a.shape])),
    code: 'DTYPE',
    argument: 'A',
  },
  'A of rank 3': {
    spoil: ({ types, inputs }) => (inputs.a = ones(types.a, [1, ...inputs.a.shape])),
    code: 'SHAPE',
    argument: 'A',
  },
  'A too long': {
    spoil: ({ types, inputs }) =>
      (inputs.a = { ...ones(types.a, [count(inputs.a.shape) + 1]), shape: inputs.a.shape }),
    code: 'SHAPE',
    argument: 'A',
  },
  'A of another K': {
    spoil: ({ sizes: [m, , k], types, inputs, options }) => {
      inputs.a = ones(types.a, [m, k + 1]);
      options.transA = false;
    },
    code: 'SHAPE',
    argument: 'B',
  },
  'transB next to packed weights': {
    spoil: ({ options }) => (options.transB = true),
    code: 'ARGUMENT',
    argument: 'transB',
    unless: (call) => !isPacked(call),
  },
  'no aScale': {
    spoil: ({ inputs }) => (inputs.aScale = undefined as never),
    code: 'ARGUMENT',
    argument: 'aScale',
  },
  'aScale 0': { spoil: ({ inputs }) => (inputs.aScale = 0), code: 'ARGUMENT', argument: 'aScale' },
  'one of bScale NaN': {
    spoil: ({ sizes: [, n], inputs }) => {
      const data = new Float32Array(n).fill(1);
      data[((n * n) % 7) % n] = NaN;
      inputs.bScale = data;
    },
    code: 'ARGUMENT',
    argument: 'bScale',
    unless: ({ sizes: [, n] }) => n === 0,
  },
  'bScale too long': {
    spoil: ({ sizes: [, n], inputs }) => (inputs.bScale = filled('float32', n + 2, 1)),
    code: 'SHAPE',
    argument: 'bScale',
  },
  'aZeroPoint of another type': {
    spoil: ({ types, inputs }) => (inputs.aZeroPoint = filled(other(types.a), 1, 1)),
    code: 'DTYPE',
    argument: 'aZeroPoint',
  },
  'aZeroPoint out of range': {
    spoil: ({ types, inputs }) => (inputs.aZeroPoint = types.a === 'int8' ? 128 : -1),
    code: 'ARGUMENT',
    argument: 'aZeroPoint',
  },
  'bZeroPoint of another type': {
    spoil: ({ types, inputs }) => (inputs.bZeroPoint = filled(other(types.b), 1, 1)),
    code: 'DTYPE',
    argument: 'bZeroPoint',
  },
  'C of another type': {
    spoil: ({ inputs }) => (inputs.c = ones('float32', [])),
    code: 'DTYPE',
    argument: 'C',
  },
  'C too tall': {
    spoil: ({ sizes: [m, n], inputs }) => (inputs.c = ones('int32', [m + 2, n])),
    code: 'SHAPE',
    argument: 'C',
  },
  'yScale alone': {
    spoil: ({ inputs }) => Object.assign(inputs, { yScale: 1, yZeroPoint: undefined }),
    code: 'ARGUMENT',
    argument: 'yZeroPoint',
  },
  'yZeroPoint alone': {
    spoil: ({ inputs }) => Object.assign(inputs, { yScale: null, yZeroPoint: 1 }),
    code: 'ARGUMENT',
    argument: 'yScale',
  },
  'alpha infinite': {
    spoil: ({ options }) => (options.alpha = -Infinity),
    code: 'ARGUMENT',
    argument: 'alpha',
  },
  'out of another type': {
    spoil: outOf(({ output }) => other(output)),
    code: 'DTYPE',
    argument: 'out',
  },
  'out too tall': { spoil: outOf(({ output }) => output, 1), code: 'SHAPE', argument: 'out' },
};

it('qgemm is right for random shapes, layouts and options, and refuses what is wrong in one place', () => {
  const arguments_ = fc.record({
    types: fc.constantFrom(...typePairs),
    sizes: fc.tuple(size, size, size),
    output: fc.constantFrom(...outputs),
    transA: fc.boolean(),
    transB: fc.boolean(),
    alpha: fc.oneof(fc.constantFrom(0, 1, -1), fc.float({ min: -4, max: 4, noNaN: true })),
    c: fc.constantFrom('none', 'number', '()', '(1)', '(N)', '(1,1)', '(1,N)', '(M,1)', '(M,N)'),
    one: fc.constantFrom(...oneForms),
    bScale: fc.constantFrom(...forms),
    bZeroPoint: fc.constantFrom(...forms),
    where: fc.constantFrom('an array', 'part of an array', 'shared memory', 'the heap'),
    packs: fc.boolean(), // what must be refused; what must not runs with B packed too
    fills: fc.boolean(),
    layouts: fc.tuple(layout, layout, layout, layout),
    fault: fc.option(fc.constantFrom(...Object.values(faults)), { freq: 2 }),
    numbers: fc.integer(),
  });
  let refused = 0;
  fc.assert(
    fc.property(arguments_, ({ c, packs, fills, layouts, fault, numbers, ...wanted }) => {
      const random = new Random(numbers);
      const { inUse } = wg.memory();
      const { sizes, types, output, transB } = wanted;
      const [m, n] = sizes;
      const shapes: Record<string, number[]> = {
        '()': [],
        '(1)': [1],
        '(N)': [n],
        '(1,1)': [1, 1],
        '(1,N)': [1, n],
        '(M,1)': [m, 1],
      };
      shapes['(M,N)'] = [m, n];
      let made = 0;
      const make = (dtype: Parameters<typeof layOut>[2], shape: number[]) =>
        layOut(wg, random, dtype, shape, layouts[made++ % 3] as (typeof layouts)[0], true);
      const drawn = draw(wg, random, {
        ...wanted,
        make,
        c: c === 'none' ? null : c === 'number' ? -5 : shapes[c],
      });
      const inputs = packs
        ? { ...drawn.inputs, b: packed(wg, drawn.inputs.b as Matrix, transB) }
        : drawn.inputs;
      const out = fills ? layOut(wg, random, output, [m, n], layouts[3], false) : undefined;
      const options = {
        ...drawn.options,
        ...(packs ? { transB: false } : {}),
        ...(out ? { out } : {}),
      } as QGemmOptions;
      const call: Call = { sizes, types, output, inputs: { ...inputs }, options: { ...options } };
      if (!fault || fault.unless?.(call)) {
        expectQGemm(wg, drawn.inputs, { ...drawn.options, ...(out && { out }) });
        const weights = packs ? inputs.b : packed(wg, drawn.inputs.b as Matrix, transB);
        expectQGemm(wg, { ...inputs, b: weights }, { ...options, transB: false } as object);
        drop(weights);
      } else {
        ++refused;
        fault.spoil(call);
        const [before, taken] = [out && snapshot(out), wg.memory().inUse];
        let error: unknown;
        try {
          wg.qgemm(call.inputs as QGemmInputs, call.options);
        } catch (thrown) {
          error = thrown;
        }
        expectWhole(error);
        const { code, argument } = fault;
        expect(error).toMatchObject({ op: 'qgemm', code, argument });
        expect(wg.memory().inUse).toBe(taken);
        if (out && before) expect(snapshot(out)).toEqual(before);
      }
      dropAll(drawn.inputs, inputs.b, out);
      expect(wg.memory().inUse).toBe(inUse);
    }),
    { seed, numRuns: 3000 },
  );
  expect(refused).toBeGreaterThan(1000);
});

// Arguments of every kind: arguments of a valid call with some replaced, so that a call fails late, or
// succeeds.
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
const replacement = fc.record({
  argument: fc.constantFrom(...names, ...names, 'else', 'inputs', 'options'),
  field: fc.constantFrom(
    undefined,
    'data',
    'shape',
    'strides',
    'dtype',
    'alpha',
    'transA',
    'transB',
    'out',
    'else',
  ),
  value: fc.oneof(nearlyRight, anything),
});
const call = fc.record({
  types: fc.constantFrom(...typePairs),
  sizes: fc.tuple(small, small, small),
  output: fc.constantFrom(...outputs),
  packs: fc.boolean(),
  replacements: fc.array(replacement, { maxLength: 3 }),
});

it('qgemm and explain take arguments of every JavaScript kind: a GemmError, or a right result', () => {
  let succeeded = 0;
  fc.assert(
    fc.property(call, ({ types, sizes: [m, n, k], output, packs, replacements }) => {
      const { inUse } = wg.memory();
      const b = ones(types.b, [k, n]);
      const weights: PackedWeights | undefined = packs ? packed(wg, b) : undefined;
      const y =
        output === 'float32' ? {} : { yScale: ones('float32', []), yZeroPoint: ones(output, [1]) };
      const good: Record<string, unknown> = {
        a: ones(types.a, [m, k]),
        aScale: 1,
        b: weights ?? b,
        bScale: ones('float32', [n]),
        ...y,
      };
      let [inputs, options]: unknown[] = [good, { alpha: 2 }];
      for (const { argument, field, value } of replacements) {
        const replaced = (whole: unknown) =>
          field === undefined || typeof whole !== 'object' || whole === null
            ? value
            : { ...whole, [field]: value };
        if (argument === 'options') options = replaced(options);
        else if (argument === 'inputs') inputs = value;
        else if (typeof inputs === 'object' && inputs !== null) {
          inputs = {
            ...inputs,
            [argument]: replaced((inputs as Record<string, unknown>)[argument]),
          };
        }
      }
      const taken = wg.memory().inUse;
      const explained = succeeds(() =>
        wg.explain('qgemm', inputs as QGemmInputs, options as QGemmOptions),
      );
      expect(wg.memory().inUse).toBe(taken);
      // Only a call reads the values of scales, and so may still refuse them.
      const run = explained
        ? () => expectQGemm(wg, inputs as QuantizedInputs, options as object)
        : () => wg.qgemm(inputs as QGemmInputs, options as QGemmOptions);
      if (succeeds(run)) {
        expect(explained).toBe(true);
        ++succeeded;
      }
      drop(weights);
      expect(wg.memory().inUse).toBe(inUse);
    }),
    { seed, numRuns: 6000 },
  );
  expect(succeeded, 'calls that succeeded: the arguments must not be all bad').toBeGreaterThan(
    1500,
  );
});

it('pack takes arguments of every JavaScript kind', () => {
  const options = fc.record(
    { op: orAnything(fc.constant('qgemm')), trans: orAnything(fc.boolean()) },
    { requiredKeys: ['op'] },
  );
  const replaced = fc.record(
    { data: nearlyRight, shape: sizes, strides: sizes, dtype: nearlyRight },
    { requiredKeys: [] },
  );
  const good = fc.record({
    dtype: fc.constantFrom(...quantizedTypes),
    shape: fc.tuple(small, small),
    replaced: fc.option(replaced, { freq: 2 }),
  });
  const b = good.map(({ dtype, shape, replaced }) => ({ ...ones(dtype, shape), ...replaced }));
  let succeeded = 0;
  fc.assert(
    fc.property(orAnything(b), orAnything(options), (b, options) => {
      const { inUse } = wg.memory();
      const made = succeeds(() => {
        const weights = wg.pack(b as QGemmInputs['a'], options as { op: 'qgemm' });
        expect(weights.byteLength).toBeGreaterThanOrEqual(count(weights.shape));
        expect(wg.memory().inUse).toBeGreaterThanOrEqual(weights.byteLength);
        weights.dispose();
      });
      if (made) ++succeeded;
      expect(wg.memory().inUse).toBe(inUse);
    }),
    { seed, numRuns: 3000 },
  );
  expect(succeeded).toBeGreaterThan(300);
});

it('works on after all that', () => {
  const { inputs, options } = draw(wg, new Random(1), {
    types: { a: 'uint8', b: 'int8' },
    sizes: [3, 3, 3],
  });
  expectQGemm(wg, inputs, options);
});
