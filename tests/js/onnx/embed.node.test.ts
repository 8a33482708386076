/** The example embed, on folders with a MiniLM of random weights and a tokenizer of few words. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { miniLm } from '../../bench/models/minilm.mjs';
import { encodeGraph } from '../../peers/onnx-model.mjs';
import { ort, wg } from '../support/with-ort.js';

type Pooling = 'mean' | 'cls';
interface Read {
  file: string;
  bytes: Uint8Array;
  tokenizer: unknown;
  limit: number;
  pooling: Pooling | undefined;
}
interface Embedder {
  pooling: string;
  embed(text: string): Promise<Float32Array>;
  embedAll(texts: readonly string[]): Promise<Float32Array[]>;
  dispose(): void;
}
const example = new URL('../../../examples/embed/', import.meta.url);
const load = (name: string): Promise<unknown> => import(new URL(name, example).href);
const { readFolder } = (await load('folder.mjs')) as {
  readFolder: (folder: string, file?: string) => Promise<Read>;
};
const { createEmbedder } = (await load('embedder.mjs')) as {
  createEmbedder: (bytes: Uint8Array, options: object) => Promise<Embedder>;
};

// --- a tokenizer ---------------------------------------------------------------------------------

const special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'];
/** `##` marks what goes on with a word. */
const vocabulary = [
  ...special,
  ...'query passage : hello world ##s a cat sleep ##ing dog !'.split(' '),
];
const token = (id: string) => ({ id, type_id: 0 });

/** As the tokenizer.json of MiniLM, which truncates and pads, too. */
const tokenizer = {
  version: '1.0',
  truncation: { direction: 'Right', max_length: 128, strategy: 'LongestFirst', stride: 0 },
  padding: { strategy: { Fixed: 128 }, direction: 'Right', pad_id: 0, pad_token: '[PAD]' },
  added_tokens: special.map((content, id) => ({ id, content, special: true, normalized: false })),
  normalizer: { type: 'BertNormalizer', clean_text: true, lowercase: true, strip_accents: null },
  pre_tokenizer: { type: 'BertPreTokenizer' },
  post_processor: {
    type: 'TemplateProcessing',
    single: [
      { SpecialToken: token('[CLS]') },
      { Sequence: token('A') },
      { SpecialToken: token('[SEP]') },
    ],
    pair: [],
    special_tokens: Object.fromEntries(
      ['[CLS]', '[SEP]'].map((id) => [id, { id, ids: [special.indexOf(id)], tokens: [id] }]),
    ),
  },
  decoder: { type: 'WordPiece', prefix: '##' },
  model: {
    type: 'WordPiece',
    unk_token: '[UNK]',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(vocabulary.map((word, id) => [word, id])),
  },
};

/** Texts, and the tokens between [CLS] and [SEP]. Two have the same length. */
const samples: [string, string][] = [
  ['Hello, worlds!', 'hello [UNK] world ##s !'],
  ['A cat', 'a cat'],
  ['a DOG', 'a dog'],
  ['', ''],
  ['a sleeping cat, a sleeping dog', 'a sleep ##ing cat [UNK] a sleep ##ing dog'],
];
const texts = samples.map(([text]) => text);
const idsOf = (tokens: string) =>
  ['[CLS]', ...tokens.split(' ').filter(Boolean), '[SEP]'].map((word) => vocabulary.indexOf(word));

// --- folders -------------------------------------------------------------------------------------

let root: string;
let folders = 0;
beforeAll(async () => (root = await mkdtemp(join(tmpdir(), 'wgemm-embed-'))));
afterAll(() => rm(root, { recursive: true }));

const config = { model_type: 'bert', max_position_embeddings: 512 };
const poolingFile = (name: string) => ({
  '1_Pooling/config.json': { word_embedding_dimension: 384, [`pooling_mode_${name}`]: true },
});

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

async function withEmbedder<T>(
  folder: string,
  options: { file?: string; pooling?: string },
  body: (embedder: Embedder) => Promise<T>,
): Promise<T> {
  const { bytes, ...read } = await readFolder(folder, options.file);
  const settings = { ...read, wg, ...(options.pooling && { pooling: options.pooling }) };
  const embedder = await createEmbedder(bytes, settings);
  try {
    return await body(embedder);
  } finally {
    embedder.dispose();
  }
}

