/** Recordings: many calls by one call of the core, with the bits and errors of the calls. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGemm,
  type DataArray,
  DisposedError,
  type Gemm,
  type HeapTensor,
  OutOfMemoryError,
  type RecordedCalls,
  Recording,
} from 'wgemm';
import {
  call,
  type CallName,
  goodCalls,
  type Instance,
  isExplained,
  type Named,
} from '../support/error-calls.js';
import { expectError, thrown } from '../support/errors.js';
import { hasThreads } from '../support/fixed-problems.js';
import { inHeap } from '../support/in-heap.js';
import { dispose, float32, Random } from '../support/tensors.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

type Calls = RecordedCalls;
const products = (Object.keys(goodCalls) as CallName[]).filter(isExplained);
const copyOf = ({ data }: HeapTensor) => data.slice();

/** A tensor in the heap with these float32 numbers. */
function held(shape: readonly number[], ...numbers: number[]): HeapTensor<Float32Array> {
  const tensor = wg.alloc('float32', shape);
  if (numbers.length > 0) tensor.data.set(numbers);
  return tensor;
}

/** Records a call of an operation by its arguments. */
const recordOne = (name: CallName, args: Named) =>
  wg.record((calls) => {
    expect(call(calls as unknown as Instance, name, args)).toBe(args.out);
  });

