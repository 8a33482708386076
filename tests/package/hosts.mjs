// Runs the package in hosts that cut, move or serve its files in their own way: service workers,
// extensions, frameworks with servers, test runners with pages, and a web server with old types.
// Each installs the tarball, and most install the host from npm. A host computes a product, or it
// must say which setting it lacks.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openIn } from '../browser/engines.mjs';
import { startServer } from '../browser/server.mjs';
import { runChild } from './child.mjs';
import { makeProject } from './packed.mjs';
import { readBlocks } from './pages.mjs';
import { refuse } from './results.mjs';

/** The code of the guide under a heading, which a user of the host writes. */
const guided = (heading) =>
  readBlocks('docs/guide/bundlers/frameworks.md').find(({ headings }) => headings.includes(heading))
    ?.code ?? refuse(`the guide has no code under '${heading}'`);

/** What every host computes, as a function of the entry, and its result. */
const product = `async function product({ createGemm }) {
  const wg = await createGemm();
  const a = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] };
  const y = await wg.gemm(a, a);
  wg.dispose();
  return Array.from(y.data).join();
}
`;
const expected = '7,10,15,22';

const telling = (origin) => `
const tell = (body) => fetch('${origin}/result',
  { method: 'POST', mode: 'no-cors', body: JSON.stringify(body) });
product({ createGemm }).then((text) => tell({ text }), (error) => tell({ error: String(error) }));
`;

/** A page's script that tells the product to our server. */
const script = (origin, entry = 'wgemm') =>
  `import { createGemm } from '${entry}';\n${product}${telling(origin)}`;

function write(project, files) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  }
}

const install = (project, packages) =>
  runChild('npm', ['install', '--no-audit', '--no-fund', ...packages], {
    cwd: project,
    timeout: 300_000,
  });

const npx = (project, args, env) =>
  runChild('npx', args, { cwd: project, env: { ...quiet, ...env }, timeout: 300_000 });

/** No host tells its makers about the run. */
const quiet = {
  ...{ NEXT_TELEMETRY_DISABLED: '1', NUXT_TELEMETRY_DISABLED: '1', ASTRO_TELEMETRY_DISABLED: '1' },
  NG_CLI_ANALYTICS: 'false',
};

/** Refuses what a page or a server answered, unless it is the product or has some text. */
function check(found, must = expected) {
  if (must === expected ? found !== must : !found.includes(must))
    refuse(`the host says '${found}'; it must say '${must}'`);
}

/** Opens an address, and returns what the page there tells to `waiting`. */
async function shownBy(waiting, url, options) {
  waiting.files['/'] = `<meta http-equiv="refresh" content="0; url=${url}" />`;
  const { text, error } = await openIn('chromium', waiting.url('/'), options);
  return text ?? error;
}

/** A server that only waits for results. */
async function startWaiting(folders = {}) {
  const files = {};
  const server = await startServer({ folders, files });
  return Object.assign(server, { files });
}

