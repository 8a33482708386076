/**
 * Arguments as a caller may write them: as objects of a class with getters, as objects that inherit
 * from others, or as proxies. Every call reads each property once, and before it computes.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ArrayOf,
  createGemm,
  dequantize,
  fromGGUF,
  type Gemm,
  GemmError,
  type HeapTensor,
  quantize,
  quantizeBias,
  quantizeNBits,
  tensor,
  toNested,
} from 'wgemm';
import { createLinear } from 'wgemm/linear';
import { loadModel, readOnnx } from 'wgemm/onnx';
import { createIndex } from 'wgemm/search';
import { install } from 'wgemm/tfjs';
import {
  createGemm as startWorker,
  createIndex as createIndexThere,
  createLinear as createLinearThere,
  type WorkerGemm,
} from 'wgemm/worker';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { expectError, rejected, thrown } from '../support/errors.js';

let wg: Gemm;
let there: WorkerGemm;
beforeAll(async () => {
  wg = await createGemm({ models: true });
  there = await startWorker();
});
afterAll(() => {
  wg.dispose();
  there.dispose();
});

/** Makes the object that a call gets in place of another. */
type As = <T extends object>(object: T) => T;

const floats = (shape: number[], from = 1) => ({
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => from + i),
  shape,
});
const codes = (shape: number[], from = 1) => ({
  data: Uint8Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => from + i),
  shape,
});
const empty = (shape: number[]) => ({ ...floats(shape), data: new Float32Array(4) });
function held<D extends 'float32' | 'uint8' | 'int32'>(dtype: D, ...values: number[]) {
  const made: HeapTensor = wg.alloc(dtype, [2, 2]);
  if (values.length > 0) (made.data as Float32Array).set(values);
  return made as HeapTensor<ArrayOf<D>>;
}
const scale = () => Float32Array.of(0.5, 0.25);
const bias = () => Float32Array.of(1, 2);
const inputs = (a: object, b: object) => ({
  ...{ a, aScale: 0.5, aZeroPoint: 3, b, bScale: scale(), bZeroPoint: 2 },
  ...{ yScale: 0.75, yZeroPoint: 4 },
});
const integer = { aZeroPoint: 3, bZeroPoint: 2, transA: true, transB: 1 };
const toFloat = () => ({ ...integer, aScale: 0.5, bScale: scale(), bias: bias() });
const dynamic = () => {
  const { bZeroPoint, transA, transB } = integer;
  return { bScale: scale(), bZeroPoint, transA, transB, bias: bias() };
};
const bounds = { activation: [-20, 20] as const };
const nbits = (as: As) => {
  const made = quantizeNBits(floats([32, 2]), { symmetric: false });
  const zeroPoints = as(made.zeroPoints as object);
  return as({ ...made, data: as(made.data), scales: as(made.scales), zeroPoints }) as typeof made;
};
const a32 = () => floats([2, 32]);

/** A model with an initializer in another file. */
const model = () =>
  encodeGraph({
    nodes: [{ op: 'Gemm', inputs: ['x', 'w'], outputs: ['y'] }],
    initializers: [{ name: 'w', ...floats([2, 2]), dtype: 'float32', external: { location: 'f' } }],
    inputs: [{ name: 'x', dtype: 'float32', shape: ['n', 2] }],
    outputs: [{ name: 'y', dtype: 'float32' }],
  });
const externalData = () => Promise.resolve(new Uint8Array(floats([2, 2]).data.buffer));

/** What an instance tells about the options that made it. */
async function made(starting: Promise<Gemm | WorkerGemm>) {
  const { info, dispose } = await starting.then((one) => ({
    info: one.info,
    dispose: () => one.dispose(),
  }));
  dispose();
  return [info.build, info.determinism];
}

