/** `packFrom` and `rows`: what they read, what they refuse, and how they end. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm, type PackedWeights } from 'wgemm';
import { createLinear } from 'wgemm/linear';
import { createIndex } from 'wgemm/search';
import {
  packFrom,
  readGGUF,
  readSafetensors,
  type StreamLike,
  type WeightsSource,
} from 'wgemm/weights';
import { createGemm as startWorker, type WorkerGemm, type WorkerWeights } from 'wgemm/worker';
import { encodeGGUF, encodeSafetensors } from '../../fuzz/weights-files.mjs';
import { toBits } from '../support/dtypes.js';
import { expectError, rejected } from '../support/errors.js';
import { Random } from '../support/random.js';
import { drawWeights, level4 } from './block-products.js';
import { referenceTypes, type ReferenceType } from './block-reference.js';

let wg: Gemm;
beforeAll(async () => {
  wg = await createGemm();
});
afterAll(() => {
  wg.dispose();
});

const q4k = referenceTypes.Q4_K as ReferenceType;
/** Of several parts: 2304 bytes per row, in the file. */
const large = drawWeights(new Random(1), q4k, [1001, 4096]);
const small = drawWeights(new Random(2), q4k, [5, 512]);
const floats = new Random(3).fill(new Float32Array(70 * 9000));
const gguf = encodeGGUF({
  tensors: [
    { name: 'large', ne: [4096, 1001], type: q4k.number, data: large.data },
    { name: 'small', ne: [512, 5], type: q4k.number, data: small.data },
    { name: 'floats', ne: [9000, 70], type: 0, data: new Uint8Array(floats.buffer) },
    { name: 'vector', ne: [512], type: q4k.number, data: small.data.subarray(0, 288) },
    { name: 'experts', ne: [256, 2, 3], type: q4k.number, data: small.data.subarray(0, 6 * 144) },
    { name: 'iq4_xs', ne: [256, 1], type: 23, data: new Uint8Array(136) },
    { name: 'i8', ne: [4, 1], type: 24, data: new Uint8Array(4) },
  ],
});
const halves = Uint16Array.from(floats.subarray(0, 40 * 33), (value) => toBits('bfloat16', value));
const safetensors = encodeSafetensors({
  tensors: [
    { name: 'pad', dtype: 'U8', shape: [1], data: new Uint8Array(1) }, // what follows is not aligned
    { name: 'bf16', dtype: 'BF16', shape: [40, 33], data: new Uint8Array(halves.buffer) },
    { name: 'f16', dtype: 'F16', shape: [40, 33], data: new Uint8Array(halves.buffer) },
    { name: 'none', dtype: 'F32', shape: [0, 4], data: new Uint8Array() },
    { name: 'f32', dtype: 'F32', shape: [33, 40], data: new Uint8Array(floats.buffer, 0, 5280) },
  ],
});

/** What remains of the memory when everything is disposed of. */
function inUse(): number {
  return wg.memory().inUse;
}

const place = { type: 'Q4_K', shape: [1001, 4096] };

/** A stream of bytes in parts of odd sizes. */
function streamOf(bytes: Uint8Array): {
  stream: ReadableStream<Uint8Array>;
  isCancelled: () => boolean;
} {
  let at = 0;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, (at += 70_001)));
    },
    cancel() {
      cancelled = true;
    },
  });
  return { stream, isCancelled: () => cancelled };
}

