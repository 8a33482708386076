/** The example generate, on folders with a decoder of random weights and a tokenizer of bytes. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decoder, keptOf, smallDecoder, tokenFeeds } from '../../bench/models/decoder.mjs';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { ort, wg } from '../support/with-ort.js';

interface Tokenizer {
  encode(text: string): { ids: number[] };
  decode(ids: readonly number[], options?: object): string;
}
interface Read {
  file: string;
  bytes: Uint8Array;
  tokenizer: Tokenizer;
  limit: number;
  ends: number[];
}
interface Generator {
  generate(prompt: readonly number[], options?: object): AsyncIterable<number>;
  step(ids: readonly number[]): Promise<Float32Array>;
  dispose(): void;
}
const example = new URL('../../../examples/generate/', import.meta.url);
const load = (name: string): Promise<unknown> => import(new URL(name, example).href);
const { readFolder } = (await load('folder.mjs')) as {
  readFolder: (folder: string, file?: string) => Promise<Read>;
};
const { createGenerator } = (await load('generator.mjs')) as {
  createGenerator: (bytes: Uint8Array, options: object) => Promise<Generator>;
};

// --- a tokenizer ---------------------------------------------------------------------------------

/** A letter for each byte, as byte-level tokenizers have it: the byte itself if it is printable. */
const letters = (() => {
  let next = 256;
  const isPrintable = (byte: number) =>
    (byte > 32 && byte < 127) || (byte > 160 && byte !== 173 && byte < 256);
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCharCode(isPrintable(byte) ? byte : next++),
  );
})();
const space = letters[32]!;
const merges = ['t h', 'th e', `${space} the`, 'c a', 'ca t', `${space} cat`, 's a', 'sa t'];
const special = ['<|endoftext|>', '<|im_start|>', '<|im_end|>'];
const words = [...special, ...letters, ...merges.map((pair) => pair.replace(' ', ''))];

/** As the tokenizer.json of SmolLM2 and Qwen. */
const tokenizer = {
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: special.map((content, id) => ({ id, content, special: true, normalized: false })),
  normalizer: null,
  pre_tokenizer: {
    type: 'ByteLevel',
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: true,
  },
  post_processor: null,
  decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
  model: {
    type: 'BPE',
    dropout: null,
    unk_token: null,
    merges,
    vocab: Object.fromEntries(words.map((word, id) => [word, id])),
  },
};
const tokensOf = (list: string) => list.split(' ').map((word) => words.indexOf(word));

// --- folders -------------------------------------------------------------------------------------

let root: string;
let folders = 0;
beforeAll(async () => (root = await mkdtemp(join(tmpdir(), 'wgemm-generate-'))));
afterAll(() => rm(root, { recursive: true }));

const config = { model_type: 'llama', max_position_embeddings: 100, eos_token_id: 0 };

/** Writes a folder: bytes, text, or objects as JSON. `undefined`: no such file. */
async function makeFolder(files: Record<string, unknown>): Promise<string> {
  const folder = join(root, String(folders++));
  await mkdir(folder);
  const all = { 'tokenizer.json': tokenizer, 'config.json': config, ...files };
  for (const [name, content] of Object.entries(all)) {
    if (content === undefined) continue;
    const isRaw = typeof content === 'string' || content instanceof Uint8Array;
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), isRaw ? content : JSON.stringify(content));
  }
  return folder;
}

async function withGenerator<T>(
  folder: string,
  body: (generator: Generator, read: Read) => Promise<T>,
): Promise<T> {
  const { bytes, ...read } = await readFolder(folder);
  const generator = await createGenerator(bytes, { ...read, wg });
  try {
    return await body(generator, { bytes, ...read });
  } finally {
    generator.dispose();
  }
}

async function collect(tokens: AsyncIterable<number>): Promise<number[]> {
  const all = [];
  for await (const token of tokens) all.push(token);
  return all;
}

const exact = { ...smallDecoder, accuracyLevel: 0 };
const bytes = decoder(exact);

// --- what ONNX Runtime Web computes --------------------------------------------------------------

interface Result {
  readonly data: Float32Array;
}

/** The likeliest tokens after a prompt, and the logits before each. */
async function expectedOf(bytes: Uint8Array, prompt: readonly number[], most: number, form = {}) {
  const session = await ort.createSession(bytes);
  const links = Object.entries(keptOf(smallDecoder));
  const shape = [1, smallDecoder.keyHeads, 0, smallDecoder.head];
  const empty = ort.tensor({ dtype: 'float32', shape, data: new Float32Array() });
  let kept = Object.fromEntries(links.map(([, input]) => [input, empty]));
  const tokens: number[] = [];
  const logits: Float32Array[] = [];
  let next = prompt;
  for (let count = 0; tokens.length < most; count += next.length, next = [tokens.at(-1)!]) {
    const given = Object.entries(tokenFeeds(next, count, form));
    const feeds = Object.fromEntries(given.map(([name, value]) => [name, ort.tensor(value)]));
    const results = (await session.run({ ...feeds, ...kept })) as unknown as Record<string, Result>;
    kept = Object.fromEntries(links.map(([output, input]) => [input, results[output] as never]));
    const last = results.logits!.data.slice(-smallDecoder.vocabulary);
    logits.push(last);
    tokens.push(last.indexOf(Math.max(...last)));
  }
  return { tokens, logits };
}

