/**
 * The memory of programs is at most 1.2 times what is alive at once, plus 64 bytes per value. The
 * words of a program show what is alive: this test does not use js/onnx/run/arena.ts.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Gemm } from 'wgemm';
import { loadModel, type Model } from 'wgemm/onnx';
import { miniLm, textsOf } from '../../bench/models/minilm.mjs';
import { smallModels } from '../../bench/models/small.mjs';
import { graphOf } from '../../fuzz/onnx-graphs.mjs';
import { encodeGraph, type NodeSpec, type TensorSpec } from '../../peers/onnx-model.mjs';
import { createWithGlue } from '../support/glue.js';
import { ProgramReader, type ProgramStep, type ProgramTensor } from '../support/programs.js';
import { Random } from '../support/random.js';

type Feeds = Parameters<Model['run']>[0];

const bytesOfLine = 64;

/** From the first step that writes a line to the last one that reads it. */
class Line {
  #first: number | undefined;
  #last: number | undefined;

  constructor(readonly live: (first: number, last: number) => void) {}

  read(step: number): void {
    this.#first ??= 0; // a feed
    this.#last = step;
  }

  write(step: number): void {
    if (this.#first !== undefined && this.#last !== undefined) {
      // A step that computes in place needs the line once.
      this.live(this.#first, Math.min(this.#last, step - 1));
      this.#first = undefined;
    }
    this.#first ??= step;
    this.#last = undefined;
  }

  /** @param end the last step, after which the caller reads the outputs */
  finish(end: number): void {
    if (this.#first !== undefined) this.live(this.#first, this.#last ?? end);
  }
}

/** The bytes that steps use, and the most of them that are alive at once. */
function memoryOf(
  feedLines: number,
  steps: readonly ProgramStep[],
  isIn: (tensor: ProgramTensor) => boolean,
) {
  const lines = new Map<number, Line>();
  const changes = new Array<number>(steps.length + 2).fill(0);
  const live = (first: number, last: number) => {
    if (last < first) return;
    ++changes[first]!;
    --changes[last + 1]!;
  };
  const linesOf = function* ({ start, end }: ProgramTensor): Generator<Line> {
    for (let i = Math.floor(start / bytesOfLine); i * bytesOfLine < end; ++i) {
      let own = lines.get(i);
      if (!own) lines.set(i, (own = new Line(live)));
      yield own;
    }
  };
  steps.forEach(({ inputs, outputs }, i) => {
    for (const tensor of inputs.filter(isIn)) for (const each of linesOf(tensor)) each.read(i + 1);
    for (const tensor of outputs.filter(isIn))
      for (const each of linesOf(tensor)) each.write(i + 1);
  });
  for (const each of lines.values()) each.finish(steps.length);
  const [low, high] = [...lines.keys()].reduce(
    ([low, high], i) => [Math.min(low, i), Math.max(high, i + 1)],
    [Infinity, 0],
  );
  // Feeds that no step reads, or that are outputs as they are.
  changes[0]! += Math.min(high - low - lines.size, feedLines);
  let [now, most] = [0, 0];
  for (const change of changes) most = Math.max(most, (now += change));
  return { used: (high - low) * bytesOfLine, alive: most * bytesOfLine };
}

let wg: Gemm;
let reader: ProgramReader;
beforeAll(async () => {
  const { wg: own, glue } = await createWithGlue({ simd: 'simd128' });
  wg = own;
  reader = new ProgramReader(glue);
});
afterAll(() => {
  wg.dispose();
});

/** Expects the bound for a model. Returns whether its run is one program without other nodes. */
async function expectBound(name: string, bytes: Uint8Array, feeds: Feeds): Promise<boolean> {
  reader.programs.length = 0;
  const model = await loadModel(bytes, { wg });
  await model.run(feeds);
  const [words, ...others] = reader.programs;
  // The words do not show what a node in JavaScript reads and writes.
  const isWhole = words !== undefined && others.length === 0;
  if (isWhole) {
    const steps = reader.stepsOf(words);
    const arena = reader.blockOf(steps[0]!.outputs[0]!.address);
    const isIn = ({ kind, address }: ProgramTensor) =>
      kind === 'tensor' && reader.blockOf(address) === arena;
    const linesOf = ({ data }: Feeds[string]) =>
      Math.ceil((data as Float32Array).byteLength / bytesOfLine);
    const feedLines = Object.values(feeds).reduce((sum, feed) => sum + linesOf(feed), 0);
    const { used, alive } = memoryOf(feedLines, steps, isIn);
    const values = Object.keys(feeds).length + steps.flatMap(({ outputs }) => outputs).length;
    const most = 1.2 * alive + 64 * values;
    expect(used, `${name}: ${alive} bytes are alive at once`).toBeLessThanOrEqual(most);
  }
  model.dispose();
  return isWhole;
}

it.each(['int8', 'float32'] as const)('holds for MiniLM in %s', async (variant) => {
  for (const text of [{ tokens: 7 }, { tokens: 128 }, { batch: 3, tokens: 40 }])
    expect(
      await expectBound(
        `MiniLM, ${JSON.stringify(text)}`,
        miniLm({ variant, layers: 2 }),
        textsOf(text),
      ),
    ).toBe(true);
});

it('holds for small networks', async () => {
  for (const { name, bytes, feeds } of smallModels)
    expect(await expectBound(name, bytes(), feeds())).toBe(true);
});

it('holds for random graphs of small values', async () => {
  let whole = 0;
  for (let seed = 1; seed <= 500; ++seed) {
    const { model, feeds, keep } = graphOf(seed);
    // JavaScript computes some powers, and reads conditions, which the words do not show.
    if (model.nodes.some(({ op }) => op === 'Pow' || op === 'If')) continue;
    if (Object.keys(keep).length > 0) continue;
    // These have values between their steps, which no step overwrites.
    if (model.nodes.some(({ op }) => /^(Bias|Skip|Embed|Pad$)|Attention|Rotary/.test(op))) continue;
    const taken = new Set(model.nodes.flatMap(({ inputs }) => inputs));
    const outputs = model.nodes
      .flatMap((node) => node.outputs)
      .filter((name) => name !== null && !taken.has(name))
      .map((name) => ({ name: name!, dtype: 'none' }));
    const bytes = encodeGraph({ ...model, outputs });
    if (await expectBound(`graph ${seed}`, bytes, feeds)) ++whole;
  }
  expect(whole).toBeGreaterThan(100);
});

it('holds for random graphs of values of many sizes', async () => {
  for (let seed = 1; seed <= 100; ++seed) {
    const { bytes, feeds } = wideGraph(seed);
    expect(await expectBound(`wide graph ${seed}`, bytes, feeds)).toBe(true);
  }
});

/** A graph of values with rows of 1 to 700 elements. The values that no node takes are its outputs. */
function wideGraph(seed: number): { bytes: Uint8Array; feeds: Feeds } {
  const random = new Random(seed);
  const rows = random.pick([1, 8, 50]);
  const nodes: NodeSpec[] = [];
  const initializers: TensorSpec[] = [];
  const values = [{ name: 'x', size: random.between(1, 300) }];
  const taken = new Set<string>();
  const take = (size?: number) => {
    const fitting = values.filter((value) => size === undefined || value.size === size);
    // Usually a late value.
    const value = fitting[fitting.length - 1 - Math.floor(random.next() ** 3 * fitting.length)]!;
    taken.add(value.name);
    return value;
  };
  const add = (op: string, inputs: string[], sizes: number[], attributes = {}) => {
    const outputs = sizes.map((size) => {
      const name = `v${values.length}`;
      values.push({ name, size });
      return name;
    });
    nodes.push({ op, inputs, outputs, attributes });
  };
  const constant = (dtype: string, shape: number[], data: TensorSpec['data']) => {
    const name = `c${initializers.length}`;
    initializers.push({ name, dtype, shape, data });
    return name;
  };
  for (let i = random.between(3, 40); i > 0; --i) {
    const { name, size } = take();
    switch (random.between(0, 5)) {
      case 0:
        add(random.pick(['Tanh', 'Softmax']), [name], [size]);
        break;
      case 1:
        add('Add', [name, take(size).name], [size]);
        break;
      case 2: {
        const other = take();
        if (size + other.size <= 700)
          add('Concat', [name, other.name], [size + other.size], { axis: 1 });
        break;
      }
      case 3: {
        if (size < 2) break;
        const first = random.between(1, size - 1);
        const parts = BigInt64Array.of(BigInt(first), BigInt(size - first));
        add('Split', [name, constant('int64', [2], parts)], [first, size - first], { axis: 1 });
        break;
      }
      default: {
        const n = random.pick([1, 16, 300, 700]);
        const weights = constant('float32', [size, n], new Float32Array(size * n));
        add('MatMul', [name, weights], [n]);
      }
    }
  }
  if (nodes.length === 0) add('Tanh', [take().name], [values[0]!.size]);
  const shape = [rows, values[0]!.size];
  const bytes = encodeGraph({
    nodes,
    initializers,
    opsets: { '': 17 },
    inputs: [{ name: 'x', dtype: 'float32', shape }],
    outputs: values
      .filter(({ name }) => !taken.has(name))
      .map(({ name }) => ({ name, dtype: 'float32' })),
  });
  return { bytes, feeds: { x: { data: new Float32Array(rows * shape[1]!), shape } } };
}
