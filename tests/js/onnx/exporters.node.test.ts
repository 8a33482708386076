/**
 * Graphs as exporters write them, node for node: each loads, runs with several shapes, and agrees
 * with ONNX Runtime Web.
 */
import { describe, expect, it } from 'vitest';
import { loadModel, type ModelResult } from 'wgemm/onnx';
import { expectError, rejected } from '../support/errors.js';
import { Random } from '../support/random.js';
import { ort, wg } from '../support/with-ort.js';
import { dynamoBert } from './exporters/dynamo-bert.js';
import { dynamoLlama } from './exporters/dynamo-llama.js';
import type { Exported, Sizes } from './exporters/exported.js';
import { genai } from './exporters/genai.js';
import { optimum } from './exporters/optimum.js';
import { optimumTexts } from './exporters/optimum-texts.js';
import { ortFloat32 } from './exporters/ort-float32.js';
import { ortInt8 } from './exporters/ort-int8.js';
import { refused } from './exporters/refused.js';
import { skl2onnx } from './exporters/skl2onnx.js';
import { encodeText } from './exporters/text.js';
import { torchBert } from './exporters/torch-bert.js';
import { torchGpt2 } from './exporters/torch-gpt2.js';
import { torchLlama } from './exporters/torch-llama.js';
import { torchSmall } from './exporters/torch-small.js';
import { type Input, valuesOf } from './onnx-nodes.js';

const models: readonly Exported[] = [
  torchBert,
  torchGpt2,
  torchLlama,
  torchSmall,
  dynamoBert,
  dynamoLlama,
  optimum,
  optimumTexts,
  ortFloat32,
  ortInt8,
  genai,
  skl2onnx,
].flat();

type Tensors = Readonly<Record<string, Input>>;

interface Session {
  run(feeds: unknown): Promise<Record<string, { type: string; dims: number[]; data: never }>>;
}

async function runSession(session: unknown, feeds: Tensors): Promise<Tensors> {
  const theirs = Object.entries(feeds).map(([name, input]) => [name, ort.tensor(input as never)]);
  const results = await (session as Session).run(Object.fromEntries(theirs));
  return Object.fromEntries(
    Object.entries(results).map(([name, { type, dims, data }]) => [
      name,
      { dtype: type, shape: dims, data } as unknown as Input,
    ]),
  );
}

/** The largest difference, relative to the largest value. NaN is far from everything. */
function distance(found: Input, wanted: Input): number {
  const [values, others] = [found, wanted].map((each) => valuesOf(each).map(Number)) as [
    number[],
    number[],
  ];
  const most = others.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const far = values.reduce((far, value, i) => Math.max(far, Math.abs(value - others[i]!)), 0);
  return far === 0 ? 0 : far / most;
}

function expectAlike(
  found: Readonly<Record<string, ModelResult>>,
  wanted: Tensors,
  bound: number,
  sizes: Sizes,
): void {
  for (const [name, other] of Object.entries(wanted)) {
    const what = `${name} of ${JSON.stringify(sizes)}`;
    const own = found[name]!;
    expect([own.dtype, own.shape], what).toEqual([other.dtype, other.shape]);
    if (other.dtype.startsWith('float')) expect(distance(own, other), what).toBeLessThan(bound);
    else expect(valuesOf(own), what).toEqual(valuesOf(other));
  }
}

const without = <T>(values: Readonly<Record<string, T>>, names: readonly string[]) =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));

describe.each(models)('$name', ({ bytes, theirs, runs, bound, feeds, kept }) => {
  it('gives what ONNX Runtime Web gives', async () => {
    const before = wg.memory().inUse;
    const model = await loadModel(bytes, { wg });
    const session = await ort.createSession(theirs);
    const random = new Random(7);
    // The second run with a shape is a recorded one.
    for (const sizes of [...runs, ...runs]) {
      const inputs = feeds(sizes, random);
      expectAlike(await model.run(inputs), await runSession(session, inputs), bound, sizes);
    }
    model.dispose();
    expect(wg.memory().inUse).toBe(before);
  });

  it.runIf(kept)('gives the same with a state, token by token', async () => {
    const before = wg.memory().inUse;
    const model = await loadModel(bytes, { wg });
    const session = await ort.createSession(theirs);
    const random = new Random(8);
    const state = await model.state(kept!);
    const [presents, pasts] = [Object.keys(kept!), Object.values(kept!)];
    let last: Tensors | undefined; // of the runtime
    for (let p = 0; p < 24; p += p ? 1 : 5) {
      const sizes = { b: 2, s: p ? 1 : 5, p, t: p + (p ? 1 : 5) };
      const inputs = feeds(sizes, random);
      const own = await model.run(without(inputs, pasts), { state });
      const past = last && Object.fromEntries(presents.map((name) => [kept![name]!, last![name]!]));
      last = await runSession(session, { ...inputs, ...past });
      expectAlike(own, without(last, presents), bound, sizes);
    }
    state.dispose();
    model.dispose();
    expect(wg.memory().inUse).toBe(before);
  });
});

it.each(refused)('refuses $name', async ({ model, says }) => {
  expectError(await rejected(loadModel(encodeText(model), { wg })), {
    code: 'UNSUPPORTED',
    op: 'loadModel',
    argument: '',
    says,
  });
});
