/** What a test of an exporter's graph needs. */
import { type Input, tensor } from '../onnx-nodes.js';
import type { Random } from '../../support/random.js';
import { count } from '../onnx-nodes.js';
import { encodeText, parseText, type TextModel } from './text.js';

/** By the name of the size. */
export type Sizes = Readonly<Record<string, number>>;

export interface Exported {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The same model for the runtime, if its results are not tensors. */
  readonly theirs: Uint8Array;
  /** The dynamic sizes of each run. */
  readonly runs: readonly Sizes[];
  /** The largest difference, relative to the largest value of an output. */
  readonly bound: number;
  /** Of a decoder: the outputs that become inputs of the next run. */
  readonly kept?: Readonly<Record<string, string>> | undefined;
  /** Inputs of a run. */
  readonly feeds: (sizes: Sizes, random: Random) => Record<string, Input>;
}

export interface Text extends TextModel, Pick<Exported, 'name' | 'runs' | 'bound' | 'kept'> {
  /** The text for the runtime. */
  readonly theirs?: string;
  /** Values of inputs that are unlike the inputs of a language model. */
  readonly inputs?: Readonly<
    Record<string, (random: Random, shape: readonly number[], sizes: Sizes) => readonly number[]>
  >;
}

/** A model whose graph is a text. */
export function exported(model: Text): Exported {
  const { name, runs, bound, kept, inputs: drawn = {} } = model;
  const { inputs } = parseText(model);
  const feeds = (sizes: Sizes, random: Random) =>
    Object.fromEntries(
      inputs.map(({ name, dtype, shape = [] }) => {
        const full = shape.map((size) => (typeof size === 'string' ? sizeOf(sizes, size) : size!));
        const values =
          drawn[name]?.(random, full, sizes) ?? valuesFor(name, dtype, full, random, sizes);
        return [name, tensor(dtype as 'float32', full, values)];
      }),
    );
  const bytes = encodeText(model);
  const theirs = model.theirs ? encodeText({ ...model, text: model.theirs }) : bytes;
  return { name, runs, bound, kept, bytes, theirs, feeds };
}

function sizeOf(sizes: Sizes, name: string): number {
  const size = sizes[name];
  if (size === undefined) throw new Error(`the run has no size ${name}`);
  return size;
}

function valuesFor(
  name: string,
  dtype: string,
  shape: readonly number[],
  random: Random,
  { p: past = 0 }: Sizes,
): number[] {
  const length = shape.at(-1) as number;
  const each = (value: (index: number) => number) =>
    Array.from({ length: count(shape) }, (_, i) => value(i));
  // The first text has no padding. Others begin with it, as texts of decoders do.
  if (name.includes('mask')) return each((i) => (i < length || i % length >= i / length ? 1 : 0));
  if (name.startsWith('position')) return each((i) => past + (i % length));
  if (name.includes('type')) return each(() => random.between(0, 1));
  if (dtype.startsWith('int')) return each(() => random.between(0, 49));
  return each(() => random.next() * 2 - 1);
}
