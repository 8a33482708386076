/** A visitor's model: what it has, and the time of each step. */
import { createGemm, type Gemm, UnsupportedError } from 'wgemm';
import {
  type ExternalData,
  loadModel,
  type Model,
  type ModelStep,
  type ModelTensor,
  type OnnxValueInfo,
  readOnnx,
} from 'wgemm/onnx';
import { threads } from './instance.ts';
import { paced } from './pace.ts';
import type { Report } from './report.ts';
import { inTurn } from './turn.ts';

export interface ModelFacts {
  name: string;
  bytes: number;
  nodes: number;
  /** Names of its sizes that are dynamic. */
  dynamic: string[];
  inputs: string[];
  /** Why it cannot run: a line per operator or node; or none. */
  lacks: string[];
}

export interface ModelTimes {
  /** ms of a run. */
  total: number;
  threads: number;
  /** Times are means: the clock of a page is too coarse for one short step. */
  steps: (Omit<ModelStep, 'fused'> & { fused: string[]; plan: string })[];
}

/** ms after which no run begins, and runs that are enough. The first is not timed. */
const budget = { ms: 1000, runs: 200 };

let loaded: { wg: Gemm; model: Model; inputs: OnnxValueInfo[] } | undefined;

function close(): void {
  loaded?.model.dispose();
  loaded?.wg.dispose();
  loaded = undefined;
}

class Cancelled extends Error {}

export function open(files: File[], report: Report): Promise<ModelFacts | undefined> {
  const file = files.find(({ name }) => /\.onnx$/i.test(name)) ?? files[0]!;
  return inTurn(
    async () => {
      close();
      try {
        return await load(file, files, report);
      } catch (error) {
        if (error instanceof Cancelled) return undefined;
        const why = (error as Error).message.replace(/^(readOnnx|loadModel): /, '');
        const named = why.replace(/^bytes\b/, file.name);
        throw new Error(named === why ? `${file.name}: ${why}` : named, { cause: error });
      }
    },
    () => report(0),
  );
}

async function load(file: File, files: File[], report: Report): Promise<ModelFacts> {
  const bytes = await file.arrayBuffer();
  let zeros = new Uint8Array();
  const { graph } = await readOnnx(bytes, {
    externalData({ length }) {
      // The facts need no data of other files.
      if (zeros.length < length) zeros = new Uint8Array(length);
      return zeros.subarray(0, length);
    },
  });
  const inputs = graph.inputs.filter(({ name }) => !graph.initializers.has(name));
  const facts: ModelFacts = {
    name: file.name,
    bytes: files.reduce((sum, { size }) => sum + size, 0),
    nodes: graph.nodes.length,
    dynamic: [...new Set(inputs.flatMap(({ shape = [] }) => shape.filter(isName)))],
    inputs: inputs.map(({ name, dtype, shape }) => `${name}: ${dtype} ${shapeText(shape)}`),
    lacks: [],
  };
  const wg = await createGemm({ models: true, threads });
  let goOn = true;
  try {
    const model = await loadModel(bytes, {
      wg,
      externalData: (part) => readPart(files, part),
      progress(done) {
        void Promise.resolve(report(done / 2)).then((answer) => (goOn &&= answer));
        if (!goOn) throw new Cancelled();
      },
    });
    loaded = { wg, model, inputs };
  } catch (error) {
    wg.dispose();
    if (!(error instanceof UnsupportedError)) throw error;
    facts.lacks = linesOf(error.message);
  }
  return facts;
}

const isName = (size: unknown): size is string => typeof size === 'string';

const shapeText = (shape: OnnxValueInfo['shape']) =>
  shape ? `[${shape.map((size) => size ?? '?').join(', ')}]` : 'of any shape';

/** A part of a file that the visitor gave together with the model. */
async function readPart(files: File[], { location, offset, length }: ExternalData) {
  const file = files.find(({ name }) => name === location.split('/').at(-1));
  if (!file) throw new Error(`it needs ${location}: drop both files together`);
  if (offset + length > file.size)
    throw new Error(`${location} has ${file.size} bytes; expected ${offset + length}`);
  return new Uint8Array(await file.slice(offset, offset + length).arrayBuffer());
}

/** One operator or node per line. Names in quotes stay as they are. */
const linesOf = (message: string): string[] =>
  message
    .replace(/^loadModel: /, '')
    .replace(
      /("(?:[^"\\]|\\.)*")|(missing:|\)[,;]|[:;](?= node | to load)) /g,
      (_, name?: string, end = '') => name ?? `${end}\n`,
    )
    .split('\n');

// --- times ---------------------------------------------------------------------------------------

export function time(
  sizes: Record<string, number>,
  report: Report,
): Promise<ModelTimes | undefined> {
  return inTurn(
    () => measure(sizes, report),
    () => report(0),
  );
}

async function measure(
  sizes: Record<string, number>,
  report: Report,
): Promise<ModelTimes | undefined> {
  const { wg, model, inputs } = loaded!;
  const shapes = Object.fromEntries(
    inputs.map(({ name, shape = [] }) => [
      name,
      shape.map((size) => (typeof size === 'number' ? size : (sizes[size ?? ''] ?? 1))),
    ]),
  );
  const feeds = zerosOf(inputs, shapes);
  const plans = new Map(
    (await model.explain(shapes)).map(({ node, op, plan }) => [`${op} ${node}`, plan.kernel]),
  );
  const times: number[] = [];
  let [steps, total, runs]: [ModelStep[], number, number] = [[], 0, 0];
  const start = performance.now();
  const done = () => Math.max((performance.now() - start) / budget.ms, runs / budget.runs);
  const goOn = paced(report, () => Math.min(1, 0.5 + done() / 2));
  for (let isFirst = true; isFirst || runs === 0 || done() < 1; isFirst = false) {
    if (!(await goOn())) return undefined;
    steps = await model.explain(shapes, { steps: true });
    const before = performance.now();
    await model.run(feeds);
    if (isFirst) continue; // it is slower, since it plans memory
    total += performance.now() - before;
    steps.forEach(({ time }, at) => (times[at] = (times[at] ?? 0) + time));
    ++runs;
  }
  return {
    total: total / runs,
    threads: wg.info.threads,
    steps: steps.map(({ node, op, fused, where }, at) => ({
      ...{ node, op, where, fused: [...fused] },
      time: times[at]! / runs,
      plan: plans.get(`${op} ${node}`) ?? '',
    })),
  };
}

const classes = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
};

/** Inputs of zeros, and of ones for a mask of tokens. */
function zerosOf(inputs: OnnxValueInfo[], shapes: Record<string, number[]>) {
  return Object.fromEntries(
    inputs.map(({ name, dtype }): [string, ModelTensor] => {
      const shape = shapes[name]!;
      const length = shape.reduce((product, size) => product * size, 1);
      const data = new classes[dtype as keyof typeof classes](length);
      if (name === 'attention_mask' && data instanceof BigInt64Array) data.fill(1n);
      return [name, { data: data as ModelTensor['data'], shape }];
    }),
  );
}
