/**
 * Language models with weights in three forms: a tiny one, which continues what the visitor writes,
 * and a larger one of random weights, whose speed is measured.
 */
import llmFile from 'virtual:llm';
import { createGemm } from 'wgemm';
import { seededRandom } from '../../../random.mjs';
import { decode, encode } from '../../../tiny-llm/alphabet.mjs';
import { createDecoder, generate } from '../../../tiny-llm/decoder.mjs';
import { matricesOf } from '../../../tiny-llm/model.mjs';
import { readModel } from '../../build/llm-file.mjs';
import { fetchBytes, once } from './files.ts';
import { instance, threads } from './instance.ts';
import type { Report } from './report.ts';
import { inTurn } from './turn.ts';

export type LlmForm = 'float32' | 'int8' | '4 bits';

/** What one form of the weights has written. */
export interface Written {
  name: LlmForm;
  /** What follows the beginning. */
  text: string;
}

/** The speed of a form. */
export interface FormSpeed {
  name: LlmForm;
  tokensPerSecond: number;
  /** Of the weights. */
  bytes: number;
}

interface Writer {
  name: LlmForm;
  decoder: ReturnType<typeof createDecoder>;
}

const names: LlmForm[] = ['float32', 'int8', '4 bits'];
const length = 400; // tokens, each of which is a character
const temperature = 0.6;
const slice = 25; // tokens of one form, before it is the turn of the next
const pauseMs = 16; // after a slice of each form, so that the page shows the text as it grows

/** The larger model. It reads more weights per token than most caches hold. */
const large = { size: 768, layers: 4, heads: 12, context: 96 };
const rounds = 12;
const tokensPerRound = 12; // the first few are not timed
const untimed = 3;

let fetched: Promise<Uint8Array> | undefined;
let writers: Promise<Writer[]> | undefined;

/** Rejects if there is no wgemm. The first text fetches the weights. */
export async function startLlm(): Promise<void> {
  await instance();
}

/** Continues a beginning in each form, in slices. Undefined if it was cancelled. */
export async function write(
  beginning: string,
  seed: number,
  report: Report<Written[]>,
): Promise<Written[] | undefined> {
  writers = once(writers, makeWriters, () => (writers = undefined));
  const all = await writers;
  const goOn = () => report(0);
  return inTurn(async () => {
    if (!(await goOn())) return undefined;
    return inSlices(all, encode(`\n${beginning}`), seed, report);
  }, goOn);
}

async function makeWriters(): Promise<Writer[]> {
  const wg = await instance();
  fetched = once(
    fetched,
    () => fetchBytes(llmFile),
    () => (fetched = undefined),
  );
  const model = readModel(await fetched);
  const made: Writer[] = [];
  for (const name of names) {
    made.push({ name, decoder: createDecoder(wg, model, name) });
    await new Promise((resolve) => setTimeout(resolve)); // without a worker, the page responds
  }
  return made;
}

/** The same random numbers for each form: texts differ only when the weights choose otherwise. */
async function inSlices(
  all: Writer[],
  prompt: Uint8Array,
  seed: number,
  report: Report<Written[]>,
): Promise<Written[] | undefined> {
  const states = all.map(({ name, decoder }) => ({
    name,
    source: generate(decoder, prompt, { random: seededRandom(seed), temperature }),
    text: '',
  }));
  const written = (): Written[] => states.map(({ name, text }) => ({ name, text }));
  for (let done = 0; done < length; done += slice) {
    for (const state of states) {
      const tokens = new Uint8Array(slice);
      for (let i = 0; i < slice; ++i) tokens[i] = state.source.next().value as number;
      state.text += decode(tokens);
      if (!(await report(done / length, written()))) return undefined;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return written();
}

// --- the larger model ----------------------------------------------------------------------------

/** Times each form of the larger model, in turns. Undefined if it was cancelled. */
export const measureForms = (report: Report<FormSpeed[]>): Promise<FormSpeed[] | undefined> =>
  inTurn(
    () => measureAll(report),
    () => report(0),
  );

async function measureAll(report: Report<FormSpeed[]>): Promise<FormSpeed[] | undefined> {
  const wg = await createGemm({ threads }); // its memory goes back to the system
  try {
    const model = { sizes: large, weights: randomWeights() };
    const forms: (Writer & { best: number })[] = [];
    for (const name of names) {
      forms.push({ name, decoder: createDecoder(wg, model, name), best: Infinity });
      if (!(await report(forms.length / 6))) return undefined;
    }
    let speeds: FormSpeed[] = [];
    for (let round = 0; round < rounds; ++round) {
      for (const form of forms) {
        let start = 0;
        for (let i = -untimed; i < tokensPerRound; ++i) {
          if (i === 0) start = performance.now();
          form.decoder.step(i + untimed);
        }
        form.best = Math.min(form.best, (performance.now() - start) / tokensPerRound);
      }
      speeds = forms.map(({ name, decoder, best }) => ({
        ...{ name, bytes: decoder.byteLength },
        tokensPerSecond: 1000 / best,
      }));
      if (!(await report(0.5 + round / rounds / 2, speeds))) return undefined;
    }
    return speeds;
  } finally {
    wg.dispose();
  }
}

/** By name. The matrices share one array, which the decoders copy. */
function randomWeights(): Record<string, Float32Array> {
  const matrices = matricesOf(large).map(({ name, shape }) => ({
    name,
    length: shape[0]! * shape[1]!,
  }));
  const all = new Float32Array(Math.max(...matrices.map(({ length }) => length)));
  const random = seededRandom(1);
  for (let i = 0; i < 1021; ++i) all[i] = (random() - 0.5) / Math.sqrt(large.size);
  for (let done = 1021; done < all.length; done *= 2) all.copyWithin(done, 0, done);
  return Object.fromEntries(matrices.map(({ name, length }) => [name, all.subarray(0, length)]));
}
