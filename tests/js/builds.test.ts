/** The builds beside each other, and `determinism: 'strict'`: what must be the same bits, in whatever engine this runs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type DataArray, type DType, type Gemm, type TensorLike } from 'wgemm';
import { expectError, notCreated } from './errors.js';
import { hideRelaxed } from './relaxed.js';
import { Random, sameBytes } from './tensors.js';

type Build = 'simd128' | 'relaxed';
const instances: { build: Build; fast: Gemm; strict: Gemm }[] = [];

beforeAll(async () => {
  for (const simd of ['simd128', 'relaxed'] as const) {
    try {
      instances.push({ build: simd, fast: await createGemm({ simd }), strict: await createGemm({ simd, determinism: 'strict' }) });
    } catch (error) {
      // An engine may lack it: then that is said.
      expectError(error, { code: 'UNSUPPORTED', op: 'createGemm', argument: 'simd', says: ['no relaxed SIMD'] });
    }
  }
});
afterAll(() => instances.forEach(({ fast, strict }) => [fast, strict].forEach((wg) => wg.dispose())));

describe('the build', () => {
  it('is the one that was asked for, or the best', async () => {
    for (const { build, fast, strict } of instances) {
      expect(fast.info).toMatchObject({ build, determinism: 'fast', why: 'build: as asked; threads: as asked' });
      expect(strict.info).toMatchObject({ build, determinism: 'strict' });
      expect(fast.info.kernels.some(({ name }) => name.includes('_relaxed'))).toBe(build === 'relaxed');
    }
    const wg = await createGemm();
    expect(wg.info.build).toBe(instances.at(-1)?.build);
    wg.dispose();
  });

  it('is simd128 where the engine has no relaxed SIMD, and says so', async () => {
    const showAgain = hideRelaxed();
    try {
      const wg = await createGemm();
      expect(wg.info.build).toBe('simd128');
      expect(wg.info.why).toContain('this engine has no relaxed SIMD');
      wg.dispose();
      const error = await notCreated({ simd: 'relaxed' });
      expectError(error, { code: 'UNSUPPORTED', op: 'createGemm', argument: 'simd', says: ["'relaxed'", 'no relaxed SIMD'] });
    } finally {
      showAgain();
    }
  });

  it('is what the option assets gives', async () => {
    const url = import.meta.resolve('wgemm/assets/wgemm-simd128.wasm');
    const wg = await createGemm({ assets: () => url });
    expect(wg.info.build).toBe('simd128');
    wg.dispose();
  });
});

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) => new Uint8Array(buffer, byteOffset, byteLength);

const random = new Random(2026);
const whole = (from: number, to: number) => random.between(from, to);

/** By whole numbers alone, so that they are the same everywhere. */
const makers: Record<string, (length: number) => TensorLike['data']> = {
  float32: (length) => Float32Array.from({ length }, () => whole(-1000, 1000) / 1024),
  float64: (length) => Float64Array.from({ length }, () => whole(-1e6, 1e6) / 2 ** 20),
  float16: (length) => Uint16Array.from({ length }, () => (whole(0, 1) << 15) | whole(0x2000, 0x3c00)),
  bfloat16: (length) => Uint16Array.from({ length }, () => (whole(0, 1) << 15) | whole(0x3c00, 0x3f80)),
  int32: (length) => Int32Array.from({ length }, () => whole(-(2 ** 31), 2 ** 31 - 1)),
  uint32: (length) => Uint32Array.from({ length }, () => whole(0, 2 ** 32 - 1)),
  int64: (length) => BigInt64Array.from({ length }, () => BigInt(whole(-(2 ** 31), 2 ** 31 - 1)) * 0x100000001n),
  uint64: (length) => BigUint64Array.from({ length }, () => BigInt(whole(0, 2 ** 32 - 1)) * 0x100000001n),
};
const sizes = [
  [1, 1, 1],
  [1, 40, 300],
  [3, 17, 33],
  [4, 8, 5000],
  [37, 41, 129],
  [64, 64, 64],
] as const;

interface Problem {
  name: string;
  /** In every build the same bits, strict or not. */
  exact: boolean;
  run: (wg: Gemm, packed: boolean) => ArrayBufferView;
}

