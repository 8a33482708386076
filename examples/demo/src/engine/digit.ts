/** Digits: a network in three types, which recognizes what the visitor draws, and learns here. */
import type { Gemm, HeapTensor, TensorLike } from 'wgemm';
import type { Linear } from 'wgemm/linear';
import { digits as digitsFile, network as networkFile } from 'virtual:digits';
import { race } from '../../../../tests/bench/turns.mjs';
import { softmax } from '../../../attention/numbers.mjs';
import { classes, pixels } from '../../../digits/images.mjs';
import { makeForms, runner } from '../../../digits/layers.mjs';
import { learn, sizes } from '../../../digits/learn.mjs';
import {
  allocOutputs,
  classify,
  createLayers,
  forward,
  multiplyBy,
} from '../../../digits/network.mjs';
import { seededRandom } from '../../../random.mjs';
import { counts, readDigits, readNetwork } from '../../build/digit-files.mjs';
import { fetchBytes, once } from './files.ts';
import { instance } from './instance.ts';
import { paced } from './pace.ts';
import type { Report } from './report.ts';
import { inTurn } from './turn.ts';

export type FormName = 'float32' | 'bfloat16' | 'int8';

/** The network in one type of weights. */
export interface FormFacts {
  name: FormName;
  /** Of the weights, biases and scales. */
  bytes: number;
  /** The part of the held-out digits that it recognizes, from 0 to 1. */
  accuracy: number;
}

export interface FormTimes {
  name: FormName;
  /** Seconds for one digit. */
  one: number;
  /** Seconds per digit, for 1,000 at once. */
  many: number;
}

/** A point of the curve of the training. */
export interface TrainingPoint {
  /** Epochs that are done, with fractions. */
  epochs: number;
  loss: number;
  accuracy: number;
}

export interface DigitFacts {
  epochs: number;
  training: number;
  test: number;
}

/** Probabilities of the ten digits, for each form. */
export type Answers = Record<FormName, Float32Array>;

interface TrainedLayer {
  weights: TensorLike<Float32Array>;
  bias: TensorLike<Float32Array>;
}

/** A layer that learns. */
interface HeapLayer {
  weights: HeapTensor<Float32Array>;
  bias: HeapTensor<Float32Array>;
}

/** A form, with what recognizes one digit. */
interface Form {
  name: FormName;
  layers: Linear[];
  one: Runner;
}

type Runner = ((input: HeapTensor<Float32Array>) => HeapTensor<Float32Array>) & { dispose(): void };

const names: FormName[] = ['float32', 'bfloat16', 'int8'];

// With a rate that falls to 0, 30 trainings from different weights all reached 95.4% or more.
const training = { epochs: 20, batch: 50, rateAt: (part: number) => 0.1 * (1 - part) };
const pointEvery = 20; // batches between two points of the curve
const sampleCount = 500; // digits that determine the ranges of int8

// --- the digits ----------------------------------------------------------------------------------

/** Digits as they come: first those held back, then those to learn from. */
interface Store {
  images: Float32Array;
  labels: Uint8Array;
}

let stored: Promise<Store> | undefined;
let builtIn: Promise<TrainedLayer[]> | undefined;

const fetchDigits = async (): Promise<Store> => readDigits(await fetchBytes(digitsFile));

async function fetchNetwork(): Promise<TrainedLayer[]> {
  const layers: { weights: Float32Array; bias: Float32Array }[] = readNetwork(
    await fetchBytes(networkFile),
    sizes,
  );
  return layers.map(({ weights, bias }, i) => ({
    weights: { data: weights, shape: [sizes[i]!, sizes[i + 1]!] },
    bias: { data: bias, shape: [1, sizes[i + 1]!] },
  }));
}

function store(): Promise<Store> {
  stored = once(stored, fetchDigits, () => (stored = undefined));
  return stored;
}

const part = ({ images, labels }: Store, from: number, count: number) => ({
  images: images.subarray(from * pixels, (from + count) * pixels),
  labels: labels.subarray(from, from + count),
  count,
});

/** Which digits are held back, in order. */
export async function heldOutLabels(): Promise<Uint8Array> {
  return part(await store(), 0, counts.test).labels.slice();
}

export async function heldOutDigit(row: number): Promise<Float32Array> {
  return part(await store(), row, 1).images.slice();
}

// --- the network in use --------------------------------------------------------------------------

let forms: Form[] = [];
let pad: HeapTensor<Float32Array> | undefined;

export const digitFacts = (): DigitFacts => ({ ...counts, epochs: training.epochs });

/** Uses the network that came with the page. */
export async function useBuiltIn(): Promise<FormFacts[]> {
  const wg = await instance();
  builtIn = once(builtIn, fetchNetwork, () => (builtIn = undefined));
  return use(wg, await builtIn);
}