describe('a recording', () => {
  it.each(products)('of %s has the bits of the call, in each run', (name) => {
    const { inUse } = wg.memory();
    const [args, drop] = inHeap(wg, goodCalls[name].args());
    const out = args.out as HeapTensor;
    const before = copyOf(out);
    const recording = recordOne(name, args);
    expect(recording).toBeInstanceOf(Recording);
    expect(recording.length).toBe(1);
    expect(out.data).toEqual(before); // nothing was computed
    const factor = (args.a ?? args.src) as HeapTensor;
    for (let round = 0; round < 3; ++round) {
      call(wg, name, args);
      const wanted = copyOf(out);
      expect(wanted).not.toEqual(before);
      (out.data as Float32Array).set(before as Float32Array);
      recording.run();
      expect(out.data).toEqual(wanted);
      (out.data as Float32Array).set(before as Float32Array);
      (factor.data as Uint8Array)[round] = round + 7;
    }
    recording.dispose();
    drop();
    expect(wg.memory().inUse).toBe(inUse);
  });

  it('of calls that follow each other computes them in their order', () => {
    const [x, w] = [held([1, 2], 1, 2), held([2, 2], 1, -1, 1, 1)];
    const [h, g, y] = [held([1, 2]), held([1, 2]), held([1, 2])];
    const recording = wg.record((calls) => {
      calls.matmul(x, w, null, { out: h, activation: 'relu' });
      calls.gemm(h, w, h, { out: g });
      calls.matmul(g, w, 0.5, { out: y, alpha: 2 });
    });
    expect(recording.length).toBe(3);
    recording.run();
    // h = [3, 1]; g = h + [4, -2] = [7, -1]; y = 2 * [6, -8] + 0.5
    expect(Array.from(y.data)).toEqual([12.5, -15.5]);
    x.data.set([0, 1]);
    recording.run();
    expect(Array.from(y.data)).toEqual([8.5, -3.5]);
    recording[dispose]();
    expect(recording.disposed).toBe(true);
  });

  it('takes views, packed weights, numbers and C that is out', () => {
    const all = held([4, 4], ...Array.from({ length: 16 }, (_, i) => i));
    const left = { data: all, shape: [4, 2], strides: [4, 1], offset: 1 };
    const w = held([2, 3], 1, 2, 3, 4, 5, 6);
    const weights = wg.pack(w, { op: 'gemm' });
    const [y, wanted] = [held([4, 3]), held([4, 3])];
    const calls = (each: Calls, out: HeapTensor<Float32Array>) => {
      each.gemm(left, weights, 3, { out, alpha: 0.5 });
      each.gemm(left, w, out, { out: { data: out, shape: [4, 3] }, beta: 2 });
      each.matmul({ ...left, offset: 0 }, weights, null, { out });
    };
    calls(wg as unknown as Calls, wanted);
    const recording = wg.record((each) => {
      calls(each, y);
    });
    recording.run();
    expect(y.data).toEqual(wanted.data);
    recording.dispose();
  });

  it('of no calls runs', () => {
    const { inUse } = wg.memory();
    using recording = wg.record(() => undefined);
    expect(recording.length).toBe(0);
    recording.run();
    recording.dispose();
    expect(wg.memory().inUse).toBe(inUse);
  });

  it('reads scales and zero points in each run, also if they were not valid before', () => {
    const [args, drop] = inHeap(wg, goodCalls.qgemm.args());
    const [aScale, bZeroPoint] = [args.aScale, args.bZeroPoint] as [HeapTensor, HeapTensor];
    const out = args.out as HeapTensor<Float32Array>;
    const x = held([1, 1], 3);
    const first = held([1, 1]);
    (aScale.data as Float32Array)[0] = 0;
    const recording = wg.record((calls) => {
      calls.gemm(x, x, null, { out: first });
      call(calls as unknown as Instance, 'qgemm', args);
    });
    for (const round of [1, 2]) {
      first.data[0] = 0;
      const error = thrown(() => recording.run());
      expect(error).toMatchObject({ code: 'ARGUMENT', op: 'qgemm', argument: 'aScale' });
      expect((error as Error).message).toBe(
        'qgemm, call 2 of the recording: aScale is 0; a scale must be finite and above 0',
      );
      expect(first.data[0]).toBe(9); // the calls before it were computed
      (aScale.data as Float32Array)[0] = round === 1 ? -0 : 0.5;
    }
    for (const zeroPoint of [7, -100]) {
      (bZeroPoint.data as Int8Array)[0] = zeroPoint;
      call(wg, 'qgemm', args);
      const wanted = copyOf(out);
      out.data.fill(0);
      recording.run();
      expect(out.data).toEqual(wanted);
    }
    recording.dispose();
    drop();
  });

  it('takes scales as numbers, whose values run() checks', () => {
    const [args, drop] = inHeap(wg, goodCalls.matmulIntegerToFloat.args());
    const out = args.out as HeapTensor<Float32Array>;
    const numbers = { ...args, aScale: 0.125, aZeroPoint: 2, bScale: 3, bZeroPoint: 1 };
    call(wg, 'matmulIntegerToFloat', numbers);
    const wanted = copyOf(out);
    out.data.fill(0);
    using recording = recordOne('matmulIntegerToFloat', numbers);
    recording.run();
    expect(out.data).toEqual(wanted);
    using bad = recordOne('matmulIntegerToFloat', { ...numbers, aScale: Infinity });
    expect((thrown(() => bad.run()) as Error).message).toBe(
      'matmulIntegerToFloat, call 1 of the recording: aScale is infinite; a scale must be finite',
    );
    drop();
  });

  it('survives the growth of the memory', () => {
    const [x, y] = [held([2, 2], 1, 2, 3, 4), held([2, 2])];
    using recording = wg.record((calls) => {
      calls.gemm(x, x, null, { out: y });
    });
    const { committed } = wg.memory();
    const large = wg.alloc('uint8', [committed]);
    expect(wg.memory().committed).toBeGreaterThan(committed);
    recording.run();
    expect(Array.from(y.data)).toEqual([7, 10, 15, 22]);
    large.dispose();
    recording.run();
    expect(Array.from(y.data)).toEqual([7, 10, 15, 22]);
  });

  it('does not disturb calls, nor they the recording', () => {
    const [x, y] = [held([2, 2], 1, 2, 3, 4), held([2, 2])];
    const run = () => {
      y.data.fill(0);
      wg.gemm(x, x, null, { out: y });
      return Array.from(y.data);
    };
    const wanted = run();
    using recording = wg.record((calls) => {
      for (let i = 0; i < 20; ++i) calls.gemm(x, x, i, { out: y, alpha: i });
      calls.gemm(x, x, null, { out: y });
    });
    expect(run()).toEqual(wanted);
    y.data.fill(0);
    recording.run();
    expect(Array.from(y.data)).toEqual(wanted);
    expect(run()).toEqual(wanted);
  });

  it('of large products has the bits of calls on several threads', async () => {
    const threaded = await createGemm({ threads: hasThreads ? 2 : 1 });
    const random = new Random(5);
    const n = 192;
    const make = () => {
      const tensor = threaded.alloc('float32', [n, n]);
      random.fill(tensor.data);
      return tensor;
    };
    const [a, b, first, second] = [make(), make(), make(), make()];
    const weights = threaded.pack(b, { op: 'gemm' });
    const calls = (each: Calls) => {
      each.gemm(a, b, first, { out: first, activation: 'relu6' });
      each.matmul(first, weights, null, { out: second });
    };
    const before = first.data.slice();
    calls(threaded as unknown as Calls);
    const wanted = [first.data.slice(), second.data.slice()];
    const recording = threaded.record(calls);
    for (let round = 0; round < 2; ++round) {
      first.data.set(before);
      recording.run();
      expect([first.data, second.data]).toEqual(wanted);
    }
    threaded.dispose();
  });
});

