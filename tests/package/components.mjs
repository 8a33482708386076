// Runs the components of the guide in their frameworks. A page shows a component and takes it away,
// and counts the instances of wgemm that are alive: none may outlive its component.
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  check,
  expected,
  guided,
  npx,
  openBuilt,
  product,
  shownBy,
  shownIn,
  startWaiting,
  telling,
  textOf,
  whileServing,
  write,
} from './hosting.mjs';

/**
 * counted.js stands between a component and the package. `live(show)` shows the component twice:
 * first for less time than an instance takes to be made, then until it has its product. Of two
 * instances that are made at once, the first is ready last.
 */
const counted = `import { createGemm as create } from 'wgemm';
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const instances = [];
let asked = 0;
let failure;
export async function createGemm(options) {
  const ms = ++asked % 2 ? 300 : 100;
  const wg = await create(options).catch((error) => {
    failure = String(error);
    throw error;
  });
  await sleep(ms);
  instances.push(wg);
  return wg;
}
const isComplete = () => instances.length === asked;
const alive = () => instances.filter(({ disposed }) => !disposed).length;
const text = () => document.querySelector('p')?.textContent ?? '';
export async function until(isTrue) {
  for (let tries = 0; tries < 100 && !failure && !isTrue(); ++tries) await sleep(50);
}
export async function live(show) {
  await show(true);
  await until(() => asked > 0);
  await show(false);
  await until(() => isComplete() && alive() === 0);
  const early = alive();
  await show(true);
  await until(() => isComplete() && text() === '7 10 15 22' && alive() === 1);
  const shown = text() + ' with ' + alive();
  await show(false);
  await until(() => alive() === 0);
  return failure ?? [early, shown, alive()].join(', then ') + ' alive; ' + asked + ' made';
}
`;

/** What `live()` returns. React makes each component twice in development. */
const lived = (made = 2) => `0, then 7 10 15 22 with 1, then 0 alive; ${made} made`;

/** A component of the guide, which imports counted.js instead of the package. */
function component(heading, file) {
  const code = guided(heading, file);
  check(code, " from 'wgemm';");
  return code.replace("'wgemm'", "'./counted.js'");
}

/** Calls `live()` with the code of a function, and tells our server the result. */
const living = (origin, show) => telling(origin, `live(${show})`);

const viteFiles = (plugin, config = '') => ({
  'counted.js': counted,
  'index.html':
    '<!doctype html><div id="root"></div><script type="module" src="./main.js"></script>',
  'vite.config.js': `import plugin from '${plugin}';
export default { base: '/app/', plugins: [plugin()], ${config} };\n`,
});

/** A page of Vite, built or in development. */
async function openVite(project, { develops }, writeApp) {
  if (!develops)
    return await openBuilt(project, 'dist', async (origin) => {
      writeApp(origin);
      await npx(project, ['vite', 'build']);
    });
  const waiting = await startWaiting();
  writeApp(waiting.origin);
  const command = ['npx', 'vite', '--port', 'PORT', '--host', '127.0.0.1'];
  try {
    return await whileServing(project, command, (url) => shownBy(waiting, `${url}/app/`));
  } finally {
    await waiting.close();
  }
}

/** The hook and the component of the guide, and a component with the instance of a module. */
export async function testReact(project, { develops }) {
  const found = await openVite(project, { develops }, (origin) =>
    write(project, {
      ...viteFiles('@vitejs/plugin-react'),
      'use-gemm.js': component('React', 'use-gemm.js'),
      'Product.jsx': guided('React', 'Product.jsx'),
      'Shared.jsx': guided('React', 'Shared.jsx'),
      'main.js': "import './main.jsx';\n",
      'main.jsx': `import { StrictMode, Suspense } from 'react';
import { createRoot } from 'react-dom/client';
import { live, until } from './counted.js';
import { Product } from './Product.jsx';
import { Shared } from './Shared.jsx';
const root = createRoot(document.querySelector('#root'));
const show = (component) => root.render(<StrictMode>{component}</StrictMode>);
async function liveTwice() {
  const text = await live((isShown) => show(isShown && <Product />));
  show(<Suspense><Shared /></Suspense>);
  await until(() => document.querySelector('p'));
  return text + '; ' + document.querySelector('p')?.textContent;
}
${telling(origin, 'liveTwice()')}`,
    }),
  );
  check(found, `${lived(develops ? 4 : 2)}; 7 10 15 22`);
}

/** The component of the guide in a page of Vite. */
export const testVue = async (project) =>
  check(
    await openVite(project, {}, (origin) =>
      write(project, {
        ...viteFiles('@vitejs/plugin-vue'),
        'Product.vue': component('Vue and Nuxt'),
        'main.js': `import { createApp, h, ref } from 'vue';
import { live } from './counted.js';
import Product from './Product.vue';
const isShown = ref(false);
createApp({ render: () => (isShown.value ? h(Product) : null) }).mount('#root');
${living(origin, '(is) => (isShown.value = is)')}`,
      }),
    ),
    lived(),
  );

