/**
 * Threads, if the engine and the page allow them, and the errors if they do not.
 */
import { afterEach, describe, expect, it } from 'vitest';
import {
  createGemm,
  type CreateOptions,
  type DataArray,
  type Gemm,
  type HeapTensor,
  type QGemmInputs,
  type TensorInput,
} from 'wgemm';
import { createGemm as createWorkerGemm } from 'wgemm/worker';
import { expectError, notCreated, rejected } from '../support/errors.js';
import { hasThreads } from '../support/fixed-problems.js';
import { Random, sameBytes } from '../support/tensors.js';

const files = 'wgemm/assets/wgemm-';

const made: { dispose(): void }[] = [];
afterEach(() => made.splice(0).forEach((wg) => wg.dispose()));

async function create(options: CreateOptions): Promise<Gemm> {
  const wg = await createGemm(options);
  made.push(wg);
  return wg;
}

function fill(tensor: HeapTensor, seed: number): HeapTensor {
  new Random(seed).fill(tensor.data);
  return tensor;
}

describe.skipIf(!hasThreads)('threads', () => {
  it.each([2, 3, 5])('%i of them give what one gives, bit for bit', async (threads) => {
    const [one, many] = [await create({ threads: 1 }), await create({ threads })];
    expect(many.info.threads).toBe(threads);
    expect(many.info.why).toContain('threads: as asked');
    const random = new Random(threads);
    for (const dtype of ['float32', 'float64', 'float16', 'int32', 'int64'] as const) {
      for (const [m, n, k] of [
        [128, 256, 64],
        [1, 2003, 700],
        [3000, 9, 80],
        [40, 1000, 40],
      ] as const) {
        // prettier-ignore
        const [a, b, c] = [random.tensor(dtype, [m, k]), random.tensor(dtype, [k, n]), random.tensor(dtype, [n])];
        const options = { alpha: 2, transA: false };
        expect(many.explain('gemm', a, b, c, options).threads).toBeGreaterThan(1);
        expect(one.explain('gemm', a, b, c, options).threads).toBe(1);
        expect(
          sameBytes(many.gemm(a, b, c, options).data, one.gemm(a, b, c, options).data),
          `${dtype} ${m}x${n}x${k}`,
        ).toBe(true);
        const packed = [many.pack(b, { op: 'gemm' }), one.pack(b, { op: 'gemm' })] as const;
        expect(
          sameBytes(
            many.gemm(a, packed[0], c, options).data,
            one.gemm(a, packed[1], c, options).data,
          ),
          'packed',
        ).toBe(true);
        packed.forEach((weights) => weights.dispose());
      }
    }
  });

  it('share out stacks of matrices, and quantized products', async () => {
    const [one, many] = [await create({ threads: 1 }), await create({ threads: 3 })];
    const random = new Random(7);
    const stack = (...shape: number[]) => random.tensor('float32', shape);
    for (const [src, weights] of [
      [stack(12, 64, 64), stack(12, 64, 64)],
      [stack(2, 5, 64, 40), stack(5, 40, 70)],
      [stack(30, 32, 64), stack(64, 48)],
      [stack(64, 64), stack(9, 64, 48)],
    ] as const) {
      expect(many.explain('matmul', src, weights).threads).toBe(3);
      expect(sameBytes(many.matmul(src, weights).data, one.matmul(src, weights).data)).toBe(true);
    }
    const [a, b] = [random.tensor('uint8', [150, 200]), random.tensor('int8', [200, 90])];
    const inputs = { a, aScale: 0.5, aZeroPoint: 7, b, bScale: 0.25, bZeroPoint: 3 } as QGemmInputs;
    for (const quantized of [{}, { yScale: 30, yZeroPoint: 5 }]) {
      expect(many.explain('qgemm', { ...inputs, ...quantized }).threads).toBe(3);
      expect(
        sameBytes(
          many.qgemm({ ...inputs, ...quantized }).data,
          one.qgemm({ ...inputs, ...quantized }).data,
        ),
      ).toBe(true);
    }
  });

  type Loose = Record<string, (...args: unknown[]) => { data: DataArray; threads: number }>;
  const loose = (wg: Gemm) => wg as unknown as Loose;
  it('share out syrk, and the copy of its triangle', async () => {
    const [one, many] = [await create({ threads: 1 }), await create({ threads: 3 })];
    const random = new Random(9);
    for (const dtype of ['float32', 'float64'] as const) {
      for (const [n, k] of [
        [200, 300],
        [333, 70],
        [700, 5],
        [97, 4000],
      ] as const) {
        const a = random.tensor(dtype, [n, k]) as { data: Float32Array; shape: number[] };
        const plan = many.explain('syrk', a);
        expect(plan).toMatchObject({ op: 'syrk', threads: 3, m: n, n, k });
        const what = JSON.stringify([dtype, n, k]);
        expect(sameBytes(many.syrk(a).data, one.syrk(a).data), what).toBe(true);
      }
    }
  });

  it('share out the integer products, with batch axes and values per row', async () => {
    const [one, many] = [await create({ threads: 1 }), await create({ threads: 3 })];
    const random = new Random(8);
    const scales = (...shape: number[]) => {
      const scale = random.tensor('float32', shape);
      const data = (scale.data as Float32Array).map((x) => 0.001 + x * x);
      return { data, shape };
    };
    for (const [a, b, rows, columns] of [
      [[150, 200], [200, 90], [150], [90]],
      [
        [6, 60, 70],
        [6, 70, 80],
        [6, 60, 1],
        [6, 1, 80],
      ],
      [
        [3, 1, 2, 300],
        [2, 300, 400],
        [3, 1, 2, 1],
        [2, 1, 400],
      ],
      [[1, 3000], [3000, 2000], [1], [2000]],
      [[2000, 3000], [3000], [2000], [1]],
    ] as const) {
      const [x, floats] = [random.tensor('uint8', a), random.tensor('float32', a)];
      const w = random.tensor('int8', b);
      const [aZeroPoint, bZeroPoint] = [
        random.tensor('uint8', rows),
        random.tensor('int8', columns),
      ];
      const [aScale, bScale] = [scales(...rows), scales(...columns)];
      const ofFloat = { aScale: 0.5, bScale, bZeroPoint };
      const linear = { a: x, aScale, aZeroPoint, b: w, bScale, bZeroPoint, yScale: 30 };
      const calls = [
        ['matmulInteger', x, w, { aZeroPoint, bZeroPoint }],
        ['qlinearMatmul', linear],
        ['dynamicQuantizeMatmul', floats, w, { bScale, bZeroPoint }],
        ['matmulIntegerToFloat', x, w, ofFloat],
      ] as const;
      for (const [op, ...args] of calls) {
        const what = `${op} ${JSON.stringify([a, b])}`;
        const [found, wanted] = [loose(many)[op]?.(...args), loose(one)[op]?.(...args)];
        expect(loose(many).explain?.(op, ...args).threads, what).toBeGreaterThan(1);
        expect(sameBytes(found?.data as DataArray, wanted?.data as DataArray), what).toBe(true);
      }
    }
  });

  it('leave small products to the caller', async () => {
    const wg = await create({ threads: 2 });
    const square = (n: number) => wg.alloc('float32', [n, n]);
    expect(wg.explain('gemm', square(32), square(32)).threads).toBe(1);
    expect(wg.explain('gemm', square(256), square(256)).threads).toBe(2);
  });

  it('outlive growth of the memory', async () => {
    const wg = await create({ threads: 2 });
    const [a, b, y] = [
      fill(wg.alloc('float32', [200, 300]), 1),
      fill(wg.alloc('float32', [300, 200]), 2),
      wg.alloc('float32', [200, 200]),
    ];
    const wanted = wg.gemm(a, b).data.slice();
    const view = a.data;
    for (let round = 0; round < 4; ++round) {
      const { committed } = wg.memory();
      wg.alloc('uint8', [committed]);
      expect(wg.memory().committed).toBeGreaterThan(committed);
      wg.gemm({ data: view, shape: [200, 300] }, b, null, { out: y }); // a view of before, in place
      expect(
        wg.explain('gemm', { data: view, shape: [200, 300] }, b, null, { out: y }).copies,
      ).toBe(0);
      expect(sameBytes(y.data, wanted)).toBe(true);
    }
  });

  it('keep to maxMemory, with fewer threads if there is no more', async () => {
    const [m, n, k] = [3000, 32, 400];
    const free = await create({ threads: 4 });
    const [a, b] = [
      new Random(1).tensor('float32', [m, k]),
      new Random(2).tensor('float32', [k, n]),
    ];
    const wanted = free.gemm(a, b).data;
    const { scratch, copies } = free.explain('gemm', a, b);
    const tight = await create({ threads: 4, maxMemory: copies + 1000 + scratch / 2 });
    expect(sameBytes(tight.gemm(a, b).data, wanted)).toBe(true);
  });

  it('are as many as processors with auto', async () => {
    const wg = await create({ threads: 'auto' });
    const processors =
      (globalThis.navigator as { hardwareConcurrency?: number } | undefined)?.hardwareConcurrency ??
      2;
    expect(wg.info.threads).toBe(Math.min(processors > 4 ? processors - 1 : processors, 16));
    expect(wg.info.why).toMatch(
      /threads: (as many as processors|one, since there is only one processor)/,
    );
  });

  it('come and go, in instances next to each other', async () => {
    const data = new Random(1).tensor('float32', [100, 128]);
    const square = new Random(2).tensor('float32', [128, 128]);
    const wanted = (await create({})).gemm(data, square).data;
    for (let round = 0; round < 10; ++round) {
      const instances = await Promise.all([create({ threads: 2 }), create({ threads: 3 })]);
      for (const wg of instances) expect(sameBytes(wg.gemm(data, square).data, wanted)).toBe(true);
      instances.forEach((wg) => wg.dispose());
    }
  });

  it('work in a worker', async () => {
    const [one, wg] = [
      await create({ threads: 1, simd: 'simd128' }),
      await createWorkerGemm({ threads: 2, simd: 'simd128' }),
    ];
    made.push(wg);
    expect(wg.info.threads).toBe(2);
    const [a, b] = [
      new Random(1).tensor('float32', [200, 300]),
      new Random(2).tensor('float32', [300, 100]),
    ];
    expect(sameBytes((await wg.gemm(a, b)).data, one.gemm(a, b).data)).toBe(true);
    const [x, y] = [await wg.alloc('float32', [200, 300]), await wg.alloc('float32', [200, 100])];
    await x.write(a.data as Float32Array);
    await wg.gemm(x, b as TensorInput<Float32Array>, null, { out: y });
    expect(sameBytes(await y.read(), one.gemm(a, b).data)).toBe(true);
  });

  it('ask assets for their files, and want an address of the script', async () => {
    const asked: string[] = [];
    const wg = await create({
      threads: 2,
      simd: 'simd128',
      assets(file) {
        asked.push(file);
        return new URL(import.meta.resolve(`${files}${file.slice('wgemm-'.length)}`));
      },
    });
    expect(asked).toEqual(['wgemm-simd128-mt.wasm', 'wgemm-thread.js']);
    expect(wg.info).toMatchObject({ threads: 2, build: 'simd128' });
    const wasm = new URL(import.meta.resolve(`${files}simd128-mt.wasm`));
    const second = await create({
      threads: 2,
      simd: 'simd128',
      assets: (file: string) => (file.endsWith('.wasm') ? wasm : undefined),
    });
    expect(second.info.threads).toBe(2);
    const bytes = await notCreated({
      threads: 2,
      simd: 'simd128',
      assets: (file: string) => (file.endsWith('.wasm') ? wasm : new Uint8Array(5)),
    });
    expectError(bytes, {
      code: 'ARGUMENT',
      op: 'createGemm',
      argument: 'assets',
      says: ['wgemm-thread.js', 'an object', 'a URL'],
    });
  });

  it('are an error if their script is not there, or one with auto', async () => {
    const wasm = new URL(import.meta.resolve(`${files}simd128-mt.wasm`));
    const plain = new URL(import.meta.resolve(`${files}simd128.wasm`));
    const sources = {
      'wgemm-simd128-mt.wasm': wasm,
      'wgemm-simd128.wasm': plain,
      'wgemm-thread.js': new URL('absent.js', wasm),
    };
    const options = {
      simd: 'simd128',
      assets: (file: string) => sources[file as keyof typeof sources],
    } as const;
    const start = performance.now();
    const error = await notCreated({ ...options, threads: 2 });
    expect(performance.now() - start).toBeLessThan(5000);
    expectError(error, {
      code: 'WORKER',
      op: 'createGemm',
      argument: 'threads',
      says: ['threads is 2', 'a thread does not start', 'wgemm-thread.js'],
    });
    const auto = await create({ ...options, threads: 'auto' });
    expect(auto.info.threads).toBe(1);
    expect(auto.info.why).toMatch(
      /threads: (one, since more do not start: .*wgemm-thread\.js|one, since there is only one processor)/,
    );
    expect(
      auto.gemm(
        { data: Float32Array.of(2), shape: [1, 1] },
        { data: Float32Array.of(3), shape: [1, 1] },
      ).data[0],
    ).toBe(6);
  });
});

describe.skipIf(hasThreads)('without shared memory', () => {
  const why =
    (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === false
      ? 'not cross-origin isolated'
      : 'no SharedArrayBuffer';

  it('a number of threads is an error', async () => {
    const start = performance.now();
    expectError(await notCreated({ threads: 2 }), {
      code: 'UNSUPPORTED',
      op: 'createGemm',
      argument: 'threads',
      says: ['threads is 2', why],
    });
    expectError(await rejected(createWorkerGemm({ threads: 2 })), {
      code: 'UNSUPPORTED',
      op: 'createGemm',
      argument: 'threads',
      says: [why],
    });
    expect(performance.now() - start).toBeLessThan(5000);
  });

  it('auto is one, and info says why', async () => {
    const wg = await create({ threads: 'auto' });
    expect(wg.info.threads).toBe(1);
    expect(wg.info.why).toMatch(
      new RegExp(`threads: (one, since .*${why}|one, since there is only one processor)`),
    );
  });
});
