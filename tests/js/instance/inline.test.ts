/** `wgemm/inline`: the same as `wgemm`, in one file. */
import { expect, it } from 'vitest';
import * as wgemm from 'wgemm';
import * as inline from 'wgemm/inline';
import * as linear from 'wgemm/linear';
import { dtypes } from '../support/dtypes.js';
import { thrown } from '../support/errors.js';
import { Random } from '../support/tensors.js';

it('exports what wgemm and wgemm/linear do', () => {
  const isPublic = (name: string) => !name.startsWith('$'); // the others are for other entries
  const names = Object.keys({ ...wgemm, ...linear }).filter(isPublic);
  expect(Object.keys(inline).sort()).toEqual(names.sort());
  expect(inline.version).toBe(wgemm.version);
});

it('gives the same, bit for bit', async () => {
  const options = { simd: 'simd128', threads: 1 } as const;
  const [one, other] = await Promise.all([wgemm.createGemm(options), inline.createGemm(options)]);
  expect(other.info).toEqual(one.info);
  for (const dtype of dtypes) {
    const random = new Random(1);
    const [a, b] = [random.tensor(dtype, [20, 30]), random.tensor(dtype, [30, 25])];
    expect(other.gemm(a, b, 1, { alpha: 2 })).toEqual(one.gemm(a, b, 1, { alpha: 2 }));
    expect(other.matmul(a, other.pack(b, { op: 'matmul' }))).toEqual(one.matmul(a, b));
  }
  const heap = other.alloc('float32', [2, 2]);
  expect(thrown(() => other.gemm(heap, 5 as never))).toBeInstanceOf(inline.ArgumentError);
  // Another's tensor is any object with data and shape.
  expect(one.gemm(heap as never, heap as never).data).toEqual(new Float32Array(4));
  one.dispose();
  other.dispose();
});

it('has one build, and says so if another is asked for', async () => {
  await expect(inline.createGemm({ simd: 'relaxed' })).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    argument: 'simd',
  });
  const wg = await inline.createGemm();
  expect(wg.info).toMatchObject({
    build: 'simd128',
    why: 'build: this entry has simd128 only; threads: as asked',
  });
  wg.dispose();
  await expect(inline.createGemm({ threads: 2 })).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    argument: 'threads',
    message: expect.stringContaining('this entry has no threads') as string,
  });
  const auto = await inline.createGemm({ threads: 'auto' });
  expect(auto.info.threads).toBe(1);
  expect(auto.info.why).toMatch(
    /threads: (one, since this entry has no threads|one, since there is only one processor)/,
  );
  auto.dispose();
});

it('has no operators of models, and says so', async () => {
  await expect(inline.createGemm({ models: true })).rejects.toMatchObject({
    name: 'UnsupportedError',
    argument: 'models',
    message: 'createGemm: models is true; this entry has no operators of models',
  });
  (await inline.createGemm({ models: false })).dispose();
});

it('takes assets all the same', async () => {
  let asked = '';
  const mine = new RangeError('mine');
  const assets = (file: string) => {
    asked = file;
    return Promise.reject(mine);
  };
  await expect(inline.createGemm({ assets })).rejects.toBe(mine);
  expect(asked).toBe('wgemm-simd128.wasm');
});
