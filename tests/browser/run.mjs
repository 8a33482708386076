// Runs the API tests and the test vectors in browsers, in the page and in a worker, with and
// without isolation, under a strict policy, and prints a table.
//   --engine chromium,firefox,webkit   some of them only; on macOS also safari
//   --smoke                            a few of the tests, in Chromium if no engine is named
//   --cdn                              only pages that load the package from another origin
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fail, main, root } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';
import { listVectors } from '../conformance/files.mjs';
import { bundleTests } from './bundle.mjs';
import { appFiles, cdnRowsOf, policyOf, startCdn, wrongWithCdn } from './cdn.mjs';
import { allEngines, engineNames, openIn, titleOf, versionOf } from './engines.mjs';
import { isolation, startServer, strictPolicy } from './server.mjs';

// A few of the tests: every n-th of a file, where n divides no size of a table of cases, so that
// all columns of a large one occur.
const smokeParts = 13;
const smokeTests = [
  'ops/gemm.test.ts',
  'ops/qgemm.test.ts',
  'ops/matmul.test.ts',
  'onnx/onnx-model.test.ts',
  'instance/threads.test.ts',
  'worker/worker.test.ts',
  'own-cases.jsonl',
];
const timeout = 240; // seconds for a row; the slowest takes a quarter of it here
const atOnce = 2; // rows

const places = ['page', 'worker'];
const withoutWasm = { 'content-security-policy': "default-src 'self'; script-src 'self'" };

/**
 * The rows of an engine. Each row runs every second test, so that each test runs in the page and in
 * a worker, and with and without isolation. Of the slow vectors, each row runs every fourth.
 */
function rowsOf(engine, { smoke, cdn }) {
  const fromCdn = cdnRowsOf(engine);
  if (cdn) return fromCdn;
  if (smoke) {
    const some = places.map((place, part) => {
      return {
        engine,
        place,
        isolated: place === 'page',
        task: 'suite',
        only: smokeTests.join(),
        part,
        parts: smokeParts,
      };
    });
    return [...some, ...fromCdn];
  }
  const suites = [false, true].flatMap((isolated, i) =>
    places.map((place, j) => {
      return {
        engine,
        place,
        isolated,
        task: 'suite',
        part: i ^ j,
        parts: 2,
        vectorPart: 2 * i + j,
        vectorParts: 4,
      };
    }),
  );
  const refusals = places.map((place) => ({ engine, place, isolated: false, task: 'refusal' }));
  // WebKitGTK has shared memory only if it is asked for.
  const unshared = places.map((place) => ({
    engine,
    place,
    isolated: true,
    unshared: true,
    task: 'suite',
    only: 'instance/threads.test.ts,own-cases.jsonl',
  }));
  return [...suites, ...refusals, ...(engine === 'webkit' ? unshared : []), ...fromCdn];
}

/** The files that all servers of a run serve. */
async function site(dist) {
  const { paths, wrong } = listVectors();
  if (wrong) fail(wrong);
  if (!existsSync(join(dist, 'index.js')))
    fail('There is no dist/, which the browsers are to load: run `npm run build` before.');
  const page = join(root, 'tests', 'browser', 'page');
  return {
    dist,
    folders: {
      '/': page,
      '/page/': page,
      '/dist/': dist,
      '/tfjs/': join(root, 'node_modules', '@tensorflow', 'tfjs-backend-wasm', 'dist'),
    },
    files: {
      ...(await bundleTests()),
      '/vectors/index.json': JSON.stringify(paths.map((path) => basename(path))),
      ...Object.fromEntries(
        paths.map((path) => [`/vectors/${basename(path)}`, readFileSync(path)]),
      ),
    },
  };
}

/** Runs a row, and adds its result. `wrong`: sentences. */
async function runRow({ dist, ...served }, { engine, isolated, unshared = false, ...settings }) {
  const { task, forbids } = settings;
  const cdn = task === 'cdn' ? await startCdn(dist) : undefined;
  if (cdn) settings.cdn = cdn.origin;
  const policy = cdn
    ? policyOf(cdn.origin, forbids)
    : task === 'refusal'
      ? withoutWasm
      : strictPolicy;
  const server = await startServer({
    ...served,
    files: { ...served.files, ...(cdn && appFiles(cdn.origin)) },
    headers: { ...policy, ...(isolated && isolation) },
  });
  const start = performance.now();
  const row = { engine, isolated, ...settings };
  try {
    row.version = await versionOf(engine);
    const environment = { JSC_useSharedArrayBuffer: isolated && !unshared ? '1' : '0' };
    row.result = await openIn(engine, server.url(`/?${new URLSearchParams(settings)}`), {
      timeout,
      environment,
    });
    row.wrong = wrongWith[task](row.result, row);
  } catch (error) {
    row.wrong = [error.message];
  } finally {
    await server.close();
    await cdn?.close();
  }
  row.seconds = (performance.now() - start) / 1000;
  return row;
}

