/** Models of several nodes, against ONNX Runtime Web on the same bytes, and in a worker. */
import { describe, expect, it } from 'vitest';
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
    const worker = await createInWorker({ determinism: 'strict' });
    const there = await loadModel(bytes, { wg: worker });
    // Runs wait for each other, and the call copies its inputs.
    const again = { ...x, data: x.data.slice() };
    const runs = [there.run({ x: again }), there.run({ x })];
    again.data.fill(NaN);
    const [first, second] = (await Promise.all(runs)).map((result) => result[output]);
    expect(second).toEqual(first);
    // In a worker, JavaScript computes the operators around products: other last bits.
    const { data, shape } = wanted as ModelResult;
    expectClose(first as ModelResult, { data, dims: shape }, bound && 1e-5);
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
  const worker = await createInWorker({ determinism: 'strict' });
  const there = await loadModel(bytes, { wg: worker, outputs: names });
  const here = await loadModel(bytes, { determinism: 'strict', outputs: names });
  const one = await loadModel(bytes, { wg: worker, outputs });
  expect(there.inputs).toEqual(here.inputs);
  expect(there.outputs).toEqual(here.outputs);
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
  const worker = await createInWorker();
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

it('dispose() while a run waits for a worker frees all, and later runs are refused', async () => {
  const worker = await createInWorker();
  const model = await loadModel(mlp(), { wg: worker });
  const x = inputOf([1, 784], 1);
  const runs = [model.run({ x }), model.run({ x })].map((run) =>
    run.catch((error: unknown) => error),
  );
  model.dispose();
  for (const result of await Promise.all(runs)) expect(result).toMatchObject({ code: 'DISPOSED' });
  await expect(model.run({ x })).rejects.toMatchObject({ code: 'DISPOSED' });
  expect((await worker.memory()).inUse).toBe(0);
  worker.dispose();
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
  const worker = await createInWorker();
  try {
    for (const made of [new Proxy(worker, {}), Object.create(worker) as typeof worker])
      await expect(loadModel(mlp(), { wg: made })).rejects.toThrow(/wg is an object; it must be/);
  } finally {
    worker.dispose();
  }
});