describe('packFrom', () => {
  const sources: Record<string, () => WeightsSource | StreamLike> = {
    bytes: () => large.data,
    'an ArrayBuffer': () => large.data.slice().buffer,
    'a Blob': () => new Blob([large.data.slice()]),
    'a function': () => (offset, length) => large.data.slice(offset, offset + length),
    'a function that returns promises': () => async (offset, length) =>
      Promise.resolve(large.data.slice(offset, offset + length).buffer),
    'a stream': () => streamOf(large.data).stream,
  };

  it.each(Object.keys(sources))('takes %s', async (name) => {
    const packed = await packFrom(wg, (sources[name] as () => WeightsSource)(), place);
    const a = new Random(4).fill(new Float32Array(4096));
    const y = wg.matmulNBits({ data: a, shape: [1, 4096] }, packed);
    expect(y.data).toEqual(level4(a, large));
    packed.dispose();
  });

  it('takes a function that uses its array again', async () => {
    const buffer = new Uint8Array(2 ** 20);
    const source = (offset: number, length: number) => {
      const part = large.data.subarray(offset, offset + length);
      buffer.set(part);
      return buffer.subarray(0, part.length);
    };
    const packed = await packFrom(wg, source, place);
    const wanted = await packFrom(wg, large.data, place);
    expect(packed.serialize()).toEqual(wanted.serialize());
    packed.dispose();
    wanted.dispose();
  });

  it('takes a tensor of a file, and reads each byte once, a megabyte at a time', async () => {
    const before = inUse();
    const ranges: [offset: number, length: number][] = [];
    const file = await readGGUF((offset, length) => {
      ranges.push([offset, length]);
      return gguf.slice(offset, offset + length);
    });
    ranges.length = 0;
    const packed = await packFrom(wg, file, 'large');
    expect(packed).toMatchObject({
      ...{ op: 'matmulNBits', dtype: 'float16', format: 'Q4_K', shape: [4096, 1001] },
      disposed: false,
    });
    let next = file.tensors.get('large')?.offset ?? NaN;
    for (const [offset, length] of ranges) {
      expect(offset).toBe(next);
      expect(length % (8 * 2304)).toBe(offset + length === next + 2304 * 1001 ? 0 : length % 18432);
      expect(length).toBeLessThanOrEqual(2 ** 20);
      next += length;
    }
    expect(ranges.length).toBe(3);
    expect(next).toBe((file.tensors.get('large')?.offset ?? NaN) + large.data.length);
    // 148 bytes for 144 of the file, for 1008 columns.
    expect(packed.byteLength).toBeLessThan(1008 * 16 * 148 + 1024);
    packed.dispose();
    expect(inUse()).toBe(before);
  });

  it('keeps the format in bytes', async () => {
    const packed = await packFrom(wg, await readGGUF(gguf), 'small');
    const bytes = packed.serialize();
    const again = wg.deserialize(bytes);
    expect([again.format, again.shape, again.byteLength]).toEqual([
      ...['Q4_K', packed.shape, packed.byteLength],
    ]);
    expect(again.serialize()).toEqual(bytes);
    const floating = wg.pack({ data: floats.subarray(0, 6), shape: [2, 3] }, { op: 'matmul' });
    expect(floating.format).toBeUndefined();
    for (const weights of [packed, again, floating]) weights.dispose();
  });

  it.each(Object.entries(referenceTypes))('%s is a format', async (name, type) => {
    const { data } = drawWeights(new Random(5), type, [2, type.elements]);
    const packed = await packFrom(wg, data, { type: name, shape: [2, type.elements] });
    expect(packed.format).toBe(name);
    const again = wg.deserialize(packed.serialize());
    expect(again.format).toBe(name);
    again.dispose();
    packed.dispose();
  });

  it('of blocks: level 4 is the default, explain() and record() know it', async () => {
    const packed = await packFrom(wg, await readGGUF(gguf), 'small');
    const a = wg.alloc('float32', [1, 512]);
    a.data.set(new Random(6).fill(new Float32Array(512)));
    const wanted = level4(a.data.slice(), small);
    const out = wg.alloc('float32', [1, 5]);
    expect(wg.matmulNBits(a, packed, { out }).data).toEqual(wanted); // the way of operands in the heap
    expect(wg.matmulNBits({ data: a.data.slice(), shape: [1, 512] }, packed).data).toEqual(wanted);
    expect(wg.matmulNBits(a, packed, { accuracyLevel: 0 }).data).not.toEqual(wanted);
    const kernel = (accuracyLevel?: number) =>
      wg.explain('matmulNBits', a, packed, { accuracyLevel }).kernel;
    expect(kernel()).toBe(kernel(4));
    expect(kernel()).not.toBe(kernel(0));
    out.data.fill(0);
    const recording = wg.record((calls) => {
      calls.matmulNBits(a, packed, { out });
    });
    recording.run();
    expect(out.data).toEqual(wanted);
    for (const held of [recording, out, a, packed]) held.dispose();
  });

  it('of floats gives what pack() gives', async () => {
    const file = await readGGUF(gguf);
    const tensor = { data: floats, shape: [70, 9000] };
    for (const as of [undefined, 'float32', 'float16', 'bfloat16'] as const) {
      const packed = await packFrom(wg, file, 'floats', { as });
      const wanted = wg.pack(tensor, { op: 'matmul', trans: true, as });
      expect(packed).toMatchObject({ op: 'gemm', format: undefined, dtype: as ?? 'float32' });
      expect(packed.serialize()).toEqual(wanted.serialize());
      packed.dispose();
      wanted.dispose();
    }
    const other = await readSafetensors(safetensors);
    for (const [name, dtype] of [
      ['bf16', 'bfloat16'],
      ['f16', 'float16'],
    ] as const) {
      const packed = await packFrom(wg, other, name);
      const bits = { data: halves, shape: [40, 33], dtype };
      const wanted = wg.pack(bits, { op: 'matmul', trans: true });
      expect(packed.serialize()).toEqual(wanted.serialize());
      packed.dispose();
      wanted.dispose();
    }
    const none = await packFrom(wg, other, 'none');
    expect(none.shape).toEqual([4, 0]);
    none.dispose();
  });

  it('takes a part of a tensor by its place', async () => {
    const file = await readGGUF(gguf);
    const info = file.tensors.get('experts');
    const offset = (info?.offset ?? NaN) + 2 * 144;
    const packed = await packFrom(wg, file, { ...info, type: 'Q4_K', shape: [2, 256], offset });
    const same = await packFrom(wg, small.data.subarray(288), { type: 'Q4_K', shape: [2, 256] });
    expect(packed.serialize()).toEqual(same.serialize());
    packed.dispose();
    same.dispose();
  });

  it('takes a part of a stream, and cancels the rest', async () => {
    const part = { type: 'Q4_K', shape: [3, 4096], offset: 100 * 2304 };
    const { stream, isCancelled } = streamOf(large.data);
    const packed = await packFrom(wg, stream, part);
    expect(isCancelled()).toBe(true);
    const same = await packFrom(wg, large.data, part);
    expect(packed.serialize()).toEqual(same.serialize());
    packed.dispose();
    same.dispose();
  });

  describe('ends', () => {
    /** Rejects, and leaves no memory. */
    async function failing(call: () => Promise<PackedWeights>): Promise<unknown> {
      const before = inUse();
      const error = await rejected(call());
      expect(inUse()).toBe(before);
      return error;
    }

    it('with the reason of a signal', async () => {
      const reason = new Error('enough');
      const aborted = AbortSignal.abort(reason);
      const source = () => expect.fail('it reads');
      const early = await failing(() => packFrom(wg, source, place, { signal: aborted }));
      expect(early).toBe(reason);
      for (const isWaiting of [true, false]) {
        const controller = new AbortController();
        let calls = 0;
        const error = await failing(() =>
          packFrom(
            wg,
            async (offset, length) => {
              if (++calls === 2) {
                controller.abort(reason);
                if (isWaiting) await new Promise(() => undefined);
              }
              return large.data.slice(offset, offset + length);
            },
            place,
            { signal: controller.signal },
          ),
        );
        expect(error).toBe(reason);
        expect(calls).toBeLessThanOrEqual(3);
      }
    });

    it('with the reason of a signal, and cancels a stream', async () => {
      const { stream, isCancelled } = streamOf(large.data);
      const controller = new AbortController();
      const promise = failing(() => packFrom(wg, stream, place, { signal: controller.signal }));
      controller.abort();
      expect(await promise).toBe(controller.signal.reason);
      expect(isCancelled()).toBe(true);
    });

    it('with the reason of a signal, while it skips bytes of a stream', async () => {
      for (const isHanging of [true, false]) {
        const controller = new AbortController();
        let parts = 0;
        let partsAtCancel = 0;
        const stream = new ReadableStream<Uint8Array>(
          {
            async pull(queue) {
              if (++parts === 3) controller.abort();
              if (isHanging && parts > 3) return new Promise(() => undefined);
              await new Promise((resolve) => setTimeout(resolve));
              if (partsAtCancel === 0) queue.enqueue(new Uint8Array(1000));
            },
            cancel() {
              partsAtCancel = parts;
            },
          },
          { highWaterMark: 0 },
        );
        const { signal } = controller;
        const part = { ...place, offset: 1e9 };
        expect(await failing(() => packFrom(wg, stream, part, { signal }))).toBe(signal.reason);
        await new Promise((resolve) => setTimeout(resolve, 20));
        expect(partsAtCancel).toBeGreaterThanOrEqual(3);
        expect(parts).toBe(partsAtCancel);
      }
    });

    it('with the reason of a signal, and reads no more of a stream that goes on', async () => {
      const controller = new AbortController();
      let reads = 0;
      const read = async () => {
        if (++reads === 3) controller.abort();
        await new Promise((resolve) => setTimeout(resolve));
        return { done: false, value: new Uint8Array(1000) };
      };
      const stream = { getReader: () => ({ read, cancel: () => Promise.resolve() }) };
      const { signal } = controller;
      const part = { ...place, offset: 1e9 };
      expect(await failing(() => packFrom(wg, stream, part, { signal }))).toBe(signal.reason);
      const then = reads;
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(reads).toBe(then);
    });

    it('with the reason of a signal, although the signal throws', async () => {
      const { stream, isCancelled } = streamOf(large.data);
      const own = new Error('listener');
      const signal = {
        aborted: false,
        addEventListener: () => undefined,
        removeEventListener() {
          throw own;
        },
      };
      expect(
        await failing(() => packFrom(wg, stream, { ...place, shape: [3, 4096] }, { signal })),
      ).toBe(own);
      expect(isCancelled()).toBe(true);
    });

    it('well with a stream that cannot be cancelled', async () => {
      // A rejection that nobody handles makes Vitest fail.
      const cancels: (undefined | (() => unknown))[] = [
        undefined,
        () => undefined,
        () => Promise.reject(new Error('no')),
        () => {
          throw new Error('no');
        },
      ];
      for (const cancel of cancels) {
        const read = () => Promise.resolve({ done: false, value: large.data });
        const stream = { getReader: () => ({ read, cancel }) };
        (await packFrom(wg, stream as never, place)).dispose();
      }
      await new Promise((resolve) => setTimeout(resolve));
    });

    it('when the bytes are detached', async () => {
      const wanted = { code: 'ARGUMENT', op: 'packFrom', argument: 'source' } as const;
      const says = ['source is a detached array; it was transferred, or the memory under it grew'];
      for (const ticks of [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12]) {
        const bytes = large.data.slice();
        const before = inUse();
        const packing = rejected(packFrom(wg, bytes, place));
        for (let i = 0; i < ticks; ++i) await Promise.resolve();
        structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
        expectError(await packing, { ...wanted, says });
        expect(inUse()).toBe(before);
      }
    });

    it('with the error of the source', async () => {
      for (const after of [1, 2, 3]) {
        const own = new RangeError('disk');
        let calls = 0;
        const error = await failing(() =>
          packFrom(
            wg,
            (offset, length) => {
              if (++calls === after) throw own;
              return large.data.slice(offset, offset + length);
            },
            place,
          ),
        );
        expect(error).toBe(own);
      }
      const cause = new Error('reset');
      const stream = new ReadableStream<Uint8Array>({ pull: () => Promise.reject(cause) });
      expectError(await failing(() => packFrom(wg, stream, place)), {
        ...{ code: 'LOAD', op: 'packFrom', argument: 'source' },
        says: ['source cannot be read: reset'],
      });
      const locked = streamOf(large.data).stream;
      locked.getReader();
      expectError(await failing(() => packFrom(wg, locked, place)), {
        ...{ code: 'LOAD', op: 'packFrom', argument: 'source', says: ['cannot be read', 'locked'] },
      });
      const texts = new ReadableStream({ pull: (controller) => controller.enqueue('text') });
      expectError(await failing(() => packFrom(wg, texts as never, place)), {
        ...{ code: 'ARGUMENT', op: 'packFrom', argument: 'source' },
        says: ['a part of source is "text"'],
      });
    });

    it('when the source ends', async () => {
      const short = large.data.subarray(0, 2_000_000);
      for (const source of [short, streamOf(short).stream, new Blob([short.slice()])]) {
        expectError(await failing(() => packFrom(wg, source, place)), {
          ...{ code: 'ARGUMENT', op: 'packFrom', argument: 'source' },
          says: ['it ends at 2000000, within the tensor'],
        });
      }
      const bytes = new Uint8Array(100);
      for (const [source, says] of [
        [bytes, 'it ends at 100, before the tensor at 5000'],
        [new Blob([bytes]), 'it ends at 100, before the tensor at 5000'],
        [new Blob([bytes]).stream(), 'it ends at 100, before the tensor at 5000'],
        [(at: number) => bytes.slice(at), 'it ends before the tensor at 5000'],
      ] as const) {
        expectError(await failing(() => packFrom(wg, source, { ...place, offset: 5000 })), {
          ...{ code: 'ARGUMENT', op: 'packFrom', argument: 'source', says: [says] },
        });
      }
      const file = await readGGUF((offset, length) =>
        gguf.slice(offset, Math.min(offset + length, 1_200_000)),
      );
      expectError(await failing(() => packFrom(wg, file, 'large')), {
        ...{ code: 'ARGUMENT', op: 'readGGUF', argument: 'source' },
        says: ['it ends at 1200000, within the tensor'],
      });
    });

    it('when the instance is disposed of', async () => {
      const own = await createGemm();
      let calls = 0;
      const error = await rejected(
        packFrom(
          own,
          (offset, length) => {
            if (++calls === 2) own.dispose();
            return large.data.slice(offset, offset + length);
          },
          place,
        ),
      );
      const wanted = { code: 'DISPOSED', op: 'packFrom', argument: 'instance' } as const;
      expectError(error, { ...wanted, says: ['the instance is disposed'] });
      expectError(await rejected(packFrom(own, large.data, place)), {
        ...{ ...wanted, says: ['the instance is disposed'] },
      });
    });

    it('if there is no memory', async () => {
      const own = await createGemm({ maxMemory: 2 ** 24 });
      const shape = [100_000, 4096];
      const error = await rejected(packFrom(own, () => large.data, { type: 'Q4_K', shape }));
      expectError(error, { code: 'OUT_OF_MEMORY', op: 'packFrom', argument: '', says: ['memory'] });
      own.dispose();
    });
  });

  it('refuses other calls with weights of a format', async () => {
    const packed = await packFrom(wg, await readGGUF(gguf), 'small');
    const x = { data: new Float32Array(512), shape: [1, 512] };
    expect(() => wg.matmul(x, packed)).toThrow(/packed/);
    expectError(
      (() => {
        try {
          return createLinear(wg, { weights: packed as never });
        } catch (error) {
          return error;
        }
      })(),
      {
        ...{ code: 'ARGUMENT', op: 'createLinear', argument: 'weights' },
        says: ['weights is packed as Q4_K; it must be a tensor; call matmulNBits'],
      },
    );
    const tensor = { data: new Float64Array(512), shape: [1, 512] };
    expect(() => wg.matmulNBits(tensor as never, packed)).toThrow(/float64/);
    packed.dispose();
    expect(() => wg.matmulNBits(x, packed)).toThrow(/disposed/);
  });
});