function wrongWithSuite(
  { crash, api, vectors, violations, uncaught, crossOriginIsolated },
  { isolated, only },
) {
  if (crash) return [crash];
  return [
    ...[api, vectors].flatMap(({ failed, failures }) =>
      failed > failures.length
        ? [...failures, `... and ${failed - failures.length} more`]
        : failures,
    ),
    ...violations.map((violation) => `the policy was violated: ${violation}`),
    ...uncaught.map((error) => `nobody caught: ${error}`),
    ...(crossOriginIsolated === isolated
      ? []
      : [`crossOriginIsolated is ${crossOriginIsolated}; the headers ask for ${isolated}`]),
    ...(api.passed > 0 && vectors.packed > 0 ? [] : [`nothing ran${only ? ` of ${only}` : ''}`]),
  ];
}

/** If a policy forbids WebAssembly, the error must name what the policy lacks. */
function wrongWithRefusal({ crash, isGemmError, code, message, created }) {
  if (crash) return [crash];
  if (created)
    return [
      "createGemm works under a policy without 'wasm-unsafe-eval', so that the policy is not " +
        'in force',
    ];
  const isRight = isGemmError && code === 'LOAD' && message.includes("'wasm-unsafe-eval'");
  return isRight
    ? []
    : [
        `createGemm says ${code}: ${message}; it must be a GemmError of code LOAD that names ` +
          `'wasm-unsafe-eval'`,
      ];
}

/** By task: what is wrong with a result. */
const wrongWith = { suite: wrongWithSuite, refusal: wrongWithRefusal, cdn: wrongWithCdn };

/** What a row shows, in a few words. */
export function titleOfRow({ task, place, isolated, forbids }) {
  const lacks = { refusal: "'wasm-unsafe-eval'", cdn: forbids }[task];
  return [
    place,
    isolated ? 'isolated' : 'not isolated',
    ...(task === 'cdn' ? ['from another origin'] : []),
    ...(lacks ? [`without ${lacks} in the policy`] : []),
  ].join(', ');
}

/**
 * Runs the tests in engines, and calls `onRow` after each row.
 *
 * @returns the rows: { engine, version, place, isolated, task, wrong: sentences, seconds, result }
 */
export async function runBrowsers({
  engines = engineNames,
  smoke = false,
  cdn = false,
  dist = join(root, 'dist'),
  onRow = () => {},
} = {}) {
  const served = await site(dist);
  const rows = engines.flatMap((engine) => rowsOf(engine, { smoke, cdn }));
  let next = 0;
  const runSome = async () => {
    while (next < rows.length) {
      const index = next++;
      rows[index] = await runRow(served, rows[index]);
      onRow(rows[index]);
    }
  };
  const most = engines.includes('safari') ? 1 : Math.min(atOnce, availableParallelism());
  await Promise.all(Array.from({ length: most }, runSome));
  return rows;
}

/** How many skipped tests run elsewhere, or how many do not. */
function countOf(skipped, elsewhere) {
  const counts = Object.entries(skipped).flatMap(([reason, count]) =>
    reason.startsWith('left to ') === elsewhere ? [count] : [],
  );
  return counts.reduce((total, count) => total + count, 0);
}

