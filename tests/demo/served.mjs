// Serves a built demo to the tests, from memory: with their scripts added, and changed as a test
// asks.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { fail } from '../../scripts/run.mjs';
import { pageAt, startServer } from '../browser/server.mjs';
import { addScripts, recordFiles } from '../browser/tabs.mjs';
import { demoHeaders } from './headers.mjs';
import { activity } from './jobs.mjs';

const wasmSource = " 'wasm-unsafe-eval'";

/** The files of the demo: path -> bytes. */
export function readDemo(folder) {
  let entries;
  try {
    entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  } catch {
    fail(`demo: there is no ${folder}: run \`npm run demo\` before.`);
  }
  const files = entries.filter((entry) => entry.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name));
  return Object.fromEntries(
    paths.map((path) => [`/${relative(folder, path).split(sep).join('/')}`, readFileSync(path)]),
  );
}

/** Replaces text that must be there, so that a test does not run without its change. */
function replaced(text, old, fresh) {
  if (!text.includes(old)) fail(`demo: the page has no ${old}, which its tests change.`);
  return text.replace(old, () => fresh);
}

/**
 * Starts a server of the demo.
 *
 * @param isIsolated whether it sends the headers that threads need
 * @param hasWorkers whether the page has `Worker`
 * @param hasWasm whether the policy allows WebAssembly
 * @param savesData whether the visitor wants to save data, as Chromium tells a page
 * @returns the server, with `requested(from)`: what was asked for, from the request of this
 *   number on, as `{ path, at }`, `at` in ms since 1970
 */
export async function serveDemo(
  demo,
  { isIsolated, hasWorkers = true, hasWasm = true, savesData = false },
) {
  const added = [
    ...(hasWorkers ? [] : ['/test/no-workers.js']),
    ...(savesData ? ['/test/saves-data.js'] : []),
  ];
  const files = {
    ...demo,
    ...recordFiles,
    '/test/no-workers.js': 'delete window.Worker;',
    '/test/saves-data.js':
      "Object.defineProperty(navigator, 'connection', { value: { saveData: true } });",
  };
  let index = addScripts(demo['/index.html'].toString(), added);
  const headers = demoHeaders({ isIsolated });
  if (!hasWasm) {
    index = replaced(index, wasmSource, '');
    const policy = 'content-security-policy';
    headers[policy] = replaced(headers[policy], wasmSource, '');
  }
  files['/'] = files['/index.html'] = index;
  const workers = Object.keys(demo).filter((path) => /\/worker-[^/]*\.js$/.test(path));
  if (workers.length !== 1) fail(`demo: it has ${workers.length} workers, not 1.`);
  files[workers[0]] = `import '../test/record.js';\n${demo[workers[0]]}`;

  const server = await startServer({ files, headers });
  const told = pageAt(server.origin);
  told.requested = [];
  return {
    ...server,
    activity,
    missing: () => told.missing.filter((path) => path !== '/favicon.ico'),
    requested: (from = 0) => told.requested.slice(from),
  };
}

const weights = new Map();

/** Bytes of files of the demo after brotli, as a host serves them; each counts once. */
export function weightOf(demo, paths) {
  let sum = 0;
  for (const path of new Set(paths.map((path) => (path === '/' ? '/index.html' : path)))) {
    if (!(path in demo)) continue; // a script of the tests
    if (!weights.has(path)) {
      const bytes = demo[path];
      weights.set(
        path,
        brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } })
          .length,
      );
    }
    sum += weights.get(path);
  }
  return sum;
}
