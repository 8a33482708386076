/**
 * Layers: their results, which are the results of `matmul` and of `quantize`, `quantizeBias` and `qgemm`
 * to the bit; what they refuse; their memory; and their bytes.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Activation,
  createGemm,
  type Gemm,
  PackMismatchError,
  quantize,
  quantizeBias,
  type QuantizedArray,
  type Tensor,
  type TensorLike,
} from 'wgemm';
import { createLinear, deserializeLinear, type Linear } from 'wgemm/linear';
import { createGemm as startWorker, createLinear as createLinearThere } from 'wgemm/worker';
import { expectError, rejected, thrown } from '../support/errors.js';
import { gather, layouts, layOut } from '../support/stacks.js';
import { count, Random, sameBytes, SharedBuffer } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  expect(wg.memory().inUse).toBe(0);
  wg.dispose();
});

type Floats = Tensor<Float32Array>;
type Any = Linear<Float32Array | QuantizedArray, Float32Array | QuantizedArray>;
type Options = Parameters<typeof createLinear>[1];
const create = (options: object, instance = wg) => createLinear(instance, options as never) as Any;

const random = new Random(1);
const floats = (...shape: number[]) => random.tensor('float32', shape) as Floats;
const sizes = [
  [1, 1],
  [5, 9],
  [16, 16],
  [33, 7],
  [0, 3],
  [3, 0],
  [70, 130],
] as const;
const shapesOfX = [[], [1], [4], [2, 3], [1, 5, 1], [0], [2, 0]];
const activations: (Activation | undefined)[] = [undefined, 'relu', 'relu6', [-0.5, 0.25]];
const forms = ['float32', 'bfloat16', 'float16', 'int8'] as const;

const bits = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
  new Uint8Array(buffer, byteOffset, byteLength);
function expectBits(found: TensorLike, wanted: TensorLike): void {
  expect(found.data.constructor).toBe(wanted.data.constructor);
  expect(found.shape).toEqual(wanted.shape);
  expect(bits(found.data)).toEqual(bits(wanted.data));
}

/** The result that a layer must return, by the calls that it replaces. */
function wanted(x: Floats, options: Options & { as?: (typeof forms)[number] }): TensorLike {
  const { weights, bias, as = 'float32', activation, trans, input, output } = options;
  const w = weights as Floats;
  if (as !== 'int8') {
    using packed = wg.pack(w, { op: 'matmul', as, trans });
    const row = bias && { ...(bias as Floats), shape: [(bias as Floats).data.length] };
    return wg.matmul(x, packed, row ?? null, { activation } as object);
  }
  // A column of zeros, which has only K = 0 here, has the scale of its bias.
  const axis = trans ? 0 : 1;
  const scale =
    w.shape[1 - axis] === 0 && bias
      ? (bias as Floats).data.map((value) => Math.abs(value) * 2 ** -15 || 1)
      : undefined;
  const b = 'scale' in w ? (w as never) : quantize(w, { symmetric: true, axis, scale });
  return wantedInt8(x, b, bias as Floats | undefined, { activation, trans, input, output });
}

interface Scaled extends Tensor<QuantizedArray> {
  scale: number | Float32Array;
  zeroPoint: number | QuantizedArray;
}

function wantedInt8(
  x: Floats | Tensor<QuantizedArray>,
  b: Scaled,
  bias: Floats | undefined,
  { activation, trans, input, output }: Record<string, unknown>,
): TensorLike {
  const given = input as { scale: number; zeroPoint?: number; dtype?: 'int8' } | undefined;
  const { scale, zeroPoint, dtype } = given ?? {};
  const a =
    x.dtype === 'float32' || x.data instanceof Float32Array
      ? quantize(x as Floats, given ? { scale, zeroPoint, dtype } : {})
      : { ...x, scale: scale as number, zeroPoint: zeroPoint ?? 0 };
  const y = output as typeof given;
  const [k, n] = trans ? [...b.shape].reverse() : b.shape;
  using packed = wg.pack(b, { op: 'qgemm', trans: trans as boolean });
  const rows = count(x.shape.slice(0, -1));
  const inputs = {
    a: { data: a.data, shape: [rows, k] },
    aScale: a.scale,
    aZeroPoint: a.zeroPoint,
    b: packed,
    bScale: b.scale,
    bZeroPoint: b.zeroPoint,
    c: bias && quantizeBias(bias, { aScale: a.scale, bScale: b.scale }),
    ...(y && {
      yScale: y.scale,
      yZeroPoint: (y.dtype === 'int8' ? Int8Array : Uint8Array).of(y.zeroPoint ?? 0),
    }),
  };
  const result = wg.qgemm(inputs as never, { activation } as object) as TensorLike;
  return { data: result.data, shape: [...x.shape.slice(0, -1), n as number] };
}

