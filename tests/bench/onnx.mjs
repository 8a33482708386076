// Races models by wgemm/onnx and by ONNX Runtime Web, in one process and in turns.
//   node tests/bench/onnx.mjs [--threads 1] [--only encoder,digits] [--json run.json]
//     --targets   fails if a ratio misses its target
//     --products  prints the products of each model, with their times
import { writeFileSync } from 'node:fs';
import { createGemm } from 'wgemm';
import { loadModel } from 'wgemm/onnx';
import { encoderBlock, mlp } from '../peers/onnx-graphs.mjs';
import { loadOrt } from '../peers/onnx.mjs';
import { main } from '../../scripts/run.mjs';
import { randomFrom } from '../conformance/qgemm.mjs';
import { readOptions } from './options.mjs';
import { race } from './turns.mjs';

/** Name -> the model, its input, and how many times as fast wgemm must be. */
const models = {
  encoder: { model: () => encoderBlock(), shape: [1, 128, 768], output: 'y', target: 1.3 },
  gelu: { model: () => encoderBlock({ gelu: 'op' }), shape: [1, 128, 768], output: 'y' },
  digits: { model: () => mlp(), shape: [1, 784], output: 'scores' },
};

await main(async () => {
  const values = readOptions({
    only: { type: 'string', default: 'encoder,gelu,digits' },
    json: { type: 'string' },
    targets: { type: 'boolean', default: false },
    products: { type: 'boolean', default: false },
  });
  const { threads } = values;
  const ort = await loadOrt({ threads });
  const wg = await createGemm({ threads, models: true });
  const rows = [];
  for (const name of values.only.split(',')) {
    const { model, shape, output, target } = models[name];
    const bytes = model();
    const random = randomFrom(7);
    const data = Float32Array.from(
      { length: shape.reduce((a, b) => a * b) },
      () => 2 * random() - 1,
    );
    const session = await ort.createSession(bytes);
    const own = await loadModel(bytes, { wg });
    const feeds = { x: { data, shape } };
    const theirs = { x: ort.tensor({ dtype: 'float32', shape, data }) };
    const results = [(await own.run(feeds))[output], (await session.run(theirs))[output]];
    const far = results[0].data.reduce(
      (most, value, i) => Math.max(most, Math.abs(value - results[1].data[i])),
      0,
    );
    if (!(far < 1e-4)) throw new Error(`${name}: the results differ by ${far}`);
    const timed = await race([
      {
        run: async (times) => {
          for (let i = 0; i < times; ++i) await own.run(feeds);
        },
      },
      {
        run: async (times) => {
          for (let i = 0; i < times; ++i) await session.run(theirs);
        },
      },
    ]);
    const [mine, other] = timed;
    const ratio = other.median / mine.median;
    const missed = target && ratio < target;
    if (values.targets && missed) process.exitCode = 1;
    rows.push({ model: name, threads, wgemm: mine, ort: other, ratio });
    console.log(
      `${name.padEnd(10)} threads ${threads}  wgemm ${mine.median.toFixed(3)} ms (best ` +
        `${mine.best.toFixed(3)})  ONNX Runtime Web ${other.median.toFixed(3)} ms (best ` +
        `${other.best.toFixed(3)})  ${ratio.toFixed(2)}x${missed ? ' MISSED' : ''}  ` +
        `differ by ${far}`,
    );
    if (values.products) {
      for (const { node, op, fused, operands, time, plan } of await own.explain({ x: shape }))
        console.log(
          `  ${[op, ...fused].join(' + ').padEnd(30)} ${node.padEnd(24)} ` +
            `${operands.map(({ shape }) => `[${shape}]`).join(' ')}  ${time.toFixed(3)} ms ` +
            plan.kernel,
        );
    }
    own.dispose();
  }
  if (values.json)
    writeFileSync(values.json, `${JSON.stringify({ version: ort.version, rows }, null, 1)}\n`);
});
process.exit(); // ONNX Runtime Web's threads go on
