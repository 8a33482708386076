// A step of SmolLM2-135M with 4-bit weights: one token, after 512 that a state keeps.
import { loadModel } from 'wgemm/onnx';
import { race } from '../turns.mjs';
import { decoder, keptOf, smolLm2, tokenFeeds } from './decoder.mjs';

const past = 512;
const mostSteps = 16; // then the tokens after the first 512 are cut
const links = Object.entries(keptOf(smolLm2));
const prompt = Array.from({ length: past }, (_, i) => (7919 * i) % smolLm2.vocabulary);

export const decoding = {
  title: `SmolLM2-135M, a token after ${past}`,
  variant: '4 bits',
};

/**
 * Times the step in both libraries. Each run feeds a token. wgemm keeps keys and values in a state.
 * ONNX Runtime Web returns them, and the next run takes them as they are.
 *
 * @param options `rest`: as in race()
 * @returns { difference, contestants, products }. `difference`: of the logits after 512 tokens,
 *   relative to the largest. `products`: the median time of the step, and of its products when
 *   explain() computes each on its own, in the order of the step
 */
export async function raceDecoding(wg, ort, { rest }) {
  const bytes = decoder(smolLm2);
  const own = await ownSide(bytes, wg);
  const peer = await peerSide(bytes, ort);
  const difference = differenceOf(await own.begin(), await peer.begin());
  const timed = await race([own, peer], { rest });
  const products = await timeProducts(own);
  await own.dispose();
  await peer.dispose();
  return { difference, timed, products };
}

async function ownSide(bytes, wg) {
  const model = await loadModel(bytes, { wg });
  const state = await model.state(Object.fromEntries(links));
  let count = 0;
  const run = async (times) => {
    for (let i = 0; i < times; ++i, ++count) {
      if (count >= past + mostSteps) await state.cut((count = past));
      await model.run(tokenFeeds([i], count), { state });
    }
  };
  return {
    run,
    model,
    async begin() {
      const { logits } = await model.run(tokenFeeds(prompt, 0), { state });
      count = past;
      return logits.data;
    },
    dispose: () => model.dispose(),
  };
}

async function peerSide(bytes, ort) {
  const session = await ort.createSession(bytes);
  const shape = [1, smolLm2.keyHeads, 0, smolLm2.head];
  const empty = ort.tensor({ dtype: 'float32', shape, data: new Float32Array() });
  let kept = Object.fromEntries(links.map(([, input]) => [input, empty]));
  let first = kept;
  let count = 0;
  const step = async (ids) => {
    const feeds = Object.entries(tokenFeeds(ids, count));
    const given = Object.fromEntries(feeds.map(([name, value]) => [name, ort.tensor(value)]));
    const results = await session.run({ ...given, ...kept });
    kept = Object.fromEntries(links.map(([output, input]) => [input, results[output]]));
    count += ids.length;
    return results.logits.data;
  };
  return {
    async run(times) {
      for (let i = 0; i < times; ++i) {
        if (count >= past + mostSteps) [kept, count] = [first, past];
        await step([i]);
      }
    },
    async begin() {
      const logits = await step(prompt);
      first = kept;
      return logits;
    },
    dispose: () => session.release(),
  };
}

/** Steps and products in turns: neither finds its weights in the caches. */
async function timeProducts({ run, model }) {
  const shapes = Object.fromEntries(
    Object.entries(tokenFeeds([0], 0)).map(([name, { shape }]) => [name, shape]),
  );
  for (const [, input] of links) shapes[input] = [1, smolLm2.keyHeads, 0, smolLm2.head];
  const [steps, products] = [[], []];
  for (let round = 0; round < 40; ++round) {
    const start = performance.now();
    await run(4);
    steps.push((performance.now() - start) / 4);
    const times = (await model.explain(shapes)).map(({ time }) => time);
    products.push(times.reduce((sum, time) => sum + time, 0));
  }
  const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];
  return { step: median(steps), products: median(products) };
}

/** The largest difference, relative to the largest value. */
function differenceOf(own, theirs) {
  let [far, most] = [0, 0];
  theirs.forEach((value, i) => {
    const each = Math.abs(own[i] - value);
    if (!(each <= far)) far = each; // NaN, too
    most = Math.max(most, Math.abs(value));
  });
  return far / most;
}
