/**
 * Which side finds an error of a call of `wgemm/worker`: the page finds every error of JavaScript
 * without a message to the worker, and the core's errors take exactly one message.
 */
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGemm as createHere, type Gemm } from 'wgemm';
import { createGemm, type WorkerGemm } from 'wgemm/worker';
import {
  call as callByName,
  changed,
  goodCalls,
  type Handles,
  handlesOf,
} from '../support/error-calls.js';
import {
  ofCore,
  ofElements,
  ofJavaScript,
  ofOperands,
  ofOverlaps,
  rowsIn,
  type Table,
} from '../support/error-cases.js';
import { expectError, rejected, thrown } from '../support/errors.js';
import { float32 } from '../support/tensors.js';

const script = new URL('wgemm-worker.js', import.meta.resolve('wgemm'));

let here: Gemm;
let wg: WorkerGemm;
let sent: string[];
let handles: Handles;
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
  handles = await handlesOf(wg, here);
});
beforeEach(() => {
  sent = [];
});
afterAll(() => {
  here.dispose();
  wg.dispose();
});

const tables: [what: string, table: Table, messages: number][] = [
  ['JavaScript', ofJavaScript, 0],
  ['JavaScript, for every operand', ofOperands, 0],
  ['the core', ofCore, 1],
  ['the core, for out', ofOverlaps, 1],
  ['the core, for the elements of A', ofElements, 1],
];

describe.each(tables)('found by %s', (_, table, messages) => {
  it.each(rowsIn(table))('%s: %s', async (name, message, [code, argument, changes]) => {
    const spoiled = typeof changes === 'function' ? changes(handles) : changes;
    const args = changed(goodCalls[name].args(), spoiled);
    const error = await rejected(callByName(wg, name, args) as Promise<unknown>);
    expect(sent.length, 'messages to the worker').toBe(messages);
    const op = goodCalls[name].method;
    expectError(error, { code, op, argument, says: [] });
    expect((error as Error).message).toBe(`${op}: ${message}`);
  });
});

type Method = 'gemm' | 'qgemm' | 'pack';

const square = () => float32([2, 2], 1, 2, 3, 4);

function call(instance: Gemm | WorkerGemm, method: Method, args: unknown[]): unknown {
  return (instance[method] as (...args: unknown[]) => unknown).apply(instance, args);
}

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

it('names the options of every call, too, if they are in the place of C', async () => {
  const error = await rejected(call(wg, 'gemm', [square(), square(), { transfer: true }]) as never);
  expect((error as Error).message).toBe(
    'gemm: C is an object with "transfer" and no data; it must be a tensor, { data, shape } or ' +
      'from alloc(); call gemm(a, b, c or null, options)',
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