describe('a layer computes the same as the calls that it replaces', () => {
  it.each(forms)('%s: all shapes, with bias and activation', (as) => {
    for (const [k, n] of sizes) {
      for (const [i, activation] of activations.entries()) {
        for (const trans of [false, true]) {
          const weights = floats(...(trans ? [n, k] : [k, n]));
          const bias = i % 2 ? floats(...(i > 1 ? [n] : [1, n])) : undefined;
          const options = { weights, bias, as, activation, trans } as Options;
          using layer = create(options);
          expect(layer).toMatchObject({ inputs: k, outputs: n, dtype: as, disposed: false });
          for (const before of shapesOfX) {
            const x = floats(...before, k);
            const y = wanted(x, options);
            expectBits(layer.run(x), y);
            const out = { data: new Float32Array(y.data.length).fill(7), shape: y.shape };
            expect(layer.run(x, { out })).toBe(out);
            expectBits(out, y);
            // In the heap, and with one of them there.
            using held = wg.alloc('float32', x.shape);
            held.data.set(x.data);
            using heldOut = wg.alloc('float32', y.shape);
            for (const [from, to] of [
              [held, heldOut],
              [held, out],
              [x, heldOut],
            ] as const) {
              to.data.fill(7);
              expect(layer.run(from, { out: to })).toBe(to);
              expectBits(to, y);
            }
          }
        }
      }
    }
  });

  it.each(forms)('%s: x with strides, in shared memory, and from a view of the heap', (as) => {
    const options = { weights: floats(6, 5), bias: floats(5), as } as Options;
    using layer = create(options);
    const shape = [2, 3, 6];
    for (const strides of Object.values(layouts)) {
      const x = layOut('float32', shape, strides(shape));
      random.fill(x.data, 'float32');
      const y = wanted(gather(x) as Floats, options);
      expectBits(layer.run(x as TensorLike<Float32Array>), y);
    }
    const data = new Float32Array(new SharedBuffer(4 * count(shape)));
    random.fill(data, 'float32');
    expectBits(layer.run({ data, shape }), wanted({ data, shape } as unknown as Floats, options));
    using held = wg.alloc('float32', shape);
    held.data.set(data);
    expectBits(layer.run({ data: held.data, shape }), layer.run(held));
  });

  it.each(['float32', 'bfloat16', 'float16'] as const)('%s: out with strides', (as) => {
    using layer = create({ weights: floats(6, 5), as });
    const x = floats(2, 3, 6);
    for (const strides of Object.values(layouts)) {
      const out = layOut('float32', [2, 3, 5], strides([2, 3, 5]));
      layer.run(x, { out: out as TensorLike<Float32Array> });
      expectBits(gather(out), { ...layer.run(x) });
    }
  });

  it.each(['float16', 'bfloat16'] as const)('weights of %s, as they are', (dtype) => {
    const weights = random.tensor(dtype, [7, 4]);
    using layer = create({ weights });
    using packed = wg.pack(weights, { op: 'matmul' });
    const x = floats(3, 7);
    expect(layer.dtype).toBe(dtype);
    expectBits(layer.run(x), wg.matmul(x as never, packed));
  });

  it('int8, per call and static, with results of 8 bits, for weights of every kind', () => {
    for (const dtype of ['int8', 'uint8'] as const) {
      for (const axis of [undefined, 1]) {
        for (const symmetric of [false, true]) {
          const w = floats(12, 6);
          const weights = quantize(w, { dtype, symmetric, axis }) as Scaled &
            Tensor<QuantizedArray>;
          const bias = floats(6);
          const x = floats(2, 2, 12);
          for (const input of [undefined, quantize(x), quantize(floats(9), { dtype: 'int8' })]) {
            for (const output of input
              ? [undefined, { scale: 0.25, zeroPoint: 3 }, { scale: 2, dtype: 'int8' }]
              : [undefined]) {
              for (const activation of activations) {
                const options = { weights, bias, input, output, activation };
                using layer = create(options);
                const y = wantedInt8(x, weights, bias, options);
                expectBits(layer.run(x), y);
                using held = wg.alloc('float32', x.shape);
                held.data.set(x.data);
                using out = wg.alloc(
                  y.data instanceof Float32Array
                    ? 'float32'
                    : y.data instanceof Int8Array
                      ? 'int8'
                      : 'uint8',
                  y.shape,
                );
                expectBits(layer.run(held, { out }), y);
                if (!input) continue;
                // x of 8 bits is quantized already.
                const q = {
                  ...random.tensor(input.dtype, [5, 12]),
                } as Tensor<QuantizedArray>;
                const y8 = wantedInt8(q, weights, bias, options);
                expectBits(layer.run(q), y8);
                const turned = layOut(input.dtype, [5, 12], [1, 5]);
                random.fill(turned.data, input.dtype);
                expectBits(
                  layer.run(turned as TensorLike<QuantizedArray>),
                  layer.run(gather(turned as TensorLike) as Tensor<QuantizedArray>),
                );
              }
            }
          }
        }
      }
    }
  });

  it('two int8 layers, the result of one being the x of the next', () => {
    const x = floats(20, 30);
    const [w1, w2] = [floats(30, 12), floats(12, 4)];
    const hidden = wg.matmul(x, w1, null, { activation: 'relu' });
    const output = quantize(hidden);
    using first = create({
      weights: w1,
      as: 'int8',
      activation: 'relu',
      input: quantize(x),
      output,
    });
    using second = create({ weights: w2, as: 'int8', input: output });
    const y = second.run(first.run(x)).data as Float32Array;
    const exact = wg.matmul(hidden, w2).data;
    const most = Math.max(...exact.map(Math.abs));
    expect(Math.max(...exact.map((value, i) => Math.abs(value - (y[i] as number))))).toBeLessThan(
      0.05 * most,
    );
  });

  it('an int8 layer follows each x of its own, also after a larger one, and after growth', () => {
    const weights = floats(40, 30);
    const bias = floats(30);
    using layer = create({ weights, bias, as: 'int8' });
    for (const [i, rows] of [3, 200, 1, 64].entries()) {
      const x = floats(rows, 40);
      x.data.forEach((value, j) => (x.data[j] = value * 10 ** i));
      const y = wanted(x, { weights, bias, as: 'int8' } as never);
      expectBits(layer.run(x), y);
      using held = wg.alloc('float32', x.shape);
      using out = wg.alloc('float32', y.shape);
      held.data.set(x.data);
      using big = wg.alloc('uint8', [2 ** (20 + i)]);
      expectBits(layer.run(held, { out }), y);
      expect(big.disposed).toBe(false);
    }
  });

  it('in strict instances, to the same bits everywhere', async () => {
    const strict = await createGemm({ determinism: 'strict' });
    const options = { weights: floats(50, 8), bias: floats(8), activation: 'relu' };
    const layer = create(options, strict);
    const x = floats(3, 50);
    expectBits(
      layer.run(x),
      strict.matmul(x, options.weights, options.bias, { activation: 'relu' }),
    );
    strict.dispose();
  });
});