/** A fixed set. */
const problems: Problem[] = [];
for (const [dtype, make] of Object.entries(makers)) {
  const exact = dtype.includes('int');
  sizes.forEach(([m, n, k], i) => {
    const [transA, transB, hasC] = [i % 2 === 1, i % 3 === 1, i % 2 === 0];
    const tensor = (...shape: number[]) => ({ data: make(shape.reduce((x, y) => x * y)), shape, dtype: dtype as DType });
    const [a, b, c] = [transA ? tensor(k, m) : tensor(m, k), transB ? tensor(n, k) : tensor(k, n), hasC ? tensor(n) : null];
    // NaN and infinity in A, which meet in some results.
    if (i === 4 && a.data instanceof Float32Array) a.data.set([Infinity, -Infinity, NaN], 0);
    if (i === 4 && a.data instanceof Float64Array) a.data.set([Infinity, -Infinity, NaN], 0);
    if (i === 4 && a.data instanceof Uint16Array) a.data.set(dtype === 'float16' ? [0x7c00, 0xfc00, 0xfe01] : [0x7f80, 0xff80, 0xffc1], 0);
    const factors = exact ? { alpha: 3, beta: -2 } : { alpha: 0.3, beta: -1.7 };
    problems.push({
      name: `gemm ${dtype} ${m}x${n}x${k}`,
      exact,
      run: (wg, packed) => {
        if (!packed) return wg.gemm(a, b, c, { ...factors, transA, transB }).data;
        using weights = wg.pack(b, { op: 'gemm', trans: transB });
        return wg.gemm(a, weights, c, { ...factors, transA }).data;
      },
    });
  });
}
for (const [i, [m, n, k]] of sizes.entries()) {
  const byte = () => whole(0, 255);
  const bytes = (length: number, signed: boolean) => (signed ? Int8Array.from({ length }, byte) : Uint8Array.from({ length }, byte));
  for (const [signedA, signedB] of [
    [false, false],
    [false, true],
    [true, false],
    [true, true],
  ] as const) {
    const [a, b] = [{ data: bytes(m * k, signedA), shape: [m, k] }, { data: bytes(k * n, signedB), shape: [k, n] }]; // prettier-ignore
    const bScale = Float32Array.from({ length: n }, () => whole(1, 1000) / 65536);
    const quantized = i % 2 === 1 ? { yScale: 0.75, yZeroPoint: 3 } : {};
    const inputs = { a, aScale: 0.03, aZeroPoint: signedA ? -7 : 100, bScale, bZeroPoint: signedB ? 5 : 120, ...quantized };
    problems.push({
      name: `qgemm ${signedA ? 'int8' : 'uint8'} x ${signedB ? 'int8' : 'uint8'} ${m}x${n}x${k}`,
      exact: true,
      run: (wg, packed) => {
        if (!packed) return wg.qgemm({ ...inputs, b }).data;
        using weights = wg.pack(b, { op: 'qgemm' });
        return wg.qgemm({ ...inputs, b: weights }).data;
      },
    });
  }
}

describe('results', () => {
  it.each(problems.map((problem) => [problem.name, problem] as const))(
    '%s: the same bits, where they are promised',
    (_, { exact, run }) => {
      const [first] = instances;
      const wanted = run(first?.strict as Gemm, false) as DataArray;
      for (const { build, fast, strict } of instances) {
        for (const packed of [false, true]) {
          for (const wg of exact ? [fast, strict] : [strict]) {
            const same = sameBytes(run(wg, packed) as DataArray, wanted);
            expect(same, `${build}, ${wg.info.determinism}${packed ? ', packed' : ''}`).toBe(true);
          }
        }
      }
    },
  );

  it('are, with strict, those of every other engine', async () => {
    for (const { strict } of instances) {
      const all = problems.map(({ run }) => bytesOf(run(strict, false)));
      const joined = new Uint8Array(all.reduce((sum, bytes) => sum + bytes.length, 0));
      let at = 0;
      for (const bytes of all) {
        joined.set(bytes, at);
        at += bytes.length;
      }
      const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', joined));
      const text = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
      expect(text).toBe('eed5cbeee716d9b7f70f669068dbbc9cd413e79f49df7a6ff367e5d818d8d3b3');
    }
  });

  it('hold, with strict, no NaN but the canonical one', () => {
    for (const { strict } of instances) {
      const nan = new Uint32Array(Uint32Array.of(0xffc12345, 0x7fc00001)).buffer;
      const c = { data: new Float32Array(nan), shape: [2] };
      const y = strict.gemm({ data: new Float32Array(0), shape: [1, 0] }, { data: new Float32Array(0), shape: [0, 2] }, c);
      expect(Array.from(new Uint32Array(y.data.buffer))).toEqual([0x7fc00000, 0x7fc00000]);
    }
  });
});
