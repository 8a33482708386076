/**
 * Products between DequantizeLinear and QuantizeLinear, on seeded random models. ONNX Runtime Web
 * fuses them, too. All bits must be equal.
 */
import { expect, it } from 'vitest';
import { loadModel, type ModelResult } from 'wgemm/onnx';
import type { OrtTensor } from '../../peers/onnx.mjs';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { Random } from '../support/random.js';
import { ort, wg } from '../support/with-ort.js';
import { between, type Static } from './static-products.js';

/** Options of a model that the runtime fuses. Without QuantizeLinear, it does not fuse all types. */
function draw(random: Random, seed: number): Static {
  const op = random.pick(['Gemm', 'MatMul'] as const);
  const ends = random.pick([['QuantizeLinear'], ['Relu', 'QuantizeLinear'], ['Relu'], []]);
  const isFloat = !ends.includes('QuantizeLinear');
  const isSigned = random.next() < 0.3 && !(isFloat && op === 'MatMul') && !ends.includes('Relu');
  const rows = random.between(1, 20);
  const k = random.between(1, 300);
  return {
    op,
    ends,
    seed,
    shape: op === 'MatMul' && random.next() < 0.5 ? [2, rows, k] : [rows, k],
    dtype: isSigned ? 'int8' : 'uint8',
    weights: isSigned ? 'int8' : random.pick(['int8', 'uint8'] as const),
    isPerColumn: random.next() < 0.5,
    ...(op === 'Gemm' && {
      transB: random.pick([0, 1] as const),
      alpha: isFloat ? 1 : random.pick([1, 0.5]),
      hasBias: random.next() < 0.7,
    }),
  };
}

const random = new Random(7);
const draws = Array.from({ length: 60 }, (_, i) => between(draw(random, i)));

it.each(draws.map((form) => [form.name, form] as const))('%s', async (_, { spec, feeds }) => {
  const model = await loadModel(encodeGraph(spec), { wg });
  const { y } = (await model.run(feeds)) as { y: ModelResult };
  model.dispose();
  const outputs = [{ name: 'y', dtype: y.dtype }];
  const session = await ort.createSession(encodeGraph({ ...spec, outputs }));
  const results: Record<string, OrtTensor> = await session.run({ x: ort.tensor(feeds.x as never) });
  expect(results.y?.dims).toEqual(y.shape);
  expect(results.y?.data).toEqual(y.data);
});
