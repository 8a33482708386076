/** Layers in a worker: the results, bytes and errors of those here. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGemm as createHere, type Gemm, quantize, type Tensor } from 'wgemm';
import * as here from 'wgemm/linear';
import {
  createGemm,
  createLinear,
  deserializeLinear,
  type WorkerGemm,
  type WorkerLinear,
} from 'wgemm/worker';
import { expectSameError, rejected, thrown } from '../support/errors.js';
import { Random } from '../support/tensors.js';

let wg: WorkerGemm;
let local: Gemm;
beforeAll(async () => {
  [wg, local] = await Promise.all([createGemm(), createHere()]);
});
afterAll(async () => {
  expect((await wg.memory()).inUse).toBe(0);
  wg.dispose();
  local.dispose();
});

const random = new Random(1);
const floats = (...shape: number[]): Tensor<Float32Array> =>
  random.tensor('float32', shape) as never;
const create = (options: object): Promise<WorkerLinear> => createLinear(wg, options as never);

it.each(['float32', 'bfloat16', 'int8'])('%s: equals the layer here', async (as) => {
  const options = { weights: floats(19, 7), bias: floats(7), activation: 'relu', as };
  const layer = await create(options);
  using same = here.createLinear(local, options as never);
  expect(layer).toMatchObject({ inputs: 19, outputs: 7, dtype: as, byteLength: same.byteLength });
  const bytes = await layer.serialize();
  expect(bytes).toEqual(same.serialize());
  const read = await deserializeLinear(wg, bytes);
  const x = floats(2, 3, 19);
  const y = same.run(x);
  expect(await layer.run(x)).toEqual(y);
  expect(await read.run(x)).toEqual(y);
  const out = { data: new Float32Array(42), shape: y.shape };
  expect(await layer.run(x, { out })).toBe(out);
  expect(out.data).toEqual(y.data);
  const held = await wg.alloc('float32', x.shape);
  const heldOut = await wg.alloc('float32', y.shape);
  await held.write(x.data);
  expect(await layer.run(held, { out: heldOut })).toBe(heldOut);
  expect(await heldOut.read()).toEqual(y.data);
  const part = { data: x.data, shape: [19], strides: [1], offset: 19 };
  expect(await layer.run(part)).toEqual(same.run(part));
  expect(await layer.run({ ...part, data: held })).toEqual(same.run(part));
  for (const each of [layer, read, held, heldOut]) each.dispose();
});

it('takes static quantization, and quantized weights', async () => {
  const [w, x] = [floats(19, 7), floats(4, 19)];
  const options = { weights: quantize(w, { axis: 1 }), input: quantize(x), output: { scale: 0.5 } };
  const layer = await create(options);
  using same = here.createLinear(local, options as never);
  expect(await layer.run(x)).toEqual(same.run(x));
  layer.dispose();
});

it('errors are the errors of a layer here, also after dispose()', async () => {
  const weights = floats(3, 4);
  for (const options of [
    {},
    { weights, as: 'int4' },
    { weights, bias: floats(3) },
    { weights, input: 1 },
  ])
    // prettier-ignore
    expectSameError(
      await rejected(create(options)),
      thrown(() => here.createLinear(local, options as never)),
    );
  const [layer, same] = [await create({ weights, as: 'int8' }), here.createLinear(local, { weights, as: 'int8' } as never)]; // prettier-ignore
  const nan = { data: Float32Array.of(1, NaN, 3), shape: [3] };
  for (const x of [null, floats(4), nan])
    expectSameError(
      await rejected(layer.run(x as never)),
      thrown(() => same.run(x as never)),
    );
  const bytes = new Uint8Array(200);
  expectSameError(
    await rejected(deserializeLinear(wg, bytes)),
    thrown(() => here.deserializeLinear(local, bytes)),
  );
  layer.dispose();
  same.dispose();
  expect(layer.disposed).toBe(true);
  expectSameError(
    await rejected(layer.run(floats(3))),
    thrown(() => same.run(floats(3))),
  );
  const signal = AbortSignal.abort(new Error('enough'));
  await expect(create({ weights, signal })).rejects.toThrow('enough');
});