describe('too little memory', () => {
  it('for a recording, and for its plans, is an OutOfMemoryError that leaves all as it was', async () => {
    const small = await createGemm({ maxMemory: 2 ** 20 });
    const x = small.alloc('float32', [64, 64]);
    const y = small.alloc('float32', [64, 64]);
    x.data.fill(1);
    const make = () =>
      small.record((calls) => {
        for (let i = 0; i < 10; ++i) calls.gemm(x, x, null, { out: y });
      });
    const recording = make();
    const { inUse } = small.memory();
    const blocks: HeapTensor[] = [];
    for (let bytes = 2 ** 20; bytes >= 64; bytes /= 2) {
      try {
        for (;;) blocks.push(small.alloc('uint8', [bytes]));
      } catch (error) {
        expect(error).toBeInstanceOf(OutOfMemoryError);
      }
    }
    expectError(thrown(make), {
      code: 'OUT_OF_MEMORY',
      op: 'record',
      argument: '',
      says: ['memory'],
    });
    const error = thrown(() => recording.run());
    expect(error).toBeInstanceOf(OutOfMemoryError);
    expect((error as Error).message).toMatch(/^gemm, call 1 of the recording: .*bytes/);
    for (const block of blocks) block.dispose();
    expect(small.memory().inUse).toBe(inUse);
    recording.run();
    expect(y.data[9]).toBe(64);
    small.dispose();
  });

  it('for scratch is an error only if it is one of the call', async () => {
    const [m, n, k] = [64, 512, 512];
    const bytes = 4 * (m * k + k * n + 2 * m * n);
    const small = await createGemm({ maxMemory: bytes + 100_000, threads: hasThreads ? 2 : 1 });
    const random = new Random(3);
    const make = (rows: number, columns: number) => {
      const tensor = small.alloc('float32', [rows, columns]);
      random.fill(tensor.data);
      return tensor;
    };
    const [a, b, wanted, y] = [make(m, k), make(n, k), make(m, n), make(m, n)];
    const run = () => small.gemm(a, b, null, { transB: true, out: wanted });
    const recording = small.record((calls) => {
      calls.gemm(a, b, null, { transB: true, out: y });
    });
    let error: unknown;
    try {
      run();
    } catch (found) {
      error = found;
    }
    if (error === undefined) {
      recording.run();
      expect(y.data).toEqual(wanted.data);
    } else {
      expect(thrown(() => recording.run())).toBeInstanceOf(OutOfMemoryError);
    }
    small.dispose();
  });
});

