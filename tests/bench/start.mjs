// Times the start of wgemm, ONNX Runtime Web and tfjs with its WebAssembly backend, on one thread:
// from before the first import() until the result of 256 x 256 x 256 in float32 is an array. In
// Node each sample has its own process, in Chromium its own profile. Their start does not count.
//   node tests/bench/start.mjs [--samples 10] [--only node,chromium] [--json run-start.json]
//     --targets   judges the ratios to wgemm, and fails if one misses its target
//     --model     until the first answer of a network for digits, an .onnx file, instead: by
//                 wgemm/onnx and ONNX Runtime Web
//
// In Chromium each library is a separate bundle, minified by esbuild, with its .wasm next to it. A
// server on this machine sends it without compression and without caching, so transfer costs almost
// nothing: a real network would add to the differences. If a library has several builds, the
// smallest is used. The page waits until the browser, which has just started, is idle.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { brotliCompressSync } from 'node:zlib';
import { fail, main, root } from '../../scripts/run.mjs';
import { openIn, programOf, versionOf } from '../browser/engines.mjs';
import { runChild } from '../package/child.mjs';
import { processorName } from './machine.mjs';

const size = 256;
const folder = join(root, 'build', 'start');
const modules = join(root, 'node_modules');

/** Name -> files that a page loads next to its bundle, and how many times as fast wgemm must be. */
const productLibraries = {
  wgemm: { loads: [join(root, 'dist', 'wgemm-relaxed.wasm')] },
  'onnxruntime-web': {
    loads: ['mjs', 'wasm'].map((kind) =>
      join(modules, 'onnxruntime-web', 'dist', `ort-wasm-simd-threaded.${kind}`),
    ),
    target: 10,
  },
  tfjs: {
    loads: [
      join(modules, '@tensorflow', 'tfjs-backend-wasm', 'dist', 'tfjs-backend-wasm-simd.wasm'),
    ],
    target: 2,
  },
};

/** The same for the answer of a model. */
const modelLibraries = {
  'wgemm-onnx': { loads: [join(root, 'dist', 'wgemm-relaxed-models.wasm')] },
  'onnxruntime-web-onnx': { ...productLibraries['onnxruntime-web'], target: 8 },
};
let libraries = productLibraries;
let lengthOfResult = size * size;

/**
 * The whole sample, in Node and in a page. Small whole numbers, so that sums are exact in any
 * order.
 */
const sample = `async (load, model) => {
  const fill = (seed) => ({
    shape: [${size}, ${size}],
    data: Float32Array.from({ length: ${size * size} }, (_, i) => ((i * seed) % 13) - 6),
  });
  const [a, b] = [fill(7), fill(5)];
  const start = performance.now();
  const { firstResult } = await load();
  const y = await firstResult(a, b, model);
  const ms = performance.now() - start;
  let sum = 0;
  for (let i = 0; i < y.length; ++i) sum = (sum + (i % 101) * y[i]) % 1e9;
  return { ms, length: y.length, sum };
}`;

const modelFile = join(folder, 'model.onnx');

async function writeModel() {
  const { encodeModel } = await import('../peers/onnx.mjs');
  const inputs = ['A', 'B'].map((name) => ({ name, dtype: 'float32', shape: [size, size] }));
  writeFileSync(
    modelFile,
    encodeModel({ type: 'Gemm', inputs, output: { dtype: 'float32', shape: [size, size] } }),
  );
}

/** A network of three layers. Its weights are -1, 0 or 1, so that its sums are exact, too. */
async function writeNetwork() {
  const { mlp } = await import('../peers/onnx-graphs.mjs');
  writeFileSync(modelFile, mlp({ batch: 1, isWhole: true }));
}

async function inNode() {
  const version = process.version;
  const sampleOf = async (name) => {
    const file = pathToFileURL(join(import.meta.dirname, 'start', `${name}.mjs`)).href;
    const program = `
      import { readFileSync } from 'node:fs';
      const model = new Uint8Array(readFileSync(${JSON.stringify(modelFile)}));
      const told = await (${sample})(() => import(${JSON.stringify(file)}), model);
      process.stdout.write(JSON.stringify(told), () => process.exit());`;
    return JSON.parse(
      await runChild(process.execPath, ['--input-type=module', '-e', program], { cwd: root }),
    );
  };
  return { title: `Node ${version.slice(1)}`, sampleOf, close: () => {} };
}