/** The table of rows, as lines. */
export function browserTable(rows) {
  const cells = rows.map((row) => {
    const { engine, version, place, isolated, task, wrong, seconds, result } = row;
    const { api, vectors, info, hasSharedArrayBuffer } = result ?? {};
    return {
      engine: titleOf(engine),
      version: version ?? '',
      place,
      isolated: isolated ? 'yes' : 'no',
      'shared memory':
        hasSharedArrayBuffer === undefined ? '' : hasSharedArrayBuffer ? 'yes' : 'no',
      build: info
        ? `${info.build}, threads ${info.threads}`
        : task === 'suite'
          ? ''
          : titleOfRow(row).split(', ').slice(2).join(', '),
      tests: api?.passed ?? '',
      failed: api?.failed ?? '',
      skipped: api ? countOf(api.skipped, false) : '',
      elsewhere: api ? countOf(api.skipped, true) : '',
      vectors: vectors?.passed ?? '',
      packed: vectors?.packed ?? '',
      'failed ': vectors?.failed ?? '',
      'skipped ': vectors ? countOf(vectors.skipped, false) : '',
      'elsewhere ': vectors ? countOf(vectors.skipped, true) : '',
      seconds: seconds.toFixed(1),
      '': wrong.length > 0 ? 'FAILS' : 'ok',
    };
  });
  const columns = Object.keys(cells[0]);
  const isNumber = (column) =>
    column === 'seconds' || cells.some((row) => typeof row[column] === 'number');
  const width = (column) =>
    Math.max(column.trimEnd().length, ...cells.map((row) => String(row[column]).length));
  const pad = (text, column) =>
    isNumber(column) ? String(text).padStart(width(column)) : String(text).padEnd(width(column));
  const lines = [Object.fromEntries(columns.map((column) => [column, column.trimEnd()])), ...cells];
  return lines.map((row) =>
    columns
      .map((column) => pad(row[column], column))
      .join('  ')
      .trimEnd(),
  );
}

/** Notes to the table: why these builds run, and what was skipped. */
function printNotes(rows) {
  const notes = new Map(); // note -> the rows that it holds for
  const withTests = rows.filter(({ result }) => result?.info);
  const note = (text, { engine, place, isolated }) => {
    const where = `${titleOf(engine)}, ${place}${isolated ? ', isolated' : ''}`;
    notes.set(text, [...(notes.get(text) ?? []), where]);
  };
  for (const row of withTests) {
    const { info, api, vectors } = row.result;
    note(`why: ${info.why}`, row);
    for (const [reason, count] of Object.entries(api.skipped))
      note(`${count} tests: ${reason}`, row);
    for (const reasons of [vectors.skipped, vectors.notPacked]) {
      for (const [reason, count] of Object.entries(reasons))
        note(`${count} vectors: ${reason}`, row);
    }
  }
  for (const [text, where] of notes)
    console.log(`${text} (${where.length === withTests.length ? 'everywhere' : where.join('; ')})`);
}

/**
 * Prints everything about rows, and returns whether all passed. The last line says how many tests
 * and vectors passed and failed.
 */
export function printBrowsers(rows) {
  console.log(browserTable(rows).join('\n'));
  printNotes(rows);
  let [passed, failed] = [0, 0];
  for (const { result, wrong, task } of rows) {
    const { api, vectors } = result ?? {};
    passed +=
      (api?.passed ?? 0) +
      (vectors?.passed ?? 0) +
      (task !== 'suite' && wrong.length === 0 ? 1 : 0);
    const counted = (api?.failed ?? 0) + (vectors?.failed ?? 0);
    failed += counted || (wrong.length > 0 ? 1 : 0);
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0;
}

function readArguments(words) {
  const known = /^--(smoke|cdn|engine(=.*)?)$/;
  const options = { engines: engineNames, smoke: false, cdn: false };
  for (let i = 0; i < words.length; ++i) {
    if (!known.test(words[i]))
      fail(
        `browser: ${words[i]} is not known; it takes --engine ${allEngines.join(',')}, --smoke ` +
          'and --cdn',
      );
    if (words[i] === '--smoke') Object.assign(options, { smoke: true, engines: ['chromium'] });
    else if (words[i] === '--cdn') options.cdn = true;
    else options.engines = (words[i].split('=')[1] ?? words[++i] ?? '').split(',');
  }
  const unknown = options.engines.find((engine) => !allEngines.includes(engine));
  if (unknown !== undefined)
    fail(`browser: there is no engine '${unknown}'; there are ${allEngines.join(', ')}`);
  return options;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main(async () => {
    const options = readArguments(process.argv.slice(2));
    await setUp(...options.engines);
    if (!options.smoke && !options.cdn && !process.env.WGEMM_CONFORMANCE_DIR) {
      console.log(
        "browser: WGEMM_CONFORMANCE_DIR names no folder, so only the project's own cases run",
      );
    }
    const rows = await runBrowsers({
      ...options,
      onRow({ wrong, seconds, ...row }) {
        console.log(
          `browser: ${titleOf(row.engine)}, ${titleOfRow(row)}: ` +
            `${wrong.length === 0 ? 'ok' : 'FAILS'} (${seconds.toFixed(1)} s)`,
        );
        for (const sentence of wrong) console.error(`browser:   ${sentence}`);
      },
    });
    if (!printBrowsers(rows)) process.exitCode = 1;
  });
}