const calls: Record<string, (as: As) => unknown> = {
  gemm: (as) =>
    wg.gemm(
      as(floats([2, 2])),
      as({ ...floats([2, 2]), strides: [2, 1], offset: 0, dtype: 'float32' }),
      as(floats([2, 2])),
      as({
        alpha: 2,
        beta: 3,
        transA: 1,
        transB: true,
        opset: 7,
        out: as(empty([2, 2])),
        ...bounds,
      }),
    ),
  'gemm in the heap': (as) => {
    const x = held('float32', 1, 2, 3, 4);
    const out = held('float32');
    return wg.gemm(
      x,
      x,
      x,
      as({ alpha: 2, beta: 3, transA: 1, transB: 1, activation: 'relu6', out }),
    );
  },
  matmul: (as) =>
    wg.matmul(
      as(floats([2, 2])),
      as(floats([2, 2])),
      null,
      as({ alpha: 2, transposeA: 1, transposeB: 1, outType: 'float32', ...bounds }),
    ),
  'matmul in the heap': (as) => {
    const x = held('float32', 1, 2, 3, 4);
    return wg.matmul(x, x, x, as({ alpha: 2, transposeA: 1, out: held('float32') }));
  },
  qgemm: (as) =>
    wg.qgemm(
      as(inputs(as(codes([2, 2])), as(codes([2, 2]))) as never),
      as({ transA: 1, ...bounds }),
    ),
  'qgemm in the heap': (as) => {
    const x = held('uint8', 1, 2, 3, 4);
    const given = { ...inputs(x, x), bScale: 0.25 };
    return wg.qgemm(as(given) as never, as({ transA: 1, alpha: 2, out: held('uint8') }));
  },
  matmulInteger: (as) => wg.matmulInteger(as(codes([2, 2])), as(codes([2, 2])), as(integer)),
  'matmulInteger in the heap': (as) => {
    const x = held('uint8', 1, 2, 3, 4);
    return wg.matmulInteger(x, x, as({ ...integer, out: held('int32') }));
  },
  qlinearMatmul: (as) =>
    wg.qlinearMatmul(
      as(inputs(as(codes([2, 2])), as(codes([2, 2]))) as never),
      as({ transA: 1, transB: 1, ...bounds }),
    ),
  'qlinearMatmul in the heap': (as) => {
    const x = held('uint8', 1, 2, 3, 4);
    const given = { ...inputs(x, x), bScale: 0.25 };
    return wg.qlinearMatmul(as(given) as never, as({ transB: 1, out: held('uint8') }));
  },
  dynamicQuantizeMatmul: (as) =>
    wg.dynamicQuantizeMatmul(
      as(floats([2, 2])),
      as(codes([2, 2])),
      as({ ...dynamic(), ...bounds }),
    ),
  'dynamicQuantizeMatmul in the heap': (as) => {
    const [x, b] = [held('float32', 1, 2, 3, 4), held('uint8', 1, 2, 3, 4)];
    const options = { bScale: 0.5, bZeroPoint: 2, transA: 1, activation: 'relu' as const };
    return wg.dynamicQuantizeMatmul(x, b, as({ ...options, out: held('float32') }));
  },
  matmulIntegerToFloat: (as) =>
    wg.matmulIntegerToFloat(as(codes([2, 2])), as(codes([2, 2])), as({ ...toFloat(), ...bounds })),
  'matmulIntegerToFloat in the heap': (as) => {
    const x = held('uint8', 1, 2, 3, 4);
    const options = { ...integer, aScale: 0.5, bScale: 0.25, out: held('float32') };
    return wg.matmulIntegerToFloat(x, x, as(options));
  },
  matmulNBits: (as) => {
    const options = { bias: as(floats([2])), accuracyLevel: 4, out: as(empty([2, 2])), ...bounds };
    return wg.matmulNBits(as(a32()), nbits(as), as(options));
  },
  'matmulNBits in the heap': (as) => {
    const weights = wg.pack(
      nbits((object) => object),
      { op: 'matmulNBits' },
    );
    const x = wg.alloc('float32', [2, 32]);
    x.data.set(a32().data);
    return wg.matmulNBits(x, weights, as({ accuracyLevel: 4, out: held('float32') }));
  },
  syrk: (as) =>
    wg.syrk(
      as({ ...floats([2, 2]), strides: [2, 1], offset: 0, dtype: 'float32' }),
      as({ alpha: 2, transA: 1, out: as(empty([2, 2])) }),
    ),
  'syrk in the heap': (as) =>
    wg.syrk(held('float32', 1, 2, 3, 4), as({ alpha: 2, transA: 1, out: held('float32') })),
  pack: (as) =>
    wg.pack(as(floats([2, 2])), as({ op: 'gemm' as const, trans: 1, as: 'float16' as const })),
  'pack for matmulNBits': (as) => wg.pack(nbits(as), as({ op: 'matmulNBits' as const })),
  explain: (as) => [
    wg.explain('gemm', as(floats([2, 3])), as(floats([2, 4])), null, as({ transA: 1, alpha: 2 })),
    wg.explain('matmulInteger', as(codes([2, 3])), as(codes([2, 4])), as({ transA: 1 })),
  ],
  quantize: (as) =>
    quantize(
      as(floats([2, 2])),
      as({
        ...{ dtype: 'uint8' as const, axis: 1, scale: scale() },
        zeroPoint: Uint8Array.of(3, 4),
      }),
    ),
  'quantize with out': (as) =>
    quantize(
      as(floats([2, 2])),
      as({ symmetric: true, out: as({ ...codes([2, 2]), data: new Int8Array(4) }) }),
    ),
  dequantize: (as) => dequantize(as({ ...codes([2, 2]), scale: 0.5, zeroPoint: 3 })),
  quantizeBias: (as) =>
    quantizeBias(as(floats([2])), as({ aScale: 0.5, bScale: scale(), alpha: 2, beta: 4 })),
  quantizeNBits: (as) =>
    quantizeNBits(
      as(floats([2, 32])),
      as({ bits: 8 as const, blockSize: 16 as const, symmetric: false, trans: 1 }),
    ),
  fromGGUF: (as) =>
    fromGGUF(as({ type: 'Q4_0' as const, data: new Uint8Array(18).fill(5), shape: [1, 32] })),
  tensor: (as) => tensor(as({ ...codes([2, 2]), offset: 0 }), as({ dtype: 'float64' as const })),
  toNested: (as) => toNested(as(floats([2, 2]))),
  createGemm: (as) =>
    made(createGemm(as({ simd: 'simd128' as const, determinism: 'strict' as const }))),
  createLinear: (as) => {
    const weights = {
      ...{ weights: as(floats([2, 2])), bias: as(floats([2])) },
      as: 'float16' as const,
    };
    const layer = createLinear(wg, as({ ...weights, trans: 1, ...bounds }));
    return layer.run(as(floats([2, 2])), as({ out: as(empty([2, 2])) }));
  },
  'createLinear with int8': (as) => {
    const input = as({ scale: 0.5, zeroPoint: 3, dtype: 'uint8' as const });
    const output = as({ scale: 0.25, zeroPoint: 1, dtype: 'int8' as const });
    const weights = as(quantize(floats([2, 2]), { symmetric: true, axis: 1 }));
    return createLinear(wg, as({ weights, input, output })).run(as(codes([2, 2])));
  },
  createIndex: (as) => {
    const options = { dimensions: 2, metric: 'dot', dtype: 'int8', rescore: 'float32' } as const;
    const index = createIndex<string>(wg, as({ ...options, capacity: 3 }));
    const out = { positions: new Uint32Array(4), scores: new Float32Array(4) };
    const found = { found: new Uint32Array(2) };
    const results = [
      index.add(as(floats([2, 2])), ['a', 'b']),
      index.update(as(floats([1, 2])), ['b']),
      index.search(as(floats([2])), 2, as({ filter: ['a'], minScore: 1, candidates: 3 })),
      index.search(as(floats([2, 2])), 2, as({ fast: false, out: as({ ...out, ...found }) })),
      ...[out.positions, out.scores, found.found].map((array) => Array.from(array)),
      index.maxSim(as(floats([2, 2])), Uint32Array.of(3), as({ fast: false, out: out.scores })),
    ];
    index.dispose();
    return results;
  },
  readOnnx: async (as) =>
    (await readOnnx(model(), as({ externalData }))).graph.initializers.get('w')?.data,
  loadModel: async (as) => {
    const options = { externalData, determinism: 'strict' as const, simd: 'simd128' as const };
    const loaded = await loadModel(model(), as(options));
    const { y } = await loaded.run(as({ x: as(floats([3, 2])) }));
    const [product] = await loaded.explain(as({ x: [5, 2] }));
    loaded.dispose();
    return [y, product?.operands, product?.plan.kernel];
  },
  'loadModel with wg': async (as) => {
    const loaded = await loadModel(model(), as({ externalData, wg }));
    loaded.dispose();
    return [wg.disposed, await rejected(loadModel(model(), as({ wg, threads: 2 } as never)))];
  },
  install: async (as) => {
    const kernel = { kernelName: 'BatchMatMul', backendName: 'cpu', kernelFunc: () => undefined };
    const tf = {
      getKernel: (name: string, backend: string) =>
        name === kernel.kernelName && backend === 'cpu' ? kernel : undefined,
      registerKernel: () => undefined,
      unregisterKernel: () => undefined,
    };
    return [
      await rejected(install(tf, as({ wg, always: 1 as never }))),
      await rejected(install(tf, as({ wg, simd: 'relaxed' } as never))),
    ];
  },
  'gemm in a worker': (as) =>
    there.gemm(
      as(floats([2, 2])),
      as(floats([2, 2])),
      as(floats([2, 2])),
      as({ alpha: 2, beta: 3, transA: 1, out: as(empty([2, 2])), transfer: true, ...bounds }),
    ),
  'qlinearMatmul in a worker': (as) =>
    there.qlinearMatmul(
      as(inputs(as(codes([2, 2])), as(codes([2, 2]))) as never),
      as({ transA: 1, transfer: true, ...bounds }),
    ),
  'matmulInteger in a worker': (as) =>
    there.matmulInteger(as(codes([2, 2])), as(codes([2, 2])), as({ ...integer, transfer: false })),
  'explain in a worker': (as) =>
    there.explain('matmulInteger', as(codes([2, 3])), as(codes([2, 4])), as({ transA: 1 })),
  'tensors of a worker': async (as) => {
    const { signal } = new AbortController();
    const x = await there.alloc('float32', [4], as({ signal }));
    await x.write(Float32Array.of(1, 2), as({ offset: 1, transfer: true, signal }));
    return [await x.read(as({ signal })), typeof (await there.memory(as({ signal }))).inUse];
  },
  'createGemm of a worker': (as) =>
    made(startWorker(as({ simd: 'simd128' as const, determinism: 'strict' as const }))),
  'createLinear in a worker': async (as) => {
    const input = as({ scale: 0.5, zeroPoint: 3, dtype: 'uint8' as const });
    const weights = as(quantize(floats([2, 2]), { symmetric: true, axis: 1 }));
    const layer = await createLinearThere(there, as({ weights, input, bias: as(floats([2])) }));
    return await layer.run(as(codes([2, 2])), as({ out: as(empty([2, 2])) as never }));
  },
  'createIndex in a worker': async (as) => {
    const { signal } = new AbortController();
    const index = await createIndexThere(
      there,
      as({ dimensions: 2, dtype: 'int8' as const, signal }),
    );
    const out = { positions: new Uint32Array(4), scores: new Float32Array(4) };
    const results = [
      await index.add(as(floats([2, 2])), null, as({ signal })),
      await index.search(as(floats([2, 2])), 2, as({ filter: [1], out: as(out), signal })),
      ...[out.positions, out.scores].map((array) => Array.from(array)),
      await index.remove(0, as({ signal })),
    ];
    index.dispose();
    return results;
  },
};

