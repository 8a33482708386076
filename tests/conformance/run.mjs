// Runs test vectors on every build, and prints what passed by operation, opset and type. The project's own cases always run; the folder
// that WGEMM_CONFORMANCE_DIR names may hold more, such as those of ONNX's and ONNX Runtime's tests.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createGemm } from 'wgemm';
import { check, supported } from './check.mjs';
import { isVectors, readVectors } from './vectors.mjs';

const builds = ['simd128'];
const shown = 10; // failures told in full

const instances = [];
for (const simd of builds) instances.push(await createGemm({ simd }));

const rows = new Map(); // by build, operation, opset and type: how often each outcome was
const totals = { passed: 0, failed: 0 };
const skipped = {}; // by reason

function count(build, { op, opset, type }, outcome) {
  const key = [build, op, opset, type].join();
  if (!rows.has(key)) rows.set(key, { build, operation: op, opset, type, passed: 0, failed: 0, 'not supported': 0, skipped: 0 });
  ++rows.get(key)[outcome];
  if (outcome in totals) ++totals[outcome];
}

function runFile(path) {
  const file = basename(path);
  let cases = 0;
  try {
    for (const kase of readVectors(file, readFileSync(path, 'utf8'))) {
      ++cases;
      if (kase.skip) skipped[kase.skip] = (skipped[kase.skip] ?? 0) + 1;
      for (const wg of instances) runCase(wg, file, kase);
    }
  } catch (error) {
    throw new Error(`conformance: ${file} could not be run beyond case ${cases}`, { cause: error });
  }
  console.log(`conformance: ${cases} from ${file}`);
}

function runCase(wg, file, kase) {
  const { build } = wg.info;
  if (kase.skip) return count(build, kase, 'skipped');
  const runnable = supported(kase);
  if (!runnable) return count(build, kase, 'not supported');
  const wrong = check(wg, runnable);
  count(build, kase, wrong ? 'failed' : 'passed');
  if (wrong && totals.failed <= shown) {
    console.error(`conformance: ${file}: ${kase.name} (${kase.op} ${kase.opset} ${kase.type}, ${build}): ${wrong}`);
  }
}

function printTable() {
  const lines = [...rows.values()].sort((a, b) => {
    const order = (row) => [row.build, row.operation, String(row.opset).padStart(6), row.type].join();
    return order(a) < order(b) ? -1 : 1;
  });
  const columns = Object.keys(lines[0]);
  const width = (column) => Math.max(column.length, ...lines.map((line) => String(line[column]).length));
  const pad = (text, column) =>
    typeof lines[0][column] === 'number' ? String(text).padStart(width(column)) : String(text).padEnd(width(column));
  console.log(columns.map((column) => column.padEnd(width(column))).join('  '));
  for (const line of lines)
    console.log(
      columns
        .map((column) => pad(line[column] || (column in totals ? 0 : ''), column))
        .join('  ')
        .trimEnd(),
    );
  for (const [reason, number] of Object.entries(skipped)) console.log(`skipped: ${number} ${reason}`);
}

/** The files with vectors in the folder that was named. */
function listVectors(folder) {
  try {
    return readdirSync(folder)
      .filter(isVectors)
      .map((file) => join(folder, file));
  } catch {
    return [];
  }
}

const folder = process.env.WGEMM_CONFORMANCE_DIR;
const vectors = folder ? listVectors(folder) : [];
if (folder && vectors.length === 0) {
  console.error(`conformance: WGEMM_CONFORMANCE_DIR is '${folder}', where there are no vectors (*.jsonl): name the folder that holds them`);
  process.exitCode = 1;
} else {
  if (!folder) console.log("conformance: WGEMM_CONFORMANCE_DIR names no folder, so only the project's own cases run");
  for (const path of [fileURLToPath(new URL('own-cases.jsonl', import.meta.url)), ...vectors]) runFile(path);
  printTable();
  console.log(`${totals.passed} passed, ${totals.failed} failed`);
  process.exitCode = totals.failed > 0 ? 1 : 0;
}