// --- what ONNX Runtime Web computes --------------------------------------------------------------

interface Result {
  readonly dims: readonly number[];
  readonly data: Float32Array;
}

/** The embedding of ids by ONNX Runtime Web, and by a pooling that follows its definition. */
async function expectedOf(bytes: Uint8Array, ids: number[], types: boolean, pooling: string) {
  const feed = (values: number[]) =>
    ort.tensor({
      dtype: 'int64',
      shape: [1, ids.length],
      data: BigInt64Array.from(values, BigInt),
    });
  const session = await ort.createSession(bytes);
  const results = (await session.run({
    input_ids: feed(ids),
    attention_mask: feed(ids.map(() => 1)),
    ...(types && { token_type_ids: feed(ids.map(() => 0)) }),
  })) as unknown as Record<string, Result>;
  if (pooling === 'model') return results.sentence_embedding!.data;
  const { dims, data } = (results.last_hidden_state ?? results.token_embeddings)!;
  const size = dims[2]!;
  const rows = ids.map((_, i) => data.subarray(i * size, (i + 1) * size));
  const vector =
    pooling === 'cls'
      ? Array.from(rows[0]!)
      : Array.from(rows[0]!, (_, j) => rows.reduce((sum, row) => sum + row[j]!, 0) / rows.length);
  const length = Math.hypot(...vector);
  return Float32Array.from(vector, (value) => value / length);
}

const distance = (a: Float32Array, b: Float32Array) =>
  Math.hypot(...Array.from(a, (value, i) => value - b[i]!));

const cases = [
  { variant: 'float32', pooling: 'mean', types: true, layers: 6 },
  { variant: 'float32', pooling: 'cls', types: true },
  { variant: 'float32', pooling: 'mean', types: false },
  { variant: 'float32', pooling: 'model', types: true },
  { variant: 'float32', pooling: 'model', types: false },
  { variant: 'int8', pooling: 'mean', types: true },
  { variant: 'int8', pooling: 'cls', types: false },
  { variant: 'int8', pooling: 'model', types: true },
] as const;

describe.each(cases)('$variant, pooling $pooling, token_type_ids: $types', (options) => {
  it('ONNX Runtime Web computes the same embeddings', async () => {
    const { variant, pooling, types } = options;
    const pooled = pooling === 'model';
    const bytes = miniLm({ layers: 1, ...options, pooled });
    const name = variant === 'int8' ? 'onnx/model_quantized.onnx' : 'onnx/model.onnx';
    const folder = await makeFolder({
      [name]: bytes,
      'tokenizer_config.json': { model_max_length: 512 },
      ...poolingFile(pooling === 'cls' ? 'cls_token' : 'mean_tokens'),
      ...(pooled && { '1_Pooling/config.json': undefined }),
    });
    const before = wg.memory().inUse;
    await withEmbedder(folder, {}, async (embedder) => {
      expect(embedder.pooling).toBe(pooling);
      const all = await embedder.embedAll(texts);
      // In int8, elements may round to another integer: see minilm.node.test.ts.
      const bound = variant === 'int8' ? 0.02 : 1e-5;
      for (const [i, [text, tokens]] of samples.entries()) {
        const expected = await expectedOf(bytes, idsOf(tokens), types, pooling);
        expect(all[i], text).toHaveLength(384);
        expect(distance(all[i]!, expected), text).toBeLessThan(bound);
        expect(await embedder.embed(text), text).toEqual(all[i]);
      }
      // The bound separates two texts that differ by a word.
      expect(distance(all[1]!, all[2]!)).toBeGreaterThan(3 * bound);
    });
    expect(wg.memory().inUse).toBe(before);
  });
});

// --- files ---------------------------------------------------------------------------------------

const small = miniLm({ layers: 1, seed: 2 });
const other = miniLm({ layers: 1, seed: 3, pooled: true });

