// Runs the package in hosts that cut, move or serve its files in their own way: service workers,
// extensions, frameworks with servers, test runners with pages, and a web server with old types.
// Each installs the tarball, and most install the host from npm. A host computes a product, or it
// must say which setting it lacks.
import { spawn } from 'node:child_process';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openIn } from '../browser/engines.mjs';
import { runChild } from './child.mjs';
import {
  testAngular,
  testAstro,
  testNext,
  testNuxt,
  testReact,
  testSvelteKit,
  testVue,
} from './components.mjs';
import {
  check,
  expected,
  freePort,
  guided,
  install,
  npx,
  openBuilt,
  product,
  script,
  shownBy,
  startWaiting,
  write,
} from './hosting.mjs';
import { makeProject } from './packed.mjs';

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

/** Jest, with the script of the guide, in a page of jsdom and without a page. */
async function testJest(project) {
  const manifest = join(project, 'package.json');
  const own = JSON.parse(readFileSync(manifest, 'utf8'));
  const test = `import { createGemm } from 'wgemm';
${product}
test('product', async () => expect(await product({ createGemm })).toBe('${expected}'));
`;
  write(project, {
    'package.json': JSON.stringify({ ...own, ...JSON.parse(guided('Jest')) }),
    'jsdom.test.js': test,
    'node.test.js': `/** @jest-environment node */\n${test}`,
  });
  await runChild('npm', ['test'], { cwd: project });
}

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

/**
 * `packages`: what the host is, from npm. `fast`: `--fast` runs it, too. `cases`: by name, what the
 * test gets besides the project.
 */
const hosts = {
  'service worker': { fast: true, test: testServiceWorker },
  extension: { fast: true, test: testExtension },
  nginx: { test: testNginx },
  Jest: { packages: ['jest@30', 'jest-environment-jsdom@30'], test: testJest },
  React: {
    packages: ['react@19', 'react-dom@19', 'vite@8', '@vitejs/plugin-react@6'],
    test: testReact,
    cases: { 'in development': { develops: true }, built: {} },
  },
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
  Vue: { packages: ['vue@3', 'vite@8', '@vitejs/plugin-vue@6'], test: testVue },
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
  SvelteKit: {
    packages: [
      ...['@sveltejs/kit@3', '@sveltejs/adapter-node@6', '@sveltejs/vite-plugin-svelte@7'],
      ...['svelte@5', 'vite@8'],
    ],
    test: testSvelteKit,
    cases: { 'in development': { develops: true }, built: {} },
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
