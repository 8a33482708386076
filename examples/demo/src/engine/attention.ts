/** Attention: the block of examples/attention over a sentence, with weights made by hand. */
import type { Gemm } from 'wgemm';
import { race } from '../../../../tests/bench/turns.mjs';
import { createBlock } from '../../../attention/block.mjs';
import { difference } from '../../../attention/numbers.mjs';
import { attentionInJavaScript } from '../../../attention/plain.mjs';
import {
  headNames,
  heads,
  makeWeights,
  maxTokens,
  tokensOf,
  vectorsOf,
  width,
} from './attention-weights.ts';
import { instance } from './instance.ts';
import { paced } from './pace.ts';
import type { Report } from './report.ts';
import { inTurn } from './turn.ts';

export interface Attention {
  tokens: string[];
  /** How many tokens the sentence has; those after the first `most` are left out. */
  count: number;
  most: number;
  heads: readonly string[];
  /** [heads, tokens, tokens]: row i of a head has the shares of token i, whose sum is 1. */
  shares: Float32Array;
  /** Why plain JavaScript computed it; '' if wgemm did. */
  problem: string;
}

export interface AttentionTime {
  id: 'float32' | 'bfloat16' | 'javascript';
  ms: number;
  /** The largest difference from plain JavaScript, relative to the largest result. */
  difference: number;
}

let made: ReturnType<typeof makeWeights> | undefined;
const parameters = () => (made ??= makeWeights());

/** The instance, or why there is none: plain JavaScript then computes. */
async function started(): Promise<{ wg?: Gemm; problem: string }> {
  try {
    return { wg: await instance(), problem: '' };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** What the page needs of a block, which is plain JavaScript without types. */
interface Block {
  run(input?: Float32Array): void;
  result(): Float32Array;
  sharesOf(head: number): Float32Array;
  dispose(): void;
}

const blockFor = (wg: Gemm, dtype: string, tokens: number): Block =>
  createBlock(wg, { dtype, tokens, heads, width, ...parameters() });

/** The block of the sentence before: it serves again if the next has as many tokens. */
let last: { block: Block; tokens: number } | undefined;

/** Counts sentences, so that timings of one end when the next comes. */
let sentences = 0;

/** Computes which token looks at which. */
export async function attend(sentence: string): Promise<Attention> {
  ++sentences;
  const all = tokensOf(sentence);
  const tokens = all.slice(0, maxTokens);
  const n = tokens.length;
  const shares = new Float32Array(heads * n * n);
  const { wg, problem } = await started();
  if (n > 0 && wg) {
    if (last?.tokens !== n) {
      last?.block.dispose();
      last = undefined; // in case there is no memory for the next
      last = { block: blockFor(wg, 'float32', n), tokens: n };
    }
    last.block.run(vectorsOf(tokens));
    for (let head = 0; head < heads; ++head) shares.set(last.block.sharesOf(head), head * n * n);
  } else if (n > 0) {
    const { weights, biases } = parameters();
    const sizes = { tokens: n, heads, width, shares };
    attentionInJavaScript(vectorsOf(tokens), weights, biases, sizes);
  }
  return { tokens, count: all.length, most: maxTokens, heads: headNames, shares, problem };
}

/** Times the block for a sentence. Ends early if `attend` gets another sentence. */
export async function timeAttention(
  sentence: string,
  report: Report,
): Promise<AttentionTime[] | undefined> {
  const mine = sentences;
  const tokens = tokensOf(sentence).slice(0, maxTokens);
  if (tokens.length === 0) return undefined;
  const x = vectorsOf(tokens);
  const { weights, biases } = parameters();
  const sizes = { tokens: tokens.length, heads, width, shares: undefined };
  const expected: Float32Array = attentionInJavaScript(x, weights, biases, sizes);

  const { wg } = await started();
  const blocks: { id: AttentionTime['id']; block: Block }[] = [];
  try {
    if (wg) {
      for (const id of ['float32', 'bfloat16'] as const) {
        const block = blockFor(wg, id, tokens.length);
        blocks.push({ id, block });
        block.run(x);
      }
    }
    const contestants = [
      ...blocks.map(
        ({ block }) =>
          () =>
            block.run(),
      ),
      () => attentionInJavaScript(x, weights, biases, sizes),
    ].map((compute) => ({
      run(times: number) {
        for (let i = 0; i < times; ++i) compute();
      },
    }));
    const [warmUpMs, raceMs] = [120, 400];
    const length = contestants.length * warmUpMs + raceMs;
    let start = 0;
    const elapsed = () => (start > 0 ? performance.now() - start : 0);
    const mayGoOn = paced(report, () => Math.min(1, elapsed() / length));
    const goOn = async () => (await mayGoOn()) && mine === sentences;
    const times = await inTurn(() => {
      start = performance.now();
      return race(contestants, { warmUpMs, raceMs, minRounds: 5, goOn });
    }, goOn);
    if (!times) return undefined;
    const results: AttentionTime[] = blocks.map(({ id, block }, i) => ({
      id,
      ms: times[i]!.best,
      difference: difference(block.result(), expected),
    }));
    results.push({ id: 'javascript', ms: times.at(-1)!.best, difference: 0 });
    return results;
  } finally {
    for (const { block } of blocks) block.dispose();
  }
}
