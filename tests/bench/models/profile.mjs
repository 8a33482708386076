// Shows where a run of MiniLM spends its time in wgemm. V8 samples the stack, and each sample
// counts for the innermost function of an operator. It needs dist/, whose source maps name the
// operators.
//   node tests/bench/models/profile.mjs [--variant int8] [--batch 1] [--tokens 128] [--threads 1]
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { SourceMap } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createGemm } from 'wgemm';
import { loadModel } from 'wgemm/onnx';
import { fail, main, wholeNumbers } from '../../../scripts/run.mjs';
import { readOptions } from '../options.mjs';
import { miniLm, textsOf } from './minilm.mjs';

const seconds = 4;
const interval = 100; // microseconds between samples
const longest = 10 * interval; // in a longer gap, the system ran another program
const maps = new Map(); // by address

await main(async () => {
  const { variant, threads, ...sizes } = readOptions({
    variant: { type: 'string', default: 'float32' },
    batch: { type: 'string', default: '1' },
    tokens: { type: 'string', default: '128' },
  });
  if (!['float32', 'int8'].includes(variant))
    fail(`profile: --variant is ${variant}; it must be float32 or int8`);
  const [batch, tokens] = wholeNumbers(sizes, 'batch', 'tokens');
  using wg = await createGemm({ threads, models: true });
  using model = await loadModel(miniLm({ variant }), { wg });
  const text = textsOf({ batch, tokens });
  const runFor = async (ms) => {
    const start = performance.now();
    let runs = 0;
    for (; performance.now() < start + ms; ++runs) await model.run(text);
    return runs;
  };
  await runFor(1000 * (seconds / 2)); // until V8 has compiled everything
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval });
  await session.post('Profiler.start');
  const runs = await runFor(1000 * seconds);
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  const rows = [...timesOf(profile)].sort(([, a], [, b]) => b - a);
  const total = rows.reduce((sum, [, time]) => sum + time, 0);
  console.log(`MiniLM ${variant}, ${batch} x ${tokens} tokens, threads ${threads}, ${runs} runs`);
  for (const [label, time] of [...rows, ['total', total]]) {
    const share = `${((100 * time) / total).toFixed(1)}%`;
    console.log(`${(time / runs).toFixed(3).padStart(9)} ms ${share.padStart(7)}  ${label}`);
  }
});

/** Milliseconds by label. */
function timesOf({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const labels = new Map(); // by the number of a node of the tree
  const visit = ({ id, callFrame, children = [] }, above) => {
    labels.set(id, labelOf(callFrame) ?? above);
    for (const child of children) visit(byId.get(child), labels.get(id));
  };
  visit(nodes[0], 'other');
  const times = new Map();
  samples.forEach((id, i) => {
    const label = labels.get(id);
    times.set(label, (times.get(label) ?? 0) + Math.min(timeDeltas[i], longest) / 1000);
  });
  return times;
}

/** The label of a function; undefined if the label of its caller counts. */
function labelOf({ functionName, url, lineNumber, columnNumber }) {
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (url.startsWith('wasm:')) return 'products in the core';
  const map = mapOf(url);
  const { originalSource: file = '', originalLine: line } =
    map?.findEntry(lineNumber, columnNumber) ?? {};
  if (/\/operators\/(elementwise|normalize|quantize|shapes)\.ts$/.test(file)) {
    const { sources, sourcesContent } = map.payload;
    const name = nameAt(sourcesContent[sources.findIndex((each) => file.endsWith(each))], line);
    return `${basename(file)}: ${name}`;
  }
  if (/\/onnx\/run\//.test(file)) return 'the session: checks, memory, results';
  if (/\/(call|ops)\//.test(file)) return 'calls of products in JavaScript';
  return undefined;
}

/** The function or the operator whose definition is the nearest before the end of a line. */
function nameAt(source, line) {
  const before = source.split('\n', line + 1).reverse();
  const pattern = /^(?:export )?(?:function|const) (\w+)|^ +(?:\w+\(|for .*\[)?'([\w.]+)(?:@\d+)?'/;
  for (const text of before) {
    const [, shared, operator] = pattern.exec(text) ?? [];
    if (shared ?? operator) return shared ?? operator;
  }
  return 'unknown';
}

/** The source map of a file of dist/. */
function mapOf(url) {
  if (!url.includes('/dist/')) return undefined;
  if (!maps.has(url)) {
    const text = readFileSync(`${fileURLToPath(url)}.map`, 'utf8');
    maps.set(url, new SourceMap(JSON.parse(text)));
  }
  return maps.get(url);
}
