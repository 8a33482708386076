/**
 * Every error of matmulNBits and of the packing of its weights, here and in a worker. Nothing is
 * written, no memory kept, and the next good call works. `explain` throws the same.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type Gemm,
  type GemmError,
  type HeapTensor,
  type PackedWeights,
  quantizeNBits,
} from 'wgemm';
import { createGemm as startWorker, type WorkerGemm } from 'wgemm/worker';
import {
  expectError,
  expectRefusedInWorker,
  rejected,
  thrown,
  type Wanted,
} from '../support/errors.js';
import { float32, int32, tensor } from '../support/tensors.js';

let wg: Gemm;
let other: Gemm;
let inWorker: WorkerGemm;
let packed: PackedWeights;
let forGemm: PackedWeights;
let theirs: { tensor: HeapTensor; weights: PackedWeights };
let gone: { tensor: HeapTensor; weights: PackedWeights };
beforeAll(async () => {
  [wg, other, inWorker] = await Promise.all([createGemm(), createGemm(), startWorker()]);
  const make = (on: Gemm) => ({
    tensor: on.alloc('uint8', [2, 2, 8]) as HeapTensor,
    weights: on.pack(good(), { op: 'matmulNBits' }),
  });
  packed = make(wg).weights;
  forGemm = wg.pack(float32([20, 2], ...Array<number>(40).fill(1)), { op: 'gemm' });
  [theirs, gone] = [make(other), make(wg)];
  gone.tensor.dispose();
  gone.weights.dispose();
});
afterAll(() => {
  for (const each of [wg, other, inWorker]) each.dispose();
});

const uint8 = (shape: readonly number[], value = 0x79) => ({
  data: new Uint8Array(shape.reduce((x, y) => x * y, 1)).fill(value),
  shape,
});
const floats = (shape: readonly number[], value = 0.5) =>
  float32(shape, ...Array<number>(shape.reduce((x, y) => x * y, 1)).fill(value));
const half = (shape: readonly number[]) =>
  tensor('float16', shape, Array<number>(shape.reduce((x, y) => x * y, 1)).fill(0.5));

/** Two columns of 20 codes in two blocks, 9 and 7, with zero points 1 and 0. */
const good = () => ({
  data: uint8([2, 2, 8]),
  scales: floats([2, 2]),
  zeroPoints: uint8([2, 1], 1),
  k: 20,
  n: 2,
  bits: 4,
  blockSize: 16,
});

type Named = Record<string, unknown>;
interface Operands {
  a: unknown;
  weights: unknown;
  options: Named;
}
const operands = (): Operands => ({
  a: floats([3, 20], 1),
  weights: good(),
  options: {
    bias: Float32Array.of(1, 2),
    accuracyLevel: 4,
    activation: [-1000, 1000],
    out: floats([3, 2], 9),
  },
});
type Loose = (...args: unknown[]) => never;
const call = ({ a, weights, options }: Operands): { data: Float32Array } =>
  (wg.matmulNBits as Loose)(a, weights, options);

function expectGood(): void {
  // 8 codes of 9 and 8 of 7, less 1; then 2 of each.
  const wanted = [0.5 * (16 * 8 - 16) + 0.5 * (2 * 16) + 1, 0.5 * (16 * 8 - 16) + 0.5 * 32 + 2];
  const o = operands();
  expect([...call(o).data]).toEqual([...wanted, ...wanted, ...wanted]);
  const rest = { bias: Float32Array.of(1, 2) };
  const [a] = [o.a];
  expect([...wg.matmulNBits(a as never, packed, rest).data]).toEqual([
    ...wanted,
    ...wanted,
    ...wanted,
  ]);
}

it('the good call is good', () => expectGood());

/** Changes of A, of properties of the weights, and of options. */
interface Change {
  a?: unknown;
  weights?: unknown;
  w?: Named;
  options?: unknown;
  o?: Named;
}
type Case = [
  change: Change | (() => Change),
  code: Wanted['code'],
  argument: string,
  ...says: (string | RegExp)[],
];