// --- the generator -------------------------------------------------------------------------------

describe('the example generate', () => {
  it('reads text into tokens', async () => {
    const { tokenizer } = await readFolder(await makeFolder({ 'model.onnx': bytes }));
    const { ids } = tokenizer.encode('the cat sat é<|im_end|>');
    const e = Buffer.from('é').map((byte) => byte);
    const list = `the ${space}cat ${space} sat ${space} ${letters[e[0]!]} ${letters[e[1]!]}`;
    expect(ids).toEqual(tokensOf(`${list} <|im_end|>`));
    expect(tokenizer.decode(ids, { skip_special_tokens: true })).toBe('the cat sat é');
  });

  it.each([
    ['of ONNX Runtime GenAI for a CPU', {}],
    ['with position_ids', { isPacked: false, rotates: false, hasNorms: true, seed: 2 }],
  ])('takes the tokens that ONNX Runtime Web takes, for a graph %s', async (_, form) => {
    const bytes = decoder({ ...exact, ...form });
    const folder = await makeFolder({ 'onnx/model_q4.onnx': bytes });
    await withGenerator(folder, async (generator, { tokenizer }) => {
      const prompt = tokenizer.encode('the cat sat').ids;
      const { tokens, logits } = await expectedOf(bytes, prompt, 40, form);
      // Twice, since the state begins again.
      for (let i = 0; i < 2; ++i)
        expect(await collect(generator.generate(prompt, { most: 40 }))).toEqual(tokens);
      await collect(generator.generate(prompt, { most: 1 }));
      for (const [i, token] of tokens.slice(0, -1).entries()) {
        const own = await generator.step([token]);
        const theirs = logits[i + 1]!;
        const most = Math.max(...theirs.map(Math.abs));
        const far = Math.max(...own.map((value, j) => Math.abs(value - theirs[j]!)));
        expect(far / most).toBeLessThan(1e-5);
        const [first, second] = theirs.toSorted().reverse() as unknown as [number, number];
        expect(first - second).toBeGreaterThan(10 * far); // else the tokens may differ
      }
    });
  });

  it('reads weights in another file, and the settings of ONNX Runtime GenAI', async () => {
    const location = 'model.onnx.data';
    const { bytes: graph, weights } = decoder({ ...exact, location });
    const folder = await makeFolder({
      'model.onnx': graph,
      [location]: weights,
      'config.json': undefined,
      'genai_config.json': { model: { context_length: 64, eos_token_id: [1, 2] } },
    });
    const { limit, ends } = await readFolder(folder);
    expect({ limit, ends }).toEqual({ limit: 64, ends: [1, 2] });
    const { tokens } = await expectedOf(bytes, [5, 6], 8);
    await withGenerator(folder, async (generator) => {
      expect(await collect(generator.generate([5, 6], { most: 8 }))).toEqual(tokens);
    });
  });

  it('ends at a token that ends the text, and at the limit', async () => {
    await withGenerator(await makeFolder({ 'model.onnx': bytes }), async (generator, read) => {
      expect(read.ends).toEqual([0]);
      const all = await collect(generator.generate([5, 6]));
      expect(all).toHaveLength(99); // the last one is not fed
      const ends = [all[7]];
      const end = all.indexOf(all[7]!);
      expect(await collect(generator.generate([5, 6], { ends }))).toEqual(all.slice(0, end));
    });
  });

  it('draws from the likeliest tokens', async () => {
    await withGenerator(await makeFolder({ 'model.onnx': bytes }), async (generator) => {
      const [likeliest] = await collect(generator.generate([7], { most: 1 }));
      const draw = async (random: number, temperature: number, topK: number) =>
        (
          await collect(
            generator.generate([7], { most: 1, temperature, topK, random: () => random }),
          )
        )[0];
      expect(await draw(0.99, 1, 1)).toBe(likeliest);
      expect(await draw(0.99, 1e-3, 40)).toBe(likeliest);
      expect(await draw(0, 1, 40)).toBe(likeliest);
      const second = await draw(1 - 2 ** -32, 1e6, 2); // both are as likely
      const { logits } = await expectedOf(bytes, [7], 1);
      const sorted = [...logits[0]!.keys()].sort((a, b) => logits[0]![b]! - logits[0]![a]!);
      expect([likeliest, second]).toEqual(sorted.slice(0, 2));
    });
  });
});

// --- errors --------------------------------------------------------------------------------------

/** A model that adds its inputs. */
const adding = (...names: string[]) =>
  encodeGraph({
    opsets: { '': 17 },
    inputs: names.map((name) => ({ name, dtype: 'float32', shape: ['n'] })),
    outputs: [{ name: 'logits', dtype: 'float32', shape: ['n'] }],
    nodes: [{ op: 'Sum', name: 'sum', inputs: names, outputs: ['logits'] }],
  });