describe('packFrom in a worker', () => {
  let inWorker: WorkerGemm;
  beforeAll(async () => {
    inWorker = await startWorker();
  });
  afterAll(() => {
    inWorker.dispose();
  });

  /** Rejects, and leaves no memory. */
  async function failing(call: () => Promise<WorkerWeights>): Promise<unknown> {
    const before = (await inWorker.memory()).inUse;
    const error = await rejected(call());
    expect((await inWorker.memory()).inUse).toBe(before);
    return error;
  }

  it('gives the weights of this thread', async () => {
    const file = await readGGUF(new Blob([gguf.slice()]));
    for (const name of ['large', 'small', 'floats']) {
      const packed = await packFrom(inWorker, file, name);
      const here = await packFrom(wg, file, name);
      const { op, dtype, format, shape, byteLength } = here;
      expect(packed).toMatchObject({ op, dtype, format, shape, byteLength, disposed: false });
      const bytes = await packed.serialize();
      expect(bytes).toEqual(here.serialize());
      const again = await inWorker.deserialize(bytes);
      expect(again.format).toBe(format);
      for (const weights of [packed, here, again]) weights.dispose();
    }
  });

  it('computes at level 4', async () => {
    const packed = await packFrom(inWorker, small.data, { type: 'Q4_K', shape: [5, 512] });
    expect(packed.format).toBe('Q4_K');
    const a = new Random(7).fill(new Float32Array(2 * 512));
    const y = await inWorker.matmulNBits({ data: a, shape: [2, 512] }, packed);
    expect(y.data).toEqual(level4(a, small));
    packed.dispose();
    const error = await rejected(inWorker.matmulNBits({ data: a, shape: [2, 512] }, packed));
    expectError(error, { code: 'DISPOSED', op: 'matmulNBits', argument: 'B', says: ['disposed'] });
  });

  it('leaves the arrays of the caller', async () => {
    const bytes = large.data.slice();
    const packed = await packFrom(inWorker, bytes, place);
    expect(bytes).toEqual(large.data);
    packed.dispose();
  });

  it('ends with the reason of a signal', async () => {
    const reason = new Error('enough');
    for (const after of [1, 2, 3]) {
      const controller = new AbortController();
      let calls = 0;
      const source = (offset: number, length: number) => {
        if (++calls === after) controller.abort(reason);
        return large.data.slice(offset, offset + length);
      };
      const { signal } = controller;
      expect(await failing(() => packFrom(inWorker, source, place, { signal }))).toBe(reason);
    }
    const aborted = AbortSignal.abort(reason);
    expect(await failing(() => packFrom(inWorker, large.data, place, { signal: aborted }))).toBe(
      reason,
    );
  });

  it('ends with an error of the source, or of the core', async () => {
    const own = new RangeError('disk');
    let calls = 0;
    const source = (offset: number, length: number) => {
      if (++calls === 2) throw own;
      return large.data.slice(offset, offset + length);
    };
    expect(await failing(() => packFrom(inWorker, source, place))).toBe(own);
    const bad = large.data.slice();
    bad.set([0, 0x7c], 900 * 2304 + 144 * 3);
    expectError(await failing(() => packFrom(inWorker, bad, place)), {
      ...{ code: 'ARGUMENT', op: 'packFrom', argument: 'source' },
      says: ['source has a scale that is infinite or NaN, in row 900 and block 3'],
    });
  });

  it('ends when the instance is disposed of', async () => {
    const doomed = await startWorker();
    let calls = 0;
    const source = (offset: number, length: number) => {
      if (++calls === 2) doomed.dispose();
      return large.data.slice(offset, offset + length);
    };
    const error = await rejected(packFrom(doomed, source, place));
    const wanted = { code: 'DISPOSED', op: 'packFrom', argument: 'instance' } as const;
    expectError(error, { ...wanted, says: ['the instance is disposed'] });
    expectError(await rejected(packFrom(doomed, large.data, place)), {
      ...{ ...wanted, says: ['the instance is disposed'] },
    });
  });
});

