/**
 * Every error of every operation, by the table of error-cases.ts: here, in a worker, by `explain`,
 * and with operands in the heap. A call that is refused changes no array and keeps no memory, and
 * the next call gives the right result.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type DataArray, type Gemm } from 'wgemm';
import { createGemm as startWorker, type WorkerGemm } from 'wgemm/worker';
import { dtypeOf } from '../support/dtypes.js';
import {
  call,
  type CallName,
  changed,
  get,
  type GoodCall,
  goodCalls,
  type Handle,
  type Handles,
  handlesOf,
  type Instance,
  isExplained,
  type Named,
} from '../support/error-calls.js';
import {
  ofCore,
  ofElements,
  ofJavaScript,
  ofOperands,
  ofOverlaps,
  type Row,
  rowsIn,
  type Table,
} from '../support/error-cases.js';
import { expectError, rejected, thrown } from '../support/errors.js';
import { arraysIn, inHeap } from '../support/in-heap.js';

let wg: Gemm;
let other: Gemm;
let inWorker: WorkerGemm;
const calls = Object.keys(goodCalls) as CallName[];
/** What the good calls give before any bad one. */
const results = new Map<Instance, Record<CallName, unknown>>();

let ours: Handles;
let theirs: Handles;
beforeAll(async () => {
  [wg, other, inWorker] = await Promise.all([createGemm(), createGemm(), startWorker()]);
  [ours, theirs] = await Promise.all([handlesOf(wg, other), handlesOf(inWorker, wg)]);
  for (const instance of [wg, inWorker]) {
    const good = {} as Record<CallName, unknown>;
    for (const name of calls) good[name] = await resultOf(instance, name);
    results.set(instance, good);
  }
});
afterAll(() => {
  for (const each of [wg, other, inWorker]) each.dispose();
});

type Runs = readonly ('compute' | 'explain')[];
const runsOf = (name: CallName): Runs => (isExplained(name) ? ['compute', 'explain'] : ['compute']);

interface Result {
  data?: DataArray;
  shape?: readonly number[];
  serialize?: () => unknown;
  dispose?: () => void;
}

/** What a good call gives. */
async function resultOf(instance: Instance, name: CallName): Promise<unknown> {
  const y = (await call(instance, name, goodCalls[name].args())) as Result;
  if (!y.dispose) return name === 'explain' ? y : y.data;
  const result = y.serialize ? await y.serialize() : y.shape;
  y.dispose();
  return result;
}

/** The promise of a call, here or in a worker. */
// eslint-disable-next-line @typescript-eslint/require-await -- so that it rejects with what `run` throws
const settled = async (run: () => unknown) => run();

/** Makes a bad call, and expects its error and nothing else of it. */
async function expectRefused(
  instance: Instance,
  name: CallName,
  args: Named,
  message: string,
  [code, argument]: Row,
  runs: Runs,
): Promise<void> {
  const op = name === 'explain' ? name : goodCalls[name].method;
  // A detached array cannot be copied.
  const arrays = [...arraysIn(args)].filter(({ length }) => length > 0);
  const before = arrays.map((array) => array.slice());
  const { inUse } = await instance.memory();
  for (const run of runs) {
    const error = await rejected(settled(() => call(instance, name, args, run)));
    expectError(error, { code, op, argument, says: [] });
    expect((error as Error).message).toBe(`${op}: ${message}`);
  }
  expect(arrays.map((array) => array.slice())).toEqual(before);
  expect((await instance.memory()).inUse, 'bytes in use').toBe(inUse);
  const good = results.get(instance)?.[name];
  expect(await resultOf(instance, name), 'the next good call').toEqual(good);
}

/** Records a bad call. It is refused at once, or by its elements when the recording runs. */
function expectNotRecorded(
  name: CallName,
  args: Named,
  message: string,
  [code, argument]: Row,
): void {
  const { inUse } = wg.memory();
  let runs = false;
  const error = thrown(() => {
    using recording = wg.record((calls) => {
      call(calls as unknown as Instance, name, args);
    });
    runs = true;
    recording.run();
  });
  expect(error).toMatchObject({ code, op: name, argument });
  const title = runs ? `${name}, call 1 of the recording` : name;
  expect((error as Error).message).toBe(`${title}: ${message}`);
  if (code === 'SHAPE' || code === 'DTYPE') expect(runs).toBe(false);
  expect(wg.memory().inUse).toBe(inUse);
}