describe('the example generate refuses', () => {
  const location = '../weights';
  const missing = () => decoder({ ...exact, location: 'missing.data' }).bytes;
  it.each<[files: () => Record<string, unknown>, ...says: string[]]>([
    [() => ({ 'model.onnx': bytes, 'tokenizer.json': undefined }), 'has no tokenizer.json'],
    [() => ({ 'model.onnx': bytes, 'config.json': '{' }), 'config.json is not JSON'],
    [() => ({}), 'has no model; expected onnx/model_q4.onnx, or model_q4.onnx, or'],
    [() => ({ 'model.onnx': adding('input_ids') }), 'has the inputs input_ids; expected past_key'],
    [() => ({ 'model.onnx': missing() }), 'model keeps weights in ', 'missing.data, which is'],
    [() => ({ 'model.onnx': decoder({ ...exact, location }).bytes }), 'in ../weights; expected a'],
    [
      () => {
        const { bytes: graph, weights } = decoder({ ...exact, location: 'w' });
        return { 'model.onnx': graph, w: weights.subarray(0, 100) };
      },
      'w ends before',
    ],
  ])('%#', async (files, ...says) => {
    const before = wg.memory().inUse;
    const started = makeFolder(files()).then((folder) =>
      withGenerator(folder, () => Promise.resolve()),
    );
    const error = await started.then(
      () => undefined,
      (error: unknown) => error as Error,
    );
    for (const text of says) expect(error?.message).toContain(text);
    expect(wg.memory().inUse).toBe(before);
  });

  it('prompts of no token, and of too many', async () => {
    await withGenerator(await makeFolder({ 'model.onnx': bytes }), async (generator) => {
      await expect(collect(generator.generate([]))).rejects.toThrow('the prompt has no token');
      const prompt = Array<number>(100).fill(5);
      const says = 'the prompt has 100 tokens; the model takes 99 and one more';
      await expect(collect(generator.generate(prompt))).rejects.toThrow(says);
      expect(await collect(generator.generate(prompt.slice(1)))).toHaveLength(2);
    });
  });
});

// --- the program ---------------------------------------------------------------------------------

describe('npm run generate', () => {
  let folder: string;
  beforeAll(async () => (folder = await makeFolder({ 'model.onnx': bytes })));

  const run = async (...args: string[]): Promise<string> => {
    const program = fileURLToPath(new URL('generate.mjs', example));
    return (await promisify(execFile)(process.execPath, [program, ...args])).stdout;
  };

  it('prints the text, and the tokens per second', async () => {
    const { text, ids } = await withGenerator(folder, async (generator, { tokenizer, ends }) => {
      const { ids } = tokenizer.encode('the cat');
      const tokens = await collect(generator.generate(ids, { most: 12, ends }));
      return { ids, text: tokenizer.decode(tokens, { skip_special_tokens: true }) };
    });
    const printed = await run(folder, 'the cat', '--tokens', '12');
    expect(printed).toContain(`model.onnx: the prompt has ${ids.length} tokens\n\n`);
    const complete = text.replace(/\ufffd+$/, '');
    expect(printed).toContain(`\n\n${complete}`);
    expect(printed).toMatch(/\n\n\d+ tokens: the first one after [\d.]+ s, then \d+ per second\n$/);
  });

  it('draws the same for the same seed', async () => {
    const args = [folder, 'the cat', '--tokens', '20', '--temperature', '1'];
    const textOf = (printed: string) => printed.split('\n\n').slice(1, -1).join('\n\n');
    const one = textOf(await run(...args, '--seed', '3'));
    expect(textOf(await run(...args, '--seed', '3'))).toBe(one);
    expect(textOf(await run(...args, '--seed', '4'))).not.toBe(one);
  });

  it('writes a chat', async () => {
    const printed = await run(folder, 'cat', '--chat', '--tokens', '1');
    // <|im_start|> user \n cat <|im_end|> \n <|im_start|> assistant \n
    const count = 1 + 'user\n'.length + 1 + 1 + 1 + 1 + 'assistant\n'.length;
    expect(printed).toContain(`the prompt has ${count} tokens`);
    expect(printed).toMatch(/1 token: the first one after [\d.]+ s\n$/);
  });

  it('says what is wrong', async () => {
    const failing = async (args: string[], says: RegExp) =>
      await expect(run(...args)).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(says) as string,
      });
    await failing([folder], /Expected 2 arguments, FOLDER and "text"; found 1\.\nUsage/);
    await failing([folder, 'a', '--tokens', '0'], /--tokens is 0; it must be a whole number/);
    await failing([folder, 'a', '--temperature', '-1'], /--temperature is -1|ambiguous/);
    await failing([folder, 'a', '--beams', '2'], /--beams[^]*Usage/);
    await failing([join(root, 'nowhere'), 'a'], /^folder .*nowhere has no tokenizer\.json/);
    await failing([folder, ''], /^the prompt has no token/);
    expect(await run('--help')).toMatch(/^Usage: npm run generate/);
  });
});