/** What a call returned, in a form that can be compared. */
function plain(result: unknown): unknown {
  if (result instanceof GemmError) return result.message;
  if (Array.isArray(result)) return result.map(plain);
  if (ArrayBuffer.isView(result)) return (result as Uint8Array).slice(); // the memory may grow
  if (typeof result !== 'object' || result === null) return result;
  if ('serialize' in result) return (result.serialize as () => unknown)();
  if (!('data' in result)) return result;
  const { data, shape, scale, zeroPoint } = result as Record<string, unknown>;
  return { data: plain(data), shape, scale, zeroPoint };
}

/** Makes the call, once with arguments as they are. Expects the same result. */
async function expectSame(call: string, as: As, atEnd: () => void = () => undefined) {
  const run = calls[call] as (as: As) => unknown;
  const wanted = plain(await run((object) => object));
  const found = await run(as);
  atEnd();
  expect(plain(found)).toEqual(wanted);
}

/** An object of a class that has these properties as getters, before each of which `first` runs. */
function withGetters<T extends object>(object: T, first: () => void = () => undefined): T {
  class Made {}
  for (const key of Object.keys(object)) {
    const get = () => {
      first();
      return object[key as keyof T];
    };
    Object.defineProperty(Made.prototype, key, { get });
  }
  return new Made() as T;
}

