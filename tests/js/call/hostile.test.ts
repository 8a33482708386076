/**
 * Objects that lie, change or run code. Calls either read them correctly or refuse them, and write
 * no other tensor.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  dequantize,
  fromGGUF,
  type Gemm,
  GemmError,
  HeapTensor,
  PackedWeights,
  quantize,
  quantizeBias,
  quantizeNBits,
} from 'wgemm';
import * as inline from 'wgemm/inline';
import {
  createGemm as startWorker,
  WorkerTensor,
  type WorkerGemm,
  WorkerWeights,
} from 'wgemm/worker';
import { bytesAt } from '../support/assets.js';
import { expectError, notCreated, rejected, thrown, type Wanted } from '../support/errors.js';
import { expectGemm, float32 } from '../support/tensors.js';

let wg: Gemm;
let inWorker: WorkerGemm;
beforeAll(async () => {
  wg = await createGemm();
  inWorker = await startWorker();
});
afterAll(() => {
  wg.dispose();
  inWorker.dispose();
});

const square = () => float32([2, 2], 1, 2, 3, 4);
const product = [7, 10, 15, 22];
const wide = () => float32([2, 3], 1, 2, 3, 4, 5, 6);
const bytes = () => ({ data: Int8Array.of(1, 2, 3, 4), shape: [2, 2] });

function revoked(target: object = {}): never {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy as never;
}

describe('a handle', () => {
  it('is frozen: nobody can give it another shape, size or type', async () => {
    const neighbour = wg.alloc('float32', [64]);
    const tensor = wg.alloc('float32', [2, 2]);
    const after = wg.alloc('float32', [64]);
    const [theirs, weights] = [
      await inWorker.alloc('float32', [2, 2]),
      wg.pack(square(), { op: 'gemm' }),
    ];
    const theirWeights = await inWorker.pack(square(), { op: 'gemm' });
    for (const handle of [tensor, weights, theirs, theirWeights, wg, inWorker]) {
      expect(Object.isFrozen(handle)).toBe(true);
      for (const name of ['shape', 'size', 'dtype', 'info']) {
        expect(() => Object.defineProperty(handle, name, { value: [4, 4] })).toThrow(TypeError);
      }
    }
    expect(() => (tensor.shape as number[]).push(4)).toThrow(TypeError);
    // Nor by way of its class.
    const own = Object.getOwnPropertyDescriptors(HeapTensor.prototype);
    try {
      for (const [name, value] of [
        ['shape', [8, 8]],
        ['size', 64],
        ['dtype', 'float64'],
      ] as const) {
        Object.defineProperty(HeapTensor.prototype, name, { get: () => value, configurable: true });
      }
      const ones = { data: new Float32Array(64).fill(1), shape: [8, 8] };
      expectError(
        thrown(() => wg.gemm(ones, ones, null, { out: tensor })),
        { code: 'SHAPE', argument: 'out', says: ['[2, 2]', '[8, 8]'] },
      );
    } finally {
      for (const name of ['shape', 'size', 'dtype']) {
        delete (HeapTensor.prototype as unknown as Record<string, unknown>)[name];
        if (own[name as 'size'])
          Object.defineProperty(HeapTensor.prototype, name, own[name as 'size']);
      }
    }
    for (const { data } of [neighbour, tensor, after])
      expect(data.every((value) => value === 0)).toBe(true);
    for (const handle of [neighbour, tensor, after, weights]) handle.dispose();
  });

  it('in a worker is refused by wgemm, and says what it is', async () => {
    const theirs = await inWorker.alloc('float32', [2, 2]);
    const weights = await inWorker.pack(square(), { op: 'gemm' });
    const wanted = (argument: string, what: string): Wanted => ({
      code: 'ARGUMENT',
      argument,
      says: [what, 'of this instance'],
    });
    expectError(
      thrown(() => wg.gemm(theirs as never, square())),
      wanted('A', 'a tensor in a worker'),
    );
    expectError(
      thrown(() => wg.gemm(square(), weights as never)),
      wanted('B', 'packed weights in a worker'),
    );
    const read = thrown(() => quantize(theirs as never));
    expectError(read, {
      code: 'ARGUMENT',
      op: 'quantize',
      argument: 'x',
      says: ['a tensor in a worker', '{ data, shape }'],
    });
    using weightsHere = wg.pack(square(), { op: 'gemm' });
    expectError(
      thrown(() => quantize(weightsHere as never)),
      {
        code: 'ARGUMENT',
        op: 'quantize',
        argument: 'x',
        says: [/is packed weights;/, '{ data, shape }'],
      },
    );
    theirs.dispose();
    weights.dispose();
  });

  it('of another copy of the package says so; its tensors are read as arrays', async () => {
    const other = await inline.createGemm();
    const weights = other.pack(square(), { op: 'gemm' });
    const wanted: Wanted = {
      code: 'ARGUMENT',
      argument: 'B',
      says: ['packed weights of another copy of wgemm', 'of this instance'],
    };
    expectError(
      thrown(() => wg.gemm(square(), weights)),
      wanted,
    );
    expectError(await rejected(inWorker.gemm(square(), weights as never)), wanted);
    expectError(await rejected(inWorker.pack(weights as never, { op: 'gemm' })), {
      ...wanted,
      op: 'pack',
    });
    expectError(
      thrown(() => wg.qgemm({ a: bytes(), aScale: 1, b: weights, bScale: 1 })),
      { ...wanted, op: 'qgemm' },
    );
    const tensor = other.alloc('float32', [2, 2]);
    tensor.data.set([1, 2, 3, 4]);
    expect(Array.from(wg.gemm(tensor as never, square()).data as Float32Array)).toEqual(product);
    expect(wg.gemm(square(), square(), null, { out: tensor as never })).toBe(tensor);
    expect(Array.from(tensor.data)).toEqual(product);
    other.dispose();
  });
});

describe('a shape that changes while it is read', () => {
  it('is read once', () => {
    const neighbour = wg.alloc('float32', [1024]);
    const out = square();
    let reads = 0;
    const shape = new Proxy([2, 2], {
      get: (target, key) =>
        key === 'length' && ++reads > 1 ? 60 : (Reflect.get(target, key) as unknown),
    });
    wg.gemm(square(), square(), null, { out: { data: out.data, shape } });
    expect(Array.from(out.data)).toEqual(product);
    expect(neighbour.data.every((value) => value === 0)).toBe(true);
    neighbour.dispose();
  });
});

describe('a property of Object.prototype', () => {
  /** All that a call reads, and a value that would change or fail it. */
  const names: Record<string, unknown> = {
    ...{
      data: new Float32Array(4),
      shape: [1, 4],
      dtype: 'int32',
      strides: [0, 0],
      stride: [1, 2],
      offset: 1,
    },
    ...{
      byteOffset: 4,
      start: 1,
      step: 2,
      order: 'F',
      layout: 'F',
      fortranOrder: true,
      fortran_order: true,
    },
    ...{ columnMajor: true, transposed: true, storageOffset: 1, begin: 1, isFortran: true },
    ...{ column_major: true, colMajor: true, isColumnMajor: true },
    ...{
      alpha: 2,
      beta: 2,
      transA: 1,
      transB: 1,
      opset: 3,
      broadcast: 1,
      activation: 'relu6',
      out: square(),
    },
    ...{
      transposeA: 1,
      transposeB: 1,
      outType: 'float64',
      a: 1,
      aScale: 9,
      aZeroPoint: 9,
      b: 1,
      bScale: 9,
      bZeroPoint: 9,
    },
    ...{ c: 9, yScale: 9, yZeroPoint: 9, op: 'qgemm', trans: 1, as: 'bfloat16' },
    ...{ threads: 0, simd: 'none', determinism: 'none', assets: 1, maxMemory: 1, models: 1 },
    ...{ scales: 1, zeroPoints: 1, k: 9, n: 9, bits: 2, blockSize: 256, accuracyLevel: 4 },
    ...{ type: 'Q8_0', gIdx: 1, bias: 1, weights: 1 },
    ...{ worker: 1, transfer: true, signal: 1, symmetric: true, axis: 0, scale: 9, zeroPoint: 9 },
  };
  /** Results of every call, given only what they must have. */
  const calls: Record<string, () => unknown> = {
    gemm: () => wg.gemm(square(), square(), square()).data,
    'gemm with options': () => wg.gemm(square(), square(), square(), { alpha: 3 }).data,
    'gemm in the heap': () => {
      using x = wg.alloc('float32', [2, 2]);
      using y = wg.alloc('float32', [2, 2]);
      x.data.set([1, 2, 3, 4]);
      wg.gemm(x, x, null, { out: y });
      return Array.from(y.data);
    },
    matmul: () => wg.matmul(square(), square()).data,
    qgemm: () =>
      wg.qgemm({ a: bytes(), aScale: 1, b: bytes(), bScale: Float32Array.of(1, 2) }).data,
    matmulInteger: () => wg.matmulInteger(bytes(), bytes()).data,
    qlinearMatmul: () =>
      wg.qlinearMatmul({ a: bytes(), aScale: 1, b: bytes(), bScale: 1, yScale: 1 }).data,
    dynamicQuantizeMatmul: () =>
      wg.dynamicQuantizeMatmul(square(), bytes(), { bScale: 1, bZeroPoint: 1 }).data,
    matmulIntegerToFloat: () =>
      wg.matmulIntegerToFloat(bytes(), bytes(), { aScale: 1, bScale: 1 }).data,
    pack: () => {
      using weights = wg.pack(square(), { op: 'gemm' });
      return weights.serialize();
    },
    syrk: () => wg.syrk(square()).data,
    'syrk in the heap': () => {
      using x = wg.alloc('float32', [2, 2]);
      using y = wg.alloc('float32', [2, 2]);
      x.data.set([1, 2, 3, 4]);
      wg.syrk(x, { out: y });
      return Array.from(y.data);
    },
    matmulNBits: () => wg.matmulNBits(float32([1, 2], 1, 2), quantizeNBits(square())).data,
    'matmulNBits in the heap': () => {
      using x = wg.alloc('float32', [2, 2]);
      using y = wg.alloc('float32', [2, 2]);
      using weights = wg.pack(quantizeNBits(square()), { op: 'matmulNBits' });
      x.data.set([1, 2, 3, 4]);
      wg.matmulNBits(x, weights, { out: y });
      return Array.from(y.data);
    },
    quantizeNBits: () => quantizeNBits(square()),
    fromGGUF: () => fromGGUF({ type: 'Q4_0', data: new Uint8Array(18).fill(5), shape: [1, 32] }),
    explain: () => wg.explain('gemm', square(), square()).m,
    quantize: () => quantize(wide()),
    dequantize: () => dequantize({ data: Int8Array.of(1, 2), shape: [2], scale: 2 }),
    quantizeBias: () => quantizeBias(float32([2], 1, 2), { aScale: 1, bScale: 2 }),
  };
  const inTheWorker: Record<string, () => Promise<unknown>> = {
    gemm: async () => (await inWorker.gemm(square(), square(), square())).data,
    'gemm with options': async () =>
      (await inWorker.gemm(square(), square(), square(), { alpha: 3 })).data,
    'gemm that fills out': async () =>
      (await inWorker.gemm(square(), square(), null, { out: float32([2, 2], 0, 0, 0, 0) })).data,
    alloc: async () => {
      using tensor = await inWorker.alloc('float32', [2]);
      await tensor.write(Float32Array.of(1, 2));
      return [tensor instanceof WorkerTensor, await tensor.read()];
    },
    pack: async () => {
      using weights = await inWorker.pack(square(), { op: 'gemm' });
      return [weights instanceof WorkerWeights, await weights.serialize()];
    },
    syrk: async () => (await inWorker.syrk(square())).data,
    matmulNBits: async () =>
      (await inWorker.matmulNBits(float32([1, 2], 1, 2), quantizeNBits(square()))).data,
    // Not inUse: the collector frees what other tests dropped.
    memory: async () => (await inWorker.memory()).committed,
    explain: async () => (await inWorker.explain('gemm', square(), square())).m,
  };

  /** Runs while it has a property: as an assignment leaves it, or hidden. */
  async function given<T>(
    name: string,
    enumerable: boolean,
    run: () => T | Promise<T>,
  ): Promise<T> {
    Object.defineProperty(Object.prototype, name, {
      value: names[name],
      enumerable,
      configurable: true,
      writable: true,
    });
    try {
      return await run();
    } finally {
      delete (Object.prototype as Record<string, unknown>)[name];
    }
  }

  it.each(Object.keys(names))('as %s changes no call', async (name) => {
    for (const enumerable of [true, false]) {
      for (const [call, run] of Object.entries(calls)) {
        const wanted = run();
        let found: unknown;
        // Of what comes back, too.
        await given(name, enumerable, () => {
          found = run();
        });
        expect(found, call).toEqual(wanted);
      }
      for (const [call, run] of Object.entries(inTheWorker)) {
        const wanted = await run();
        expect(await given(name, enumerable, run), call).toEqual(wanted);
      }
    }
  });

  it.each(['threads', 'simd', 'determinism', 'assets', 'maxMemory', 'models', 'worker', 'op'])(
    'as %s changes no instance',
    async (name) => {
      const here = await given(name, true, () =>
        createGemm({ ...(name !== 'simd' && { simd: 'simd128' as const }) }),
      );
      expectGemm(here, square(), square());
      here.dispose();
      const there = await given(name, true, () => startWorker());
      expect((await there.gemm(square(), square())).data).toEqual(Float32Array.from(product));
      there.dispose();
    },
  );

  it.each(['get', 'set', 'value', 'writable'])(
    '%s, a name in property descriptors, fails no call',
    (name) => {
      using out = wg.alloc('uint8', [2, 2]);
      const x = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] };
      const turned = { data: Int8Array.of(1, 2, 3, 4), shape: [2, 2], strides: [1, 2], scale: 2 };
      const each = { axis: 0, scale: Float32Array.of(1, 2) };
      const all = () => [
        quantize(x, { out }),
        quantize(x, each),
        dequantize(turned),
        quantizeBias(x, { aScale: 1, bScale: 2 }),
      ];
      const wanted = all();
      let found: unknown;
      let error: unknown;
      (Object.prototype as Record<string, unknown>)[name] = 1;
      try {
        found = all();
        error = thrown(() => quantize(x, { scale: -1 }));
      } finally {
        delete (Object.prototype as Record<string, unknown>)[name];
      }
      expect(found).toEqual(wanted);
      expectError(error, { code: 'ARGUMENT', op: 'quantize', argument: 'scale', says: ['-1'] });
    },
  );

  it('that a class of the caller has is read', () => {
    class Doubled {
      get alpha() {
        return 2;
      }
    }
    Object.defineProperty(Object.prototype, 'alpha', { value: 5, configurable: true });
    try {
      expect(Array.from(wg.gemm(square(), square(), null, new Doubled()).data)).toEqual(
        product.map((x) => 2 * x),
      );
      expect(Array.from(wg.gemm(square(), square(), null, { alpha: 3 }).data)).toEqual(
        product.map((x) => 3 * x),
      );
    } finally {
      delete (Object.prototype as { alpha?: number }).alpha;
    }
  });
});

