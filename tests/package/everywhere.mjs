// Tests the tarball in every runtime, every bundler and every engine, and prints one table.
//   node tests/package/everywhere.mjs
//     --only tarball,pages,runtimes,bundlers,engines,cblas  some of these
//     --fast  as `npm test` does: only the Node of this project, TypeScript 7.0, and 5.0 with two
//             settings, a smoke test in Chromium, and not every app in every bundler
//     --hosts [NAME,...]  only the hosts of hosts.mjs, or some of these
//     --rest  only the runtimes that --fast leaves out, with the project's own vectors
import { main } from '../../scripts/run.mjs';
import { setUp } from '../../scripts/setup.mjs';
import { Results } from './results.mjs';

const parts = {
  tarball: {
    fast: ['package'],
    needs: ['package'],
    run: async (results, options) => (await import('./tarball.mjs')).testTarball(results, options),
  },
  pages: {
    fast: ['package'],
    needs: ['package'],
    run: async (results) => (await import('./blocks.mjs')).testBlocks(results),
  },
  runtimes: {
    fast: ['package'],
    needs: ['package', 'runtimes'],
    run: async (results, options) =>
      (await import('./runtimes.mjs')).testRuntimes(results, options),
  },
  bundlers: {
    fast: ['package', 'chromium'],
    needs: ['package', 'chromium'],
    run: async (results, options) =>
      (await import('./bundlers.mjs')).testBundlers(results, options),
  },
  hosts: {
    fast: ['package', 'chromium'],
    needs: ['package', 'chromium'],
    run: async (results, options) => (await import('./hosts.mjs')).testHosts(results, options),
  },
  cblas: {
    needs: ['wasm', 'chromium'],
    run: async (results) => (await import('./cblas.mjs')).testCblas(results),
  },
  engines: {
    fast: ['chromium'],
    needs: ['chromium', 'firefox', 'webkit'],
    run: async (results, options) => (await import('./engines.mjs')).testEngines(results, options),
  },
};

await main(async () => {
  const after = (option) => {
    const index = process.argv.indexOf(option);
    return index < 0 ? undefined : (process.argv[index + 1]?.split(',') ?? []);
  };
  const hosts = after('--hosts');
  const [fast, rest] = ['--fast', '--rest'].map((option) => process.argv.includes(option));
  // All hosts take long to install, so only --hosts asks for them.
  const usual = Object.keys(parts).filter((part) => !fast || parts[part].fast);
  const only = hosts ? ['hosts'] : (after('--only') ?? usual);
  for (const part of only)
    if (!parts[part]) throw new Error(`--only ${part}: there are ${Object.keys(parts).join(', ')}`);
  const needs = only.flatMap((part) => (fast && parts[part].fast) || parts[part].needs);
  await setUp(...needs);
  const results = new Results();
  for (const part of only) {
    const isAsked = part !== 'hosts' || hosts || after('--only');
    const options = { fast: fast || !isAsked, rest, only: hosts?.length ? hosts : undefined };
    await parts[part].run(results, part === 'hosts' ? options : { fast, rest });
  }
  results.finish();
});
