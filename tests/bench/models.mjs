// npm run bench -- --models: whole models by wgemm/onnx and by ONNX Runtime Web, in turns.
import { createGemm } from 'wgemm';
import { loadModel } from 'wgemm/onnx';
import { randomFrom } from '../conformance/qgemm.mjs';
import { loadOrt } from '../peers/onnx.mjs';
import { decoding, raceDecoding } from './models/decoding.mjs';
import { miniLm, textsOf } from './models/minilm.mjs';
import { chainLengths, nodes } from './models/nodes.mjs';
import { smallModels } from './models/small.mjs';
import { bestAndMedian, pause, race, timeOf } from './turns.mjs';

/** How far an output may be from ONNX Runtime Web's, relative to its largest value. */
const usualBound = 1e-3;

/** The same for models that quantize what they have computed. */
const intBound = 0.05;

const sides = [
  { name: 'wgemm', kind: 'own' },
  { name: 'ONNX Runtime Web', kind: 'peer' },
];

/** The texts of 200 runs, whose lengths are from 5 to 128 tokens. */
function randomTexts() {
  const random = randomFrom(5);
  return Array.from({ length: 200 }, (_, i) =>
    textsOf({ tokens: 5 + Math.floor(random() * 124), seed: i }),
  );
}

const textSizes = [
  { size: '16 tokens', feeds: () => [textsOf({ tokens: 16 })] },
  { size: '128 tokens', feeds: () => [textsOf({ tokens: 128 })] },
  { size: '8 x 128 tokens', feeds: () => [textsOf({ batch: 8, tokens: 128 })] },
  { size: '200 runs of 5 to 128 tokens', feeds: randomTexts },
];

/**
 * { name, variant, bytes(), bound?, sizes }. feeds() of a size returns the inputs of one run, or of
 * many runs. The int8 MiniLM quantizes what it has computed. If two sums differ in their last bits,
 * an element may round to the next integer, and each layer after it adds to the difference.
 */
const models = [
  { name: 'MiniLM', variant: 'float32', bytes: () => miniLm(), sizes: textSizes },
  {
    name: 'MiniLM',
    variant: 'int8',
    bytes: () => miniLm({ variant: 'int8' }),
    bound: intBound,
    sizes: textSizes,
  },
  ...smallModels.map(({ feeds, ...model }) => ({ ...model, sizes: [{ feeds: () => [feeds()] }] })),
];

const titleOf = ({ name }, { size }) => [name, size].filter(Boolean).join(', ');

const rowOf = ({ variant }, title) => `${title}, ${variant}`;

/** The models and sizes that --models --filter takes: the names of their rows. */
export const modelNames = [
  ...models.flatMap((model) => model.sizes.map((size) => rowOf(model, titleOf(model, size)))),
  rowOf(decoding, decoding.title),
  ...nodes.map((node) => rowOf(node, node.name)),
];

/**
 * Tells the row of each model and size: { name, model, variant, difference, contestants }.
 *
 * @param settings `threads`; `filter`: text that the name of a row must contain
 * @param tell as in work.mjs
 */
export async function raceModels({ threads, filter }, tell) {
  const wg = await createGemm({ threads, models: true });
  const ort = await loadOrt({ threads });
  const versions = { wgemm: wg.info.version, 'onnxruntime-web': ort.version };
  await tell('start', { build: wg.info.build, versions, withoutThreads: [] });
  for (const { sizes, bytes, ...model } of models) {
    const chosen = sizes
      .map((size) => ({ ...size, title: titleOf(model, size) }))
      .filter(({ title }) => rowOf(model, title).includes(filter));
    if (chosen.length === 0) continue;
    const contestants = await load(bytes(), wg, ort);
    for (const size of chosen)
      await tell('model', await raceOne(model, size, contestants, threads));
    for (const { dispose } of contestants) await dispose();
  }
  if (rowOf(decoding, decoding.title).includes(filter))
    await tell('model', await raceSteps(wg, ort, threads));
  for (const node of nodes)
    if (rowOf(node, node.name).includes(filter))
      await tell('model', await raceNode(node, wg, ort, threads));
  wg.dispose();
}

/**
 * Loads a model in both libraries, once for all sizes. runs(feeds) prepares inputs, and returns the
 * runs.
 *
 * @param options the options of ONNX Runtime's session
 */
async function load(bytes, wg, ort, options) {
  const own = await loadModel(bytes, { wg });
  const session = await ort.createSession(bytes, options);
  const toOrt = (feed) =>
    Object.fromEntries(Object.entries(feed).map(([name, value]) => [name, ort.tensor(value)]));
  return [
    {
      ...sides[0],
      runs: (feeds) => feeds.map((feed) => () => own.run(feed)),
      dispose: () => own.dispose(),
    },
    {
      ...sides[1],
      runs: (feeds) => feeds.map(toOrt).map((feed) => () => session.run(feed)),
      dispose: () => session.release(),
    },
  ];
}