describe('an array whose buffer changes while the arguments are read', () => {
  const resizable = (elements: number, most: number) =>
    new (
      ArrayBuffer as unknown as new (
        bytes: number,
        options: object,
      ) => ArrayBuffer & { resize(bytes: number): void }
    )(4 * elements, {
      maxByteLength: 4 * most,
    });
  const canResize = 'resize' in ArrayBuffer.prototype;

  it('is refused by its length', () => {
    if (!canResize) return;
    for (const elements of [0, 2, 8]) {
      const buffer = resizable(4, 8);
      const a = { data: new Float32Array(buffer), shape: [2, 2] };
      const options = {
        get alpha() {
          buffer.resize(4 * elements);
          return 1;
        },
        out: {
          get data() {
            buffer.resize(4 * elements);
            return new Float32Array(4);
          },
          shape: [2, 2],
        },
      };
      expectError(
        thrown(() => wg.gemm(a, square(), null, options)),
        { code: 'SHAPE', argument: 'A', says: [`${elements} elements`, 'needs 4'] },
      );
    }
  });

  it('is refused by quantize', () => {
    if (!canResize) return;
    for (const elements of [0, 2, 8]) {
      const buffer = resizable(4, 8);
      const out = {
        get data() {
          buffer.resize(4 * elements);
          return new Uint8Array(4);
        },
        shape: [4],
      };
      expectError(
        thrown(() => quantize({ data: new Float32Array(buffer), shape: [4] }, { out })),
        {
          code: 'ARGUMENT',
          op: 'quantize',
          argument: 'x',
          says: ['had 4 elements', `has ${elements} now`],
        },
      );
    }
  });
});