const argsOf = (name: CallName, [, , changes]: Row, handles: Handles): Named =>
  changed(goodCalls[name].args(), typeof changes === 'function' ? changes(handles) : changes);

const tables: [what: string, table: Table][] = [
  ['JavaScript finds', ofJavaScript],
  ['JavaScript finds in every operand:', ofOperands],
  ['the core finds', ofCore],
  ['the core finds if out overlaps an operand:', ofOverlaps],
  ['the core finds in the elements of A:', ofElements],
];

describe.each(tables)('%s', (_, table) => {
  it.each(rowsIn(table))('%s: %s', async (name, message, row) => {
    const runs = table === ofElements ? (['compute'] as const) : runsOf(name);
    await expectRefused(wg, name, argsOf(name, row, ours), message, row, runs);
    await expectRefused(inWorker, name, argsOf(name, row, theirs), message, row, runs);
    if (table === ofElements)
      expect(call(wg, name, argsOf(name, row, ours), 'explain')).toMatchObject({ op: name });
    if (table === ofJavaScript || table === ofOperands || name === 'deserialize') return;
    const [args, dispose] = inHeap(wg, argsOf(name, row, ours));
    await expectRefused(wg, name, args, message, row, runs);
    if (isExplained(name) && args.out !== undefined && arraysIn(args).size === 0)
      expectNotRecorded(name, args, message, row);
    dispose();
  });
});

const operands = calls.flatMap((name) =>
  Object.entries((goodCalls[name] as GoodCall).operands).map(
    ([key, argument]) => [name, argument, key] as const,
  ),
);

describe('an operand that only an instance here can have:', () => {
  it.each(operands)('%s: %s', async (name, argument, key) => {
    const good = get(goodCalls[name].args(), key) as { data?: DataArray } | DataArray | undefined;
    const { constructor } = (ArrayBuffer.isView(good) ? good : good?.data) ?? new Float32Array();
    const dtype = dtypeOf({ data: new (constructor as new (length: number) => DataArray)(0) });
    const gone = wg.alloc(dtype, [2, 2]);
    const data = gone.data;
    gone.dispose();
    const refuses = (value: unknown, code: Row[0], message: string) =>
      expectRefused(
        wg,
        name,
        changed(goodCalls[name].args(), { [key]: value }),
        message,
        [code, argument, {}],
        ['compute'],
      );
    await refuses(
      { data, shape: [2, 2] },
      'DISPOSED',
      `the data of ${argument} is a view of a tensor that was disposed`,
    );
    await refuses(
      theirs.tensor,
      'ARGUMENT',
      `${argument} is a tensor in a worker; it must be of this instance`,
    );
    await refuses(
      theirs.forGemm,
      'ARGUMENT',
      `${argument} is packed weights in a worker; it must be of this instance`,
    );
  });
});

describe('an instance that is disposed', () => {
  it.each(calls)('refuses %s', async (name) => {
    const [here, away] = await Promise.all([createGemm(), startWorker()]);
    for (const instance of [here, away]) {
      instance.dispose();
      for (const run of runsOf(name)) {
        const args = goodCalls[name].args();
        const error = await rejected(settled(() => call(instance, name, args, run)));
        // Here, `explain` reads the call as the operation does.
        const isExplain = run === 'explain' || name === 'explain';
        const { method } = goodCalls[name];
        const op = !isExplain ? method : instance === away ? 'explain' : method.replace('explain', 'gemm'); // prettier-ignore
        expectError(error, { code: 'DISPOSED', op, argument: 'instance', says: [] });
        const message = `${op}: the instance is disposed; create another with createGemm()`;
        expect((error as Error).message).toBe(message);
      }
    }
  });
});

it('the handles of the rows stay as they are', () => {
  for (const handles of [ours, theirs])
    for (const [name, handle] of Object.entries(handles) as [string, Handle][])
      expect(handle.disposed, name).toBe(name.startsWith('disposed'));
});