describe('a folder', () => {
  it('may have its model in four places', async () => {
    const names = [
      'model.onnx',
      'onnx/model.onnx',
      'model_quantized.onnx',
      'onnx/model_quantized.onnx',
    ];
    for (const [i, name] of names.entries()) {
      const later = Object.fromEntries(names.slice(i).map((each) => [each, each]));
      expect(await readFolder(await makeFolder(later))).toMatchObject({ file: name });
    }
    const folder = await makeFolder({ 'model.onnx': 'first', 'onnx/model_q4.onnx': 'second' });
    const { bytes } = await readFolder(folder, 'onnx/model_q4.onnx');
    expect(new TextDecoder().decode(bytes)).toBe('second');
  });

  it('states the pooling and the number of tokens, or not', async () => {
    const read = async (files: object) => {
      const { pooling, limit } = await readFolder(await makeFolder({ 'model.onnx': '', ...files }));
      return { pooling, limit };
    };
    expect(await read({ 'config.json': undefined })).toEqual({
      pooling: undefined,
      limit: Infinity,
    });
    expect(await read(poolingFile('cls_token'))).toEqual({ pooling: 'cls', limit: 512 });
    expect(await read(poolingFile('mean_tokens'))).toEqual({ pooling: 'mean', limit: 512 });
    const tokenizerSays = (model_max_length: number) => ({
      'tokenizer_config.json': { model_max_length },
    });
    expect(await read(tokenizerSays(128))).toMatchObject({ limit: 128 });
    expect(await read(tokenizerSays(1e30))).toMatchObject({ limit: 512 });
  });

  it('needs no file that states the pooling: it is the mean, or what the model computes', async () => {
    const poolingOf = async (model: Uint8Array, pooling?: string) => {
      const folder = await makeFolder({ 'model.onnx': model });
      return await withEmbedder(folder, { ...(pooling && { pooling }) }, async (embedder) => [
        embedder.pooling,
        await embedder.embed('a cat'),
      ]);
    };
    const mean = await poolingOf(small, 'mean');
    expect(await poolingOf(small)).toEqual(mean);
    expect(await poolingOf(small, 'cls')).not.toEqual(mean);
    expect((await poolingOf(other))[0]).toBe('model');
    expect((await poolingOf(other, 'cls'))[0]).toBe('cls');
  });
});

// --- errors --------------------------------------------------------------------------------------

/** A model whose only node adds a constant to its input. */
function adding(input: string, output: string, dtype: 'float32' | 'int64' = 'float32') {
  const data = dtype === 'int64' ? new BigInt64Array(4) : new Float32Array(4);
  return encodeGraph({
    opsets: { '': 13 },
    nodes: [{ op: 'Add', name: 'add', inputs: [input, 'constant'], outputs: [output] }],
    inputs: [{ name: input, dtype, shape: [1, 'tokens', 4] }],
    initializers: [{ name: 'constant', dtype, shape: [4], data }],
    outputs: [{ name: output, dtype, shape: [1, 'tokens', 4] }],
  });
}

describe('errors name what is wrong, what was found and what is allowed', () => {
  const broken = (files: Record<string, unknown>, says: string[], options = {}) => ({
    files: { 'model.onnx': small, ...files },
    says,
    options,
  });
  it.each([
    broken({ 'model.onnx': undefined }, [
      'folder',
      'has no model',
      'model.onnx, or onnx/model.onnx',
    ]),
    broken({}, ['folder', 'has no model', 'expected q4.onnx'], { file: 'q4.onnx' }),
    broken({ 'tokenizer.json': undefined }, ['folder', 'has no tokenizer.json']),
    broken({ 'config.json': '{' }, ['config.json is not JSON']),
    broken(poolingFile('max_tokens'), [
      '1_Pooling/config.json',
      'says pooling_mode_max_tokens',
      'expected pooling_mode_cls_token or pooling_mode_mean_tokens',
    ]),
    broken({}, ['pooling is max', 'expected mean or cls'], { pooling: 'max' }),
    broken({ 'model.onnx': adding('x', 'last_hidden_state') }, [
      'model has the inputs x',
      'expected input_ids',
      'attention_mask and token_type_ids',
    ]),
    broken({ 'model.onnx': adding('input_ids', 'logits') }, [
      'model has the outputs logits',
      'expected sentence_embedding or last_hidden_state or token_embeddings',
    ]),
    broken({ 'model.onnx': adding('input_ids', 'last_hidden_state', 'int64') }, [
      'last_hidden_state is int64',
      'expected float32',
    ]),
  ])('$says', async ({ files, says, options }) => {
    const before = wg.memory().inUse;
    const started = withEmbedder(await makeFolder(files), options, () => Promise.resolve());
    const error = await started.then(
      () => undefined,
      (error: unknown) => error as Error,
    );
    for (const text of says) expect(error?.message).toContain(text);
    expect(wg.memory().inUse).toBe(before);
  });

  it('a text of more tokens than the position table has', async () => {
    const folder = await makeFolder({ 'model.onnx': small });
    await withEmbedder(folder, {}, async (embedder) => {
      const words = (count: number) => Array(count).fill('cat').join(' ');
      await embedder.embed(words(510)); // with [CLS] and [SEP]
      const says = 'text has 513 tokens; at most 512 are allowed: split it. It is "cat cat';
      await expect(embedder.embed(words(511))).rejects.toThrow(says);
      await expect(embedder.embedAll(['cat', words(511)])).rejects.toThrow(says);
    });
  });
});

