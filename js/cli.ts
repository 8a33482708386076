#!/usr/bin/env node
/** `npx wgemm model.onnx`: tells what wgemm does with a model. */
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { arrayOf } from './base/arrays.js';
import type { DType } from './base/tensor.js';
import { GemmError, UnsupportedError, version } from './index.js';
import {
  loadModel,
  type Model,
  type ModelProduct,
  type ModelStep,
  type ModelTensor,
  type OnnxModel,
  type OnnxValueInfo,
  readOnnx,
} from './onnx.js';

const usage = `wgemm ${version}

  npx wgemm model.onnx [options]

prints the steps of a model with their times, and which nodes each step fuses. Inputs are zeros, and
an attention_mask has ones.
For products it also prints shapes, types and plans. If wgemm cannot run the model, it lists the
operators that are missing, before it reads data in other files.

  --dim name=size   the size of a dynamic dimension; may be repeated. Default: 1
  --output name     an output to compute, with what it needs; may be repeated. Default: all
  --runs n          how often to run the model. Times are medians. Default: 10
  --threads n       threads for large products, or auto. Default: 1
  --version, -v     prints the version
  --help, -h        prints this

Data that the model keeps in other files must be in its folder.`;

/** Bad usage, which ends the program with exit code 2. */
class Misuse extends Error {}

const names = {
  dim: { type: 'string', multiple: true },
  output: { type: 'string', multiple: true },
  runs: { type: 'string' },
  threads: { type: 'string' },
  version: { type: 'boolean', short: 'v' },
  help: { type: 'boolean', short: 'h' },
} as const;

