/** What consoles and `String()` show of instances, tensors and weights, in both entries. */
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type DType, type Gemm, type PackOptions } from 'wgemm';
import { createGemm as startWorker, type WorkerGemm } from 'wgemm/worker';
import { float32 } from '../support/tensors.js';

const ramp = (shape: readonly number[]) =>
  float32(
    shape,
    ...Array.from({ length: shape.reduce((product, n) => product * n, 1) }, (_, i) => i),
  );

let here: Gemm;
let inWorker: WorkerGemm;
beforeAll(async () => {
  [here, inWorker] = await Promise.all([
    createGemm({ threads: 1 }),
    startWorker({ determinism: 'strict' }),
  ]);
});
afterAll(() => {
  here.dispose();
  inWorker.dispose();
});

const pack = (wg: Gemm | WorkerGemm, b: object, options: object) =>
  (wg as WorkerGemm).pack(b as never, options as PackOptions);

/** The text of an object, which all ways to show it must share. */
function textOf(object: unknown): string {
  const text = String(object);
  expect(inspect(object)).toBe(text);
  expect(inspect(object, { colors: true, depth: 0 })).toBe(text);
  expect(inspect(object, { depth: null })).toBe(text);
  return text;
}
const linesOf = (object: unknown) => textOf(object).split('\n');

describe('an instance', () => {
  it('shows its build, its best kernel and its memory', () => {
    const held = here.alloc('float32', [100]);
    const [first, kernel, memory, ...more] = linesOf(here);
    const { version, build } = here.info;
    expect(first).toBe(`Gemm ${version}: ${build}, fast, threads 1`);
    expect(kernel).toMatch(/^ {2}best kernel: f32_[2-9]x\d+__/);
    const preferred = here.info.kernels.filter((k) => k.preferred).map((k) => k.name);
    expect(preferred).toContain(kernel?.split(': ')[1]);
    const { inUse, committed } = here.memory();
    expect(memory).toBe(`  memory: ${inUse} bytes in use, ${committed} committed`);
    expect(more).toEqual([]);
    held.dispose();
  });

  it('of a worker says how to ask for its memory', () => {
    const [first, kernel, memory, ...more] = linesOf(inWorker);
    const { version, build } = inWorker.info;
    expect(first).toBe(`WorkerGemm ${version}: ${build}, strict, threads 1`);
    expect(kernel).toMatch(/^ {2}best kernel: f32_[2-9]x\d+__/);
    expect(memory).toContain('await memory()');
    expect(more).toEqual([]);
  });

  it.each([
    ['Gemm', createGemm],
    ['WorkerGemm', startWorker],
  ])('that is disposed says so: %s', async (name, create) => {
    const wg: Gemm | WorkerGemm = await create();
    const tensor = await wg.alloc('float32', [2, 3]);
    const weights = await pack(wg, ramp([3, 2]), { op: 'gemm' });
    wg.dispose();
    expect(textOf(wg)).toMatch(new RegExp(`^${name} .*threads 1, disposed$`));
    expect(textOf(tensor)).toMatch(/float32 \[2, 3\], 24 bytes, disposed$/);
    expect(textOf(weights)).toMatch(/float32 \[3, 2\], \d+ bytes, disposed$/);
  });
});

describe('a tensor', () => {
  it.each<[DType, readonly number[], (i: number) => number | bigint, string, string]>([
    ['float32', [2, 3], (i) => i / 2, '[2, 3], 24', 'Float32Array [0, 0.5, 1, 1.5, 2, 2.5]'],
    ['int8', [2, 4], (i) => -i, '[2, 4], 8', 'Int8Array [0, -1, -2, -3, -4, -5, -6, -7]'],
    ['int64', [9], BigInt, '[9], 72', 'BigInt64Array [0, 1, 2, 3, 4, 5, 6, 7, ...]'],
    ['bfloat16', [2], (i) => 16256 + i, '[2], 4', 'Uint16Array [16256, 16257]'],
    ['float64', [], () => 1234567.5, '[], 8', 'Float64Array [1234567.5]'],
    ['uint32', [5, 0], () => 0, '[5, 0], 0', 'Uint32Array []'],
  ])('shows its first elements: %s %j', (dtype, shape, element, size, elements) => {
    const tensor = here.alloc(dtype, shape);
    const { data } = tensor;
    for (let i = 0; i < data.length; ++i) data[i] = element(i);
    expect(linesOf(tensor)).toEqual([
      `HeapTensor ${dtype} ${size} bytes`,
      `  data: ${elements}`,
      '  read data again after each call',
    ]);
    tensor.dispose();
    expect(textOf(tensor)).toBe(`HeapTensor ${dtype} ${size} bytes, disposed`);
  });

  it('in a worker says how to read it', async () => {
    const tensor = await inWorker.alloc('int32', [2, 5]);
    const [first, read, write, ...more] = linesOf(tensor);
    expect(first).toBe('WorkerTensor int32 [2, 5], 40 bytes');
    expect(read).toContain('await read()');
    expect(write).toContain('await write(data)');
    expect(more).toEqual([]);
    tensor.dispose();
    expect(textOf(tensor)).toBe('WorkerTensor int32 [2, 5], 40 bytes, disposed');
  });
});

