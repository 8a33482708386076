/** Recordings in a worker: the results and errors of recordings in `wgemm`, as promises. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm as createHere, type Gemm } from 'wgemm';
import {
  createGemm,
  type WorkerGemm,
  type WorkerRecordedCalls,
  WorkerRecording,
} from 'wgemm/worker';
import { expectError, expectSameError, rejected, thrown } from '../support/errors.js';
import { dispose, float32 } from '../support/tensors.js';

let here: Gemm;
let wg: WorkerGemm;
beforeAll(async () => {
  [here, wg] = await Promise.all([createHere({ threads: 1 }), createGemm()]);
});
afterAll(() => {
  here.dispose();
  wg.dispose();
});

type Calls = WorkerRecordedCalls;

async function held(shape: number[], ...numbers: number[]) {
  const tensor = await wg.alloc('float32', shape);
  if (numbers.length > 0) await tensor.write(Float32Array.from(numbers));
  return tensor;
}

it('computes its calls in each run, in the order of all calls', async () => {
  const [x, y, z] = [await held([2, 2], 1, 2, 3, 4), await held([2, 2]), await held([2, 2])];
  const weights = await wg.pack(float32([2, 2], 1, 0, 1, 1), { op: 'gemm' });
  const recording = await wg.record((calls) => {
    expect(calls.gemm(x, weights, 1, { out: y })).toBe(y);
    calls.matmul({ data: y, shape: [1, 2], offset: 2 }, x, null, {
      out: { data: z, shape: [1, 2], offset: 0 },
    });
  });
  expect(recording).toBeInstanceOf(WorkerRecording);
  expect(recording.length).toBe(2);
  expect([...(await y.read())]).toEqual([0, 0, 0, 0]);
  await recording.run();
  expect([...(await y.read())]).toEqual([4, 3, 8, 5]);
  expect([...(await z.read())]).toEqual([23, 36, 0, 0]);
  // Without waiting for each other.
  const [, , first, , , second] = await Promise.all([
    x.write(Float32Array.of(0, 1, 0, 1)),
    recording.run(),
    y.read(),
    x.write(Float32Array.of(1, 0, 0, 0)),
    recording.run({}),
    y.read(),
  ]);
  expect([...first]).toEqual([2, 2, 2, 2]);
  expect([...second]).toEqual([2, 1, 1, 1]);
  expect(recording.disposed).toBe(false);
  const { inUse } = await wg.memory();
  recording.dispose();
  recording[dispose]();
  expect(recording.disposed).toBe(true);
  expect((await wg.memory()).inUse).toBeLessThan(inUse);
  expectError(await rejected(recording.run()), {
    code: 'DISPOSED',
    op: 'run',
    argument: 'recording',
    says: ['the recording is disposed; record its calls again'],
  });
  for (const each of [x, y, z, weights]) each.dispose();
});

it('takes quantized calls, and reads scales in each run', async () => {
  const a = await wg.alloc('uint8', [1, 2]);
  await a.write(Uint8Array.of(5, 6));
  const b = await wg.alloc('int8', [2, 1]);
  await b.write(Int8Array.of(1, -2));
  const [bScale, out] = [await held([1], 0), await held([1, 1])];
  const recording = await wg.record((calls) => {
    calls.qgemm({ a, aScale: 0.5, aZeroPoint: 3, b, bScale }, { out });
  });
  expect(await rejected(recording.run())).toMatchObject({
    code: 'ARGUMENT',
    op: 'qgemm',
    argument: 'bScale',
    message: 'qgemm, call 1 of the recording: bScale is 0; a scale must be finite and above 0',
  });
  await bScale.write(Float32Array.of(4));
  await recording.run();
  expect((await out.read())[0]).toBe(-8);
  for (const each of [recording, a, b, bScale, out]) each.dispose();
});

it('ends when an operand is disposed of', async () => {
  const [x, y] = [await held([2, 2]), await held([2, 2])];
  const recording = await wg.record((calls) => {
    calls.gemm(x, x, null, { out: y });
  });
  await recording.run();
  const last = recording.run();
  x.dispose();
  await last;
  expect(await rejected(recording.run())).toMatchObject({
    code: 'DISPOSED',
    op: 'gemm',
    argument: 'A',
    message: 'gemm, call 1 of the recording: A is a disposed tensor',
  });
  recording.dispose();
  y.dispose();
});

describe('is refused as in wgemm:', () => {
  it.each([
    ['what is not a function', () => 5],
    ['a promise', () => () => Promise.resolve()],
    [
      'an error of the caller',
      () => () => {
        throw new RangeError('mine'); // prettier-ignore
      },
    ],
  ])('%s', async (name, make) => {
    const { inUse } = await wg.memory();
    const found = await rejected(wg.record(make() as () => void));
    const wanted = thrown(() => here.record(make() as () => void));
    if (name === 'an error of the caller') expect(found).toEqual(wanted);
    else expectSameError(found, wanted);
    expect((await wg.memory()).inUse).toBe(inUse);
  });

  it('wrong operands', async () => {
    const ours = here.alloc('float32', [2, 2]);
    const theirs = await held([2, 2]);
    const array = float32([2, 2], 1, 2, 3, 4);
    const option = { signal: new AbortController().signal };
    for (const [changes, more] of [
      [(x: object) => ({ a: { data: x, shape: [2, 3] } }), {}],
      [(x: object) => ({ a: { data: x, shape: [1, 3] } }), {}],
      [() => ({ b: array }), {}],
      [() => ({ out: undefined }), {}],
      [() => ({}), option],
    ] as [(x: object) => object, object][]) {
      const body = (x: object) => (calls: unknown) => {
        const { a, b, out } = { a: x, b: x, out: x, ...changes(x) } as unknown as Record<
          string,
          never
        >;
        (calls as Calls).gemm(a!, b!, null, { out: out!, ...more });
      };
      const found = await rejected(wg.record(body(theirs)));
      expectSameError(
        found,
        thrown(() => here.record(body(ours))),
      );
    }
    const foreign = (calls: unknown) => {
      (calls as Calls).gemm(ours as never, theirs, null, { out: theirs });
    };
    expectError(await rejected(wg.record(foreign)), {
      code: 'ARGUMENT',
      argument: 'A',
      says: ['A is a tensor of another instance'],
    });
    theirs.dispose();
    const gone = (calls: unknown) => {
      (calls as Calls).gemm(theirs, theirs, null, { out: theirs });
    };
    expectError(await rejected(wg.record(gone)), {
      code: 'DISPOSED',
      argument: 'A',
      says: ['A is a disposed tensor'],
    });
    ours.dispose();
  });
});

it('a signal ends runs that wait', async () => {
  const [x, y] = [await held([2, 2], 1, 1, 1, 1), await held([2, 2])];
  const recording = await wg.record((calls) => {
    calls.gemm(x, x, null, { out: y });
  });
  const controller = new AbortController();
  const { signal } = controller;
  const runs = [recording.run({ signal }), recording.run({ signal })];
  const reason = new Error('no longer needed');
  controller.abort(reason);
  for (const run of runs) expect(await rejected(run)).toBe(reason);
  expect(await rejected(wg.record(() => undefined, { signal }))).toBe(reason);
  await recording.run();
  expect((await y.read())[0]).toBe(2);
  expectError(await rejected(recording.run({ foo: 1 } as object)), {
    code: 'ARGUMENT',
    op: 'run',
    argument: 'foo',
    says: ['the option "foo" is not known'],
  });
  for (const each of [recording, x, y]) each.dispose();
});

it('ends with its instance', async () => {
  const own = await createGemm();
  const x = await own.alloc('float32', [2, 2]);
  const recording = await own
    .record((calls) => {
      calls.gemm(x, x, null, { out: { data: x, shape: [2, 2] } });
    })
    .catch(() => undefined); // out overlaps A
  expect(recording).toBeUndefined();
  const empty = await own.record(() => undefined);
  const pending = empty.run();
  own.dispose();
  for (const run of [pending, empty.run()])
    expect(await rejected(run)).toMatchObject({ code: 'DISPOSED', argument: 'instance' });
  expect(empty.disposed).toBe(true);
  empty.dispose();
});

it('is freed if the page drops it, and keeps its operands until then', async () => {
  const { inUse } = await wg.memory();
  const kept: { recording: WorkerRecording; y: Awaited<ReturnType<typeof held>> }[] = [];
  await (async () => {
    const [x, y] = [await held([2, 2], 1, 2, 3, 4), await held([2, 2])];
    const recording = await wg.record((calls) => {
      calls.gemm(x, x, null, { out: y });
    });
    kept.push({ recording, y });
  })();
  const collect = async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    (globalThis.gc as () => void)();
    await new Promise((resolve) => setTimeout(resolve, 5));
  };
  for (let i = 0; i < 5; ++i) await collect();
  await kept[0]!.recording.run();
  expect([...(await kept[0]!.y.read())]).toEqual([7, 10, 15, 22]);
  kept.pop();
  for (let i = 0; i < 400 && (await wg.memory()).inUse > inUse; ++i) await collect();
  expect((await wg.memory()).inUse).toBe(inUse);
});
