/** Models of several nodes, against ONNX Runtime Web on the same bytes, and in a worker. */
import { createContext, runInContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { loadModel, type ModelResult } from 'wgemm/onnx';
import { createGemm as createInWorker } from 'wgemm/worker';
import { dynamicMlp, encoderBlock, int8Mlp, mlp, nbitsMlp } from '../../peers/onnx-graphs.mjs';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { Random } from '../support/tensors.js';
import { ort, wg } from '../support/with-ort.js';

interface Case {
  name: string;
  bytes: Uint8Array;
  /** Shapes of x: the batch is dynamic. */
  shapes: readonly (readonly number[])[];
  output: string;
  /** The bound of a difference, relative to 1 + |value|. 0: every bit must be the same. */
  bound: number;
}

const small = { heads: 4, size: 64, hidden: 96 };
const blocks = [
  [1, 7, 64],
  [3, 16, 64],
  [1, 1, 64],
];
const cases: Case[] = [
  {
    name: 'a network',
    bytes: mlp(),
    shapes: [
      [1, 784],
      [5, 784],
      [64, 784],
    ],
    output: 'scores',
    bound: 1e-5,
  },
  {
    name: 'a network in 8 bits',
    bytes: int8Mlp(),
    shapes: [
      [1, 40],
      [9, 40],
    ],
    output: 'y',
    bound: 0,
  },
  {
    name: 'a network that quantizes as it runs',
    bytes: dynamicMlp(),
    shapes: [
      [1, 3, 32],
      [2, 4, 32],
    ],
    output: 'y',
    bound: 1e-5,
  },
  {
    name: 'a network of 4-bit weights',
    bytes: nbitsMlp(),
    shapes: [
      [1, 64],
      [12, 64],
    ],
    output: 'y',
    bound: 1e-4,
  },
  {
    name: 'a block of an encoder',
    bytes: encoderBlock(small),
    shapes: blocks,
    output: 'y',
    bound: 1e-5,
  },
  {
    name: 'a block with the operator Gelu',
    bytes: encoderBlock({ ...small, gelu: 'op' }),
    shapes: blocks,
    output: 'y',
    bound: 1e-5,
  },
];

function inputOf(shape: readonly number[], seed: number) {
  const size = shape.reduce((product, n) => product * n, 1);
  const random = new Random(seed);
  return { data: Float32Array.from({ length: size }, () => 2 * random.next() - 1), shape };
}

function expectClose(
  found: ModelResult,
  wanted: { data: unknown; dims: readonly number[] },
  bound: number,
): void {
  expect(found.dtype).toBe('float32');
  expect(found.shape).toEqual(wanted.dims);
  const [mine, theirs] = [found.data as Float32Array, wanted.data as Float32Array];
  if (bound === 0) {
    expect(mine).toEqual(theirs);
    return;
  }
  let worst = 0;
  mine.forEach((value, i) => {
    const other = theirs[i] as number;
    worst = Math.max(worst, Math.abs(value - other) / (1 + Math.abs(other)));
  });
  expect(worst).toBeLessThan(bound);
}

describe.each(cases)('$name', ({ bytes, shapes, output, bound }) => {
  it('gives what ONNX Runtime Web gives', async () => {
    const session = await ort.createSession(bytes);
    const before = wg.memory().inUse;
    const model = await loadModel(bytes, { wg });
    for (const [i, shape] of shapes.entries()) {
      const x = inputOf(shape, i);
      const { [output]: y } = await model.run({ x });
      const wanted = (await session.run({ x: ort.tensor({ dtype: 'float32', ...x }) })) as Record<
        string,
        { data: unknown; dims: readonly number[] }
      >;
      expectClose(y as ModelResult, wanted[output] as never, bound);
    }
    model.dispose();
    expect(wg.memory().inUse).toBe(before);
  });

  it('gives the same in a worker, with threads and with its own instance', async () => {
    const x = inputOf(shapes[0] as number[], 1);
    const here = await loadModel(bytes, { determinism: 'strict' });
    const wanted = (await here.run({ x }))[output];
    here.dispose();
    const worker = await createInWorker({ determinism: 'strict', models: true });
    const there = await loadModel(bytes, { wg: worker });
    // Runs wait for each other, and the call copies its inputs.
    const again = { ...x, data: x.data.slice() };
    const runs = [there.run({ x: again }), there.run({ x })];
    again.data.fill(NaN);
    const [first, second] = (await Promise.all(runs)).map((result) => result[output]);
    expect(second).toEqual(first);
    expect(first).toEqual(wanted);
    there.dispose();
    expect((await worker.memory()).inUse).toBe(0);
    expect(worker.disposed).toBe(false);
    worker.dispose();
    const threaded = await loadModel(bytes, { determinism: 'strict', threads: 2 });
    expect((await threaded.run({ x }))[output]).toEqual(wanted);
    threaded.dispose();
  });
});

it('chosen outputs and their inputs are the same in a worker', async () => {
  const names = ['p', 'y'];
  const outputs = ['p'];
  const tensor = (name: string, shape: number[]) => ({
    ...{ name, dtype: 'float32', shape },
    data: inputOf(shape, 3).data,
  });
  const bytes = encodeGraph({
    nodes: [
      { op: 'MatMul', inputs: ['x', 'w'], outputs: ['p'] },
      { op: 'Relu', inputs: ['p'], outputs: ['y'] },
      { op: 'Nothing', inputs: ['p', 'z'], outputs: ['label'] },
    ],
    inputs: ['x', 'z'].map((name) => ({ name, dtype: 'float32' })),
    outputs: ['y', 'label'].map((name) => ({ name, dtype: 'float32' })),
    initializers: [tensor('w', [5, 4])],
  });
  const x = inputOf([3, 5], 1);
  const worker = await createInWorker({ determinism: 'strict', models: true });
  const there = await loadModel(bytes, { wg: worker, outputs: names });
  const here = await loadModel(bytes, { determinism: 'strict', outputs: names });
  const one = await loadModel(bytes, { wg: worker, outputs });
  expect(there.inputs).toEqual(here.inputs);
  expect(there.outputs).toEqual(here.outputs);
  for (const info of [...there.inputs, ...there.outputs, ...here.inputs])
    expect(Object.isFrozen(info)).toBe(true);
  const results = await there.run({ x });
  expect(results).toEqual(await here.run({ x }));
  expect(await one.run({ x })).toEqual({ p: results.p });
  await expect(loadModel(bytes, { wg: worker, outputs: ['label'] })).rejects.toMatchObject({
    code: 'UNSUPPORTED',
  });
  for (const model of [there, here, one]) model.dispose();
  expect((await worker.memory()).inUse).toBe(0);
  worker.dispose();
});

it('nodes that the worker refuses as one call run on their own', async () => {
  const product = { op: 'MatMulInteger', name: 'product', inputs: ['q', 'w', 'zero'] };
  const bytes = encodeGraph({
    nodes: [
      { op: 'DynamicQuantizeLinear', inputs: ['x'], outputs: ['q', 'scale', 'zero'] },
      { ...product, outputs: ['sums'] },
      { op: 'Cast', inputs: ['sums'], outputs: ['c'], attributes: { to: 1 } },
      { op: 'Mul', inputs: ['scale', 'several'], outputs: ['s'] },
      { op: 'Mul', inputs: ['c', 's'], outputs: ['p'] },
      { op: 'Add', inputs: ['p', 'several'], outputs: ['y'] },
    ],
    inputs: [{ name: 'x', dtype: 'float32', shape: ['m', 4] }],
    outputs: [{ name: 'y', dtype: 'float32' }],
    initializers: [
      { name: 'w', dtype: 'int8', shape: [4, 1], data: Int8Array.of(1, -2, 3, -4) },
      { name: 'several', dtype: 'float32', shape: [3], data: Float32Array.of(1, 2, 3) },
    ],
  });
  const worker = await createInWorker({ models: true });
  const there = await loadModel(bytes, { wg: worker });
  const here = await loadModel(bytes, { wg });
  const x = inputOf([5, 4], 1);
  const results = await there.run({ x });
  expect(results.y?.shape).toEqual([5, 3]);
  expect(results).toEqual(await here.run({ x }));
  for (const model of [there, here])
    expect(await model.explain({ x: [5, 4] })).toMatchObject([
      { node: 'product', op: 'MatMulInteger', fused: [] },
    ]);
  for (const model of [there, here]) model.dispose();
  expect((await worker.memory()).inUse).toBe(0);
  worker.dispose();
});

it('dispose() in a worker waits for earlier runs, frees all, and refuses later runs', async () => {
  const worker = await createInWorker({ models: true });
  const model = await loadModel(mlp(), { wg: worker });
  const x = inputOf([1, 784], 1);
  const runs = [model.run({ x }), model.run({ x })];
  model.dispose();
  expect(model.disposed).toBe(true);
  const [first, second] = await Promise.all(runs);
  expect(second).toEqual(first);
  await expect(model.run({ x })).rejects.toMatchObject({ code: 'DISPOSED' });
  expect((await worker.memory()).inUse).toBe(0);
  worker.dispose();
});

it('an instance without the operators of models is refused', async () => {
  const here = await createGemm();
  const there = await createInWorker();
  for (const wg of [here, there])
    await expect(loadModel(mlp(), { wg })).rejects.toThrow(
      'loadModel: wg has no operators of models; create it by createGemm({ models: true })',
    );
  here.dispose();
  there.dispose();
  for (const wg of [here, there])
    await expect(loadModel(mlp(), { wg })).rejects.toMatchObject({ code: 'DISPOSED' });
});

it('a worker of the script without models cannot have models', async () => {
  const url = import.meta.resolve('wgemm/assets/wgemm-worker.js');
  const worker = () => new Worker(new URL(url));
  await expect(createInWorker({ models: true, worker })).rejects.toThrow(
    'createGemm: worker() returned a worker of wgemm-worker.js; ' +
      'with models: true, it must return a worker of wgemm-models-worker.js',
  );
});

describe('a signal', () => {
  /** A chain of products that takes about 100 ms. */
  const chain = (count: number) => {
    const w = new Float32Array(512 * 512).fill(2 ** -9);
    return encodeGraph({
      nodes: Array.from({ length: count }, (_, i) => ({
        op: 'MatMul',
        inputs: [i === 0 ? 'x' : `y${i}`, 'w'],
        outputs: [i === count - 1 ? 'y' : `y${i + 1}`],
      })),
      inputs: [{ name: 'x', dtype: 'float32', shape: [512, 512] }],
      outputs: [{ name: 'y', dtype: 'float32' }],
      initializers: [{ name: 'w', dtype: 'float32', shape: [512, 512], data: w }],
    });
  };

  it('ends a run in a worker, which then goes on with other calls', async () => {
    const worker = await createInWorker({ models: true });
    const model = await loadModel(chain(400), { wg: worker });
    const x = inputOf([512, 512], 1);
    const wanted = await model.run({ x });
    const start = performance.now();
    await model.run({ x });
    const whole = performance.now() - start;
    const controller = new AbortController();
    const run = model.run({ x }, { signal: controller.signal });
    setTimeout(() => controller.abort(new Error('enough')), 20);
    await expect(run).rejects.toThrow('enough');
    const aborted = performance.now();
    await worker.memory(); // waits until the worker has ended the run
    expect(performance.now() - aborted).toBeLessThan(whole / 2);
    expect(await model.run({ x })).toEqual(wanted);
    model.dispose();
    expect((await worker.memory()).inUse).toBe(0);
    worker.dispose();
  });

  it('is refused if it is not an AbortSignal, and ends a run that has not begun', async () => {
    const worker = await createInWorker({ models: true });
    for (const options of [{ wg }, { wg: worker }]) {
      const model = await loadModel(mlp(), options);
      const x = inputOf([1, 784], 1);
      await expect(model.run({ x }, { signal: AbortSignal.abort('why') })).rejects.toBe('why');
      await expect(model.run({ x }, { signal: 1 as never })).rejects.toThrow(
        'run: signal must be an AbortSignal',
      );
      await expect(model.run({ x }, { time: 1 } as never)).rejects.toThrow(
        'run: the option "time" is not known; it must be one of signal',
      );
      await model.run({ x });
      model.dispose();
    }
    worker.dispose();
  });
});

it('a signal may end the model while a worker takes the run', async () => {
  const worker = await createInWorker({ models: true });
  const bytes = encodeGraph({
    nodes: [{ op: 'Relu', inputs: ['x'], outputs: ['y'] }],
    inputs: [{ name: 'x', dtype: 'float32' }],
    outputs: [{ name: 'y', dtype: 'float32' }],
  });
  const model = await loadModel(bytes, { wg: worker });
  const signal = {
    aborted: false,
    addEventListener: () => model.dispose(),
    removeEventListener: () => undefined,
  };
  await expect(model.run({ x: inputOf([3], 1) }, { signal })).rejects.toThrow(
    'run: the model or its instance is disposed; load the model again by loadModel()',
  );
  expect((await worker.memory()).inUse).toBe(0);
  worker.dispose();
});

describe('progress', () => {
  it('is 0 before the end, if constants have no elements', async () => {
    const bytes = encodeGraph({
      nodes: [{ op: 'Concat', inputs: ['x', 'c'], outputs: ['y'], attributes: { axis: 0 } }],
      inputs: [{ name: 'x', dtype: 'float32', shape: [1] }],
      outputs: [{ name: 'y', dtype: 'float32' }],
      initializers: [{ name: 'c', dtype: 'float32', shape: [0], data: new Float32Array(0) }],
    });
    const told: number[] = [];
    const model = await loadModel(bytes, { progress: (done) => told.push(done) });
    model.dispose();
    expect(told).toEqual([0, 1]);
  });

  it.each([
    ['begins', 0],
    ['ends', 1],
  ])('may end the instance when loading %s', async (_, least) => {
    for (const create of [createGemm, createInWorker]) {
      const instance = await create({ models: true });
      const progress = (done: number) => {
        if (done >= least) instance.dispose();
      };
      await expect(loadModel(mlp(), { wg: instance, progress })).rejects.toMatchObject({
        code: 'DISPOSED',
        op: 'loadModel',
        argument: 'instance',
      });
    }
  });

  it('grows to 1, in this thread and in a worker', async () => {
    const worker = await createInWorker({ models: true });
    for (const options of [{}, { wg }, { wg: worker }]) {
      const told: number[] = [];
      const model = await loadModel(mlp(), { ...options, progress: (done) => told.push(done) });
      model.dispose();
      expect(told.length).toBeGreaterThan(3);
      expect([...told].sort((a, b) => a - b)).toEqual(told);
      expect(told[0]).toBeLessThan(1);
      expect(told.at(-1)).toBe(1);
    }
    worker.dispose();
  });

  it('ends the loading if it throws, and frees all', async () => {
    const before = wg.memory().inUse;
    const worker = await createInWorker({ models: true });
    const progress = () => {
      throw new Error('no more');
    };
    for (const options of [{}, { wg }, { wg: worker }])
      await expect(loadModel(mlp(), { ...options, progress })).rejects.toThrow('no more');
    expect(wg.memory().inUse).toBe(before);
    await worker.memory(); // the worker has noticed by then
    expect((await worker.memory()).inUse).toBe(0);
    worker.dispose();
    await expect(loadModel(mlp(), { progress: 1 as never })).rejects.toThrow(
      'loadModel: progress is 1; it must be a function',
    );
  });
});

it('an instance that ends while the model is read is an error of the call', async () => {
  for (const create of [createGemm, createInWorker]) {
    const instance = await create({ models: true });
    const loading = loadModel(mlp(), { wg: instance });
    instance.dispose();
    await expect(loading).rejects.toThrow('loadModel: the instance is disposed; create another');
  }
});

describe('a timeout of vm while a run is recorded', () => {
  const own = { max: Math.max, isArray: Array.isArray, create: Object.create };
  afterEach(() => {
    Math.max = own.max;
    Array.isArray = own.isArray;
    Object.defineProperty(Object, 'create', { value: own.create });
  });

  it.each([
    [
      'in an operator',
      (spin: () => void) => {
        Math.max = (...ranks) => {
          if (ranks.join() === '2,2') spin(); // broadcasts the shapes
          return own.max(...ranks);
        };
      },
    ],
    [
      'in a product',
      (spin: () => void) => {
        const create = (prototype: object, properties?: PropertyDescriptorMap): unknown => {
          if (properties && 'compute' in properties) {
            Array.isArray = ((value: unknown) => {
              spin();
              return own.isArray(value);
            }) as typeof own.isArray;
          }
          return (own.create as typeof create)(prototype, properties);
        };
        Object.defineProperty(Object, 'create', { value: create });
      },
    ],
  ])('%s changes no later run and no later product', async (_, prepare) => {
    const bytes = encodeGraph({
      nodes: [
        { op: 'MatMul', inputs: ['x', 'x'], outputs: ['p'] },
        { op: 'Mul', inputs: ['p', 'p'], outputs: ['y'] },
      ],
      inputs: [{ name: 'x', dtype: 'float32' }],
      outputs: [{ name: 'y', dtype: 'float32' }],
    });
    const instance = await createGemm({ models: true });
    const [model, other] = [
      await loadModel(bytes, { wg: instance }),
      await loadModel(bytes, { wg }),
    ];
    const x = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] };
    const context = createContext({ run: () => void model.run({ x }) });
    prepare(() => {
      for (;;);
    });
    expect(() => void runInContext('run()', context, { timeout: 100 })).toThrow('timed out');
    Math.max = own.max;
    Array.isArray = own.isArray;
    Object.defineProperty(Object, 'create', { value: own.create });
    const product = instance.matmul(x, x);
    expect([...product.data]).toEqual([7, 10, 15, 22]);
    for (const each of [other, model])
      expect([...(await each.run({ x })).y!.data]).toEqual([49, 100, 225, 484]);
    other.dispose();
    instance.dispose();
  });
});

it('an instance that does not start while the model is read is an error of the call only', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  const external = { location: 'w.bin' };
  const bytes = encodeGraph({
    nodes: [{ op: 'Relu', inputs: ['w'], outputs: ['y'] }],
    outputs: [{ name: 'y', dtype: 'float32', shape: [2] }],
    initializers: [{ name: 'w', dtype: 'float32', shape: [2], external }],
  });
  const externalData = () =>
    new Promise<Uint8Array>((resolve) => {
      setTimeout(resolve, 50, new Uint8Array(8));
    });
  const loading = loadModel(bytes, { externalData, threads: -1 });
  await expect(loading).rejects.toMatchObject({ code: 'ARGUMENT', argument: 'threads' });
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

it('a proxy of an instance in a worker is refused', async () => {
  const worker = await createInWorker({ models: true });
  try {
    for (const made of [new Proxy(worker, {}), Object.create(worker) as typeof worker])
      await expect(loadModel(mlp(), { wg: made })).rejects.toThrow(/wg is an object; it must be/);
  } finally {
    worker.dispose();
  }
});