describe('quantize', () => {
  /** Runs code when anyone calls it or reads a property, and lies. */
  class Liar extends Float32Array {
    static get [Symbol.species](): never {
      throw new Error('species ran');
    }
    override get length() {
      return 1;
    }
    override get buffer(): never {
      throw new Error('buffer ran');
    }
    override get byteOffset(): never {
      throw new Error('byteOffset ran');
    }
    override get byteLength(): never {
      throw new Error('byteLength ran');
    }
    override findIndex(): number {
      return -1;
    }
    override slice(): never {
      throw new Error('slice ran');
    }
    override [Symbol.iterator](): never {
      throw new Error('iterator ran');
    }
  }
  const liar = (...values: number[]) => {
    const array = new Liar(new ArrayBuffer(4 * values.length));
    values.forEach((value, i) => (array[i] = value));
    return array;
  };

  it('takes a scale of any subclass by its elements', () => {
    const x = wide();
    const wanted = quantize(x, { axis: 1, scale: Float32Array.of(1, 2, 3) });
    const found = quantize(x, { axis: 1, scale: liar(1, 2, 3) });
    expect(found).toEqual(wanted);
    expect(Object.getPrototypeOf(found.scale)).toBe(Float32Array.prototype);
    expectError(
      thrown(() => quantize(x, { axis: 1, scale: liar(1, 2, -3) })),
      { code: 'ARGUMENT', op: 'quantize', argument: 'scale', says: ['-3 at [2]'] },
    );
    expectError(
      thrown(() => quantize(x, { axis: 1, scale: liar(1, 2) })),
      { code: 'SHAPE', op: 'quantize', argument: 'scale', says: ['2 elements', 'must have 3'] },
    );
    expect(dequantize({ ...wanted, scale: liar(1, 2, 3) })).toEqual(dequantize(wanted));
    const bias = float32([3], 1, 2, 3);
    expect(quantizeBias(bias, { aScale: liar(1), bScale: liar(1, 2, 3) })).toEqual(
      quantizeBias(bias, { aScale: 1, bScale: Float32Array.of(1, 2, 3) }),
    );
  });

  it('takes data of any subclass by its elements, and finds what overlaps', () => {
    expect(quantize({ data: liar(1, 2, 3, 400), shape: [4] })).toEqual(
      quantize(float32([4], 1, 2, 3, 400)),
    );
    expectError(
      thrown(() => quantize({ data: liar(1, NaN), shape: [2] })),
      { code: 'ARGUMENT', op: 'quantize', argument: 'x', says: ['NaN at [1]'] },
    );
    const buffer = new ArrayBuffer(16);
    const lying = Object.defineProperty(new Uint8Array(buffer, 0, 4), 'buffer', {
      value: new ArrayBuffer(4),
    });
    expectError(
      thrown(() =>
        quantize(
          { data: new Float32Array(buffer), shape: [4] },
          { out: { data: lying, shape: [4] } },
        ),
      ),
      { code: 'ARGUMENT', op: 'quantize', argument: 'out', says: ['overlaps x'] },
    );
    const out = new Uint8Array(4);
    expect(quantize(float32([4], 1, 2, 3, 4), { out: { data: out, shape: [4] } }).data).toBe(out);
  });

  it('refuses foreign tensors and detached arrays, too', () => {
    const foreign = { ...wide(), stride: [1, 2] } as never;
    for (const [op, run] of [
      ['quantize', () => quantize(foreign)],
      ['quantizeBias', () => quantizeBias(foreign, { aScale: 1, bScale: 1 })],
    ] as const) {
      expectError(thrown(run), {
        code: 'SHAPE',
        op,
        argument: op === 'quantize' ? 'x' : 'bias',
        says: ['stride [1, 2]', 'differs from'],
      });
    }
    const turned = { data: Int8Array.of(1, 2, 3, 4), shape: [2, 2], scale: 1, order: 'F' };
    expectError(
      thrown(() => dequantize(turned)),
      { code: 'SHAPE', op: 'dequantize', argument: 'q', says: ['order "F"', 'differs from'] },
    );
    const gone = Float32Array.of(1, 2);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    expectError(
      thrown(() => quantize({ data: gone, shape: [2] })),
      { code: 'ARGUMENT', op: 'quantize', argument: 'x', says: ['detached'] },
    );
    expectError(
      thrown(() => quantize(wide(), { axis: 0, scale: gone })),
      { code: 'ARGUMENT', op: 'quantize', argument: 'scale', says: ['detached'] },
    );
  });

  it('refuses revoked proxies', () => {
    const refused = (op: string, argument: string): Wanted => ({
      code: 'ARGUMENT',
      op,
      argument,
      says: ['a revoked proxy'],
    });
    expectError(
      thrown(() => quantize(revoked())),
      refused('quantize', 'x'),
    );
    expectError(
      thrown(() => quantize(wide(), revoked())),
      refused('quantize', 'options'),
    );
    expectError(
      thrown(() => quantize(wide(), { scale: revoked() })),
      refused('quantize', 'scale'),
    );
    expectError(
      thrown(() => dequantize(revoked())),
      refused('dequantize', 'q'),
    );
    expectError(
      thrown(() => quantizeBias(wide(), revoked())),
      refused('quantizeBias', 'options'),
    );
  });
});

