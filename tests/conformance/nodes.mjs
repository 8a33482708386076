// Runs ONNX's own tests of nodes: folders with a model, its inputs, and the results that it must
// have. ONNX keeps them in onnx/backend/test/data/node.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PbfWriter } from 'pbf';
import { GemmError } from 'wgemm';
import { valueOf } from './elements.mjs';

/** How many of the 760 tests of ONNX at 6be0677f pass. Fewer are an error. */
const leastPassed = 616;

const archive = 'onnx-node.tar.xz';
const folderName = 'node';

/**
 * The folder with a folder per test: `node` in the folder that WGEMM_CONFORMANCE_DIR names, or
 * unpacked from the archive there; undefined if there is neither.
 */
function findNodes() {
  const folder = process.env.WGEMM_CONFORMANCE_DIR ?? '';
  const given = join(folder, folderName);
  if (folder && existsSync(given)) return given;
  const packed = join(folder, archive);
  if (!folder || !existsSync(packed)) return undefined;
  const to = fileURLToPath(new URL('../../build/conformance/', import.meta.url));
  const unpacked = join(to, folderName);
  const isNew = existsSync(unpacked) && statSync(unpacked).mtimeMs > statSync(packed).mtimeMs;
  if (isNew) return unpacked;
  const begun = join(to, `unpacked-by-${process.pid}`);
  mkdirSync(begun, { recursive: true });
  execFileSync('tar', ['-xJmf', packed, '-C', begun]);
  rmSync(unpacked, { recursive: true, force: true });
  renameSync(join(begun, folderName), unpacked);
  rmSync(begun, { recursive: true });
  return unpacked;
}

/** Reads a file that is one tensor: as the only constant of a model. */
async function readTensor(readOnnx, path) {
  const graph = new PbfWriter();
  graph.writeBytesField(5, readFileSync(path));
  const model = new PbfWriter();
  model.writeBytesField(7, graph.finish());
  const { graph: read } = await readOnnx(model.finish());
  const [tensor] = read.initializers.values();
  return tensor;
}

/** The tolerance of ONNX, relative and absolute. An element of bfloat16 has 8 bits of precision. */
const tolerance = { relative: 1e-3, absolute: 1e-7 };
const relativeOf = (dtype) => (dtype === 'bfloat16' ? 1e-2 : tolerance.relative);

/** Returns what is wrong, as a sentence; undefined if nothing is. */
function differenceOf(wanted, found) {
  const told = ({ dtype, shape }) => `${dtype} [${shape}]`;
  if (told(wanted) !== told(found)) return `expected ${told(wanted)}, found ${told(found)}`;
  const { dtype } = wanted;
  const elementOf = ({ data }, i) =>
    data instanceof Uint16Array ? valueOf(dtype, data[i]) : data[i];
  for (let i = 0; i < wanted.data.length; ++i) {
    const [a, b] = [elementOf(wanted, i), elementOf(found, i)];
    if (a === b || Object.is(a, b)) continue;
    const bound = tolerance.absolute + relativeOf(dtype) * Math.abs(Number(a));
    if (dtype.includes('float') && Number.isFinite(a) && Math.abs(a - b) <= bound) continue;
    return `element ${i}: expected ${a}, found ${b}`;
  }
  return undefined;
}

/** Runs the test of a folder. Returns what is wrong; undefined if it passes. */
async function runNode({ loadModel, readOnnx }, wg, folder) {
  const bytes = readFileSync(join(folder, 'model.onnx'));
  const { graph } = await readOnnx(bytes);
  const model = await loadModel(bytes, { wg });
  try {
    const sets = readdirSync(folder).filter((name) => name.startsWith('test_data_set_'));
    for (const set of sets) {
      const tensorOf = (kind, i) => join(folder, set, `${kind}_${i}.pb`);
      const feeds = {};
      for (const [i, { name }] of graph.inputs.entries())
        if (existsSync(tensorOf('input', i)))
          feeds[name] = await readTensor(readOnnx, tensorOf('input', i));
      const results = await model.run(feeds);
      for (const [i, { name }] of graph.outputs.entries()) {
        const wanted = await readTensor(readOnnx, tensorOf('output', i));
        const wrong = differenceOf(wanted, results[name]);
        if (wrong) return `${name}: ${wrong}`;
      }
    }
  } finally {
    model.dispose();
  }
  return undefined;
}

/** The reason of a refusal, without what differs from test to test. */
const reasonOf = ({ message }) =>
  message
    .replace(/^.*\bof type (\w+), which wgemm/, 'type $1, which wgemm')
    .replace(/^.*the type (\w+), which wgemm/, 'type $1, which wgemm')
    .replace(/^.*operators? (is|are) missing: (\w+).*$/, 'operator $2 is missing')
    .replace(/ "[^"]*"( \(by its output\))?/g, '');

/**
 * Runs the tests on instances, and prints how many pass, and why others are refused. Refusals must
 * be errors of the library.
 *
 * @returns how many failed
 */
export async function runNodes(onnx, instances) {
  const folder = findNodes();
  if (!folder) {
    console.log(
      `nodes: WGEMM_CONFORMANCE_DIR names no folder with ${archive} or ${folderName}/, so ONNX's ` +
        'tests of nodes do not run',
    );
    return 0;
  }
  let failed = 0;
  const fail = (what) => {
    if (++failed <= 10) console.error(`nodes: ${what}`);
  };
  for (const wg of instances) {
    const refused = new Map();
    let passed = 0;
    const names = readdirSync(folder).sort();
    for (const name of names) {
      const before = wg.memory().inUse;
      try {
        const wrong = await runNode(onnx, wg, join(folder, name));
        if (wrong) fail(`${name} (${wg.info.build}): ${wrong}`);
        else ++passed;
      } catch (error) {
        if (!(error instanceof GemmError)) fail(`${name} (${wg.info.build}): ${error.stack}`);
        const reason = reasonOf(error);
        refused.set(reason, [...(refused.get(reason) ?? []), name]);
      }
      if (wg.memory().inUse !== before) fail(`${name} (${wg.info.build}) leaks`);
    }
    const { build } = wg.info;
    console.log(`nodes: ${passed} of ${names.length} pass (${build})`);
    if (passed < leastPassed) fail(`${passed} pass (${build}); expected ${leastPassed} or more`);
    if (wg !== instances[0]) continue;
    const reasons = Array.from(refused).sort(([, a], [, b]) => b.length - a.length);
    for (const [reason, names] of reasons)
      console.log(`nodes: ${names.length} refused: ${reason} (${names[0]})`);
  }
  return failed;
}
