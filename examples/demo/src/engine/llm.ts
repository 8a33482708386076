/** A tiny language model, which continues what the visitor writes, with weights in three forms. */
import llmFile from 'virtual:llm';
import { seededRandom } from '../../../random.mjs';
import { decode, encode } from '../../../tiny-llm/alphabet.mjs';
import { createDecoder, generate } from '../../../tiny-llm/decoder.mjs';
import { readModel } from '../../build/llm-file.mjs';
import { fetchBytes, once } from './files.ts';
import { instance } from './instance.ts';
import type { Report } from './report.ts';
import { inTurn } from './turn.ts';

export type LlmForm = 'float32' | 'int8' | '4 bits';

/** What one form of the weights has written. */
export interface Written {
  name: LlmForm;
  /** What follows the beginning. */
  text: string;
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
const warmUpTokens = 100;

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
    const decoder = createDecoder(wg, model, name);
    const source = generate(decoder, encode('\n'), { random: seededRandom(1), temperature });
    for (let i = 0; i < warmUpTokens; ++i) source.next();
    made.push({ name, decoder });
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
    bytes: decoder.byteLength,
    source: generate(decoder, prompt, { random: seededRandom(seed), temperature }),
    text: '',
    ms: 0,
  }));
  const written = (): Written[] =>
    states.map(({ name, bytes, text, ms }) => ({
      ...{ name, bytes, text },
      // The decoder also takes each token of the prompt.
      tokensPerSecond: (1000 * (prompt.length + text.length - 1)) / ms,
    }));
  for (let done = 0; done < length; done += slice) {
    for (const state of states) {
      const tokens = new Uint8Array(slice);
      const start = performance.now();
      for (let i = 0; i < slice; ++i) tokens[i] = state.source.next().value as number;
      state.ms += performance.now() - start;
      state.text += decode(tokens);
      if (!(await report(done / length, written()))) return undefined;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return written();
}