describe.each(Object.keys(calls))('%s', (call) => {
  it('takes objects of a class with getters', async () => {
    await expectSame(call, withGetters);
  });

  it('takes objects that inherit their properties', async () => {
    await expectSame(call, (object) => Object.create(object) as never);
  });

  it('reads each property once', async () => {
    const all: Map<string, number>[] = [];
    const counting: As = (object) => {
      const reads = new Map<string, number>();
      all.push(reads);
      return new Proxy(object, {
        get(target, key, receiver) {
          // A promise that resolves to an object reads `then`.
          if (typeof key === 'string' && key !== 'then') reads.set(key, (reads.get(key) ?? 0) + 1);
          return Reflect.get(target, key, receiver) as unknown;
        },
      });
    };
    await expectSame(call, counting, () => {
      expect(all.length).toBeGreaterThan(0);
      const several = all.flatMap((reads) => [...reads].filter(([, count]) => count > 1));
      expect(several, 'properties and how often they are read').toEqual([]);
    });
  });

  it('computes right if a getter lets the memory grow', async () => {
    const tensors: HeapTensor[] = [];
    await expectSame(call, (object) =>
      withGetters(object, () => {
        if (tensors.length > 6) return;
        const bytes = wg.memory().committed;
        tensors.push(wg.alloc('uint8', [Math.min(bytes, 2 ** 23)]));
      }),
    );
    for (const each of tensors) each.dispose();
  });
});

