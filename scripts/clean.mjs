// Removes what was built and fetched: in this clone, and the cache that all clones of this user share. Needs no npm package.
import { lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cache, main, root } from './run.mjs';

function sizeOf(path) {
  const info = lstatSync(path, { throwIfNoEntry: false });
  if (!info) return 0;
  if (!info.isDirectory()) return info.blocks === undefined ? info.size : info.blocks * 512;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

// Of the cache only what the scripts put there: WGEMM_CACHE may name a folder that holds more.
const ours = /^(emscripten|xnnpack|pthreadpool)-[\w.-]+$|^apt$|^lock$/;

await main(() => {
  const inCache = lstatSync(cache, { throwIfNoEntry: false }) ? readdirSync(cache).filter((name) => ours.test(name)) : [];
  const paths = [
    ...['build', 'dist', 'coverage', 'node_modules', 'tests/package/node_modules', 'tests/package/runtimes/node_modules'].map((name) =>
      join(root, name),
    ),
    ...inCache.map((name) => join(cache, name)),
  ].filter((path) => lstatSync(path, { throwIfNoEntry: false }));
  for (const path of paths) {
    const size = sizeOf(path);
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    console.log(`clean: removed ${path} (${(size / 1e6).toFixed(1)} MB)`);
  }
  if (paths.length === 0) console.log('clean: nothing to remove');
});
