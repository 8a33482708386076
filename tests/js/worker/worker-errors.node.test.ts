/**
 * The same wrong calls in `wgemm` and in `wgemm/worker`: both find the same error, and the page
 * finds it without a message to the worker.
 */
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createGemm as createHere, type Gemm } from 'wgemm';
import { createGemm, type WorkerGemm } from 'wgemm/worker';
import { expectSameError, rejected, thrown } from '../support/errors.js';
import { float32, int32 } from '../support/tensors.js';

const script = new URL('wgemm-worker.js', import.meta.resolve('wgemm'));

let here: Gemm;
let wg: WorkerGemm;
let sent: string[];
beforeAll(async () => {
  const worker = () => {
    const made = new Worker(script);
    const post = made.postMessage.bind(made);
    made.postMessage = (message: { kind: string }, transfer) => {
      sent.push(message.kind);
      post(message, transfer);
    };
    return made;
  };
  sent = [];
  [here, wg] = await Promise.all([createHere({ threads: 1 }), createGemm({ worker })]);
  [ours, theirs] = await Promise.all([handlesOf(here), handlesOf(wg)]);
});
beforeEach(() => {
  sent = [];
});
afterAll(() => {
  here.dispose();
  wg.dispose();
});

interface Disposable {
  dispose(): void;
}
interface Handles {
  tensor: object;
  weights: object;
  disposed: object;
  disposedWeights: object;
  foreign: object;
  foreignWeights: object;
}
let ours: Handles;
let theirs: Handles;

/** Handles of an instance, of each kind; the foreign ones are of another instance. */
async function handlesOf(instance: Gemm | WorkerGemm): Promise<Handles> {
  const alloc = async (from: Gemm | WorkerGemm) =>
    (await call(from, 'alloc', ['float32', [2, 2]])) as Disposable;
  const pack = async (from: Gemm | WorkerGemm) =>
    (await call(from, 'pack', [square(), { op: 'gemm' }])) as Disposable;
  const other = await createHere({ threads: 1 });
  const [disposed, disposedWeights] = [await alloc(instance), await pack(instance)];
  disposed.dispose();
  disposedWeights.dispose();
  return {
    tensor: await alloc(instance),
    weights: await pack(instance),
    disposed,
    disposedWeights,
    foreign: await alloc(other),
    foreignWeights: await pack(other),
  };
}

const square = () => float32([2, 2], 1, 2, 3, 4);
const eight = () => ({ data: Int8Array.of(1, 2, 3, 4), shape: [2, 2] });