/** A port that was free a moment ago. */
const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** Runs `body` with the address of a server that a command starts. */
async function whileServing(project, [program, ...args], body) {
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

const textOf = async (url) => await (await fetch(url)).text();
/** The text of the element that servers write. */
const shownIn = (html) => /<p id="out">([^<]*)/.exec(html)?.[1].replaceAll('&#x27;', "'") ?? html;

/** Serves the built files of a page, and opens it. */
async function openBuilt(project, folder, build) {
  const waiting = await startWaiting({ '/app/': join(project, folder) });
  try {
    await build(waiting.origin);
    return await shownBy(waiting, waiting.url('/app/'));
  } finally {
    await waiting.close();
  }
}

/** A module service worker, from which nothing can be imported at run time. */
async function testServiceWorker(project) {
  const waiting = await startWaiting({ '/wgemm/': join(project, 'node_modules/wgemm/dist') });
  waiting.files['/sw.js'] = `import { createGemm } from '/wgemm/index.js';
${product}
addEventListener('message', ({ source }) => {
  const post = (text) => source.postMessage(text);
  product({ createGemm }).then(post, (error) => post(String(error)));
});`;
  waiting.files['/page.js'] = `
navigator.serviceWorker.onmessage = ({ data }) =>
  fetch('/result', { method: 'POST', body: JSON.stringify({ text: data }) });
await navigator.serviceWorker.register('/sw.js', { type: 'module' });
(await navigator.serviceWorker.ready).active.postMessage('');`;
  waiting.files['/page'] = '<script type="module" src="/page.js"></script>';
  try {
    check(await shownBy(waiting, waiting.url('/page')));
  } finally {
    await waiting.close();
  }
}

/** An extension of the third manifest, whose background is a service worker. */
async function testExtension(project) {
  const waiting = await startWaiting();
  const extension = join(project, 'extension');
  cpSync(join(project, 'node_modules/wgemm/dist'), join(extension, 'wgemm'), { recursive: true });
  write(extension, {
    'manifest.json': JSON.stringify({
      manifest_version: 3,
      ...{ name: 'wgemm', version: '1' },
      ...JSON.parse(guided('Service workers')),
      host_permissions: ['http://127.0.0.1/*'],
    }),
    'background.js': script(waiting.origin, './wgemm/index.js'),
  });
  waiting.files['/'] = '<title>waiting for the extension</title>';
  const only = ['--disable-extensions-except', '--load-extension'];
  // Chrome without a brand still takes extensions from the command line.
  const flags = [...only.map((flag) => `${flag}=${extension}`)];
  try {
    const { text, error } = await openIn('chromium', waiting.url('/'), { flags });
    check(text ?? error);
  } finally {
    await waiting.close();
  }
}

/** nginx of Debian 12, whose list of types lacks .mjs and .wasm. */
async function testNginx(project) {
  await runChild('apt-get', ['download', 'nginx', 'nginx-common'], { cwd: project });
  for (const name of readdirSync(project).filter((name) => name.endsWith('.deb')))
    await runChild('dpkg', ['-x', name, 'nginx'], { cwd: project });
  const port = await freePort();
  const waiting = await startWaiting();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${project}/temp;`)
    .join(' ');
  write(project, {
    'nginx.conf': `pid ${project}/nginx.pid; error_log ${project}/error.log; daemon off;
events {}
http {
  include ${project}/nginx/etc/nginx/mime.types; default_type application/octet-stream;
  access_log off; ${temporary}
  server { listen 127.0.0.1:${port}; root ${project}; }
}`,
    'index.html': '<script type="module" src="/app.js"></script>',
    'app.js': script(waiting.origin, '/node_modules/wgemm/dist/index.js'),
  });
  const nginx = [`${project}/nginx/usr/sbin/nginx`, '-c', `${project}/nginx.conf`, '-e', 'stderr'];
  const child = spawn(nginx[0], nginx.slice(1), { stdio: 'ignore' });
  try {
    await sleep(500);
    check(await shownBy(waiting, `http://127.0.0.1:${port}/`));
  } finally {
    child.kill();
    await waiting.close();
  }
}

/** Jest, with modules and with a page of jsdom. */
async function testJest(project) {
  write(project, {
    'jest.config.json': JSON.stringify({ testEnvironment: 'jsdom', transform: {} }),
    'gemm.test.js': `import { createGemm } from 'wgemm';
${product}
test('product', async () => expect(await product({ createGemm })).toBe('${expected}'));
`,
  });
  await npx(project, ['jest'], { NODE_OPTIONS: '--experimental-vm-modules' });
}

const nextFiles = (origin) => ({
  'app/layout.jsx': `export default function Layout({ children }) {
  return (<html><body>{children}</body></html>);
}`,
  'app/page.jsx': `'use client';
import { useEffect } from 'react';
import { createGemm } from 'wgemm';
${product}
export default function Page() {
  useEffect(() => {${telling(origin)}}, []);
  return <p>client</p>;
}`,
  'app/server/page.jsx': `import { createGemm } from 'wgemm';
${product}
export const dynamic = 'force-dynamic';
export default async function Page() {
  return <p id="out">{await product({ createGemm }).catch(String)}</p>;
}`,
  'app/route/route.js': `import { createGemm } from 'wgemm';
${product}
export const dynamic = 'force-dynamic';
export const GET = async () => new Response(await product({ createGemm }).catch(String));`,
});