// --- the program ---------------------------------------------------------------------------------

describe('npm run embed', () => {
  const corpus = ['a cat', 'a dog', 'hello worlds!', 'a sleeping dog'];
  let folder: string;
  beforeAll(async () => (folder = await makeFolder({ 'model.onnx': small })));

  async function run(args: readonly string[], input = ''): Promise<string> {
    const program = fileURLToPath(new URL('embed.mjs', example));
    const running = promisify(execFile)(process.execPath, [program, ...args]);
    running.child.stdin!.end(input);
    return (await running).stdout;
  }

  /** The lines that the program must print, with prefixes before the query and the texts. */
  async function expectedLines(query: string, before = '', prefix = ''): Promise<string[]> {
    return await withEmbedder(folder, {}, async (embedder) => {
      const wanted = await embedder.embed(before + query);
      const scored = [];
      for (const text of corpus) {
        const found = await embedder.embed(prefix + text);
        scored.push({ text, cosine: found.reduce((sum, value, j) => sum + value * wanted[j]!, 0) });
      }
      scored.sort((one, two) => two.cosine - one.cosine);
      return scored.map(({ text, cosine }) => `${cosine.toFixed(3)}  ${text}`);
    });
  }

  it('prints the nearest texts of a file, of standard input, and of its own', async () => {
    const file = join(root, 'corpus.txt');
    await writeFile(file, `${corpus.join('\r\n')}\n\n`);
    const lines = await expectedLines('a cat');
    expect(lines[0]).toBe('1.000  a cat');
    const printed = await run([folder, 'a cat', '--texts', file]);
    expect(printed).toContain('model.onnx: pooling mean, at most 512 tokens\nembedded 4 texts');
    expect(printed.trim().split('\n').slice(-4)).toEqual(lines);
    const two = await run([folder, 'a cat', '--texts', '-', '--top', '2'], corpus.join('\n'));
    expect(two.trim().split('\n\n')[1]).toBe(lines.slice(0, 2).join('\n'));
    expect(await run([folder, 'a cat'])).toMatch(
      /embedded \d\d texts in .* s\n\n(\d\.\d{3} {2}.+\n){5}$/,
    );
  });

  it('puts prefixes before the query and the texts', async () => {
    const prefixes = ['--query-prefix', 'query: ', '--passage-prefix', 'passage: '];
    const printed = await run([folder, 'a cat', '--texts', '-', ...prefixes], corpus.join('\n'));
    const lines = await expectedLines('a cat', 'query: ', 'passage: ');
    expect(lines).not.toEqual(await expectedLines('a cat'));
    expect(printed.trim().split('\n').slice(-4)).toEqual(lines);
  });

  it('says what is wrong', async () => {
    const failing = async (args: string[], says: string | RegExp) =>
      await expect(run(args)).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringMatching(says) as string,
      });
    await failing([folder], /Expected 2 arguments, FOLDER and "text"; found 1\.\nUsage/);
    await failing([folder, 'a', '--top', '0'], /--top is 0; it must be a whole number above 0/);
    await failing([folder, 'a', '--nearest', '2'], /--nearest[^]*Usage/);
    await failing([join(root, 'nowhere'), 'a'], /^folder .*nowhere has no tokenizer\.json/);
    await failing(
      [folder, 'a', '--texts', '-'],
      /^--texts - has no text; expected one per line\n$/,
    );
    await failing(
      [folder, 'a', '--texts', join(root, 'none')],
      /^--texts .*none: there is no such file\n$/,
    );
    expect(await run(['--help'])).toMatch(/^Usage: npm run embed/);
  });
});