function changed(o: Operands, { w, o: options, ...rest }: Change): Operands {
  return {
    ...o,
    weights: { ...(o.weights as Named), ...w },
    options: { ...o.options, ...options },
    ...(rest as Partial<Operands>),
  };
}

/** Which arguments pack and deserialized weights have no part in. */
const isOfWeights = (change: Change) => 'w' in change || 'weights' in change;

function refuses(what: string, cases: Record<string, Case>): void {
  describe(what, () => {
    it.each(Object.entries(cases))('%s', async (_, [given, code, argument, ...says]) => {
      const make = () => (typeof given === 'function' ? given() : given);
      const o = operands();
      const bad = changed(o, make());
      const { inUse } = wg.memory();
      const error = thrown(() => call(bad)) as GemmError;
      expectError(error, { code, op: 'matmulNBits', argument, says });
      expect(o).toEqual(operands());
      const plan = () => (wg.explain as Loose)('matmulNBits', bad.a, bad.weights, bad.options);
      expect((thrown(plan) as GemmError).message).toBe(error.message);
      if (isOfWeights(make()) && !/^Y|activation|^accuracy/.test(argument)) {
        const packing = thrown(() => wg.pack(bad.weights as never, { op: 'matmulNBits' }));
        expect(packing).toMatchObject({ op: 'pack' });
        if (!(packing as GemmError).message.includes('packed already'))
          expect(packing).toMatchObject({ code, argument });
      }
      expect(wg.memory().inUse).toBe(inUse);
      expectGood();
      await expectRefusedInWorker(
        inWorker,
        operands,
        (o) => call(changed(o, make())),
        async (o) => {
          const { a, weights, options } = changed(o, make());
          await (inWorker.matmulNBits as Loose as (...args: unknown[]) => Promise<unknown>)(
            a,
            weights,
            options,
          );
        },
      );
    });
  });
}

const allowed = '{ data, scales, k, n, blockSize }';
refuses('refuses what is not an operand:', {
  'A is a number': [{ a: 5 }, 'ARGUMENT', 'A', 'is 5', '{ data, shape }'],
  'A is a bare array': [{ a: new Float32Array(20) }, 'DTYPE', 'A', 'without a shape'],
  'weights are absent': [{ weights: undefined }, 'ARGUMENT', 'weights', 'is undefined', allowed],
  'weights are null': [{ weights: null }, 'ARGUMENT', 'weights', 'is null', allowed],
  'weights are a number': [{ weights: 5 }, 'ARGUMENT', 'weights', 'is 5', 'quantizeNBits()'],
  'weights are a list': [{ weights: [1] }, 'ARGUMENT', 'weights', 'is an array', allowed],
  'weights are an array': [
    { weights: new Uint8Array(3) },
    'ARGUMENT',
    'weights',
    'is Uint8Array',
    allowed,
  ],
  'weights are a tensor': [
    { weights: floats([20, 2]) },
    'ARGUMENT',
    'weights',
    'is a tensor',
    'quantizeNBits()',
  ],
  'data is absent': [{ w: { data: undefined } }, 'ARGUMENT', 'B', 'is undefined', 'tensor'],
  'data is a bare array': [
    { w: { data: new Uint8Array(32) } },
    'DTYPE',
    'B',
    'a Uint8Array without a shape',
  ],
  'scales are absent': [{ w: { scales: undefined } }, 'ARGUMENT', 'scales', 'is undefined'],
  'scales are a number': [{ w: { scales: 1 } }, 'ARGUMENT', 'scales', 'is 1', 'tensor'],
  'zeroPoints are a number': [{ w: { zeroPoints: 8 } }, 'ARGUMENT', 'zeroPoints', 'is 8'],
  'bias is a string': [{ o: { bias: 'b' } }, 'ARGUMENT', 'bias', '"b"', 'tensor'],
  'bias is a list': [{ o: { bias: [1, 2] } }, 'DTYPE', 'bias', 'an array', 'Float32Array'],
  'out is null': [{ o: { out: null } }, 'ARGUMENT', 'out', 'is null', 'tensor'],
});

