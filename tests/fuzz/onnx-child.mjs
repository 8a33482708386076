// Reads, loads and runs mutated models, or random graphs, one after the other, for
// scripts/fuzz-onnx.mjs. It tells its parent each seed before it begins, so that the parent knows
// which one never ends.
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { createGemm, GemmError } from 'wgemm';
import * as onnx from 'wgemm/onnx';
import { encodeGraph } from '../peers/onnx-model.mjs';
import { graphOf } from './onnx-graphs.mjs';
import { modelOf } from './onnx-mutate.mjs';
import { Random } from './random.mjs';

const [first, count, seconds] = process.argv.slice(2, 5).map(Number);
const hasGraphs = process.argv[5] === 'graphs';
const end = performance.now() + 1000 * seconds;
const mb = 2 ** 20;

/**
 * How many models came how far, and runs with a state. For graphs: joined nodes, runs with a state,
 * compared elements, and NaN.
 */
const reached = hasGraphs
  ? { joined: 0, kept: 0, compared: 0, nan: 0 }
  : { read: 0, loaded: 0, ran: 0, kept: 0, refused: 0 };

/** The most elements of a feed. A model may ask for feeds of any size. */
const mostElements = 4096;

const classes = {
  float32: Float32Array,
  float64: Float64Array,
  float16: globalThis.Float16Array ?? Uint16Array,
  bfloat16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

function feedsOf(random, inputs) {
  const dynamic = new Map();
  const feeds = Object.create(null);
  let elements = 0;
  for (const { name, dtype, shape = [2, 2] } of inputs) {
    if (!classes[dtype]) return undefined;
    const sizes = shape.map((size) => {
      if (typeof size === 'number') return size;
      if (!dynamic.has(size)) dynamic.set(size, random.pick([0, 1, 2, 3, 5]));
      return dynamic.get(size);
    });
    const length = sizes.reduce((product, size) => product * size, 1);
    elements += length;
    if (!(elements <= mostElements)) return undefined;
    const isBig = dtype === 'int64' || dtype === 'uint64';
    const data = new classes[dtype](length).map(() => {
      const value = random.upTo(3);
      return isBig ? BigInt(value) : dtype === 'bool' ? value & 1 : value;
    });
    feeds[name] = { data, shape: sizes, dtype };
  }
  return feeds;
}

const externalData = ({ offset, length }) => {
  // A caller's file is no longer than it is.
  if (offset + length > 4096)
    throw new GemmError('ARGUMENT', 'test', '', 'test: "far.bin" is too long');
  return new Uint8Array(length);
};

async function tryModel(wg, seed) {
  const random = new Random(~seed);
  const bytes = modelOf(seed);
  await onnx.readOnnx(bytes, { externalData });
  ++reached.read;
  if (!onnx.loadModel) return;
  const model = await onnx.loadModel(bytes, { wg, externalData });
  ++reached.loaded;
  try {
    const feeds = feedsOf(random, model.inputs);
    if (!feeds) return;
    await model.run(feeds);
    await model.run(feeds);
    ++reached.ran;
    await model.explain();
    await tryState(model, random, feeds);
  } finally {
    model.dispose();
  }
}

/** Keeps outputs of a model as its inputs for some runs. */
async function tryState(model, random, feeds) {
  const names = (list, start) =>
    list.map(({ name }) => name).filter((name) => name.startsWith(start));
  const keep = {};
  for (const output of names(model.outputs, 'present')) {
    const input = output.replace('present', 'past');
    if (feeds[input]) keep[output] = input;
  }
  if (Object.keys(keep).length === 0) return;
  const own = Object.fromEntries(
    Object.entries(feeds).filter(([name]) => !Object.values(keep).includes(name)),
  );
  let state = await model.state(keep);
  await model.run(random.upTo(1) === 0 ? own : feeds, { state });
  for (let left = random.pick([1, 5, 20]); left > 0; --left) {
    if (random.upTo(9) === 0) state = await state.clone();
    if (random.upTo(9) === 0) await state.cut(random.upTo(2));
    await model.run(own, { state });
    ++reached.kept;
  }
  await model.explain(
    Object.fromEntries(Object.entries(feeds).map(([name, { shape }]) => [name, shape])),
    { steps: true, state },
  );
}

const bitsOf = ({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength);

/** A part of a tensor: its first rows along an axis, if there is one. */
function cutRows({ data, shape, dtype }, axis, length) {
  if (axis === undefined) return { data, shape, dtype };
  const row = shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  const block = row * shape[axis];
  const parts = data.filter((_, i) => i % block < length * row);
  return { data: parts, shape: shape.map((size, i) => (i === axis ? length : size)), dtype };
}

/** Runs a graph twice, and compares with the run in which all values are outputs. */
async function tryGraph(wg, seed) {
  const { model, feeds, keep, first, axes, runs, reference, referenceFeeds } = graphOf(seed);
  const copies = structuredClone(feeds);
  const [own, other] = await Promise.all(
    [model, reference].map((spec) => onnx.loadModel(encodeGraph(spec), { wg })),
  );
  try {
    const hasState = Object.keys(keep).length > 0;
    let state = hasState ? await own.state(keep) : undefined;
    let kept = first;
    for (const { feeds: changed = {}, kept: given = {}, cut, isCopied } of runs) {
      if (cut !== undefined) {
        await state.cut(cut);
        for (const name of Object.keys(kept)) kept[name] = cutRows(kept[name], axes[name], cut);
      }
      const ownFeeds = { ...feeds, ...changed, ...given };
      const wanted = await other.run({ ...referenceFeeds, ...changed, ...kept, ...given });
      kept = Object.fromEntries(Object.entries(keep).map(([from, to]) => [to, wanted[from]]));
      const copy = isCopied ? await state?.clone() : undefined;
      const check = async (state) => {
        const results = await own.run(ownFeeds, { state });
        const names = model.outputs.map(({ name }) => name).filter((name) => !keep[name]);
        if (String(Object.keys(results)) !== String(names))
          throw new Error(`there are ${Object.keys(results)}, not ${names}`);
        compare(results, wanted);
      };
      await check(state);
      if (!state || copy) await check(copy);
      if (copy) {
        state.dispose();
        state = copy;
      }
      reached.kept += Number(hasState);
    }
    const all = { ...feeds, ...runs.at(-1)?.feeds, ...kept };
    const shapes = Object.fromEntries(
      Object.entries(all).map(([name, { shape }]) => [name, shape]),
    );
    for (const { fused } of await own.explain(shapes)) reached.joined += fused.length;
    if (state) await own.explain(shapes, { steps: true, state });
  } finally {
    own.dispose();
    other.dispose();
  }
  for (const [name, { data }] of Object.entries(feeds))
    if (!bitsOf({ data }).equals(bitsOf(copies[name]))) throw new Error(`a run wrote to ${name}`);
}

const infinities = { float16: 0x7c00, bfloat16: 0x7f80 };

function compare(results, wanted) {
  for (const [name, { dtype, shape, data }] of Object.entries(results)) {
    const other = wanted[name];
    if (dtype !== other.dtype || String(shape) !== String(other.shape))
      throw new Error(`${name}: ${dtype} [${shape}], not ${other.dtype} [${other.shape}]`);
    reached.compared += data.length;
    // If the engine has no Float16Array, elements of 16 bits are codes.
    const infinity = data instanceof Uint16Array && infinities[dtype];
    const isNaN = (value) => (infinity ? (value & 0x7fff) > infinity : value !== value);
    for (const value of data) if (isNaN(value)) ++reached.nan;
    // The bits of NaN may differ.
    const at = data.findIndex(
      (value, i) => !Object.is(value, other.data[i]) && !(isNaN(value) && isNaN(other.data[i])),
    );
    if (at >= 0)
      throw new Error(`${name}: ${inspect(data[at])} at ${at}, not ${inspect(other.data[at])}`);
  }
}

/** What is wrong with an error; undefined for one that a user can understand. */
function faultOf(error) {
  if (!(error instanceof GemmError)) return 'is not a GemmError';
  const { message } = error;
  if (!message.startsWith(`${error.op}: `)) return 'does not name the call';
  if (message.length > 3000) return `has ${message.length} letters`;
  // An operand of a product that is absent is undefined.
  const own = message.replace(/"[^"]*"|'[^']*'|is undefined; it must be/g, '');
  if (/undefined|\[object/.test(own)) return 'names nothing';
  return undefined;
}

/**
 * Bytes in use once garbage is collected. V8 frees the buffers of collected arrays on another
 * thread after gc() returns, and finalizers run in a later turn.
 */
async function usedMemory() {
  for (let turn = 0; turn < 3; ++turn) {
    globalThis.gc?.();
    await sleep(50);
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const wg = await createGemm({
  threads: 1,
  models: true,
  maxMemory: 256 * mb,
  ...(hasGraphs && { determinism: 'strict' }),
});
let before;
/** Waits until the message is sent: a model that never ends would keep it here. */
const tell = (message) => new Promise((resolve) => process.send(message, resolve));
let seed = first;
for (; seed < first + count && performance.now() < end; ++seed) {
  await tell({ seed });
  const start = performance.now();
  try {
    await (hasGraphs ? tryGraph : tryModel)(wg, seed);
  } catch (error) {
    if (!hasGraphs) ++reached.refused;
    const fault = hasGraphs ? 'of a graph that must run' : faultOf(error);
    if (fault) await tell({ seed, fault: `the error ${fault}: ${error.stack}` });
  }
  const ms = performance.now() - start;
  if (ms > 2000) await tell({ seed, fault: `took ${ms.toFixed(0)} ms` });
  const { inUse } = wg.memory();
  if (inUse !== 0) {
    await tell({ seed, fault: `left ${inUse} bytes in use` });
    break;
  }
  if (seed === first + 200) before = await usedMemory();
}
if (before !== undefined) {
  const grown = (await usedMemory()) - before;
  if (grown > 32 * mb) await tell({ seed, fault: `memory grew by ${(grown / mb).toFixed(0)} MB` });
}
const peak = process.resourceUsage().maxRSS / 1024;
if (peak > 900) await tell({ seed, fault: `memory had a peak of ${peak.toFixed(0)} MB` });
await tell({ reached, next: seed, peak });
process.disconnect();
