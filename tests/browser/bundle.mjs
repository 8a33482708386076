// Bundles the API tests for a browser: the tests of tests/js that need no Node. The package itself
// stays out of the bundle and is loaded from dist/, as it ships.
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from 'esbuild';
import { root } from '../../scripts/run.mjs';

const tests = join(root, 'tests', 'js');
const page = join(root, 'tests', 'browser', 'page');

/** Tests that need Node are named *.node.test.ts. */
const names = readdirSync(tests, { recursive: true })
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.node.test.ts'));

/** Provides `tests` of 'all-tests': by path of the file in tests/js, a function that imports it. */
export const allTests = {
  name: 'all tests',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^all-tests$/ }, ({ path }) => ({ path, namespace: 'tests' }));
    onLoad({ filter: /.*/, namespace: 'tests' }, () => {
      const imports = names.map(
        (name) => `  ${JSON.stringify(name)}: () => import(${JSON.stringify(`./${name}`)}),\n`,
      );
      return { contents: `export const tests = {\n${imports.join('')}};`, resolveDir: tests };
    });
  },
};

/** Bundles entry points for a page. Returns the files of the bundle. */
export async function bundleForPage(options) {
  const { outputFiles } = await build({
    write: false,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    external: ['node:*'], // imported only in branches for Node
    logLevel: 'warning',
    ...options,
  });
  return outputFiles;
}

/** Path at which a file is served -> the file of the bundle. /suite/suite.js is its entry. */
export async function bundleTests() {
  const outputFiles = await bundleForPage({
    entryPoints: { suite: join(page, 'suite.js') },
    outdir: join(root, 'build', 'browser'),
    define: { 'import.meta.resolve': 'resolveInPackage' },
    plugins: [
      allTests,
      {
        name: 'tests',
        setup({ onResolve }) {
          onResolve({ filter: /^vitest$/ }, () => ({ path: join(page, 'vitest.js') }));
          // The policy forbids an inline import map, so a page finds packages only by their
          // addresses.
          onResolve({ filter: /^wgemm$/ }, () => ({ path: join(tests, 'support', 'threaded.ts') }));
          onResolve({ filter: /\/dist\/index\.js$/ }, () => ({
            path: '/dist/index.js',
            external: true,
          }));
          onResolve(
            { filter: /^wgemm\/(worker|inline|linear|search|onnx|tfjs|weights)$/ },
            ({ path }) => ({
              path: `${path.replace('wgemm', '/dist')}.js`,
              external: true,
            }),
          );
        },
      },
    ],
  });
  return Object.fromEntries(
    outputFiles.map(({ path, contents }) => [
      `/suite/${relative(join(root, 'build', 'browser'), path).replaceAll('\\', '/')}`,
      contents,
    ]),
  );
}
