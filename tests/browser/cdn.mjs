// Pages that load the package from another origin, as from a CDN: the rows of the table, the second
// server, and what a page must report.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startServer } from './server.mjs';

/** What jsDelivr and unpkg send with every file. */
const headers = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
};

/** `forbids`: what the policy of the page lacks, a directive of `policyOf`. */
export function cdnRowsOf(engine) {
  const row = { engine, place: 'page', task: 'cdn' };
  return [
    { ...row, isolated: false },
    { ...row, isolated: true },
    { ...row, isolated: false, forbids: 'connect-src' },
    { ...row, isolated: true, forbids: 'worker-src' },
  ];
}

/** The server of the package. In /moved/ it has the scripts alone, without .wasm and workers. */
export function startCdn(dist) {
  const moved = readdirSync(dist).filter((name) => /^(index|worker)\.js$|\.mjs$/.test(name));
  return startServer({
    folders: { '/wgemm@0.1/dist/': dist },
    files: Object.fromEntries(
      moved.map((name) => [`/moved/${name}`, readFileSync(join(dist, name))]),
    ),
    headers,
  });
}

/** The policy that docs/guide/bundlers/cdn.md shows, without the directive that a row forbids. */
export function policyOf(cdn, forbids) {
  const directives = {
    'default-src': "'self'",
    'script-src': `'self' 'wasm-unsafe-eval' ${cdn}`,
    'connect-src': `'self' ${cdn}`,
    'worker-src': "'self' blob:",
  };
  const allowed = Object.entries(directives).filter(([name]) => name !== forbids);
  return { 'content-security-policy': allowed.map((each) => each.join(' ')).join('; ') };
}

/** What each trial of tests/browser/page/cdn.js must come to: a number of threads, or an error. */
function wantedOf({ isolated, forbids, cdn }) {
  const started = { threads: 1 };
  const noPolicy = { worker: 'worker-src blob:', connect: `connect-src ${cdn}` };
  const refusedWorker = { code: 'LOAD', says: [noPolicy.worker, `${cdn}/wgemm@0.1/dist/`] };
  const refusedThread = { ...refusedWorker, code: 'WORKER' };
  const refusedWasm = { code: 'LOAD', says: [noPolicy.connect, `${cdn}/wgemm@0.1/dist/`] };
  const several = isolated ? { threads: 2 } : { code: 'UNSUPPORTED', says: ['isolated'] };
  const own = forbids === 'connect-src' ? refusedWasm : started;
  const worker = forbids === 'worker-src' ? refusedWorker : own;
  return {
    wgemm: own,
    'wgemm/worker': worker,
    'wgemm/inline': started,
    'wgemm, two threads': forbids === 'worker-src' ? refusedThread : several,
    'wgemm/worker, two threads': forbids === 'worker-src' ? refusedWorker : several,
    moved:
      forbids === 'connect-src'
        ? { code: 'LOAD', says: [noPolicy.connect, `${cdn}/moved/`] }
        : { code: 'LOAD', says: [`${cdn}/moved/wgemm-`, 'answered 404', 'the option assets'] },
    'moved, with assets': own,
    'moved, worker': { code: 'LOAD', says: [`${cdn}/moved/wgemm-worker.js`] },
  };
}

/** Sentences about what a page reported and should not have. */
export function wrongWithCdn(result, row) {
  const { crash, results, blobs, violations, uncaught, crossOriginIsolated } = result;
  if (crash) return [crash];
  const wrong = Object.entries(wantedOf(row)).flatMap(([name, { threads, code, says = [] }]) => {
    const found = results[name];
    const isRight =
      code === undefined
        ? found.first === 256 && found.threads === threads
        : found.isGemmError &&
          found.code === code &&
          says.every((text) => found.message.includes(text));
    const must = code === undefined ? `${threads} threads` : `${code}: ${says.join(' ... ')}`;
    return isRight ? [] : [`${name}: ${JSON.stringify(found)}; it must be ${must}`];
  });
  if (blobs.made === 0 || blobs.left > 0)
    wrong.push(`${blobs.made} blob: addresses were made, and ${blobs.left} not revoked`);
  if (crossOriginIsolated !== row.isolated)
    wrong.push(`crossOriginIsolated is ${crossOriginIsolated}; headers ask for ${row.isolated}`);
  if (!row.forbids) wrong.push(...violations.map((each) => `the policy was violated: ${each}`));
  return [...wrong, ...uncaught.map((error) => `nobody caught: ${error}`)];
}