/** The same component in a page of Nuxt, and an address of its built server. */
export async function testNuxt(project) {
  const waiting = await startWaiting();
  write(project, {
    'nuxt.config.ts': "export default defineNuxtConfig({ compatibilityDate: '2026-01-01' });\n",
    'server/api/product.js': `import { createGemm } from 'wgemm';
${product}
export default defineEventHandler(() => product({ createGemm }).catch(String));`,
    'counted.js': counted,
    'Product.vue': component('Vue and Nuxt'),
    'app.vue': `<template><Product v-if="isShown" /></template>
<script setup>
import { live } from './counted.js';
import Product from './Product.vue';
const isShown = ref(true);
onMounted(() => {${living(waiting.origin, '(is) => (isShown.value = is)')}});
</script>`,
  });
  try {
    await npx(project, ['nuxt', 'build']);
    await whileServing(project, ['node', '.output/server/index.mjs'], async (url) => {
      check(await textOf(`${url}/api/product`));
      check(await shownBy(waiting, url), lived());
    });
  } finally {
    await waiting.close();
  }
}

const nextFiles = (origin) => ({
  'app/layout.jsx': `export default function Layout({ children }) {
  return (<html><body>{children}</body></html>);
}`,
  'app/counted.js': counted,
  'app/use-gemm.js': `'use client';\n${component('React', 'use-gemm.js')}`,
  'app/Product.jsx': `'use client';\n${guided('React', 'Product.jsx')}`,
  'app/page.jsx': `'use client';
import { useEffect, useState } from 'react';
import { live } from './counted.js';
import { Product } from './Product.jsx';
let isLive = false;
export default function Page() {
  const [isShown, show] = useState(true);
  useEffect(() => {
    if (isLive) return;
    isLive = true;
    ${living(origin, 'show')}
  }, []);
  return isShown && <Product />;
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
export async function testNext(project, { bundler, develops, configured }) {
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
      check(await shownBy(waiting, url), lived(develops ? 4 : 2));
      check(shownIn(await textOf(`${url}/server`)), configured ? expected : setting);
      if (configured) check(await textOf(`${url}/route`));
    });
  } finally {
    await waiting.close();
  }
}

/** A page of Angular, with the files of the package among its assets or without. */
export async function testAngular(project, { configured }) {
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
          ...{ lib: ['es2022', 'dom'], experimentalDecorators: true, strict: true },
        },
        files: ['src/main.ts'],
      }),
      'src/index.html': '<!doctype html><html><head></head><body></body></html>',
      'src/counted.js': counted,
      'src/counted.d.ts': `export { createGemm } from 'wgemm';
export declare function live(show: (is: boolean) => unknown): Promise<string>;`,
      'src/product.ts': component('Angular', 'product.ts'),
      'src/main.ts': `import { ApplicationRef } from '@angular/core';
import { provideZonelessChangeDetection } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { live } from './counted.js';
import { Product } from './product';
let app: ApplicationRef | undefined;
async function show(is: boolean) {
  if (!is) return app?.destroy();
  document.body.append(document.createElement('app-product'));
  app = await bootstrapApplication(Product, { providers: [provideZonelessChangeDetection()] });
}
${living(origin, 'show').replace('(body)', '(body: unknown)')}`,
    });
    await npx(project, ['ng', 'build']);
  });
  check(found, configured ? lived() : 'angular.json');
}

/** A page of SvelteKit, and an address of its server. */
export async function testSvelteKit(project, { develops }) {
  const waiting = await startWaiting();
  write(project, {
    'vite.config.js': `import adapter from '@sveltejs/adapter-node';
import { sveltekit } from '@sveltejs/kit/vite';
export default { plugins: [sveltekit({ adapter: adapter() })] };\n`,
    'src/app.html':
      '<!doctype html><html><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>',
    'src/routes/counted.js': counted,
    'src/routes/+layout.svelte': `<script>
import { onMount } from 'svelte';
import { live } from './counted.js';
let { children } = $props();
let isShown = $state(true);
onMount(() => {${living(waiting.origin, '(is) => (isShown = is)')}});
</script>
{#if isShown}{@render children()}{/if}`,
    'src/routes/+page.svelte': component('Svelte and SvelteKit', '+page.svelte'),
    'src/routes/product/+server.js': guided('Svelte and SvelteKit', '+server.js'),
  });
  try {
    if (!develops) await npx(project, ['vite', 'build']);
    const command = develops
      ? ['npx', 'vite', '--port', 'PORT', '--host', '127.0.0.1']
      : ['node', 'build'];
    await whileServing(project, command, async (url) => {
      check(await textOf(`${url}/product`), '[7,10,15,22]');
      check(await shownBy(waiting, url), lived());
    });
  } finally {
    await waiting.close();
  }
}

/** The page of the guide, built by Astro, with a script that tells what the page shows. */
export const testAstro = async (project) =>
  check(
    await openBuilt(project, 'dist', async (origin) => {
      write(project, {
        'astro.config.mjs': "export default { base: '/app' };\n",
        'src/pages/index.astro': `${guided('Astro')}
<script>
  async function shown() {
    const product = document.querySelector('#product');
    for (let tries = 0; tries < 100 && !product.textContent; ++tries)
      await new Promise((resolve) => setTimeout(resolve, 50));
    return product.textContent;
  }
${telling(origin, 'shown()')}</script>
`,
      });
      await npx(project, ['astro', 'build']);
    }),
    '7 10 15 22',
  );
