/** Limits whose tests need much memory, the functions behind the API, or threads. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { createGemm, type HeapTensor } from 'wgemm';
import { thrown } from '../support/errors.js';
import { Random } from '../support/tensors.js';

describe('arrays of 8 GB and more', () => {
  /** Elements of 4 bytes. Of the memory only pages that are written to are real. */
  const size = 2 ** 31 + 16;
  const array = (() => {
    try {
      return new Float32Array(size);
    } catch (error) {
      return error;
    }
  })();

  it('are computed out-of-core, or the engine has none', async () => {
    if (!(array instanceof Float32Array)) {
      expect(array).toBeInstanceOf(RangeError);
      return;
    }
    using wg = await createGemm({ maxMemory: 4_000_000 });
    array[0] = 2;
    array[size - 1] = 3;
    const ones = { data: new Float32Array(16).fill(1), shape: [16, 1] };
    const rows = { data: array, shape: [2, 16], strides: [size - 16, 1] };
    expect(Array.from(wg.gemm(rows, ones).data)).toEqual([2, 3]);
    expect(wg.explain('gemm', rows, ones)).toMatchObject({ outOfCore: true, m: 2, k: 16 });
    const ends = { data: array, shape: [1, 2], strides: [0, size - 1] };
    expect(wg.gemm(ends, { data: Float32Array.of(10, 1), shape: [2, 1] }).data[0]).toBe(23);
    const out = { data: array, shape: [2, 1], strides: [size - 1, 1] };
    wg.gemm(
      { data: Float32Array.of(5, 7), shape: [2, 1] },
      { data: Float32Array.of(1), shape: [1, 1] },
      null,
      { out },
    );
    expect([array[0], array[1], array[size - 2], array[size - 1]]).toEqual([5, 0, 0, 7]);
    const doubles = new Float64Array(array.buffer);
    doubles[0] = 1 / 3;
    doubles[doubles.length - 1] = 2 / 3;
    const pair = { data: doubles, shape: [1, 2], strides: [0, doubles.length - 1] };
    expect(wg.gemm(pair, { data: Float64Array.of(1, 1), shape: [2, 1] }).data[0]).toBe(1);
    expect(wg.memory().inUse).toBe(0);
  });

  it('are not weights, which must be in memory', async () => {
    if (!(array instanceof Float32Array)) {
      expect(array).toBeInstanceOf(RangeError);
      return;
    }
    using wg = await createGemm();
    for (const call of [
      () => wg.pack({ data: array, shape: [1, size] }, { op: 'gemm' }),
      () => wg.deserialize(array.buffer),
      () => wg.alloc('float32', [size]),
    ]) {
      expect(thrown(call)).toMatchObject({ code: 'OUT_OF_MEMORY' });
    }
    expect(wg.memory().inUse).toBe(0);
  });
});