function gone(): Float32Array {
  const array = new Float32Array(4);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

function revoked(target: object = {}): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** Never a tensor, and never the error of a getter. */
const badTensors: Record<string, (handles: Handles) => unknown> = {
  'a number': () => 5,
  'a text': () => 'x',
  nothing: () => undefined,
  'a symbol': () => Symbol('x'),
  'a function': () => () => 1,
  'an array': () => [1, 2],
  'a promise': () => Promise.resolve(),
  'a typed array': () => new Float32Array(4),
  'an array of a type that there is not': () => ({ data: new Uint8ClampedArray(4), shape: [4] }),
  'a DataView': () => ({ data: new DataView(new ArrayBuffer(8)), shape: [2] }),
  'a Uint16Array without a dtype': () => ({ data: new Uint16Array(4), shape: [2, 2] }),
  'a dtype of another array': () => ({ ...square(), dtype: 'int32' }),
  'no shape': () => ({ data: new Float32Array(4) }),
  'a negative size': () => ({ ...square(), shape: [2, -2] }),
  'a fraction in the shape': () => ({ ...square(), shape: [2, 2.5] }),
  'too many axes': () => ({ ...square(), shape: Array<number>(65).fill(1) }),
  'strides of another rank': () => ({ ...square(), strides: [1] }),
  'an offset that its array is too short for': () => ({ ...square(), offset: 4 }),
  'an order of another library': () => ({ ...square(), order: 'F' }),
  'a detached array': () => ({ data: gone(), shape: [2, 2] }),
  'a revoked proxy': () => revoked(),
  'a revoked proxy as data': () => ({ data: revoked(), shape: [2, 2] }),
  'a revoked proxy as shape': () => ({ data: new Float32Array(4), shape: revoked([2, 2]) }),
  'a proxy of a tensor': ({ tensor }) => new Proxy(tensor, {}),
  'what inherits from a tensor': ({ tensor }) => Object.create(tensor) as unknown,
  'a tensor that is disposed': ({ disposed }) => disposed,
  'a tensor of another instance': ({ foreign }) => foreign,
  'weights that are disposed': ({ disposedWeights }) => disposedWeights,
  'weights of another instance': ({ foreignWeights }) => foreignWeights,
};

type Method = 'gemm' | 'matmul' | 'qgemm' | 'pack' | 'explain' | 'alloc' | 'deserialize';
type Call = [method: Method, make: (handles: Handles) => unknown[]];

const wrong: Record<string, Call> = {};
for (const [what, make] of Object.entries(badTensors)) {
  wrong[`gemm: A is ${what}`] = ['gemm', (h) => [make(h), square(), null]];
  wrong[`gemm: B is ${what}`] = ['gemm', (h) => [square(), make(h), null]];
  wrong[`matmul: src is ${what}`] = ['matmul', (h) => [make(h), square(), null]];
  wrong[`qgemm: a is ${what}`] = ['qgemm', (h) => [{ ...quantized(), a: make(h) }]];
  wrong[`explain: A is ${what}`] = ['explain', (h) => ['gemm', make(h), square(), null]];
  wrong[`pack: B is ${what}`] = ['pack', (h) => [make(h), { op: 'gemm' }]];
  if (what === 'nothing') continue; // C, the bias and out may be left out
  if (what !== 'a number') wrong[`gemm: C is ${what}`] = ['gemm', (h) => [square(), square(), make(h)]]; // prettier-ignore
  wrong[`gemm: out is ${what}`] = ['gemm', (h) => [square(), square(), null, { out: make(h) }]];
}
function quantized() {
  return { a: eight(), aScale: 1, b: eight(), bScale: 1 };
}
const inputs: Record<string, unknown[]> = {
  aScale: [undefined, null, 'x', [1], { data: new Float32Array(1) }],
  aZeroPoint: [1.5, 300, 1n, [1], 'x'],
  bScale: [undefined, true, [1], Symbol('x')],
  c: [1.5, 2 ** 40, 'x', 5n, { data: [], shape: [] }],
  yZeroPoint: [-200, {}, revoked([])],
  foo: [1],
};
for (const [name, values] of Object.entries(inputs))
  for (const [i, value] of values.entries())
    wrong[`qgemm: ${name}, ${i}`] = ['qgemm', () => [{ ...quantized(), [name]: value }]];
for (const value of [5, null, undefined, 'x', revoked()])
  wrong[`qgemm: inputs, ${typeof value} ${value === null}`] = ['qgemm', () => [value]];

const options: Record<string, unknown[]> = {
  alpha: ['x', null, {}, Symbol('x')],
  transA: ['x', NaN, {}],
  opset: [1.5, '13'],
  activation: ['gelu', null, [1], [1, 'x'], [1, 2, 3], revoked([])],
  foo: [1],
};
for (const [name, values] of Object.entries(options))
  for (const [i, value] of values.entries())
    wrong[`gemm: ${name}, ${i}`] = ['gemm', () => [square(), square(), null, { [name]: value }]];
for (const [i, value] of [5, 'x', () => 1, Symbol('x'), revoked()].entries()) {
  wrong[`gemm: options, ${i}`] = ['gemm', () => [square(), square(), null, value]];
  wrong[`pack: options, ${i}`] = ['pack', () => [square(), value]];
}
Object.assign(wrong, {
  'gemm: a bigint with float32': ['gemm', () => [square(), square(), 5n]],
  'gemm: weights as A': ['gemm', (h) => [h.weights, square()]],
  'gemm: weights as C': ['gemm', (h) => [square(), square(), h.weights]],
  'matmul: outType': ['matmul', () => [square(), square(), null, { outType: 'int32' }]],
  'matmul: out and outType': [
    'matmul',
    () => [square(), square(), null, { out: int32([2, 2], 1, 2, 3, 4), outType: 'float32' }],
  ],
  'gemm: options as C': ['gemm', () => [square(), square(), { transA: 1 }]],
  'matmul: options as bias': ['matmul', () => [square(), square(), { outType: 'float32' }]],
  'qgemm: an option as input': ['qgemm', () => [{ ...quantized(), transB: true }]],
  'gemm: a nested array': ['gemm', () => [[[1, 2]], square()]],
  'gemm: an array as data': ['gemm', () => [{ data: [1], shape: [1, 1] }, square()]],
  'qgemm: an array as data': ['qgemm', () => [{ ...quantized(), a: { data: [], shape: [] } }]],
  'matmul: bias': ['matmul', () => [int32([1, 1], 1), int32([1, 1], 1), 0.5]],
  'qgemm: float32 as a': ['qgemm', () => [{ ...quantized(), a: square() }]],
  'pack: weights': ['pack', (h) => [h.weights, { op: 'gemm' }]],
  'pack: no op': ['pack', () => [square(), {}]],
  'pack: as': ['pack', () => [square(), { op: 'gemm', as: 'half' }]],
  'pack: trans': ['pack', () => [square(), { op: 'gemm', trans: 'yes' }]],
  'explain: op': ['explain', () => ['conv', square(), square()]],
  'explain: qgemm': ['explain', () => ['qgemm', {}]],
  'alloc: dtype': ['alloc', () => ['float', [1]]],
  'alloc: shape': ['alloc', () => ['float32', 5]],
  'alloc: a size': ['alloc', () => ['float32', [-1]]],
  'alloc: too large': ['alloc', () => ['float32', [2 ** 30, 2 ** 30]]],
  'deserialize: a text': ['deserialize', () => ['x']],
  'deserialize: another array': ['deserialize', () => [new Int8Array(4)]],
  'deserialize: a detached array': ['deserialize', () => [gone().buffer]],
} satisfies Record<string, Call>);

function call(instance: Gemm | WorkerGemm, method: Method, args: unknown[]): unknown {
  return (instance[method] as (...args: unknown[]) => unknown).apply(instance, args);
}

it.each(Object.entries(wrong))('%s', async (_, [method, make]) => {
  const wanted = thrown(() => call(here, method, make(ours)));
  const found = rejected(call(wg, method, make(theirs)) as Promise<unknown>);
  expectSameError(await found, wanted);
  expect(sent, 'messages to the worker').toEqual([]);
});

it.each(['gemm, A', 'gemm, out', 'gemm, options', 'qgemm, inputs', 'pack, options'])(
  'what a getter throws comes through: %s',
  async (place) => {
    const mine = new RangeError('mine');
    const throws = (name: string) => Object.defineProperty({ shape: [2, 2] }, name, { enumerable: true, get: () => { throw mine; } }); // prettier-ignore
    const calls: Record<string, [Method, unknown[]]> = {
      'gemm, A': ['gemm', [throws('data'), square()]],
      'gemm, out': ['gemm', [square(), square(), null, { out: throws('data') }]],
      'gemm, options': ['gemm', [square(), square(), null, new Proxy({}, { ownKeys: () => { throw mine; } })]], // prettier-ignore
      'qgemm, inputs': ['qgemm', [new Proxy({}, { get: () => { throw mine; } })]], // prettier-ignore
      'pack, options': ['pack', [square(), new Proxy({ op: 'gemm' }, { ownKeys: () => { throw mine; } })]], // prettier-ignore
    };
    const [method, args] = calls[place] as [Method, unknown[]];
    expect(thrown(() => call(here, method, args))).toBe(mine);
    expect(await rejected(call(wg, method, args) as Promise<unknown>)).toBe(mine);
    expect(sent).toEqual([]);
  },
);

it('names the options of every call, too, where C must be', async () => {
  const error = await rejected(call(wg, 'gemm', [square(), square(), { transfer: true }]) as never);
  expect((error as Error).message).toBe(
    'gemm: C is an object with transfer; options come fourth: gemm(a, b, null, { transfer })',
  );
});

it('each getter runs once, also with transfer', async () => {
  const reads: Record<string, number> = {};
  const counted = (what: string, properties: object) =>
    new Proxy(properties, {
      get(target, key) {
        if (typeof key === 'string' && key in target)
          reads[`${what}.${key}`] = 1 + (reads[`${what}.${key}`] ?? 0);
        return Reflect.get(target, key) as unknown;
      },
    });
  for (const transfer of [false, true]) {
    const result = await call(wg, 'gemm', [
      counted('a', square()),
      counted('b', square()),
      counted('c', square()),
      counted('options', { alpha: 2, beta: 1, transA: 0, transfer, signal: undefined }),
    ]);
    expect((result as { shape: number[] }).shape).toEqual([2, 2]);
    expect(
      Object.values(reads).every((count) => count === 1),
      JSON.stringify(reads),
    ).toBe(true);
    expect(Object.keys(reads)).toContain('options.transfer');
    for (const key of Object.keys(reads)) delete reads[key];
  }
});