describe('packed weights', () => {
  it.each(['HeapTensor', 'WorkerTensor'])('next to a %s show what they are for', async (kind) => {
    const wg = kind === 'HeapTensor' ? here : inWorker;
    const name = kind === 'HeapTensor' ? 'PackedWeights' : 'WorkerWeights';
    const eight = { data: new Int8Array(6), shape: [3, 2] };
    for (const [weights, type, use] of [
      [
        await pack(wg, ramp([2, 3, 2]), { op: 'matmul', as: 'float16' }),
        'float16 [2, 3, 2]',
        'gemm and matmul',
      ],
      [await pack(wg, eight, { op: 'qgemm' }), 'int8 [3, 2]', 'qgemm'],
    ] as const) {
      const [first, second, third, ...more] = linesOf(weights);
      expect(first).toBe(`${name} ${type}, ${weights.byteLength} bytes`);
      expect(second).toBe(`  for ${use}`);
      expect(third).toContain(kind === 'HeapTensor' ? ' serialize()' : 'await serialize()');
      expect(more).toEqual([]);
      weights.dispose();
      expect(textOf(weights)).toBe(`${first}, disposed`);
    }
  });
});

it('shows one line inside another object', () => {
  const tensor = here.alloc('float32', [2]);
  const weights = here.pack(ramp([3, 2]), { op: 'gemm' });
  const nested = (object: unknown) => inspect(object, { breakLength: Infinity });
  expect(nested({ tensor })).toBe(`{ tensor: ${linesOf(tensor)[0]} }`);
  expect(nested({ layer: [weights] })).toBe(`{ layer: [ ${linesOf(weights)[0]} ] }`);
  expect(nested([{ here }, inWorker])).toBe(
    `[ { here: ${linesOf(here)[0]} }, ${linesOf(inWorker)[0]} ]`,
  );
  tensor.dispose();
  weights.dispose();
});

it('never throws, also for a proxy or an object that only inherits', async () => {
  const objects = [
    here.alloc('float32', [2]),
    here.pack(ramp([3, 2]), { op: 'gemm' }),
    here,
    await inWorker.alloc('float32', [2]),
    await inWorker.pack(ramp([3, 2]), { op: 'gemm' }),
    inWorker,
  ];
  for (const object of objects) {
    const { name } = object.constructor;
    const prototype = Object.getPrototypeOf(object) as object;
    expect(`${prototype as unknown as string}`).toBe(name);
    expect(inspect(prototype)).toContain('{');
    expect(textOf(Object.create(object))).toBe(name);
    expect(textOf(new Proxy(object, {}))).toBe(name);
  }
});

it('adds no property that one can list, and no JSON', async () => {
  const text = Symbol.for('nodejs.util.inspect.custom');
  for (const object of [
    here,
    here.alloc('int32', [1]),
    inWorker,
    await inWorker.alloc('int32', [1]),
  ]) {
    const all = [];
    for (const key in object) all.push(key);
    expect(all).not.toContain('toString');
    expect(Reflect.ownKeys(object)).not.toContain(text);
    expect(Object.prototype.propertyIsEnumerable.call(Object.getPrototypeOf(object), text)).toBe(
      false,
    );
    expect(JSON.stringify(object)).not.toContain('HeapTensor');
  }
});