describe('an operand that was disposed of', () => {
  const rows: [name: string, operand: 'A' | 'B' | 'C' | 'out', found: string][] = [
    ['a tensor', 'A', 'a disposed tensor'],
    ['weights', 'B', 'disposed weights'],
    ['the tensor of a view', 'C', 'a disposed tensor'],
    ['out', 'out', 'a disposed tensor'],
  ];
  it.each(rows)('%s: run() computes nothing and names the call', (_, operand, found) => {
    const { inUse } = wg.memory();
    const x = held([2, 2], 1, 2, 3, 4);
    const first = held([2, 2]);
    const operands = {
      A: held([2, 2]),
      B: wg.pack(x, { op: 'gemm' }),
      C: held([2]),
      out: held([2, 2]),
    };
    const recording = wg.record((calls) => {
      calls.gemm(x, x, null, { out: first });
      const c = { data: operands.C, shape: [1, 2] };
      calls.gemm(operands.A, operands.B, c, { out: operands.out });
    });
    recording.run();
    held([4]).dispose(); // another tensor
    recording.run();
    operands[operand].dispose();
    wg.alloc('float32', [2, 2]).dispose();
    for (let round = 0; round < 2; ++round) {
      first.data.fill(0);
      const error = thrown(() => recording.run());
      expect(error).toBeInstanceOf(DisposedError);
      expect(error).toMatchObject({ op: 'gemm', argument: operand });
      expect((error as Error).message).toBe(
        `gemm, call 2 of the recording: ${operand} is ${found}`,
      );
      expect(Array.from(first.data)).toEqual([0, 0, 0, 0]);
    }
    for (const each of [recording, x, first, ...Object.values(operands)]) each.dispose();
    expect(wg.memory().inUse).toBe(inUse);
  });

  it('while the calls are recorded', () => {
    const [x, y] = [held([2, 2]), held([2, 2])];
    const recording = wg.record((calls) => {
      calls.gemm(x, x, null, { out: y });
      x.dispose();
      expect(thrown(() => calls.gemm(x, x, null, { out: y }))).toBeInstanceOf(DisposedError);
    });
    expect(recording.length).toBe(1);
    expect(thrown(() => recording.run())).toMatchObject({ code: 'DISPOSED', argument: 'A' });
    recording.dispose();
  });
});

describe('dispose()', () => {
  it('of a recording frees its memory, once', () => {
    const [x, y] = [held([2, 2]), held([2, 2])];
    const { inUse } = wg.memory();
    const recording = wg.record((calls) => {
      for (let i = 0; i < 5; ++i) calls.gemm(x, x, null, { out: y });
    });
    recording.run();
    expect(wg.memory().inUse).toBeGreaterThan(inUse);
    expect(recording.disposed).toBe(false);
    recording.dispose();
    recording.dispose();
    expect(recording.disposed).toBe(true);
    expect(wg.memory().inUse).toBe(inUse);
    expectError(
      thrown(() => recording.run()),
      {
        code: 'DISPOSED',
        op: 'run',
        argument: 'recording',
        says: ['the recording is disposed; record its calls again'],
      },
    );
  });

  it('of the instance ends its recordings', async () => {
    const own = await createGemm();
    const x = own.alloc('float32', [2, 2]);
    const recording = own.record((calls) => {
      calls.gemm(x, x, null, { out: own.alloc('float32', [2, 2]) });
    });
    recording.run();
    own.dispose();
    expect(recording.disposed).toBe(true);
    const wanted = { code: 'DISPOSED', argument: 'instance', says: ['disposed'] } as const;
    expectError(
      thrown(() => recording.run()),
      { ...wanted, op: 'run' },
    );
    expectError(
      thrown(() => own.record(() => undefined)),
      { ...wanted, op: 'record' },
    );
    recording.dispose();
  });

  it('keeps nothing over many recordings', () => {
    const [x, y] = [held([4, 4]), held([4, 4])];
    const { inUse, committed } = wg.memory();
    for (let i = 0; i < 1000; ++i) {
      using recording = wg.record((calls) => {
        for (let j = 0; j < 10; ++j) calls.gemm(x, x, null, { out: y });
      });
      recording.run();
    }
    expect(wg.memory()).toEqual({ inUse, committed });
  });
});