refuses('refuses properties:', {
  'an unknown one of the weights': [
    { w: { zeroPoint: 1 } },
    'ARGUMENT',
    'zeroPoint',
    'property of weights',
    'data, scales, zeroPoints, k, n, bits, blockSize',
  ],
  gIdx: [{ w: { gIdx: int32([20]) } }, 'ARGUMENT', 'gIdx', 'deprecated', 'reorder K', 'dequantize'],
  'an unknown option': [{ o: { transB: true } }, 'ARGUMENT', 'transB', 'accuracyLevel'],
  'options that are not object': [{ options: 5 }, 'ARGUMENT', 'options', 'is 5', 'object'],
  activation: [{ o: { activation: 'elu' } }, 'ARGUMENT', 'activation', '"elu"', 'relu6'],
  'bounds in the wrong order': [{ o: { activation: [2, 1] } }, 'ARGUMENT', 'activation'],
});

const whole = 'a whole number';
refuses('refuses numbers:', {
  'k absent': [{ w: { k: undefined } }, 'ARGUMENT', 'k', 'is undefined', whole],
  'k a fraction': [{ w: { k: 20.5 } }, 'ARGUMENT', 'k', '20.5', whole],
  'k below 0': [{ w: { k: -1 } }, 'SHAPE', 'k', '-1', 'from 0'],
  'k NaN': [{ w: { k: NaN } }, 'ARGUMENT', 'k', 'NaN', whole],
  'k huge': [{ w: { k: 1e300 } }, 'ARGUMENT', 'k', '1e+300', '2^53'],
  'k 2^53': [{ w: { k: 2 ** 53 } }, 'SHAPE', 'B', '2^53'],
  'k a bigint': [{ w: { k: 20n } }, 'ARGUMENT', 'k', '20n', whole],
  'k of more blocks': [{ w: { k: 33 } }, 'SHAPE', 'B', '[2, 2, 8]', '[2, 3, 8]'],
  'n absent': [{ w: { n: undefined } }, 'ARGUMENT', 'n', 'is undefined', whole],
  'n a string': [{ w: { n: '2' } }, 'ARGUMENT', 'n', '"2"', whole],
  'n below 0': [{ w: { n: -3 } }, 'SHAPE', 'n', '-3', 'from 0'],
  'n of more columns': [{ w: { n: 3 } }, 'SHAPE', 'B', '[2, 2, 8]', '[3, 2, 8]'],
  'n Infinity': [{ w: { n: Infinity } }, 'ARGUMENT', 'n', 'Infinity', whole],
  'bits 3': [{ w: { bits: 3 } }, 'ARGUMENT', 'bits', 'is 3', '2, 4 or 8'],
  'bits null': [{ w: { bits: null } }, 'ARGUMENT', 'bits', 'is null', whole],
  'bits 2.5': [{ w: { bits: 2.5 } }, 'ARGUMENT', 'bits', '2.5', whole],
  'blockSize absent': [{ w: { blockSize: undefined } }, 'ARGUMENT', 'blockSize', 'is undefined'],
  'blockSize 24': [{ w: { blockSize: 24 } }, 'ARGUMENT', 'blockSize', '24', '16, 32, 64'],
  'blockSize 8': [{ w: { blockSize: 8 } }, 'ARGUMENT', 'blockSize', '8', '16, 32, 64'],
  'blockSize 512': [{ w: { blockSize: 512 } }, 'ARGUMENT', 'blockSize', '512', '256'],
  'accuracyLevel 5': [{ o: { accuracyLevel: 5 } }, 'ARGUMENT', 'accuracyLevel', '5', '0 to 4'],
  'accuracyLevel -1': [{ o: { accuracyLevel: -1 } }, 'ARGUMENT', 'accuracyLevel', '-1', '0 to 4'],
  'accuracyLevel 0.5': [{ o: { accuracyLevel: 0.5 } }, 'ARGUMENT', 'accuracyLevel', '0.5', whole],
  'accuracyLevel null': [{ o: { accuracyLevel: null } }, 'ARGUMENT', 'accuracyLevel', 'is null'],
  'accuracyLevel true': [{ o: { accuracyLevel: true } }, 'ARGUMENT', 'accuracyLevel', 'is true'],
});

