/**
 * The builds compared, and `determinism: 'strict'`: results that must be the same bits in every
 * engine.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm, type Gemm } from 'wgemm';
import { bytesAt } from '../support/assets.js';
import { expectError, notCreated } from '../support/errors.js';
import {
  hashes,
  hashOf,
  makeProblems,
  run,
  hasThreads,
  serialized,
  threadCounts,
} from '../support/fixed-problems.js';
import { hideRelaxed } from '../support/relaxed.js';
import { expectGemm, float32, Random, sameBytes } from '../support/tensors.js';

type Build = 'simd128' | 'relaxed';
const instances: { build: Build; fast: Gemm; strict: Gemm }[] = [];
let isFused = true;

beforeAll(async () => {
  const chosen = await createGemm();
  isFused = !chosen.info.why.includes('does not fuse multiply-adds');
  chosen.dispose();
  for (const simd of ['simd128', 'relaxed'] as const) {
    try {
      instances.push({
        build: simd,
        fast: await createGemm({ simd }),
        strict: await createGemm({ simd, determinism: 'strict' }),
      });
    } catch (error) {
      // If the engine lacks it, the error says so.
      expectError(error, {
        code: 'UNSUPPORTED',
        op: 'createGemm',
        argument: 'simd',
        says: ['no relaxed SIMD'],
      });
    }
  }
});
afterAll(() =>
  instances.forEach(({ fast, strict }) => [fast, strict].forEach((wg) => wg.dispose())),
);

describe('the build', () => {
  it('is the one that was asked for, or the best', async () => {
    for (const { build, fast, strict } of instances) {
      expect(fast.info).toMatchObject({
        build,
        determinism: 'fast',
        why: 'build: as asked; threads: as asked',
      });
      expect(strict.info).toMatchObject({ build, determinism: 'strict' });
      expect(fast.info.kernels.some(({ name }) => name.includes('_relaxed'))).toBe(
        build === 'relaxed',
      );
    }
    const wg = await createGemm();
    expect(wg.info.build).toBe(isFused ? instances.at(-1)?.build : 'simd128');
    wg.dispose();
  });

  it('is simd128 if the engine has no relaxed SIMD, and says so', async () => {
    const showAgain = hideRelaxed();
    try {
      const wg = await createGemm();
      expect(wg.info.build).toBe('simd128');
      expect(wg.info.why).toContain('this engine has no relaxed SIMD');
      wg.dispose();
      const error = await notCreated({ simd: 'relaxed' });
      expectError(error, {
        code: 'UNSUPPORTED',
        op: 'createGemm',
        argument: 'simd',
        says: ["'relaxed'", 'no relaxed SIMD'],
      });
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

describe('models: true', () => {
  it.each(threadCounts.filter((count) => count === 1 || hasThreads))(
    'loads the module that also has the operators of models; threads: %i',
    async (threads) => {
      const square = float32([2, 2], 1, 2, 3, 4);
      for (const { build } of instances) {
        const asked: string[] = [];
        const assets = (file: string) => {
          asked.push(file);
          return import.meta.resolve(`wgemm/assets/${file}`);
        };
        const wg = await createGemm({ models: true, simd: build, threads, assets });
        expectGemm(wg, square, square);
        expect(wg.info).toMatchObject({ build, threads });
        wg.dispose();
        const suffix = threads > 1 ? '-mt' : '';
        expect(asked[0]).toBe(`wgemm-${build}${suffix}-models.wasm`);
        for (const [file, has] of [
          [`wgemm-${build}${suffix}-models.wasm`, true],
          [`wgemm-${build}${suffix}.wasm`, false],
        ] as const) {
          const bytes = await bytesAt(new URL(import.meta.resolve(`wgemm/assets/${file}`)));
          const text = new TextDecoder('latin1').decode(bytes);
          for (const name of ['takePlans', 'operatorName'])
            expect(text.includes(`${name}\0`), `${file}: ${name}`).toBe(has);
        }
      }
    },
  );
});

const problems = makeProblems();
const random = new Random(2026);

describe('results', () => {
  it('are the same bits if packed weights have only 7, for which the relaxed build has a kernel', () => {
    const [m, n, k] = [37, 41, 129];
    const bytes = (length: number, least: number, largest: number) =>
      Array.from({ length }, () => random.between(least, largest));
    for (const least of [-128, -64, -1, 0]) {
      const b = { data: Int8Array.from(bytes(k * n, least, least + 127)), shape: [k, n] };
      for (const data of [
        Int8Array.from(bytes(m * k, -128, 127)),
        Uint8Array.from(bytes(m * k, 0, 255)),
      ]) {
        for (const [aZeroPoint, bZeroPoint] of [
          [0, 0],
          [100, -128],
          [127, 127],
        ] as const) {
          const inputs = {
            a: { data, shape: [m, k] },
            aScale: 1,
            aZeroPoint,
            bScale: 1,
            bZeroPoint,
          };
          const wanted = (instances[0] as { fast: Gemm }).fast.qgemm({ ...inputs, b }).data;
          for (const { build, fast, strict } of instances) {
            for (const wg of [fast, strict]) {
              using weights = wg.pack(b, { op: 'qgemm' });
              expect(
                wg.explain('qgemm', { ...inputs, b: weights }).kernel.includes('_relaxed'),
              ).toBe(build === 'relaxed' && isFused);
              expect(
                sameBytes(wg.qgemm({ ...inputs, b: weights }).data, wanted),
                `${build}, from ${least}`,
              ).toBe(true);
            }
          }
        }
      }
    }
  });

  it.each(problems.map((problem) => [problem.name, problem] as const))(
    '%s: the same bits, where they are promised',
    (_, problem) => {
      const [first] = instances;
      const wanted = run(first?.strict as Gemm, problem);
      for (const { build, fast, strict } of instances) {
        for (const wg of problem.exact ? [fast, strict] : [strict]) {
          for (const packer of [undefined, wg, ...instances.map((other) => other.fast)]) {
            const same = sameBytes(run(wg, problem, packer), wanted);
            expect(
              same,
              `${build}, ${wg.info.determinism}${packer ? `, packed by ${packer.info.build}` : ''}`,
            ).toBe(true);
          }
        }
      }
    },
  );

  it.each(threadCounts.filter((count) => count === 1 || hasThreads))(
    'are, with strict, as in every other engine; threads: %i',
    async (threads) => {
      for (const { build } of instances) {
        const wg = await createGemm({ simd: build, determinism: 'strict', threads });
        expect(await hashOf(problems.map((problem) => run(wg, problem))), build).toBe(
          hashes.strict,
        );
        wg.dispose();
      }
    },
  );

  it('are packed weights of the same bytes as in every other engine', async () => {
    for (const { build, fast } of instances) {
      expect(await hashOf(problems.map((problem) => serialized(fast, problem))), build).toBe(
        hashes.serialized,
      );
    }
  });

  it('hold, with strict, no NaN but the canonical one', () => {
    for (const { strict } of instances) {
      const nan = new Uint32Array(Uint32Array.of(0xffc12345, 0x7fc00001)).buffer;
      const c = { data: new Float32Array(nan), shape: [2] };
      const y = strict.gemm(
        { data: new Float32Array(0), shape: [1, 0] },
        { data: new Float32Array(0), shape: [0, 2] },
        c,
      );
      expect(Array.from(new Uint32Array(y.data.buffer))).toEqual([0x7fc00000, 0x7fc00000]);
    }
  });
});
