// Runs test vectors on every build, with B plain and packed, and prints how many passed by
// operation, opset and type. The project's own cases always run. The folder that
// WGEMM_CONFORMANCE_DIR names may hold more, such as vectors of ONNX's and ONNX Runtime's tests.
//   node run.mjs [wgemm] [--most 1e6] [--builds relaxed,simd128-mt]
//     wgemm   the entry of the package that is tested
//     --most  skips cases with more multiplications, among those that are made here
//     --vectors 32  the option of createGemm; for V8 with --experimental-wasm-revectorize
//     --builds  some of the four; default: all, or those without threads for a named entry, whose
//               threads strict.mjs tests
//     --models  runs the cases as models of one node, by the entry wgemm/onnx, and nothing else
//     --nodes  runs ONNX's own tests of nodes, by the same entry, and nothing else
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { listVectors } from './files.mjs';
import { Tally } from './tally.mjs';

const { positionals, values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    most: { type: 'string', default: 'Infinity' },
    builds: { type: 'string' },
    vectors: { type: 'string', default: '16' },
    models: { type: 'boolean', default: false },
    nodes: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const [entry] = positionals;
const most = Number(values.most);
const { createGemm } = await import(entry ?? 'wgemm');
const start = (build) =>
  createGemm({
    ...build,
    models: values.models || values.nodes,
    vectors: Number(values.vectors),
  });
const names =
  values.builds ?? (entry ? 'simd128,relaxed' : 'simd128,simd128-mt,relaxed,relaxed-mt');
const builds = names.split(',').map((name) => ({
  simd: name.replace('-mt', ''),
  threads: name.endsWith('-mt') ? 2 : 1,
}));
const shown = 10; // failures told in full

function printTable(lines) {
  const columns = Object.keys(lines[0]);
  const isAlwaysShown = (column) => /passed|failed/.test(column);
  const width = (column) =>
    Math.max(column.length, ...lines.map((line) => String(line[column]).length));
  const pad = (text, column) =>
    typeof lines[0][column] === 'number'
      ? String(text).padStart(width(column))
      : String(text).padEnd(width(column));
  console.log(columns.map((column) => column.padEnd(width(column))).join('  '));
  for (const line of lines)
    console.log(
      columns
        .map((column) => pad(line[column] || (isAlwaysShown(column) ? 0 : ''), column))
        .join('  ')
        .trimEnd(),
    );
}

const { paths, folder, wrong } = listVectors();
if (wrong) {
  console.error(`conformance: ${wrong}`);
  process.exitCode = 1;
} else {
  if (!folder)
    console.log(
      "conformance: WGEMM_CONFORMANCE_DIR names no folder, so only the project's own cases run",
    );
  const instances = [];
  for (const build of builds) {
    try {
      instances.push(await start(build));
    } catch (error) {
      if (error.code !== 'UNSUPPORTED' || build === builds[0]) throw error;
      console.log(`conformance: ${error.message}`);
    }
  }
  if (values.nodes) {
    const { runNodes } = await import('./nodes.mjs');
    const failed = await runNodes(await import('wgemm/onnx'), instances);
    console.log(`${failed} failed`);
    process.exit(failed > 0 ? 1 : 0);
  }
  if (values.models) {
    const { loadModel } = await import('wgemm/onnx');
    const { runModels } = await import('./models.mjs');
    const failed = await runModels(loadModel, instances, paths, most);
    console.log(`${failed} failed`);
    process.exit(failed > 0 ? 1 : 0);
  }
  const tally = new Tally(instances, (wrong) => {
    if (tally.failed <= shown) console.error(`conformance: ${wrong}`);
  });
  const reason = `of more than ${most} products`;
  const skip = (_, { products = 0 }) => (products > most ? reason : undefined);
  for (const path of paths) {
    const file = basename(path);
    const cases = await tally.run(file, readFileSync(path, 'utf8'), { skip });
    console.log(`conformance: ${cases} from ${file}`);
  }
  tally.finish();
  printTable(tally.rows);
  for (const [reason, number] of Object.entries(tally.skipped))
    console.log(`skipped: ${number} ${reason}`);
  for (const [reason, number] of Object.entries(tally.notPacked))
    console.log(`not packed: ${number}, ${reason}`);
  for (const form of ['plain', 'packed'])
    console.log(`${form}: ${tally[form].passed} passed, ${tally[form].failed} failed`);
  console.log(`${tally.passed} passed, ${tally.failed} failed`);
  process.exitCode = tally.failed > 0 ? 1 : 0;
}