/** Calls in the heap, which write their arguments into the memory without copies. */
const inHeap: Record<string, (x: HeapTensor, options: object) => unknown> = {
  matmulInteger: (x, options) => wg.matmulInteger(x as never, x as never, options),
  qlinearMatmul: (x, options) =>
    wg.qlinearMatmul({ a: x as never, aScale: 1, b: x as never, bScale: 1, yScale: 1 }, options),
  dynamicQuantizeMatmul: (x, options) =>
    wg.dynamicQuantizeMatmul(held('float32', 1, 2, 3, 4), x as never, options as never),
  matmulIntegerToFloat: (x, options) =>
    wg.matmulIntegerToFloat(x as never, x as never, options as never),
};

describe.each(Object.keys(inHeap))('%s in the heap', (op) => {
  const outs: Record<string, 'int32' | 'uint8'> = {
    matmulInteger: 'int32',
    qlinearMatmul: 'uint8',
  };
  const optionsOf = () => ({
    ...(/Float/.test(op) && { aScale: 1 }),
    ...(/dynamic|Float/.test(op) && { bScale: 1 }),
    transA: 0,
    out: held(outs[op] ?? 'float32', 9, 9, 9, 9),
  });

  it('refuses a tensor that a getter disposes of, and writes nothing', () => {
    const x = held('uint8', 1, 2, 3, 4);
    const options = optionsOf();
    const error = thrown(() =>
      inHeap[op]?.(
        x,
        withGetters(options, () => x.dispose()),
      ),
    );
    const argument = op === 'dynamicQuantizeMatmul' ? 'B' : 'A';
    expectError(error, { code: 'DISPOSED', op, argument, says: ['a disposed tensor'] });
    expect(Array.from(options.out.data)).toEqual([9, 9, 9, 9]);
    inHeap[op]?.(held('uint8', 1, 2, 3, 4), options);
    expect(Array.from(options.out.data)).not.toEqual([9, 9, 9, 9]);
  });

  it('is not misled by a call that a getter makes', () => {
    const x = held('uint8', 1, 2, 3, 4);
    const [plainOptions, options] = [optionsOf(), optionsOf()];
    inHeap[op]?.(x, plainOptions);
    const large = wg.alloc('float32', [7, 7]);
    const other = wg.alloc('float32', [7, 7]);
    inHeap[op]?.(
      x,
      withGetters(options, () => wg.gemm(large, large, null, { alpha: 3, out: other })),
    );
    expect(Array.from(options.out.data)).toEqual(Array.from(plainOptions.out.data));
  });
});