describe('createGemm refuses', () => {
  const wasm = new URL(import.meta.resolve('wgemm/assets/wgemm-simd128.wasm'));
  const assets = (...says: string[]): Wanted => ({
    code: 'ARGUMENT',
    op: 'createGemm',
    argument: 'assets',
    says: ['wgemm-simd128.wasm', ...says, 'a URL, bytes or a WebAssembly.Module'],
  });
  const theirs = (options: unknown) =>
    rejected(startWorker(options as never).then((there) => there.dispose()));

  it('revoked proxies', async () => {
    const wanted: Wanted = {
      code: 'ARGUMENT',
      op: 'createGemm',
      argument: 'options',
      says: ['a revoked proxy', 'an object'],
    };
    expectError(await notCreated(revoked()), wanted);
    expectError(await theirs(revoked()), wanted);
    const options = { simd: 'simd128', assets: () => revoked() };
    expectError(await notCreated(options), assets('a revoked proxy'));
    expectError(await theirs(options), assets('a revoked proxy'));
  });

  it('objects that call themselves a URL', async () => {
    for (const source of [
      { [Symbol.toStringTag]: 'URL' },
      { [Symbol.toStringTag]: 'URL', toString: undefined, valueOf: undefined },
      Object.create(null, { [Symbol.toStringTag]: { value: 'URL' } }) as object,
      Object.create(URL.prototype) as object,
      new Proxy(wasm, {}),
    ]) {
      const options = { simd: 'simd128', assets: () => source };
      expectError(await notCreated(options), assets('an object', 'URL'));
      expectError(await theirs(options), assets('an object', 'URL'));
    }
  });

  it('bytes that are detached', async () => {
    const gone = async () => {
      const { buffer } = new Uint8Array(await bytesAt(wasm));
      const views = [
        buffer,
        new Uint8Array(buffer),
        new DataView(buffer),
        new Float64Array(buffer, 0, 8),
      ];
      structuredClone(buffer, { transfer: [buffer] });
      return views;
    };
    for (const source of await gone()) {
      expectError(await notCreated({ simd: 'simd128', assets: () => source }), assets('detached'));
    }
    for (const source of (await gone()).slice(0, 2)) {
      expectError(await theirs({ simd: 'simd128', assets: () => source }), assets('detached'));
    }
  });
});

