// What tests of hosts share: they write projects, install and build them, serve the result, and
// read what a page or a server says.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openIn } from '../browser/engines.mjs';
import { startServer } from '../browser/server.mjs';
import { runChild } from './child.mjs';
import { readBlocks } from './pages.mjs';
import { refuse } from './results.mjs';

/**
 * The code of the guide under a heading, which a user of the host writes: the block with this file
 * name, or the first.
 */
export const guided = (heading, file) =>
  readBlocks('docs/guide/bundlers/frameworks.md').find(
    (block) => block.headings.includes(heading) && (!file || block.file === file),
  )?.code ?? refuse(`the guide has no code ${file ?? ''} under '${heading}'`);

/** What every host computes, as a function of the entry, and its result. */
export const product = `async function product({ createGemm }) {
  const wg = await createGemm();
  const a = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] };
  const y = await wg.gemm(a, a);
  wg.dispose();
  return Array.from(y.data).join();
}
`;
export const expected = '7,10,15,22';

/** A page's script that tells our server what a promise becomes. */
export const telling = (origin, promise) => `
const tell = (body) => fetch('${origin}/result',
  { method: 'POST', mode: 'no-cors', body: JSON.stringify(body) });
${promise}.then((text) => tell({ text }), (error) => tell({ error: String(error) }));
`;

/** A page's script that tells the product to our server. */
export const script = (origin, entry = 'wgemm') =>
  `import { createGemm } from '${entry}';\n${product}${telling(origin, 'product({ createGemm })')}`;

export function write(project, files) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  }
}

export const install = (project, packages) =>
  runChild('npm', ['install', '--no-audit', '--no-fund', ...packages], {
    cwd: project,
    timeout: 300_000,
  });

export const npx = (project, args, env) =>
  runChild('npx', args, { cwd: project, env: { ...quiet, ...env }, timeout: 300_000 });

/** No host tells its makers about the run. */
const quiet = {
  ...{ NEXT_TELEMETRY_DISABLED: '1', NUXT_TELEMETRY_DISABLED: '1', ASTRO_TELEMETRY_DISABLED: '1' },
  NG_CLI_ANALYTICS: 'false',
};

/** Refuses what a page or a server answered, unless it is the product or has some text. */
export function check(found, must = expected) {
  if (must === expected ? found !== must : !found.includes(must))
    refuse(`the host says '${found}'; it must say '${must}'`);
}

/** Opens an address, and returns what the page there tells to `waiting`. */
export async function shownBy(waiting, url, options) {
  waiting.files['/'] = `<meta http-equiv="refresh" content="0; url=${url}" />`;
  const { text, error } = await openIn('chromium', waiting.url('/'), options);
  return text ?? error;
}

/** A server that only waits for results. */
export async function startWaiting(folders = {}) {
  const files = {};
  const server = await startServer({ folders, files });
  return Object.assign(server, { files });
}

/** A port that was free a moment ago. */
export const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** Runs `body` with the address of a server that a command starts. */
export async function whileServing(project, [program, ...args], body) {
  const port = await freePort();
  const child = spawn(
    program,
    args.map((arg) => arg.replace('PORT', port)),
    {
      cwd: project,
      env: { ...process.env, ...quiet, PORT: String(port), HOST: '127.0.0.1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // so that its children end with it
    },
  );
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (said += text));
  const url = `http://127.0.0.1:${port}`;
  try {
    for (let tries = 0; ; ++tries) {
      if (await fetch(url).catch(() => undefined)) break;
      if (tries === 300 || child.exitCode !== null) refuse(`the server does not start:\n${said}`);
      await sleep(200);
    }
    return await body(url);
  } finally {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // it has ended
    }
  }
}

export const textOf = async (url) => await (await fetch(url)).text();
/** The text of the element that servers write. */
export const shownIn = (html) =>
  /<p id="out">([^<]*)/.exec(html)?.[1].replaceAll('&#x27;', "'") ?? html;

/** Serves the built files of a page, and opens it. */
export async function openBuilt(project, folder, build) {
  const waiting = await startWaiting({ '/app/': join(project, folder) });
  try {
    await build(waiting.origin);
    return await shownBy(waiting, waiting.url('/app/'));
  } finally {
    await waiting.close();
  }
}
