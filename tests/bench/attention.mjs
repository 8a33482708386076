// npm run bench -- --attention: wg.attention() next to the same steps as separate calls: a product,
// a softmax, a product. The softmax is a loop in JavaScript over views of the heap. Another
// contestant has the steps as operators of one ONNX model, which copies its inputs.
import { createGemm } from 'wgemm';
import { loadModel } from 'wgemm/onnx';
import { fail } from '../../scripts/run.mjs';
import { randomArray } from './data.mjs';
import { graphMaker } from './models/graph.mjs';
import { duration } from './print.mjs';
import { race } from './turns.mjs';

const sizes = [
  { heads: 12, queries: 128, keys: 128, size: 64 },
  { heads: 12, queries: 1, keys: 2048, size: 64 },
  { heads: 1, queries: 1, keys: 2048, size: 64 },
  { heads: 12, queries: 16, keys: 16, size: 64 },
  { heads: 12, queries: 512, keys: 512, size: 64 },
  { heads: 8, queries: 512, keys: 512, size: 64 },
  { heads: 8, queries: 1024, keys: 1024, size: 128 },
  { heads: 9, keyHeads: 3, queries: 1, keys: 512, size: 64 },
].map((each) => ({ keyHeads: each.heads, ...each, name: nameOf(each) }));

function nameOf({ heads, keyHeads, queries, keys, size }) {
  return `${heads}${keyHeads ? `/${keyHeads}` : ''} x ${queries} x ${keys} x ${size}`;
}

/** Prints how long attention takes in each case whose name contains the filter. */
export async function raceAttention({ threads, filter }) {
  const chosen = sizes.filter(({ name }) => name.includes(filter));
  if (chosen.length === 0)
    fail(
      `bench: no case of attention contains "${filter}"; there are ` +
        sizes.map(({ name }) => name).join(', '),
    );
  using wg = await createGemm({ threads, models: true });
  console.log('heads x queries x keys x size, best and median:');
  for (const one of chosen) {
    const contestants = [attention, calls, model];
    const made = [];
    for (const make of contestants) made.push(await make(wg, one));
    const [own, ...others] = await Promise.all(made.map(({ result }) => result()));
    for (const other of others)
      if (own.some((value, i) => Math.abs(value - other[i]) > 1e-5))
        fail(`bench: ${one.name}: the contestants disagree`);
    const times = await race(made, { warmUpMs: 300, raceMs: 2000 });
    const [first, ...rest] = times;
    const ratio = (which) => Math.min(...rest.map((each) => each[which])) / first[which];
    const texts = times.map(
      ({ best, median }, i) => `${contestants[i].name} ${duration(best)} ${duration(median)}`,
    );
    console.log(
      `${one.name}: ${texts.join(', ')}; ` +
        `${ratio('best').toFixed(2)} and ${ratio('median').toFixed(2)} times as fast`,
    );
    for (const { dispose } of made) dispose();
  }
}

const scaleOf = ({ size }) => 1 / Math.sqrt(size);

/** q, k and v. */
function inputsOf({ heads, keyHeads, queries, keys, size }) {
  const tensor = (seed, ...shape) => {
    const count = shape.reduce((all, each) => all * each);
    return { shape, data: randomArray('float32', count, seed) };
  };
  return [
    tensor(1, heads, queries, size),
    tensor(2, keyHeads, keys, size),
    tensor(3, keyHeads, keys, size),
  ];
}

function inHeap(wg, { shape, data }) {
  const tensor = wg.alloc('float32', shape);
  tensor.data.set(data);
  return tensor;
}

const repeated = (call) => (times) => {
  for (let i = 0; i < times; ++i) call();
};

function attention(wg, one) {
  const tensors = inputsOf(one).map((each) => inHeap(wg, each));
  const [q, k, v] = tensors;
  const out = wg.alloc('float32', q.shape);
  const run = repeated(() => wg.attention(q, k, v, { out }));
  return {
    run,
    result: () => (run(1), out.data.slice()),
    dispose: () => [...tensors, out].forEach((each) => each.dispose()),
  };
}

function calls(wg, one) {
  const { heads, keyHeads, queries, keys, size } = one;
  const group = heads / keyHeads;
  // Heads that share keys are rows of one product.
  const rows = group * queries;
  const [{ data }, ...others] = inputsOf(one);
  const tensors = [{ data, shape: [keyHeads, rows, size] }, ...others].map((each) =>
    inHeap(wg, each),
  );
  const [q, k, v] = tensors;
  const scores = wg.alloc('float32', [keyHeads, rows, keys]);
  const out = wg.alloc('float32', [keyHeads, rows, size]);
  const alpha = scaleOf(one);
  const run = repeated(() => {
    wg.matmul(q, k, null, { transposeB: true, alpha, out: scores });
    softmax(scores.data, keys);
    wg.matmul(scores, v, null, { out });
  });
  return {
    run,
    result: () => (run(1), out.data.slice()),
    dispose: () => [...tensors, scores, out].forEach((each) => each.dispose()),
  };
}

/** Replaces each row by its softmax. */
function softmax(x, size) {
  for (let begin = 0; begin < x.length; begin += size) {
    const end = begin + size;
    let most = -Infinity;
    for (let i = begin; i < end; ++i) if (x[i] > most) most = x[i];
    let sum = 0;
    for (let i = begin; i < end; ++i) {
      const power = Math.exp(x[i] - most);
      x[i] = power;
      sum += power;
    }
    const share = 1 / sum;
    for (let i = begin; i < end; ++i) x[i] *= share;
  }
}

async function model(wg, one) {
  const { heads, keyHeads, queries, keys, size } = one;
  const graph = graphMaker(1);
  const { node } = graph;
  const rows = (heads / keyHeads) * queries;
  const turned = node('Transpose', ['k'], 'turned', { perm: [0, 2, 1] });
  const product = node('MatMul', ['q', turned], 'product');
  const scaled = node('Mul', [product, graph.scalar('scale', 'float32', scaleOf(one))], 'scaled');
  const powers = node('Softmax', [scaled], 'powers', { axis: -1 });
  node('MatMul', [powers, 'v'], 'y');
  const value = (name, rowsOf) => ({ name, dtype: 'float32', shape: [keyHeads, rowsOf, size] });
  const bytes = graph.encode({
    opset: 17,
    inputs: [value('q', rows), value('k', keys), value('v', keys)],
    outputs: [value('y', rows)],
  });
  const loaded = await loadModel(bytes, { wg });
  const [q, k, v] = inputsOf(one);
  const feeds = { q: { ...q, shape: [keyHeads, rows, size] }, k, v };
  const run = async (times) => {
    for (let i = 0; i < times; ++i) await loaded.run(feeds);
  };
  return {
    run,
    result: async () => (await loaded.run(feeds)).y.data,
    dispose: () => loaded.dispose(),
  };
}