async function inChromium() {
  const { build } = await import('esbuild');
  const { startServer } = await import('../browser/server.mjs');
  for (const [name, { loads }] of Object.entries(libraries)) {
    const made = join(folder, name);
    mkdirSync(made, { recursive: true });
    await build({
      entryPoints: [join(import.meta.dirname, 'start', `${name}.mjs`)],
      outfile: join(made, 'bundle.js'),
      bundle: true,
      minify: true,
      format: 'esm',
      target: 'es2022',
      external: ['./ort-wasm-simd-threaded.mjs'],
      logLevel: 'error',
    });
    for (const file of loads) copyFileSync(file, join(made, basename(file)));
    const files = readdirSync(made).map((file) => readFileSync(join(made, file)));
    libraries[name].bytes = files.reduce((sum, file) => sum + file.length, 0);
    libraries[name].brotli = files.reduce((sum, file) => sum + brotliCompressSync(file).length, 0);
  }
  const page = `
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const name = new URLSearchParams(location.search).get('name');
    const model = new Uint8Array(await (await fetch('/model.onnx')).arrayBuffer());
    const told = await (${sample})(() => import('/' + name + '/bundle.js'), model)
      .catch((error) => ({ error: error.stack }));
    await fetch('/result', { method: 'POST', body: JSON.stringify(told) });`;
  const files = {
    '/': '<!doctype html><title>start</title><script type="module" src="/page.js"></script>',
    '/page.js': page,
  };
  const title = `Chromium ${await versionOf('chromium')}`;
  const server = await startServer({ folders: { '/': folder }, files });
  const sampleOf = async (name) => {
    const told = await openIn('chromium', server.url(`/?name=${name}`));
    if (told.error) throw new Error(`${name} in Chromium: ${told.error}`);
    return told;
  };
  return { title, sampleOf, close: () => server.close() };
}

const places = { node: inNode, chromium: inChromium };
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Samples take turns, so that the machine's load affects all. @returns rows of the table */
async function measure({ title, sampleOf }, samples) {
  const times = Object.fromEntries(Object.keys(libraries).map((name) => [name, []]));
  let wanted;
  for (let i = 0; i <= samples; ++i) {
    for (const name of Object.keys(libraries)) {
      const { ms, length, sum } = await sampleOf(name);
      wanted ??= sum;
      if (length !== lengthOfResult || sum !== wanted)
        throw new Error(`${name} in ${title}: the result is wrong`);
      if (i > 0) times[name].push(ms); // the first fills the system's file cache
    }
  }
  return Object.entries(times).map(([name, values]) => {
    const [best, middle] = [Math.min(...values), median(values)];
    const { target, brotli } = libraries[name];
    // Other load of the machine only adds.
    const ratio = best / Math.min(...Object.values(times)[0]);
    return {
      title,
      name,
      best,
      middle,
      ratio,
      target,
      brotli,
      reached: !target || ratio >= target,
    };
  });
}

await main(async () => {
  const { values } = parseArgs({
    options: {
      samples: { type: 'string', default: '10' },
      only: { type: 'string', default: 'node,chromium' },
      json: { type: 'string' },
      targets: { type: 'boolean', default: false },
      model: { type: 'boolean', default: false },
    },
  });
  if (values.model) [libraries, lengthOfResult] = [modelLibraries, 10];
  const only = values.only.split(',');
  const unknown = only.find((name) => !(name in places));
  if (unknown !== undefined)
    fail(`--only is ${values.only}; there are ${Object.keys(places).join(' and ')}.`);
  if (only.includes('chromium')) programOf('chromium'); // not a minute later, when Node is done
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await (values.model ? writeNetwork() : writeModel());
  console.log(
    'where                  library               best       median    of wgemm  ' +
      `${values.targets ? 'target  ' : ''}to load, brotli`,
  );
  const all = [];
  for (const name of only) {
    const place = await places[name]();
    try {
      const rows = await measure(place, Number(values.samples));
      all.push(...rows);
      for (const { title, name, best, middle, ratio, target, brotli, reached } of rows) {
        const cells = [
          title.padEnd(22),
          name.padEnd(20),
          `${best.toFixed(1)} ms`.padStart(10),
          `${middle.toFixed(1)} ms`.padStart(10),
        ];
        cells.push(`${ratio.toFixed(1)}x`.padStart(9));
        if (values.targets) {
          const goal = target ? `${target}${reached ? '' : ' MISSED'}` : '';
          cells.push(goal.padEnd(6));
          if (!reached) process.exitCode = 1;
        }
        cells.push(brotli ? `${(brotli / 1000).toFixed(0)} kB` : '');
        console.log(cells.join(' ').trimEnd());
      }
    } finally {
      await place.close();
    }
  }
  if (values.json) writeFileSync(values.json, `${JSON.stringify(resultsOf(all), null, 1)}\n`);
});

/** The file of a run: times in ms, `brotli` in bytes. `brotli` is absent in Node. */
function resultsOf(rows) {
  return {
    date: new Date().toISOString(),
    processor: processorName(),
    versions: Object.fromEntries(
      ['onnxruntime-web', '@tensorflow/tfjs-core'].map((name) => [
        name.replace('@tensorflow/tfjs-core', 'tfjs'),
        JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')).version,
      ]),
    ),
    rows: rows.map(({ title, name, best, middle, ratio, brotli }) => ({
      where: title,
      library: name,
      best,
      median: middle,
      ratio,
      brotli,
    })),
  };
}