describe('what is refused', () => {
  const weights = { data: new Float32Array(12), shape: [3, 4] };
  const scales = { scale: 1, zeroPoint: 0 };
  type Case = [
    options: object,
    code: 'ARGUMENT' | 'DTYPE' | 'SHAPE',
    argument: string,
    ...string[],
  ];
  it.each<Case>([
    [
      { weights: { data: new Float32Array(12), shape: [12] } },
      'SHAPE',
      'weights',
      '[12]',
      'it must have rank 2',
    ],
    [
      { weights: { data: new Float32Array(11), shape: [3, 4] } },
      'SHAPE',
      'weights',
      '11 elements',
      'needs 12',
    ],
    [
      { weights: { data: new Float64Array(12), shape: [3, 4] } },
      'DTYPE',
      'weights',
      'float64',
      'float32, float16 or bfloat16',
    ],
    [{ weights: null }, 'ARGUMENT', 'weights', 'null'],
    [
      { weights: { data: new Int8Array(12), shape: [3, 4] } },
      'ARGUMENT',
      'weights.scale',
      'undefined',
      'a number',
    ],
    [
      { weights: { data: new Int8Array(12), shape: [3, 4], scale: -1 } },
      'ARGUMENT',
      'weights.scale',
      '-1',
    ],
    [
      { weights: { data: new Int8Array(12), shape: [3, 4], scale: 1, zeroPoint: 200 } },
      'ARGUMENT',
      'weights.zeroPoint',
      '200',
      '127',
    ],
    [
      {
        weights: {
          data: new Int8Array(12),
          shape: [3, 4],
          scale: new Float32Array(3).fill(1),
          axis: 0,
        },
      },
      'ARGUMENT',
      'weights',
      'axis 0',
      'axis 1',
    ],
    [{ weights, as: 'int4' }, 'DTYPE', 'as', '"int4"', 'float32 or float16 or bfloat16 or int8'],
    [
      { weights: { data: new Int8Array(12), shape: [3, 4], ...scales }, as: 'float32' },
      'DTYPE',
      'as',
      'float32',
      'must be int8',
    ],
    [{ weights, trans: 'yes' }, 'ARGUMENT', 'trans', '"yes"'],
    [{ weights, bias: { data: new Float32Array(3), shape: [3] } }, 'SHAPE', 'bias', '[3]', '[4]'],
    [
      { weights, bias: { data: new Float32Array(4), shape: [4, 1] } },
      'SHAPE',
      'bias',
      '[4, 1]',
      '[4]',
    ],
    [
      { weights, bias: { data: new Float64Array(4), shape: [4] } },
      'DTYPE',
      'bias',
      'float64',
      'float32',
    ],
    [
      { weights, bias: { data: new Float32Array(5), shape: [4] } },
      'SHAPE',
      'bias',
      '5 elements',
      'needs 4',
    ],
    [
      { weights, bias: { data: Float32Array.of(1, NaN, 3, 4), shape: [4] }, as: 'int8' },
      'ARGUMENT',
      'bias',
      'NaN at [1]',
      'finite',
    ],
    [
      { weights: { data: new Float32Array(12).fill(NaN, 6), shape: [3, 4] }, as: 'int8' },
      'ARGUMENT',
      'weights',
      'NaN at [1, 2]',
      'finite',
    ],
    [{ weights, activation: 'gelu' }, 'ARGUMENT', 'activation', '"gelu"', 'relu6'],
    [{ weights, activation: [1, 0] }, 'ARGUMENT', 'activation', '[1, 0]', 'at most max'],
    [{ weights, activation: [NaN, 0] }, 'ARGUMENT', 'activation', '[NaN, 0]', 'at most max'],
    [{ weights, input: scales }, 'ARGUMENT', 'input', 'is for int8 layers', "set as to 'int8'"],
    [{ weights, as: 'int8', input: 3 }, 'ARGUMENT', 'input', '3', '{ scale'],
    [{ weights, as: 'int8', input: {} }, 'ARGUMENT', 'input.scale', 'undefined', 'one number'],
    [
      { weights, as: 'int8', input: { scale: Float32Array.of(1, 2) } },
      'ARGUMENT',
      'input.scale',
      'one number',
    ],
    [
      { weights, as: 'int8', input: { scale: 0 } },
      'ARGUMENT',
      'input.scale',
      '0',
      'finite and above 0',
    ],
    [
      { weights, as: 'int8', input: { scale: 1, zeroPoint: -1 } },
      'ARGUMENT',
      'input.zeroPoint',
      '-1',
      '255',
    ],
    [
      { weights, as: 'int8', input: { scale: 1, dtype: 'int4' } },
      'DTYPE',
      'input',
      '"int4"',
      "'int8'",
    ],
    [
      { weights, as: 'int8', output: scales },
      'ARGUMENT',
      'output',
      'output needs an input',
      'give both, input alone, or neither',
    ],
    [{ weights, weight: 1 }, 'ARGUMENT', 'weight', 'not known', 'activation'],
  ])('createLinear of %j', (options, code, argument, ...says) => {
    expectError(
      thrown(() => create(options)),
      { code, op: 'createLinear', argument, says },
    );
    expect(wg.memory().inUse).toBe(0);
  });

  it('an instance that is none, packed weights, and no options', async () => {
    const refuse = (call: () => unknown, argument: string, ...says: string[]) =>
      expectError(thrown(call), { code: 'ARGUMENT', op: 'createLinear', argument, says });
    refuse(() => createLinear({} as never, { weights }), 'wg', 'an object', 'of wgemm');
    refuse(() => create(undefined as never), 'options', 'undefined', 'an object');
    using packed = wg.pack(weights, { op: 'matmul' });
    refuse(() => create({ weights: packed }), 'weights', 'packed already');
    const other = await createGemm();
    using foreign = other.alloc('float32', [3, 4]);
    refuse(() => create({ weights: foreign }), 'weights', 'another instance');
    other.dispose();
    expectError(thrown(() => create({ weights }, other)), { code: 'DISPOSED', op: 'createLinear', argument: 'instance', says: [] }); // prettier-ignore
  });

  const inRun = (
    call: () => unknown,
    code: Case[1] | 'DISPOSED',
    argument: string,
    ...says: string[]
  ) => expectError(thrown(call), { code, op: 'run', argument, says });

  it.each(['float32', 'int8'])('run of a layer of %s', (as) => {
    using layer = create({ weights, as }) as Linear;
    const x = { data: new Float32Array(6), shape: [2, 3] };
    inRun(
      () => layer.run({ ...x, shape: [3, 2] }),
      'SHAPE',
      'x',
      '[3, 2]',
      'last size must be K, which is 3 in the weights',
    );
    const four = { data: new Float32Array(8), shape: [2, 4] };
    inRun(() => layer.run(four), 'SHAPE', 'x', '[2, 4]', 'set trans if weights is (N, K)');
    inRun(() => layer.run({ ...x, shape: [] }), 'SHAPE', 'x', '[]');
    inRun(() => layer.run({ ...x, shape: [3, 3] }), 'SHAPE', 'x', '6 elements');
    inRun(
      () => layer.run({ data: new Float64Array(6), shape: [2, 3] } as never),
      'DTYPE',
      'x',
      'float64',
      'float32',
    );
    inRun(
      () => layer.run({ data: new Uint8Array(6), shape: [2, 3] } as never),
      'DTYPE',
      'x',
      'uint8',
      'float32',
    );
    inRun(() => layer.run(null as never), 'ARGUMENT', 'x', 'null');
    inRun(
      () => layer.run(x, { out: { data: new Float32Array(8), shape: [8] } }),
      'SHAPE',
      'out',
      '[8]',
      '[2, 4]',
    );
    inRun(
      () => layer.run(x, { out: { data: new Float32Array(7), shape: [2, 4] } }),
      'SHAPE',
      'out',
      '7 elements',
    );
    inRun(
      () => layer.run(x, { out: { data: new Int32Array(8), shape: [2, 4] } } as never),
      'DTYPE',
      'out',
      'int32',
      'float32',
    );
    inRun(() => layer.run(x, { to: x } as never), 'ARGUMENT', 'to', 'not known', 'out');
    using held = wg.alloc('float32', [2, 3]);
    using wrong = wg.alloc('float32', [2, 3]);
    using int = wg.alloc('int8', [2, 4]);
    inRun(() => layer.run(held, { out: wrong }), 'SHAPE', 'out', '[2, 3]', '[2, 4]');
    inRun(() => layer.run(held, { out: int as never }), 'DTYPE', 'out', 'int8', 'float32');
    inRun(() => layer.run(wrong, { out: held }), 'SHAPE', 'out', '[2, 3]');
    using gone = wg.alloc('float32', [2, 4]);
    gone.dispose();
    inRun(() => layer.run(held, { out: gone }), 'DISPOSED', 'out', 'disposed');
    layer.dispose();
    inRun(() => layer.run(held), 'DISPOSED', 'layer', 'disposed');
    expect(layer.disposed).toBe(true);
    layer.dispose();
  });

  it('x or out that overlap, in floating point', () => {
    using layer = create({ weights });
    const data = new Float32Array(20);
    const x = { data: data.subarray(0, 6), shape: [2, 3] };
    inRun(
      () => layer.run(x, { out: { data: data.subarray(4, 12), shape: [2, 4] } }),
      'ARGUMENT',
      'out',
      'overlaps x',
    );
  });

  const eight = { scale: 0.5, dtype: 'int8' as const };
  const kinds: [string, object, 'int8' | 'float32'][] = [
    ['float', {}, 'float32'],
    ['int8, of float', { as: 'int8' }, 'float32'],
    ['int8, of int8', { as: 'int8', input: eight, output: eight }, 'int8'],
  ];
  it.each(kinds)('x or out that overlap, wherever they are: %s', async (_, options, dtype) => {
    const all = { ...options, weights: floats(3, 3) };
    using layer = create(all);
    const there = await startWorker();
    const layerThere = await createLinearThere(there, all as never);
    const array = (length: number) => new (dtype === 'int8' ? Int8Array : Float32Array)(length);
    const places = {
      'the same': () => {
        const x = { data: array(6), shape: [2, 3] };
        return [x, x];
      },
      'one element': () => {
        const data = array(20);
        const x = { data: data.subarray(0, 6), shape: [2, 3] };
        return [x, { data: data.subarray(5, 11), shape: [2, 3] }];
      },
      'a part of a row': () => {
        const data = array(20);
        const x = { data: data.subarray(0, 13), shape: [2, 3], strides: [10, 1] };
        return [x, { data: data.subarray(2, 8), shape: [2, 3] }];
      },
    };
    for (const place of Object.values(places)) {
      const [x, out] = place() as [never, never];
      inRun(
        () => layer.run(x, { out }),
        'ARGUMENT',
        'out',
        'overlaps x in memory; it must overlap no input',
      );
      const error = await rejected(layerThere.run(x, { out }));
      expectError(error, { code: 'ARGUMENT', op: 'run', argument: 'out', says: ['overlaps x'] });
    }
    using held = wg.alloc(dtype, [2, 3]);
    const view = () => ({ data: held.data, shape: [2, 3] });
    for (const [x, out] of [
      [held, held],
      [held, view()],
      [view(), held],
      [{ data: held, shape: [2, 3], strides: [3, 1] }, held],
    ] as [never, never][])
      inRun(
        () => layer.run(x, { out }),
        'ARGUMENT',
        'out',
        'overlaps x in memory; it must overlap no input',
      );
    // The bytes between the rows of x are free.
    const data = array(20);
    const x = { data: data.subarray(0, 13), shape: [2, 3], strides: [10, 1] };
    layer.run(x, { out: { data: data.subarray(3, 9), shape: [2, 3] } as never });
    using empty = wg.alloc(dtype, [0, 3]);
    layer.run(empty, { out: empty as never });
    there.dispose();
  });

  it('NaN in x of an int8 layer, with its place; then the layer still works', () => {
    using layer = create({ weights: floats(3, 4), as: 'int8' });
    const x = floats(2, 5, 3);
    x.data[3 * 7 + 2] = NaN;
    inRun(() => layer.run(x), 'ARGUMENT', 'x', 'NaN at [1, 2, 2]');
    using held = wg.alloc('float32', x.shape);
    held.data.set(x.data);
    using out = wg.alloc('float32', [2, 5, 4]);
    out.data.fill(7);
    inRun(() => layer.run(held, { out }), 'ARGUMENT', 'x', 'NaN at [1, 2, 2]');
    expect(out.data.every((value) => value === 7)).toBe(true);
    held.data[3 * 7 + 2] = 1;
    expectBits(layer.run(held, { out }), layer.run({ data: held.data.slice(), shape: x.shape }));
    const layout = { data: floats(18).data, shape: [2, 4], strides: [9, 1] };
    inRun(() => layer.run(floats(2, 3), { out: layout }), 'SHAPE', 'out', 'contiguous');
  });

  it('code of the caller that disposes of the layer or the instance while a call reads', async () => {
    const other = await createGemm();
    for (const dispose of ['layer', 'instance']) {
      for (const as of ['float32', 'int8']) {
        const instance = dispose === 'layer' ? wg : await createGemm();
        const layer = create({ weights: floats(3, 4), as }, instance);
        using held = instance.alloc('float32', [2, 3]);
        using out = instance.alloc('float32', [2, 4]);
        const end = () => (dispose === 'layer' ? layer : instance).dispose();
        const options = {
          get out() {
            end();
            return out;
          },
        };
        inRun(() => layer.run(held, options), 'DISPOSED', dispose);
      }
    }
    const weights = {
      get data() {
        other.dispose();
        return new Float32Array(12);
      },
      shape: [3, 4],
    };
    expectError(thrown(() => create({ weights }, other)), { code: 'DISPOSED', op: 'createLinear', argument: 'instance', says: [] }); // prettier-ignore
  });

  it('what Object.prototype has been given changes no layer', () => {
    const polluted = Object.prototype as Record<string, unknown>;
    Object.assign(polluted, { bias: 1, input: 2, output: 3, weights: 4, scale: 5, as: 6 });
    try {
      using layer = create({ weights: floats(3, 4) });
      layer.run(floats(2, 3));
    } finally {
      for (const key of ['bias', 'input', 'output', 'weights', 'scale', 'as']) delete polluted[key];
    }
  });
});

