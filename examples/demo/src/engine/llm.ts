/** A tiny language model, which continues what the visitor writes, with weights in three forms. */
import llmFile from 'virtual:llm';
import { seededRandom } from '../../../random.mjs';
import { decode, encode } from '../../../tiny-llm/alphabet.mjs';
import { createDecoder, generate } from '../../../tiny-llm/decoder.mjs';
import { fileBytes, readModel } from '../../build/llm-file.mjs';
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
const length = 500; // tokens, each of which is a character
const temperature = 0.6;
const sliceMs = 8; // of one form, before it is the turn of the next
const warmUpTokens = 100;

let fetched: Promise<Uint8Array> | undefined;
let writers: Promise<Writer[]> | undefined;

/** Bytes that the first text fetches. Rejects if there is no wgemm. */
export async function llmFacts(): Promise<{ fileBytes: number }> {
  await instance();
  return { fileBytes };
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
  while (states.some(({ text }) => text.length < length)) {
    for (const state of states) {
      const start = performance.now();
      let elapsed = 0;
      const tokens: number[] = [];
      while (elapsed < sliceMs && state.text.length + tokens.length < length) {
        tokens.push(state.source.next().value as number);
        elapsed = performance.now() - start;
      }
      state.ms += elapsed;
      state.text += decode(tokens);
    }
    const done = states.reduce((sum, { text }) => sum + text.length, 0);
    if (!(await report(done / (length * states.length), written()))) return undefined;
  }
  return written();
}