describe('record() refuses', () => {
  const loose = (body: unknown) => () => wg.record(body as (calls: Calls) => void);
  const rule = 'in a recording it must be a tensor from alloc(), or a view of one';
  const others = ', or packed weights or a number where the call takes them';
  const array = () => float32([2, 2], 1, 2, 3, 4);

  it.each([
    ['A', () => ({ a: array() }), 'in a Float32Array'],
    ['B', () => ({ b: array() }), 'in a Float32Array'],
    ['C', () => ({ c: array() }), 'in a Float32Array'],
    ['A', () => ({ a: { data: held([2, 2]).data, shape: [2, 2] } }), 'in a Float32Array'],
    ['out', () => ({ out: array() }), 'in a Float32Array'],
    ['out', () => ({ out: undefined }), 'undefined'],
  ])('%s in an array, or no out', (argument, changes, found) => {
    const { inUse } = wg.memory();
    const x = held([2, 2]);
    const { a, b, c, out } = { a: x, b: x, c: x, out: x, ...changes() } as unknown as Record<
      string,
      never
    >;
    const error = thrown(() => wg.record((calls) => calls.gemm(a!, b!, c, { out: out! })));
    const allowed = `${rule}${argument === 'out' ? '' : others}`;
    expectError(error, {
      code: 'ARGUMENT',
      argument,
      says: [`${argument} is ${found}; ${allowed}`],
    });
    x.dispose();
    expect(wg.memory().inUse - inUse).toBeLessThan(200); // the tensor of the view
  });

  it('scales in arrays', () => {
    const [args, drop] = inHeap(wg, goodCalls.qgemm.args());
    const error = thrown(() => recordOne('qgemm', { ...args, bScale: Float32Array.of(1, 2) }));
    expectError(error, {
      code: 'ARGUMENT',
      op: 'qgemm',
      argument: 'bScale',
      says: [`bScale is in a Float32Array; ${rule}${others}`],
    });
    drop();
  });

  it('what is not a function', () => {
    for (const [body, found] of [
      [undefined, 'undefined'],
      [5, '5'],
      [{}, 'an object'],
    ] as [unknown, string][])
      expectError(thrown(loose(body)), {
        code: 'ARGUMENT',
        op: 'record',
        argument: 'calls',
        says: [`calls is ${found}; it must be a function that makes calls`],
      });
  });

  it('a function that returns a promise, whose later calls fail', async () => {
    const x = held([2, 2]);
    const { inUse } = wg.memory();
    let late: unknown;
    const error = thrown(
      loose(async (calls: Calls) => {
        calls.gemm(x, x, null, { out: held([2, 2]) });
        await Promise.resolve();
        late = thrown(() => calls.gemm(x, x, null, { out: x }));
        throw new Error('nobody handles it');
      }),
    );
    expectError(error, {
      code: 'ARGUMENT',
      op: 'record',
      argument: 'calls',
      says: ['your function returned a promise; make all calls before it returns, without await'],
    });
    await new Promise((resolve) => setTimeout(resolve, 5));
    expectError(late, {
      code: 'ARGUMENT',
      argument: 'calls',
      says: ['the recording has ended; make all calls before your function returns'],
    });
    expect(wg.memory().inUse - inUse).toBeLessThan(200);
  });

  it('calls after its end, and after an error of the function', () => {
    const x = held([2, 2]);
    const { inUse } = wg.memory();
    let kept: Calls | undefined;
    const reason = new Error('of the caller');
    expect(
      thrown(() =>
        wg.record((calls) => {
          kept = calls;
          calls.matmul(x, x, null, { out: wg.alloc('float32', [2, 2]) }).dispose();
          throw reason;
        }),
      ),
    ).toBe(reason);
    expect(wg.memory().inUse).toBe(inUse);
    expectError(
      thrown(() => kept!.matmul(x, x, null, { out: x })),
      {
        code: 'ARGUMENT',
        op: 'matmul',
        argument: 'calls',
        says: ['the recording has ended'],
      },
    );
  });

  it('a call that the function catches is not recorded', () => {
    const [x, y] = [held([2, 2], 1, 2, 3, 4), held([2, 2])];
    using recording = wg.record((calls) => {
      expectError(
        thrown(() => calls.gemm(x, held([3, 2]), null, { out: y })),
        { code: 'SHAPE', argument: 'B', says: [] },
      );
      calls.gemm(x, x, null, { out: y });
    });
    expect(recording.length).toBe(1);
    recording.run();
    expect(Array.from(y.data)).toEqual([7, 10, 15, 22]);
  });
});

