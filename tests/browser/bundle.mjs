// Bundles the API tests for a browser: those of tests/js that need no Node. The package itself
// stays out of the bundle, and is loaded from where dist/ is served, so that what ships is what
// runs.
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from 'esbuild';
import { root } from '../../scripts/run.mjs';

const tests = join(root, 'tests', 'js');
const page = join(root, 'tests', 'browser', 'page');

/** What needs Node is named *.node.test.ts. */
const names = readdirSync(tests).filter(
  (name) => name.endsWith('.test.ts') && !name.endsWith('.node.test.ts'),
);

/** The bundle, as files by the path that they are to be served at; /suite/suite.js is its entry. */
export async function bundleTests() {
  const imports = names.map(
    (name) => `  ${JSON.stringify(name)}: () => import(${JSON.stringify(`./${name}`)}),\n`,
  );
  const { outputFiles } = await build({
    entryPoints: { suite: join(page, 'suite.js') },
    outdir: join(root, 'build', 'browser'),
    write: false,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    define: { 'import.meta.resolve': 'resolveInPackage' },
    external: ['node:*'], // in branches for Node
    logLevel: 'warning',
    plugins: [
      {
        name: 'tests',
        setup({ onResolve, onLoad }) {
          onResolve({ filter: /^vitest$/ }, () => ({ path: join(page, 'vitest.js') }));
          // Without an inline import map, which the policy forbids, a page finds packages by their
          // addresses alone.
          onResolve({ filter: /^wgemm$/ }, () => ({ path: join(tests, 'threaded.ts') }));
          onResolve({ filter: /\/dist\/index\.js$/ }, () => ({
            path: '/dist/index.js',
            external: true,
          }));
          onResolve({ filter: /^wgemm\/(worker|inline)$/ }, ({ path }) => ({
            path: `${path.replace('wgemm', '/dist')}.js`,
            external: true,
          }));
          onResolve({ filter: /^all-tests$/ }, ({ path }) => ({ path, namespace: 'tests' }));
          onLoad({ filter: /.*/, namespace: 'tests' }, () => ({
            contents: `export const tests = {\n${imports.join('')}};`,
            resolveDir: tests,
          }));
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