function parse(args: string[]) {
  try {
    return parseArgs({ args, allowPositionals: true, options: names });
  } catch (error) {
    // Node advises to write '--' before names that begin with '-', at length.
    throw new Misuse((error as Error).message.split('. ')[0]);
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parse(process.argv.slice(2));
  if (values.help) return console.log(usage);
  if (values.version) return console.log(version);
  const [path, ...others] = positionals;
  if (path === undefined) throw new Misuse('give the path of a model');
  if (others.length > 0)
    throw new Misuse(
      `expected one model, found ${positionals.length}: ${positionals.map(shown).join(', ')}`,
    );
  const runs = wholeNumber('--runs', values.runs ?? '10', 1);
  const threads =
    values.threads === 'auto' ? 'auto' : wholeNumber('--threads', values.threads ?? '1', 1);
  const sizes = new Map((values.dim ?? []).map(readDim));

  const bytes = await readWhole(path);
  let zeros = new Uint8Array();
  // The title needs no data of other files.
  const model = await readOnnx(bytes, {
    externalData({ location, length }) {
      if (zeros.length < length) zeros = allocate(location, length);
      return zeros.subarray(0, length);
    },
  });
  const { graph } = model;
  checkDims(graph.inputs, sizes);
  console.log(title(basename(path), bytes.length, model));
  for (const [name, values] of Object.entries({ in: graph.inputs, out: graph.outputs }))
    for (const info of values)
      if (name === 'out' || !graph.initializers.has(info.name))
        console.log(`  ${name.padEnd(4)} ${shown(info.name)} ${declared(info)}`);
  const loaded = await loadModel(bytes, {
    threads,
    outputs: values.output,
    externalData: (part) => readPart(path, part),
  });
  try {
    const inputs = loaded.inputs.filter(({ name }) => !graph.initializers.has(name));
    await measure(loaded, inputs, sizes, runs);
  } finally {
    loaded.dispose();
  }
}

function wholeNumber(option: string, text: string, least: number): number {
  if (/^\d{1,15}$/.test(text) && Number(text) >= least) return Number(text);
  throw new Misuse(`${option} is ${shown(text)}; it must be a whole number from ${least}`);
}

function readDim(text: string): [string, number] {
  const split = text.lastIndexOf('=');
  if (split < 1) throw new Misuse(`--dim is ${shown(text)}; it must be name=size, as in batch=4`);
  const name = text.slice(0, split);
  return [name, wholeNumber(`--dim ${shown(name)}`, text.slice(split + 1), 0)];
}

/** Throws if the model has no dynamic dimension of a name. */
function checkDims(inputs: readonly OnnxValueInfo[], sizes: ReadonlyMap<string, number>): void {
  const dynamic = new Set(
    inputs.flatMap(({ shape = [] }) => shape.filter((size) => typeof size === 'string')),
  );
  for (const name of sizes.keys()) {
    if (dynamic.has(name)) continue;
    const known = [...dynamic].slice(0, 20).map(shown).join(', ') || 'none';
    throw new Misuse(
      `--dim is ${shown(name)}; it must be a dynamic dimension of the model: ${known}`,
    );
  }
}

/** Reads a file. Node's readFile() reads at most 2 GiB. */
async function readWhole(path: string): Promise<Uint8Array> {
  const file = await openFile(path, shown(path));
  try {
    const found = await file.stat();
    return found.isFile() ? await read(file, path, 0, found.size) : await file.readFile();
  } finally {
    await file.close();
  }
}

/** Opens a file to read it. `name`: what messages call it. */
async function openFile(path: string, name: string): Promise<FileHandle> {
  try {
    if (!(await stat(path)).isDirectory()) return await open(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new Failure(`${name} does not exist`);
    const reason = code === 'EACCES' ? 'permission denied' : String(code);
    throw new Failure(`${name} cannot be opened: ${reason}`);
  }
  throw new Failure(`${name} is a folder; expected a file`);
}

async function read(
  file: FileHandle,
  name: string,
  offset: number,
  length: number,
): Promise<Uint8Array> {
  const bytes = allocate(name, length);
  for (let at = 0; at < length;) {
    const { bytesRead } = await file.read(bytes, at, Math.min(length - at, 2 ** 30), offset + at);
    if (bytesRead === 0) throw new Failure(`${shown(name)} became shorter while it was read`);
    at += bytesRead;
  }
  return bytes;
}

function allocate(name: string, length: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(length);
  } catch {
    throw new Failure(`not enough memory for ${length} bytes of ${shown(name)}`);
  }
}

/** Reads a part of a file in the folder of the model. */
async function readPart(
  model: string,
  { location, offset, length }: { location: string; offset: number; length: number },
): Promise<Uint8Array> {
  const folder = dirname(resolve(model));
  const path = resolve(folder, location);
  const inside = relative(folder, path);
  if (isAbsolute(inside) || /^\.\.(?![^\\/])/.test(inside))
    throw new Failure(
      `the model names ${shown(location)}, which is outside the folder of the model`,
    );
  const file = await openFile(path, `${shown(location)}, next to the model,`);
  try {
    const { size } = await file.stat();
    if (offset + length > size) {
      const found = `${shown(location)} has ${size} bytes`;
      throw new Failure(`${found}; the model needs ${length} bytes from offset ${offset}`);
    }
    return await read(file, location, offset, length);
  } finally {
    await file.close();
  }
}

/** An error that a user can correct. */
class Failure extends Error {}

/** Characters that a terminal must not get, and that JSON does not escape. */
const unsafe = /[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** A text of a stranger, as a terminal may show it. */
function shown(text: string): string {
  const quoted = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
  return quoted.replace(unsafe, '?');
}

function title(name: string, bytes: number, { producer, opsets, graph }: OnnxModel): string {
  const versions = Array.from(
    opsets,
    ([domain, version]) => `${domain === '' ? 'opset' : shown(domain)} ${version}`,
  );
  const by = `${producer.name} ${producer.version}`.trim();
  return [
    `${name}: ${bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`}`,
    count(graph.nodes.length, 'node'),
    ...versions,
    ...(by ? [`made by ${shown(by)}`] : []),
  ].join(', ');
}

function declared({ dtype, shape }: OnnxValueInfo): string {
  const sizes = shape?.map((size) => (typeof size === 'string' ? shown(size) : (size ?? '?')));
  return `${dtype} ${sizes ? `[${sizes.join(', ')}]` : 'of any shape'}`;
}

const count = (number: number, thing: string) => `${number} ${thing}${number === 1 ? '' : 's'}`;

/**
 * Runs the model, and prints its products.
 *
 * @param inputs those without a default
 */
async function measure(
  model: Model,
  inputs: readonly OnnxValueInfo[],
  sizes: ReadonlyMap<string, number>,
  runs: number,
): Promise<void> {
  const shapes = Object.create(null) as Record<string, number[]>;
  for (const { name, shape } of inputs) {
    shapes[name] = (shape ?? []).map((size) =>
      typeof size === 'number' ? size : (sizes.get(size ?? '') ?? 1),
    );
  }
  const feeds = zerosOf(inputs, shapes);
  const products = await model.explain(shapes);
  const times: number[][] = [];
  const totals: number[] = [];
  let steps: ModelStep[] = [];
  // The first run is slower, since it plans memory.
  for (let i = -1; i < runs; ++i) {
    steps = await model.explain(shapes, { steps: true });
    const start = performance.now();
    await model.run(feeds);
    if (i < 0) continue;
    totals.push(performance.now() - start);
    steps.forEach(({ time }, i) => (times[i] ??= []).push(time));
  }
  const keyOf = ({ node, op }: ModelStep | ModelProduct) => JSON.stringify([node, op]);
  const found = new Map(products.map((product) => [keyOf(product), product]));
  const medians = steps.map((_, i) => median(times[i] ?? []));
  let inProducts = 0;
  const rows = steps.map((step, i) => {
    const product = found.get(keyOf(step));
    const time = medians[i] as number;
    if (product) inProducts += time;
    return row(step, product, time);
  });
  console.log();
  if (rows.length > 0) table([['node', 'operator', 'product', 'types', 'plan', 'ms'], ...rows]);
  const total = median(totals);
  const part = total > 0 ? ` (${((100 * inProducts) / total).toFixed(0)}% of the run)` : '';
  const sum = `${count(products.length, 'product')}: ${milliseconds(inProducts)} ms${part}`;
  console.log(`${products.length > 0 ? sum : 'no products'}; the run: ${milliseconds(total)} ms`);
}

/** Inputs of zeros, and of ones for a mask of tokens. */
function zerosOf(
  inputs: readonly OnnxValueInfo[],
  shapes: Readonly<Record<string, readonly number[]>>,
): Record<string, ModelTensor> {
  const feeds = Object.create(null) as Record<string, ModelTensor>;
  for (const { name, dtype } of inputs) {
    const shape = shapes[name] as readonly number[];
    const length = shape.reduce((product, size) => product * size, 1);
    // A bool is a byte.
    const stored = (dtype === 'bool' ? 'uint8' : dtype) as DType;
    try {
      const data = arrayOf(stored, length);
      if (name === 'attention_mask' && dtype === 'int64') (data as BigInt64Array).fill(1n);
      feeds[name] = { data, shape };
    } catch {
      const found = `${shown(name)}, ${dtype} [${shape.join(', ')}]`;
      throw new Failure(`not enough memory for the input ${found}`);
    }
  }
  return feeds;
}

function row(
  { node, op, fused, where }: ModelStep,
  product: ModelProduct | undefined,
  time: number,
): string[] {
  const title = [shown(node), [op, ...fused].join(' + ')];
  if (!product) return [...title, '', '', where === 'JavaScript' ? where : '', milliseconds(time)];
  const { operands, packed, plan } = product;
  const shapes = operands.map(({ shape }) => `[${shape.join(', ')}]`);
  const types = operands.map(({ dtype }) => dtype);
  const { kernel, regime, threads } = plan;
  return [
    ...title,
    `${shapes.slice(0, -1).join(' x ')} = ${shapes.at(-1) ?? ''}`,
    new Set(types).size === 1
      ? (types[0] as string)
      : `${types.slice(0, -1).join(' x ')} = ${types.at(-1) ?? ''}`,
    [
      ...(kernel ? [kernel, regime] : ['nothing to compute']),
      ...(packed ? ['B packed'] : []),
      ...(threads > 1 ? [`${threads} threads`] : []),
    ].join(', '),
    milliseconds(time),
  ];
}

const milliseconds = (time: number) => time.toPrecision(time < 100 ? 3 : 4);

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}

function table(rows: string[][]): void {
  const widths: number[] = [];
  for (const cells of rows)
    cells.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, cell.length)));
  for (const cells of rows)
    console.log(
      cells
        .map((cell, i) => cell.padEnd(widths[i] as number))
        .join('  ')
        .trimEnd(),
    );
}

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // The program that reads the output may end first, such as head.
  if (code !== 'EPIPE') console.error(`wgemm: ${message}`);
  process.exit(code === 'EPIPE' ? 0 : 1);
});
try {
  await main();
} catch (error) {
  const isMisuse = error instanceof Misuse;
  const { message: told, syscall } = error as NodeJS.ErrnoException;
  const message = told.replace(unsafe, '?');
  if (isMisuse) console.error(`wgemm: ${message}; npx wgemm --help tells more`);
  else if (error instanceof UnsupportedError) {
    // One operator or node per line. Names in quotes stay as they are.
    const lines = message
      .replace(/pass outputs: \[(.*)\]$/, 'give --output: $1')
      .replace(
        /("(?:[^"\\]|\\.)*")|(missing:|\)[,;]|[:;](?= node | to load)) /g,
        (all, name?: string, end = '') => (name ? all : `${end}\n  `),
      );
    console.error(`wgemm: ${lines}`);
  } else if (error instanceof GemmError || error instanceof Failure || syscall)
    console.error(`wgemm: ${message}`);
  else throw error;
  process.exitCode = isMisuse ? 2 : 1;
}