const threeFloats = 'float32, float16 or bfloat16';
refuses('refuses types:', {
  'A float64': [{ a: tensor('float64', [1, 20], Array(20).fill(1)) }, 'DTYPE', 'A', threeFloats],
  'A uint8': [{ a: uint8([1, 20]) }, 'DTYPE', 'A', 'uint8', threeFloats],
  'A float16 next to float32 scales': [
    { a: half([3, 20]), options: undefined },
    'DTYPE',
    'scales',
    'float32',
    'float16',
  ],
  'codes int8': [
    { w: { data: { ...uint8([2, 2, 8]), data: new Int8Array(32) } } },
    'DTYPE',
    'B',
    'int8',
    'uint8',
  ],
  'scales float64': [
    { w: { scales: tensor('float64', [2, 2], [1, 1, 1, 1]) } },
    'DTYPE',
    'scales',
    'float64',
    threeFloats,
  ],
  'zero points int8': [
    { w: { zeroPoints: { data: new Int8Array(2), shape: [2, 1] } } },
    'DTYPE',
    'zeroPoints',
    'int8',
    'uint8, or float32',
  ],
  'zero points float16 next to float32 scales': [
    { w: { zeroPoints: half([2, 2]) } },
    'DTYPE',
    'zeroPoints',
    'float16',
    'float32 as scales',
  ],
  'bias float16': [{ o: { bias: half([2]) } }, 'DTYPE', 'bias', 'float16', 'float32'],
  'bias int32': [{ o: { bias: int32([2], 1, 2) } }, 'DTYPE', 'bias', 'int32', 'float32'],
  'out float16': [{ o: { out: half([3, 2]) } }, 'DTYPE', 'out', 'float16', 'float32'],
});

refuses('refuses shapes:', {
  'A of rank 0': [{ a: floats([]) }, 'SHAPE', 'A', 'rank 0', 'rank 1 or more'],
  'A of another K': [
    { a: floats([3, 21]) },
    'SHAPE',
    'A',
    '[3, 21]',
    'K, which is 20 in the weights',
  ],
  'A short': [{ a: { ...floats([3, 20]), shape: [4, 20] } }, 'SHAPE', 'A', '60', 'needs 80'],
  'codes of rank 2': [{ w: { data: uint8([2, 16]) } }, 'SHAPE', 'B', '[2, 16]', '[2, 2, 8]'],
  'codes for other bits': [{ w: { bits: 8 } }, 'SHAPE', 'B', '[2, 2, 8]', '[2, 2, 16]'],
  'codes with strides': [
    { w: { data: { ...uint8([2, 2, 8]), strides: [8, 16, 1] } } },
    'SHAPE',
    'B',
    '[8, 16, 1]',
    'contiguous',
  ],
  'scales of one column': [
    { w: { scales: floats([2]) } },
    'SHAPE',
    'scales',
    '[2]',
    '[2, 2]',
    'flat',
  ],
  'scales turned': [{ w: { scales: floats([4, 1]) } }, 'SHAPE', 'scales', '[4, 1]', '[2, 2]'],
  'zero points of too many bytes': [
    { w: { zeroPoints: uint8([2, 2]) } },
    'SHAPE',
    'zeroPoints',
    '[2, 2]',
    '[2, 1]',
  ],
  'typed zero points of a column': [
    { w: { zeroPoints: floats([2, 1]) } },
    'SHAPE',
    'zeroPoints',
    '[2, 1]',
    '[2, 2]',
  ],
  'bias of K': [{ o: { bias: new Float32Array(20) } }, 'SHAPE', 'bias', '[20]', 'N elements'],
  'bias a number': [{ o: { bias: 1 } }, 'SHAPE', 'bias', '[]', '[2]'],
  'bias a row': [{ o: { bias: floats([1, 2]) } }, 'SHAPE', 'bias', '[1, 2]', '[2]'],
  'out of another shape': [{ o: { out: floats([2, 3]) } }, 'SHAPE', 'out', '[2, 3]', '[3, 2]'],
});