async function raceOne({ bound, ...model }, { title, feeds }, both, threads) {
  const all = feeds();
  const [mine, theirs] = both.map(({ runs }) => runs(all));
  const difference = await compare(rowOf(model, title), bound, mine, theirs);
  const timed = await (all.length > 1
    ? raceRuns([mine, theirs])
    : raceEach([mine, theirs], threads));
  return {
    name: rowOf(model, title),
    model: title,
    variant: model.variant,
    runs: all.length,
    difference,
    contestants: both.map(({ name, kind }, i) => ({ name, kind, ...timed[i] })),
  };
}

/** Times the step of a decoder. */
async function raceSteps(wg, ort, threads) {
  const { title, variant } = decoding;
  const name = rowOf(decoding, title);
  const { difference, timed, products } = await raceDecoding(wg, ort, { rest: restOf(threads) });
  checkDifference(name, difference, intBound);
  const contestants = sides.map((side, i) => ({ ...side, ...timed[i] }));
  return { name, model: title, variant, runs: 1, difference, contestants, products };
}

/** Times one node: the difference of the times of a longer and a shorter chain, per node. */
async function raceNode({ name: title, variant, chains, feeds }, wg, ort, threads) {
  const name = rowOf({ variant }, title);
  // With optimization, ONNX Runtime would join some nodes, and drop others.
  const options = { graphOptimizationLevel: 'disabled' };
  const loaded = [];
  for (const bytes of chains()) loaded.push(await load(bytes, wg, ort, options));
  const runs = loaded.map((both) => both.map((side) => side.runs([feeds()])));
  const difference = await compare(name, usualBound, ...runs[1]);
  const timed = await raceEach(runs.flat(), threads);
  const [fewer, more] = chainLengths;
  const perNode = (side, of) => (timed[2 + side][of] - timed[side][of]) / (more - fewer);
  for (const { dispose } of loaded.flat()) await dispose();
  return {
    name,
    model: title,
    variant,
    runs: 1,
    difference,
    contestants: loaded[0].map(({ name, kind }, side) => ({
      name,
      kind,
      median: perNode(side, 'median'),
      best: perNode(side, 'best'),
    })),
  };
}

/** The largest difference of the outputs of both sides. Throws if it is above the bound. */
async function compare(name, bound = usualBound, mine, theirs) {
  let difference = 0;
  for (const [i, run] of mine.entries())
    difference = Math.max(difference, differenceOf(await run(), await theirs[i]()));
  checkDifference(name, difference, bound);
  return difference;
}

function checkDifference(name, difference, bound) {
  if (difference <= bound) return;
  throw new Error(
    `${name}: the outputs differ by ${difference} of the largest value; expected at most ${bound}`,
  );
}

/**
 * Milliseconds between the turns of sides with threads. The threads of ONNX Runtime go on to spin
 * for a while after a run, and would take the processors from the other side.
 */
const rest = 20;

const restOf = (threads) => (threads > 1 ? rest : 0);

/** Times the first run of each side. */
const raceEach = (sides, threads) =>
  race(
    sides.map(([run]) => ({ run: (times) => repeat(run, times) })),
    { rest: restOf(threads) },
  );

async function repeat(run, times) {
  for (let i = 0; i < times; ++i) await run();
}

/**
 * Times different runs, each once per pass: all runs of one side, then all runs of the other.
 *
 * @param sides for each side its runs, which have run before
 * @returns milliseconds of all runs of a side, as race() returns them
 */
async function raceRuns(sides) {
  const samples = sides.map(() => []);
  for (let pass = 0; pass < 4; ++pass)
    for (let i = 0; i < sides.length; ++i) {
      const side = (pass + i) % sides.length;
      await pause(rest);
      let total = 0;
      for (const run of sides[side]) total += await timeOf(run, 1);
      samples[side].push(total);
    }
  return samples.map(bestAndMedian);
}

/** The largest difference of two results, relative to the largest value. */
function differenceOf(mine, theirs) {
  let worst = 0;
  for (const [name, { data, dims }] of Object.entries(theirs)) {
    const own = mine[name];
    if (String(own.shape) !== String(dims))
      throw new Error(`${name} has shape [${own.shape}]; expected [${dims}]`);
    let [far, most] = [0, 0];
    for (let i = 0; i < data.length; ++i) {
      const each = Math.abs(own.data[i] - data[i]);
      if (!(each <= far)) far = each; // NaN, too
      most = Math.max(most, Math.abs(data[i]));
    }
    worst = Math.max(worst, far / most);
  }
  return worst;
}
