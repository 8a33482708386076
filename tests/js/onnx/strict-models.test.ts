/**
 * With `determinism: 'strict'`, a whole model has the same bits in every engine and build, and a row
 * has the same bits alone and in a batch.
 */
import { expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { loadModel, type Model } from 'wgemm/onnx';
import { miniLm, textsOf } from '../../bench/models/minilm.mjs';
import { encoderBlock, int8Mlp, mlp } from '../../peers/onnx-graphs.mjs';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { arrayClasses } from '../support/dtypes.js';
import { hashOf, hasThreads, threadCounts } from '../support/fixed-problems.js';
import { Random } from '../support/random.js';

/** The first half of the hash of the outputs for texts of 31 tokens, and then for two texts of 7. */
const hashes = {
  float32: '2c35ac04d33be5f1168781d79f5036d6',
  int8: '9c18f44154a3634e614a06bc9d3ee774',
};

const cases = (['float32', 'int8'] as const).flatMap((variant) =>
  threadCounts
    .filter((count) => count === 1 || hasThreads)
    .map((threads) => [variant, threads] as const),
);

it.each(cases)(
  'MiniLM in %s has the same bits everywhere; threads: %i',
  async (variant, threads) => {
    const bytes = miniLm({ variant });
    for (const simd of ['simd128', 'auto'] as const) {
      const wg = await createGemm({ models: true, determinism: 'strict', threads, simd });
      const model = await loadModel(bytes, { wg });
      const results: Uint8Array[] = [];
      for (const text of [{ tokens: 31 }, { batch: 2, tokens: 7 }, { tokens: 31 }]) {
        const { last_hidden_state: y } = await model.run(textsOf(text));
        const { buffer, byteOffset, byteLength } = y?.data as Float32Array;
        results.push(new Uint8Array(buffer, byteOffset, byteLength));
      }
      expect(results[2], 'the same run again').toEqual(results[0]);
      expect(await hashOf(results.slice(0, 2)), wg.info.build).toMatch(hashes[variant]);
      wg.dispose();
    }
  },
);

type Feeds = Parameters<Model['run']>[0];

const dataOf = (values: Feeds) => Object.values(values).map(({ data }) => data);

/** Some rows of the first axis of each feed, or of each result. */
function rowsOf(values: Feeds, first: number, count: number): Feeds {
  const parts = Object.entries(values).map(([name, { data, shape }]) => {
    const [, ...rest] = shape as number[];
    const size = rest.reduce((product, size) => product * size, 1);
    const part = (data as Float32Array).slice(first * size, (first + count) * size);
    return [name, { data: part, shape: [count, ...rest] }] as const;
  });
  return Object.fromEntries(parts);
}

const rows = 8;
const random = new Random(3);
const batchOf = (...shape: number[]) => ({
  x: {
    data: random.fill(new Float32Array(rows * shape.reduce((product, size) => product * size, 1))),
    shape: [rows, ...shape],
  },
});
const batches: [string, Uint8Array, Feeds][] = [
  ['a dense network', mlp({ sizes: [1000, 3, 10] }), batchOf(1000)],
  ['an encoder', encoderBlock({ heads: 4, size: 64, hidden: 200 }), batchOf(9, 64)],
  ['a network of QGemm', int8Mlp(), batchOf(40)],
];

it.each(batches)('%s has the same bits for a row alone and in a batch', async (_, bytes, feeds) => {
  for (const simd of ['simd128', 'auto'] as const) {
    const wg = await createGemm({ models: true, determinism: 'strict', simd });
    const model = await loadModel(bytes, { wg });
    const all = await model.run(feeds);
    for (let i = 0; i < rows; ++i) {
      const alone = await model.run(rowsOf(feeds, i, 1));
      expect(dataOf(alone), `row ${i}`).toEqual(dataOf(rowsOf(all, i, 1)));
    }
    wg.dispose();
  }
});

it('NaN of a result is the canonical one in each type', async () => {
  const wg = await createGemm({ models: true, determinism: 'strict' });
  const canonical = {
    float32: [0x7fc0_0000],
    float64: [0, 0x7ff8_0000],
    float16: [0x7e00],
    bfloat16: [0x7fc0],
  };
  for (const [dtype, codes] of Object.entries(canonical)) {
    const shape = [3];
    const info = (name: string) => ({ name, dtype, shape });
    const bytes = encodeGraph({
      nodes: [
        { op: 'Div', inputs: ['x', 'x'], outputs: ['q'] }, // of zeros
        { op: 'Neg', inputs: ['q'], outputs: ['y'] },
      ],
      inputs: [info('x')],
      outputs: [info('q'), info('y')],
    });
    const model = await loadModel(bytes, { wg });
    const x = { data: new arrayClasses[dtype as 'float32'](3), shape, dtype: dtype as 'float32' };
    for (const { data } of Object.values(await model.run({ x }))) {
      const Codes = dtype.endsWith('16') ? Uint16Array : Uint32Array;
      const found = Array.from(new Codes((data as Float32Array).buffer as ArrayBuffer));
      expect(found, dtype).toEqual([...codes, ...codes, ...codes]);
    }
    model.dispose();
  }
  wg.dispose();
});