describe('refuses packed weights', () => {
  const a = () => floats([3, 20]);
  const refused = (run: () => unknown, wanted: Omit<Wanted, 'op'> & { op?: string }) => {
    expectError(thrown(run), { op: 'matmulNBits', ...wanted });
    expectGood();
  };

  it('of another operation, and for another', () => {
    refused(() => wg.matmulNBits(a(), forGemm), {
      code: 'PACK_MISMATCH',
      argument: 'B',
      says: ['for gemm and matmul', 'matmulNBits'],
    });
    for (const [op, run, argument] of [
      ['gemm', () => wg.gemm(a(), packed), 'B'],
      ['matmul', () => wg.matmul(a(), packed), 'weights'],
      ['matmulInteger', () => wg.matmulInteger(uint8([3, 20]), packed), 'B'],
    ] as const)
      refused(run, { op, code: 'PACK_MISMATCH', argument, says: ['packed for matmulNBits'] });
  });

  it('of another K or type', () => {
    refused(() => wg.matmulNBits(floats([3, 16]), packed), {
      code: 'SHAPE',
      argument: 'A',
      says: ['[3, 16]', 'K, which is 20 in the weights'],
    });
    refused(() => wg.matmulNBits(half([3, 20]) as never, packed), {
      code: 'DTYPE',
      argument: 'scales',
      says: ['float32', 'float16'],
    });
  });

  it('that end, or are of another instance', () => {
    for (const [weights, code, says] of [
      [gone.weights, 'DISPOSED', 'disposed weights'],
      [theirs.weights, 'ARGUMENT', 'of another instance'],
      [{ ...good(), data: gone.tensor }, 'DISPOSED', 'a disposed tensor'],
      [{ ...good(), data: theirs.tensor }, 'ARGUMENT', 'of another instance'],
    ] as const) {
      refused(() => wg.matmulNBits(a(), weights as never), { code, argument: 'B', says: [says] });
      const out = wg.alloc('float32', [3, 2]);
      const held = wg.alloc('float32', [3, 20]);
      refused(() => wg.matmulNBits(held, weights as never, { out }), {
        code,
        argument: 'B',
        says: [says],
      });
      out.dispose();
      held.dispose();
    }
  });

  it('in another place', async () => {
    const inB = 'can only stand for B';
    for (const [run, argument, says] of [
      [() => wg.matmulNBits(packed as never, good()), 'A', inB],
      [() => wg.matmulNBits(a(), { ...good(), scales: packed as never }), 'scales', inB],
      [() => wg.matmulNBits(a(), { ...good(), zeroPoints: packed as never }), 'zeroPoints', inB],
      [() => wg.matmulNBits(a(), good(), { bias: packed as never }), 'bias', inB],
      [() => wg.matmulNBits(a(), good(), { out: packed as never }), 'out', inB],
      [() => wg.matmulNBits(a(), { ...good(), data: packed as never }), 'weights', 'as data'],
      [() => wg.matmulNBits(a(), Object.create(packed) as never), 'B', 'is a copy of a handle'],
    ] as const)
      refused(run, { code: 'ARGUMENT', argument, says: [says] });
    const away = await inWorker.pack(good(), { op: 'matmulNBits' });
    refused(() => wg.matmulNBits(a(), away as never), {
      code: 'ARGUMENT',
      argument: 'B',
      says: ['packed weights in a worker', 'of this instance'],
    });
    expectError(await rejected(inWorker.matmulNBits(a(), packed as never)), {
      code: 'ARGUMENT',
      op: 'matmulNBits',
      argument: 'B',
      says: ['packed weights of another instance', 'pack them here'],
    });
    away.dispose();
  });
});

