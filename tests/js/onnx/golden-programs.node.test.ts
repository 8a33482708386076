/**
 * The programs of six models as text, compared with programs.txt. The test fails if a change of
 * fusions, operators, memory or constants changes a program. WGEMM_WRITE_PROGRAMS=1 writes the
 * file.
 *
 * A step is its name, the sizes of its axes, its tensors and its attributes. A tensor is its type
 * and its place, with the strides along these axes. `@64` is byte 64 of the programs' memory, and
 * `c2` is a constant, whose hash follows the steps. Tensors of a product have sizes of their own.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { loadModel, type Model } from 'wgemm/onnx';
import { miniLm, textsOf } from '../../bench/models/minilm.mjs';
import { smallModels } from '../../bench/models/small.mjs';
import { createWithGlue, type Glue } from '../support/glue.js';
import { ProgramReader, type ProgramStep, type ProgramTensor } from '../support/programs.js';

type Feeds = Parameters<Model['run']>[0];

const file = new URL('programs.txt', import.meta.url);

const small = (name: string): [string, Uint8Array, Feeds] => {
  const { variant, bytes, feeds } = smallModels.find((model) => model.name === name)!;
  return [`${name}, ${variant}`, bytes(), feeds()];
};

const models: [name: string, bytes: Uint8Array, feeds: Feeds][] = [
  ...(['int8', 'float32'] as const).map((variant): [string, Uint8Array, Feeds] => [
    `MiniLM of 2 layers, 7 tokens, ${variant}`,
    miniLm({ variant, layers: 2 }),
    textsOf({ tokens: 7 }),
  ]),
  ...['collision avoidance', 'wake word', 'dense, 64 rows', 'dense'].map(small),
];

it('writes the programs of six models as before', async () => {
  let text = '';
  for (const [name, bytes, feeds] of models) text += `# ${name}\n${await textOf(bytes, feeds)}\n`;
  if (process.env.WGEMM_WRITE_PROGRAMS) writeFileSync(file, text);
  const expected = readFileSync(file, 'utf8').split('\n');
  // One line after another, so that a failure shows the first one that differs.
  text.split('\n').forEach((line, i) => {
    expect(line, `line ${i + 1}`).toBe(expected[i]);
  });
  expect(text.split('\n').length).toBe(expected.length);
});

/** The programs of a run. */
async function textOf(bytes: Uint8Array, feeds: Feeds): Promise<string> {
  const { wg, glue } = await createWithGlue({ simd: 'simd128' });
  const reader = new ProgramReader(glue);
  const model = await loadModel(bytes, { wg });
  await model.run(feeds);
  const parts = reader.programs.map((words) => reader.stepsOf(words));
  const steps = parts.flat();
  const arena = reader.blockOf(steps[0]!.outputs[0]!.address);
  const places = new Places(reader, arena);
  const lines = parts.map((part) => part.map((step) => `${lineOf(step, places)}\n`).join(''));
  const text = lines.join('(a node in JavaScript)\n') + places.constants(glue);
  wg.dispose();
  return text;
}

/** Names of addresses. */
class Places {
  readonly #numbers = new Map<number, string>();
  readonly #constants: ProgramTensor[] = [];

  constructor(
    readonly reader: ProgramReader,
    readonly arena: number,
  ) {}

  nameOf(tensor: ProgramTensor): string {
    const { address, kind } = tensor;
    // The core itself allocates packed weights.
    const block = kind === 'packed' ? address : this.reader.blockOf(address);
    if (block === this.arena) return `@${address - block}`;
    let name = this.#numbers.get(block);
    if (name === undefined) {
      name = `${kind === 'packed' ? 'packed' : 'c'}${this.#numbers.size + 1}`;
      this.#numbers.set(block, name);
      if (kind !== 'packed') this.#constants.push(tensor);
    }
    return address === block ? name : `${name}+${address - block}`;
  }

  /** A line per constant, with the hash of its bytes. */
  constants({ HEAPU8 }: Glue): string {
    const lines = this.#constants.map((tensor) => {
      const bytes = HEAPU8.subarray(tensor.start, tensor.end);
      const hash = bytes.reduce((hash, byte) => Math.imul(hash ^ byte, 16777619), 2166136261);
      const hex = (hash >>> 0).toString(16).padStart(8, '0');
      return `${this.nameOf(tensor)} ${tensor.type} ${bytes.length} bytes ${hex}\n`;
    });
    return lines.join('');
  }
}

function lineOf({ name, sizes, inputs, outputs, attributes }: ProgramStep, places: Places): string {
  const isProduct = sizes.length === 0;
  const tensorText = (tensor: ProgramTensor): string => {
    const { kind, type, value, sizes, strides } = tensor;
    if (kind === 'absent') return 'none';
    if (kind === 'number') return `${type} ${value}`;
    if (kind === 'packed') return places.nameOf(tensor);
    const own = isProduct ? `[${sizes.join()}]` : '';
    return `${type}${own} ${places.nameOf(tensor)}[${strides.join()}]`;
  };
  const list = (tensors: readonly ProgramTensor[]) => tensors.map(tensorText).join(', ');
  const head = isProduct ? name : `${name} [${sizes.join()}]`;
  const tail = attributes.length > 0 ? ` (${attributes.join(' ')})` : '';
  return `${head} ${list(inputs)} -> ${list(outputs)}${tail}`;
}