describe('memory', () => {
  const limit = 1 << 20;
  it.each(
    forms.flatMap((as) =>
      ['create', 'run', 'run in the heap', 'serialize', 'deserialize'].map(
        (what) => [as, what] as const,
      ),
    ),
  )(
    '%s: %s fails without memory, keeps and writes nothing, and the next call is right',
    async (as, what) => {
      const wg = await createGemm({ maxMemory: limit });
      const options = { weights: floats(60, 50), bias: floats(50), as };
      const x = floats(40, 60);
      const [held, out] = [wg.alloc('float32', x.shape), wg.alloc('float32', [40, 50])];
      held.data.set(x.data);
      const make = () => create(options, wg);
      const first = make();
      const bytes = first.serialize();
      const right = first.run(x).data;
      first.dispose();
      let layer: Any | undefined;
      const calls: Record<string, () => unknown> = {
        create: make,
        run: () => layer?.run(x),
        'run in the heap': () => layer?.run(held, { out }),
        serialize: () => layer?.serialize(),
        deserialize: () => deserializeLinear(wg, bytes),
      };
      const makes = what === 'create' || what === 'deserialize';
      let failures = 0;
      for (let left = 0; ; left += left < 1024 ? 64 : 1024) {
        if (!makes) layer = make(); // without scratch of an earlier call
        const before = wg.memory().inUse;
        const filler = wg.alloc('uint8', [limit - before - left - 64]);
        out.data.fill(7);
        let error;
        let value: unknown;
        try {
          value = calls[what]?.();
        } catch (thrown) {
          error = thrown;
        }
        filler.dispose();
        if (error === undefined) {
          if (makes) (value as Any).dispose();
          layer?.dispose();
          break;
        }
        ++failures;
        const op = { create: 'createLinear', deserialize: 'deserializeLinear', serialize: 'serialize' }[what] ?? 'run'; // prettier-ignore
        expectError(error, { code: 'OUT_OF_MEMORY', op, argument: '', says: ['no memory for'] });
        if (makes) expect(wg.memory().inUse).toBe(before);
        expect(out.data.every((value) => value === 7)).toBe(true);
        layer ??= make();
        expect(layer.run(x).data).toEqual(right);
        layer.dispose();
        layer = undefined;
        expect(wg.memory().inUse).toBe(heldBytes());
      }
      function heldBytes() {
        return [held, out].reduce((sum, { size }) => sum + 64 + Math.ceil((4 * size) / 64) * 64, 0);
      }
      if (what !== 'run in the heap' || as === 'int8') expect(failures).toBeGreaterThan(1);
      held.dispose();
      out.dispose();
      expect(wg.memory().inUse).toBe(0);
      wg.dispose();
    },
  );

  it('holds what byteLength says, and frees it on dispose and `using`', () => {
    for (const as of forms) {
      const { inUse } = wg.memory();
      {
        using layer = create({ weights: floats(30, 20), bias: floats(20), as });
        const taken = wg.memory().inUse - inUse;
        expect(taken).toBe(Math.ceil(layer.byteLength / 64) * 64 + 128);
        layer.run(floats(4, 30));
      }
      expect(wg.memory().inUse).toBe(inUse);
    }
  });

  it('is freed by collection', async () => {
    // An instance of its own: where tests cannot collect, the layer stays.
    using own = await createGemm();
    (() => {
      const layer = createLinear(own, { weights: floats(30, 20), bias: floats(20), as: 'int8' });
      layer.run(floats(4, 30));
    })();
    for (let i = 0; i < 50 && own.memory().inUse > 0; ++i) {
      (globalThis as unknown as { gc: () => void }).gc();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(own.memory().inUse).toBe(0);
  });

  it('calls in the heap take nothing', () => {
    using layer = create({ weights: floats(8, 8), bias: floats(8), as: 'int8' });
    using x = wg.alloc('float32', [1, 8]);
    using out = wg.alloc('float32', [1, 8]);
    layer.run(x, { out });
    const before = wg.memory();
    for (let i = 0; i < 10_000; ++i) layer.run(x, { out });
    expect(wg.memory()).toEqual(before);
  });
});

describe('bytes', () => {
  const kinds: [string, () => object][] = [
    ['float32', () => ({ weights: floats(5, 9) })],
    ['float32 with all', () => ({ weights: floats(5, 9), bias: floats(9), activation: [-1, 3] })],
    ['bfloat16', () => ({ weights: floats(5, 9), bias: floats(9), as: 'bfloat16' })],
    ['float16', () => ({ weights: floats(5, 9), bias: floats(9), as: 'float16' })],
    ['int8', () => ({ weights: floats(5, 9), as: 'int8' })],
    ['int8 with all', () => ({ weights: quantize(floats(5, 9), { axis: 1 }), bias: floats(9), activation: 'relu', input: { scale: 0.1, zeroPoint: 7 }, output: { scale: 0.5, zeroPoint: -3, dtype: 'int8' } })], // prettier-ignore
    ['empty', () => ({ weights: floats(0, 9), bias: floats(9), as: 'int8' })],
    ['empty, too', () => ({ weights: floats(9, 0), bias: floats(0), as: 'int8' })],
  ];

  it.each(kinds)(
    '%s: make the same layer, with the same bytes, here and elsewhere',
    async (_, options) => {
      using layer = create(options());
      const bytes = layer.serialize();
      const x = floats(4, layer.inputs);
      const other = await createGemm({ simd: 'simd128' });
      for (const [instance, from] of [
        [wg, bytes],
        [wg, bytes.buffer],
        [other, bytes],
      ] as const) {
        // prettier-ignore
        using read = deserializeLinear(instance, from);
        const { inputs, outputs, dtype, byteLength } = layer;
        expect(read).toMatchObject({ inputs, outputs, dtype, byteLength, disposed: false });
        expect(sameBytes(read.serialize(), bytes)).toBe(true);
        if (instance === wg) expectBits(read.run(x), layer.run(x));
      }
      expect(other.memory().inUse).toBe(0);
      other.dispose();
    },
  );

  it('never change their form', () => {
    using layer = create({
      weights: {
        data: Int8Array.of(1, 2, 3, 4),
        shape: [2, 2],
        scale: Float32Array.of(0.5, 0.25),
        zeroPoint: Int8Array.of(0, 1),
        axis: 1,
      },
      bias: { data: Float32Array.of(1, 2), shape: [2] },
      activation: 'relu6',
      input: { scale: 0.5, zeroPoint: 3 },
      output: { scale: 2, zeroPoint: -1, dtype: 'int8' },
    });
    const bytes = layer.serialize();
    const hex = (from: number, to: number) => Array.from(bytes.subarray(from, to), (byte) => byte.toString(16).padStart(2, '0')).join(''); // prettier-ignore
    const view = new DataView(bytes.buffer);
    expect(hex(0, 12)).toBe('7767656d6d2d6c6901000000');
    expect(Array.from({ length: 14 }, (_, i) => view.getFloat64(16 + 8 * i, true))).toEqual([bytes.length, 2, 2, 1, 1, 1, 0, 6, 0, 0.5, 3, 1, 2, -1]); // prettier-ignore
    expect(hex(128, 136)).toBe('0000803f00000040');
    expect(hex(192, 200)).toBe('0000003f0000803e');
    expect(hex(256, 258)).toBe('0001');
    expect(hex(320, 328)).toBe('7767656d6d2d7077');
    expect(hex(12, 16)).toBe('c1b34ab8');
  });

  const refuse = (bytes: Uint8Array, ...says: (string | RegExp)[]) => {
    const error = thrown(() => deserializeLinear(wg, bytes));
    expectError(error, { code: 'PACK_MISMATCH', op: 'deserializeLinear', argument: 'bytes', says });
    expect(wg.memory().inUse).toBe(0);
  };

  it.each(kinds)('%s: any changed bit is refused, as are fewer and more bytes', (_, options) => {
    const layer = create(options());
    const bytes = layer.serialize();
    layer.dispose();
    for (let bit = 0; bit < 8 * bytes.length; ++bit) {
      const changed = bytes.slice();
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      try {
        deserializeLinear(wg, changed).dispose();
        expect.fail(`bit ${bit} changed nothing`);
      } catch (error) {
        if (!(error instanceof PackMismatchError)) throw error;
      }
    }
    for (const length of [0, 7, 127, 128, 130, bytes.length - 1])
      if (length < bytes.length) refuse(bytes.slice(0, length), `has ${length} bytes; expected`);
    refuse(Uint8Array.of(...bytes, 0), `has ${bytes.length + 1} bytes; expected ${bytes.length}`);
    expect(wg.memory().inUse).toBe(0);
  });

  /** Bytes with other numbers and a checksum that fits. */
  function forged(bytes: Uint8Array, weightsAt: number, change: (view: DataView) => void) {
    const copy = bytes.slice();
    const view = new DataView(copy.buffer);
    change(view);
    let sum = 0x811c9dc5;
    for (let i = 16; i < weightsAt; ++i) sum = Math.imul(sum ^ (copy[i] as number), 0x01000193);
    view.setUint32(12, sum, true);
    return copy;
  }

  it('with numbers that no layer has are refused', () => {
    const layer = create(kinds[5]?.[1]() as object);
    const bytes = layer.serialize();
    layer.dispose();
    const at = 128 + 64 + 64 + 64;
    deserializeLinear(
      wg,
      forged(bytes, at, () => undefined),
    ).dispose();
    const numbers = [NaN, Infinity, -Infinity, -1, 0.5, 2 ** 31, 2 ** 53, 2 ** 60, 1e300, 3, 300];
    const names = ['k', 'n', 'bias', 'isInt8', 'zeros', 'min', 'max', 'typeOfX', 'scaleOfX', 'zeroOfX', 'typeOfY', 'scaleOfY', 'zeroOfY']; // prettier-ignore
    // Other bounds, scales and zero points make other layers.
    const free: Record<string, (value: number) => boolean> = {
      min: (value) => !Number.isNaN(value),
      max: (value) => value >= 0,
      scaleOfX: (value) => value > 0 && Math.fround(value) === value && value < Infinity,
      scaleOfY: (value) => value > 0 && Math.fround(value) === value && value < Infinity,
      zeroOfX: (value) => value >= 0 && value <= 255 && Number.isInteger(value),
      zeroOfY: (value) => value >= -128 && value <= 127 && Number.isInteger(value),
    };
    names.forEach((name, i) => {
      for (const value of numbers) {
        const other = forged(bytes, at, (view) => view.setFloat64(24 + 8 * i, value, true));
        if (free[name]?.(value)) deserializeLinear(wg, other).dispose();
        else refuse(other);
      }
    });
    refuse(
      forged(bytes, at, (view) => view.setFloat32(128, NaN, true)),
      'its header has invalid numbers',
    );
    refuse(
      forged(bytes, at, (view) => view.setFloat32(192, 0, true)),
      'its header has invalid numbers',
    );
    refuse(
      forged(bytes, at, (view) => view.setUint32(8, 2, true)),
      'of version 2',
      'version 1',
    );
    refuse(
      forged(bytes, at, (view) => view.setUint8(0, 0)),
      'not a layer',
    );
  });

  it('with packed weights of another kind or shape are refused', () => {
    const bytesOf = (options: object) => {
      using layer = create(options);
      return layer.serialize();
    };
    const mine = bytesOf({ weights: floats(5, 9) });
    const head = mine.subarray(0, 128);
    const join = (weights: Uint8Array) => {
      const bytes = new Uint8Array([...head, ...weights]);
      return forged(bytes, 128, (view) => view.setFloat64(16, bytes.length, true));
    };
    const packed = (b: TensorLike, op: 'matmul' | 'qgemm') => {
      using weights = wg.pack(b, { op });
      return weights.serialize();
    };
    deserializeLinear(wg, join(packed(floats(5, 9), 'matmul'))).dispose();
    for (const [b, op] of [
      [floats(9, 5), 'matmul'],
      [floats(1, 5, 9), 'matmul'],
      [random.tensor('float64', [5, 9]), 'matmul'],
      [random.tensor('int8', [5, 9]), 'qgemm'],
    ] as const)
      refuse(join(packed(b, op)), 'packed weights of another shape or type');
    refuse(join(Uint8Array.of(1, 2, 3)), 'bytes; expected at least');
  });

  it.each([null, 3, 'text', [1], new Float32Array(1), {}])('%j is not bytes', (value) => {
    expectError(
      thrown(() => deserializeLinear(wg, value as never)),
      { code: 'ARGUMENT', op: 'deserializeLinear', argument: 'bytes', says: ['Uint8Array'] },
    );
  });
});

describe('a column whose weights are small next to its bias', () => {
  const floats = (...values: number[]) => Float32Array.from(values);
  const run = (weights: number[], bias: number[], x: number[], options = {}) => {
    const [k, n] = [x.length, bias.length];
    using layer = createLinear(wg, {
      weights: { data: floats(...weights), shape: [k, n] },
      bias: { data: floats(...bias), shape: [n] },
      as: 'int8',
      ...options,
    } as never);
    return layer.run({ data: floats(...x), shape: [k] }).data;
  };

  it.each([1e-5, 1e-6, 1e-8, 1e-10, 1e-30, 0])(
    'of %d has its bias, and leaves others alone',
    (e) => {
      const x = [0.5, 0.25, 1, 0.75];
      const y = run([1, e, -1, e, 0.5, e, 2, e], [0.1, 1], x);
      expect(y[0]).toBeCloseTo(2.35, 1);
      expect(y[1]).toBeCloseTo(1, 3);
      const input = { scale: 1 / 255 };
      const known = run([1, e, -1, e, 0.5, e, 2, e], [0.1, 1], x, { input });
      expect(known[0]).toBeCloseTo(2.35, 1);
      expect(known[1]).toBeCloseTo(1, 3);
    },
  );

  it.each([1e-12, 1e-7, 1e-6, 1e-5, 1.4e-5, 1e-3])(
    'keeps the sign of the bias for x of %d',
    (x) => {
      expect(run([1], [1], [x])[0]).toBeCloseTo(1 + x, 4);
      expect(run([1], [-1], [-x])[0]).toBeCloseTo(-1 - x, 4);
    },
  );
});

it('huge axes next to a size of 0, and too many elements, end at once', () => {
  using layer = createLinear(wg, {
    weights: { data: new Float32Array(6), shape: [3, 2] },
    as: 'int8',
    input: { scale: 0.1 },
  });
  const strides = [0, 0, 1];
  const y = layer.run({ data: new Float32Array(0), shape: [2 ** 50, 0, 3], strides });
  expect(y.shape).toEqual([2 ** 50, 0, 2]);
  const many = { data: new Float32Array(3), shape: [2 ** 30, 2 ** 30, 3], strides };
  expectError(thrown(() => layer.run(many)), { code: 'SHAPE', op: 'run', argument: 'x', says: ['2^32'] }); // prettier-ignore
});