describe('pack refuses', () => {
  const cases: [what: string, run: () => unknown, argument: string, ...says: string[]][] = [
    [
      'weights for another operation',
      () => wg.pack(good() as never, { op: 'gemm' }),
      'op',
      "'gemm'",
      'blockSize',
      "'matmulNBits'",
    ],
    [
      'weights for qgemm',
      () => wg.pack(good() as never, { op: 'qgemm' }),
      'op',
      "'qgemm'",
      "'matmulNBits'",
    ],
    [
      'a tensor',
      () => wg.pack(floats([20, 2]) as never, { op: 'matmulNBits' }),
      'weights',
      'a tensor',
      'quantizeNBits()',
    ],
    [
      'a tensor in the heap',
      () => {
        using tensor = wg.alloc('float32', [2, 2]);
        wg.pack(tensor as never, { op: 'matmulNBits' });
      },
      'weights',
      'a tensor',
      'quantizeNBits()',
    ],
    [
      'trans',
      () => wg.pack(good(), { op: 'matmulNBits', trans: true } as never),
      'trans',
      'is true',
      'absent',
    ],
    [
      'as',
      () => wg.pack(good(), { op: 'matmulNBits', as: 'float16' } as never),
      'as',
      '"float16"',
      'absent',
    ],
    [
      'weights that are packed',
      () => wg.pack(packed as never, { op: 'matmulNBits' }),
      'B',
      'packed already',
    ],
    [
      'another op',
      () => wg.pack(good(), { op: 'nbits' as never }),
      'op',
      '"nbits"',
      "'gemm', 'matmul', 'qgemm' or 'matmulNBits'",
    ],
    ['no op', () => wg.pack(good(), {} as never), 'op', 'undefined', "'matmulNBits'"],
  ];
  it.each(cases)('%s', (_, run, argument, ...says) => {
    const { inUse } = wg.memory();
    expectError(thrown(run), { code: 'ARGUMENT', op: 'pack', argument, says });
    expect(wg.memory().inUse).toBe(inUse);
    expectGood();
  });
});

it('out must overlap no input', () => {
  const buffer = new ArrayBuffer(4096);
  const out = { data: new Float32Array(buffer, 0, 6), shape: [3, 2] };
  const at = (name: string, change: Change) => {
    const o = changed(operands(), change);
    const error = thrown(() => call({ ...o, options: { ...o.options, out } }));
    expectError(error, { code: 'ARGUMENT', op: 'matmulNBits', argument: 'out', says: [name] });
  };
  at('A', { a: { data: new Float32Array(buffer, 20, 60), shape: [3, 20] } });
  at('B', { w: { data: { data: new Uint8Array(buffer, 23, 32), shape: [2, 2, 8] } } });
  at('scales', { w: { scales: { data: new Float32Array(buffer, 20, 4), shape: [2, 2] } } });
  at('zeroPoints', { w: { zeroPoints: { data: new Uint8Array(buffer, 22, 2), shape: [2, 1] } } });
  at('bias', { o: { bias: new Float32Array(buffer, 20, 2) } });
  expect(out.data).toEqual(new Float32Array(6));
});

it('a disposed instance says so', async () => {
  const ended = await createGemm();
  ended.dispose();
  for (const run of [
    () => ended.matmulNBits(floats([3, 20]), good()),
    () => ended.explain('matmulNBits', floats([3, 20]), good()),
    () => ended.pack(good(), { op: 'matmulNBits' }),
  ])
    expect(thrown(run)).toMatchObject({ code: 'DISPOSED' });
});

it('quantized weights fit', () => {
  const weights = quantizeNBits(floats([20, 2]));
  expect(wg.matmulNBits(floats([3, 20]), weights).shape).toEqual([3, 2]);
});