describe('the block of arguments', () => {
  interface Core {
    HEAPU8: Uint8Array;
    start(limit: number, strict: boolean): void;
    block(): number;
    blockLength(): number;
    allocate(bytes: number): number;
    errorMessage(): number;
    compute(operation: number, end: number): number;
    explain(operation: number, reserved: number): number;
    pack(): number;
  }
  const load = async () => {
    const folder = new URL('../../../build/wasm-simd128/', import.meta.url);
    const compiled = await WebAssembly.compile(
      await readFile(new URL('wgemm-simd128.wasm', folder)),
    );
    const { default: factory } = (await import(new URL('wgemm-simd128.mjs', folder).href)) as {
      default: (options: object) => Promise<Core>;
    };
    const core = await factory({
      wasmMemory: new WebAssembly.Memory({ initial: 16, maximum: 65536 }),
      instantiateWasm(
        imports: WebAssembly.Imports,
        done: (instance: WebAssembly.Instance) => void,
      ) {
        void WebAssembly.instantiate(compiled, imports).then(done);
        return {};
      },
    });
    core.start(0, false);
    return core;
  };
  const attributes = [1, -1, 1, -1, 0, 0, 13, NaN, -Infinity, Infinity];
  const argument = 4; // Code::kArgument

  it('is refused beyond what there can be, and then works', async () => {
    const core = await load();
    const at = core.allocate(64);
    const end = core.HEAPU8.length;
    /** A tensor of one float32, with wrong values in it. */
    const one = (
      wrong: Partial<Record<'dtype' | 'address' | 'size' | 'rank' | 'strides', number>> = {},
    ) => {
      const { dtype = 0, address = at, size = 1, rank = 2, strides = 0 } = wrong;
      return [dtype, address, size, rank, strides, 1, 1];
    };
    const absent = [-1];
    const call = (...operands: number[][]) => {
      const words = [...attributes, ...operands.flat()];
      const block = new Float64Array(core.HEAPU8.buffer, core.block(), core.blockLength()).fill(
        1e9,
      );
      block.set(words);
      return words.length;
    };
    const out = one({ address: core.allocate(64) });
    const wrong: number[][] = [
      ...[-1, 65, 1000, 2 ** 20, 2 ** 32 + 2, 2 ** 53, Infinity].map((rank) => one({ rank })),
      ...[-1, 65, 1000, 2 ** 20, 2 ** 32, 2 ** 53].map((strides) => one({ strides })),
      ...[-5, 10, 256, 2 ** 32].map((dtype) => one({ dtype })),
      ...[-1, -2, 2 ** 54, Infinity].map((size) => one({ size })),
      ...[end, end - 2, at + 1, 2 ** 32 + at, 2 ** 53, Infinity, -100, -Infinity].map((address) =>
        one({ address }),
      ),
      ...[0, 3, end, 2 ** 32 + at, NaN, -5].map((address) => [-2, address]),
      [-3, 99, 1, -1],
      [-3, 4, 0.5, -1],
      // A tensor must follow kArray and its numbers.
      ...[[-1], [-2, at], [-3, 4, 1, -1], [-4], one({ rank: 65 }), one({ address: end })].map(
        (operand) => [-4, 1, 0, ...operand],
      ),
    ];
    for (const operand of wrong) {
      for (const operands of [
        [operand, one(), absent, out],
        [one(), operand, absent, out],
        [one(), one(), operand, out],
      ]) {
        for (const run of [(n: number) => core.compute(0, n), () => core.explain(0, 0)]) {
          expect(run(call(...operands)), String(operand)).toBe(argument);
        }
      }
      const block = new Float64Array(core.HEAPU8.buffer, core.block(), core.blockLength());
      block.set([0, 0, -1, ...operand]);
      expect(core.pack(), String(operand)).toBe(argument);
    }
    new Float32Array(core.HEAPU8.buffer, at, 1).fill(3);
    expect(core.compute(0, call(one(), one(), absent, out))).toBe(0);
    expect(new Float32Array(core.HEAPU8.buffer, out[1], 1)[0]).toBe(9);
    // The places in the caller's buffers decide on overlaps, not the addresses of copies.
    const placed = (buffer: number, offset: number, operand: number[]) => [
      ...[-4, buffer, offset],
      ...operand,
    ];
    const run = (offset: number) =>
      core.compute(
        0,
        call(placed(1, 8, one()), placed(2, 8, one()), absent, placed(1, offset, out)),
      );
    expect([0, 4, 8, 11, 12].map(run)).toEqual([0, 0, argument, argument, 0]);
  });
});

it.each([1, 2])('maxMemory bounds what is committed with %d threads', async (threads) => {
  const random = new Random(5);
  const maxMemory = 16_000_000;
  using wg = await createGemm({ maxMemory, threads });
  const bound = wg.memory().committed + Math.ceil(maxMemory / 65536) * 65536;
  const held: HeapTensor[] = [];
  for (let step = 0; step < 3000; ++step) {
    const size = Math.ceil(2 ** (10 + (12 * step) / 3000) * (1 + random.next()));
    try {
      held.push(wg.alloc('uint8', [size]));
    } catch (error) {
      expect(error).toMatchObject({ code: 'OUT_OF_MEMORY' });
      for (let i = 0; i < 3; ++i)
        held.splice(Math.floor(random.next() * held.length), 1)[0]?.dispose();
    }
    expect(wg.memory().committed).toBeLessThanOrEqual(bound);
  }
});