describe('a function that records', () => {
  it('may call the instance, record, and run recordings', () => {
    const [x, y, z] = [held([2, 2], 1, 2, 3, 4), held([2, 2]), held([2, 2])];
    let inner: Recording | undefined;
    using outer = wg.record((calls) => {
      calls.gemm(x, x, null, { out: y });
      wg.gemm(x, x, 1, { out: z });
      expect(Array.from(z.data)).toEqual([8, 11, 16, 23]);
      expect(Array.from(wg.gemm(float32([1, 1], 3), float32([1, 1], 5)).data)).toEqual([15]);
      inner = wg.record((others) => {
        others.gemm(x, x, 2, { out: z });
        calls.gemm(y, x, null, { out: z });
      });
      inner.run();
      expect(Array.from(z.data)).toEqual([9, 12, 17, 24]);
    });
    expect([outer.length, inner?.length]).toEqual([2, 1]);
    expect(Array.from(y.data)).toEqual([0, 0, 0, 0]);
    outer.run();
    expect(Array.from(z.data)).toEqual([37, 54, 81, 118]);
    inner?.dispose();
  });

  it('may have getters that call', () => {
    const [x, y, z] = [held([2, 2], 1, 2, 3, 4), held([2, 2]), held([2, 2])];
    using recording = wg.record((calls) => {
      calls.gemm(x, x, null, {
        get out() {
          calls.gemm(x, x, 1, { out: z });
          wg.gemm(x, x, 5, { out: y });
          return y;
        },
      });
    });
    expect(recording.length).toBe(2);
    expect(Array.from(y.data)).toEqual([12, 15, 20, 27]);
    recording.run();
    expect(Array.from(y.data)).toEqual([7, 10, 15, 22]);
    expect(Array.from(z.data)).toEqual([8, 11, 16, 23]);
  });

  it('may end the instance: record() then throws', async () => {
    const own = await createGemm();
    const x = own.alloc('float32', [2, 2]);
    const error = thrown(() =>
      own.record((calls) => {
        calls.gemm(x, x, null, { out: own.alloc('float32', [2, 2]) });
        own.dispose();
      }),
    );
    expectError(error, { code: 'DISPOSED', op: 'record', argument: 'instance', says: [] });
  });
});

it('arrays of other types stay what they are', () => {
  const make = (dtype: 'float64' | 'int64', value: number | bigint) => {
    const tensor = wg.alloc(dtype, [2, 2]);
    (tensor.data as { fill(value: unknown): unknown }).fill(value);
    return tensor as HeapTensor<DataArray>;
  };
  const [a, b] = [make('float64', 3), make('int64', 5n)];
  const [y, z] = [wg.alloc('float64', [2, 2]), wg.alloc('int64', [2, 2])];
  using recording = wg.record((calls) => {
    calls.gemm(a as HeapTensor<Float64Array>, a as HeapTensor<Float64Array>, 1, { out: y });
    calls.gemm(b as HeapTensor<BigInt64Array>, b as HeapTensor<BigInt64Array>, 2n ** 40n, {
      out: z,
      alpha: -1n,
    });
  });
  recording.run();
  expect([...y.data]).toEqual([19, 19, 19, 19]);
  expect(z.data[3]).toBe(2n ** 40n - 50n);
});