/** Client component, server component and route of Next.js. */
async function testNext(project, { bundler, develops, configured }) {
  const waiting = await startWaiting();
  const setting = "serverExternalPackages: ['wgemm']";
  rmSync(join(project, '.next'), { recursive: true, force: true });
  write(project, {
    ...nextFiles(waiting.origin),
    'guided.mjs': configured ? guided('Next.js') : 'export default {};\n',
    'next.config.mjs': `import guided from './guided.mjs';
export default { ...guided, output: 'standalone', outputFileTracingRoot: import.meta.dirname };\n`,
  });
  try {
    if (!develops) await npx(project, ['next', 'build', `--${bundler}`]);
    const staticFiles = join(project, '.next/standalone/.next/static');
    if (!develops) cpSync(join(project, '.next/static'), staticFiles, { recursive: true });
    const command = develops
      ? ['npx', 'next', 'dev', `--${bundler}`, '--port', 'PORT', '--hostname', '127.0.0.1']
      : ['node', '.next/standalone/server.js'];
    await whileServing(project, command, async (url) => {
      check(await shownBy(waiting, url));
      check(shownIn(await textOf(`${url}/server`)), configured ? expected : setting);
      if (configured) check(await textOf(`${url}/route`));
    });
  } finally {
    await waiting.close();
  }
}

/** A page of Nuxt, and an address of its built server. */
async function testNuxt(project) {
  const waiting = await startWaiting();
  write(project, {
    'nuxt.config.ts': "export default defineNuxtConfig({ compatibilityDate: '2026-01-01' });\n",
    'server/api/product.js': `import { createGemm } from 'wgemm';
${product}
export default defineEventHandler(() => product({ createGemm }).catch(String));`,
    'app.vue': `<template><p>client</p></template>
<script setup>
import { createGemm } from 'wgemm';
${product}
onMounted(() => {${telling(waiting.origin)}});
</script>`,
  });
  try {
    await npx(project, ['nuxt', 'build']);
    await whileServing(project, ['node', '.output/server/index.mjs'], async (url) => {
      check(await textOf(`${url}/api/product`));
      check(await shownBy(waiting, url));
    });
  } finally {
    await waiting.close();
  }
}

/** A page of Astro. */
const testAstro = async (project) =>
  check(
    await openBuilt(project, 'dist', async (origin) => {
      write(project, {
        'astro.config.mjs': "export default { base: '/app' };\n",
        'src/pages/index.astro': `<p>client</p>\n<script>\n${script(origin)}</script>\n`,
      });
      await npx(project, ['astro', 'build']);
    }),
  );

const html = '<!doctype html><script type="module" src="./app.js"></script>';

const testRspack = async (project) =>
  check(
    await openBuilt(project, 'dist', async (origin) => {
      write(project, {
        'app.js': script(origin),
        'rspack.config.mjs': `export default { mode: 'production', entry: './app.js',
  output: { filename: 'app.js', publicPath: 'auto', module: true },
  experiments: { outputModule: true } };\n`,
      });
      await npx(project, ['rspack', 'build']);
      write(project, { 'dist/index.html': html });
    }),
  );

/** A page of Vite whose service worker, which the plugin builds, computes. */
const testPwa = async (project) =>
  check(
    await openBuilt(project, 'dist', async (origin) => {
      write(project, {
        'index.html': html,
        'app.js': `
navigator.serviceWorker.onmessage = ({ data }) => fetch('${origin}/result',
  { method: 'POST', mode: 'no-cors', body: JSON.stringify({ text: data }) });
await navigator.serviceWorker.register('/app/sw.js', { scope: '/app/', type: 'module' });
const { active } = await navigator.serviceWorker.ready;
active.postMessage('');`,
        'sw.js': `import { createGemm } from 'wgemm';
${product}
self.files = self.__WB_MANIFEST;
addEventListener('message', ({ source }) => {
  const post = (text) => source.postMessage(text);
  product({ createGemm }).then(post, (error) => post(String(error)));
});`,
        'vite.config.js': `import { VitePWA } from 'vite-plugin-pwa';
export default { base: '/app/', build: { target: 'es2022' }, plugins: [VitePWA({
  strategies: 'injectManifest', srcDir: '.', filename: 'sw.js', injectRegister: false,
  injectManifest: { globPatterns: ['**/*.{js,wasm,html}'] } })] };\n`,
      });
      await npx(project, ['vite', 'build']);
    }),
  );