describe('every argument of every call', () => {
  const o = () => ({
    a: square(),
    b: square(),
    c: square(),
    options: { out: float32([2, 2], 0, 0, 0, 0) },
  });
  const nbits = () => quantizeNBits(square());
  const q = () => ({
    a: bytes(),
    aScale: 1,
    aZeroPoint: 0,
    b: bytes(),
    bScale: 1,
    bZeroPoint: 0,
    c: 1,
    yScale: 1,
    yZeroPoint: 0,
  });
  const thrower = (name: string) =>
    new Proxy({}, { [name]: () => { throw new TypeError('raw'); } }) as unknown; // prettier-ignore
  /** No call can use these. If one read a thrower, its own error would come through. */
  const junk: [string, unknown][] = [
    ['a revoked proxy', revoked()],
    ['a revoked proxy of an array', revoked([])],
    ['a revoked proxy of a function', revoked(() => 0)],
    ['a revoked proxy in data', { data: revoked(), shape: [2, 2] }],
    ['a revoked proxy in shape', { data: new Float32Array(4), shape: revoked([2, 2]) }],
    [
      'a revoked proxy in strides',
      { data: new Float32Array(4), shape: [2, 2], strides: revoked([2, 1]) },
    ],
    ['a revoked proxy in dtype', { data: new Float32Array(4), shape: [2, 2], dtype: revoked() }],
    [
      'a revoked proxy in stride',
      { data: new Float32Array(4), shape: [2, 2], stride: revoked([2, 1]) },
    ],
    ['a revoked proxy in an array', [revoked(), 1]],
    ['a symbol', Symbol('x')],
    ['a symbol in shape', { data: new Float32Array(4), shape: [Symbol('x'), 2] }],
    ['an object of no prototype', Object.create(null)],
    [
      'an object of no prototype in offset',
      { data: new Float32Array(4), shape: [2, 2], offset: Object.create(null) as object },
    ],
    [
      'an object of no prototype in order',
      { data: new Float32Array(4), shape: [2, 2], order: Object.create(null) as object },
    ],
    ['an imitation', Object.create(HeapTensor.prototype)],
    ['an imitation of weights', Object.create(PackedWeights.prototype)],
    ['an imitation of a tensor in a worker', Object.create(WorkerTensor.prototype)],
    ['a class', class {}],
    ['a date', new Date()],
    ['a DataView', new DataView(new ArrayBuffer(8))],
    ['a bigint', 10n ** 400n],
    ['an array of holes', new Array(3)],
    ['an endless array', new Array(2 ** 32 - 1)],
    ['a number', NaN],
    ['a text', 'x'],
  ];
  const calls: Record<string, (x: never) => unknown> = {
    'gemm, a': (x) => wg.gemm(x, square()),
    'gemm, b': (x) => wg.gemm(square(), x),
    'gemm, c': (x) => wg.gemm(square(), square(), x),
    'gemm, options': (x) => wg.gemm(square(), square(), null, x),
    ...Object.fromEntries(
      ['alpha', 'beta', 'transA', 'transB', 'opset', 'broadcast', 'activation', 'out'].map(
        (name) => [
          `gemm, ${name}`,
          (x: never) => wg.gemm(square(), square(), null, { ...o().options, [name]: x }),
        ],
      ),
    ),
    ...Object.fromEntries(
      ['alpha', 'transposeA', 'transposeB', 'outType', 'activation', 'out'].map((name) => [
        `matmul, ${name}`,
        (x: never) => wg.matmul(square(), square(), null, { [name]: x }),
      ]),
    ),
    'matmul, src': (x) => wg.matmul(x, square()),
    'matmul, bias': (x) => wg.matmul(square(), square(), x),
    'qgemm, inputs': (x) => wg.qgemm(x),
    'qgemm, options': (x) => wg.qgemm(q(), x),
    ...Object.fromEntries(
      Object.keys(q()).map((name) => [
        `qgemm, ${name}`,
        (x: never) => wg.qgemm({ ...q(), [name]: x }),
      ]),
    ),
    'syrk, a': (x) => wg.syrk(x),
    'syrk, options': (x) => wg.syrk(square(), x),
    ...Object.fromEntries(
      ['alpha', 'transA', 'out'].map((name) => [
        `syrk, ${name}`,
        (x: never) => wg.syrk(square(), { [name]: x }),
      ]),
    ),
    'matmulNBits, a': (x) => wg.matmulNBits(x, nbits()),
    'matmulNBits, weights': (x) => wg.matmulNBits(square(), x),
    'matmulNBits, options': (x) => wg.matmulNBits(square(), nbits(), x),
    ...Object.fromEntries(
      ['data', 'scales', 'zeroPoints', 'k', 'n', 'bits', 'blockSize', 'gIdx'].flatMap((name) => [
        [`matmulNBits, ${name}`, (x: never) => wg.matmulNBits(square(), { ...nbits(), [name]: x })],
        [
          `pack, ${name}`,
          (x: never) => wg.pack({ ...nbits(), [name]: x }, { op: 'matmulNBits' }).dispose(),
        ],
      ]),
    ),
    ...Object.fromEntries(
      ['bias', 'accuracyLevel', 'activation', 'out'].map((name) => [
        `matmulNBits, ${name}`,
        (x: never) => wg.matmulNBits(square(), nbits(), { [name]: x }),
      ]),
    ),
    'pack, weights': (x) => wg.pack(x, { op: 'matmulNBits' }).dispose(),
    'quantizeNBits, weights': (x) => quantizeNBits(x),
    'quantizeNBits, options': (x) => quantizeNBits(square(), x),
    ...Object.fromEntries(
      ['bits', 'blockSize', 'symmetric', 'trans'].map((name) => [
        `quantizeNBits, ${name}`,
        (x: never) => quantizeNBits(square(), { [name]: x }),
      ]),
    ),
    'fromGGUF, tensor': (x) => fromGGUF(x),
    ...Object.fromEntries(
      ['type', 'data', 'shape'].map((name) => [
        `fromGGUF, ${name}`,
        (x: never) =>
          fromGGUF({ type: 'Q4_0', data: new Uint8Array(18), shape: [1, 32], [name]: x }),
      ]),
    ),
    'pack, b': (x) => wg.pack(x, { op: 'gemm' }).dispose(),
    'pack, options': (x) => wg.pack(square(), x).dispose(),
    ...Object.fromEntries(
      ['op', 'trans', 'as'].map((name) => [
        `pack, ${name}`,
        (x: never) => wg.pack(square(), { op: 'gemm', [name]: x }).dispose(),
      ]),
    ),
    deserialize: (x) => wg.deserialize(x).dispose(),
    'alloc, dtype': (x) => wg.alloc(x, [1]),
    'alloc, shape': (x) => wg.alloc('float32', x).dispose(),
    'explain, op': (x) => wg.explain(x, square(), square()),
    'explain, a': (x) => wg.explain('gemm', x, square()),
    'quantize, x': (x) => quantize(x),
    'quantize, options': (x) => quantize(wide(), x),
    ...Object.fromEntries(
      ['dtype', 'symmetric', 'axis', 'scale', 'out'].map((name) => [
        `quantize, ${name}`,
        (x: never) => quantize(wide(), { [name]: x }),
      ]),
    ),
    'quantize, zeroPoint': (x) => quantize(wide(), { scale: 1, zeroPoint: x }),
    'dequantize, q': (x) => dequantize(x),
    ...Object.fromEntries(
      ['scale', 'zeroPoint', 'axis'].map((name) => [
        `dequantize, ${name}`,
        (x: never) => dequantize({ ...bytes(), scale: 1, [name]: x }),
      ]),
    ),
    'quantizeBias, bias': (x) => quantizeBias(x, { aScale: 1, bScale: 1 }),
    'quantizeBias, options': (x) => quantizeBias(wide(), x),
    ...Object.fromEntries(
      ['aScale', 'bScale', 'alpha', 'beta'].map((name) => [
        `quantizeBias, ${name}`,
        (x: never) => quantizeBias(wide(), { aScale: 1, bScale: 1, [name]: x }),
      ]),
    ),
  };
  it.each(Object.keys(calls))('gets an error of ours, or is used: %s', (name) => {
    for (const [what, value] of junk) {
      if (what.startsWith('an imitation') && name.endsWith(' options')) continue; // whose own getters throw
      try {
        calls[name]?.(value as never);
      } catch (error) {
        expect(error, `${what}: ${String(error)}`).toBeInstanceOf(GemmError);
      }
    }
  });

  it.each(junk)('in a worker too: %s', async (what, value) => {
    const x = value as never;
    const runs = [
      () => inWorker.gemm(x, square()),
      () => inWorker.gemm(square(), square(), x),
      () => inWorker.gemm(square(), square(), null, x),
      () => inWorker.gemm(square(), square(), null, { out: x }),
      () => inWorker.gemm(square(), square(), null, { signal: x }),
      () => inWorker.gemm(square(), square(), null, { transfer: x }),
      () => inWorker.qgemm(x),
      () => inWorker.pack(x, { op: 'gemm' }),
      () => inWorker.pack(x, { op: 'matmulNBits' }),
      () => inWorker.matmulNBits(square(), x),
      () => inWorker.matmulNBits(square(), { ...nbits(), data: x }),
      () => inWorker.syrk(x),
      () => inWorker.alloc('float32', x),
      () => inWorker.deserialize(x),
    ];
    for (const [i, run] of runs.entries()) {
      if (what.startsWith('an imitation') && i === 2) continue; // options, whose own getters throw
      try {
        await run();
      } catch (error) {
        expect(error, `${i}: ${String(error)}`).toBeInstanceOf(GemmError);
        expect((error as Error).message, `${i}`).not.toMatch(/TypeError|RangeError/);
      }
    }
    expect((await inWorker.gemm(square(), square())).data).toEqual(Float32Array.from(product));
  });

  it('that throws of itself, throws what it throws', () => {
    expect(() => wg.gemm(thrower('get') as never, square())).toThrow('raw');
    expect(() => wg.gemm(square(), square(), null, thrower('ownKeys') as never)).toThrow('raw');
  });
});