describe('rows', () => {
  it('gives the numbers of each tensor, a megabyte at a time', async () => {
    const file = await readGGUF(new Blob([gguf.slice()]));
    for (const [name, values] of [
      ['large', large.values],
      ['small', small.values],
      ['floats', floats],
    ] as const) {
      const k = file.tensors.get(name)?.shape[1] ?? NaN;
      let at = 0;
      for await (const { data, shape, dtype } of file.rows(name)) {
        expect([dtype, data.length, shape]).toEqual(['float32', data.length, [data.length / k, k]]);
        expect(data).toEqual(values.subarray(at, at + data.length));
        expect(data.length).toBeLessThanOrEqual(2 ** 18);
        at += data.length;
      }
      expect(at).toBe(values.length);
    }
    const other = await readSafetensors(safetensors);
    for (const name of ['bf16', 'f16', 'f32']) {
      const { data } = (await other.tensor(name)).toFloat32();
      for await (const part of other.rows(name)) expect(part.data).toEqual(data);
    }
    for await (const part of other.rows('none')) expect.fail(String(part.shape));
  });

  it('takes a function that uses its array again', async () => {
    const buffer = new Uint8Array(gguf.length);
    const file = await readGGUF((offset, length) => {
      const part = gguf.subarray(offset, offset + length);
      buffer.set(part);
      return buffer.subarray(0, part.length);
    });
    let at = 0;
    for await (const { data } of file.rows('floats')) {
      await new Promise((resolve) => setTimeout(resolve));
      expect(data).toEqual(floats.subarray(at, (at += data.length)));
    }
    expect(at).toBe(floats.length);
  });

  it('refuses bytes that are detached', async () => {
    const bytes = gguf.slice();
    const file = await readGGUF(bytes);
    const rows = file.rows('large');
    await rows.next();
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    for (const call of [rows.next(), file.tensor('large')]) {
      const error = await rejected(call);
      const says = [/: source is a detached array/];
      const { op } = error as { op: string };
      expectError(error, { code: 'ARGUMENT', op, argument: 'source', says } as never);
    }
  });

  it('fills an index of vectors', async () => {
    const file = await readGGUF(gguf);
    const index = createIndex(wg, { dimensions: 9000, metric: 'dot' });
    for await (const vectors of file.rows('floats')) index.add(vectors);
    expect(index.size).toBe(70);
    const query = floats.subarray(66 * 9000, 67 * 9000);
    expect(index.search(query, 1)[0]?.id).toBe(66);
    index.dispose();
  });

  it('ends by a signal, and by break', async () => {
    const reason = new Error('enough');
    const file = await readGGUF(gguf);
    const controller = new AbortController();
    let parts = 0;
    const all = async () => {
      for await (const { shape } of file.rows('large', { signal: controller.signal })) {
        parts += shape.length / 2;
        controller.abort(reason);
      }
    };
    expect(await rejected(all())).toBe(reason);
    expect(parts).toBe(1);
    for await (const { shape } of file.rows('large')) {
      expect(shape[1]).toBe(4096);
      break;
    }
  });

  it('refuses what it cannot read', async () => {
    const file = await readGGUF(gguf);
    for (const [name, code, says] of [
      ['vector', 'SHAPE', 'name is a tensor of shape [512]; it must be [N, K]'],
      ['i8', 'DTYPE', 'name is a tensor of type I8; it must be F32, F16, BF16, Q4_0'],
      ['iq4_xs', 'DTYPE', 'name is a tensor of type IQ4_XS; it must be'],
      ['w', 'ARGUMENT', 'name is "w"; it must be the name of a tensor of the file'],
    ] as const) {
      const error = await rejected(file.rows(name).next());
      expectError(error, { code, op: 'rows', argument: 'name', says: [says] });
    }
    const error = await rejected(file.rows('small', { signal: 5 as never }).next());
    expectError(error, {
      ...{ code: 'ARGUMENT', op: 'rows', argument: 'signal' },
      says: ['signal must be an AbortSignal'],
    });
  });
});