/** A page of Angular, with the files of the package among its assets or without. */
async function testAngular(project, { configured }) {
  const asset = JSON.parse(guided('Angular'));
  const found = await openBuilt(project, 'dist/browser', async (origin) => {
    write(project, {
      'angular.json': JSON.stringify({
        version: 1,
        projects: {
          app: {
            projectType: 'application',
            root: '',
            architect: {
              build: {
                builder: '@angular/build:application',
                options: {
                  ...{ browser: 'src/main.ts', index: 'src/index.html', outputPath: 'dist' },
                  ...{ tsConfig: 'tsconfig.json', assets: configured ? [asset] : [] },
                  ...{ baseHref: '/app/', polyfills: [], budgets: [] },
                },
              },
            },
          },
        },
      }),
      'tsconfig.json': JSON.stringify({
        compilerOptions: {
          ...{ target: 'es2022', module: 'es2022', moduleResolution: 'bundler' },
          ...{ lib: ['es2022', 'dom'], experimentalDecorators: true },
        },
        files: ['src/main.ts'],
      }),
      'src/index.html':
        '<!doctype html><html><head></head><body><app-root></app-root></body></html>',
      'src/main.ts': `import { Component, provideZonelessChangeDetection } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { createGemm } from 'wgemm';
// @ts-nocheck
@Component({ selector: 'app-root', template: '<p>client</p>' })
class App {}
await bootstrapApplication(App, { providers: [provideZonelessChangeDetection()] });
${product.replace('({ createGemm })', '({ createGemm }: any)')}
${telling(origin).replace('(body)', '(body: unknown)')}`,
    });
    await npx(project, ['ng', 'build']);
  });
  check(found, configured ? expected : 'angular.json');
}

/**
 * `packages`: what the host is, from npm. `fast`: `--fast` runs it, too. `cases`: by name, what the
 * test gets besides the project.
 */
const hosts = {
  'service worker': { fast: true, test: testServiceWorker },
  extension: { fast: true, test: testExtension },
  nginx: { test: testNginx },
  Jest: { packages: ['jest@30', 'jest-environment-jsdom@30'], test: testJest },
  'Next.js': {
    packages: ['next@16', 'react@19', 'react-dom@19'],
    test: testNext,
    cases: Object.fromEntries(
      ['turbopack', 'webpack'].flatMap((bundler) => [
        [`${bundler}, in development`, { bundler, develops: true, configured: true }],
        [`${bundler}, built`, { bundler, configured: true }],
        [`${bundler}, not configured`, { bundler }],
      ]),
    ),
  },
  Nuxt: { packages: ['nuxt@4'], test: testNuxt },
  Angular: {
    packages: [
      ...['build', 'cli', 'core', 'common', 'compiler', 'compiler-cli', 'platform-browser'].map(
        (name) => `@angular/${name}@21`,
      ),
      ...['rxjs@7', 'typescript@5.9'],
    ],
    test: testAngular,
    cases: { configured: { configured: true }, 'not configured': {} },
  },
  Astro: { packages: ['astro@6'], test: testAstro },
  Rspack: { packages: ['@rspack/core@2', '@rspack/cli@2'], test: testRspack },
  'Vite PWA': { packages: ['vite@8', 'vite-plugin-pwa@1', 'workbox-window@7'], test: testPwa },
};

/** @param only names of hosts; absent: all */
export async function testHosts(results, { fast = false, only } = {}) {
  const unknown = only?.find((name) => !hosts[name]);
  if (unknown) throw new Error(`--hosts ${unknown}: there are ${Object.keys(hosts).join(', ')}`);
  for (const [name, { packages = [], test, cases = { product: {} }, ...host }] of Object.entries(
    hosts,
  )) {
    if ((fast && !host.fast) || (only && !only.includes(name))) continue;
    const project = await makeProject(join('hosts', name.replaceAll(' ', '-')));
    const isThere = await results.test('hosts', name, 'installed', async () => {
      if (packages.length === 0) return undefined;
      await install(project, packages);
      const main = packages[0].replace(/(?<=.)@[^@]*$/, '');
      const manifest = join(project, 'node_modules', main, 'package.json');
      return JSON.parse(readFileSync(manifest, 'utf8')).version;
    });
    if (!isThere) continue;
    for (const [what, options] of Object.entries(cases))
      await results.test('hosts', name, what, () => test(project, options));
  }
}
