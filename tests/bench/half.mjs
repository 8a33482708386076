// Races elements of 16 bits with float32, outside of products: in operators of models, and in
// tensor() and toNested(). Both sides take turns, in one process.
//   node tests/bench/half.mjs [--only Add,Cast] [--threads 1]
import { createGemm, tensor, toNested } from 'wgemm';
import { loadModel } from 'wgemm/onnx';
import { encodeGraph } from '../peers/onnx-model.mjs';
import { randomFrom } from '../conformance/qgemm.mjs';
import { main } from '../../scripts/run.mjs';
import { readOptions } from './options.mjs';
import { race } from './turns.mjs';

const shape = [512, 1024];
const count = shape[0] * shape[1];
const random = randomFrom(7);
const numbers = Float32Array.from({ length: count }, () => 2 * random() - 1);
/** A model of one operator, on a type. */
async function operator(wg, op, dtype, inputs, attributes = {}, result = dtype) {
  const names = inputs.map((_, i) => `x${i}`);
  const tensorOf = (name, shape) => ({ name, dtype, shape });
  const model = await loadModel(
    encodeGraph({
      opset: 21,
      nodes: [{ op, inputs: names, outputs: ['y'], attributes }],
      inputs: inputs.map((shape, i) => tensorOf(names[i], shape)),
      outputs: [{ name: 'y', dtype: result, shape }],
    }),
    { wg },
  );
  const feeds = {};
  inputs.forEach((shape, i) => {
    const size = shape.reduce((product, size) => product * size, 1);
    feeds[names[i]] = tensor({ data: numbers.subarray(0, size), shape }, { dtype });
  });
  return () => model.run(feeds);
}

const row = [shape[1]];
const cases = {
  Add: (dtype, wg) => operator(wg, 'Add', dtype, [shape, shape]),
  Relu: (dtype, wg) => operator(wg, 'Relu', dtype, [shape]),
  Sigmoid: (dtype, wg) => operator(wg, 'Sigmoid', dtype, [shape]),
  Softmax: (dtype, wg) => operator(wg, 'Softmax', dtype, [shape]),
  LayerNormalization: (dtype, wg) => operator(wg, 'LayerNormalization', dtype, [shape, row, row]),
  Cast: (dtype, wg) => operator(wg, 'Cast', dtype, [shape], { to: 6 }, 'int32'),
  'tensor()': (dtype) => () => tensor({ data: Float64Array.from(numbers), shape }, { dtype }),
  'toNested()': (dtype) => {
    const y = tensor({ data: numbers, shape }, { dtype });
    return () => toNested(y);
  },
};

await main(async () => {
  const { only, threads } = readOptions({ only: { type: 'string' } });
  using wg = await createGemm({ threads, models: true });
  for (const name of only?.split(',') ?? Object.keys(cases)) {
    const dtypes = ['float32', 'float16', 'bfloat16'];
    const calls = await Promise.all(dtypes.map(async (dtype) => await cases[name](dtype, wg)));
    const timed = await race(
      calls.map((call) => ({
        run: async (times) => {
          for (let i = 0; i < times; ++i) await call();
        },
      })),
      { raceMs: 1000 },
    );
    const best = timed.map(({ best }) => best);
    const ratios = best
      .slice(1)
      .map((time, i) => `${dtypes[i + 1]} ${(time / best[0]).toFixed(2)}`);
    console.log(`${name.padEnd(20)} float32 ${best[0].toFixed(3)} ms, times: ${ratios.join(', ')}`);
  }
});
