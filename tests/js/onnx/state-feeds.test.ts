/** Feeds of runs with a state: tensors of the instance, and getters that end the state. */
import { expect, it } from 'vitest';
import { createGemm } from 'wgemm';
import { loadModel, type ModelState } from 'wgemm/onnx';
import { createGemm as createInWorker } from 'wgemm/worker';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { expectError, rejected } from '../support/errors.js';

const bytes = encodeGraph({
  nodes: [
    { op: 'Concat', inputs: ['past', 'x'], outputs: ['present'], attributes: { axis: 0 } },
    { op: 'ReduceMax', inputs: ['present'], outputs: ['y'], attributes: { keepdims: 0 } },
  ],
  inputs: [
    { name: 'past', dtype: 'float32', shape: ['before'] },
    { name: 'x', dtype: 'float32', shape: ['rows'] },
  ],
  outputs: [
    { name: 'y', dtype: 'float32' },
    { name: 'present', dtype: 'float32' },
  ],
});
const pair = { present: 'past' };
const x = { data: Float32Array.of(1), shape: [1] };

it('reads a feed in the memory of the instance, which grows for the state', async () => {
  const wg = await createGemm({ models: true });
  const model = await loadModel(bytes, { wg });
  const state = await model.state(pair);
  const past = wg.alloc('float32', [1 << 23]);
  past.data.fill(7);
  const { y } = await model.run({ past, x }, { state });
  expect([...(y?.data ?? [])]).toEqual([7]);
  wg.dispose();
});

it('says that a getter has disposed of the state', async () => {
  const wg = await createInWorker({ models: true });
  const model = await loadModel(bytes, { wg });
  const state = await model.state(pair);
  const feeds = {
    get x() {
      state.dispose();
      return x;
    },
  };
  expectError(await rejected(model.run(feeds, { state })), {
    code: 'DISPOSED',
    op: 'run',
    argument: 'state',
    says: ['the state or its model is disposed; make another by model.state()'],
  });
  wg.dispose();
});

it('names clone if memory is missing for a copy', async () => {
  const wg = await createGemm({ models: true, maxMemory: 8e6 });
  const model = await loadModel(bytes, { wg });
  const state = await model.state(pair);
  await model.run({ past: { data: new Float32Array(4e5), shape: [4e5] }, x }, { state });
  const { inUse } = wg.memory();
  const copies: ModelState[] = [];
  const fill = async () => {
    for (;;) copies.push(await state.clone());
  };
  expectError(await rejected(fill()), {
    code: 'OUT_OF_MEMORY',
    op: 'clone',
    argument: 'past',
    says: ['clone: the kept input "past" takes'],
  });
  for (const copy of copies) copy.dispose();
  expect(wg.memory().inUse).toBe(inUse);
  wg.dispose();
});
