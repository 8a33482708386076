// Pages that load the package from another origin, as from a CDN: the rows of the table, the second
// server, and what a page must report.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blockOf } from '../package/pages.mjs';
import { startServer } from './server.mjs';

/** What jsDelivr and unpkg send with every file. */
const headers = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
};

/** `forbids`: the directive of the policy of the guide that the page lacks. */
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
  const scripts = /^(index|worker|worker-linear|worker-search|wgemm-mt)\.js$/;
  const moved = readdirSync(dist).filter((name) => scripts.test(name));
  return startServer({
    folders: { '/wgemm@0.1/dist/': dist },
    files: Object.fromEntries(
      moved.map((name) => [`/moved/${name}`, readFileSync(join(dist, name))]),
    ),
    headers,
  });
}

const guide = 'docs/guide/bundlers/cdn.md';
const guideOrigin = 'https://cdn.jsdelivr.net';

/** The policy of the guide, without the directive that a row forbids. */
export function policyOf(cdn, forbids) {
  const { code } = blockOf(guide, { language: 'http' });
  const [, policy] = /^Content-Security-Policy: (.*)$/m.exec(code);
  const directives = policy.replaceAll(guideOrigin, cdn).split('; ');
  const allowed = directives.filter((directive) => directive.split(' ')[0] !== forbids);
  return { 'content-security-policy': allowed.join('; ') };
}

/** The program of the guide, and what the page must show, as the comment there says. */
function appOf(cdn) {
  const { code } = blockOf(guide, { file: 'from-cdn.js' });
  const [, shows] = /textContent = .*;\s*\/\/ (.*)$/m.exec(code);
  return { code: code.replace(`${guideOrigin}/npm`, cdn), shows };
}

/** What the server of the page has besides the page. */
export const appFiles = (cdn) => ({ '/from-cdn.js': appOf(cdn).code });

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
  const { crash, results, text, blobs, violations, uncaught, crossOriginIsolated } = result;
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
  if (!row.forbids) {
    const { shows } = appOf(row.cdn);
    if (text !== shows) wrong.push(`the page of the guide shows '${text}'; it must be '${shows}'`);
    wrong.push(...violations.map((each) => `the policy was violated: ${each}`));
  }
  return [...wrong, ...uncaught.map((error) => `nobody caught: ${error}`)];
}