/** Makes the forms of a network, which replace those in use. */
async function use(wg: Gemm, layers: TrainedLayer[]): Promise<FormFacts[]> {
  const digits = await store();
  const made = makeForms(wg, layers, part(digits, counts.test, sampleCount).images);
  const old = forms;
  forms = names.map((name) => ({
    name,
    layers: made[name] as Linear[],
    one: runner(wg, made[name], 1) as Runner,
  }));
  pad ??= wg.alloc('float32', [1, pixels]);
  for (const { layers, one } of old) for (const each of [...layers, one]) each.dispose();

  const test = part(digits, 0, counts.test);
  const input = filled(wg, test.count, test.images);
  try {
    return forms.map(({ name, layers }) => {
      const runTest = runner(wg, layers, test.count) as Runner;
      const accuracy = accuracyOf(answersOf(runTest(input)), test.labels);
      runTest.dispose();
      return { name, bytes: layers.reduce((sum, layer) => sum + layer.byteLength, 0), accuracy };
    });
  } finally {
    input.dispose();
  }
}

/** An input of digits: `images`, again and again. */
function filled(wg: Gemm, rows: number, images: Float32Array): HeapTensor<Float32Array> {
  const input = wg.alloc('float32', [rows, pixels]);
  const { data } = input;
  for (let at = 0; at < data.length; at += images.length)
    data.set(images.subarray(0, data.length - at), at);
  return input;
}

const answersOf = classify as unknown as (scores: HeapTensor<Float32Array>) => Uint8Array;

const accuracyOf = (answers: Uint8Array, labels: Uint8Array): number =>
  answers.filter((answer, row) => answer === labels[row]).length / labels.length;

/** What each form takes an image for. */
export function recognize(image: Float32Array): Answers | undefined {
  if (!pad || forms.length === 0) return undefined;
  pad.data.set(image);
  const answers: Partial<Answers> = {};
  for (const { name, one } of forms) {
    const scores = one(pad).data.slice();
    softmax(scores, classes);
    answers[name] = scores;
  }
  return answers as Answers;
}

// --- times ---------------------------------------------------------------------------------------

/** How long the forms take, in turns. Undefined if it was cancelled. */
export async function measureDigits(report: Report): Promise<FormTimes[] | undefined> {
  return inTurn(
    async () => {
      const one = await timesOf(1, report, 0);
      const many = one && (await timesOf(1000, report, 0.5));
      return many && names.map((name, i) => ({ name, one: one[i]!, many: many[i]! }));
    },
    () => report(0),
  );
}

/** Seconds per digit of each form, for some digits at once. */
async function timesOf(rows: number, report: Report, from: number): Promise<number[] | undefined> {
  const wg = await instance();
  const digits = await store();
  const input = filled(wg, rows, part(digits, 0, Math.min(rows, counts.test)).images);
  const runners = forms.map(({ layers }) => runner(wg, layers, rows) as Runner);
  const options = { warmUpMs: 120, sampleMs: 4, raceMs: 600 };
  const start = performance.now();
  const ms = options.raceMs + options.warmUpMs * runners.length;
  const done = () => from + Math.min(0.5, (0.5 * (performance.now() - start)) / ms);
  try {
    const times = await race(
      runners.map((runOnce) => ({
        run(times: number) {
          for (let i = 0; i < times; ++i) runOnce(input);
        },
      })),
      { ...options, goOn: paced(report, done) },
    );
    return times?.map(({ best }) => best / rows / 1000);
  } finally {
    for (const each of [input, ...runners]) each.dispose();
  }
}

// --- training ------------------------------------------------------------------------------------

/**
 * Trains a network from random weights on the digits that came with the page, and then uses it.
 * Undefined if it was cancelled.
 */
export async function trainDigits(
  seed: number,
  report: Report<TrainingPoint>,
): Promise<FormFacts[] | undefined> {
  const wg = await instance();
  const all = await store();
  const random = seededRandom(seed);
  const digits = part(all, counts.test, counts.training);
  const layers: HeapLayer[] = createLayers(wg, sizes, random);
  const exam = examiner(wg, layers, part(all, 0, counts.test));
  let state: TrainingPoint = { epochs: 0, loss: Math.log(classes), accuracy: exam.accuracy() };
  try {
    if (!(await report(0, state))) return undefined;
    const goOn = paced(report, () => state.epochs / training.epochs);
    let batches = 0;
    for (const { part, loss } of learn(wg, layers, digits, { ...training, random })) {
      state = { ...state, epochs: part * training.epochs, loss };
      if (++batches % pointEvery === 0) {
        state.accuracy = exam.accuracy();
        if (!(await report(part, state))) return undefined;
      } else if (!(await goOn())) return undefined;
    }
    return await use(wg, layers);
  } finally {
    exam.dispose();
    for (const { weights, bias } of layers) for (const tensor of [weights, bias]) tensor.dispose();
  }
}

/** Finds out how many held-out digits layers recognize that still learn. */
function examiner(
  wg: Gemm,
  layers: TrainedLayer[],
  { images, labels, count }: { images: Float32Array; labels: Uint8Array; count: number },
) {
  const input = filled(wg, count, images);
  const outputs = allocOutputs(wg, layers, count) as HeapTensor<Float32Array>[];
  return {
    accuracy: () => accuracyOf(answersOf(forward(layers, input, outputs, multiplyBy(wg))), labels),
    dispose: () => [input, ...outputs].forEach((tensor) => tensor.dispose()),
  };
}
